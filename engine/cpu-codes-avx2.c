/* cpu-codes-avx2.c - whole-number attention with AVX2 and F16C.
 * Built twice, with CODES_VNNI for processors that add up products of pairs (AVX-VNNI).  The tests
 * also build the second form over emulated intrinsics (tests/ops/avx512-emulation.h). */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-codes-internal.h"

#include <immintrin.h>
#include <string.h>

#ifndef CODES_INLINE /* emulated builds would grow without bounds */
#define CODES_INLINE static inline __attribute__((always_inline))
#endif
#ifdef CODES_VNNI
#define CODES_NAME "avx2+vnni"
#else
#define CODES_NAME "avx2"
#endif
#ifndef CODES_TABLE /* the emulated build of the tests has another name */
#ifdef CODES_VNNI
#define CODES_TABLE ks_cpu_codes_avxvnni
#else
#define CODES_TABLE ks_cpu_codes_avx2
#endif
#endif
#define COLS 16 /* 16-bit numbers of a vector */

typedef __m256i vec;
typedef __m256 vecf;

CODES_INLINE vec
v_zero(void)
{
  return _mm256_setzero_si256();
}

CODES_INLINE vec
v_load(const int16_t *p)
{
  return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

CODES_INLINE vec
v_widen(const unsigned char *p)
{
  return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)p));
}

/* Two numbers in every pair. */
CODES_INLINE vec
v_all32(const int16_t *p)
{
  int32_t both;

  memcpy(&both, p, sizeof both);
  return _mm256_set1_epi32(both);
}

CODES_INLINE vec
v_add32(vec a, vec b)
{
  return _mm256_add_epi32(a, b);
}

/* Sums of the products of each pair. */
CODES_INLINE vec
v_madd(vec a, vec b)
{
  return _mm256_madd_epi16(a, b);
}

CODES_INLINE vec
v_dot(vec sum, vec a, vec b)
{
#ifdef CODES_VNNI
  return _mm256_dpwssd_avx_epi32(sum, a, b);
#else
  return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
#endif
}

/* v as it is: keeps compilers from adding products as a tree, which takes more registers. */
CODES_INLINE vec
v_in_order(vec v)
{
  __asm__("" : "+x"(v));
  return v;
}

CODES_INLINE vec
v_lo16(vec a, vec b)
{
  return _mm256_unpacklo_epi16(a, b);
}

CODES_INLINE vec
v_hi16(vec a, vec b)
{
  return _mm256_unpackhi_epi16(a, b);
}

CODES_INLINE vec
v_lo32(vec a, vec b)
{
  return _mm256_unpacklo_epi32(a, b);
}

CODES_INLINE vec
v_hi32(vec a, vec b)
{
  return _mm256_unpackhi_epi32(a, b);
}

CODES_INLINE vec
v_lo64(vec a, vec b)
{
  return _mm256_unpacklo_epi64(a, b);
}

CODES_INLINE vec
v_hi64(vec a, vec b)
{
  return _mm256_unpackhi_epi64(a, b);
}

CODES_INLINE vecf
v_floats(vec x)
{
  return _mm256_cvtepi32_ps(x);
}

CODES_INLINE vecf
vf_zero(void)
{
  return _mm256_setzero_ps();
}

/* The same four in every lane. */
CODES_INLINE vecf
vf_repeat(__m128 x)
{
  return _mm256_set_m128(x, x);
}

CODES_INLINE vecf
vf_fma(vecf a, vecf b, vecf c)
{
  return _mm256_fmadd_ps(a, b, c);
}

/* The sum of the lanes. */
CODES_INLINE __m128
vf_fold(vecf x)
{
  return _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
}

/* acc [COLS] += factor * what v_lo16 and v_hi16 made of COLS columns. */
CODES_INLINE void
v_add_columns(float *acc, vec lo, vec hi, float factor)
{
  const vecf f = _mm256_set1_ps(factor);
  vecf a = v_floats(_mm256_permute2x128_si256(lo, hi, 0x20));
  vecf b = v_floats(_mm256_permute2x128_si256(lo, hi, 0x31));

  _mm256_storeu_ps(acc, vf_fma(a, f, _mm256_loadu_ps(acc)));
  _mm256_storeu_ps(acc + 8, vf_fma(b, f, _mm256_loadu_ps(acc + 8)));
}

#include "engine/cpu-codes.inc"
