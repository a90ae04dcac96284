/* test-sampling.c - which frames are taken, from their times alone. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-sampling.h"

#include <stdarg.h>

/* Checks picked against n times in milliseconds; frees it. */
static void
assert_times (GArray *take_picked, guint n, ...)
{
  g_autoptr (GArray) picked = take_picked;
  va_list times;

  g_assert_cmpuint (picked->len, ==, n);
  va_start (times, n);
  for (guint i = 0; i < n; i++)
    g_assert_cmpint (g_array_index (picked, gint64, i), ==, va_arg (times, int) * 1000);
  va_end (times);
}

static GArray *
pick (const KsMediaSampling *sampling, const gint64 *times, gsize n, gboolean expect_widened)
{
  KsMediaSampling wish = ks_sampling_clamp (sampling);
  gboolean widened = !expect_widened;
  GArray *picked = ks_sampling_pick (&wish, times, n, &widened);

  g_assert_cmpint (widened, ==, expect_widened);
  return picked;
}

/* Ten frames a second, as containers round them: every third of a second is no whole number. */
static const gint64 even[] = {0,      100000, 200000, 300000, 400000, 500000,
                              600000, 700000, 800000, 900000, 1000000};
static const gint64 slides[] = {0, 10000000, 25000000};

/* The first and the last are among them, the others lie evenly between; one is the middle; more
 * than there are gives all, each once. */
static void
test_count (void)
{
  KsMediaSampling wish = {.mode = KS_MEDIA_SAMPLE_COUNT, .n_frames = 3};

  assert_times (pick (&wish, even, 11, FALSE), 3, 0, 500, 1000);
  wish.n_frames = 1;
  assert_times (pick (&wish, even, 11, FALSE), 1, 500);
  wish.n_frames = 4;
  assert_times (pick (&wish, even, 11, FALSE), 4, 0, 300, 600, 1000);
  wish.n_frames = 11;
  assert_times (pick (&wish, even, 11, FALSE), 11, 0, 100, 200, 300, 400, 500, 600, 700, 800, 900,
                1000);
  wish.n_frames = 500;
  assert_times (pick (&wish, even, 3, FALSE), 3, 0, 100, 200);
  assert_times (pick (&wish, even, 0, FALSE), 0);
}

/* Thirds of a second, rounded down to microseconds: each is still its own frame. */
static void
test_rounded (void)
{
  KsMediaSampling wish = {.mode = KS_MEDIA_SAMPLE_COUNT, .n_frames = 7};
  static const gint64 thirds[] = {0, 333333, 666666, 1000000, 1333333, 1666666, 2000000};
  gboolean widened;
  g_autoptr (GArray) picked = ks_sampling_pick (&wish, thirds, 7, &widened);

  g_assert_cmpuint (picked->len, ==, 7);
  g_assert_cmpint (g_array_index (picked, gint64, 5), ==, 1666666);
}

/* What is on the screen at each time: a slide that stays is taken once. */
static void
test_interval (void)
{
  KsMediaSampling wish = {.mode = KS_MEDIA_SAMPLE_INTERVAL, .n_frames = 100, .interval_us = 250000};

  assert_times (pick (&wish, even, 11, FALSE), 5, 0, 200, 500, 700, 1000);
  wish.interval_us = 6000000;
  assert_times (pick (&wish, slides, 3, FALSE), 2, 0, 10000);
  wish.interval_us = 5000000;
  assert_times (pick (&wish, slides, 3, FALSE), 3, 0, 10000, 25000);
  wish.interval_us = G_MAXINT64;
  assert_times (pick (&wish, even, 11, FALSE), 1, 0);
}

/* Too many: wider apart, over the whole length, and said. */
static void
test_widened (void)
{
  KsMediaSampling wish = {.mode = KS_MEDIA_SAMPLE_INTERVAL, .n_frames = 3, .interval_us = 100000};

  assert_times (pick (&wish, even, 11, TRUE), 3, 0, 500, 1000);
  wish.n_frames = 1;
  assert_times (pick (&wish, even, 11, TRUE), 1, 0);
  wish.n_frames = 11;
  wish.interval_us = 100000;
  assert_times (pick (&wish, even, 11, FALSE), 11, 0, 100, 200, 300, 400, 500, 600, 700, 800, 900,
                1000);
}

