/* tokenizer-vocab.c - reads the vocabulary out of GGUF keys into tables of our own.
 * Nothing in the file is trusted: counts, ids, types and scores are checked here, so that encoding
 * and decoding need no checks.  Source: docs/formats/tokenizers.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/tokenizer-internal.h"
#include "engine/unicode.h"

#include <math.h>
#include <string.h>

#define MAX_VOCAB (1u << 24)
#define MAX_BLOB (UINT32_MAX / 2)

uint64_t
ks_str_hash(uint64_t seed, const char *text, size_t n)
{
  uint64_t h = seed;

  for (size_t i = 0; i < n; i++)
    h = (h ^ (unsigned char)text[i]) * 0x100000001B3u;
  return h ^ h >> 29;
}

ks_token
ks_tokenizer_find(const ks_tokenizer *tok, const char *text, size_t n)
{
  const ks_str_slots *set = &tok->by_text;
  uint32_t slot;

  if (n == 0 || n > tok->max_text)
    return KS_TOKEN_NONE;
  slot = (uint32_t)ks_str_hash(KS_STR_HASH_SEED, text, n) & (set->n_slot - 1);
  for (; set->slots[slot] != 0; slot = (slot + 1) & (set->n_slot - 1)) {
    const ks_vocab_entry *e = &tok->vocab[set->slots[slot] - 1];

    if (e->n_text == n && memcmp(tok->blob + e->text, text, n) == 0)
      return (ks_token)(set->slots[slot] - 1);
  }
  return KS_TOKEN_NONE;
}

static ks_token
find_name(const ks_tokenizer *tok, const char *name)
{
  return ks_tokenizer_find(tok, name, strlen(name));
}

/* ---- texts, types, scores ---- */

