/* rope.h - rotary frequencies of every scaling type, and positions of text and images.
 * The kernels know only inverse frequencies, an axis per frequency and a magnitude.
 * Threads: pure functions.  Source: docs/method.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/status.h"

KS_BEGIN_DECLS

typedef enum ks_rope_scaling {
  KS_ROPE_NONE,
  KS_ROPE_LINEAR,
  KS_ROPE_YARN,
  KS_ROPE_LONGROPE
} ks_rope_scaling;

typedef struct ks_rope_params {
  uint32_t n_rot; /* even */
  float base;
  ks_rope_scaling scaling;
  float factor;        /* linear, yarn: divides frequencies; longrope: context / n_ctx_orig */
  uint32_t n_ctx_orig; /* yarn, longrope */
  float attn_factor;   /* 0 = the type's own default */
  float yarn_ext_factor, yarn_beta_fast,
      yarn_beta_slow;        /* yarn: 1, 32, 1 unless the file differs */
  const float *freq_factors; /* divisors [n_rot/2] (llama 3, longrope's chosen list) or NULL */
} ks_rope_params;

/* inv_freq [n_rot/2] and the factor that multiplies cos and sin.  Computed in double. */
void ks_rope_frequencies(const ks_rope_params *params, float *out_inv_freq, float *out_mscale);

/* Which position turns frequency i: 0 = t, 1 = h, 2 = w; sections counts frequencies per axis.
 * Blocks: first sections[0] take t, then sections[1] h, the rest w.
 * Interleaved: h at i % 3 == 1 below 3 * sections[1], w at i % 3 == 2 below 3 * sections[2], else
 * t. */
void ks_rope_axes_blocks(const uint32_t sections[3], uint32_t n_freq, uint8_t *out_axis);
void ks_rope_axes_interleaved(const uint32_t sections[3], uint32_t n_freq, uint8_t *out_axis);

/* Fill n (or gh * gw) columns of pos, three rows (t, h, w) that lie stride apart, and return the
 * position of what comes next.  Text: all three run on.  Image: t stays, h and w count grid cells.
 */
int32_t ks_rope_place_text(int32_t start, uint32_t n, size_t stride, int32_t *out_pos);
int32_t ks_rope_place_image(int32_t start, uint32_t gh, uint32_t gw, size_t stride,
                            int32_t *out_pos);

KS_END_DECLS
