/* test-vision-prune.c - VisionZip and FastV on 12 tokens worked by hand, ties, ends of the ranges.
 * What whole towers and models make of them is compared in tests/golden/test-prune.c. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/vision-prune.h"

#include "tests/ks-test.h"

static const float received[12] = {.01f, .20f, .02f, .03f, .15f, .04f,
                                   .05f, .20f, .06f, .30f, .07f, .08f};
/* Of tokens 1, 4, 7 and 9 nothing is asked: they stay. */
static const float metric[12][2] = {{1, 0}, {9, 9}, {3, 1}, {1, 3}, {9, 9},  {-1, 0},
                                    {0, 2}, {9, 9}, {2, 2}, {9, 9}, {0, -1}, {0, 0}};

static void
expect_list(const uint32_t *got, uint32_t n, const uint32_t *want)
{
  for (uint32_t i = 0; i < n; i++)
    KS_ASSERT_EQ(got[i], want[i]);
}

static ks_zip_choice
choose(ks_alloc *a, uint32_t n_dominant, uint32_t n_context, bool has_class)
{
  const ks_vision_zip zip = {n_dominant, n_context};
  ks_zip_choice c;

  KS_ASSERT_OK(ks_zip_choose(a, &zip, has_class, received, &metric[0][0], 12, 2, &c, NULL));
  return c;
}

/* 4 + 2 of 12: the largest four stay in order; of the eight others each fourth takes the ones most
 * like it in (8 is as like to 0 as to 6, 11 has no direction: the first target), mean added. */
KS_TEST(vision_prune, zip_worked_by_hand)
{
  const float want[6][2] = {{1, 10}, {4, 40}, {7, 70}, {9, 90}, {7.75f, 77.5f}, {10, 100}};
  ks_alloc *a = ks_alloc_new();
  ks_zip_choice c = choose(a, 4, 2, false);
  float rows[12][2], out[6][2];
  uint32_t places[6];

  expect_list(c.dominant, 4, (uint32_t[]){1, 4, 7, 9});
  expect_list(c.target, 2, (uint32_t[]){0, 6});
  expect_list(c.group, 12,
              (uint32_t[]){KS_ZIP_NONE, KS_ZIP_NONE, 0, 1, KS_ZIP_NONE, 1, KS_ZIP_NONE, KS_ZIP_NONE,
                           0, KS_ZIP_NONE, 0, 0});
  for (uint32_t i = 0; i < 12; i++) {
    rows[i][0] = (float)i;
    rows[i][1] = 10.0f * (float)i;
  }
  KS_ASSERT_OK(ks_zip_merge(a, &c, NULL, &rows[0][0], 2, &out[0][0], NULL));
  for (uint32_t i = 0; i < 6; i++)
    for (uint32_t d = 0; d < 2; d++)
      KS_ASSERT_NEAR(out[i][d], want[i][d], 0);
  ks_zip_get_places(&c, places);
  expect_list(places, 6, (uint32_t[]){1, 4, 7, 9, 0, 6});
  ks_zip_choice_clear(&c);
  ks_alloc_free(a);
}

/* The class token is one of the four that stay; it comes first and stands at 0.  Nine others
 * remain: every fourth of them, twice. */
KS_TEST(vision_prune, zip_counts_the_class_token)
{
  const float class_row[2] = {-5, -6};
  ks_alloc *a = ks_alloc_new();
  ks_zip_choice c = choose(a, 4, 2, true);
  float rows[12][2] = {{0}}, out[6][2];
  uint32_t places[6];

  expect_list(c.dominant, 3, (uint32_t[]){1, 7, 9});
  expect_list(c.target, 2, (uint32_t[]){0, 5});
  rows[7][1] = 3;
  KS_ASSERT_OK(ks_zip_merge(a, &c, class_row, &rows[0][0], 2, &out[0][0], NULL));
  KS_ASSERT(out[0][0] == -5 && out[0][1] == -6 && out[2][1] == 3);
  ks_zip_get_places(&c, places);
  expect_list(places, 6, (uint32_t[]){0, 1, 7, 9, 0, 5});
  ks_zip_choice_clear(&c);
  ks_alloc_free(a);
}

/* Of equal tokens the first stays; targets that do not divide the rest stand at whole distances;
 * without targets the rest goes nowhere; as many targets as there are others take nobody in. */
