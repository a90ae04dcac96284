/* cli-bench-snapshot.c - keepsake-cli bench snapshot: what it costs to keep a conversation's state
 * and to go back to it, against reading the text again, and whether it goes on to the last bit. The
 * text is read, its state kept and an answer picked greedily; the state is taken back into an
 * emptied timeline and the same answer evaluated again: all logits have to be equal. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-bench.h"

#include "app/eval-stats.h"
#include "app/ks-error.h"
#include "engine/snapshot.h"

#include <stdio.h>
#include <string.h>

#define MAX_TOKENS 1000000
#define MAX_ANSWER 4096
#define N_ROUND 5 /* of which the median counts */

static const char help[] =
    "Examples:\n"
    "  keepsake-cli bench snapshot --tokens 4000 --entries 1024\n"
    "  keepsake-cli bench snapshot --file book.txt --json\n\n"
    "Exit codes: 0 done, 1 failed or not equal, 2 wrong options, 3 does not fit, 4 not supported, "
    "130 cancelled.";

typedef struct {
  char **files;
  int n_tok, n_answer;
  gboolean as_json;
  double read_s, write_s, restore_s;
  guint64 n_bytes, n_entries;
  gboolean equal;
} Run;

static bool
take_bytes (void *user, const void *data, size_t n_bytes)
{
  g_byte_array_append (user, data, (guint)n_bytes);
  return true;
}

static gboolean
keep (ks_timeline *tl, GByteArray *out, GError **error)
{
  const ks_snapshot_params params = {.with_logits = true};
  ks_error err = {0};

  g_byte_array_set_size (out, 0);
  return ks_error_check (ks_snapshot_write (tl, &params, take_bytes, out, &err), &err, error);
}

static gboolean
take_back (ks_timeline *tl, const GByteArray *bytes, GError **error)
{
  ks_snapshot snap;
  ks_error err = {0};

  return ks_error_check (ks_snapshot_open (bytes->data, bytes->len, NULL, &snap, &err), &err,
                         error) &&
         ks_error_check (ks_snapshot_read (tl, &snap, &err), &err, error);
}

/* Goes on greedily; logits [n_answer, n_vocab] are filled, or compared with what is there. */
static gboolean
answer (Run *run, ks_timeline *tl, KsEngineJob *job, float *logits, guint n_vocab, gboolean compare,
        GError **error)
{
  for (int i = 0; i < run->n_answer; i++) {
    const float *now = ks_timeline_get_logits (tl);
    float *row = logits + (gsize)i * n_vocab;
    ks_token id;

    if (now == NULL) {
      g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "the state has no logits");
      return FALSE;
    }
    if (compare)
      run->equal = run->equal && memcmp (row, now, n_vocab * sizeof *row) == 0;
    else
      memcpy (row, now, n_vocab * sizeof *row);
    id = (ks_token)ks_eval_find_best (row, n_vocab);
    if (!cli_bench_eval (tl, job, &id, 1, NULL, error))
      return FALSE;
  }
  return TRUE;
}

/* Median seconds of both ways, of several rounds. */
static gboolean
measure (Run *run, ks_timeline *tl, GByteArray *bytes, GError **error)
{
  double write_s[N_ROUND], restore_s[N_ROUND];

  for (guint i = 0; i < N_ROUND; i++) {
    gint64 begin = g_get_monotonic_time (), middle, end;

    if (!keep (tl, bytes, error))
      return FALSE;
    middle = g_get_monotonic_time ();
    ks_timeline_reset (tl);
    begin = middle - begin;
    middle = g_get_monotonic_time ();
    if (!take_back (tl, bytes, error))
      return FALSE;
    end = g_get_monotonic_time ();
    write_s[i] = (double)begin / 1e6;
    restore_s[i] = (double)(end - middle) / 1e6;
  }
  run->write_s = cli_bench_median (write_s, N_ROUND);
  run->restore_s = cli_bench_median (restore_s, N_ROUND);
  return TRUE;
}

