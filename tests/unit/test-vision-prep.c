/* test-vision-prep.c - reading an mmproj file's picture rules, caps, order of patches, frames of a
 * video, refusals, and running out of memory. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/gguf-write.h"
#include "engine/vision-prep.h"
#include "tests/ks-test.h"

/* A small tower of each kind; a test changes what it is about. */
static const ks_vision_prep tiles = {.family = KS_VISION_IDEFICS3,
                                     .patch = 2,
                                     .merge = 2,
                                     .tile = 8,
                                     .longest = 16,
                                     .mean = {0.5f, 0.5f, 0.5f},
                                     .std = {0.5f, 0.5f, 0.5f},
                                     .filter = KS_RESAMPLE_LANCZOS};
static const ks_vision_prep square = {.family = KS_VISION_LLAVA,
                                      .patch = 2,
                                      .merge = 1,
                                      .tile = 6,
                                      .mean = {0.2f, 0.5f, 0.9f},
                                      .std = {1, 1, 1},
                                      .filter = KS_RESAMPLE_BICUBIC};
static const ks_vision_prep qwen = {.family = KS_VISION_QWEN25VL,
                                    .patch = 2,
                                    .merge = 2,
                                    .min_pixels = 64,
                                    .max_pixels = 1024,
                                    .mean = {0, 0, 0},
                                    .std = {1, 1, 1},
                                    .filter = KS_RESAMPLE_BICUBIC};

/* A picture whose byte says where it is: row, column, channel. */
static ks_rgb
make_picture(uint32_t width, uint32_t height, uint8_t add)
{
  uint8_t *data = malloc((size_t)width * height * 3), *p = data;

  KS_ASSERT(data != NULL);
  for (uint32_t y = 0; y < height; y++)
    for (uint32_t x = 0; x < width; x++)
      for (uint32_t c = 0; c < 3; c++)
        *p++ = (uint8_t)(y * 16 + x + c * 64 + add);
  return (ks_rgb){data, width, height};
}

/* --- the file --- */

typedef struct keys {
  const char *arch, *projector;
  uint32_t image_size, patch, scale, merge, longest, min_pixels, max_pixels; /* 0 = absent */
  uint32_t n_mean;
  float std;
} keys;

static const keys good = {.arch = "clip",
                          .projector = "idefics3",
                          .image_size = 48,
                          .patch = 8,
                          .scale = 2,
                          .longest = 144,
                          .n_mean = 3,
                          .std = 0.5f};

static void
add_count(ks_gguf_writer *w, const char *name, uint32_t value)
{
  if (value > 0)
    ks_gguf_writer_add_u32(w, name, value);
}

static ks_status
read_keys(const keys *k, ks_vision_prep *out, ks_error *err)
{
  const float mean[] = {0.5f, 0.25f, 0.125f, 0.5f}, std[] = {0.5f, 0.5f, k->std};
  ks_alloc *a = ks_alloc_new();
  ks_gguf_writer *w = ks_gguf_writer_new(a, 0);
  unsigned char *bytes = NULL;
  size_t n = 0;
  ks_gguf *g = NULL;
  ks_status st;

  ks_gguf_writer_add_str(w, "general.architecture", k->arch);
  if (k->projector != NULL)
    ks_gguf_writer_add_str(w, "clip.projector_type", k->projector);
  add_count(w, "clip.vision.image_size", k->image_size);
  add_count(w, "clip.vision.patch_size", k->patch);
  add_count(w, "clip.vision.projector.scale_factor", k->scale);
  add_count(w, "clip.vision.spatial_merge_size", k->merge);
  add_count(w, "clip.vision.preproc_image_size", k->longest);
  add_count(w, "clip.vision.image_min_pixels", k->min_pixels);
  add_count(w, "clip.vision.image_max_pixels", k->max_pixels);
  ks_gguf_writer_add_array(w, "clip.vision.image_mean", KS_GGUF_F32, mean, k->n_mean);
  ks_gguf_writer_add_array(w, "clip.vision.image_std", KS_GGUF_F32, std, 3);
  KS_ASSERT_OK(ks_gguf_writer_get_bytes(w, &bytes, &n, NULL));
  KS_ASSERT_OK(ks_gguf_open_bytes(a, bytes, n, &g, NULL));
  st = ks_vision_prep_read(g, out, err);
  ks_gguf_close(g);
  ks_mem_free(bytes);
  ks_gguf_writer_free(w);
  ks_alloc_free(a);
  return st;
}

