/* graph-internal.h - where the activations of a pass lie in the one block of device scratch.
 * Shared by graph.c and by the model, which tells the size before a graph exists. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/model.h"

KS_BEGIN_DECLS

/* Offsets in bytes from the start of the device block, and of the host block. */
typedef struct ks_graph_layout {
  size_t ids, pos, first_global, first_local, last, rows; /* 32-bit integers that go in */
  size_t x, h;         /* [n_tok, n_embd]: the residual stream, and what was made of it */
  size_t q, k, v, att; /* [n_tok, heads, head_dim] */
  size_t f;            /* [n_tok, n_ff], and the gate's two hidden layers */
  size_t log_beta;     /* [n_tok, n_kv_head] of the layer at work */
  size_t x_rows;       /* [n_row + 1, n_embd]: the rows that leave the last layer */
  size_t logits;       /* [n_row, n_vocab] */
  size_t deep;         /* [n_deep, n_tok, n_embd]: features of the visual rows, packed in front */
  size_t deep_rows;    /* [n_tok]: the rows that they belong to */
  size_t last_rows;    /* [2, n_embd]: last rows of passes with a head, normed, in turn */
  size_t device_bytes;
  size_t host_logits, host_rows, host_deep_rows, host_bytes;
} ks_graph_layout;

/* Sizes for passes of up to n_tok tokens, n_row of which want logits; n_gate 0 = no gate.
 * False when a size overflows; *out is then worthless. */
KS_CHECK bool ks_graph_layout_init(ks_graph_layout *out, const ks_model_shape *shape,
                                   uint32_t n_gate, uint32_t n_tok, uint32_t n_row);

KS_END_DECLS
