/* tokenizer.c - the interface: lifetime, the walk over special and plain text, decoding.
 * The kinds themselves are in tokenizer-bpe.c and tokenizer-spm.c, special tokens in
 * tokenizer-special.c, loading in tokenizer-vocab.c.  Source: docs/formats/tokenizers.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/tokenizer-internal.h"

#include <string.h>

#define MAX_TEXT (UINT32_MAX / 4)

/* ---- list of ids ---- */

void
ks_token_list_init(ks_token_list *list, ks_alloc *a)
{
  *list = (ks_token_list){a, NULL, 0, 0};
}

void
ks_token_list_done(ks_token_list *list)
{
  ks_mem_free(list->ids);
  *list = (ks_token_list){list->alloc, NULL, 0, 0};
}

ks_status
ks_token_list_push(ks_token_list *list, ks_token id, ks_error *err)
{
  if (list->n == list->capacity) {
    size_t capacity = list->capacity < 64 ? 64 : list->capacity * 2;
    ks_token *ids =
        (ks_token *)ks_mem_resize(list->alloc, KS_MEM_HOST, list->ids, capacity, sizeof *ids);

    if (ids == NULL)
      return ks_fail(err, KS_ERR_NOMEM, "no memory for %zu tokens", capacity);
    list->ids = ids;
    list->capacity = capacity;
  }
  list->ids[list->n++] = id;
  return KS_OK;
}

/* ---- lifetime ---- */

/* A name from the file that can stand in a sentence. */
static void
printable_name(ks_gguf_str s, char out[40])
{
  size_t n = s.n_bytes < 39 ? s.n_bytes : 39;

  for (size_t i = 0; i < n; i++)
    out[i] = s.data[i] >= 32 && s.data[i] < 127 ? s.data[i] : '?';
  out[n] = '\0';
}

static ks_status
choose_kind(ks_tokenizer *tok, const ks_gguf *g, ks_error *err)
{
  ks_gguf_str model = {NULL, 0}, pre = {NULL, 0};
  char name[40];

  if (!ks_gguf_get_str(g, "tokenizer.ggml.model", &model))
    return ks_fail(err, KS_ERR_FORMAT, "the file has no tokenizer (key tokenizer.ggml.model)");
  if (ks_gguf_str_equal(model, "llama")) {
    tok->kind = KS_TOKENIZER_SPM;
    tok->space_prefix = tok->adds_bos = true;
    return KS_OK;
  }
  if (!ks_gguf_str_equal(model, "gpt2")) {
    printable_name(model, name);
    return ks_fail(err, KS_ERR_UNSUPPORTED, "the tokenizer \"%s\" is not supported", name);
  }
  tok->kind = KS_TOKENIZER_BPE;
  if (!ks_gguf_get_str(g, "tokenizer.ggml.pre", &pre) || ks_gguf_str_equal(pre, "default")) {
    tok->pre = KS_PRE_GPT2;
    tok->warning =
        "the file does not name its pre-tokenizer (key tokenizer.ggml.pre); the rules of "
        "gpt-2 are used and answers may be worse";
    return KS_OK;
  }
  if (!ks_bpe_set_pre(tok, pre)) {
    printable_name(pre, name);
    return ks_fail(err, KS_ERR_UNSUPPORTED, "the pre-tokenizer \"%s\" is not supported", name);
  }
  return KS_OK;
}

static ks_status
load(ks_tokenizer *tok, const ks_gguf *g, ks_error *err)
{
  ks_status st = choose_kind(tok, g, err);
  bool flag;

  if (st == KS_OK)
    st = ks_vocab_load(tok, g, err);
  if (st == KS_OK && tok->kind == KS_TOKENIZER_BPE)
    st = ks_bpe_load(tok, g, err);
  if (st == KS_OK)
    st = ks_special_load(tok, err);
  if (st != KS_OK)
    return st;
  if (ks_gguf_get_bool(g, "tokenizer.ggml.add_bos_token", &flag))
    tok->adds_bos = flag;
  if (ks_gguf_get_bool(g, "tokenizer.ggml.add_eos_token", &flag))
    tok->adds_eos = flag;
  if (tok->kind == KS_TOKENIZER_SPM &&
      ks_gguf_get_bool(g, "tokenizer.ggml.add_space_prefix", &flag))
    tok->space_prefix = flag;
  /* Asked for but not there: nothing can be added. */
  tok->adds_bos = tok->adds_bos && tok->bos != KS_TOKEN_NONE;
  tok->adds_eos = tok->adds_eos && tok->eos != KS_TOKEN_NONE;
  return KS_OK;
}

