/* ks-plot.c - see ks-plot.h.
 * A chart is laid out once: frame, scales and ticks; then everything is appended in order of
 * painting: grid, intervals, lines, markers, legend. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-plot.h"

#include <math.h>
#include <string.h>

#define DEFAULT_WIDTH 760u
#define DEFAULT_HEIGHT 460u
#define LEFT 74.0
#define TOP 44.0
#define BOTTOM 58.0
#define LEGEND_CHAR 7.0
#define LEGEND_ROW 18.0
#define MAX_TICKS 24u
#define MAX_OWN_TICKS 8u /* a logarithmic axis with few places marks just these */

/* The palette of Okabe and Ito: told apart with every kind of colour vision. */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#000000", "#e69f00", "#56b4e9", "#8c6d31"};
static const char *const dashes[] = {"", "7 4", "2 3", "9 3 2 3"};

typedef struct {
  double low, high; /* of the data, as logarithms on a logarithmic axis */
  double from, to;  /* pixels */
  gboolean is_log;
  double ticks[MAX_TICKS];
  guint n_tick;
} Scale;

typedef struct {
  const KsPlotAxes *axes;
  const KsPlotSeries *series;
  gsize n_series;
  GString *out;
  double width, height;
  Scale x, y;
} Chart;

KsPlotPoint
ks_plot_point (double x, double y)
{
  return (KsPlotPoint){.x = x, .y = y, .low = NAN, .high = NAN};
}

KsPlotAxes
ks_plot_axes (const char *title, const char *x_label, const char *y_label)
{
  return (KsPlotAxes){
      .title = title, .x_label = x_label, .y_label = y_label, .y_min = NAN, .y_max = NAN};
}

/* --- text --- */

static void
append_number (GString *out, double value)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];

  g_string_append (out, g_ascii_formatd (text, sizeof text, "%.2f", value));
}

/* format has a %n for every number. */
static void
append_numbers (GString *out, const char *format, const double *numbers)
{
  for (const char *p = format; *p != '\0'; p++) {
    if (p[0] == '%' && p[1] == 'n') {
      append_number (out, *numbers++);
      p++;
    } else {
      g_string_append_c (out, *p);
    }
  }
}

static void
append_text (GString *out, double x, double y, const char *attributes, const char *text)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  g_autofree char *escaped = NULL;

  /* Control characters may not stand in XML, not even escaped. */
  for (char *p = valid; *p != '\0'; p++)
    if ((guchar)*p < 0x20)
      *p = ' ';
  escaped = g_markup_escape_text (valid, -1);
  append_numbers (out, "<text x=\"%n\" y=\"%n\"", (const double[]){x, y});
  g_string_append_printf (out, "%s>%s</text>\n", attributes, escaped);
}

static void
append_tick_name (GString *out, double value)
{
  double size = fabs (value);
  char text[G_ASCII_DTOSTR_BUF_SIZE];

  /* Powers of two and round thousands are read more easily in short. */
  if (size >= 1024 && fmod (value, 1024) == 0)
    g_string_append_printf (out, "%sk", g_ascii_formatd (text, sizeof text, "%g", value / 1024));
  else if (size >= 1e6 || (size > 0 && size < 1e-3))
    g_string_append (out, g_ascii_formatd (text, sizeof text, "%.2g", value));
  else
    g_string_append (out, g_ascii_formatd (text, sizeof text, "%.6g", value));
}

/* --- scales --- */

static gboolean
is_drawn (const Chart *chart, const KsPlotPoint *point)
{
  return isfinite (point->x) && isfinite (point->y) && (!chart->x.is_log || point->x > 0) &&
         (!chart->y.is_log || point->y > 0);
}

static gboolean
has_interval (const Chart *chart, const KsPlotPoint *point)
{
  return isfinite (point->low) && isfinite (point->high) &&
         (!chart->y.is_log || (point->low > 0 && point->high > 0));
}

static double
to_scale (const Scale *scale, double value)
{
  return scale->is_log ? log10 (value) : value;
}

static double
place (const Scale *scale, double value)
{
  double part = (to_scale (scale, value) - scale->low) / (scale->high - scale->low);

  return scale->from + CLAMP (part, 0.0, 1.0) * (scale->to - scale->from);
}

static void
widen (Scale *scale, double value)
{
  double v = to_scale (scale, value);

  scale->low = MIN (scale->low, v);
  scale->high = MAX (scale->high, v);
}

static void
add_tick (Scale *scale, double value)
{
  double v = to_scale (scale, value), slack = 1e-9 * (scale->high - scale->low);

  if (scale->n_tick < MAX_TICKS && v >= scale->low - slack && v <= scale->high + slack)
    scale->ticks[scale->n_tick++] = value;
}

