/* cpu-matmul-avx2.c - matrix products with AVX2, FMA and F16C.
 * Many tokens: a tile of 6 tokens x 16 rows is held in 12 registers.
 * Few tokens: cpu-matmul-rows.inc, cpu-matmul-super.inc.
 * Threads: pure functions.  Source: docs/method.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-matmul-internal.h"

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

/* Eight bytes to eight floats. */
INLINE __m256
floats_u8(__m128i v)
{
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(v));
}

INLINE __m256
floats_i8(__m128i v)
{
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(v));
}

INLINE void
emit_u8(float *dst, __m128i v, float d, float m)
{
  __m256 vd = _mm256_set1_ps(d), vm = _mm256_set1_ps(m);

  _mm256_storeu_ps(dst, _mm256_fmadd_ps(floats_u8(v), vd, vm));
  _mm256_storeu_ps(dst + 8, _mm256_fmadd_ps(floats_u8(_mm_srli_si128(v, 8)), vd, vm));
}

INLINE void
emit_i8(float *dst, __m128i v, float d)
{
  __m256 vd = _mm256_set1_ps(d);

  _mm256_storeu_ps(dst, _mm256_mul_ps(floats_i8(v), vd));
  _mm256_storeu_ps(dst + 8, _mm256_mul_ps(floats_i8(_mm_srli_si128(v, 8)), vd));
}

#define PANEL_ROWS 16
#define TILE_TOK 6

#include "engine/cpu-matmul-unpack.inc"
#include "engine/cpu-matmul-x86.inc"

#include "engine/cpu-matmul-rows.inc"
#include "engine/cpu-matmul-super.inc"

/* --- many tokens --- */

static void
transpose(const float *rows, size_t row_stride, size_t n_k, float *panel)
{
  size_t k = 0;

  for (; k + 8 <= n_k; k += 8) {
    transpose8(rows + k, row_stride, panel + k * PANEL_ROWS);
    transpose8(rows + 8 * row_stride + k, row_stride, panel + k * PANEL_ROWS + 8);
  }
  for (; k < n_k; k++)
    for (size_t r = 0; r < PANEL_ROWS; r++)
      panel[k * PANEL_ROWS + r] = rows[r * row_stride + k];
}

/* The sums have names, not indices: an array of them would be kept in memory as well. */
#define TILE_STEP(t)                                                                               \
  if (n_tok > (t)) {                                                                               \
    __m256 v = _mm256_broadcast_ss(x##t + i);                                                      \
                                                                                                   \
    a##t = _mm256_fmadd_ps(v, w0, a##t);                                                           \
    b##t = _mm256_fmadd_ps(v, w1, b##t);                                                           \
  }
#define TILE_BEGIN(t)                                                                              \
  const float *x##t = x + (n_tok > (t) ? (size_t)(t)*x_stride : 0);                                \
  __m256 a##t = _mm256_setzero_ps(), b##t = _mm256_setzero_ps();
#define TILE_NEXT(t) x##t += n_step;
#define TILE_END(t)                                                                                \
  if (n_tok > (t))                                                                                 \
    store_sums(c + (size_t)(t)*c_stride, a##t, b##t, add);
#define TILE_ALL(step) step(0) step(1) step(2) step(3) step(4) step(5)

/* Unrolled, so that addresses cost less than the products. */
#define TILE_STEPS(n)                                                                              \
  {                                                                                                \
    enum { n_step = (n) };                                                                         \
                                                                                                   \
    for (int i = 0; i < n_step; i++) {                                                             \
      __m256 w0 = _mm256_loadu_ps(panel + i * PANEL_ROWS);                                         \
      __m256 w1 = _mm256_loadu_ps(panel + i * PANEL_ROWS + 8);                                     \
                                                                                                   \
      TILE_ALL(TILE_STEP)                                                                          \
    }                                                                                              \
    TILE_ALL(TILE_NEXT)                                                                            \
    panel += n_step * PANEL_ROWS;                                                                  \
  }

INLINE void
store_sums(float *c, __m256 a, __m256 b, bool add)
{
  if (add) {
    a = _mm256_add_ps(a, _mm256_loadu_ps(c));
    b = _mm256_add_ps(b, _mm256_loadu_ps(c + 8));
  }
  _mm256_storeu_ps(c, a);
  _mm256_storeu_ps(c + 8, b);
}

INLINE void
tile(const int n_tok, const float *panel, size_t n_k, const float *x, size_t x_stride, float *c,
     size_t c_stride, bool add)
{
  TILE_ALL(TILE_BEGIN)
  size_t k = 0;

  for (; k + 4 <= n_k; k += 4)
    TILE_STEPS(4)
  for (; k < n_k; k++)
    TILE_STEPS(1)
  TILE_ALL(TILE_END)
}

static void
multiply_tile(const float *panel, size_t n_k, const float *x, size_t x_stride, size_t n_tok,
              float *c, size_t c_stride, bool add)
{
  switch (n_tok) {
  case 1:
    tile(1, panel, n_k, x, x_stride, c, c_stride, add);
    break;
  case 2:
    tile(2, panel, n_k, x, x_stride, c, c_stride, add);
    break;
  case 3:
    tile(3, panel, n_k, x, x_stride, c, c_stride, add);
    break;
  case 4:
    tile(4, panel, n_k, x, x_stride, c, c_stride, add);
    break;
  case 5:
    tile(5, panel, n_k, x, x_stride, c, c_stride, add);
    break;
  default:
    tile(6, panel, n_k, x, x_stride, c, c_stride, add);
    break;
  }
}

const ks_cpu_matmul_fns ks_cpu_matmul_avx2 = {
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
