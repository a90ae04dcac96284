/* tokenizer.h - text to token ids and back, from the vocabulary in a GGUF file.
 * Kinds: byte-level BPE ("gpt2") with the pre-tokenizers gpt-2, smollm, llama-bpe, qwen2, and
 * SentencePiece-style ("llama").  Unknown ones are refused by name.
 * Threads: immutable after loading.  Source: docs/formats/tokenizers.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/gguf.h"

KS_BEGIN_DECLS

typedef int32_t ks_token;
#define KS_TOKEN_NONE (-1)

typedef enum ks_token_type {
  KS_TOKEN_NORMAL = 1,
  KS_TOKEN_UNKNOWN = 2,
  KS_TOKEN_CONTROL = 3,
  KS_TOKEN_USER_DEFINED = 4,
  KS_TOKEN_UNUSED = 5,
  KS_TOKEN_BYTE = 6
} ks_token_type;

typedef struct ks_tokenizer ks_tokenizer;

/* A growable array of ids owned by the caller (init with zeros and alloc set). */
typedef struct ks_token_list {
  ks_alloc *alloc;
  ks_token *ids;
  size_t n, capacity;
} ks_token_list;

void ks_token_list_init(ks_token_list *list, ks_alloc *a);
void ks_token_list_done(ks_token_list *list);
KS_CHECK ks_status ks_token_list_push(ks_token_list *list, ks_token id, ks_error *err);

/* Copies what it needs: g may be closed afterwards. */
KS_CHECK ks_status ks_tokenizer_new(ks_alloc *a, const ks_gguf *g, ks_tokenizer **out,
                                    ks_error *err);
void ks_tokenizer_free(ks_tokenizer *tok); /* NULL is allowed */

/* Flags of ks_tokenizer_encode. */
#define KS_ENCODE_ADD_SPECIAL 1u /* BOS/EOS as the model's metadata asks */
#define KS_ENCODE_PARSE_SPECIAL                                                                    \
  2u /* control tokens in the text are recognised; never for user text */

/* Appends the ids of text[0..n-1] (any bytes; NULs allowed) to out; out keeps what it held on
 * error. */
KS_CHECK ks_status ks_tokenizer_encode(const ks_tokenizer *tok, const char *text, size_t n,
                                       uint32_t flags, ks_token_list *out, ks_error *err);

/* Bytes of one token as they stand in text ("Ġthe" gives " the"); control and unknown tokens give
 * their own text when with_control, else nothing.  Returns a borrowed pointer and its length. */
const char *ks_tokenizer_get_piece(const ks_tokenizer *tok, ks_token id, bool with_control,
                                   size_t *out_n);
/* Text of a whole sequence: the pieces joined, without the one leading space that an SPM space
 * prefix put there.  The caller frees with ks_mem_free; NUL-terminated. */
KS_CHECK ks_status ks_tokenizer_decode(const ks_tokenizer *tok, ks_alloc *a, const ks_token *ids,
                                       size_t n, bool with_control, char **out_text, size_t *out_n,
                                       ks_error *err);

uint32_t ks_tokenizer_get_n_vocab(const ks_tokenizer *tok);
ks_token ks_tokenizer_get_bos(const ks_tokenizer *tok); /* KS_TOKEN_NONE when the model has none */
ks_token ks_tokenizer_get_eos(const ks_tokenizer *tok);
bool ks_tokenizer_adds_bos(const ks_tokenizer *tok);
/* True for every token that ends a generation (eos, eot and known terminators). */
bool ks_tokenizer_is_end(const ks_tokenizer *tok, ks_token id);
ks_token_type ks_tokenizer_get_type(const ks_tokenizer *tok, ks_token id);
/* Id of a token by its exact text in the vocabulary, KS_TOKEN_NONE when absent. */
ks_token ks_tokenizer_find(const ks_tokenizer *tok, const char *text, size_t n);
/* A sentence when the file lacks something (".pre" missing), else NULL. */
const char *ks_tokenizer_get_warning(const ks_tokenizer *tok);

KS_END_DECLS
