/* cpu-attention-internal.h - the working set of one tile of queries against keys read in blocks:
 * scores, running maximum and sum, and the unnormalised output (online softmax).
 * Threads: a tile belongs to one member. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/cpu-codes-internal.h"
#include "engine/cpu-kv-internal.h"

KS_BEGIN_DECLS

#define KS_ATTN_KEYS 64u /* keys in one block */
#define KS_ATTN_ROWS 96u /* query rows of a full tile; fewer when the work is small */

typedef struct ks_attn_tile {
  size_t k_dim, v_dim, k_pad, v_pad;
  size_t n_row;
  float *q;          /* [rows, k_pad], times the scale, padded with zeros */
  int16_t *codes;    /* [rows, k_pad] the same as codes of 16 bits */
  float *code_scale; /* [rows] */
  float *s;          /* [rows, KS_ATTN_KEYS] scores, then weights */
  float *keys_t;     /* [k_dim, KS_ATTN_KEYS] one block of keys, transposed */
  float *block;      /* [KS_ATTN_KEYS, max(k_pad, v_pad)] unpacked keys or values */
  uint32_t *lo, *hi; /* [rows] keys seen: lo <= index < hi */
  float *acc;        /* [rows, v_pad] sum of weight * value */
  float *max, *sum;  /* [rows] */
} ks_attn_tile;

/* Bytes of a tile of at most max_row rows, and of its result alone (acc, max, sum). */
size_t ks_attn_tile_bytes(size_t max_row, size_t k_dim, size_t v_dim);
size_t ks_attn_result_bytes(size_t max_row, size_t v_dim);
/* Lays the tile out in memory (aligned to 64). */
void ks_attn_tile_init(ks_attn_tile *tile, void *memory, size_t max_row, size_t k_dim,
                       size_t v_dim);
/* Puts the result elsewhere: member results that are combined later. */
void ks_attn_tile_set_result(ks_attn_tile *tile, void *memory, size_t max_row);
/* Forgets what was summed up. */
void ks_attn_tile_reset(ks_attn_tile *tile);
void ks_attn_tile_set_query(ks_attn_tile *tile, size_t row, const float *q, float scale);
/* s = q . keys for the n keys that lie in block, k_pad floats a row. */
void ks_attn_tile_score(ks_attn_tile *tile, const ks_cpu_vec_fns *vec, size_t n);
/* Makes the codes of the queries that were set. */
void ks_attn_tile_set_codes(ks_attn_tile *tile, const ks_cpu_codes_fns *fns);
/* Turns the scores of keys first .. first + n - 1 into weights and updates maximum, sum and acc. */
void ks_attn_tile_softmax(ks_attn_tile *tile, const ks_cpu_vec_fns *vec, uint32_t first,
                          uint32_t n);
/* acc += weights * the n values that lie in block, v_pad floats a row. */
void ks_attn_tile_add_values(ks_attn_tile *tile, const ks_cpu_vec_fns *vec, size_t n);

/* Entries of a stream: a block that is read after the present one.  n 0: there is none. */
typedef struct ks_attn_place {
  ks_cpu_stream stream;
  uint32_t first, n;
} ks_attn_place;

/* Rows of a block, and of two blocks of one stream in turn: the present one and what follows. */
typedef struct ks_attn_rows {
  ks_codes_rows keys, values;
} ks_attn_rows;

typedef struct ks_attn_walk {
  ks_attn_rows rows[2];
  uint32_t at; /* the present one */
  bool ready;  /* its rows are known */
} ks_attn_walk;

/* The kernels for codes that this layout may be read with, NULL for none. */
const ks_cpu_codes_fns *ks_attn_codes_get(const ks_cpu_ctx *ctx, const ks_kv_layout *layout);
/* The whole of a block of q8_0 entries: scores, weights and values.  The walk begins at 0, not
 * ready; then each block is what was next at the one before, or a beginning of it. */
void ks_attn_tile_add_codes(ks_attn_tile *tile, const ks_cpu_vec_fns *vec,
                            const ks_cpu_codes_fns *fns, ks_attn_walk *walk,
                            const ks_attn_place *here, const ks_attn_place *next);

/* The finished row; zeros when it saw no key. */
void ks_attn_tile_get_row(const ks_attn_tile *tile, const ks_cpu_vec_fns *vec, size_t row,
                          float *out);

/* Intersection of [lo, hi) with the block [first, first + n), relative to first; empty as 0, 0. */
static inline void
ks_attn_clip(uint32_t lo, uint32_t hi, uint32_t first, uint32_t n, uint32_t *begin, uint32_t *end)
{
  const uint32_t from = lo > first ? lo : first, to = hi < first + n ? hi : first + n;

  *begin = from < to ? from - first : 0;
  *end = from < to ? to - first : 0;
}

KS_END_DECLS
