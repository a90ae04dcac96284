/* cpu-packed-avx512.c - products of repacked weights with AVX-512 (F, BW, VL, DQ): strips of 16
 * rows. Built twice, with PACKED_VNNI for processors that have the dot products of bytes as well.
 * Only the vector operations stand here; the kernels are in cpu-packed-x86.inc.  The tests also
 * build this file over emulated intrinsics (tests/ops/avx512-emulation.h). Threads: pure functions.
 * Source: docs/adr/0014-packed-weights.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-packed-internal.h"

#include <immintrin.h>
#include <string.h>

#ifndef INLINE /* emulated builds would grow without bounds */
#define INLINE static inline __attribute__((always_inline))
#endif
#define ROWS 16
#define TILE_STRIPS 2
/* Of 32 registers a tile takes one a sum; without VNNI one more for products in 16 bits. */
#ifdef PACKED_VNNI
#define TILE_TOK 8
#else
#define TILE_TOK 6
#endif
#ifndef PACKED_TABLE /* the emulated builds of the tests have other names */
#ifdef PACKED_VNNI
#define PACKED_TABLE ks_cpu_packed_avx512vnni
#else
#define PACKED_TABLE ks_cpu_packed_avx512
#endif
#endif

#ifdef __AVX512F__
#define VEC_REGISTER "v"
#else /* emulated */
#define VEC_REGISTER "m"
#endif

typedef __m512i vec;
typedef __m512 vecf;

INLINE vec
v_load(const void *p)
{
  return _mm512_loadu_si512(p);
}

INLINE void
v_store(void *p, vec v)
{
  _mm512_storeu_si512(p, v);
}

INLINE vec
v_zero(void)
{
  return _mm512_setzero_si512();
}

INLINE vec
v_set8(int value)
{
  return _mm512_set1_epi8((char)value);
}

INLINE vec
v_set32(uint32_t value)
{
  return _mm512_set1_epi32((int)value);
}

/* The same 16 bytes in every quarter. */
INLINE vec
v_set16x8(__m128i v)
{
  return _mm512_broadcast_i32x4(v);
}

/* Four bytes at p in every lane. */
INLINE vec
v_all32(const void *p)
{
  int32_t value;

  memcpy(&value, p, sizeof(value));
  return _mm512_set1_epi32(value);
}

INLINE vec
v_and(vec a, vec b)
{
  return _mm512_and_si512(a, b);
}

/* a | (b & mask) */
INLINE vec
v_or_and(vec a, vec b, vec mask)
{
  return _mm512_ternarylogic_epi32(a, b, mask, 0xf8);
}

INLINE vec
v_xor(vec a, vec b)
{
  return _mm512_xor_si512(a, b);
}

INLINE vec
v_srl16(vec v, const int n)
{
  return _mm512_srli_epi16(v, (unsigned)n);
}

INLINE vec
v_sll16(vec v, const int n)
{
  return _mm512_slli_epi16(v, (unsigned)n);
}

INLINE vec
v_srl32(vec v, const int n)
{
  return _mm512_srli_epi32(v, (unsigned)n);
}

INLINE vec
v_sll32(vec v, const int n)
{
  return _mm512_slli_epi32(v, (unsigned)n);
}

INLINE vec
v_add32(vec a, vec b)
{
  return _mm512_add_epi32(a, b);
}

/* v as it is: keeps compilers from adding many products as a tree. */
INLINE vec
v_in_order(vec v)
{
  __asm__("" : "+" VEC_REGISTER(v));
  return v;
}

#ifdef PACKED_VNNI
/* sum + the four products of unsigned bytes of u and signed bytes of s in each lane */
INLINE vec
v_dot8(vec sum, vec u, vec s)
{
  return _mm512_dpbusd_epi32(sum, u, s);
}
#else
INLINE vec
v_add16(vec a, vec b)
{
  return _mm512_add_epi16(a, b);
}

/* Pairs of unsigned bytes of u times signed bytes of s. */
INLINE vec
v_madd8(vec u, vec s)
{
  return _mm512_maddubs_epi16(u, s);
}

INLINE vec
v_madd16(vec a, vec b)
{
  return _mm512_madd_epi16(a, b);
}

INLINE vec
v_abs8(vec v)
{
  return _mm512_abs_epi8(v);
}

/* Bytes of x with the sign of w; where w is 0 the caller multiplies with 0. */
INLINE vec
v_sign8(vec x, vec w)
{
  return _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x);
}
#endif

/* Bytes of v picked by index inside each quarter; 0 where the index is negative. */
INLINE vec
v_pick8(vec v, vec index)
{
  return _mm512_shuffle_epi8(v, index);
}

/* A plane of unsigned or signed bytes, or of halves. */
INLINE vec
v_plane_u8(const unsigned char *p)
{
  return _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)p));
}

INLINE vec
v_plane_s8(const unsigned char *p)
{
  return _mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)p));
}

INLINE vecf
v_plane_half(const unsigned char *p)
{
  return _mm512_cvtph_ps(_mm256_loadu_si256((const void *)p));
}

INLINE vecf
v_float(vec v)
{
  return _mm512_cvtepi32_ps(v);
}

INLINE vecf
f_load(const float *p)
{
  return _mm512_loadu_ps(p);
}

INLINE void
f_store(float *p, vecf v)
{
  _mm512_storeu_ps(p, v);
}

INLINE vecf
f_all(float value)
{
  return _mm512_set1_ps(value);
}

INLINE vecf
f_add(vecf a, vecf b)
{
  return _mm512_add_ps(a, b);
}

INLINE vecf
f_mul(vecf a, vecf b)
{
  return _mm512_mul_ps(a, b);
}

/* a * b + c */
INLINE vecf
f_fma(vecf a, vecf b, vecf c)
{
  return _mm512_fmadd_ps(a, b, c);
}

#include "engine/cpu-packed-x86.inc"
