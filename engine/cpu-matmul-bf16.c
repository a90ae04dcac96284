/* cpu-matmul-bf16.c - products of BF16 weights with AVX512_BF16: dot products of bfloat16 pairs.
 * For fast mode: activations are rounded to BF16 as well; sums are f32.  Few tokens: rows as they
 * lie in the file.  Many tokens: pairs of columns become panels of 32 rows, a word each, multiplied
 * with tiles of 12 tokens in 24 registers.  The tests also build this file over emulated intrinsics
 * (tests/ops/avx512-emulation.h).
 * Threads: pure functions.  Source: docs/adr/0010-precision.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-matmul-internal.h"

#include <immintrin.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define PANEL_ROWS 32
#define TILE_TOK 12
#define STEP 32u /* columns in a vector */

#ifndef BF16_TABLE /* the emulated build of the tests has another name */
#define BF16_TABLE ks_cpu_matmul_bf16
#endif

INLINE __m512bh
pairs(__m512i v)
{
  __m512bh out;

  memcpy(&out, &v, sizeof(out));
  return out;
}

INLINE __m512bh
load_pairs(const void *p)
{
  return pairs(_mm512_loadu_si512(p));
}

INLINE uint32_t
load_pair(const uint16_t *p)
{
  uint32_t v;

  memcpy(&v, p, sizeof(v));
  return v;
}

/* The next 32 values to the nearest BF16, ties to even. */
INLINE __m512bh
round32(const float *x)
{
  return _mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + 16), _mm512_loadu_ps(x));
}

static void
round_row(const float *x, size_t n, uint16_t *out)
{
  size_t k = 0;

  for (; k + STEP <= n; k += STEP) {
    __m512bh v = round32(x + k);

    memcpy(out + k, &v, sizeof(v));
  }
  if (k < n) {
    float rest[STEP] = {0};
    __m512bh v;

    memcpy(rest, x + k, (n - k) * sizeof(*x));
    v = round32(rest);
    memcpy(out + k, &v, (n - k + 1) / 2 * 4);
  }
}

/* --- few tokens --- */

INLINE float
sum16(__m512 v)
{
  __m256 high = _mm256_castsi256_ps(_mm512_extracti64x4_epi64(_mm512_castps_si512(v), 1));
  __m256 s8 = _mm256_add_ps(_mm512_castps512_ps256(v), high);
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));

  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/* n_row rows side by side times token t: x is rounded once for all of them. */
INLINE void
dot_rows(const ks_rows_job *job, size_t t, size_t row, const size_t n_row)
{
  const unsigned char *w = job->rows + row * job->row_bytes;
  const float *x = job->x + t * job->x_stride;
  __m512 sums[4];
  size_t k = 0;

  for (size_t r = 0; r < n_row; r++)
    sums[r] = _mm512_setzero_ps();
  for (; k + STEP <= job->n_in; k += STEP) {
    const __m512bh rounded = round32(x + k);

    for (size_t r = 0; r < n_row; r++)
      sums[r] = _mm512_dpbf16_ps(sums[r], load_pairs(w + r * job->row_bytes + 2 * k), rounded);
  }
  if (k < job->n_in) {
    const size_t n = job->n_in - k;
    float rest_x[STEP] = {0};
    uint16_t rest_w[STEP] = {0};

    memcpy(rest_x, x + k, n * sizeof(*rest_x));
    for (size_t r = 0; r < n_row; r++) {
      memcpy(rest_w, w + r * job->row_bytes + 2 * k, n * sizeof(*rest_w));
      sums[r] = _mm512_dpbf16_ps(sums[r], load_pairs(rest_w), round32(rest_x));
    }
  }
  for (size_t r = 0; r < n_row; r++)
    job->out[t * job->out_stride + row + r] = sum16(sums[r]);
}

static void
multiply_rows(const ks_rows_job *job)
{
  size_t r = 0;

  for (; r + 4 <= job->n_row; r += 4)
    for (size_t t = 0; t < job->n_tok; t++)
      dot_rows(job, t, r, 4);
  for (; r < job->n_row; r++)
    for (size_t t = 0; t < job->n_tok; t++)
      dot_rows(job, t, r, 1);
}

