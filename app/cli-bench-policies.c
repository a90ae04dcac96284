/* cli-bench-policies.c - keepsake-cli bench policies: loss and recall, policy by policy and budget
 * by budget, into a run file that a stopped run goes on with, and tables made of it.
 * Items are taken in turns from all benches, and every item is measured in all cells before the
 * next one: whenever a run is stopped, its table compares the same items. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-bench-policies.h"

#include "app/eval-table.h"
#include "app/ks-error.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_ITEMS 10000
#define MAX_WORDS 1500
#define MAX_TEXT_TOKENS 32768
#define MAX_ENTRIES 65536
#define MAX_ANSWER 256
#define TABLE_EVERY_US (5 * 60 * G_USEC_PER_SEC)
#define N_BEST 3u

static const char help[] =
    "Stages, each with its own run file in the folder --out:\n"
    "  1     all policies at 128 entries: 24 prompts of two kinds, 6 texts\n"
    "  2     full, the learned policies and the best three others of stage 1 at 64 to 512\n"
    "        entries: 60 prompts of two kinds, 12 texts of 2,048 + 256 tokens\n"
    "  long  six questions about each of 35 texts of more than 1,700 tokens with twenty facts\n"
    "Modes: faithful reads a text as a whole and forgets once, as the methods were published;\n"
    "chunked forgets around every pass, as sessions do. The question always comes afterwards.\n"
    "A policy is a name, or NAME:OPTION=VALUE:..., such as dbtrimkv:pin-first=1 or\n"
    "untied:gate=OTHER, where OTHER was given with --with-gate OTHER=FILE.\n\n"
    "Examples:\n"
    "  keepsake-cli bench policies --out proof --text held-out --threads 1\n"
    "  keepsake-cli bench policies --out proof --text held-out --stage 2\n"
    "  keepsake-cli bench policies --out proof --stage long --modes chunked --at 256\n\n"
    "Exit codes: 0 measured, 1 failed, 2 wrong options, 3 does not fit, 4 not supported, 130 "
    "cancelled\n"
    "(run it again: it goes on where it was).";

typedef struct {
  const char *name;
  const char *entries;
  int n_prompt, n_word, n_text, text_tokens, scored_tokens;
  const char *benches[3];
} Stage;

static const Stage stages[] = {
    {"1", "128", 24, 550, 6, 1024, 256, {"recall", "recall-new", NULL}},
    {"2", "64,128,256,512", 60, 550, 12, 2048, 256, {"recall", "recall-new", NULL}},
    {"long", "256,512", 35, 1350, 0, 0, 0, {"recall-long", NULL, NULL}},
};

typedef struct {
  const CliOptions *options;
  const Stage *stage;
  char *stage_name, *folder, *policies, *entries, *modes;
  char **texts, **gates;
  int n_prompt, n_word, n_text, text_tokens, scored_tokens, n_answer;
  gint64 seed;
  gboolean tables_only;
} Run;

/* --- cells --- */

/* "1,2,3" as numbers; each from 1 to MAX_ENTRIES. */
static GArray *
parse_entries (const char *text, GError **error)
{
  g_autoptr (GArray) list = g_array_new (FALSE, FALSE, sizeof (guint64));
  g_auto (GStrv) parts = g_strsplit (text, ",", -1);

  for (guint i = 0; parts[i] != NULL; i++) {
    guint64 value;

    if (!g_ascii_string_to_unsigned (g_strstrip (parts[i]), 10, 1, MAX_ENTRIES, &value, NULL)) {
      g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                   "--at is a list of numbers from 1 to %d, not '%s'", MAX_ENTRIES, parts[i]);
      return NULL;
    }
    g_array_append_val (list, value);
  }
  return g_steal_pointer (&list);
}

static gboolean
add_cells (GArray *cells, const char *policy, const GArray *entries, const char *mode,
           GError **error)
{
  for (guint i = 0; i < entries->len; i++) {
    BenchCell cell;

    if (!bench_cell_parse (policy, g_array_index (entries, guint64, i), mode, &cell, error))
      return FALSE;
    g_array_append_val (cells, cell);
    if (cell.cell.entries == 0)
      break; /* keeps everything: one cell is all */
  }
  return TRUE;
}

