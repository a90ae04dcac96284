/* cpu-rope.c - rotary positions of new queries and keys, and of stored keys when positions are
 * mapped anew.  The angle is formed in f32 from the integer position; cosines and sines are taken
 * once a token and serve all its heads in all layers.  Source: docs/method.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-kv-internal.h"

#include <math.h>
#include <string.h>

/* Cosines and sines of one token, each [n_rot / 2]. */
static void
fill_angles(float *cosine, float *sine, const ks_op_rope *op, const int32_t *pos, size_t pos_stride,
            float mscale)
{
  const float *inv_freq = ks_cpu_ptr(op->inv_freq);
  const uint8_t *axis = ks_cpu_ptr(op->axis);
  const size_t n_pair = op->n_rot / 2;

  for (size_t i = 0; i < n_pair; i++) {
    const int32_t p = pos[axis != NULL ? axis[i] * pos_stride : 0];
    const float angle = (float)p * inv_freq[i];

    cosine[i] = cosf(angle) * mscale;
    sine[i] = sinf(angle) * mscale;
  }
}

static void
rotate_heads(const ks_cpu_vec_fns *vec, float *x, const float *cosine, const float *sine,
             const ks_op_rope *op, size_t n_head)
{
  for (size_t h = 0; h < n_head; h++, x += op->head_dim)
    if (op->neox)
      vec->rope_neox(x, cosine, sine, op->n_rot / 2);
    else
      vec->rope_norm(x, cosine, sine, op->n_rot / 2);
}

void
ks_cpu_rope_angles(const ks_cpu_ctx *ctx, const ks_cpu_rope_job *job, uint32_t member,
                   uint32_t n_member)
{
  const ks_op_rope *op = &job->op;
  const int32_t *pos = ks_cpu_ptr(op->pos);
  size_t begin, end;

  (void)ctx;
  ks_cpu_slice(op->n_tok, member, n_member, &begin, &end);
  for (size_t t = begin; t < end; t++) {
    float *cosine = job->angles + t * op->n_rot;

    fill_angles(cosine, cosine + op->n_rot / 2, op, pos + t, op->n_tok, op->mscale);
    for (size_t i = op->n_rot / 2; job->back && i < op->n_rot; i++)
      cosine[i] = -cosine[i];
  }
}

/* Members share the heads of all tokens: a single token has some for each of them. */
static void
rotate_slice(const ks_cpu_ctx *ctx, const ks_cpu_rope_job *job, float *x, size_t n_head,
             size_t stride, uint32_t member, uint32_t n_member)
{
  const ks_op_rope *op = &job->op;
  size_t i, end;

  ks_cpu_slice(op->n_tok * n_head, member, n_member, &i, &end);
  while (i < end) {
    const size_t t = i / n_head, h = i % n_head, n = n_head - h < end - i ? n_head - h : end - i;
    const float *cosine = job->angles + t * op->n_rot;

    rotate_heads(ctx->vec, x + t * stride + h * op->head_dim, cosine, cosine + op->n_rot / 2, op,
                 n);
    i += n;
  }
}

void
ks_cpu_rope(const ks_cpu_ctx *ctx, const ks_cpu_rope_job *job, uint32_t member, uint32_t n_member)
{
  const ks_op_rope *op = &job->op;
  const size_t q_stride = op->q_stride != 0 ? op->q_stride : (size_t)op->n_head * op->head_dim;
  const size_t k_stride = op->k_stride != 0 ? op->k_stride : (size_t)op->n_kv_head * op->head_dim;

  if (op->q != 0)
    rotate_slice(ctx, job, ks_cpu_ptr(op->q), op->n_head, q_stride, member, n_member);
  if (op->k != 0)
    rotate_slice(ctx, job, ks_cpu_ptr(op->k), op->n_kv_head, k_stride, member, n_member);
}

/* A stored key already carries mscale, so the turn by delta has length one.  Keys that stay where
 * they are keep their exact bytes. */
ks_status
ks_cpu_kv_rotate(ks_dev *dev, const ks_kv_view *kv, uint32_t stream, const ks_op_rope *rope,
                 const int32_t *delta, ks_error *err)
{
  const ks_cpu_ctx *ctx = ks_cpu_get_ctx(dev);
  const ks_kv_layout *layout = kv->layout;
  const ks_kv_kind kind = ks_kv_kind_get(layout->kv_dtype);
  ks_cpu_need need = {0};
  ks_cpu_stream s;
  float *row, *cosine, *sine;
  ks_status st;

  if (stream >= ks_cpu_n_stream(kv) || rope->n_rot > layout->k_dim)
    return ks_fail(err, KS_ERR_ARG, "stream %u cannot be rotated in %u dimensions", stream,
                   rope->n_rot);
  need.member_bytes = (layout->k_dim + (size_t)rope->n_rot) * sizeof(float);
  st = ks_cpu_need_scratch(dev, &need);
  if (st != KS_OK)
    return ks_fail(err, st, "not enough memory to rotate keys");
  s = ks_cpu_stream_get(kv, stream);
  row = ks_cpu_scratch(ctx, 0);
  cosine = row + layout->k_dim;
  sine = cosine + rope->n_rot / 2;
  for (uint32_t e = 0; e < s.n_entry; e++) {
    const int32_t *turn = delta + e;
    const ks_cpu_slots slot = ks_cpu_slots_get(&s, e, 1);

    if (turn[0] == 0 && turn[s.n_entry] == 0 && turn[2 * (size_t)s.n_entry] == 0)
      continue;
    fill_angles(cosine, sine, rope, turn, s.n_entry, 1.0F);
    ctx->vec->unpack[kind](row, slot.k, layout->k_dim);
    if (rope->neox)
      ctx->vec->rope_neox(row, cosine, sine, rope->n_rot / 2);
    else
      ctx->vec->rope_norm(row, cosine, sine, rope->n_rot / 2);
    ctx->vec->pack[kind](slot.k, row, layout->k_dim);
  }
  return KS_OK;
}
