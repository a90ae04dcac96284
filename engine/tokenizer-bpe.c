/* tokenizer-bpe.c - byte-level BPE: merges by rank inside each piece of the pre-tokenizer.
 * Texts stay raw bytes; only the vocabulary is written in GPT-2's printable code points, so each
 * byte maps to its symbol once.  Symbols are token ids, above n_vocab strings that only merges
 * know.  Short pieces scan for the lowest rank, long ones keep a heap, so that a megabyte without a
 * space is not quadratic.  Source: docs/formats/tokenizers.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/tokenizer-internal.h"
#include "engine/unicode.h"

#include <string.h>

#define SHORT_PIECE 64
#define MAX_MERGES (UINT32_MAX / 16)

/* ---- bytes and code points ---- */

/* 33-126, 161-172 and 174-255 stand for themselves, the 68 others follow from 256 in byte order. */
uint32_t
ks_bpe_byte_to_cp(unsigned char byte)
{
  if (byte <= 32)
    return 256u + byte;
  if (byte >= 127 && byte <= 160)
    return 256u + 33u + (byte - 127u);
  return byte == 173 ? 256u + 67u : byte;
}

int
ks_bpe_cp_to_byte(uint32_t cp)
{
  if (cp >= 256 && cp <= 256 + 32)
    return (int)(cp - 256);
  if (cp >= 256 + 33 && cp <= 256 + 66)
    return (int)(cp - 256 - 33 + 127);
  if (cp == 256 + 67)
    return 173;
  return (cp >= 33 && cp <= 126) || (cp >= 161 && cp <= 255 && cp != 173) ? (int)cp : -1;
}

/* ---- loading ---- */

/* Strings of merges that are no tokens; real vocabularies have none, so it is made on first use. */
typedef struct extra_symbols {
  char *blob;
  size_t n_blob;
  struct {
    size_t text, n;
  } * items;
  uint32_t n, n_max;
  size_t n_blob_max;
  ks_str_slots set;
} extra_symbols;

static bool
extra_reserve(ks_tokenizer *tok, extra_symbols *extra)
{
  uint32_t n_slot = 16;

  while (n_slot < 2 * (uint64_t)extra->n_max)
    n_slot *= 2;
  extra->blob = (char *)ks_mem_new(tok->alloc, KS_MEM_HOST, extra->n_blob_max, 1);
  extra->items = ks_mem_new(tok->alloc, KS_MEM_HOST, extra->n_max, sizeof *extra->items);
  extra->set.slots = (uint32_t *)ks_mem_new(tok->alloc, KS_MEM_HOST, n_slot, sizeof(uint32_t));
  extra->set.n_slot = n_slot;
  return extra->blob != NULL && extra->items != NULL && extra->set.slots != NULL;
}

/* Symbol of a string; with add, unknown ones get the next number.  False when memory ran out. */
static bool
find_symbol(ks_tokenizer *tok, extra_symbols *extra, const char *text, size_t n, bool add,
            uint32_t *out)
{
  ks_token id = ks_tokenizer_find(tok, text, n);
  uint32_t slot;

  *out = KS_NO_SYMBOL;
  if (id != KS_TOKEN_NONE && tok->vocab[id].mergeable) {
    *out = (uint32_t)id;
    return true;
  }
  if (extra->set.slots == NULL && (!add || !extra_reserve(tok, extra)))
    return !add;
  slot = (uint32_t)ks_str_hash(KS_STR_HASH_SEED, text, n) & (extra->set.n_slot - 1);
  for (; extra->set.slots[slot] != 0; slot = (slot + 1) & (extra->set.n_slot - 1)) {
    uint32_t i = extra->set.slots[slot] - 1;

    if (extra->items[i].n == n && memcmp(extra->blob + extra->items[i].text, text, n) == 0) {
      *out = tok->n_vocab + i;
      return true;
    }
  }
  if (!add)
    return true;
  memcpy(extra->blob + extra->n_blob, text, n);
  extra->items[extra->n].text = extra->n_blob;
  extra->items[extra->n].n = n;
  extra->n_blob += n;
  extra->set.slots[slot] = ++extra->n;
  *out = tok->n_vocab + extra->n - 1;
  return true;
}

static uint32_t
merge_slot(const ks_tokenizer *tok, uint64_t pair)
{
  uint64_t h = pair * 0x9E3779B97F4A7C15u;
  uint32_t slot = (uint32_t)(h >> 32) & (tok->n_merge_slot - 1);

  while (tok->merges[slot].pair != pair && tok->merges[slot].pair != KS_NO_PAIR)
    slot = (slot + 1) & (tok->n_merge_slot - 1);
  return slot;
}

