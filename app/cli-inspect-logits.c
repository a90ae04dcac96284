/* cli-inspect-logits.c - keepsake-cli inspect logits: ids or text to logits, as top k or a raw
 * dump. Nothing is evicted here: the policy is full and keys and values are f32 unless the options
 * say so. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-inspect.h"

#include "app/eval-stats.h"
#include "app/ks-error.h"

#include <stdio.h>
#include <string.h>

#define MAX_TOP 100

static const char help[] =
    "Rows are positions in the input; row i holds what the model expects after token i. With "
    "--dump\n"
    "all chosen rows are written as raw little-endian f32 and their shapes are in the JSON; "
    "--states\n"
    "adds the last position's vectors: embed_last [n_embd], layer_out_last [n_layer, n_embd] "
    "(before\n"
    "the final norm) and final_norm_last [n_embd].\n\n"
    "Examples:\n"
    "  keepsake-cli inspect logits --model smollm2 --text \"The sky is\" --top 5\n"
    "  keepsake-cli inspect logits --model m.gguf --ids 1,2,3 --rows all --dump out.bin --json\n"
    "  keepsake-cli inspect logits --model m.gguf --file a.txt --kv-type f16 --rows 0,10,20\n\n"
    "Exit codes: 0 done, 1 missing or damaged, 2 wrong options, 3 does not fit, 4 not supported,\n"
    "130 cancelled.";

typedef struct {
  const CliOptions *options;
  const CliTokenSource *source;
  const char *rows_text, *dump_path;
  int top;
  gboolean states;
  /* the run */
  const ks_tokenizer *tok;
  GArray *ids, *rows; /* ks_token, guint32 */
  guint n_row_before; /* rows of earlier passes */
  guint32 pass_begin;
  CliDump *dump;
  cJSON *json_rows;
} Run;

/* Rows that are wanted, ascending and without repeats. */
static int
compare_u32 (gconstpointer a, gconstpointer b)
{
  guint32 x = *(const guint32 *)a, y = *(const guint32 *)b;

  return x < y ? -1 : x > y;
}

static gboolean
choose_rows (Run *run, GError **error)
{
  const char *text = run->rows_text != NULL ? run->rows_text : "last";
  guint32 n = run->ids->len;

  if (n == 0) {
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_USAGE, "there is no token to run");
    return FALSE;
  }
  if (g_str_equal (text, "all") || g_str_equal (text, "last")) {
    run->rows = g_array_new (FALSE, FALSE, sizeof (guint32));
    for (guint32 i = g_str_equal (text, "all") ? 0 : n - 1; i < n; i++)
      g_array_append_val (run->rows, i);
    return TRUE;
  }
  run->rows = cli_parse_numbers (text, n, "row of this input", error);
  if (run->rows == NULL)
    return FALSE;
  if (run->rows->len == 0) {
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                         "--rows names no row: give all, last or a list such as 0,5,7");
    return FALSE;
  }
  g_array_sort (run->rows, compare_u32);
  for (guint i = 1; i < run->rows->len;)
    if (g_array_index (run->rows, guint32, i) == g_array_index (run->rows, guint32, i - 1))
      g_array_remove_index (run->rows, i);
    else
      i++;
  return TRUE;
}

/* Indices of the k largest, best first; the smaller id wins a tie. */
static void
find_top (const float *logits, guint n, guint k, guint *out)
{
  guint n_out = 0;

  for (guint i = 0; i < n; i++) {
    guint at = n_out;

    while (at > 0 && logits[i] > logits[out[at - 1]])
      at--;
    if (at >= k)
      continue;
    n_out = MIN (n_out + 1, k);
    memmove (out + at + 1, out + at, (n_out - at - 1) * sizeof *out);
    out[at] = i;
  }
}

static void
add_row (Run *run, guint32 row, const float *logits)
{
  guint n_vocab = ks_tokenizer_get_n_vocab (run->tok), k = MIN ((guint)run->top, n_vocab);
  guint top[MAX_TOP] = {0};
  double log_sum = ks_eval_log_sum_exp (logits, n_vocab);
  cJSON *json = cJSON_CreateObject (), *list;

  find_top (logits, n_vocab, k, top);
  cJSON_AddNumberToObject (json, "row", row);
  cJSON_AddNumberToObject (json, "id", g_array_index (run->ids, ks_token, row));
  cJSON_AddNumberToObject (json, "logsumexp", log_sum);
  list = cJSON_AddArrayToObject (json, "top");
  for (guint i = 0; i < k; i++) {
    g_autofree char *piece = cli_dup_piece (run->tok, (ks_token)top[i]);
    cJSON *entry = cJSON_CreateObject ();

    cJSON_AddNumberToObject (entry, "id", top[i]);
    cJSON_AddNumberToObject (entry, "logit", (double)logits[top[i]]);
    cJSON_AddNumberToObject (entry, "logprob", (double)logits[top[i]] - log_sum);
    cJSON_AddStringToObject (entry, "text", piece);
    cJSON_AddItemToArray (list, entry);
  }
  cJSON_AddItemToArray (run->json_rows, json);
}

