/* cli-bench-speed.c - keepsake-cli bench speed: prompt speed, and decode speed at given depths.
 * Tokens of a real text are fed; nothing is sampled.  The median of the repetitions counts. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-bench.h"

#include "app/cli-inspect.h"
#include "app/ks-error.h"

#include <stdio.h>

#define MAX_REPEAT 99
#define MAX_DEPTH (1u << 20)

static const char help[] =
    "A row 'decode at D' is the speed of writing after D tokens were read, within the memory "
    "target.\n\n"
    "Examples:\n"
    "  keepsake-cli bench\n"
    "  keepsake-cli bench speed --depths 0,2048,8192 --entries 1024 --threads 2\n"
    "  keepsake-cli bench speed --prompt 512 --repeat 5 --json > speed.json\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong options, 3 does not fit, 4 not supported, 130 "
    "cancelled.";

typedef struct {
  const CliOptions *options;
  GArray *depths; /* guint32, ascending */
  char **files;
  int n_prompt, n_decode, n_repeat;
  cJSON *rows;
} Run;

static void
add_row (Run *run, const char *test, guint32 depth, guint32 n_tok, double tok_s, ks_timeline *tl)
{
  cJSON *row = cJSON_CreateObject ();
  ks_kv_stats stats;

  ks_timeline_get_stats (tl, &stats);
  cJSON_AddStringToObject (row, "test", test);
  cJSON_AddNumberToObject (row, "depth", depth);
  cJSON_AddNumberToObject (row, "tokens", n_tok);
  cJSON_AddNumberToObject (row, "tokens_per_second", tok_s);
  cJSON_AddNumberToObject (row, "entries_per_stream",
                           (double)stats.n_entries / stats.n_layer / stats.n_kv_head);
  cJSON_AddNumberToObject (row, "kv_used_bytes", (double)stats.kv_used_bytes);
  cJSON_AddItemToArray (run->rows, row);
}

static gboolean
measure_prompt (Run *run, ks_timeline *tl, KsEngineJob *job, const ks_token *ids, GError **error)
{
  double rates[MAX_REPEAT], seconds = 0;

  if (run->n_prompt == 0)
    return TRUE;
  for (int i = 0; i < run->n_repeat; i++) {
    cli_bench_show_progress ("measuring the prompt");
    ks_timeline_reset (tl);
    if (!cli_bench_eval (tl, job, ids, (guint32)run->n_prompt, &seconds, error))
      return FALSE;
    rates[i] = run->n_prompt / MAX (seconds, 1e-9);
  }
  add_row (run, "prompt", 0, (guint32)run->n_prompt, cli_bench_median (rates, (gsize)run->n_repeat),
           tl);
  return TRUE;
}

/* Decodes n_decode tokens n_repeat times, one behind the other. */
static gboolean
measure_decode (Run *run, ks_timeline *tl, KsEngineJob *job, const ks_token *ids, guint32 depth,
                guint32 *io_at, GError **error)
{
  double rates[MAX_REPEAT];

  for (int i = 0; i < run->n_repeat; i++) {
    double total = 0, seconds = 0;

    for (int j = 0; j < run->n_decode; j++) {
      if (!cli_bench_eval (tl, job, ids + (*io_at)++, 1, &seconds, error))
        return FALSE;
      total += seconds;
    }
    rates[i] = run->n_decode / MAX (total, 1e-9);
  }
  add_row (run, "decode", depth, (guint32)run->n_decode,
           cli_bench_median (rates, (gsize)run->n_repeat), tl);
  return TRUE;
}

static gboolean
measure (Run *run, KsEngineSetup *setup, ks_timeline *tl, KsEngineJob *job, GError **error)
{
  guint32 at = 0, n_tok = 0;
  guint n_repeat = 0;
  g_autoptr (GArray) ids = NULL;
  const ks_token *data;

  if (run->depths->len > 0)
    n_tok = g_array_index (run->depths, guint32, run->depths->len - 1);
  n_tok += (guint32)(run->n_decode * run->n_repeat) * (run->depths->len + 1) + 1;
  n_tok = MAX (n_tok, (guint32)run->n_prompt);
  ids = cli_bench_read_tokens (setup, run->files, n_tok, &n_repeat, error);
  if (ids == NULL)
    return FALSE;
  data = (const ks_token *)ids->data;
  if (!measure_prompt (run, tl, job, data, error))
    return FALSE;
  ks_timeline_reset (tl);
  for (guint i = 0; i < run->depths->len; i++) {
    guint32 depth = g_array_index (run->depths, guint32, i);
    g_autofree char *text = g_strdup_printf ("reading %u tokens", depth);

    cli_bench_show_progress (text);
    if (depth > at) {
      if (!cli_bench_eval (tl, job, data + at, depth - at, NULL, error))
        return FALSE;
      at = depth;
    }
    if (!measure_decode (run, tl, job, data, depth, &at, error))
      return FALSE;
  }
  return TRUE;
}

