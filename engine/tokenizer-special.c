/* tokenizer-special.c - finds control, user-defined and unknown tokens as literal text.
 * Longer tokens cut first, each leftmost first, equal lengths by id.  Control and unknown tokens
 * count only where the text is trusted; user-defined ones always. One pass narrows a sorted list
 * byte by byte and learns which tokens occur at all; only those are then searched one after the
 * other.  Source: docs/formats/tokenizers.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/tokenizer-internal.h"

#include <string.h>

static int
compare_texts(const ks_tokenizer *tok, ks_token a, ks_token b)
{
  const ks_vocab_entry *x = &tok->vocab[a], *y = &tok->vocab[b];
  size_t n = x->n_text < y->n_text ? x->n_text : y->n_text;
  int c = memcmp(tok->blob + x->text, tok->blob + y->text, n);

  return c != 0 ? c : x->n_text < y->n_text ? -1 : x->n_text > y->n_text;
}

static int
compare_lengths(const ks_tokenizer *tok, ks_token a, ks_token b)
{
  uint32_t x = tok->vocab[a].n_text, y = tok->vocab[b].n_text;

  return x != y ? (x > y ? -1 : 1) : a < b ? -1 : 1;
}

/* Heapsort: the order needs the tokenizer, which qsort could not hand over. */
static void
sort_ids(const ks_tokenizer *tok, ks_token *ids, uint32_t n,
         int (*compare)(const ks_tokenizer *, ks_token, ks_token))
{
  for (uint32_t end = n, start = n / 2; end > 1;) {
    uint32_t i;
    ks_token moving;

    if (start > 0) {
      moving = ids[--start];
    } else {
      moving = ids[--end];
      ids[end] = ids[0];
    }
    i = start;
    for (uint32_t child; (child = 2 * i + 1) < end; i = child) {
      if (child + 1 < end && compare(tok, ids[child], ids[child + 1]) < 0)
        child++;
      if (compare(tok, moving, ids[child]) >= 0)
        break;
      ids[i] = ids[child];
    }
    ids[i] = moving;
  }
}

static bool
is_special(const ks_tokenizer *tok, uint32_t i)
{
  const ks_vocab_entry *e = &tok->vocab[i];

  if (e->type != KS_TOKEN_CONTROL && e->type != KS_TOKEN_USER_DEFINED &&
      e->type != KS_TOKEN_UNKNOWN)
    return false;
  /* Of several with one text only its owner can be met. */
  return ks_tokenizer_find(tok, tok->blob + e->text, e->n_text) == (ks_token)i;
}

