/* cli-bench-dilution.c - keepsake-cli bench dilution: how much attention is left for the evidence
 * as more and more other text stands around it, policy by policy, with two controls: an oracle that
 * forgets everything else, and chance.  The claim that forgetting helps holds only if a policy is
 * more often right than the full cache and its share of attention on the evidence rises; chance
 * must not show both. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-bench-dilution.h"

#include "app/cli-bench-recall-data.h"
#include "app/eval-session.h"
#include "app/eval-table.h"
#include "app/ks-error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ITEMS 1000
#define MAX_LENGTHS 12u
#define MAX_SENTENCES 4096u
#define MAX_ANSWER 24u
#define TOP_PART 10u /* a tenth of the streams retrieve */
#define ORACLE "oracle"

static const char help[] =
    "Evidence is one sentence; the sentences around it double from point to point, with the same\n"
    "evidence and question. Looked at is the place where the first token of the answer is chosen.\n"
    "'oracle' forgets everything but evidence, first and last tokens: the best that can be.\n"
    "'top' figures: the tenth of the streams with most attention on the evidence, chosen once, on\n"
    "the full cache at the shortest length.\n\n"
    "Examples:\n"
    "  keepsake-cli bench dilution --out dilution\n"
    "  keepsake-cli bench dilution --out dilution --entries 64 --items 24\n\n"
    "Exit codes: 0 measured, 1 failed, 2 wrong options, 3 does not fit, 4 not supported, 130 "
    "cancelled.";

typedef struct {
  const CliOptions *options;
  char *folder, *policies, *lengths;
  guint n_sentence[MAX_LENGTHS];
  guint n_length;
  int n_item;
  gint64 seed;
  /* Of the run. */
  KsEngineSetup *setup;
  KsEngineJob *job;
  ks_timeline *tl;
  KsEvalRunFile *file;
  guint n_stream;
  gboolean *top;
} Run;

/* --- one cell of one item --- */

static gboolean
set_keep (Run *run, guint64 n_keep, GError **error)
{
  ks_error err = {0};

  return ks_error_check (ks_timeline_set_n_keep (run->tl, n_keep, &err), &err, error);
}

static gboolean
pin (Run *run, guint begin, guint end, gboolean wanted, GError **error)
{
  ks_error err = {0};
  ks_status status = wanted ? ks_timeline_pin (run->tl, begin, end, &err)
                            : ks_timeline_unpin (run->tl, begin, end, &err);

  return begin >= end || ks_error_check (status, &err, error);
}

/* Everything goes that is neither evidence nor sink nor near the end. */
static gboolean
forget_rest (Run *run, const DilutionItem *item, GError **error)
{
  guint n = item->text->len, n_pinned = 0;
  ks_evict_params params = ks_evict_default_params (KS_POLICY_STREAMING);
  ks_error err = {0};

  params.pin_first = params.pin_last = 0;
  for (guint begin = 0, end; begin < n; begin = end + 1) {
    for (end = begin; end < n && dilution_item_classify (item, run->setup, end) != DILUTION_REST;)
      end++;
    n_pinned += end - begin;
    if (!pin (run, begin, end, TRUE, error))
      return FALSE;
  }
  return ks_error_check (ks_timeline_set_policy (run->tl, &params, &err), &err, error) &&
         set_keep (run, (guint64)n_pinned * run->n_stream, error) && set_keep (run, 0, error) &&
         pin (run, 0, n, FALSE, error);
}

