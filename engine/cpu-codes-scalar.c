/* cpu-codes-scalar.c - whole-number attention in plain C: the reference, and for every processor.
 * Threads: pure functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-codes-internal.h"

#include "engine/dtype.h"

#include <math.h>
#include <string.h>

static float
row_scale(const unsigned char *block)
{
  uint16_t half;

  memcpy(&half, block, sizeof half);
  return ks_f16_to_f32(half);
}

/* Also turns what is not a number into one. */
static int16_t
round_code(float x)
{
  x = x > -KS_CODES_MOST ? rintf(x) : -KS_CODES_MOST;
  return (int16_t)(x < KS_CODES_MOST ? x : KS_CODES_MOST);
}

static float
quantise(int16_t *codes, const float *x, size_t n)
{
  float most = 0.0F, inverse;

  for (size_t i = 0; i < n; i++)
    most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
  inverse = most >= KS_CODES_LEAST ? KS_CODES_MOST / most : 0.0F;
  for (size_t i = 0; i < n; i++)
    codes[i] = round_code(x[i] * inverse);
  return most / KS_CODES_MOST;
}

static const unsigned char *
get_row(const ks_codes_rows *rows, size_t j)
{
  return rows->quad[j / KS_CODES_QUAD] + j % KS_CODES_QUAD * rows->row_bytes;
}

static void
qk(float *s, size_t s_stride, const int16_t *q, size_t q_stride, const float *q_scale, size_t n_q,
   const ks_codes_rows *rows, size_t n_block)
{
  for (size_t a = 0; a < n_q; a++)
    for (size_t j = 0; j < rows->n_row; j++) {
      const unsigned char *block = get_row(rows, j);
      const int16_t *x = q + a * q_stride;
      float sum = 0.0F;

      for (size_t b = 0; b < n_block; b++, block += KS_Q8_BYTES, x += KS_Q8_BLOCK) {
        int32_t dot = 0;

        for (size_t i = 0; i < KS_Q8_BLOCK; i++)
          dot += x[i] * (int8_t)block[2 + i];
        sum += (float)dot * row_scale(block);
      }
      s[a * s_stride + j] = sum * q_scale[a];
    }
}

/* One query, one block of columns that begins at byte `at` of a row. */
static void
pv_block(float *acc, const float *p, const ks_codes_rows *rows, size_t at)
{
  float most_p = 0.0F, most_d = 0.0F, unit;
  int32_t sum[KS_Q8_BLOCK] = {0};

  for (size_t j = 0; j < rows->n_row; j++) {
    const float d = fabsf(row_scale(get_row(rows, j) + at));

    most_p = p[j] > most_p ? p[j] : most_p;
    most_d = d > most_d ? d : most_d;
  }
  if (!(most_p >= KS_CODES_LEAST && most_d > 0.0F))
    return;
  for (size_t j = 0; j < rows->n_row; j++) {
    const unsigned char *block = get_row(rows, j) + at;
    const int16_t weight =
        round_code(p[j] * (1.0F / most_p) * (row_scale(block) * (KS_CODES_MOST / most_d)));

    for (size_t i = 0; i < KS_Q8_BLOCK; i++)
      sum[i] += weight * (int8_t)block[2 + i];
  }
  unit = most_p * (most_d / KS_CODES_MOST);
  for (size_t i = 0; i < KS_Q8_BLOCK; i++)
    acc[i] += (float)sum[i] * unit;
}

static void
pv(float *acc, size_t acc_stride, const float *p, size_t p_stride, size_t n_q,
   const ks_codes_rows *rows, size_t n_block)
{
  for (size_t a = 0; a < n_q; a++)
    for (size_t b = 0; b < n_block; b++)
      pv_block(acc + a * acc_stride + b * KS_Q8_BLOCK, p + a * p_stride, rows, b * KS_Q8_BYTES);
}

const ks_cpu_codes_fns ks_cpu_codes_scalar = {
    .name = "scalar", .quantise = quantise, .qk = qk, .pv = pv};
