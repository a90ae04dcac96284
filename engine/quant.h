/* quant.h - blocks of every supported type to f32 and back: the plain reference.
 * Dequantising is bit-exact: product and sum are separate f32 operations, no fused multiply-add.
 * Source: docs/formats/quant-blocks.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/dtype.h"

KS_BEGIN_DECLS

/* n_elem elements (a multiple of the block) from blocks at src (any alignment) to dst [n_elem]. */
void ks_dequantise_row(ks_dtype dtype, const void *src, float *dst, size_t n_elem);

/* f32 to F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0: nearest code for the block's own scale.
 * Returns false for other types. */
KS_CHECK bool ks_quantise_row(ks_dtype dtype, const float *src, void *dst, size_t n_elem);

/* The values that the codes of IQ4_NL and IQ4_XS stand for. */
extern const int8_t ks_iq4_values[16];

KS_END_DECLS
