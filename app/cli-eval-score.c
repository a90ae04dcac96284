/* cli-eval-score.c - keepsake-cli eval score: means of every metric, cell by cell, from run files
 * alone.  Intervals and comparisons are eval-table's. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-eval.h"

#include "app/eval-mme.h"
#include "app/eval-results.h"
#include "app/ks-error.h"

#include <stdio.h>
#include <string.h>

static const char help[] =
    "Official scorers read the raw reply; harness ones what a parser for reasoning models leaves "
    "of\n"
    "it. Rows of other programs, which lack references, get them from --data. A folder of MME's\n"
    "result files, one of them, or LLaVA's answers to TextVQA are read as they are.\n"
    "The metrics of MMDU here are proxies; its own score needs a judge: 'eval judge'.\n\n"
    "Examples:\n"
    "  keepsake-cli eval score mme.jsonl\n"
    "  keepsake-cli eval score mathvision.jsonl --scorer harness --parts\n"
    "  keepsake-cli eval score theirs.jsonl --data textvqa_val.json --json\n"
    "  keepsake-cli eval score MME_results\n";

typedef struct {
  CliEvalData data;
  char *scorer;
  gboolean parts, turns, json;
} Options;

/* What is averaged. */
typedef struct {
  const char *bench, *metric;
  KsEvalCell cell;
  char *part;
  double sum;
  guint n;
} Mean;

typedef struct {
  GHashTable *by_name; /* borrowed names -> Mean */
  GPtrArray *means;    /* in the order in which they came up */
} Means;

static void
free_mean (gpointer data)
{
  g_free (((Mean *)data)->part);
  g_free (data);
}

static void
add_value (Means *means, const KsEvalScore *score, const char *part)
{
  g_autofree char *key = ks_eval_cell_make_key (&score->cell);
  g_autofree char *name =
      g_strdup_printf ("%s\n%s\n%s\n%s", score->bench, score->metric, part, key);
  Mean *mean = g_hash_table_lookup (means->by_name, name);

  if (mean == NULL) {
    mean = g_new0 (Mean, 1);
    *mean = (Mean){.bench = score->bench, .metric = score->metric, .cell = score->cell};
    mean->part = g_strdup (part);
    g_hash_table_insert (means->by_name, g_steal_pointer (&name), mean);
    g_ptr_array_add (means->means, mean);
  }
  mean->sum += score->value;
  mean->n++;
}

/* "counting/level 2" counts for itself, for all of counting and for all of level 2. */
static void
add_parts (Means *means, const KsEvalScore *score)
{
  const char *slash = strchr (score->part, '/');

  if (score->part[0] == '\0')
    return;
  add_value (means, score, score->part);
  if (slash != NULL) {
    g_autofree char *first = g_strndup (score->part, (gsize)(slash - score->part));
    g_autofree char *front = g_strconcat (first, "/*", NULL),
                    *back = g_strconcat ("*", slash, NULL);

    add_value (means, score, front);
    add_value (means, score, back);
  }
}

static void
add_scores (const Options *options, Means *means, const GArray *scores)
{
  for (guint i = 0; i < scores->len; i++)
    add_value (means, &g_array_index (scores, KsEvalScore, i), "");
  for (guint i = 0; i < scores->len; i++) {
    const KsEvalScore *score = &g_array_index (scores, KsEvalScore, i);
    g_autofree char *turn = g_strdup_printf ("turn %u", score->turn + 1);

    if (options->parts)
      add_parts (means, score);
    if (options->turns)
      add_value (means, score, turn);
  }
}

/* --- MME --- */