static void
print_table (Run *run)
{
  cJSON *row;

  printf ("%-8s %8s %8s %12s %12s %12s\n", "test", "depth", "tokens", "tokens/s", "entries",
          "KV bytes");
  cJSON_ArrayForEach (row, run->rows) printf (
      "%-8s %8d %8d %12.2f %12.1f %12.0f\n", cJSON_GetObjectItem (row, "test")->valuestring,
      cJSON_GetObjectItem (row, "depth")->valueint, cJSON_GetObjectItem (row, "tokens")->valueint,
      cJSON_GetObjectItem (row, "tokens_per_second")->valuedouble,
      cJSON_GetObjectItem (row, "entries_per_stream")->valuedouble,
      cJSON_GetObjectItem (row, "kv_used_bytes")->valuedouble);
}

static gboolean
speed_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  Run *run = data;
  KsEngineSetup *setup = ks_engine_get_setup (engine);
  ks_timeline *tl = ks_engine_setup_new_timeline (setup, error);
  gboolean ok;

  if (tl == NULL)
    return FALSE;
  run->rows = cJSON_CreateArray ();
  ok = measure (run, setup, tl, job, error);
  cli_bench_show_progress (NULL);
  ks_timeline_free (tl);
  if (ok && run->options->json) {
    cJSON *json = cli_bench_make_header (setup, "speed");

    cJSON_AddItemToObject (json, "rows", g_steal_pointer (&run->rows));
    cli_print_json (json);
  } else if (ok) {
    cli_bench_print_header (setup);
    print_table (run);
  }
  cJSON_Delete (run->rows);
  return ok;
}

static int
compare_u32 (gconstpointer a, gconstpointer b)
{
  guint32 x = *(const guint32 *)a, y = *(const guint32 *)b;

  return x < y ? -1 : x > y;
}

int
cli_bench_speed_main (char **args)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsEngineOptions) engine_options = NULL;
  g_auto (GStrv) rest = g_strdupv (args), files = NULL;
  g_auto (CliOptions) options;
  g_autofree char *depths = NULL;
  Run run = {.options = &options, .n_prompt = 512, .n_decode = 32, .n_repeat = 3};
  int code = CLI_OK;
  const GOptionEntry entries[] = {
      {"depths", 0, 0, G_OPTION_ARG_STRING, &depths, "depths to decode at (default 0,2048)",
       "LIST"},
      {"prompt", 0, 0, G_OPTION_ARG_INT, &run.n_prompt, "prompt length, 0 = none (default 512)",
       "N"},
      {"decode", 0, 0, G_OPTION_ARG_INT, &run.n_decode, "tokens to decode (default 32)", "N"},
      {"repeat", 0, 0, G_OPTION_ARG_INT, &run.n_repeat,
       "repetitions; the median counts (default 3)", "N"},
      CLI_BENCH_TEXT_ENTRY (&files),
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  cli_options_init (&options);
  if (!cli_options_parse_check (&options, entries, TRUE, "Measures tokens per second.", help, &rest,
                                &code))
    return code;
  if (run.n_prompt < 0 || run.n_prompt > (int)MAX_DEPTH || run.n_decode < 1 ||
      run.n_decode > 100000 || run.n_repeat < 1 || run.n_repeat > MAX_REPEAT || rest[1] != NULL)
    return cli_usage (
        "--prompt, --decode or --repeat is out of range: see keepsake-cli bench speed "
        "--help");
  run.files = files;
  run.depths = cli_parse_numbers (depths != NULL ? depths : "0,2048", MAX_DEPTH, "depth", &error);
  engine_options = run.depths != NULL ? cli_options_make_engine (&options, &error) : NULL;
  if (engine_options != NULL) {
    g_array_sort (run.depths, compare_u32);
    code = cli_bench_run (engine_options, speed_job, &run);
  } else {
    code = cli_fail (error);
  }
  g_clear_pointer (&run.depths, g_array_unref);
  return code;
}
