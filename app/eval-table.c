/* eval-table.c - see eval-table.h: collecting scores and comparing cells.
 * A sheet is one benchmark, part and metric; a line is a policy with its mode and question; a spot
 * is where a line and an M meet.  The writers are eval-table-text.c, eval-table-files.c and
 * eval-table-plot.c. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-table-internal.h"

#include <math.h>
#include <string.h>

static void
free_spot (gpointer data)
{
  KsEvalSpot *spot = data;

  g_ptr_array_unref (spot->ids);
  g_array_unref (spot->seen);
  g_hash_table_unref (spot->items);
  g_free (spot);
}

static void
free_sheet (gpointer data)
{
  KsEvalSheet *sheet = data;

  g_ptr_array_unref (sheet->spots);
  g_free (sheet);
}

static void
free_cost (gpointer data)
{
  KsEvalCost *cost = data;

  g_hash_table_unref (cost->items);
  g_free (cost);
}

KsEvalTable *
ks_eval_table_new (void)
{
  KsEvalTable *table = g_new0 (KsEvalTable, 1);

  table->lines = g_array_new (FALSE, FALSE, sizeof (KsEvalLine));
  table->sheets = g_ptr_array_new_with_free_func (free_sheet);
  table->costs = g_ptr_array_new_with_free_func (free_cost);
  table->kinds = g_hash_table_new (g_str_hash, g_str_equal);
  table->groups = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  return table;
}

void
ks_eval_table_free (KsEvalTable *table)
{
  if (table == NULL)
    return;
  g_array_unref (table->lines);
  g_ptr_array_unref (table->sheets);
  g_ptr_array_unref (table->costs);
  g_hash_table_unref (table->kinds);
  g_hash_table_unref (table->groups);
  g_free (table);
}

void
ks_eval_table_set_kind (KsEvalTable *table, const char *metric, KsEvalKind kind)
{
  g_return_if_fail (table != NULL && metric != NULL);
  metric = g_intern_string (metric);
  g_hash_table_insert (table->kinds, (gpointer)metric, GINT_TO_POINTER ((gint)kind));
  for (guint i = 0; i < table->sheets->len; i++) {
    KsEvalSheet *sheet = g_ptr_array_index (table->sheets, i);

    if (sheet->metric == metric)
      sheet->kind = kind;
  }
}

void
ks_eval_table_set_n_stream (KsEvalTable *table, guint n_stream)
{
  g_return_if_fail (table != NULL);
  table->n_stream = n_stream;
}

/* --- places --- */

static gboolean
find_line (const KsEvalTable *table, const KsEvalCell *cell, guint *out)
{
  for (guint i = 0; i < table->lines->len; i++) {
    const KsEvalLine *line = &g_array_index (table->lines, KsEvalLine, i);

    if (g_str_equal (line->policy, cell->policy) && g_str_equal (line->budget, cell->budget) &&
        g_str_equal (line->mode, cell->mode) && g_str_equal (line->question, cell->question)) {
      *out = i;
      return TRUE;
    }
  }
  return FALSE;
}

static guint
take_line (KsEvalTable *table, const KsEvalCell *cell)
{
  KsEvalLine line = {g_intern_string (cell->policy), g_intern_string (cell->budget),
                     g_intern_string (cell->mode), g_intern_string (cell->question)};
  guint at = table->lines->len;

  if (!find_line (table, cell, &at))
    g_array_append_val (table->lines, line);
  return at;
}

static KsEvalSheet *
find_sheet (const KsEvalTable *table, const char *bench, const char *part, const char *metric)
{
  for (guint i = 0; i < table->sheets->len; i++) {
    KsEvalSheet *sheet = g_ptr_array_index (table->sheets, i);

    if (g_str_equal (sheet->bench, bench) && g_str_equal (sheet->part, part) &&
        g_str_equal (sheet->metric, metric))
      return sheet;
  }
  return NULL;
}

