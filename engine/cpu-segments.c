/* cpu-segments.c - full attention inside segments of rows, as vision towers need it: windows,
 * tiles, whole pictures.  Works on tiles of queries against blocks of keys, so that scratch does
 * not grow with the square of the rows; the received attention needs maximum and sum of every row,
 * which is linear.  Source: docs/method.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-attention-internal.h"
#include "engine/cpu-backend-internal.h"

#include <math.h>
#include <string.h>

/* Maximum and 1 / sum of row i, head h at i * n_head + h; only kept when attention is returned. */
typedef struct segment_norms {
  float *max, *inv_sum;
} segment_norms;

static segment_norms
norms_get(const ks_cpu_ctx *ctx, const ks_op_attn_segments *op)
{
  segment_norms norms;

  norms.max = (float *)(void *)ctx->shared;
  norms.inv_sum = norms.max + (size_t)op->n_row * op->n_head;
  return norms;
}

static size_t
stride_get(const ks_op_attn_segments *op)
{
  return op->qkv_stride != 0 ? op->qkv_stride : (size_t)op->n_head * op->head_dim;
}

void
ks_cpu_attn_segments_need(const ks_cpu_ctx *ctx, const ks_op_attn_segments *op, ks_cpu_need *need)
{
  (void)ctx;
  need->member_bytes = ks_attn_tile_bytes(KS_ATTN_ROWS, op->head_dim, op->head_dim);
  if (op->received != 0)
    need->shared_bytes = 2 * (size_t)op->n_row * op->n_head * sizeof(float);
}

/* Copies n rows of one head into the tile's block, padded rows apart. */
static void
load_block(ks_attn_tile *tile, const float *x, size_t stride, size_t n)
{
  for (size_t i = 0; i < n; i++)
    memcpy(tile->block + i * tile->k_pad, x + i * stride, tile->k_dim * sizeof(float));
}

static void
load_queries(ks_attn_tile *tile, const ks_op_attn_segments *op, uint32_t row, uint32_t n,
             size_t head, uint32_t n_key)
{
  const float *q = (const float *)ks_cpu_ptr(op->q) + head * op->head_dim;

  tile->n_row = n;
  for (uint32_t i = 0; i < n; i++) {
    ks_attn_tile_set_query(tile, i, q + (row + i) * stride_get(op), op->scale);
    tile->lo[i] = 0;
    tile->hi[i] = n_key;
  }
}

/* Queries row .. row + n - 1 of one head against their whole segment [begin, end). */
static void
attend_rows(ks_attn_tile *tile, const ks_cpu_ctx *ctx, const ks_op_attn_segments *op,
            uint32_t begin, uint32_t end, uint32_t row, uint32_t n, size_t head)
{
  const size_t stride = stride_get(op);
  const float *k = (const float *)ks_cpu_ptr(op->k) + begin * stride + head * op->head_dim;
  const float *v = (const float *)ks_cpu_ptr(op->v) + begin * stride + head * op->head_dim;
  float *out = ks_cpu_ptr(op->out);

  load_queries(tile, op, row, n, head, end - begin);
  ks_attn_tile_reset(tile);
  for (uint32_t e = 0; e < end - begin; e += KS_ATTN_KEYS) {
    const uint32_t n_key = end - begin - e < KS_ATTN_KEYS ? end - begin - e : KS_ATTN_KEYS;

    load_block(tile, k + e * stride, stride, n_key);
    ks_attn_tile_score(tile, ctx->vec, n_key);
    ks_attn_tile_softmax(tile, ctx->vec, e, n_key);
    load_block(tile, v + e * stride, stride, n_key);
    ks_attn_tile_add_values(tile, ctx->vec, n_key);
  }
  for (uint32_t i = 0; i < n; i++) {
    const size_t at = (size_t)(row + i) * op->n_head + head;

    ks_attn_tile_get_row(tile, ctx->vec, i, out + at * op->head_dim);
    if (op->received != 0) {
      const segment_norms norms = norms_get(ctx, op);

      norms.max[at] = tile->max[i];
      norms.inv_sum[at] = 1.0F / tile->sum[i];
    }
  }
}

