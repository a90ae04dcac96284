/* cpu-train-attention.c - attention over dense rows with a bias by age, and what its gradient
 * shares with it.  A tile holds the queries of all heads of one group, so that a block of keys is
 * prepared once for them.  Tiles have a fixed size: no sum depends on the number of members.
 * Threads: kernels run on all members.  Source: docs/method.md, section 11. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-train-attention-internal.h"

#include <assert.h>
#include <math.h>

ks_bias_shape
ks_bias_shape_get(const ks_op_attn_bias *op)
{
  ks_bias_shape s = {.n_head = op->n_head, .n_kv_head = op->n_kv_head};

  assert(op->n_kv_head > 0 && op->n_head % op->n_kv_head == 0);
  s.group = op->n_head / op->n_kv_head;
  s.tile_q = s.group < KS_ATTN_ROWS ? KS_ATTN_ROWS / s.group : 1;
  s.max_row = s.tile_q * s.group;
  s.n_tile = (op->n_q + s.tile_q - 1) / s.tile_q;
  s.n_block = (op->n_tok + KS_ATTN_KEYS - 1) / KS_ATTN_KEYS;
  s.q_stride = op->q_stride != 0 ? op->q_stride : (size_t)op->n_head * op->k_dim;
  s.k_stride = op->k_stride != 0 ? op->k_stride : (size_t)op->n_kv_head * op->k_dim;
  s.v_stride = op->v_stride != 0 ? op->v_stride : (size_t)op->n_kv_head * op->v_dim;
  return s;
}

ks_bias_query
ks_bias_query_get(const ks_op_attn_bias *op, size_t i)
{
  const uint32_t at = ks_cpu_index(op->at, i, (uint32_t)i);
  const uint32_t last = ks_cpu_index(op->last, i, at);
  ks_bias_query q = {.at = at, .lo = ks_cpu_index(op->first, i, 0)};

  q.hi = last < op->n_tok ? last + 1 : op->n_tok;
  return q;
}

void
ks_bias_load_beta(const ks_op_attn_bias *op, float *to, size_t first, size_t n, size_t kv_head)
{
  const float *from = (const float *)ks_cpu_ptr(op->log_beta) + first * op->n_kv_head + kv_head;

  for (size_t j = 0; j < n; j++)
    to[j] = from[j * op->n_kv_head];
}

void
ks_bias_load_rows(float *to, size_t pad, const float *from, size_t stride, size_t n, size_t dim)
{
  for (size_t j = 0; j < n; j++)
    memcpy(to + j * pad, from + j * stride, dim * sizeof(*to));
}

void
ks_cpu_attn_bias_need(const ks_cpu_ctx *ctx, const ks_op_attn_bias *op, ks_cpu_need *need)
{
  const ks_bias_shape s = ks_bias_shape_get(op);

  (void)ctx;
  need->member_bytes = ks_attn_tile_bytes(s.max_row, op->k_dim, op->v_dim) +
                       (s.max_row + KS_ATTN_KEYS) * sizeof(float);
}

/* Queries i0 .. i0 + n_q - 1 of all heads of a group; at gets their rows, [tile->n_row]. */
static void
load_queries(ks_attn_tile *tile, float *at, const ks_op_attn_bias *op, const ks_bias_shape *s,
             size_t i0, size_t n_q, size_t kv_head)
{
  const float *q = (const float *)ks_cpu_ptr(op->q) + kv_head * s->group * op->k_dim;

  tile->n_row = n_q * s->group;
  for (size_t h = 0; h < s->group; h++)
    for (size_t i = 0; i < n_q; i++) {
      const ks_bias_query query = ks_bias_query_get(op, i0 + i);
      const size_t r = h * n_q + i;

      ks_attn_tile_set_query(tile, r, q + (i0 + i) * s->q_stride + h * op->k_dim, op->scale);
      tile->lo[r] = query.lo;
      tile->hi[r] = query.hi;
      at[r] = (float)query.at;
    }
}

/* Keys e .. e + n - 1 against the tile. */
static void
attend_block(ks_attn_tile *tile, const ks_cpu_ctx *ctx, const ks_op_attn_bias *op,
             const ks_bias_shape *s, const float *at, float *beta, size_t e, uint32_t n,
             size_t kv_head)
{
  const float *k = (const float *)ks_cpu_ptr(op->k) + e * s->k_stride + kv_head * op->k_dim;
  const float *v = (const float *)ks_cpu_ptr(op->v) + e * s->v_stride + kv_head * op->v_dim;

  ks_bias_load_rows(tile->block, tile->k_pad, k, s->k_stride, n, op->k_dim);
  ks_attn_tile_score(tile, ctx->vec, n);
  if (op->log_beta != 0) {
    ks_bias_load_beta(op, beta, e, n, kv_head);
    for (size_t r = 0; r < tile->n_row; r++)
      ctx->vec->age_add(tile->s + r * KS_ATTN_KEYS, beta, n, at[r] - (float)e);
  }
  ks_attn_tile_softmax(tile, ctx->vec, (uint32_t)e, n);
  ks_bias_load_rows(tile->block, tile->v_pad, v, s->v_stride, n, op->v_dim);
  ks_attn_tile_add_values(tile, ctx->vec, n);
}

static void
attend_tile(ks_attn_tile *tile, const ks_cpu_ctx *ctx, const ks_op_attn_bias *op,
            const ks_bias_shape *s, float *at, size_t i0, size_t kv_head)
{
  const size_t n_q = op->n_q - i0 < s->tile_q ? op->n_q - i0 : s->tile_q;
  float *beta = at + s->max_row, *out = ks_cpu_ptr(op->out), *sums = ks_cpu_ptr(op->logsumexp);
  uint32_t end;

  load_queries(tile, at, op, s, i0, n_q, kv_head);
  ks_attn_tile_reset(tile);
  end = tile->hi[n_q - 1];
  for (uint32_t e = tile->lo[0] / KS_ATTN_KEYS * KS_ATTN_KEYS; e < end; e += KS_ATTN_KEYS)
    attend_block(tile, ctx, op, s, at, beta, e, end - e < KS_ATTN_KEYS ? end - e : KS_ATTN_KEYS,
                 kv_head);
  for (size_t r = 0; r < tile->n_row; r++) {
    const size_t row = (i0 + r % n_q) * op->n_head + kv_head * s->group + r / n_q;

    ks_attn_tile_get_row(tile, ctx->vec, r, out + row * op->v_dim);
    if (sums != NULL)
      sums[row] = tile->max[r] + logf(tile->sum[r]);
  }
}

/* The last queries see most and are taken first. */
void
ks_cpu_attn_bias(const ks_cpu_ctx *ctx, const void *op, uint32_t member, uint32_t n_member)
{
  const ks_op_attn_bias *attn = op;
  const ks_bias_shape s = ks_bias_shape_get(attn);
  unsigned char *scratch = ks_cpu_scratch(ctx, member);
  float *at = (float *)(void *)(scratch + ks_attn_tile_bytes(s.max_row, attn->k_dim, attn->v_dim));
  ks_attn_tile tile;

  (void)n_member;
  ks_attn_tile_init(&tile, scratch, s.max_row, attn->k_dim, attn->v_dim);
  for (size_t i = ks_cpu_take(ctx); i < s.n_tile * s.n_kv_head && !ks_cpu_poll(ctx, member);
       i = ks_cpu_take(ctx))
    attend_tile(&tile, ctx, attn, &s, at, (s.n_tile - 1 - i / s.n_kv_head) * s.tile_q,
                i % s.n_kv_head);
}
