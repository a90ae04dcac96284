/* quant.c - blocks to f32 and back, one small function a type, written for reading, not for speed.
 * Bit order of every block: docs/formats/quant-blocks.md.  The file is built without contraction,
 * so a product and a sum round one after the other on every machine. Fast kernels unpack blocks on
 * their own and are tested against these functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/quant.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static uint16_t
get_u16(const uint8_t *p)
{
  return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t
get_u32(const uint8_t *p)
{
  return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static float
get_f16(const uint8_t *p)
{
  return ks_f16_to_f32(get_u16(p));
}

static void
put_u16(uint8_t *p, uint16_t value)
{
  p[0] = (uint8_t)value;
  p[1] = (uint8_t)(value >> 8);
}

static void
put_u32(uint8_t *p, uint32_t value)
{
  for (int i = 0; i < 4; i++)
    p[i] = (uint8_t)(value >> (8 * i));
}

/* Code j of 32 nibbles: the low halves of 16 bytes, then the high halves. */
static unsigned
nibble(const uint8_t *qs, unsigned j)
{
  return j < 16 ? qs[j] & 15u : qs[j - 16] >> 4;
}

static void
block_f32(const uint8_t *b, float *dst)
{
  uint32_t bits = get_u32(b);

  memcpy(dst, &bits, sizeof(bits));
}

static void
block_i32(const uint8_t *b, float *dst)
{
  *dst = (float)(int32_t)get_u32(b);
}

static void
block_f16(const uint8_t *b, float *dst)
{
  *dst = get_f16(b);
}

static void
block_bf16(const uint8_t *b, float *dst)
{
  *dst = ks_bf16_to_f32(get_u16(b));
}

static void
block_q4_0(const uint8_t *b, float *dst)
{
  float d = get_f16(b);

  for (unsigned j = 0; j < 32; j++)
    dst[j] = d * (float)((int)nibble(b + 2, j) - 8);
}

static void
block_q4_1(const uint8_t *b, float *dst)
{
  float d = get_f16(b), m = get_f16(b + 2);

  for (unsigned j = 0; j < 32; j++)
    dst[j] = d * (float)nibble(b + 4, j) + m;
}

static void
block_q5_0(const uint8_t *b, float *dst)
{
  float d = get_f16(b);
  uint32_t qh = get_u32(b + 2);

  for (unsigned j = 0; j < 32; j++)
    dst[j] = d * (float)((int)(nibble(b + 6, j) | ((qh >> j) & 1u) << 4) - 16);
}

static void
block_q5_1(const uint8_t *b, float *dst)
{
  float d = get_f16(b), m = get_f16(b + 2);
  uint32_t qh = get_u32(b + 4);

  for (unsigned j = 0; j < 32; j++)
    dst[j] = d * (float)(nibble(b + 8, j) | ((qh >> j) & 1u) << 4) + m;
}

static void
block_q8_0(const uint8_t *b, float *dst)
{
  float d = get_f16(b);

  for (unsigned j = 0; j < 32; j++)
    dst[j] = d * (float)(int8_t)b[2 + j];
}

static void
block_q2_k(const uint8_t *b, float *dst)
{
  const uint8_t *scales = b, *qs = b + 16;
  float d = get_f16(b + 80), dmin = get_f16(b + 82);

  for (unsigned i = 0; i < 256; i++) {
    unsigned half = i / 128, plane = i % 128 / 32, l = i % 32;
    unsigned q = (qs[32 * half + l] >> (2 * plane)) & 3u;
    uint8_t sc = scales[i / 16];
    float scale = d * (float)(sc & 15), min = dmin * (float)(sc >> 4);

    dst[i] = scale * (float)q - min;
  }
}

static void
block_q3_k(const uint8_t *b, float *dst)
{
  const uint8_t *hmask = b, *qs = b + 32, *packed = b + 96;
  float d = get_f16(b + 108);

  for (unsigned i = 0; i < 256; i++) {
    unsigned half = i / 128, plane = i % 128 / 32, l = i % 32, g = i / 16;
    unsigned low = g < 8 ? packed[g] & 15u : packed[g - 8] >> 4;
    unsigned high = (packed[8 + g % 4] >> (2 * (g / 4))) & 3u;
    int q = (int)((qs[32 * half + l] >> (2 * plane)) & 3u);
    float scale = d * (float)((int)(low | high << 4) - 32);

    if ((hmask[l] >> (4 * half + plane) & 1u) == 0)
      q -= 4;
    dst[i] = scale * (float)q;
  }
}

/* Six-bit scale and minimum of 32-group g, packed in twelve bytes. */
static void
unpack_scale_min(const uint8_t *p, unsigned g, unsigned *out_scale, unsigned *out_min)
{
  if (g < 4) {
    *out_scale = p[g] & 63u;
    *out_min = p[g + 4] & 63u;
  } else {
    *out_scale = (p[g + 4] & 15u) | (unsigned)(p[g - 4] >> 6) << 4;
    *out_min = (unsigned)(p[g + 4] >> 4) | (unsigned)(p[g] >> 6) << 4;
  }
}

