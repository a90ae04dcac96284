/* cpu-vec-avx512.c - the vector primitives with sixteen lanes: AVX-512 F, BW, VL and DQ.
 * The tests also build this file over emulated intrinsics (tests/ops/avx512-emulation.h). */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-backend-internal.h"
#include "engine/cpu-vec-internal.h"

#include <immintrin.h>
#include <math.h>
#include <string.h>

#ifndef VEC_TABLE /* the emulated build of the tests has another name */
#define VEC_TABLE ks_cpu_vec_avx512
#endif
#define VEC_NAME "avx512"
#define VF 16
#define GEMM_ROWS 8 /* times two vectors: 16 of the 32 registers */

typedef __m512 vf;

static inline __m256
vf_high(vf x)
{
  return _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1));
}

static inline vf
vf_zero(void)
{
  return _mm512_setzero_ps();
}

static inline vf
vf_set1(float x)
{
  return _mm512_set1_ps(x);
}

static inline vf
vf_load(const float *p)
{
  return _mm512_loadu_ps(p);
}

static inline void
vf_store(float *p, vf x)
{
  _mm512_storeu_ps(p, x);
}

static inline vf
vf_load_f16(const uint16_t *p)
{
  return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

static inline void
vf_store_f16(uint16_t *p, vf x)
{
  __m256 lo = _mm512_castps512_ps256(x), hi = vf_high(x);

  _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(lo, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128((__m128i *)(p + 8), _mm256_cvtps_ph(hi, _MM_FROUND_TO_NEAREST_INT));
}

static inline __m128i
gather_halves(const unsigned char *p, size_t stride)
{
  uint16_t h[8];

  for (size_t i = 0; i < 8; i++)
    memcpy(&h[i], p + i * stride, sizeof h[i]);
  return _mm_setr_epi16((short)h[0], (short)h[1], (short)h[2], (short)h[3], (short)h[4],
                        (short)h[5], (short)h[6], (short)h[7]);
}

/* Halves that lie stride bytes apart; not through memory, as a load that spans several stores waits
 * for all of them. */
static inline vf
vf_gather_f16(const unsigned char *p, size_t stride)
{
  __m128i lo = gather_halves(p, stride), hi = gather_halves(p + 8 * stride, stride);

  return _mm512_cvtph_ps(_mm256_set_m128i(hi, lo));
}

static inline vf
vf_load_i8(const int8_t *p)
{
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}

static inline vf
vf_fma(vf a, vf b, vf c)
{
  return _mm512_fmadd_ps(a, b, c);
}

static inline vf
vf_add(vf a, vf b)
{
  return _mm512_add_ps(a, b);
}

static inline vf
vf_sub(vf a, vf b)
{
  return _mm512_sub_ps(a, b);
}

static inline vf
vf_mul(vf a, vf b)
{
  return _mm512_mul_ps(a, b);
}

static inline vf
vf_div(vf a, vf b)
{
  return _mm512_div_ps(a, b);
}

static inline vf
vf_max(vf a, vf b)
{
  return _mm512_max_ps(a, b);
}

static inline vf
vf_min(vf a, vf b)
{
  return _mm512_min_ps(a, b);
}

static inline __m256
fold_sum(vf x)
{
  return _mm256_add_ps(_mm512_castps512_ps256(x), vf_high(x));
}

static inline float
vf_hsum(vf x)
{
  __m256 h = fold_sum(x);
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));

  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}

static inline float
vf_hmax(vf x)
{
  __m256 h = _mm256_max_ps(_mm512_castps512_ps256(x), vf_high(x));
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));

  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_shuffle_ps(s, s, 1)));
}

/* The sums of four vectors, in order: as in the eight-lane set, on folded vectors. */
static inline void
vf_sum4(float *out, vf a, vf b, vf c, vf d)
{
  __m256 x = fold_sum(a), y = fold_sum(b), z = fold_sum(c), w = fold_sum(d);
  __m256 xy = _mm256_add_ps(_mm256_blend_ps(x, y, 0xCC), _mm256_shuffle_ps(x, y, 0x4E));
  __m256 zw = _mm256_add_ps(_mm256_blend_ps(z, w, 0xCC), _mm256_shuffle_ps(z, w, 0x4E));
  __m256 sums = _mm256_add_ps(_mm256_shuffle_ps(xy, zw, 0x88), _mm256_shuffle_ps(xy, zw, 0xDD));

  _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1)));
}

/* As in the eight-lane set: e^x = 2^n e^r, 0 below -87.3, e^88 at most. */
static inline vf
vf_exp(vf x)
{
  const __m512 lowest = _mm512_set1_ps(-87.3F);
  __mmask16 alive = _mm512_cmp_ps_mask(x, lowest, _CMP_GE_OQ);
  __m512 n, r, y;
  __m512i whole;

  x = _mm512_min_ps(_mm512_max_ps(x, lowest), _mm512_set1_ps(88.0F));
  whole = _mm512_cvtps_epi32(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504F)));
  n = _mm512_cvtepi32_ps(whole);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375F), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4F), r);
  y = _mm512_set1_ps(1.0F / 5040.0F);
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(1.0F / 720.0F));
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(1.0F / 120.0F));
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(1.0F / 24.0F));
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(1.0F / 6.0F));
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(0.5F));
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(1.0F));
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(1.0F));
  whole = _mm512_slli_epi32(_mm512_add_epi32(whole, _mm512_set1_epi32(127)), 23);
  return _mm512_maskz_mul_ps(alive, y, _mm512_castsi512_ps(whole));
}

#include "engine/cpu-vec.inc"
