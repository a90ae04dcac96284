/* ks-image-loader.c - pictures to RGBA with FFmpeg's decoders (inside the worker).
 * The file is one packet for the decoder of its format: no demuxer, no protocol, no filter runs.
 * Scaled while converted, so that a large picture never exists as RGBA in full size; turned by EXIF
 * orientation at the end.  Colour profiles are not applied.  Source:
 * docs/adr/0011-decoder-worker.md.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-image-header.h"
#include "media/ks-loader.h"

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <libavutil/cpu.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
#include <string.h>

#define MAX_FILE_BYTES (G_GUINT64_CONSTANT (256) << 20)
#define MAX_PIXELS (G_GINT64_CONSTANT (100) * 1000 * 1000)
#define END_BYTES 16 /* a checksum and a PNG's last chunk */
#define ROW_ALIGN 64 /* what vector code may write behind a row */

/* Nothing is opened lazily; the processor is asked for its kind before the filter. */
static void
prepare (const KsLoaderJob *job, GPtrArray *paths)
{
  av_log_set_level (AV_LOG_QUIET);
  (void)av_get_cpu_flags ();
}

static enum AVCodecID
get_codec_id (KsImageFormat format)
{
  switch (format) {
  case KS_IMAGE_PNG:
    return AV_CODEC_ID_PNG;
  case KS_IMAGE_JPEG:
    return AV_CODEC_ID_MJPEG;
  case KS_IMAGE_GIF:
    return AV_CODEC_ID_GIF;
  case KS_IMAGE_BMP:
    return AV_CODEC_ID_BMP;
  case KS_IMAGE_TIFF:
    return AV_CODEC_ID_TIFF;
  case KS_IMAGE_WEBP:
    return AV_CODEC_ID_WEBP;
  }
  return AV_CODEC_ID_NONE;
}

static void
check_size (guint64 width, guint64 height)
{
  if (width * height > (guint64)MAX_PIXELS)
    ks_answer_fault (KS_WIRE_FAULT_PIXELS, (guint32)width, (guint32)height);
}

/* An animation's first picture as a file of its own, in place: its chunks move behind a header that
 * says nothing but "there may be alpha". */
static gsize
make_single_webp (guint8 *data, const KsImageHeader *header)
{
  guint32 n_riff = (guint32)header->n_frame + 22, w = header->width_px - 1,
          h = header->height_px - 1;
  guint8 head[30] = "RIFF....WEBPVP8X\x0a\0\0\0\x10";

  for (guint i = 0; i < 4; i++)
    head[4 + i] = (guint8)(n_riff >> (8 * i));
  for (guint i = 0; i < 3; i++) {
    head[24 + i] = (guint8)(w >> (8 * i));
    head[27 + i] = (guint8)(h >> (8 * i));
  }
  memmove (data + sizeof head, data + header->frame_at, header->n_frame);
  memcpy (data, head, sizeof head);
  return sizeof head + header->n_frame;
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

static AVCodecContext *
open_decoder (KsImageFormat format)
{
  const AVCodec *codec = avcodec_find_decoder (get_codec_id (format));
  AVCodecContext *context = codec != NULL ? avcodec_alloc_context3 (codec) : NULL;

  if (codec == NULL)
    ks_answer_fault (KS_WIRE_FAULT_VARIANT, 0, 0);
  if (context == NULL)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  context->thread_count = 1;
  context->max_pixels = MAX_PIXELS;
  if (avcodec_open2 (context, codec, NULL) != 0)
    ks_answer_fault (KS_WIRE_FAULT_VARIANT, 0, 0);
  return context;
}

/* data has AV_INPUT_BUFFER_PADDING_SIZE zeros behind n. */
static AVFrame *
decode (const KsImageHeader *header, guint8 *data, gsize n)
{
  AVCodecContext *context = open_decoder (header->format);
  AVPacket *packet = av_packet_alloc ();
  AVFrame *frame = av_frame_alloc ();
  int code;

  if (packet == NULL || frame == NULL)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  packet->data = data;
  packet->size = (int)n;
  packet->flags = AV_PKT_FLAG_KEY;
  code = avcodec_send_packet (context, packet);
  if (code == 0)
    code = avcodec_send_packet (context, NULL);
  if (code == 0)
    code = avcodec_receive_frame (context, frame);
  if (code == AVERROR (ENOMEM))
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  if (code == AVERROR_PATCHWELCOME)
    ks_answer_fault (KS_WIRE_FAULT_VARIANT, 0, 0);
  if (code != 0 || frame->width <= 0 || frame->height <= 0 || frame->data[0] == NULL)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_IMAGE, 0);
  check_size ((guint64)frame->width, (guint64)frame->height);
  return frame;
}

static guint
scale_side (int side, int longest, guint max)
{
  guint64 scaled = (guint)longest <= max
                       ? (guint64)side
                       : ((guint64)side * max + (guint)longest / 2) / (guint)longest;

  return scaled < 1 ? 1 : (guint)scaled;
}

