/* cpu-packed-scalar.c - products of repacked weights in plain C, strips of 8 rows.
 * A group of 32 elements is taken apart into floats, lane r = row r; every loop over the lanes is
 * one that compilers turn into vectors of any width.  In fast mode the codes of the activations are
 * floats too: products and sums of 32 of them stay below 2^24 and are exact, so that the result is
 * that of integers.  Threads: pure functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-packed-internal.h"

#include "engine/cpu-matmul-internal.h"
#include "engine/quant.h"

#include <math.h>
#include <string.h>

#define R 8u
#define TILE_TOK 8u
#define GROUP KS_PACKED_GROUP

/* Where byte b of a word in memory lies: the left shift that brings it to the top. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define TOP_SHIFT(b) (8 * (b))
#else
#define TOP_SHIFT(b) (24 - 8 * (b))
#endif

typedef struct block_scales {
  float d[R], m[R]; /* of a block */
} block_scales;

typedef struct group {
  float code[GROUP][R];
  float d[2][R], m[2][R]; /* of each half */
} group;

static void
halves_to_f32(const unsigned char *plane, float out[R])
{
  uint32_t half[R], bits[R];
  float value[R];

  for (size_t r = 0; r < R; r++)
    half[r] = (uint32_t)(plane[2 * r] | plane[2 * r + 1] << 8);
  for (size_t r = 0; r < R; r++)
    bits[r] = (half[r] & 0x7fffu) << 13;
  memcpy(value, bits, sizeof(value));
  for (size_t r = 0; r < R; r++)
    value[r] *= 0x1p112f; /* exact, also for subnormals */
  memcpy(bits, value, sizeof(bits));
  for (size_t r = 0; r < R; r++) {
    uint32_t is_special = (half[r] & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0;

    bits[r] |= (half[r] & 0x8000u) << 16 | is_special;
  }
  memcpy(out, bits, sizeof(bits));
}

static void
take_block_scales(const ks_packed_layout *l, const unsigned char *block, block_scales *out)
{
  halves_to_f32(block, out->d);
  if (l->n_half > 1)
    halves_to_f32(block + 2 * R, out->m);
  else
    memset(out->m, 0, sizeof(out->m));
}

/* Scales and offsets of both halves of group g of a block. */
static void
take_scales(ks_dtype dtype, const ks_packed_layout *l, const unsigned char *block,
            const block_scales *base, size_t g, group *out)
{
  const unsigned char *scales = block + 2 * l->n_half * R;

  for (size_t h = 0; h < 2; h++) {
    const unsigned char *of_half = scales + (2 * g + h) * R, *of_group = scales + g * R;
    float *d = out->d[h], *m = out->m[h];

    memcpy(d, base->d, sizeof(base->d));
    memcpy(m, base->m, sizeof(base->m));
    switch (dtype) {
    case KS_DTYPE_Q4_K:
    case KS_DTYPE_Q5_K:
      for (size_t r = 0; r < R; r++) {
        d[r] *= (float)of_group[r];
        m[r] *= -(float)of_group[8 * R + r];
      }
      break;
    case KS_DTYPE_Q2_K:
      for (size_t r = 0; r < R; r++) {
        d[r] *= (float)(of_half[r] & 15);
        m[r] *= -(float)(of_half[r] >> 4);
      }
      break;
    case KS_DTYPE_Q3_K:
    case KS_DTYPE_Q6_K:
      for (size_t r = 0; r < R; r++)
        d[r] *= (float)(int8_t)of_half[r];
      break;
    case KS_DTYPE_IQ4_XS:
      for (size_t r = 0; r < R; r++)
        d[r] *= (float)(int8_t)of_group[r];
      break;
    default:
      break;
    }
  }
}

/* W[0] to W[7] of a group, codes as signed bytes. */
static void
take_words(ks_dtype dtype, const ks_packed_layout *l, const unsigned char *words, uint32_t w[8][R])
{
  const unsigned char *high = words + 4 * R * l->n_pair, *nibbles = high + 4 * R * l->n_high;
  const unsigned up = l->n_nibble > 0 ? 4 : 2;
  uint32_t plane[4][R];
  int8_t bytes[8 * 4 * R];

  memset(w, 0, sizeof(uint32_t[8][R]));
  memcpy(w, nibbles, 4 * R * l->n_byte);
  if (l->n_nibble > 0) {
    memcpy(plane, nibbles, sizeof(plane));
    for (size_t j = 0; j < 8; j++)
      for (size_t r = 0; r < R; r++)
        w[j][r] = plane[j % 4][r] >> (4 * (j / 4)) & 0x0f0f0f0fu;
  }
  if (l->n_pair > 0) {
    memcpy(plane, words, 4 * R * 2);
    for (size_t j = 0; j < 8; j++)
      for (size_t r = 0; r < R; r++)
        w[j][r] |= (plane[j / 4][r] >> (2 * (j % 4)) & 0x03030303u) << (l->n_nibble > 0 ? 4 : 0);
  }
  if (l->n_high > 0) {
    memcpy(plane, high, 4 * R);
    for (size_t j = 0; j < 8; j++)
      for (size_t r = 0; r < R; r++)
        w[j][r] |= (plane[0][r] >> j & 0x01010101u) << up;
  }
  memcpy(bytes, w, sizeof(bytes));
  if (dtype == KS_DTYPE_IQ4_NL || dtype == KS_DTYPE_IQ4_XS)
    for (size_t i = 0; i < sizeof(bytes); i++)
      bytes[i] = ks_iq4_values[bytes[i] & 15];
  else
    for (size_t i = 0; i < sizeof(bytes); i++)
      bytes[i] = (int8_t)(bytes[i] - l->zero);
  memcpy(w, bytes, sizeof(bytes));
}

static void
words_to_f32(uint32_t w[8][R], float code[GROUP][R])
{
  for (size_t j = 0; j < 8; j++)
    for (size_t b = 0; b < 4; b++)
      for (size_t r = 0; r < R; r++)
        code[4 * j + b][r] = (float)((int32_t)(w[j][r] << TOP_SHIFT(b)) >> 24);
}

static size_t
group_bytes(const ks_packed_layout *l)
{
  return 4 * R * ((size_t)l->n_pair + l->n_high + l->n_nibble + l->n_byte);
}

/* Reading a strip: group after group. */
typedef struct reader {
  ks_dtype dtype;
  const ks_packed_layout *layout;
  const unsigned char *block, *words;
  size_t g, n_group; /* in the block */
  block_scales base;
} reader;

static reader
reader_at(ks_dtype dtype, const unsigned char *strip)
{
  reader in = {.dtype = dtype, .layout = ks_packed_get_layout(dtype), .words = strip};

  in.n_group = in.layout->block_elems / GROUP;
  in.g = in.n_group;
  return in;
}

/* The words of the next group, and its scales. */
static void
read_words(reader *in, uint32_t w[8][R], group *out)
{
  const ks_packed_layout *l = in->layout;

  if (in->g == in->n_group) { /* a block ends where the next one begins */
    in->g = 0;
    in->block = in->words;
    in->words += (2u * l->n_half + l->n_scale) * R;
    take_block_scales(l, in->block, &in->base);
  }
  take_scales(in->dtype, l, in->block, &in->base, in->g, out);
  take_words(in->dtype, l, in->words, w);
  in->words += group_bytes(l);
  in->g++;
}

static void
read_group(reader *in, group *out)
{
  uint32_t w[8][R];

  read_words(in, w, out);
  words_to_f32(w, out->code);
}

static void
dot(const float code[][R], size_t n, const float *x, float out[R])
{
  float sum[R] = {0};

  for (size_t k = 0; k < n; k++)
    for (size_t r = 0; r < R; r++)
      sum[r] += code[k][r] * x[k];
  memcpy(out, sum, sizeof(sum));
}

static bool
is_halved(ks_dtype dtype)
{
  return dtype == KS_DTYPE_Q2_K || dtype == KS_DTYPE_Q3_K || dtype == KS_DTYPE_Q6_K;
}

/* --- few tokens --- */

/* One group of one token: acc += d * xd * (codes x) + m * sum x. */
static void
add_group(const group *g, bool halved, const float *x, float xd, const float half_sum[2],
          float acc[R])
{
  const size_t n_half = halved ? 2 : 1, n = GROUP / n_half;
  float s[R];

  for (size_t h = 0; h < n_half; h++) {
    float sum_x = halved ? half_sum[h] : half_sum[0] + half_sum[1];

    dot(g->code + n * h, n, x + n * h, s);
    for (size_t r = 0; r < R; r++)
      acc[r] += g->d[h][r] * xd * s[r] + g->m[h][r] * sum_x;
  }
}

static void
rows(ks_dtype dtype, const ks_packed_job *job, bool fast)
{
  const ks_cpu_acts *acts = job->acts;
  const size_t n_group = acts->n_in / GROUP;
  const bool halved = is_halved(dtype);
  float codes[GROUP];

  for (size_t s = 0; s < job->n_strip; s++) {
    reader in = reader_at(dtype, job->strips + s * job->strip_bytes);
    float acc[KS_MATMUL_FEW][R] = {{0}};
    group g;

    for (size_t i = 0; i < n_group; i++) {
      read_group(&in, &g);
      for (size_t t = 0; t < job->n_tok; t++) {
        const float *x = fast ? codes : acts->x + t * acts->x_stride + i * GROUP;

        for (size_t k = 0; fast && k < GROUP; k++)
          codes[k] = (float)acts->q[t * acts->n_in + i * GROUP + k];
        add_group(&g, halved, x, fast ? acts->d[t * n_group + i] : 1,
                  acts->half_sum + 2 * (t * n_group + i), acc[t]);
      }
    }
    for (size_t t = 0; t < job->n_tok; t++)
      memcpy(job->out + t * job->out_stride + s * R, acc[t], sizeof(acc[t]));
  }
}

/* --- many tokens --- */

static void
fill_exact(ks_dtype dtype, const unsigned char *strip, size_t n_k, float *panel, size_t stride)
{
  reader in = reader_at(dtype, strip);
  group g;

  for (size_t k = 0; k < n_k; k += GROUP) {
    read_group(&in, &g);
    for (size_t e = 0; e < GROUP; e++)
      for (size_t r = 0; r < R; r++)
        panel[(k + e) * stride + r] = g.code[e][r] * g.d[e / 16][r] + g.m[e / 16][r];
  }
}

static void
fill_fast(ks_dtype dtype, const unsigned char *strip, size_t n_k, const ks_packed_panel *panel)
{
  const size_t n_half = is_halved(dtype) ? 2 : 1;
  reader in = reader_at(dtype, strip);
  uint32_t w[8][R];
  group g;

  for (size_t i = 0; i < n_k / GROUP; i++) {
    read_words(&in, w, &g);
    memcpy(panel->q + i * sizeof(w), w, sizeof(w));
    for (size_t h = 0; h < n_half; h++) {
      memcpy(panel->d + (n_half * i + h) * R, g.d[h], sizeof(g.d[h]));
      memcpy(panel->m + (n_half * i + h) * R, g.m[h], sizeof(g.m[h]));
    }
  }
}

static void
tile_strip(const ks_packed_tile *tile, const ks_packed_panel *panel, bool halved, float *c)
{
  const size_t n_half = halved ? 2 : 1, n = GROUP / n_half, n_group = tile->n_in / GROUP;
  float acc[TILE_TOK][R] = {{0}}, code[GROUP][R], x[GROUP], s[R];

  for (size_t i = 0; i < tile->n_k / GROUP; i++) {
    uint32_t w[8][R];

    memcpy(w, panel->q + i * sizeof(w), sizeof(w));
    words_to_f32(w, code);
    for (size_t t = 0; t < tile->n_tok; t++) {
      for (size_t k = 0; k < GROUP; k++)
        x[k] = (float)tile->q[t * tile->n_in + i * GROUP + k];
      for (size_t h = 0; h < n_half; h++) {
        const float *d = panel->d + (n_half * i + h) * R, *m = panel->m + (n_half * i + h) * R;
        const float xd = tile->d[t * n_group + i];
        const float sum_x = tile->sum[(t * n_group + i) * n_half + h];

        dot(code + n * h, n, x + n * h, s);
        for (size_t r = 0; r < R; r++)
          acc[t][r] += d[r] * xd * s[r] + m[r] * sum_x;
      }
    }
  }
  for (size_t t = 0; t < tile->n_tok; t++)
    for (size_t r = 0; r < R; r++)
      c[t * tile->c_stride + r] = acc[t][r] + (tile->add ? c[t * tile->c_stride + r] : 0);
}

static void
tile_groups(const ks_packed_tile *tile)
{
  for (size_t s = 0; s < tile->n_strip; s++)
    tile_strip(tile, &tile->panels[s], false, tile->c + s * R);
}

static void
tile_halves(const ks_packed_tile *tile)
{
  for (size_t s = 0; s < tile->n_strip; s++)
    tile_strip(tile, &tile->panels[s], true, tile->c + s * R);
}

/* --- activations --- */

/* Largest magnitude of 32 values; infinity and NaN are larger than all others. */
static float
find_largest(const float *x)
{
  uint32_t bits[GROUP], largest = 0;
  float value;

  memcpy(bits, x, sizeof(bits));
  for (size_t i = 0; i < GROUP; i++) {
    int32_t magnitude = (int32_t)(bits[i] & 0x7fffffffu);

    largest = magnitude > (int32_t)largest ? (uint32_t)magnitude : largest;
  }
  memcpy(&value, &largest, sizeof(value));
  return value;
}

/* Codes of 32 values, their scale, and the sums of the codes of each half. */
static float
quantise(const float *x, int8_t *q, int32_t sum[2])
{
  const float round = 12582912.0f; /* 1.5 * 2^23: what is added to it becomes a whole number */
  float largest = find_largest(x), up, shifted[GROUP];
  uint32_t bits[GROUP];

  sum[0] = sum[1] = 0;
  if (!(largest >= 1e-30f && isfinite(largest))) {
    memset(q, 0, GROUP);
    return largest < 1e-30f ? 0 : largest - largest; /* NaN of an infinity too */
  }
  up = 127.0f / largest;
  for (size_t i = 0; i < GROUP; i++)
    shifted[i] = x[i] * up + round;
  memcpy(bits, shifted, sizeof(bits));
  for (size_t i = 0; i < GROUP; i++)
    q[i] = (int8_t)bits[i];
  for (size_t i = 0; i < GROUP; i++)
    sum[i / 16] += q[i];
  return largest / 127.0f;
}

static void
fill_acts(const float *x, size_t n_in, int8_t *q, float *d, float *sum, float *half_sum)
{
  for (size_t g = 0; g < n_in / GROUP; g++) {
    const float *at = x + g * GROUP;
    int32_t codes[2];

    if (q != NULL) {
      d[g] = quantise(at, q + g * GROUP, codes);
      half_sum[2 * g] = d[g] * (float)codes[0];
      half_sum[2 * g + 1] = d[g] * (float)codes[1];
      sum[g] = d[g] * (float)(codes[0] + codes[1]);
      continue;
    }
    for (size_t h = 0; h < 2; h++) {
      float lane[4] = {0};

      for (size_t i = 0; i < 16; i++)
        lane[i % 4] += at[16 * h + i];
      half_sum[2 * g + h] = (lane[0] + lane[2]) + (lane[1] + lane[3]);
    }
    sum[g] = half_sum[2 * g] + half_sum[2 * g + 1];
  }
}

/* --- the table --- */

#define KERNELS(name, dtype)                                                                       \
  static void name##_rows_exact(const ks_packed_job *job)                                          \
  {                                                                                                \
    rows(dtype, job, false);                                                                       \
  }                                                                                                \
  static void name##_rows_fast(const ks_packed_job *job)                                           \
  {                                                                                                \
    rows(dtype, job, true);                                                                        \
  }                                                                                                \
  static void name##_fill_exact(const unsigned char *strip, size_t n_k, float *panel,              \
                                size_t panel_stride)                                               \
  {                                                                                                \
    fill_exact(dtype, strip, n_k, panel, panel_stride);                                            \
  }                                                                                                \
  static void name##_fill_fast(const unsigned char *strip, size_t n_k,                             \
                               const ks_packed_panel *panel)                                       \
  {                                                                                                \
    fill_fast(dtype, strip, n_k, panel);                                                           \
  }

