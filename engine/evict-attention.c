/* evict-attention.c - policies that judge entries by the attention they receive.
 * H2O reads what all passes added up in the aux plane; SnapKV and its kin are given the attention
 * of the last queries (evict-watch.c) and pool it over neighbours.  AdaKV and PyramidKV score like
 * SnapKV and differ in how many entries a stream may keep.
 * Source: docs/method.md, section 6. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/evict-internal.h"

#include <math.h>

#define MAX_AUX 64u /* planes of a page, as ks_kv_layout_init allows */

void
ks_score_find_range(const ks_score_job *job, uint32_t *begin, uint32_t *end)
{
  uint32_t first = 0, last = job->n_entry;

  while (first < job->n_entry && job->pos[first] < job->live_from)
    first++;
  while (last > first && job->pos[last - 1] >= job->newest_from)
    last--;
  *begin = first;
  *end = last;
}

/* The pool of width k ends at the range's edges: a mean counts what lies outside as 0, as the
 * methods' own code does. */
void
ks_score_pool(const ks_score_job *job, uint32_t begin, uint32_t end)
{
  const uint32_t k = job->evict->params.pool, half = k / 2;
  const bool of_max = job->evict->params.pool_max;
  float *line = job->evict->line;

  if (k <= 1)
    return;
  for (uint32_t e = begin; e < end; e++)
    line[e - begin] = job->scores[e];
  for (uint32_t e = begin; e < end; e++) {
    const uint32_t at = e - begin, n = end - begin;
    const uint32_t from = at > half ? at - half : 0, to = n - at > half ? at + half + 1 : n;
    float max = line[from], sum = 0.0f;

    for (uint32_t i = from; i < to; i++) {
      max = line[i] > max ? line[i] : max;
      sum += line[i];
    }
    job->scores[e] = of_max ? max : sum / (float)k;
  }
}

/* H2O: the attention received so far, from all queries. */
ks_status
ks_score_received(const ks_score_job *job, ks_error *err)
{
  const ks_backend *be = job->evict->be;
  const uint32_t n_aux = job->view->layout->n_aux;
  float aux[MAX_AUX * KS_KEY_BLOCK];

  if (n_aux == 0 || n_aux > MAX_AUX)
    return ks_fail(err, KS_ERR_ARG, "the policy \"%s\" needs pages with one number more an entry",
                   job->evict->ops->name);
  for (uint32_t begin = 0; begin < job->n_entry; begin += KS_KEY_BLOCK) {
    const uint32_t n = job->n_entry - begin < KS_KEY_BLOCK ? job->n_entry - begin : KS_KEY_BLOCK;
    const ks_status st = be->t->kv_read(be->dev, job->view, job->stream, begin, begin + n, NULL,
                                        NULL, NULL, NULL, aux, err);

    if (st != KS_OK)
      return st;
    for (uint32_t i = 0; i < n; i++)
      job->scores[begin + i] = aux[i];
  }
  return KS_OK;
}

/* SnapKV: what the last queries give, pooled.  A mean over the heads of a group would divide every
 * score by the same number. */
ks_status
ks_score_pooled(const ks_score_job *job, ks_error *err)
{
  uint32_t begin, end;

  (void)err;
  ks_score_find_range(job, &begin, &end);
  ks_score_pool(job, begin, end);
  return KS_OK;
}

/* One layer of a view, as a view of its own; layout is where its layout is kept. */
static ks_kv_view
layer_of(const ks_kv_view *view, uint32_t layer, ks_kv_layout *layout)
{
  *layout = *view->layout;
  layout->n_layer = 1;
  return (ks_kv_view){.base = view->base,
                      .layout = layout,
                      .streams = view->streams + (size_t)layer * layout->n_kv_head};
}

/* How many of the best H * C entries of every layer fall to each head: newest and pinned entries
 * are infinite and come first. */
static ks_status
count_layer_best(const ks_allot_job *job, ks_error *err)
{
  const ks_backend *be = job->evict->be;
  const uint32_t n_head = job->view->layout->n_kv_head;
  ks_kv_layout layout;
  uint64_t offset = 0;
  ks_status st = be->t->step_begin(be->dev, err);

  if (st != KS_OK)
    return st;
  for (uint32_t l = 0; st == KS_OK && l < job->view->layout->n_layer; l++) {
    const ks_op_kv_select op = {.kv = layer_of(job->view, l, &layout),
                                .scores = job->evict->scores + offset * sizeof(float),
                                .keep = job->evict->keep + offset,
                                .n_keep = (uint64_t)n_head * job->share,
                                .out_n_keep = job->evict->per_stream + (size_t)l * n_head};

    st = be->t->kv_select(be->dev, &op);
    for (uint32_t h = 0; h < n_head; h++)
      offset += op.kv.streams[h].n_entry;
  }
  if (st == KS_OK)
    return be->t->step_end(be->dev, NULL, NULL, err);
  be->t->step_abort(be->dev);
  return ks_fail(err, st, "the device could not take the ranking of a layer");
}

/* AdaKV: a head's count lies between the equal share C and what it has of its layer's best; halves
 * go to the even number.  A layer that holds no more than H * C loses nothing. */
ks_status
ks_allot_heads(const ks_allot_job *job, ks_error *err)
{
  const uint32_t n_head = job->view->layout->n_kv_head;
  const double f = job->evict->params.head_floor;
  const uint32_t newest = job->seen - job->evict->newest_from;
  const uint32_t rest = job->share > newest ? job->share - newest : 0;
  uint32_t *count = job->evict->per_stream;
  const ks_status st = count_layer_best(job, err);

  if (st != KS_OK)
    return st;
  for (uint32_t l = 0; l < job->view->layout->n_layer; l++, count += n_head) {
    uint64_t total = 0;

    for (uint32_t h = 0; h < n_head; h++)
      total += job->view->streams[l * n_head + h].n_entry;
    for (uint32_t h = 0; h < n_head; h++) {
      const uint32_t n_entry = job->view->streams[l * n_head + h].n_entry;
      const uint32_t best = count[h] > newest ? count[h] - newest : 0;

      count[h] = total <= (uint64_t)n_head * job->share
                     ? n_entry
                     : newest + (uint32_t)rint((1.0 - f) * best + floor(f * rest));
    }
  }
  return KS_OK;
}

/* PyramidKV: counts fall from the lowest layer to the highest on a straight line around C.  The
 * step from layer to layer is not rounded, as the counts would otherwise add up to more than K. */
ks_status
ks_allot_pyramid(const ks_allot_job *job, ks_error *err)
{
  const uint32_t n_head = job->view->layout->n_kv_head, n_layer = job->view->layout->n_layer;
  const uint32_t newest = job->seen - job->evict->newest_from;
  const int64_t c = job->share > newest ? (int64_t)job->share - newest : 0;
  const int64_t n = job->seen - newest;
  int64_t least = c / 20, most = 2 * c - least;
  const bool is_flat = (int64_t)job->seen < 2 * c || n_layer < 2;

  (void)err;
  if (most >= n) {
    most = n;
    least = 2 * c - most;
  }
  for (uint32_t l = 0; l < n_layer; l++)
    for (uint32_t h = 0; h < n_head; h++)
      job->evict->per_stream[l * n_head + h] =
          newest +
          (uint32_t)(is_flat ? c : most - ((most - least) * l + n_layer - 2) / (n_layer - 1));
  return KS_OK;
}
