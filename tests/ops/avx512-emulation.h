/* avx512-emulation.h - AVX-512 intrinsics over SIMDe, for sources written for the real ones.
 * Included before everything else (-include), so that a kernel file runs unchanged on a machine
 * that lacks them.  What the SIMDe of Debian 12 lacks is added here from two 256-bit halves;
 * without AVX2 and F16C there is nothing to build them from, and nothing is defined. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#if defined(__AVX2__) && defined(__F16C__) && !defined(__cplusplus)

#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

#include <immintrin.h>

static inline __m512
ks_emu_join_ps(__m256 lo, __m256 hi)
{
  return _mm512_insertf32x8(_mm512_castps256_ps512(lo), hi, 1);
}

static inline __m512i
ks_emu_join_epi32(__m256i lo, __m256i hi)
{
  return _mm512_inserti64x4(_mm512_castsi256_si512(lo), hi, 1);
}

static inline __m512
ks_emu_cvtph_ps(__m256i x)
{
  return ks_emu_join_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(x)),
                        _mm256_cvtph_ps(_mm256_extracti128_si256(x, 1)));
}
#undef _mm512_cvtph_ps
#define _mm512_cvtph_ps(x) ks_emu_cvtph_ps(x)

static inline __m512
ks_emu_cvtepi32_ps(__m512i x)
{
  return ks_emu_join_ps(_mm256_cvtepi32_ps(_mm512_castsi512_si256(x)),
                        _mm256_cvtepi32_ps(_mm512_extracti64x4_epi64(x, 1)));
}
#undef _mm512_cvtepi32_ps
#define _mm512_cvtepi32_ps(x) ks_emu_cvtepi32_ps(x)

static inline __m512i
ks_emu_cvtps_epi32(__m512 x)
{
  __m512i bits = _mm512_castps_si512(x);

  return ks_emu_join_epi32(
      _mm256_cvtps_epi32(_mm256_castsi256_ps(_mm512_castsi512_si256(bits))),
      _mm256_cvtps_epi32(_mm256_castsi256_ps(_mm512_extracti64x4_epi64(bits, 1))));
}
#undef _mm512_cvtps_epi32
#define _mm512_cvtps_epi32(x) ks_emu_cvtps_epi32(x)

static inline __m512i
ks_emu_cvtepi8_epi32(__m128i x)
{
  return ks_emu_join_epi32(_mm256_cvtepi8_epi32(x), _mm256_cvtepi8_epi32(_mm_srli_si128(x, 8)));
}
#undef _mm512_cvtepi8_epi32
#define _mm512_cvtepi8_epi32(x) ks_emu_cvtepi8_epi32(x)

static inline __m512i
ks_emu_cvtepu8_epi32(__m128i x)
{
  return ks_emu_join_epi32(_mm256_cvtepu8_epi32(x), _mm256_cvtepu8_epi32(_mm_srli_si128(x, 8)));
}
#undef _mm512_cvtepu8_epi32
#define _mm512_cvtepu8_epi32(x) ks_emu_cvtepu8_epi32(x)

#endif
