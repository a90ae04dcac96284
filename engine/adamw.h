/* adamw.h - the optimiser of the gate: Adam with weight decay apart from the gradient.
 * Source: docs/method.md, section 12. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/status.h"

KS_BEGIN_DECLS

typedef struct ks_adamw {
  float rate, beta1, beta2, eps;
  float weight_decay; /* w loses rate * weight_decay of itself */
  float scale;        /* the gradient is multiplied by it first (clipping) */
  uint32_t step;      /* from 1: the moments start at 0 and are corrected for that */
} ks_adamw;

/* One update of n numbers w and their moments m, v (in and out) by the gradient g. */
void ks_adamw_step(const ks_adamw *how, float *w, const float *g, float *m, float *v, size_t n);
/* What the gradient is multiplied by so that its norm is at most clip (0: no limit). */
float ks_adamw_clip_scale(double norm, float clip);
double ks_adamw_norm(const float *g, size_t n);
/* Rate of step (0 .. n_step - 1): rises over n_warm_up steps, reaching rate at the last of them,
 * then falls with half a cosine to rate * final_part at the last step. */
float ks_adamw_rate(float rate, float final_part, uint32_t n_warm_up, uint32_t n_step,
                    uint32_t step);

KS_END_DECLS
