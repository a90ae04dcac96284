/* ks-video-loader.c - frames of a video (inside the worker).
 * LOAD: what the video is and its first frame.  FRAMES: what it is, and the frames that were wished
 * for.  Sound is not decoded.  Frames are chosen from the real times of all (ks-sampling.h), which
 * are known before the first one is decoded.  Source: docs/formats/worker.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-frame-picture.h"
#include "media/ks-loader.h"
#include "media/ks-video-input.h"

#include <libswscale/swscale.h>
#include <stdlib.h>
#include <string.h>

/* A frame as it is compared with the one before. */
#define SCENE_WIDTH 64
#define SCENE_HEIGHT 36
#define SCENE_PIXELS (SCENE_WIDTH * SCENE_HEIGHT)
#define MAX_COMPARED 30000u /* frames; of longer videos only the key frames */
#define STILL_US 300000     /* shown longer: a slide, whose change counts in full */

/* Thousandths of the work, for the bar. */
#define SCANNED 150u
#define COMPARED 600u
#define ALL 1000u

static void
prepare (const KsLoaderJob *job, GPtrArray *paths)
{
  ks_video_input_prepare ();
}

/* --- changes of scene --- */

typedef struct {
  struct SwsContext *sws;
  guint8 pixels[2][SCENE_PIXELS]; /* brightness of this frame and the one before, by turns */
  guint n;                        /* frames seen */
  float last_change;
  gint64 last_us;
} Compare;

/* The brightness of frame into pixels; FALSE when it cannot be had. */
static gboolean
take_brightness (Compare *self, const AVFrame *frame, guint8 *pixels)
{
  guint8 *planes[4] = {pixels};
  int strides[4] = {SCENE_WIDTH};

  self->sws =
      sws_getCachedContext (self->sws, frame->width, frame->height, frame->format, SCENE_WIDTH,
                            SCENE_HEIGHT, AV_PIX_FMT_GRAY8, SWS_AREA, NULL, NULL, NULL);
  return self->sws != NULL && sws_scale (self->sws, (const uint8_t *const *)frame->data,
                                         frame->linesize, 0, frame->height, planes, strides) > 0;
}

/* 0 to 1: how much frame looks like a cut.  Where everything moves all the time, as when the camera
 * turns, a change as large as the one before is none. */
static float
score_change (Compare *self, const AVFrame *frame, gint64 time_us)
{
  guint8 *now = self->pixels[self->n % 2], *before = self->pixels[(self->n + 1) % 2];
  guint sum = 0;
  float change, score;

  if (!take_brightness (self, frame, now))
    return 0;
  for (guint i = 0; i < SCENE_PIXELS && self->n > 0; i++)
    sum += (guint)abs (now[i] - before[i]);
  change = (float)sum / (255 * SCENE_PIXELS);
  score =
      time_us - self->last_us >= STILL_US ? change : MIN (change, ABS (change - self->last_change));
  self->last_change = change;
  self->last_us = time_us;
  self->n++;
  return score;
}

static GArray *
pick_scenes (KsVideoInput *input, const KsMediaSampling *wish, gboolean *out_fewer)
{
  g_autoptr (GArray) scores = g_array_new (FALSE, FALSE, sizeof (KsSceneScore));
  g_autofree Compare *compare = g_new0 (Compare, 1);
  gsize n, first, end;
  const gint64 *times = ks_video_input_get_times (input, &n);
  gboolean keys_only;
  const AVFrame *frame;
  KsSceneScore score;

  ks_sampling_find_part (wish, times, n, &first, &end);
  keys_only = end - first > MAX_COMPARED;
  frame = ks_video_input_show (input, times[first], &score.time_us);
  for (; frame != NULL && score.time_us <= times[end - 1];
       frame = ks_video_input_next (input, keys_only, &score.time_us)) {
    guint part =
        SCANNED + (guint)((double)MAX (score.time_us - times[first], 0) /
                          (double)MAX (times[end - 1] - times[first], 1) * (COMPARED - SCANNED));

    score.score = score_change (compare, frame, score.time_us);
    g_array_append_val (scores, score);
    ks_video_input_tell (input, part);
  }
  return ks_sampling_pick_scenes (wish, (const KsSceneScore *)(const void *)scores->data,
                                  scores->len, out_fewer);
}

