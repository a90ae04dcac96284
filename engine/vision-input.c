/* vision-input.c - a picture resized and cut as planned, and its pixels as a tower wants them.
 * Tiles are not copied out: a view is a window into the resized picture.  A byte becomes f32
 * through a table of 256 values a channel.
 * Source: docs/method.md, section 9. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/vision-prep-internal.h"

#include <assert.h>
#include <string.h>

typedef struct frame_pixels {
  uint8_t *whole;    /* [resized_height, resized_width, 3] */
  uint8_t *overview; /* [view_height, view_width, 3] or NULL */
} frame_pixels;

struct ks_vision_input {
  ks_vision_prep prep;
  ks_vision_plan plan;
  float value[3][256]; /* of a byte, by channel */
  uint32_t n_frame;
  frame_pixels frames[2];
};

void
ks_rgb_from_rgba(const uint8_t *rgba, size_t n_pixel, uint8_t *out)
{
  for (size_t i = 0; i < n_pixel; i++, rgba += 4, out += 3) {
    uint32_t alpha = rgba[3];

    for (uint32_t c = 0; c < 3; c++)
      out[c] = (uint8_t)((rgba[c] * alpha + 255 * (255 - alpha) + 127) / 255);
  }
}

/* LLaVA: the middle of a square of the mean colour; the odd pixel goes right or below. */
static ks_framed_rgb
make_square(const ks_vision_prep *prep, const ks_rgb *src)
{
  uint32_t side = src->width > src->height ? src->width : src->height;
  ks_framed_rgb square = {.rgb = *src, .width = side, .height = side};

  square.left = (side - src->width) / 2;
  square.top = (side - src->height) / 2;
  for (uint32_t c = 0; c < 3; c++) {
    float colour = prep->mean[c] * 255.0f;

    square.colour[c] = (uint8_t)(colour < 0 ? 0 : colour > 255 ? 255 : colour);
  }
  return square;
}

static uint8_t *
new_picture(ks_alloc *a, uint32_t width, uint32_t height, ks_error *err)
{
  size_t n_pixel;
  uint8_t *data =
      ks_mul_size(width, height, &n_pixel) ? ks_mem_new(a, KS_MEM_VISION, n_pixel, 3) : NULL;

  if (data == NULL)
    (void)ks_fail(err, KS_ERR_NOMEM, "there is no memory for a picture of %u x %u pixels", width,
                  height);
  return data;
}

/* idefics3: to the first size, from there to whole tiles. */
static ks_status
resize_twice(ks_alloc *a, const ks_vision_input *in, const ks_rgb *src, uint8_t *out, ks_error *err)
{
  const ks_vision_plan *plan = &in->plan;
  ks_rgb first = {0};
  uint8_t *data;
  ks_status st;

  ks_idefics_first_size(&in->prep, src->width, src->height, &first.width, &first.height);
  data = new_picture(a, first.width, first.height, err);
  if (data == NULL)
    return KS_ERR_NOMEM;
  first.data = data;
  st = ks_rgb_resize(a, src, in->prep.filter, first.width, first.height, data, err);
  if (st == KS_OK)
    st = ks_rgb_resize(a, &first, in->prep.filter, plan->resized_width, plan->resized_height, out,
                       err);
  ks_mem_free(data);
  return st;
}

static ks_status
prepare_frame(ks_alloc *a, const ks_vision_input *in, const ks_rgb *src, frame_pixels *out,
              ks_error *err)
{
  const ks_vision_plan *plan = &in->plan;
  uint32_t width = plan->resized_width, height = plan->resized_height;
  ks_resample filter = in->prep.filter;
  ks_rgb whole = {.width = width, .height = height};
  ks_framed_rgb square;
  ks_status st;

  whole.data = out->whole = new_picture(a, width, height, err);
  if (out->whole == NULL)
    return KS_ERR_NOMEM;
  if (in->prep.family == KS_VISION_LLAVA) {
    square = make_square(&in->prep, src);
    return ks_framed_rgb_resize(a, &square, filter, width, height, out->whole, err);
  }
  if (in->prep.longest > 0)
    st = resize_twice(a, in, src, out->whole, err);
  else
    st = ks_rgb_resize(a, src, filter, width, height, out->whole, err);
  if (st != KS_OK || !plan->has_overview)
    return st;
  out->overview = new_picture(a, plan->view_width, plan->view_height, err);
  if (out->overview == NULL)
    return KS_ERR_NOMEM;
  return ks_rgb_resize(a, &whole, filter, plan->view_width, plan->view_height, out->overview, err);
}

static ks_status
check_frames(const ks_vision_prep *prep, const ks_vision_plan *plan, const ks_rgb *frames,
             uint32_t n_frame, ks_error *err)
{
  if (n_frame < 1 || n_frame > 2)
    return ks_fail(err, KS_ERR_ARG, "a picture has one frame or two, not %u", n_frame);
  if (n_frame == 2 && !ks_vision_family_is_free_size(prep->family))
    return ks_fail(err, KS_ERR_ARG, "this model takes the frames of a video one by one");
  for (uint32_t i = 0; i < n_frame; i++)
    if (frames[i].width != plan->width || frames[i].height != plan->height)
      return ks_fail(err, KS_ERR_ARG, "a frame of %u x %u pixels was planned with %u x %u",
                     frames[i].width, frames[i].height, plan->width, plan->height);
  return KS_OK;
}