static gboolean
read_text (Run *run, const KsEvalCell *cell, const DilutionItem *item, GError **error)
{
  gboolean is_oracle = g_str_equal (cell->policy, ORACLE);
  ks_evict_params params = ks_evict_default_params (KS_POLICY_FULL);
  ks_error err = {0};

  ks_timeline_reset (run->tl);
  if (!is_oracle && !ks_eval_policy_parse (cell->policy, "chunked", &params, error))
    return FALSE;
  params.seed = cell->seed;
  if (!set_keep (run, 0, error) ||
      !ks_error_check (ks_timeline_set_policy (run->tl, &params, &err), &err, error) ||
      !set_keep (run, cell->entries * run->n_stream, error) ||
      !cli_bench_eval (run->tl, run->job, (const ks_token *)item->text->data, item->text->len, NULL,
                       error))
    return FALSE;
  if (is_oracle && !forget_rest (run, item, error))
    return FALSE;
  /* The question is all there when it is looked at. */
  return set_keep (run, 0, error) &&
         cli_bench_eval (run->tl, run->job, (const ks_token *)item->question->data,
                         item->question->len, NULL, error);
}

static gboolean
answer (Run *run, KsEvalRow *row, GError **error)
{
  char *text = cli_bench_answer (run->setup, run->tl, run->job, MAX_ANSWER, &row->n_new, error);

  if (text == NULL)
    return FALSE;
  g_free (row->prediction);
  row->prediction = text;
  row->stop = g_intern_static_string (row->n_new < MAX_ANSWER ? "eos" : "length");
  return TRUE;
}

static void
set_values (KsEvalRow *row, const DilutionFacts *facts, const DilutionItem *item)
{
  static const char *const names[DILUTION_N_CLASS] = {"mass-evidence", "mass-question", "mass-sink",
                                                      "mass-window", "mass-rest"};

  for (guint i = 0; i < DILUTION_N_CLASS; i++)
    ks_eval_row_set_value (row, names[i], facts->mass[i]);
  ks_eval_row_set_value (row, "share", facts->share);
  if (isfinite (facts->gain))
    ks_eval_row_set_value (row, "gain", facts->gain);
  ks_eval_row_set_value (row, "entropy", facts->entropy);
  ks_eval_row_set_value (row, "effective", facts->n_effective);
  ks_eval_row_set_value (row, "evidence-recall", facts->recall);
  ks_eval_row_set_value (row, "evidence-precision", facts->precision);
  if (isfinite (facts->top_mass)) {
    ks_eval_row_set_value (row, "top-mass", facts->top_mass);
    ks_eval_row_set_value (row, "top-share", facts->top_share);
  }
  ks_eval_row_set_value (row, "n-rest",
                         item->text->len - (item->evidence_end - item->evidence_begin));
}

static gboolean
measure_cell (Run *run, const KsEvalCell *cell, guint index, guint length, GError **error)
{
  g_autofree char *part = g_strdup_printf ("%u", run->n_sentence[length]);
  g_autofree char *id = g_strdup_printf ("%u-%u", index, run->n_sentence[length]);
  g_autofree char *group = g_strdup_printf ("%u", index);
  g_autoptr (KsEvalRow) row = NULL;
  DilutionItem *item;
  DilutionFacts facts;
  gboolean ok;

  if (ks_eval_run_file_has (run->file, cell, "dilution", id, 0))
    return TRUE;
  item = dilution_item_make (run->setup, (guint64)run->seed, index, run->n_sentence[length], error);
  ok = item != NULL && read_text (run, cell, item, error) &&
       dilution_measure (run->setup, run->tl, item, run->top, NULL, &facts, error);
  if (ok) {
    row = ks_eval_row_new (cell, "dilution", part, id, 0);
    row->group = g_steal_pointer (&group);
    row->n_prompt = item->text->len + item->question->len;
    row->n_peak = ks_kv_table_get_n_entries (ks_timeline_get_table (run->tl));
    row->expect = g_strdupv ((char *[]){item->expect, NULL});
    set_values (row, &facts, item);
    ok = answer (run, row, error) &&
         ks_eval_run_file_append (run->file, g_steal_pointer (&row), error);
  }
  dilution_item_free (item);
  return ok;
}

/* --- the run --- */

static int
compare_down (const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;

  return x > y ? -1 : x < y;
}

