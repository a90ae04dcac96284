/* cpu-train-attention-back.c - the gradient of attention with a bias by age.
 * Weights are made anew from the kept logsumexp.  A unit of work is a block of keys of one KV head
 * against one tile of queries: it alone adds to the gradients of its keys, and in phase p block b
 * meets tile (b + p) mod n, so that no two units of a phase add to the same queries either.
 *   with P = softmax(l), dP = d_out v^T, dl = P (dP - sum(d_out out)):
 *   dv = P^T d_out   dq = scale dl k   dk = scale dl^T q   d_log_beta_j = sum max(0, t - j) dl_tj
 * Threads: kernels run on all members.  Source: docs/method.md, section 11. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-train-attention-internal.h"

#define KEYS ((size_t)KS_ATTN_KEYS)

/* The working set of a member; rows of q and d_out padded with zeros. */
typedef struct work {
  size_t k_pad, v_pad, n_row, n_key;
  float *q, *d_out;                /* [max_row, k_pad] times scale, [max_row, v_pad] */
  float *top, *mean, *at;          /* [max_row] logsumexp, sum(d_out out), row of the query */
  float *keys, *keys_t, *values_t; /* [KEYS, k_pad], [k_dim, KEYS], [v_dim, KEYS] */
  float *p, *dl;                   /* [max_row, KEYS] */
  float *turned;                   /* [KEYS, max_row]: p or dl transposed */
  float *sum;                      /* [max(max_row, KEYS), max(k_pad, v_pad)] products */
  float *beta, *ages;              /* [KEYS] */
} work;

/* Lays the working set out; NULL only measures it. */
static size_t
lay_out(work *w, float *memory, const ks_op_attn_bias *op, const ks_bias_shape *s)
{
  const size_t k_pad = ks_cpu_pad(op->k_dim), v_pad = ks_cpu_pad(op->v_dim), n = s->max_row;
  const size_t wide = k_pad > v_pad ? k_pad : v_pad;
  const size_t block = KEYS * wide;
  struct part {
    float **to;
    size_t n_float;
  } parts[] = {{&w->q, n * k_pad},
               {&w->d_out, n * v_pad},
               {&w->keys, block},
               {&w->keys_t, KEYS * k_pad},
               {&w->values_t, KEYS * v_pad},
               {&w->p, n * KEYS},
               {&w->dl, n * KEYS},
               {&w->turned, KEYS * n},
               {&w->sum, (n > KEYS ? n : KEYS) * wide},
               {&w->beta, KEYS},
               {&w->ages, KEYS},
               {&w->top, n},
               {&w->mean, n},
               {&w->at, n}};
  size_t total = 0;

  w->k_pad = k_pad;
  w->v_pad = v_pad;
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
    *parts[i].to = memory != NULL ? memory + total : NULL;
    total += ks_cpu_pad(parts[i].n_float);
  }
  return total;
}

void
ks_cpu_attn_bias_back_need(const ks_cpu_ctx *ctx, const ks_op_attn_bias_back *op, ks_cpu_need *need)
{
  const ks_bias_shape s = ks_bias_shape_get(&op->forward);
  work w;

  (void)ctx;
  need->member_bytes = lay_out(&w, NULL, &op->forward, &s) * sizeof(float);
  need->shared_bytes = s.n_head * op->forward.n_q * sizeof(float);
}

/* sum(d_out out) of every query and head, [n_q, n_head], in the block that members share. */
static float *
get_means(const ks_cpu_ctx *ctx)
{
  return (float *)(void *)ctx->shared;
}

static void
fill_means(const ks_cpu_ctx *ctx, const ks_op_attn_bias_back *op, uint32_t member,
           uint32_t n_member)
{
  const size_t dim = op->forward.v_dim;
  const float *d_out = ks_cpu_ptr(op->d_out), *out = ks_cpu_ptr(op->forward.out);
  size_t begin, end;

  ks_cpu_slice((size_t)op->forward.n_q * op->forward.n_head, member, n_member, &begin, &end);
  for (size_t row = begin; row < end; row++)
    get_means(ctx)[row] = ctx->vec->dot(d_out + row * dim, out + row * dim, dim);
}

/* True when a query of the tile sees a key of the block: ranges do not fall. */
static bool
meets(const ks_op_attn_bias *op, const ks_bias_shape *s, size_t tile, size_t block)
{
  const size_t i0 = tile * s->tile_q;
  const size_t i1 = op->n_q - i0 < s->tile_q ? op->n_q - 1 : i0 + s->tile_q - 1;

  return ks_bias_query_get(op, i0).lo < (block + 1) * KEYS &&
         ks_bias_query_get(op, i1).hi > block * KEYS;
}

