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
#include <string.h>

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

/* SIMDe 0.7.4 gives this name to a macro with too many arguments. */
#undef _mm512_madd_epi16
#define _mm512_madd_epi16(a, b) simde_mm512_madd_epi16(a, b)

/* One value to bfloat16, ties to even; as the instruction does, without denormal numbers. */
static inline unsigned short
ks_emu_round_bf16(float x)
{
  unsigned bits, exponent;

  memcpy(&bits, &x, sizeof(bits));
  exponent = bits >> 23 & 0xff;
  if (exponent == 0)
    return (unsigned short)(bits >> 16 & 0x8000);
  if (exponent == 0xff)
    return (unsigned short)(bits >> 16 | ((bits & 0x7fffff) != 0 ? 0x40 : 0));
  return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static inline __m512bh
ks_emu_cvtne2ps_pbh(__m512 high, __m512 low)
{
  unsigned short rounded[32];
  float values[32];
  __m512bh out;

  _mm512_storeu_ps(values, low);
  _mm512_storeu_ps(values + 16, high);
  for (int i = 0; i < 32; i++)
    rounded[i] = ks_emu_round_bf16(values[i]);
  memcpy(&out, rounded, sizeof(out));
  return out;
}
#undef _mm512_cvtne2ps_pbh
#define _mm512_cvtne2ps_pbh(high, low) ks_emu_cvtne2ps_pbh(high, low)

/* The 256-bit instructions of AVX-VNNI are those of AVX512_VNNI under another name. */
#undef _mm256_dpbusd_avx_epi32
#define _mm256_dpbusd_avx_epi32(sum, a, b) simde_mm256_dpbusd_epi32(sum, a, b)
#undef _mm256_dpwssd_avx_epi32
#define _mm256_dpwssd_avx_epi32(sum, a, b) simde_mm256_dpwssd_epi32(sum, a, b)

#endif
