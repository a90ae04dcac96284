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

#include "engine/cpu-matmul-unpack.inc"

/* --- many tokens --- */

#define PANEL_ROWS 16
#define TILE_TOK 6

/* 8 x 8 elements from rows to columns. */
INLINE void
transpose8(const float *src, size_t stride, float *dst)
{
  __m256 r[8], t[8];

  for (int i = 0; i < 8; i++)
    r[i] = _mm256_loadu_ps(src + (size_t)i * stride);
  for (int i = 0; i < 4; i++) {
    t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 2; i++) {
    r[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
    r[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xee);
    r[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
    r[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xee);
  }
  for (int i = 0; i < 4; i++) {
    _mm256_storeu_ps(dst + i * PANEL_ROWS, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(dst + (i + 4) * PANEL_ROWS, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

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

INLINE void
tile(const int n_tok, const float *panel, size_t n_k, const float *x, size_t x_stride, float *c,
     size_t c_stride, bool add)
{
  __m256 sum[TILE_TOK][2];

  for (int t = 0; t < n_tok; t++) {
    sum[t][0] = add ? _mm256_loadu_ps(c + (size_t)t * c_stride) : _mm256_setzero_ps();
    sum[t][1] = add ? _mm256_loadu_ps(c + (size_t)t * c_stride + 8) : _mm256_setzero_ps();
  }
  for (size_t k = 0; k < n_k; k++) {
    __m256 w0 = _mm256_loadu_ps(panel + k * PANEL_ROWS);
    __m256 w1 = _mm256_loadu_ps(panel + k * PANEL_ROWS + 8);

    for (int t = 0; t < n_tok; t++) {
      __m256 v = _mm256_broadcast_ss(x + (size_t)t * x_stride + k);

      sum[t][0] = _mm256_fmadd_ps(v, w0, sum[t][0]);
      sum[t][1] = _mm256_fmadd_ps(v, w1, sum[t][1]);
    }
  }
  for (int t = 0; t < n_tok; t++) {
    _mm256_storeu_ps(c + (size_t)t * c_stride, sum[t][0]);
    _mm256_storeu_ps(c + (size_t)t * c_stride + 8, sum[t][1]);
  }
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

#define FEW 4 /* KS_MATMUL_FEW as an array size */

INLINE float
sum8(__m256 v)
{
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

/* A type without rows of its own: pieces of 256 elements pass through the L1 cache. */
INLINE void
rows_unpacked(const ks_rows_job *job, const int n_tok, ks_unpack_fn unpack, size_t block_elems,
              size_t block_bytes)
{
  float w[256];

  for (size_t r = 0; r < job->n_row; r++) {
    const unsigned char *row = job->rows + r * job->row_bytes;
    __m256 sum[FEW][2];
    float rest[FEW] = {0};

    for (int t = 0; t < n_tok; t++)
      sum[t][0] = sum[t][1] = _mm256_setzero_ps();
    for (size_t k = 0; k < job->n_in; k += 256) {
      size_t n = job->n_in - k < 256 ? job->n_in - k : 256, i = 0;
      const float *x = job->x + k;

      unpack(job->dtype, row + k / block_elems * block_bytes, w, n);
      for (; i + 16 <= n; i += 16)
        for (int t = 0; t < n_tok; t++) {
          const float *xt = x + (size_t)t * job->x_stride + i;

          sum[t][0] = _mm256_fmadd_ps(_mm256_loadu_ps(w + i), _mm256_loadu_ps(xt), sum[t][0]);
          sum[t][1] =
              _mm256_fmadd_ps(_mm256_loadu_ps(w + i + 8), _mm256_loadu_ps(xt + 8), sum[t][1]);
        }
      for (; i < n; i++)
        for (int t = 0; t < n_tok; t++)
          rest[t] += w[i] * x[(size_t)t * job->x_stride + i];
    }
    for (int t = 0; t < n_tok; t++)
      job->out[(size_t)t * job->out_stride + r] =
          sum8(_mm256_add_ps(sum[t][0], sum[t][1])) + rest[t];
  }
}

INLINE void
rows_q8_0(const ks_rows_job *job, const int n_tok)
{
  for (size_t r = 0; r < job->n_row; r++) {
    const unsigned char *b = job->rows + r * job->row_bytes;
    __m256 sum[FEW];

    for (int t = 0; t < n_tok; t++)
      sum[t] = _mm256_setzero_ps();
    for (size_t k = 0; k < job->n_in; k += 32, b += 34) {
      __m256 d = _mm256_set1_ps(load_half(b)), part[FEW];

      for (int t = 0; t < n_tok; t++)
        part[t] = _mm256_setzero_ps();
      for (int i = 0; i < 4; i++) {
        __m256 q = floats_i8(_mm_loadl_epi64((const __m128i *)(const void *)(b + 2 + 8 * i)));

        for (int t = 0; t < n_tok; t++) {
          __m256 v = _mm256_loadu_ps(job->x + (size_t)t * job->x_stride + k + (size_t)(8 * i));

          part[t] = _mm256_fmadd_ps(q, v, part[t]);
        }
      }
      for (int t = 0; t < n_tok; t++)
        sum[t] = _mm256_fmadd_ps(part[t], d, sum[t]);
    }
    for (int t = 0; t < n_tok; t++)
      job->out[(size_t)t * job->out_stride + r] = sum8(sum[t]);
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

/* Products of the 64 nibbles with packed x; without scale. */
INLINE void
pair_products(__m256i q, const float *x, size_t x_stride, const int n_tok, __m256 part[FEW])
{
  __m256 odd[FEW];

  for (int t = 0; t < n_tok; t++)
    part[t] = odd[t] = _mm256_setzero_ps();
  for (int s = 0; s < 8; s++) {
    __m256i v = s == 7 ? _mm256_srli_epi32(q, 28)
                       : _mm256_and_si256(q, _mm256_set1_epi32((int)(15u << (4 * s))));
    __m256 f = _mm256_cvtepi32_ps(v);

    for (int t = 0; t < n_tok; t++) {
      __m256 xt = _mm256_loadu_ps(x + (size_t)t * x_stride + 8 * s);

      if (s % 2 == 0)
        part[t] = _mm256_fmadd_ps(f, xt, part[t]);
      else
        odd[t] = _mm256_fmadd_ps(f, xt, odd[t]);
    }
  }
  for (int t = 0; t < n_tok; t++)
    part[t] = _mm256_add_ps(part[t], odd[t]);
}

/* One pair of blocks at a and b; with_min: Q4_1, else Q4_0. */
INLINE void
add_pair(const unsigned char *a, const unsigned char *b, const bool with_min, const float *x,
         size_t x_stride, const int n_tok, __m256 sum[FEW], __m128 offset[FEW])
{
  const size_t head = with_min ? 4 : 2;
  __m256i q =
      _mm256_inserti128_si256(_mm256_castsi128_si256(load16(a + head)), load16(b + head), 1);
  __m256 part[FEW], d;
  __m128 scales;

  if (with_min) { /* a's scale, a's minimum, b's scale, b's minimum */
    scales =
        _mm_cvtph_ps(_mm_insert_epi32(_mm_cvtsi32_si128((int)load_u32(a)), (int)load_u32(b), 1));
    d = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(scales),
                                 _mm256_setr_epi32(0, 0, 0, 0, 2, 2, 2, 2));
  } else {
    scales =
        _mm_cvtph_ps(_mm_cvtsi32_si128((int)((uint32_t)load_u16(a) | (uint32_t)load_u16(b) << 16)));
    d = _mm256_permutevar8x32_ps(_mm256_castps128_ps256(scales),
                                 _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
  }
  pair_products(q, x, x_stride, n_tok, part);
  for (int t = 0; t < n_tok; t++) {
    const float *sums = x + (size_t)t * x_stride + (with_min ? 64 : 68);

    sum[t] = _mm256_fmadd_ps(part[t], d, sum[t]);
    offset[t] = _mm_fmadd_ps(scales, _mm_loadu_ps(sums), offset[t]);
  }
}

INLINE void
rows_q4(const ks_rows_job *job, const int n_tok, const bool with_min)
{
  const size_t bytes = with_min ? 20 : 18;
  const size_t n_block = job->n_in / 32;

  for (size_t r = 0; r < job->n_row; r++) {
    const unsigned char *b = job->rows + r * job->row_bytes;
    const float *x = job->x;
    __m256 sum[FEW];
    __m128 offset[FEW];

    for (int t = 0; t < n_tok; t++) {
      sum[t] = _mm256_setzero_ps();
      offset[t] = _mm_setzero_ps();
    }
    for (size_t i = 0; i + 2 <= n_block; i += 2, b += 2 * bytes, x += PAIR_FLOATS)
      add_pair(b, b + bytes, with_min, x, job->x_stride, n_tok, sum, offset);
    if (n_block % 2 != 0) {
      static const unsigned char nothing[20] = {0};

      add_pair(b, nothing, with_min, x, job->x_stride, n_tok, sum, offset);
    }
    for (int t = 0; t < n_tok; t++)
      job->out[(size_t)t * job->out_stride + r] =
          sum8(_mm256_add_ps(sum[t], _mm256_zextps128_ps256(offset[t])));
  }
}

INLINE void
rows_q4_0(const ks_rows_job *job, const int n_tok)
{
  rows_q4(job, n_tok, false);
}

INLINE void
rows_q4_1(const ks_rows_job *job, const int n_tok)
{
  rows_q4(job, n_tok, true);
}

/* The number of tokens as a constant, so that the sums stay in registers. */
#define ROWS(name, kernel)                                                                         \
  static void name(const ks_rows_job *job)                                                         \
  {                                                                                                \
    switch (job->n_tok) {                                                                          \
    case 1:                                                                                        \
      kernel(job, 1);                                                                              \
      break;                                                                                       \
    case 2:                                                                                        \
      kernel(job, 2);                                                                              \
      break;                                                                                       \
    case 3:                                                                                        \
      kernel(job, 3);                                                                              \
      break;                                                                                       \
    default:                                                                                       \
      kernel(job, 4);                                                                              \
      break;                                                                                       \
    }                                                                                              \
  }

#define GENERIC(TYPE, name, block_elems, block_bytes)                                              \
  INLINE void generic_##name(const ks_rows_job *job, const int n_tok)                              \
  {                                                                                                \
    rows_unpacked(job, n_tok, unpack_##name, block_elems, block_bytes);                            \
  }                                                                                                \
  ROWS(multiply_##name, generic_##name)

GENERIC(F32, f32, 1, 4)
GENERIC(F16, f16, 1, 2)
GENERIC(BF16, bf16, 1, 2)
GENERIC(Q5_0, q5_0, 32, 22)
GENERIC(Q5_1, q5_1, 32, 24)
GENERIC(Q2_K, q2_k, 256, 84)
GENERIC(Q3_K, q3_k, 256, 110)
GENERIC(Q4_K, q4_k, 256, 144)
GENERIC(Q5_K, q5_k, 256, 176)
GENERIC(Q6_K, q6_k, 256, 210)
GENERIC(IQ4_NL, iq4_nl, 32, 18)
GENERIC(IQ4_XS, iq4_xs, 256, 136)
ROWS(multiply_q4_0, rows_q4_0)
ROWS(multiply_q4_1, rows_q4_1)
ROWS(multiply_q8_0, rows_q8_0)

/* --- activations --- */

/* e^x within 2 units in the last place; outside +-87 the value at the border. */
INLINE __m256
exp8(__m256 x)
{
  __m256 n, r, p;

  x = _mm256_max_ps(_mm256_min_ps(x, _mm256_set1_ps(87.0f)), _mm256_set1_ps(-87.0f));
  n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(1.44269504f)),
                      _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  /* ln 2 in two parts, so that r is exact to its last bits */
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375f), x);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.12194440e-4f), r);
  p = _mm256_set1_ps(1.0f / 5040);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 720));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 120));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 24));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f / 6));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.5f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
  return _mm256_castsi256_ps(
      _mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23)));
}

