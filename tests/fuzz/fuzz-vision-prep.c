/* fuzz-vision-prep.c - any bytes as a vision tower's file: refused with a sentence, or a rule that
 * makes sense for a picture of any size.  Where the result is small the picture is really prepared.
 * The seeds say in keys of their own, "try.*", which picture they mean. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/vision-prep.h"
#include "tests/fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SOURCE 4096 /* pixels of a picture that is really prepared */
#define MAX_RESULT 65536

static void
require(bool promise)
{
  if (!promise)
    abort();
}

static uint32_t
get_u32(const ks_gguf *g, const char *key, uint32_t fallback)
{
  uint32_t value = fallback;

  return ks_gguf_get_u32(g, key, &value) ? value : fallback;
}

/* Sizes fit each other and hold whole tokens. */
static void
check_plan(const ks_vision_prep *prep, const ks_vision_plan *p)
{
  uint32_t unit = prep->patch * prep->merge;

  require(p->n_view == p->tile_rows * p->tile_cols + p->has_overview);
  require(p->view_width * p->tile_cols == p->resized_width);
  require(p->view_height * p->tile_rows == p->resized_height);
  require(p->grid_cols >= 1 && p->grid_rows >= 1);
  require(p->grid_cols * unit <= p->view_width && p->grid_rows * unit <= p->view_height);
  require((uint64_t)p->n_view * p->grid_rows * p->grid_cols == p->n_tok);
  if (prep->tile == 0)
    require(p->grid_cols * unit == p->view_width && p->grid_rows * unit == p->view_height);
}

/* Every view and the last patch of each hold finite numbers. */
static void
check_input(ks_alloc *a, const ks_vision_prep *prep, const ks_vision_plan *plan)
{
  static uint8_t source[MAX_SOURCE * 3];
  static float pixels[MAX_RESULT * 3];
  uint32_t n_patch = plan->grid_rows * plan->grid_cols * prep->merge * prep->merge;
  size_t n_view = (size_t)3 * plan->view_width * plan->view_height;
  ks_rgb rgb = {source, plan->width, plan->height};
  ks_vision_input *in = NULL;

  for (size_t i = 0; i < sizeof source; i++)
    source[i] = (uint8_t)(i * 41);
  require(ks_vision_input_new(a, prep, plan, &rgb, 1, &in, NULL) == KS_OK);
  for (uint32_t view = 0; view < plan->n_view; view++) {
    ks_vision_input_get_pixels(in, view, 0, pixels);
    for (size_t i = 0; i < n_view; i++)
      require(isfinite(pixels[i]));
    ks_vision_input_get_patches(in, view, 1, n_patch - 1, 1, pixels);
    require(isfinite(pixels[(size_t)3 * prep->patch * prep->patch - 1]));
  }
  ks_vision_input_free(in);
}

static void
try_picture(ks_alloc *a, const ks_gguf *g, const ks_vision_prep *prep)
{
  ks_vision_limits limits = {.min_pixels = get_u32(g, "try.min_pixels", 0),
                             .max_pixels = get_u32(g, "try.max_pixels", 0),
                             .no_split = get_u32(g, "try.no_split", 0) > 0};
  uint32_t width = get_u32(g, "try.width", 33), height = get_u32(g, "try.height", 9);
  ks_vision_plan plan;
  ks_error err;

  if (ks_vision_plan_picture(prep, &limits, width, height, &plan, &err) != KS_OK) {
    require(err.text[0] != '\0');
    return;
  }
  check_plan(prep, &plan);
  if ((uint64_t)width * height <= MAX_SOURCE && prep->longest <= 256 &&
      (uint64_t)plan.resized_width * plan.resized_height <= MAX_RESULT)
    check_input(a, prep, &plan);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
  ks_alloc *a = ks_alloc_new();
  ks_gguf *g = NULL;
  ks_vision_prep prep;
  ks_error err;

  if (a == NULL)
    return 0;
  if (ks_gguf_open_bytes(a, data, n, &g, NULL) == KS_OK) {
    if (ks_vision_prep_read(g, &prep, &err) == KS_OK)
      try_picture(a, g, &prep);
    else
      require(err.text[0] != '\0');
  }
  ks_gguf_close(g);
  require(ks_alloc_get_bytes(a, KS_MEM_VISION) == 0);
  ks_alloc_free(a);
  return 0;
}
