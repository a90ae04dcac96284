/* ks-texture.h - pixels of the decoder as a picture that widgets can show.
 * Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "media/ks-pixels.h"

#include <gdk/gdk.h>

G_BEGIN_DECLS

/* Shares the bytes, copies nothing. (transfer full) NULL for NULL. */
GdkTexture *ks_texture_new (KsPixels *pixels);

G_END_DECLS