/* The streams that attend most to the evidence, on the full cache at the shortest length. */
static gboolean
choose_top (Run *run, GError **error)
{
  g_autofree double *mass = g_new0 (double, run->n_stream), *sorted = NULL;
  KsEvalCell full = ks_eval_cell (ks_policy_get_name (KS_POLICY_FULL), 0);
  double least;

  for (guint i = 0; i < (guint)run->n_item; i++) {
    DilutionItem *item =
        dilution_item_make (run->setup, (guint64)run->seed, i, run->n_sentence[0], error);
    DilutionFacts facts;
    gboolean ok;

    cli_bench_show_progress ("choosing the streams that retrieve");
    ok = item != NULL && read_text (run, &full, item, error) &&
         dilution_measure (run->setup, run->tl, item, NULL, mass, &facts, error);
    dilution_item_free (item);
    if (!ok)
      return FALSE;
  }
  sorted = g_memdup2 (mass, run->n_stream * sizeof *mass);
  qsort (sorted, run->n_stream, sizeof *sorted, compare_down);
  least = sorted[MAX (run->n_stream / TOP_PART, 1) - 1];
  for (guint s = 0; s < run->n_stream; s++)
    run->top[s] = mass[s] >= least;
  return TRUE;
}

static gboolean
measure (Run *run, GArray *cells, GError **error)
{
  for (guint i = 0; i < (guint)run->n_item; i++)
    for (guint length = 0; length < run->n_length; length++) {
      g_autofree char *text = g_strdup_printf ("item %u of %d, %u sentences", i + 1, run->n_item,
                                               run->n_sentence[length]);

      cli_bench_show_progress (text);
      for (guint c = 0; c < cells->len; c++)
        if (!measure_cell (run, &g_array_index (cells, KsEvalCell, c), i, length, error))
          return FALSE;
    }
  return TRUE;
}

/* --- results --- */

static void
add_score (KsEvalTable *table, const KsEvalRow *row, const char *part, const char *metric,
           const char *id, double value)
{
  KsEvalScore score = {.cell = row->cell,
                       .bench = row->bench,
                       .part = part,
                       .metric = metric,
                       .id = id,
                       .group = id,
                       .value = value};

  ks_eval_table_add_score (table, &score);
}

/* Of log mass against log tokens around it, over the lengths of one item and cell: near 0 when
 * other text does not dilute. */
static void
add_slope (KsEvalTable *table, GPtrArray *rows, const KsEvalRow *first)
{
  double x[MAX_LENGTHS], y[MAX_LENGTHS], slope;
  guint n = 0;

  for (guint i = 0; i < rows->len && n < MAX_LENGTHS; i++) {
    const KsEvalRow *row = g_ptr_array_index (rows, i);
    double mass = ks_eval_row_get_value (row, "mass-evidence");

    if (!ks_eval_cell_equal (&row->cell, &first->cell) || !g_str_equal (row->group, first->group) ||
        !(mass > 0))
      continue;
    x[n] = log (ks_eval_row_get_value (row, "n-rest"));
    y[n++] = log (mass);
  }
  slope = ks_eval_slope (x, y, n);
  add_score (table, first, "", "slope", first->group, slope);
}

static KsEvalTable *
make_table (Run *run)
{
  static const char *const metrics[] = {"share",     "mass-evidence",   "top-mass",
                                        "top-share", "evidence-recall", "evidence-precision"};
  KsEvalTable *table = ks_eval_table_new ();
  GPtrArray *rows = ks_eval_run_file_get_rows (run->file);
  g_autofree char *shortest = g_strdup_printf ("%u", run->n_sentence[0]);

  ks_eval_table_set_kind (table, "slope", KS_EVAL_NUMBER);
  ks_eval_table_set_kind (table, "gain", KS_EVAL_NUMBER);
  ks_eval_table_set_kind (table, "effective", KS_EVAL_NUMBER);
  ks_eval_table_set_n_stream (table, run->n_stream);
  for (guint i = 0; i < rows->len; i++) {
    const KsEvalRow *row = g_ptr_array_index (rows, i);

    add_score (table, row, row->part, "right", row->group,
               row->expect != NULL && bench_recall_is_right (row->prediction, row->expect[0]));
    for (guint m = 0; m < G_N_ELEMENTS (metrics); m++)
      add_score (table, row, row->part, metrics[m], row->group,
                 ks_eval_row_get_value (row, metrics[m]));
    add_score (table, row, row->part, "gain", row->group, ks_eval_row_get_value (row, "gain"));
    add_score (table, row, row->part, "effective", row->group,
               ks_eval_row_get_value (row, "effective"));
    if (g_str_equal (row->part, shortest))
      add_slope (table, rows, row);
    ks_eval_table_add_row (table, row);
  }
  return table;
}

