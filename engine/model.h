/* model.h - shape of a language model and its weights, bound to a backend from a GGUF file.
 * Architectures: llama, qwen2, qwen3, gemma3, phi3, and the text halves of qwen2vl and qwen3vl.
 * Anything this build does not know is refused by name; sizes are checked against the tensors.
 * Threads: immutable after loading but for the repacked copy, which changes what a device reads,
 * not what it computes.  Source: docs/formats/gguf.md, docs/method.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/backend.h"
#include "engine/chat-template.h"
#include "engine/gguf.h"
#include "engine/tokenizer.h"

KS_BEGIN_DECLS

typedef enum ks_arch {
  KS_ARCH_LLAMA,
  KS_ARCH_QWEN2,
  KS_ARCH_QWEN3,
  KS_ARCH_GEMMA3,
  KS_ARCH_PHI3,
  KS_ARCH_QWEN2VL,
  KS_ARCH_QWEN3VL
} ks_arch;

typedef struct ks_rope_shape {
  uint32_t n_rot;
  bool neox;
  float mscale;
  ks_dptr inv_freq; /* f32 [n_rot/2], all scaling folded in */
  ks_dptr axis;     /* u8 [n_rot/2], 0 = all t */
} ks_rope_shape;

typedef struct ks_model_shape {
  ks_arch arch;
  uint32_t n_embd, n_layer, n_head, n_kv_head, k_dim, v_dim, n_vocab;
  uint32_t n_ff;        /* the widest; a layer's own is its w_up.n_out */
  uint32_t n_ctx_train; /* the trained context length, tokens */
  uint32_t window;      /* sliding window in positions; 0 = none */
  uint32_t n_deep;      /* first layers behind which a picture's rows get features (qwen3vl) */
  float rms_eps, attn_scale, embd_scale, final_softcap; /* softcap 0 = none */
  ks_act act;
  ks_rope_shape rope;       /* global layers */
  ks_rope_shape rope_local; /* sliding-window layers; equal to rope when the model has none */
} ks_model_shape;

typedef struct ks_layer {
  bool is_local;                                                              /* sliding window */
  ks_dptr attn_norm, q_norm, k_norm, post_attn_norm, ffn_norm, post_ffn_norm; /* f32, 0 = absent */
  ks_weight wq, wk, wv, wo, w_gate, w_up,
      w_down; /* parts of fused tensors are views of their rows */
  ks_dptr bq, bk, bv, bo, b_gate, b_up, b_down;
} ks_layer;

typedef struct ks_model ks_model;

typedef struct ks_model_params {
  ks_backend *be;       /* borrowed, outlives the model */
  uint32_t n_ctx;       /* configured context: chooses longrope factors; 0 = trained length */
  uint64_t repack_room; /* most bytes of repacked copies; matrices that no longer fit are used as
                           they lie in the file; 0 = none */
} ks_model_params;

/* Loads path.  A cut or changed file, a missing tensor, a wrong shape: KS_ERR_FORMAT naming it;
 * an unknown architecture, rope type or weight type: KS_ERR_UNSUPPORTED naming it. */
KS_CHECK ks_status ks_model_open(ks_alloc *a, const char *path, const ks_model_params *params,
                                 ks_model **out, ks_error *err);
/* The same on an opened file, taken over (closed on failure too). */
KS_CHECK ks_status ks_model_open_gguf(ks_alloc *a, ks_gguf *take_gguf,
                                      const ks_model_params *params, ks_model **out, ks_error *err);
void ks_model_close(ks_model *model); /* NULL is allowed */

const ks_model_shape *ks_model_get_shape(const ks_model *model);
const ks_layer *ks_model_get_layer(const ks_model *model, uint32_t layer);
const ks_weight *ks_model_get_embd(const ks_model *model);
const ks_weight *ks_model_get_output(const ks_model *model);
ks_dptr ks_model_get_output_norm(const ks_model *model);
const ks_tokenizer *ks_model_get_tokenizer(const ks_model *model);
const ks_gguf *ks_model_get_gguf(const ks_model *model);
ks_backend *ks_model_get_backend(const ks_model *model);
const ks_chat_template *ks_model_get_chat_template(const ks_model *model, bool *out_is_fallback);
const char *ks_model_get_arch_name(const ks_model *model);
/* Bytes of the bound tensors (mapped on the CPU, uploaded elsewhere) and of repacked copies. */
uint64_t ks_model_get_weight_bytes(const ks_model *model);
/* The share of repacked copies in it. */
uint64_t ks_model_get_repacked_bytes(const ks_model *model);
/* Bytes of a copy of everything that has another form; 0 = this device or these types have none. */
uint64_t ks_model_count_repack_bytes(ks_model *model);
/* Makes the copy of as much as fits into room bytes, in place of the one that is there.  Without
 * memory for it there is none: not an error.  stop is asked between two matrices and may be NULL;
 * stopped, there is no copy.  Both functions: between two steps of the device. */
void ks_model_repack(ks_model *model, uint64_t room, ks_stop_fn stop, void *user);
void ks_model_drop_repacked(ks_model *model);
/* Bytes of activations for a pass of n_tok tokens of which n_row want logits, without a gate (see
 * ks_graph_count_scratch_bytes). */
uint64_t ks_model_get_scratch_bytes(const ks_model *model, uint32_t n_tok, uint32_t n_row);
/* KS_ERR_IO when the file was cut or its drive went away. */
KS_CHECK ks_status ks_model_check_alive(const ks_model *model, ks_error *err);

KS_END_DECLS