ks_status
ks_tokenizer_new(ks_alloc *a, const ks_gguf *g, ks_tokenizer **out, ks_error *err)
{
  ks_tokenizer *tok = (ks_tokenizer *)ks_mem_new(a, KS_MEM_HOST, 1, sizeof *tok);
  ks_status st;

  if (tok == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for the tokenizer");
  tok->alloc = a;
  st = load(tok, g, err);
  if (st != KS_OK) {
    ks_tokenizer_free(tok);
    return st;
  }
  *out = tok;
  return KS_OK;
}

void
ks_tokenizer_free(ks_tokenizer *tok)
{
  if (tok == NULL)
    return;
  ks_mem_free(tok->vocab);
  ks_mem_free(tok->blob);
  ks_mem_free(tok->by_text.slots);
  ks_mem_free(tok->merges);
  ks_mem_free(tok->special_by_text);
  ks_mem_free(tok->special_by_length);
  ks_mem_free(tok);
}

/* ---- encoding ---- */

ks_status
ks_encoding_reserve(ks_encoding *enc, size_t n)
{
  if (n <= enc->n_scratch)
    return KS_OK;
  ks_mem_free(enc->scratch); /* freed first: its contents are not needed and both may not fit */
  enc->n_scratch = 0;
  enc->scratch = (char *)ks_mem_new(enc->tok->alloc, KS_MEM_HOST, n, 1);
  if (enc->scratch == NULL)
    return ks_fail(enc->err, KS_ERR_NOMEM, "no memory to tokenize: %zu bytes needed", n);
  enc->n_scratch = n;
  return KS_OK;
}

static ks_status
encode_plain(ks_encoding *enc, const char *text, size_t n, bool after_special)
{
  if (n == 0)
    return KS_OK;
  if (enc->tok->kind == KS_TOKENIZER_BPE)
    return ks_bpe_encode(enc, text, n);
  return ks_spm_encode(enc, text, n, enc->tok->space_prefix && after_special);
}

static ks_status
encode_fragments(ks_encoding *enc, const char *text, size_t n, const uint32_t *owner)
{
  bool after_special = true; /* the beginning counts as such */
  size_t pos = 0;
  ks_status st = KS_OK;

  if (owner == NULL)
    return encode_plain(enc, text, n, true);
  while (pos < n && st == KS_OK) {
    size_t end = pos;

    if (owner[pos] >= KS_OWNER_FIRST) {
      const ks_token id =
          owner[pos] == KS_OWNER_VISUAL ? KS_TOKEN_NONE : (ks_token)(owner[pos] - KS_OWNER_FIRST);

      st = ks_token_list_push(enc->out, id, enc->err);
      for (end++; end < n && owner[end] == KS_OWNER_INSIDE; end++)
        ;
      after_special = true;
    } else {
      while (end < n && owner[end] == 0)
        end++;
      st = encode_plain(enc, text + pos, end - pos, after_special);
      after_special = false;
    }
    pos = end;
  }
  return st;
}

/* BOS in front of what was appended since n_before, EOS behind it, each unless it is there already.
 */
static ks_status
add_frame(const ks_tokenizer *tok, uint32_t flags, ks_token_list *out, size_t n_before,
          ks_error *err)
{
  bool adds_bos = tok->adds_bos && (flags & (KS_ENCODE_ADD_SPECIAL | KS_ENCODE_ADD_BOS)) != 0;
  bool adds_eos = tok->adds_eos && (flags & KS_ENCODE_ADD_SPECIAL) != 0;
  ks_status st;

  if (adds_bos && (out->n == n_before || out->ids[n_before] != tok->bos)) {
    st = ks_token_list_push(out, tok->bos, err);
    if (st != KS_OK)
      return st;
    memmove(out->ids + n_before + 1, out->ids + n_before,
            (out->n - 1 - n_before) * sizeof *out->ids);
    out->ids[n_before] = tok->bos;
  }
  if (adds_eos && (out->n == n_before || out->ids[out->n - 1] != tok->eos))
    return ks_token_list_push(out, tok->eos, err);
  return KS_OK;
}

ks_status
ks_tokenizer_encode_marked(const ks_tokenizer *tok, const char *text, const unsigned char *marks,
                           size_t n, uint32_t flags, ks_token_list *out, ks_error *err)
{
  ks_encoding enc = {tok, out, err, NULL, 0};
  size_t n_before = out->n;
  uint32_t *owner = NULL;
  ks_status st;

  if (n > MAX_TEXT)
    return ks_fail(err, KS_ERR_ARG, "a text of %zu bytes is too long: split it below 1 GiB", n);
  st = ks_special_find(tok, text, marks, n, (flags & KS_ENCODE_PARSE_SPECIAL) != 0, &owner, err);
  if (st == KS_OK)
    st = encode_fragments(&enc, text, n, owner);
  if (st == KS_OK)
    st = add_frame(tok, flags, out, n_before, err);
  if (st != KS_OK)
    out->n = n_before;
  ks_mem_free(owner);
  ks_mem_free(enc.scratch);
  return st;
}

ks_status
ks_tokenizer_encode(const ks_tokenizer *tok, const char *text, size_t n, uint32_t flags,
                    ks_token_list *out, ks_error *err)
{
  return ks_tokenizer_encode_marked(tok, text, NULL, n, flags, out, err);
}

/* ---- decoding ---- */

static bool
is_known(const ks_tokenizer *tok, ks_token id)
{
  return id >= 0 && (uint32_t)id < tok->n_vocab;
}

const char *
ks_tokenizer_get_piece(const ks_tokenizer *tok, ks_token id, bool with_control, size_t *out_n)
{
  const ks_vocab_entry *e;

  *out_n = 0;
  if (!is_known(tok, id))
    return "";
  e = &tok->vocab[id];
  if (!with_control && (e->type == KS_TOKEN_CONTROL || e->type == KS_TOKEN_UNKNOWN))
    return "";
  *out_n = e->n_piece;
  return tok->blob + e->piece;
}

ks_status
ks_tokenizer_decode(const ks_tokenizer *tok, ks_alloc *a, const ks_token *ids, size_t n,
                    bool with_control, char **out_text, size_t *out_n, ks_error *err)
{
  size_t n_text = 0, pos = 0, n_piece;
  bool strip = tok->space_prefix;
  char *text;

  for (size_t i = 0; i < n; i++) {
    if (!is_known(tok, ids[i]))
      return ks_fail(err, KS_ERR_ARG, "token id %d is outside the vocabulary of %u tokens", ids[i],
                     tok->n_vocab);
    (void)ks_tokenizer_get_piece(tok, ids[i], with_control, &n_piece);
    if (!ks_add_size(n_text, n_piece, &n_text))
      return ks_fail(err, KS_ERR_NOMEM, "no memory for the text of %zu tokens", n);
  }
  text = n_text < SIZE_MAX ? (char *)ks_mem_new(a, KS_MEM_HOST, n_text + 1, 1) : NULL;
  if (text == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for the text of %zu tokens", n);
  for (size_t i = 0; i < n; i++) {
    const char *piece = ks_tokenizer_get_piece(tok, ids[i], with_control, &n_piece);

    if (n_piece == 0)
      continue; /* hidden tokens in front do not use up the prefix */
    if (strip && piece[0] == ' ') {
      piece++;
      n_piece--;
    }
    strip = false;
    memcpy(text + pos, piece, n_piece);
    pos += n_piece;
  }
  text[pos] = '\0';
  *out_text = text;
  *out_n = pos;
  return KS_OK;
}

/* ---- questions ---- */

uint32_t
ks_tokenizer_get_n_vocab(const ks_tokenizer *tok)
{
  return tok->n_vocab;
}

ks_token
ks_tokenizer_get_bos(const ks_tokenizer *tok)
{
  return tok->bos;
}

ks_token
ks_tokenizer_get_eos(const ks_tokenizer *tok)
{
  return tok->eos;
}

bool
ks_tokenizer_adds_bos(const ks_tokenizer *tok)
{
  return tok->adds_bos;
}

bool
ks_tokenizer_is_end(const ks_tokenizer *tok, ks_token id)
{
  return is_known(tok, id) && tok->vocab[id].ends;
}

ks_token_type
ks_tokenizer_get_type(const ks_tokenizer *tok, ks_token id)
{
  return is_known(tok, id) ? (ks_token_type)tok->vocab[id].type : KS_TOKEN_UNUSED;
}

const char *
ks_tokenizer_get_warning(const ks_tokenizer *tok)
{
  return tok->warning;
}