static void
logits_cb (void *user, uint32_t row, const float *logits)
{
  Run *run = user;

  cli_dump_write (run->dump, logits, ks_tokenizer_get_n_vocab (run->tok));
  add_row (run, run->pass_begin + row, logits);
}

/* Feeds one pass and asks for the wanted rows that lie in it. */
static gboolean
run_pass (Run *run, ks_timeline *tl, KsEngineJob *job, guint32 begin, guint32 n, GError **error)
{
  g_autofree guint32 *rows = g_new (guint32, n);
  ks_timeline_hooks hooks = {.logits = logits_cb, .logit_rows = rows, .user = run};
  ks_error err = {0};

  if (ks_engine_job_is_cancelled (job)) {
    g_set_error_literal (error, KS_ENGINE_ERROR, KS_ERR_CANCELLED, "cancelled");
    return FALSE;
  }
  while (run->n_row_before < run->rows->len &&
         g_array_index (run->rows, guint32, run->n_row_before) < begin + n)
    rows[hooks.n_logit++] = g_array_index (run->rows, guint32, run->n_row_before++) - begin;
  if (hooks.n_logit == 0)
    hooks.logits = NULL;
  run->pass_begin = begin;
  return ks_error_check (
      ks_timeline_eval (tl, (const ks_token *)run->ids->data + begin, n, &hooks, &err), &err,
      error);
}

static gboolean
dump_states (Run *run, ks_timeline *tl, GError **error)
{
  const ks_model_shape *shape = ks_model_get_shape (ks_timeline_get_model (tl));
  const ks_graph *graph = ks_timeline_get_graph (tl);
  guint64 dims[2] = {shape->n_layer, shape->n_embd};
  const float *embed = ks_graph_get_tap (graph, KS_TAP_EMBED, 0);
  const float *norm = ks_graph_get_tap (graph, KS_TAP_FINAL_NORM, 0);

  if (embed == NULL || norm == NULL) {
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "the states were not kept");
    return FALSE;
  }
  cli_dump_begin (run->dump, "embed_last", "f32", 1, dims + 1);
  cli_dump_write (run->dump, embed, shape->n_embd);
  cli_dump_begin (run->dump, "layer_out_last", "f32", 2, dims);
  for (guint32 layer = 0; layer < shape->n_layer; layer++)
    cli_dump_write (run->dump, ks_graph_get_tap (graph, KS_TAP_LAYER_OUT, layer), shape->n_embd);
  cli_dump_begin (run->dump, "final_norm_last", "f32", 1, dims + 1);
  cli_dump_write (run->dump, norm, shape->n_embd);
  return TRUE;
}

static void
print_result (Run *run, KsEngineSetup *setup, cJSON *take_arrays)
{
  cJSON *json, *row, *entry;

  if (run->options->json) {
    json = cJSON_CreateObject ();
    cJSON_AddStringToObject (json, "model", setup->model_path);
    cJSON_AddNumberToObject (json, "n_vocab", ks_tokenizer_get_n_vocab (run->tok));
    cJSON_AddStringToObject (json, "policy", ks_policy_get_name (setup->evict.policy));
    cJSON_AddStringToObject (json, "mode", cli_get_mode_name (setup->mode));
    cJSON_AddNumberToObject (json, "repacked_bytes",
                             (double)ks_model_get_repacked_bytes (setup->model));
    cJSON_AddStringToObject (json, "kv_type", ks_dtype_get_info (setup->layout.kv_dtype)->name);
    cJSON_AddItemToObject (json, "ids",
                           cli_make_id_array ((const ks_token *)run->ids->data, run->ids->len));
    cJSON_AddItemToObject (json, "rows", g_steal_pointer (&run->json_rows));
    if (take_arrays != NULL) {
      cJSON_AddStringToObject (json, "file", run->dump_path);
      cJSON_AddItemToObject (json, "arrays", take_arrays);
    }
    cli_print_json (json);
    return;
  }
  cJSON_Delete (take_arrays);
  cJSON_ArrayForEach (row, run->json_rows)
  {
    printf ("after token %d:\n", cJSON_GetObjectItem (row, "row")->valueint);
    cJSON_ArrayForEach (entry, cJSON_GetObjectItem (row, "top"))
    {
      g_autofree char *text = g_strescape (cJSON_GetObjectItem (entry, "text")->valuestring, NULL);

      printf ("  %7d  %9.4f  %9.4f  \"%s\"\n", cJSON_GetObjectItem (entry, "id")->valueint,
              cJSON_GetObjectItem (entry, "logit")->valuedouble,
              cJSON_GetObjectItem (entry, "logprob")->valuedouble, text);
    }
  }
}

