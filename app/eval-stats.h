/* eval-stats.h - means with their uncertainty: Wilson's interval of a share, intervals by drawing
 * items anew (bootstrap), and two policies compared on the same items.
 * All intervals are of 95 %.  Draws come from a generator of our own with a fixed seed: the same
 * scores give the same intervals everywhere.  Source: docs/comparing.md.  Threads: pure
 * functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define KS_EVAL_N_DRAW 2000u
#define KS_EVAL_SEED 20260101u

/* NAN where there is nothing to say (n = 0; low and high of a single group). */
typedef struct {
  gsize n; /* items */
  double mean, low, high;
} KsEvalInterval;

/* log of the sum of e^value, n > 0: less the value of one word it is what that word costs, in nats.
 */
double ks_eval_log_sum_exp (const float *values, gsize n);

/* Place of the largest value, of equal ones the first; n > 0. */
guint ks_eval_find_best (const float *values, guint n);

/* n_right of n items: Wilson's score interval. */
KsEvalInterval ks_eval_wilson (gsize n_right, gsize n);

/* Of the mean of n values.  groups [n]: items with the same number are drawn together (the
 * questions of one picture or dialogue); NULL = each by itself. */
KsEvalInterval ks_eval_bootstrap (const double *values, const guint *groups, gsize n, guint64 seed);

/* Wilson's where all values are 0 or 1 and each is a group of its own, else the bootstrap. */
KsEvalInterval ks_eval_interval (const double *values, const guint *groups, gsize n, guint64 seed);

typedef struct {
  KsEvalInterval difference; /* mean of a - b, drawn by pairs */
  gsize n_above, n_below;    /* items where a is larger, smaller */
  double p; /* two-sided exact sign test over these: how often chance alone parts them so far */
} KsEvalPaired;

/* a and b [n] of the same items, in the same order. */
KsEvalPaired ks_eval_compare (const double *a, const double *b, const guint *groups, gsize n,
                              guint64 seed);
/* 0 lies outside of the interval of the difference. */
gboolean ks_eval_paired_differs (const KsEvalPaired *paired);

/* Slope of the line of least squares; NAN for fewer than two places of x. */
double ks_eval_slope (const double *x, const double *y, gsize n);

G_END_DECLS
