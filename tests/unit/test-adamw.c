/* test-adamw.c - the optimiser against numbers worked out by hand. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/adamw.h"

#include "tests/ks-test.h"

/* Two updates of one number.  First: m .05, v .005, corrected .5 and .25, step .1 * .5 / .5 = .1.
 * Second, slope -.25: m .02, v .00615, corrected .105263 and .155303: step .0267108. */
KS_TEST(adamw, worked_updates)
{
  ks_adamw how = {.rate = 0.1F,
                  .beta1 = 0.9F,
                  .beta2 = 0.98F,
                  .eps = 1e-8F,
                  .weight_decay = 0.01F,
                  .scale = 1.0F,
                  .step = 1};
  float w[2] = {1.0F, 0.0F}, g[2] = {0.5F, 0.0F}, m[2] = {0}, v[2] = {0};

  ks_adamw_step(&how, w, g, m, v, 2);
  KS_ASSERT_NEAR(w[0], 0.899, 1e-6);
  KS_ASSERT_NEAR(m[0], 0.05, 1e-7);
  KS_ASSERT_NEAR(v[0], 0.005, 1e-7);
  g[0] = -0.125F;
  how.scale = 2.0F;
  how.step = 2;
  ks_adamw_step(&how, w, g, m, v, 2);
  KS_ASSERT_NEAR(w[0], 0.87139023, 1e-6);
  KS_ASSERT_EQ(w[1], 0); /* padding between tensors stays 0 */
}

/* A gradient of norm 5 is scaled to the clip, a shorter one and one without a clip stay. */
KS_TEST(adamw, clips_by_norm)
{
  const float g[2] = {3.0F, -4.0F};

  KS_ASSERT_NEAR(ks_adamw_norm(g, 2), 5.0, 1e-12);
  KS_ASSERT_NEAR(ks_adamw_clip_scale(5.0, 1.0F), 0.2, 1e-7);
  KS_ASSERT_NEAR(ks_adamw_clip_scale(0.5, 1.0F), 1.0, 0);
  KS_ASSERT_NEAR(ks_adamw_clip_scale(5.0, 0.0F), 1.0, 0);
}

/* Four steps up, then half a cosine to a twentieth at the last of ten. */
KS_TEST(adamw, schedule)
{
  KS_ASSERT_NEAR(ks_adamw_rate(2.0F, 0.05F, 4, 10, 0), 0.5, 1e-6);
  KS_ASSERT_NEAR(ks_adamw_rate(2.0F, 0.05F, 4, 10, 3), 2.0, 1e-6);
  KS_ASSERT_NEAR(ks_adamw_rate(2.0F, 0.05F, 4, 10, 4), 2.0, 1e-6);
  KS_ASSERT_NEAR(ks_adamw_rate(2.0F, 0.05F, 4, 9, 6), 1.05, 1e-6); /* half way down */
  KS_ASSERT_NEAR(ks_adamw_rate(2.0F, 0.05F, 4, 10, 9), 0.1, 1e-6);
  KS_ASSERT_NEAR(ks_adamw_rate(2.0F, 0.05F, 0, 1, 0), 2.0, 1e-6);
}

KS_TEST_MAIN
