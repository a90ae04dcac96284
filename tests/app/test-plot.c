/* test-plot.c - charts are well-formed, say the same in every locale, break lines where a value is
 * missing and put points where the scale says. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-plot.h"

#include <locale.h>
#include <math.h>
#include <string.h>

static guint
count (const char *text, const char *part)
{
  guint n = 0;

  for (const char *at = strstr (text, part); at != NULL; at = strstr (at + 1, part))
    n++;
  return n;
}

static void
assert_well_formed (const GString *svg)
{
  const GMarkupParser parser = {0};
  GMarkupParseContext *context = g_markup_parse_context_new (&parser, 0, NULL, NULL);
  GError *error = NULL;

  g_markup_parse_context_parse (context, svg->str, (gssize)svg->len, &error);
  g_assert_no_error (error);
  g_markup_parse_context_end_parse (context, &error);
  g_assert_no_error (error);
  g_markup_parse_context_free (context);
  g_assert_null (strstr (svg->str, "nan"));
  g_assert_null (strstr (svg->str, "inf"));
}

/* A frame of 760 x 460 without a legend spans x 74 .. 740 and y 402 .. 44: a point half way lies in
 * the middle, also on logarithmic axes. */
static void
test_places (void)
{
  KsPlotPoint linear[] = {ks_plot_point (0, 0), ks_plot_point (5, 5), ks_plot_point (10, 10)};
  KsPlotPoint powers[] = {ks_plot_point (64, 0), ks_plot_point (256, 5), ks_plot_point (1024, 10)};
  KsPlotAxes axes = ks_plot_axes (NULL, NULL, NULL);
  KsPlotSeries series = {.points = linear, .n_point = 3};
  GString *svg = ks_plot_line_svg (&axes, &series, 1);

  assert_well_formed (svg);
  g_assert_nonnull (strstr (svg->str, "M74.00 402.00L407.00 223.00L740.00 44.00\""));
  g_string_free (svg, TRUE);
  series.points = powers;
  axes.log_x = TRUE;
  svg = ks_plot_line_svg (&axes, &series, 1);
  assert_well_formed (svg);
  g_assert_nonnull (strstr (svg->str, "M74.00 402.00L407.00 223.00L740.00 44.00\""));
  g_assert_nonnull (strstr (svg->str, ">256</text>"));
  g_assert_nonnull (strstr (svg->str, ">1k</text>"));
  g_string_free (svg, TRUE);
}

/* A missing value leaves a gap: two pieces, nothing between them. */
static void
test_gap (void)
{
  KsPlotPoint points[] = {ks_plot_point (0, 1), ks_plot_point (1, 2), ks_plot_point (2, NAN),
                          ks_plot_point (3, 1), ks_plot_point (4, 2)};
  KsPlotAxes axes = ks_plot_axes (NULL, NULL, NULL);
  KsPlotSeries series = {.points = points, .n_point = 5, .no_markers = TRUE};
  GString *svg = ks_plot_line_svg (&axes, &series, 1);
  g_auto (GStrv) parts = NULL, rest = NULL;

  assert_well_formed (svg);
  parts = g_strsplit (svg->str, "<path d=\"M74.00 402.00L", 2);
  g_assert_cmpuint (g_strv_length (parts), ==, 2);
  rest = g_strsplit (parts[1], "\"", 2);
  g_assert_cmpuint (count (rest[0], "M"), ==, 1);
  g_assert_cmpuint (count (rest[0], "L"), ==, 1);
  g_string_free (svg, TRUE);
}

/* Names come from users' files: nothing of them is markup. */
static void
test_text (void)
{
  KsPlotPoint points[] = {{.x = 1, .y = 0.5, .low = 0.25, .high = 0.75}};
  KsPlotAxes axes = ks_plot_axes ("a < b & \"c\"", "x\x01\n", "y");
  KsPlotSeries series[] = {{.name = "<script>", .points = points, .n_point = 1},
                           {.name = "bad \xff byte", .points = points, .n_point = 0}};
  GString *svg = ks_plot_line_svg (&axes, series, 2);

  assert_well_formed (svg);
  g_assert_nonnull (strstr (svg->str, "a &lt; b &amp;"));
  g_assert_nonnull (strstr (svg->str, "&lt;script&gt;"));
  g_assert_null (strstr (svg->str, "<script>"));
  g_assert_true (g_utf8_validate (svg->str, -1, NULL));
  g_assert_cmpuint (count (svg->str, "stroke-opacity"), ==, 1); /* the one interval */
  g_string_free (svg, TRUE);
}

