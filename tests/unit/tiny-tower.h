/* tiny-tower.h - mmproj files of every family and any size with made-up weights.
 * All matrices are parts of one buffer of random numbers: what they compute means nothing, but it
 * stays finite at any depth.  For tests, the fuzz corpus and measuring.
 * Over 200 lines because the list of tensors is one for all families. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/gguf-write.h"
#include "engine/quant.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct tower_spec {
  const char *projector; /* clip.projector_type */
  uint32_t n_embd, n_ff, n_head, n_layer, patch, tile, merge, n_out;
  ks_dtype type; /* of matrices */
} tower_spec;

typedef struct tower_writer {
  const tower_spec *s;
  ks_gguf_writer *w;
  const unsigned char *matrix; /* random rows in the type of matrices */
  const float *vector;         /* random, small */
  const float *ones;
} tower_writer;

static inline void
tower_matrix(const tower_writer *t, const char *name, uint64_t n_in, uint64_t n_out)
{
  const uint64_t ne[2] = {n_in, n_out};

  ks_gguf_writer_add_tensor(t->w, name, t->s->type, 2, ne, t->matrix);
}

static inline void
tower_vector(const tower_writer *t, const char *name, uint64_t n, const float *data)
{
  ks_gguf_writer_add_tensor(t->w, name, KS_DTYPE_F32, 1, &n, data);
}

static inline void
tower_layer(const tower_writer *t, const char *name, uint64_t n_in, uint64_t n_out)
{
  char full[80];

  snprintf(full, sizeof full, "%s.weight", name);
  tower_matrix(t, full, n_in, n_out);
  snprintf(full, sizeof full, "%s.bias", name);
  tower_vector(t, full, n_out, t->vector);
}

static inline void
tower_norm(const tower_writer *t, const char *name, uint64_t n, bool with_bias)
{
  char full[80];

  snprintf(full, sizeof full, "%s.weight", name);
  tower_vector(t, full, n, t->ones);
  snprintf(full, sizeof full, "%s.bias", name);
  if (with_bias)
    tower_vector(t, full, n, t->vector);
}

static inline bool
tower_is(const tower_spec *s, const char *projector)
{
  return strcmp(s->projector, projector) == 0;
}

static inline bool
tower_is_qwen(const tower_spec *s)
{
  return strncmp(s->projector, "qwen", 4) == 0;
}

static inline void
tower_keys(const tower_writer *t)
{
  static const float half[3] = {0.5f, 0.5f, 0.5f};
  const tower_spec *s = t->s;
  const struct {
    const char *name;
    uint32_t value;
  } numbers[] = {{"image_size", s->tile},         {"patch_size", s->patch},
                 {"embedding_length", s->n_embd}, {"feed_forward_length", s->n_ff},
                 {"block_count", s->n_layer},     {"attention.head_count", s->n_head},
                 {"projection_dim", s->n_out}};
  char name[64];

  ks_gguf_writer_add_str(t->w, "general.architecture", "clip");
  ks_gguf_writer_add_bool(t->w, "clip.has_vision_encoder", true);
  ks_gguf_writer_add_str(t->w, "clip.projector_type", s->projector);
  ks_gguf_writer_add_bool(t->w, "clip.use_gelu",
                          !tower_is(s, "mlp") && !tower_is(s, "qwen2vl_merger"));
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    snprintf(name, sizeof name, "clip.vision.%s", numbers[i].name);
    ks_gguf_writer_add_u32(t->w, name, numbers[i].value);
  }
  ks_gguf_writer_add_f32(t->w, "clip.vision.attention.layer_norm_epsilon", 1e-6f);
  ks_gguf_writer_add_array(t->w, "clip.vision.image_mean", KS_GGUF_F32, half, 3);
  ks_gguf_writer_add_array(t->w, "clip.vision.image_std", KS_GGUF_F32, half, 3);
  if (tower_is(s, "qwen2.5vl_merger"))
    ks_gguf_writer_add_u32(t->w, "clip.vision.n_wa_pattern", 8);
  if (tower_is(s, "idefics3")) {
    ks_gguf_writer_add_u32(t->w, "clip.vision.projector.scale_factor", s->merge);
    ks_gguf_writer_add_u32(t->w, "clip.vision.preproc_image_size", 4 * s->tile);
  }
}

static inline void
tower_blocks(const tower_writer *t)
{
  const tower_spec *s = t->s;
  const bool is_rms = tower_is(s, "qwen2.5vl_merger");
  static const char *const square[] = {"attn_q", "attn_k", "attn_v", "attn_out"};
  char name[64];

  for (uint32_t i = 0; i < s->n_layer; i++) {
    for (int j = 1; j <= 2; j++) {
      snprintf(name, sizeof name, "v.blk.%u.ln%d", i, j);
      tower_norm(t, name, s->n_embd, !is_rms);
    }
    for (int j = 0; j < 4; j++) {
      snprintf(name, sizeof name, "v.blk.%u.%s", i, square[j]);
      tower_layer(t, name, s->n_embd, s->n_embd);
    }
    snprintf(name, sizeof name, "v.blk.%u.ffn_up", i);
    tower_layer(t, name, s->n_embd, s->n_ff);
    snprintf(name, sizeof name, "v.blk.%u.ffn_gate", i);
    if (is_rms)
      tower_layer(t, name, s->n_embd, s->n_ff);
    snprintf(name, sizeof name, "v.blk.%u.ffn_down", i);
    tower_layer(t, name, s->n_ff, s->n_embd);
  }
}

