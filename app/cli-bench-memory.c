/* cli-bench-memory.c - keepsake-cli bench memory: one long text inside a fixed budget.
 * Every sample reads a stretch of the text in chunks and then writes the rest of it token by token,
 * so that speed is measured where it counts.  Three verdicts: bytes never over the budget, process
 * size flat, decode speed kept. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-bench.h"

#include "app/ks-error.h"

#include <stdio.h>

#define MAX_TOKENS 1000000
#define FLAT_FROM 4000u
#define FLAT_BYTES (8u << 20)
#define SPEED_FROM 1000u
#define SPEED_RATIO 0.9

static const char help[] =
    "Verdicts: key/value bytes <= budget at every sample; process memory flat within 8 MiB from "
    "4,000\n"
    "tokens on; decode speed at the end >= 0.9 of that at 1,000 tokens (medians of three "
    "samples).\n\n"
    "Examples:\n"
    "  keepsake-cli bench memory --tokens 16000 --kv-budget 24MiB\n"
    "  keepsake-cli bench memory --file book.txt --tokens 8000 --entries 256 --json\n\n"
    "Exit codes: 0 all verdicts hold, 1 one does not (or a failure), 2 wrong options, 3 does not "
    "fit,\n"
    "4 not supported, 130 cancelled.";

typedef struct {
  guint32 seen;
  guint64 kv_used, kv_budget, kv_committed, resident;
  double prompt_rate, decode_rate;
} Sample;

typedef struct {
  const CliOptions *options;
  char **files;
  int n_tok, step, n_decode;
  GArray *samples;
  guint64 slab_bytes;
  guint n_repeat;
} Run;

static gboolean
take_sample (Run *run, ks_timeline *tl, KsEngineJob *job, const ks_token *ids, guint32 n,
             GError **error)
{
  guint32 n_decode = MIN ((guint32)run->n_decode, n), n_read = n - n_decode;
  double read_s = 0, seconds = 0, decode_s = 0;
  Sample sample = {0};
  ks_kv_stats stats;

  if (n_read > 0 && !cli_bench_eval (tl, job, ids, n_read, &read_s, error))
    return FALSE;
  for (guint32 i = 0; i < n_decode; i++) {
    if (!cli_bench_eval (tl, job, ids + n_read + i, 1, &seconds, error))
      return FALSE;
    decode_s += seconds;
  }
  ks_timeline_get_stats (tl, &stats);
  sample.seen = stats.seen;
  sample.kv_used = stats.kv_used_bytes;
  sample.kv_budget = stats.kv_budget_bytes;
  sample.kv_committed = stats.kv_committed_bytes;
  sample.resident = cli_bench_get_resident_bytes ();
  sample.prompt_rate = read_s > 0 ? n_read / read_s : 0;
  sample.decode_rate = decode_s > 0 ? n_decode / decode_s : 0;
  g_array_append_val (run->samples, sample);
  if (!run->options->json) {
    if (run->samples->len == 1)
      printf ("%8s %12s %12s %12s %12s %10s %10s\n", "tokens", "KV used", "committed", "budget",
              "resident", "prompt/s", "decode/s");
    printf ("%8u %12.2f %12.2f %12.2f %12.2f %10.1f %10.1f\n", sample.seen,
            (double)sample.kv_used / 1048576, (double)sample.kv_committed / 1048576,
            (double)sample.kv_budget / 1048576, (double)sample.resident / 1048576,
            sample.prompt_rate, sample.decode_rate);
    fflush (stdout);
  }
  return TRUE;
}

static gboolean
take_samples (Run *run, KsEngineSetup *setup, ks_timeline *tl, KsEngineJob *job, GError **error)
{
  guint32 n_ctx = ks_model_get_shape (setup->model)->n_ctx_train, n_tok = (guint32)run->n_tok;
  g_autoptr (GArray) ids = cli_bench_read_tokens (setup, run->files, n_tok, &run->n_repeat, error);

  if (ids == NULL)
    return FALSE;
  if (n_tok > n_ctx) {
    g_autofree char *text = g_strdup_printf (
        "%u tokens are more than the %u the model was trained for: this measures memory and speed, "
        "not answers.",
        n_tok, n_ctx);

    cli_print_notice (text);
  }
  if (!run->options->json) {
    cli_bench_print_header (setup);
    printf ("sizes in MiB\n");
  }
  for (guint32 i = 0; i < n_tok; i += (guint32)run->step)
    if (!take_sample (run, tl, job, (const ks_token *)ids->data + i,
                      MIN ((guint32)run->step, n_tok - i), error))
      return FALSE;
  return TRUE;
}

/* Median decode speed of three samples from the given one on. */
static double
get_speed (Run *run, guint first)
{
  double rates[3];
  guint n = 0;

  for (guint i = first; i < run->samples->len && n < 3; i++)
    rates[n++] = g_array_index (run->samples, Sample, i).decode_rate;
  return cli_bench_median (rates, n);
}

