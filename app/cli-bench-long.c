/* cli-bench-long.c - keepsake-cli bench long: a text many times as long as the model was trained
 * for. Three readings of the same tokens: positions moved together where they would pass the
 * trained length, positions running on, and everything forgotten each time that length is reached.
 * Per stretch of that length the mean negative log-probability of the scored tokens: in every n-th
 * pass all but its last. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-bench.h"

#include "app/eval-stats.h"
#include "app/ks-error.h"

#include <stdio.h>

#define MAX_TOKENS 2000000
#define MAX_STRETCHES 100
#define DEFAULT_ENTRIES 1024u /* a stream, where no target is asked for */

static const char help[] =
    "Examples:\n"
    "  keepsake-cli bench long --file book.txt --entries 1024\n"
    "  keepsake-cli bench long --file book.txt --times 3 --length 2048 --json\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong options, 3 does not fit, 4 not supported, 130 "
    "cancelled.";

typedef enum { WAY_MAPPED, WAY_UNMAPPED, WAY_FRESH, N_WAY } Way;

static const char *const way_names[N_WAY] = {"moved together", "running on", "starting afresh"};
static const char *const way_keys[N_WAY] = {"mapped", "unmapped", "fresh"};

typedef struct {
  char **files;
  int n_times, length, every;
  KsEngineJob *job;
  const ks_token *ids; /* of the pass */
  guint32 n;
  guint n_vocab;
  double *sum; /* of the stretch */
  guint *n_scored;
  double sums[N_WAY][MAX_STRETCHES];
  guint scored[N_WAY][MAX_STRETCHES];
  guint n_remap[N_WAY];
  double seconds[N_WAY];
  gboolean as_json;
} Run;

static void
logits_cb (void *user, uint32_t row, const float *logits)
{
  Run *run = user;

  if (row + 1 >= run->n)
    return;
  *run->sum += ks_eval_log_sum_exp (logits, run->n_vocab) - (double)logits[run->ids[row + 1]];
  (*run->n_scored)++;
}

static bool
stop_cb (void *user)
{
  return ks_engine_job_is_cancelled (((Run *)user)->job);
}

/* One pass; scored or not. */
static gboolean
read_pass (Run *run, ks_timeline *tl, const ks_token *ids, guint32 n, gboolean scored,
           GError **error)
{
  ks_timeline_hooks hooks = {.logits = scored ? logits_cb : NULL, .stop = stop_cb, .user = run};
  ks_error err = {0};

  run->ids = ids;
  run->n = n;
  return ks_error_check (ks_timeline_eval (tl, ids, n, &hooks, &err), &err, error);
}

static gboolean
read_way (Run *run, Way way, ks_timeline *tl, const ks_token *ids, guint32 n_tok, GError **error)
{
  guint32 length = (guint32)run->length, chunk = ks_timeline_get_chunk (tl);
  gint64 begin = g_get_monotonic_time ();
  ks_kv_stats stats;
  guint n_pass = 0;

  for (guint32 i = 0, n; i < n_tok; i += n) {
    guint32 stretch = i / length;
    g_autofree char *text = g_strdup_printf ("%s: %u of %u tokens", way_names[way], i, n_tok);

    n = MIN (chunk, MIN (n_tok - i, (stretch + 1) * length - i));
    if (way == WAY_FRESH && i % length == 0)
      ks_timeline_reset (tl);
    run->sum = &run->sums[way][stretch];
    run->n_scored = &run->scored[way][stretch];
    cli_bench_show_progress (text);
    if (!read_pass (run, tl, ids + i, n, n_pass++ % (guint)run->every == 0, error))
      return FALSE;
  }
  cli_bench_show_progress (NULL);
  ks_timeline_get_stats (tl, &stats);
  run->n_remap[way] = stats.n_remap;
  run->seconds[way] = (double)(g_get_monotonic_time () - begin) / 1e6;
  return TRUE;
}

static gboolean
run_way (Run *run, KsEngineSetup *setup, Way way, GArray *ids, GError **error)
{
  ks_timeline_params params = ks_engine_setup_get_timeline_params (setup);
  ks_timeline *tl = NULL;
  ks_error err = {0};
  gboolean ok;

  params.max_logit_rows = params.chunk;
  params.max_pos = way == WAY_MAPPED ? (guint32)run->length : 0;
  if (!ks_error_check (ks_timeline_new (setup->alloc, &params, &tl, &err), &err, error))
    return FALSE;
  ok = read_way (run, way, tl, (const ks_token *)ids->data, ids->len, error);
  ks_timeline_free (tl);
  return ok;
}

static double
get_loss (const Run *run, Way way, guint stretch)
{
  return run->sums[way][stretch] / MAX (run->scored[way][stretch], 1);
}

/* Over all stretches but the first, in which nothing differs. */
static double
get_later_loss (const Run *run, Way way)
{
  double sum = 0;
  guint n = 0;

  for (int i = 1; i < run->n_times; i++) {
    sum += run->sums[way][i];
    n += run->scored[way][i];
  }
  return sum / MAX (n, 1);
}

