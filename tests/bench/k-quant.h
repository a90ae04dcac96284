/* k-quant.h - writes blocks of Q4_K and Q6_K, for model files to measure with.
 * Scales are searched for the least squared error of the values themselves; there are no importance
 * weights.  The engine only reads these types, so the writer lives with the measuring programs.
 * Source: docs/formats/quant-blocks.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/quant.h"

/* n_elem (a multiple of 256) values to blocks at dst; false for other types than Q4_K and Q6_K. */
KS_CHECK bool k_quantise_row(ks_dtype dtype, const float *src, void *dst, size_t n_elem);
