/* ks-picture-loader.h - the pixels of a KsPicture, decoded in a worker and laid on white.
 * Frames of the video that was asked for last are kept: they are asked for one after the other.
 * Threads: one at a time. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-picture.h"
#include "media/ks-media.h"

G_BEGIN_DECLS

/* Longest side of what is decoded: finer detail of a larger picture is not read. */
#define KS_PICTURE_MAX_SIDE_PX 6144u
#define KS_PICTURE_PAGE_SIDE_PX 1536u
#define KS_PICTURE_FRAME_SIDE_PX 1024u

/* Pixels as the engine wants them. */
typedef struct {
  guint8 *rgb[2]; /* [height_px, width_px, 3]; the second of a pair of frames, or NULL */
  guint width_px, height_px;
  double time_s; /* of a frame in its video, of a pair its middle; else 0 */
} KsPictureRgb;

void ks_picture_rgb_clear (KsPictureRgb *rgb);

typedef struct _KsPictureLoader KsPictureLoader;

KsPictureLoader *ks_picture_loader_new (void);
void ks_picture_loader_free (KsPictureLoader *loader); /* NULL is allowed */
/* Hears how decoding goes on from now on; NULL = nobody. */
void ks_picture_loader_set_progress (KsPictureLoader *loader, KsMediaProgress func, gpointer user);
/* Lets go of the frames that are kept. */
void ks_picture_loader_forget (KsPictureLoader *loader);
/* Bytes of pixels: of the frames that are kept now, and of everything that was there at once. */
guint64 ks_picture_loader_get_held_bytes (const KsPictureLoader *loader);
guint64 ks_picture_loader_get_peak_bytes (const KsPictureLoader *loader);
/* Blocks. */
gboolean ks_picture_loader_load (KsPictureLoader *loader, const KsPicture *picture,
                                 GCancellable *cancellable, KsPictureRgb *out, GError **error);

G_END_DECLS
