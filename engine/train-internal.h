/* train-internal.h - what the files of the trainer share: the gate's numbers in one row, the places
 * of all buffers, and the recording of a step.
 * Never included outside engine/train*.c and the trainer's tests. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/backend-train.h"
#include "engine/train.h"

KS_BEGIN_DECLS

/* The gate's sizes; all its numbers lie in one row, each tensor padded to a multiple of 16. */
typedef struct ks_train_gate {
  uint32_t n_layer, n_embd, n_kv_head, n_gate;
  bool is_local, is_tied;
  ks_act act;
  size_t n_param;
} ks_train_gate;

typedef enum ks_train_part {
  KS_TRAIN_W1,
  KS_TRAIN_B1,
  KS_TRAIN_W2,
  KS_TRAIN_B2,
  KS_TRAIN_W3,
  KS_TRAIN_B3,
  KS_TRAIN_N_PART
} ks_train_part;

/* One tensor of the row: its place, and its shape (n_col 0: a vector of n_row).  A local gate has
 * no W2 and B2: n_row is 0. */
typedef struct ks_train_tensor {
  size_t at;
  uint32_t n_row, n_col;
} ks_train_tensor;

/* Sizes of the gate that a trainer of these settings works on; n_param overflows to SIZE_MAX. */
ks_train_gate ks_train_gate_of(const ks_model *model, const ks_gate *gate,
                               const ks_train_params *params);
ks_train_tensor ks_train_find(const ks_train_gate *gate, uint32_t layer, ks_train_part part);

/* Activations of one layer that its gradient reads, rows of n_tok.  Layers without room of their
 * own share one set, which is made anew on the way back. */
typedef struct ks_train_acts {
  ks_dptr q_raw, k_raw; /* before the norms of heads; q and k themselves where there are none */
  ks_dptr q, k, v, att, lse;
  ks_dptr x_mid;        /* residual stream between attention and feed-forward */
  ks_dptr a, b;         /* feed-forward: what the activation reads, what it is multiplied by */
  ks_dptr y_att, y_ffn; /* what the blocks return, before a norm behind them; 0 without one */
} ks_train_acts;

/* Device memory, f32 but for the integers; n is max_tok. */
typedef struct ks_train_dev {
  ks_dptr ids, pos;                  /* i32 [n], [3, n] */
  ks_dptr first[2], last;            /* u32 [n]; first of global and of window layers */
  ks_dptr rows;                      /* i32 [n]: rows that the loss looks at */
  ks_dptr row_first[2], row_last;    /* u32 [n]: the same three of these rows (LOCAL) */
  ks_dptr target;                    /* i32 [n] of rows (METHOD) */
  ks_dptr weight[2];                 /* [n] of rows: KL and CE, or mismatch */
  ks_dptr deep, deep_rows;           /* [n_deep, max_visual, n_embd], i32 [max_visual] */
  ks_dptr params, grad;              /* [n_param] */
  ks_dptr x;                         /* [n_layer + 1, n, n_embd]: what enters each layer */
  ks_dptr h, f;                      /* [n, n_embd], [n, n_ff] */
  ks_dptr work;                      /* of the gate, forward and back */
  ks_dptr log_beta, d_log_beta;      /* [n_layer, n, n_kv_head] */
  ks_dptr size, d_size;              /* [n], or per stream [n_layer, n, n_kv_head] */
  ks_dptr t_rows, s_rows, s_raw;     /* [n, n_embd]: rows of teacher and student, normed; raw */
  ks_dptr d_rows;                    /* [n, n_embd] */
  ks_dptr p, q;                      /* [block_row, n_vocab] */
  ks_dptr loss[2];                   /* [n] of rows: KL and CE, or mismatch */
  ks_dptr dx, dh, dq, dk, dv, d_att; /* [n, ...] */
  ks_train_acts shared;
} ks_train_dev;

/* Host memory. */
typedef struct ks_train_host {
  ks_train_acts *acts; /* [n_layer]: own room, or the shared set */
  int32_t *pos, *rows, *target, *deep_rows;
  uint32_t *first[2], *last, *doc, *row_first[2], *row_last; /* doc: first row of each document */
  float *token_weight; /* [n] how much the token behind counts */
  float *share;        /* [n] of rows: their part of the loss, 1 in all */
  float *weight[2], *loss[2], *size, *d_size, *log_beta;
  float *params, *grad, *m, *v;
} ks_train_host;

typedef struct ks_train_plan {
  uint32_t n_kept;    /* layers that keep their activations: the last ones */
  uint32_t block_row; /* rows of logits at a time */
  uint64_t dev_bytes, host_bytes;
} ks_train_plan;

/* Counts, and places what base (0: nothing) begins.  False when a size overflows. */
KS_CHECK bool ks_train_place(const ks_model *model, const ks_train_gate *gate,
                             const ks_train_params *params, ks_dptr dev_base, void *host_base,
                             ks_train_dev *dev, ks_train_host *host, ks_train_plan *out);

struct ks_trainer {
  ks_alloc *alloc;
  const ks_model *model;
  ks_backend *be;
  ks_train_params params;
  ks_train_gate gate;
  ks_train_plan plan;
  ks_train_dev dev;
  ks_train_host host;
  ks_dptr dev_base;
  void *host_base;
  uint32_t step; /* done, over all stages */
};

