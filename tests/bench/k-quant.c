/* k-quant.c - scale search for the blocks of 256 elements.
 * A group's step is tried at several sizes around the one that spans its values; for each, codes
 * are rounded, scale and minimum are solved for these codes by least squares, and codes are rounded
 * again.  The best stays.  Then the group scales are rounded to the block's six or eight bits, and
 * codes are chosen once more for the scales as they are stored. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/k-quant.h"

#include <assert.h>
#include <math.h>
#include <string.h>

typedef struct affine {
  float scale, min; /* value = scale * code - min, both >= 0 for Q4_K */
} affine;

static void
put_f16(uint8_t *p, float value)
{
  uint16_t half = ks_f16_from_f32(value);

  p[0] = (uint8_t)half;
  p[1] = (uint8_t)(half >> 8);
}

static float
get_f16(const uint8_t *p)
{
  return ks_f16_to_f32((uint16_t)(p[0] | p[1] << 8));
}

static int
nearest(float x, int low, int high)
{
  int code = (int)lrintf(fmaxf(fminf(x, 1e6f), -1e6f));

  return code < low ? low : code > high ? high : code;
}

/* Squared error of a group under a, with the nearest codes in 0..max. */
static float
affine_error(const float *x, unsigned n, affine a, int max)
{
  float sum = 0;

  for (unsigned i = 0; i < n; i++) {
    int code = a.scale > 0 ? nearest((x[i] + a.min) / a.scale, 0, max) : 0;
    float e = a.scale * (float)code - a.min - x[i];

    sum += e * e;
  }
  return sum;
}

/* Least squares for scale and minimum when codes are the nearest ones under a. */
static affine
affine_refit(const float *x, unsigned n, affine a, int max)
{
  double sq = 0, sqq = 0, sx = 0, sqx = 0, det;

  for (unsigned i = 0; i < n; i++) {
    int code = nearest((x[i] + a.min) / a.scale, 0, max);

    sq += code;
    sqq += (double)code * code;
    sx += (double)x[i];
    sqx += (double)code * (double)x[i];
  }
  det = n * sqq - sq * sq;
  if (det > 0) {
    a.scale = (float)((n * sqx - sq * sx) / det);
    a.min = (float)((sq * sqx - sqq * sx) / det);
  }
  if (a.min < 0 || det <= 0) { /* the stored minimum cannot be negative */
    a.min = 0;
    a.scale = sqq > 0 ? (float)(sqx / sqq) : 0;
  }
  if (a.scale < 0)
    a.scale = 0;
  return a;
}

static affine
affine_search(const float *x, unsigned n, int max)
{
  float low = 0, high = x[0], best_error; /* the minimum is never above zero */
  affine best;

  for (unsigned i = 0; i < n; i++) {
    low = fminf(low, x[i]);
    high = fmaxf(high, x[i]);
  }
  best = (affine){(high - low) / (float)max, -low};
  if (best.scale == 0)
    return best;
  best_error = affine_error(x, n, best, max);
  for (int step = -8; step <= 8; step++) {
    affine a = {(high - low) / ((float)max + 0.25f * (float)step), -low};

    for (int round = 0; round < 3 && a.scale > 0; round++) {
      float error;

      a = affine_refit(x, n, a, max);
      error = affine_error(x, n, a, max);
      if (error < best_error) {
        best_error = error;
        best = a;
      }
    }
  }
  return best;
}

/* Squared error of a group of Q6_K: value = scale * code, codes in -32..31. */
static float
symmetric_error(const float *x, unsigned n, float scale)
{
  float sum = 0;

  for (unsigned i = 0; i < n; i++) {
    float e = scale * (float)(scale != 0 ? nearest(x[i] / scale, -32, 31) : 0) - x[i];

    sum += e * e;
  }
  return sum;
}

