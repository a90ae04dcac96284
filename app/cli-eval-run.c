/* cli-eval-run.c - keepsake-cli eval run: a benchmark or a made-up test, every policy at every
 * budget, into a run file that a stopped run goes on with. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-eval.h"

#include "app/cli-bench.h"
#include "app/cli-options.h"
#include "app/eval-batch.h"
#include "app/eval-synth.h"
#include "app/eval-template.h"
#include "app/eval-visual.h"
#include "app/ks-error.h"

#include <stdio.h>
#include <string.h>

#define MAX_LENGTH 1000000u
#define MAX_NEW 65536
#define MAX_ITEMS 1000000
#define MAX_SEED ((guint64)1 << 53) /* that a row keeps exactly, as JSON's numbers are doubles */
#define MAX_VISUAL_ANSWER 32u
#define MARGIN 1024u /* of the pool, over the longest text: answers, frames, a pass */

static const char help[] =
    "Each policy is asked every question at every budget (--entries: average entries that a "
    "stream\n"
    "keeps). A policy may carry options: dbtrimkv:pin-first=0. 'full' keeps everything and is "
    "what\n"
    "the others are compared with. Ctrl-C stops; the same command goes on.\n\n"
    "Examples:\n"
    "  keepsake-cli eval run needle --lengths 1024,2048 --depths 0,50,100 --out needle.jsonl\n"
    "  keepsake-cli eval run turns --question after --policies full,dbtrimkv --out turns.jsonl\n"
    "  keepsake-cli eval run aime --data aime2024.jsonl --max-new 8192 --out aime.jsonl\n"
    "  keepsake-cli eval run mmdu --data benchmark.json --forced --out mmdu.jsonl\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong options, 3 does not fit, 4 not supported, 130 "
    "cancelled.";

typedef struct {
  CliOptions options;
  CliEvalData data;
  char *out, *policies, *modes, *budget, *entries, *seeds, *question, *lengths, *depths, *values,
      *counts;
  char *filler;
  int n_item, n_sample, n_other, max_new, context;
  gint64 data_seed;
  gboolean forced, easy;
  int grid, side_px;
  /* what they mean */
  const char *bench;
  GArray *entry_list, *seed_list, *length_list, *depth_list, *count_list; /* of guint64 */
  GPtrArray *items; /* of a benchmark, else NULL */
  char *items_hash;
  KsEvalTemplate *tmpl;
  GPtrArray *sentences; /* of the filler, or NULL */
  char *filler_hash;
  char *model_hash, *gate_hash, *mmproj_hash;
} Run;

/* --- options --- */

static void
run_clear (Run *run)
{
  cli_options_clear (&run->options);
  cli_eval_data_clear (&run->data);
  g_free (run->out);
  g_free (run->policies);
  g_free (run->modes);
  g_free (run->budget);
  g_free (run->entries);
  g_free (run->seeds);
  g_free (run->question);
  g_free (run->lengths);
  g_free (run->depths);
  g_free (run->values);
  g_free (run->counts);
  g_free (run->filler);
  g_clear_pointer (&run->entry_list, g_array_unref);
  g_clear_pointer (&run->seed_list, g_array_unref);
  g_clear_pointer (&run->length_list, g_array_unref);
  g_clear_pointer (&run->depth_list, g_array_unref);
  g_clear_pointer (&run->count_list, g_array_unref);
  g_clear_pointer (&run->items, g_ptr_array_unref);
  g_free (run->items_hash);
  ks_eval_template_free (run->tmpl);
  g_clear_pointer (&run->sentences, g_ptr_array_unref);
  g_free (run->filler_hash);
  g_free (run->model_hash);
  g_free (run->gate_hash);
  g_free (run->mmproj_hash);
}