/* The next of 1, 2, 5, 10 ... times a power of ten at or above value. */
static double
round_up_step (double value)
{
  double power = pow (10, floor (log10 (value))), part = value / power;

  return power * (part <= 1 + 1e-9 ? 1 : part <= 2 + 1e-9 ? 2 : part <= 5 + 1e-9 ? 5 : 10);
}

static void
make_linear_ticks (Scale *scale, gboolean fit)
{
  double step = round_up_step ((scale->high - scale->low) / 8);

  if (fit) {
    scale->low = floor (scale->low / step + 1e-9) * step;
    scale->high = ceil (scale->high / step - 1e-9) * step;
  }
  for (double n = ceil (scale->low / step - 1e-9); n * step <= scale->high + step * 1e-9; n++)
    add_tick (scale, n * step);
}

static void
make_log_ticks (Scale *scale)
{
  static const double parts[] = {1, 2, 5};
  gboolean whole_decades = scale->high - scale->low > 4;

  for (double e = floor (scale->low); e <= scale->high; e++)
    for (guint i = 0; i < (whole_decades ? 1 : G_N_ELEMENTS (parts)); i++)
      add_tick (scale, parts[i] * pow (10, e));
}

/* Marks the places of the points themselves; FALSE when there are too many of them. */
static gboolean
make_own_ticks (Chart *chart)
{
  double own[MAX_OWN_TICKS];
  guint n = 0;

  for (gsize s = 0; s < chart->n_series; s++)
    for (gsize i = 0; i < chart->series[s].n_point; i++) {
      const KsPlotPoint *point = &chart->series[s].points[i];
      guint at = 0;

      while (at < n && own[at] != point->x)
        at++;
      if (!is_drawn (chart, point) || at < n)
        continue;
      if (n == MAX_OWN_TICKS)
        return FALSE;
      own[n++] = point->x;
    }
  for (guint i = 0; i < n; i++)
    add_tick (&chart->x, own[i]);
  return TRUE;
}

/* No points, or all in one place: some room on both sides. */
static void
open_scale (Scale *scale)
{
  double half;

  if (scale->low > scale->high)
    scale->low = scale->high = 0;
  if (scale->high - scale->low > 1e-12 * MAX (1, fabs (scale->high)))
    return;
  half = scale->is_log ? 0.5 : MAX (fabs (scale->high) / 10, 0.5);
  scale->low -= half;
  scale->high += half;
}

static void
make_scales (Chart *chart)
{
  const KsPlotAxes *axes = chart->axes;
  gboolean fixed_y = FALSE;

  chart->x = (Scale){.low = INFINITY, .high = -INFINITY, .is_log = axes->log_x};
  chart->y = (Scale){.low = INFINITY, .high = -INFINITY, .is_log = axes->log_y};
  for (gsize s = 0; s < chart->n_series; s++)
    for (gsize i = 0; i < chart->series[s].n_point; i++) {
      const KsPlotPoint *point = &chart->series[s].points[i];

      if (!is_drawn (chart, point))
        continue;
      widen (&chart->x, point->x);
      widen (&chart->y, point->y);
      if (has_interval (chart, point)) {
        widen (&chart->y, point->low);
        widen (&chart->y, point->high);
      }
    }
  if (isfinite (axes->y_min) && (!axes->log_y || axes->y_min > 0)) {
    chart->y.low = to_scale (&chart->y, axes->y_min);
    fixed_y = TRUE;
  }
  if (isfinite (axes->y_max) && (!axes->log_y || axes->y_max > 0)) {
    chart->y.high = to_scale (&chart->y, axes->y_max);
    fixed_y = TRUE;
  }
  open_scale (&chart->x);
  open_scale (&chart->y);
  if (chart->y.is_log)
    make_log_ticks (&chart->y);
  else
    make_linear_ticks (&chart->y, !fixed_y);
  if (!chart->x.is_log)
    make_linear_ticks (&chart->x, FALSE);
  else if (!make_own_ticks (chart))
    make_log_ticks (&chart->x);
}

/* --- painting --- */

static void
append_head (GString *out, const KsPlotAxes *axes, double width, double height)
{
  append_numbers (out,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%n\" height=\"%n\" "
                  "viewBox=\"0 0 %n %n\" font-family=\"sans-serif\" font-size=\"12\">\n"
                  "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
                  (const double[]){width, height, width, height});
  if (axes->title != NULL)
    append_text (out, width / 2, 24, " text-anchor=\"middle\" font-size=\"15\"", axes->title);
}

static void
append_labels (GString *out, const KsPlotAxes *axes, double x, double bottom, double y)
{
  g_autoptr (GString) turned = g_string_new (" text-anchor=\"middle\"");

  if (axes->x_label != NULL)
    append_text (out, x, bottom, " text-anchor=\"middle\"", axes->x_label);
  append_numbers (turned, " transform=\"rotate(-90 %n %n)\"", (const double[]){18, y});
  if (axes->y_label != NULL)
    append_text (out, 18, y, turned->str, axes->y_label);
}