/* Nothing to draw, one place only, values that a logarithm does not take: a chart all the same. */
static void
test_odd (void)
{
  KsPlotPoint one[] = {ks_plot_point (3, 7)};
  KsPlotPoint below[] = {ks_plot_point (0, -1), ks_plot_point (INFINITY, 2)};
  KsPlotAxes axes = ks_plot_axes ("t", "x", "y");
  KsPlotSeries series = {.points = one, .n_point = 1};
  GString *svg = ks_plot_line_svg (&axes, NULL, 0);

  assert_well_formed (svg);
  g_string_free (svg, TRUE);
  svg = ks_plot_line_svg (&axes, &series, 1);
  assert_well_formed (svg);
  g_string_free (svg, TRUE);
  axes.log_x = axes.log_y = TRUE;
  series.points = below;
  series.n_point = 2;
  svg = ks_plot_line_svg (&axes, &series, 1);
  assert_well_formed (svg);
  g_assert_null (strstr (svg->str, "L74"));
  g_string_free (svg, TRUE);
}

/* A decimal comma would be read as two numbers. */
static void
test_locale (void)
{
  KsPlotPoint points[] = {ks_plot_point (0, 0), ks_plot_point (1, 0.5)};
  KsPlotAxes axes = ks_plot_axes (NULL, NULL, NULL);
  KsPlotSeries series = {.points = points, .n_point = 2};
  GString *plain = ks_plot_line_svg (&axes, &series, 1), *other;

  if (setlocale (LC_NUMERIC, "de_DE.UTF-8") == NULL)
    g_test_message ("no locale with a decimal comma here: only the plain one is compared");
  other = ks_plot_line_svg (&axes, &series, 1);
  setlocale (LC_NUMERIC, "C");
  g_assert_cmpstr (plain->str, ==, other->str);
  g_string_free (plain, TRUE);
  g_string_free (other, TRUE);
}

/* More lines than colours: no two are drawn alike. */
static void
test_many (void)
{
  KsPlotPoint points[] = {ks_plot_point (0, 0), ks_plot_point (1, 1)};
  KsPlotAxes axes = ks_plot_axes (NULL, NULL, NULL);
  KsPlotSeries series[20];
  g_autoptr (GHashTable) looks = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  GString *svg;

  for (guint i = 0; i < G_N_ELEMENTS (series); i++)
    series[i] = (KsPlotSeries){.points = points, .n_point = 2, .no_markers = TRUE};
  svg = ks_plot_line_svg (&axes, series, G_N_ELEMENTS (series));
  assert_well_formed (svg);
  for (const char *at = strstr (svg->str, "fill=\"none\" stroke=\"#"); at != NULL;
       at = strstr (at + 1, "fill=\"none\" stroke=\"#"))
    g_hash_table_add (looks, g_strndup (at, strcspn (at, ">")));
  g_assert_cmpuint (g_hash_table_size (looks), ==, G_N_ELEMENTS (series));
  g_string_free (svg, TRUE);
}

/* A cell that was not measured shows no number; the others their percentage. */
static void
test_heat (void)
{
  static const char *const rows[] = {"512", "1024"}, *const cols[] = {"0 %", "50 %", "100 %"};
  const double values[] = {1, 0.5, NAN, 0.25, 0, 1};
  KsPlotAxes axes = ks_plot_axes ("needle", "depth", "length");
  GString *svg = ks_plot_heat_svg (&axes, values, 2, 3, rows, cols);

  assert_well_formed (svg);
  g_assert_cmpuint (count (svg->str, "<rect x="), ==, 6);
  g_assert_cmpuint (count (svg->str, ">100</text>"), ==, 2);
  g_assert_cmpuint (count (svg->str, ">25</text>"), ==, 1);
  g_assert_cmpuint (count (svg->str, "#f0f0f0"), ==, 1);
  g_string_free (svg, TRUE);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/plot/places", test_places);
  g_test_add_func ("/plot/gap", test_gap);
  g_test_add_func ("/plot/text", test_text);
  g_test_add_func ("/plot/odd", test_odd);
  g_test_add_func ("/plot/locale", test_locale);
  g_test_add_func ("/plot/many", test_many);
  g_test_add_func ("/plot/heat", test_heat);
  return g_test_run ();
}
