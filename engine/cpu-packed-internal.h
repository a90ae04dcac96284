/* cpu-packed-internal.h - weights repacked for the CPU: the layout, and what kernels read it.
 * A strip is strip_rows (R) neighbouring rows, the last one filled up with rows of zeros.  Along k
 * a strip is a list of blocks; a block holds 32 elements of each row (256 for types with
 * super-blocks) as planes, one value a row: first the scales, then the codes.  A plane of codes is
 * R words of 32 bits, lane r = row r, so that one vector holds four consecutive elements of all
 * rows: W[j], j = 0..7, are the elements 4j .. 4j + 3 of a group of 32.  Kernels keep rows in lanes
 * and never add up inside a vector.  Why: docs/adr/0014-packed-weights.md.  Layout of every type:
 * cpu-packed.c. Threads: pure functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/cpu-backend-internal.h"

KS_BEGIN_DECLS

#define KS_PACKED_GROUP 32u     /* elements that share a scale of the activations */
#define KS_PACKED_MAX_ROWS 16u  /* the largest strip_rows */
#define KS_PACKED_MAX_STRIPS 8u /* strips of one tile or panel at most */

/* Activations of n_tok tokens as products read them, made once per operation by ks_cpu_acts_fill.
 * fast: q, d; sums are those of the quantised values.  exact: x; sums of x itself. */
typedef struct ks_cpu_acts {
  size_t n_in;     /* multiple of 32 */
  const float *x;  /* [n_tok, x_stride]; exact only */
  size_t x_stride; /* floats */
  int8_t *q;       /* [n_tok, n_in], -127 .. 127; fast only, else NULL */
  float *d;        /* [n_tok, n_in / 32] x = d * q; fast only */
  float *sum;      /* [n_tok, n_in / 32] sum of x (fast: d * sum of q) over each 32 */
  float *half_sum; /* [n_tok, n_in / 16] the same over each 16 */
  /* Fast only: pairs of 16-bit numbers, the first for codes 0 and 1 of each four, the second for
   * codes 2 and 3.  Sums of those codes over each 32, times -16, and over each 16, times -32: what
   * products of codes of five and of six bits start from, so that they count from the middle and
   * their sums fit into 16 bits. */
  uint32_t *centre, *half_centre; /* [n_tok, n_in / 32], [n_tok, n_in / 16] */
} ks_cpu_acts;

/* Some strips of one weight times at most KS_MATMUL_FEW tokens (decoding). */
typedef struct ks_packed_job {
  const unsigned char *strips; /* the first one, at k = 0 */
  size_t strip_bytes, n_strip;
  const ks_cpu_acts *acts;
  uint32_t n_tok;
  float *out; /* [n_tok, out_stride], n_strip * strip_rows are written */
  size_t out_stride;
} ks_packed_job;

/* Codes of one strip, taken apart for products with many tokens in fast mode, as the tiles of the
 * same table want them. */
typedef struct ks_packed_panel {
  unsigned char *q; /* [n_k / 4, R, 4]; signed where codes_signed says so */
  float *d, *m;     /* [n_k / group, R] scales and offsets */
} ks_packed_panel;

/* A tile of fast products: c[t, s * R + r] (+)= x[t] . row r of strip s, n_k elements. */
typedef struct ks_packed_tile {
  const ks_packed_panel *panels; /* [n_strip] neighbouring strips */
  size_t n_strip;                /* 1 .. tile_strips */
  size_t n_k;                    /* multiple of 32 */
  const int8_t *q;               /* [n_tok, n_in] at column k of the first token */
  const float *d, *sum;          /* at group k / 32; sum: half_sum at k / 16 where group is 16 */
  const uint32_t *centre;        /* at the same place as sum: half_centre where group is 16 */
  size_t n_in;                   /* of acts: strides of q, d and sum follow from it */
  size_t n_tok;                  /* 1 .. tile_tok */
  float *c;
  size_t c_stride;
  bool add;
} ks_packed_tile;

/* What a type is to the kernels; NULL function = the type has no packed form. */
typedef struct ks_packed_kernel {
  uint32_t group; /* 32, or 16: elements that share a scale of the weights */
  bool codes_signed;
  void (*rows_exact)(const ks_packed_job *job);
  void (*rows_fast)(const ks_packed_job *job);
  /* n_k elements (whole blocks) from strip on, which points at a block. */
  void (*fill_exact)(const unsigned char *strip, size_t n_k, float *panel, size_t panel_stride);
  void (*fill_fast)(const unsigned char *strip, size_t n_k, const ks_packed_panel *panel);
  void (*tile_fast)(const ks_packed_tile *tile);
} ks_packed_kernel;