static inline void
tower_ends(const tower_writer *t)
{
  const tower_spec *s = t->s;
  const uint64_t side = s->tile / s->patch, n_embd = s->n_embd;
  const uint64_t patch[4] = {s->patch, s->patch, 3, n_embd};
  const uint64_t positions[2] = {n_embd, side * side + (tower_is(s, "mlp") ? 1 : 0)};
  const uint64_t wide = n_embd * s->merge * s->merge;

  ks_gguf_writer_add_tensor(t->w, "v.patch_embd.weight", KS_DTYPE_F32, 4, patch, t->vector);
  if (tower_is_qwen(s))
    ks_gguf_writer_add_tensor(t->w, "v.patch_embd.weight.1", KS_DTYPE_F32, 4, patch, t->vector);
  if (!tower_is_qwen(s) || tower_is(s, "qwen3vl_merger"))
    ks_gguf_writer_add_tensor(t->w, "v.position_embd.weight", KS_DTYPE_F32, 2, positions,
                              t->vector);
  if (tower_is(s, "mlp")) {
    tower_vector(t, "v.class_embd", n_embd, t->vector);
    tower_norm(t, "v.pre_ln", n_embd, true);
  } else {
    tower_norm(t, "v.post_ln", n_embd, !tower_is(s, "qwen2.5vl_merger"));
  }
  if (tower_is(s, "idefics3")) {
    tower_matrix(t, "mm.model.fc.weight", wide, s->n_out);
  } else if (tower_is(s, "gemma3")) {
    tower_vector(t, "mm.soft_emb_norm.weight", n_embd, t->ones);
    tower_matrix(t, "mm.input_projection.weight", s->n_out, n_embd);
  } else {
    tower_layer(t, "mm.0", wide, wide);
    tower_layer(t, "mm.2", wide, s->n_out);
  }
  if (tower_is(s, "qwen3vl_merger")) {
    tower_norm(t, "v.deepstack.0.norm", wide, true);
    tower_layer(t, "v.deepstack.0.fc1", wide, wide);
    tower_layer(t, "v.deepstack.0.fc2", wide, s->n_out);
  }
}

/* Numbers that every tensor fits into. */
static inline size_t
tower_count(const tower_spec *s)
{
  const size_t side = s->tile / s->patch, wide = (size_t)s->n_embd * s->merge * s->merge;
  const size_t sizes[] = {wide * wide, wide * s->n_out, (size_t)s->n_embd * s->n_ff,
                          (size_t)3 * s->patch * s->patch * s->n_embd,
                          (side * side + 1) * s->n_embd};
  size_t most = 0;

  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
    most = sizes[i] > most ? sizes[i] : most;
  return most;
}

/* The file's bytes in *out (ks_mem_free), or false without memory. */
static inline bool
tower_new_bytes(ks_alloc *a, const tower_spec *s, unsigned char **out, size_t *out_n)
{
  const size_t n = tower_count(s) / 256 * 256 + 256;
  tower_writer t = {.s = s, .w = ks_gguf_writer_new(a, 0)};
  float *vector = ks_mem_new(a, KS_MEM_HOST, n, sizeof *vector);
  float *ones = ks_mem_new(a, KS_MEM_HOST, (size_t)s->n_embd * s->merge * s->merge, sizeof *ones);
  unsigned char *matrix = ks_mem_new(a, KS_MEM_HOST, n, sizeof(float));
  bool ok = t.w != NULL && vector != NULL && ones != NULL && matrix != NULL;
  uint64_t seed = 1;

  for (size_t i = 0; ok && i < n; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    vector[i] = ((float)(seed >> 40) / 8388608.0f - 1.0f) / sqrtf((float)s->n_embd);
  }
  for (size_t i = 0; ok && i < (size_t)s->n_embd * s->merge * s->merge; i++)
    ones[i] = 1;
  ok = ok && ks_quantise_row(s->type, vector, matrix, n);
  t.vector = vector;
  t.ones = ones;
  t.matrix = matrix;
  if (ok) {
    tower_keys(&t);
    tower_blocks(&t);
    tower_ends(&t);
    ok = ks_gguf_writer_get_bytes(t.w, out, out_n, NULL) == KS_OK;
  }
  ks_gguf_writer_free(t.w);
  ks_mem_free(vector);
  ks_mem_free(ones);
  ks_mem_free(matrix);
  return ok;
}
