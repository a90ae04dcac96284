/* ks-image-profile.c - see ks-image-profile.h.  Source: docs/adr/0019-decoders-of-pictures.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-image-profile.h"

#include <lcms2.h>
#include <stdlib.h>

#define MAX_PROFILE_BYTES (4u << 20) /* a table of three dimensions, and then some */
#define GRID 9u /* steps of each channel where a profile is compared with sRGB */
#define GRID_STEP 31u
#define NEAR 2     /* of 255: what copies of sRGB differ by */
#define RUN 65536u /* pixels at a time */

/* The head of a profile holds the date, for which the C library reads the time zone. */
void
ks_image_profile_prepare (void)
{
  cmsCloseProfile (cmsCreate_sRGBProfile ());
}

static cmsHTRANSFORM
open_transform (const guint8 *profile, gsize n_byte)
{
  cmsHPROFILE from = cmsOpenProfileFromMem (profile, (cmsUInt32Number)n_byte);
  cmsHPROFILE to = cmsCreate_sRGBProfile ();
  cmsHTRANSFORM transform = NULL;

  if (from != NULL && to != NULL && cmsGetColorSpace (from) == cmsSigRgbData)
    transform = cmsCreateTransform (from, TYPE_RGBA_8, to, TYPE_RGBA_8, INTENT_PERCEPTUAL, 0);
  if (from != NULL)
    cmsCloseProfile (from);
  if (to != NULL)
    cmsCloseProfile (to);
  return transform;
}

/* Most cameras write sRGB: their pixels stay as they are, to the bit. */
static gboolean
changes_anything (cmsHTRANSFORM transform)
{
  for (guint i = 0; i < GRID * GRID * GRID; i++) {
    guint8 from[4] = {(guint8)(i % GRID * GRID_STEP), (guint8)(i / GRID % GRID * GRID_STEP),
                      (guint8)(i / GRID / GRID * GRID_STEP), 255};
    guint8 to[4] = {0};

    cmsDoTransform (transform, from, to, 1);
    for (guint c = 0; c < 3; c++)
      if (abs (to[c] - from[c]) > NEAR)
        return TRUE;
  }
  return FALSE;
}

void
ks_image_apply_profile (guint8 *rgba, gsize n_pixel, const guint8 *profile, gsize n_byte)
{
  cmsHTRANSFORM transform;

  if (profile == NULL || n_byte == 0 || n_byte > MAX_PROFILE_BYTES)
    return;
  transform = open_transform (profile, n_byte);
  if (transform == NULL)
    return;
  if (changes_anything (transform))
    for (gsize at = 0; at < n_pixel; at += RUN) /* the fourth byte of a pixel is not touched */
      cmsDoTransform (transform, rgba + at * 4, rgba + at * 4,
                      (cmsUInt32Number)MIN (n_pixel - at, RUN));
  cmsDeleteTransform (transform);
}
