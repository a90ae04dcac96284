/* ks-sampling.c - see ks-sampling.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-sampling.h"

#define SLACK_US 1000       /* times are rounded to their container's clock */
#define SCENE_GAP_US 300000 /* a flash is no scene */
#define DEFAULT_CUT_PERMILLE 150

KsMediaSampling
ks_sampling_clamp (const KsMediaSampling *sampling)
{
  KsMediaSampling wish = {.mode = sampling->mode};

  wish.n_frames = CLAMP (sampling->n_frames, 1, KS_MEDIA_MAX_FRAMES);
  if (wish.mode == KS_MEDIA_SAMPLE_INTERVAL)
    wish.interval_us = CLAMP (sampling->interval_us, 1, KS_MEDIA_MAX_TIME_US);
  if (wish.mode == KS_MEDIA_SAMPLE_SCENES)
    wish.cut_permille =
        sampling->cut_permille > 0 ? MIN (sampling->cut_permille, 1000) : DEFAULT_CUT_PERMILLE;
  wish.begin_us = CLAMP (sampling->begin_us, 0, KS_MEDIA_MAX_TIME_US);
  wish.end_us = CLAMP (sampling->end_us, 0, KS_MEDIA_MAX_TIME_US);
  if (wish.end_us != 0 && wish.end_us <= wish.begin_us)
    wish.end_us = MIN (wish.begin_us + 1, KS_MEDIA_MAX_TIME_US);
  return wish;
}

/* Index of the last of n > 0 ascending times that is not after t; 0 when all are. */
static gsize
find_shown (const gint64 *times, gsize n, gint64 t)
{
  gsize low = 0, high = n;

  while (high - low > 1) {
    gsize middle = low + (high - low) / 2;

    if (times[middle] <= t)
      low = middle;
    else
      high = middle;
  }
  return low;
}

void
ks_sampling_find_part (const KsMediaSampling *sampling, const gint64 *times, gsize n,
                       gsize *out_first, gsize *out_end)
{
  *out_first = *out_end = 0;
  if (n == 0)
    return;
  *out_first = find_shown (times, n, sampling->begin_us + SLACK_US);
  *out_end = sampling->end_us == 0 ? n : find_shown (times, n, sampling->end_us - 1) + 1;
  *out_end = MAX (*out_end, *out_first + 1);
}

/* a * b / c without a product that overflows; 0 <= b <= c <= KS_MEDIA_MAX_FRAMES. */
static gint64
scale_time (gint64 a, gint64 b, gint64 c)
{
  return a / c * b + a % c * b / c;
}

/* Takes what is shown at t, unless it was taken. */
static void
take_shown (GArray *taken, const gint64 *times, gsize n, gint64 t)
{
  gint64 time = times[find_shown (times, n, t + SLACK_US)];

  if (taken->len == 0 || g_array_index (taken, gint64, taken->len - 1) < time)
    g_array_append_val (taken, time);
}

GArray *
ks_sampling_pick (const KsMediaSampling *sampling, const gint64 *times, gsize n,
                  gboolean *out_widened)
{
  GArray *taken = g_array_new (FALSE, FALSE, sizeof (gint64));
  gint64 n_frames = sampling->n_frames, start, span;
  gsize first, end;

  *out_widened = FALSE;
  if (n == 0)
    return taken;
  ks_sampling_find_part (sampling, times, n, &first, &end);
  times += first;
  n = end - first;
  start = MAX (times[0], sampling->begin_us);
  span = MAX (times[n - 1] - start, 0);
  if (sampling->mode == KS_MEDIA_SAMPLE_INTERVAL) {
    if (span / sampling->interval_us < n_frames) {
      for (gint64 k = 0; k <= span / sampling->interval_us; k++)
        take_shown (taken, times, n, start + k * sampling->interval_us);
      return taken;
    }
    *out_widened = TRUE;
  }
  if (n_frames == 1)
    take_shown (taken, times, n, start + (*out_widened ? 0 : span / 2));
  for (gint64 k = 0; k < n_frames && n_frames > 1; k++)
    take_shown (taken, times, n, start + scale_time (span, k, n_frames - 1));
  return taken;
}

/* Larger scores first, then earlier times. */
static gint
compare_scores (gconstpointer a, gconstpointer b)
{
  const KsSceneScore *left = a, *right = b;

  if (left->score != right->score)
    return left->score > right->score ? -1 : 1;
  return left->time_us < right->time_us ? -1 : left->time_us > right->time_us;
}

static gint
compare_times (gconstpointer a, gconstpointer b)
{
  gint64 left = *(const gint64 *)a, right = *(const gint64 *)b;

  return left < right ? -1 : left > right;
}

GArray *
ks_sampling_pick_scenes (const KsMediaSampling *sampling, const KsSceneScore *scores, gsize n,
                         gboolean *out_fewer)
{
  g_autoptr (GArray) cuts = g_array_new (FALSE, FALSE, sizeof (KsSceneScore));
  GArray *taken = g_array_new (FALSE, FALSE, sizeof (gint64));
  gint64 last_us = n > 0 ? scores[0].time_us : 0;

  for (gsize i = 1; i < n; i++)
    if (scores[i].score * 1000 >= (float)sampling->cut_permille &&
        scores[i].time_us - last_us >= SCENE_GAP_US) {
      g_array_append_val (cuts, scores[i]);
      last_us = scores[i].time_us;
    }
  *out_fewer = cuts->len + 1 > sampling->n_frames;
  if (*out_fewer)
    g_array_sort (cuts, compare_scores);
  if (n > 0)
    g_array_append_val (taken, scores[0].time_us);
  for (guint i = 0; i < cuts->len && taken->len < sampling->n_frames; i++)
    g_array_append_val (taken, g_array_index (cuts, KsSceneScore, i).time_us);
  g_array_sort (taken, compare_times);
  return taken;
}
