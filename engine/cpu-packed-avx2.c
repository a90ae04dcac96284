/* cpu-packed-avx2.c - products of repacked weights with AVX2, FMA and F16C: strips of 8 rows.
 * Built twice, with PACKED_VNNI for processors that have the dot products of bytes (AVX-VNNI). Only
 * the vector operations stand here; the kernels are in cpu-packed-x86.inc.  The tests also build
 * the second form over emulated intrinsics (tests/ops/avx512-emulation.h).
 * Threads: pure functions.  Source: docs/adr/0014-packed-weights.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-packed-internal.h"

#include <immintrin.h>
#include <string.h>

#ifndef INLINE /* emulated builds would grow without bounds */
#define INLINE static inline __attribute__((always_inline))
#endif
#define ROWS 8
#define TILE_STRIPS 2
#define TILE_TOK 4
#ifndef PACKED_TABLE /* the emulated build of the tests has another name */
#ifdef PACKED_VNNI
#define PACKED_TABLE ks_cpu_packed_avxvnni
#else
#define PACKED_TABLE ks_cpu_packed_avx2
#endif
#endif

typedef __m256i vec;
typedef __m256 vecf;

INLINE vec
v_load(const void *p)
{
  return _mm256_loadu_si256(p);
}

INLINE void
v_store(void *p, vec v)
{
  _mm256_storeu_si256(p, v);
}

INLINE vec
v_zero(void)
{
  return _mm256_setzero_si256();
}

INLINE vec
v_set8(int value)
{
  return _mm256_set1_epi8((char)value);
}

INLINE vec
v_set32(uint32_t value)
{
  return _mm256_set1_epi32((int)value);
}

/* The same 16 bytes in every quarter. */
INLINE vec
v_set16x8(__m128i v)
{
  return _mm256_broadcastsi128_si256(v);
}

/* Four bytes at p in every lane. */
INLINE vec
v_all32(const void *p)
{
  int32_t value;

  memcpy(&value, p, sizeof(value));
  return _mm256_set1_epi32(value);
}

INLINE vec
v_and(vec a, vec b)
{
  return _mm256_and_si256(a, b);
}

/* a | (b & mask) */
INLINE vec
v_or_and(vec a, vec b, vec mask)
{
  return _mm256_or_si256(a, _mm256_and_si256(b, mask));
}

INLINE vec
v_xor(vec a, vec b)
{
  return _mm256_xor_si256(a, b);
}

INLINE vec
v_srl16(vec v, const int n)
{
  return _mm256_srli_epi16(v, n);
}

INLINE vec
v_sll16(vec v, const int n)
{
  return _mm256_slli_epi16(v, n);
}

INLINE vec
v_srl32(vec v, const int n)
{
  return _mm256_srli_epi32(v, n);
}

INLINE vec
v_sll32(vec v, const int n)
{
  return _mm256_slli_epi32(v, n);
}

INLINE vec
v_add32(vec a, vec b)
{
  return _mm256_add_epi32(a, b);
}

/* v as it is.  Compilers that see through it would add many products as a tree, which takes more
 * registers than there are. */
INLINE vec
v_in_order(vec v)
{
  __asm__("" : "+x"(v));
  return v;
}

#ifdef PACKED_VNNI
/* sum + the four products of unsigned bytes of u and signed bytes of s in each lane */
INLINE vec
v_dot8(vec sum, vec u, vec s)
{
  return _mm256_dpbusd_avx_epi32(sum, u, s);
}
#else
INLINE vec
v_add16(vec a, vec b)
{
  return _mm256_add_epi16(a, b);
}

/* Pairs of unsigned bytes of u times signed bytes of s. */
INLINE vec
v_madd8(vec u, vec s)
{
  return _mm256_maddubs_epi16(u, s);
}

INLINE vec
v_madd16(vec a, vec b)
{
  return _mm256_madd_epi16(a, b);
}

INLINE vec
v_abs8(vec v)
{
  return _mm256_abs_epi8(v);
}

/* Bytes of x with the sign of w, 0 where w is 0. */
INLINE vec
v_sign8(vec x, vec w)
{
  return _mm256_sign_epi8(x, w);
}
#endif

/* Bytes of v picked by index inside each quarter; 0 where the index is negative. */
INLINE vec
v_pick8(vec v, vec index)
{
  return _mm256_shuffle_epi8(v, index);
}

/* A plane of unsigned or signed bytes, or of halves. */
INLINE vec
v_plane_u8(const unsigned char *p)
{
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)p));
}

INLINE vec
v_plane_s8(const unsigned char *p)
{
  return _mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)p));
}

INLINE vecf
v_plane_half(const unsigned char *p)
{
  return _mm256_cvtph_ps(_mm_loadu_si128((const void *)p));
}

INLINE vecf
v_float(vec v)
{
  return _mm256_cvtepi32_ps(v);
}

INLINE vecf
f_load(const float *p)
{
  return _mm256_loadu_ps(p);
}

INLINE void
f_store(float *p, vecf v)
{
  _mm256_storeu_ps(p, v);
}

INLINE vecf
f_all(float value)
{
  return _mm256_set1_ps(value);
}

INLINE vecf
f_add(vecf a, vecf b)
{
  return _mm256_add_ps(a, b);
}

INLINE vecf
f_mul(vecf a, vecf b)
{
  return _mm256_mul_ps(a, b);
}

/* a * b + c */
INLINE vecf
f_fma(vecf a, vecf b, vecf c)
{
  return _mm256_fmadd_ps(a, b, c);
}

#include "engine/cpu-packed-x86.inc"
