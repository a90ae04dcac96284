/* tiny-vocab.h - builds small vocabularies as GGUF files in memory, for tests of tokenizer and
 * chat. All 256 bytes are there in both kinds, so that any text can be encoded. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/gguf-write.h"
#include "engine/tokenizer.h"
#include "engine/unicode.h"
#include "tests/ks-test.h"

#define TINY_MAX 600

typedef struct tiny_vocab {
  ks_alloc *alloc;
  ks_gguf_writer *writer;
  char texts[TINY_MAX][24];
  const char *tokens[TINY_MAX];
  int32_t types[TINY_MAX];
  float scores[TINY_MAX];
  uint32_t n;
  unsigned char *bytes; /* of the file */
  ks_gguf *gguf;
  ks_tokenizer *tok;
} tiny_vocab;

static inline ks_token
tiny_add(tiny_vocab *v, const char *text, ks_token_type type, float score)
{
  KS_ASSERT_LT(v->n, TINY_MAX);
  snprintf(v->texts[v->n], sizeof v->texts[v->n], "%s", text);
  v->tokens[v->n] = v->texts[v->n];
  v->types[v->n] = (int32_t)type;
  v->scores[v->n] = score;
  return (ks_token)v->n++;
}

/* model "gpt2": ids 0..255 are the bytes in their printable form; "llama": 0 <unk>, 1 <s>, 2 </s>,
 * then the byte tokens. */
static inline void
tiny_begin(tiny_vocab *v, const char *model)
{
  bool bpe = strcmp(model, "gpt2") == 0;
  uint32_t n_odd = 0;

  memset(v, 0, sizeof *v);
  v->alloc = ks_alloc_new();
  v->writer = ks_gguf_writer_new(v->alloc, 0);
  ks_gguf_writer_add_str(v->writer, "tokenizer.ggml.model", model);
  if (!bpe) {
    tiny_add(v, "<unk>", KS_TOKEN_UNKNOWN, 0);
    tiny_add(v, "<s>", KS_TOKEN_CONTROL, 0);
    tiny_add(v, "</s>", KS_TOKEN_CONTROL, 0);
  }
  for (uint32_t b = 0; b < 256; b++) {
    bool same = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    char text[8] = {0};

    if (bpe)
      (void)ks_utf8_encode(same ? b : 256 + n_odd++, text);
    else
      snprintf(text, sizeof text, "<0x%02X>", b);
    tiny_add(v, text, bpe ? KS_TOKEN_NORMAL : KS_TOKEN_BYTE, 0);
  }
}

static inline void
tiny_add_lists(tiny_vocab *v)
{
  ks_gguf_writer *w = v->writer;

  ks_gguf_writer_add_str_array(w, "tokenizer.ggml.tokens", v->tokens, v->n);
  ks_gguf_writer_add_array(w, "tokenizer.ggml.token_type", KS_GGUF_I32, v->types, v->n);
  ks_gguf_writer_add_array(w, "tokenizer.ggml.scores", KS_GGUF_F32, v->scores, v->n);
}

/* Opens what the writer holds; the tokenizer's own status. */
static inline ks_status
tiny_open(tiny_vocab *v, ks_error *err)
{
  size_t n_bytes = 0;

  KS_ASSERT_OK(ks_gguf_writer_get_bytes(v->writer, &v->bytes, &n_bytes, NULL));
  KS_ASSERT_OK(ks_gguf_open_bytes(v->alloc, v->bytes, n_bytes, &v->gguf, NULL));
  return ks_tokenizer_new(v->alloc, v->gguf, &v->tok, err);
}

static inline void
tiny_done(tiny_vocab *v)
{
  ks_tokenizer_free(v->tok);
  ks_gguf_close(v->gguf);
  ks_mem_free(v->bytes);
  ks_gguf_writer_free(v->writer);
  ks_alloc_free(v->alloc);
}
