/* eval-table-text.c - tables as Markdown and CSV (see eval-table.h).
 * Every cell names its number of items and its interval.  A value is bold only where its distance
 * to the next best of its column is certain. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-table-internal.h"

#include <math.h>
#include <string.h>

/* --- numbers --- */

/* "75.0", or "-" for what was not measured; never a decimal comma. */
static void
append_number (GString *out, double value, const char *format)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];

  g_string_append (out,
                   isfinite (value) ? g_ascii_formatd (text, sizeof text, format, value) : "-");
}

static double
get_scale (KsEvalKind kind)
{
  return kind == KS_EVAL_SHARE ? 100 : 1;
}

static const char *
get_format (KsEvalKind kind)
{
  return kind == KS_EVAL_SHARE ? "%.1f" : "%.3f";
}

static const char *
get_signed_format (KsEvalKind kind)
{
  return kind == KS_EVAL_SHARE ? "%+.1f" : "%+.3f";
}

static gboolean
is_better (KsEvalKind kind, double a, double b)
{
  return kind == KS_EVAL_LOSS ? a < b : a > b;
}

static void
append_interval (GString *out, const KsEvalInterval *interval, double scale, const char *format)
{
  append_number (out, interval->mean * scale, format);
  g_string_append (out, " [");
  append_number (out, interval->low * scale, format);
  g_string_append (out, ", ");
  append_number (out, interval->high * scale, format);
  g_string_append_printf (out, "] n=%" G_GSIZE_FORMAT, interval->n);
}

/* --- Markdown --- */

static void
append_escaped (GString *out, const char *text)
{
  for (const char *p = text; *p != '\0'; p++) {
    if (*p == '|' || *p == '\\' || *p == '*' || *p == '_' || *p == '`' || *p == '<')
      g_string_append_c (out, '\\');
    g_string_append_c (out, (guchar)*p < 0x20 ? ' ' : *p);
  }
}

static void
append_columns (GString *out, const char *first, const GArray *entries)
{
  g_string_append_printf (out, "| %s |", first);
  for (guint i = 0; i < entries->len; i++) {
    guint64 m = g_array_index (entries, guint64, i);

    if (m == 0)
      g_string_append (out, " everything |");
    else
      g_string_append_printf (out, " M = %" G_GUINT64_FORMAT " |", m);
  }
  g_string_append (out, "\n|---|");
  for (guint i = 0; i < entries->len; i++)
    g_string_append (out, "---|");
  g_string_append_c (out, '\n');
}

/* The best of a column, when it is certain that it is; the full cache does not take part. */
static const KsEvalSpot *
find_certain_best (const KsEvalTable *table, const KsEvalSheet *sheet, guint64 entries)
{
  const KsEvalSpot *best = NULL;
  double mean = 0;
  KsEvalPaired paired;

  for (guint i = 0; entries > 0 && i < sheet->spots->len; i++) {
    const KsEvalSpot *spot = g_ptr_array_index (sheet->spots, i);
    double own = spot->entries == entries ? ks_eval_spot_get_interval (spot).mean : NAN;

    if (!isfinite (own) ||
        ks_eval_line_is_full (&g_array_index (table->lines, KsEvalLine, spot->line)))
      continue;
    if (best == NULL || is_better (sheet->kind, own, mean)) {
      best = spot;
      mean = own;
    }
  }
  for (guint i = 0; best != NULL && i < sheet->spots->len; i++) {
    const KsEvalSpot *spot = g_ptr_array_index (sheet->spots, i);

    if (spot == best || spot->entries != entries ||
        ks_eval_line_is_full (&g_array_index (table->lines, KsEvalLine, spot->line)))
      continue;
    if (!ks_eval_spot_compare (best, spot, &paired) || !ks_eval_paired_differs (&paired))
      return NULL;
  }
  return best;
}

/* One row per line that has a spot in the sheet. */
static gboolean
has_line (const KsEvalSheet *sheet, guint line)
{
  for (guint i = 0; i < sheet->spots->len; i++)
    if (((const KsEvalSpot *)g_ptr_array_index (sheet->spots, i))->line == line)
      return TRUE;
  return FALSE;
}