/* Each family gets its own filter, side of a token, tile and caps; keys win over defaults. */
KS_TEST(vision_prep, keys_of_each_family)
{
  ks_vision_prep p;
  keys k = good;

  KS_ASSERT_OK(read_keys(&k, &p, NULL));
  KS_ASSERT(p.family == KS_VISION_IDEFICS3 && p.filter == KS_RESAMPLE_LANCZOS);
  KS_ASSERT(p.tile == 48 && p.longest == 144 && p.patch == 8 && p.merge == 2);
  KS_ASSERT_NEAR(p.mean[2], 0.125, 0);
  k.longest = 0;
  KS_ASSERT_OK(read_keys(&k, &p, NULL));
  KS_ASSERT_EQ(p.longest, 0);
  k = (keys){"clip", "mlp", 336, 14, .n_mean = 3, .std = 1};
  KS_ASSERT_OK(read_keys(&k, &p, NULL));
  KS_ASSERT(p.family == KS_VISION_LLAVA && p.merge == 1 && p.filter == KS_RESAMPLE_BICUBIC);
  k = (keys){"clip", "gemma3", 896, 14, .n_mean = 3, .std = 1};
  KS_ASSERT_OK(read_keys(&k, &p, NULL));
  KS_ASSERT(p.family == KS_VISION_GEMMA3 && p.merge == 4 && p.filter == KS_RESAMPLE_BILINEAR);
  k = (keys){"clip", "qwen3vl_merger", 768, 16, .n_mean = 3, .std = 1};
  KS_ASSERT_OK(read_keys(&k, &p, NULL));
  KS_ASSERT(p.family == KS_VISION_QWEN3VL && p.merge == 2 && p.tile == 0);
  KS_ASSERT(p.min_pixels == 65536 && p.max_pixels == 16777216);
  k.min_pixels = 1000;
  k.max_pixels = 5000;
  KS_ASSERT_OK(read_keys(&k, &p, NULL));
  KS_ASSERT(p.min_pixels == 1000 && p.max_pixels == 5000);
}

static void
assert_refused(const keys *k, ks_status want, const char *word)
{
  ks_vision_prep p;
  ks_error err = {0};

  KS_ASSERT_STATUS(want, read_keys(k, &p, &err));
  if (strstr(err.text, word) == NULL)
    KS_FAIL("\"%s\" is not in \"%s\"", word, err.text);
}

