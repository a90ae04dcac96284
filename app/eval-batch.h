/* eval-batch.h - items asked in every cell, answers into a run file: what stands there already is
 * left out, so that a stopped run goes on.  Threads: engine. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/eval-session.h"

G_BEGIN_DECLS

/* n_done of n_total items of all cells; what: the cell that is worked on.  Called before each. */
typedef void (*KsEvalProgress) (const KsEvalCell *cell, guint n_done, guint n_total, gpointer user);

typedef struct {
  GPtrArray *items; /* of KsEvalItem, templates filled in */
  GArray *cells;    /* of KsEvalCell */
  KsEvalAsk ask;
  KsEvalProgress progress; /* or NULL */
  gpointer user;
} KsEvalBatch;

/* The rows of an item are written when all of its turns are answered.  Cancelled: what was written
 * stays. */
gboolean ks_eval_batch_run (const KsEvalBatch *batch, KsEngineSetup *setup, KsEvalRunFile *file,
                            GError **error);

/* Policies, budgets, seeds and modes to cells, those of a policy together.  Policies that never
 * evict get one cell a question, those without chance one seed.  questions: "" alone where there is
 * no choice.  NULL and a sentence for what ks_eval_policy_parse refuses. */
typedef struct {
  char **policies, **modes, **questions;
  const char *looks;  /* appended to every policy: how pictures were thinned out
                         ("+visionzip-54-10"),  a fact of the setup; NULL = not at all */
  const char *budget; /* "fixed" or "text" */
  const guint64 *entries, *seeds;
  guint n_entries, n_seed;
} KsEvalGrid;

/* (of KsEvalCell, transfer full) */
GArray *ks_eval_grid_make_cells (const KsEvalGrid *grid, GError **error);

/* Facts that all rows of a run have in common: hashes of model, gate, vision model (NULL = none)
 * and of the vocabulary, arithmetic, types, passes. (transfer full) */
cJSON *ks_eval_batch_make_header (const KsEngineSetup *setup, const char *model_hash,
                                  const char *gate_hash, const char *mmproj_hash);

G_END_DECLS
