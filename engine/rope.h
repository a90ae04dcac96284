/* rope.h - rotary frequencies of every scaling type, and positions of text and images.
 * The kernels know only inverse frequencies, an axis per frequency and a magnitude.
 * Source: docs/method.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/status.h"

KS_BEGIN_DECLS

typedef enum ks_rope_scaling { KS_ROPE_NONE, KS_ROPE_LINEAR, KS_ROPE_YARN, KS_ROPE_LONGROPE } ks_rope_scaling;

typedef struct ks_rope_params {
  uint32_t n_rot;
  float base;
  ks_rope_scaling scaling;
  float factor;              /* linear, yarn: >= 1 */
  uint32_t n_ctx_orig;       /* yarn, longrope */
  float attn_factor;         /* 0 = the type's own default */
  float yarn_ext_factor, yarn_beta_fast, yarn_beta_slow; /* yarn: 1, 32, 1 unless the file says else */
  const float *freq_factors; /* divisors [n_rot/2] (llama 3, longrope's chosen list) or NULL */
} ks_rope_params;

/* inv_freq [n_rot/2] and the factor that multiplies cos and sin.  Computed in double. */
void ks_rope_frequencies(const ks_rope_params *params, float *out_inv_freq, float *out_mscale);

KS_END_DECLS
