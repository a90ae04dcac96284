/* cpu-train.c - the table of training operations: checks descriptors and records the kernels.
 * The gate's gradient is recorded as several: products with the kernels of linear and
 * linear_transposed (the gradient of a weight is one too: its "weight" is the input, its dy the
 * gradient transposed), and small parts between them.
 * Threads: one thread drives a device. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-train-internal.h"

#include <assert.h>

static ks_status
record(ks_dev *dev, ks_cpu_call_fn fn, const void *op, size_t n_bytes)
{
  const ks_cpu_need need = {0};

  return ks_cpu_record_call(dev, fn, op, n_bytes, &need) ? KS_OK : KS_ERR_NOMEM;
}

static ks_status
record_needing(ks_dev *dev, ks_cpu_call_fn fn, const void *op, size_t n_bytes,
               const ks_cpu_need *need)
{
  return ks_cpu_record_call(dev, fn, op, n_bytes, need) ? KS_OK : KS_ERR_NOMEM;
}

static ks_status
train_fill(ks_dev *dev, const ks_op_fill *op)
{
  return record(dev, ks_cpu_fill, op, sizeof(*op));
}

static ks_status
train_norm_back(ks_dev *dev, const ks_op_norm_back *op)
{
  return record(dev, ks_cpu_norm_back, op, sizeof(*op));
}

static ks_status
train_act_mul_back(ks_dev *dev, const ks_op_act_mul_back *op)
{
  assert((op->b == 0) == (op->db == 0));
  return record(dev, ks_cpu_act_mul_back, op, sizeof(*op));
}

static ks_status
train_rope_back(ks_dev *dev, const ks_op_rope *op)
{
  return ks_cpu_record_rope(dev, op, true);
}

static ks_status
train_attn_bias(ks_dev *dev, const ks_op_attn_bias *op)
{
  ks_cpu_need need = {0};

  ks_cpu_attn_bias_need(ks_cpu_get_ctx(dev), op, &need);
  return record_needing(dev, ks_cpu_attn_bias, op, sizeof(*op), &need);
}

static ks_status
train_attn_bias_back(ks_dev *dev, const ks_op_attn_bias_back *op)
{
  ks_cpu_need need = {0};

  assert(op->forward.logsumexp != 0 && op->d_out != 0);
  ks_cpu_attn_bias_back_need(ks_cpu_get_ctx(dev), op, &need);
  return record_needing(dev, ks_cpu_attn_bias_back, op, sizeof(*op), &need);
}

static ks_status
train_capacity(ks_dev *dev, const ks_op_capacity *op)
{
  ks_cpu_need need = {0};

  ks_cpu_capacity_need(ks_cpu_get_ctx(dev), op, &need);
  return record_needing(dev, ks_cpu_capacity, op, sizeof(*op), &need);
}

static ks_status
train_capacity_back(ks_dev *dev, const ks_op_capacity_back *op)
{
  ks_cpu_need need = {0};

  ks_cpu_capacity_back_need(ks_cpu_get_ctx(dev), op, &need);
  return record_needing(dev, ks_cpu_capacity_back, op, sizeof(*op), &need);
}

static ks_status
train_logit_loss(ks_dev *dev, const ks_op_logit_loss *op)
{
  assert(op->q != 0 && op->target != 0);
  return record(dev, ks_cpu_logit_loss, op, sizeof(*op));
}

static ks_status
train_square_loss(ks_dev *dev, const ks_op_square_loss *op)
{
  return record(dev, ks_cpu_square_loss, op, sizeof(*op));
}

/* --- the gate --- */

/* Where the parts of one gate's gradient lie. */
typedef struct gate_job {
  ks_dev *dev;
  const ks_op_gate_back *op;
  ks_dptr z1, u1, z2, u2, dz; /* in work; local gates leave z2 and u2 alone */
  uint32_t n_gate, n_embd, n_head;
} gate_job;

static ks_weight
rows_as_weight(ks_dptr rows, uint32_t n_row, uint32_t n_col)
{
  return (ks_weight){.data = rows,
                     .dtype = KS_DTYPE_F32,
                     .n_in = n_col,
                     .n_out = n_row,
                     .row_bytes = n_col * sizeof(float)};
}

/* y = w x + bias */
static ks_status
record_hidden(const gate_job *j, const ks_weight *w, ks_dptr bias, ks_dptr x, ks_dptr y)
{
  const ks_op_linear op = {
      .n_w = 1, .w = {*w}, .bias = {bias}, .x = x, .y = {y}, .n_tok = j->op->n_tok, .exact = true};

  return ks_cpu_backend_entry()->linear(j->dev, &op);
}

/* dw += d^T x and db += sums of d, with turned = d transposed, [n_out, n_tok]. */
static ks_status
record_weight_back(const gate_job *j, ks_dptr turned, uint32_t n_out, ks_dptr x, uint32_t n_in,
                   ks_dptr dw, ks_dptr db)
{
  const ks_op_linear_t product = {.w = rows_as_weight(x, j->op->n_tok, n_in),
                                  .dy = turned,
                                  .dx = dw,
                                  .n_tok = n_out,
                                  .accumulate = true};
  const ks_cpu_row_sums sums = {.x = turned, .out = db, .n_row = n_out, .n_col = j->op->n_tok};
  ks_status st = ks_cpu_record_transposed(j->dev, &product);

  return st == KS_OK ? record(j->dev, ks_cpu_add_row_sums, &sums, sizeof(sums)) : st;
}

