/* ks-heif-codec.h - HEVC and AV1 pictures for libheif, decoded by FFmpeg on the caller's thread.
 * libheif's own decoders start threads (some as many as there are processors), which the worker's
 * filter refuses, and are separate packages on newer systems.  Only for the worker. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Makes libheif prefer these decoders; before the first file, and before the filter. */
void ks_heif_codec_register (void);

G_END_DECLS