/* What is missing or makes no sense is refused by name, before it can size anything. */
KS_TEST(vision_prep, bad_keys)
{
  keys k = good;

  k.arch = "llama";
  assert_refused(&k, KS_ERR_FORMAT, "clip");
  k = good, k.projector = "resampler";
  assert_refused(&k, KS_ERR_UNSUPPORTED, "resampler");
  k = good, k.projector = NULL;
  assert_refused(&k, KS_ERR_FORMAT, "clip.projector_type");
  k = good, k.image_size = 0;
  assert_refused(&k, KS_ERR_FORMAT, "clip.vision.image_size");
  k = good, k.image_size = 100000;
  assert_refused(&k, KS_ERR_FORMAT, "100000");
  k = good, k.patch = 7000;
  assert_refused(&k, KS_ERR_FORMAT, "clip.vision.patch_size");
  k = good, k.patch = 64;
  assert_refused(&k, KS_ERR_FORMAT, "whole tokens");
  k = good, k.scale = 0;
  assert_refused(&k, KS_ERR_FORMAT, "scale_factor");
  k = good, k.scale = 5;
  assert_refused(&k, KS_ERR_FORMAT, "whole tokens");
  k = good, k.longest = 1000000;
  assert_refused(&k, KS_ERR_FORMAT, "preproc_image_size");
  k = good, k.n_mean = 4;
  assert_refused(&k, KS_ERR_FORMAT, "image_mean");
  k = good, k.std = 0;
  assert_refused(&k, KS_ERR_FORMAT, "image_std");
  k = good, k.std = NAN;
  assert_refused(&k, KS_ERR_FORMAT, "image_std");
  k = good, k.projector = "qwen2vl_merger", k.min_pixels = 20, k.max_pixels = 10;
  assert_refused(&k, KS_ERR_FORMAT, "contradict");
}

/* --- size rules --- */

/* Rounds half to even, as the reference does: 42 px with tokens of 28 are 1.5 tokens and become 2,
 * 70 px are 2.5 and become 2 as well. */
KS_TEST(vision_prep, half_a_token_rounds_to_even)
{
  ks_vision_prep p = qwen;
  ks_vision_plan plan;

  p.patch = 14;
  p.max_pixels = 1000000;
  KS_ASSERT_OK(ks_vision_plan_picture(&p, NULL, 42, 70, &plan, NULL));
  KS_ASSERT_EQ(plan.resized_width, 56);
  KS_ASSERT_EQ(plan.resized_height, 56);
  KS_ASSERT_EQ(plan.n_tok, 4);
}

/* A user's cap replaces the model's, which gives way where it contradicts; two of them that
 * contradict each other are refused. */
KS_TEST(vision_prep, caps_of_the_user)
{
  ks_vision_limits small = {.max_pixels = 32}, large = {.min_pixels = 4096};
  ks_vision_limits both = {.min_pixels = 300, .max_pixels = 200};
  ks_vision_limits huge = {.min_pixels = UINT64_MAX};
  ks_vision_plan plan;
  ks_error err = {0};

  KS_ASSERT_OK(ks_vision_plan_picture(&qwen, NULL, 400, 300, &plan, NULL));
  KS_ASSERT_LE(plan.resized_width * plan.resized_height, 1024);
  KS_ASSERT_EQ(plan.resized_width, 36);
  KS_ASSERT_EQ(plan.resized_height, 24); /* 400 x 300 divided by sqrt(120000 / 1024), in fours */
  KS_ASSERT_OK(ks_vision_plan_picture(&qwen, &small, 400, 300, &plan, NULL));
  KS_ASSERT(plan.resized_width == 4 && plan.resized_height == 4);
  KS_ASSERT_OK(ks_vision_plan_picture(&qwen, &large, 8, 8, &plan, NULL));
  KS_ASSERT(plan.resized_width == 64 && plan.resized_height == 64);
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_vision_plan_picture(&qwen, &both, 8, 8, &plan, &err));
  KS_ASSERT(strstr(err.text, "300") != NULL && strstr(err.text, "200") != NULL);
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_vision_plan_picture(&qwen, &huge, 8, 8, &plan, &err));
}

/* Sides of 0, sides beyond every picture and strips are refused with a sentence and no plan. */
KS_TEST(vision_prep, impossible_sizes)
{
  ks_vision_plan plan = {.n_tok = 77};
  ks_error err = {0};

  KS_ASSERT_STATUS(KS_ERR_ARG, ks_vision_plan_picture(&qwen, NULL, 0, 8, &plan, &err));
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_vision_plan_picture(&tiles, NULL, 8, 0, &plan, &err));
  KS_ASSERT_STATUS(KS_ERR_UNSUPPORTED,
                   ks_vision_plan_picture(&square, NULL, UINT32_MAX, 8, &plan, &err));
  KS_ASSERT_OK(ks_vision_plan_picture(&qwen, NULL, 1, 200, &(ks_vision_plan){0}, NULL));
  KS_ASSERT_STATUS(KS_ERR_UNSUPPORTED, ks_vision_plan_picture(&qwen, NULL, 1, 201, &plan, &err));
  KS_ASSERT(strstr(err.text, "200 times") != NULL);
  KS_ASSERT_EQ(plan.n_tok, 77);
}

