/* retention.h - DBTrimKV gates, and LocRet's heads: loading, checking against a model, scores on
 * the host. Source: docs/method.md sections 2 and 3, docs/formats/gate.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/backend.h"
#include "engine/model.h"

KS_BEGIN_DECLS

typedef struct ks_gate_layer {
  ks_weight w1, w2, w3; /* f32; w2 absent in a local gate.  LocRet: w1 over q, k and v side by side
                           as the model makes them, w3; no biases */
  ks_dptr b1, b2, b3;
} ks_gate_layer;

typedef struct ks_gate ks_gate;

/* Loads a safetensors gate file (a .config.json beside it is read when there) for model.  Tensor
 * names with either prefix are accepted.  KS_ERR_UNSUPPORTED: a gate for another model (family,
 * layers, KV heads or width differ: the text says which) or of an unknown kind; KS_ERR_FORMAT:
 * missing tensors, wrong shapes, NaN or Inf. */
KS_CHECK ks_status ks_gate_open(ks_alloc *a, const char *path, const ks_model *model, ks_gate **out,
                                ks_error *err);
void ks_gate_free(ks_gate *gate); /* NULL is allowed */
const ks_gate_layer *ks_gate_get_layer(const ks_gate *gate, uint32_t layer);
uint32_t ks_gate_get_width(const ks_gate *gate); /* n_gate */
bool ks_gate_is_tied(const ks_gate *gate);       /* w3 and b3 equal in all layers */
bool ks_gate_is_local(const ks_gate *gate);      /* two-layer TrimKV form */
bool ks_gate_is_locret(const ks_gate *gate);     /* scores, not retention: policy locret only */
ks_act ks_gate_get_act(const ks_gate *gate);
uint64_t ks_gate_get_bytes(const ks_gate *gate);

/* log(sigmoid(z)), finite for every finite z. */
float ks_log_sigmoid(float z);
/* Score of one entry: the definition that every backend's kv_score reproduces.  f32, product and
 * sum rounded apart. */
float ks_retention_score(float log_beta, uint32_t pos, uint32_t seen, uint32_t lookahead);
/* The part of the score that depends on log_beta and n only (0 for n = 1). */
float ks_retention_lookahead_term(float log_beta, uint32_t lookahead);

KS_END_DECLS
