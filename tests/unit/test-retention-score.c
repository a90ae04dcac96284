/* test-retention-score.c - the score of one entry: worked numbers and the awkward ends. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/retention.h"
#include "tests/ks-test.h"

static float
score(double beta, uint32_t pos, uint32_t seen, uint32_t lookahead)
{
  return ks_retention_score((float)log(beta), pos, seen, lookahead);
}

/* An old entry that keeps well and a new one that fades change places with time. */
KS_TEST(retention_score, order_changes_with_time)
{
  KS_ASSERT_NEAR(score(0.95, 0, 9, 1), -0.512933, 1e-6);
  KS_ASSERT_NEAR(score(0.80, 8, 9, 1), -0.446287, 1e-6);
  KS_ASSERT_NEAR(score(0.95, 0, 10, 1), -0.564226, 1e-6);
  KS_ASSERT_NEAR(score(0.80, 8, 10, 1), -0.669431, 1e-6);
}

/* Lookahead weighs what comes after: it prefers the entry that lasts. */
KS_TEST(retention_score, order_changes_with_lookahead)
{
  KS_ASSERT_NEAR(exp(score(0.95, 1, 15, 1)), 0.463291, 1e-6);
  KS_ASSERT_NEAR(exp(score(0.70, 14, 15, 1)), 0.490000, 1e-6);
  KS_ASSERT_NEAR(exp(score(0.95, 1, 15, 2)), 0.858247, 1e-6);
  KS_ASSERT_NEAR(exp(score(0.70, 14, 15, 2)), 0.583100, 1e-6);
}

/* The n > 1 form is the log of a sum of powers, also where 1 - beta is far below one f32 step. */
KS_TEST(retention_score, lookahead_is_a_sum)
{
  static const double log_betas[] = {-1e-9, -1e-6, -0.01, -0.3, -0.7, -5.0, -40.0};

  for (size_t i = 0; i < sizeof(log_betas) / sizeof(log_betas[0]); i++)
    for (uint32_t n = 2; n < 9; n += 3) {
      const float log_beta = (float)log_betas[i];
      double sum = 0;

      for (uint32_t k = 0; k < n; k++)
        sum += exp((double)k * log_beta);
      KS_ASSERT_NEAR(ks_retention_lookahead_term(log_beta, n), log(sum), 1e-7 * (1 + log(n)));
      KS_ASSERT_NEAR(ks_retention_score(log_beta, 4, 10, n), 8 * (double)log_beta + log(sum),
                     4e-7 * (2 + fabs(8 * log_betas[i])));
    }
}

/* beta = 1 gives the plain count, not 0/0; n = 1 gives 0. */
KS_TEST(retention_score, nothing_forgotten)
{
  KS_ASSERT_NEAR(ks_retention_score(0.0F, 3, 1000, 4), log(4.0), 1e-7);
  KS_ASSERT(ks_retention_score(0.0F, 3, 1000, 1) == 0.0F);
  KS_ASSERT(ks_retention_lookahead_term(-0.5F, 1) == 0.0F);
}

/* The product is rounded before the sum: a fused multiply-add would give another f32 here. */
KS_TEST(retention_score, rounded_apart)
{
  uint32_t n_differ = 0;

  for (uint32_t i = 1; i < 2000; i++) {
    const float log_beta = -0.0001F * (float)i;
    const float term = ks_retention_lookahead_term(log_beta, 3), age = 1002.0F - 7.0F;
    const volatile float product = age * log_beta;
    const volatile float sum = product + term;

    KS_ASSERT(ks_retention_score(log_beta, 7, 1000, 3) == sum);
    n_differ += fmaf(age, log_beta, term) != sum;
  }
  KS_ASSERT_GE(n_differ, 100);
}

/* Stable on both sides and finite for every finite z. */
KS_TEST(retention_score, log_sigmoid)
{
  KS_ASSERT_NEAR(ks_log_sigmoid(2.766864F), -0.060962, 1e-6);
  KS_ASSERT_NEAR(ks_log_sigmoid(1.684892F), -0.170135, 1e-6);
  KS_ASSERT_NEAR(ks_log_sigmoid(18.0F), -1.5229979e-8, 1e-13);
  KS_ASSERT_NEAR(ks_log_sigmoid(-200.0F), -200.0, 1e-5);
  KS_ASSERT(isfinite(ks_log_sigmoid(3e38F)) && isfinite(ks_log_sigmoid(-3e38F)));
}

KS_TEST_MAIN
