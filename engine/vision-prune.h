/* vision-prune.h - fewer tokens of a picture: VisionZip before the language model sees it, FastV in
 * the middle of its prefill.  What is chosen, from numbers that others have measured; nothing here
 * runs a model.
 * Threads: pure functions.  Source: docs/method.md, section 13. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/alloc.h"

KS_BEGIN_DECLS

/* VisionZip: of every view the tokens that receive most attention in the tower stay, the others are
 * merged into a few.  A view of fewer tokens in all is left as it is. */
typedef struct ks_vision_zip {
  uint32_t n_dominant; /* that stay, a class token included; 0 = off */
  uint32_t n_context;  /* that the others are merged into; 0 = the others are dropped */
} ks_vision_zip;

/* Tokens that are left of a view of n_tok; with a class token one more may be kept. */
uint32_t ks_vision_zip_count(const ks_vision_zip *zip, uint32_t n_tok, bool has_class);

/* What becomes of the tokens of one view. */
typedef struct ks_zip_choice {
  uint32_t n_tok;
  bool has_class;      /* the class token is the first of those that stay */
  uint32_t n_dominant; /* without the class token */
  uint32_t n_context;
  uint32_t *dominant; /* [n_dominant] rising */
  uint32_t *target;   /* [n_context] rising: those that take others in */
  uint32_t *group;    /* [n_tok] index in target, KS_ZIP_NONE: goes nowhere */
} ks_zip_choice;

#define KS_ZIP_NONE UINT32_MAX

/* received [n_tok]: attention that each token gets; metric [n_tok, n_dim]: what likeness is judged
 * by (cosine).  The n_dominant largest stay (equal: the first one); from the rest n_context are
 * taken at even distances, and each of the others goes to the one most like it.  n_tok must be more
 * than ks_vision_zip_count leaves.  The caller clears *out.  KS_ERR_NOMEM. */
KS_CHECK ks_status ks_zip_choose(ks_alloc *a, const ks_vision_zip *zip, bool has_class,
                                 const float *received, const float *metric, uint32_t n_tok,
                                 uint32_t n_dim, ks_zip_choice *out, ks_error *err);
void ks_zip_choice_clear(ks_zip_choice *choice); /* a zeroed one is allowed */
/* Rows that stay: the class token, the dominant ones, the targets, each with the mean of what goes
 * to it added.  rows [n_tok, width]; class_row [width] or NULL; out [kept, width]. */
KS_CHECK ks_status ks_zip_merge(ks_alloc *a, const ks_zip_choice *choice, const float *class_row,
                                const float *rows, size_t width, float *out, ks_error *err);
/* Where each row that stays stood among the n_tok; a class token: 0. */
void ks_zip_get_places(const ks_zip_choice *choice, uint32_t *out);

/* FastV: a pass goes through the first layers whole; then the picture's tokens that the last token
 * looks at least are left out of all layers that follow.  Positions stay. */
typedef struct ks_fastv {
  uint32_t layer; /* K: layers that see everything; 0 = off */
  double drop;    /* R: the part of the tokens that goes, 0 to 1 */
} ks_fastv;

typedef struct ks_prune_rank {
  float value;
  uint32_t index;
} ks_prune_rank;

/* ranks [n]: values and indices (0 .. n - 1) of tokens, by the attention they got from the last
 * one; sorted here.  R * n of them (rounded down) go: those with the least, of equal ones the last.
 * Returns how many stay, at the front of ranks. */
uint32_t ks_fastv_choose(const ks_fastv *fastv, ks_prune_rank *ranks, uint32_t n);

KS_END_DECLS
