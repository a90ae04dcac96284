/* cpu-gather.c - row operations: embedding rows, kept rows, row sums, gated products, pooling. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-backend-internal.h"
#include "engine/cpu-split-internal.h"
#include "engine/cpu-vec-internal.h"
#include "engine/quant.h"

#include <string.h>

#define STORE_PART ((size_t)512) /* elements; a multiple of every block that is stored */

/* From the repacked copy where there is one: reading the file's would bring back its pages. */
static void
read_row(const ks_cpu_ctx *ctx, const ks_weight *w, size_t row, float *out)
{
  ks_split_form form;

  if (w->packed != 0)
    ks_packed_read_row(w->dtype, ks_cpu_ptr(w->packed),
                       ks_packed_strip_bytes(w->dtype, w->n_in, ctx->packed->strip_rows),
                       ctx->packed->strip_rows, row, out, w->n_in);
  else if (w->split != 0 && ks_split_get_form(w, ctx->packed->strip_rows, &form))
    ks_split_read_row(&form, ks_cpu_ptr(w->split), row, out);
  else
    ks_dequantise_row(w->dtype, (const unsigned char *)ks_cpu_ptr(w->data) + row * w->row_bytes,
                      out, w->n_in);
}

void
ks_cpu_gather_rows(const ks_cpu_ctx *ctx, const ks_op_gather_rows *op, uint32_t member,
                   uint32_t n_member)
{
  const int32_t *ids = ks_cpu_ptr(op->ids);
  float *out = ks_cpu_ptr(op->out);
  size_t begin, end;

  ks_cpu_slice(op->n_tok, member, n_member, &begin, &end);
  for (size_t t = begin; t < end; t++) {
    float *row = out + t * op->table.n_in;

    read_row(ctx, &op->table, (size_t)ids[t], row);
    if (op->scale != 1.0F)
      ctx->vec->scale(row, op->table.n_in, op->scale);
  }
}

/* One row, a part of whole blocks at a time. */
static void
store_row(const ks_cpu_ctx *ctx, const ks_op_store_rows *op, const float *src, unsigned char *out)
{
  const ks_dtype_info *info = ks_dtype_get_info(op->dtype);
  const ks_kv_kind kind = ks_kv_kind_get(op->dtype);
  float part[STORE_PART];

  for (size_t at = 0, n; at < op->n_col; at += n) {
    n = op->n_col - at < STORE_PART ? op->n_col - at : STORE_PART;
    memcpy(part, src + at, n * sizeof(*part));
    if (op->scale != 1.0F)
      ctx->vec->scale(part, n, op->scale);
    ctx->vec->pack[kind](out, part, n);
    out += n / info->block_elems * info->block_bytes;
  }
}

void
ks_cpu_store_rows(const ks_cpu_ctx *ctx, const ks_op_store_rows *op, uint32_t member,
                  uint32_t n_member)
{
  const float *src = ks_cpu_ptr(op->src);
  unsigned char *out = ks_cpu_ptr(op->out);
  size_t begin, end;

  ks_cpu_slice(op->n_row, member, n_member, &begin, &end);
  for (size_t i = begin; i < end; i++)
    store_row(ctx, op, src + i * op->n_col, out + i * op->out_row_bytes);
}

/* Members share the columns: with an index two rows may go to the same place. */
void
ks_cpu_add_rows(const ks_cpu_ctx *ctx, const ks_op_add_rows *op, uint32_t member, uint32_t n_member)
{
  const int32_t *idx = ks_cpu_ptr(op->idx);
  const float *src = ks_cpu_ptr(op->src);
  float *dst = ks_cpu_ptr(op->dst);
  size_t begin, end;

  ks_cpu_slice(op->n_col, member, n_member, &begin, &end);
  for (size_t i = 0; i < op->n_row; i++) {
    const size_t to = idx != NULL ? (size_t)idx[i] : i;

    ctx->vec->add(dst + to * op->n_col + begin, src + i * op->n_col + begin, end - begin);
  }
}

/* Members share rows, or columns when there are few rows (one token of a wide layer). */
void
ks_cpu_act_mul(const ks_cpu_ctx *ctx, const ks_op_act_mul *op, uint32_t member, uint32_t n_member)
{
  const size_t a_stride = op->a_stride != 0 ? op->a_stride : op->n_col;
  const size_t b_stride = op->b_stride != 0 ? op->b_stride : op->n_col;
  const size_t out_stride = op->out_stride != 0 ? op->out_stride : op->n_col;
  const float *a = ks_cpu_ptr(op->a), *b = ks_cpu_ptr(op->b);
  float *out = ks_cpu_ptr(op->out);
  size_t row = 0, end_row = op->n_row, col = 0, end_col = op->n_col;

  if (op->n_row >= n_member)
    ks_cpu_slice(op->n_row, member, n_member, &row, &end_row);
  else
    ks_cpu_slice(op->n_col, member, n_member, &col, &end_col);
  for (; row < end_row; row++)
    ctx->vec->act_mul(out + row * out_stride + col, a + row * a_stride + col,
                      b + row * b_stride + col, end_col - col, op->act);
}

void
ks_cpu_pool(const ks_cpu_ctx *ctx, const ks_op_pool *op, uint32_t member, uint32_t n_member)
{
  const size_t s = op->s, n = op->n_col, width = op->gw / s, height = op->gh / s;
  const float *in = ks_cpu_ptr(op->in);
  float *out = ks_cpu_ptr(op->out);
  size_t begin, end;

  ks_cpu_slice(width * height, member, n_member, &begin, &end);
  for (size_t cell = begin; cell < end; cell++) {
    const float *from = in + (cell / width * s * op->gw + cell % width * s) * n;

    memcpy(out + cell * n, from, n * sizeof(float));
    for (size_t i = 1; i < s * s; i++)
      ctx->vec->add(out + cell * n, from + (i / s * op->gw + i % s) * n, n);
    ctx->vec->scale(out + cell * n, n, 1.0F / (float)(s * s));
  }
}
