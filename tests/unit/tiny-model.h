/* tiny-model.h - a two-layer model of any architecture as the bytes of a GGUF file, for tests.
 * Weights are small pseudo-random numbers; a spec leaves things out, bends them or adds some.
 * Over 200 lines because a whole file, from its vocabulary to its last norm, is made up here. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/gguf-write.h"
#include "engine/model.h"
#include "tests/ks-test.h"
#include "tests/unit/tiny-blocks.h"

enum {
  TINY_EMBD = 32,
  TINY_FF = 64,
  TINY_LAYER = 2,
  TINY_HEAD = 4,
  TINY_KV_HEAD = 2,
  TINY_DIM = 8,
  TINY_VOCAB = 259,
  TINY_MAX_TENSORS = 64
};

typedef struct tiny_spec {
  const char *arch;
  bool fused_qkv;
  bool bias;               /* q, k, v get one */
  const char *skip_tensor; /* left out */
  const char *bend_tensor; /* one row (a vector: element) too many */
  const char *typed_tensor;
  ks_dtype type;
  ks_dtype matrix_type;     /* of every matrix; F32 unless said otherwise */
  uint32_t scale;           /* times TINY_EMBD, TINY_FF and TINY_DIM; 0 = 1 */
  bool own_output;          /* output.weight beside the embedding table */
  const char *extra_tensor; /* f32 [TINY_EMBD, TINY_EMBD] */
  const char *skip_key;
  void (*add_keys)(ks_gguf_writer *w);
} tiny_spec;

typedef struct tiny_tensor {
  char name[64];
  uint32_t n_in, n_out; /* n_out 0: a vector */
} tiny_tensor;

typedef struct tiny_list {
  tiny_tensor items[TINY_MAX_TENSORS];
  uint32_t n;
} tiny_list;

/* A width of the plain model in this one. */
static inline uint32_t
tiny_wide(const tiny_spec *spec, uint32_t n)
{
  return spec->scale > 0 ? n * spec->scale : n;
}

static inline bool
tiny_is(const char *a, const char *b)
{
  return a != NULL && strcmp(a, b) == 0;
}

static inline void
tiny_add(tiny_list *list, const char *name, uint32_t n_in, uint32_t n_out)
{
  tiny_tensor *t = &list->items[list->n++];

  KS_ASSERT_LT(list->n, TINY_MAX_TENSORS);
  snprintf(t->name, sizeof t->name, "%s", name);
  t->n_in = n_in;
  t->n_out = n_out;
}

static inline void
tiny_add_part(tiny_list *list, uint32_t layer, const char *part, uint32_t n_in, uint32_t n_out)
{
  char name[64];

  snprintf(name, sizeof name, "blk.%u.%s", layer, part);
  tiny_add(list, name, n_in, n_out);
}

static inline void
tiny_add_attention(tiny_list *list, const tiny_spec *spec, uint32_t i)
{
  const uint32_t n_embd = tiny_wide(spec, TINY_EMBD), dim = tiny_wide(spec, TINY_DIM);
  uint32_t n_q = TINY_HEAD * dim, n_k = TINY_KV_HEAD * dim;
  bool qk_norm = strcmp(spec->arch, "qwen3") == 0 || strcmp(spec->arch, "gemma3") == 0 ||
                 strcmp(spec->arch, "qwen3vl") == 0;

  tiny_add_part(list, i, "attn_norm.weight", n_embd, 0);
  if (spec->fused_qkv || strcmp(spec->arch, "phi3") == 0) {
    tiny_add_part(list, i, "attn_qkv.weight", n_embd, n_q + 2 * n_k);
    if (spec->bias)
      tiny_add_part(list, i, "attn_qkv.bias", n_q + 2 * n_k, 0);
  } else {
    tiny_add_part(list, i, "attn_q.weight", n_embd, n_q);
    tiny_add_part(list, i, "attn_k.weight", n_embd, n_k);
    tiny_add_part(list, i, "attn_v.weight", n_embd, n_k);
    if (spec->bias) {
      tiny_add_part(list, i, "attn_q.bias", n_q, 0);
      tiny_add_part(list, i, "attn_k.bias", n_k, 0);
      tiny_add_part(list, i, "attn_v.bias", n_k, 0);
    }
  }
  if (qk_norm) {
    tiny_add_part(list, i, "attn_q_norm.weight", dim, 0);
    tiny_add_part(list, i, "attn_k_norm.weight", dim, 0);
  }
  tiny_add_part(list, i, "attn_output.weight", n_q, n_embd);
}

