/* cli-bench-policies.h - the parts of keepsake-cli bench policies: items (texts and prompts as
 * tokens), cells (policy, gate, M, mode) and the runner that measures items in cells.
 * Threads: engine thread, except the command main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/cli-bench.h"
#include "app/eval-run.h"

G_BEGIN_DECLS

/* --- items (cli-bench-policies-items.c) --- */

typedef struct {
  GArray *ids; /* of ks_token: the question as a turn of its own */
  char *expect;
} BenchAsk;

/* Something that is read, and then asked about or gone on with. */
typedef struct {
  const char *bench; /* "loss", "recall", "recall-new", "recall-long"; interned */
  char *id;
  GArray *text;    /* of ks_token: what is read before anything is forgotten */
  GPtrArray *asks; /* of BenchAsk; empty for a loss */
  GArray *scored;  /* of ks_token: the text goes on, its loss is measured; NULL = none */
} BenchItem;

void bench_item_free (BenchItem *item); /* NULL is allowed */

/* n prompts of bench: recall and recall-new about n_word words long with one question; recall-long
 * with six questions among twenty facts. (of BenchItem; transfer full) */
GPtrArray *bench_items_make_recall (KsEngineSetup *setup, const char *bench, guint n, guint n_word,
                                    guint64 seed, GError **error);
/* Up to n pieces of n_text + n_scored tokens of the files, spread over them; folders stand for the
 * files in them.  NULL or empty: the handbook that comes with the program. (transfer full) */
GPtrArray *bench_items_make_loss (KsEngineSetup *setup, char **paths, guint n, guint n_text,
                                  guint n_scored, GError **error);
/* 1 or 0; NaN for a row without references. */
double bench_row_get_right (const KsEvalRow *row);

/* --- runner (cli-bench-policies-run.c) --- */

typedef struct {
  KsEvalCell cell;
  const char *gate; /* name of a gate that was given, interned; NULL = the model's own */
  ks_evict_params evict;
} BenchCell;

/* "untied:gate=NAME:pin-first=1" at M entries. */
gboolean bench_cell_parse (const char *text, guint64 entries, const char *mode, BenchCell *out,
                           GError **error);

typedef struct _BenchRunner BenchRunner;

/* gates: "NAME=FILE" of what cells name, may be NULL. */
BenchRunner *bench_runner_new (KsEngineSetup *setup, KsEngineJob *job, char **gates, guint n_answer,
                               GError **error);
void bench_runner_free (BenchRunner *runner); /* NULL is allowed */
/* The policy that a gate is made for: "dbtrimkv", "untied", "trimkv", "locret"; NULL when there is
 * no such gate (name NULL: the model has none). */
const char *bench_runner_get_policy_of_gate (const BenchRunner *runner, const char *name);
/* Measures an item in every cell [n_cell] that file does not have yet. */
gboolean bench_runner_measure (BenchRunner *runner, const BenchItem *item, const BenchCell *cells,
                               guint n_cell, KsEvalRunFile *file, GError **error);
gboolean bench_item_is_done (const BenchItem *item, const BenchCell *cell,
                             const KsEvalRunFile *file);

G_END_DECLS
