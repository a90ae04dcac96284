/* ks-texture.c - see ks-texture.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-texture.h"

GdkTexture *
ks_texture_new (KsPixels *pixels)
{
  guint width = 0;

  if (pixels == NULL)
    return NULL;
  width = ks_pixels_get_width (pixels);
  return gdk_memory_texture_new ((int)width, (int)ks_pixels_get_height (pixels),
                                 GDK_MEMORY_R8G8B8A8, ks_pixels_get_bytes (pixels),
                                 (gsize)4 * width);
}
