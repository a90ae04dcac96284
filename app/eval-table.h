/* eval-table.h - scores of a run as tables: policy x budget for each benchmark, with intervals,
 * against the full cache, and what memory and time it took; as Markdown, CSV, JSON and SVG.
 * Seeds of one item are averaged before anything else: n counts items.  Two cells are compared on
 * the items that both have.  Threads: a table belongs to its holder. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/eval-run.h"
#include "app/eval-stats.h"

G_BEGIN_DECLS

typedef enum {
  KS_EVAL_SHARE, /* 0 .. 1, shown in per cent; more is better */
  KS_EVAL_LOSS,  /* shown as it is; less is better */
  KS_EVAL_NUMBER /* shown as it is; more is better */
} KsEvalKind;

typedef struct _KsEvalTable KsEvalTable;

KsEvalTable *ks_eval_table_new (void);
void ks_eval_table_free (KsEvalTable *table); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsEvalTable, ks_eval_table_free)

/* Metrics whose kind was not set are shares. */
void ks_eval_table_set_kind (KsEvalTable *table, const char *metric, KsEvalKind kind);
/* Streams of the model, for the share of entries kept; 0 = not told. */
void ks_eval_table_set_n_stream (KsEvalTable *table, guint n_stream);
/* Copies what it needs of both.  A score that is no number is left out. */
void ks_eval_table_add_score (KsEvalTable *table, const KsEvalScore *score);
void ks_eval_table_add_row (KsEvalTable *table, const KsEvalRow *row);

/* One cell.  FALSE when nothing was measured there.  out_paired (may be NULL): against the full
 * cache with the same question, p NAN when that was not measured on any of its items. */
gboolean ks_eval_table_get (const KsEvalTable *table, const char *bench, const char *part,
                            const char *metric, const KsEvalCell *cell, KsEvalInterval *out,
                            KsEvalPaired *out_paired);

/* header: the run's facts, borrowed, may be NULL.  (transfer full) */
GString *ks_eval_table_to_markdown (KsEvalTable *table, const cJSON *header);
GString *ks_eval_table_to_csv (KsEvalTable *table);
cJSON *ks_eval_table_to_json (KsEvalTable *table, const cJSON *header);

/* Writes NAME.md, NAME.csv, NAME.json and the plots NAME-BENCH-METRIC.svg, NAME-memory.svg,
 * NAME-speed.svg into folder, each whole or not at all. */
gboolean ks_eval_table_write (KsEvalTable *table, const cJSON *header, const char *folder,
                              const char *name, GError **error);

G_END_DECLS
