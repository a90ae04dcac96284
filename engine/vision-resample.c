/* vision-resample.c - separable resize of 8-bit RGB that equals Pillow's to the last bit.
 * Weights are computed in double, divided by their sum and rounded to 22 bits behind the point;
 * sums start at one half and are cut to 8 bits after each of the two passes.  Rows that the
 * vertical pass needs are made when they are needed and kept in a ring: scratch is a few rows, not
 * a picture.  Source: docs/method.md, section 9. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/vision-prep-internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define FRACTION_BITS 22
#define HALF (1 << (FRACTION_BITS - 1))
#define MAX_SIDE ((1u << 24) - 1) /* every side is exact in the reference's floats */
/* Bytes whose sums stay in the first-level cache; constant, so that the loops are vectorised. */
#define STRIP 512
#define PI 3.14159265358979323846

/* Which inputs make an output, along one axis. */
typedef struct taps {
  uint32_t n_out, n_max;
  uint32_t *first, *count; /* [n_out] */
  int32_t *weights;        /* [n_out, n_max] */
} taps;

static double
bilinear(double x)
{
  x = fabs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

static double
bicubic(double x)
{
  const double a = -0.5;

  x = fabs(x);
  if (x < 1.0)
    return ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
  return x < 2.0 ? (((x - 5.0) * x + 8.0) * x - 4.0) * a : 0.0;
}

static double
sinc(double x)
{
  return x == 0.0 ? 1.0 : sin(x * PI) / (x * PI);
}

static double
lanczos(double x)
{
  return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3.0) : 0.0;
}

static const struct {
  double (*weigh)(double x);
  double support;
} filters[] = {
    [KS_RESAMPLE_BILINEAR] = {bilinear, 1.0},
    [KS_RESAMPLE_BICUBIC] = {bicubic, 2.0},
    [KS_RESAMPLE_LANCZOS] = {lanczos, 3.0},
};

static void
taps_done(taps *t)
{
  ks_mem_free(t->first);
  ks_mem_free(t->count);
  ks_mem_free(t->weights);
}

/* Weights of output i; w: room for n_max. */
static void
weigh_inputs(taps *t, ks_resample filter, uint32_t n_in, uint32_t i, double *w)
{
  double scale = (double)n_in / t->n_out, stretch = fmax(scale, 1.0), step = 1.0 / stretch;
  double support = filters[filter].support * stretch, centre = (i + 0.5) * scale, sum = 0;
  double low = centre - support + 0.5, high = centre + support + 0.5;
  uint32_t first = low > 0 ? (uint32_t)low : 0;
  uint32_t end = high < n_in ? (uint32_t)high : n_in;

  t->first[i] = first;
  t->count[i] = end - first;
  assert(end > first && end - first <= t->n_max);
  for (uint32_t k = 0; k < end - first; k++) {
    w[k] = filters[filter].weigh(((double)(first + k) - centre + 0.5) * step);
    sum += w[k];
  }
  for (uint32_t k = 0; k < end - first; k++) {
    double fixed = (sum != 0 ? w[k] / sum : w[k]) * (1 << FRACTION_BITS);

    t->weights[(size_t)i * t->n_max + k] = (int32_t)(fixed < 0 ? fixed - 0.5 : fixed + 0.5);
  }
}

static ks_status
taps_init(ks_alloc *a, ks_resample filter, uint32_t n_in, uint32_t n_out, taps *t, ks_error *err)
{
  double support = filters[filter].support * fmax((double)n_in / n_out, 1.0);
  size_t n_weight;
  double *w = NULL;

  t->n_out = n_out;
  t->n_max = (uint32_t)ceil(support) * 2 + 1;
  if (ks_mul_size(n_out, t->n_max, &n_weight)) {
    t->first = ks_mem_new(a, KS_MEM_VISION, n_out, sizeof(*t->first));
    t->count = ks_mem_new(a, KS_MEM_VISION, n_out, sizeof(*t->count));
    t->weights = ks_mem_new(a, KS_MEM_VISION, n_weight, sizeof(*t->weights));
    w = ks_mem_new(a, KS_MEM_VISION, t->n_max, sizeof(*w));
  }
  if (t->first == NULL || t->count == NULL || t->weights == NULL || w == NULL) {
    ks_mem_free(w);
    return ks_fail(err, KS_ERR_NOMEM, "there is no memory to resize a picture");
  }
  for (uint32_t i = 0; i < n_out; i++)
    weigh_inputs(t, filter, n_in, i, w);
  ks_mem_free(w);
  return KS_OK;
}