/* The sums over subtasks of one cell, as a JSON object; a missing subtask is told in its place. */
static cJSON *
make_mme (const GPtrArray *rows, const KsEvalCell *cell, gboolean harness)
{
  g_autoptr (GArray) items = g_array_new (FALSE, TRUE, sizeof (KsEvalMmeItem));
  double tasks[KS_EVAL_MME_N_TASKS], perception = 0, cognition = 0;
  g_autofree char *problem = NULL, *what = cli_eval_describe (cell);
  cJSON *json = cJSON_CreateObject ();

  for (guint i = 0; i < rows->len; i++) {
    const KsEvalRow *row = g_ptr_array_index (rows, i);
    KsEvalMmeItem item = {.category = row->part,
                          .image = row->group,
                          .reference = row->expect != NULL ? row->expect[0] : "",
                          .prediction = row->prediction};

    if (strcmp (row->bench, "mme") == 0 && ks_eval_cell_equal (&row->cell, cell))
      g_array_append_val (items, item);
  }
  cJSON_AddStringToObject (json, "cell", what);
  if (ks_eval_mme_aggregate ((const KsEvalMmeItem *)items->data, items->len, harness, tasks,
                             &perception, &cognition, &problem)) {
    cJSON_AddNumberToObject (json, "perception", perception);
    cJSON_AddNumberToObject (json, "cognition", cognition);
    for (guint i = 0; i < KS_EVAL_MME_N_TASKS; i++)
      cJSON_AddNumberToObject (json, ks_eval_mme_tasks[i], tasks[i]);
  } else {
    cJSON_AddStringToObject (json, "problem", problem != NULL ? problem : "");
  }
  return json;
}

/* One object for each cell with rows of MME, or NULL. */
static cJSON *
make_all_mme (const GPtrArray *rows, const Means *means, gboolean harness)
{
  cJSON *list = NULL;

  for (guint i = 0; i < means->means->len; i++) {
    const Mean *mean = g_ptr_array_index (means->means, i);

    if (strcmp (mean->bench, "mme") != 0 || strcmp (mean->metric, "accuracy") != 0 ||
        mean->part[0] != '\0')
      continue;
    if (list == NULL)
      list = cJSON_CreateArray ();
    cJSON_AddItemToArray (list, make_mme (rows, &mean->cell, harness));
  }
  return list;
}

/* --- printing --- */

static cJSON *
make_json (const Means *means, const char *scorer, const cJSON *header, cJSON *take_mme)
{
  cJSON *json = cJSON_CreateObject (), *list = cJSON_AddArrayToObject (json, "means");

  cJSON_AddStringToObject (json, "scorer", scorer);
  if (header != NULL)
    cJSON_AddItemToObject (json, "run", cJSON_Duplicate (header, TRUE));
  for (guint i = 0; i < means->means->len; i++) {
    const Mean *mean = g_ptr_array_index (means->means, i);
    cJSON *at = cJSON_CreateObject ();

    cJSON_AddStringToObject (at, "bench", mean->bench);
    cJSON_AddStringToObject (at, "metric", mean->metric);
    cJSON_AddStringToObject (at, "part", mean->part);
    cJSON_AddStringToObject (at, "policy", mean->cell.policy);
    cJSON_AddNumberToObject (at, "M", (double)mean->cell.entries);
    cJSON_AddStringToObject (at, "budget", mean->cell.budget);
    cJSON_AddStringToObject (at, "mode", mean->cell.mode);
    cJSON_AddStringToObject (at, "question", mean->cell.question);
    cJSON_AddNumberToObject (at, "seed", (double)mean->cell.seed);
    cJSON_AddNumberToObject (at, "n", mean->n);
    cJSON_AddNumberToObject (at, "mean", mean->sum / mean->n);
    cJSON_AddItemToArray (list, at);
  }
  if (take_mme != NULL)
    cJSON_AddItemToObject (json, "mme", take_mme);
  return json;
}

static void
print_means (const Means *means)
{
  const Mean *last = NULL;

  for (guint i = 0; i < means->means->len; i++) {
    const Mean *mean = g_ptr_array_index (means->means, i);
    g_autofree char *cell = cli_eval_describe (&mean->cell);
    g_autofree char *what = g_strdup_printf ("%s %s%s%s", mean->bench, mean->metric,
                                             mean->part[0] != '\0' ? " " : "", mean->part);
    g_autofree char *safe_cell = cli_dup_printable (cell), *safe_what = cli_dup_printable (what);

    if (last == NULL)
      printf ("%-40s %-36s %6s %9s\n", "bench, metric, part", "policy, entries", "n", "mean");
    printf ("%-40s %-36s %6u %9.4f\n", safe_what, safe_cell, mean->n, mean->sum / mean->n);
    last = mean;
  }
}

