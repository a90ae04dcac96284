/* cpu-matmul-avx2.c - matrix products with AVX2, FMA and F16C.
 * Many tokens: a tile of 6 tokens x 16 rows is held in 12 registers.
 * Few tokens: rows are taken apart in registers.  The four-bit types with offsets are multiplied
 * without shifting: nibble s of a 32-bit word is masked where it stands and read as q * 16^s, and
 * the packed input holds x / 16^s in the same order (a power of two: exact).  Scales and offsets
 * are applied once per block, the offset to the block's sum of x. Threads: pure functions.  Source:
 * docs/method.md. */
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

/* --- few tokens --- */

/* Eight signed bytes at p as floats. */
INLINE __m256
load_i8(const unsigned char *p)
{
  return floats_i8(_mm_loadl_epi64((const __m128i *)(const void *)p));
}

static void
rows_q8_0(const ks_rows_job *job)
{
  for (size_t r = 0; r < job->n_row; r++) {
    const unsigned char *b = job->rows + r * job->row_bytes;
    const float *x = job->x;
    __m256 sum = _mm256_setzero_ps();

    for (size_t k = 0; k < job->n_in; k += 32, b += 34, x += 32) {
      __m256 s0 = _mm256_mul_ps(load_i8(b + 2), _mm256_loadu_ps(x));
      __m256 s1 = _mm256_mul_ps(load_i8(b + 10), _mm256_loadu_ps(x + 8));

      s0 = _mm256_fmadd_ps(load_i8(b + 18), _mm256_loadu_ps(x + 16), s0);
      s1 = _mm256_fmadd_ps(load_i8(b + 26), _mm256_loadu_ps(x + 24), s1);
      sum = _mm256_fmadd_ps(_mm256_add_ps(s0, s1), _mm256_set1_ps(load_half(b)), sum);
    }
    job->out[r] = sum8(sum);
  }
}

/* Packed input, per pair of blocks a and b: eight vectors, lane i of vector s = x of nibble s of
 * the word i of the pair; then 0, sum a, 0, sum b; then -8 sum a, -8 sum b, 0, 0. */
#define PAIR_FLOATS 72

static size_t
pack_size(size_t n_in)
{
  return (n_in + 63) / 64 * PAIR_FLOATS;
}

static void
pack(const float *x, size_t n_in, float *out)
{
  for (size_t k = 0; k < n_in; k += 64, out += PAIR_FLOATS) {
    float sums[2] = {0, 0}, scale = 1;
    size_t n_block = n_in - k < 64 ? 1 : 2;

    for (size_t s = 0; s < 8; s++) {
      for (size_t i = 0; i < 8; i++) {
        size_t at = 32 * (i / 4) + 4 * (i % 4) + s / 2 + 16 * (s % 2);

        out[8 * s + i] = i / 4 < n_block ? x[k + at] * scale : 0;
      }
      scale = s == 6 ? 1 : scale * 0.0625f; /* the highest nibble is shifted: it would be a sign */
    }
    for (size_t b = 0; b < n_block; b++) {
      __m256 v = _mm256_setzero_ps();

      for (size_t i = 0; i < 32; i += 8)
        v = _mm256_add_ps(v, _mm256_loadu_ps(x + k + 32 * b + i));
      sums[b] = sum8(v);
    }
    _mm_storeu_ps(out + 64, _mm_setr_ps(0, sums[0], 0, sums[1]));
    _mm_storeu_ps(out + 68, _mm_setr_ps(-8 * sums[0], -8 * sums[1], 0, 0));
  }
}

/* Nibble s of every word, where it stands, as floats. */
#define NIBBLE(q, s)                                                                               \
  _mm256_cvtepi32_ps(_mm256_and_si256(q, _mm256_set1_epi32((int)(15u << (4 * (s))))))

