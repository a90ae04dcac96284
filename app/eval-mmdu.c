/* eval-mmdu.c - MMDU aggregates; see eval-mmdu.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-mmdu.h"

#include "app/eval-text.h"

#include <string.h>

const char *const ks_eval_mmdu_fields[KS_EVAL_MMDU_N_FIELDS] = {
    "Creativity",        "Richness",        "Visual Perception",
    "Logical Coherence", "Answer Accuracy", "Image Relationship Understanding",
    "Overall Score",
};

static void
skip_space (const char **p)
{
  while (**p != '\0' && ks_eval_text_is_space (g_utf8_get_char (*p)))
    *p = g_utf8_next_char (*p);
}

/* A quoted string without its quotes; backslash takes the next character as it is. */
static gboolean
read_string (const char **p, GString *out)
{
  char quote = **p;

  if (quote != '\'' && quote != '"')
    return FALSE;
  g_string_truncate (out, 0);
  for ((*p)++; **p != '\0' && **p != quote; (*p)++) {
    if (**p == '\\' && (*p)[1] != '\0')
      (*p)++;
    g_string_append_c (out, **p);
  }
  if (**p != quote)
    return FALSE;
  (*p)++;
  return TRUE;
}

/* A number, or a string that holds one; *out_is_number tells whether there was a value to use. */
static gboolean
read_value (const char **p, double *out, gboolean *out_is_number)
{
  g_autoptr (GString) text = g_string_new (NULL);
  char *end = NULL;

  *out_is_number = TRUE;
  if (**p == '\'' || **p == '"') {
    if (!read_string (p, text))
      return FALSE;
    *out_is_number = ks_eval_text_is_float (text->str);
    *out = *out_is_number ? g_ascii_strtod (text->str, NULL) : 0.0;
    return TRUE;
  }
  *out = g_ascii_strtod (*p, &end);
  if (end == *p || (!g_ascii_isdigit (**p) && strchr ("+-.", **p) == NULL))
    return FALSE;
  *p = end;
  return TRUE;
}

static gboolean
read_pair (const char **p, gboolean found[KS_EVAL_MMDU_N_FIELDS],
           double values[KS_EVAL_MMDU_N_FIELDS])
{
  g_autoptr (GString) key = g_string_new (NULL);
  double value;
  gboolean is_number;

  if (!read_string (p, key))
    return FALSE;
  skip_space (p);
  if (**p != ':')
    return FALSE;
  (*p)++;
  skip_space (p);
  if (!read_value (p, &value, &is_number))
    return FALSE;
  for (guint i = 0; i < KS_EVAL_MMDU_N_FIELDS; i++)
    if (is_number && strcmp (key->str, ks_eval_mmdu_fields[i]) == 0) {
      found[i] = TRUE;
      values[i] = value;
    }
  return TRUE;
}

gboolean
ks_eval_mmdu_parse (const char *reply, gboolean found[KS_EVAL_MMDU_N_FIELDS],
                    double values[KS_EVAL_MMDU_N_FIELDS])
{
  g_autoptr (GString) valid = ks_eval_text_new (reply);
  const char *p = strchr (valid->str, '{'), *end = strrchr (valid->str, '}');

  memset (found, 0, KS_EVAL_MMDU_N_FIELDS * sizeof *found);
  memset (values, 0, KS_EVAL_MMDU_N_FIELDS * sizeof *values);
  if (p == NULL || end == NULL || end < p)
    return FALSE;
  p++;
  for (;;) {
    skip_space (&p);
    if (p == end)
      return TRUE; /* empty, or a comma before the closing brace */
    if (!read_pair (&p, found, values))
      break;
    skip_space (&p);
    if (p == end)
      return TRUE;
    if (*p != ',')
      break;
    p++;
  }
  memset (found, 0, KS_EVAL_MMDU_N_FIELDS * sizeof *found);
  return FALSE;
}

void
ks_eval_mmdu_aggregate (const char *const *replies, gsize n, KsEvalMmduTotals *out)
{
  guint n_valid[KS_EVAL_MMDU_N_FIELDS] = {0};

  memset (out, 0, sizeof *out);
  for (gsize r = 0; r < n; r++) {
    gboolean found[KS_EVAL_MMDU_N_FIELDS], complete = TRUE;
    double values[KS_EVAL_MMDU_N_FIELDS];

    if (!ks_eval_mmdu_parse (replies[r], found, values))
      continue;
    for (guint i = 0; i < KS_EVAL_MMDU_N_FIELDS; i++) {
      complete = complete && found[i];
      if (found[i]) {
        out->all[i] += CLAMP (values[i], 0.0, 10.0);
        n_valid[i]++;
      }
    }
    out->n_official += complete;
    for (guint i = 0; complete && i < KS_EVAL_MMDU_N_FIELDS; i++)
      out->official[i] += values[i];
  }
  for (guint i = 0; i < KS_EVAL_MMDU_N_FIELDS; i++) {
    out->valid[i] = n_valid[i] > 0 ? 10.0 * out->all[i] / n_valid[i] : 0.0;
    out->all[i] = n > 0 ? 10.0 * out->all[i] / (double)n : 0.0;
    out->official[i] = out->n_official > 0 ? 10.0 * out->official[i] / out->n_official : 0.0;
  }
}