/* A part between the products, on hidden layer z and work u. */
static ks_status
record_part(const gate_job *j, ks_cpu_call_fn fn, ks_dptr z, ks_dptr u)
{
  const ks_cpu_gate_part part = {.z = z,
                                 .u = u,
                                 .w = j->op->w3.data,
                                 .log_beta = j->op->log_beta,
                                 .d_log_beta = j->op->d_log_beta,
                                 .dz = j->dz,
                                 .n_tok = j->op->n_tok,
                                 .n_gate = j->n_gate,
                                 .n_kv_head = j->n_head,
                                 .act = j->op->act};

  return record(j->dev, fn, &part, sizeof(part));
}

/* The hidden layers, before (z) and behind (u) their activation. */
static ks_status
record_gate_forward(const gate_job *j)
{
  const ks_op_gate_back *op = j->op;
  ks_status st = record_hidden(j, &op->w1, op->b1, op->x, j->z1);

  if (st == KS_OK)
    st = record_part(j, ks_cpu_gate_act, j->z1, j->u1);
  if (st == KS_OK && op->w2.data != 0)
    st = record_hidden(j, &op->w2, op->b2, j->u1, j->z2);
  if (st == KS_OK && op->w2.data != 0)
    st = record_part(j, ks_cpu_gate_act, j->z2, j->u2);
  return st;
}

/* From dz to the gradient of the last hidden layer, in z; u is free behind that. */
static ks_status
record_gate_output(const gate_job *j, ks_dptr z, ks_dptr u)
{
  const ks_op_gate_back *op = j->op;
  ks_status st = record_part(j, ks_cpu_gate_out_back, z, u);

  if (st == KS_OK)
    st = record_weight_back(j, j->dz, j->n_head, u, j->n_gate, op->dw3, op->db3);
  return st == KS_OK ? record_part(j, ks_cpu_gate_last_back, z, u) : st;
}

/* From the second hidden layer's gradient, in z2, to the first one's, in z1. */
static ks_status
record_gate_second(const gate_job *j)
{
  const ks_op_gate_back *op = j->op;
  const ks_op_linear_t product = {.w = op->w2, .dy = j->z2, .dx = j->u1, .n_tok = op->n_tok};
  ks_status st = record_part(j, ks_cpu_gate_turn, j->z2, j->u2);

  if (st == KS_OK)
    st = record_weight_back(j, j->u2, j->n_gate, j->u1, j->n_gate, op->dw2, op->db2);
  if (st == KS_OK)
    st = ks_cpu_record_transposed(j->dev, &product);
  return st == KS_OK ? record_part(j, ks_cpu_gate_hidden_back, j->z1, j->u1) : st;
}

static ks_status
record_gate_first(const gate_job *j)
{
  const ks_op_gate_back *op = j->op;
  const ks_op_linear_t product = {.w = op->w1,
                                  .dy = j->z1,
                                  .dx = op->dx,
                                  .n_tok = op->n_tok,
                                  .dx_stride = op->dx_stride,
                                  .accumulate = true};
  ks_status st = record_part(j, ks_cpu_gate_turn, j->z1, j->u1);

  if (st == KS_OK)
    st = record_weight_back(j, j->u1, j->n_gate, op->x, j->n_embd, op->dw1, op->db1);
  if (st != KS_OK || op->dx == 0)
    return st;
  return ks_cpu_record_transposed(j->dev, &product);
}

static ks_status
train_gate_back(ks_dev *dev, const ks_op_gate_back *op)
{
  const size_t plane = (size_t)op->n_tok * op->w1.n_out * sizeof(float);
  const gate_job j = {.dev = dev,
                      .op = op,
                      .z1 = op->work,
                      .u1 = op->work + plane,
                      .z2 = op->work + 2 * plane,
                      .u2 = op->work + 3 * plane,
                      .dz = op->work + 4 * plane,
                      .n_gate = op->w1.n_out,
                      .n_embd = op->w1.n_in,
                      .n_head = op->w3.n_out};
  const bool deep = op->w2.data != 0;
  ks_status st = record_gate_forward(&j);

  assert(op->w1.dtype == KS_DTYPE_F32 && op->w3.dtype == KS_DTYPE_F32);
  if (st == KS_OK)
    st = deep ? record_gate_output(&j, j.z2, j.u2) : record_gate_output(&j, j.z1, j.u1);
  if (st == KS_OK && deep)
    st = record_gate_second(&j);
  return st == KS_OK ? record_gate_first(&j) : st;
}

const ks_train_table ks_cpu_train_table = {
    .fill = train_fill,
    .linear_transposed = ks_cpu_record_transposed,
    .norm_back = train_norm_back,
    .act_mul_back = train_act_mul_back,
    .rope_back = train_rope_back,
    .attn_bias = train_attn_bias,
    .attn_bias_back = train_attn_bias_back,
    .gate_back = train_gate_back,
    .capacity = train_capacity,
    .capacity_back = train_capacity_back,
    .logit_loss = train_logit_loss,
    .square_loss = train_square_loss,
};
