/* cpu-vec-avx2.c - the vector primitives with eight lanes: AVX2, FMA and F16C. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-backend-internal.h"
#include "engine/cpu-vec-internal.h"

#include <immintrin.h>
#include <math.h>
#include <string.h>

#define VEC_TABLE ks_cpu_vec_avx2
#define VEC_NAME "avx2"
#define VF 8
#define GEMM_ROWS 6 /* times two vectors: 12 of the 16 registers */

typedef __m256 vf;

static inline vf
vf_zero(void)
{
  return _mm256_setzero_ps();
}

static inline vf
vf_set1(float x)
{
  return _mm256_set1_ps(x);
}

static inline vf
vf_load(const float *p)
{
  return _mm256_loadu_ps(p);
}

static inline void
vf_store(float *p, vf x)
{
  _mm256_storeu_ps(p, x);
}

static inline vf
vf_load_f16(const uint16_t *p)
{
  return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

static inline void
vf_store_f16(uint16_t *p, vf x)
{
  _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

/* Halves that lie stride bytes apart. */
static inline vf
vf_gather_f16(const unsigned char *p, size_t stride)
{
  uint16_t h[8];
  __m128i x;

  for (size_t i = 0; i < 8; i++)
    memcpy(&h[i], p + i * stride, sizeof h[i]);
  /* Not through memory: a load that spans several stores waits for all of them. */
  x = _mm_setr_epi16((short)h[0], (short)h[1], (short)h[2], (short)h[3], (short)h[4], (short)h[5],
                     (short)h[6], (short)h[7]);
  return _mm256_cvtph_ps(x);
}

static inline vf
vf_load_i8(const int8_t *p)
{
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}

static inline vf
vf_fma(vf a, vf b, vf c)
{
  return _mm256_fmadd_ps(a, b, c);
}

static inline vf
vf_add(vf a, vf b)
{
  return _mm256_add_ps(a, b);
}

static inline vf
vf_sub(vf a, vf b)
{
  return _mm256_sub_ps(a, b);
}

static inline vf
vf_mul(vf a, vf b)
{
  return _mm256_mul_ps(a, b);
}

static inline vf
vf_div(vf a, vf b)
{
  return _mm256_div_ps(a, b);
}

static inline vf
vf_max(vf a, vf b)
{
  return _mm256_max_ps(a, b);
}

static inline vf
vf_min(vf a, vf b)
{
  return _mm256_min_ps(a, b);
}

static inline float
vf_hsum(vf x)
{
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));

  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}

static inline float
vf_hmax(vf x)
{
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));

  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_shuffle_ps(s, s, 1)));
}

/* Four sums per 128-bit half, in order: blends and shuffles, as horizontal additions take thrice
 * the time. */
static inline vf
vf_halves4(vf a, vf b, vf c, vf d)
{
  /* a0 + a2, a1 + a3, b2 + b0, b3 + b1 */
  vf ab = _mm256_add_ps(_mm256_blend_ps(a, b, 0xCC), _mm256_shuffle_ps(a, b, 0x4E));
  vf cd = _mm256_add_ps(_mm256_blend_ps(c, d, 0xCC), _mm256_shuffle_ps(c, d, 0x4E));

  return _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x88), _mm256_shuffle_ps(ab, cd, 0xDD));
}

/* The sums of four vectors, in order. */
static inline void
vf_sum4(float *out, vf a, vf b, vf c, vf d)
{
  vf sums = vf_halves4(a, b, c, d);

  _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1)));
}

/* e^x = 2^n e^r with |r| <= ln(2)/2, e^r by its series to r^7 (error 5e-9).  Below -87.3 exactly 0,
 * so that masked scores (-inf) vanish; above 88 it stays at e^88. */
static inline vf
vf_exp(vf x)
{
  const __m256 lowest = _mm256_set1_ps(-87.3F);
  __m256 alive = _mm256_cmp_ps(x, lowest, _CMP_GE_OQ);
  __m256 n, r, y;
  __m256i power;

  x = _mm256_min_ps(_mm256_max_ps(x, lowest), _mm256_set1_ps(88.0F));
  n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504F)),
                      _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375F), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.12194440e-4F), r);
  y = _mm256_set1_ps(1.0F / 5040.0F);
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.0F / 720.0F));
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.0F / 120.0F));
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.0F / 24.0F));
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.0F / 6.0F));
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(0.5F));
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.0F));
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(1.0F));
  power = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
  return _mm256_and_ps(_mm256_mul_ps(y, _mm256_castsi256_ps(power)), alive);
}

#include "engine/cpu-vec.inc"