/* Q4_K, and with qh the fifth bits of Q5_K. */
static void
unpack_k_groups(float d, float dmin, const uint8_t *scales, const uint8_t *qh, const uint8_t *qs,
                float *dst)
{
  for (unsigned g = 0; g < 8; g++) {
    unsigned sc, mn;
    float scale, min;

    unpack_scale_min(scales, g, &sc, &mn);
    scale = d * (float)sc;
    min = dmin * (float)mn;
    for (unsigned l = 0; l < 32; l++) {
      uint8_t byte = qs[32 * (g / 2) + l];
      unsigned q = g % 2 == 0 ? byte & 15u : byte >> 4;

      if (qh != NULL)
        q |= ((unsigned)qh[l] >> g & 1u) << 4;
      dst[32 * g + l] = scale * (float)q - min;
    }
  }
}

static void
block_q4_k(const uint8_t *b, float *dst)
{
  unpack_k_groups(get_f16(b), get_f16(b + 2), b + 4, NULL, b + 16, dst);
}

static void
block_q5_k(const uint8_t *b, float *dst)
{
  unpack_k_groups(get_f16(b), get_f16(b + 2), b + 4, b + 16, b + 48, dst);
}

static void
block_q6_k(const uint8_t *b, float *dst)
{
  const uint8_t *scales = b + 192;
  float d = get_f16(b + 208);

  for (unsigned i = 0; i < 256; i++) {
    unsigned half = i / 128, quarter = i % 128 / 32, l = i % 32;
    uint8_t low = b[64 * half + 32 * (quarter % 2) + l];
    uint8_t high = b[128 + 32 * half + l];
    unsigned q = (quarter < 2 ? low & 15u : (unsigned)low >> 4) | ((high >> (2 * quarter)) & 3u)
                                                                      << 4;
    float scale = d * (float)(int8_t)scales[8 * half + l / 16 + 2 * quarter];

    dst[i] = scale * (float)((int)q - 32);
  }
}

const int8_t ks_iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113};

static void
block_iq4_nl(const uint8_t *b, float *dst)
{
  float d = get_f16(b);

  for (unsigned j = 0; j < 32; j++)
    dst[j] = d * (float)ks_iq4_values[nibble(b + 2, j)];
}

static void
block_iq4_xs(const uint8_t *b, float *dst)
{
  float d = get_f16(b);
  unsigned scales_h = get_u16(b + 2);

  for (unsigned g = 0; g < 8; g++) {
    unsigned low = g % 2 == 0 ? b[4 + g / 2] & 15u : b[4 + g / 2] >> 4;
    unsigned s = low | (scales_h >> (2 * g) & 3u) << 4;
    float scale = d * (float)((int)s - 32);

    for (unsigned j = 0; j < 32; j++)
      dst[32 * g + j] = scale * (float)ks_iq4_values[nibble(b + 8 + 16 * g, j)];
  }
}

typedef void (*block_fn)(const uint8_t *block, float *dst);

static const block_fn unpackers[KS_N_DTYPE] = {
    [KS_DTYPE_F32] = block_f32,       [KS_DTYPE_F16] = block_f16,
    [KS_DTYPE_Q4_0] = block_q4_0,     [KS_DTYPE_Q4_1] = block_q4_1,
    [KS_DTYPE_Q5_0] = block_q5_0,     [KS_DTYPE_Q5_1] = block_q5_1,
    [KS_DTYPE_Q8_0] = block_q8_0,     [KS_DTYPE_Q2_K] = block_q2_k,
    [KS_DTYPE_Q3_K] = block_q3_k,     [KS_DTYPE_Q4_K] = block_q4_k,
    [KS_DTYPE_Q5_K] = block_q5_k,     [KS_DTYPE_Q6_K] = block_q6_k,
    [KS_DTYPE_I32] = block_i32,       [KS_DTYPE_IQ4_NL] = block_iq4_nl,
    [KS_DTYPE_IQ4_XS] = block_iq4_xs, [KS_DTYPE_BF16] = block_bf16,
};

void
ks_dequantise_row(ks_dtype dtype, const void *src, float *dst, size_t n_elem)
{
  const ks_dtype_info *info = ks_dtype_get_info((uint32_t)dtype);
  const uint8_t *b = src;

  assert(info != NULL && n_elem % info->block_elems == 0);
  for (size_t i = 0; i < n_elem; i += info->block_elems, b += info->block_bytes)
    unpackers[dtype](b, dst + i);
}

/* Nearest code of x in 0..max for value = code * d + m; a scale of zero has only the code of m. */
static unsigned
nearest_code(float x, float m, float d, unsigned max)
{
  float code = roundf((x - m) / d);

  if (!(code > 0)) /* also NaN */
    return 0;
  return code < (float)max ? (unsigned)code : max;
}