/* --- many tokens --- */

/* 16 rows of 16 words to columns, PANEL_ROWS words apart. */
INLINE void
transpose16(const unsigned char *const rows[16], uint32_t *panel)
{
  __m512i a[16], b[16];

  for (int i = 0; i < 16; i++)
    a[i] = _mm512_loadu_si512(rows[i]);
  for (int i = 0; i < 16; i += 2) {
    b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
    b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
  }
  for (int i = 0; i < 16; i += 4)
    for (int c = 0; c < 4; c += 2) {
      a[i + c] = _mm512_unpacklo_epi64(b[i + c / 2], b[i + c / 2 + 2]);
      a[i + c + 1] = _mm512_unpackhi_epi64(b[i + c / 2], b[i + c / 2 + 2]);
    }
  /* Quarter l of a[4q + c] is column 4l + c of rows 4q .. 4q + 3. */
  for (int c = 0; c < 4; c++) {
    __m512i low01 = _mm512_shuffle_i32x4(a[c], a[4 + c], 0x44);
    __m512i low23 = _mm512_shuffle_i32x4(a[8 + c], a[12 + c], 0x44);
    __m512i high01 = _mm512_shuffle_i32x4(a[c], a[4 + c], 0xee);
    __m512i high23 = _mm512_shuffle_i32x4(a[8 + c], a[12 + c], 0xee);
    uint32_t *out = panel + (size_t)c * PANEL_ROWS;

    _mm512_storeu_si512(out, _mm512_shuffle_i32x4(low01, low23, 0x88));
    _mm512_storeu_si512(out + 4 * PANEL_ROWS, _mm512_shuffle_i32x4(low01, low23, 0xdd));
    _mm512_storeu_si512(out + 8 * PANEL_ROWS, _mm512_shuffle_i32x4(high01, high23, 0x88));
    _mm512_storeu_si512(out + 12 * PANEL_ROWS, _mm512_shuffle_i32x4(high01, high23, 0xdd));
  }
}

/* The same of n_row rows and n columns that are less than 16 rows of 32: the others are zeros. */
static void
fill_rest(const unsigned char *rows, size_t row_bytes, size_t n_row, size_t n, uint32_t *panel)
{
  const unsigned char *at[16];
  uint16_t padded[16][STEP];
  uint32_t part[16 * PANEL_ROWS];

  memset(padded, 0, sizeof(padded));
  for (size_t r = 0; r < 16; r++) {
    at[r] = (const unsigned char *)padded[r];
    if (r < n_row)
      memcpy(padded[r], rows + r * row_bytes, n * sizeof(padded[r][0]));
  }
  transpose16(at, part);
  for (size_t pair = 0; pair < (n + 1) / 2; pair++)
    memcpy(panel + pair * PANEL_ROWS, part + pair * PANEL_ROWS, 16 * sizeof(*panel));
}

static void
fill_panel(const unsigned char *rows, size_t row_bytes, size_t n_row, size_t n_k, uint32_t *panel)
{
  for (size_t r0 = 0; r0 < PANEL_ROWS; r0 += 16, panel += 16) {
    const size_t n_here = n_row < r0 ? 0 : n_row - r0 < 16 ? n_row - r0 : 16;
    const unsigned char *first = rows + r0 * row_bytes, *at[16];
    size_t k = 0;

    for (size_t r = 0; r < 16; r++)
      at[r] = first + r * row_bytes;
    for (; k + STEP <= n_k && n_here == 16; k += STEP) {
      transpose16(at, panel + k / 2 * PANEL_ROWS);
      for (size_t r = 0; r < 16; r++)
        at[r] += STEP * sizeof(uint16_t);
    }
    for (; k < n_k; k += STEP)
      fill_rest(first + 2 * k, row_bytes, n_here, n_k - k < STEP ? n_k - k : STEP,
                panel + k / 2 * PANEL_ROWS);
  }
}