static KsEvalSheet *
take_sheet (KsEvalTable *table, const char *bench, const char *part, const char *metric)
{
  KsEvalSheet *sheet = find_sheet (table, bench, part, metric);

  if (sheet != NULL)
    return sheet;
  sheet = g_new0 (KsEvalSheet, 1);
  sheet->bench = g_intern_string (bench);
  sheet->part = g_intern_string (part);
  sheet->metric = g_intern_string (metric);
  sheet->kind = (KsEvalKind)GPOINTER_TO_INT (g_hash_table_lookup (table->kinds, metric));
  sheet->spots = g_ptr_array_new_with_free_func (free_spot);
  g_ptr_array_add (table->sheets, sheet);
  return sheet;
}

const KsEvalSpot *
ks_eval_sheet_find (const KsEvalSheet *sheet, guint line, guint64 entries)
{
  for (guint i = 0; i < sheet->spots->len; i++) {
    const KsEvalSpot *spot = g_ptr_array_index (sheet->spots, i);

    if (spot->line == line && spot->entries == entries)
      return spot;
  }
  return NULL;
}

static KsEvalSpot *
take_spot (KsEvalSheet *sheet, guint line, guint64 entries)
{
  KsEvalSpot *spot = (KsEvalSpot *)ks_eval_sheet_find (sheet, line, entries);

  if (spot != NULL)
    return spot;
  spot = g_new0 (KsEvalSpot, 1);
  spot->line = line;
  spot->entries = entries;
  spot->items = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  spot->seen = g_array_new (FALSE, FALSE, sizeof (KsEvalSeen));
  spot->ids = g_ptr_array_new ();
  g_ptr_array_add (sheet->spots, spot);
  return spot;
}

/* --- adding --- */

static guint
take_group (KsEvalTable *table, const char *bench, const char *group)
{
  char *key = g_strdup_printf ("%s\x1f%s", bench, group);
  guint number = GPOINTER_TO_UINT (g_hash_table_lookup (table->groups, key));

  if (number == 0) {
    number = g_hash_table_size (table->groups) + 1;
    g_hash_table_insert (table->groups, key, GUINT_TO_POINTER (number));
  } else {
    g_free (key);
  }
  return number - 1;
}

void
ks_eval_table_add_score (KsEvalTable *table, const KsEvalScore *score)
{
  KsEvalSpot *spot;
  char *key;
  gpointer at = NULL;

  g_return_if_fail (table != NULL && score != NULL);
  if (!isfinite (score->value))
    return;
  spot = take_spot (take_sheet (table, score->bench, score->part, score->metric),
                    take_line (table, &score->cell), score->cell.entries);
  key = g_strdup_printf ("%s\x1f%u", score->id, score->turn);
  if (!g_hash_table_lookup_extended (spot->items, key, NULL, &at)) {
    KsEvalSeen seen = {.group = take_group (table, score->bench, score->group)};

    at = GUINT_TO_POINTER (spot->seen->len);
    g_hash_table_insert (spot->items, key, at);
    g_ptr_array_add (spot->ids, key);
    g_array_append_val (spot->seen, seen);
  } else {
    g_free (key);
  }
  g_array_index (spot->seen, KsEvalSeen, GPOINTER_TO_UINT (at)).sum += score->value;
  g_array_index (spot->seen, KsEvalSeen, GPOINTER_TO_UINT (at)).n_seed++;
}

static KsEvalCost *
take_cost (KsEvalTable *table, guint line, guint64 entries)
{
  KsEvalCost *cost = (KsEvalCost *)ks_eval_table_find_cost (table, line, entries);

  if (cost != NULL)
    return cost;
  cost = g_new0 (KsEvalCost, 1);
  cost->line = line;
  cost->entries = entries;
  cost->items = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  g_ptr_array_add (table->costs, cost);
  return cost;
}

