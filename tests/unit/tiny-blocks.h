/* tiny-blocks.h - rows of any weight type for made-up models: quantised where the engine can, else
 * random codes under a scale that keeps the largest value where it is wanted. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/quant.h"
#include "tests/ks-test.h"

/* Where a block has its half-precision scales; every value is linear in them. */
static inline void
tiny_set_scales(ks_dtype type, unsigned char *block, float scale)
{
  static const struct {
    ks_dtype type;
    int first, second;
  } at[] = {{KS_DTYPE_Q2_K, 80, 82}, {KS_DTYPE_Q3_K, 108, -1}, {KS_DTYPE_Q4_K, 0, 2},
            {KS_DTYPE_Q5_K, 0, 2},   {KS_DTYPE_Q6_K, 208, -1}, {KS_DTYPE_IQ4_NL, 0, -1},
            {KS_DTYPE_IQ4_XS, 0, -1}};
  const uint16_t d = ks_f16_from_f32(scale);

  for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
    if (at[i].type != type)
      continue;
    memcpy(block + at[i].first, &d, 2);
    if (at[i].second >= 0)
      memcpy(block + at[i].second, &d, 2);
  }
}

/* n_elem elements (whole blocks) of type to out: src, or codes as its bits fall, as large as src's
 * largest value. */
static inline void
tiny_fill_row(ks_dtype type, const float *src, size_t n_elem, unsigned char *out)
{
  const ks_dtype_info *info = ks_dtype_get_info(type);
  float values[256], most, want;
  size_t n_block = n_elem / info->block_elems;

  if (ks_quantise_row(type, src, out, n_elem))
    return;
  for (size_t b = 0; b < n_block; b++, src += info->block_elems, out += info->block_bytes) {
    for (size_t i = 0; i < info->block_bytes; i++) {
      uint32_t bits;

      memcpy(&bits, src + i % info->block_elems, sizeof bits);
      out[i] = (unsigned char)(bits >> 7 ^ i * 29);
    }
    tiny_set_scales(type, out, 1.0f);
    ks_dequantise_row(type, out, values, info->block_elems);
    most = want = 0;
    for (size_t i = 0; i < info->block_elems; i++) {
      most = fabsf(values[i]) > most ? fabsf(values[i]) : most;
      want = fabsf(src[i]) > want ? fabsf(src[i]) : want;
    }
    tiny_set_scales(type, out, want / most);
  }
}

/* A whole matrix; the caller frees. */
static inline unsigned char *
tiny_new_blocks(ks_dtype type, const float *src, uint64_t n_in, uint64_t n_out)
{
  unsigned char *blocks;
  size_t row_bytes = 0;

  KS_ASSERT(ks_dtype_row_bytes(type, n_in, &row_bytes));
  blocks = malloc(row_bytes * n_out);
  KS_ASSERT(blocks != NULL);
  for (uint64_t r = 0; r < n_out; r++)
    tiny_fill_row(type, src + r * n_in, n_in, blocks + r * row_bytes);
  return blocks;
}