/* idefics3: tiles and an overview; where tiles are switched off, or one tile is the whole picture,
 * a single view. */
KS_TEST(vision_prep, tiles_and_overview)
{
  ks_vision_limits whole = {.no_split = true};
  ks_vision_prep p = tiles;
  ks_vision_plan plan;

  KS_ASSERT_OK(ks_vision_plan_picture(&p, NULL, 40, 25, &plan, NULL));
  KS_ASSERT(plan.tile_rows == 2 && plan.tile_cols == 2 && plan.has_overview && plan.n_view == 5);
  KS_ASSERT_EQ(plan.n_tok, 5 * 2 * 2);
  KS_ASSERT_OK(ks_vision_plan_picture(&p, NULL, 1, 4000, &plan, NULL));
  KS_ASSERT(plan.tile_rows == 2 && plan.tile_cols == 1 && plan.n_view == 3);
  KS_ASSERT_OK(ks_vision_plan_picture(&p, &whole, 40, 25, &plan, NULL));
  KS_ASSERT(plan.n_view == 1 && !plan.has_overview && plan.n_tok == 4);
  p.longest = 8;
  KS_ASSERT_OK(ks_vision_plan_picture(&p, NULL, 9, 9, &plan, NULL));
  KS_ASSERT(plan.n_view == 1 && !plan.has_overview);
}

/* --- pixels --- */

static ks_vision_input *
new_input(ks_alloc *a, const ks_vision_prep *prep, const ks_rgb *frames, uint32_t n_frame)
{
  ks_vision_plan plan;
  ks_vision_input *in = NULL;

  KS_ASSERT_OK(ks_vision_plan_picture(prep, NULL, frames[0].width, frames[0].height, &plan, NULL));
  KS_ASSERT_OK(ks_vision_input_new(a, prep, &plan, frames, n_frame, &in, NULL));
  return in;
}

/* Patches of one token are neighbours; each is (channel, y, x) of its own place, and equals the
 * planar pixels there. */
KS_TEST(vision_prep, order_of_patches)
{
  static const uint32_t places[][2] = {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2}, {0, 3}, {1, 2}};
  ks_alloc *a = ks_alloc_new();
  ks_rgb src = make_picture(12, 8, 0); /* 3 x 2 tokens: taken as it is */
  ks_vision_input *in = new_input(a, &qwen, &src, 1);
  float patches[24][3][2][2], planes[3][8][12];

  KS_ASSERT_EQ(ks_vision_input_get_plan(in)->n_tok, 6);
  ks_vision_input_get_patches(in, 0, 1, 0, 24, &patches[0][0][0][0]);
  ks_vision_input_get_pixels(in, 0, 0, &planes[0][0][0]);
  KS_ASSERT_NEAR(planes[1][2][5], (2 * 16 + 5 + 64) / 255.0, 1e-7);
  for (uint32_t i = 0; i < 24; i++) {
    uint32_t row, col;

    ks_vision_patch_place(&qwen, ks_vision_input_get_plan(in), i, &row, &col);
    if (i < sizeof places / sizeof places[0])
      KS_ASSERT(row == places[i][0] && col == places[i][1]);
    for (uint32_t k = 0; k < 12; k++)
      KS_ASSERT(patches[i][k / 4][k / 2 % 2][k % 2] ==
                planes[k / 4][row * 2 + k / 2 % 2][col * 2 + k % 2]);
  }
  ks_vision_input_free(in);
  free((void *)src.data);
  ks_alloc_free(a);
}

