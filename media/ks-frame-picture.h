/* ks-frame-picture.h - a video's frame as RGBA: scaled, with square pixels, the right way up.
 * Inside the worker only. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "media/ks-worker-wire.h"

#include <libavutil/frame.h>

G_BEGIN_DECLS

typedef struct {
  guint max_side_px;
  guint orientation; /* as in EXIF: 1 to 8 */
  AVRational aspect; /* of a pixel, width to height; 0/1 = square */
} KsFramePicture;

/* The EXIF orientation that a display matrix (9 numbers, as in libavutil/display.h) means; shears
 * and odd angles are rounded to quarter turns.  NULL = 1. */
guint ks_frame_orientation (const gint32 *matrix);
/* Sizes of a picture of width x height: what the frame shows before scaling, the right way up. */
void ks_frame_full_size (const KsFramePicture *self, guint width, guint height, KsWireAnswer *out);
/* 4 * out->width_px * out->height_px bytes (g_free); sets out's sizes.  Ends the worker with a
 * fault when there is no memory or no way. */
guint8 *ks_frame_convert (const KsFramePicture *self, const AVFrame *frame, KsWireAnswer *out);

G_END_DECLS
