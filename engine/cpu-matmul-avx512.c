/* cpu-matmul-avx512.c - matrix products with AVX-512 (F, BW, VL, DQ).
 * The twin of cpu-matmul-avx2.c with vectors twice as wide: tiles of 12 tokens x 32 rows in 24
 * registers, four-bit blocks taken apart in fours instead of pairs.  Types without rows of their
 * own share the 256-bit code. Threads: pure functions.  Source: docs/method.md. */
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

/* --- few tokens --- */

INLINE float
sum16(__m512 v)
{
  __m256 high = _mm256_castsi256_ps(_mm512_extracti64x4_epi64(_mm512_castps_si512(v), 1));

  return sum8(_mm256_add_ps(_mm512_castps512_ps256(v), high));
}

static void
rows_q8_0(const ks_rows_job *job)
{
  for (size_t r = 0; r < job->n_row; r++) {
    const unsigned char *b = job->rows + r * job->row_bytes;
    const float *x = job->x;
    __m512 sum = _mm512_setzero_ps();

    for (size_t k = 0; k < job->n_in; k += 32, b += 34, x += 32) {
      __m512 s = _mm512_mul_ps(floats_i8(load16(b + 2)), _mm512_loadu_ps(x));

      s = _mm512_fmadd_ps(floats_i8(load16(b + 18)), _mm512_loadu_ps(x + 16), s);
      sum = _mm512_fmadd_ps(s, _mm512_set1_ps(load_half(b)), sum);
    }
    job->out[r] = sum16(sum);
  }
}

/* Packed input, per four blocks: eight vectors, lane i of vector s = x of nibble s of the word i of
 * the four; then 0, sum 0, 0, sum 1...; then -8 sum 0, -8 sum 1...  Blocks that are missing are 0.
 */
#define FOUR_FLOATS 144

static size_t
pack_size(size_t n_in)
{
  return (n_in + 127) / 128 * FOUR_FLOATS;
}

static void
pack(const float *x, size_t n_in, float *out)
{
  for (size_t k = 0; k < n_in; k += 128, out += FOUR_FLOATS) {
    size_t n_block = (n_in - k < 128 ? n_in - k : 128) / 32;
    float scale = 1;

    for (size_t s = 0; s < 8; s++) {
      for (size_t i = 0; i < 16; i++) {
        size_t at = 32 * (i / 4) + 4 * (i % 4) + s / 2 + 16 * (s % 2);

        out[16 * s + i] = i / 4 < n_block ? x[k + at] * scale : 0;
      }
      scale = s == 6 ? 1 : scale * 0.0625f; /* the highest nibble is shifted: it would be a sign */
    }
    for (size_t b = 0; b < 4; b++) {
      __m256 v = _mm256_setzero_ps();

      for (size_t i = 0; i < 32 && b < n_block; i += 8)
        v = _mm256_add_ps(v, _mm256_loadu_ps(x + k + 32 * b + i));
      out[128 + 2 * b] = 0;
      out[129 + 2 * b] = sum8(v);
      out[136 + b] = -8 * out[129 + 2 * b];
      out[140 + b] = 0;
    }
  }
}

/* Nibble s of every word, where it stands, as floats. */
#define NIBBLE(q, s)                                                                               \
  _mm512_cvtepi32_ps(_mm512_and_si512(q, _mm512_set1_epi32((int)(15u << (4 * (s))))))

/* Sum of the 128 nibbles times packed x, lane by lane; without scale. */
INLINE __m512
four_product(__m512i q, const float *x)
{
  __m512 a = _mm512_mul_ps(NIBBLE(q, 0), _mm512_loadu_ps(x));
  __m512 b = _mm512_mul_ps(NIBBLE(q, 1), _mm512_loadu_ps(x + 16));

  a = _mm512_fmadd_ps(NIBBLE(q, 2), _mm512_loadu_ps(x + 32), a);
  b = _mm512_fmadd_ps(NIBBLE(q, 3), _mm512_loadu_ps(x + 48), b);
  a = _mm512_fmadd_ps(NIBBLE(q, 4), _mm512_loadu_ps(x + 64), a);
  b = _mm512_fmadd_ps(NIBBLE(q, 5), _mm512_loadu_ps(x + 80), b);
  a = _mm512_fmadd_ps(NIBBLE(q, 6), _mm512_loadu_ps(x + 96), a);
  b = _mm512_fmadd_ps(_mm512_cvtepi32_ps(_mm512_srli_epi32(q, 28)), _mm512_loadu_ps(x + 112), b);
  return _mm512_add_ps(a, b);
}

