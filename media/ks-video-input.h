/* ks-video-input.h - a video file as a list of times and the frame shown at each (in the worker).
 * Opened over the job's descriptor alone: no protocol, no second file.  First every packet's time
 * is read without decoding, which gives the real times of all frames, the length and whether the
 * file ends early; then frames are decoded from the key frame before the time that is wanted. Every
 * function ends the worker with a fault when the file or the memory does not allow it. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "media/ks-loader.h"

#include <libavutil/frame.h>

G_BEGIN_DECLS

typedef struct _KsVideoInput KsVideoInput;

/* What has to happen before the worker gives up its rights. */
void ks_video_input_prepare (void);
/* Opens the file, finds its video, reads the times, which is share_permille of the whole work. */
KsVideoInput *ks_video_input_open (const KsLoaderJob *job, guint share_permille);
/* Tells the program that so much of the work is done; while frames are decoded it is told again by
 * itself, so that long work is not taken for none. */
void ks_video_input_tell (KsVideoInput *self, guint permille);

/* Sizes as coded, length, sound, warnings. */
void ks_video_input_get_facts (const KsVideoInput *self, KsWireAnswer *out);
guint ks_video_input_get_orientation (const KsVideoInput *self);
AVRational ks_video_input_get_aspect (const KsVideoInput *self);
/* Times of all frames in microseconds from the start, ascending, none twice; at least one. */
const gint64 *ks_video_input_get_times (const KsVideoInput *self, gsize *out_n);

/* The frame that is shown at time_us, and its own time; borrowed until the next call.  NULL: none
 * could be decoded there.  The first call is for the first of all times. */
const AVFrame *ks_video_input_show (KsVideoInput *self, gint64 time_us, gint64 *out_time_us);
/* The frame behind the one that was shown last, good enough to be compared: its edges may be
 * rough.  keys_only: the next that needs no other.  NULL at the end. */
const AVFrame *ks_video_input_next (KsVideoInput *self, gboolean keys_only, gint64 *out_time_us);

G_END_DECLS