typedef struct {
  gboolean within, flat, fast, flat_known, fast_known;
  guint64 most_used, most_committed, resident_span;
  double first_rate, last_rate;
} Verdict;

static Verdict
judge (Run *run)
{
  Verdict verdict = {.within = TRUE};
  guint64 low = G_MAXUINT64, high = 0;
  guint first = G_MAXUINT;

  for (guint i = 0; i < run->samples->len; i++) {
    const Sample *s = &g_array_index (run->samples, Sample, i);

    verdict.within = verdict.within && s->kv_used <= s->kv_budget &&
                     s->kv_committed <= s->kv_budget + run->slab_bytes;
    verdict.most_used = MAX (verdict.most_used, s->kv_used);
    verdict.most_committed = MAX (verdict.most_committed, s->kv_committed);
    if (s->seen >= FLAT_FROM) {
      low = MIN (low, s->resident);
      high = MAX (high, s->resident);
    }
    if (s->seen >= SPEED_FROM && first == G_MAXUINT)
      first = i;
  }
  verdict.flat_known = high > 0;
  verdict.resident_span = high > 0 ? high - low : 0;
  verdict.flat = verdict.resident_span <= FLAT_BYTES;
  verdict.fast_known = first != G_MAXUINT && run->samples->len >= first + 6;
  if (verdict.fast_known) {
    verdict.first_rate = get_speed (run, first);
    verdict.last_rate = get_speed (run, run->samples->len - 3);
  }
  verdict.fast = !verdict.fast_known || verdict.last_rate >= SPEED_RATIO * verdict.first_rate;
  return verdict;
}

static cJSON *
make_samples_json (Run *run)
{
  cJSON *list = cJSON_CreateArray ();

  for (guint i = 0; i < run->samples->len; i++) {
    const Sample *s = &g_array_index (run->samples, Sample, i);
    cJSON *json = cJSON_CreateObject ();

    cJSON_AddNumberToObject (json, "tokens", s->seen);
    cJSON_AddNumberToObject (json, "kv_used_bytes", (double)s->kv_used);
    cJSON_AddNumberToObject (json, "kv_committed_bytes", (double)s->kv_committed);
    cJSON_AddNumberToObject (json, "kv_budget_bytes", (double)s->kv_budget);
    cJSON_AddNumberToObject (json, "resident_bytes", (double)s->resident);
    cJSON_AddNumberToObject (json, "prompt_tokens_per_second", s->prompt_rate);
    cJSON_AddNumberToObject (json, "decode_tokens_per_second", s->decode_rate);
    cJSON_AddItemToArray (list, json);
  }
  return list;
}

static void
print_json (Run *run, KsEngineSetup *setup, const Verdict *verdict)
{
  cJSON *json = cli_bench_make_header (setup, "memory"), *out;

  cJSON_AddNumberToObject (json, "text_repeated", run->n_repeat);
  cJSON_AddItemToObject (json, "samples", make_samples_json (run));
  out = cJSON_AddObjectToObject (json, "verdicts");
  cJSON_AddBoolToObject (out, "within_budget", verdict->within);
  cJSON_AddNumberToObject (out, "most_kv_used_bytes", (double)verdict->most_used);
  cJSON_AddNumberToObject (out, "most_kv_committed_bytes", (double)verdict->most_committed);
  if (verdict->flat_known) {
    cJSON_AddBoolToObject (out, "process_flat", verdict->flat);
    cJSON_AddNumberToObject (out, "resident_span_bytes", (double)verdict->resident_span);
  }
  if (verdict->fast_known) {
    cJSON_AddBoolToObject (out, "speed_kept", verdict->fast);
    cJSON_AddNumberToObject (out, "first_decode_rate", verdict->first_rate);
    cJSON_AddNumberToObject (out, "last_decode_rate", verdict->last_rate);
  }
  cli_print_json (json);
}