/* One of the old formats that mean "full range" by their name. */
static gboolean
is_full_range (const AVFrame *frame)
{
  const char *name = av_get_pix_fmt_name (frame->format);

  return frame->color_range == AVCOL_RANGE_JPEG ||
         (name != NULL && g_str_has_prefix (name, "yuvj"));
}

/* RGBA of width x height; rows are *out_stride bytes apart. */
static guint8 *
scale (const AVFrame *frame, guint width, guint height, gsize *out_stride)
{
  const int *matrix = sws_getCoefficients (SWS_CS_DEFAULT);
  gboolean same = (guint)frame->width == width && (guint)frame->height == height;
  gsize stride = ((gsize)4 * width + ROW_ALIGN - 1) / ROW_ALIGN * ROW_ALIGN;
  struct SwsContext *sws = sws_getContext (
      frame->width, frame->height, frame->format, (int)width, (int)height, AV_PIX_FMT_RGBA,
      (same ? SWS_BICUBIC : SWS_AREA) | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT, NULL, NULL, NULL);
  guint8 *pixels = av_malloc (stride * height + ROW_ALIGN);
  guint8 *planes[4] = {pixels};
  int strides[4] = {(int)stride};

  if (sws == NULL)
    ks_answer_fault (KS_WIRE_FAULT_VARIANT, 0, 0);
  if (pixels == NULL)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  memset (pixels, 0, stride * height);
  sws_setColorspaceDetails (sws, matrix, is_full_range (frame), matrix, 1, 0, 1 << 16, 1 << 16);
  if (sws_scale (sws, (const uint8_t *const *)frame->data, frame->linesize, 0, frame->height,
                 planes, strides) <= 0)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_IMAGE, 0);
  sws_freeContext (sws);
  *out_stride = stride;
  return pixels;
}

/* Turned and mirrored as EXIF says, rows joined.  width, height: of the source. */
static guint8 *
turn (const guint8 *source, gsize stride, guint width, guint height, guint orientation)
{
  gboolean swapped = orientation >= 5;
  guint to_width = swapped ? height : width, to_height = swapped ? width : height;
  gboolean flip_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  gboolean flip_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  guint8 *turned = g_try_malloc ((gsize)4 * width * height), *to = turned;

  if (turned == NULL)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  for (guint y = 0; y < to_height; y++)
    for (guint x = 0; x < to_width; x++, to += 4) {
      guint sx = swapped ? y : x, sy = swapped ? x : y;

      sx = flip_x ? width - 1 - sx : sx;
      sy = flip_y ? height - 1 - sy : sy;
      memcpy (to, source + sy * stride + (gsize)4 * sx, 4);
    }
  return turned;
}

static void
run (const KsLoaderJob *job)
{
  KsWireAnswer sizes = {.what = KS_WIRE_IMAGE};
  guint max = job->request->max_side_px, width, height;
  gboolean swapped;
  KsImageHeader header;
  guint8 *data, *rows;
  gsize n, stride;
  AVFrame *frame;

  data = ks_loader_read (job, MAX_FILE_BYTES, KS_WIRE_FAULT_MEMORY, &n);
  if (!ks_image_header_parse (data, n, &header))
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_IMAGE, 0);
  check_size (header.width_px, header.height_px);
  data = g_try_realloc (data, n + END_BYTES + AV_INPUT_BUFFER_PADDING_SIZE);
  if (data == NULL)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  if (header.n_frame > 0)
    n = make_single_webp (data, &header);
  else if (header.cut_at > 0)
    n = mend_cut_png (data, n, header.cut_at);
  memset (data + n, 0, AV_INPUT_BUFFER_PADDING_SIZE);
  frame = decode (&header, data, n);
  width = scale_side (frame->width, MAX (frame->width, frame->height), max);
  height = scale_side (frame->height, MAX (frame->width, frame->height), max);
  rows = scale (frame, width, height, &stride);
  swapped = header.orientation >= 5;
  sizes.width_px = swapped ? height : width;
  sizes.height_px = swapped ? width : height;
  sizes.full_width_px = (guint32)(swapped ? frame->height : frame->width);
  sizes.full_height_px = (guint32)(swapped ? frame->width : frame->height);
  if (header.ends_early || (frame->flags & AV_FRAME_FLAG_CORRUPT) || frame->decode_error_flags != 0)
    sizes.warnings |= KS_WIRE_WARN_ENDS_EARLY;
  if (header.is_animated)
    sizes.warnings |= KS_WIRE_WARN_ANIMATED;
  ks_answer_pixels (&sizes, turn (rows, stride, width, height, header.orientation));
  /* The process ends now: nothing is taken apart. */
}

const KsLoader KS_LOADER_SYMBOL = {prepare, run};
