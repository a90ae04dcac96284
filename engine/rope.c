/* rope.c - frequencies of the rotation, computed once per model in double.
 * A dimension pair i turns by pos / base^(2i/n_rot); each scaling type changes that frequency
 * before it is stored, so that kernels and the re-map of positions never see the type. Source:
 * docs/method.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/rope.h"

#include <assert.h>
#include <math.h>

/* The pair, as a real number, that turns n_turn times over the original context. */
static double
yarn_pair_of_turns(const ks_rope_params *p, double n_turn)
{
  const double two_pi = 6.283185307179586;

  return p->n_rot * log(p->n_ctx_orig / (n_turn * two_pi)) / (2.0 * log((double)p->base));
}

/* Share of the unscaled frequency in pair i: 1 for pairs that turn often within the original
 * context, 0 for those that turn less than beta_slow times, a ramp between. */
static double
yarn_keep(const ks_rope_params *p, uint32_t i)
{
  double low = floor(yarn_pair_of_turns(p, p->yarn_beta_fast));
  double high = ceil(yarn_pair_of_turns(p, p->yarn_beta_slow));
  double ramp;

  low = fmax(low, 0.0);
  high = fmin(high, (double)p->n_rot - 1.0);
  ramp = (i - low) / fmax(high - low, 0.001);
  ramp = fmin(fmax(ramp, 0.0), 1.0);
  return (1.0 - ramp) * p->yarn_ext_factor;
}

static double
default_mscale(const ks_rope_params *p)
{
  if (p->factor <= 1.0f)
    return 1.0;
  if (p->scaling == KS_ROPE_YARN)
    return 1.0 + 0.1 * log((double)p->factor);
  if (p->scaling == KS_ROPE_LONGROPE)
    return sqrt(1.0 + log((double)p->factor) / log((double)p->n_ctx_orig));
  return 1.0;
}

void
ks_rope_frequencies(const ks_rope_params *params, float *out_inv_freq, float *out_mscale)
{
  assert(params->n_rot % 2 == 0);
  for (uint32_t i = 0; i < params->n_rot / 2; i++) {
    double f = pow((double)params->base, -2.0 * i / params->n_rot);

    if (params->freq_factors != NULL)
      f /= params->freq_factors[i];
    if (params->scaling == KS_ROPE_LINEAR)
      f /= params->factor;
    if (params->scaling == KS_ROPE_YARN) {
      double keep = yarn_keep(params, i);

      f = f * keep + f / params->factor * (1.0 - keep);
    }
    out_inv_freq[i] = (float)f;
  }
  *out_mscale = params->attn_factor != 0.0f ? params->attn_factor : (float)default_mscale(params);
}

void
ks_rope_axes_blocks(const uint32_t sections[3], uint32_t n_freq, uint8_t *out_axis)
{
  for (uint32_t i = 0; i < n_freq; i++)
    out_axis[i] = i < sections[0] ? 0 : i - sections[0] < sections[1] ? 1 : 2;
}

void
ks_rope_axes_interleaved(const uint32_t sections[3], uint32_t n_freq, uint8_t *out_axis)
{
  for (uint32_t i = 0; i < n_freq; i++) {
    uint32_t axis = i % 3;

    out_axis[i] = axis != 0 && i / 3 < sections[axis] ? (uint8_t)axis : 0;
  }
}

int32_t
ks_rope_place_text(int32_t start, uint32_t n, size_t stride, int32_t *out_pos)
{
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t axis = 0; axis < 3; axis++)
      out_pos[axis * stride + i] = start + (int32_t)i;
  return start + (int32_t)n;
}

int32_t
ks_rope_place_image(int32_t start, uint32_t gh, uint32_t gw, size_t stride, int32_t *out_pos)
{
  for (uint32_t row = 0; row < gh; row++)
    for (uint32_t col = 0; col < gw; col++) {
      int32_t *p = out_pos + (size_t)row * gw + col;

      p[0] = start;
      p[stride] = start + (int32_t)row;
      p[2 * stride] = start + (int32_t)col;
    }
  return start + (int32_t)(gh > gw ? gh : gw);
}