static void
put_nibble(uint8_t *qs, unsigned j, unsigned code)
{
  if (j < 16)
    qs[j] = (uint8_t)((qs[j] & 0xf0u) | (code & 15u));
  else
    qs[j - 16] = (uint8_t)((qs[j - 16] & 15u) | (code & 15u) << 4);
}

/* Symmetric types: the value of largest magnitude gets the most negative code, so that the whole
 * range is used; codes are chosen for the scale as it is stored. */
static void
quantise_symmetric(const float *src, uint8_t *b, unsigned n_bit)
{
  unsigned half_range = 1u << (n_bit - 1);
  float extreme = 0, d;
  uint8_t *qs = b + (n_bit == 5 ? 6 : 2);
  uint32_t qh = 0;

  for (unsigned j = 0; j < 32; j++)
    if (fabsf(src[j]) > fabsf(extreme))
      extreme = src[j];
  put_u16(b, ks_f16_from_f32(extreme / -(float)half_range));
  d = get_f16(b);
  for (unsigned j = 0; j < 32; j++) {
    float low = -(float)half_range * d;
    unsigned code = d == 0 ? half_range : nearest_code(src[j], low, d, 2 * half_range - 1);

    put_nibble(qs, j, code);
    qh |= (code >> 4 & 1u) << j;
  }
  if (n_bit == 5)
    put_u32(b + 2, qh);
}

/* Types with a minimum: codes run from the smallest value to the largest. */
static void
quantise_with_min(const float *src, uint8_t *b, unsigned n_bit)
{
  unsigned max_code = (1u << n_bit) - 1;
  float low = src[0], high = src[0], d, m;
  uint8_t *qs = b + (n_bit == 5 ? 8 : 4);
  uint32_t qh = 0;

  for (unsigned j = 1; j < 32; j++) {
    low = fminf(low, src[j]);
    high = fmaxf(high, src[j]);
  }
  put_u16(b, ks_f16_from_f32((high - low) / (float)max_code));
  put_u16(b + 2, ks_f16_from_f32(low));
  d = get_f16(b);
  m = get_f16(b + 2);
  for (unsigned j = 0; j < 32; j++) {
    unsigned code = d == 0 ? 0 : nearest_code(src[j], m, d, max_code);

    put_nibble(qs, j, code);
    qh |= (code >> 4 & 1u) << j;
  }
  if (n_bit == 5)
    put_u32(b + 4, qh);
}

static void
quantise_q8_0(const float *src, uint8_t *b)
{
  float largest = 0, d;

  for (unsigned j = 0; j < 32; j++)
    largest = fmaxf(largest, fabsf(src[j]));
  put_u16(b, ks_f16_from_f32(largest / 127));
  d = get_f16(b);
  for (unsigned j = 0; j < 32; j++) {
    float code = d == 0 ? 0 : fmaxf(-127, fminf(127, roundf(src[j] / d)));

    b[2 + j] = (uint8_t)(int8_t)code;
  }
}

static void
quantise_block(ks_dtype dtype, const float *src, uint8_t *b)
{
  uint32_t bits;

  switch (dtype) {
  case KS_DTYPE_F32:
    memcpy(&bits, src, sizeof(bits));
    put_u32(b, bits);
    break;
  case KS_DTYPE_F16:
    put_u16(b, ks_f16_from_f32(*src));
    break;
  case KS_DTYPE_BF16:
    put_u16(b, ks_bf16_from_f32(*src));
    break;
  case KS_DTYPE_Q4_0:
  case KS_DTYPE_Q5_0:
    quantise_symmetric(src, b, dtype == KS_DTYPE_Q5_0 ? 5 : 4);
    break;
  case KS_DTYPE_Q4_1:
  case KS_DTYPE_Q5_1:
    quantise_with_min(src, b, dtype == KS_DTYPE_Q5_1 ? 5 : 4);
    break;
  default:
    quantise_q8_0(src, b);
  }
}

bool
ks_quantise_row(ks_dtype dtype, const float *src, void *dst, size_t n_elem)
{
  const ks_dtype_info *info = ks_dtype_get_info((uint32_t)dtype);
  uint8_t *b = dst;

  if (dtype != KS_DTYPE_F32 && dtype != KS_DTYPE_F16 && dtype != KS_DTYPE_BF16 &&
      dtype != KS_DTYPE_Q4_0 && dtype != KS_DTYPE_Q4_1 && dtype != KS_DTYPE_Q5_0 &&
      dtype != KS_DTYPE_Q5_1 && dtype != KS_DTYPE_Q8_0)
    return false;
  assert(n_elem % info->block_elems == 0);
  for (size_t i = 0; i < n_elem; i += info->block_elems, b += info->block_bytes)
    quantise_block(dtype, src + i, b);
  return true;
}