/* --- frames --- */

typedef struct {
  KsVideoInput *input;
  KsFramePicture picture;
  guint32 n_sent;
  gint64 last_us;
  guint64 n_bytes; /* sent */
} Output;

/* Hands over what is shown at time_us, unless it was handed over before.  n_left: how many of its
 * size are still to come, this one too. */
static void
send_frame (Output *self, gint64 time_us, guint n_left)
{
  KsWireAnswer sizes = {.what = KS_WIRE_VIDEO, .index = self->n_sent};
  const AVFrame *frame = ks_video_input_show (self->input, time_us, &sizes.time_us);
  guint64 n_frame_bytes;
  guint8 *pixels;

  if (frame == NULL || (self->n_sent > 0 && sizes.time_us <= self->last_us))
    return;
  pixels = ks_frame_convert (&self->picture, frame, &sizes);
  n_frame_bytes = (guint64)4 * sizes.width_px * sizes.height_px;
  if (self->n_bytes + n_left * n_frame_bytes > KS_WIRE_MAX_TOTAL_BYTES)
    ks_answer_fault (KS_WIRE_FAULT_FRAMES, 0, 0);
  ks_answer_pixels (&sizes, pixels);
  g_free (pixels);
  self->n_bytes += n_frame_bytes;
  self->last_us = sizes.time_us;
  self->n_sent++;
}

/* The frames wished for, after what the video is. */
static void
send_all (Output *self, KsWireAnswer *facts, const KsMediaSampling *wish)
{
  g_autoptr (GArray) picked = NULL;
  gboolean fewer = FALSE;
  guint from = SCANNED;

  if (wish->mode == KS_MEDIA_SAMPLE_SCENES) {
    picked = pick_scenes (self->input, wish, &fewer);
    from = COMPARED;
  } else {
    gsize n;
    const gint64 *times = ks_video_input_get_times (self->input, &n);

    picked = ks_sampling_pick (wish, times, n, &fewer);
  }
  if (fewer)
    facts->warnings |= KS_WIRE_WARN_FEWER;
  ks_answer_video (facts);
  for (guint i = 0; i < picked->len; i++) {
    send_frame (self, g_array_index (picked, gint64, i), picked->len - i);
    ks_video_input_tell (self->input, from + (ALL - from) * (i + 1) / picked->len);
  }
}

static void
run (const KsLoaderJob *job)
{
  Output output = {.input = ks_video_input_open (job, SCANNED)};
  KsWireAnswer facts = {.type = KS_WIRE_ANSWER_VIDEO};
  const AVFrame *first;
  gint64 first_us;
  const gint64 *times;
  gsize n;

  output.picture = (KsFramePicture){.max_side_px = job->request->max_side_px,
                                    .orientation = ks_video_input_get_orientation (output.input),
                                    .aspect = ks_video_input_get_aspect (output.input)};
  times = ks_video_input_get_times (output.input, &n);
  first = ks_video_input_show (output.input, times[0], &first_us);
  if (first == NULL)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_VIDEO, 0);
  ks_frame_full_size (&output.picture, (guint)first->width, (guint)first->height, &facts);
  ks_video_input_get_facts (output.input, &facts);
  if (job->request->operation == KS_WIRE_FRAMES) {
    send_all (&output, &facts, &job->request->sampling);
  } else {
    ks_answer_video (&facts);
    send_frame (&output, times[0], 1);
  }
  if (output.n_sent == 0)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_VIDEO, 0);
}

const KsLoader KS_LOADER_SYMBOL = {prepare, run, FALSE};
