/* eval-mmdu.h - MMDU: aggregates of a judge's replies, in both public forms.
 * Source: docs/formats/scoring.md.  Threads: pure functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

#define KS_EVAL_MMDU_N_FIELDS 7

/* The six dimensions, then "Overall Score". */
extern const char *const ks_eval_mmdu_fields[KS_EVAL_MMDU_N_FIELDS];

/* Reads the dictionary between the first and the last brace of a reply: found[i] tells whether
 * field i is there, values[i] its value.  FALSE when it does not parse. */
gboolean ks_eval_mmdu_parse (const char *reply, gboolean found[KS_EVAL_MMDU_N_FIELDS],
                             double values[KS_EVAL_MMDU_N_FIELDS]);

typedef struct {
  double official[KS_EVAL_MMDU_N_FIELDS]; /* x10; mean over complete replies */
  guint n_official;
  double all[KS_EVAL_MMDU_N_FIELDS];   /* x10; failures count 0 */
  double valid[KS_EVAL_MMDU_N_FIELDS]; /* x10; over parsed values */
} KsEvalMmduTotals;

/* replies: n of them, all turns of all dialogues.  A mean over nothing is 0. */
void ks_eval_mmdu_aggregate (const char *const *replies, gsize n, KsEvalMmduTotals *out);