KS_TEST(vision_prune, zip_at_the_ends)
{
  ks_alloc *a = ks_alloc_new();
  ks_zip_choice c = choose(a, 2, 0, false);

  expect_list(c.dominant, 2, (uint32_t[]){1, 9});
  for (uint32_t i = 0; i < 12; i++)
    KS_ASSERT_EQ(c.group[i], KS_ZIP_NONE);
  ks_zip_choice_clear(&c);
  c = choose(a, 4, 3, false);
  expect_list(c.target, 3, (uint32_t[]){0, 3, 6});
  ks_zip_choice_clear(&c);
  c = choose(a, 4, 7, false);
  expect_list(c.target, 7, (uint32_t[]){0, 2, 3, 5, 6, 8, 10});
  KS_ASSERT(c.group[11] < 7 && c.group[10] == KS_ZIP_NONE);
  ks_zip_choice_clear(&c);
  KS_ASSERT_EQ(ks_vision_zip_count(&(ks_vision_zip){54, 10}, 576, true), 64);
  KS_ASSERT_EQ(ks_vision_zip_count(&(ks_vision_zip){54, 10}, 64, false), 64);
  KS_ASSERT_EQ(ks_vision_zip_count(&(ks_vision_zip){54, 10}, 64, true), 64);
  KS_ASSERT_EQ(ks_vision_zip_count(&(ks_vision_zip){54, 10}, 63, true), 63);
  KS_ASSERT_EQ(ks_vision_zip_count(&(ks_vision_zip){0, 0}, 576, true), 576);
  KS_ASSERT_EQ(ks_vision_zip_count(&(ks_vision_zip){UINT32_MAX, 10}, 576, true), 576);
  ks_alloc_free(a);
}

/* Memory that runs out at any point is a status, and nothing is left behind. */
KS_TEST(vision_prune, zip_without_memory)
{
  const ks_vision_zip zip = {4, 2};
  ks_alloc *a = ks_alloc_new();
  ks_status st = KS_ERR_NOMEM;

  for (int64_t n = 0; st != KS_OK; n++) {
    float rows[12][2] = {{0}}, out[6][2];
    ks_zip_choice c = {0};

    KS_ASSERT(n < 20);
    ks_alloc_fail_after(a, n);
    st = ks_zip_choose(a, &zip, false, received, &metric[0][0], 12, 2, &c, NULL);
    if (st == KS_OK)
      st = ks_zip_merge(a, &c, NULL, &rows[0][0], 2, &out[0][0], NULL);
    KS_ASSERT(st == KS_OK || st == KS_ERR_NOMEM);
    ks_zip_choice_clear(&c);
    KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_VISION), 0);
  }
  ks_alloc_free(a);
}

static uint32_t
run_fastv(double drop, const float *values, uint32_t n, ks_prune_rank *ranks)
{
  const ks_fastv fastv = {.layer = 2, .drop = drop};

  for (uint32_t i = 0; i < n; i++)
    ranks[i] = (ks_prune_rank){values[i], i};
  return ks_fastv_choose(&fastv, ranks, n);
}

/* Half of 12 go; of the tokens 1 and 7, which got the same, the later one would go first. */
KS_TEST(vision_prune, fastv_worked_by_hand)
{
  const uint32_t want[6] = {9, 1, 7, 4, 11, 10};
  ks_prune_rank ranks[100];
  float many[100];

  KS_ASSERT_EQ(run_fastv(.5, received, 12, ranks), 6);
  for (uint32_t i = 0; i < 6; i++)
    KS_ASSERT_EQ(ranks[i].index, want[i]);
  KS_ASSERT_EQ(run_fastv(.9, received, 12, ranks), 2);
  KS_ASSERT(ranks[0].index == 9 && ranks[1].index == 1);
  /* A part is rounded down, but not because of how computers write 0.29. */
  for (uint32_t i = 0; i < 100; i++)
    many[i] = (float)i;
  KS_ASSERT_EQ(run_fastv(.29, many, 100, ranks), 71);
  KS_ASSERT_EQ(run_fastv(.5, many, 3, ranks), 2);
  KS_ASSERT_EQ(run_fastv(1, many, 100, ranks), 0);
  KS_ASSERT_EQ(run_fastv(0, many, 100, ranks), 100);
  KS_ASSERT_EQ(run_fastv(.5, many, 0, ranks), 0);
}

/* Attention of a damaged model may be no number: such tokens go first, the others stay in order. */
KS_TEST(vision_prune, fastv_without_numbers)
{
  const float values[6] = {1, NAN, 3, NAN, 2, 3};
  const uint32_t want[6] = {2, 5, 4, 0, 1, 3};
  ks_prune_rank ranks[6];

  KS_ASSERT_EQ(run_fastv(.34, values, 6, ranks), 4);
  for (uint32_t i = 0; i < 6; i++)
    KS_ASSERT_EQ(ranks[i].index, want[i]);
}

KS_TEST_MAIN
