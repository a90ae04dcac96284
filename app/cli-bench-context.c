/* cli-bench-context.c - keepsake-cli bench context: decode speed and memory as the context grows,
 * policy by policy.  All policies stay open at once and are measured in turns at every length, so
 * that what else the machine does at a time hits them alike; the median of the rounds counts. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-bench.h"

#include "app/eval-session.h"
#include "app/ks-error.h"
#include "app/ks-plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MAX_POLICIES 16
#define MAX_LENGTHS 32
#define MAX_LENGTH (1u << 20)
#define MAX_ROUNDS 99
#define MAX_DECODE 1024

static const char help[] =
    "At every length each policy writes --decode tokens, round after round, in turns.\n\n"
    "Examples:\n"
    "  keepsake-cli bench context\n"
    "  keepsake-cli bench context --entries 1024 --lengths 1024,4096,16384 --out results\n\n"
    "Exit codes: 0 measured, 1 failed, 2 wrong options, 3 does not fit, 4 not supported, 130 "
    "cancelled.";

typedef struct {
  guint32 length;
  double prompt_rate, decode_rate; /* tokens/s; of the stretch up to length, and behind it */
  guint64 n_entries, kv_bytes;
} Point;

typedef struct {
  const char *name;
  ks_timeline *tl;
  guint32 at; /* tokens read and written */
  double rates[MAX_ROUNDS];
  Point points[MAX_LENGTHS];
} Series;

typedef struct {
  const CliOptions *options;
  char *policies, *lengths, *folder;
  char **files;
  int n_decode, n_round;
  guint32 length[MAX_LENGTHS];
  guint n_length;
  Series series[MAX_POLICIES];
  guint n_series, n_repeat;
  const ks_token *ids;
} Run;

/* --- measuring --- */

static gboolean
open_series (Run *run, KsEngineSetup *setup, const char *policy, GError **error)
{
  ks_timeline_params params = ks_engine_setup_get_timeline_params (setup);
  Series *series = &run->series[run->n_series];
  ks_error err = {0};

  if (!ks_eval_policy_parse (policy, "chunked", &params.evict, error))
    return FALSE;
  params.n_keep =
      ks_policy_never_evicts (params.evict.policy)
          ? 0
          : (uint64_t)run->options->entries * setup->layout.n_layer * setup->layout.n_kv_head;
  if (!ks_error_check (ks_timeline_new (setup->alloc, &params, &series->tl, &err), &err, error))
    return FALSE;
  series->name = policy;
  run->n_series++;
  return TRUE;
}

static gboolean
read_up_to (Run *run, Series *series, KsEngineJob *job, guint at, GError **error)
{
  guint32 length = run->length[at], n = length > series->at ? length - series->at : 0;
  double seconds = 0;

  if (n > 0 && !cli_bench_eval (series->tl, job, run->ids + series->at, n, &seconds, error))
    return FALSE;
  series->at += n;
  series->points[at].length = length;
  series->points[at].prompt_rate = n > 0 ? n / MAX (seconds, 1e-9) : NAN;
  return TRUE;
}

static gboolean
write_round (Run *run, Series *series, KsEngineJob *job, guint round, GError **error)
{
  double total = 0, seconds = 0;

  for (int i = 0; i < run->n_decode; i++) {
    if (!cli_bench_eval (series->tl, job, run->ids + series->at++, 1, &seconds, error))
      return FALSE;
    total += seconds;
  }
  series->rates[round] = run->n_decode / MAX (total, 1e-9);
  return TRUE;
}

static gboolean
measure_length (Run *run, KsEngineSetup *setup, KsEngineJob *job, guint at, GError **error)
{
  for (guint i = 0; i < run->n_series; i++) {
    g_autofree char *text =
        g_strdup_printf ("%s: reading up to %u", run->series[i].name, run->length[at]);

    cli_bench_show_progress (text);
    if (!read_up_to (run, &run->series[i], job, at, error))
      return FALSE;
  }
  for (guint round = 0; round < (guint)run->n_round; round++)
    for (guint i = 0; i < run->n_series; i++)
      if (!write_round (run, &run->series[i], job, round, error))
        return FALSE;
  for (guint i = 0; i < run->n_series; i++) {
    Series *series = &run->series[i];
    const ks_kv_table *table = ks_timeline_get_table (series->tl);

    series->points[at].decode_rate = cli_bench_median (series->rates, (gsize)run->n_round);
    series->points[at].n_entries = ks_kv_table_get_n_entries (table);
    series->points[at].kv_bytes =
        (guint64)ks_kv_table_get_n_pages (table) * setup->layout.page_bytes;
  }
  cli_bench_show_progress (NULL);
  return TRUE;
}

