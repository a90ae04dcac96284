/* tokenizer-spm.c - SentencePiece-style merging: of all neighbours whose joined text is a token,
 * the best score merges first, leftmost on ties. Candidates wait in a heap: a text of n characters
 * costs n log n.  Characters that stay unknown become byte tokens.  Source:
 * docs/formats/tokenizers.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/tokenizer-internal.h"
#include "engine/unicode.h"

#include <string.h>

/* A stretch of the text; n == 0 once it was merged away. */
typedef struct node {
  uint32_t start, n, prev, next;
} node;

/* The node left and its next one, together n bytes; stale when they no longer have that length. */
typedef struct pair_entry {
  float score;
  uint32_t left, n;
} pair_entry;

typedef struct spm_text {
  const ks_tokenizer *tok;
  char *text; /* spaces replaced */
  node *nodes;
  pair_entry *heap; /* [2 * n_node]: a merge takes one entry and adds two at most */
  size_t n_text, n_node, n_heap;
} spm_text;

static const char SPACE_MARK[] = "\xE2\x96\x81"; /* U+2581 */

static bool
pair_before(pair_entry a, pair_entry b)
{
  return a.score > b.score || (a.score == b.score && a.left < b.left);
}

static ks_token
find_mergeable(const ks_tokenizer *tok, const char *text, size_t n)
{
  ks_token id = ks_tokenizer_find(tok, text, n);

  return id != KS_TOKEN_NONE && tok->vocab[id].mergeable ? id : KS_TOKEN_NONE;
}

static void
heap_push(spm_text *s, uint32_t left)
{
  size_t i = s->n_heap;
  pair_entry e;
  ks_token id;

  if (s->nodes[left].next >= s->n_node)
    return;
  e.left = left;
  e.n = s->nodes[left].n + s->nodes[s->nodes[left].next].n;
  id = find_mergeable(s->tok, s->text + s->nodes[left].start, e.n);
  if (id == KS_TOKEN_NONE)
    return;
  e.score = s->tok->vocab[id].score;
  s->n_heap++;
  for (; i > 0 && pair_before(e, s->heap[(i - 1) / 2]); i = (i - 1) / 2)
    s->heap[i] = s->heap[(i - 1) / 2];
  s->heap[i] = e;
}

static pair_entry
heap_pop(spm_text *s)
{
  pair_entry best = s->heap[0], last = s->heap[--s->n_heap];
  size_t i = 0;

  for (;;) {
    size_t child = 2 * i + 1;

    if (child >= s->n_heap)
      break;
    if (child + 1 < s->n_heap && pair_before(s->heap[child + 1], s->heap[child]))
      child++;
    if (!pair_before(s->heap[child], last))
      break;
    s->heap[i] = s->heap[child];
    i = child;
  }
  s->heap[i] = last;
  return best;
}

static void
merge_all(spm_text *s)
{
  node *nodes = s->nodes;

  while (s->n_heap > 0) {
    pair_entry e = heap_pop(s);
    uint32_t right = nodes[e.left].next;

    if (nodes[e.left].n == 0 || right >= s->n_node || nodes[e.left].n + nodes[right].n != e.n)
      continue;
    nodes[e.left].n = e.n;
    nodes[e.left].next = nodes[right].next;
    nodes[right].n = 0;
    if (nodes[right].next < s->n_node)
      nodes[nodes[right].next].prev = e.left;
    if (nodes[e.left].prev < s->n_node)
      heap_push(s, nodes[e.left].prev);
    heap_push(s, e.left);
  }
}

static ks_status
push_bytes(ks_encoding *enc, const char *text, size_t n)
{
  ks_status st = KS_OK;

  for (size_t i = 0; i < n && st == KS_OK; i++) {
    unsigned char byte = (unsigned char)text[i];
    ks_token id = enc->tok->byte_token[byte];

    if (id == KS_TOKEN_NONE)
      id = enc->tok->unk;
    if (id == KS_TOKEN_NONE)
      return ks_fail(
          enc->err, KS_ERR_FORMAT,
          "the model's vocabulary has neither a token for byte 0x%02X nor an unknown token", byte);
    st = ks_token_list_push(enc->out, id, enc->err);
  }
  return st;
}

/* Copies the text with spaces replaced and cuts it into characters; a broken byte stands alone. */
static void
fill(spm_text *s, const char *text, size_t n, bool prefix)
{
  size_t pos = 0;

  if (prefix) {
    memcpy(s->text, SPACE_MARK, 3);
    s->n_text = 3;
  }
  for (size_t i = 0; i < n; i++)
    if (text[i] == ' ') {
      memcpy(s->text + s->n_text, SPACE_MARK, 3);
      s->n_text += 3;
    } else {
      s->text[s->n_text++] = text[i];
    }
  while (pos < s->n_text) {
    node *nd = &s->nodes[s->n_node];
    uint32_t cp;

    nd->start = (uint32_t)pos;
    nd->n = (uint32_t)ks_utf8_decode(s->text + pos, s->n_text - pos, &cp);
    nd->prev = s->n_node == 0 ? UINT32_MAX : (uint32_t)s->n_node - 1;
    nd->next = (uint32_t)++s->n_node;
    pos += nd->n;
  }
}

ks_status
ks_spm_encode(ks_encoding *enc, const char *text, size_t n, bool prefix)
{
  spm_text s = {.tok = enc->tok};
  size_t n_max = n + 1, n_scratch; /* characters at most; text is at most three bytes for each */
  ks_status st;

  if (!ks_mul_size(n_max, sizeof(node) + 2 * sizeof(pair_entry) + 3, &n_scratch))
    return ks_fail(enc->err, KS_ERR_NOMEM, "a text of %zu bytes is too long to tokenize", n);
  st = ks_encoding_reserve(enc, n_scratch);
  if (st != KS_OK)
    return st;
  s.nodes = (node *)(void *)enc->scratch;
  s.heap = (pair_entry *)(void *)(s.nodes + n_max);
  s.text = (char *)(s.heap + 2 * n_max);
  fill(&s, text, n, prefix);
  for (size_t i = 0; i < s.n_node; i++)
    heap_push(&s, (uint32_t)i);
  merge_all(&s);
  for (size_t i = 0; i < s.n_node && st == KS_OK; i = s.nodes[i].next) {
    const char *part = s.text + s.nodes[i].start;
    ks_token id = find_mergeable(enc->tok, part, s.nodes[i].n);

    st = id != KS_TOKEN_NONE ? ks_token_list_push(enc->out, id, enc->err)
                             : push_bytes(enc, part, s.nodes[i].n);
  }
  return st;
}
