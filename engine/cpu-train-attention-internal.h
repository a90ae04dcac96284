/* cpu-train-attention-internal.h - how attention with a bias by age is cut, forward and back.
 * Threads: pure functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/cpu-attention-internal.h"
#include "engine/cpu-train-internal.h"

#include <string.h>

KS_BEGIN_DECLS

typedef struct ks_bias_shape {
  size_t n_head, n_kv_head, group;     /* group: query heads of a KV head */
  size_t tile_q, max_row;              /* queries of a tile, and rows: times group */
  size_t n_tile, n_block;              /* tiles of queries, blocks of KS_ATTN_KEYS keys */
  size_t q_stride, k_stride, v_stride; /* floats */
} ks_bias_shape;

ks_bias_shape ks_bias_shape_get(const ks_op_attn_bias *op);

/* Query i: its row, and the rows lo .. hi - 1 that it sees. */
typedef struct ks_bias_query {
  uint32_t at, lo, hi;
} ks_bias_query;

ks_bias_query ks_bias_query_get(const ks_op_attn_bias *op, size_t i);

/* log_beta of one head for rows first .. first + n - 1. */
void ks_bias_load_beta(const ks_op_attn_bias *op, float *to, size_t first, size_t n,
                       size_t kv_head);
/* n rows of dim floats into rows pad apart. */
void ks_bias_load_rows(float *to, size_t pad, const float *from, size_t stride, size_t n,
                       size_t dim);

KS_END_DECLS
