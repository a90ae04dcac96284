/* eval-score.h - what prediction rows are worth: every row through the scorer of its bench.
 * No model is needed.  A row brings its references with it; rows of others get them from the items
 * (ks_eval_score_complete).  Threads: pure functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/eval-item.h"

G_BEGIN_DECLS

typedef enum {
  KS_EVAL_OFFICIAL, /* the raw reply, as the organisers' tools read it */
  KS_EVAL_HARNESS   /* through the parser for reasoning models first, as lmms-eval does */
} KsEvalScorer;

const char *ks_eval_scorer_get_name (KsEvalScorer scorer); /* "official" */

/* Metrics of a bench, the headline first, NULL-terminated.  Benches that are not known have
 * "recall": the part of the expected texts that stand in the reply. */
const char *const *ks_eval_get_metrics (const char *bench);

/* Scores of all rows, in their order: its metrics, and every measured value under its own name
 * ("nll" with "n_scored" gives "loss" besides).  MME: "pair" stands with the second question of a
 * picture; "agreement" with rows of "-forced" where the file has the full cache's.  A row without
 * references, or one that does not suit its bench, is an error. (of KsEvalScore, which borrow from
 * the rows; transfer full) */
GArray *ks_eval_score_rows (const GPtrArray *rows, KsEvalScorer scorer, GError **error);

/* Fills in part, group, references and options of rows that lack them, by bench, id and turn. */
void ks_eval_score_complete (GPtrArray *rows, const GPtrArray *items);

G_END_DECLS