static gboolean
tell (Run *run, GError **error)
{
  g_autoptr (KsEvalTable) table = make_table (run);
  const cJSON *header = ks_eval_run_file_get_header (run->file);

  if (!ks_eval_table_write (table, header, run->folder, "dilution", error))
    return FALSE;
  if (run->options->json) {
    cli_print_json (ks_eval_table_to_json (table, header));
  } else {
    GString *text = ks_eval_table_to_markdown (table, header);

    cli_print_text (text->str);
    g_string_free (text, TRUE);
  }
  return TRUE;
}

static gboolean
make_cells (Run *run, GArray *cells, GError **error)
{
  g_auto (GStrv) names = g_strsplit (run->policies, ",", -1);

  for (guint i = 0; names[i] != NULL; i++) {
    const char *name = g_strstrip (names[i]);
    KsEvalCell cell = ks_eval_cell (name, 0);
    ks_evict_params params = {0};

    if (!g_str_equal (name, ORACLE)) {
      if (!ks_eval_policy_parse (name, "chunked", &params, error))
        return FALSE;
      if (!ks_policy_never_evicts (params.policy))
        cell.entries = (guint64)run->options->entries;
    }
    cell.question = g_intern_static_string ("after");
    g_array_append_val (cells, cell);
  }
  return TRUE;
}

static gboolean
open_timeline (Run *run, GError **error)
{
  ks_timeline_params params = ks_engine_setup_get_timeline_params (run->setup);
  ks_error err = {0};

  params.evict = ks_evict_default_params (KS_POLICY_FULL);
  params.n_keep = 0;
  return ks_error_check (ks_timeline_new (run->setup->alloc, &params, &run->tl, &err), &err,
                         error) &&
         ks_error_check (ks_timeline_note_queries (run->tl, true, &err), &err, error);
}

static gboolean
dilution_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  Run *run = data;
  g_autofree char *path = g_build_filename (run->folder, "dilution.jsonl", NULL);
  g_autoptr (GArray) cells = g_array_new (FALSE, FALSE, sizeof (KsEvalCell));
  cJSON *header;
  gboolean ok;

  run->setup = ks_engine_get_setup (engine);
  run->job = job;
  run->n_stream = run->setup->layout.n_layer * run->setup->layout.n_kv_head;
  run->top = g_new0 (gboolean, run->n_stream);
  header = cJSON_CreateObject ();
  cJSON_AddStringToObject (header, "model", run->setup->model_path);
  cJSON_AddStringToObject (header, "gate",
                           run->setup->gate_path != NULL ? run->setup->gate_path : "");
  cJSON_AddStringToObject (header, "arithmetic", cli_get_mode_name (run->setup->mode));
  cJSON_AddNumberToObject (header, "seed", (double)run->seed);
  cJSON_AddNumberToObject (header, "items", run->n_item);
  cJSON_AddNumberToObject (header, "shortest", run->n_sentence[0]);
  ok = make_cells (run, cells, error);
  if (ok)
    run->file = ks_eval_run_file_open (path, header, error);
  cJSON_Delete (header);
  ok = ok && run->file != NULL && open_timeline (run, error) && choose_top (run, error) &&
       measure (run, cells, error);
  cli_bench_show_progress (NULL);
  ok = ok && tell (run, error);
  ks_timeline_free (run->tl);
  ks_eval_run_file_free (run->file);
  g_free (run->top);
  return ok;
}

