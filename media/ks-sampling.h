/* ks-sampling.h - which frames of a video are taken: by count, by time, by changes of scene.
 * Pure arithmetic over the times at which frames are shown, which may lie at any distance from each
 * other.  A frame stands for the time from its own to the next one's; a frame is taken once.
 * Used by the decoder worker; the program sends the wish.  Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define KS_MEDIA_MAX_FRAMES 1024u
#define KS_MEDIA_MAX_TIME_US (G_GINT64_CONSTANT (1) << 52) /* 142 years */

typedef enum {
  KS_MEDIA_SAMPLE_COUNT =
      1,                    /* n_frames of them, evenly over the time, the first and the last too */
  KS_MEDIA_SAMPLE_INTERVAL, /* one every interval_us; at most n_frames, then wider apart */
  KS_MEDIA_SAMPLE_SCENES /* the first, and each after a cut; at most n_frames, the clearest cuts */
} KsMediaSamplingMode;

typedef struct {
  KsMediaSamplingMode mode;
  guint n_frames;          /* 1 to KS_MEDIA_MAX_FRAMES */
  gint64 interval_us;      /* INTERVAL: over 0 */
  guint cut_permille;      /* SCENES: how much of the brightness must change, 1 to 1000; 0 = 150 */
  gint64 begin_us, end_us; /* only this part; end_us 0: to the end */
} KsMediaSampling;

/* Where the picture changes: score 0 to 1, of the frame at time_us against the one before. */
typedef struct {
  gint64 time_us;
  float score;
} KsSceneScore;

/* The same wish with its numbers in their ranges, so that it can be sent. */
KsMediaSampling ks_sampling_clamp (const KsMediaSampling *sampling);
/* The part [*out_first, *out_end) of times that the wish is about: never empty when n > 0.
 * times: ascending. */
void ks_sampling_find_part (const KsMediaSampling *sampling, const gint64 *times, gsize n,
                            gsize *out_first, gsize *out_end);
/* COUNT and INTERVAL: the times of the frames to take, ascending, none twice.  *out_widened: the
 * interval was too small for n_frames.  times: ascending.  (transfer full) an array of gint64 */
GArray *ks_sampling_pick (const KsMediaSampling *sampling, const gint64 *times, gsize n,
                          gboolean *out_widened);
/* SCENES: the same from scores, ascending by time, the first of which is always taken.
 * *out_fewer: there were more cuts than n_frames. */
GArray *ks_sampling_pick_scenes (const KsMediaSampling *sampling, const KsSceneScore *scores,
                                 gsize n, gboolean *out_fewer);

G_END_DECLS