static GArray *
parse_numbers (const char *option, const char *text, guint64 least, guint64 most, GError **error)
{
  g_autoptr (GArray) list = g_array_new (FALSE, FALSE, sizeof (guint64));
  g_auto (GStrv) parts = g_strsplit (text, ",", -1);

  for (guint i = 0; parts[i] != NULL; i++) {
    guint64 number;

    if (!g_ascii_string_to_unsigned (g_strstrip (parts[i]), 10, least, most, &number, NULL)) {
      g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                   "%s wants whole numbers from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT
                   " with commas, not '%s'",
                   option, least, most, text);
      return NULL;
    }
    g_array_append_val (list, number);
  }
  return g_steal_pointer (&list);
}

static gboolean
parse_lists (Run *run, GError **error)
{
  run->entry_list = parse_numbers ("--entries", run->entries, 1, G_MAXUINT32, error);
  if (run->entry_list != NULL)
    run->seed_list = parse_numbers ("--seeds", run->seeds, 0, MAX_SEED, error);
  if (run->seed_list != NULL)
    run->length_list = parse_numbers ("--lengths", run->lengths, 1, MAX_LENGTH, error);
  if (run->length_list != NULL)
    run->depth_list = parse_numbers ("--depths", run->depths, 0, 100, error);
  if (run->depth_list != NULL)
    run->count_list = parse_numbers ("--counts", run->counts, 1, 50, error);
  return run->count_list != NULL;
}

static gboolean
check_values (Run *run, GError **error)
{
  if (!g_str_equal (run->values, "number") && !g_str_equal (run->values, "words") &&
      !g_str_equal (run->values, "uuid"))
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                         "--values must be number, words or uuid");
  else if (!g_str_equal (run->question, "with") && !g_str_equal (run->question, "after") &&
           !g_str_equal (run->question, "both"))
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                         "--question must be with, after or both");
  else if (run->n_sample < 1 || run->n_sample > MAX_ITEMS || run->n_item < 0 ||
           run->n_item > MAX_ITEMS || run->n_other < 0 || run->n_other > 1000 || run->max_new < 0 ||
           run->max_new > MAX_NEW || run->context < 0 || run->data_seed < 0)
    g_set_error_literal (
        error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
        "--samples, --items, --other-turns, --max-new, --context or --data-seed is "
        "out of range");
  else if (run->out == NULL)
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                         "name the run file with --out FILE.jsonl");
  else
    return TRUE;
  return FALSE;
}

