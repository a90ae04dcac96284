/* backend-train.h - the operations that only training needs: a second table, all of it or none.
 * They are recorded between step_begin and step_end like the others, run in order, and are exact
 * in every compute mode; their results are the same to the last bit for any number of threads.
 * Activations, gradients and the gate's weights are f32, shapes row-major.  "=" outputs are
 * overwritten, "+=" outputs are added to.  n_tok rows are the tokens of one packed sequence; ages
 * t - j are differences of row numbers; first[t] is the first row that row t may see: the start of
 * its document or of its sliding window.
 * Over 200 lines because the descriptors are one contract.
 * Threads: one thread drives a device.  Source: docs/method.md, section 11. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/backend.h"

KS_BEGIN_DECLS

/* x = value, n_elem floats. */
typedef struct ks_op_fill {
  ks_dptr x;
  uint64_t n_elem;
  float value;
} ks_op_fill;

/* The gradient of linear with respect to its input, dx = dy w or dx += dy w. */
typedef struct ks_op_linear_t {
  ks_weight w; /* read through data */
  ks_dptr dy;  /* f32 [n_tok, n_out] */
  ks_dptr dx;  /* f32 [n_tok, n_in] */
  uint32_t n_tok;
  size_t dy_stride, dx_stride; /* floats from row to row; 0 = dense */
  bool accumulate;
} ks_op_linear_t;

/* rms_norm, with respect to its input only: with r = 1 / rms(x), g = dy * w,
 * dx (+)= r (g - x r^2 mean(g x)). */
typedef struct ks_op_norm_back {
  ks_dptr x, dy, dx; /* f32, rows of n_col; x as the forward operation read it; dx may be dy */
  ks_dptr w;         /* f32 [n_col] or 0 = ones */
  uint32_t n_row, n_col;
  size_t x_stride, dy_stride, dx_stride; /* floats from row to row; 0 = n_col */
  float eps;
  bool accumulate;
} ks_op_norm_back;

/* y = act(a) * b:  da = dy b act'(a),  db = dy act(a).  da may be a, db may be b, either dy. */
typedef struct ks_op_act_mul_back {
  ks_dptr a, b, dy, da, db; /* f32 [n_row, n_col]; b and db 0: y = act(a) */
  uint32_t n_row, n_col;
  size_t a_stride, b_stride, dy_stride, da_stride, db_stride; /* floats; 0 = n_col */
  ks_act act;
} ks_op_act_mul_back;

/* Attention of one layer over its own dense rows, with a bias by age for every key:
 *   l[i, j] = q_i . k_j * scale + max(0, at[i] - j) * log_beta[j, g],  first[i] <= j <= last[i],
 * g the KV head of the query head; out = sum softmax(l) v; a query that sees nothing gives 0 and
 * logsumexp -inf.  Nothing [n_tok, n_tok] is stored. */
typedef struct ks_op_attn_bias {
  ks_dptr q;           /* f32 [n_q, n_head, k_dim] */
  ks_dptr k, v;        /* f32 [n_tok, n_kv_head, k_dim | v_dim] */
  ks_dptr log_beta;    /* f32 [n_tok, n_kv_head]; 0 = no bias (the teacher) */
  ks_dptr out;         /* f32 [n_q, n_head, v_dim] = */
  ks_dptr logsumexp;   /* f32 [n_q, n_head] =, of l; 0 = not wanted */
  ks_dptr at;          /* u32 [n_q], rising: the rows that the queries are; 0 = 0 .. n_q - 1 */
  ks_dptr first, last; /* u32 [n_q], not falling; 0 = zeros, and at */
  uint32_t n_q, n_tok, n_head, n_kv_head, k_dim, v_dim;
  size_t q_stride, k_stride, v_stride; /* floats from row to row; 0 = dense */
  float scale;
} ks_op_attn_bias;

/* Its gradient.  dq, dk, dv are dense; any of dq, dk, dv, d_log_beta may be 0 = not wanted. */
typedef struct ks_op_attn_bias_back {
  ks_op_attn_bias forward; /* with out and logsumexp as the forward operation left them */
  ks_dptr d_out;           /* f32 [n_q, n_head, v_dim] */
  ks_dptr dq;              /* f32 [n_q, n_head, k_dim] = */
  ks_dptr dk, dv;          /* f32 [n_tok, n_kv_head, k_dim | v_dim] = */
  ks_dptr d_log_beta; /* f32 [n_tok, n_kv_head] += sum over i and the group of max(0, at[i] - j)
                        dl[i, j] */
} ks_op_attn_bias_back;

/* The gate from d_log_beta back.  Everything is made anew from x: the forward operation has nothing
 * to keep but log_beta.  Local gates have w2.data 0 (then dw2, db2 are not read). */