ks_status
ks_special_load(ks_tokenizer *tok, ks_error *err)
{
  uint32_t n = 0;

  for (uint32_t i = 0; i < tok->n_vocab; i++)
    n += is_special(tok, i);
  tok->special_by_text = (ks_token *)ks_mem_new(tok->alloc, KS_MEM_HOST, n, sizeof(ks_token));
  tok->special_by_length = (ks_token *)ks_mem_new(tok->alloc, KS_MEM_HOST, n, sizeof(ks_token));
  if (tok->special_by_text == NULL || tok->special_by_length == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for the special tokens");
  for (uint32_t i = 0; i < tok->n_vocab; i++)
    if (is_special(tok, i)) {
      tok->special_by_text[tok->n_special] = (ks_token)i;
      tok->special_by_length[tok->n_special++] = (ks_token)i;
      tok->n_user_defined += tok->vocab[i].type == KS_TOKEN_USER_DEFINED;
    }
  sort_ids(tok, tok->special_by_text, n, compare_texts);
  sort_ids(tok, tok->special_by_length, n, compare_lengths);
  for (uint32_t i = 0; i < n; i++) {
    const ks_vocab_entry *e = &tok->vocab[tok->special_by_text[i]];

    tok->special_first[(unsigned char)tok->blob[e->text] + 1]++;
  }
  for (int b = 0; b < 256; b++)
    tok->special_first[b + 1] += tok->special_first[b];
  return KS_OK;
}

typedef struct search {
  const ks_tokenizer *tok;
  const char *text;
  const unsigned char *marks;
  size_t n;
  bool all_trusted;
  uint32_t *owner;
} search;

static bool
may_match(const search *s, const ks_vocab_entry *e, size_t pos)
{
  return e->type == KS_TOKEN_USER_DEFINED ||
         (s->marks != NULL ? s->marks[pos] != KS_MARK_TEXT : s->all_trusted);
}

static unsigned char
byte_of(const search *s, uint32_t i, size_t depth)
{
  return (unsigned char)s->tok->blob[s->tok->vocab[s->tok->special_by_text[i]].text + depth];
}

/* First index in [lo, hi) whose byte at depth is at least want; all are longer than depth. */
static uint32_t
lower_bound(const search *s, uint32_t lo, uint32_t hi, size_t depth, unsigned want)
{
  while (lo < hi) {
    uint32_t mid = lo + (hi - lo) / 2;

    if (byte_of(s, mid, depth) < want)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo;
}

/* Marks the tokens that stand at pos.  In [lo, hi) all begin with the depth bytes at pos; the one
 * that ends there sorts first. */
static bool
mark_at(const search *s, size_t pos, bool *occurs)
{
  const ks_tokenizer *tok = s->tok;
  unsigned char first = (unsigned char)s->text[pos];
  uint32_t lo = tok->special_first[first], hi = tok->special_first[first + 1];
  bool any = false;

  for (size_t depth = 1; lo < hi; depth++) {
    const ks_vocab_entry *e = &tok->vocab[tok->special_by_text[lo]];
    unsigned next;

    if (e->n_text == depth) {
      if (may_match(s, e, pos))
        any = occurs[tok->special_by_text[lo]] = true;
      lo++;
    }
    if (pos + depth >= s->n || lo >= hi)
      break;
    next = (unsigned char)s->text[pos + depth];
    lo = lower_bound(s, lo, hi, depth, next);
    hi = lower_bound(s, lo, hi, depth, next + 1);
  }
  return any;
}

static bool
is_free(const search *s, const ks_vocab_entry *e, size_t pos)
{
  for (size_t i = pos; i < pos + e->n_text; i++)
    if (s->owner[i] != 0 || !may_match(s, e, i))
      return false;
  return true;
}

static void
claim_all(const search *s, ks_token id)
{
  const ks_vocab_entry *e = &s->tok->vocab[id];
  const char *token_text = s->tok->blob + e->text, *hit;
  size_t pos = 0;

  while (pos < s->n &&
         (hit = (const char *)memmem(s->text + pos, s->n - pos, token_text, e->n_text)) != NULL) {
    size_t start = (size_t)(hit - s->text);

    pos = start + 1;
    if (!is_free(s, e, start))
      continue;
    pos = start + e->n_text;
    s->owner[start] = (uint32_t)id + KS_OWNER_FIRST;
    for (size_t i = start + 1; i < pos; i++)
      s->owner[i] = KS_OWNER_INSIDE;
    while (e->swallows && pos < s->n && s->owner[pos] == 0 &&
           (s->text[pos] == ' ' || (s->text[pos] >= '\t' && s->text[pos] <= '\r')))
      s->owner[pos++] = KS_OWNER_INSIDE;
  }
}

ks_status
ks_special_find(const ks_tokenizer *tok, const char *text, const unsigned char *marks, size_t n,
                bool all_trusted, uint32_t **out_owner, ks_error *err)
{
  search s = {tok, text, marks, n, all_trusted, NULL};
  const bool has_visual = marks != NULL && n > 0 && memchr(marks, KS_MARK_VISUAL, n) != NULL;
  bool any = has_visual;
  bool *occurs;

  if (!has_visual &&
      (tok->n_special == 0 || (tok->n_user_defined == 0 && marks == NULL && !all_trusted))) {
    *out_owner = NULL;
    return KS_OK;
  }
  occurs = (bool *)ks_mem_new(tok->alloc, KS_MEM_HOST, tok->n_vocab, sizeof *occurs);
  if (occurs == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory to tokenize %zu bytes", n);
  for (size_t pos = 0; pos < n; pos++)
    any |= mark_at(&s, pos, occurs);
  if (any) {
    s.owner = (uint32_t *)ks_mem_new(tok->alloc, KS_MEM_HOST, n, sizeof *s.owner);
    if (s.owner == NULL) {
      ks_mem_free(occurs);
      return ks_fail(err, KS_ERR_NOMEM, "no memory to tokenize %zu bytes", n);
    }
    for (size_t pos = 0; has_visual && pos < n; pos++)
      if (marks[pos] == KS_MARK_VISUAL)
        s.owner[pos] = KS_OWNER_VISUAL;
    for (uint32_t i = 0; i < tok->n_special; i++)
      if (occurs[tok->special_by_length[i]])
        claim_all(&s, tok->special_by_length[i]);
  }
  ks_mem_free(occurs);
  *out_owner = s.owner;
  return KS_OK;
}