static void
print_table (const Run *run, KsEngineSetup *setup)
{
  cli_bench_print_header (setup);
  printf ("policy %s, %.0f entries a stream; %d stretches of %d tokens, loss per token\n\n",
          ks_policy_get_name (setup->evict.policy), setup->plan.entries_per_stream, run->n_times,
          run->length);
  printf ("%8s", "stretch");
  for (int way = 0; way < N_WAY; way++)
    printf ("  %15s", way_names[way]);
  printf ("  %7s\n", "tokens");
  for (guint i = 0; i < (guint)run->n_times; i++) {
    printf ("%8u", i + 1);
    for (int way = 0; way < N_WAY; way++)
      printf ("  %15.4f", get_loss (run, way, i));
    printf ("  %7u\n", run->scored[WAY_MAPPED][i]);
  }
  if (run->n_times > 1) {
    printf ("%8s", "2 on");
    for (int way = 0; way < N_WAY; way++)
      printf ("  %15.4f", get_later_loss (run, way));
    printf ("\n");
  }
  printf ("\npositions were moved together %u times\n", run->n_remap[WAY_MAPPED]);
}

static void
print_json (Run *run, KsEngineSetup *setup)
{
  cJSON *json = cli_bench_make_header (setup, "long");

  cJSON_AddNumberToObject (json, "entries_per_stream", setup->plan.entries_per_stream);
  cJSON_AddNumberToObject (json, "length", run->length);
  cJSON_AddNumberToObject (json, "remaps", run->n_remap[WAY_MAPPED]);
  for (int way = 0; way < N_WAY; way++) {
    cJSON *object = cJSON_AddObjectToObject (json, way_keys[way]);
    cJSON *losses = cJSON_AddArrayToObject (object, "loss");

    for (guint i = 0; i < (guint)run->n_times; i++)
      cJSON_AddItemToArray (losses, cJSON_CreateNumber (get_loss (run, way, i)));
    cJSON_AddNumberToObject (object, "loss_from_second_on", get_later_loss (run, way));
    cJSON_AddNumberToObject (object, "tokens_scored_each", run->scored[way][0]);
    cJSON_AddNumberToObject (object, "seconds", run->seconds[way]);
  }
  cli_print_json (json);
}

static gboolean
long_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  Run *run = data;
  KsEngineSetup *setup = ks_engine_get_setup (engine);
  guint64 n_tok;
  guint n_repeat = 0;
  g_autoptr (GArray) ids = NULL;

  if (run->length == 0)
    run->length = (int)MIN (ks_model_get_shape (setup->model)->n_ctx_train, G_MAXINT);
  n_tok = (guint64)run->length * (guint64)run->n_times;
  if (n_tok > MAX_TOKENS) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                 "%" G_GUINT64_FORMAT " tokens are too many: give a smaller --times or --length",
                 n_tok);
    return FALSE;
  }
  ids = cli_bench_read_tokens (setup, run->files, (guint32)n_tok, &n_repeat, error);
  if (ids == NULL)
    return FALSE;
  if (n_repeat > 1) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                 "the text has fewer than %" G_GUINT64_FORMAT
                 " tokens: give a longer one with --file, or a smaller --times or --length",
                 n_tok);
    return FALSE;
  }
  run->job = job;
  run->n_vocab = ks_tokenizer_get_n_vocab (ks_model_get_tokenizer (setup->model));
  for (int way = 0; way < N_WAY; way++)
    if (!run_way (run, setup, (Way)way, ids, error))
      return FALSE;
  if (run->as_json)
    print_json (run, setup);
  else
    print_table (run, setup);
  return TRUE;
}

int
cli_bench_long_main (char **args)
{
  g_auto (GStrv) rest = g_strdupv (args), files = NULL;
  g_auto (CliOptions) options;
  g_autoptr (GError) error = NULL;
  g_autoptr (KsEngineOptions) engine_options = NULL;
  g_autofree Run *run = g_new0 (Run, 1);
  int code = CLI_OK;
  const GOptionEntry entries[] = {
      {"times", 0, 0, G_OPTION_ARG_INT, &run->n_times,
       "how many times the trained length (default 10)", "N"},
      {"length", 0, 0, G_OPTION_ARG_INT, &run->length,
       "positions in use at most (default: the trained length)", "N"},
      {"every", 0, 0, G_OPTION_ARG_INT, &run->every, "score one pass in so many (default 4)", "N"},
      CLI_BENCH_TEXT_ENTRY (&files),
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  run->n_times = 10;
  run->every = 4;
  cli_options_init (&options);
  if (!cli_options_parse_check (&options, entries, TRUE,
                                "Reads a text many times as long as the model was trained for.",
                                help, &rest, &code))
    return code;
  if (run->n_times < 1 || run->n_times > MAX_STRETCHES || run->length < 0 || run->every < 1 ||
      (run->length > 0 && run->length < 64) || rest[1] != NULL)
    return cli_usage ("--times, --length or --every is out of range: see keepsake-cli bench long "
                      "--help");
  run->files = files;
  run->as_json = options.json;
  engine_options = cli_options_make_engine (&options, &error);
  if (engine_options == NULL)
    return cli_fail (error);
  if (options.budget == NULL && options.kv_budget == NULL && options.entries < 0)
    engine_options->budget = (ks_budget_request){.entries = DEFAULT_ENTRIES};
  return cli_bench_run (engine_options, long_job, run);
}
