/* eval-table-plot.c - quality, memory and speed over the budget as SVG (see eval-table.h).
 * The full cache has no M of its own: it is drawn as a level line over all of them. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-table-internal.h"
#include "app/ks-plot.h"

#include <math.h>

/* A point at M, or one without a place (y NAN) where nothing was measured. */
typedef KsPlotPoint (*PointFunc) (const KsEvalTable *table, gconstpointer data, guint line,
                                  guint64 entries);

static KsPlotPoint
get_sheet_point (const KsEvalTable *table, gconstpointer data, guint line, guint64 entries)
{
  const KsEvalSheet *sheet = data;
  const KsEvalSpot *spot = ks_eval_sheet_find (sheet, line, entries);
  double scale = sheet->kind == KS_EVAL_SHARE ? 100 : 1;
  KsEvalInterval interval;

  if (spot == NULL)
    return ks_plot_point ((double)entries, NAN);
  interval = ks_eval_spot_get_interval (spot);
  return (KsPlotPoint){.x = (double)entries,
                       .y = interval.mean * scale,
                       .low = interval.low * scale,
                       .high = interval.high * scale};
}

static KsPlotPoint
get_memory_point (const KsEvalTable *table, gconstpointer data, guint line, guint64 entries)
{
  const KsEvalCost *cost = ks_eval_table_find_cost (table, line, entries);

  return ks_plot_point ((double)entries, cost != NULL ? (double)cost->peak_bytes / 1048576 : NAN);
}

static KsPlotPoint
get_speed_point (const KsEvalTable *table, gconstpointer data, guint line, guint64 entries)
{
  const KsEvalCost *cost = ks_eval_table_find_cost (table, line, entries);

  return ks_plot_point ((double)entries, cost != NULL && cost->answer_s > 0
                                             ? (double)cost->n_new / cost->answer_s
                                             : NAN);
}

/* A level line through the full cache's value, with its interval at the left end only. */
static void
add_level (GArray *points, const KsPlotPoint *level, const GArray *entries)
{
  for (guint i = 0; i < entries->len; i++) {
    guint64 m = g_array_index (entries, guint64, i);
    KsPlotPoint point = *level;

    point.x = (double)m;
    if (points->len > 0)
      point.low = point.high = NAN;
    if (m > 0)
      g_array_append_val (points, point);
  }
  if (points->len == 0) {
    KsPlotPoint point = *level;

    point.x = 1;
    g_array_append_val (points, point);
  }
}

static GString *
plot (const KsEvalTable *table, const KsPlotAxes *axes, const GArray *entries, PointFunc get_point,
      gconstpointer data)
{
  g_autoptr (GArray) order = ks_eval_table_order_lines (table);
  g_autoptr (GArray) series = g_array_new (FALSE, FALSE, sizeof (KsPlotSeries));
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GPtrArray) kept = g_ptr_array_new_with_free_func ((GDestroyNotify)g_array_unref);

  for (guint i = 0; i < order->len; i++) {
    guint line = g_array_index (order, guint, i);
    KsPlotPoint level = get_point (table, data, line, 0);
    GArray *points = g_array_new (FALSE, FALSE, sizeof (KsPlotPoint));
    KsPlotSeries one = {0};

    g_ptr_array_add (kept, points);
    if (isfinite (level.y))
      add_level (points, &level, entries);
    for (guint col = 0; !isfinite (level.y) && col < entries->len; col++) {
      KsPlotPoint point = get_point (table, data, line, g_array_index (entries, guint64, col));

      if (isfinite (point.y))
        g_array_append_val (points, point);
    }
    if (points->len == 0)
      continue;
    g_ptr_array_add (names, ks_eval_table_dup_line_name (table, line));
    one.name = g_ptr_array_index (names, names->len - 1);
    one.points = (const KsPlotPoint *)points->data;
    one.n_point = points->len;
    g_array_append_val (series, one);
  }
  return ks_plot_line_svg (axes, (const KsPlotSeries *)series->data, series->len);
}

GString *
ks_eval_table_plot_sheet (const KsEvalTable *table, const KsEvalSheet *sheet)
{
  g_autoptr (GArray) entries = ks_eval_table_list_entries (table, sheet);
  gboolean has_part = *sheet->part != '\0';
  g_autofree char *title =
      g_strdup_printf ("%s%s%s", sheet->bench, has_part ? ", " : "", sheet->part);
  g_autofree char *label =
      sheet->kind == KS_EVAL_SHARE ? g_strdup_printf ("%s, %%", sheet->metric) : NULL;
  KsPlotAxes axes = ks_plot_axes (title, "entries of a stream, on average",
                                  label != NULL ? label : sheet->metric);

  axes.log_x = TRUE;
  if (sheet->kind == KS_EVAL_SHARE) {
    axes.y_min = 0;
    axes.y_max = 100;
  }
  return plot (table, &axes, entries, get_sheet_point, sheet);
}

GString *
ks_eval_table_plot_memory (const KsEvalTable *table)
{
  g_autoptr (GArray) entries = ks_eval_table_list_entries (table, NULL);
  KsPlotAxes axes =
      ks_plot_axes ("Most memory of keys and values", "entries of a stream, on average", "MiB");

  axes.log_x = TRUE;
  axes.y_min = 0;
  return plot (table, &axes, entries, get_memory_point, NULL);
}

GString *
ks_eval_table_plot_speed (const KsEvalTable *table)
{
  g_autoptr (GArray) entries = ks_eval_table_list_entries (table, NULL);
  KsPlotAxes axes =
      ks_plot_axes ("Speed of writing", "entries of a stream, on average", "tokens/s");

  axes.log_x = TRUE;
  axes.y_min = 0;
  return plot (table, &axes, entries, get_speed_point, NULL);
}
