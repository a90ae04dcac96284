/* eval-stats.c - see eval-stats.h.
 * A bootstrap draws groups with replacement; sums and counts of groups are taken once, so that a
 * draw costs one addition a group. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-stats.h"

#include <math.h>
#include <stdlib.h>

#define Z_95 1.959963984540054

static const KsEvalInterval nothing = {.n = 0, .mean = NAN, .low = NAN, .high = NAN};

guint
ks_eval_find_best (const float *values, guint n)
{
  guint best = 0;

  for (guint i = 1; i < n; i++)
    if (values[i] > values[best])
      best = i;
  return best;
}

double
ks_eval_log_sum_exp (const float *values, gsize n)
{
  double most = -INFINITY, sum = 0;

  for (gsize i = 0; i < n; i++)
    most = MAX (most, (double)values[i]);
  for (gsize i = 0; i < n; i++)
    sum += exp ((double)values[i] - most);
  return most + log (sum);
}

KsEvalInterval
ks_eval_wilson (gsize n_right, gsize n)
{
  double p, z2 = Z_95 * Z_95, count = (double)n, centre, half;

  g_return_val_if_fail (n_right <= n, nothing);
  if (n == 0)
    return nothing;
  p = (double)n_right / count;
  centre = (p + z2 / (2 * count)) / (1 + z2 / count);
  half = Z_95 / (1 + z2 / count) * sqrt (p * (1 - p) / count + z2 / (4 * count * count));
  return (KsEvalInterval){.n = n,
                          .mean = p,
                          .low = n_right == 0 ? 0 : MAX (centre - half, 0),
                          .high = n_right == n ? 1 : MIN (centre + half, 1)};
}

/* --- bootstrap --- */

typedef struct {
  double sum;
  gsize n;
} Group;

static guint64
next_random (guint64 *state)
{
  guint64 z = (*state += G_GUINT64_CONSTANT (0x9e3779b97f4a7c15));

  z = (z ^ (z >> 30)) * G_GUINT64_CONSTANT (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * G_GUINT64_CONSTANT (0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* Groups in order of their first item, so that the draws do not depend on the numbers. */
static GArray *
make_groups (const double *values, const guint *groups, gsize n)
{
  GArray *out = g_array_new (FALSE, FALSE, sizeof (Group));
  g_autoptr (GHashTable) places = g_hash_table_new (NULL, NULL);

  for (gsize i = 0; i < n; i++) {
    gpointer key = groups != NULL ? GUINT_TO_POINTER (groups[i]) : GUINT_TO_POINTER ((guint)i);
    gpointer at = NULL;
    Group *group, empty = {0};

    if (!g_hash_table_lookup_extended (places, key, NULL, &at)) {
      at = GUINT_TO_POINTER (out->len);
      g_hash_table_insert (places, key, at);
      g_array_append_val (out, empty);
    }
    group = &g_array_index (out, Group, GPOINTER_TO_UINT (at));
    group->sum += values[i];
    group->n++;
  }
  return out;
}

static int
compare_doubles (const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;

  return x < y ? -1 : x > y;
}

/* Of sorted values, between its neighbours. */
static double
get_quantile (const double *sorted, gsize n, double part)
{
  double at = part * (double)(n - 1);
  gsize below = (gsize)floor (at);
  double rest = at - (double)below;

  return below + 1 < n ? sorted[below] + rest * (sorted[below + 1] - sorted[below]) : sorted[below];
}

KsEvalInterval
ks_eval_bootstrap (const double *values, const guint *groups, gsize n, guint64 seed)
{
  g_autoptr (GArray) all = NULL;
  g_autofree double *means = NULL;
  KsEvalInterval out = nothing;
  double sum = 0;

  g_return_val_if_fail (values != NULL || n == 0, nothing);
  if (n == 0)
    return nothing;
  for (gsize i = 0; i < n; i++)
    sum += values[i];
  out.n = n;
  out.mean = sum / (double)n;
  all = make_groups (values, groups, n);
  if (all->len < 2)
    return out;
  means = g_new (double, KS_EVAL_N_DRAW);
  for (guint draw = 0; draw < KS_EVAL_N_DRAW; draw++) {
    double total = 0;
    gsize count = 0;

    for (guint i = 0; i < all->len; i++) {
      const Group *group = &g_array_index (all, Group, next_random (&seed) % all->len);

      total += group->sum;
      count += group->n;
    }
    means[draw] = total / (double)count;
  }
  qsort (means, KS_EVAL_N_DRAW, sizeof *means, compare_doubles);
  out.low = get_quantile (means, KS_EVAL_N_DRAW, 0.025);
  out.high = get_quantile (means, KS_EVAL_N_DRAW, 0.975);
  return out;
}

static gboolean
is_share (const double *values, const guint *groups, gsize n, gsize *out_n_right)
{
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);

  *out_n_right = 0;
  for (gsize i = 0; i < n; i++) {
    if (values[i] != 0 && values[i] != 1)
      return FALSE;
    if (groups != NULL && !g_hash_table_add (seen, GUINT_TO_POINTER (groups[i])))
      return FALSE;
    *out_n_right += values[i] > 0;
  }
  return TRUE;
}

KsEvalInterval
ks_eval_interval (const double *values, const guint *groups, gsize n, guint64 seed)
{
  gsize n_right = 0;

  if (is_share (values, groups, n, &n_right))
    return ks_eval_wilson (n_right, n);
  return ks_eval_bootstrap (values, groups, n, seed);
}

/* --- comparing --- */

/* Twice the share of the smaller tail of a fair coin thrown n times: k heads or fewer. */
static double
sign_test (gsize k, gsize n)
{
  double tail = 0;

  for (gsize i = 0; i <= k; i++)
    tail += exp (lgamma ((double)n + 1) - lgamma ((double)i + 1) - lgamma ((double)(n - i) + 1) -
                 (double)n * G_LN2);
  return MIN (2 * tail, 1.0);
}

KsEvalPaired
ks_eval_compare (const double *a, const double *b, const guint *groups, gsize n, guint64 seed)
{
  g_autofree double *differences = g_new (double, MAX (n, 1));
  KsEvalPaired out = {.difference = nothing, .p = 1};

  for (gsize i = 0; i < n; i++) {
    differences[i] = a[i] - b[i];
    out.n_above += a[i] > b[i];
    out.n_below += a[i] < b[i];
  }
  out.difference = ks_eval_bootstrap (differences, groups, n, seed);
  out.p = sign_test (MIN (out.n_above, out.n_below), out.n_above + out.n_below);
  return out;
}

gboolean
ks_eval_paired_differs (const KsEvalPaired *paired)
{
  return paired->difference.low > 0 || paired->difference.high < 0;
}

double
ks_eval_slope (const double *x, const double *y, gsize n)
{
  double mean_x = 0, mean_y = 0, above = 0, below = 0;

  for (gsize i = 0; i < n; i++) {
    mean_x += x[i] / (double)n;
    mean_y += y[i] / (double)n;
  }
  for (gsize i = 0; i < n; i++) {
    above += (x[i] - mean_x) * (y[i] - mean_y);
    below += (x[i] - mean_x) * (x[i] - mean_x);
  }
  return below > 0 ? above / below : NAN;
}