/* SiLU, the tanh GELU and the quick GELU are z * sigmoid(a z + b z^3); beyond +-100 sigmoid is 0
 * or 1. */
static void
act_row(ks_act act, float *z, size_t n)
{
  float a = act == KS_ACT_SILU ? 1 : act == KS_ACT_GELU_QUICK ? 1.702f : 1.5957691216f;
  float b = act == KS_ACT_GELU_TANH ? 1.5957691216f * 0.044715f : 0;
  const __m256 one = _mm256_set1_ps(1);
  size_t i = 0;

  if (act == KS_ACT_SILU || act == KS_ACT_GELU_QUICK || act == KS_ACT_GELU_TANH)
    for (; i + 8 <= n; i += 8) {
      __m256 v = _mm256_loadu_ps(z + i);
      __m256 c = _mm256_max_ps(_mm256_min_ps(v, _mm256_set1_ps(100)), _mm256_set1_ps(-100));
      __m256 slope = _mm256_fmadd_ps(_mm256_mul_ps(c, c), _mm256_set1_ps(b), _mm256_set1_ps(a));
      __m256 e = exp8(_mm256_sub_ps(_mm256_setzero_ps(), _mm256_mul_ps(c, slope)));

      _mm256_storeu_ps(z + i, _mm256_div_ps(v, _mm256_add_ps(one, e)));
    }
  for (; i < n; i++)
    z[i] = ks_cpu_act(act, z[i]);
}

#define UNPACK_ENTRY(TYPE, name, block_elems, block_bytes) [KS_DTYPE_##TYPE] = unpack_##name,
#define ROWS_ENTRY(TYPE, name, block_elems, block_bytes) [KS_DTYPE_##TYPE] = multiply_##name,

const ks_cpu_matmul_fns ks_cpu_matmul_avx2 = {
    .panel_rows = PANEL_ROWS,
    .tile_tok = TILE_TOK,
    .unpack = {UNPACK_TYPES(UNPACK_ENTRY)},
    .multiply_rows = {UNPACK_TYPES(ROWS_ENTRY)},
    .wants_packed = {[KS_DTYPE_Q4_0] = true, [KS_DTYPE_Q4_1] = true},
    .pack_size = pack_size,
    .pack = pack,
    .transpose = transpose,
    .multiply_tile = multiply_tile,
    .act_row = act_row,
};