static ks_status
load_texts(ks_tokenizer *tok, const ks_gguf *g, ks_error *err)
{
  const ks_gguf_key *key = ks_gguf_find_key(g, "tokenizer.ggml.tokens");
  size_t cursor = 0, total = 0, n_blob = 0;
  ks_gguf_str s;

  if (key == NULL || key->type != KS_GGUF_ARRAY || key->elem_type != KS_GGUF_STRING)
    return ks_fail(err, KS_ERR_FORMAT, "the file has no list of strings tokenizer.ggml.tokens");
  if (key->n_elem == 0 || key->n_elem > MAX_VOCAB)
    return ks_fail(err, KS_ERR_FORMAT, "tokenizer.ggml.tokens has %llu entries, not 1 to %u",
                   (unsigned long long)key->n_elem, MAX_VOCAB);
  while (ks_gguf_key_next_str(key, &cursor, &s))
    total += s.n_bytes;
  if (total > MAX_BLOB)
    return ks_fail(err, KS_ERR_FORMAT, "the texts in tokenizer.ggml.tokens are too long together");
  tok->n_vocab = (uint32_t)key->n_elem;
  tok->vocab =
      (ks_vocab_entry *)ks_mem_new(tok->alloc, KS_MEM_HOST, tok->n_vocab, sizeof *tok->vocab);
  /* A piece is never longer than its text, so both fit into twice the texts. */
  tok->blob = (char *)ks_mem_new(tok->alloc, KS_MEM_HOST, 2 * total + 1, 1);
  if (tok->vocab == NULL || tok->blob == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for the vocabulary");
  cursor = 0;
  for (uint32_t i = 0; i < tok->n_vocab && ks_gguf_key_next_str(key, &cursor, &s); i++) {
    /* The file is mapped: whoever rewrites it between the two walks must not overrun the blob. */
    if (s.n_bytes > total - n_blob)
      return ks_fail(err, KS_ERR_IO, "the model file changed while it was read; load it again");
    tok->vocab[i].text = (uint32_t)n_blob;
    tok->vocab[i].n_text = (uint32_t)s.n_bytes;
    if (s.n_bytes > 0)
      memcpy(tok->blob + n_blob, s.data, s.n_bytes);
    n_blob += s.n_bytes;
    if (s.n_bytes > tok->max_text)
      tok->max_text = (uint32_t)s.n_bytes;
  }
  return KS_OK;
}

/* The array key of that name with one number a token; *out NULL when absent. */
static ks_status
find_numbers(const ks_tokenizer *tok, const ks_gguf *g, const char *name, const ks_gguf_key **out,
             ks_error *err)
{
  const ks_gguf_key *key = ks_gguf_find_key(g, name);

  if (key != NULL && (key->type != KS_GGUF_ARRAY || key->n_elem < tok->n_vocab))
    return ks_fail(err, KS_ERR_FORMAT, "%s does not have one entry for each of the %u tokens", name,
                   tok->n_vocab);
  *out = key;
  return KS_OK;
}

static ks_status
load_types(ks_tokenizer *tok, const ks_gguf *g, ks_error *err)
{
  const ks_gguf_key *key = NULL;
  ks_status st = find_numbers(tok, g, "tokenizer.ggml.token_type", &key, err);

  if (st != KS_OK)
    return st;
  for (uint32_t i = 0; i < tok->n_vocab; i++) {
    int64_t type = KS_TOKEN_NORMAL;

    if (key != NULL && !ks_gguf_key_get_i64(key, i, &type))
      return ks_fail(err, KS_ERR_FORMAT, "tokenizer.ggml.token_type is not a list of integers");
    if (type < KS_TOKEN_NORMAL || type > KS_TOKEN_BYTE)
      type = KS_TOKEN_NORMAL;
    tok->vocab[i].type = (uint8_t)type;
  }
  return KS_OK;
}

static ks_status
load_scores(ks_tokenizer *tok, const ks_gguf *g, ks_error *err)
{
  const ks_gguf_key *key = NULL;
  ks_status st = find_numbers(tok, g, "tokenizer.ggml.scores", &key, err);

  if (st != KS_OK)
    return st;
  if (key == NULL)
    return ks_fail(err, KS_ERR_FORMAT,
                   "the file has no tokenizer.ggml.scores, which its tokenizer needs");
  for (uint32_t i = 0; i < tok->n_vocab; i++) {
    double score;

    if (!ks_gguf_key_get_f64(key, i, &score) || isnan(score))
      return ks_fail(err, KS_ERR_FORMAT, "tokenizer.ggml.scores has no number for token %u", i);
    tok->vocab[i].score = (float)score;
  }
  return KS_OK;
}

/* Of tokens with one text the first owns it; empty texts can never be met. */
static ks_status
index_texts(ks_tokenizer *tok, ks_error *err)
{
  ks_str_slots *set = &tok->by_text;

  set->n_slot = 16;
  while (set->n_slot < 2 * (uint64_t)tok->n_vocab)
    set->n_slot *= 2;
  set->slots = (uint32_t *)ks_mem_new(tok->alloc, KS_MEM_HOST, set->n_slot, sizeof *set->slots);
  if (set->slots == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for the vocabulary");
  for (uint32_t i = 0; i < tok->n_vocab; i++) {
    const ks_vocab_entry *e = &tok->vocab[i];
    uint32_t slot;

    if (e->n_text == 0 || ks_tokenizer_find(tok, tok->blob + e->text, e->n_text) != KS_TOKEN_NONE)
      continue;
    slot =
        (uint32_t)ks_str_hash(KS_STR_HASH_SEED, tok->blob + e->text, e->n_text) & (set->n_slot - 1);
    while (set->slots[slot] != 0)
      slot = (slot + 1) & (set->n_slot - 1);
    set->slots[slot] = i + 1;
  }
  return KS_OK;
}

/* ---- special ids ---- */

/* An id from the file: absent leaves *id alone, all bits set means none. */
static ks_status
load_id(const ks_tokenizer *tok, const ks_gguf *g, const char *name, ks_token *id, ks_error *err)
{
  uint64_t value;

  if (!ks_gguf_get_u64(g, name, &value))
    return KS_OK;
  if (value == UINT32_MAX) {
    *id = KS_TOKEN_NONE;
    return KS_OK;
  }
  if (value >= tok->n_vocab)
    return ks_fail(err, KS_ERR_FORMAT, "%s is %llu, outside the vocabulary of %u tokens", name,
                   (unsigned long long)value, tok->n_vocab);
  *id = (ks_token)value;
  return KS_OK;
}

static ks_status
load_special_ids(ks_tokenizer *tok, const ks_gguf *g, ks_error *err)
{
  struct {
    const char *name;
    ks_token *id;
    ks_token spm_default;
  } ids[] = {
      {"tokenizer.ggml.bos_token_id", &tok->bos, 1},
      {"tokenizer.ggml.eos_token_id", &tok->eos, 2},
      {"tokenizer.ggml.unknown_token_id", &tok->unk, 0},
      {"tokenizer.ggml.eot_token_id", &tok->eot, KS_TOKEN_NONE},
      {"tokenizer.ggml.eom_token_id", &tok->eom, KS_TOKEN_NONE},
  };

  for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
    ks_status st;

    *ids[i].id = KS_TOKEN_NONE;
    if (tok->kind == KS_TOKENIZER_SPM && ids[i].spm_default < (int64_t)tok->n_vocab)
      *ids[i].id = ids[i].spm_default;
    st = load_id(tok, g, ids[i].name, ids[i].id, err);
    if (st != KS_OK)
      return st;
  }
  return KS_OK;
}

/* Terminators by their text: converters often forget to name them or to give them their type. */
static void
mark_ends(ks_tokenizer *tok)
{
  static const char *const names[] = {
      "<|im_end|>",      "<|endoftext|>",
      "<|end_of_text|>", "<end_of_turn>",
      "<|eot_id|>",      "<|eom_id|>",
      "<|end|>",         "</s>",
      "<eos>",           "<end_of_utterance>",
      "<EOT>",           "_<EOT>",
      "[EOT]",           "[EOS]",
      "<|fim_pad|>",     "<fim-pad>",
      "<fim_pad>",       "<PAD>",
      "[PAD]",           "<|fim_repo|>",
      "<|repo_name|>",   "<fim-repo>",
      "<REPO>",          "<reponame>",
      "<|file_sep|>",
  };
  const ks_token ids[] = {tok->eos, tok->eot, tok->eom};

  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    ks_token id = find_name(tok, names[i]);

    if (id != KS_TOKEN_NONE) {
      tok->vocab[id].ends = true;
      tok->vocab[id].type = KS_TOKEN_CONTROL;
    }
  }
  for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
    if (ids[i] != KS_TOKEN_NONE)
      tok->vocab[ids[i]].ends = true;
}