/* Of an instruction set. */
typedef struct ks_cpu_packed_fns {
  uint32_t strip_rows;            /* R: 8 or 16 */
  uint32_t tile_strips, tile_tok; /* the largest tile_fast */
  /* Joins a group of 32 columns of a split matrix (cpu-split-internal.h): 16 R bytes of either half
   * to the S words of q8_0.  NULL = matrices are not split: that takes rows_* that take the 8 of
   * codes of Q4_0 off as 8 d times acts.sum, so that other sums make another zero of it. */
  void (*join)(const unsigned char *high, const unsigned char *low, unsigned char *out);
  ks_packed_kernel kernels[KS_N_DTYPE];
  /* One token: n_in floats to q, d, sum, half_sum (fast), or sum and half_sum (exact, q NULL).
   * d is the largest magnitude of 32 elements / 127, codes are rounded to nearest.  Codes are 0 in
   * a group below 1e-30.  A group with infinities or NaN has a d that is not finite and any codes,
   * so that what comes of it is no number, as in exact mode. */
  void (*fill_acts)(const float *x, size_t n_in, int8_t *q, float *d, float *sum, float *half_sum);
  /* The centres of one token from its codes; NULL where tiles need none. */
  void (*fill_centres)(const int8_t *q, size_t n_in, uint32_t *centre, uint32_t *half_centre);
} ks_cpu_packed_fns;

/* Elements and bytes of one row's share of a block; 0 bytes when the type has no packed form. */
typedef struct ks_packed_format {
  uint32_t block_elems, row_bytes;
} ks_packed_format;

ks_packed_format ks_packed_get_format(ks_dtype dtype);

/* Planes of a block; a group's words stand in the order pairs (T), high bits (H), nibbles (N),
 * bytes (S). */
typedef struct ks_packed_layout {
  uint32_t block_elems; /* 0 = the type has no packed form */
  uint8_t n_half;       /* half precision: d, then m or dmin */
  uint8_t n_scale;      /* bytes: scales of all groups, then their minima */
  uint8_t n_pair, n_high, n_nibble, n_byte;
  int8_t zero; /* the code that stands for 0 */
} ks_packed_layout;

const ks_packed_layout *ks_packed_get_layout(ks_dtype dtype);
/* Bytes of a strip of n_in elements: n_in / block_elems * row_bytes * R. */
size_t ks_packed_strip_bytes(ks_dtype dtype, size_t n_in, uint32_t strip_rows);
/* Packs elements k .. k + n_k - 1 (whole blocks) of n_row (1 .. R) rows into one strip. */
void ks_packed_fill_strip(ks_dtype dtype, const unsigned char *rows, size_t row_bytes, size_t n_row,
                          size_t k, size_t n_k, uint32_t strip_rows, unsigned char *strip);
/* The plain reading of group g (32 elements) of a strip: codes as integers, and scale and offset of
 * each half of the group; value = d * code + m, computed as in ks_dequantise_row. */
typedef struct ks_packed_group {
  int16_t code[32][KS_PACKED_MAX_ROWS];
  float d[2][KS_PACKED_MAX_ROWS], m[2][KS_PACKED_MAX_ROWS];
} ks_packed_group;
void ks_packed_read_group(ks_dtype dtype, const unsigned char *strip, size_t g, uint32_t strip_rows,
                          ks_packed_group *out);
/* Elements of one row of a whole matrix of strips, bit by bit those of ks_dequantise_row. */
void ks_packed_read_row(ks_dtype dtype, const unsigned char *strips, size_t strip_bytes,
                        uint32_t strip_rows, size_t row, float *out, size_t n_in);

extern const ks_cpu_packed_fns ks_cpu_packed_scalar;
#if defined(__x86_64__)
extern const ks_cpu_packed_fns ks_cpu_packed_avx2;
extern const ks_cpu_packed_fns ks_cpu_packed_avxvnni; /* where KS_BUILT_AVXVNNI is set */
extern const ks_cpu_packed_fns ks_cpu_packed_avx512;
extern const ks_cpu_packed_fns ks_cpu_packed_avx512vnni; /* where KS_BUILT_AVX512VNNI is set */
extern const ks_cpu_packed_fns ks_cpu_packed_avxvnni_emulated; /* these in the tests only */
extern const ks_cpu_packed_fns ks_cpu_packed_avx512_emulated;
extern const ks_cpu_packed_fns ks_cpu_packed_avx512vnni_emulated;
#endif
/* The table for an instruction set; never NULL.  vnni: with its eight-bit dot products. */
const ks_cpu_packed_fns *ks_cpu_packed_get(ks_isa isa, bool vnni);

/* The table's repack_bytes and weight_repack. */
size_t ks_cpu_repack_bytes(const ks_cpu_ctx *ctx, const ks_weight *w);
void ks_cpu_weight_repack(const ks_cpu_ctx *ctx, ks_weight *w, ks_dptr dst);

/* Bytes of acts of n_tok tokens, and cutting them out of one block aligned to 64. */
size_t ks_cpu_acts_bytes(size_t n_in, size_t n_tok, bool fast);
void ks_cpu_acts_init(ks_cpu_acts *acts, void *block, size_t n_in, size_t n_tok, bool fast);
/* Fills tokens begin .. end - 1 from x [n_tok, x_stride]. */
void ks_cpu_acts_fill(const ks_cpu_ctx *ctx, ks_cpu_acts *acts, const float *x, size_t x_stride,
                      size_t begin, size_t end);

KS_END_DECLS