static void
append_values (GString *out, const KsEvalTable *table, const KsEvalSheet *sheet,
               const GArray *entries, const GArray *order)
{
  append_columns (out, "policy", entries);
  for (guint i = 0; i < order->len; i++) {
    guint line = g_array_index (order, guint, i);
    g_autofree char *name = ks_eval_table_dup_line_name (table, line);

    if (!has_line (sheet, line))
      continue;
    g_string_append (out, "| ");
    append_escaped (out, name);
    g_string_append (out, " |");
    for (guint col = 0; col < entries->len; col++) {
      guint64 m = g_array_index (entries, guint64, col);
      const KsEvalSpot *spot = ks_eval_sheet_find (sheet, line, m);
      KsEvalInterval interval;
      gboolean bold;

      if (spot == NULL) {
        g_string_append (out, " |");
        continue;
      }
      interval = ks_eval_spot_get_interval (spot);
      bold = find_certain_best (table, sheet, m) == spot;
      g_string_append (out, bold ? " **" : " ");
      append_interval (out, &interval, get_scale (sheet->kind), get_format (sheet->kind));
      g_string_append (out, bold ? "** |" : " |");
    }
    g_string_append_c (out, '\n');
  }
}

static void
append_difference (GString *out, const KsEvalSheet *sheet, const KsEvalPaired *paired)
{
  append_interval (out, &paired->difference, get_scale (sheet->kind),
                   get_signed_format (sheet->kind));
  g_string_append_printf (out, ", %" G_GSIZE_FORMAT " above, %" G_GSIZE_FORMAT " below, p ",
                          paired->n_above, paired->n_below);
  append_number (out, paired->p, "%.3f");
}

static void
append_differences (GString *out, const KsEvalTable *table, const KsEvalSheet *sheet,
                    const GArray *entries, const GArray *order)
{
  append_columns (out, "minus the full cache", entries);
  for (guint i = 0; i < order->len; i++) {
    guint line = g_array_index (order, guint, i);
    const KsEvalSpot *full = ks_eval_table_find_full (table, sheet, line);
    g_autofree char *name = ks_eval_table_dup_line_name (table, line);

    if (!has_line (sheet, line) ||
        ks_eval_line_is_full (&g_array_index (table->lines, KsEvalLine, line)))
      continue;
    g_string_append (out, "| ");
    append_escaped (out, name);
    g_string_append (out, " |");
    for (guint col = 0; col < entries->len; col++) {
      const KsEvalSpot *spot =
          ks_eval_sheet_find (sheet, line, g_array_index (entries, guint64, col));
      KsEvalPaired paired;

      g_string_append_c (out, ' ');
      if (spot != NULL && full != NULL && ks_eval_spot_compare (spot, full, &paired))
        append_difference (out, sheet, &paired);
      g_string_append (out, " |");
    }
    g_string_append_c (out, '\n');
  }
}

static void
append_sheet (GString *out, const KsEvalTable *table, const KsEvalSheet *sheet, const GArray *order)
{
  g_autoptr (GArray) entries = ks_eval_table_list_entries (table, sheet);
  gboolean have_full = FALSE;

  g_string_append (out, "\n## ");
  append_escaped (out, sheet->bench);
  if (*sheet->part != '\0') {
    g_string_append (out, ", ");
    append_escaped (out, sheet->part);
  }
  g_string_append (out, ": ");
  append_escaped (out, sheet->metric);
  g_string_append (out, sheet->kind == KS_EVAL_SHARE  ? " (%)\n\n"
                        : sheet->kind == KS_EVAL_LOSS ? " (less is better)\n\n"
                                                      : "\n\n");
  append_values (out, table, sheet, entries, order);
  for (guint i = 0; i < sheet->spots->len; i++) {
    const KsEvalSpot *spot = g_ptr_array_index (sheet->spots, i);

    have_full =
        have_full || ks_eval_line_is_full (&g_array_index (table->lines, KsEvalLine, spot->line));
  }
  if (have_full) {
    g_string_append_c (out, '\n');
    append_differences (out, table, sheet, entries, order);
  }
}

/* 100 * policy / full, NAN without one of them. */
static double
get_relative (const KsEvalTable *table, const KsEvalSheet *sheet, guint line, guint64 entries)
{
  const KsEvalSpot *spot = ks_eval_sheet_find (sheet, line, entries);
  const KsEvalSpot *full = ks_eval_table_find_full (table, sheet, line);
  double of_full = full != NULL ? ks_eval_spot_get_interval (full).mean : 0;

  if (spot == NULL || sheet->kind == KS_EVAL_LOSS || of_full <= 0)
    return NAN;
  return 100 * ks_eval_spot_get_interval (spot).mean / of_full;
}

