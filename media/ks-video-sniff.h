/* ks-video-sniff.h - does a file begin like a video, or like sound, which is told apart later.
 * By content alone; pictures in a container that videos use as well (HEIC, AVIF) are not meant. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* data: the first n bytes, a few hundred where the file has them. */
gboolean ks_video_sniff (const guint8 *data, gsize n);

G_END_DECLS