INLINE __m512i
join(const unsigned char *const b[4], size_t head)
{
  __m256i low =
      _mm256_inserti128_si256(_mm256_castsi128_si256(load16(b[0] + head)), load16(b[1] + head), 1);
  __m256i high =
      _mm256_inserti128_si256(_mm256_castsi128_si256(load16(b[2] + head)), load16(b[3] + head), 1);

  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

INLINE void
add_q4_1(const unsigned char *const b[4], const float *x, __m512 *sum, __m256 *offset)
{
  const __m512i pick = _mm512_setr_epi32(0, 0, 0, 0, 2, 2, 2, 2, 4, 4, 4, 4, 6, 6, 6, 6);
  /* scale and minimum of each block in turn */
  __m256 s = _mm256_cvtph_ps(_mm_setr_epi32((int)load_u32(b[0]), (int)load_u32(b[1]),
                                            (int)load_u32(b[2]), (int)load_u32(b[3])));
  __m512 d = _mm512_permutexvar_ps(pick, _mm512_castps256_ps512(s));

  *sum = _mm512_fmadd_ps(four_product(join(b, 4), x), d, *sum);
  *offset = _mm256_fmadd_ps(s, _mm256_loadu_ps(x + 128), *offset);
}

INLINE void
add_q4_0(const unsigned char *const b[4], const float *x, __m512 *sum, __m256 *offset)
{
  const __m512i pick = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
  __m256 s = _mm256_cvtph_ps(
      _mm_setr_epi32((int)((uint32_t)load_u16(b[0]) | (uint32_t)load_u16(b[1]) << 16),
                     (int)((uint32_t)load_u16(b[2]) | (uint32_t)load_u16(b[3]) << 16), 0, 0));
  __m512 d = _mm512_permutexvar_ps(pick, _mm512_castps256_ps512(s));

  *sum = _mm512_fmadd_ps(four_product(join(b, 2), x), d, *sum);
  *offset = _mm256_fmadd_ps(s, _mm256_loadu_ps(x + 136), *offset);
}

/* Stands for blocks behind the end of a row: all its values are 0. */
static const unsigned char no_block[20] = {0};

#define ROWS(name, add, block_bytes)                                                               \
  static void name(const ks_rows_job *job)                                                         \
  {                                                                                                \
    const size_t n_block = job->n_in / 32;                                                         \
                                                                                                   \
    for (size_t r = 0; r < job->n_row; r++) {                                                      \
      const unsigned char *p = job->rows + r * job->row_bytes;                                     \
      const float *x = job->x;                                                                     \
      __m512 sum = _mm512_setzero_ps();                                                            \
      __m256 offset = _mm256_setzero_ps();                                                         \
                                                                                                   \
      for (size_t i = 0; i < n_block; i += 4, p += 4 * (block_bytes), x += FOUR_FLOATS) {          \
        const unsigned char *b[4] = {p, i + 1 < n_block ? p + (block_bytes) : no_block,            \
                                     i + 2 < n_block ? p + 2 * (block_bytes) : no_block,           \
                                     i + 3 < n_block ? p + 3 * (block_bytes) : no_block};          \
                                                                                                   \
        add(b, x, &sum, &offset);                                                                  \
      }                                                                                            \
      job->out[r] = sum16(sum) + sum8(offset);                                                     \
    }                                                                                              \
  }

ROWS(rows_q4_0, add_q4_0, 18)
ROWS(rows_q4_1, add_q4_1, 20)

const ks_cpu_matmul_fns ks_cpu_matmul_avx512 = {
    .panel_rows = PANEL_ROWS,
    .tile_tok = TILE_TOK,
    .unpack = UNPACK_TABLE,
    .multiply_rows = {[KS_DTYPE_F32] = rows_unpacked,
                      [KS_DTYPE_F16] = rows_unpacked,
                      [KS_DTYPE_BF16] = rows_unpacked,
                      [KS_DTYPE_Q4_0] = rows_q4_0,
                      [KS_DTYPE_Q4_1] = rows_q4_1,
                      [KS_DTYPE_Q5_0] = rows_unpacked,
                      [KS_DTYPE_Q5_1] = rows_unpacked,
                      [KS_DTYPE_Q8_0] = rows_q8_0,
                      [KS_DTYPE_Q2_K] = rows_unpacked,
                      [KS_DTYPE_Q3_K] = rows_unpacked,
                      [KS_DTYPE_Q4_K] = rows_unpacked,
                      [KS_DTYPE_Q5_K] = rows_unpacked,
                      [KS_DTYPE_Q6_K] = rows_unpacked,
                      [KS_DTYPE_IQ4_NL] = rows_unpacked,
                      [KS_DTYPE_IQ4_XS] = rows_unpacked},
    .wants_packed = {[KS_DTYPE_Q4_0] = true, [KS_DTYPE_Q4_1] = true},
    .pack_size = pack_size,
    .pack = pack,
    .transpose = transpose,
    .multiply_tile = multiply_tile,
    .act_row = act_row,
};
