/* ops-slope.h - gradients by finite differences.  The operation's forward direction is written once
 * more in double, as a loss of arrays of doubles; its central differences are what the operation
 * must give.  Also runs a body for every set and thread count and asks for the same bits. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/cpu-train-internal.h"
#include "tests/ops/ops-fixture.h"

typedef double (*ops_loss_fn)(const void *user);

/* d loss / d *x. */
static inline double
ops_slope(ops_loss_fn loss, const void *user, double *x)
{
  const double keep = *x, h = 1e-5 * (1.0 + fabs(keep));
  double up, down;

  *x = keep + h;
  up = loss(user);
  *x = keep - h;
  down = loss(user);
  *x = keep;
  return (up - down) / (2 * h);
}

/* The same numbers as doubles. */
static inline double *
ops_doubles(ops_fixture *f, const float *x, size_t n)
{
  double *d = ks_mem_new(f->a, KS_MEM_SCRATCH, n, sizeof(*d));

  KS_ASSERT(d != NULL);
  for (size_t i = 0; i < n; i++)
    d[i] = (double)x[i];
  return d;
}

/* Every stride-th number of got against the slopes of loss in x, plus what was there before. */
static inline void
ops_check_slopes(const char *name, ops_loss_fn loss, const void *user, double *x, const float *got,
                 const float *before, size_t n, size_t stride, double tolerance)
{
  for (size_t i = 0; i < n; i += stride) {
    const double want = ops_slope(loss, user, x + i) + (before != NULL ? (double)before[i] : 0.0);

    if (!(fabs((double)got[i] - want) <= tolerance * (1.0 + fabs(want))))
      KS_FAIL("%s[%zu] = %.9g, want %.9g", name, i, (double)got[i], want);
  }
}

/* A sum of bits, in order (FNV-1a). */
static inline uint64_t
ops_digest(uint64_t digest, const float *x, size_t n)
{
  const unsigned char *bytes = (const unsigned char *)x;

  for (size_t i = 0; i < n * sizeof(*x); i++)
    digest = (digest ^ bytes[i]) * 1099511628211u;
  return digest;
}

#define OPS_DIGEST_BEGIN 14695981039346656037u

/* body returns a digest of its results, which may not depend on the number of threads. */
static inline void
ops_for_all_alike(uint64_t (*body)(ops_fixture *f))
{
  ops_set sets[4];
  const size_t n_set = ops_list_sets(sets);

  for (size_t i = 0; i < n_set; i++) {
    uint64_t first = 0;

    for (size_t j = 0; j < OPS_N_THREAD_COUNTS; j++) {
      ops_fixture f;
      uint64_t digest;

      ops_init(&f, sets[i], ops_thread_counts[j]);
      digest = body(&f);
      ops_done(&f);
      if (j == 0)
        first = digest;
      if (digest != first)
        KS_FAIL("%s: other bits with %u threads", sets[i].vec->name, ops_thread_counts[j]);
    }
  }
}