/* One "left right" line; lines without two parts mean nothing and are passed over. */
static bool
add_merge(ks_tokenizer *tok, extra_symbols *extra, ks_gguf_str line, uint32_t rank, char *joined)
{
  const char *space =
      line.n_bytes > 2 ? (const char *)memchr(line.data + 1, ' ', line.n_bytes - 1) : NULL;
  uint32_t left, right, result, slot;
  size_t n_left, n_right;

  if (space == NULL || space + 1 == line.data + line.n_bytes)
    return true;
  n_left = (size_t)(space - line.data);
  n_right = line.n_bytes - n_left - 1;
  memcpy(joined, line.data, n_left);
  memcpy(joined + n_left, space + 1, n_right);
  if (!find_symbol(tok, extra, joined, n_left, true, &left) ||
      !find_symbol(tok, extra, joined + n_left, n_right, true, &right) ||
      !find_symbol(tok, extra, joined, n_left + n_right, true, &result))
    return false;
  slot = merge_slot(tok, (uint64_t)left << 32 | right);
  if (tok->merges[slot].pair == KS_NO_PAIR) /* of two equal lines the first has the rank */
    tok->merges[slot] = (ks_merge){(uint64_t)left << 32 | right, rank, result};
  return true;
}

static bool
set_byte_symbols(ks_tokenizer *tok, extra_symbols *extra)
{
  for (int b = 0; b < 256; b++) {
    char text[4];
    size_t n = ks_utf8_encode(ks_bpe_byte_to_cp((unsigned char)b), text);
    uint32_t symbol;

    if (!find_symbol(tok, extra, text, n, false, &symbol))
      return false;
    tok->byte_symbol[b] = symbol;
    tok->byte_token[b] = symbol < tok->n_vocab ? (ks_token)symbol : KS_TOKEN_NONE;
  }
  return true;
}

static bool
load_merges(ks_tokenizer *tok, const ks_gguf_key *key, extra_symbols *extra)
{
  size_t cursor = 0, longest = 0, total = 0;
  ks_gguf_str line;
  char *joined;
  bool ok = true;

  while (ks_gguf_key_next_str(key, &cursor, &line)) {
    longest = line.n_bytes > longest ? line.n_bytes : longest;
    total += line.n_bytes; /* bounded by the file */
  }
  extra->n_max = (uint32_t)key->n_elem * 3;
  if (!ks_mul_size(total, 2, &extra->n_blob_max))
    return false;
  joined = (char *)ks_mem_new(tok->alloc, KS_MEM_HOST, longest + 1, 1);
  if (joined == NULL)
    return false;
  cursor = 0;
  for (uint32_t rank = 0; ok && ks_gguf_key_next_str(key, &cursor, &line); rank++)
    ok = add_merge(tok, extra, line, rank, joined);
  ks_mem_free(joined);
  return ok && set_byte_symbols(tok, extra);
}

