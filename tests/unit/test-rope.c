/* test-rope.c - frequencies against numbers computed apart from this code, axes and positions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/rope.h"
#include "tests/ks-test.h"

static void
assert_freqs(const float *got, const float *want, uint32_t n)
{
  for (uint32_t i = 0; i < n; i++)
    KS_ASSERT_NEAR(got[i], want[i], 2e-7 * fabs(want[i]));
}

/* Without scaling, frequency i is base^(-2i/n_rot) and cos and sin keep their size. */
KS_TEST(rope, plain)
{
  static const float want[] = {1.0f, 0.1f, 0.01f, 0.001f};
  ks_rope_params p = {.n_rot = 8, .base = 10000.0f, .factor = 1.0f};
  float f[4], mscale;

  ks_rope_frequencies(&p, f, &mscale);
  assert_freqs(f, want, 4);
  KS_ASSERT_NEAR(mscale, 1.0, 0);
}

/* Linear scaling divides all frequencies; the divisors of a llama-3 file come on top, each its own.
 */
KS_TEST(rope, linear_and_divisors)
{
  static const float divisors[] = {1.0f, 2.0f, 5.0f, 8.0f};
  static const float linear[] = {0.125f, 0.0125f, 0.00125f, 0.000125f};
  static const float both[] = {0.125f, 0.00625f, 0.00025f, 0.000015625f};
  ks_rope_params p = {.n_rot = 8, .base = 10000.0f, .factor = 8.0f, .scaling = KS_ROPE_LINEAR};
  float f[4], mscale;

  ks_rope_frequencies(&p, f, &mscale);
  assert_freqs(f, linear, 4);
  KS_ASSERT_NEAR(mscale, 1.0, 0);
  p.freq_factors = divisors;
  ks_rope_frequencies(&p, f, &mscale);
  assert_freqs(f, both, 4);
}

/* YaRN leaves fast pairs alone, divides slow ones by the factor, and mixes between pair 10 and 23.
 */
KS_TEST(rope, yarn_ramp)
{
  static const struct {
    uint32_t i;
    float want;
  } cases[] = {{0, 1.0f},
               {10, 0.0562341325f},
               {11, 0.0393313085f},
               {16, 0.00596153846f},
               {22, 0.00034197681f},
               {23, 0.000166690179f},
               {31, 1.66690179e-05f}};
  ks_rope_params p = {.n_rot = 64,
                      .base = 10000.0f,
                      .scaling = KS_ROPE_YARN,
                      .factor = 8.0f,
                      .n_ctx_orig = 4096,
                      .yarn_ext_factor = 1.0f,
                      .yarn_beta_fast = 32.0f,
                      .yarn_beta_slow = 1.0f};
  float f[32], mscale;

  ks_rope_frequencies(&p, f, &mscale);
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
    KS_ASSERT_NEAR(f[cases[i].i], cases[i].want, 2e-7 * cases[i].want);
  KS_ASSERT_NEAR(mscale, 1.20794415, 1e-7);
  p.attn_factor = 0.75f;
  ks_rope_frequencies(&p, f, &mscale);
  KS_ASSERT_NEAR(mscale, 0.75, 0);
}

/* A short original context puts the ramp's start below pair 0: it is clamped there. */
KS_TEST(rope, yarn_ramp_is_clamped)
{
  static const float want[] = {1.0f,          0.502090469f,   0.248464673f,    0.12066896f,
                               0.0571428571f, 0.0261087044f,  0.0112938488f,   0.00444569853f,
                               0.0025f,       0.00140585331f, 0.000790569415f, 0.000444569853f};
  ks_rope_params p = {.n_rot = 32,
                      .base = 10000.0f,
                      .scaling = KS_ROPE_YARN,
                      .factor = 4.0f,
                      .n_ctx_orig = 256,
                      .yarn_ext_factor = 1.0f,
                      .yarn_beta_fast = 32.0f,
                      .yarn_beta_slow = 1.0f};
  float f[16], mscale;

  ks_rope_frequencies(&p, f, &mscale);
  assert_freqs(f, want, 12);
  KS_ASSERT_NEAR(mscale, 1.13862944, 1e-7);
}

/* Longrope divides each frequency by its own factor only; the size grows with the stretched
 * context, unless the file says how much. */
KS_TEST(rope, longrope)
{
  static const float divisors[] = {1.0f, 1.5f, 4.0f, 32.0f};
  static const float want[] = {1.0f, 0.0666666667f, 0.0025f, 0.00003125f};
  ks_rope_params p = {.n_rot = 8,
                      .base = 10000.0f,
                      .scaling = KS_ROPE_LONGROPE,
                      .factor = 16.0f,
                      .n_ctx_orig = 256,
                      .freq_factors = divisors};
  float f[4], mscale;

  ks_rope_frequencies(&p, f, &mscale);
  assert_freqs(f, want, 4);
  KS_ASSERT_NEAR(mscale, 1.22474487, 1e-7);
  p.attn_factor = 1.19f;
  ks_rope_frequencies(&p, f, &mscale);
  KS_ASSERT_NEAR(mscale, 1.19, 1e-6);
  p.attn_factor = 0.0f;
  p.factor = 1.0f;
  ks_rope_frequencies(&p, f, &mscale);
  KS_ASSERT_NEAR(mscale, 1.0, 0);
}

/* Sections in blocks (16, 24, 24) and interleaved (24, 20, 20), as the two Qwen families store
 * them. */
KS_TEST(rope, axes)
{
  static const uint32_t blocks[3] = {16, 24, 24}, inter[3] = {24, 20, 20};
  uint8_t axis[64];
  uint32_t count[3] = {0, 0, 0};

  ks_rope_axes_blocks(blocks, 64, axis);
  for (uint32_t i = 0; i < 64; i++)
    KS_ASSERT_EQ(axis[i], i < 16 ? 0 : i < 40 ? 1 : 2);
  ks_rope_axes_interleaved(inter, 64, axis);
  for (uint32_t i = 0; i < 64; i++) {
    KS_ASSERT_EQ(axis[i], i < 60 ? i % 3 : 0);
    count[axis[i]]++;
  }
  KS_ASSERT_EQ(count[0], 24);
  KS_ASSERT_EQ(count[1], 20);
  KS_ASSERT_EQ(count[2], 20);
}

/* Text, a picture of 2 x 3 cells, text again: the picture stands still in t, and what follows it
 * goes on after the larger side. */
KS_TEST(rope, positions)
{
  static const int32_t want[3][10] = {{0, 1, 2, 2, 2, 2, 2, 2, 5, 6},
                                      {0, 1, 2, 2, 2, 3, 3, 3, 5, 6},
                                      {0, 1, 2, 3, 4, 2, 3, 4, 5, 6}};
  int32_t pos[3][10];
  int32_t next = ks_rope_place_text(0, 2, 10, &pos[0][0]);

  KS_ASSERT_EQ(next, 2);
  next = ks_rope_place_image(next, 2, 3, 10, &pos[0][2]);
  KS_ASSERT_EQ(next, 5);
  next = ks_rope_place_text(next, 2, 10, &pos[0][8]);
  KS_ASSERT_EQ(next, 7);
  KS_ASSERT_EQ(memcmp(pos, want, sizeof want), 0);
}

KS_TEST_MAIN