/* With and without the first token pinned, whatever the mode does by itself. */
static void
add_learned (GPtrArray *list, const char *policy, const char *gate, gboolean faithful)
{
  char *name = gate == NULL ? g_strdup (policy) : g_strdup_printf ("%s:gate=%s", policy, gate);

  g_ptr_array_add (list, name);
  g_ptr_array_add (list, g_strdup_printf ("%s:pin-first=%d", name, faithful ? 1 : 0));
}

static void
add_gates (GPtrArray *list, const Run *run, const BenchRunner *runner, gboolean faithful)
{
  if (bench_runner_get_policy_of_gate (runner, NULL) != NULL)
    add_learned (list, "dbtrimkv", NULL, faithful);
  for (guint i = 0; run->gates != NULL && run->gates[i] != NULL; i++) {
    g_autofree char *name = g_strndup (run->gates[i], strcspn (run->gates[i], "="));

    add_learned (list, bench_runner_get_policy_of_gate (runner, name), name, faithful);
  }
}

/* Every policy that can run: those of gates by their gates. */
static GPtrArray *
list_all (const Run *run, const BenchRunner *runner, gboolean faithful)
{
  GPtrArray *list = g_ptr_array_new_with_free_func (g_free);

  g_ptr_array_add (list, g_strdup (ks_policy_get_name (KS_POLICY_FULL)));
  add_gates (list, run, runner, faithful);
  if (bench_runner_get_policy_of_gate (runner, NULL) != NULL)
    add_learned (list, ks_policy_get_name (KS_POLICY_TRIMKV), NULL, faithful);
  for (guint i = 0; i < KS_N_POLICY; i++)
    if (i != KS_POLICY_FULL && !ks_policy_needs_gate ((ks_policy)i))
      g_ptr_array_add (list, g_strdup (ks_policy_get_name ((ks_policy)i)));
  return list;
}

typedef struct {
  const char *policy;
  double sum;
  guint n;
} Rating;

static int
compare_ratings (gconstpointer a, gconstpointer b)
{
  const Rating *x = a, *y = b;
  double of_x = x->sum / x->n, of_y = y->sum / y->n;

  return of_x > of_y ? -1 : of_x < of_y;
}

/* Policies of the first stage without a learned score, by recall. */
static GArray *
rate_policies (GPtrArray *rows, const char *mode)
{
  GArray *ratings = g_array_new (FALSE, FALSE, sizeof (Rating));

  for (guint i = 0; i < rows->len; i++) {
    const KsEvalRow *row = g_ptr_array_index (rows, i);
    g_autofree char *name = g_strndup (row->cell.policy, strcspn (row->cell.policy, ":"));
    double right = bench_row_get_right (row);
    ks_policy policy;
    guint k = 0;

    if (isnan (right) || !g_str_equal (row->cell.mode, mode) || !ks_policy_parse (name, &policy) ||
        ks_policy_needs_gate (policy) || policy == KS_POLICY_FULL || policy == KS_POLICY_RANDOM)
      continue;
    while (k < ratings->len && g_array_index (ratings, Rating, k).policy != row->cell.policy)
      k++;
    if (k == ratings->len) {
      Rating rating = {.policy = row->cell.policy};

      g_array_append_val (ratings, rating);
    }
    g_array_index (ratings, Rating, k).sum += right;
    g_array_index (ratings, Rating, k).n++;
  }
  g_array_sort (ratings, compare_ratings);
  return ratings;
}

/* full, the learned ones, and the best of the rest as stage 1 found them. */
static GPtrArray *
list_best (const Run *run, const BenchRunner *runner, gboolean faithful, GError **error)
{
  g_autofree char *path = g_build_filename (run->folder, "stage-1.jsonl", NULL);
  g_autoptr (KsEvalRunFile) file = ks_eval_run_file_load (path, error);
  g_autoptr (GPtrArray) list = NULL;
  g_autoptr (GArray) ratings = NULL;

  if (file == NULL) {
    g_prefix_error (error,
                    "stage %s takes the best policies of stage 1; run that first, or give "
                    "--policies: ",
                    run->stage->name);
    return NULL;
  }
  list = g_ptr_array_new_with_free_func (g_free);
  g_ptr_array_add (list, g_strdup (ks_policy_get_name (KS_POLICY_FULL)));
  add_gates (list, run, runner, faithful);
  ratings =
      rate_policies (ks_eval_run_file_get_rows (file),
                     ks_evict_mode_get_name (faithful ? KS_EVICT_FAITHFUL : KS_EVICT_CHUNKED));
  if (ratings->len == 0) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                 "stage 1 has no results in the mode %s yet: run it first, or give --policies",
                 faithful ? "faithful" : "chunked");
    return NULL;
  }
  for (guint i = 0; i < ratings->len && i < N_BEST; i++)
    g_ptr_array_add (list, g_strdup (g_array_index (ratings, Rating, i).policy));
  return g_steal_pointer (&list);
}

