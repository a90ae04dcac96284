/* ks-webp-loader.c - WebP with libwebp (inside the worker): still, animated, lossless, with alpha.
 * Of an animation the first picture at its place on the canvas; of a file that ends early the rows
 * that are there.  Source: docs/adr/0019-decoders-of-pictures.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-image-header.h"
#include "media/ks-image-output.h"
#include "media/ks-image-profile.h"
#include "media/ks-loader.h"

#include <string.h>
#include <webp/decode.h>
#include <webp/demux.h>

/* The processor is asked for its kind at the first use, without any file. */
static void
prepare (const KsLoaderJob *job, GPtrArray *paths)
{
  ks_image_profile_prepare ();
}

static guint
read_orientation (WebPDemuxer *demuxer)
{
  WebPChunkIterator chunk;
  guint orientation = 1;

  if (WebPDemuxGetChunk (demuxer, "EXIF", 1, &chunk) != 0)
    orientation = ks_image_exif_orientation (chunk.chunk.bytes, chunk.chunk.size);
  WebPDemuxReleaseChunkIterator (&chunk);
  return orientation;
}

static void
apply_profile (WebPDemuxer *demuxer, guint8 *pixels, const KsWireAnswer *answer)
{
  WebPChunkIterator chunk;

  if (WebPDemuxGetChunk (demuxer, "ICCP", 1, &chunk) != 0)
    ks_image_apply_profile (pixels, (gsize)answer->width_px * answer->height_px, chunk.chunk.bytes,
                            chunk.chunk.size);
  WebPDemuxReleaseChunkIterator (&chunk);
}

/* Rows of the canvas; the frame is decoded in place.  What no data came for stays white in a
 * picture without alpha.  *out_whole: nothing is missing. */
static guint8 *
decode (const WebPIterator *frame, guint width, guint height, gboolean *out_whole)
{
  gsize stride = (gsize)4 * width;
  guint8 *canvas = g_try_malloc (stride * height);
  WebPDecoderConfig config;
  WebPIDecoder *decoder;
  VP8StatusCode status;

  if (frame->x_offset < 0 || frame->y_offset < 0 || frame->width <= 0 || frame->height <= 0 ||
      (guint)frame->x_offset + (guint)frame->width > width ||
      (guint)frame->y_offset + (guint)frame->height > height)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_IMAGE, 0);
  if (canvas == NULL || !WebPInitDecoderConfig (&config))
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  memset (canvas, frame->has_alpha ? 0 : 255, stride * height);
  config.output.colorspace = MODE_RGBA;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba =
      canvas + (gsize)frame->y_offset * stride + (gsize)4 * (guint)frame->x_offset;
  config.output.u.RGBA.stride = (int)stride;
  config.output.u.RGBA.size = stride * ((guint)frame->height - 1) + (gsize)4 * (guint)frame->width;
  decoder = WebPIDecode (NULL, 0, &config);
  if (decoder == NULL)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  status = WebPIUpdate (decoder, frame->fragment.bytes, frame->fragment.size);
  if (status == VP8_STATUS_OUT_OF_MEMORY)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  if (status == VP8_STATUS_UNSUPPORTED_FEATURE)
    ks_answer_fault (KS_WIRE_FAULT_VARIANT, 0, 0);
  if (status != VP8_STATUS_OK && status != VP8_STATUS_SUSPENDED)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_IMAGE, 0);
  *out_whole = status == VP8_STATUS_OK;
  return canvas;
}

static void
run (const KsLoaderJob *job)
{
  KsWireAnswer answer = {.what = KS_WIRE_IMAGE};
  WebPBitstreamFeatures features;
  WebPDemuxer *demuxer;
  WebPDemuxState state;
  WebPIterator frame;
  guint width, height;
  gboolean whole;
  WebPData file;
  guint8 *pixels;
  gsize n;

  file.bytes = ks_loader_read (job, KS_IMAGE_MAX_FILE_BYTES, KS_WIRE_FAULT_MEMORY, &n);
  file.size = n;
  if (WebPGetFeatures (file.bytes, file.size, &features) != VP8_STATUS_OK || features.width <= 0 ||
      features.height <= 0)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_IMAGE, 0);
  width = (guint)features.width;
  height = (guint)features.height;
  ks_image_check_size (width, height);
  demuxer = WebPDemuxPartial (&file, &state);
  if (demuxer == NULL || WebPDemuxGetFrame (demuxer, 1, &frame) == 0)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_IMAGE, 0);
  pixels = decode (&frame, width, height, &whole);
  if (!whole || state != WEBP_DEMUX_DONE)
    answer.warnings |= KS_WIRE_WARN_ENDS_EARLY;
  if (frame.num_frames > 1)
    answer.warnings |= KS_WIRE_WARN_ANIMATED;
  pixels = ks_image_make_pixels (
      ks_image_wrap (AV_PIX_FMT_RGBA, pixels, (gsize)4 * width, width, height),
      job->request->max_side_px, read_orientation (demuxer), &answer);
  apply_profile (demuxer, pixels, &answer);
  ks_answer_pixels (&answer, pixels);
}

const KsLoader KS_LOADER_SYMBOL = {prepare, run, FALSE};