static void
append_frame (Chart *chart)
{
  GString *out = chart->out;
  const Scale *x = &chart->x, *y = &chart->y;
  g_autoptr (GString) name = g_string_new (NULL);

  for (guint i = 0; i < y->n_tick; i++) {
    double at = place (y, y->ticks[i]);

    append_numbers (out, "<path d=\"M%n %nH%n\" stroke=\"#dddddd\"/>\n",
                    (const double[]){x->from, at, x->to});
    g_string_truncate (name, 0);
    append_tick_name (name, y->ticks[i]);
    append_text (out, x->from - 8, at + 4, " text-anchor=\"end\"", name->str);
  }
  for (guint i = 0; i < x->n_tick; i++) {
    double at = place (x, x->ticks[i]);

    append_numbers (out, "<path d=\"M%n %nV%n\" stroke=\"#eeeeee\"/>\n",
                    (const double[]){at, y->to, y->from});
    g_string_truncate (name, 0);
    append_tick_name (name, x->ticks[i]);
    append_text (out, at, y->from + 18, " text-anchor=\"middle\"", name->str);
  }
  append_numbers (out, "<path d=\"M%n %nV%nH%n\" stroke=\"#333333\" fill=\"none\"/>\n",
                  (const double[]){x->from, y->to, y->from, x->to});
  append_labels (out, chart->axes, (x->from + x->to) / 2, chart->height - 16,
                 (y->from + y->to) / 2);
}

static void
append_marker (GString *out, gsize kind, double x, double y, const char *colour)
{
  static const char *const shapes[] = {
      "<path d=\"M%n %nm-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0\"",
      "<path d=\"M%n %nm-3.5 -3.5h7v7h-7z\"", "<path d=\"M%n %nm0 -4.5l4.5 8h-9z\"",
      "<path d=\"M%n %nm0 -4.5l4.5 4.5l-4.5 4.5l-4.5 -4.5z\""};

  append_numbers (out, shapes[kind % G_N_ELEMENTS (shapes)], (const double[]){x, y});
  g_string_append_printf (out, " fill=\"%s\"/>\n", colour);
}

static void
append_interval (Chart *chart, const KsPlotPoint *point, const char *colour)
{
  double x = place (&chart->x, point->x);

  append_numbers (chart->out, "<path d=\"M%n %nV%nM%n %nh6M%n %nh6\"",
                  (const double[]){x, place (&chart->y, point->low), place (&chart->y, point->high),
                                   x - 3, place (&chart->y, point->low), x - 3,
                                   place (&chart->y, point->high)});
  g_string_append_printf (chart->out, " stroke=\"%s\" stroke-opacity=\"0.45\"/>\n", colour);
}

static void
append_series (Chart *chart, gsize s)
{
  const KsPlotSeries *series = &chart->series[s];
  const char *colour = colours[s % G_N_ELEMENTS (colours)];
  const char *dash = dashes[s / G_N_ELEMENTS (colours) % G_N_ELEMENTS (dashes)];
  gboolean open = FALSE;

  g_string_append (chart->out, "<path d=\"");
  for (gsize i = 0; i < series->n_point; i++) {
    const KsPlotPoint *point = &series->points[i];

    if (is_drawn (chart, point))
      append_numbers (chart->out, open ? "L%n %n" : "M%n %n",
                      (const double[]){place (&chart->x, point->x), place (&chart->y, point->y)});
    open = is_drawn (chart, point);
  }
  g_string_append_printf (chart->out, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\"",
                          colour);
  if (*dash != '\0')
    g_string_append_printf (chart->out, " stroke-dasharray=\"%s\"", dash);
  g_string_append (chart->out, "/>\n");
  for (gsize i = 0; i < series->n_point; i++) {
    const KsPlotPoint *point = &series->points[i];

    if (!is_drawn (chart, point))
      continue;
    if (has_interval (chart, point))
      append_interval (chart, point, colour);
    if (!series->no_markers)
      append_marker (chart->out, s, place (&chart->x, point->x), place (&chart->y, point->y),
                     colour);
  }
}

static double
count_legend_width (const KsPlotSeries *series, gsize n)
{
  glong longest = 0;

  for (gsize i = 0; i < n; i++)
    if (series[i].name != NULL)
      longest = MAX (longest, g_utf8_strlen (series[i].name, -1));
  return longest > 0 ? 46 + LEGEND_CHAR * (double)longest : 20;
}