static gboolean
measure (Run *run, KsEngineSetup *setup, KsEngineJob *job, GError **error)
{
  g_auto (GStrv) names = g_strsplit (run->policies, ",", -1);
  guint32 most = run->length[run->n_length - 1] + (guint32)(run->n_decode * run->n_round);
  g_autoptr (GArray) ids = NULL;
  guint32 n_ctx = ks_model_get_shape (setup->model)->n_ctx_train;

  for (guint i = 0; names[i] != NULL; i++) {
    if (run->n_series == MAX_POLICIES) {
      g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE, "--policies: at most %d at a time",
                   MAX_POLICIES);
      return FALSE;
    }
    if (!open_series (run, setup, g_intern_string (g_strstrip (names[i])), error))
      return FALSE;
  }
  ids = cli_bench_read_tokens (setup, run->files, most, &run->n_repeat, error);
  if (ids == NULL)
    return FALSE;
  if (most > n_ctx) {
    g_autofree char *text = g_strdup_printf (
        "%u tokens are more than the %u the model was trained for: this measures memory and speed, "
        "not answers.",
        most, n_ctx);

    cli_print_notice (text);
  }
  run->ids = (const ks_token *)ids->data;
  for (guint at = 0; at < run->n_length; at++)
    if (!measure_length (run, setup, job, at, error))
      return FALSE;
  return TRUE;
}

/* --- telling --- */

static void
print_text (const Run *run)
{
  printf ("%8s  %-20s %12s %12s %14s %12s\n", "tokens", "policy", "reading/s", "writing/s",
          "entries", "MiB");
  for (guint at = 0; at < run->n_length; at++)
    for (guint i = 0; i < run->n_series; i++) {
      const Point *point = &run->series[i].points[at];

      printf ("%8u  %-20s %12.1f %12.1f %14" G_GUINT64_FORMAT " %12.2f\n", point->length,
              run->series[i].name, point->prompt_rate, point->decode_rate, point->n_entries,
              (double)point->kv_bytes / 1048576);
    }
}

static cJSON *
make_json (const Run *run, KsEngineSetup *setup)
{
  cJSON *json = cli_bench_make_header (setup, "context"), *rows;

  cJSON_DeleteItemFromObject (json, "policy");
  cJSON_AddNumberToObject (json, "entries_per_stream", run->options->entries);
  cJSON_AddNumberToObject (json, "rounds", run->n_round);
  cJSON_AddNumberToObject (json, "decode_tokens", run->n_decode);
  cJSON_AddNumberToObject (json, "text_repeated", run->n_repeat);
  rows = cJSON_AddArrayToObject (json, "rows");
  for (guint i = 0; i < run->n_series; i++)
    for (guint at = 0; at < run->n_length; at++) {
      const Point *point = &run->series[i].points[at];
      cJSON *row = cJSON_CreateObject ();

      cJSON_AddStringToObject (row, "policy", run->series[i].name);
      cJSON_AddNumberToObject (row, "tokens", point->length);
      if (isfinite (point->prompt_rate))
        cJSON_AddNumberToObject (row, "prompt_tokens_per_second", point->prompt_rate);
      cJSON_AddNumberToObject (row, "decode_tokens_per_second", point->decode_rate);
      cJSON_AddNumberToObject (row, "entries", (double)point->n_entries);
      cJSON_AddNumberToObject (row, "kv_bytes", (double)point->kv_bytes);
      cJSON_AddItemToArray (rows, row);
    }
  return json;
}

static GString *
plot (const Run *run, gboolean memory)
{
  KsPlotAxes axes = ks_plot_axes (memory ? "Keys and values" : "Speed of writing", "tokens read",
                                  memory ? "MiB" : "tokens/s");
  KsPlotPoint points[MAX_POLICIES][MAX_LENGTHS];
  KsPlotSeries series[MAX_POLICIES];

  axes.log_x = TRUE;
  axes.log_y = memory;
  if (!memory)
    axes.y_min = 0;
  for (guint i = 0; i < run->n_series; i++) {
    for (guint at = 0; at < run->n_length; at++) {
      const Point *point = &run->series[i].points[at];

      points[i][at] = ks_plot_point (point->length, memory ? (double)point->kv_bytes / 1048576
                                                           : point->decode_rate);
    }
    series[i] =
        (KsPlotSeries){.name = run->series[i].name, .points = points[i], .n_point = run->n_length};
  }
  return ks_plot_line_svg (&axes, series, run->n_series);
}

static gboolean
write_file (const Run *run, const char *name, const char *text, GError **error)
{
  g_autofree char *path = g_build_filename (run->folder, name, NULL);

  return g_file_set_contents (path, text, -1, error);
}

static gboolean
write_files (const Run *run, const cJSON *json, GError **error)
{
  char *text = cJSON_Print (json);
  GString *speed = plot (run, FALSE), *memory = plot (run, TRUE);
  gboolean ok = text != NULL && write_file (run, "context.json", text, error) &&
                write_file (run, "context-speed.svg", speed->str, error) &&
                write_file (run, "context-memory.svg", memory->str, error);

  g_string_free (speed, TRUE);
  g_string_free (memory, TRUE);
  cJSON_free (text);
  return ok;
}

