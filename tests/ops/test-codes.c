/* test-codes.c - the kernels of whole-number attention, under every instruction set.
 * The promise: products of codes are exact, also at the ends of the ranges; scores and sums of
 * values stay within the rounding of 16-bit codes of double arithmetic for any number of queries,
 * rows and blocks; what lies behind the last row has no influence. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ops/ops-fixture.h"

#define MAX_BLOCK 8u
#define MAX_Q 11u
#define MAX_DIM (MAX_BLOCK * KS_Q8_BLOCK)
#define GUARD 777.0F

typedef struct fixture {
  const ks_cpu_codes_fns *fns;
  uint64_t seed;
  unsigned char pages[2][KS_CODES_ROWS * MAX_BLOCK * KS_Q8_BYTES];
  ks_codes_rows rows;
  int16_t q[MAX_Q * MAX_DIM];
  float q_scale[MAX_Q];
  float s[MAX_Q * (KS_CODES_ROWS + 8)], p[MAX_Q * KS_CODES_ROWS];
  float acc[MAX_Q * (MAX_DIM + 8)];
} fixture;

static fixture f;

static uint32_t
next_random(void)
{
  f.seed = f.seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(f.seed >> 33);
}

static unsigned char *
row_at(size_t j)
{
  return (unsigned char *)(uintptr_t)f.rows.quad[j / KS_CODES_QUAD] +
         j % KS_CODES_QUAD * f.rows.row_bytes;
}

/* Quads in no order in one half of the memory; rows behind n_row are filled with bytes of ones,
 * whose scales are no numbers. */
static void
fill_rows(size_t n_row, size_t n_block, bool extreme)
{
  memset(f.pages, 0xff, sizeof(f.pages));
  f.rows.n_row = n_row;
  f.rows.row_bytes = n_block * KS_Q8_BYTES;
  for (size_t i = 0; i < KS_CODES_ROWS / KS_CODES_QUAD; i++)
    f.rows.quad[i] = f.pages[0] + i * 7 % 16 * KS_CODES_QUAD * f.rows.row_bytes;
  for (size_t j = 0; j < n_row; j++)
    for (size_t b = 0; b < n_block; b++) {
      unsigned char *block = row_at(j) + b * KS_Q8_BYTES;
      const uint16_t half =
          ks_f16_from_f32(extreme ? 1.0F : (float)(next_random() % 4000) * 1e-5F); /* also 0 */

      memcpy(block, &half, sizeof(half));
      for (size_t i = 0; i < KS_Q8_BLOCK; i++)
        block[2 + i] = (unsigned char)(extreme ? 0x80 : next_random() % 255 + 129);
    }
}

static double
row_value(size_t j, size_t i)
{
  const unsigned char *block = row_at(j) + i / KS_Q8_BLOCK * KS_Q8_BYTES;
  uint16_t half;

  memcpy(&half, block, sizeof(half));
  return (double)ks_f16_to_f32(half) * (int8_t)block[2 + i % KS_Q8_BLOCK];
}

static void
for_all_tables(void (*body)(void))
{
  const ks_cpu_codes_fns *tables[8];
  const size_t n = ops_list_codes(tables);

  for (size_t i = 0; i < n; i++) {
    f.fns = tables[i];
    f.seed = 11;
    body();
  }
}

static void
check_scores(size_t n_q, size_t n_row, size_t n_block, bool extreme)
{
  const size_t dim = n_block * KS_Q8_BLOCK, stride = KS_CODES_ROWS + 8;

  fill_rows(n_row, n_block, extreme);
  for (size_t i = 0; i < n_q * dim; i++)
    f.q[i] = extreme ? (int16_t)(i % 7 == 3 ? 32767 : -32767)
                     : (int16_t)((int)(next_random() % 65535) - 32767);
  for (size_t a = 0; a < n_q; a++)
    f.q_scale[a] = extreme ? 1.0F : (float)(1 + next_random() % 100) * 1e-6F;
  for (size_t i = 0; i < n_q * stride; i++)
    f.s[i] = GUARD;
  f.fns->qk(f.s, stride, f.q, dim, f.q_scale, n_q, &f.rows, n_block);
  for (size_t a = 0; a < n_q; a++) {
    for (size_t j = 0; j < n_row; j++) {
      double want = 0, size = 0;

      for (size_t i = 0; i < dim; i++) {
        want += f.q[a * dim + i] * row_value(j, i);
        size += fabs(f.q[a * dim + i] * row_value(j, i));
      }
      KS_ASSERT_NEAR(f.s[a * stride + j], want * f.q_scale[a], 2e-7 * size * f.q_scale[a]);
    }
    for (size_t j = (n_row + 3) / 4 * 4; j < stride; j++)
      KS_ASSERT(f.s[a * stride + j] == GUARD);
  }
}