static GPtrArray *
list_policies (const Run *run, const BenchRunner *runner, gboolean faithful, GError **error)
{
  GPtrArray *list;

  if (run->policies != NULL) {
    g_auto (GStrv) names = g_strsplit (run->policies, ",", -1);

    list = g_ptr_array_new_with_free_func (g_free);
    for (guint i = 0; names[i] != NULL; i++)
      g_ptr_array_add (list, g_strdup (g_strstrip (names[i])));
    return list;
  }
  if (run->stage == &stages[0])
    return list_all (run, runner, faithful);
  return list_best (run, runner, faithful, error);
}

/* Cells of one mode.  Keeping everything is the same in both: measured in the first only. */
static GArray *
make_cells (const Run *run, const BenchRunner *runner, const char *mode, gboolean is_first,
            GError **error)
{
  g_autoptr (GArray) entries =
      parse_entries (run->entries != NULL ? run->entries : run->stage->entries, error);
  g_autoptr (GArray) cells = g_array_new (FALSE, FALSE, sizeof (BenchCell));
  g_autoptr (GPtrArray) list = NULL;
  ks_evict_mode parsed;

  if (entries == NULL)
    return NULL;
  if (!ks_evict_mode_parse (mode, &parsed)) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                 "there is no mode '%s': --modes is a list of faithful and chunked", mode);
    return NULL;
  }
  list = list_policies (run, runner, parsed == KS_EVICT_FAITHFUL, error);
  if (list == NULL)
    return NULL;
  for (guint i = 0; i < list->len; i++) {
    const char *policy = g_ptr_array_index (list, i);

    if ((is_first || !g_str_equal (policy, ks_policy_get_name (KS_POLICY_FULL))) &&
        !add_cells (cells, policy, entries, mode, error))
      return NULL;
  }
  return g_steal_pointer (&cells);
}

/* --- items --- */

/* Where in the run an item stands: benches of unlike length end together. */
typedef struct {
  BenchItem *item;
  double place;
} Turn;

static int
compare_turns (gconstpointer a, gconstpointer b)
{
  double x = ((const Turn *)a)->place, y = ((const Turn *)b)->place;

  return x < y ? -1 : x > y;
}

static void
take_items (GPtrArray *all, GArray *turns, GPtrArray *take_items)
{
  for (guint i = 0; i < take_items->len; i++) {
    Turn turn = {g_ptr_array_index (take_items, i), (i + 0.5) / take_items->len};

    g_array_append_val (turns, turn);
  }
  g_ptr_array_extend_and_steal (all, take_items);
}

/* all owns them; (of Turn, in their order; transfer full) */
static GArray *
make_turns (const Run *run, KsEngineSetup *setup, GPtrArray *all, GError **error)
{
  g_autoptr (GArray) turns = g_array_new (FALSE, FALSE, sizeof (Turn));
  GPtrArray *items;

  for (guint i = 0; run->stage->benches[i] != NULL; i++) {
    items = bench_items_make_recall (setup, run->stage->benches[i], (guint)run->n_prompt,
                                     (guint)run->n_word, (guint64)run->seed, error);
    if (items == NULL)
      return NULL;
    take_items (all, turns, items);
  }
  if (run->n_text > 0) {
    items = bench_items_make_loss (setup, run->texts, (guint)run->n_text, (guint)run->text_tokens,
                                   (guint)run->scored_tokens, error);
    if (items == NULL)
      return NULL;
    take_items (all, turns, items);
  }
  g_array_sort (turns, compare_turns);
  return g_steal_pointer (&turns);
}

/* --- results --- */

static gboolean
add_hash (cJSON *json, const char *name, const char *path, GError **error)
{
  g_autoptr (KsModelRegistry) registry = ks_model_registry_new (NULL, NULL);
  g_autofree char *hash = ks_model_registry_hash (registry, path, FALSE, NULL, error);

  if (hash == NULL)
    return FALSE;
  cJSON_AddStringToObject (json, name, hash);
  return TRUE;
}

