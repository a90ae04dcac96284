/* ks-eyes.c - see ks-eyes.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-eyes.h"

void
ks_eyes_fit_size (guint *width_px, guint *height_px, guint max_side_px)
{
  guint side = MAX (*width_px, *height_px);

  if (side <= max_side_px || max_side_px == 0)
    return;
  *width_px = MAX ((guint)((guint64)*width_px * max_side_px / side), 1);
  *height_px = MAX ((guint)((guint64)*height_px * max_side_px / side), 1);
}

guint
ks_eyes_count_tokens (const KsEyes *eyes, guint width_px, guint height_px, char **out_problem)
{
  ks_vision_plan plan;
  ks_error err = {0};

  g_return_val_if_fail (eyes != NULL, 0);
  if (!eyes->sees)
    return 0;
  if (ks_vision_plan_picture (&eyes->prep, &eyes->limits, width_px, height_px, &plan, &err) ==
      KS_OK)
    return plan.n_tok;
  if (out_problem != NULL)
    *out_problem = g_strdup (err.text);
  return 0;
}

KsEyesCost
ks_eyes_weigh (const KsEyes *eyes, guint n_picture, guint n_each)
{
  KsEyesCost cost = {.n_token = n_picture * n_each};

  g_return_val_if_fail (eyes != NULL, cost);
  cost.can_shrink = eyes->prep.max_pixels > 0;
  if (cost.n_token > eyes->n_ctx_train / 2)
    cost.n_trained = eyes->n_ctx_train;
  return cost;
}
