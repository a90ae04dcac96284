/* cpu-train-retention.c - the soft size of the cache, its gradient, and the parts of the gate's
 * gradient that are not products.
 * Powers of beta are made where they are used: for every pair of rows an exponential, nothing of
 * the size of a square is stored.  Threads: kernels run on all members.
 * Source: docs/method.md, section 11. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-train-internal.h"
#include "engine/cpu-vec-internal.h"

#include <math.h>
#include <string.h>

#define BLOCK_TOK 64u /* rows of one unit of work */

/* --- soft size --- */

/* log_beta head by head, [n_kv_head, n_tok], in the block that members share. */
static float *
get_by_head(const ks_cpu_ctx *ctx)
{
  return (float *)(void *)ctx->shared;
}

static void
fill_by_head(const ks_cpu_ctx *ctx, const ks_op_capacity *op, uint32_t member, uint32_t n_member)
{
  const float *log_beta = ks_cpu_ptr(op->log_beta);
  size_t begin, end;

  ks_cpu_slice(op->n_tok, member, n_member, &begin, &end);
  ctx->vec->transpose(get_by_head(ctx) + begin, op->n_tok, log_beta + begin * op->n_kv_head,
                      op->n_kv_head, end - begin, op->n_kv_head);
}

static size_t
get_n_block(const ks_op_capacity *op)
{
  return ((size_t)op->n_tok + BLOCK_TOK - 1) / BLOCK_TOK;
}

void
ks_cpu_capacity_need(const ks_cpu_ctx *ctx, const ks_op_capacity *op, ks_cpu_need *need)
{
  (void)ctx;
  need->shared_bytes = (size_t)op->n_tok * op->n_kv_head * sizeof(float);
}

static void
add_sizes(const ks_cpu_ctx *ctx, const ks_op_capacity *op, size_t t)
{
  const float *log_beta = get_by_head(ctx);
  const size_t n_head = op->n_kv_head, first = ks_cpu_index(op->first, t, 0);
  float *size = ks_cpu_ptr(op->size);

  for (size_t h = 0; h < n_head; h++) {
    const float sum =
        ctx->vec->decay_sum(log_beta + h * op->n_tok + first, t - first + 1, (float)(t - first));

    size[op->per_head ? t * n_head + h : t] += sum;
  }
}

/* The last blocks have most to do and are taken first. */
void
ks_cpu_capacity(const ks_cpu_ctx *ctx, const void *op, uint32_t member, uint32_t n_member)
{
  const ks_op_capacity *capacity = op;
  const size_t n_block = get_n_block(capacity);

  fill_by_head(ctx, capacity, member, n_member);
  ks_cpu_next_phase(ctx, member);
  for (size_t i = ks_cpu_take(ctx); i < n_block && !ks_cpu_poll(ctx, member);
       i = ks_cpu_take(ctx)) {
    const size_t begin = (n_block - 1 - i) * BLOCK_TOK;

    for (size_t t = begin; t < begin + BLOCK_TOK && t < capacity->n_tok; t++)
      add_sizes(ctx, capacity, t);
  }
}

void
ks_cpu_capacity_back_need(const ks_cpu_ctx *ctx, const ks_op_capacity_back *op, ks_cpu_need *need)
{
  ks_cpu_capacity_need(ctx, &op->forward, need);
}

/* Rows j0 .. j0 + BLOCK_TOK - 1 of one head; t runs over those that see one of them. */
static void
block_back(const ks_cpu_ctx *ctx, const ks_op_capacity_back *back, size_t j0, size_t head)
{
  const ks_op_capacity *op = &back->forward;
  const float *log_beta = get_by_head(ctx) + head * op->n_tok, *d_size = ks_cpu_ptr(back->d_size);
  const size_t j_end = op->n_tok - j0 < BLOCK_TOK ? op->n_tok : j0 + BLOCK_TOK;
  float *d_log_beta = ks_cpu_ptr(back->d_log_beta);
  float sum[BLOCK_TOK] = {0};

  for (size_t t = j0; t < op->n_tok; t++) {
    const size_t first = ks_cpu_index(op->first, t, 0), begin = first > j0 ? first : j0;
    const size_t end = t + 1 < j_end ? t + 1 : j_end;
    const float g = d_size[op->per_head ? t * op->n_kv_head + head : t];

    if (begin >= j_end)
      break;
    if (g != 0.0F)
      ctx->vec->decay_back(sum + (begin - j0), log_beta + begin, end - begin, (float)(t - begin),
                           g);
  }
  for (size_t j = j0; j < j_end; j++)
    d_log_beta[j * op->n_kv_head + head] += sum[j - j0];
}

