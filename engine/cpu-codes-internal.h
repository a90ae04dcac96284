/* cpu-codes-internal.h - attention of few queries over q8_0 keys and values in whole numbers: the
 * fast mode's way.  Queries become codes of 16 bits with one scale a row; a product of codes is
 * exact, the scales of the blocks come behind it.  Weights of values become codes of 16 bits too,
 * relative to the largest of the block of keys, so that 64 values are added up as whole numbers.
 * Both roundings are 1/65534 of the largest number, far below those of the stored codes.
 * Every table gives the same whole numbers; f32 sums differ in the last bits.
 * Threads: pure functions.  Source: docs/method.md, section 5. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/cpu-backend-internal.h"

KS_BEGIN_DECLS

#define KS_CODES_ROWS 64u /* rows of a block at most */
#define KS_CODES_QUAD 4u  /* rows that lie side by side: a page holds a multiple of them */
#define KS_CODES_MOST 32767.0F
#define KS_CODES_LEAST 1e-30F /* rows whose largest number is smaller count as 0 */
#define KS_Q8_BLOCK 32u       /* codes under one scale */
#define KS_Q8_BYTES 34u       /* f16 scale, then the codes */

/* A block of stored rows of whole q8_0 blocks.  The rows of the last quad behind n_row may hold
 * anything, but can be read. */
typedef struct ks_codes_rows {
  const unsigned char *quad[KS_CODES_ROWS / KS_CODES_QUAD];
  size_t n_row, row_bytes;
  const struct ks_codes_rows *ahead; /* is read next: the processor is asked for it on the way;
                                        NULL = nothing */
} ks_codes_rows;

typedef struct ks_cpu_codes_fns {
  const char *name;
  /* codes [n] = x / scale, rounded; returns scale.  n is a multiple of KS_Q8_BLOCK. */
  float (*quantise)(int16_t *codes, const float *x, size_t n);
  /* s[a * s_stride + j] = q_scale[a] * (q[a * q_stride ...] . rows[j]), n_block blocks a row; up to
   * three numbers behind the last row are written as well. */
  void (*qk)(float *s, size_t s_stride, const int16_t *q, size_t q_stride, const float *q_scale,
             size_t n_q, const ks_codes_rows *rows, size_t n_block);
  /* acc[a * acc_stride ...] += sum over j of p[a * p_stride + j] * rows[j]; p >= 0 and finite. */
  void (*pv)(float *acc, size_t acc_stride, const float *p, size_t p_stride, size_t n_q,
             const ks_codes_rows *rows, size_t n_block);
} ks_cpu_codes_fns;

extern const ks_cpu_codes_fns ks_cpu_codes_scalar;
extern const ks_cpu_codes_fns ks_cpu_codes_avx2;
extern const ks_cpu_codes_fns ks_cpu_codes_avxvnni; /* where KS_BUILT_AVXVNNI is set */
extern const ks_cpu_codes_fns ks_cpu_codes_avx512;
extern const ks_cpu_codes_fns ks_cpu_codes_avx512vnni;       /* where KS_BUILT_AVX512VNNI is set */
extern const ks_cpu_codes_fns ks_cpu_codes_avxvnni_emulated; /* these in the tests only */
extern const ks_cpu_codes_fns ks_cpu_codes_avx512_emulated;
extern const ks_cpu_codes_fns ks_cpu_codes_avx512vnni_emulated;

KS_END_DECLS
