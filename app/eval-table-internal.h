/* eval-table-internal.h - the parts of a table that its writers see. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/eval-table.h"

G_BEGIN_DECLS

/* A line of a table: everything of a cell but entries and seed.  Interned strings. */
typedef struct {
  const char *policy, *budget, *mode, *question;
} KsEvalLine;

typedef struct {
  double sum;
  guint n_seed, group;
} KsEvalSeen;

/* What was measured at one line and M. */
typedef struct {
  guint line;
  guint64 entries;
  GHashTable *items; /* "id turn" -> index of seen */
  GArray *seen;      /* of KsEvalSeen */
  GPtrArray *ids;    /* the texts, borrowed from items */
} KsEvalSpot;

/* One benchmark, part and metric. */
typedef struct {
  const char *bench, *part, *metric;
  KsEvalKind kind;
  GPtrArray *spots; /* of KsEvalSpot */
} KsEvalSheet;

/* Memory and time of one line and M over everything that was asked. */
typedef struct {
  guint line;
  guint64 entries, n_peak, peak_bytes;
  guint64 n_prompt, n_new;
  double prompt_s, answer_s;
  GHashTable *items; /* "bench id seed" -> KsEvalUse */
} KsEvalCost;

typedef struct {
  guint64 n_tok, n_peak;
} KsEvalUse;

struct _KsEvalTable {
  GArray *lines;      /* of KsEvalLine, full first, then as they came */
  GPtrArray *sheets;  /* of KsEvalSheet */
  GPtrArray *costs;   /* of KsEvalCost */
  GHashTable *kinds;  /* metric -> KsEvalKind */
  GHashTable *groups; /* "bench group" -> number + 1 */
  guint n_stream;
};

gboolean ks_eval_line_is_full (const KsEvalLine *line);
/* "dbtrimkv", with mode, budget and question where lines of the table differ in them.
 * (transfer full) */
char *ks_eval_table_dup_line_name (const KsEvalTable *table, guint line);
/* Lines with the full cache first, the rest in their order: indices. (transfer full) */
GArray *ks_eval_table_order_lines (const KsEvalTable *table);
const KsEvalSpot *ks_eval_sheet_find (const KsEvalSheet *sheet, guint line, guint64 entries);
/* The M of a sheet (or of all costs, sheet NULL), ascending, of guint64; 0 = everything is kept. */
GArray *ks_eval_table_list_entries (const KsEvalTable *table, const KsEvalSheet *sheet);
KsEvalInterval ks_eval_spot_get_interval (const KsEvalSpot *spot);
/* On the items of both, in the order of a; FALSE when they share none. */
gboolean ks_eval_spot_compare (const KsEvalSpot *a, const KsEvalSpot *b, KsEvalPaired *out);
/* The full cache that a line is compared with: the same question, else any; NULL when there is
 * none. */
const KsEvalSpot *ks_eval_table_find_full (const KsEvalTable *table, const KsEvalSheet *sheet,
                                           guint line);
const KsEvalCost *ks_eval_table_find_cost (const KsEvalTable *table, guint line, guint64 entries);
/* Mean over items of peak / (streams * tokens), NAN when the number of streams was not told. */
double ks_eval_cost_get_share (const KsEvalTable *table, const KsEvalCost *cost);

/* Plots, in eval-table-plot.c. (transfer full) */
GString *ks_eval_table_plot_sheet (const KsEvalTable *table, const KsEvalSheet *sheet);
GString *ks_eval_table_plot_memory (const KsEvalTable *table);
GString *ks_eval_table_plot_speed (const KsEvalTable *table);

G_END_DECLS
