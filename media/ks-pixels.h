/* ks-pixels.h - an owned RGBA buffer, 8 bits a channel, not premultiplied, rows without padding.
 * Threads: immutable after creation, reference counted. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct _KsPixels KsPixels;

/* bytes: 4 * width * height of them; NULL when the sizes do not fit. */
KsPixels *ks_pixels_new (guint width_px, guint height_px, GBytes *bytes);
KsPixels *ks_pixels_ref (KsPixels *pixels);
void ks_pixels_unref (KsPixels *pixels);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsPixels, ks_pixels_unref)
guint ks_pixels_get_width (const KsPixels *pixels);
guint ks_pixels_get_height (const KsPixels *pixels);
GBytes *ks_pixels_get_bytes (const KsPixels *pixels); /* borrowed */

G_END_DECLS
