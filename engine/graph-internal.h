/* graph-internal.h - where the activations of a pass lie in the one block of device scratch, and a
 * pass while it is recorded.
 * The first is shared by graph.c and the model, which tells the size before a graph exists; the
 * second by graph.c, graph-entries.c and graph-prune.c. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/graph.h"

KS_BEGIN_DECLS

/* Offsets in bytes from the start of the device block, and of the host block. */
typedef struct ks_graph_layout {
  size_t ids, pos, first_global, first_local, last, rows; /* 32-bit integers that go in */
  size_t x, h;         /* [n_tok, n_embd]: the residual stream, and what was made of it */
  size_t q, k, v, att; /* [n_tok, heads, head_dim] */
  size_t f;            /* [n_tok, n_ff], and what a gate needs between its layers */
  size_t log_beta;     /* [n_tok, n_kv_head] of the layer at work */
  size_t x_rows;       /* [n_row + 1, n_embd]: the rows that leave the last layer */
  size_t logits;       /* [n_row, n_vocab] */
  size_t deep;         /* [n_deep, n_tok, n_embd]: features of the visual rows, packed in front */
  size_t deep_rows;    /* [n_tok]: the rows that they belong to */
  size_t last_rows;    /* [2, n_embd]: last rows of passes with a head, normed, in turn */
  size_t device_bytes;
  size_t host_logits, host_rows, host_deep_rows, host_bytes;
} ks_graph_layout;

/* Sizes for passes of up to n_tok tokens, n_row of which want logits; gate may be NULL.
 * False when a size overflows; *out is then worthless. */
KS_CHECK bool ks_graph_layout_init(ks_graph_layout *out, const ks_model_shape *shape,
                                   const ks_gate *gate, uint32_t n_tok, uint32_t n_row);

/* FastV: what is taken by the first pass that leaves rows out (graph-prune.c). */
typedef struct ks_graph_prune {
  ks_dptr dev; /* rows that go on, their sequence indices, the attention of the last row */
  size_t n_bytes;
  uint32_t *lists; /* [6, max_tok] */
  ks_prune_rank *ranks;
  uint32_t n_stay; /* rows of the pass at work that go on */
} ks_graph_prune;

struct ks_graph {
  ks_alloc *alloc;
  const ks_model *model;
  const ks_gate *gate;
  uint32_t max_tok, max_logit;
  ks_graph_layout layout;
  ks_dptr dev; /* the block that layout describes */
  unsigned char *host;
  uint64_t *mass_offset; /* [n_kv_head] of the layer that is being recorded */
  /* Taps, device and host: embed, each layer's output, final norm, then log_beta of every layer. */
  ks_dptr tap_dev;
  float *tap_host;
  bool has_taps;           /* of the last run */
  uint32_t n_tok, n_logit; /* of the last run */
  ks_pass_growth growth;   /* of the last run */
  ks_graph_prune prune;
  uint32_t kept; /* which of the last rows is that of the last run with a head */
  bool has_kept;
};

/* One pass while it is recorded. */
typedef struct ks_graph_pass {
  const ks_graph *g;
  const ks_graph_input *in;
  const ks_model_shape *s;
  const ks_backend_table *t;
  ks_dev *dev;
  ks_kv_view kv;
  uint32_t n_row;      /* rows that leave the last layer */
  ks_dptr x;           /* residual stream: all rows, later the chosen ones */
  uint32_t n_x;        /* rows in x: n_tok, behind FastV's layers fewer, at the end n_row */
  uint32_t n_deep_row; /* visual rows with features */
  uint64_t mass_at;    /* entries of the layers before */
  ks_graph_prune *prune;
  ks_dptr seq; /* u32 [n_x] sequence indices once they are not consecutive */
} ks_graph_pass;

/* Where a layer's log_beta begins in the taps, in floats. */
size_t ks_graph_tap_log_beta_at(const ks_graph *g, uint32_t layer);

/* graph-entries.c */
/* Floats a token that a gate needs between its layers. */
size_t ks_graph_count_gate_floats(const ks_gate *gate, const ks_model_shape *s);
/* What the gate says of the tokens of a pass, from the normed input or, LocRet's, from q, k and v
 * before they are rotated; *out_log_beta is left alone without a gate. */
ks_status ks_graph_record_gate(const ks_graph_pass *p, uint32_t layer, ks_dptr *out_log_beta);
/* What a policy wants of a layer: rotated queries, the attention of all queries. */
ks_status ks_graph_record_queries(const ks_graph_pass *p, uint32_t layer);
void ks_graph_ask_for_mass(ks_graph_pass *p, uint32_t layer, ks_op_attention *op);

/* graph-prune.c */
/* Layers that all rows of this pass go through: all of them where nothing is left out. */
uint32_t ks_graph_prune_get_layer(const ks_graph_pass *p);
KS_CHECK ks_status ks_graph_prune_begin(ks_graph_pass *p, ks_error *err);
void ks_graph_prune_done(ks_graph_prune *prune, const ks_backend *be);
/* Last in the step of these layers: what the last row looks at. */
KS_CHECK ks_status ks_graph_prune_record_look(const ks_graph_pass *p);
/* Between the steps: which rows go on, and everything about them to the device. */
KS_CHECK ks_status ks_graph_prune_choose(ks_graph_pass *p, ks_error *err);
/* First in the next step: the residual stream gets its fewer rows. */
KS_CHECK ks_status ks_graph_prune_record_rows(ks_graph_pass *p);

KS_END_DECLS
