/* cpu-matmul-internal.h - what an instruction set has to bring to matrix products.
 * ks_cpu_linear (cpu-matmul.c) cuts an operation into units of rows and knows two ways:
 *   many tokens: blocks of weight rows are unpacked once into panels [n_k, panel_rows] of f32 and
 *                multiplied with tiles of tile_tok tokens held in registers;
 *   few tokens:  each weight row is unpacked in registers and multiplied at once (multiply_rows); a
 *                unit's rows stay in the cache from token to token.
 * Threads: pure functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/cpu-backend-internal.h"

KS_BEGIN_DECLS

#define KS_MATMUL_FEW 4u        /* tokens up to which multiply_rows is used */
#define KS_MATMUL_MAX_PANEL 64u /* a multiple of every panel_rows */

/* n_elem elements, whole blocks, from any address to f32. */
typedef void (*ks_unpack_fn)(ks_dtype dtype, const void *blocks, float *dst, size_t n_elem);

/* Rows of one weight times a few tokens. */
typedef struct ks_rows_job {
  ks_dtype dtype;
  const unsigned char *rows;
  size_t row_bytes, n_row, n_in, n_tok;
  const float *x;              /* [n_tok, n_in]; packed where the type asks for it */
  float *out;                  /* [n_tok, n_row] */
  size_t x_stride, out_stride; /* floats from token to token */
} ks_rows_job;

typedef struct ks_cpu_matmul_fns {
  uint32_t panel_rows, tile_tok;
  ks_unpack_fn unpack[KS_N_DTYPE];
  void (*multiply_rows[KS_N_DTYPE])(const ks_rows_job *job);
  bool wants_packed[KS_N_DTYPE]; /* multiply_rows reads x in the order of pack */
  /* x in the order in which codes are taken apart; n_in is a multiple of 32. */
  size_t (*pack_size)(size_t n_in); /* floats */
  void (*pack)(const float *x, size_t n_in, float *out);
  /* rows [panel_rows], row_stride apart, first n_k columns -> panel [n_k, panel_rows] */
  void (*transpose)(const float *rows, size_t row_stride, size_t n_k, float *panel);
  /* c[t, 0..panel_rows-1] (+)= sum over k of x[t, k] panel[k, :], n_tok <= tile_tok */
  void (*multiply_tile)(const float *panel, size_t n_k, const float *x, size_t x_stride,
                        size_t n_tok, float *c, size_t c_stride, bool add);
  void (*act_row)(ks_act act, float *z, size_t n);
} ks_cpu_matmul_fns;

/* BF16 weights in fast mode where the processor multiplies pairs of bfloat16.  Panels and rounded
 * activations hold pairs of neighbouring columns, a word each; an odd last column gets a 0. */
typedef struct ks_cpu_bf16_fns {
  uint32_t panel_rows, tile_tok;
  /* n values to the nearest bfloat16, ties to even; out has room for an even number of them */
  void (*round_row)(const float *x, size_t n, uint16_t *out);
  void (*multiply_rows)(const ks_rows_job *job); /* few tokens; rounds job->x by itself */
  /* n_row <= panel_rows rows, first n_k columns -> panel [(n_k + 1) / 2, panel_rows] */
  void (*fill_panel)(const unsigned char *rows, size_t row_bytes, size_t n_row, size_t n_k,
                     uint32_t *panel);
  /* as multiply_tile above; n_pair and x_stride count pairs */
  void (*multiply_tile)(const uint32_t *panel, size_t n_pair, const uint16_t *x, size_t x_stride,
                        size_t n_tok, float *c, size_t c_stride, bool add);
} ks_cpu_bf16_fns;

#if defined(__x86_64__)
extern const ks_cpu_matmul_fns ks_cpu_matmul_avx2;
extern const ks_cpu_matmul_fns ks_cpu_matmul_avx512;
extern const ks_cpu_bf16_fns ks_cpu_matmul_bf16;          /* where KS_BUILT_AVX512BF16 is set */
extern const ks_cpu_bf16_fns ks_cpu_matmul_bf16_emulated; /* in the tests only */
#endif

KS_END_DECLS