/* The sums have names, not indices: an array of them would be kept in memory as well. */
#define TILE_STEP(t)                                                                               \
  {                                                                                                \
    const __m512bh v = pairs(_mm512_set1_epi32((int)load_pair(x + 2 * ((t)*x_stride + k))));       \
                                                                                                   \
    a##t = _mm512_dpbf16_ps(a##t, w0, v);                                                          \
    b##t = _mm512_dpbf16_ps(b##t, w1, v);                                                          \
  }
#define TILE_BEGIN(t) __m512 a##t = _mm512_setzero_ps(), b##t = _mm512_setzero_ps();
#define TILE_END(t) store_sums(c + (t)*c_stride, a##t, b##t, add);
#define TILE_4(STEP_OF, a, b, c, d) STEP_OF(a) STEP_OF(b) STEP_OF(c) STEP_OF(d)

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
tile_12(const uint32_t *panel, size_t n_pair, const uint16_t *x, size_t x_stride, float *c,
        size_t c_stride, bool add)
{
  TILE_4(TILE_BEGIN, 0, 1, 2, 3)
  TILE_4(TILE_BEGIN, 4, 5, 6, 7)
  TILE_4(TILE_BEGIN, 8, 9, 10, 11)

  for (size_t k = 0; k < n_pair; k++) {
    const __m512bh w0 = load_pairs(panel + k * PANEL_ROWS);
    const __m512bh w1 = load_pairs(panel + k * PANEL_ROWS + 16);

    TILE_4(TILE_STEP, 0, 1, 2, 3)
    TILE_4(TILE_STEP, 4, 5, 6, 7)
    TILE_4(TILE_STEP, 8, 9, 10, 11)
  }
  TILE_4(TILE_END, 0, 1, 2, 3)
  TILE_4(TILE_END, 4, 5, 6, 7)
  TILE_4(TILE_END, 8, 9, 10, 11)
}

static void
tile_4(const uint32_t *panel, size_t n_pair, const uint16_t *x, size_t x_stride, float *c,
       size_t c_stride, bool add)
{
  TILE_4(TILE_BEGIN, 0, 1, 2, 3)

  for (size_t k = 0; k < n_pair; k++) {
    const __m512bh w0 = load_pairs(panel + k * PANEL_ROWS);
    const __m512bh w1 = load_pairs(panel + k * PANEL_ROWS + 16);

    TILE_4(TILE_STEP, 0, 1, 2, 3)
  }
  TILE_4(TILE_END, 0, 1, 2, 3)
}

static void
tile_1(const uint32_t *panel, size_t n_pair, const uint16_t *x, float *c, bool add)
{
  const size_t x_stride = 0, c_stride = 0;

  TILE_BEGIN(0)

  for (size_t k = 0; k < n_pair; k++) {
    const __m512bh w0 = load_pairs(panel + k * PANEL_ROWS);
    const __m512bh w1 = load_pairs(panel + k * PANEL_ROWS + 16);

    TILE_STEP(0)
  }
  TILE_END(0)
}

static void
multiply_tile(const uint32_t *panel, size_t n_pair, const uint16_t *x, size_t x_stride,
              size_t n_tok, float *c, size_t c_stride, bool add)
{
  size_t t = 0;

  if (n_tok == TILE_TOK) {
    tile_12(panel, n_pair, x, x_stride, c, c_stride, add);
    return;
  }
  for (; t + 4 <= n_tok; t += 4)
    tile_4(panel, n_pair, x + 2 * t * x_stride, x_stride, c + t * c_stride, c_stride, add);
  for (; t < n_tok; t++)
    tile_1(panel, n_pair, x + 2 * t * x_stride, c + t * c_stride, add);
}

const ks_cpu_bf16_fns BF16_TABLE = {
    .panel_rows = PANEL_ROWS,
    .tile_tok = TILE_TOK,
    .round_row = round_row,
    .multiply_rows = multiply_rows,
    .fill_panel = fill_panel,
    .multiply_tile = multiply_tile,
};