/* One step of the device while it is recorded.  The first failure stays in st and the rest is not
 * recorded. */
typedef struct ks_train_pass {
  ks_trainer *tr;
  const ks_model_shape *s;
  const ks_backend_table *t;
  const ks_train_table *tt;
  ks_dev *dev;
  const ks_train_dev *d;
  const ks_train_batch *batch;
  uint32_t n_tok, n_row, n_deep_row;
  bool want_grad;
  ks_status st;
} ks_train_pass;

/* train-input.c: checks the batch, fills the host's integers and weights, uploads them.  n_row is
 * the number of rows that count. */
KS_CHECK ks_status ks_train_input(ks_train_pass *p, ks_train_stage_kind kind, uint32_t *out_counted,
                                  ks_error *err);

/* train-forward.c. */
void ks_train_embed(ks_train_pass *p); /* rows of x[0] */
/* Layer index on its way from the normed input in h through x_in -> x_mid -> x_out (one place or
 * three).  log_beta set: attention biased by age.  keep: a and b by themselves, for the gradient,
 * else f at once. */
void ks_train_layer_attention(ks_train_pass *p, uint32_t index, ks_dptr x_in, ks_dptr x_mid,
                              const ks_train_acts *acts, ks_dptr log_beta);
void ks_train_layer_hidden(ks_train_pass *p, uint32_t index, ks_dptr x_mid,
                           const ks_train_acts *acts, bool keep);
void ks_train_layer_out(ks_train_pass *p, uint32_t index, ks_dptr x_mid, ks_dptr x_out,
                        const ks_train_acts *acts, bool kept);
/* y_ffn alone, from a and b. */
void ks_train_layer_y_ffn(ks_train_pass *p, uint32_t index, const ks_train_acts *acts);
/* log_beta of a layer from the normed input in h, and its share of the soft size. */
void ks_train_gate_forward(ks_train_pass *p, uint32_t index);
/* Small recordings. */
void ks_train_copy(ks_train_pass *p, ks_dptr dst, ks_dptr src, uint32_t n_row, uint32_t n_col);
void ks_train_pick(ks_train_pass *p, ks_dptr dst, ks_dptr src, uint32_t n_col);
void ks_train_norm(ks_train_pass *p, ks_dptr out, ks_dptr x, ks_dptr w, uint32_t n_row,
                   uint32_t n_col);
void ks_train_linear(ks_train_pass *p, const ks_weight *w, ks_dptr bias, ks_dptr x, ks_dptr y,
                     uint32_t n_row, ks_epilogue epilogue);
void ks_train_add(ks_train_pass *p, ks_dptr dst, ks_dptr src, ks_dptr idx, uint32_t n_row);
void ks_train_fill(ks_train_pass *p, ks_dptr x, uint64_t n);
ks_op_rope ks_train_rope(const ks_train_pass *p, const ks_layer *layer, ks_dptr q, ks_dptr k);
ks_op_attn_bias ks_train_attention(const ks_train_pass *p, const ks_layer *layer,
                                   const ks_train_acts *acts, ks_dptr log_beta);
ks_dptr ks_train_x(const ks_train_pass *p, uint32_t index);
ks_dptr ks_train_plane(const ks_train_pass *p, ks_dptr planes, uint32_t index);
ks_gate_layer ks_train_gate_layer(const ks_trainer *tr, uint32_t index, ks_dptr row);

/* train-backward.c: dx, the gradient of x[index + 1], becomes that of x[index]. */
void ks_train_layer_back(ks_train_pass *p, uint32_t index);
void ks_train_gate_back(ks_train_pass *p, uint32_t index, ks_dptr dh);
void ks_train_linear_t(ks_train_pass *p, const ks_weight *w, ks_dptr dy, ks_dptr dx, uint32_t n_row,
                       bool accumulate);
void ks_train_norm_back(ks_train_pass *p, ks_dptr x, ks_dptr w, ks_dptr dy, ks_dptr dx,
                        uint32_t n_row, uint32_t n_col, bool accumulate);

/* train-passes.c: what a stage records before the soft size is known, and behind it. */
void ks_train_method_forward(ks_train_pass *p);
void ks_train_method_back(ks_train_pass *p);
void ks_train_local_forward(ks_train_pass *p);
void ks_train_local_back(ks_train_pass *p);

/* train-capacity.c: the term of sizes [n_plane, n_tok, n_col], each the sum over n_stream streams,
 * and weight times its gradient (d_size may be NULL).  doc[t] is the first row of t's document. */
double ks_train_capacity_term(const ks_train_params *params, const float *size, const uint32_t *doc,
                              uint32_t n_plane, uint32_t n_tok, uint32_t n_col, uint32_t n_stream,
                              float *d_size);

/* train-input.c: at most n of the rows with weight, by even steps through the cumulated weights
 * from a random start; a row that is met k times gets the share k / n.  Returns how many. */
uint32_t ks_train_sample_rows(const float *weight, uint32_t n_tok, uint32_t n, uint64_t seed,
                              int32_t *rows, float *share);
/* A number from [0, 1); the state moves on. */
double ks_train_random(uint64_t *state);
/* train-state.c: start values. */
void ks_train_init_gate(const ks_train_gate *gate, const ks_train_params *params, float *row);

KS_END_DECLS
