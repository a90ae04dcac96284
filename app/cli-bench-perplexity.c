/* cli-bench-perplexity.c - keepsake-cli bench perplexity: how well a text is foreseen, in both
 * modes.
 * The text is cut into stretches; each is read from an empty memory that keeps everything, and
 * every token but a stretch's first is foreseen.  Perplexity = exp of the mean negative
 * log-probability. The same tokens in both modes: the difference is the arithmetic's alone. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-bench.h"

#include "app/eval-stats.h"
#include "app/ks-error.h"

#include <math.h>
#include <stdio.h>

#define MAX_TOKENS 1000000
#define MAX_CONTEXT 32768

static const char help[] =
    "Examples:\n"
    "  keepsake-cli bench perplexity --file book.txt\n"
    "  keepsake-cli bench perplexity --file book.txt --tokens 4096 --context 1024 --json\n"
    "  keepsake-cli bench perplexity --mode fast --kv-type q8_0\n\n"
    "Exit codes: 0 done, 1 failed, 2 wrong options, 3 does not fit, 4 not supported, 130 "
    "cancelled.";

typedef struct {
  char **files;
  int n_tok, context;
  /* of the mode that runs */
  KsEngineJob *job;
  const ks_token *ids; /* of the stretch */
  guint32 n;
  guint n_vocab;
  double sum; /* of negative log-probabilities */
  guint n_counted;
  cJSON *header; /* facts of the machine and the model */
} Run;

static void
logits_cb (void *user, uint32_t row, const float *logits)
{
  Run *run = user;

  if (row + 1 >= run->n)
    return;
  run->sum += ks_eval_log_sum_exp (logits, run->n_vocab) - (double)logits[run->ids[row + 1]];
  run->n_counted++;
}

static bool
stop_cb (void *user)
{
  Run *run = user;

  return ks_engine_job_is_cancelled (run->job);
}

static gboolean
read_stretch (Run *run, ks_timeline *tl, const ks_token *ids, guint32 n, GError **error)
{
  ks_timeline_hooks hooks = {.logits = logits_cb, .stop = stop_cb, .user = run};
  guint32 chunk = ks_timeline_get_chunk (tl);
  ks_error err = {0};

  ks_timeline_reset (tl);
  for (guint32 i = 0; i < n; i += chunk) {
    run->ids = ids + i;
    run->n = n - i;
    if (!ks_error_check (ks_timeline_eval (tl, ids + i, MIN (chunk, n - i), &hooks, &err), &err,
                         error))
      return FALSE;
  }
  return TRUE;
}

static gboolean
perplexity_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  Run *run = data;
  KsEngineSetup *setup = ks_engine_get_setup (engine);
  ks_timeline_params params = ks_engine_setup_get_timeline_params (setup);
  guint32 n_tok = (guint32)run->n_tok, context = (guint32)run->context;
  guint n_repeat = 0;
  g_autoptr (GArray) ids = cli_bench_read_tokens (setup, run->files, n_tok, &n_repeat, error);
  ks_timeline *tl = NULL;
  ks_error err = {0};
  gboolean ok = TRUE;

  if (ids == NULL)
    return FALSE;
  if (n_repeat > 1) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                 "the text has fewer than %u tokens: give a longer one, or fewer with --tokens",
                 n_tok);
    return FALSE;
  }
  params.max_logit_rows = params.chunk;
  if (!ks_error_check (ks_timeline_new (setup->alloc, &params, &tl, &err), &err, error))
    return FALSE;
  run->job = job;
  run->n_vocab = ks_tokenizer_get_n_vocab (ks_model_get_tokenizer (setup->model));
  run->sum = 0;
  run->n_counted = 0;
  for (guint32 i = 0; ok && i < n_tok; i += context) {
    cli_bench_show_progress (setup->mode == KS_COMPUTE_FAST ? "reading, fast" : "reading, exact");
    ok = read_stretch (run, tl, (const ks_token *)ids->data + i, MIN (context, n_tok - i), error);
  }
  cli_bench_show_progress (NULL);
  ks_timeline_free (tl);
  cJSON_Delete (run->header);
  run->header = cli_bench_make_header (setup, "perplexity");
  return ok;
}