static void
load_row(work *w, const ks_cpu_ctx *ctx, const ks_op_attn_bias_back *op, const ks_bias_shape *s,
         size_t r, size_t i, size_t head)
{
  const ks_op_attn_bias *f = &op->forward;
  const float *q = (const float *)ks_cpu_ptr(f->q) + i * s->q_stride + head * f->k_dim;
  const size_t row = i * f->n_head + head;
  const float *d_out = (const float *)ks_cpu_ptr(op->d_out) + row * f->v_dim;
  float *to = w->q + r * w->k_pad, *d_to = w->d_out + r * w->v_pad;

  for (size_t c = 0; c < f->k_dim; c++)
    to[c] = q[c] * f->scale;
  memset(to + f->k_dim, 0, (w->k_pad - f->k_dim) * sizeof(*to));
  memcpy(d_to, d_out, f->v_dim * sizeof(*to));
  memset(d_to + f->v_dim, 0, (w->v_pad - f->v_dim) * sizeof(*to));
  w->top[r] = ((const float *)ks_cpu_ptr(f->logsumexp))[row];
  w->mean[r] = get_means(ctx)[row];
}

static void
load_tile(work *w, const ks_cpu_ctx *ctx, const ks_op_attn_bias_back *op, const ks_bias_shape *s,
          size_t i0, size_t n_q, size_t kv_head)
{
  w->n_row = n_q * s->group;
  for (size_t h = 0; h < s->group; h++)
    for (size_t i = 0; i < n_q; i++) {
      const size_t r = h * n_q + i;

      load_row(w, ctx, op, s, r, i0 + i, kv_head * s->group + h);
      w->at[r] = (float)ks_bias_query_get(&op->forward, i0 + i).at;
    }
}

static void
load_block(work *w, const ks_cpu_ctx *ctx, const ks_op_attn_bias *op, const ks_bias_shape *s,
           size_t e, size_t kv_head)
{
  const float *k = (const float *)ks_cpu_ptr(op->k) + e * s->k_stride + kv_head * op->k_dim;
  const float *v = (const float *)ks_cpu_ptr(op->v) + e * s->v_stride + kv_head * op->v_dim;

  w->n_key = op->n_tok - e < KEYS ? op->n_tok - e : KEYS;
  ctx->vec->transpose(w->values_t, KEYS, v, s->v_stride, w->n_key, op->v_dim);
  ctx->vec->transpose(w->keys_t, KEYS, k, s->k_stride, w->n_key, op->k_dim);
  memset(w->keys, 0, KEYS * w->k_pad * sizeof(float));
  ks_bias_load_rows(w->keys, w->k_pad, k, s->k_stride, w->n_key, op->k_dim);
  if (op->log_beta != 0)
    ks_bias_load_beta(op, w->beta, e, w->n_key, kv_head);
}

/* p and dl of the tile against the block, 0 where a query does not look; ages is added to. */
static void
make_weights(work *w, const ks_cpu_ctx *ctx, const ks_op_attn_bias *op, size_t i0, size_t n_q,
             size_t e)
{
  const float *beta = op->log_beta != 0 ? w->beta : NULL;

  ctx->vec->gemm(w->p, KEYS, w->q, w->k_pad, w->keys_t, KEYS, w->n_row, KEYS, op->k_dim, false);
  ctx->vec->gemm(w->dl, KEYS, w->d_out, w->v_pad, w->values_t, KEYS, w->n_row, KEYS, op->v_dim,
                 false);
  for (size_t r = 0; r < w->n_row; r++) {
    const ks_bias_query q = ks_bias_query_get(op, i0 + r % n_q);
    float *p = w->p + r * KEYS, *dl = w->dl + r * KEYS;
    uint32_t begin, end;

    ks_attn_clip(q.lo, q.hi, (uint32_t)e, (uint32_t)w->n_key, &begin, &end);
    if (begin < end) {
      const float age = w->at[r] - (float)(e + begin);

      ctx->vec->age_exp(p + begin, beta != NULL ? beta + begin : NULL, end - begin, age, w->top[r]);
      ctx->vec->softmax_back(dl + begin, p + begin, w->ages + begin, end - begin, w->mean[r], age);
    }
    memset(p, 0, begin * sizeof(*p));
    memset(dl, 0, begin * sizeof(*dl));
    memset(p + end, 0, (KEYS - end) * sizeof(*p));
    memset(dl + end, 0, (KEYS - end) * sizeof(*dl));
  }
}