/* Every tensor of the architecture, as a file of it holds them. */
static inline void
tiny_list_tensors(tiny_list *list, const tiny_spec *spec)
{
  const uint32_t n_embd = tiny_wide(spec, TINY_EMBD), n_ff = tiny_wide(spec, TINY_FF);
  bool fused_ffn = strcmp(spec->arch, "phi3") == 0, post = strcmp(spec->arch, "gemma3") == 0;

  list->n = 0;
  tiny_add(list, "token_embd.weight", n_embd, TINY_VOCAB);
  tiny_add(list, "output_norm.weight", n_embd, 0);
  if (spec->own_output)
    tiny_add(list, "output.weight", n_embd, TINY_VOCAB);
  for (uint32_t i = 0; i < TINY_LAYER; i++) {
    tiny_add_attention(list, spec, i);
    tiny_add_part(list, i, "ffn_norm.weight", n_embd, 0);
    if (!fused_ffn)
      tiny_add_part(list, i, "ffn_gate.weight", n_embd, n_ff);
    tiny_add_part(list, i, "ffn_up.weight", n_embd, fused_ffn ? 2 * n_ff : n_ff);
    tiny_add_part(list, i, "ffn_down.weight", n_ff, n_embd);
    if (post) {
      tiny_add_part(list, i, "post_attention_norm.weight", n_embd, 0);
      tiny_add_part(list, i, "post_ffw_norm.weight", n_embd, 0);
    }
  }
  if (spec->extra_tensor != NULL)
    tiny_add(list, spec->extra_tensor, n_embd, n_embd);
}

static inline void
tiny_add_vocabulary(ks_gguf_writer *w)
{
  static char texts[TINY_VOCAB][16];
  const char *tokens[TINY_VOCAB];
  int32_t types[TINY_VOCAB];
  uint32_t extra = 256;

  for (uint32_t b = 0; b < 256; b++) {
    bool plain = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    uint32_t cp = plain ? b : extra++;

    if (cp < 128)
      snprintf(texts[b], sizeof texts[b], "%c", (int)cp);
    else
      snprintf(texts[b], sizeof texts[b], "%c%c", (int)(0xC0 | cp >> 6), (int)(0x80 | (cp & 63)));
    types[b] = 1;
  }
  snprintf(texts[256], sizeof texts[256], "<|endoftext|>");
  snprintf(texts[257], sizeof texts[257], "<|im_start|>");
  snprintf(texts[258], sizeof texts[258], "<|im_end|>");
  types[256] = types[257] = types[258] = 3;
  for (uint32_t i = 0; i < TINY_VOCAB; i++)
    tokens[i] = texts[i];
  ks_gguf_writer_add_str(w, "tokenizer.ggml.model", "gpt2");
  ks_gguf_writer_add_str(w, "tokenizer.ggml.pre", "gpt-2");
  ks_gguf_writer_add_str_array(w, "tokenizer.ggml.tokens", tokens, TINY_VOCAB);
  ks_gguf_writer_add_array(w, "tokenizer.ggml.token_type", KS_GGUF_I32, types, TINY_VOCAB);
  ks_gguf_writer_add_str_array(w, "tokenizer.ggml.merges", NULL, 0);
  ks_gguf_writer_add_u32(w, "tokenizer.ggml.bos_token_id", 256);
  ks_gguf_writer_add_u32(w, "tokenizer.ggml.eos_token_id", 258);
}

static inline void
tiny_add_u32(ks_gguf_writer *w, const tiny_spec *spec, const char *suffix, uint32_t value)
{
  char name[96];

  snprintf(name, sizeof name, "%s.%s", spec->arch, suffix);
  if (!tiny_is(spec->skip_key, suffix))
    ks_gguf_writer_add_u32(w, name, value);
}

