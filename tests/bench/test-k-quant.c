/* test-k-quant.c - the K blocks that measuring writes: what the engine reads back is near the
 * values, nearer than a block without search, and edges of the packing keep their bits. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/k-quant.h"
#include "tests/ks-test.h"

#define N 1024

/* Values like weights: the sum of four even ones, with another size in every group of 32. */
static void
fill(float *x, float offset)
{
  uint32_t state = 99;

  for (int i = 0; i < N; i++) {
    float sum = 0;

    for (int k = 0; k < 4; k++) {
      state = state * 1664525u + 1013904223u;
      sum += (float)(state >> 8) / 8388608.0f - 1;
    }
    x[i] = sum * (0.5f + (float)(i / 32 % 8) / 8) + offset;
  }
}

static double
rms_error(ks_dtype dtype, const float *src)
{
  unsigned char blocks[N * 2];
  float back[N];
  double sum = 0;

  if (!k_quantise_row(dtype, src, blocks, N))
    KS_ASSERT(ks_quantise_row(dtype, src, blocks, N));
  ks_dequantise_row(dtype, blocks, back, N);
  for (int i = 0; i < N; i++)
    sum += ((double)back[i] - (double)src[i]) * ((double)back[i] - (double)src[i]);
  return sqrt(sum / N);
}

/* Q4_K has the codes of Q4_1 with coarser scales: its search must still be nearer than the scale
 * from smallest to largest value.  Q6_K is a quarter of the step of Q4_0, in smaller groups. */
KS_TEST(k_quant, nearer_than_blocks_without_search)
{
  float x[N];

  fill(x, 0);
  KS_ASSERT_LT(rms_error(KS_DTYPE_Q4_K, x) * 1e6, rms_error(KS_DTYPE_Q4_1, x) * 1e6);
  KS_ASSERT_LT(rms_error(KS_DTYPE_Q6_K, x) * 1e6, rms_error(KS_DTYPE_Q5_0, x) * 0.6e6);
  KS_ASSERT_LT(rms_error(KS_DTYPE_Q8_0, x) * 1e6, rms_error(KS_DTYPE_Q6_K, x) * 1e6);
}

/* Every scale and minimum of the eight groups lands in its own place: a block whose groups are
 * alike but for their size comes back group by group. */
KS_TEST(k_quant, groups_keep_their_own_scale)
{
  float x[256], back[256];
  unsigned char block[210];

  for (int i = 0; i < 256; i++)
    x[i] = (float)(i % 16) * (float)(1 + 8 * (i / 32)) - (float)(63 - 8 * (i / 32));
  KS_ASSERT(k_quantise_row(KS_DTYPE_Q4_K, x, block, 256));
  ks_dequantise_row(KS_DTYPE_Q4_K, block, back, 256);
  for (int i = 0; i < 256; i++)
    KS_ASSERT_NEAR(back[i], x[i], 8.5 * (double)(1 + 8 * (i / 32)) / 15 + 1);
  for (int i = 0; i < 256; i++)
    x[i] = (float)(i * 37 % 64 - 32) * (float)(1 + i / 16);
  KS_ASSERT(k_quantise_row(KS_DTYPE_Q6_K, x, block, 256));
  ks_dequantise_row(KS_DTYPE_Q6_K, block, back, 256);
  for (int i = 0; i < 256; i++)
    KS_ASSERT_NEAR(back[i], x[i], 0.6 * (double)(1 + i / 16) + 3);
}

/* Zeros come back as zeros, values of one sign and one value stay in reach. */
KS_TEST(k_quant, degenerate_blocks)
{
  const ks_dtype types[] = {KS_DTYPE_Q4_K, KS_DTYPE_Q6_K};
  float x[N] = {0};

  for (int k = 0; k < 2; k++) {
    memset(x, 0, sizeof x);
    KS_ASSERT(rms_error(types[k], x) == 0);
    for (int i = 0; i < N; i++)
      x[i] = -0.5f;
    KS_ASSERT_LE(rms_error(types[k], x) * 1e6, 3000);
    fill(x, 10);
    KS_ASSERT_LE(rms_error(types[k], x) * 1e3, types[k] == KS_DTYPE_Q4_K ? 300 : 100);
  }
}

/* Other types belong to the engine. */
KS_TEST(k_quant, other_types_are_refused)
{
  float x[256] = {0};
  unsigned char block[256];

  KS_ASSERT(!k_quantise_row(KS_DTYPE_Q5_K, x, block, 256));
  KS_ASSERT(!k_quantise_row(KS_DTYPE_Q8_0, x, block, 256));
}

KS_TEST_MAIN
