/* tokenizer-pre.c - cuts a text into the pieces inside which BPE may merge.
 * The rules are written as code instead of patterns: one pass, no backtracking, linear time.
 * Invalid bytes count as other characters, so nothing is lost. Source: docs/formats/tokenizers.md.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/tokenizer-internal.h"
#include "engine/unicode.h"

#include <string.h>

typedef struct cursor {
  const char *text;
  size_t n;
  bool marks_are_letters;
} cursor;

/* Class of the character at pos and where it ends; past the end no class fits. */
static int
class_at(const cursor *c, size_t pos, size_t *out_end)
{
  uint32_t cp;
  int cls;

  if (pos >= c->n) {
    *out_end = pos;
    return -1;
  }
  *out_end = pos + ks_utf8_decode(c->text + pos, c->n - pos, &cp);
  cls = (int)ks_unicode_get_class(cp);
  if (cls == KS_UNICODE_MARK)
    cls = c->marks_are_letters ? KS_UNICODE_LETTER : KS_UNICODE_OTHER;
  return cls;
}

static size_t
skip_class(const cursor *c, size_t pos, int cls)
{
  size_t end;

  while (class_at(c, pos, &end) == cls)
    pos = end;
  return pos;
}

static bool
is_newline(char ch)
{
  return ch == '\n' || ch == '\r';
}

static char
lower_ascii(char ch)
{
  return ch >= 'A' && ch <= 'Z' ? (char)(ch - 'A' + 'a') : ch;
}

/* Length of an English contraction at pos ('s 't 'm 'd 're 've 'll), 0 when there is none. */
static size_t
contraction_length(const cursor *c, size_t pos, bool any_case)
{
  char a, b;

  if (c->text[pos] != '\'' || pos + 1 >= c->n)
    return 0;
  a = any_case ? lower_ascii(c->text[pos + 1]) : c->text[pos + 1];
  if (a == 's' || a == 't' || a == 'm' || a == 'd')
    return 2;
  if (pos + 2 >= c->n)
    return 0;
  b = any_case ? lower_ascii(c->text[pos + 2]) : c->text[pos + 2];
  return (b == 'e' && (a == 'r' || a == 'v')) || (b == 'l' && a == 'l') ? 3 : 0;
}

/* A run of white space leaves its last character to the piece that follows, if one follows. */
static size_t
white_space_end(const cursor *c, size_t pos)
{
  size_t last = pos, end = pos, next;

  while (class_at(c, end, &next) == KS_UNICODE_SPACE) {
    last = end;
    end = next;
  }
  return end < c->n && last > pos ? last : end;
}

/* gpt-2: contraction, then letters, numbers or others with one optional space, then white space. */
static size_t
next_gpt2(const cursor *c, size_t pos)
{
  size_t n = contraction_length(c, pos, false), start = pos, end;
  int cls;

  if (n > 0)
    return pos + n;
  if (c->text[pos] == ' ')
    start++;
  cls = class_at(c, start, &end);
  if (cls == KS_UNICODE_LETTER || cls == KS_UNICODE_NUMBER || cls == KS_UNICODE_OTHER)
    return skip_class(c, start, cls);
  return white_space_end(c, pos);
}

/* Up to n_max numbers. */
static size_t
numbers_end(const cursor *c, size_t pos, size_t n_max)
{
  size_t end;

  for (; n_max > 0 && class_at(c, pos, &end) == KS_UNICODE_NUMBER; n_max--)
    pos = end;
  return pos;
}

/* llama-bpe and qwen2: letters may take any one character that is no line end and no number in
 * front, others take the line ends behind them, and white space is cut behind its last line end. */
static size_t
next_llama(const cursor *c, size_t pos, size_t n_numbers)
{
  size_t n = contraction_length(c, pos, true), end, next, start = pos, after_newline = 0;
  int cls = class_at(c, pos, &end);

  if (n > 0)
    return pos + n;
  if (cls == KS_UNICODE_NUMBER)
    return numbers_end(c, pos, n_numbers);
  if (cls == KS_UNICODE_LETTER)
    return skip_class(c, pos, KS_UNICODE_LETTER);
  if (!is_newline(c->text[pos]) && class_at(c, end, &next) == KS_UNICODE_LETTER)
    return skip_class(c, end, KS_UNICODE_LETTER);
  if (c->text[pos] == ' ')
    start++;
  if (class_at(c, start, &next) == KS_UNICODE_OTHER) {
    end = skip_class(c, start, KS_UNICODE_OTHER);
    while (end < c->n && is_newline(c->text[end]))
      end++;
    return end;
  }
  for (end = pos; class_at(c, end, &next) == KS_UNICODE_SPACE; end = next)
    if (is_newline(c->text[end]))
      after_newline = next;
  return after_newline > 0 ? after_newline : white_space_end(c, pos);
}

size_t
ks_pre_next(const ks_tokenizer *tok, const char *text, size_t n, size_t pos)
{
  cursor c = {text, n, tok->marks_are_letters};

  switch (tok->pre) {
  case KS_PRE_LLAMA_BPE:
    return next_llama(&c, pos, 3);
  case KS_PRE_QWEN2:
    return next_llama(&c, pos, 1);
  case KS_PRE_GPT2:
  case KS_PRE_SMOLLM:
    break;
  }
  return next_gpt2(&c, pos);
}

bool
ks_bpe_set_pre(ks_tokenizer *tok, ks_gguf_str name)
{
  static const struct {
    const char *name;
    ks_pre_kind kind;
    bool whole_pieces, adds_bos, marks;
  } known[] = {
      {"gpt-2", KS_PRE_GPT2, false, false, false},
      {"phi-2", KS_PRE_GPT2, false, false, false},
      {"mpt", KS_PRE_GPT2, false, false, false},
      {"olmo", KS_PRE_GPT2, false, false, false},
      {"smollm", KS_PRE_SMOLLM, false, false, false},
      {"starcoder", KS_PRE_SMOLLM, false, false, false},
      {"refact", KS_PRE_SMOLLM, false, false, false},
      {"command-r", KS_PRE_SMOLLM, false, false, false},
      {"codeshell", KS_PRE_SMOLLM, false, false, false},
      {"llama-bpe", KS_PRE_LLAMA_BPE, true, true, false},
      {"llama3", KS_PRE_LLAMA_BPE, true, true, false},
      {"llama-v3", KS_PRE_LLAMA_BPE, true, true, false},
      {"dbrx", KS_PRE_LLAMA_BPE, false, false, false},
      {"smaug-bpe", KS_PRE_LLAMA_BPE, false, false, false},
      {"qwen2", KS_PRE_QWEN2, false, false, false},
      {"stablelm2", KS_PRE_QWEN2, false, false, false},
      {"deepseek-r1-qwen", KS_PRE_QWEN2, false, false, false},
      {"qwen35", KS_PRE_QWEN2, false, false, true},
  };

  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (ks_gguf_str_equal(name, known[i].name)) {
      tok->pre = known[i].kind;
      tok->whole_pieces = known[i].whole_pieces;
      tok->adds_bos = known[i].adds_bos;
      tok->marks_are_letters = known[i].marks;
      return true;
    }
  return false;
}
