/* test-eval-stats.c - intervals and paired tests give the numbers of the books, do not depend on
 * chance, and cover as often as they say. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-stats.h"

#include <math.h>

static void
assert_near (double a, double b, double slack)
{
  g_assert_cmpfloat_with_epsilon (a, b, slack);
}

/* Worked by hand from Wilson's formula: 18 of 24, 0 of 10, 10 of 10, 1 of 2. */
static void
test_wilson (void)
{
  KsEvalInterval i = ks_eval_wilson (18, 24);

  assert_near (i.mean, 0.75, 1e-12);
  assert_near (i.low, 0.55099, 1e-4);
  assert_near (i.high, 0.88001, 1e-4);
  i = ks_eval_wilson (0, 10);
  assert_near (i.low, 0, 1e-15);
  assert_near (i.high, 0.27753, 1e-4);
  i = ks_eval_wilson (10, 10);
  assert_near (i.low, 0.72247, 1e-4);
  assert_near (i.high, 1, 1e-15);
  i = ks_eval_wilson (1, 2);
  assert_near (i.low, 0.09453, 1e-4);
  assert_near (i.high, 0.90547, 1e-4);
  g_assert_true (isnan (ks_eval_wilson (0, 0).mean));
}

/* The sign test of 5 wins and 17 losses is 2 * (1 + 22 + 231 + 1540 + 7315 + 26334) / 2^22. */
static void
test_sign (void)
{
  double a[60] = {0}, b[60] = {0};
  KsEvalPaired paired;

  for (guint i = 0; i < 5; i++)
    a[i] = 1;
  for (guint i = 5; i < 22; i++)
    b[i] = 1;
  paired = ks_eval_compare (a, b, NULL, 60, 1);
  g_assert_cmpuint (paired.n_above, ==, 5);
  g_assert_cmpuint (paired.n_below, ==, 17);
  assert_near (paired.p, 2 * 35443.0 / 4194304, 1e-9);
  assert_near (paired.difference.mean, -0.2, 1e-12);
  g_assert_true (ks_eval_paired_differs (&paired));
  paired = ks_eval_compare (a, a, NULL, 60, 1);
  assert_near (paired.p, 1, 1e-15);
  g_assert_false (ks_eval_paired_differs (&paired));
}

/* The interval of a mean of 400 values is that of the normal law (mean +- 1.96 s / sqrt n), within
 * what 2,000 draws allow. */
static void
test_bootstrap (void)
{
  double values[400], sum = 0, squares = 0, error;
  KsEvalInterval i, again;

  for (guint k = 0; k < 400; k++) {
    values[k] = sin (k * 12.9898) * 3 + k % 7;
    sum += values[k];
  }
  for (guint k = 0; k < 400; k++)
    squares += (values[k] - sum / 400) * (values[k] - sum / 400);
  error = sqrt (squares / 399 / 400);
  i = ks_eval_bootstrap (values, NULL, 400, 5);
  assert_near (i.mean, sum / 400, 1e-9);
  assert_near (i.low, i.mean - 1.96 * error, 0.15 * error);
  assert_near (i.high, i.mean + 1.96 * error, 0.15 * error);
  again = ks_eval_bootstrap (values, NULL, 400, 5);
  assert_near (i.low, again.low, 1e-15);
  assert_near (i.high, again.high, 1e-15);
}

/* Items of one group say the same: ten groups of forty are no better known than ten items. */
static void
test_groups (void)
{
  double values[400], ten[10];
  guint groups[400];
  KsEvalInterval grouped, single, few;

  for (guint k = 0; k < 400; k++) {
    groups[k] = k / 40 * 3 + 7;
    values[k] = k / 40 % 2;
    ten[k / 40] = values[k];
  }
  grouped = ks_eval_interval (values, groups, 400, 5);
  single = ks_eval_interval (values, NULL, 400, 5);
  few = ks_eval_bootstrap (ten, NULL, 10, 5);
  g_assert_cmpuint (grouped.n, ==, 400);
  assert_near (grouped.low, few.low, 1e-12);
  assert_near (grouped.high, few.high, 1e-12);
  g_assert_cmpfloat (grouped.high - grouped.low, >, 4 * (single.high - single.low));
  for (guint k = 0; k < 400; k++)
    groups[k] = 1;
  grouped = ks_eval_interval (values, groups, 400, 5);
  g_assert_true (isnan (grouped.low) && !isnan (grouped.mean));
}

/* Pairs matter: a difference that every item shows is certain, however much the items differ. */
static void
test_paired (void)
{
  double a[40], b[40];
  KsEvalPaired paired;

  for (guint k = 0; k < 40; k++) {
    b[k] = k * 10.0;
    a[k] = b[k] + 0.5 + 0.1 * (k % 3);
  }
  paired = ks_eval_compare (a, b, NULL, 40, 1);
  g_assert_true (ks_eval_paired_differs (&paired));
  g_assert_cmpfloat (paired.difference.low, >, 0.5);
  g_assert_cmpfloat (paired.difference.high, <, 0.7);
  g_assert_cmpfloat (paired.p, <, 1e-11);
}

/* 0/1 values give Wilson's interval, others do not. */
static void
test_choice (void)
{
  double values[24];

  for (guint k = 0; k < 24; k++)
    values[k] = k < 18;
  assert_near (ks_eval_interval (values, NULL, 24, 1).low, ks_eval_wilson (18, 24).low, 1e-15);
  values[0] = 0.6;
  assert_near (ks_eval_interval (values, NULL, 24, 1).low,
               ks_eval_bootstrap (values, NULL, 24, 1).low, 1e-15);
}

static void
test_slope (void)
{
  const double x[] = {1, 2, 3, 4}, y[] = {3, 5, 7, 9}, flat[] = {2, 2, 2, 2};

  assert_near (ks_eval_slope (x, y, 4), 2, 1e-12);
  assert_near (ks_eval_slope (x, flat, 4), 0, 1e-12);
  g_assert_true (isnan (ks_eval_slope (flat, y, 4)));
  g_assert_true (isnan (ks_eval_slope (x, y, 1)));
}

/* Two equal values weigh ln 2 more than one, also where e^value is no number any more. */
static void
test_log_sum_exp (void)
{
  const float small[] = {0, 0}, large[] = {1000, 1000}, apart[] = {3, -200};

  g_assert_cmpfloat_with_epsilon (ks_eval_log_sum_exp (small, 2), 0.6931471805599453, 1e-12);
  g_assert_cmpfloat_with_epsilon (ks_eval_log_sum_exp (large, 2), 1000.6931471805599, 1e-9);
  g_assert_cmpfloat_with_epsilon (ks_eval_log_sum_exp (apart, 2), 3, 1e-12);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/eval-stats/log-sum-exp", test_log_sum_exp);
  g_test_add_func ("/eval-stats/wilson", test_wilson);
  g_test_add_func ("/eval-stats/sign", test_sign);
  g_test_add_func ("/eval-stats/bootstrap", test_bootstrap);
  g_test_add_func ("/eval-stats/groups", test_groups);
  g_test_add_func ("/eval-stats/paired", test_paired);
  g_test_add_func ("/eval-stats/choice", test_choice);
  g_test_add_func ("/eval-stats/slope", test_slope);
  return g_test_run ();
}
