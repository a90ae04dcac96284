/* cpu-train-internal.h - the operations of training on the CPU.
 * Each stands alone between two barriers of the recorded step, as ks_cpu_call.  A kernel does its
 * member's share and may hold barriers (phases) of its own.  Every number is summed in an order
 * that does not depend on the number of members: a run of training can be repeated to the last bit.
 * Threads: as in cpu-backend-internal.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/backend-train.h"
#include "engine/cpu-backend-internal.h"

KS_BEGIN_DECLS

/* A kernel with its descriptor untyped, so that the step needs one kind of record for all. */
typedef void (*ks_cpu_call_fn)(const ks_cpu_ctx *ctx, const void *op, uint32_t member,
                               uint32_t n_member);

/* A recorded one; its descriptor follows. */
typedef struct ks_cpu_call {
  ks_cpu_call_fn fn;
  uint64_t unused; /* so that the descriptor begins at a multiple of 16 */
} ks_cpu_call;

/* Records a kernel with a copy of its descriptor; false without memory. */
bool ks_cpu_record_call(ks_dev *dev, ks_cpu_call_fn fn, const void *op, size_t n_bytes,
                        const ks_cpu_need *need);
/* Records the rotation, back: by the negative angles. */
ks_status ks_cpu_record_rope(ks_dev *dev, const ks_op_rope *op, bool back);
/* As the table's entry. */
ks_status ks_cpu_record_transposed(ks_dev *dev, const ks_op_linear_t *op);

extern const ks_train_table ks_cpu_train_table;

void ks_cpu_fill(const ks_cpu_ctx *ctx, const void *op, uint32_t member, uint32_t n_member);
void ks_cpu_norm_back(const ks_cpu_ctx *ctx, const void *op, uint32_t member, uint32_t n_member);
void ks_cpu_act_mul_back(const ks_cpu_ctx *ctx, const void *op, uint32_t member, uint32_t n_member);
void ks_cpu_logit_loss(const ks_cpu_ctx *ctx, const void *op, uint32_t member, uint32_t n_member);
void ks_cpu_square_loss(const ks_cpu_ctx *ctx, const void *op, uint32_t member, uint32_t n_member);

void ks_cpu_attn_bias_need(const ks_cpu_ctx *ctx, const ks_op_attn_bias *op, ks_cpu_need *need);
void ks_cpu_attn_bias(const ks_cpu_ctx *ctx, const void *op, uint32_t member, uint32_t n_member);
void ks_cpu_attn_bias_back_need(const ks_cpu_ctx *ctx, const ks_op_attn_bias_back *op,
                                ks_cpu_need *need);
void ks_cpu_attn_bias_back(const ks_cpu_ctx *ctx, const void *op, uint32_t member,
                           uint32_t n_member);

void ks_cpu_capacity_need(const ks_cpu_ctx *ctx, const ks_op_capacity *op, ks_cpu_need *need);
void ks_cpu_capacity(const ks_cpu_ctx *ctx, const void *op, uint32_t member, uint32_t n_member);
void ks_cpu_capacity_back_need(const ks_cpu_ctx *ctx, const ks_op_capacity_back *op,
                               ks_cpu_need *need);
void ks_cpu_capacity_back(const ks_cpu_ctx *ctx, const void *op, uint32_t member,
                          uint32_t n_member);

/* The gate's gradient is recorded in parts, most of them products; these stand between them. */
typedef struct ks_cpu_gate_part {
  ks_dptr z, u; /* f32 [n_tok, n_gate]: a hidden layer before its activation, and work */
  ks_dptr w;    /* f32 [n_kv_head, n_gate]: the output layer */
  ks_dptr log_beta, d_log_beta, dz; /* f32 [n_tok, n_kv_head], dz [n_kv_head, n_tok] */
  uint32_t n_tok, n_gate, n_kv_head;
  ks_act act;
} ks_cpu_gate_part;

/* Sums of rows, added to what is there. */
typedef struct ks_cpu_row_sums {
  ks_dptr x, out; /* f32 [n_row, n_col], f32 [n_row] += */
  uint32_t n_row, n_col;
} ks_cpu_row_sums;

/* u = act(z). */
void ks_cpu_gate_act(const ks_cpu_ctx *ctx, const void *part, uint32_t member, uint32_t n_member);
/* dz from d_log_beta, transposed. */
void ks_cpu_gate_out_back(const ks_cpu_ctx *ctx, const void *part, uint32_t member,
                          uint32_t n_member);
/* z becomes its gradient: (dz w) act'(z). */
void ks_cpu_gate_last_back(const ks_cpu_ctx *ctx, const void *part, uint32_t member,
                           uint32_t n_member);
/* z becomes its gradient: u act'(z). */
void ks_cpu_gate_hidden_back(const ks_cpu_ctx *ctx, const void *part, uint32_t member,
                             uint32_t n_member);
/* u becomes z transposed. */
void ks_cpu_gate_turn(const ks_cpu_ctx *ctx, const void *part, uint32_t member, uint32_t n_member);
void ks_cpu_add_row_sums(const ks_cpu_ctx *ctx, const void *op, uint32_t member, uint32_t n_member);

/* Row t's u32 of an array that may be absent. */
static inline uint32_t
ks_cpu_index(ks_dptr array, size_t i, uint32_t otherwise)
{
  return array != 0 ? ((const uint32_t *)ks_cpu_ptr(array))[i] : otherwise;
}

KS_END_DECLS