/* The mean of policy / full over the sheets in which more is better. */
static void
append_relative (GString *out, const KsEvalTable *table, const GArray *order)
{
  g_autoptr (GArray) entries = ks_eval_table_list_entries (table, NULL);

  g_string_append (out, "\n## Relative to the full cache\n\n100 x policy / full, mean over the "
                        "tables above in which more is better.\n\n");
  append_columns (out, "policy", entries);
  for (guint i = 0; i < order->len; i++) {
    guint line = g_array_index (order, guint, i);
    g_autofree char *name = ks_eval_table_dup_line_name (table, line);

    g_string_append (out, "| ");
    append_escaped (out, name);
    g_string_append (out, " |");
    for (guint col = 0; col < entries->len; col++) {
      double sum = 0;
      guint n = 0;

      for (guint s = 0; s < table->sheets->len; s++) {
        double part = get_relative (table, g_ptr_array_index (table->sheets, s), line,
                                    g_array_index (entries, guint64, col));

        sum += isfinite (part) ? part : 0;
        n += isfinite (part);
      }
      g_string_append_c (out, ' ');
      if (n > 0)
        append_number (out, sum / n, "%.1f");
      g_string_append (out, " |");
    }
    g_string_append_c (out, '\n');
  }
}

static double
get_rate (guint64 n, double seconds)
{
  return seconds > 0 ? (double)n / seconds : NAN;
}

static void
append_costs (GString *out, const KsEvalTable *table, const GArray *order)
{
  g_autoptr (GArray) entries = ks_eval_table_list_entries (table, NULL);

  g_string_append (out,
                   "\n## Memory and time\n\n| policy | M | peak entries | peak MiB | peak / all "
                   "entries, % | reading, tokens/s | writing, tokens/s |\n"
                   "|---|---|---|---|---|---|---|\n");
  for (guint i = 0; i < order->len; i++)
    for (guint col = 0; col < entries->len; col++) {
      guint line = g_array_index (order, guint, i);
      const KsEvalCost *cost =
          ks_eval_table_find_cost (table, line, g_array_index (entries, guint64, col));
      g_autofree char *name = ks_eval_table_dup_line_name (table, line);

      if (cost == NULL)
        continue;
      g_string_append (out, "| ");
      append_escaped (out, name);
      if (cost->entries == 0)
        g_string_append (out, " | everything | ");
      else
        g_string_append_printf (out, " | %" G_GUINT64_FORMAT " | ", cost->entries);
      g_string_append_printf (out, "%" G_GUINT64_FORMAT " | ", cost->n_peak);
      append_number (out, (double)cost->peak_bytes / 1048576, "%.2f");
      g_string_append (out, " | ");
      append_number (out, 100 * ks_eval_cost_get_share (table, cost), "%.1f");
      g_string_append (out, " | ");
      append_number (out, get_rate (cost->n_prompt, cost->prompt_s), "%.1f");
      g_string_append (out, " | ");
      append_number (out, get_rate (cost->n_new, cost->answer_s), "%.1f");
      g_string_append (out, " |\n");
    }
}

GString *
ks_eval_table_to_markdown (KsEvalTable *table, const cJSON *header)
{
  GString *out = g_string_new (NULL);
  g_autoptr (GArray) order = NULL;

  g_return_val_if_fail (table != NULL, out);
  order = ks_eval_table_order_lines (table);
  g_string_append_printf (
      out,
      "# Policies and budgets\n\nM: average entries of a stream. Cells: mean, interval of 95 %% "
      "(Wilson's for shares of right answers, else %u draws of items, seed %u), number of items. "
      "Bold: better than every other policy of its column, and that by more than the interval of "
      "the paired difference.\n",
      KS_EVAL_N_DRAW, KS_EVAL_SEED);
  for (const cJSON *fact = header != NULL ? header->child : NULL; fact != NULL; fact = fact->next) {
    g_autofree char *value = cJSON_IsString (fact) ? g_strdup (fact->valuestring) : NULL;
    char *printed = value == NULL ? cJSON_PrintUnformatted (fact) : NULL;

    g_string_append (out, fact == header->child ? "\n- " : "- ");
    append_escaped (out, fact->string);
    g_string_append (out, ": ");
    append_escaped (out, value != NULL ? value : printed != NULL ? printed : "");
    g_string_append_c (out, '\n');
    cJSON_free (printed);
  }
  for (guint i = 0; i < table->sheets->len; i++)
    append_sheet (out, table, g_ptr_array_index (table->sheets, i), order);
  if (table->sheets->len > 1)
    append_relative (out, table, order);
  if (table->costs->len > 0)
    append_costs (out, table, order);
  return out;
}