/* What keys row .. row + n - 1 receive: mean over the segment's queries and over the heads. */
static void
receive_rows(ks_attn_tile *tile, const ks_cpu_ctx *ctx, const ks_op_attn_segments *op,
             uint32_t begin, uint32_t end, uint32_t row, uint32_t n)
{
  const segment_norms norms = norms_get(ctx, op);
  const size_t stride = stride_get(op);
  const float *k = ks_cpu_ptr(op->k);
  float *received = (float *)ks_cpu_ptr(op->received) + row;

  memset(received, 0, n * sizeof *received);
  for (size_t head = 0; head < op->n_head; head++) {
    load_block(tile, k + row * stride + head * op->head_dim, stride, n);
    for (uint32_t i = begin; i < end; i += KS_ATTN_ROWS) {
      load_queries(tile, op, i, end - i < KS_ATTN_ROWS ? end - i : KS_ATTN_ROWS, head, n);
      ks_attn_tile_score(tile, ctx->vec, n);
      for (size_t r = 0; r < tile->n_row; r++) {
        const size_t at = (i + r) * op->n_head + head;
        float *s = tile->s + r * KS_ATTN_KEYS;

        ctx->vec->exp_sum(s, n, norms.max[at]);
        ctx->vec->add_scaled(received, s, n, norms.inv_sum[at]);
      }
    }
  }
  ctx->vec->scale(received, n, 1.0F / ((float)(end - begin) * (float)op->n_head));
}

/* Piece i of a list in which every segment is cut into pieces of `size` rows. */
typedef struct segment_walk {
  uint32_t seg;
  size_t before; /* pieces of earlier segments */
} segment_walk;

static bool
walk_to(const ks_op_attn_segments *op, segment_walk *walk, size_t piece, uint32_t size,
        uint32_t *row, uint32_t *n)
{
  for (; walk->seg < op->n_seg; walk->seg++) {
    const uint32_t begin = op->seg[walk->seg], end = op->seg[walk->seg + 1];
    const size_t n_piece = ((size_t)(end - begin) + size - 1) / size;

    if (piece < walk->before + n_piece) {
      *row = begin + (uint32_t)(piece - walk->before) * size;
      *n = end - *row < size ? end - *row : size;
      return true;
    }
    walk->before += n_piece;
  }
  return false;
}

void
ks_cpu_attn_segments(const ks_cpu_ctx *ctx, const ks_op_attn_segments *op, uint32_t member,
                     uint32_t n_member)
{
  segment_walk walk = {0, 0};
  ks_attn_tile tile;
  uint32_t row, n;

  (void)n_member;
  ks_attn_tile_init(&tile, ks_cpu_scratch(ctx, member), KS_ATTN_ROWS, op->head_dim, op->head_dim);
  for (size_t i = ks_cpu_take(ctx);
       walk_to(op, &walk, i / op->n_head, KS_ATTN_ROWS, &row, &n) && !ks_cpu_poll(ctx, member);
       i = ks_cpu_take(ctx))
    attend_rows(&tile, ctx, op, op->seg[walk.seg], op->seg[walk.seg + 1], row, n, i % op->n_head);
  if (op->received == 0)
    return;
  ks_cpu_next_phase(ctx, member);
  walk.seg = 0;
  walk.before = 0;
  for (size_t i = ks_cpu_take(ctx);
       walk_to(op, &walk, i, KS_ATTN_KEYS, &row, &n) && !ks_cpu_poll(ctx, member);
       i = ks_cpu_take(ctx))
    receive_rows(&tile, ctx, op, op->seg[walk.seg], op->seg[walk.seg + 1], row, n);
}