/* What all rows of a file have in common: a run that differs in it needs a folder of its own. */
static cJSON *
make_header (const Run *run, KsEngineSetup *setup, GError **error)
{
  cJSON *json = cJSON_CreateObject (), *gates;
  gboolean ok = add_hash (json, "model_sha256", setup->model_path, error);

  cJSON_AddStringToObject (json, "stage", run->stage->name);
  if (ok && setup->gate_path != NULL)
    ok = add_hash (json, "gate_sha256", setup->gate_path, error);
  gates = cJSON_AddObjectToObject (json, "gates");
  for (guint i = 0; ok && run->gates != NULL && run->gates[i] != NULL; i++) {
    g_auto (GStrv) parts = g_strsplit (run->gates[i], "=", 2);

    ok = add_hash (gates, parts[0], parts[1], error);
  }
  cJSON_AddStringToObject (json, "arithmetic", cli_get_mode_name (setup->mode));
  cJSON_AddStringToObject (json, "kv_type", ks_dtype_get_info (setup->layout.kv_dtype)->name);
  cJSON_AddNumberToObject (json, "chunk", setup->plan.chunk);
  cJSON_AddNumberToObject (json, "streams",
                           (double)setup->layout.n_layer * setup->layout.n_kv_head);
  cJSON_AddNumberToObject (json, "words", run->n_word);
  cJSON_AddNumberToObject (json, "text_tokens", run->text_tokens);
  cJSON_AddNumberToObject (json, "scored_tokens", run->scored_tokens);
  cJSON_AddNumberToObject (json, "answer_tokens", run->n_answer);
  cJSON_AddNumberToObject (json, "seed", (double)run->seed);
  if (ok)
    return json;
  cJSON_Delete (json);
  return NULL;
}

static KsEvalTable *
make_table (KsEvalRunFile *file)
{
  KsEvalTable *table = ks_eval_table_new ();
  GPtrArray *rows = ks_eval_run_file_get_rows (file);
  const cJSON *streams = cJSON_GetObjectItem (ks_eval_run_file_get_header (file), "streams");

  ks_eval_table_set_kind (table, "loss", KS_EVAL_LOSS);
  ks_eval_table_set_n_stream (table, cJSON_IsNumber (streams) ? (guint)streams->valueint : 0);
  for (guint i = 0; i < rows->len; i++) {
    const KsEvalRow *row = g_ptr_array_index (rows, i);
    gboolean is_loss = g_str_equal (row->bench, "loss");
    KsEvalScore score = {.cell = row->cell,
                         .bench = row->bench,
                         .part = row->part,
                         .metric = is_loss ? "loss" : "right",
                         .id = row->id,
                         .group = row->group != NULL ? row->group : row->id,
                         .turn = row->turn};

    score.value = is_loss
                      ? ks_eval_row_get_value (row, "nll") / ks_eval_row_get_value (row, "n_scored")
                      : bench_row_get_right (row);
    ks_eval_table_add_score (table, &score);
    ks_eval_table_add_row (table, row);
  }
  return table;
}

static gboolean
write_tables (const Run *run, KsEvalRunFile *file, gboolean print, GError **error)
{
  g_autoptr (KsEvalTable) table = make_table (file);
  const cJSON *header = ks_eval_run_file_get_header (file);
  g_autofree char *name = g_strdup_printf ("stage-%s", run->stage->name);

  if (!ks_eval_table_write (table, header, run->folder, name, error))
    return FALSE;
  if (print && run->options->json) {
    cli_print_json (ks_eval_table_to_json (table, header));
  } else if (print) {
    GString *text = ks_eval_table_to_markdown (table, header);

    cli_print_text (text->str);
    g_string_free (text, TRUE);
  }
  return TRUE;
}

/* --- running --- */

static gboolean
measure (const Run *run, BenchRunner *runner, const GArray *turns, const GArray *cells,
         KsEvalRunFile *file, const char *mode, GError **error)
{
  gint64 written_us = g_get_monotonic_time ();

  for (guint i = 0; i < turns->len; i++) {
    const BenchItem *item = g_array_index (turns, Turn, i).item;
    g_autofree char *text =
        g_strdup_printf ("%s: item %u of %u, %s", mode, i + 1, turns->len, item->bench);

    cli_bench_show_progress (text);
    if (!bench_runner_measure (runner, item, (const BenchCell *)cells->data, cells->len, file,
                               error))
      return FALSE;
    if (g_get_monotonic_time () - written_us < TABLE_EVERY_US)
      continue;
    if (!write_tables (run, file, FALSE, error))
      return FALSE;
    written_us = g_get_monotonic_time ();
  }
  return TRUE;
}

