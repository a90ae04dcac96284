/* ks-image-loader.c - PNG, GIF and BMP with FFmpeg's decoders (inside the worker).
 * The file is one packet for the decoder of its format: no demuxer, no protocol, no filter runs.
 * Source: docs/adr/0011-decoder-worker.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-image-header.h"
#include "media/ks-image-output.h"
#include "media/ks-image-profile.h"
#include "media/ks-loader.h"
#include "media/ks-still-codec.h"

#include <libavutil/cpu.h>
#include <string.h>

#define END_BYTES 16 /* a checksum and a PNG's last chunk */

/* Nothing is opened lazily; the processor is asked for its kind before the filter. */
static void
prepare (const KsLoaderJob *job, GPtrArray *paths)
{
  av_log_set_level (AV_LOG_QUIET);
  (void)av_get_cpu_flags ();
  ks_image_profile_prepare ();
}

static enum AVCodecID
get_codec_id (KsImageFormat format)
{
  switch (format) {
  case KS_IMAGE_PNG:
    return AV_CODEC_ID_PNG;
  case KS_IMAGE_GIF:
    return AV_CODEC_ID_GIF;
  case KS_IMAGE_BMP:
    return AV_CODEC_ID_BMP;
  }
  return AV_CODEC_ID_NONE;
}

/* A cut data chunk becomes a whole one of what is there (the decoder does not look at checksums),
 * and the end follows it: data has END_BYTES of room. */
static gsize
mend_cut_png (guint8 *data, gsize n, gsize cut_at)
{
  static const guint8 end[END_BYTES + 1] = "\0\0\0\0\0\0\0\0IEND\xae\x42\x60\x82";
  gsize n_chunk = n - cut_at - 8;

  for (guint i = 0; i < 4; i++)
    data[cut_at + i] = (guint8)(n_chunk >> (24 - 8 * i));
  memcpy (data + n, end, END_BYTES);
  return n + END_BYTES;
}

/* No larger picture than the header names is allowed; rows count as they are aligned. */
static AVCodecContext *
open_decoder (const KsImageHeader *header)
{
  AVCodecContext *context = ks_still_codec_open (
      get_codec_id (header->format), ((gint64)header->width_px + 63) / 64 * 64 * header->height_px);

  if (context == NULL)
    ks_answer_fault (KS_WIRE_FAULT_VARIANT, 0, 0);
  return context;
}

/* data has AV_INPUT_BUFFER_PADDING_SIZE zeros behind n. */
static AVFrame *
decode (const KsImageHeader *header, guint8 *data, gsize n)
{
  AVCodecContext *context = open_decoder (header);
  AVFrame *frame = av_frame_alloc ();
  int code = frame != NULL ? ks_still_codec_decode (context, data, n, frame) : AVERROR (ENOMEM);

  if (code == AVERROR (ENOMEM))
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  if (code == AVERROR_PATCHWELCOME)
    ks_answer_fault (KS_WIRE_FAULT_VARIANT, 0, 0);
  if (code != 0 || frame->width <= 0 || frame->height <= 0 || frame->data[0] == NULL)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_IMAGE, 0);
  ks_image_check_size ((guint64)frame->width, (guint64)frame->height);
  return frame;
}

/* The frame's pixels are given back on the way: its profile is held longer. */
static guint8 *
make_pixels (AVFrame *frame, guint max_side_px, guint orientation, KsWireAnswer *answer)
{
  const AVFrameSideData *side = av_frame_get_side_data (frame, AV_FRAME_DATA_ICC_PROFILE);
  AVBufferRef *profile = side != NULL && side->buf != NULL ? av_buffer_ref (side->buf) : NULL;
  gsize n_profile = profile != NULL ? side->size : 0;
  guint8 *pixels = ks_image_make_pixels (frame, max_side_px, orientation, answer);

  ks_image_apply_profile (pixels, (gsize)answer->width_px * answer->height_px,
                          profile != NULL ? profile->data : NULL, n_profile);
  av_buffer_unref (&profile);
  return pixels;
}

static void
run (const KsLoaderJob *job)
{
  KsWireAnswer answer = {.what = KS_WIRE_IMAGE};
  KsImageHeader header;
  guint8 *data;
  gsize n;
  AVFrame *frame;

  data = ks_loader_read (job, KS_IMAGE_MAX_FILE_BYTES, KS_WIRE_FAULT_MEMORY, &n);
  if (!ks_image_header_parse (data, n, &header))
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_IMAGE, 0);
  ks_image_check_size (header.width_px, header.height_px);
  data = g_try_realloc (data, n + END_BYTES + AV_INPUT_BUFFER_PADDING_SIZE);
  if (data == NULL)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  if (header.cut_at > 0)
    n = mend_cut_png (data, n, header.cut_at);
  memset (data + n, 0, AV_INPUT_BUFFER_PADDING_SIZE);
  frame = decode (&header, data, n);
  if (header.ends_early || (frame->flags & AV_FRAME_FLAG_CORRUPT) || frame->decode_error_flags != 0)
    answer.warnings |= KS_WIRE_WARN_ENDS_EARLY;
  if (header.is_animated)
    answer.warnings |= KS_WIRE_WARN_ANIMATED;
  data = make_pixels (frame, job->request->max_side_px, header.orientation, &answer);
  ks_answer_pixels (&answer, data);
  /* The process ends now: nothing is taken apart. */
}

const KsLoader KS_LOADER_SYMBOL = {prepare, run, FALSE};
