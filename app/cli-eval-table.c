/* cli-eval-table.c - keepsake-cli eval table: run files as tables with intervals and comparisons,
 * and as plots; needles and visual haystacks as heat maps of length and place. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-eval.h"

#include "app/eval-table.h"
#include "app/ks-error.h"
#include "app/ks-plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SIDE 64u /* rows or columns of a heat map */

static const char help[] =
    "Several run files of one model make one table; the facts of the first are printed above it.\n"
    "--out writes NAME.md, NAME.csv, NAME.json and plots, NAME being that of the first file.\n\n"
    "Examples:\n"
    "  keepsake-cli eval table needle.jsonl\n"
    "  keepsake-cli eval table needle.jsonl tracking.jsonl --parts --out results\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong options.";

typedef struct {
  CliEvalData data;
  char *scorer, *folder;
  gboolean parts, json;
} Options;

/* --- heat maps --- */

/* What stands at one length and place in one cell. */
typedef struct {
  double sum;
  guint n;
} Spot;

typedef struct {
  const KsEvalScore *first; /* names the map */
  guint64 rows[MAX_SIDE], cols[MAX_SIDE];
  guint n_row, n_col;
  Spot spots[MAX_SIDE][MAX_SIDE];
} Heat;

/* "4096/50"; FALSE for parts of another form. */
static gboolean
parse_place (const char *part, guint64 *out_row, guint64 *out_col)
{
  g_auto (GStrv) parts = g_strsplit (part, "/", -1);

  return g_strv_length (parts) == 2 &&
         g_ascii_string_to_unsigned (parts[0], 10, 0, G_MAXUINT32, out_row, NULL) &&
         g_ascii_string_to_unsigned (parts[1], 10, 0, 100, out_col, NULL);
}

static int
compare_numbers (const void *a, const void *b)
{
  guint64 x = *(const guint64 *)a, y = *(const guint64 *)b;

  return x < y ? -1 : x > y;
}

/* The place of value in list; it is put there where it is new and there is room. */
static gboolean
note_number (guint64 *list, guint *io_n, guint64 value)
{
  for (guint i = 0; i < *io_n; i++)
    if (list[i] == value)
      return TRUE;
  if (*io_n == MAX_SIDE)
    return FALSE;
  list[(*io_n)++] = value;
  return TRUE;
}

static guint
find_number (const guint64 *list, guint64 value)
{
  guint i = 0;

  while (list[i] != value)
    i++;
  return i;
}

static gboolean
is_of_heat (const Heat *heat, const KsEvalScore *score)
{
  return score->bench == heat->first->bench && score->metric == heat->first->metric &&
         ks_eval_cell_equal (&score->cell, &heat->first->cell);
}

/* FALSE where the scores are no grid of lengths and places. */
static gboolean
fill_heat (Heat *heat, const GArray *scores)
{
  guint64 row, col;

  for (guint i = 0; i < scores->len; i++) {
    const KsEvalScore *score = &g_array_index (scores, KsEvalScore, i);

    if (is_of_heat (heat, score) &&
        (!parse_place (score->part, &row, &col) || !note_number (heat->rows, &heat->n_row, row) ||
         !note_number (heat->cols, &heat->n_col, col)))
      return FALSE;
  }
  qsort (heat->rows, heat->n_row, sizeof *heat->rows, compare_numbers);
  qsort (heat->cols, heat->n_col, sizeof *heat->cols, compare_numbers);
  for (guint i = 0; i < scores->len; i++) {
    const KsEvalScore *score = &g_array_index (scores, KsEvalScore, i);

    if (is_of_heat (heat, score) && parse_place (score->part, &row, &col)) {
      Spot *spot = &heat->spots[find_number (heat->rows, row)][find_number (heat->cols, col)];

      spot->sum += score->value;
      spot->n++;
    }
  }
  return heat->n_row * heat->n_col > 1;
}

