/* ks-image-header.h - what a picture's bytes say of themselves before anything is decoded.
 * Only for the worker.  Reads PNG, GIF and BMP; every offset is checked.
 * Threads: pure functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef enum { KS_IMAGE_PNG, KS_IMAGE_GIF, KS_IMAGE_BMP } KsImageFormat;

typedef struct {
  KsImageFormat format;
  guint32 width_px, height_px; /* as stored, before orientation; > 0 */
  guint orientation;           /* EXIF: 1 to 8 */
  gboolean ends_early;         /* the bytes stop before the picture's own end */
  gboolean is_animated;        /* more than one picture */
  gsize cut_at;                /* PNG that ends early: the data chunk that is cut, 0 = none */
} KsImageHeader;

/* FALSE: none of these formats, or damaged before its size is known. */
gboolean ks_image_header_parse (const guint8 *data, gsize n, KsImageHeader *out);

/* The orientation that an EXIF block tells, with or without "Exif" before it; 1 without any. */
guint ks_image_exif_orientation (const guint8 *data, gsize n);

G_END_DECLS
