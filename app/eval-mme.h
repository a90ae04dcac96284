/* eval-mme.h - MME: yes/no parsing and the perception and cognition sums.
 * Source: docs/formats/scoring.md.  Threads: pure functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

#define KS_EVAL_MME_N_TASKS 14
#define KS_EVAL_MME_N_PERCEPTION 10

typedef enum { KS_EVAL_MME_OTHER, KS_EVAL_MME_YES, KS_EVAL_MME_NO } KsEvalMmeAnswer;

typedef struct {
  const char *category; /* one of the fourteen */
  const char *image;    /* two items of a category share it */
  const char *reference;
  const char *prediction;
} KsEvalMmeItem;

/* The fourteen subtasks, perception first. */
extern const char *const ks_eval_mme_tasks[KS_EVAL_MME_N_TASKS];

const char *ks_eval_mme_answer_name (KsEvalMmeAnswer answer); /* "yes", "no", "other" */
/* As the organisers' tool reads it; harness: as lmms-eval does. */
KsEvalMmeAnswer ks_eval_mme_parse (const char *prediction, gboolean harness);
gboolean ks_eval_mme_is_correct (const char *prediction, const char *reference, gboolean harness);
/* accuracy + pair accuracy of every subtask (0..200) and their sums.  FALSE with a sentence when a
 * subtask has no item or an unknown name. */
gboolean ks_eval_mme_aggregate (const KsEvalMmeItem *items, gsize n, gboolean harness,
                                double out_tasks[KS_EVAL_MME_N_TASKS], double *out_perception,
                                double *out_cognition, char **out_problem);