static bool
contains_any_case(ks_gguf_str s, const char *lower)
{
  size_t n = strlen(lower);

  for (size_t i = 0; i + n <= s.n_bytes; i++) {
    size_t k = 0;

    while (k < n && (s.data[i + k] == lower[k] || (s.data[i + k] | 0x20) == lower[k]))
      k++;
    if (k == n)
      return true;
  }
  return false;
}

/* phi-3: special tokens take the white space behind them, but for these three. */
static void
mark_swallowing(ks_tokenizer *tok, const ks_gguf *g)
{
  static const char *const not_these[] = {"<unk>", "<s>", "<|endoftext|>"};
  ks_gguf_str name = {NULL, 0}, arch = {NULL, 0};
  bool phi3 = ks_gguf_get_str(g, "general.name", &name) &&
              (contains_any_case(name, "phi-3") || contains_any_case(name, "phi3"));

  if (ks_gguf_get_str(g, "general.architecture", &arch) && tok->kind == KS_TOKENIZER_SPM)
    phi3 = phi3 || ks_gguf_str_equal(arch, "phi3");
  if (!phi3)
    return;
  for (uint32_t i = 0; i < tok->n_vocab; i++) {
    ks_vocab_entry *e = &tok->vocab[i];

    e->swallows = e->type == KS_TOKEN_CONTROL || e->type == KS_TOKEN_USER_DEFINED ||
                  e->type == KS_TOKEN_UNKNOWN;
  }
  for (size_t i = 0; i < sizeof not_these / sizeof not_these[0]; i++) {
    ks_token id = find_name(tok, not_these[i]);

    if (id != KS_TOKEN_NONE)
      tok->vocab[id].swallows = false;
  }
}

/* ---- pieces ---- */