ks_status
ks_vision_input_new(ks_alloc *a, const ks_vision_prep *prep, const ks_vision_plan *plan,
                    const ks_rgb *frames, uint32_t n_frame, ks_vision_input **out, ks_error *err)
{
  ks_status st = check_frames(prep, plan, frames, n_frame, err);
  ks_vision_input *in;

  if (st != KS_OK)
    return st;
  in = ks_mem_new(a, KS_MEM_VISION, 1, sizeof(*in));
  if (in == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "there is no memory for a picture");
  in->prep = *prep;
  in->plan = *plan;
  in->n_frame = n_frame;
  for (uint32_t c = 0; c < 3; c++)
    for (uint32_t i = 0; i < 256; i++)
      in->value[c][i] = ((float)(i / 255.0) - prep->mean[c]) / prep->std[c];
  for (uint32_t i = 0; st == KS_OK && i < n_frame; i++)
    st = prepare_frame(a, in, &frames[i], &in->frames[i], err);
  if (st != KS_OK) {
    ks_vision_input_free(in);
    return st;
  }
  *out = in;
  return KS_OK;
}

void
ks_vision_input_free(ks_vision_input *in)
{
  if (in == NULL)
    return;
  for (uint32_t i = 0; i < 2; i++) {
    ks_mem_free(in->frames[i].whole);
    ks_mem_free(in->frames[i].overview);
  }
  ks_mem_free(in);
}

const ks_vision_plan *
ks_vision_input_get_plan(const ks_vision_input *in)
{
  return &in->plan;
}

const ks_vision_prep *
ks_vision_input_get_prep(const ks_vision_input *in)
{
  return &in->prep;
}

/* First pixel of a view; *out_stride bytes from row to row. */
static const uint8_t *
get_view(const ks_vision_input *in, uint32_t view, uint32_t i_frame, size_t *out_stride)
{
  const ks_vision_plan *plan = &in->plan;
  const frame_pixels *f = &in->frames[i_frame < in->n_frame ? i_frame : 0];
  uint32_t row = view / plan->tile_cols, col = view % plan->tile_cols;

  assert(view < plan->n_view && i_frame < 2);
  if (plan->has_overview && view == plan->n_view - 1) {
    *out_stride = (size_t)plan->view_width * 3;
    return f->overview;
  }
  *out_stride = (size_t)plan->resized_width * 3;
  return f->whole + row * plan->view_height * *out_stride + (size_t)col * plan->view_width * 3;
}

/* Planar f32 from a rectangle of n_row x n_col pixels. */
static void
copy_planar(const ks_vision_input *in, const uint8_t *pixels, size_t stride, uint32_t n_row,
            uint32_t n_col, float *out)
{
  size_t plane = (size_t)n_row * n_col;

  for (uint32_t y = 0; y < n_row; y++, pixels += stride, out += n_col)
    for (uint32_t x = 0; x < n_col; x++) {
      out[x] = in->value[0][pixels[x * 3]];
      out[plane + x] = in->value[1][pixels[x * 3 + 1]];
      out[2 * plane + x] = in->value[2][pixels[x * 3 + 2]];
    }
}

void
ks_vision_input_get_pixels(const ks_vision_input *in, uint32_t view, uint32_t frame, float *out)
{
  size_t stride;
  const uint8_t *pixels = get_view(in, view, frame, &stride);

  copy_planar(in, pixels, stride, in->plan.view_height, in->plan.view_width, out);
}

void
ks_vision_input_get_patches(const ks_vision_input *in, uint32_t view, uint32_t frame,
                            uint32_t first, uint32_t n, float *out)
{
  uint32_t patch = in->prep.patch, row, col;
  size_t stride;
  const uint8_t *pixels = get_view(in, view, frame, &stride);

  for (uint32_t i = 0; i < n; i++, out += (size_t)3 * patch * patch) {
    ks_vision_patch_place(&in->prep, &in->plan, first + i, &row, &col);
    copy_planar(in, pixels + row * patch * stride + (size_t)col * patch * 3, stride, patch, patch,
                out);
  }
}

void
ks_vision_patch_place(const ks_vision_prep *prep, const ks_vision_plan *plan, uint32_t i,
                      uint32_t *out_row, uint32_t *out_col)
{
  uint32_t merge = prep->family == KS_VISION_GEMMA3 ? 1 : prep->merge;
  uint32_t blocks = plan->grid_cols * prep->merge / merge, block = i / (merge * merge);
  uint32_t inside = i % (merge * merge);

  *out_row = block / blocks * merge + inside / merge;
  *out_col = block % blocks * merge + inside % merge;
}
