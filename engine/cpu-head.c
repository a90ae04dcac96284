/* cpu-head.c - the output matrix without a row of logits: the best of each row, its logsumexp and
 * the logits of listed ids are taken from each unit of products while it is in the cache.
 *   w  [n_vocab, n_in] any type   x  [n_row, n_in] f32   logits  [n_row, n_vocab] only when asked
 * Every member keeps a heap of the k best of the units it drew, the worst at the root; a unit whose
 * maximum is no better is not looked at.  Then the heaps of a row are merged.  Units are cut
 * without regard to the number of members, and their sums are added in their order, so that no
 * result depends on it.  Threads: runs on all members. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-head-internal.h"
#include "engine/cpu-share-internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Sum of e^(logit - max) over one unit. */
typedef struct head_sum {
  double sum;
  float max;
} head_sum;

ks_op_linear
ks_head_get_linear(const ks_op_head *op)
{
  ks_op_linear linear = {.n_w = 1, .n_tok = op->n_row, .epilogue = KS_EPI_STORE};

  linear.w[0] = op->w;
  linear.x = op->x;
  return linear;
}

static ks_linear_plan
head_plan(const ks_cpu_ctx *ctx, const ks_op_linear *linear)
{
  return ks_linear_make_plan(ctx, linear, 1);
}

/* Where the bests of a row lie in every member's scratch. */
static size_t
best_at(const ks_linear_plan *plan, const ks_op_head *op, size_t row)
{
  return plan->member_bytes + row * ks_head_best_bytes(op->k);
}

static head_sum *
sums_get(const ks_cpu_ctx *ctx, const ks_linear_plan *plan, size_t row)
{
  return (head_sum *)(void *)(ctx->shared + plan->shared_bytes) + row * plan->n_unit;
}

void
ks_cpu_head_need(const ks_cpu_ctx *ctx, const ks_op_head *op, ks_cpu_need *need)
{
  const ks_op_linear linear = ks_head_get_linear(op);
  const ks_linear_plan plan = head_plan(ctx, &linear);

  if (ks_head_is_split(op)) {
    ks_cpu_head_split_need(ctx, op, need);
    return;
  }
  need->member_bytes = plan.member_bytes + op->n_row * ks_head_best_bytes(op->k);
  need->shared_bytes = plan.shared_bytes;
  if (op->out_logsumexp != NULL)
    need->shared_bytes += (size_t)op->n_row * plan.n_unit * sizeof(head_sum);
}

static bool
is_worse(ks_head_pair a, ks_head_pair b)
{
  return a.logit < b.logit || (a.logit == b.logit && a.id > b.id);
}

/* Restores the heap below slot i. */
static void
sift_down(ks_head_pair *heap, size_t n, size_t i)
{
  for (size_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
    const ks_head_pair swap = heap[i];

    if (child + 1 < n && is_worse(heap[child + 1], heap[child]))
      child++;
    if (!is_worse(heap[child], heap[i]))
      return;
    heap[i] = heap[child];
    heap[child] = swap;
    i = child;
  }
}

/* Adds a pair to a heap that is not full. */
static void
sift_up(ks_head_pair *heap, size_t i)
{
  for (; i > 0 && is_worse(heap[i], heap[(i - 1) / 2]); i = (i - 1) / 2) {
    const ks_head_pair swap = heap[i];

    heap[i] = heap[(i - 1) / 2];
    heap[(i - 1) / 2] = swap;
  }
}

/* Best first. */
void
ks_head_sort(ks_head_best *best)
{
  ks_head_pair *heap = ks_head_get_pairs(best);

  for (uint32_t left = best->n; left > 1;) {
    const ks_head_pair worst = heap[0];

    heap[0] = heap[--left];
    heap[left] = worst;
    sift_down(heap, left, 0);
  }
}

/* z: the logits of ids first .. first + n - 1, all larger than those the heap has seen. */
void
ks_head_offer(ks_head_best *best, uint32_t k, const float *z, size_t first, size_t n)
{
  ks_head_pair *heap = ks_head_get_pairs(best);
  size_t i = 0;

  for (; i < n && best->n < k; i++) {
    heap[best->n] = (ks_head_pair){z[i] >= -INFINITY ? z[i] : -INFINITY, (int32_t)(first + i)};
    sift_up(heap, best->n++);
  }
  for (; i < n; i++)
    if (z[i] > heap[0].logit) { /* an equal one with a larger id is no better; NaN never is */
      heap[0] = (ks_head_pair){z[i], (int32_t)(first + i)};
      sift_down(heap, k, 0);
    }
}

float
ks_head_cap(const ks_op_head *op, float z)
{
  return op->cap > 0.0F ? op->cap * tanhf(z / op->cap) : z;
}

/* The listed ids of this unit; they are in order. */
static void
take_listed(const ks_op_head *op, const float *z, size_t row, size_t first, size_t n)
{
  uint32_t low = 0, high = op->n_id;

  while (low < high) {
    const uint32_t mid = low + (high - low) / 2;

    if ((size_t)op->ids[mid] < first)
      low = mid + 1;
    else
      high = mid;
  }
  for (; low < op->n_id && (size_t)op->ids[low] < first + n; low++)
    op->out_listed[row * op->n_id + low] = ks_head_cap(op, z[(size_t)op->ids[low] - first]);
}