static gboolean
run_modes (const Run *run, KsEngineSetup *setup, BenchRunner *runner, KsEvalRunFile *file,
           GError **error)
{
  g_autoptr (GPtrArray) items = g_ptr_array_new_with_free_func ((GDestroyNotify)bench_item_free);
  g_autoptr (GArray) turns = make_turns (run, setup, items, error);
  g_auto (GStrv) modes = g_strsplit (run->modes, ",", -1);

  if (turns == NULL)
    return FALSE;
  for (guint i = 0; modes[i] != NULL; i++) {
    g_autoptr (GArray) cells = make_cells (run, runner, g_strstrip (modes[i]), i == 0, error);
    gboolean ok = cells != NULL && measure (run, runner, turns, cells, file, modes[i], error);

    cli_bench_show_progress (NULL);
    if (!ok)
      return FALSE;
  }
  return TRUE;
}

static gboolean
policies_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  Run *run = data;
  KsEngineSetup *setup = ks_engine_get_setup (engine);
  g_autofree char *name = g_strdup_printf ("stage-%s.jsonl", run->stage->name);
  g_autofree char *path = g_build_filename (run->folder, name, NULL);
  g_autoptr (KsEvalRunFile) file = NULL;
  BenchRunner *runner;
  cJSON *header;
  gboolean ok;

  if (run->tables_only) {
    file = ks_eval_run_file_load (path, error);
    return file != NULL && write_tables (run, file, TRUE, error);
  }
  header = make_header (run, setup, error);
  if (header == NULL)
    return FALSE;
  file = ks_eval_run_file_open (path, header, error);
  cJSON_Delete (header);
  runner =
      file != NULL ? bench_runner_new (setup, job, run->gates, (guint)run->n_answer, error) : NULL;
  ok = runner != NULL && run_modes (run, setup, runner, file, error);
  bench_runner_free (runner);
  return ok && write_tables (run, file, TRUE, error);
}

static gboolean
check_gates (const Run *run, GError **error)
{
  for (guint i = 0; run->gates != NULL && run->gates[i] != NULL; i++) {
    const char *equals = strchr (run->gates[i], '=');

    if (equals != NULL && equals > run->gates[i] && equals[1] != '\0')
      continue;
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE, "--with-gate %s: write NAME=FILE",
                 run->gates[i]);
    return FALSE;
  }
  return TRUE;
}

/* Numbers that no option gave are the stage's. */
static gboolean
settle (Run *run, GError **error)
{
  const char *wanted = run->stage_name != NULL ? run->stage_name : stages[0].name;

  for (guint i = 0; i < G_N_ELEMENTS (stages); i++)
    if (g_str_equal (wanted, stages[i].name))
      run->stage = &stages[i];
  if (run->stage == NULL) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                 "there is no stage '%s': it is 1, 2 or long", wanted);
    return FALSE;
  }
  run->n_prompt = run->n_prompt < 0 ? run->stage->n_prompt : run->n_prompt;
  run->n_word = run->n_word < 0 ? run->stage->n_word : run->n_word;
  run->n_text = run->n_text < 0 ? run->stage->n_text : run->n_text;
  run->text_tokens = run->text_tokens < 0 ? run->stage->text_tokens : run->text_tokens;
  run->scored_tokens = run->scored_tokens < 0 ? run->stage->scored_tokens : run->scored_tokens;
  if (run->modes == NULL)
    run->modes = g_strdup ("faithful,chunked");
  if (run->n_prompt <= MAX_ITEMS && run->n_text <= MAX_ITEMS && run->n_word >= 20 &&
      run->n_word <= MAX_WORDS && run->n_answer >= 1 && run->n_answer <= MAX_ANSWER &&
      (run->n_text == 0 || (run->text_tokens >= 2 && run->text_tokens <= MAX_TEXT_TOKENS &&
                            run->scored_tokens >= 2 && run->scored_tokens <= MAX_TEXT_TOKENS)))
    return TRUE;
  g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                       "--prompts, --words, --texts, --text-tokens, --scored-tokens or "
                       "--answer-tokens is out of range: see keepsake-cli bench policies --help");
  return FALSE;
}