/* Families that pool or keep every patch have plain raster order. */
KS_TEST(vision_prep, raster_order)
{
  ks_vision_prep gemma = {.family = KS_VISION_GEMMA3, .patch = 2, .merge = 2, .tile = 12};
  ks_vision_plan plan;
  uint32_t row, col;

  KS_ASSERT_OK(ks_vision_plan_picture(&gemma, NULL, 5, 5, &plan, NULL));
  KS_ASSERT_EQ(plan.n_tok, 9);
  ks_vision_patch_place(&gemma, &plan, 8, &row, &col);
  KS_ASSERT(row == 1 && col == 2);
  KS_ASSERT_OK(ks_vision_plan_picture(&square, NULL, 5, 5, &plan, NULL));
  ks_vision_patch_place(&square, &plan, 5, &row, &col);
  KS_ASSERT(row == 1 && col == 2);
}

/* A tile is a window of the resized picture and the overview is the picture once more. */
KS_TEST(vision_prep, tiles_are_windows)
{
  ks_alloc *a = ks_alloc_new();
  ks_rgb src = make_picture(16, 16, 0); /* longest already: no resize before the tiles */
  ks_vision_input *in = new_input(a, &tiles, &src, 1);
  float view[3][8][8];
  uint8_t small[8 * 8 * 3];

  ks_vision_input_get_pixels(in, 1, 0, &view[0][0][0]); /* top right */
  KS_ASSERT_NEAR(view[0][3][2], (3 * 16 + 10) / 255.0 * 2 - 1, 1e-6);
  ks_vision_input_get_pixels(in, 2, 0, &view[0][0][0]); /* bottom left */
  KS_ASSERT_NEAR(view[2][0][7], (uint8_t)(8 * 16 + 7 + 128) / 255.0 * 2 - 1, 1e-6);
  ks_vision_input_get_pixels(in, 4, 0, &view[0][0][0]);
  KS_ASSERT_OK(ks_rgb_resize(a, &src, KS_RESAMPLE_LANCZOS, 8, 8, small, NULL));
  for (uint32_t i = 0; i < 64; i++)
    KS_ASSERT_NEAR(view[1][i / 8][i % 8], small[i * 3 + 1] / 255.0 * 2 - 1, 1e-6);
  ks_vision_input_free(in);
  free((void *)src.data);
  ks_alloc_free(a);
}

/* The square around a picture is never stored, yet gives what resizing a stored one would. */
KS_TEST(vision_prep, square_of_the_mean_colour)
{
  static const uint8_t colour[] = {51, 127, 229}; /* mean * 255, cut off */
  ks_alloc *a = ks_alloc_new();
  ks_rgb src = make_picture(4, 11, 0), padded = make_picture(11, 11, 0);
  ks_vision_input *in = new_input(a, &square, &src, 1);
  uint8_t *p = (uint8_t *)padded.data, want[6 * 6 * 3];
  float view[3][6][6];

  for (uint32_t i = 0; i < 11 * 11 * 3; i++)
    p[i] = colour[i % 3];
  for (uint32_t y = 0; y < 11; y++)
    memcpy(p + (y * 11 + 3) * 3, src.data + y * 12, 12); /* 7 columns to spare: 3 left, 4 right */
  KS_ASSERT_OK(ks_rgb_resize(a, &padded, KS_RESAMPLE_BICUBIC, 6, 6, want, NULL));
  ks_vision_input_get_pixels(in, 0, 0, &view[0][0][0]);
  for (uint32_t i = 0; i < 36 * 3; i++)
    KS_ASSERT_NEAR(view[i % 3][i / 18][i / 3 % 6], want[i] / 255.0 - square.mean[i % 3], 1e-6);
  ks_vision_input_free(in);
  free((void *)src.data);
  free((void *)padded.data);
  ks_alloc_free(a);
}

