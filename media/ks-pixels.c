/* ks-pixels.c - see ks-pixels.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-pixels.h"

struct _KsPixels {
  gatomicrefcount n_ref;
  guint width_px, height_px;
  GBytes *bytes;
};

KsPixels *
ks_pixels_new (guint width_px, guint height_px, GBytes *bytes)
{
  KsPixels *pixels;

  g_return_val_if_fail (bytes != NULL, NULL);
  if (width_px == 0 || height_px == 0 || width_px > G_MAXINT32 / 4 ||
      (guint64)height_px > G_MAXSIZE / 4 / width_px ||
      g_bytes_get_size (bytes) != (gsize)4 * width_px * height_px)
    return NULL;
  pixels = g_new0 (KsPixels, 1);
  g_atomic_ref_count_init (&pixels->n_ref);
  pixels->width_px = width_px;
  pixels->height_px = height_px;
  pixels->bytes = g_bytes_ref (bytes);
  return pixels;
}

KsPixels *
ks_pixels_ref (KsPixels *pixels)
{
  g_return_val_if_fail (pixels != NULL, NULL);
  g_atomic_ref_count_inc (&pixels->n_ref);
  return pixels;
}

void
ks_pixels_unref (KsPixels *pixels)
{
  if (pixels == NULL || !g_atomic_ref_count_dec (&pixels->n_ref))
    return;
  g_bytes_unref (pixels->bytes);
  g_free (pixels);
}

guint
ks_pixels_get_width (const KsPixels *pixels)
{
  g_return_val_if_fail (pixels != NULL, 0);
  return pixels->width_px;
}

guint
ks_pixels_get_height (const KsPixels *pixels)
{
  g_return_val_if_fail (pixels != NULL, 0);
  return pixels->height_px;
}

GBytes *
ks_pixels_get_bytes (const KsPixels *pixels)
{
  g_return_val_if_fail (pixels != NULL, NULL);
  return pixels->bytes;
}