static uint8_t
cut(int32_t sum)
{
  int32_t value = sum >> FRACTION_BITS;

  return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* One row across: src [n_in, 3] to out [n_out, 3]; sums begin at base [n_out, 3]. */
static void
resize_row(const taps *t, const int32_t *base, const uint8_t *src, uint8_t *out)
{
  for (uint32_t i = 0; i < t->n_out; i++, base += 3, out += 3) {
    const uint8_t *p = src + (size_t)t->first[i] * 3;
    const int32_t *w = t->weights + (size_t)i * t->n_max;
    int32_t r = base[0], g = base[1], b = base[2];

    for (uint32_t k = 0; k < t->count[i]; k++, p += 3) {
      r += p[0] * w[k];
      g += p[1] * w[k];
      b += p[2] * w[k];
    }
    out[0] = cut(r);
    out[1] = cut(g);
    out[2] = cut(b);
  }
}

/* out[STRIP] from n rows. */
static void
mix_strip(const uint8_t *const *rows, size_t at, const int32_t *w, uint32_t n, uint8_t *out)
{
  int32_t sum[STRIP];

  for (size_t i = 0; i < STRIP; i++)
    sum[i] = HALF;
  for (uint32_t k = 0; k < n; k++) {
    const uint8_t *row = rows[k] + at;
    int32_t weight = w[k];

    for (size_t i = 0; i < STRIP; i++)
      sum[i] += row[i] * weight;
  }
  for (size_t i = 0; i < STRIP; i++)
    out[i] = cut(sum[i]);
}

/* One row down: the n rows of n_byte bytes each, weighted and added up. */
static void
mix_rows(const uint8_t *const *rows, const int32_t *w, uint32_t n, size_t n_byte, uint8_t *out)
{
  size_t at = 0;

  for (; n_byte - at >= STRIP; at += STRIP)
    mix_strip(rows, at, w, n, out + at);
  for (; at < n_byte; at++) {
    int32_t sum = HALF;

    for (uint32_t k = 0; k < n; k++)
      sum += rows[k][at] * w[k];
    out[at] = cut(sum);
  }
}

typedef struct resize {
  const ks_framed_rgb *src;
  uint32_t width, height;  /* of the result */
  taps across, down;       /* empty where that side stays */
  int32_t *base;           /* [width, 3]: one half, and what the frame adds to each sum across */
  size_t row_bytes;        /* of a row after the pass across */
  uint8_t *blank;          /* such a row of frame alone */
  uint8_t *ring;           /* [n_ring, row_bytes]; NULL where source rows are used as they lie */
  uint32_t n_ring, n_made; /* rows from n_made on are not made yet */
  const uint8_t **rows;    /* of the pass down: [down.n_max] */
  bool down_first;         /* then the ring is one row, between the passes */
} resize;

static void
fill_row(uint8_t *row, uint32_t width, const uint8_t colour[3])
{
  for (uint32_t x = 0; x < width; x++)
    memcpy(row + (size_t)x * 3, colour, 3);
}

/* Leaves the taps inside the picture; those on the frame become part of the base and, all of them
 * together, a pixel of the blank row.  Whole numbers, so that the order of adding is free. */
static void
confine_taps(resize *r, uint32_t i)
{
  const ks_framed_rgb *src = r->src;
  taps *t = &r->across;
  int32_t *w = t->weights + (size_t)i * t->n_max, all = 0, inside = 0;
  uint32_t end = t->first[i] + t->count[i], right = src->left + src->rgb.width;
  uint32_t from = t->first[i] > src->left ? t->first[i] : src->left;
  uint32_t to = end < right ? end : right, n = to > from ? to - from : 0;

  for (uint32_t k = 0; k < t->count[i]; k++)
    all += w[k];
  if (n > 0)
    memmove(w, w + (from - t->first[i]), n * sizeof(*w));
  for (uint32_t k = 0; k < n; k++)
    inside += w[k];
  t->first[i] = n > 0 ? from - src->left : 0;
  t->count[i] = n;
  for (uint32_t c = 0; c < 3; c++) {
    r->base[(size_t)i * 3 + c] = HALF + src->colour[c] * (all - inside);
    r->blank[(size_t)i * 3 + c] = cut(HALF + src->colour[c] * all);
  }
}

/* Row y after the pass across, in its place or in the ring. */
static const uint8_t *
get_row(resize *r, uint32_t y)
{
  const ks_framed_rgb *src = r->src;
  size_t n_inner = (size_t)src->rgb.width * 3;
  const uint8_t *inner;
  uint8_t *row;

  if (y < src->top || y - src->top >= src->rgb.height)
    return r->blank;
  inner = src->rgb.data + (y - src->top) * n_inner;
  if (r->ring == NULL)
    return inner;
  row = r->ring + y % r->n_ring * r->row_bytes;
  if (y < r->n_made)
    return row;
  r->n_made = y + 1;
  if (r->across.n_out > 0) {
    resize_row(&r->across, r->base, inner, row);
  } else {
    fill_row(row, r->width, src->colour);
    memcpy(row + (size_t)src->left * 3, inner, n_inner);
  }
  return row;
}

/* Pillow's choice: where the height loses over twice as many pixels as the width.  The passes round
 * apart, so that their order shows in the result. */
static bool
is_down_first(const resize *r)
{
  int64_t lost_width = (int64_t)r->src->width - r->width;
  int64_t lost_height = (int64_t)r->src->height - r->height;

  return lost_width != 0 && lost_height > 0 && lost_height > 2 * lost_width;
}

static void
resize_down_first(resize *r, uint8_t *out)
{
  size_t n_inner = (size_t)r->src->rgb.width * 3;

  for (uint32_t y = 0; y < r->height; y++, out += r->row_bytes) {
    for (uint32_t k = 0; k < r->down.count[y]; k++)
      r->rows[k] = r->src->rgb.data + (r->down.first[y] + k) * n_inner;
    mix_rows(r->rows, r->down.weights + (size_t)y * r->down.n_max, r->down.count[y], n_inner,
             r->ring);
    resize_row(&r->across, r->base, r->ring, out);
  }
}

static void
resize_rows(resize *r, uint8_t *out)
{
  for (uint32_t y = 0; y < r->height; y++, out += r->row_bytes) {
    if (r->down.n_out == 0) {
      memcpy(out, get_row(r, y), r->row_bytes);
      continue;
    }
    for (uint32_t k = 0; k < r->down.count[y]; k++)
      r->rows[k] = get_row(r, r->down.first[y] + k);
    mix_rows(r->rows, r->down.weights + (size_t)y * r->down.n_max, r->down.count[y], r->row_bytes,
             out);
  }
}

static ks_status
resize_init(ks_alloc *a, ks_resample filter, resize *r, ks_error *err)
{
  const ks_framed_rgb *src = r->src;
  bool is_made; /* rows differ from those of the source */
  ks_status st = KS_OK;

  if (r->width != src->width)
    st = taps_init(a, filter, src->width, r->width, &r->across, err);
  if (st == KS_OK && r->height != src->height)
    st = taps_init(a, filter, src->height, r->height, &r->down, err);
  if (st != KS_OK)
    return st;
  r->down_first = is_down_first(r);
  is_made = r->across.n_out > 0 || src->width != src->rgb.width;
  r->row_bytes = (size_t)r->width * 3;
  r->n_ring = r->down.n_out > 0 && !r->down_first ? r->down.n_max : 1;
  r->base = ks_mem_new(a, KS_MEM_VISION, r->row_bytes, sizeof(*r->base));
  r->blank = ks_mem_new(a, KS_MEM_VISION, r->row_bytes, 1);
  r->rows = ks_mem_new(a, KS_MEM_VISION, r->down.n_max, sizeof(*r->rows));
  if (is_made)
    r->ring = ks_mem_new(a, KS_MEM_VISION, r->n_ring,
                         r->down_first ? (size_t)src->width * 3 : r->row_bytes);
  if (r->base == NULL || r->blank == NULL || r->rows == NULL || (is_made && r->ring == NULL))
    return ks_fail(err, KS_ERR_NOMEM, "there is no memory to resize a picture");
  fill_row(r->blank, r->width, src->colour);
  for (uint32_t i = 0; i < r->across.n_out; i++)
    confine_taps(r, i);
  return KS_OK;
}

ks_status
ks_framed_rgb_resize(ks_alloc *a, const ks_framed_rgb *src, ks_resample filter, uint32_t width,
                     uint32_t height, uint8_t *out, ks_error *err)
{
  resize r = {.src = src, .width = width, .height = height};
  ks_status st;

  if (src->rgb.width == 0 || src->rgb.height == 0 || width == 0 || height == 0)
    return ks_fail(err, KS_ERR_ARG, "a picture needs at least one pixel each way");
  if (src->width > MAX_SIDE || src->height > MAX_SIDE || width > MAX_SIDE || height > MAX_SIDE)
    return ks_fail(err, KS_ERR_ARG, "a side of a picture has more than %u pixels", MAX_SIDE);
  st = resize_init(a, filter, &r, err);
  if (st == KS_OK && r.down_first)
    resize_down_first(&r, out);
  else if (st == KS_OK)
    resize_rows(&r, out);
  taps_done(&r.across);
  taps_done(&r.down);
  ks_mem_free(r.base);
  ks_mem_free(r.blank);
  ks_mem_free(r.ring);
  ks_mem_free(r.rows);
  return st;
}

ks_status
ks_rgb_resize(ks_alloc *a, const ks_rgb *src, ks_resample filter, uint32_t width, uint32_t height,
              uint8_t *out, ks_error *err)
{
  ks_framed_rgb framed = {.rgb = *src, .width = src->width, .height = src->height};

  return ks_framed_rgb_resize(a, &framed, filter, width, height, out, err);
}
