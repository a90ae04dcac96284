/* ks-image-output.c - see ks-image-output.h.
 * Scaled while converted, so that a large picture exists as RGBA in full size only where it has
 * alpha: that must meet the white before neighbours are mixed. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-image-output.h"

#include "media/ks-loader.h"

#include <libavutil/imgutils.h>
#include <libavutil/mem.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
#include <string.h>

#define ROW_ALIGN 64 /* what vector code may write behind a row */

void
ks_image_check_size (guint64 width, guint64 height)
{
  if (width > (guint64)KS_IMAGE_MAX_PIXELS || height > (guint64)KS_IMAGE_MAX_PIXELS ||
      width * height > (guint64)KS_IMAGE_MAX_PIXELS)
    ks_answer_fault (KS_WIRE_FAULT_PIXELS, (guint32)MIN (width, G_MAXUINT32),
                     (guint32)MIN (height, G_MAXUINT32));
}

AVFrame *
ks_image_wrap (enum AVPixelFormat format, guint8 *rows, gsize stride, guint width, guint height)
{
  AVFrame *frame = av_frame_alloc ();

  if (frame == NULL)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  frame->format = format;
  frame->width = (int)width;
  frame->height = (int)height;
  frame->data[0] = rows;
  frame->linesize[0] = (int)stride;
  return frame;
}

gboolean
ks_image_lay_over_white (guint8 *rgba, gsize stride, guint width, guint height,
                         gboolean premultiplied)
{
  gboolean any = FALSE;

  for (guint y = 0; y < height; y++) {
    guint8 *pixel = rgba + y * stride;

    for (guint x = 0; x < width; x++, pixel += 4) {
      guint alpha = pixel[3], white = 255 - alpha;

      if (white == 0)
        continue;
      any = TRUE;
      for (guint i = 0; i < 3; i++) {
        guint color = premultiplied ? pixel[i] : (pixel[i] * alpha + 127) / 255;

        pixel[i] = (guint8)MIN (color + white, 255);
      }
      pixel[3] = 255;
    }
  }
  return any;
}

static guint
scale_side (guint side, guint longest, guint max)
{
  guint64 scaled = longest <= max ? side : ((guint64)side * max + longest / 2) / longest;

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

/* RGBA of width x height (av_free); rows are *out_stride bytes apart. */
static guint8 *
scale (const AVFrame *frame, guint width, guint height, gsize *out_stride)
{
  const int *from = sws_getCoefficients ((int)frame->colorspace);
  const int *to = sws_getCoefficients (SWS_CS_DEFAULT);
  gboolean same = (guint)frame->width == width && (guint)frame->height == height;
  gsize stride = ((gsize)4 * width + ROW_ALIGN - 1) / ROW_ALIGN * ROW_ALIGN;
  struct SwsContext *sws = sws_getContext (
      frame->width, frame->height, frame->format, (int)width, (int)height, AV_PIX_FMT_RGBA,
      (same ? SWS_BICUBIC : SWS_AREA) | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INP | SWS_FULL_CHR_H_INT,
      NULL, NULL, NULL);
  guint8 *pixels = av_malloc (stride * height + ROW_ALIGN);
  guint8 *planes[4] = {pixels};
  int strides[4] = {(int)stride};

  if (sws == NULL)
    ks_answer_fault (KS_WIRE_FAULT_VARIANT, 0, 0);
  if (pixels == NULL)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  memset (pixels, 0, stride * height);
  sws_setColorspaceDetails (sws, from, is_full_range (frame), to, 1, 0, 1 << 16, 1 << 16);
  if (sws_scale (sws, (const uint8_t *const *)frame->data, frame->linesize, 0, frame->height,
                 planes, strides) <= 0)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_IMAGE, 0);
  sws_freeContext (sws);
  *out_stride = stride;
  return pixels;
}

static gboolean
may_be_see_through (const AVFrame *frame)
{
  const AVPixFmtDescriptor *desc = av_pix_fmt_desc_get (frame->format);

  return frame->format == AV_PIX_FMT_PAL8 ||
         (desc != NULL && (desc->flags & AV_PIX_FMT_FLAG_ALPHA) != 0);
}

static gboolean
is_plain_rgba (const AVFrame *frame)
{
  return frame->format == AV_PIX_FMT_RGBA && frame->linesize[0] > 0;
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

/* The picture as RGBA in its own size over white, when it may have alpha; its old pixels are given
 * back first where the frame owns them.  *out_any: something was see-through. */
static AVFrame *
lay_frame_over_white (AVFrame *frame, gboolean *out_any)
{
  AVFrame *flat = frame;

  if (!may_be_see_through (frame))
    return frame;
  if (!is_plain_rgba (frame)) {
    guint width = (guint)frame->width, height = (guint)frame->height;
    gsize stride;
    guint8 *rows = scale (frame, width, height, &stride);

    av_frame_unref (frame);
    flat = ks_image_wrap (AV_PIX_FMT_RGBA, rows, stride, width, height);
  }
  *out_any = ks_image_lay_over_white (flat->data[0], (gsize)flat->linesize[0], (guint)flat->width,
                                      (guint)flat->height, FALSE);
  return flat;
}

guint8 *
ks_image_make_pixels (AVFrame *frame, guint max_side_px, guint orientation, KsWireAnswer *out)
{
  return ks_image_make_stretched (frame, (guint)frame->width, (guint)frame->height, max_side_px,
                                  orientation, out);
}

guint8 *
ks_image_make_stretched (AVFrame *frame, guint full_width, guint full_height, guint max_side_px,
                         guint orientation, KsWireAnswer *out)
{
  guint longest = MAX (full_width, full_height);
  guint width = scale_side (full_width, longest, max_side_px);
  guint height = scale_side (full_height, longest, max_side_px);
  gboolean swapped = orientation >= 5, see_through = FALSE, as_it_is;
  AVFrame *flat = lay_frame_over_white (frame, &see_through);
  guint8 *rows, *turned;
  gsize stride;

  as_it_is = is_plain_rgba (flat) && width == (guint)flat->width && height == (guint)flat->height;
  if (as_it_is) {
    rows = flat->data[0];
    stride = (gsize)flat->linesize[0];
  } else {
    rows = scale (flat, width, height, &stride);
  }
  out->width_px = swapped ? height : width;
  out->height_px = swapped ? width : height;
  out->full_width_px = swapped ? full_height : full_width;
  out->full_height_px = swapped ? full_width : full_height;
  if (see_through)
    out->warnings |= KS_WIRE_WARN_OVER_WHITE;
  turned = turn (rows, stride, width, height, orientation);
  if (!as_it_is)
    av_free (rows);
  if (flat != frame) {
    av_free (flat->data[0]);
    av_frame_free (&flat);
  }
  return turned;
}
