/* cpu-split-internal.h - an output matrix of q8_0 in two halves, so that the search for the best
 * logits reads one of them: code = 16 (n - 8) + low with n and low in 0 .. 15.
 *   high   strips of Q4_0 (cpu-packed-internal.h): n, and the scales as they are in the file
 *   low    strips of nibbles alone, in the same order
 *   groups [n_in / 32] f32: how large the scales of each group are, a mean of some rows
 *   spread [rows] f32: of a row, the mean of its scales over those; both are root mean squares
 * Together they take the bytes of the file and are joined to the same blocks, bit by bit.  Beside
 * them stand the columns that inputs load most, as strips of q8_0 of KS_SPLIT_COLUMNS columns: what
 * their low halves are off the middle, chosen from inputs and filled later.
 * Threads: pure functions.  Why: docs/adr/0022-split-output.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/cpu-packed-internal.h"

KS_BEGIN_DECLS

#define KS_SPLIT_STEP 16.0F  /* what one step of n is worth */
#define KS_SPLIT_MIDDLE 7.5F /* the middle of low */
#define KS_SPLIT_COLUMNS 32u

/* Which columns; all 0 at first. */
typedef struct ks_split_columns {
  bool is_filled;
  uint32_t age; /* searches so far */
  uint32_t at[KS_SPLIT_COLUMNS];
} ks_split_columns;

typedef struct ks_split_form {
  uint32_t strip_rows, n_in, n_row;
  size_t n_strip, high_bytes, low_bytes; /* strips, and bytes of a strip of each half */
  size_t whole_bytes, column_bytes;      /* of a joined strip, and of one of the columns */
  size_t low_at, groups_at, spread_at, choice_at, columns_at, n_bytes; /* offsets, and the whole */
} ks_split_form;

/* False where a matrix has no such form. */
bool ks_split_get_form(const ks_weight *w, uint32_t strip_rows, ks_split_form *out);
/* Fills groups; before the first strip. */
void ks_split_fill_groups(const ks_split_form *form, const ks_weight *w, unsigned char *split);
/* Splits strip s of a matrix. */
void ks_split_fill_strip(const ks_split_form *form, const ks_weight *w, size_t s,
                         unsigned char *split);
/* Fills strip s of the columns. */
void ks_split_fill_columns(const ks_split_form *form, const uint32_t columns[KS_SPLIT_COLUMNS],
                           size_t s, unsigned char *split);
/* Joins a strip: q8_0 as it would be repacked, whole_bytes. */
void ks_split_join_strip(const ks_cpu_packed_fns *fns, const ks_split_form *form,
                         const unsigned char *split, size_t s, unsigned char *out);
/* The elements of a row, bit by bit those of ks_dequantise_row. */
void ks_split_read_row(const ks_split_form *form, const unsigned char *split, size_t row,
                       float *out);

KS_END_DECLS
