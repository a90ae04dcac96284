/* fuzz-image-header.c - any bytes as a picture's header: what the worker reads before it decodes.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-image-header.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
  KsImageHeader header;

  if (!ks_image_header_parse(data, n, &header))
    return 0;
  if (header.width_px == 0 || header.height_px == 0 || header.orientation < 1 ||
      header.orientation > 8)
    abort();
  /* The first picture of an animation is cut out by these. */
  if (header.n_frame > 0 &&
      (header.frame_at < 36 || header.frame_at > n || header.n_frame > n - header.frame_at))
    abort();
  return 0;
}