KERNELS(q4_0, KS_DTYPE_Q4_0)
KERNELS(q4_1, KS_DTYPE_Q4_1)
KERNELS(q5_0, KS_DTYPE_Q5_0)
KERNELS(q5_1, KS_DTYPE_Q5_1)
KERNELS(q8_0, KS_DTYPE_Q8_0)
KERNELS(q2_k, KS_DTYPE_Q2_K)
KERNELS(q3_k, KS_DTYPE_Q3_K)
KERNELS(q4_k, KS_DTYPE_Q4_K)
KERNELS(q5_k, KS_DTYPE_Q5_K)
KERNELS(q6_k, KS_DTYPE_Q6_K)
KERNELS(iq4_nl, KS_DTYPE_IQ4_NL)
KERNELS(iq4_xs, KS_DTYPE_IQ4_XS)

#define ENTRY(name, n_group, tile)                                                                 \
  {                                                                                                \
    n_group, true, name##_rows_exact, name##_rows_fast, name##_fill_exact, name##_fill_fast, tile  \
  }

const ks_cpu_packed_fns ks_cpu_packed_scalar = {
    .strip_rows = R,
    .tile_strips = 2,
    .tile_tok = TILE_TOK,
    .kernels =
        {
            [KS_DTYPE_Q4_0] = ENTRY(q4_0, 32, tile_groups),
            [KS_DTYPE_Q4_1] = ENTRY(q4_1, 32, tile_groups),
            [KS_DTYPE_Q5_0] = ENTRY(q5_0, 32, tile_groups),
            [KS_DTYPE_Q5_1] = ENTRY(q5_1, 32, tile_groups),
            [KS_DTYPE_Q8_0] = ENTRY(q8_0, 32, tile_groups),
            [KS_DTYPE_Q2_K] = ENTRY(q2_k, 16, tile_halves),
            [KS_DTYPE_Q3_K] = ENTRY(q3_k, 16, tile_halves),
            [KS_DTYPE_Q4_K] = ENTRY(q4_k, 32, tile_groups),
            [KS_DTYPE_Q5_K] = ENTRY(q5_k, 32, tile_groups),
            [KS_DTYPE_Q6_K] = ENTRY(q6_k, 16, tile_halves),
            [KS_DTYPE_IQ4_NL] = ENTRY(iq4_nl, 32, tile_groups),
            [KS_DTYPE_IQ4_XS] = ENTRY(iq4_xs, 32, tile_groups),
        },
    .fill_acts = fill_acts,
};
