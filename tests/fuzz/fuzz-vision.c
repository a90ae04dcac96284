/* fuzz-vision.c - any bytes as a vision file: opened and used for a small picture, or refused with
 * a sentence. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/vision.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>

#define WIDTH 23u
#define HEIGHT 17u
#define MOST_TOKENS 1024u /* more would be slow, not another way */

static void
require(bool promise)
{
  if (!promise)
    abort();
}

/* Opened with the first input and kept: starting a device costs more than an input does. */
static ks_backend *
get_backend(void)
{
  static ks_backend be;

  if (be.t == NULL) {
    ks_dev_params params = {.alloc = ks_alloc_new(), .n_thread = 1};

    require(params.alloc != NULL && ks_backend_open("cpu", &params, &be, NULL) == KS_OK);
  }
  return &be;
}

static void
encode(ks_alloc *a, ks_vision *vision)
{
  static const uint8_t data[3 * WIDTH * HEIGHT] = {200, 10, 90};
  const ks_vision_prep *prep = &ks_vision_get_shape(vision)->prep;
  const ks_vision_limits limits = {.min_pixels = 1, .max_pixels = 4096};
  const ks_rgb rgb = {data, WIDTH, HEIGHT};
  ks_vision_embeds embeds = {0};
  ks_vision_input *in = NULL;
  ks_vision_plan plan;

  if (ks_vision_plan_picture(prep, &limits, WIDTH, HEIGHT, &plan, NULL) != KS_OK ||
      (uint64_t)plan.n_tok * prep->merge * prep->merge > MOST_TOKENS ||
      ks_vision_input_new(a, prep, &plan, &rgb, 1, &in, NULL) != KS_OK)
    return;
  if (ks_vision_encode(vision, in, NULL, &embeds, NULL) == KS_OK)
    require(embeds.n_tok == plan.n_tok && embeds.data != NULL);
  ks_vision_embeds_clear(&embeds);
  ks_vision_input_free(in);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
  ks_alloc *a = ks_alloc_new();
  ks_vision *vision = NULL;
  ks_gguf *g = NULL;
  ks_error err = {.text = ""};

  if (a == NULL)
    return 0;
  if (ks_gguf_open_bytes(a, data, n, &g, &err) == KS_OK) {
    require(ks_vision_check_files(g, g, &err) != KS_OK && err.text[0] != '\0');
    if (ks_vision_open_gguf(a, g, get_backend(), &vision, &err) == KS_OK) {
      require(ks_vision_get_weight_bytes(vision) > 0);
      encode(a, vision);
      ks_vision_close(vision);
    } else {
      require(vision == NULL && err.text[0] != '\0');
    }
  }
  for (int kind = 0; kind < KS_N_MEM_KIND; kind++)
    require(ks_alloc_get_bytes(a, (ks_mem_kind)kind) == 0);
  ks_alloc_free(a);
  return 0;
}
