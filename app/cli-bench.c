/* cli-bench.c - keepsake-cli bench: its command table and what the measurements share. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-bench.h"

#include "app/cli-media.h"
#include "app/eval-stats.h"
#include "app/ks-data-dir.h"
#include "app/ks-error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const CliCommand commands[] = {
    {"speed", "tokens per second: prompt, and answer at several depths", cli_bench_speed_main},
    {"memory", "a long text inside a fixed budget: bytes, process size, speed",
     cli_bench_memory_main},
    {"perplexity", "how well a text is foreseen, in exact and fast arithmetic",
     cli_bench_perplexity_main},
    {"snapshot", "going back to a kept state against reading again", cli_bench_snapshot_main},
    {"long", "a text many times as long as the model was trained for", cli_bench_long_main},
    {"recall", "questions about facts in other text, policy by policy", cli_bench_recall_main},
    {"policies", "loss and recall, policies by budgets, with intervals: tables and plots",
     cli_bench_policies_main},
    {"context", "speed and memory as the context grows, policy by policy", cli_bench_context_main},
    {"dilution", "attention on the evidence as the context grows", cli_bench_dilution_main},
};

static const char help[] = "Without a command: speed.\n\n"
                           "Examples:\n"
                           "  keepsake-cli bench --depths 0,2048 --json\n"
                           "  keepsake-cli bench memory --tokens 16000 --kv-budget 24MiB\n"
                           "  keepsake-cli bench recall --entries 128\n";

int
cli_bench_main (char **args)
{
  if (args[1] == NULL ||
      (args[1][0] == '-' && !g_str_equal (args[1], "--help") && !g_str_equal (args[1], "-h")))
    return cli_bench_speed_main (args);
  return cli_run_subcommand ("bench", commands, G_N_ELEMENTS (commands), args, help);
}

static gboolean
append_file (KsEngineSetup *setup, const char *path, ks_token_list *list, GError **error)
{
  gsize n = 0;
  g_autofree char *text = cli_load_text (path, &n, error);
  ks_error err = {0};

  return text != NULL && ks_error_check (ks_tokenizer_encode (ks_model_get_tokenizer (setup->model),
                                                              text, n, 0, list, &err),
                                         &err, error);
}

GArray *
cli_bench_read_tokens (KsEngineSetup *setup, char **files, guint32 n_tok, guint *out_n_repeat,
                       GError **error)
{
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (ks_token));
  g_autofree char *folder = ks_data_dir_dup ();
  g_autofree char *handbook = g_build_filename (folder, "samples", "keepsake-handbook.md", NULL);
  char *own[2] = {handbook, NULL};
  ks_token_list list;
  gboolean ok = TRUE;

  ks_token_list_init (&list, setup->alloc);
  if (files == NULL || files[0] == NULL)
    files = own;
  for (guint i = 0; ok && files[i] != NULL; i++)
    ok = append_file (setup, files[i], &list, error);
  if (ok && list.n == 0) {
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_NOT_TEXT, "the files hold no text");
    ok = FALSE;
  }
  *out_n_repeat = 0;
  while (ok && ids->len < n_tok) {
    g_array_append_vals (ids, list.ids, (guint)MIN (list.n, n_tok - ids->len));
    (*out_n_repeat)++;
  }
  ks_token_list_done (&list);
  return ok ? g_steal_pointer (&ids) : NULL;
}

static bool
stop_cb (void *user)
{
  return ks_engine_job_is_cancelled (user);
}

gboolean
cli_bench_eval (ks_timeline *tl, KsEngineJob *job, const ks_token *ids, guint32 n,
                double *out_seconds, GError **error)
{
  ks_timeline_hooks hooks = {.stop = stop_cb, .user = job};
  gint64 begin = g_get_monotonic_time ();
  ks_error err = {0};

  if (!ks_error_check (ks_timeline_eval (tl, ids, n, &hooks, &err), &err, error))
    return FALSE;
  if (out_seconds != NULL)
    *out_seconds = (double)(g_get_monotonic_time () - begin) / 1e6;
  return TRUE;
}

char *
cli_bench_answer (KsEngineSetup *setup, ks_timeline *tl, KsEngineJob *job, guint n_most,
                  guint *out_n, GError **error)
{
  const ks_tokenizer *tok = ks_model_get_tokenizer (setup->model);
  g_autoptr (GString) text = g_string_new (NULL);
  guint n_tok;

  for (n_tok = 0; n_tok < n_most; n_tok++) {
    ks_token id =
        (ks_token)ks_eval_find_best (ks_timeline_get_logits (tl), ks_tokenizer_get_n_vocab (tok));
    size_t n = 0;
    const char *piece;

    if (ks_tokenizer_is_end (tok, id))
      break;
    piece = ks_tokenizer_get_piece (tok, id, false, &n);
    g_string_append_len (text, piece, (gssize)n);
    if (!cli_bench_eval (tl, job, &id, 1, NULL, error))
      return NULL;
  }
  if (out_n != NULL)
    *out_n = n_tok;
  return g_utf8_make_valid (text->str, (gssize)text->len);
}

static int
compare_doubles (const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;

  return x < y ? -1 : x > y;
}

double
cli_bench_median (double *values, gsize n)
{
  if (n == 0)
    return 0;
  qsort (values, n, sizeof *values, compare_doubles);
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

guint64
cli_bench_get_resident_bytes (void)
{
  g_autofree char *text = NULL;
  g_auto (GStrv) fields = NULL;

  if (!g_file_get_contents ("/proc/self/statm", &text, NULL, NULL))
    return 0;
  fields = g_strsplit (text, " ", 3);
  if (fields[0] == NULL || fields[1] == NULL)
    return 0;
  return g_ascii_strtoull (fields[1], NULL, 10) * (guint64)sysconf (_SC_PAGESIZE);
}

void
cli_bench_show_progress (const char *text)
{
  if (!isatty (STDERR_FILENO))
    return;
  fprintf (stderr, "\r\033[K%s", text != NULL ? text : "");
  fflush (stderr);
}

cJSON *
cli_bench_make_header (KsEngineSetup *setup, const char *what)
{
  cJSON *json = cJSON_CreateObject ();
  ks_dev_info info = {0};
  double load[1] = {0};

  setup->be.t->get_info (setup->be.dev, &info);
  cJSON_AddStringToObject (json, "bench", what);
  cJSON_AddStringToObject (json, "model", setup->model_path);
  if (setup->gate_path != NULL)
    cJSON_AddStringToObject (json, "gate", setup->gate_path);
  cJSON_AddStringToObject (json, "policy", ks_policy_get_name (setup->evict.policy));
  cJSON_AddStringToObject (json, "kv_type", ks_dtype_get_info (setup->layout.kv_dtype)->name);
  cJSON_AddStringToObject (json, "mode", cli_get_mode_name (setup->mode));
  cJSON_AddNumberToObject (json, "weight_bytes", (double)ks_model_get_weight_bytes (setup->model));
  cJSON_AddNumberToObject (json, "repacked_bytes",
                           (double)ks_model_get_repacked_bytes (setup->model));
  cJSON_AddStringToObject (json, "device", info.name);
  cJSON_AddStringToObject (json, "instructions", info.isa);
  cJSON_AddNumberToObject (json, "threads", info.n_unit);
  if (getloadavg (load, 1) == 1)
    cJSON_AddNumberToObject (json, "load_average", load[0]);
  return json;
}

void
cli_bench_print_header (KsEngineSetup *setup)
{
  guint64 n_copy = ks_model_get_repacked_bytes (setup->model);
  g_autofree char *weights = cli_format_bytes (ks_model_get_weight_bytes (setup->model) - n_copy);
  g_autofree char *copy = cli_format_bytes (n_copy);

  printf ("mode %s, keys and values %s, weights %s (file-backed), their repacked copy %s\n",
          cli_get_mode_name (setup->mode), ks_dtype_get_info (setup->layout.kv_dtype)->name,
          weights, copy);
}

int
cli_bench_run (const KsEngineOptions *options, KsEngineJobFunc func, gpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsEngine) engine = ks_engine_new ();
  g_autoptr (KsEngineJob) load = ks_engine_load (engine, options);

  if (!cli_wait (load, &error))
    return cli_fail (error);
  return cli_run_on_engine (engine, func, data);
}
