/* model-internal.h - what the files of the model share: reading the shape, binding the tensors.
 * Never included outside engine/model*.c. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/model.h"
#include "engine/rope.h"

KS_BEGIN_DECLS

/* Facts of the file that are needed while loading only. */
typedef struct ks_model_hparams {
  char arch_name[24];
  bool has_qk_norm, has_post_norm, has_fused_ffn;
  ks_rope_params rope, rope_local; /* freq_factors are filled in while binding */
  float rope_attn_multiplier;      /* times mscale */
  bool has_sections, interleaved;  /* image positions: M-RoPE */
  uint32_t sections[3];
} ks_model_hparams;

typedef struct ks_bound {
  ks_dptr data;
  size_t n_bytes;
  bool is_copy; /* device memory of ours, else bound in place */
} ks_bound;

struct ks_model {
  ks_alloc *alloc;
  ks_backend *be;
  ks_gguf *gguf;
  ks_tokenizer *tokenizer;
  const ks_chat_template *chat_template;
  bool chat_is_fallback;
  ks_model_hparams hparams;
  ks_model_shape shape;
  ks_layer *layers;
  ks_weight embd, output;
  ks_dptr output_norm;
  ks_bound *bound; /* room for every tensor and the rope tables */
  size_t n_bound, bound_capacity;
  uint64_t weight_bytes; /* with the copy */
  ks_dptr repacked;      /* one block with the copies, or 0 */
  uint64_t repacked_bytes;
};

/* Reads architecture and sizes into model->shape and model->hparams, takes model->layers and says
 * which are local.  Vocabulary size and rope tables are set by ks_model_bind. */
KS_CHECK ks_status ks_model_read_shape(ks_model *model, ks_error *err);
/* Binds every tensor, checks its shape and refuses tensors that would be left out. */
KS_CHECK ks_status ks_model_bind(ks_model *model, uint32_t n_ctx, ks_error *err);
void ks_model_unbind(ks_model *model);

/* Value of "<arch>.<suffix>" for a layer: the scalar, or the layer's element of an array.  Absent:
 * *out untouched, unless required (KS_ERR_FORMAT). */
KS_CHECK ks_status ks_model_key_u32(const ks_model *model, const char *suffix, uint32_t layer,
                                    bool required, uint32_t *out, ks_error *err);

KS_END_DECLS
