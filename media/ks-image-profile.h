/* ks-image-profile.h - from the colours that a picture's own profile names to sRGB, which models
 * and the window take all pictures for. Only for decoders in the worker.  Threads: one. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* What is set up with the machine's own files, before the filter. */
void ks_image_profile_prepare (void);
/* Joined RGBA rows, opaque, in place.  profile: ICC, may be NULL.  One that is damaged, not of RGB,
 * or as good as sRGB changes no bit. */
void ks_image_apply_profile (guint8 *rgba, gsize n_pixel, const guint8 *profile, gsize n_byte);

G_END_DECLS