static void
append_legend (Chart *chart)
{
  double x = chart->x.to + 14, y = chart->y.to + 6;

  for (gsize s = 0; s < chart->n_series; s++) {
    const char *colour = colours[s % G_N_ELEMENTS (colours)];
    const char *dash = dashes[s / G_N_ELEMENTS (colours) % G_N_ELEMENTS (dashes)];

    if (chart->series[s].name == NULL)
      continue;
    append_numbers (chart->out, "<path d=\"M%n %nh22\"", (const double[]){x, y});
    g_string_append_printf (chart->out, " stroke=\"%s\" stroke-width=\"1.8\"", colour);
    if (*dash != '\0')
      g_string_append_printf (chart->out, " stroke-dasharray=\"%s\"", dash);
    g_string_append (chart->out, "/>\n");
    if (!chart->series[s].no_markers)
      append_marker (chart->out, s, x + 11, y, colour);
    append_text (chart->out, x + 28, y + 4, "", chart->series[s].name);
    y += LEGEND_ROW;
  }
}

GString *
ks_plot_line_svg (const KsPlotAxes *axes, const KsPlotSeries *series, gsize n_series)
{
  Chart chart = {.axes = axes, .series = series, .n_series = n_series};

  g_return_val_if_fail (axes != NULL && (series != NULL || n_series == 0), NULL);
  chart.width = axes->width_px > 0 ? axes->width_px : DEFAULT_WIDTH;
  chart.height = axes->height_px > 0 ? axes->height_px : DEFAULT_HEIGHT;
  chart.height = MAX (chart.height, TOP + BOTTOM + LEGEND_ROW * (double)(n_series + 1));
  make_scales (&chart);
  chart.x.from = LEFT;
  chart.x.to = MAX (chart.width - count_legend_width (series, n_series), LEFT + 50);
  chart.y.from = chart.height - BOTTOM;
  chart.y.to = TOP;
  chart.out = g_string_new (NULL);
  append_head (chart.out, axes, chart.width, chart.height);
  append_frame (&chart);
  for (gsize s = 0; s < n_series; s++)
    append_series (&chart, s);
  append_legend (&chart);
  g_string_append (chart.out, "</svg>\n");
  return chart.out;
}

/* --- heat map --- */

static void
append_cell (GString *out, double x, double y, double width, double height, double value)
{
  char text[G_ASCII_DTOSTR_BUF_SIZE];
  double v = CLAMP (value, 0.0, 1.0);

  append_numbers (out, "<rect x=\"%n\" y=\"%n\" width=\"%n\" height=\"%n\"",
                  (const double[]){x, y, width - 1, height - 1});
  if (!isfinite (value)) {
    g_string_append (out, " fill=\"#f0f0f0\"/>\n");
    return;
  }
  /* From white to the blue of the lines: dark is good, also in grey. */
  g_string_append_printf (out, " fill=\"#%02x%02x%02x\"/>\n", (guint)lround (255 - 255 * v),
                          (guint)lround (255 - 141 * v), (guint)lround (255 - 77 * v));
  g_ascii_formatd (text, sizeof text, "%.0f", 100 * v);
  append_text (out, x + width / 2, y + height / 2 + 4,
               v > 0.6 ? " text-anchor=\"middle\" fill=\"#ffffff\"" : " text-anchor=\"middle\"",
               text);
}

GString *
ks_plot_heat_svg (const KsPlotAxes *axes, const double *values, gsize n_row, gsize n_col,
                  const char *const *row_names, const char *const *col_names)
{
  GString *out = g_string_new (NULL);
  double width, height, left = LEFT, cell_w, cell_h;

  g_return_val_if_fail (axes != NULL && values != NULL && n_row > 0 && n_col > 0, out);
  width = axes->width_px > 0 ? axes->width_px : DEFAULT_WIDTH;
  height = axes->height_px > 0 ? axes->height_px : TOP + BOTTOM + 28.0 * (double)n_row;
  for (gsize i = 0; i < n_row; i++)
    left = MAX (left, 36 + LEGEND_CHAR * (double)g_utf8_strlen (row_names[i], -1));
  cell_w = (width - left - 20) / (double)n_col;
  cell_h = (height - TOP - BOTTOM) / (double)n_row;
  append_head (out, axes, width, height);
  for (gsize row = 0; row < n_row; row++) {
    double y = TOP + cell_h * (double)row;

    append_text (out, left - 8, y + cell_h / 2 + 4, " text-anchor=\"end\"", row_names[row]);
    for (gsize col = 0; col < n_col; col++)
      append_cell (out, left + cell_w * (double)col, y, cell_w, cell_h, values[row * n_col + col]);
  }
  for (gsize col = 0; col < n_col; col++)
    append_text (out, left + cell_w * ((double)col + 0.5), height - BOTTOM + 18,
                 " text-anchor=\"middle\"", col_names[col]);
  append_labels (out, axes, left + (width - left) / 2, height - 16, (TOP + height - BOTTOM) / 2);
  g_string_append (out, "</svg>\n");
  return out;
}
