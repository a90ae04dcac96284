/* cpu-train-rows.c - gradients and losses of single rows: norm, activation, logits, distance.
 * Rows are the unit of work.  Threads: kernels run on all members.
 * Source: docs/method.md, section 11. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-train-internal.h"
#include "engine/cpu-vec-internal.h"

#include <math.h>

static size_t
stride_or(size_t stride, size_t n_col)
{
  return stride != 0 ? stride : n_col;
}

void
ks_cpu_fill(const ks_cpu_ctx *ctx, const void *op, uint32_t member, uint32_t n_member)
{
  const ks_op_fill *fill = op;
  float *x = ks_cpu_ptr(fill->x);
  size_t begin, end;

  (void)ctx;
  ks_cpu_slice(fill->n_elem, member, n_member, &begin, &end);
  for (size_t i = begin; i < end; i++)
    x[i] = fill->value;
}

/* With r = 1 / rms and g = dy w: dx = r g - x r^3 mean(g x). */
void
ks_cpu_norm_back(const ks_cpu_ctx *ctx, const void *op, uint32_t member, uint32_t n_member)
{
  const ks_op_norm_back *back = op;
  const size_t n = back->n_col;
  const float *x = ks_cpu_ptr(back->x), *dy = ks_cpu_ptr(back->dy), *w = ks_cpu_ptr(back->w);
  float *dx = ks_cpu_ptr(back->dx);
  size_t begin, end;

  ks_cpu_slice(back->n_row, member, n_member, &begin, &end);
  for (size_t i = begin; i < end; i++) {
    const float *row = x + i * stride_or(back->x_stride, n);
    const float *dy_row = dy + i * stride_or(back->dy_stride, n);
    const float mean = ctx->vec->sum_squares(row, n, 0.0F) / (float)n + back->eps;
    const float r = 1.0F / sqrtf(mean);
    const float across = ctx->vec->dot3(dy_row, row, w, n) / (float)n * r / mean;

    ctx->vec->norm_back(dx + i * stride_or(back->dx_stride, n), row, w, dy_row, n, r, across,
                        back->accumulate);
  }
}

void
ks_cpu_act_mul_back(const ks_cpu_ctx *ctx, const void *op, uint32_t member, uint32_t n_member)
{
  const ks_op_act_mul_back *back = op;
  const size_t n = back->n_col;
  const float *a = ks_cpu_ptr(back->a), *b = ks_cpu_ptr(back->b), *dy = ks_cpu_ptr(back->dy);
  float *da = ks_cpu_ptr(back->da), *db = ks_cpu_ptr(back->db);
  size_t begin, end;

  ks_cpu_slice(back->n_row, member, n_member, &begin, &end);
  for (size_t i = begin; i < end; i++)
    ctx->vec->act_back(da + i * stride_or(back->da_stride, n),
                       db != NULL ? db + i * stride_or(back->db_stride, n) : NULL,
                       a + i * stride_or(back->a_stride, n),
                       b != NULL ? b + i * stride_or(back->b_stride, n) : NULL,
                       dy + i * stride_or(back->dy_stride, n), n, back->act);
}

/* --- losses between logits --- */

static double
get_logsumexp(const ks_cpu_ctx *ctx, const float *x, size_t n)
{
  const float max = ctx->vec->max(x, n);

  return (double)max + log(ctx->vec->sum_exp(x, n, max));
}

static void
compare_row(const ks_cpu_ctx *ctx, const ks_op_logit_loss *op, size_t i)
{
  const size_t n = op->n_vocab;
  float *q = (float *)ks_cpu_ptr(op->q) + i * n;
  float *p = op->p != 0 ? (float *)ks_cpu_ptr(op->p) + i * n : NULL;
  float *d = op->dq != 0 ? (float *)ks_cpu_ptr(op->dq) + i * n : NULL;
  const int32_t target = ((const int32_t *)ks_cpu_ptr(op->target))[i];
  const float w_kl = p != NULL && op->w_kl != 0 ? ((const float *)ks_cpu_ptr(op->w_kl))[i] : 0.0F;
  const float w_ce = target >= 0 && op->w_ce != 0 ? ((const float *)ks_cpu_ptr(op->w_ce))[i] : 0.0F;
  ks_logit_row row = {.w_q = w_kl + w_ce, .w_p = w_kl};
  double sum_q, sum_p = 0.0, between;
  float wanted;

  if (op->cap > 0.0F) {
    ctx->vec->softcap(q, n, op->cap);
    if (p != NULL)
      ctx->vec->softcap(p, n, op->cap);
    row.inv_cap2 = 1.0F / (op->cap * op->cap);
  }
  sum_q = get_logsumexp(ctx, q, n);
  sum_p = p != NULL ? get_logsumexp(ctx, p, n) : 0.0;
  row.logsumexp_q = (float)sum_q;
  row.logsumexp_p = (float)sum_p;
  wanted = target >= 0 ? q[target] : (float)sum_q;
  between = ctx->vec->logit_back(d, q, p, n, &row);
  if (d != NULL && target >= 0)
    d[target] -= w_ce * (1.0F - wanted * wanted * row.inv_cap2);
  if (op->kl != 0)
    ((float *)ks_cpu_ptr(op->kl))[i] = p != NULL ? (float)(between - sum_p + sum_q) : 0.0F;
  if (op->ce != 0)
    ((float *)ks_cpu_ptr(op->ce))[i] = target >= 0 ? (float)(sum_q - (double)wanted) : 0.0F;
}

void
ks_cpu_logit_loss(const ks_cpu_ctx *ctx, const void *op, uint32_t member, uint32_t n_member)
{
  const ks_op_logit_loss *loss = op;

  (void)n_member;
  for (size_t i = ks_cpu_take(ctx); i < loss->n_row && !ks_cpu_poll(ctx, member);
       i = ks_cpu_take(ctx))
    compare_row(ctx, loss, i);
}

/* --- distance over energy --- */

void
ks_cpu_square_loss(const ks_cpu_ctx *ctx, const void *op, uint32_t member, uint32_t n_member)
{
  const ks_op_square_loss *loss = op;
  const size_t n = loss->n_col;
  const float *weight = ks_cpu_ptr(loss->weight);
  size_t begin, end;

  ks_cpu_slice(loss->n_row, member, n_member, &begin, &end);
  for (size_t i = begin; i < end; i++) {
    const float *a = (const float *)ks_cpu_ptr(loss->a) + i * n;
    const float *b = (const float *)ks_cpu_ptr(loss->b) + i * n;
    const float energy = ctx->vec->sum_squares((const float *)ks_cpu_ptr(loss->ref) + i * n, n, 0);
    const float factor = energy > 0.0F ? 1.0F / energy : 0.0F;

    if (loss->loss != 0)
      ((float *)ks_cpu_ptr(loss->loss))[i] += factor * ctx->vec->distance(a, b, n);
    if (loss->da != 0)
      ctx->vec->difference((float *)ks_cpu_ptr(loss->da) + i * n, a, b, n,
                           2.0F * factor * (weight != NULL ? weight[i] : 1.0F));
  }
}