static GString *
draw_heat (const Heat *heat, const char *title)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  const char *rows[MAX_SIDE], *cols[MAX_SIDE];
  double values[MAX_SIDE * MAX_SIDE];
  KsPlotAxes axes = ks_plot_axes (title, "place, %", "length");

  for (guint i = 0; i < heat->n_row; i++) {
    g_ptr_array_add (names, g_strdup_printf ("%" G_GUINT64_FORMAT, heat->rows[i]));
    rows[i] = g_ptr_array_index (names, names->len - 1);
  }
  for (guint i = 0; i < heat->n_col; i++) {
    g_ptr_array_add (names, g_strdup_printf ("%" G_GUINT64_FORMAT, heat->cols[i]));
    cols[i] = g_ptr_array_index (names, names->len - 1);
  }
  for (guint r = 0; r < heat->n_row; r++)
    for (guint c = 0; c < heat->n_col; c++) {
      const Spot *spot = &heat->spots[r][c];

      values[r * heat->n_col + c] = spot->n > 0 ? spot->sum / spot->n : NAN;
    }
  return ks_plot_heat_svg (&axes, values, heat->n_row, heat->n_col, rows, cols);
}

static gboolean
write_heat (const Options *options, const char *name, const Heat *heat, GError **error)
{
  g_autofree char *cell = cli_eval_describe (&heat->first->cell);
  g_autofree char *title =
      g_strdup_printf ("%s, %s: %s", heat->first->bench, heat->first->metric, cell);
  g_autofree char *file =
      g_strdup_printf ("%s-%s-%s-%s.svg", name, heat->first->bench, heat->first->metric, cell);
  g_autofree char *path = NULL;
  GString *svg = draw_heat (heat, title);
  gboolean ok;

  g_strdelimit (file, "/ :,=", '-');
  path = g_build_filename (options->folder, file, NULL);
  ok = g_file_set_contents (path, svg->str, (gssize)svg->len, error);
  g_string_free (svg, TRUE);
  return ok;
}

/* One for every cell and metric whose parts are lengths and places. */
static gboolean
write_heats (const Options *options, const char *name, const GArray *scores, GError **error)
{
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  gboolean ok = TRUE;

  for (guint i = 0; ok && i < scores->len; i++) {
    const KsEvalScore *score = &g_array_index (scores, KsEvalScore, i);
    g_autofree char *key = ks_eval_cell_make_key (&score->cell);
    Heat *heat;

    if (!g_hash_table_add (seen, g_strdup_printf ("%s\n%s\n%s", score->bench, score->metric, key)))
      continue;
    heat = g_new0 (Heat, 1);
    heat->first = score;
    if (fill_heat (heat, scores))
      ok = write_heat (options, name, heat, error);
    g_free (heat);
  }
  return ok;
}

/* --- tables --- */

static void
set_kinds (KsEvalTable *table)
{
  static const char *const losses[] = {"loss", "nll"};
  static const char *const numbers[] = {"n_scored", "gain", "entropy", "effective", "n-rest"};

  for (guint i = 0; i < G_N_ELEMENTS (losses); i++)
    ks_eval_table_set_kind (table, losses[i], KS_EVAL_LOSS);
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++)
    ks_eval_table_set_kind (table, numbers[i], KS_EVAL_NUMBER);
}

static gboolean
add_file (const Options *options, KsEvalScorer scorer, KsEvalTable *table, KsEvalRunFile *file,
          const char *name, GError **error)
{
  GPtrArray *rows = ks_eval_run_file_get_rows (file);
  g_autoptr (GArray) scores = NULL;

  if (!cli_eval_data_complete (&options->data, rows, error))
    return FALSE;
  scores = ks_eval_score_rows (rows, scorer, error);
  if (scores == NULL)
    return FALSE;
  for (guint i = 0; i < scores->len; i++) {
    KsEvalScore score = g_array_index (scores, KsEvalScore, i);

    if (!options->parts)
      score.part = "";
    ks_eval_table_add_score (table, &score);
  }
  for (guint i = 0; i < rows->len; i++)
    ks_eval_table_add_row (table, g_ptr_array_index (rows, i));
  return options->folder == NULL || write_heats (options, name, scores, error);
}