static void
add_options (Run *run, GOptionContext *context)
{
  const GOptionEntry entries[] = {
      {"out", 'o', 0, G_OPTION_ARG_FILENAME, &run->out,
       "run file; one that is there already is gone on with", "FILE"},
      {"policies", 0, 0, G_OPTION_ARG_STRING, &run->policies,
       "what to compare, with commas (default full,dbtrimkv,streaming,keydiff-global)", "LIST"},
      {"entries", 0, 0, G_OPTION_ARG_STRING, &run->entries,
       "budgets: average entries of a stream, with commas (default 128)", "LIST"},
      {"budget-kind", 0, 0, G_OPTION_ARG_STRING, &run->budget,
       "fixed, or text: as many entries more as there are text tokens (default fixed)", "KIND"},
      {"modes", 0, 0, G_OPTION_ARG_STRING, &run->modes,
       "how policies that read attention see a prompt (default chunked)", "LIST"},
      {"seeds", 0, 0, G_OPTION_ARG_STRING, &run->seeds,
       "seeds of policies that draw, with commas (default 0)", "LIST"},
      {"question", 0, 0, G_OPTION_ARG_STRING, &run->question,
       "made-up tests: with the text, after it in a later turn, or both (default both)", "WHEN"},
      {"lengths", 0, 0, G_OPTION_ARG_STRING, &run->lengths,
       "made-up tests: tokens of prompt and answer (default 1024)", "LIST"},
      {"depths", 0, 0, G_OPTION_ARG_STRING, &run->depths,
       "made-up tests: where the needle lies, in percent (default 50)", "LIST"},
      {"counts", 0, 0, G_OPTION_ARG_STRING, &run->counts,
       "visual haystacks: pictures, 1 to 50 (default 1,2,5,10)", "LIST"},
      {"easy", 0, 0, G_OPTION_ARG_NONE, &run->easy,
       "visual haystacks: distractors of other shapes, not just other colours", NULL},
      {"grid", 0, 0, G_OPTION_ARG_INT, &run->grid,
       "visual-grid: cells in a row and a column (default 3)", "N"},
      {"side", 0, 0, G_OPTION_ARG_INT, &run->side_px,
       "visual haystacks: pixels of a side (default 336)", "PX"},
      {"samples", 0, 0, G_OPTION_ARG_INT, &run->n_sample,
       "made-up tests: items for each length and depth (default 20)", "N"},
      {"values", 0, 0, G_OPTION_ARG_STRING, &run->values,
       "needles: number, words or uuid (default number)", "KIND"},
      {"filler", 0, 0, G_OPTION_ARG_FILENAME, &run->filler,
       "made-up tests: sentences of this text instead of the program's", "FILE"},
      {"other-turns", 0, 0, G_OPTION_ARG_INT, &run->n_other,
       "turns about other things before a later question (default 2)", "N"},
      {"items", 0, 0, G_OPTION_ARG_INT, &run->n_item,
       "benchmarks: so many items, drawn by --data-seed (default: all)", "N"},
      {"data-seed", 0, 0, G_OPTION_ARG_INT64, &run->data_seed,
       "another seed, other items (default 1)", "N"},
      {"max-new", 'n', 0, G_OPTION_ARG_INT, &run->max_new,
       "longest answer in tokens (default: by the benchmark)", "N"},
      {"forced", 0, 0, G_OPTION_ARG_NONE, &run->forced,
       "read the references in place of answers, and measure their loss", NULL},
      {"context", 0, 0, G_OPTION_ARG_INT, &run->context,
       "benchmarks and pictures: room for so many tokens where everything is kept (default: the "
       "trained "
       "length)",
       "N"},
      {"chunk", 0, 0, G_OPTION_ARG_INT, &run->options.chunk, "tokens of a pass (default 128)", "N"},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  g_option_context_add_main_entries (context, entries, NULL);
}

static void
set_default (char **text, const char *value)
{
  if (*text == NULL)
    *text = g_strdup (value);
}

static void
set_defaults (Run *run)
{
  set_default (&run->policies, "full,dbtrimkv,streaming,keydiff-global");
  set_default (&run->modes, "chunked");
  set_default (&run->budget, "fixed");
  set_default (&run->entries, "128");
  set_default (&run->seeds, "0");
  set_default (&run->question, "both");
  set_default (&run->lengths, "1024");
  set_default (&run->depths, "50");
  set_default (&run->values, "number");
  set_default (&run->counts, "1,2,5,10");
}

/* --- items --- */

static gboolean
load_items (Run *run, GError **error)
{
  g_autofree char *path = NULL, *text = NULL;

  if (ks_eval_visual_is_kind (run->bench))
    return TRUE;
  if (ks_eval_synth_is_kind (run->bench)) {
    if (run->filler == NULL)
      return TRUE;
    if (!g_file_get_contents (run->filler, &text, NULL, error))
      return FALSE;
    run->sentences = ks_eval_synth_split (text);
    run->filler_hash = g_compute_checksum_for_string (G_CHECKSUM_SHA256, text, -1);
    return TRUE;
  }
  run->items = cli_eval_data_load (&run->data, run->bench, error);
  path = cli_eval_data_find_template (&run->data, run->bench);
  if (run->items != NULL)
    run->tmpl = ks_eval_template_load (path, run->data.wording, error);
  if (run->tmpl == NULL)
    return FALSE;
  run->items_hash = ks_eval_items_hash (run->items);
  ks_eval_items_sample (run->items, (guint)run->n_item, (guint64)run->data_seed);
  for (guint i = 0; i < run->items->len; i++)
    if (!ks_eval_template_fill (run->tmpl, g_ptr_array_index (run->items, i), error))
      return FALSE;
  return ks_eval_items_check_pictures (run->items, error);
}

static KsEvalNeedleValue
get_values (const Run *run)
{
  return g_str_equal (run->values, "words")  ? KS_EVAL_WORDS
         : g_str_equal (run->values, "uuid") ? KS_EVAL_UUID
                                             : KS_EVAL_NUMBER;
}

/* Every number of pictures, place and number.  Places that fall together are taken once. */
static GPtrArray *
make_visual_items (Run *run, gboolean after, GError **error)
{
  g_autoptr (GPtrArray) items = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_eval_item_free);
  KsEvalVisualOptions options = {.seed = (guint64)run->data_seed,
                                 .grid = (guint)run->grid,
                                 .size_px = (guint)run->side_px,
                                 .easy = run->easy,
                                 .after = after};

  for (guint c = 0; c < run->count_list->len; c++) {
    guint last = G_MAXUINT;

    options.n_picture = (guint)g_array_index (run->count_list, guint64, c);
    for (guint d = 0; d < run->depth_list->len; d++) {
      guint depth = (guint)g_array_index (run->depth_list, guint64, d);

      options.position = (depth * (options.n_picture - 1) + 50) / 100;
      if (options.position == last)
        continue;
      last = options.position;
      for (options.index = 0; options.index < (guint)run->n_sample; options.index++) {
        KsEvalItem *item = ks_eval_visual_make (run->bench, &options, error);

        if (item == NULL)
          return NULL;
        g_ptr_array_add (items, item);
      }
    }
  }
  return g_steal_pointer (&items);
}