static float
symmetric_search(const float *x, unsigned n)
{
  float extreme = 0, best, best_error;

  for (unsigned i = 0; i < n; i++)
    if (fabsf(x[i]) > fabsf(extreme))
      extreme = x[i];
  best = extreme / -32;
  best_error = symmetric_error(x, n, best);
  for (int step = -8; step <= 8 && extreme != 0; step++) {
    float scale = extreme / (-32 + 0.25f * (float)step);
    double sqq = 0, sqx = 0;
    float error;

    for (unsigned i = 0; i < n; i++) {
      int code = nearest(x[i] / scale, -32, 31);

      sqq += (double)code * code;
      sqx += (double)code * (double)x[i];
    }
    if (sqq > 0)
      scale = (float)(sqx / sqq);
    error = symmetric_error(x, n, scale);
    if (error < best_error) {
      best_error = error;
      best = scale;
    }
  }
  return best;
}

static void
pack_scale_min(uint8_t *p, unsigned g, unsigned scale, unsigned min)
{
  if (g < 4) {
    p[g] = (uint8_t)((p[g] & 0xc0u) | scale);
    p[g + 4] = (uint8_t)((p[g + 4] & 0xc0u) | min);
  } else {
    p[g + 4] = (uint8_t)((scale & 15u) | (min & 15u) << 4);
    p[g - 4] = (uint8_t)((p[g - 4] & 63u) | (scale >> 4) << 6);
    p[g] = (uint8_t)((p[g] & 63u) | (min >> 4) << 6);
  }
}

static void
quantise_q4_k(const float *src, uint8_t *b)
{
  affine group[8];
  float scale = 0, min = 0, d, dmin;

  memset(b, 0, 144);
  for (unsigned g = 0; g < 8; g++) {
    group[g] = affine_search(src + 32 * g, 32, 15);
    scale = fmaxf(scale, group[g].scale);
    min = fmaxf(min, group[g].min);
  }
  put_f16(b, scale / 63);
  put_f16(b + 2, min / 63);
  d = get_f16(b);
  dmin = get_f16(b + 2);
  for (unsigned g = 0; g < 8; g++) {
    int sc = d > 0 ? nearest(group[g].scale / d, 0, 63) : 0;
    int mn = dmin > 0 ? nearest(group[g].min / dmin, 0, 63) : 0;
    affine a = {d * (float)sc, dmin * (float)mn};

    pack_scale_min(b + 4, g, (unsigned)sc, (unsigned)mn);
    for (unsigned l = 0; l < 32; l++) {
      int code = a.scale > 0 ? nearest((src[32 * g + l] + a.min) / a.scale, 0, 15) : 0;

      b[16 + 32 * (g / 2) + l] |= (uint8_t)(code << (4 * (g % 2)));
    }
  }
}

static void
quantise_q6_k(const float *src, uint8_t *b)
{
  float scale[16], extreme = 0, d;

  memset(b, 0, 210);
  for (unsigned g = 0; g < 16; g++) {
    scale[g] = symmetric_search(src + 16 * g, 16);
    if (fabsf(scale[g]) > fabsf(extreme))
      extreme = scale[g];
  }
  put_f16(b + 208, extreme / -128);
  d = get_f16(b + 208);
  for (unsigned i = 0; i < 256; i++) {
    unsigned half = i / 128, quarter = i % 128 / 32, l = i % 32;
    int sc = d != 0 ? nearest(scale[i / 16] / d, -128, 127) : 0;
    float step = d * (float)sc;
    unsigned q = (unsigned)(32 + (step != 0 ? nearest(src[i] / step, -32, 31) : 0));

    b[192 + i / 16] = (uint8_t)(int8_t)sc;
    b[64 * half + 32 * (quarter % 2) + l] |= (uint8_t)((q & 15u) << (quarter < 2 ? 0 : 4));
    b[128 + 32 * half + l] |= (uint8_t)((q >> 4) << (2 * quarter));
  }
}

bool
k_quantise_row(ks_dtype dtype, const float *src, void *dst, size_t n_elem)
{
  uint8_t *b = dst;

  if (dtype != KS_DTYPE_Q4_K && dtype != KS_DTYPE_Q6_K)
    return false;
  assert(n_elem % 256 == 0);
  for (size_t i = 0; i < n_elem; i += 256) {
    if (dtype == KS_DTYPE_Q4_K)
      quantise_q4_k(src + i, b);
    else
      quantise_q6_k(src + i, b);
    b += ks_dtype_get_info((uint32_t)dtype)->block_bytes;
  }
  return true;
}