ks_status
ks_bpe_load(ks_tokenizer *tok, const ks_gguf *g, ks_error *err)
{
  const ks_gguf_key *key = ks_gguf_find_key(g, "tokenizer.ggml.merges");
  extra_symbols extra = {0};
  bool ok;

  if (key == NULL || key->type != KS_GGUF_ARRAY || key->elem_type != KS_GGUF_STRING)
    return ks_fail(
        err, KS_ERR_FORMAT,
        "the file has no list of strings tokenizer.ggml.merges, which its tokenizer needs");
  if (key->n_elem > MAX_MERGES)
    return ks_fail(err, KS_ERR_FORMAT, "tokenizer.ggml.merges has more than %u entries",
                   MAX_MERGES);
  tok->n_merge_slot = 16;
  while (tok->n_merge_slot < 2 * key->n_elem)
    tok->n_merge_slot *= 2;
  tok->merges =
      (ks_merge *)ks_mem_new(tok->alloc, KS_MEM_HOST, tok->n_merge_slot, sizeof *tok->merges);
  if (tok->merges == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for the tokenizer's merges");
  for (uint32_t i = 0; i < tok->n_merge_slot; i++)
    tok->merges[i].pair = KS_NO_PAIR;
  ok = load_merges(tok, key, &extra);
  ks_mem_free(extra.blob);
  ks_mem_free(extra.items);
  ks_mem_free(extra.set.slots);
  if (!ok)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for the tokenizer's merges");
  return KS_OK;
}

/* ---- encoding ---- */

static const ks_merge *
find_merge(const ks_tokenizer *tok, uint32_t left, uint32_t right)
{
  const ks_merge *m = &tok->merges[merge_slot(tok, (uint64_t)left << 32 | right)];

  return m->pair == KS_NO_PAIR ? NULL : m;
}

/* Pushes what became of text[0..n-1].  A symbol that is no token falls back to its bytes; a byte
 * that the vocabulary lacks has no id and is left out. */
static ks_status
push_symbol(ks_encoding *enc, uint32_t symbol, const char *text, size_t n)
{
  ks_status st = KS_OK;

  if (symbol < enc->tok->n_vocab)
    return ks_token_list_push(enc->out, (ks_token)symbol, enc->err);
  for (size_t i = 0; i < n && st == KS_OK; i++) {
    ks_token id = enc->tok->byte_token[(unsigned char)text[i]];

    if (id != KS_TOKEN_NONE)
      st = ks_token_list_push(enc->out, id, enc->err);
  }
  return st;
}

static ks_status
encode_short(ks_encoding *enc, const char *text, size_t n)
{
  const ks_tokenizer *tok = enc->tok;
  const ks_merge *merge[SHORT_PIECE]; /* of symbol i with the next one */
  uint32_t symbol[SHORT_PIECE + 1];
  uint8_t start[SHORT_PIECE + 1];
  size_t n_symbol = n;
  ks_status st = KS_OK;

  for (size_t i = 0; i < n; i++) {
    symbol[i] = tok->byte_symbol[(unsigned char)text[i]];
    start[i] = (uint8_t)i;
  }
  start[n] = (uint8_t)n;
  for (size_t i = 0; i + 1 < n; i++)
    merge[i] = find_merge(tok, symbol[i], symbol[i + 1]);
  for (;;) {
    size_t best = n_symbol;

    for (size_t i = 0; i + 1 < n_symbol; i++)
      if (merge[i] != NULL && (best == n_symbol || merge[i]->rank < merge[best]->rank))
        best = i;
    if (best == n_symbol)
      break;
    symbol[best] = merge[best]->result;
    n_symbol--;
    for (size_t i = best + 1; i < n_symbol; i++) {
      symbol[i] = symbol[i + 1];
      merge[i - 1] = merge[i];
    }
    for (size_t i = best + 1; i <= n_symbol; i++)
      start[i] = start[i + 1];
    if (best + 1 < n_symbol)
      merge[best] = find_merge(tok, symbol[best], symbol[best + 1]);
    if (best > 0)
      merge[best - 1] = find_merge(tok, symbol[best - 1], symbol[best]);
  }
  for (size_t i = 0; i < n_symbol && st == KS_OK; i++)
    st = push_symbol(enc, symbol[i], text + start[i], (size_t)(start[i + 1] - start[i]));
  return st;
}

/* A possible merge of the node left with its next one; stale once either symbol has changed. */
typedef struct pair_entry {
  uint32_t rank, left, left_symbol, right_symbol;
} pair_entry;

/* A long piece: nodes start as single bytes, node i at byte i; a merged-away node has no symbol. */
typedef struct long_piece {
  const ks_tokenizer *tok;
  uint32_t *symbol, *prev, *next; /* [n] */
  pair_entry *heap; /* [2 * n]: n - 1 at first, a merge takes one and adds two at most */
  size_t n, n_heap;
} long_piece;

#define DEAD_SYMBOL (UINT32_MAX - 1)

static bool
pair_before(pair_entry a, pair_entry b)
{
  return a.rank < b.rank || (a.rank == b.rank && a.left < b.left);
}

static void
heap_push(long_piece *p, uint32_t left)
{
  size_t i = p->n_heap;
  const ks_merge *m;
  pair_entry e;

  if (p->next[left] >= p->n)
    return;
  m = find_merge(p->tok, p->symbol[left], p->symbol[p->next[left]]);
  if (m == NULL)
    return;
  e = (pair_entry){m->rank, left, p->symbol[left], p->symbol[p->next[left]]};
  p->n_heap++;
  for (; i > 0 && pair_before(e, p->heap[(i - 1) / 2]); i = (i - 1) / 2)
    p->heap[i] = p->heap[(i - 1) / 2];
  p->heap[i] = e;
}

static pair_entry
heap_pop(long_piece *p)
{
  pair_entry best = p->heap[0], last = p->heap[--p->n_heap];
  size_t i = 0;

  for (;;) {
    size_t child = 2 * i + 1;

    if (child >= p->n_heap)
      break;
    if (child + 1 < p->n_heap && pair_before(p->heap[child + 1], p->heap[child]))
      child++;
    if (!pair_before(p->heap[child], last))
      break;
    p->heap[i] = p->heap[child];
    i = child;
  }
  p->heap[i] = last;
  return best;
}

static void
merge_all(long_piece *p)
{
  while (p->n_heap > 0) {
    pair_entry e = heap_pop(p);
    uint32_t right = p->next[e.left];

    if (p->symbol[e.left] != e.left_symbol || right >= p->n || p->symbol[right] != e.right_symbol)
      continue;
    p->symbol[e.left] = find_merge(p->tok, e.left_symbol, e.right_symbol)->result;
    p->symbol[right] = DEAD_SYMBOL;
    p->next[e.left] = p->next[right];
    if (p->next[right] < p->n)
      p->prev[p->next[right]] = e.left;
    if (p->prev[e.left] < p->n)
      heap_push(p, p->prev[e.left]);
    heap_push(p, e.left);
  }
}

static ks_status
encode_long(ks_encoding *enc, const char *text, size_t n)
{
  long_piece p = {.tok = enc->tok, .n = n};
  size_t n_scratch;
  ks_status st;

  if (!ks_mul_size(n, 3 * sizeof(uint32_t) + 2 * sizeof(pair_entry), &n_scratch))
    return ks_fail(enc->err, KS_ERR_NOMEM, "a piece of %zu bytes is too long to tokenize", n);
  st = ks_encoding_reserve(enc, n_scratch);
  if (st != KS_OK)
    return st;
  p.heap = (pair_entry *)(void *)enc->scratch;
  p.symbol = (uint32_t *)(void *)(p.heap + 2 * n);
  p.prev = p.symbol + n;
  p.next = p.prev + n;
  for (size_t i = 0; i < n; i++) {
    p.symbol[i] = enc->tok->byte_symbol[(unsigned char)text[i]];
    p.prev[i] = i == 0 ? UINT32_MAX : (uint32_t)i - 1;
    p.next[i] = (uint32_t)i + 1;
  }
  for (size_t i = 0; i < n; i++)
    heap_push(&p, (uint32_t)i);
  merge_all(&p);
  for (size_t i = 0; i < n && st == KS_OK; i = p.next[i])
    st = push_symbol(enc, p.symbol[i], text + i, p.next[i] - i);
  return st;
}

/* The token that a whole piece is, where the pre-tokenizer's family asks for it first. */
static ks_token
find_whole(const ks_tokenizer *tok, const char *text, size_t n)
{
  char mapped[4 * SHORT_PIECE];
  size_t n_mapped = 0;
  ks_token id;

  if (n > SHORT_PIECE)
    return KS_TOKEN_NONE;
  mapped[0] = '\0'; /* GCC 14 warns that n may be 0 */
  for (size_t i = 0; i < n; i++)
    n_mapped += ks_utf8_encode(ks_bpe_byte_to_cp((unsigned char)text[i]), mapped + n_mapped);
  id = ks_tokenizer_find(tok, mapped, n_mapped);
  return id != KS_TOKEN_NONE && tok->vocab[id].mergeable ? id : KS_TOKEN_NONE;
}

static ks_status
encode_piece(ks_encoding *enc, const char *text, size_t n)
{
  if (enc->tok->whole_pieces) {
    ks_token id = find_whole(enc->tok, text, n);

    if (id != KS_TOKEN_NONE)
      return ks_token_list_push(enc->out, id, enc->err);
  }
  return n <= SHORT_PIECE ? encode_short(enc, text, n) : encode_long(enc, text, n);
}

static ks_status
encode_run(ks_encoding *enc, const char *text, size_t n)
{
  ks_status st = KS_OK;

  for (size_t pos = 0, end; pos < n && st == KS_OK; pos = end) {
    end = ks_pre_next(enc->tok, text, n, pos);
    st = encode_piece(enc, text + pos, end - pos);
  }
  return st;
}

ks_status
ks_bpe_encode(ks_encoding *enc, const char *text, size_t n)
{
  size_t run = 0, pos = 0;
  ks_status st = KS_OK;

  if (enc->tok->pre != KS_PRE_SMOLLM)
    return encode_run(enc, text, n);
  /* Numbers are cut out first: what lies between them is cut as if it were a text of its own. */
  while (pos < n && st == KS_OK) {
    uint32_t cp;
    size_t end = pos + ks_utf8_decode(text + pos, n - pos, &cp);

    if (ks_unicode_is_number(cp)) {
      st = encode_run(enc, text + run, pos - run);
      if (st == KS_OK)
        st = encode_piece(enc, text + pos, end - pos);
      run = end;
    }
    pos = end;
  }
  return st == KS_OK ? encode_run(enc, text + run, n - run) : st;
}