static char *
make_name (const char *path)
{
  g_autofree char *base = g_path_get_basename (path);
  const char *dot = strrchr (base, '.');

  return dot != NULL && dot > base ? g_strndup (base, (gsize)(dot - base)) : g_strdup (base);
}

static gboolean
tell (const Options *options, KsEvalTable *table, const cJSON *header, const char *name,
      GError **error)
{
  if (options->folder != NULL)
    return ks_eval_table_write (table, header, options->folder, name, error);
  if (options->json) {
    cli_print_json (ks_eval_table_to_json (table, header));
  } else {
    GString *text = ks_eval_table_to_markdown (table, header);

    cli_print_text (text->str);
    g_string_free (text, TRUE);
  }
  return TRUE;
}

static gboolean
make_table (const Options *options, KsEvalScorer scorer, char **paths, GError **error)
{
  g_autoptr (KsEvalTable) table = ks_eval_table_new ();
  g_autoptr (GPtrArray) files =
      g_ptr_array_new_with_free_func ((GDestroyNotify)ks_eval_run_file_free);
  g_autofree char *name = make_name (paths[0]);
  cJSON *header = NULL;
  const cJSON *streams;
  gboolean ok = TRUE;

  set_kinds (table);
  for (guint i = 0; ok && paths[i] != NULL; i++) {
    KsEvalRunFile *file = ks_eval_run_file_load (paths[i], error);

    if (file == NULL)
      return FALSE;
    g_ptr_array_add (files, file);
    ok = add_file (options, scorer, table, file, name, error);
  }
  header = cJSON_Duplicate (ks_eval_run_file_get_header (g_ptr_array_index (files, 0)), TRUE);
  cJSON_AddStringToObject (header, "scorer", ks_eval_scorer_get_name (scorer));
  streams = cJSON_GetObjectItem (header, "streams");
  ks_eval_table_set_n_stream (table, cJSON_IsNumber (streams) ? (guint)streams->valueint : 0);
  ok = ok && tell (options, table, header, name, error);
  cJSON_Delete (header);
  return ok;
}

int
cli_eval_table_main (char **args)
{
  g_autoptr (GOptionContext) context = g_option_context_new ("FILE...");
  g_auto (GStrv) rest = g_strdupv (args);
  g_autoptr (GError) error = NULL;
  Options options = {0};
  KsEvalScorer scorer = KS_EVAL_OFFICIAL;
  int code = CLI_OK;
  const GOptionEntry entries[] = {
      {"out", 'o', 0, G_OPTION_ARG_FILENAME, &options.folder, "folder for tables and plots", "DIR"},
      {"scorer", 0, 0, G_OPTION_ARG_STRING, &options.scorer,
       "official or harness (default official)", "NAME"},
      {"parts", 0, 0, G_OPTION_ARG_NONE, &options.parts,
       "a table for each part: subtask, subject, length and place", NULL},
      {"json", 0, 0, G_OPTION_ARG_NONE, &options.json, "print JSON", NULL},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  g_option_context_add_main_entries (context, entries, NULL);
  cli_eval_data_add (&options.data, context);
  g_option_context_set_summary (context, "Tables with intervals and plots from run files.");
  g_option_context_set_description (context, help);
  if (cli_parse (context, &rest, &code)) {
    if (options.scorer != NULL && g_str_equal (options.scorer, "harness"))
      scorer = KS_EVAL_HARNESS;
    if (rest[1] == NULL)
      code = cli_usage ("name one run file or more: keepsake-cli eval table needle.jsonl");
    else if (options.scorer != NULL && scorer != KS_EVAL_HARNESS &&
             !g_str_equal (options.scorer, "official"))
      code = cli_usage ("--scorer must be official or harness");
    else if (options.folder != NULL && g_mkdir_with_parents (options.folder, 0755) != 0)
      code = cli_usage ("%s: the folder cannot be made", options.folder);
    else if (!make_table (&options, scorer, rest + 1, &error))
      code = cli_fail (error);
  }
  cli_eval_data_clear (&options.data);
  g_free (options.scorer);
  g_free (options.folder);
  return code;
}