/* Every length, depth and number, the question with or after the text. */
static GPtrArray *
make_items (Run *run, KsEngineSetup *setup, gboolean after, GError **error)
{
  g_autoptr (GPtrArray) items = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_eval_item_free);
  KsEvalSynthOptions options = {.seed = (guint64)run->data_seed,
                                .after = after,
                                .n_other = (guint)run->n_other,
                                .values = get_values (run),
                                .filler = run->sentences};

  if (ks_eval_visual_is_kind (run->bench))
    return make_visual_items (run, after, error);
  for (guint l = 0; l < run->length_list->len; l++)
    for (guint d = 0; d < run->depth_list->len; d++)
      for (options.index = 0; options.index < (guint)run->n_sample; options.index++) {
        KsEvalItem *item;

        options.n_tok = (guint)g_array_index (run->length_list, guint64, l);
        options.depth = (guint)g_array_index (run->depth_list, guint64, d);
        item = ks_eval_synth_make (run->bench, &options, ks_eval_session_count, setup, error);
        if (item == NULL)
          return NULL;
        g_ptr_array_add (items, item);
      }
  return g_steal_pointer (&items);
}

static guint
get_max_new (const Run *run)
{
  static const struct {
    const char *bench;
    guint n;
  } caps[] = {{"textvqa", 64}, {"mme", 16}, {"mathvision", 16384}, {"aime", 32768}, {"mmdu", 1024}};

  if (run->max_new > 0)
    return (guint)run->max_new;
  for (guint i = 0; i < G_N_ELEMENTS (caps); i++)
    if (g_str_equal (caps[i].bench, run->bench))
      return caps[i].n;
  return ks_eval_visual_is_kind (run->bench) ? MAX_VISUAL_ANSWER
                                             : ks_eval_synth_get_reserve (run->bench);
}

/* --- running --- */

