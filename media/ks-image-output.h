/* ks-image-output.h - from a decoder's pixels to those that are handed over: what is see-through
 * laid over white, scaled down to what was asked for, turned the right way up.
 * Only for decoders in the worker; each ends the process with a fault when memory is short.
 * Colour profiles: ks-image-profile.h.  Threads: one. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "media/ks-worker-wire.h"

#include <libavutil/frame.h>
#include <libavutil/pixfmt.h>

G_BEGIN_DECLS

#define KS_IMAGE_MAX_FILE_BYTES (G_GUINT64_CONSTANT (256) << 20)
#define KS_IMAGE_MAX_PIXELS (G_GINT64_CONSTANT (100) * 1000 * 1000)

/* Ends with a fault when width x height is over the limit: called with the sizes of the header,
 * before anything is decoded. */
void ks_image_check_size (guint64 width, guint64 height);

/* Rows of a packed format, stride bytes apart, as a frame that borrows them. */
AVFrame *ks_image_wrap (enum AVPixelFormat format, guint8 *rows, gsize stride, guint width,
                        guint height);

/* Lays RGBA rows over white, in place; premultiplied: colours are already times alpha.  TRUE:
 * something was see-through. */
gboolean ks_image_lay_over_white (guint8 *rgba, gsize stride, guint width, guint height,
                                  gboolean premultiplied);

/* A frame of any format of FFmpeg as joined RGBA rows, opaque, its longest side at most max_side_px
 * before it is turned by orientation (EXIF: 1 to 8).  *out gets the sizes, and the warning when
 * something was see-through.  The frame's own pixels may be changed and given back. (g_free) */
guint8 *ks_image_make_pixels (AVFrame *frame, guint max_side_px, guint orientation,
                              KsWireAnswer *out);
/* The same of a frame whose pixels are not square: before it is scaled down and turned it is to
 * look as if it had full_width x full_height. */
guint8 *ks_image_make_stretched (AVFrame *frame, guint full_width, guint full_height,
                                 guint max_side_px, guint orientation, KsWireAnswer *out);

G_END_DECLS
