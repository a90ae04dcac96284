/* test-quant.c - quantising: codes are the nearest ones, and known blocks come out as counted by
 * hand. That every type is read bit for bit is tested in tests/golden/test-quant-blocks.c. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/quant.h"
#include "tests/ks-test.h"

#define N 256

static const ks_dtype writable[] = {KS_DTYPE_F32,  KS_DTYPE_F16,  KS_DTYPE_BF16, KS_DTYPE_Q4_0,
                                    KS_DTYPE_Q4_1, KS_DTYPE_Q5_0, KS_DTYPE_Q5_1, KS_DTYPE_Q8_0};
static const size_t n_writable = sizeof writable / sizeof writable[0];

static void
fill(float *x, float offset)
{
  uint32_t state = 12345;

  for (int i = 0; i < N; i++) {
    state = state * 1664525u + 1013904223u;
    x[i] = (float)(state >> 8) / 8388608.0f - 1 + offset; /* -1..1 */
  }
}

/* Largest distance from src to the value that its code stands for. */
static float
worst_error(ks_dtype dtype, const float *src)
{
  unsigned char blocks[N * 4];
  float back[N], worst = 0;

  KS_ASSERT(ks_quantise_row(dtype, src, blocks, N));
  ks_dequantise_row(dtype, blocks, back, N);
  for (int i = 0; i < N; i++)
    worst = fmaxf(worst, fabsf(back[i] - src[i]));
  return worst;
}

/* Values in -1..1 are off by half a step at most; the symmetric types lose a step at the end of the
 * range that has one code less. */
KS_TEST(quant, error_is_bounded_by_the_step)
{
  float x[N];

  fill(x, 0);
  KS_ASSERT(worst_error(KS_DTYPE_F32, x) == 0);
  KS_ASSERT_LE(worst_error(KS_DTYPE_F16, x) * 1e6f, 245);   /* 2^-12 */
  KS_ASSERT_LE(worst_error(KS_DTYPE_BF16, x) * 1e6f, 1954); /* 2^-9 */
  KS_ASSERT_LE(worst_error(KS_DTYPE_Q4_0, x) * 1e6f, 126000);
  KS_ASSERT_LE(worst_error(KS_DTYPE_Q4_1, x) * 1e6f, 67500);
  KS_ASSERT_LE(worst_error(KS_DTYPE_Q5_0, x) * 1e6f, 63000);
  KS_ASSERT_LE(worst_error(KS_DTYPE_Q5_1, x) * 1e6f, 33000);
  KS_ASSERT_LE(worst_error(KS_DTYPE_Q8_0, x) * 1e6f, 4000);
}

/* Far from zero a type with a minimum keeps its step; one without pays for the distance. */
KS_TEST(quant, minimum_is_used)
{
  float x[N];

  fill(x, 100);
  KS_ASSERT_LE(worst_error(KS_DTYPE_Q4_1, x) * 1000,
               110); /* half a step and the minimum's rounding */
  KS_ASSERT_LE(worst_error(KS_DTYPE_Q5_1, x) * 1000, 75);
  KS_ASSERT_GE(worst_error(KS_DTYPE_Q4_0, x) * 1000, 1000);
}

/* No other code of the same block would be nearer. */
KS_TEST(quant, codes_are_nearest)
{
  float x[N];

  fill(x, 0.25f);
  for (size_t k = 3; k < n_writable; k++) {
    const ks_dtype_info *info = ks_dtype_get_info((uint32_t)writable[k]);
    unsigned char block[40], changed[40];
    float got[32], other[32];
    size_t first = info->block_bytes - (writable[k] == KS_DTYPE_Q8_0 ? 32 : 16);

    KS_ASSERT(ks_quantise_row(writable[k], x, block, 32));
    ks_dequantise_row(writable[k], block, got, 32);
    for (size_t byte = first; byte < info->block_bytes; byte++)
      for (unsigned code = 0; code < 256; code++) {
        memcpy(changed, block, sizeof block);
        changed[byte] = (unsigned char)code;
        ks_dequantise_row(writable[k], changed, other, 32);
        for (int j = 0; j < 32; j++)
          KS_ASSERT_LE(fabsf(got[j] - x[j]) * 1e7f, fabsf(other[j] - x[j]) * 1e7f + 1);
      }
  }
}

/* Blocks of zeros, of one value, and with values that are no numbers do not trap and stay in range.
 */
KS_TEST(quant, degenerate_blocks)
{
  float zero[N] = {0}, same[N], odd[N] = {0};

  for (int i = 0; i < N; i++)
    same[i] = -0.5f;
  odd[3] = NAN;
  odd[40] = INFINITY;
  odd[70] = -3e38f;
  for (size_t k = 0; k < n_writable; k++) {
    unsigned char blocks[N * 4];

    KS_ASSERT(worst_error(writable[k], zero) == 0);
    KS_ASSERT_LE(worst_error(writable[k], same) * 1e6f, 200);
    KS_ASSERT(ks_quantise_row(writable[k], odd, blocks, N));
  }
}

/* Types that only readers need are refused. */
KS_TEST(quant, other_types_are_refused)
{
  float x[N] = {0};
  unsigned char blocks[N * 4];

  for (uint32_t id = 0; id < KS_N_DTYPE; id++) {
    bool known = false;

    for (size_t k = 0; k < n_writable; k++)
      known = known || writable[k] == (ks_dtype)id;
    KS_ASSERT_EQ(ks_quantise_row((ks_dtype)id, x, blocks, N), known);
  }
}

/* One block counted by hand: d = 0.5, codes 0 to 15 and back, element 16 in the upper half of byte
 * 0. */
KS_TEST(quant, block_by_hand)
{
  unsigned char block[18] = {0x00, 0x38}; /* 0.5 as half precision */
  float got[32];

  for (int j = 0; j < 16; j++)
    block[2 + j] = (unsigned char)(j | (15 - j) << 4);
  ks_dequantise_row(KS_DTYPE_Q4_0, block, got, 32);
  for (int j = 0; j < 16; j++) {
    KS_ASSERT(got[j] == 0.5f * (float)(j - 8));
    KS_ASSERT(got[16 + j] == 0.5f * (float)(7 - j));
  }
}

KS_TEST_MAIN
