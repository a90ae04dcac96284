/* golden-picture.c - see golden-picture.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/golden/golden-picture.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

uint8_t *
golden_picture_load(const char *path, uint32_t *out_width, uint32_t *out_height)
{
  png_image image;
  uint8_t *data = NULL;

  memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_file(&image, path) == 0)
    return NULL;
  image.format = PNG_FORMAT_RGB;
  data = malloc(PNG_IMAGE_SIZE(image));
  if (data == NULL || png_image_finish_read(&image, NULL, data, 0, NULL) == 0) {
    png_image_free(&image);
    free(data);
    return NULL;
  }
  *out_width = image.width;
  *out_height = image.height;
  return data;
}
