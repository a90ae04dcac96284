/* cpu-norm.c - RMS and layer normalisation of rows. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-backend-internal.h"
#include "engine/cpu-vec-internal.h"

#include <math.h>

/* Per-head norms give many short rows, the others few long ones: rows are the unit of work. */
static void
norm_rows(const ks_cpu_ctx *ctx, const ks_op_norm *op, bool centred, uint32_t member,
          uint32_t n_member)
{
  const size_t n = op->n_col;
  const size_t x_stride = op->x_stride != 0 ? op->x_stride : n;
  const size_t out_stride = op->out_stride != 0 ? op->out_stride : n;
  const float *w = ks_cpu_ptr(op->w), *b = ks_cpu_ptr(op->b);
  const float *x = ks_cpu_ptr(op->x);
  float *out = ks_cpu_ptr(op->out);
  size_t begin, end;

  ks_cpu_slice(op->n_row, member, n_member, &begin, &end);
  for (size_t i = begin; i < end; i++) {
    const float *row = x + i * x_stride;
    const float mean = centred ? ctx->vec->sum(row, n) / (float)n : 0.0F;
    const float variance = ctx->vec->sum_squares(row, n, mean) / (float)n;

    ctx->vec->norm(out + i * out_stride, row, w, b, n, mean, 1.0F / sqrtf(variance + op->eps));
  }
}

void
ks_cpu_rms_norm(const ks_cpu_ctx *ctx, const ks_op_norm *op, uint32_t member, uint32_t n_member)
{
  norm_rows(ctx, op, false, member, n_member);
}

void
ks_cpu_layer_norm(const ks_cpu_ctx *ctx, const ks_op_norm *op, uint32_t member, uint32_t n_member)
{
  norm_rows(ctx, op, true, member, n_member);
}
