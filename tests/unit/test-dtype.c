/* test-dtype.c - the table of types and the half precision conversions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/dtype.h"
#include "tests/ks-test.h"

/* Unknown ids, odd row lengths and overflows are refused, names are read in any case. */
KS_TEST(dtype, table)
{
  ks_dtype dtype;
  size_t n_bytes = 5;

  KS_ASSERT(ks_dtype_get_info(4) == NULL && ks_dtype_get_info(31) == NULL);
  KS_ASSERT(ks_dtype_get_info(UINT32_MAX) == NULL);
  KS_ASSERT_STR(ks_dtype_get_info(KS_DTYPE_Q6_K)->name, "Q6_K");
  KS_ASSERT(ks_dtype_parse("q8_0", &dtype) && dtype == KS_DTYPE_Q8_0);
  KS_ASSERT(ks_dtype_parse("BF16", &dtype) && dtype == KS_DTYPE_BF16);
  KS_ASSERT(!ks_dtype_parse("q9_0", &dtype));
  KS_ASSERT(!ks_dtype_row_bytes(KS_DTYPE_Q4_K, 128, &n_bytes));
  KS_ASSERT(!ks_dtype_row_bytes(KS_DTYPE_F32, UINT64_MAX / 2, &n_bytes));
  KS_ASSERT_EQ(n_bytes, 5);
  KS_ASSERT(ks_dtype_row_bytes(KS_DTYPE_Q4_K, 512, &n_bytes) && n_bytes == 288);
  KS_ASSERT(ks_dtype_row_bytes(KS_DTYPE_IQ4_XS, 256, &n_bytes) && n_bytes == 136);
}

static bool
is_nan16(uint16_t half, uint16_t exponent_mask)
{
  return (half & exponent_mask) == exponent_mask &&
         (half & (uint16_t)(0x7fff & ~exponent_mask)) != 0;
}

/* Every half survives the way to f32 and back, bit for bit; a NaN stays a NaN of the same sign. */
KS_TEST(dtype, every_half_round_trips)
{
  for (uint32_t i = 0; i < 65536; i++) {
    uint16_t half = (uint16_t)i, f16 = ks_f16_from_f32(ks_f16_to_f32(half));
    uint16_t bf16 = ks_bf16_from_f32(ks_bf16_to_f32(half));

    if (is_nan16(half, 0x7c00))
      KS_ASSERT(is_nan16(f16, 0x7c00) && isnan(ks_f16_to_f32(half)));
    else
      KS_ASSERT_EQ(f16, half);
    if (is_nan16(half, 0x7f80))
      KS_ASSERT(is_nan16(bf16, 0x7f80) && isnan(ks_bf16_to_f32(half)));
    else
      KS_ASSERT_EQ(bf16, half);
  }
}

/* Half of a value counted by hand, and the order of neighbours, so that a table of nonsense that
 * happens to be invertible does not pass. */
KS_TEST(dtype, known_halves)
{
  KS_ASSERT(ks_f16_to_f32(0x3c00) == 1.0f && ks_f16_to_f32(0xc000) == -2.0f);
  KS_ASSERT(ks_f16_to_f32(0x7bff) == 65504.0f && ks_f16_to_f32(0x0001) == 0x1p-24f);
  KS_ASSERT(ks_f16_to_f32(0x03ff) == 1023 * 0x1p-24f && ks_f16_to_f32(0x0400) == 0x1p-14f);
  KS_ASSERT(isinf(ks_f16_to_f32(0xfc00)) && signbit(ks_f16_to_f32(0x8000)));
  KS_ASSERT(ks_bf16_to_f32(0x3f80) == 1.0f && ks_bf16_to_f32(0xc040) == -3.0f);
  for (uint16_t half = 0; half < 0x7c00; half++)
    KS_ASSERT(ks_f16_to_f32(half) < ks_f16_to_f32((uint16_t)(half + 1)));
}

/* Between two neighbours the nearer wins, exactly between them the even one. */
KS_TEST(dtype, rounds_to_nearest_even)
{
  for (uint16_t half = 0; half < 0x7bff; half++) {
    float low = ks_f16_to_f32(half), high = ks_f16_to_f32((uint16_t)(half + 1));
    float middle = (low + high) / 2; /* exact in f32 */

    KS_ASSERT_EQ(ks_f16_from_f32(middle), half + (half & 1));
    KS_ASSERT_EQ(ks_f16_from_f32(nextafterf(middle, 0)), half);
    KS_ASSERT_EQ(ks_f16_from_f32(-nextafterf(middle, INFINITY)), 0x8000 | (half + 1));
  }
  KS_ASSERT_EQ(ks_f16_from_f32(65519.99f), 0x7bff);
  KS_ASSERT_EQ(ks_f16_from_f32(65520.0f), 0x7c00);
  KS_ASSERT_EQ(ks_f16_from_f32(-INFINITY), 0xfc00);
  KS_ASSERT_EQ(ks_bf16_from_f32(1.00390625f), 0x3f80);                /* half way: even */
  KS_ASSERT_EQ(ks_bf16_from_f32(nextafterf(1.00390625f, 2)), 0x3f81); /* above */
  KS_ASSERT_EQ(ks_bf16_from_f32(1.01171875f), 0x3f82);
}

KS_TEST_MAIN
