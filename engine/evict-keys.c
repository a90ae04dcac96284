/* evict-keys.c - policies that compare keys.
 * KeyDiff: entries whose key points where most keys of the stream point say little that the others
 * do not; the least similar to the mean direction stay.  Keys are read in blocks, twice: once for
 * the mean of the unit keys, once for the cosines.
 * R-KV: every key against every other, some rows of the matrix of cosines at a time, as products on
 * the device.  Source: docs/method.md, section 6. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/evict-internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define ALIKE 0.5f /* a cosine above it: the newer entry stands for the older one */

/* Four sums side by side: a single one would wait for itself at every step. */
static double
length_of(const float *x, uint32_t n)
{
  double sum[4] = {0.0, 0.0, 0.0, 0.0};
  uint32_t i = 0;

  for (; i + 4 <= n; i += 4)
    for (uint32_t k = 0; k < 4; k++)
      sum[k] += (double)x[i + k] * x[i + k];
  for (; i < n; i++)
    sum[0] += (double)x[i] * x[i];
  return sqrt((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

static double
dot(const double *a, const float *x, uint32_t n)
{
  double sum[4] = {0.0, 0.0, 0.0, 0.0};
  uint32_t i = 0;

  for (; i + 4 <= n; i += 4)
    for (uint32_t k = 0; k < 4; k++)
      sum[k] += a[i + k] * x[i + k];
  for (; i < n; i++)
    sum[0] += a[i] * x[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Calls the backend for one block of keys. */
static ks_status
read_keys(const ks_score_job *job, uint32_t begin, uint32_t end, ks_error *err)
{
  const ks_backend *be = job->evict->be;

  return be->t->kv_read(be->dev, job->view, job->stream, begin, end, job->evict->keys, NULL, NULL,
                        NULL, NULL, err);
}

static uint32_t
block_end(uint32_t begin, uint32_t n)
{
  return n - begin > KS_KEY_BLOCK ? begin + KS_KEY_BLOCK : n;
}

/* Sum of the unit keys of live entries; its length does not matter to a cosine.  Leaves 1 / |key|
 * in the scores, 0 for a key of zeros. */
static ks_status
sum_unit_keys(const ks_score_job *job, uint32_t first, ks_error *err)
{
  const uint32_t k_dim = job->view->layout->k_dim;
  double *anchor = job->evict->anchor;

  memset(anchor, 0, k_dim * sizeof(*anchor));
  for (uint32_t begin = first, end; begin < job->n_entry; begin = end) {
    ks_status st;

    end = block_end(begin, job->n_entry);
    st = read_keys(job, begin, end, err);
    if (st != KS_OK)
      return st;
    for (uint32_t e = begin; e < end; e++) {
      const float *key = job->evict->keys + (size_t)(e - begin) * k_dim;
      const double len = length_of(key, k_dim), inverse = len > 0.0 ? 1.0 / len : 0.0;

      job->scores[e] = (float)inverse;
      for (uint32_t i = 0; i < k_dim; i++)
        anchor[i] += key[i] * inverse;
    }
  }
  return KS_OK;
}

static uint32_t
first_live(const ks_score_job *job)
{
  uint32_t e = 0;

  while (e < job->n_entry && job->pos[e] < job->live_from)
    e++;
  return e;
}

/* score = -cos(key, mean of the unit keys). */
ks_status
ks_score_keydiff(const ks_score_job *job, ks_error *err)
{
  const uint32_t k_dim = job->view->layout->k_dim, first = first_live(job);
  const double *anchor = job->evict->anchor;
  double anchor_len = 0.0, inverse;
  ks_status st = sum_unit_keys(job, first, err);

  for (uint32_t i = 0; i < k_dim; i++)
    anchor_len += anchor[i] * anchor[i];
  inverse = anchor_len > 0.0 ? 1.0 / sqrt(anchor_len) : 0.0;
  for (uint32_t e = 0; e < first; e++)
    job->scores[e] = 0.0f;
  for (uint32_t begin = first, end; st == KS_OK && begin < job->n_entry; begin = end) {
    end = block_end(begin, job->n_entry);
    st = read_keys(job, begin, end, err);
    for (uint32_t e = begin; st == KS_OK && e < end; e++) {
      const float *key = job->evict->keys + (size_t)(e - begin) * k_dim;

      job->scores[e] *= (float)(-dot(anchor, key, k_dim) * inverse);
    }
  }
  return st;
}

/* Raw cosines are not on one scale over streams: each stream's scores get mean 0 and variance 1, so
 * that they can be ranked together. */
ks_status
ks_score_keydiff_standard(const ks_score_job *job, ks_error *err)
{
  const uint32_t first = first_live(job), n = job->n_entry - first;
  float *scores = job->scores + first;
  double mean = 0.0, var = 0.0;
  ks_status st = ks_score_keydiff(job, err);

  if (st != KS_OK || n == 0)
    return st;
  for (uint32_t e = 0; e < n; e++)
    mean += scores[e];
  mean /= n;
  for (uint32_t e = 0; e < n; e++)
    var += (scores[e] - mean) * (scores[e] - mean);
  var /= n;
  for (uint32_t e = 0; e < n; e++)
    scores[e] = var > 0.0 ? (float)((scores[e] - mean) / sqrt(var)) : 0.0f;
  return KS_OK;
}

/* Brings the unit keys of entries first .. n_entry - 1 to the device. */
static ks_status
upload_unit_keys(const ks_score_job *job, uint32_t first, ks_error *err)
{
  ks_evict *evict = job->evict;
  const uint32_t k_dim = job->view->layout->k_dim;

  for (uint32_t begin = first, end; begin < job->n_entry; begin = end) {
    ks_status st;

    end = block_end(begin, job->n_entry);
    st = read_keys(job, begin, end, err);
    for (uint32_t e = 0; st == KS_OK && e < end - begin; e++) {
      float *key = evict->keys + (size_t)e * k_dim;
      const double len = length_of(key, k_dim), inverse = len > 0.0 ? 1.0 / len : 0.0;

      for (uint32_t i = 0; i < k_dim; i++)
        key[i] = (float)(key[i] * inverse);
    }
    if (st == KS_OK)
      st = evict->be->t->upload(evict->be->dev,
                                evict->unit_keys + (size_t)(begin - first) * k_dim * sizeof(float),
                                evict->keys, (size_t)(end - begin) * k_dim * sizeof(float), err);
    if (st != KS_OK)
      return st;
  }
  return KS_OK;
}

/* Rows begin .. begin + n_row - 1 of the matrix of cosines of n keys, to the host. */
static ks_status
make_alike_rows(const ks_score_job *job, uint32_t begin, uint32_t n_row, uint32_t n, ks_error *err)
{
  ks_evict *evict = job->evict;
  const ks_backend *be = evict->be;
  const uint32_t k_dim = job->view->layout->k_dim;
  const ks_op_linear op = {.n_w = 1,
                           .w = {{.data = evict->unit_keys,
                                  .dtype = KS_DTYPE_F32,
                                  .n_in = k_dim,
                                  .n_out = n,
                                  .row_bytes = k_dim * sizeof(float)}},
                           .x = evict->unit_keys + (size_t)begin * k_dim * sizeof(float),
                           .y = {evict->alike},
                           .n_tok = n_row,
                           .epilogue = KS_EPI_STORE,
                           .act = KS_ACT_NONE,
                           .exact = true};
  ks_status st = be->t->step_begin(be->dev, err);

  if (st != KS_OK)
    return st;
  st = be->t->linear(be->dev, &op);
  if (st != KS_OK) {
    be->t->step_abort(be->dev);
    return ks_fail(err, st, "the device could not take the products of keys");
  }
  st = be->t->step_end(be->dev, NULL, NULL, err);
  if (st == KS_OK)
    st = be->t->download(be->dev, evict->alike_host, evict->alike,
                         (size_t)n_row * n * sizeof(float), err);
  return st;
}

/* Adds a row of cosines to the columns, without itself and the newest entry that it resembles. */
static void
add_alike_row(float *row, uint32_t self, uint32_t n, double *column)
{
  uint32_t newest = n;

  row[self] = 0.0f;
  while (newest > 0 && !(row[newest - 1] > ALIKE))
    newest--;
  if (newest > 0)
    row[newest - 1] = 0.0f;
  for (uint32_t i = 0; i < n; i++)
    column[i] += row[i];
}

/* evict->alike_column [n_entry - first] becomes the softmax of the mean cosines. */
static ks_status
find_redundancy(const ks_score_job *job, uint32_t first, ks_error *err)
{
  ks_evict *evict = job->evict;
  const uint32_t n = job->n_entry - first;
  double *column = evict->alike_column, max = -INFINITY, sum = 0.0;
  ks_status st = upload_unit_keys(job, first, err);

  memset(column, 0, n * sizeof(*column));
  for (uint32_t begin = 0; st == KS_OK && begin < n; begin += KS_ALIKE_ROWS) {
    const uint32_t n_row = n - begin < KS_ALIKE_ROWS ? n - begin : KS_ALIKE_ROWS;

    st = make_alike_rows(job, begin, n_row, n, err);
    for (uint32_t r = 0; st == KS_OK && r < n_row; r++)
      add_alike_row(evict->alike_host + (size_t)r * n, begin + r, n, column);
  }
  for (uint32_t i = 0; st == KS_OK && i < n; i++) {
    column[i] /= n;
    max = column[i] > max ? column[i] : max;
  }
  for (uint32_t i = 0; st == KS_OK && i < n; i++)
    sum += column[i] = exp(column[i] - max);
  for (uint32_t i = 0; st == KS_OK && i < n; i++)
    column[i] /= sum;
  return st;
}

/* R-KV: lambda * attention - (1 - lambda) * redundancy; attention is the mean over the last queries
 * and the heads of the group, pooled. */
ks_status
ks_score_rkv(const ks_score_job *job, ks_error *err)
{
  ks_evict *evict = job->evict;
  const uint32_t group = evict->n_head / job->view->layout->n_kv_head;
  const uint32_t n_query = ks_evict_count_queries(evict);
  const double mix = evict->params.mix, n_mean = (double)(n_query > 0 ? n_query : 1) * group;
  uint32_t begin, end;
  ks_status st;

  ks_score_find_range(job, &begin, &end);
  if (begin == end)
    return KS_OK;
  assert(job->n_entry - begin <= evict->line_capacity);
  ks_score_pool(job, begin, end);
  st = find_redundancy(job, begin, err);
  for (uint32_t e = begin; st == KS_OK && e < end; e++)
    job->scores[e] =
        (float)(mix * (job->scores[e] / n_mean) - (1.0 - mix) * evict->alike_column[e - begin]);
  return st;
}