/* What is wanted of one row of a unit; z may be changed. */
static void
take_row(const ks_linear *l, const ks_op_head *op, ks_head_best *best, head_sum *sum, float *z,
         size_t row, size_t first, size_t n)
{
  const ks_cpu_vec_fns *vec = l->ctx->vec;
  const float max = ks_head_cap(op, vec->max(z, n));
  const bool better = op->k > 0 && (best->n < op->k || max > ks_head_get_pairs(best)->logit);

  take_listed(op, z, row, first, n);
  if (op->cap > 0.0F && (better || sum != NULL || op->logits != 0))
    for (size_t i = 0; i < n; i++)
      z[i] = ks_head_cap(op, z[i]);
  if (better)
    ks_head_offer(best, op->k, z, first, n);
  if (sum != NULL)
    *sum = (head_sum){max > -INFINITY ? vec->sum_exp(z, n, max) : 0.0, max};
  if (op->logits != 0)
    memcpy((float *)ks_cpu_ptr(op->logits) + row * op->w.n_out + first, z, n * sizeof(*z));
}

static void
take_unit(const ks_linear *l, const ks_op_head *op, size_t number, uint32_t member)
{
  const ks_linear_plan *plan = &l->plan;
  const ks_linear_unit unit = ks_linear_get_unit(l, number);
  float *z = ks_linear_get_product(l, 0);

  for (size_t t0 = 0; t0 < op->n_row; t0 += plan->block_tok) {
    const size_t left = op->n_row - t0, n = left < plan->block_tok ? left : plan->block_tok;

    ks_linear_multiply(l, 0, &unit, t0, n, z);
    for (size_t t = 0; t < n; t++) {
      head_sum *sums = op->out_logsumexp != NULL ? sums_get(l->ctx, plan, t0 + t) : NULL;

      take_row(l, op, ks_head_get_best(l->ctx, member, best_at(plan, op, t0 + t)),
               sums != NULL ? sums + number : NULL, z + t * plan->unit_rows, t0 + t, unit.row0,
               unit.n_row);
    }
  }
}

static float
add_sums(const head_sum *sums, size_t n)
{
  float max = -INFINITY;
  double sum = 0.0;

  for (size_t i = 0; i < n; i++)
    max = fmaxf(max, sums[i].max);
  for (size_t i = 0; i < n; i++)
    if (sums[i].max > -INFINITY)
      sum += sums[i].sum * exp((double)sums[i].max - (double)max);
  return sum > 0.0 ? (float)((double)max + log(sum)) : max;
}

void
ks_head_merge(const ks_cpu_ctx *ctx, const ks_op_head *op, size_t row, size_t at, uint32_t n_member)
{
  for (uint32_t i = 0; i < op->k; i++) {
    ks_head_pair pair = {-INFINITY, -1}; /* id -1: the row is shorter than k */
    ks_head_best *from = NULL;

    for (uint32_t m = 0; m < n_member; m++) {
      ks_head_best *best = ks_head_get_best(ctx, m, at);

      if (best->next < best->n &&
          (from == NULL || is_worse(pair, ks_head_get_pairs(best)[best->next]))) {
        pair = ks_head_get_pairs(best)[best->next];
        from = best;
      }
    }
    if (from != NULL)
      from->next++;
    op->out_ids[row * op->k + i] = pair.id;
    op->out_logits[row * op->k + i] = pair.logit;
  }
}

static void
finish_row(const ks_linear *l, const ks_op_head *op, size_t row, uint32_t n_member)
{
  if (op->out_logsumexp != NULL)
    op->out_logsumexp[row] = add_sums(sums_get(l->ctx, &l->plan, row), l->plan.n_unit);
  ks_head_merge(l->ctx, op, row, best_at(&l->plan, op, row), n_member);
}

void
ks_cpu_head(const ks_cpu_ctx *ctx, const ks_op_head *op, uint32_t member, uint32_t n_member)
{
  const ks_op_linear linear = ks_head_get_linear(op);
  size_t begin, end, unit;
  ks_cpu_share share;
  ks_linear l;

  if (op->n_row == 0)
    return;
  if (ks_head_is_split(op)) {
    ks_cpu_head_split(ctx, op, member, n_member);
    return;
  }
  ks_linear_begin_plan(&l, head_plan(ctx, &linear), ctx, &linear, member, n_member);
  for (size_t row = 0; row < op->n_row; row++)
    *ks_head_get_best(ctx, member, best_at(&l.plan, op, row)) = (ks_head_best){0, 0};
  share = ks_cpu_share_begin(l.plan.n_unit, member, n_member);
  while (ks_cpu_share_next(ctx, &share, &unit) && !ks_cpu_poll(ctx, member))
    take_unit(&l, op, unit, member);
  for (size_t row = 0; row < op->n_row; row++)
    ks_head_sort(ks_head_get_best(ctx, member, best_at(&l.plan, op, row)));
  ks_threads_barrier(ctx->threads);
  ks_cpu_slice(op->n_row, member, n_member, &begin, &end);
  for (size_t row = begin; row < end; row++)
    finish_row(&l, op, row, n_member);
}