static void
print_result (const Run *run, KsEngineSetup *setup)
{
  g_autofree char *size = cli_format_bytes (run->n_bytes);
  cJSON *json;

  if (run->as_json) {
    json = cli_bench_make_header (setup, "snapshot");
    cJSON_AddNumberToObject (json, "tokens", run->n_tok);
    cJSON_AddNumberToObject (json, "entries", (double)run->n_entries);
    cJSON_AddNumberToObject (json, "bytes", (double)run->n_bytes);
    cJSON_AddNumberToObject (json, "read_s", run->read_s);
    cJSON_AddNumberToObject (json, "write_s", run->write_s);
    cJSON_AddNumberToObject (json, "restore_s", run->restore_s);
    cJSON_AddNumberToObject (json, "tokens_compared", run->n_answer);
    cJSON_AddBoolToObject (json, "equal", run->equal);
    cli_print_json (json);
    return;
  }
  cli_bench_print_header (setup);
  printf ("%d tokens read, %" G_GUINT64_FORMAT " entries, %s\n", run->n_tok, run->n_entries, size);
  printf ("reading      %9.3f s\n", run->read_s);
  printf ("keeping      %9.3f s\n", run->write_s);
  printf ("going back   %9.3f s, 1/%.0f of reading\n", run->restore_s,
          run->read_s / MAX (run->restore_s, 1e-6));
  printf ("%d tokens after going back: %s\n", run->n_answer,
          run->equal ? "equal to the last bit" : "NOT EQUAL");
}

static gboolean
use_timeline (Run *run, KsEngineSetup *setup, ks_timeline *tl, KsEngineJob *job,
              const ks_token *ids, GError **error)
{
  guint n_vocab = ks_tokenizer_get_n_vocab (ks_model_get_tokenizer (setup->model));
  g_autofree float *logits = g_new (float, (gsize)run->n_answer *n_vocab);
  g_autoptr (GByteArray) bytes = g_byte_array_new ();

  cli_bench_show_progress ("reading");
  if (!cli_bench_eval (tl, job, ids, (guint32)run->n_tok, &run->read_s, error))
    return FALSE;
  run->n_entries = ks_kv_table_get_n_entries (ks_timeline_get_table (tl));
  run->equal = TRUE;
  if (!measure (run, tl, bytes, error) || !answer (run, tl, job, logits, n_vocab, FALSE, error))
    return FALSE;
  run->n_bytes = bytes->len;
  ks_timeline_reset (tl);
  return take_back (tl, bytes, error) && answer (run, tl, job, logits, n_vocab, TRUE, error);
}

static gboolean
snapshot_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  Run *run = data;
  KsEngineSetup *setup = ks_engine_get_setup (engine);
  guint n_repeat = 0;
  g_autoptr (GArray) ids =
      cli_bench_read_tokens (setup, run->files, (guint32)run->n_tok, &n_repeat, error);
  ks_timeline *tl;
  gboolean ok;

  if (ids == NULL)
    return FALSE;
  tl = ks_engine_setup_new_timeline (setup, error);
  if (tl == NULL)
    return FALSE;
  ok = use_timeline (run, setup, tl, job, (const ks_token *)ids->data, error);
  cli_bench_show_progress (NULL);
  ks_timeline_free (tl);
  if (!ok)
    return FALSE;
  print_result (run, setup);
  if (!run->equal)
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                         "after going back the numbers are not the same");
  return run->equal;
}

int
cli_bench_snapshot_main (char **args)
{
  g_auto (GStrv) rest = g_strdupv (args), files = NULL;
  g_auto (CliOptions) options;
  g_autoptr (GError) error = NULL;
  g_autoptr (KsEngineOptions) engine_options = NULL;
  Run run = {.n_tok = 2000, .n_answer = 32};
  int code = CLI_OK;
  const GOptionEntry entries[] = {
      {"tokens", 0, 0, G_OPTION_ARG_INT, &run.n_tok, "length of the text (default 2000)", "N"},
      {"answer", 0, 0, G_OPTION_ARG_INT, &run.n_answer,
       "tokens whose numbers are compared afterwards (default 32)", "N"},
      CLI_BENCH_TEXT_ENTRY (&files),
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  cli_options_init (&options);
  if (!cli_options_parse_check (&options, entries, TRUE,
                                "Goes back to a kept state in place of reading a text again.", help,
                                &rest, &code))
    return code;
  if (run.n_tok < 1 || run.n_tok > MAX_TOKENS || run.n_answer < 1 || run.n_answer > MAX_ANSWER ||
      rest[1] != NULL)
    return cli_usage ("--tokens or --answer is out of range: see keepsake-cli bench snapshot "
                      "--help");
  run.files = files;
  run.as_json = options.json;
  engine_options = cli_options_make_engine (&options, &error);
  if (engine_options == NULL)
    return cli_fail (error);
  return cli_bench_run (engine_options, snapshot_job, &run);
}
