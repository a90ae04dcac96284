/* dtype.h - element types of tensors and the sizes of their blocks.
 * Numbers are GGUF's own type ids.  Source: docs/formats/quant-blocks.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/status.h"

KS_BEGIN_DECLS

typedef enum ks_dtype {
  KS_DTYPE_F32 = 0,
  KS_DTYPE_F16 = 1,
  KS_DTYPE_Q4_0 = 2,
  KS_DTYPE_Q4_1 = 3,
  KS_DTYPE_Q5_0 = 6,
  KS_DTYPE_Q5_1 = 7,
  KS_DTYPE_Q8_0 = 8,
  KS_DTYPE_Q2_K = 10,
  KS_DTYPE_Q3_K = 11,
  KS_DTYPE_Q4_K = 12,
  KS_DTYPE_Q5_K = 13,
  KS_DTYPE_Q6_K = 14,
  KS_DTYPE_IQ4_NL = 20,
  KS_DTYPE_IQ4_XS = 23,
  KS_DTYPE_I32 = 26,
  KS_DTYPE_BF16 = 30,
  KS_N_DTYPE = 31
} ks_dtype;

typedef struct ks_dtype_info {
  const char *name;     /* "Q4_1" */
  uint32_t block_elems; /* elements per block */
  uint32_t block_bytes; /* bytes per block */
  bool is_quantised;
} ks_dtype_info;

/* NULL for an id this build does not know. */
const ks_dtype_info *ks_dtype_get_info(uint32_t id);
/* Bytes of a row of n elements; false when n is no multiple of the block or on overflow. */
KS_CHECK bool ks_dtype_row_bytes(ks_dtype dtype, uint64_t n_elem, size_t *out_bytes);
/* Type by name, case ignored ("f16", "q8_0"); false when unknown. */
KS_CHECK bool ks_dtype_parse(const char *name, ks_dtype *out);

/* IEEE half and bfloat16; from f32 with round to nearest even, NaN kept. */
float ks_f16_to_f32(uint16_t half);
uint16_t ks_f16_from_f32(float value);
float ks_bf16_to_f32(uint16_t half);
uint16_t ks_bf16_from_f32(float value);

KS_END_DECLS
