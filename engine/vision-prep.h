/* vision-prep.h - from a decoded picture to what a vision tower reads: the family's size rule, a
 * resize that equals Pillow's bit for bit, tiles, normalised patches.  Host only, no weights.
 * A picture stays 8-bit after its resize; patches become f32 when the tower asks for them, so that
 * a large photo costs 3 bytes a pixel.
 * Threads: pure functions; a ks_vision_input is immutable.  Source: docs/method.md (vision). */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/alloc.h"
#include "engine/gguf.h"

KS_BEGIN_DECLS

/* Of a picture after resizing; what a file or a user may ask for. */
#define KS_VISION_MAX_PIXELS (UINT64_C(1) << 30)

typedef enum ks_vision_family {
  KS_VISION_IDEFICS3, /* SmolVLM: tiles and a global view, pixel shuffle */
  KS_VISION_LLAVA,    /* LLaVA-1.5: padded square, class token, two-layer projector */
  KS_VISION_GEMMA3,   /* stretched square, average pool */
  KS_VISION_QWEN2VL,
  KS_VISION_QWEN25VL, /* windows */
  KS_VISION_QWEN3VL,  /* interpolated positions, deepstack */
  KS_N_VISION_FAMILY
} ks_vision_family;

typedef enum ks_resample {
  KS_RESAMPLE_BILINEAR, /* support 1 */
  KS_RESAMPLE_BICUBIC,  /* a = -0.5, support 2 */
  KS_RESAMPLE_LANCZOS   /* support 3 */
} ks_resample;

/* RGB, 8 bits a channel, rows without padding; borrowed. */
typedef struct ks_rgb {
  const uint8_t *data; /* [height, width, 3] */
  uint32_t width, height;
} ks_rgb;

/* RGBA (not premultiplied) over white: out [n_pixel, 3]. */
void ks_rgb_from_rgba(const uint8_t *rgba, size_t n_pixel, uint8_t *out);

/* Pillow's Image.resize (13.0) on 8-bit channels, bit for bit: horizontal pass, then vertical (the
 * other way round where the height loses over twice as many pixels as the width), each rounded to
 * 8 bits; the filter widens when shrinking; coefficients in 22-bit fixed point.  An equal size is
 * a copy.  out [height, width, 3].  KS_ERR_ARG for a side of 0, KS_ERR_NOMEM. */
KS_CHECK ks_status ks_rgb_resize(ks_alloc *a, const ks_rgb *src, ks_resample filter, uint32_t width,
                                 uint32_t height, uint8_t *out, ks_error *err);

const char *ks_vision_family_get_name(ks_vision_family family); /* as in clip.projector_type */
/* Pictures keep their ratio and may have any size between two caps (Qwen). */
bool ks_vision_family_is_free_size(ks_vision_family family);

/* How a family treats a picture: read from its mmproj file. */
typedef struct ks_vision_prep {
  ks_vision_family family;
  uint32_t patch;   /* pixels a side */
  uint32_t merge;   /* patches a side that become one token: pixel shuffle, merge, pool */
  uint32_t tile;    /* pixels a side of a tile or of the square; 0 = any size (Qwen) */
  uint32_t longest; /* idefics3: the longer side before tiles are cut; 0 = never split */
  uint64_t min_pixels, max_pixels; /* Qwen: the model's own caps */
  float mean[3], std[3];
  ks_resample filter;
} ks_vision_prep;

/* The user's caps; zeros = the model's own.  Where only one is given and the model's other one
 * contradicts it, the model's gives way. */
typedef struct ks_vision_limits {
  uint64_t min_pixels, max_pixels; /* Qwen; the others have sizes of their own */
  bool no_split;                   /* idefics3: the global view alone */
} ks_vision_limits;

/* KS_ERR_FORMAT: no mmproj file, a key that is missing or makes no sense; KS_ERR_UNSUPPORTED:
 * another projector. */
KS_CHECK ks_status ks_vision_prep_read(const ks_gguf *mmproj, ks_vision_prep *out, ks_error *err);

/* What the size rule decides for a picture of width x height. */
typedef struct ks_vision_plan {
  uint32_t width, height;                 /* of the source */
  uint32_t resized_width, resized_height; /* before tiles are cut; a padded square counts whole */
  uint32_t tile_rows, tile_cols;          /* tiles without the overview; 1 x 1 = one view, which
                                             is what idefics3 calls the global one */
  bool has_overview;                      /* the whole picture once more, as the last view */
  uint32_t n_view;                        /* pictures that the tower sees */
  uint32_t view_width, view_height;       /* pixels of each */
  uint32_t grid_rows, grid_cols;          /* tokens of each */
  uint32_t n_tok;                         /* n_view * grid_rows * grid_cols */
} ks_vision_plan;

/* KS_ERR_ARG with a sentence: a side of 0, caps that contradict; KS_ERR_UNSUPPORTED: an aspect
 * ratio over 200 (Qwen), a size that no decoder gives.
 */
KS_CHECK ks_status ks_vision_plan_picture(const ks_vision_prep *prep,
                                          const ks_vision_limits *limits, uint32_t width,
                                          uint32_t height, ks_vision_plan *out, ks_error *err);

/* A picture (or, for the Qwen families, two frames of a video) resized and cut as planned. */
typedef struct ks_vision_input ks_vision_input;

/* frames: n_frame (1 or 2) pictures of the plan's source size, not needed afterwards.
 * KS_ERR_ARG: two frames for a family that takes one, another size; KS_ERR_NOMEM. */
KS_CHECK ks_status ks_vision_input_new(ks_alloc *a, const ks_vision_prep *prep,
                                       const ks_vision_plan *plan, const ks_rgb *frames,
                                       uint32_t n_frame, ks_vision_input **out, ks_error *err);
void ks_vision_input_free(ks_vision_input *in); /* NULL is allowed */
const ks_vision_plan *ks_vision_input_get_plan(const ks_vision_input *in);
const ks_vision_prep *ks_vision_input_get_prep(const ks_vision_input *in);
/* Normalised pixels of a view, planar: out [3, view_height, view_width]. */
void ks_vision_input_get_pixels(const ks_vision_input *in, uint32_t view, uint32_t frame,
                                float *out);
/* Patches first .. first + n - 1 of a view: out [n, 3, patch, patch] (channel, y, x), one frame
 * (a still picture gives the same for frames 0 and 1).
 * Order: merge blocks in raster order, the merge * merge patches of a block in raster order inside
 * it, so that the patches of one token are neighbours; families that pool or keep every patch
 * (Gemma 3, LLaVA) have plain raster order.  ks_vision_patch_place gives the place of a patch. */
void ks_vision_input_get_patches(const ks_vision_input *in, uint32_t view, uint32_t frame,
                                 uint32_t first, uint32_t n, float *out);
/* Row and column of patch i of a view in the order above. */
void ks_vision_patch_place(const ks_vision_prep *prep, const ks_vision_plan *plan, uint32_t i,
                           uint32_t *out_row, uint32_t *out_col);

KS_END_DECLS