static void
scores(void)
{
  static const size_t rows[] = {1, 2, 3, 4, 5, 16, 31, 63, 64};

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    for (size_t n_q = 1; n_q <= MAX_Q; n_q++)
      check_scores(n_q, rows[i], 1 + (n_q + i) % MAX_BLOCK, false);
  check_scores(3, 64, MAX_BLOCK, true);
  check_scores(4, 7, 1, true);
}

/* Queries times keys. */
KS_TEST(codes, scores)
{
  for_all_tables(scores);
}

static void
check_values(size_t n_q, size_t n_row, size_t n_block, bool extreme)
{
  const size_t dim = n_block * KS_Q8_BLOCK, stride = dim + 8;

  fill_rows(n_row, n_block, extreme);
  for (size_t i = 0; i < n_q * KS_CODES_ROWS; i++)
    f.p[i] = NAN; /* behind the last row */
  for (size_t a = 0; a < n_q; a++)
    for (size_t j = 0; j < n_row; j++)
      f.p[a * KS_CODES_ROWS + j] =
          extreme ? 1.0F : expf(-(float)(next_random() % 4000) * (a % 3 == 2 ? 0.02F : 0.002F));
  for (size_t i = 0; i < n_q * stride; i++)
    f.acc[i] = i % stride < dim ? 0.25F : GUARD;
  f.fns->pv(f.acc, stride, f.p, KS_CODES_ROWS, n_q, &f.rows, n_block);
  for (size_t a = 0; a < n_q; a++)
    for (size_t i = 0; i < stride; i++) {
      double want = 0.25, size = 0.25, top = 0;

      if (i >= dim) {
        KS_ASSERT(f.acc[a * stride + i] == GUARD);
        continue;
      }
      for (size_t j = 0; j < n_row; j++) {
        const double p = f.p[a * KS_CODES_ROWS + j];
        uint16_t half;

        memcpy(&half, row_at(j) + i / KS_Q8_BLOCK * KS_Q8_BYTES, sizeof(half));
        want += p * row_value(j, i);
        size += fabs(p * row_value(j, i));
        top = fmax(top, ks_f16_to_f32(half));
      }
      /* A weight is off by half a step at most, and codes are 127 at most; errors are random. */
      top = extreme ? 0 : top / 65534 * 127 * sqrt((double)n_row) * 2;
      KS_ASSERT_NEAR(f.acc[a * stride + i], want, 3e-7 * size + top);
    }
}

static void
values(void)
{
  static const size_t rows[] = {1, 2, 3, 4, 5, 9, 14, 33, 60, 64};

  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    for (size_t n_q = 1; n_q <= MAX_Q; n_q++)
      check_values(n_q, rows[i], 1 + (n_q + i) % MAX_BLOCK, false);
  check_values(3, 64, MAX_BLOCK, true);
  check_values(4, 7, 1, true);
}

/* Weights times values, added to what was there. */
KS_TEST(codes, values)
{
  for_all_tables(values);
}

static void
queries(void)
{
  float x[64];

  for (int k = 0; k < 3; k++) {
    const float size = k == 0 ? 1.0F : k == 1 ? 3e-5F : 1e6F;
    int16_t codes[64];
    float scale;

    for (size_t i = 0; i < 64; i++)
      x[i] = ((float)next_random() / 1073741824.0F - 1.0F) * size;
    x[17] = -1.5F * size;
    scale = f.fns->quantise(codes, x, 64);
    KS_ASSERT(codes[17] == -32767);
    for (size_t i = 0; i < 64; i++)
      KS_ASSERT_NEAR((double)codes[i] * scale, x[i], 0.51 * scale);
  }
  memset(x, 0, sizeof(x));
  KS_ASSERT(f.fns->quantise(f.q, x, 64) == 0.0F);
  for (size_t i = 0; i < 64; i++)
    KS_ASSERT(f.q[i] == 0);
}

/* The largest number gets the largest code, every other one is off by half a step at most. */
KS_TEST(codes, queries)
{
  for_all_tables(queries);
}

static void
nothing(void)
{
  check_values(3, 30, 2, false);
  for (size_t i = 0; i < MAX_Q * KS_CODES_ROWS; i++)
    f.p[i] = 0.0F;
  for (size_t i = 0; i < sizeof(f.acc) / sizeof(f.acc[0]); i++)
    f.acc[i] = 0.5F;
  f.fns->pv(f.acc, 64, f.p, KS_CODES_ROWS, 3, &f.rows, 2);
  fill_rows(8, 2, false);
  for (size_t j = 0; j < 8; j++)
    memset(row_at(j), 0, f.rows.row_bytes);
  for (size_t i = 0; i < MAX_Q * KS_CODES_ROWS; i++)
    f.p[i] = 1.0F;
  f.fns->pv(f.acc, 64, f.p, KS_CODES_ROWS, 3, &f.rows, 2);
  for (size_t i = 0; i < 3 * 64; i++)
    KS_ASSERT(f.acc[i] == 0.5F);
}

/* Weights of zero, and values of zero, change nothing. */
KS_TEST(codes, nothing_to_add)
{
  for_all_tables(nothing);
}

KS_TEST_MAIN