void
ks_cpu_capacity_back(const ks_cpu_ctx *ctx, const void *op, uint32_t member, uint32_t n_member)
{
  const ks_op_capacity_back *back = op;
  const size_t n_head = back->forward.n_kv_head, n_unit = get_n_block(&back->forward) * n_head;

  fill_by_head(ctx, &back->forward, member, n_member);
  ks_cpu_next_phase(ctx, member);
  for (size_t i = ks_cpu_take(ctx); i < n_unit && !ks_cpu_poll(ctx, member); i = ks_cpu_take(ctx))
    block_back(ctx, back, i / n_head * BLOCK_TOK, i % n_head);
}

/* --- the gate --- */

void
ks_cpu_gate_act(const ks_cpu_ctx *ctx, const void *part, uint32_t member, uint32_t n_member)
{
  const ks_cpu_gate_part *p = part;
  const float *z = ks_cpu_ptr(p->z);
  float *u = ks_cpu_ptr(p->u);
  size_t begin, end;

  ks_cpu_slice(p->n_tok, member, n_member, &begin, &end);
  for (size_t t = begin; t < end; t++) { /* row by row: the last elements are rounded otherwise */
    memcpy(u + t * p->n_gate, z + t * p->n_gate, p->n_gate * sizeof(*u));
    ks_cpu_act_row(ctx, p->act, u + t * p->n_gate, p->n_gate);
  }
}

/* log_beta = log sigmoid(z), so its slope is 1 - beta: exact also where beta rounds to 1. */
void
ks_cpu_gate_out_back(const ks_cpu_ctx *ctx, const void *part, uint32_t member, uint32_t n_member)
{
  const ks_cpu_gate_part *p = part;
  const float *log_beta = ks_cpu_ptr(p->log_beta), *d_log_beta = ks_cpu_ptr(p->d_log_beta);
  float *dz = ks_cpu_ptr(p->dz);
  size_t begin, end;

  (void)ctx;
  ks_cpu_slice(p->n_tok, member, n_member, &begin, &end);
  for (size_t t = begin; t < end; t++)
    for (size_t h = 0; h < p->n_kv_head; h++) {
      const size_t at = t * p->n_kv_head + h;

      dz[h * p->n_tok + t] = d_log_beta[at] * -expm1f(log_beta[at]);
    }
}

void
ks_cpu_gate_last_back(const ks_cpu_ctx *ctx, const void *part, uint32_t member, uint32_t n_member)
{
  const ks_cpu_gate_part *p = part;
  const float *dz = ks_cpu_ptr(p->dz), *w = ks_cpu_ptr(p->w);
  float *z = ks_cpu_ptr(p->z), *u = ks_cpu_ptr(p->u);
  const size_t n = p->n_gate;
  size_t begin, end;

  ks_cpu_slice(p->n_tok, member, n_member, &begin, &end);
  for (size_t t = begin; t < end; t++) {
    memset(u + t * n, 0, n * sizeof(*u));
    for (size_t h = 0; h < p->n_kv_head; h++)
      ctx->vec->add_scaled(u + t * n, w + h * n, n, dz[h * p->n_tok + t]);
    ctx->vec->act_back(z + t * n, NULL, z + t * n, NULL, u + t * n, n, p->act);
  }
}

void
ks_cpu_gate_hidden_back(const ks_cpu_ctx *ctx, const void *part, uint32_t member, uint32_t n_member)
{
  const ks_cpu_gate_part *p = part;
  float *z = ks_cpu_ptr(p->z);
  size_t begin, end;

  ks_cpu_slice((size_t)p->n_tok * p->n_gate, member, n_member, &begin, &end);
  ctx->vec->act_back(z + begin, NULL, z + begin, NULL, (const float *)ks_cpu_ptr(p->u) + begin,
                     end - begin, p->act);
}

void
ks_cpu_gate_turn(const ks_cpu_ctx *ctx, const void *part, uint32_t member, uint32_t n_member)
{
  const ks_cpu_gate_part *p = part;
  const float *z = ks_cpu_ptr(p->z);
  size_t begin, end;

  ks_cpu_slice(p->n_tok, member, n_member, &begin, &end);
  ctx->vec->transpose((float *)ks_cpu_ptr(p->u) + begin, p->n_tok, z + begin * p->n_gate, p->n_gate,
                      end - begin, p->n_gate);
}

void
ks_cpu_add_row_sums(const ks_cpu_ctx *ctx, const void *op, uint32_t member, uint32_t n_member)
{
  const ks_cpu_row_sums *sums = op;
  const float *x = ks_cpu_ptr(sums->x);
  float *out = ks_cpu_ptr(sums->out);
  size_t begin, end;

  ks_cpu_slice(sums->n_row, member, n_member, &begin, &end);
  for (size_t i = begin; i < end; i++)
    out[i] += ctx->vec->sum(x + i * sums->n_col, sums->n_col);
}