static void
print_text (Run *run, const Verdict *verdict)
{
  printf ("%s  key/value bytes within the budget at every sample: at most %.2f MiB used, %.2f MiB "
          "committed\n",
          verdict->within ? "ok  " : "FAIL", (double)verdict->most_used / 1048576,
          (double)verdict->most_committed / 1048576);
  if (verdict->flat_known)
    printf ("%s  process memory from %u tokens on varies by %.2f MiB (8 allowed)\n",
            verdict->flat ? "ok  " : "FAIL", FLAT_FROM, (double)verdict->resident_span / 1048576);
  else
    printf ("-     process memory: fewer than %u tokens, not judged\n", FLAT_FROM);
  if (verdict->fast_known)
    printf (
        "%s  decode speed %.1f tokens/s at the end, %.1f at %u tokens (ratio %.2f, 0.90 wanted)\n",
        verdict->fast ? "ok  " : "FAIL", verdict->last_rate, verdict->first_rate, SPEED_FROM,
        verdict->last_rate / MAX (verdict->first_rate, 1e-9));
  else
    printf ("-     decode speed: too few samples, not judged\n");
  if (run->n_repeat > 1)
    printf ("the text is shorter than asked for and was read %u times\n", run->n_repeat);
}

static gboolean
memory_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  Run *run = data;
  KsEngineSetup *setup = ks_engine_get_setup (engine);
  ks_timeline *tl = ks_engine_setup_new_timeline (setup, error);
  Verdict verdict;
  gboolean ok;

  if (tl == NULL)
    return FALSE;
  run->samples = g_array_new (FALSE, FALSE, sizeof (Sample));
  run->slab_bytes = 1u << 20;
  ok = take_samples (run, setup, tl, job, error);
  ks_timeline_free (tl);
  if (ok) {
    verdict = judge (run);
    if (run->options->json)
      print_json (run, setup, &verdict);
    else
      print_text (run, &verdict);
    if (!verdict.within || !verdict.flat || !verdict.fast) {
      g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "a verdict does not hold");
      ok = FALSE;
    }
  }
  g_array_unref (run->samples);
  return ok;
}

int
cli_bench_memory_main (char **args)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsEngineOptions) engine_options = NULL;
  g_auto (GStrv) rest = g_strdupv (args), files = NULL;
  g_auto (CliOptions) options;
  Run run = {.options = &options, .n_tok = 16000, .step = 500, .n_decode = 32};
  int code = CLI_OK;
  const GOptionEntry entries[] = {
      {"tokens", 0, 0, G_OPTION_ARG_INT, &run.n_tok, "length of the text (default 16000)", "N"},
      {"step", 0, 0, G_OPTION_ARG_INT, &run.step, "tokens between two samples (default 500)", "N"},
      {"decode", 0, 0, G_OPTION_ARG_INT, &run.n_decode,
       "of these, how many are fed one by one to measure speed (default 32)", "N"},
      CLI_BENCH_TEXT_ENTRY (&files),
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  cli_options_init (&options);
  if (!cli_options_parse_check (&options, entries, TRUE,
                                "Reads a long text inside a fixed budget and samples memory.", help,
                                &rest, &code))
    return code;
  if (run.n_tok < 1 || run.n_tok > MAX_TOKENS || run.step < 2 || run.n_decode < 1 ||
      run.n_decode > run.step || rest[1] != NULL)
    return cli_usage ("--tokens, --step or --decode is out of range: see keepsake-cli bench memory "
                      "--help");
  run.files = files;
  engine_options = cli_options_make_engine (&options, &error);
  if (engine_options == NULL)
    return cli_fail (error);
  if (options.budget == NULL && options.kv_budget == NULL && options.entries < 0)
    engine_options->budget = (ks_budget_request){.kv_bytes = 24u << 20};
  return cli_bench_run (engine_options, memory_job, &run);
}