static int
run_command (Run *run, CliOptions *options)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsEngineOptions) engine_options = NULL;
  guint64 longest;

  if (!settle (run, &error) || !check_gates (run, &error))
    return cli_fail (error);
  if (g_mkdir_with_parents (run->folder, 0755) != 0) {
    cli_print_error ("%s: the folder cannot be made", run->folder);
    return CLI_FAILED;
  }
  engine_options = cli_options_make_engine (options, &error);
  if (engine_options == NULL)
    return cli_fail (error);
  /* One pool for all cells, which keeps the longest item whole, even when a token is hardly more
   * than a letter; with room for what H2O counts. */
  longest = MAX ((guint64)run->n_word * 8, (guint64)run->text_tokens + (guint64)run->scored_tokens);
  engine_options->budget = (ks_budget_request){.entries = longest + 1024};
  engine_options->policy = KS_POLICY_H2O;
  return cli_bench_run (engine_options, policies_job, run);
}

static void
clear (Run *run)
{
  g_free (run->stage_name);
  g_free (run->folder);
  g_free (run->policies);
  g_free (run->entries);
  g_free (run->modes);
  g_strfreev (run->texts);
  g_strfreev (run->gates);
}

int
cli_bench_policies_main (char **args)
{
  g_auto (GStrv) rest = g_strdupv (args);
  g_auto (CliOptions) options;
  Run run = {.options = &options,
             .n_prompt = -1,
             .n_word = -1,
             .n_text = -1,
             .text_tokens = -1,
             .scored_tokens = -1,
             .n_answer = 32,
             .seed = 1};
  int code = CLI_OK;
  const GOptionEntry entries[] = {
      {"out", 'o', 0, G_OPTION_ARG_FILENAME, &run.folder, "folder of run files and tables", "DIR"},
      {"stage", 0, 0, G_OPTION_ARG_STRING, &run.stage_name, "1, 2 or long (default 1)", "STAGE"},
      {"policies", 0, 0, G_OPTION_ARG_STRING, &run.policies,
       "what to compare, in place of the stage's own", "LIST"},
      {"at", 0, 0, G_OPTION_ARG_STRING, &run.entries, "entries a stream, in place of the stage's",
       "LIST"},
      {"modes", 0, 0, G_OPTION_ARG_STRING, &run.modes, "default faithful,chunked", "LIST"},
      {"with-gate", 0, 0, G_OPTION_ARG_STRING_ARRAY, &run.gates,
       "another gate for policies to name; may be given more than once", "NAME=FILE"},
      {"text", 'f', 0, G_OPTION_ARG_FILENAME_ARRAY, &run.texts,
       "texts or folders of texts for the loss; may be given more than once (default: the handbook "
       "that comes with Keepsake)",
       "PATH"},
      {"prompts", 0, 0, G_OPTION_ARG_INT, &run.n_prompt, "prompts of each kind", "N"},
      {"words", 0, 0, G_OPTION_ARG_INT, &run.n_word, "length of a prompt", "N"},
      {"texts", 0, 0, G_OPTION_ARG_INT, &run.n_text, "pieces of text, at most", "N"},
      {"text-tokens", 0, 0, G_OPTION_ARG_INT, &run.text_tokens, "read of a text", "N"},
      {"scored-tokens", 0, 0, G_OPTION_ARG_INT, &run.scored_tokens, "foreseen behind it", "N"},
      {"answer-tokens", 0, 0, G_OPTION_ARG_INT, &run.n_answer, "longest answer (default 32)", "N"},
      {"seed", 0, 0, G_OPTION_ARG_INT64, &run.seed, "another seed, other prompts (default 1)", "N"},
      {"tables", 0, 0, G_OPTION_ARG_NONE, &run.tables_only,
       "measure nothing: write the tables of what is there", NULL},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  cli_options_init (&options);
  options.is_check = TRUE;
  if (!cli_options_parse_check (&options, entries, FALSE,
                                "Loss and recall, policy by policy, budget by budget.", help, &rest,
                                &code))
    return code;
  if (run.folder == NULL || rest[1] != NULL)
    code = cli_usage ("give a folder for the results: keepsake-cli bench policies --out proof");
  else
    code = run_command (&run, &options);
  clear (&run);
  return code;
}
