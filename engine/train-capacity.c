/* train-capacity.c - the capacity term: what the soft size of the cache costs above its budget.
 * With size S over `streams` streams, budget K = streams * M and t from 0 in each document:
 *   NEXT, REFERENCE  mean over the t with S > K of (S - K) / max(1, streams * (t + 1 or t) - K)
 *   PAPER            mean over all t of max(0, S - K) / (streams * (t + 1))
 * In the REFERENCE form the divisor is 1 at t = M, where the term leaps to `streams`: kept as an
 * option and as the form of the published numbers.
 * Threads: pure functions.  Source: docs/method.md, section 12. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/train-internal.h"

static double
divisor(ks_train_capacity how, double n_stream, double t, double n_keep)
{
  double d = n_stream * (how == KS_TRAIN_CAPACITY_REFERENCE ? t : t + 1.0);

  if (how == KS_TRAIN_CAPACITY_PAPER)
    return d;
  d -= n_keep;
  return d > 1.0 ? d : 1.0;
}

double
ks_train_capacity_term(const ks_train_params *params, const float *size, const uint32_t *doc,
                       uint32_t n_plane, uint32_t n_tok, uint32_t n_col, uint32_t n_stream,
                       float *d_size)
{
  const double n_keep = (double)n_stream * params->n_entry;
  const size_t row = n_col, n = (size_t)n_plane * n_tok * row;
  double sum = 0.0;
  size_t n_counted = 0;

  for (size_t i = 0; i < n; i++) {
    const size_t t = i / row % n_tok;
    const double over = (double)size[i] - n_keep;
    const double d = divisor(params->capacity, n_stream, (double)(t - doc[t]), n_keep);

    if (d_size != NULL)
      d_size[i] = over > 0.0 ? (float)(1.0 / d) : 0.0F;
    sum += over > 0.0 ? over / d : 0.0;
    n_counted += over > 0.0 || params->capacity == KS_TRAIN_CAPACITY_PAPER;
  }
  if (n_counted == 0)
    return 0.0;
  for (size_t i = 0; d_size != NULL && i < n; i++)
    d_size[i] *= (float)((double)params->capacity_weight / (double)n_counted);
  return sum / (double)n_counted;
}
