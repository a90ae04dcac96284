/* evict-keys.c - KeyDiff: entries whose key points where most keys of the stream point say little
 * that the others do not; the least similar to the mean direction stay. Keys are read in blocks,
 * twice: once for the mean of the unit keys, once for the cosines. Source: docs/method.md,
 * section 6. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/evict-internal.h"

#include <math.h>
#include <string.h>

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
