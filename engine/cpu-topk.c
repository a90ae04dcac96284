/* cpu-topk.c - the best logits of a row, its logsumexp and the logits of listed ids.
 * A row is cut into one part a member when there are few rows; every part leaves its k best, in
 * order, and the largest logit with the sum of exponentials; then the parts of a row are merged. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-backend-internal.h"
#include "engine/cpu-vec-internal.h"

#include <math.h>

typedef struct topk_pair {
  float logit;
  int32_t id;
} topk_pair;

/* Followed by room for k pairs. */
typedef struct topk_part {
  double sum; /* of e^(logit - max) */
  float max;
  uint32_t n, next; /* pairs, and the first one not yet merged */
  uint32_t unused;
} topk_part;

static size_t
part_bytes(uint32_t k)
{
  return sizeof(topk_part) + k * sizeof(topk_pair);
}

static uint32_t
parts_per_row(const ks_op_logits_topk *op, uint32_t n_member)
{
  return op->n_row >= n_member ? 1 : n_member;
}

static topk_part *
part_get(const ks_cpu_ctx *ctx, size_t index, uint32_t k)
{
  return (topk_part *)(void *)(ctx->shared + index * part_bytes(k));
}

static topk_pair *
pairs_get(topk_part *part)
{
  return (topk_pair *)(void *)(part + 1);
}

static bool
is_worse(topk_pair a, topk_pair b)
{
  return a.logit < b.logit || (a.logit == b.logit && a.id > b.id);
}

/* Restores the heap (worst pair at the root) below slot i. */
static void
sift_down(topk_pair *heap, size_t n, size_t i)
{
  for (size_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
    topk_pair swap = heap[i];

    if (child + 1 < n && is_worse(heap[child + 1], heap[child]))
      child++;
    if (!is_worse(heap[child], heap[i]))
      return;
    heap[i] = heap[child];
    heap[child] = swap;
    i = child;
  }
}

/* The k best of row[begin, end) into heap, best first; returns how many there are. */
static uint32_t
select_best(topk_pair *heap, const float *row, size_t begin, size_t end, uint32_t k)
{
  const uint32_t n = end - begin < k ? (uint32_t)(end - begin) : k;

  if (n == 0)
    return 0;
  for (uint32_t i = 0; i < n; i++) {
    heap[i].logit = row[begin + i] >= -INFINITY ? row[begin + i] : -INFINITY; /* NaN is last */
    heap[i].id = (int32_t)(begin + i);
  }
  for (size_t i = n / 2 + 1; i-- > 0;)
    sift_down(heap, n, i);
  for (size_t i = begin + n; i < end; i++)
    if (row[i] > heap[0].logit) { /* an equal one with a larger id is no better */
      heap[0].logit = row[i];
      heap[0].id = (int32_t)i;
      sift_down(heap, n, 0);
    }
  for (uint32_t left = n; left-- > 1;) {
    topk_pair worst = heap[0];

    heap[0] = heap[left];
    heap[left] = worst;
    sift_down(heap, left, 0);
  }
  return n;
}

/* Merges the parts of one row. */
static void
finish_row(const ks_cpu_ctx *ctx, const ks_op_logits_topk *op, size_t row, uint32_t n_part)
{
  const float *logits = (const float *)ks_cpu_ptr(op->logits) + row * op->n_vocab;
  float max = -INFINITY;
  double sum = 0.0;

  for (uint32_t p = 0; p < n_part; p++)
    max = fmaxf(max, part_get(ctx, row * n_part + p, op->k)->max);
  for (uint32_t p = 0; p < n_part; p++) {
    const topk_part *part = part_get(ctx, row * n_part + p, op->k);

    if (part->max > -INFINITY)
      sum += part->sum * exp((double)part->max - (double)max);
  }
  if (op->out_logsumexp != NULL)
    op->out_logsumexp[row] = sum > 0.0 ? (float)((double)max + log(sum)) : max;
  for (uint32_t i = 0; i < op->k; i++) {
    topk_pair best = {-INFINITY, -1}; /* id -1: the row is shorter than k */
    topk_part *from = NULL;

    for (uint32_t p = 0; p < n_part; p++) {
      topk_part *part = part_get(ctx, row * n_part + p, op->k);

      if (part->next < part->n && (from == NULL || is_worse(best, pairs_get(part)[part->next]))) {
        best = pairs_get(part)[part->next];
        from = part;
      }
    }
    if (from != NULL)
      from->next++;
    op->out_ids[row * op->k + i] = best.id;
    op->out_logits[row * op->k + i] = best.logit;
  }
  for (uint32_t i = 0; i < op->n_id; i++)
    op->out_listed[row * op->n_id + i] = logits[op->ids[i]];
}

void
ks_cpu_logits_topk_need(const ks_cpu_ctx *ctx, const ks_op_logits_topk *op, ks_cpu_need *need)
{
  const uint32_t n_part = parts_per_row(op, ks_threads_get_n(ctx->threads));

  need->shared_bytes = (size_t)op->n_row * n_part * part_bytes(op->k);
}

void
ks_cpu_logits_topk(const ks_cpu_ctx *ctx, const ks_op_logits_topk *op, uint32_t member,
                   uint32_t n_member)
{
  const uint32_t n_part = parts_per_row(op, n_member);
  const float *logits = ks_cpu_ptr(op->logits);
  size_t begin, end;

  ks_cpu_slice((size_t)op->n_row * n_part, member, n_member, &begin, &end);
  for (size_t i = begin; i < end; i++) {
    const float *row = logits + i / n_part * op->n_vocab;
    topk_part *part = part_get(ctx, i, op->k);
    size_t from, to;

    ks_cpu_slice(op->n_vocab, (uint32_t)(i % n_part), n_part, &from, &to);
    part->max = ctx->vec->max(row + from, to - from);
    part->sum = part->max > -INFINITY ? ctx->vec->sum_exp(row + from, to - from, part->max) : 0.0;
    part->n = select_best(pairs_get(part), row, from, to, op->k);
    part->next = 0;
  }
  ks_threads_barrier(ctx->threads);
  ks_cpu_slice(op->n_row, member, n_member, &begin, &end);
  for (size_t row = begin; row < end; row++)
    finish_row(ctx, op, row, n_part);
}