/* --- command --- */

static gboolean
parse_lengths (Run *run, GError **error)
{
  g_auto (GStrv) parts = g_strsplit (run->lengths, ",", -1);

  for (guint i = 0; parts[i] != NULL; i++) {
    guint64 value, least = run->n_length > 0 ? run->n_sentence[run->n_length - 1] + 1 : 2;

    if (run->n_length == MAX_LENGTHS ||
        !g_ascii_string_to_unsigned (g_strstrip (parts[i]), 10, least, MAX_SENTENCES, &value,
                                     NULL)) {
      g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                   "--sentences is a rising list of at most %u numbers from 2 to %u, not '%s'",
                   MAX_LENGTHS, MAX_SENTENCES, run->lengths);
      return FALSE;
    }
    run->n_sentence[run->n_length++] = (guint)value;
  }
  return TRUE;
}

static int
run_command (Run *run, CliOptions *options)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsEngineOptions) engine_options = NULL;

  if (options->entries == CLI_UNSET)
    options->entries = 128;
  if (run->lengths == NULL)
    run->lengths = g_strdup ("8,16,32,64,128");
  if (run->policies == NULL)
    run->policies = g_strdup ("full,oracle,dbtrimkv,snapkv,streaming,random");
  if (!parse_lengths (run, &error))
    return cli_fail (error);
  if (g_mkdir_with_parents (run->folder, 0755) != 0) {
    cli_print_error ("%s: the folder cannot be made", run->folder);
    return CLI_FAILED;
  }
  engine_options = cli_options_make_engine (options, &error);
  if (engine_options == NULL)
    return cli_fail (error);
  /* Everything is kept whole by the full cache: sentences have up to 40 tokens. */
  engine_options->budget =
      (ks_budget_request){.entries = 1024 + 40 * (guint64)run->n_sentence[run->n_length - 1]};
  engine_options->policy = KS_POLICY_H2O; /* pages have room for what it counts */
  return cli_bench_run (engine_options, dilution_job, run);
}

int
cli_bench_dilution_main (char **args)
{
  g_auto (GStrv) rest = g_strdupv (args);
  g_auto (CliOptions) options;
  Run run = {.options = &options, .n_item = 16, .seed = 1};
  int code = CLI_OK;
  const GOptionEntry entries[] = {
      {"out", 'o', 0, G_OPTION_ARG_FILENAME, &run.folder, "folder of run file and tables", "DIR"},
      {"policies", 0, 0, G_OPTION_ARG_STRING, &run.policies,
       "what to compare (default full,oracle,dbtrimkv,snapkv,streaming,random)", "LIST"},
      {"sentences", 0, 0, G_OPTION_ARG_STRING, &run.lengths,
       "sentences around the evidence (default 8,16,32,64,128)", "LIST"},
      {"items", 0, 0, G_OPTION_ARG_INT, &run.n_item, "evidences (default 16)", "N"},
      {"seed", 0, 0, G_OPTION_ARG_INT64, &run.seed, "another seed, other texts (default 1)", "N"},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  cli_options_init (&options);
  options.is_check = TRUE;
  if (!cli_options_parse_check (&options, entries, TRUE,
                                "Attention on the evidence as the context grows.", help, &rest,
                                &code))
    return code;
  if (run.folder == NULL || rest[1] != NULL)
    code = cli_usage ("give a folder for the results: keepsake-cli bench dilution --out dilution");
  else if (run.n_item < 1 || run.n_item > MAX_ITEMS)
    code = cli_usage ("--items is a number from 1 to %d", MAX_ITEMS);
  else if (options.budget != NULL || options.kv_budget != NULL || options.policy.name != NULL ||
           options.keep_everything)
    code = cli_usage ("dilution compares policies at --entries M; choose them with --policies");
  else
    code = run_command (&run, &options);
  g_free (run.folder);
  g_free (run.policies);
  g_free (run.lengths);
  return code;
}