static gboolean
run_rows (Run *run, KsEngineSetup *setup, ks_timeline *tl, KsEngineJob *job, GError **error)
{
  guint32 chunk = setup->plan.chunk, n = run->ids->len;
  guint64 shape[2];
  const char *inputs[] = {setup->model_path, run->source->file, NULL};
  cJSON *arrays = NULL;

  shape[0] = run->rows->len;
  shape[1] = ks_tokenizer_get_n_vocab (run->tok);
  run->dump = cli_dump_new (run->dump_path, inputs, error);
  if (run->dump == NULL)
    return FALSE;
  cli_dump_begin (run->dump, "logits", "f32", 2, shape);
  for (guint32 i = 0; i < n; i += chunk)
    if (!run_pass (run, tl, job, i, MIN (chunk, n - i), error))
      return FALSE;
  if (run->states && !dump_states (run, tl, error))
    return FALSE;
  if (!cli_dump_finish (run->dump, &arrays, error))
    return FALSE;
  print_result (run, setup, arrays);
  return TRUE;
}

static gboolean
logits_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  Run *run = data;
  KsEngineSetup *setup = ks_engine_get_setup (engine);
  ks_timeline_params params;
  ks_timeline *tl = NULL;
  ks_error err = {0};
  gboolean ok;

  run->tok = ks_model_get_tokenizer (setup->model);
  run->ids = cli_token_source_read (run->source, run->tok, setup->alloc, error);
  if (run->ids == NULL || !choose_rows (run, error))
    return FALSE;
  params = ks_engine_setup_get_timeline_params (setup);
  params.want_taps = run->states;
  params.max_logit_rows = MAX (1, MIN (run->rows->len, params.chunk));
  if (!ks_error_check (ks_timeline_new (setup->alloc, &params, &tl, &err), &err, error))
    return FALSE;
  ok = run_rows (run, setup, tl, job, error);
  ks_timeline_free (tl);
  return ok;
}

static int
run_command (Run *run)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsEngineOptions) options = cli_options_make_engine (run->options, &error);
  g_autoptr (KsEngine) engine = NULL;
  g_autoptr (KsEngineJob) load = NULL;
  int code;

  if (options == NULL)
    return cli_fail (error);
  if (run->options->kv_type == NULL)
    options->kv_dtype = KS_DTYPE_F32;
  if (options->policy < 0)
    options->policy = KS_POLICY_FULL;
  engine = ks_engine_new ();
  load = ks_engine_load (engine, options);
  if (!cli_wait (load, &error))
    return cli_fail (error);
  run->json_rows = cJSON_CreateArray ();
  code = cli_run_on_engine (engine, logits_job, run);
  cJSON_Delete (run->json_rows);
  g_clear_pointer (&run->dump, cli_dump_free);
  g_clear_pointer (&run->ids, g_array_unref);
  g_clear_pointer (&run->rows, g_array_unref);
  return code;
}

int
cli_inspect_logits_main (char **args)
{
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);
  g_auto (GStrv) rest = g_strdupv (args);
  g_auto (CliOptions) options;
  g_auto (CliTokenSource) source = {0};
  g_autofree char *rows = NULL, *dump = NULL;
  Run run = {.options = &options, .source = &source, .top = 10};
  int code = CLI_OK;
  const GOptionEntry entries[] = {{"rows", 0, 0, G_OPTION_ARG_STRING, &rows,
                                   "all, last or a list such as 0,5,7 (default last)", "ROWS"},
                                  {"top", 0, 0, G_OPTION_ARG_INT, &run.top,
                                   "how many tokens to list for a row (default 10)", "K"},
                                  {"dump", 0, 0, G_OPTION_ARG_FILENAME, &dump,
                                   "write the logits as raw little-endian f32", "FILE"},
                                  {"states", 0, 0, G_OPTION_ARG_NONE, &run.states,
                                   "also dump the last position's vectors", NULL},
                                  {NULL, 0, 0, 0, NULL, NULL, NULL}};

  cli_options_init (&options);
  options.is_check = TRUE;
  cli_token_source_add (&source, context);
  g_option_context_add_main_entries (context, entries, NULL);
  cli_options_add_model (&options, context);
  cli_options_add_memory (&options, context);
  cli_options_add_json (&options, context);
  g_option_context_set_summary (context,
                                "Shows what a model expects after each token of an input.");
  g_option_context_set_description (context, help);
  if (!cli_parse (context, &rest, &code))
    return code;
  run.rows_text = rows;
  run.dump_path = dump;
  if (rest[1] != NULL)
    return cli_usage ("give the input with --text, --file or --ids");
  if (run.top < 0 || run.top > MAX_TOP)
    return cli_usage ("--top must be from 0 to %d", MAX_TOP);
  if (run.states && dump == NULL)
    return cli_usage ("--states needs --dump FILE");
  return run_command (&run);
}