/* dq of the tile += scale dl keys. */
static void
add_to_queries(work *w, const ks_cpu_ctx *ctx, const ks_op_attn_bias_back *op,
               const ks_bias_shape *s, size_t i0, size_t n_q, size_t kv_head)
{
  const ks_op_attn_bias *f = &op->forward;
  float *dq = ks_cpu_ptr(op->dq);

  ctx->vec->gemm(w->sum, w->k_pad, w->dl, KEYS, w->keys, w->k_pad, w->n_row, w->k_pad, w->n_key,
                 false);
  for (size_t r = 0; r < w->n_row; r++) {
    const size_t row = (i0 + r % n_q) * f->n_head + kv_head * s->group + r / n_q;

    ctx->vec->add_scaled(dq + row * f->k_dim, w->sum + r * w->k_pad, f->k_dim, f->scale);
  }
}

/* The block's rows of d += weights^T rows, [n_key, n_row] x [n_row, pad]. */
static void
add_to_keys(work *w, const ks_cpu_ctx *ctx, const ks_bias_shape *s, float *d, size_t dim,
            const float *weights, const float *rows, size_t pad, size_t e, size_t kv_head)
{
  ctx->vec->transpose(w->turned, s->max_row, weights, KEYS, w->n_row, w->n_key);
  ctx->vec->gemm(w->sum, pad, w->turned, s->max_row, rows, pad, w->n_key, pad, w->n_row, false);
  for (size_t j = 0; j < w->n_key; j++)
    ctx->vec->add(d + ((e + j) * s->n_kv_head + kv_head) * dim, w->sum + j * pad, dim);
}

static void
run_unit(work *w, const ks_cpu_ctx *ctx, const ks_op_attn_bias_back *op, const ks_bias_shape *s,
         size_t tile, size_t block, size_t kv_head)
{
  const ks_op_attn_bias *f = &op->forward;
  const size_t i0 = tile * s->tile_q, e = block * KEYS;
  const size_t n_q = f->n_q - i0 < s->tile_q ? f->n_q - i0 : s->tile_q;

  load_tile(w, ctx, op, s, i0, n_q, kv_head);
  load_block(w, ctx, f, s, e, kv_head);
  memset(w->ages, 0, KEYS * sizeof(float));
  make_weights(w, ctx, f, i0, n_q, e);
  if (op->dv != 0)
    add_to_keys(w, ctx, s, ks_cpu_ptr(op->dv), f->v_dim, w->p, w->d_out, w->v_pad, e, kv_head);
  if (op->dk != 0)
    add_to_keys(w, ctx, s, ks_cpu_ptr(op->dk), f->k_dim, w->dl, w->q, w->k_pad, e, kv_head);
  if (op->dq != 0)
    add_to_queries(w, ctx, op, s, i0, n_q, kv_head);
  if (op->d_log_beta != 0) {
    float *d = (float *)ks_cpu_ptr(op->d_log_beta) + e * s->n_kv_head + kv_head;

    for (size_t j = 0; j < w->n_key; j++)
      d[j * s->n_kv_head] += w->ages[j];
  }
}

/* This member's part of an output that is added to from here on. */
static void
clear(ks_dptr x, size_t n_row, size_t n_col, uint32_t member, uint32_t n_member)
{
  size_t begin, end;

  if (x == 0)
    return;
  ks_cpu_slice(n_row, member, n_member, &begin, &end);
  memset((float *)ks_cpu_ptr(x) + begin * n_col, 0, (end - begin) * n_col * sizeof(float));
}

void
ks_cpu_attn_bias_back(const ks_cpu_ctx *ctx, const void *op, uint32_t member, uint32_t n_member)
{
  const ks_op_attn_bias_back *back = op;
  const ks_op_attn_bias *f = &back->forward;
  const ks_bias_shape s = ks_bias_shape_get(f);
  const size_t n_phase = s.n_tile > s.n_block ? s.n_tile : s.n_block;
  const size_t n_unit = s.n_block * s.n_kv_head;
  work w;

  (void)lay_out(&w, ks_cpu_scratch(ctx, member), f, &s);
  clear(back->dq, f->n_q, s.n_head * f->k_dim, member, n_member);
  clear(back->dk, f->n_tok, s.n_kv_head * f->k_dim, member, n_member);
  clear(back->dv, f->n_tok, s.n_kv_head * f->v_dim, member, n_member);
  fill_means(ctx, back, member, n_member);
  for (size_t phase = 0; phase < n_phase; phase++) {
    ks_cpu_next_phase(ctx, member);
    for (size_t i = ks_cpu_take(ctx); i < n_unit && !ks_cpu_poll(ctx, member);
         i = ks_cpu_take(ctx)) {
      const size_t block = i / s.n_kv_head, tile = (block + phase) % n_phase;

      if (tile < s.n_tile && meets(f, &s, tile, block))
        run_unit(&w, ctx, back, &s, tile, block, i % s.n_kv_head);
    }
  }
}
