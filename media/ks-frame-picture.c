/* ks-frame-picture.c - see ks-frame-picture.h.
 * Scaled while converted, so that a large frame never exists as RGBA in full size; turned at the
 * end, when it is small.  Colours: the frame's own matrix and range, no profiles, no tone mapping.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-frame-picture.h"

#include "media/ks-loader.h"

#include <libavutil/mem.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
#include <stdlib.h>
#include <string.h>

#define ROW_ALIGN 64     /* what vector code may write behind a row */
#define MAX_STRETCH 16   /* a pixel that is longer is a mistake of the file */
#define HD_HEIGHT_PX 720 /* from here on files that say nothing mean BT.709 */

guint
ks_frame_orientation (const gint32 *matrix)
{
  gboolean flip_x, flip_y;

  if (matrix == NULL)
    return 1;
  /* x' = m0 x + m3 y, y' = m1 x + m4 y, y downwards. */
  if (llabs ((long long)matrix[0]) + llabs ((long long)matrix[4]) >=
      llabs ((long long)matrix[1]) + llabs ((long long)matrix[3])) {
    flip_x = matrix[0] < 0;
    flip_y = matrix[4] < 0;
    return flip_x ? (flip_y ? 3 : 2) : (flip_y ? 4 : 1);
  }
  flip_x = matrix[3] < 0; /* of the turned picture's columns */
  flip_y = matrix[1] < 0;
  return flip_x ? (flip_y ? 7 : 6) : (flip_y ? 8 : 5);
}

/* Pixels become square by making the shorter direction longer: nothing is lost. */
static void
square (const KsFramePicture *self, guint width, guint height, guint *out_width, guint *out_height)
{
  gint64 num = self->aspect.num, den = self->aspect.den;

  *out_width = width;
  *out_height = height;
  if (num <= 0 || den <= 0 || num > den * MAX_STRETCH || den > num * MAX_STRETCH)
    return;
  if (num > den)
    *out_width = (guint)((width * (guint64)num + (guint64)den / 2) / (guint64)den);
  else
    *out_height = (guint)((height * (guint64)den + (guint64)num / 2) / (guint64)num);
}

void
ks_frame_full_size (const KsFramePicture *self, guint width, guint height, KsWireAnswer *out)
{
  guint w, h;

  square (self, width, height, &w, &h);
  out->full_width_px = self->orientation >= 5 ? h : w;
  out->full_height_px = self->orientation >= 5 ? w : h;
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

static const int *
get_matrix (const AVFrame *frame)
{
  switch (frame->colorspace) {
  case AVCOL_SPC_BT709:
    return sws_getCoefficients (SWS_CS_ITU709);
  case AVCOL_SPC_BT2020_NCL:
  case AVCOL_SPC_BT2020_CL:
    return sws_getCoefficients (SWS_CS_BT2020);
  case AVCOL_SPC_SMPTE240M:
    return sws_getCoefficients (SWS_CS_SMPTE240M);
  case AVCOL_SPC_UNSPECIFIED:
    if (frame->height >= HD_HEIGHT_PX && !is_full_range (frame))
      return sws_getCoefficients (SWS_CS_ITU709);
    return sws_getCoefficients (SWS_CS_DEFAULT);
  default:
    return sws_getCoefficients (SWS_CS_DEFAULT);
  }
}

/* RGBA of width x height (av_free); rows are *out_stride bytes apart. */
static guint8 *
scale (KsFramePicture *self, const AVFrame *frame, guint width, guint height, gsize *out_stride)
{
  gboolean same = (guint)frame->width == width && (guint)frame->height == height;
  gsize stride = ((gsize)4 * width + ROW_ALIGN - 1) / ROW_ALIGN * ROW_ALIGN;
  guint8 *pixels = av_malloc (stride * height + ROW_ALIGN), *planes[4] = {pixels};
  int strides[4] = {(int)stride};

  if (pixels == NULL)
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  self->sws = sws_getCachedContext (
      self->sws, frame->width, frame->height, frame->format, (int)width, (int)height,
      AV_PIX_FMT_RGBA, (same ? SWS_BICUBIC : SWS_AREA) | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT,
      NULL, NULL, NULL);
  if (self->sws == NULL)
    ks_answer_fault (KS_WIRE_FAULT_CODEC, 0, 0);
  memset (pixels, 0, stride * height);
  sws_setColorspaceDetails (self->sws, get_matrix (frame), is_full_range (frame),
                            sws_getCoefficients (SWS_CS_DEFAULT), 1, 0, 1 << 16, 1 << 16);
  if (sws_scale (self->sws, (const uint8_t *const *)frame->data, frame->linesize, 0, frame->height,
                 planes, strides) <= 0)
    ks_answer_fault (KS_WIRE_FAULT_DAMAGED, KS_WIRE_VIDEO, 0);
  *out_stride = stride;
  return pixels;
}

/* Rows joined, turned and mirrored as EXIF says.  width, height: of the source. */
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

guint8 *
ks_frame_convert (KsFramePicture *self, const AVFrame *frame, KsWireAnswer *out)
{
  guint full_width, full_height, longest, width, height;
  guint8 *rows, *turned;
  gsize stride;

  square (self, (guint)frame->width, (guint)frame->height, &full_width, &full_height);
  longest = MAX (full_width, full_height);
  width = scale_side (full_width, longest, self->max_side_px);
  height = scale_side (full_height, longest, self->max_side_px);
  rows = scale (self, frame, width, height, &stride);
  turned = turn (rows, stride, width, height, self->orientation);
  av_free (rows);
  ks_frame_full_size (self, (guint)frame->width, (guint)frame->height, out);
  out->width_px = self->orientation >= 5 ? height : width;
  out->height_px = self->orientation >= 5 ? width : height;
  return turned;
}