static cJSON *
make_header (Run *run, KsEngineSetup *setup)
{
  cJSON *json =
      ks_eval_batch_make_header (setup, run->model_hash, run->gate_hash, run->mmproj_hash);
  guint64 min_pixels = 0, max_pixels = 0;

  cJSON_AddStringToObject (json, "bench", run->bench);
  (void)cli_options_read_pixels (&run->options, &min_pixels, &max_pixels,
                                 NULL); /* it was checked */
  if (min_pixels > 0)
    cJSON_AddNumberToObject (json, "min_pixels", (double)min_pixels);
  if (max_pixels > 0)
    cJSON_AddNumberToObject (json, "max_pixels", (double)max_pixels);
  cJSON_AddBoolToObject (json, "no_split", run->options.no_split);
  cJSON_AddNumberToObject (json, "data_seed", (double)run->data_seed);
  cJSON_AddNumberToObject (json, "max_new", get_max_new (run));
  if (run->tmpl != NULL) {
    cJSON_AddStringToObject (json, "template", ks_eval_template_get_name (run->tmpl));
    cJSON_AddStringToObject (json, "template_hash", ks_eval_template_get_hash (run->tmpl));
    cJSON_AddStringToObject (json, "data_hash", run->items_hash);
    cJSON_AddBoolToObject (json, "ocr", run->data.ocr != NULL);
    return json;
  }
  cJSON_AddStringToObject (json, "values", run->values);
  cJSON_AddNumberToObject (json, "other_turns", run->n_other);
  if (ks_eval_visual_is_kind (run->bench)) {
    cJSON_AddNumberToObject (json, "grid", run->grid);
    cJSON_AddNumberToObject (json, "side_px", run->side_px);
    cJSON_AddBoolToObject (json, "easy", run->easy);
  }
  if (run->filler_hash != NULL)
    cJSON_AddStringToObject (json, "filler_hash", run->filler_hash);
  return json;
}

static void
progress_cb (const KsEvalCell *cell, guint n_done, guint n_total, gpointer user)
{
  g_autofree char *what = cli_eval_describe (cell);
  g_autofree char *text = g_strdup_printf ("%s: item %u of %u", what, n_done + 1, n_total);

  cli_bench_show_progress (text);
}

/* Pictures with fewer tokens are part of what a cell is. (transfer full) */
static char *
make_looks (const CliOptions *options)
{
  GString *text = g_string_new (NULL);

  if (options->visionzip != NULL)
    g_string_append_printf (text, "+visionzip-%s", options->visionzip);
  if (options->fastv != NULL)
    g_string_append_printf (text, "+fastv-%s", options->fastv);
  g_string_replace (text, ",", "-", 0);
  return g_string_free (text, FALSE);
}

/* All cells of one way of asking. */
static gboolean
run_question (Run *run, KsEngineSetup *setup, KsEngineJob *job, const char *question,
              KsEvalRunFile *file, GError **error)
{
  g_auto (GStrv) policies = g_strsplit (run->policies, ",", -1);
  g_auto (GStrv) modes = g_strsplit (run->modes, ",", -1);
  g_autofree char *looks = make_looks (&run->options);
  char *questions[] = {(char *)question, NULL};
  KsEvalGrid grid = {.policies = policies,
                     .modes = modes,
                     .questions = questions,
                     .looks = looks,
                     .budget = run->budget,
                     .entries = (const guint64 *)run->entry_list->data,
                     .seeds = (const guint64 *)run->seed_list->data,
                     .n_entries = run->entry_list->len,
                     .n_seed = run->seed_list->len};
  g_autoptr (GArray) cells = ks_eval_grid_make_cells (&grid, error);
  g_autoptr (GPtrArray) items = NULL;
  KsEvalBatch batch = {.cells = cells,
                       .ask = {.max_new = get_max_new (run), .forced = run->forced, .job = job},
                       .progress = progress_cb};

  if (cells == NULL)
    return FALSE;
  items = run->items != NULL ? g_ptr_array_ref (run->items)
                             : make_items (run, setup, strcmp (question, "after") == 0, error);
  if (items == NULL)
    return FALSE;
  batch.items = items;
  return ks_eval_batch_run (&batch, setup, file, error);
}