static int
hex_digit(char ch)
{
  if (ch >= '0' && ch <= '9')
    return ch - '0';
  ch |= 0x20;
  return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

/* Value of "<0xNN>", -1 for any other text. */
static int
byte_of_text(const char *text, size_t n)
{
  int hi, lo;

  if (n != 6 || memcmp(text, "<0x", 3) != 0 || text[5] != '>')
    return -1;
  hi = hex_digit(text[3]);
  lo = hex_digit(text[4]);
  return hi < 0 || lo < 0 ? -1 : hi * 16 + lo;
}

/* Writes the bytes that a token stands for; never more than its text has. */
static size_t
decode_text(const ks_tokenizer *tok, const ks_vocab_entry *e, char *out)
{
  const char *text = tok->blob + e->text;
  size_t n_out = 0, step;
  int byte = e->type == KS_TOKEN_BYTE ? byte_of_text(text, e->n_text) : -1;

  if (byte >= 0) {
    out[0] = (char)byte;
    return 1;
  }
  for (size_t i = 0; i < e->n_text; i += step) {
    uint32_t cp;

    step = ks_utf8_decode(text + i, e->n_text - i, &cp);
    byte = tok->kind == KS_TOKENIZER_BPE ? ks_bpe_cp_to_byte(cp) : cp == 0x2581 ? ' ' : -1;
    if (byte >= 0) {
      out[n_out++] = (char)byte;
    } else {
      memcpy(out + n_out, text + i, step);
      n_out += step;
    }
  }
  return n_out;
}

static void
make_pieces(ks_tokenizer *tok)
{
  const ks_vocab_entry *last = &tok->vocab[tok->n_vocab - 1];
  size_t n_blob = (size_t)last->text + last->n_text;

  for (uint32_t i = 0; i < tok->n_vocab; i++) {
    ks_vocab_entry *e = &tok->vocab[i];

    e->mergeable = e->n_text > 0 && e->type != KS_TOKEN_CONTROL && e->type != KS_TOKEN_UNKNOWN &&
                   !(e->type == KS_TOKEN_BYTE && tok->kind == KS_TOKENIZER_SPM);
    e->piece = e->text;
    e->n_piece = e->n_text;
    if (e->type == KS_TOKEN_CONTROL || e->type == KS_TOKEN_UNKNOWN ||
        e->type == KS_TOKEN_USER_DEFINED)
      continue; /* their text is raw */
    e->piece = (uint32_t)n_blob;
    e->n_piece = (uint32_t)decode_text(tok, e, tok->blob + n_blob);
    n_blob += e->n_piece;
  }
}

/* SPM: byte tokens by their type, else by a text that is just that byte. */
static void
set_byte_tokens(ks_tokenizer *tok)
{
  for (int b = 0; b < 256; b++) {
    char text[1] = {(char)b};
    ks_token id = ks_tokenizer_find(tok, text, 1);

    tok->byte_token[b] = id != KS_TOKEN_NONE && tok->vocab[id].mergeable ? id : KS_TOKEN_NONE;
  }
  for (uint32_t i = tok->n_vocab; i-- > 0;) {
    const ks_vocab_entry *e = &tok->vocab[i];
    int byte = e->type == KS_TOKEN_BYTE ? byte_of_text(tok->blob + e->text, e->n_text) : -1;

    if (byte >= 0)
      tok->byte_token[byte] = (ks_token)i;
  }
}

ks_status
ks_vocab_load(ks_tokenizer *tok, const ks_gguf *g, ks_error *err)
{
  ks_status st = load_texts(tok, g, err);

  if (st == KS_OK)
    st = load_types(tok, g, err);
  if (st == KS_OK && tok->kind == KS_TOKENIZER_SPM)
    st = load_scores(tok, g, err);
  if (st == KS_OK)
    st = index_texts(tok, err);
  if (st == KS_OK)
    st = load_special_ids(tok, g, err);
  if (st != KS_OK)
    return st;
  mark_ends(tok);
  mark_swallowing(tok, g);
  make_pieces(tok);
  if (tok->kind == KS_TOKENIZER_SPM)
    set_byte_tokens(tok);
  return KS_OK;
}
