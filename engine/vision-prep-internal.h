/* vision-prep-internal.h - what the files of picture preparation share: a resize whose source may
 * stand in a frame of one colour, and the first of the two sizes of idefics3.
 * The frame is never stored: a 1 x 30000 picture in its square costs one row. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/vision-prep.h"

/* Where there is a frame, it makes a square, and the result is one as well. */
typedef struct ks_framed_rgb {
  ks_rgb rgb;
  uint32_t width, height; /* with the frame, at least those of rgb */
  uint32_t left, top;     /* place of rgb in it */
  uint8_t colour[3];      /* of the frame */
} ks_framed_rgb;

/* ks_rgb_resize for a framed picture. */
KS_CHECK ks_status ks_framed_rgb_resize(ks_alloc *a, const ks_framed_rgb *src, ks_resample filter,
                                        uint32_t width, uint32_t height, uint8_t *out,
                                        ks_error *err);

/* The size before both sides go up to whole tiles: the longer side becomes prep->longest (> 0), the
 * other follows, cut to a whole and even number, at least 1. */
void ks_idefics_first_size(const ks_vision_prep *prep, uint32_t width, uint32_t height,
                           uint32_t *out_width, uint32_t *out_height);