static gboolean
run_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  Run *run = data;
  KsEngineSetup *setup = ks_engine_get_setup (engine);
  cJSON *header = make_header (run, setup);
  g_autoptr (KsEvalRunFile) file = ks_eval_run_file_open (run->out, header, error);
  gboolean with = !g_str_equal (run->question, "after"),
           after = !g_str_equal (run->question, "with");
  gboolean ok = file != NULL;

  cJSON_Delete (header);
  if (run->items != NULL) {
    ok = ok && run_question (run, setup, job, "", file, error);
  } else {
    gboolean comes_later =
        g_str_equal (run->bench, "turns") || g_str_equal (run->bench, "visual-turns");

    if (with && !comes_later) /* whose questions always come later */
      ok = ok && run_question (run, setup, job, "with", file, error);
    if (after || comes_later)
      ok = ok && run_question (run, setup, job, "after", file, error);
  }
  cli_bench_show_progress (NULL);
  return ok;
}

/* Room for the longest item where everything is kept. */
static void
set_pool (Run *run, KsEngineOptions *options)
{
  gboolean is_visual = ks_eval_visual_is_kind (run->bench);
  guint64 entries = run->items != NULL || is_visual ? (guint64)run->context : 0;

  for (guint i = 0; run->items == NULL && !is_visual && i < run->length_list->len; i++)
    entries = MAX (entries, g_array_index (run->length_list, guint64, i) + MARGIN);
  /* Pages have room for what H2O counts where it is asked for. */
  options->policy = strstr (run->policies, "h2o") != NULL ? KS_POLICY_H2O : KS_POLICY_FULL;
  options->budget = (ks_budget_request){.entries = entries};
}

static int
run_command (Run *run)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsEngineOptions) options = NULL;
  g_autoptr (KsModelRegistry) registry = ks_model_registry_new (NULL, NULL);
  int code;

  if (parse_lists (run, &error) && check_values (run, &error) && load_items (run, &error))
    options = cli_options_make_engine (&run->options, &error);
  if (options == NULL)
    return cli_fail (error);
  set_pool (run, options);
  run->model_hash = ks_model_registry_hash (registry, options->model_path, FALSE, NULL, &error);
  if (run->model_hash != NULL && options->gate_path != NULL)
    run->gate_hash = ks_model_registry_hash (registry, options->gate_path, FALSE, NULL, &error);
  if (error != NULL)
    return cli_fail (error);
  run->mmproj_hash = g_strdup (options->mmproj_hash);
  code = cli_bench_run (options, run_job, run);
  if (code == CLI_OK) {
    g_autofree char *text = g_strdup_printf ("Everything that was asked for stands in %s; 'eval "
                                             "score' tells what it is worth.",
                                             run->out);

    cli_print_notice (text);
  }
  return code;
}

int
cli_eval_run_main (char **args)
{
  g_autoptr (GOptionContext) context = g_option_context_new ("BENCH");
  g_auto (GStrv) rest = g_strdupv (args);
  Run run = {.n_sample = 20, .n_other = 2, .data_seed = 1, .grid = 3, .side_px = 336};
  int code = CLI_OK;

  cli_options_init (&run.options);
  run.options.is_check = TRUE;
  run.options.wants_eyes = TRUE;
  add_options (&run, context);
  cli_eval_data_add (&run.data, context);
  cli_options_add_model (&run.options, context);
  cli_options_add_pictures (&run.options, context);
  g_option_context_set_summary (context, "Asks the questions of a benchmark, policy by policy.");
  g_option_context_set_description (context, help);
  if (cli_parse (context, &rest, &code)) {
    set_defaults (&run);
    run.bench = rest[1];
    if (run.bench == NULL || rest[2] != NULL)
      code = cli_usage ("name one benchmark or test: see keepsake-cli eval --help");
    else if (!ks_eval_synth_is_kind (run.bench) && !ks_eval_visual_is_kind (run.bench) &&
             !g_strv_contains (ks_eval_benches, run.bench))
      code =
          cli_usage ("there is no benchmark or test '%s': see keepsake-cli eval --help", run.bench);
    else
      code = run_command (&run);
  }
  run_clear (&run);
  return code;
}
