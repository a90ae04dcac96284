/* cpu-matmul-avx512.c - matrix products with AVX-512 (F, BW, VL, DQ).
 * The twin of cpu-matmul-avx2.c with vectors twice as wide: tiles of 12 tokens x 32 rows in 24
 * registers.  Few tokens share the 256-bit code: it is limited by the memory.
 * Threads: pure functions.  Source: docs/method.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-matmul-internal.h"

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

INLINE __m512
floats_i8(__m128i v)
{
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(v));
}

INLINE void
emit_u8(float *dst, __m128i v, float d, float m)
{
  __m512 f = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(v));

  _mm512_storeu_ps(dst, _mm512_fmadd_ps(f, _mm512_set1_ps(d), _mm512_set1_ps(m)));
}

INLINE void
emit_i8(float *dst, __m128i v, float d)
{
  _mm512_storeu_ps(dst, _mm512_mul_ps(floats_i8(v), _mm512_set1_ps(d)));
}

#define PANEL_ROWS 32
#define TILE_TOK 12

#include "engine/cpu-matmul-unpack.inc"
#include "engine/cpu-matmul-x86.inc"

#include "engine/cpu-matmul-rows.inc"
#include "engine/cpu-matmul-super.inc"

/* --- many tokens --- */

static void
transpose(const float *rows, size_t row_stride, size_t n_k, float *panel)
{
  size_t k = 0;

  for (; k + 8 <= n_k; k += 8)
    for (size_t r = 0; r < PANEL_ROWS; r += 8)
      transpose8(rows + r * row_stride + k, row_stride, panel + k * PANEL_ROWS + r);
  for (; k < n_k; k++)
    for (size_t r = 0; r < PANEL_ROWS; r++)
      panel[k * PANEL_ROWS + r] = rows[r * row_stride + k];
}

/* The sums have names, not indices: an array of them would be kept in memory as well. */
#define TILE_STEP(t)                                                                               \
  {                                                                                                \
    __m512 v = _mm512_set1_ps(x[(t)*x_stride + k]);                                                \
                                                                                                   \
    a##t = _mm512_fmadd_ps(v, w0, a##t);                                                           \
    b##t = _mm512_fmadd_ps(v, w1, b##t);                                                           \
  }
#define TILE_BEGIN(t) __m512 a##t = _mm512_setzero_ps(), b##t = _mm512_setzero_ps();
#define TILE_END(t) store_sums(c + (t)*c_stride, a##t, b##t, add);
#define TILE_4(STEP, a, b, c, d) STEP(a) STEP(b) STEP(c) STEP(d)

INLINE void
store_sums(float *c, __m512 a, __m512 b, bool add)
{
  if (add) {
    a = _mm512_add_ps(a, _mm512_loadu_ps(c));
    b = _mm512_add_ps(b, _mm512_loadu_ps(c + 16));
  }
  _mm512_storeu_ps(c, a);
  _mm512_storeu_ps(c + 16, b);
}

static void
tile_12(const float *panel, size_t n_k, const float *x, size_t x_stride, float *c, size_t c_stride,
        bool add)
{
  TILE_4(TILE_BEGIN, 0, 1, 2, 3)
  TILE_4(TILE_BEGIN, 4, 5, 6, 7)
  TILE_4(TILE_BEGIN, 8, 9, 10, 11)

  for (size_t k = 0; k < n_k; k++) {
    __m512 w0 = _mm512_loadu_ps(panel + k * PANEL_ROWS);
    __m512 w1 = _mm512_loadu_ps(panel + k * PANEL_ROWS + 16);

    TILE_4(TILE_STEP, 0, 1, 2, 3)
    TILE_4(TILE_STEP, 4, 5, 6, 7)
    TILE_4(TILE_STEP, 8, 9, 10, 11)
  }
  TILE_4(TILE_END, 0, 1, 2, 3)
  TILE_4(TILE_END, 4, 5, 6, 7)
  TILE_4(TILE_END, 8, 9, 10, 11)
}

static void
tile_4(const float *panel, size_t n_k, const float *x, size_t x_stride, float *c, size_t c_stride,
       bool add)
{
  TILE_4(TILE_BEGIN, 0, 1, 2, 3)

  for (size_t k = 0; k < n_k; k++) {
    __m512 w0 = _mm512_loadu_ps(panel + k * PANEL_ROWS);
    __m512 w1 = _mm512_loadu_ps(panel + k * PANEL_ROWS + 16);

    TILE_4(TILE_STEP, 0, 1, 2, 3)
  }
  TILE_4(TILE_END, 0, 1, 2, 3)
}

static void
tile_1(const float *panel, size_t n_k, const float *x, float *c, bool add)
{
  const size_t x_stride = 0, c_stride = 0;

  TILE_BEGIN(0)

  for (size_t k = 0; k < n_k; k++) {
    __m512 w0 = _mm512_loadu_ps(panel + k * PANEL_ROWS);
    __m512 w1 = _mm512_loadu_ps(panel + k * PANEL_ROWS + 16);

    TILE_STEP(0)
  }
  TILE_END(0)
}

static void
multiply_tile(const float *panel, size_t n_k, const float *x, size_t x_stride, size_t n_tok,
              float *c, size_t c_stride, bool add)
{
  size_t t = 0;

  if (n_tok == TILE_TOK) {
    tile_12(panel, n_k, x, x_stride, c, c_stride, add);
    return;
  }
  for (; t + 4 <= n_tok; t += 4)
    tile_4(panel, n_k, x + t * x_stride, x_stride, c + t * c_stride, c_stride, add);
  for (; t < n_tok; t++)
    tile_1(panel, n_k, x + t * x_stride, c + t * c_stride, add);
}

const ks_cpu_matmul_fns ks_cpu_matmul_avx512 = {
    .panel_rows = PANEL_ROWS,
    .tile_tok = TILE_TOK,
    .unpack = UNPACK_TABLE,
    .multiply_rows = ROWS_TABLE,
    .wants_packed = WANTS_PACKED,
    .pack_size = pack_size,
    .pack = pack,
    .transpose = transpose,
    .multiply_tile = multiply_tile,
    .act_row = act_row,
};