/* Sum of the 64 nibbles times packed x, lane by lane; without scale. */
INLINE __m256
pair_product(__m256i q, const float *x)
{
  __m256 a = _mm256_mul_ps(NIBBLE(q, 0), _mm256_loadu_ps(x));
  __m256 b = _mm256_mul_ps(NIBBLE(q, 1), _mm256_loadu_ps(x + 8));

  a = _mm256_fmadd_ps(NIBBLE(q, 2), _mm256_loadu_ps(x + 16), a);
  b = _mm256_fmadd_ps(NIBBLE(q, 3), _mm256_loadu_ps(x + 24), b);
  a = _mm256_fmadd_ps(NIBBLE(q, 4), _mm256_loadu_ps(x + 32), a);
  b = _mm256_fmadd_ps(NIBBLE(q, 5), _mm256_loadu_ps(x + 40), b);
  a = _mm256_fmadd_ps(NIBBLE(q, 6), _mm256_loadu_ps(x + 48), a);
  b = _mm256_fmadd_ps(_mm256_cvtepi32_ps(_mm256_srli_epi32(q, 28)), _mm256_loadu_ps(x + 56), b);
  return _mm256_add_ps(a, b);
}

INLINE __m256i
join(const unsigned char *a, const unsigned char *b)
{
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load16(a)), load16(b), 1);
}

/* One pair of Q4_1 blocks; offset gathers the minima times the sums of x. */
INLINE void
add_q4_1(const unsigned char *a, const unsigned char *b, const float *x, __m256 *sum,
         __m128 *offset)
{
  /* a's scale and minimum, b's scale and minimum */
  __m128 s =
      _mm_cvtph_ps(_mm_insert_epi32(_mm_cvtsi32_si128((int)load_u32(a)), (int)load_u32(b), 1));
  __m256 d = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(s),
                                      _mm256_setr_epi32(0, 0, 0, 0, 2, 2, 2, 2));

  *sum = _mm256_fmadd_ps(pair_product(join(a + 4, b + 4), x), d, *sum);
  *offset = _mm_fmadd_ps(s, _mm_loadu_ps(x + 64), *offset);
}

INLINE void
add_q4_0(const unsigned char *a, const unsigned char *b, const float *x, __m256 *sum,
         __m128 *offset)
{
  __m128 s =
      _mm_cvtph_ps(_mm_cvtsi32_si128((int)((uint32_t)load_u16(a) | (uint32_t)load_u16(b) << 16)));
  __m256 d = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(s),
                                      _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));

  *sum = _mm256_fmadd_ps(pair_product(join(a + 2, b + 2), x), d, *sum);
  *offset = _mm_fmadd_ps(s, _mm_loadu_ps(x + 68), *offset);
}

/* A second block of an odd number: all its values are 0. */
static const unsigned char no_block[20] = {0};

static void
rows_q4_1(const ks_rows_job *job)
{
  const size_t n_block = job->n_in / 32;

  for (size_t r = 0; r < job->n_row; r++) {
    const unsigned char *b = job->rows + r * job->row_bytes;
    const float *x = job->x;
    __m256 sum = _mm256_setzero_ps();
    __m128 offset = _mm_setzero_ps();

    for (size_t i = 0; i + 2 <= n_block; i += 2, b += 40, x += PAIR_FLOATS)
      add_q4_1(b, b + 20, x, &sum, &offset);
    if (n_block % 2 != 0)
      add_q4_1(b, no_block, x, &sum, &offset);
    job->out[r] = sum8(_mm256_add_ps(sum, _mm256_zextps128_ps256(offset)));
  }
}

static void
rows_q4_0(const ks_rows_job *job)
{
  const size_t n_block = job->n_in / 32;

  for (size_t r = 0; r < job->n_row; r++) {
    const unsigned char *b = job->rows + r * job->row_bytes;
    const float *x = job->x;
    __m256 sum = _mm256_setzero_ps();
    __m128 offset = _mm_setzero_ps();

    for (size_t i = 0; i + 2 <= n_block; i += 2, b += 36, x += PAIR_FLOATS)
      add_q4_0(b, b + 18, x, &sum, &offset);
    if (n_block % 2 != 0)
      add_q4_0(b, no_block, x, &sum, &offset);
    job->out[r] = sum8(_mm256_add_ps(sum, _mm256_zextps128_ps256(offset)));
  }
}

const ks_cpu_matmul_fns ks_cpu_matmul_avx2 = {
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