static gboolean
context_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  Run *run = data;
  KsEngineSetup *setup = ks_engine_get_setup (engine);
  gboolean ok = measure (run, setup, job, error);
  cJSON *json = NULL;

  for (guint i = 0; i < run->n_series; i++)
    ks_timeline_free (run->series[i].tl);
  if (!ok)
    return FALSE;
  json = make_json (run, setup);
  if (run->folder != NULL)
    ok = write_files (run, json, error);
  if (run->options->json) {
    cli_print_json (json);
  } else {
    cJSON_Delete (json);
    cli_bench_print_header (setup);
    print_text (run);
  }
  return ok;
}

/* --- command --- */

static gboolean
parse_lengths (Run *run, GError **error)
{
  g_auto (GStrv) parts = g_strsplit (run->lengths, ",", -1);

  for (guint i = 0; parts[i] != NULL; i++) {
    guint64 value;
    guint32 least = run->n_length > 0 ? run->length[run->n_length - 1] + 1 : 1;

    if (run->n_length == MAX_LENGTHS ||
        !g_ascii_string_to_unsigned (g_strstrip (parts[i]), 10, least, MAX_LENGTH, &value, NULL)) {
      g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                   "--lengths is a rising list of at most %d numbers from 1 to %u, not '%s'",
                   MAX_LENGTHS, MAX_LENGTH, run->lengths);
      return FALSE;
    }
    run->length[run->n_length++] = (guint32)value;
  }
  return TRUE;
}

static int
run_command (Run *run, CliOptions *options)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsEngineOptions) engine_options = NULL;
  guint64 longest;

  if (options->entries == CLI_UNSET)
    options->entries = 1024;
  if (run->lengths == NULL)
    run->lengths = g_strdup ("1024,2048,4096,8192,16384,32768");
  if (run->policies == NULL)
    run->policies = g_strdup ("full,snapkv,dbtrimkv");
  if (!parse_lengths (run, &error))
    return cli_fail (error);
  if (run->folder != NULL && g_mkdir_with_parents (run->folder, 0755) != 0) {
    cli_print_error ("%s: the folder cannot be made", run->folder);
    return CLI_FAILED;
  }
  engine_options = cli_options_make_engine (options, &error);
  if (engine_options == NULL)
    return cli_fail (error);
  /* One pool for all that are open at once: what is not used takes no memory. */
  longest = run->length[run->n_length - 1] + (guint64)(run->n_decode * run->n_round);
  engine_options->budget = (ks_budget_request){
      .entries = longest + (guint64)MAX_POLICIES * ((guint64)options->entries + 512)};
  engine_options->policy = KS_POLICY_FULL;
  if (strstr (run->policies, ks_policy_get_name (KS_POLICY_H2O)) != NULL)
    engine_options->policy = KS_POLICY_H2O; /* its pages have room for what it counts */
  return cli_bench_run (engine_options, context_job, run);
}

int
cli_bench_context_main (char **args)
{
  g_auto (GStrv) rest = g_strdupv (args);
  g_auto (CliOptions) options;
  g_autofree Run *run = g_new0 (Run, 1);
  int code = CLI_OK;
  const GOptionEntry entries[] = {
      {"lengths", 0, 0, G_OPTION_ARG_STRING, &run->lengths,
       "tokens (default 1024,2048,4096,8192,16384,32768)", "LIST"},
      {"policies", 0, 0, G_OPTION_ARG_STRING, &run->policies,
       "what to compare (default full,snapkv,dbtrimkv)", "LIST"},
      {"decode", 0, 0, G_OPTION_ARG_INT, &run->n_decode, "tokens written a round (default 16)",
       "N"},
      {"rounds", 0, 0, G_OPTION_ARG_INT, &run->n_round, "rounds at every length (default 5)", "N"},
      CLI_BENCH_TEXT_ENTRY (&run->files),
      {"out", 'o', 0, G_OPTION_ARG_FILENAME, &run->folder, "folder for JSON and plots", "DIR"},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  run->options = &options;
  run->n_decode = 16;
  run->n_round = 5;
  cli_options_init (&options);
  if (!cli_options_parse_check (&options, entries, TRUE, "Speed and memory as the context grows.",
                                help, &rest, &code))
    return code;
  if (options.budget != NULL || options.kv_budget != NULL || options.policy.name != NULL ||
      options.keep_everything)
    code = cli_usage ("context compares policies at --entries M; choose them with --policies");
  else if (run->n_decode < 1 || run->n_decode > MAX_DECODE || run->n_round < 1 ||
           run->n_round > MAX_ROUNDS || rest[1] != NULL)
    code = cli_usage ("--decode or --rounds is out of range: see keepsake-cli bench context "
                      "--help");
  else
    code = run_command (run, &options);
  g_free (run->lengths);
  g_free (run->policies);
  g_free (run->folder);
  g_strfreev (run->files);
  return code;
}