typedef struct ks_op_gate_back {
  ks_weight w1, w2, w3; /* F32, dense rows */
  ks_dptr b1, b2, b3;
  ks_dptr x;                    /* f32 [n_tok, n_embd] */
  ks_dptr log_beta, d_log_beta; /* f32 [n_tok, n_kv_head] */
  ks_dptr dw1, dw2, dw3;        /* f32 [n_gate, n_embd], [n_gate, n_gate], [n_kv_head, n_gate] += */
  ks_dptr db1, db2, db3;        /* f32 += */
  ks_dptr dx;                   /* f32 [n_tok, n_embd] +=; 0 = not wanted */
  ks_dptr work;                 /* f32, ks_gate_back_get_n_work of them */
  uint32_t n_tok;
  size_t dx_stride; /* floats; 0 = dense */
  ks_act act;
} ks_op_gate_back;

static inline uint64_t
ks_gate_back_get_n_work(uint64_t n_tok, uint64_t n_gate, uint64_t n_kv_head)
{
  return n_tok * (4 * n_gate + n_kv_head);
}

/* Soft size of the cache: size[t] += sum over j from first[t] to t of exp((t - j) log_beta[j, h]),
 * over all h, or for each h by itself. */
typedef struct ks_op_capacity {
  ks_dptr log_beta; /* f32 [n_tok, n_kv_head] */
  ks_dptr first;    /* u32 [n_tok], not falling, first[t] <= t; 0 = all zeros */
  ks_dptr size;     /* f32 [n_tok], per_head: [n_tok, n_kv_head]; += */
  uint32_t n_tok, n_kv_head;
  bool per_head;
} ks_op_capacity;

/* d_log_beta[j, h] += sum over the t that see j of d_size[t] (t - j) exp((t - j) log_beta[j, h]).
 */
typedef struct ks_op_capacity_back {
  ks_op_capacity forward;
  ks_dptr d_size;     /* f32, shaped like size, which is not read */
  ks_dptr d_log_beta; /* f32 [n_tok, n_kv_head] += */
} ks_op_capacity_back;

/* Losses of a block of positions between logits of the teacher and of the student; with cap > 0
 * both are cap * tanh(z / cap) of what is given.
 *   kl[i] = KL(softmax(p_i) || softmax(q_i)),  ce[i] = -log softmax(q_i)[target[i]],
 *   dq = w_kl[i] (softmax(q) - softmax(p)) + w_ce[i] (softmax(q) - 1[target]), times d(cap)/dz. */
typedef struct ks_op_logit_loss {
  ks_dptr p;          /* f32 [n_row, n_vocab]; 0 = no teacher: kl and w_kl are not read */
  ks_dptr q, dq;      /* f32 [n_row, n_vocab]; dq = , may be q; 0 = losses only */
  ks_dptr target;     /* i32 [n_row]; below 0: no next token, ce 0 */
  ks_dptr w_kl, w_ce; /* f32 [n_row]: weights of the two losses in the gradient; 0 = all zeros */
  ks_dptr kl, ce;     /* f32 [n_row] =, without weights; 0 = not wanted */
  uint32_t n_row, n_vocab;
  float cap;
} ks_op_logit_loss;

/* Distance of two arrays over the energy of a third, row by row:
 *   loss[i] += |a_i - b_i|^2 / |ref_i|^2,   da = weight[i] times its gradient in a.
 * A row of ref that is all zeros gives nothing. */
typedef struct ks_op_square_loss {
  ks_dptr a, b, ref; /* f32 [n_row, n_col] */
  ks_dptr weight;    /* f32 [n_row]; 0 = ones */
  ks_dptr loss;      /* f32 [n_row] +=, without weights; 0 = not wanted */
  ks_dptr da;        /* f32 [n_row, n_col] =, may be a; 0 = not wanted */
  uint32_t n_row, n_col;
} ks_op_square_loss;

typedef struct ks_train_table {
  ks_status (*fill)(ks_dev *dev, const ks_op_fill *op);
  ks_status (*linear_transposed)(ks_dev *dev, const ks_op_linear_t *op);
  ks_status (*norm_back)(ks_dev *dev, const ks_op_norm_back *op);
  ks_status (*act_mul_back)(ks_dev *dev, const ks_op_act_mul_back *op);
  /* The gradient of rope, in place: turns back by the same angles, times mscale. */
  ks_status (*rope_back)(ks_dev *dev, const ks_op_rope *op);
  ks_status (*attn_bias)(ks_dev *dev, const ks_op_attn_bias *op);
  ks_status (*attn_bias_back)(ks_dev *dev, const ks_op_attn_bias_back *op);
  ks_status (*gate_back)(ks_dev *dev, const ks_op_gate_back *op);
  ks_status (*capacity)(ks_dev *dev, const ks_op_capacity *op);
  ks_status (*capacity_back)(ks_dev *dev, const ks_op_capacity_back *op);
  ks_status (*logit_loss)(ks_dev *dev, const ks_op_logit_loss *op);
  ks_status (*square_loss)(ks_dev *dev, const ks_op_square_loss *op);
} ks_train_table;

KS_END_DECLS
