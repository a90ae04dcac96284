/* ks-frame-picture.c - see ks-frame-picture.h.
 * Colours: the frame's own matrix and range, no profiles, no tone mapping. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-frame-picture.h"

#include "media/ks-image-output.h"
#include "media/ks-loader.h"

#include <stdlib.h>

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

guint8 *
ks_frame_convert (const KsFramePicture *self, const AVFrame *frame, KsWireAnswer *out)
{
  AVFrame *copy = av_frame_clone (frame); /* shares the pixels */
  guint full_width, full_height;
  guint8 *pixels;

  /* Alpha is laid over white in place, and the decoder may need what is there. */
  if (copy == NULL || (copy->format == AV_PIX_FMT_RGBA && av_frame_make_writable (copy) < 0))
    ks_answer_fault (KS_WIRE_FAULT_MEMORY, 0, 0);
  if (copy->colorspace == AVCOL_SPC_UNSPECIFIED && copy->color_range != AVCOL_RANGE_JPEG &&
      copy->height >= HD_HEIGHT_PX)
    copy->colorspace = AVCOL_SPC_BT709;
  square (self, (guint)frame->width, (guint)frame->height, &full_width, &full_height);
  pixels = ks_image_make_stretched (copy, full_width, full_height, self->max_side_px,
                                    self->orientation, out);
  av_frame_free (&copy);
  return pixels;
}
