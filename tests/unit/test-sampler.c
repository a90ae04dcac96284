/* test-sampler.c - each filter against numbers worked out by hand, and the chain's promises. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/sampler.h"
#include "tests/ks-test.h"

/* ln of 0.4, 0.3, 0.2, 0.1 in a shuffled order: ids 2, 0, 3, 1. */
static const float LOGITS[4] = {-1.2039728f, -2.3025851f, -0.91629073f, -1.6094379f};

static ks_sampler_params
plain(void)
{
  ks_sampler_params p = {1.0f, 0, 1.0f, 0.0f, 1.0f, 0, 42};

  return p;
}

static ks_sampler *
sampler_new(ks_alloc *a, ks_sampler_params p, uint32_t n_vocab)
{
  ks_sampler *s = NULL;

  KS_ASSERT_OK(ks_sampler_new(a, &p, n_vocab, &s, NULL));
  return s;
}

/* Which of the four ids come up in many draws. */
static unsigned
drawn_ids(ks_sampler_params p)
{
  ks_alloc *a = ks_alloc_new();
  ks_sampler *s = sampler_new(a, p, 4);
  unsigned seen = 0;

  for (int i = 0; i < 2000; i++)
    seen |= 1u << ks_sampler_pick(s, LOGITS);
  ks_sampler_free(s);
  ks_alloc_free(a);
  return seen;
}

/* The generator is PCG64: first draws for seed 42 are .158 .734 .714 .748 .450 .647 .427 .539 .939
 * .132, worked out with big integers; against the cumulative sums .3 .4 .8 1. in id order. */
KS_TEST(sampler, draws_follow_the_generator)
{
  static const ks_token want[] = {0, 2, 2, 2, 2, 2, 2, 2, 3, 0};
  ks_alloc *a = ks_alloc_new();
  ks_sampler *s = sampler_new(a, plain(), 4);

  for (int i = 0; i < 10; i++)
    KS_ASSERT_EQ(ks_sampler_pick(s, LOGITS), want[i]);
  ks_sampler_reset(s, 42);
  for (int i = 0; i < 10; i++)
    KS_ASSERT_EQ(ks_sampler_pick(s, LOGITS), want[i]);
  ks_sampler_free(s);
  ks_alloc_free(a);
}

/* Frequencies follow the probabilities. */
KS_TEST(sampler, frequencies)
{
  static const double prob[4] = {0.3, 0.1, 0.4, 0.2};
  ks_alloc *a = ks_alloc_new();
  ks_sampler *s = sampler_new(a, plain(), 4);
  int count[4] = {0};

  for (int i = 0; i < 20000; i++)
    count[ks_sampler_pick(s, LOGITS)]++;
  for (int i = 0; i < 4; i++)
    KS_ASSERT_NEAR(count[i] / 20000.0, prob[i], 0.015);
  ks_sampler_free(s);
  ks_alloc_free(a);
}

KS_TEST(sampler, top_k_keeps_the_largest)
{
  ks_sampler_params p = plain();

  p.top_k = 1;
  KS_ASSERT_EQ(drawn_ids(p), 1u << 2);
  p.top_k = 3;
  KS_ASSERT_EQ(drawn_ids(p), 1u << 2 | 1u << 0 | 1u << 3);
  p.top_k = 99;
  KS_ASSERT_EQ(drawn_ids(p), 15);
}

/* .4 + .3 reaches .65 with two ids, .9 exactly with three; .35 is reached by the first alone. */
KS_TEST(sampler, top_p_keeps_the_crossing_one)
{
  ks_sampler_params p = plain();

  p.top_p = 0.65f;
  KS_ASSERT_EQ(drawn_ids(p), 1u << 2 | 1u << 0);
  p.top_p = 0.85f;
  KS_ASSERT_EQ(drawn_ids(p), 1u << 2 | 1u << 0 | 1u << 3);
  p.top_p = 0.35f;
  KS_ASSERT_EQ(drawn_ids(p), 1u << 2);
}

/* top-p counts the probability that top-k left: .4/.7 = .571 reaches .55 alone, not .6. */
KS_TEST(sampler, top_p_after_top_k)
{
  ks_sampler_params p = plain();

  p.top_k = 2;
  p.top_p = 0.55f;
  KS_ASSERT_EQ(drawn_ids(p), 1u << 2);
  p.top_p = 0.6f;
  KS_ASSERT_EQ(drawn_ids(p), 1u << 2 | 1u << 0);
}

/* Ratios to the best are 1, .75, .5, .25. */
KS_TEST(sampler, min_p_is_relative_to_the_best)
{
  ks_sampler_params p = plain();

  p.min_p = 0.7f;
  KS_ASSERT_EQ(drawn_ids(p), 1u << 2 | 1u << 0);
  p.min_p = 0.3f;
  KS_ASSERT_EQ(drawn_ids(p), 1u << 2 | 1u << 0 | 1u << 3);
  p.min_p = 1.0f;
  KS_ASSERT_EQ(drawn_ids(p), 1u << 2);
}