void
ks_eval_table_add_row (KsEvalTable *table, const KsEvalRow *row)
{
  KsEvalCost *cost;
  KsEvalUse *use;
  char *key;

  g_return_if_fail (table != NULL && row != NULL);
  if (row->n_peak == 0)
    return;
  cost = take_cost (table, take_line (table, &row->cell), row->cell.entries);
  key = g_strdup_printf ("%s\x1f%s\x1f%" G_GUINT64_FORMAT, row->bench, row->id, row->cell.seed);
  use = g_hash_table_lookup (cost->items, key);
  if (use == NULL) {
    use = g_new0 (KsEvalUse, 1);
    g_hash_table_insert (cost->items, key, use);
  } else {
    g_free (key);
  }
  use->n_tok += row->n_prompt + row->n_new;
  use->n_peak = MAX (use->n_peak, row->n_peak);
  cost->n_peak = MAX (cost->n_peak, row->n_peak);
  cost->peak_bytes = MAX (cost->peak_bytes, row->peak_bytes);
  cost->n_prompt += row->n_prompt;
  cost->n_new += row->n_new;
  cost->prompt_s += row->prompt_s;
  cost->answer_s += row->answer_s;
}

/* --- asking --- */

gboolean
ks_eval_line_is_full (const KsEvalLine *line)
{
  return g_str_equal (line->policy, "full") || g_str_has_prefix (line->policy, "full:");
}

char *
ks_eval_table_dup_line_name (const KsEvalTable *table, guint line)
{
  const KsEvalLine *own = &g_array_index (table->lines, KsEvalLine, line);
  GString *name = g_string_new (own->policy);
  gboolean budget = FALSE, mode = FALSE, question = FALSE;

  for (guint i = 0; i < table->lines->len; i++) {
    const KsEvalLine *other = &g_array_index (table->lines, KsEvalLine, i);

    budget = budget || other->budget != own->budget;
    mode = mode || (other->mode != own->mode && !ks_eval_line_is_full (other));
    question = question || other->question != own->question;
  }
  if (budget && !ks_eval_line_is_full (own))
    g_string_append_printf (name, ", %s", own->budget);
  if (mode && !ks_eval_line_is_full (own))
    g_string_append_printf (name, ", %s", own->mode);
  if (question && *own->question != '\0')
    g_string_append_printf (name, ", question %s", own->question);
  return g_string_free (name, FALSE);
}

GArray *
ks_eval_table_order_lines (const KsEvalTable *table)
{
  GArray *order = g_array_new (FALSE, FALSE, sizeof (guint));

  for (guint pass = 0; pass < 2; pass++)
    for (guint i = 0; i < table->lines->len; i++)
      if (ks_eval_line_is_full (&g_array_index (table->lines, KsEvalLine, i)) == (pass == 0))
        g_array_append_val (order, i);
  return order;
}

static int
compare_entries (const void *a, const void *b)
{
  guint64 x = *(const guint64 *)a, y = *(const guint64 *)b;

  return x < y ? -1 : x > y;
}

static void
note_entries (GArray *list, guint64 entries)
{
  for (guint i = 0; i < list->len; i++)
    if (g_array_index (list, guint64, i) == entries)
      return;
  g_array_append_val (list, entries);
}

GArray *
ks_eval_table_list_entries (const KsEvalTable *table, const KsEvalSheet *sheet)
{
  GArray *list = g_array_new (FALSE, FALSE, sizeof (guint64));

  for (guint i = 0; sheet != NULL && i < sheet->spots->len; i++)
    note_entries (list, ((const KsEvalSpot *)g_ptr_array_index (sheet->spots, i))->entries);
  for (guint i = 0; sheet == NULL && i < table->costs->len; i++)
    note_entries (list, ((const KsEvalCost *)g_ptr_array_index (table->costs, i))->entries);
  g_array_sort (list, compare_entries);
  return list;
}

static void
fill_values (const KsEvalSpot *spot, double *values, guint *groups)
{
  for (guint i = 0; i < spot->seen->len; i++) {
    const KsEvalSeen *seen = &g_array_index (spot->seen, KsEvalSeen, i);

    values[i] = seen->sum / seen->n_seed;
    groups[i] = seen->group;
  }
}

