/* ks-still-codec.h - one coded picture through a decoder of FFmpeg: no demuxer, no thread.
 * Only for decoders in the worker.  Threads: one. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>
#include <libavcodec/avcodec.h>

G_BEGIN_DECLS

/* NULL: this FFmpeg has no such decoder, or memory is short. (avcodec_free_context) */
AVCodecContext *ks_still_codec_open (enum AVCodecID id, gint64 max_pixels);
/* The first picture of data, which has AV_INPUT_BUFFER_PADDING_SIZE zeros behind n.  FFmpeg's code:
 * 0, or below it. */
int ks_still_codec_decode (AVCodecContext *context, guint8 *data, gsize n, AVFrame *out);

G_END_DECLS