/* Two frames of a video stay apart; a still picture stands for both; other families take one. */
KS_TEST(vision_prep, frames)
{
  ks_alloc *a = ks_alloc_new();
  ks_rgb frames[2] = {make_picture(12, 8, 0), make_picture(12, 8, 5)};
  ks_vision_input *pair = new_input(a, &qwen, frames, 2), *still = new_input(a, &qwen, frames, 1);
  ks_vision_plan plan;
  float one[12], two[12];

  ks_vision_input_get_patches(pair, 0, 0, 7, 1, one);
  ks_vision_input_get_patches(pair, 0, 1, 7, 1, two);
  KS_ASSERT_NEAR(two[0] - one[0], 5 / 255.0, 1e-6);
  ks_vision_input_get_patches(still, 0, 1, 7, 1, two);
  KS_ASSERT_NEAR(two[0], one[0], 0);
  ks_vision_input_free(pair);
  ks_vision_input_free(still);
  KS_ASSERT_OK(ks_vision_plan_picture(&square, NULL, 12, 8, &plan, NULL));
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_vision_input_new(a, &square, &plan, frames, 2, &pair, NULL));
  frames[0].width = 11;
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_vision_input_new(a, &square, &plan, frames, 1, &pair, NULL));
  free((void *)frames[0].data);
  free((void *)frames[1].data);
  ks_alloc_free(a);
}

/* Over white: nothing left of a transparent pixel, a half one in the middle, an opaque one as is.
 */
KS_TEST(vision_prep, alpha_over_white)
{
  static const uint8_t rgba[] = {10, 20, 30, 0, 0, 100, 255, 128, 7, 8, 9, 255};
  static const uint8_t want[] = {255, 255, 255, 127, 177, 255, 7, 8, 9};
  uint8_t got[9];

  ks_rgb_from_rgba(rgba, 3, got);
  KS_ASSERT(memcmp(got, want, sizeof want) == 0);
}

/* A strip of 30,000 pixels costs its rows, not its square: under 4 MiB beside the result. */
KS_TEST(vision_prep, strips_cost_little)
{
  ks_alloc *a = ks_alloc_new();
  ks_rgb src = make_picture(1, 30000, 0);
  ks_vision_input *in = new_input(a, &square, &src, 1);

  KS_ASSERT_LT(ks_alloc_get_peak_bytes(a, KS_MEM_VISION), 4 << 20);
  ks_vision_input_free(in);
  free((void *)src.data);
  ks_alloc_free(a);
}

static ks_status
try_all(ks_alloc *a, const ks_rgb *src)
{
  const ks_vision_prep *preps[] = {&tiles, &square, &qwen};
  ks_status st = KS_OK;

  for (uint32_t i = 0; st == KS_OK && i < 3; i++) {
    ks_vision_plan plan;
    ks_vision_input *in = NULL;

    KS_ASSERT_OK(ks_vision_plan_picture(preps[i], NULL, src->width, src->height, &plan, NULL));
    st = ks_vision_input_new(a, preps[i], &plan, src, 1, &in, NULL);
    KS_ASSERT((st == KS_OK) == (in != NULL));
    ks_vision_input_free(in);
  }
  return st;
}

/* Every allocation fails once: a status, nothing left behind. */
KS_TEST(vision_prep, out_of_memory)
{
  ks_rgb src = make_picture(21, 13, 0);
  ks_status st = KS_ERR_NOMEM;
  int64_t n = 0;

  for (; st != KS_OK; n++) {
    ks_alloc *a = ks_alloc_new();

    ks_alloc_fail_after(a, n);
    st = try_all(a, &src);
    KS_ASSERT(st == KS_OK || st == KS_ERR_NOMEM);
    ks_alloc_free(a); /* asserts that nothing is left */
  }
  KS_ASSERT(n > 20);
  free((void *)src.data);
}

KS_TEST_MAIN