static inline void
tiny_add_keys(ks_gguf_writer *w, const tiny_spec *spec)
{
  static const int32_t sections[4] = {2, 1, 1, 0};
  char name[96];

  ks_gguf_writer_add_str(w, "general.architecture", spec->arch);
  tiny_add_u32(w, spec, "context_length", 512);
  tiny_add_u32(w, spec, "embedding_length", tiny_wide(spec, TINY_EMBD));
  tiny_add_u32(w, spec, "block_count", TINY_LAYER);
  tiny_add_u32(w, spec, "feed_forward_length", tiny_wide(spec, TINY_FF));
  tiny_add_u32(w, spec, "attention.head_count", TINY_HEAD);
  tiny_add_u32(w, spec, "attention.head_count_kv", TINY_KV_HEAD);
  snprintf(name, sizeof name, "%s.attention.layer_norm_rms_epsilon", spec->arch);
  if (!tiny_is(spec->skip_key, "attention.layer_norm_rms_epsilon"))
    ks_gguf_writer_add_f32(w, name, 1e-5f);
  snprintf(name, sizeof name, "%s.rope.dimension_sections", spec->arch);
  if (strcmp(spec->arch, "qwen2vl") == 0 || strcmp(spec->arch, "qwen3vl") == 0)
    ks_gguf_writer_add_array(w, name, KS_GGUF_I32, sections, 4);
  if (spec->add_keys != NULL)
    spec->add_keys(w);
  tiny_add_vocabulary(w);
}

/* Data large enough for every tensor: floats between -0.25 and 0.25 (norms: the same plus 1 would
 * be usual, but any number will do).  The caller frees. */
static inline float *
tiny_new_data(size_t n)
{
  float *data = malloc(n * sizeof *data);
  uint32_t state = 12345;

  KS_ASSERT(data != NULL);
  for (size_t i = 0; i < n; i++) {
    state = state * 1664525u + 1013904223u;
    data[i] = ((float)(state >> 8) / 16777216.0f - 0.5f) * 0.5f;
  }
  return data;
}

/* The file's bytes; free with ks_mem_free after the model and its gguf are closed. */
static inline unsigned char *
tiny_new_bytes(ks_alloc *a, const tiny_spec *spec, size_t *out_n_bytes)
{
  const uint32_t n_widest = tiny_wide(spec, TINY_FF);
  size_t n_data = (size_t)(TINY_VOCAB + 2) * n_widest * (spec->scale > 2 ? spec->scale : 1);
  float *data = tiny_new_data(n_data);
  unsigned char *blocks[TINY_MAX_TENSORS] = {NULL};
  ks_gguf_writer *w = ks_gguf_writer_new(a, 0);
  unsigned char *bytes = NULL;
  tiny_list list;

  tiny_list_tensors(&list, spec);
  tiny_add_keys(w, spec);
  for (uint32_t i = 0; i < list.n; i++) {
    const tiny_tensor *t = &list.items[i];
    uint32_t bend = tiny_is(spec->bend_tensor, t->name);
    bool is_vector = t->n_out == 0;
    uint64_t ne[2] = {is_vector ? t->n_in + bend : t->n_in, t->n_out + bend};
    ks_dtype type = tiny_is(spec->typed_tensor, t->name) ? spec->type : KS_DTYPE_F32;
    const void *values = data + 97 * i;

    if (!is_vector && spec->matrix_type != KS_DTYPE_F32) {
      type = spec->matrix_type;
      values = blocks[i] = tiny_new_blocks(type, data + 97 * i, ne[0], ne[1]);
    }
    if (!tiny_is(spec->skip_tensor, t->name))
      ks_gguf_writer_add_tensor(w, t->name, type, is_vector ? 1 : 2, ne, values);
  }
  KS_ASSERT_OK(ks_gguf_writer_get_bytes(w, &bytes, out_n_bytes, NULL));
  ks_gguf_writer_free(w);
  for (uint32_t i = 0; i < list.n; i++)
    free(blocks[i]);
  free(data);
  return bytes;
}

static inline ks_status
tiny_open(ks_alloc *a, ks_backend *be, const unsigned char *bytes, size_t n_bytes, uint32_t n_ctx,
          ks_model **out, ks_error *err)
{
  ks_model_params params = {.be = be, .n_ctx = n_ctx};
  ks_gguf *g = NULL;
  ks_status st = ks_gguf_open_bytes(a, bytes, n_bytes, &g, err);

  return st == KS_OK ? ks_model_open_gguf(a, g, &params, out, err) : st;
}
