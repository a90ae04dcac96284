/* adamw.c - Adam with decoupled weight decay, clipping by norm, and the schedule of the rate.
 *   m = b1 m + (1 - b1) g      v = b2 v + (1 - b2) g^2
 *   w -= rate (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps),  after  w -= rate decay w
 * Threads: pure functions.  Source: docs/method.md, section 12. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/adamw.h"

#include <math.h>

void
ks_adamw_step(const ks_adamw *how, float *w, const float *g, float *m, float *v, size_t n)
{
  const double unbias1 = 1.0 - pow((double)how->beta1, (double)how->step);
  const double unbias2 = 1.0 - pow((double)how->beta2, (double)how->step);
  const float size = (float)((double)how->rate / unbias1);
  const float root = (float)(1.0 / sqrt(unbias2));
  const float keep = (float)(1.0 - (double)how->rate * (double)how->weight_decay);
  const float b1 = how->beta1, b2 = how->beta2, eps = how->eps, scale = how->scale;

  for (size_t i = 0; i < n; i++) {
    const float x = g[i] * scale;

    m[i] = b1 * m[i] + (1.0F - b1) * x;
    v[i] = b2 * v[i] + (1.0F - b2) * x * x;
    w[i] = w[i] * keep - size * m[i] / (sqrtf(v[i]) * root + eps);
  }
}

double
ks_adamw_norm(const float *g, size_t n)
{
  double sum = 0.0;

  for (size_t i = 0; i < n; i++)
    sum += (double)g[i] * (double)g[i];
  return sqrt(sum);
}

float
ks_adamw_clip_scale(double norm, float clip)
{
  if (!(clip > 0.0F) || norm <= (double)clip)
    return 1.0F;
  return (float)((double)clip / norm);
}

float
ks_adamw_rate(float rate, float final_part, uint32_t n_warm_up, uint32_t n_step, uint32_t step)
{
  const double pi = 3.14159265358979323846;
  const uint32_t n_fall = n_step > n_warm_up + 1 ? n_step - n_warm_up - 1 : 1;
  double part;

  if (step < n_warm_up)
    return (float)((double)rate * (double)(step + 1) / (double)n_warm_up);
  part = (double)(step - n_warm_up) / (double)n_fall;
  part = part < 1.0 ? part : 1.0;
  return (float)((double)rate *
                 ((double)final_part + (1.0 - (double)final_part) * 0.5 * (1.0 + cos(pi * part))));
}
