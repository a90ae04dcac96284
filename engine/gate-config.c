/* gate-config.c - scanner of a gate's .config.json; see gate-config.h.
 * Only as much JSON as is needed: strings with their simple escapes, numbers, words, nesting. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/gate-config.h"

#include <string.h>

#define MAX_DEPTH 32

typedef struct scanner {
  const char *p, *end;
  ks_gate_config *config;
} scanner;

static void
skip_space(scanner *s)
{
  while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
    s->p++;
}

static bool
take(scanner *s, char c)
{
  skip_space(s);
  if (s->p == s->end || *s->p != c)
    return false;
  s->p++;
  return true;
}

/* A string into out, cut to size; \uXXXX becomes '?': no name that matters has one. */
static bool
take_string(scanner *s, char *out, size_t size)
{
  size_t n = 0;

  if (!take(s, '"'))
    return false;
  for (; s->p < s->end && *s->p != '"'; s->p++) {
    char c = *s->p;

    if ((unsigned char)c < 0x20)
      return false;
    if (c == '\\') {
      if (++s->p == s->end)
        return false;
      c = *s->p;
      if (c == 'u') {
        if (s->end - s->p < 5)
          return false;
        s->p += 4;
        c = '?';
      }
    }
    if (n + 1 < size)
      out[n++] = c;
  }
  if (s->p == s->end)
    return false;
  s->p++;
  out[n] = '\0';
  return true;
}

/* A number, true, false or null; *out is its value when it is a small whole number. */
static bool
take_word(scanner *s, uint32_t *out)
{
  const char *begin = s->p;
  uint64_t value = 0;
  bool whole = true;

  for (; s->p < s->end && strchr(",]} \t\r\n", *s->p) == NULL; s->p++) {
    if (*s->p < '0' || *s->p > '9' || value > UINT32_MAX / 10)
      whole = false;
    else
      value = value * 10 + (uint64_t)(*s->p - '0');
  }
  if (whole && s->p > begin)
    *out = (uint32_t)value;
  return s->p > begin;
}

static void
keep_string(ks_gate_config *c, const char *key, const char *value)
{
  static const struct {
    const char *key;
    size_t offset, size;
  } strings[] = {
      {"base_model", offsetof(ks_gate_config, base_model), sizeof(c->base_model)},
      {"retention_gate", offsetof(ks_gate_config, kind), sizeof(c->kind)},
      {"hidden_act", offsetof(ks_gate_config, act), sizeof(c->act)},
  };

  for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
    if (strcmp(key, strings[i].key) == 0) {
      const size_t n = strnlen(value, strings[i].size - 1);
      char *dst = (char *)c + strings[i].offset;

      memcpy(dst, value, n);
      dst[n] = '\0';
    }
}

static void
keep_number(ks_gate_config *c, const char *key, uint32_t value)
{
  if (strcmp(key, "retention_gate_intermediate_size") == 0)
    c->n_gate = value;
  else if (strcmp(key, "hidden_size") == 0)
    c->n_embd = value;
  else if (strcmp(key, "num_hidden_layers") == 0)
    c->n_layer = value;
  else if (strcmp(key, "num_key_value_heads") == 0)
    c->n_kv_head = value;
}

static bool take_value(scanner *s, const char *key, bool wanted, int depth);

static bool
take_object(scanner *s, bool wanted, int depth)
{
  if (take(s, '}'))
    return true;
  do {
    char key[64];

    if (!take_string(s, key, sizeof(key)) || !take(s, ':') || !take_value(s, key, wanted, depth))
      return false;
  } while (take(s, ','));
  return take(s, '}');
}

static bool
take_array(scanner *s, int depth)
{
  if (take(s, ']'))
    return true;
  do {
    if (!take_value(s, "", false, depth))
      return false;
  } while (take(s, ','));
  return take(s, ']');
}

/* One value; wanted says that its key is one of those that the config keeps. */
static bool
take_value(scanner *s, const char *key, bool wanted, int depth)
{
  if (depth > MAX_DEPTH)
    return false;
  skip_space(s);
  if (s->p == s->end)
    return false;
  if (*s->p == '"') {
    char value[128];

    if (!take_string(s, value, sizeof(value)))
      return false;
    if (wanted)
      keep_string(s->config, key, value);
    return true;
  }
  if (take(s, '{'))
    return take_object(s, depth == 0 || (depth == 1 && strcmp(key, "text_config") == 0), depth + 1);
  if (take(s, '['))
    return take_array(s, depth + 1);
  {
    uint32_t value = 0;

    if (!take_word(s, &value))
      return false;
    if (wanted && value > 0)
      keep_number(s->config, key, value);
    return true;
  }
}

ks_status
ks_gate_config_parse(const char *text, size_t n_bytes, ks_gate_config *out, ks_error *err)
{
  ks_gate_config config;
  scanner s = {.p = text, .end = text + n_bytes, .config = &config};

  memset(&config, 0, sizeof(config));
  skip_space(&s);
  if (s.p == s.end || *s.p != '{' || !take_value(&s, "", false, 0))
    return ks_fail(err, KS_ERR_FORMAT, "the gate's configuration is no complete JSON object");
  skip_space(&s);
  if (s.p != s.end)
    return ks_fail(err, KS_ERR_FORMAT, "the gate's configuration goes on after its end");
  *out = config;
  return KS_OK;
}