/* Runs one mode; the perplexity, or a negative number and the exit code. */
static double
run_mode (Run *run, KsEngineOptions *options, ks_compute_mode mode, int *out_code)
{
  options->mode = mode;
  *out_code = cli_bench_run (options, perplexity_job, run);
  return *out_code == CLI_OK ? exp (run->sum / MAX (run->n_counted, 1)) : -1;
}

/* Perplexities below zero were not asked for. */
static void
print_result (Run *run, gboolean as_json, double exact, double fast)
{
  double percent = 100 * (fast / exact - 1);
  cJSON *json = run->header;

  if (as_json) {
    run->header = NULL;
    cJSON_DeleteItemFromObject (json, "mode");
    cJSON_AddNumberToObject (json, "tokens", run->n_tok);
    cJSON_AddNumberToObject (json, "context", run->context);
    cJSON_AddNumberToObject (json, "tokens_foreseen", run->n_counted);
    if (exact > 0)
      cJSON_AddNumberToObject (json, "exact", exact);
    if (fast > 0)
      cJSON_AddNumberToObject (json, "fast", fast);
    if (exact > 0 && fast > 0)
      cJSON_AddNumberToObject (json, "difference_percent", percent);
    cli_print_json (json);
    return;
  }
  printf ("%d tokens in stretches of %d, %u foreseen\n", run->n_tok, run->context, run->n_counted);
  if (exact > 0)
    printf ("exact       %10.4f\n", exact);
  if (fast > 0)
    printf ("fast        %10.4f\n", fast);
  if (exact > 0 && fast > 0)
    printf ("difference  %+10.3f %%\n", percent);
}

static int
run_modes (Run *run, const CliOptions *options)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsEngineOptions) engine_options = cli_options_make_engine (options, &error);
  double exact = -1, fast = -1;
  int code = CLI_OK;

  if (engine_options == NULL)
    return cli_fail (error);
  engine_options->policy = KS_POLICY_FULL;
  engine_options->budget = (ks_budget_request){.entries = (uint64_t)run->context};
  if (options->mode == NULL || engine_options->mode == KS_COMPUTE_EXACT)
    exact = run_mode (run, engine_options, KS_COMPUTE_EXACT, &code);
  if (code == CLI_OK && (options->mode == NULL || engine_options->mode == KS_COMPUTE_FAST))
    fast = run_mode (run, engine_options, KS_COMPUTE_FAST, &code);
  if (code == CLI_OK)
    print_result (run, options->json, exact, fast);
  cJSON_Delete (run->header);
  return code;
}

int
cli_bench_perplexity_main (char **args)
{
  g_auto (GStrv) rest = g_strdupv (args), files = NULL;
  g_auto (CliOptions) options;
  Run run = {.n_tok = 4096, .context = 512};
  int code = CLI_OK;
  const GOptionEntry entries[] = {
      {"tokens", 0, 0, G_OPTION_ARG_INT, &run.n_tok, "length of the text (default 4096)", "N"},
      {"context", 0, 0, G_OPTION_ARG_INT, &run.context,
       "tokens of a stretch, read from an empty memory (default 512)", "N"},
      CLI_BENCH_TEXT_ENTRY (&files),
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  cli_options_init (&options);
  if (!cli_options_parse_check (&options, entries, FALSE,
                                "Measures how well a text is foreseen, exact and fast.", help,
                                &rest, &code))
    return code;
  if (run.n_tok < 2 || run.n_tok > MAX_TOKENS || run.context < 2 || run.context > MAX_CONTEXT ||
      rest[1] != NULL)
    return cli_usage ("--tokens or --context is out of range: see keepsake-cli bench perplexity "
                      "--help");
  run.files = files;
  return run_modes (&run, &options);
}
