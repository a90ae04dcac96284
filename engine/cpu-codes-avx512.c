/* cpu-codes-avx512.c - whole-number attention with AVX-512 F and BW.
 * Built twice, with CODES_VNNI for processors that add up products of pairs (AVX512_VNNI).  The
 * tests also build both forms over emulated intrinsics (tests/ops/avx512-emulation.h). */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-codes-internal.h"

#include <immintrin.h>
#include <string.h>

#ifndef CODES_INLINE /* emulated builds would grow without bounds */
#define CODES_INLINE static inline __attribute__((always_inline))
#endif
#ifdef CODES_VNNI
#define CODES_NAME "avx512+vnni"
#else
#define CODES_NAME "avx512"
#endif
#ifndef CODES_TABLE /* the emulated build of the tests has another name */
#ifdef CODES_VNNI
#define CODES_TABLE ks_cpu_codes_avx512vnni
#else
#define CODES_TABLE ks_cpu_codes_avx512
#endif
#endif
#define COLS 32 /* 16-bit numbers of a vector */

#ifdef __AVX512F__
#define CODES_REGISTER "v"
#else /* emulated */
#define CODES_REGISTER "m"
#endif

typedef __m512i vec;
typedef __m512 vecf;

CODES_INLINE vec
v_zero(void)
{
  return _mm512_setzero_si512();
}

CODES_INLINE vec
v_load(const int16_t *p)
{
  return _mm512_loadu_si512(p);
}

CODES_INLINE vec
v_widen(const unsigned char *p)
{
  return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

/* Two numbers in every pair. */
CODES_INLINE vec
v_all32(const int16_t *p)
{
  int32_t both;

  memcpy(&both, p, sizeof both);
  return _mm512_set1_epi32(both);
}

CODES_INLINE vec
v_add32(vec a, vec b)
{
  return _mm512_add_epi32(a, b);
}

/* Sums of the products of each pair. */
CODES_INLINE vec
v_madd(vec a, vec b)
{
  return _mm512_madd_epi16(a, b);
}

CODES_INLINE vec
v_dot(vec sum, vec a, vec b)
{
#ifdef CODES_VNNI
  return _mm512_dpwssd_epi32(sum, a, b);
#else
  return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
#endif
}

/* v as it is: keeps compilers from adding products as a tree, which takes more registers. */
CODES_INLINE vec
v_in_order(vec v)
{
  __asm__("" : "+" CODES_REGISTER(v));
  return v;
}

CODES_INLINE vec
v_lo16(vec a, vec b)
{
  return _mm512_unpacklo_epi16(a, b);
}

CODES_INLINE vec
v_hi16(vec a, vec b)
{
  return _mm512_unpackhi_epi16(a, b);
}

CODES_INLINE vec
v_lo32(vec a, vec b)
{
  return _mm512_unpacklo_epi32(a, b);
}

CODES_INLINE vec
v_hi32(vec a, vec b)
{
  return _mm512_unpackhi_epi32(a, b);
}

CODES_INLINE vec
v_lo64(vec a, vec b)
{
  return _mm512_unpacklo_epi64(a, b);
}

CODES_INLINE vec
v_hi64(vec a, vec b)
{
  return _mm512_unpackhi_epi64(a, b);
}

CODES_INLINE vecf
v_floats(vec x)
{
  return _mm512_cvtepi32_ps(x);
}

CODES_INLINE vecf
vf_zero(void)
{
  return _mm512_setzero_ps();
}

/* The same four in every lane. */
CODES_INLINE vecf
vf_repeat(__m128 x)
{
  return _mm512_broadcast_f32x4(x);
}

CODES_INLINE vecf
vf_fma(vecf a, vecf b, vecf c)
{
  return _mm512_fmadd_ps(a, b, c);
}

CODES_INLINE __m256i
v_upper(vec x)
{
  return _mm512_extracti64x4_epi64(x, 1);
}

/* The sum of the lanes. */
CODES_INLINE __m128
vf_fold(vecf x)
{
  __m256 h = _mm256_add_ps(_mm512_castps512_ps256(x),
                           _mm256_castsi256_ps(v_upper(_mm512_castps_si512(x))));

  return _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
}

/* acc [16] += factor * two lanes of each. */
CODES_INLINE void
add_half(float *acc, __m256i lo, __m256i hi, __m256 f)
{
  __m256 a = _mm256_cvtepi32_ps(_mm256_permute2x128_si256(lo, hi, 0x20));
  __m256 b = _mm256_cvtepi32_ps(_mm256_permute2x128_si256(lo, hi, 0x31));

  _mm256_storeu_ps(acc, _mm256_fmadd_ps(a, f, _mm256_loadu_ps(acc)));
  _mm256_storeu_ps(acc + 8, _mm256_fmadd_ps(b, f, _mm256_loadu_ps(acc + 8)));
}

/* acc [COLS] += factor * what v_lo16 and v_hi16 made of COLS columns. */
CODES_INLINE void
v_add_columns(float *acc, vec lo, vec hi, float factor)
{
  const __m256 f = _mm256_set1_ps(factor);

  add_half(acc, _mm512_castsi512_si256(lo), _mm512_castsi512_si256(hi), f);
  add_half(acc + 16, v_upper(lo), v_upper(hi), f);
}

#include "engine/cpu-codes.inc"
