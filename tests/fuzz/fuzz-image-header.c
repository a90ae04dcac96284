/* fuzz-image-header.c - any bytes as a picture's header: what the worker reads before it decodes.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-image-header.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
  guint orientation = ks_image_exif_orientation(data, n);
  KsImageHeader header;

  if (orientation < 1 || orientation > 8)
    abort();
  if (!ks_image_header_parse(data, n, &header))
    return 0;
  if (header.width_px == 0 || header.height_px == 0 || header.orientation < 1 ||
      header.orientation > 8)
    abort();
  /* A cut data chunk is mended at this place. */
  if (header.cut_at > 0 && (header.cut_at < 8 || header.cut_at + 8 > n))
    abort();
  return 0;
}