/* --- CSV --- */

static void
append_field (GString *out, const char *text)
{
  gboolean quoted = text[strcspn (text, ",\"\r\n")] != '\0';

  if (quoted)
    g_string_append_c (out, '"');
  for (const char *p = text; *p != '\0'; p++) {
    if (*p == '"')
      g_string_append_c (out, '"');
    g_string_append_c (out, *p);
  }
  if (quoted)
    g_string_append_c (out, '"');
}

static void
append_csv_number (GString *out, double value)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];

  g_string_append_c (out, ',');
  if (isfinite (value))
    g_string_append (out, g_ascii_formatd (text, sizeof text, "%.8g", value));
}

static void
append_csv_spot (GString *out, const KsEvalTable *table, const KsEvalSheet *sheet,
                 const KsEvalSpot *spot)
{
  const KsEvalLine *line = &g_array_index (table->lines, KsEvalLine, spot->line);
  const char *texts[] = {sheet->bench, sheet->part, sheet->metric, line->policy,
                         line->budget, line->mode,  line->question};
  const KsEvalSpot *full = ks_eval_table_find_full (table, sheet, spot->line);
  const KsEvalCost *cost = ks_eval_table_find_cost (table, spot->line, spot->entries);
  KsEvalInterval interval = ks_eval_spot_get_interval (spot);
  KsEvalPaired paired = {.p = NAN};

  for (guint i = 0; i < G_N_ELEMENTS (texts); i++) {
    append_field (out, texts[i]);
    g_string_append_c (out, ',');
  }
  g_string_append_printf (out, "%" G_GUINT64_FORMAT ",%" G_GSIZE_FORMAT, spot->entries, interval.n);
  append_csv_number (out, interval.mean);
  append_csv_number (out, interval.low);
  append_csv_number (out, interval.high);
  if (full == NULL || !ks_eval_spot_compare (spot, full, &paired)) {
    g_string_append (out, ",,,,,,");
  } else {
    append_csv_number (out, paired.difference.mean);
    append_csv_number (out, paired.difference.low);
    append_csv_number (out, paired.difference.high);
    g_string_append_printf (out, ",%" G_GSIZE_FORMAT ",%" G_GSIZE_FORMAT, paired.n_above,
                            paired.n_below);
    append_csv_number (out, paired.p);
  }
  append_csv_number (out, cost != NULL ? (double)cost->n_peak : NAN);
  append_csv_number (out, cost != NULL ? (double)cost->peak_bytes : NAN);
  append_csv_number (out, cost != NULL ? ks_eval_cost_get_share (table, cost) : NAN);
  append_csv_number (out, cost != NULL ? get_rate (cost->n_prompt, cost->prompt_s) : NAN);
  append_csv_number (out, cost != NULL ? get_rate (cost->n_new, cost->answer_s) : NAN);
  g_string_append_c (out, '\n');
}

GString *
ks_eval_table_to_csv (KsEvalTable *table)
{
  GString *out = g_string_new (
      "bench,part,metric,policy,budget,mode,question,entries,n,mean,low,high,minus_full,"
      "minus_full_low,minus_full_high,above,below,p,peak_entries,peak_bytes,peak_share,"
      "prompt_tokens_per_second,decode_tokens_per_second\n");

  g_return_val_if_fail (table != NULL, out);
  for (guint s = 0; s < table->sheets->len; s++) {
    const KsEvalSheet *sheet = g_ptr_array_index (table->sheets, s);

    for (guint i = 0; i < sheet->spots->len; i++)
      append_csv_spot (out, table, sheet, g_ptr_array_index (sheet->spots, i));
  }
  return out;
}