/* A part begins with what is shown then, ends before its end, and is never empty. */
static void
test_part (void)
{
  KsMediaSampling wish = {
      .mode = KS_MEDIA_SAMPLE_COUNT, .n_frames = 100, .begin_us = 350000, .end_us = 600000};

  assert_times (pick (&wish, even, 11, FALSE), 3, 300, 400, 500);
  wish.begin_us = 50000000;
  wish.end_us = 0;
  assert_times (pick (&wish, even, 11, FALSE), 1, 1000);
  wish.begin_us = 200000;
  wish.end_us = 100000;
  assert_times (pick (&wish, even, 11, FALSE), 1, 200);
  wish.begin_us = 11000000;
  wish.end_us = 12000000;
  assert_times (pick (&wish, slides, 3, FALSE), 1, 10000);
}

/* The first, and the clear cuts; of too many the clearest, in order; a flash counts once. */
static void
test_scenes (void)
{
  static const KsSceneScore scores[] = {{0, 0},           {1000000, 0.5f}, {1040000, 0.6f},
                                        {2000000, 0.1f},  {3000000, 0.9f}, {4000000, 0.16f},
                                        {5000000, 0.149f}};
  KsMediaSampling wish = {.mode = KS_MEDIA_SAMPLE_SCENES, .n_frames = 10};
  gboolean fewer;

  wish = ks_sampling_clamp (&wish);
  assert_times (ks_sampling_pick_scenes (&wish, scores, 7, &fewer), 4, 0, 1000, 3000, 4000);
  g_assert_false (fewer);
  wish.n_frames = 3;
  assert_times (ks_sampling_pick_scenes (&wish, scores, 7, &fewer), 3, 0, 1000, 3000);
  g_assert_true (fewer);
  wish.n_frames = 1;
  assert_times (ks_sampling_pick_scenes (&wish, scores, 7, &fewer), 1, 0);
  wish.n_frames = 10;
  wish.cut_permille = 1000;
  assert_times (ks_sampling_pick_scenes (&wish, scores, 7, &fewer), 1, 0);
  assert_times (ks_sampling_pick_scenes (&wish, scores, 0, &fewer), 0);
}

/* The wildest numbers become ones that can be sent, and stay what they are from then on. */
static void
test_clamp (void)
{
  KsMediaSampling wish = {.mode = KS_MEDIA_SAMPLE_SCENES,
                          .n_frames = 0,
                          .interval_us = -5,
                          .cut_permille = 5000,
                          .begin_us = G_MAXINT64,
                          .end_us = G_MININT64};
  KsMediaSampling once = ks_sampling_clamp (&wish), twice = ks_sampling_clamp (&once);

  g_assert_cmpuint (once.n_frames, ==, 1);
  g_assert_cmpuint (once.cut_permille, ==, 1000);
  g_assert_cmpint (once.interval_us, ==, 0);
  g_assert_cmpint (once.begin_us, ==, KS_MEDIA_MAX_TIME_US);
  g_assert_cmpint (once.end_us, ==, 0);
  g_assert_cmpuint (twice.cut_permille, ==, 1000);
  wish = (KsMediaSampling){
      .mode = KS_MEDIA_SAMPLE_COUNT, .n_frames = G_MAXUINT, .end_us = 5, .begin_us = 9};
  once = ks_sampling_clamp (&wish);
  twice = ks_sampling_clamp (&once);
  g_assert_cmpuint (once.n_frames, ==, KS_MEDIA_MAX_FRAMES);
  g_assert_cmpint (once.end_us, ==, 10);
  g_assert_cmpint (twice.end_us, ==, 10);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/sampling/count", test_count);
  g_test_add_func ("/sampling/rounded", test_rounded);
  g_test_add_func ("/sampling/interval", test_interval);
  g_test_add_func ("/sampling/widened", test_widened);
  g_test_add_func ("/sampling/part", test_part);
  g_test_add_func ("/sampling/scenes", test_scenes);
  g_test_add_func ("/sampling/clamp", test_clamp);
  return g_test_run ();
}
