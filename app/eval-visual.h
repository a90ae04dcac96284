/* eval-visual.h - visual haystacks that need no data: pictures drawn by the program, some of them
 * evidence, the rest distractors, and questions about them.  Same kind and options: same pictures
 * and words on every machine with the same cairo (no font takes part).  N = 1 tells seeing from
 * remembering.  Source: docs/formats/evaluation.md.  Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/eval-item.h"

G_BEGIN_DECLS

/* "visual-yesno" (does the picture with the anchor also contain a target?), "visual-index" (which
 * picture holds it?), "visual-code" (five characters in one picture), "visual-all", "visual-any",
 * "visual-count" (two or three targets in different pictures), "visual-grid" (picture, row, column
 * of a cell), "visual-text" (a sentence among the pictures), "visual-turns" (one picture a turn,
 * asked at the end), NULL. */
extern const char *const ks_eval_visual_kinds[];

typedef struct {
  guint64 seed;
  guint index;     /* number of the item in its series */
  guint n_picture; /* N, 1 to 50 */
  guint position;  /* of the evidence, from 0, below N */
  guint grid;      /* cells in a row and a column of visual-grid, 1 to 4 */
  guint size_px;   /* side of a picture, 64 to 1024 */
  gboolean easy;   /* distractors of unlike shapes; else the same shape in another colour */
  gboolean after;  /* the question comes in a turn of its own, after the pictures */
} KsEvalVisualOptions;

gboolean ks_eval_visual_is_kind (const char *bench);
/* part: "N/position", position in per cent of N - 1.  NULL and a sentence when an option is out of
 * its range. */
KsEvalItem *ks_eval_visual_make (const char *kind, const KsEvalVisualOptions *options,
                                 GError **error);

/* Metrics of a kind, the headline first, NULL-terminated. */
const char *const *ks_eval_visual_get_metrics (const char *kind);
/* One of them, 0 or 1.  Yes and no as MME reads them; numbers: the first of the answer; codes: as a
 * word of the answer, case ignored. */
double ks_eval_visual_score (const char *kind, const char *metric, const char *prediction,
                             const char *const *expect);

G_END_DECLS