KsEvalInterval
ks_eval_spot_get_interval (const KsEvalSpot *spot)
{
  g_autofree double *values = g_new (double, MAX (spot->seen->len, 1));
  g_autofree guint *groups = g_new (guint, MAX (spot->seen->len, 1));

  fill_values (spot, values, groups);
  return ks_eval_interval (values, groups, spot->seen->len, KS_EVAL_SEED);
}

gboolean
ks_eval_spot_compare (const KsEvalSpot *a, const KsEvalSpot *b, KsEvalPaired *out)
{
  g_autofree double *of_a = g_new (double, MAX (a->seen->len, 1));
  g_autofree double *of_b = g_new (double, MAX (a->seen->len, 1));
  g_autofree guint *groups = g_new (guint, MAX (a->seen->len, 1));
  gsize n = 0;

  for (guint i = 0; i < a->seen->len; i++) {
    const KsEvalSeen *one = &g_array_index (a->seen, KsEvalSeen, i), *other;
    gpointer at = NULL;

    if (!g_hash_table_lookup_extended (b->items, g_ptr_array_index (a->ids, i), NULL, &at))
      continue;
    other = &g_array_index (b->seen, KsEvalSeen, GPOINTER_TO_UINT (at));
    of_a[n] = one->sum / one->n_seed;
    of_b[n] = other->sum / other->n_seed;
    groups[n++] = one->group;
  }
  if (n == 0)
    return FALSE;
  *out = ks_eval_compare (of_a, of_b, groups, n, KS_EVAL_SEED);
  return TRUE;
}

const KsEvalSpot *
ks_eval_table_find_full (const KsEvalTable *table, const KsEvalSheet *sheet, guint line)
{
  const KsEvalLine *own = &g_array_index (table->lines, KsEvalLine, line);
  const KsEvalSpot *any = NULL;

  for (guint i = 0; i < sheet->spots->len; i++) {
    const KsEvalSpot *spot = g_ptr_array_index (sheet->spots, i);
    const KsEvalLine *full = &g_array_index (table->lines, KsEvalLine, spot->line);

    if (!ks_eval_line_is_full (full))
      continue;
    if (full->question == own->question)
      return spot;
    any = any != NULL ? any : spot;
  }
  return any;
}

gboolean
ks_eval_table_get (const KsEvalTable *table, const char *bench, const char *part,
                   const char *metric, const KsEvalCell *cell, KsEvalInterval *out,
                   KsEvalPaired *out_paired)
{
  const KsEvalSheet *sheet = find_sheet (table, bench, part, metric);
  const KsEvalSpot *spot, *full;
  guint line = 0;

  g_return_val_if_fail (out != NULL, FALSE);
  if (sheet == NULL || !find_line (table, cell, &line))
    return FALSE;
  spot = ks_eval_sheet_find (sheet, line, cell->entries);
  if (spot == NULL)
    return FALSE;
  *out = ks_eval_spot_get_interval (spot);
  if (out_paired == NULL)
    return TRUE;
  full = ks_eval_table_find_full (table, sheet, spot->line);
  if (full == NULL || !ks_eval_spot_compare (spot, full, out_paired))
    *out_paired = (KsEvalPaired){.p = NAN};
  return TRUE;
}

const KsEvalCost *
ks_eval_table_find_cost (const KsEvalTable *table, guint line, guint64 entries)
{
  for (guint i = 0; i < table->costs->len; i++) {
    const KsEvalCost *cost = g_ptr_array_index (table->costs, i);

    if (cost->line == line && cost->entries == entries)
      return cost;
  }
  return NULL;
}

double
ks_eval_cost_get_share (const KsEvalTable *table, const KsEvalCost *cost)
{
  GHashTableIter iter;
  gpointer value;
  double sum = 0;
  guint n = 0;

  g_hash_table_iter_init (&iter, cost->items);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    const KsEvalUse *use = value;

    if (use->n_tok == 0)
      continue;
    sum += (double)use->n_peak / ((double)use->n_tok * table->n_stream);
    n++;
  }
  return n > 0 && table->n_stream > 0 ? sum / n : NAN;
}
