/* cpu-head-internal.h - what the two ways through the output matrix share: lists of the best, one
 * for each row and member, each a heap with the worst at its root, merged at the end.
 * Threads: a list belongs to its member until ks_head_merge. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/cpu-linear-internal.h"
#include "engine/cpu-vec-internal.h"

KS_BEGIN_DECLS

typedef struct ks_head_pair {
  float logit;
  int32_t id;
} ks_head_pair;

/* Of one row and member; followed by room for k pairs. */
typedef struct ks_head_best {
  uint32_t n, next; /* pairs, and the first one not yet merged */
} ks_head_best;

static inline size_t
ks_head_best_bytes(uint32_t k)
{
  return sizeof(ks_head_best) + k * sizeof(ks_head_pair);
}

/* The list at offset at of a member's scratch. */
static inline ks_head_best *
ks_head_get_best(const ks_cpu_ctx *ctx, uint32_t member, size_t at)
{
  return (ks_head_best *)(void *)((unsigned char *)ks_cpu_scratch(ctx, member) + at);
}

static inline ks_head_pair *
ks_head_get_pairs(ks_head_best *best)
{
  return (ks_head_pair *)(void *)(best + 1);
}

/* z: the logits of ids first .. first + n - 1, all larger than those the list has seen. */
void ks_head_offer(ks_head_best *best, uint32_t k, const float *z, size_t first, size_t n);
/* Best first; then nothing is offered any more. */
void ks_head_sort(ks_head_best *best);
/* Takes the members' sorted lists at offset at to the outputs of a row. */
void ks_head_merge(const ks_cpu_ctx *ctx, const ks_op_head *op, size_t row, size_t at,
                   uint32_t n_member);
float ks_head_cap(const ks_op_head *op, float z);
/* The operation as products of all rows. */
ks_op_linear ks_head_get_linear(const ks_op_head *op);

/* True when the halves of a split matrix say all that is asked for: one row, no sum over all. */
static inline bool
ks_head_is_split(const ks_op_head *op)
{
  return op->w.split != 0 && op->n_row == 1 && op->out_logsumexp == NULL;
}

/* cpu-head-split.c */
void ks_cpu_head_split_need(const ks_cpu_ctx *ctx, const ks_op_head *op, ks_cpu_need *need);
void ks_cpu_head_split(const ks_cpu_ctx *ctx, const ks_op_head *op, uint32_t member,
                       uint32_t n_member);

KS_END_DECLS
