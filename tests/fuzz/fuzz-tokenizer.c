/* fuzz-tokenizer.c - texts against a sound vocabulary, and vocabularies out of broken files.
 * Input "T" or "S" and flags, then text: encoded with a byte-level BPE ("T") or a
 * SentencePiece-style
 * ("S") vocabulary made here.  Whatever the bytes, BPE must give them back; ids stay in range;
 * untrusted text gives no control token.  Anything else is a GGUF file: its tokenizer is refused
 * or, if it loads, works on texts of its own. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/gguf-write.h"
#include "engine/tokenizer.h"
#include "engine/unicode.h"
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TOKEN 320

static void
require(bool promise)
{
  if (!promise)
    abort();
}

typedef struct vocab {
  char texts[MAX_TOKEN][16];
  const char *tokens[MAX_TOKEN];
  int32_t types[MAX_TOKEN];
  float scores[MAX_TOKEN];
  uint32_t n;
} vocab;

static void
add_token(vocab *v, const char *text, ks_token_type type, float score)
{
  snprintf(v->texts[v->n], sizeof v->texts[v->n], "%s", text);
  v->tokens[v->n] = v->texts[v->n];
  v->types[v->n] = (int32_t)type;
  v->scores[v->n++] = score;
}

/* Written apart: a hexadecimal escape would swallow the letter behind it. */
#define G_SPACE "\xC4\xA0"
#define G_NEWLINE "\xC4\x8A"
#define SPM_SPACE "\xE2\x96\x81"

/* All bytes, tokens of letters, spaces and UTF-8 tails, some special tokens. */
static void
fill_vocab(vocab *v, bool bpe)
{
  static const char *const joined[] = {"ab",   "aba", G_SPACE "a", "\xC3\x83\xC2\xA9", "00", "ee",
                                       "eeee", "th",  "the",       G_NEWLINE G_NEWLINE};
  static const char *const pieces[] = {"a",           "b", "ab", "aba",  SPM_SPACE,
                                       SPM_SPACE "a", "e", "ee", "eeee", "\xC3\xA9"};
  uint32_t n_odd = 0;

  v->n = 0;
  for (uint32_t b = 0; b < 256; b++) {
    bool same = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    char text[8] = {0};

    if (bpe)
      (void)ks_utf8_encode(same ? b : 256 + n_odd++, text);
    else
      snprintf(text, sizeof text, "<0x%02X>", b);
    add_token(v, text, bpe ? KS_TOKEN_NORMAL : KS_TOKEN_BYTE, 0);
  }
  for (size_t i = 0; i < 10; i++)
    add_token(v, bpe ? joined[i] : pieces[i], KS_TOKEN_NORMAL, -(float)(i % 5));
  add_token(v, "<|im_end|>", KS_TOKEN_CONTROL, 0);
  add_token(v, "<s>", KS_TOKEN_CONTROL, 0);
  add_token(v, "\n\n", KS_TOKEN_USER_DEFINED, 0);
  add_token(v, "<td>", KS_TOKEN_USER_DEFINED, 0);
}

static ks_tokenizer *
make_tokenizer(ks_alloc *a, bool bpe, const char *pre)
{
  static const char *const merges[] = {
      "a b",   "ab a", G_SPACE " a", "\xC3\x83 \xC2\xA9",    "0 0", "e e",
      "ee ee", "t h",  "th e",       G_NEWLINE " " G_NEWLINE};
  vocab v;
  ks_gguf_writer *w = ks_gguf_writer_new(a, 0);
  ks_tokenizer *tok = NULL;
  unsigned char *bytes = NULL;
  ks_gguf *g = NULL;
  size_t n = 0;

  fill_vocab(&v, bpe);
  ks_gguf_writer_add_str(w, "tokenizer.ggml.model", bpe ? "gpt2" : "llama");
  ks_gguf_writer_add_str(w, "tokenizer.ggml.pre", pre);
  ks_gguf_writer_add_str_array(w, "tokenizer.ggml.tokens", v.tokens, v.n);
  ks_gguf_writer_add_array(w, "tokenizer.ggml.token_type", KS_GGUF_I32, v.types, v.n);
  ks_gguf_writer_add_array(w, "tokenizer.ggml.scores", KS_GGUF_F32, v.scores, v.n);
  ks_gguf_writer_add_str_array(w, "tokenizer.ggml.merges", merges, bpe ? 10 : 0);
  require(ks_gguf_writer_get_bytes(w, &bytes, &n, NULL) == KS_OK);
  require(ks_gguf_open_bytes(a, bytes, n, &g, NULL) == KS_OK);
  require(ks_tokenizer_new(a, g, &tok, NULL) == KS_OK);
  ks_gguf_close(g);
  ks_mem_free(bytes);
  ks_gguf_writer_free(w);
  return tok;
}

/* Encodes and decodes; exact asks for the same bytes back. */
static void
round_trip(const ks_tokenizer *tok, ks_alloc *a, const char *text, size_t n, uint32_t flags,
           bool exact)
{
  ks_token_list ids;
  char *back = NULL;
  size_t n_back = 0;
  ks_error err;

  ks_token_list_init(&ids, a);
  if (ks_tokenizer_encode(tok, text, n, flags, &ids, &err) != KS_OK) {
    require(!exact && err.text[0] != '\0' && ids.n == 0);
    ks_token_list_done(&ids);
    return;
  }
  for (size_t i = 0; i < ids.n; i++) {
    require(ids.ids[i] >= 0 && (uint32_t)ids.ids[i] < ks_tokenizer_get_n_vocab(tok));
    if (flags == 0 && exact)
      require(ks_tokenizer_get_type(tok, ids.ids[i]) != KS_TOKEN_CONTROL);
  }
  require(ks_tokenizer_decode(tok, a, ids.ids, ids.n, true, &back, &n_back, NULL) == KS_OK);
  if (exact)
    require(n_back == n && memcmp(back, text, n) == 0);
  ks_mem_free(back);
  ks_token_list_done(&ids);
}

