/* ks-plot.h - line charts and heat maps as SVG text: learning curves, quality over budget, memory
 * and speed over length.  No library draws: the text is SVG 1.1 with a white ground, readable with
 * any colour vision (colours, markers and dashes differ).  Numbers do not depend on the locale,
 * texts are escaped.  Threads: pure functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* y NAN: no point, and the line is broken there.  An interval [low, high] is drawn when both are
 * finite; ks_plot_point makes a point without one. */
typedef struct {
  double x, y, low, high;
} KsPlotPoint;

typedef struct {
  const char *name; /* in the legend; NULL = not there */
  const KsPlotPoint *points;
  gsize n_point;       /* in order of x */
  gboolean no_markers; /* a curve of many points */
} KsPlotSeries;

/* Zeroed fields are good defaults, but for y_min and y_max: NAN there means as the points say. */
typedef struct {
  const char *title, *x_label, *y_label; /* NULL = none */
  gboolean log_x, log_y;                 /* points at or below 0 are left out then */
  double y_min, y_max;
  guint width_px, height_px; /* 0 = 760 x 460 */
} KsPlotAxes;

KsPlotPoint ks_plot_point (double x, double y);
/* Axes with these texts, the rest default. */
KsPlotAxes ks_plot_axes (const char *title, const char *x_label, const char *y_label);

/* The whole file.  Series without a point that can be drawn keep their place in the legend.
 * (transfer full) */
GString *ks_plot_line_svg (const KsPlotAxes *axes, const KsPlotSeries *series, gsize n_series);

/* Cells [n_row, n_col] of values from 0 to 1 (NAN = not measured), each with its percentage.
 * row_names, col_names: as many as there are, never NULL. (transfer full) */
GString *ks_plot_heat_svg (const KsPlotAxes *axes, const double *values, gsize n_row, gsize n_col,
                           const char *const *row_names, const char *const *col_names);

G_END_DECLS