/* At temperature 0.5 probabilities are squared: the ratio .1/.4 becomes 1/16, under min-p .07. */
KS_TEST(sampler, temperature_comes_before_min_p)
{
  ks_sampler_params p = plain();

  p.min_p = 0.07f;
  KS_ASSERT_EQ(drawn_ids(p), 15);
  p.temperature = 0.5f;
  KS_ASSERT_EQ(drawn_ids(p), 1u << 2 | 1u << 0 | 1u << 3);
}

/* Equal logits: the smaller id, in greedy as in top-k. */
KS_TEST(sampler, ties_go_to_the_smaller_id)
{
  static const float tie[5] = {1.0f, 3.0f, 2.0f, 3.0f, 3.0f};
  ks_alloc *a = ks_alloc_new();
  ks_sampler_params p = plain();
  ks_sampler *s;

  p.temperature = 0.0f;
  s = sampler_new(a, p, 5);
  KS_ASSERT_EQ(ks_sampler_pick(s, tie), 1);
  ks_sampler_free(s);
  p.temperature = 1.0f;
  p.top_k = 2;
  s = sampler_new(a, p, 5);
  for (int i = 0; i < 200; i++)
    KS_ASSERT_NE(ks_sampler_pick(s, tie), 4);
  ks_sampler_free(s);
  ks_alloc_free(a);
}

/* The penalty lowers positive and negative logits alike, once however often a token stands there,
 * and forgets what left the window. */
KS_TEST(sampler, penalty_sign_and_window)
{
  static const float positive[3] = {2.0f, 1.9f, 1.1f}, negative[3] = {-1.0f, -1.2f, -1.9f};
  ks_alloc *a = ks_alloc_new();
  ks_sampler_params p = plain();
  ks_sampler *s;

  p.temperature = 0.0f;
  p.repeat_penalty = 1.5f;
  p.repeat_last = 2;
  s = sampler_new(a, p, 3);
  KS_ASSERT_EQ(ks_sampler_pick(s, positive), 0);
  ks_sampler_accept(s, 0);
  ks_sampler_accept(s, 0);
  KS_ASSERT_EQ(ks_sampler_pick(s, positive), 1); /* 2/1.5 = 1.33, not 2/2.25 = .89 */
  KS_ASSERT_EQ(ks_sampler_pick(s, negative), 1); /* -1.5 against -1.2 */
  ks_sampler_accept(s, 1);
  KS_ASSERT_EQ(ks_sampler_pick(s, positive), 0); /* 1.33, 1.27, 1.1 */
  ks_sampler_accept(s, 1);
  KS_ASSERT_EQ(ks_sampler_pick(s, negative), 0); /* 0 left the window */
  ks_sampler_reset(s, 1);
  ks_sampler_accept(s, -1);
  ks_sampler_accept(s, 77); /* outside: ignored */
  KS_ASSERT_EQ(ks_sampler_pick(s, positive), 0);
  ks_sampler_free(s);
  ks_alloc_free(a);
}

/* NaN is never picked, a row without any chance still gives a valid id, and a tiny temperature does
 * not overflow. */
KS_TEST(sampler, broken_logits)
{
  const float mixed[4] = {NAN, -5.0f, NAN, -6.0f}, none[4] = {NAN, -INFINITY, NAN, NAN};
  const float sure[4] = {0.0f, 1.0f, INFINITY, 5.0f}, wide[4] = {3e38f, -3e38f, 2.9e38f, 0.0f};
  ks_alloc *a = ks_alloc_new();
  ks_sampler_params p = plain();
  ks_sampler *s = sampler_new(a, p, 4);

  for (int i = 0; i < 100; i++) {
    ks_token id = ks_sampler_pick(s, mixed);

    KS_ASSERT(id == 1 || id == 3);
  }
  KS_ASSERT_EQ(ks_sampler_pick(s, none), 0);
  KS_ASSERT_EQ(ks_sampler_pick(s, sure), 2);
  ks_sampler_free(s);
  p.temperature = 1e-30f;
  p.min_p = 0.1f;
  s = sampler_new(a, p, 4);
  KS_ASSERT_EQ(ks_sampler_pick(s, wide), 0);
  ks_sampler_free(s);
  ks_alloc_free(a);
}

/* A parameter out of range is named, and running out of memory is a status at every allocation. */
KS_TEST(sampler, refusals)
{
  ks_alloc *a = ks_alloc_new();
  ks_sampler_params p = ks_sampler_default_params();
  ks_sampler *s = NULL;
  ks_error err;

  p.top_p = 0.0f;
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_sampler_new(a, &p, 4, &s, &err));
  KS_ASSERT(strstr(err.text, "top-p") != NULL);
  p = ks_sampler_default_params();
  p.temperature = NAN;
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_sampler_new(a, &p, 4, &s, &err));
  KS_ASSERT(strstr(err.text, "temperature") != NULL);
  p = ks_sampler_default_params();
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_sampler_new(a, &p, 0, &s, NULL));
  for (int i = 0; i < 5; i++) {
    ks_alloc_fail_after(a, i);
    KS_ASSERT_STATUS(KS_ERR_NOMEM, ks_sampler_new(a, &p, 4, &s, NULL));
  }
  ks_alloc_fail_after(a, -1);
  KS_ASSERT(s == NULL);
  KS_ASSERT_OK(ks_sampler_new(a, &p, 4, &s, NULL));
  ks_sampler_free(s);
  ks_alloc_free(a);
}

KS_TEST_MAIN