static void
check_text(ks_alloc *a, const uint8_t *data, size_t n)
{
  static const char *const cutters[] = {"gpt-2", "smollm", "llama-bpe", "qwen2", "qwen35"};
  static ks_tokenizer *made[2][5]; /* kept: making one costs far more than using it */
  bool bpe = data[0] == 'T';
  size_t pre = (data[1] >> 2) % 5;
  const char *text = (const char *)data + 2;
  ks_tokenizer *tok = made[bpe][pre];

  if (tok == NULL)
    tok = made[bpe][pre] = make_tokenizer(ks_alloc_new(), bpe, cutters[pre]);

  /* SPM turns U+2581 into a space, so only BPE promises the same bytes. */
  round_trip(tok, a, text, n - 2, data[1] & KS_ENCODE_PARSE_SPECIAL, bpe);
  round_trip(tok, a, text, n - 2, KS_ENCODE_ADD_SPECIAL, false);
}

static void
check_file(ks_alloc *a, const uint8_t *data, size_t n)
{
  static const char text[] = "The <|im_end|>\n\n caf\xC3\xA9 1234 \xFF\xE4\xB8\xAD's   \t x";
  ks_tokenizer *tok = NULL;
  ks_gguf *g = NULL;
  ks_error err = {.text = ""};

  if (ks_gguf_open_bytes(a, data, n, &g, NULL) != KS_OK)
    return;
  if (ks_tokenizer_new(a, g, &tok, &err) == KS_OK) {
    ks_gguf_close(g);
    g = NULL;
    for (uint32_t flags = 0; flags < 4; flags++)
      round_trip(tok, a, text, sizeof text - 1, flags, false);
    round_trip(tok, a, (const char *)data, n < 2000 ? n : 2000, KS_ENCODE_PARSE_SPECIAL, false);
    ks_tokenizer_free(tok);
  } else {
    require(tok == NULL && err.text[0] != '\0');
  }
  ks_gguf_close(g);
}

/* Tokens "<type><score><text>" and merges "m<text>", as odd as the input is. */
static void
check_vocabulary(ks_alloc *a, const uint8_t *data, size_t n)
{
  const char *lists[2][MAX_TOKEN] = {{NULL}};
  int32_t types[MAX_TOKEN] = {0};
  float scores[MAX_TOKEN] = {0};
  uint64_t n_list[2] = {0, 0};
  ks_gguf_writer *w = ks_gguf_writer_new(a, 0);
  char *text = (char *)malloc(n + 3);
  unsigned char *bytes = NULL;
  size_t n_bytes = 0;

  require(w != NULL && text != NULL);
  memcpy(text, data, n);
  memset(text + n, 0, 3);
  for (size_t at = 3; at < n; at += strlen(text + at) + 1) {
    int list = text[at] == 'm';
    uint64_t *count = &n_list[list];

    if (*count == MAX_TOKEN)
      break;
    types[*count] = list ? types[*count] : text[at] % 8;
    scores[*count] = list ? scores[*count] : (float)text[at + 1];
    lists[list][(*count)++] = text + at + (list || text[at] == '\0' ? 1 : 2);
  }
  ks_gguf_writer_add_str(w, "tokenizer.ggml.model", data[1] & 1 ? "gpt2" : "llama");
  ks_gguf_writer_add_str(w, "tokenizer.ggml.pre", data[1] & 2 ? "smollm" : "llama-bpe");
  ks_gguf_writer_add_str(w, "general.name", data[1] & 4 ? "Phi-3" : "");
  ks_gguf_writer_add_bool(w, "tokenizer.ggml.add_eos_token", data[1] & 8);
  ks_gguf_writer_add_u32(w, "tokenizer.ggml.eos_token_id", data[2] & 15u);
  ks_gguf_writer_add_u32(w, "tokenizer.ggml.bos_token_id", data[2] >> 4);
  ks_gguf_writer_add_str_array(w, "tokenizer.ggml.tokens", lists[0], n_list[0]);
  ks_gguf_writer_add_array(w, "tokenizer.ggml.token_type", KS_GGUF_I32, types, n_list[0]);
  ks_gguf_writer_add_array(w, "tokenizer.ggml.scores", KS_GGUF_F32, scores, n_list[0]);
  ks_gguf_writer_add_str_array(w, "tokenizer.ggml.merges", lists[1], n_list[1]);
  require(ks_gguf_writer_get_bytes(w, &bytes, &n_bytes, NULL) == KS_OK);
  check_file(a, bytes, n_bytes);
  ks_mem_free(bytes);
  free(text);
  ks_gguf_writer_free(w);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
  ks_alloc *a = ks_alloc_new();

  if (a == NULL)
    return 0;
  if (n >= 2 && (data[0] == 'T' || data[0] == 'S'))
    check_text(a, data, n);
  else if (n >= 3 && data[0] == 'V')
    check_vocabulary(a, data, n);
  else
    check_file(a, data, n);
  require(ks_alloc_get_bytes(a, KS_MEM_HOST) == 0);
  ks_alloc_free(a);
  return 0;
}