static void
print_mme (const cJSON *list)
{
  const cJSON *at, *field;

  cJSON_ArrayForEach (at, list)
  {
    cJSON_ArrayForEach (field, at)
    {
      g_autofree char *text =
          cJSON_IsString (field) ? cli_dup_printable (field->valuestring) : NULL;

      if (text != NULL)
        printf ("%s%s%s\n", strcmp (field->string, "cell") == 0 ? "MME, " : "  ", text,
                strcmp (field->string, "cell") == 0 ? ":" : "");
      else
        printf ("  %-24s %9.2f\n", field->string, field->valuedouble);
    }
  }
}

/* Rows of a run file, or of answers that another program wrote. (transfer full) */
static GPtrArray *
load_rows (const CliEvalData *data, const char *path, KsEvalRunFile **out_file, GError **error)
{
  const KsEvalLoadOptions where = cli_eval_data_get_options (data);

  if (ks_eval_results_are (path))
    return ks_eval_results_load (path, &where, error);
  *out_file = ks_eval_run_file_load (path, error);
  return *out_file != NULL ? g_ptr_array_ref (ks_eval_run_file_get_rows (*out_file)) : NULL;
}

static gboolean
score_file (const Options *options, KsEvalScorer scorer, const char *path, GError **error)
{
  g_autoptr (KsEvalRunFile) file = NULL;
  g_autoptr (GHashTable) by_name = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GPtrArray) list = g_ptr_array_new_with_free_func (free_mean);
  Means means = {by_name, list};
  g_autoptr (GArray) scores = NULL;
  g_autoptr (GPtrArray) rows = load_rows (&options->data, path, &file, error);
  cJSON *mme;

  if (rows == NULL || !cli_eval_data_complete (&options->data, rows, error))
    return FALSE;
  scores = ks_eval_score_rows (rows, scorer, error);
  if (scores == NULL)
    return FALSE;
  add_scores (options, &means, scores);
  mme = make_all_mme (rows, &means, scorer == KS_EVAL_HARNESS);
  if (options->json) {
    cli_print_json (make_json (&means, ks_eval_scorer_get_name (scorer),
                               file != NULL ? ks_eval_run_file_get_header (file) : NULL, mme));
    return TRUE;
  }
  printf ("%s, %s scorer, %u rows\n", path, ks_eval_scorer_get_name (scorer), rows->len);
  print_means (&means);
  print_mme (mme);
  cJSON_Delete (mme);
  return TRUE;
}

static int
score_files (const Options *options, char **paths)
{
  KsEvalScorer scorer = KS_EVAL_OFFICIAL;

  if (g_strcmp0 (options->scorer, "harness") == 0)
    scorer = KS_EVAL_HARNESS;
  else if (options->scorer != NULL && !g_str_equal (options->scorer, "official"))
    return cli_usage ("--scorer must be official or harness");
  if (paths[0] == NULL)
    return cli_usage ("name a run file: see keepsake-cli eval score --help");
  for (guint i = 0; paths[i] != NULL; i++) {
    g_autoptr (GError) error = NULL;

    if (!score_file (options, scorer, paths[i], &error))
      return cli_fail (error);
  }
  return CLI_OK;
}

int
cli_eval_score_main (char **args)
{
  g_autoptr (GOptionContext) context = g_option_context_new ("FILE...");
  g_auto (GStrv) rest = g_strdupv (args);
  Options options = {0};
  int code = CLI_OK;
  const GOptionEntry entries[] = {
      {"scorer", 0, 0, G_OPTION_ARG_STRING, &options.scorer,
       "official, or harness (default official)", "NAME"},
      {"parts", 0, 0, G_OPTION_ARG_NONE, &options.parts,
       "subtasks, subjects, levels, lengths and depths as well", NULL},
      {"turns", 0, 0, G_OPTION_ARG_NONE, &options.turns, "turn by turn as well", NULL},
      {"json", 'j', 0, G_OPTION_ARG_NONE, &options.json, "print the result as JSON", NULL},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  g_option_context_add_main_entries (context, entries, NULL);
  cli_eval_data_add (&options.data, context);
  g_option_context_set_summary (
      context, "Scores the rows of run files, and of result files of other programs.");
  g_option_context_set_description (context, help);
  if (cli_parse (context, &rest, &code))
    code = score_files (&options, rest + 1);
  cli_eval_data_clear (&options.data);
  g_free (options.scorer);
  return code;
}
