/* cli-inspect-evict.c - keepsake-cli inspect evict: the trace of an eviction policy over given
 * tokens. By default the method alone is traced: after a pass, when the streams together hold S *
 * (M + B) entries or more, they are cut to K = S * M.  --forced traces what sessions do instead. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-inspect.h"

#include "app/ks-error.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char help[] =
    "Every eviction is listed with the tokens seen, the entries before and after, the score of the "
    "last\n"
    "entry that was kept, and how many entries survive in each head of each layer; with --json "
    "the\n"
    "positions that survive there.\n"
    "--dump writes log_beta [n_tok, n_layer, n_kv_head] and logits [n_tok, n_vocab] of all tokens "
    "as raw\n"
    "little-endian f32 and needs a gate.\n\n"
    "Examples:\n"
    "  keepsake-cli inspect evict --model smollm2 --file notes.txt --entries 64 --chunk 128\n"
    "  keepsake-cli inspect evict --model m.gguf --gate g.safetensors --ids 1,2,3,4,5,6 \\\n"
    "      --chunks 2,1,1,1,1 --entries 2 --buffer 2 --json\n\n"
    "Exit codes: 0 done, 1 missing or damaged, 2 wrong options, 3 does not fit, 4 not supported,\n"
    "130 cancelled.";

typedef struct {
  const CliOptions *options;
  const CliTokenSource *source;
  const char *chunks_text, *dump_path;
  gboolean forced;
  /* the run */
  GArray *ids, *chunks; /* ks_token, guint32 */
  ks_backend *be;
  cJSON *events;
  guint64 peak;
  GArray *log_beta, *logits; /* float, kept for the dump */
  guint n_vocab;
  gboolean failed;
} Run;

static cJSON *
make_number (double value)
{
  return isfinite (value) ? cJSON_CreateNumber (value) : cJSON_CreateNull ();
}

/* Positions in one stream. */
static cJSON *
make_stream (Run *run, const ks_kv_view *view, guint32 stream)
{
  guint32 n = view->streams[stream].n_entry;
  g_autofree guint32 *pos = g_new (guint32, MAX (n, 1));
  cJSON *array = cJSON_CreateArray ();

  if (n > 0 && run->be->t->kv_read (run->be->dev, view, stream, 0, n, NULL, NULL, NULL, pos, NULL,
                                    NULL) != KS_OK) {
    run->failed = TRUE;
    return array;
  }
  for (guint32 i = 0; i < n; i++)
    cJSON_AddItemToArray (array, cJSON_CreateNumber (pos[i]));
  return array;
}

static void
evicted_cb (void *user, const ks_evict_event *event, const ks_kv_table *table)
{
  Run *run = user;
  ks_kv_view view = ks_kv_table_get_view (table);
  cJSON *json = cJSON_CreateObject (), *layers;

  run->peak = MAX (run->peak, event->n_before);
  cJSON_AddNumberToObject (json, "seen", event->seen);
  cJSON_AddNumberToObject (json, "entries_before", (double)event->n_before);
  cJSON_AddNumberToObject (json, "entries_after", (double)event->n_after);
  cJSON_AddItemToObject (json, "score_of_last_kept", make_number ((double)event->last_kept));
  cJSON_AddItemToObject (json, "score_of_first_dropped",
                         make_number ((double)event->first_dropped));
  layers = cJSON_AddArrayToObject (json, "survivors");
  for (guint32 layer = 0; layer < view.layout->n_layer; layer++) {
    cJSON *heads = cJSON_CreateArray ();

    for (guint32 head = 0; head < view.layout->n_kv_head; head++)
      cJSON_AddItemToArray (heads, make_stream (run, &view, layer * view.layout->n_kv_head + head));
    cJSON_AddItemToArray (layers, heads);
  }
  cJSON_AddItemToArray (run->events, json);
}

static void
logits_cb (void *user, uint32_t row, const float *logits)
{
  Run *run = user;

  g_array_append_vals (run->logits, logits, run->n_vocab);
}

/* log_beta of the pass: layer by layer in the tap, token by token in the dump. */
static void
keep_log_beta (Run *run, const ks_timeline *tl, guint32 n)
{
  const ks_model_shape *shape = ks_model_get_shape (ks_timeline_get_model (tl));
  const ks_graph *graph = ks_timeline_get_graph (tl);

  for (guint32 t = 0; t < n; t++)
    for (guint32 layer = 0; layer < shape->n_layer; layer++) {
      const float *tap = ks_graph_get_tap (graph, KS_TAP_LOG_BETA, layer);

      if (tap == NULL) {
        run->failed = TRUE;
        return;
      }
      g_array_append_vals (run->log_beta, tap + (gsize)t * shape->n_kv_head, shape->n_kv_head);
    }
}

/* Sizes of the passes: the list, else equal pieces. */
static gboolean
choose_chunks (Run *run, guint32 chunk, GError **error)
{
  guint64 total = 0;

  if (run->chunks_text != NULL) {
    run->chunks = cli_parse_numbers (run->chunks_text, G_MAXUINT16, "chunk size", error);
    if (run->chunks == NULL)
      return FALSE;
  } else {
    run->chunks = g_array_new (FALSE, FALSE, sizeof (guint32));
    for (guint32 i = 0; i < run->ids->len; i += chunk) {
      guint32 n = MIN (chunk, run->ids->len - i);

      g_array_append_val (run->chunks, n);
    }
  }
  for (guint i = 0; i < run->chunks->len; i++) {
    guint32 n = g_array_index (run->chunks, guint32, i);

    if (n == 0 || n > chunk)
      total = G_MAXUINT32;
    total += n;
  }
  if (run->ids->len > 0 && total == run->ids->len)
    return TRUE;
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
               "the chunks must be positive and add up to the %u tokens of the input",
               run->ids->len);
  return FALSE;
}

static gboolean
run_passes (Run *run, ks_timeline *tl, KsEngineJob *job, GError **error)
{
  ks_timeline_hooks hooks = {.evicted = evicted_cb, .user = run};
  const ks_token *ids = (const ks_token *)run->ids->data;
  ks_error err = {0};

  if (run->dump_path != NULL)
    hooks.logits = logits_cb;
  for (guint i = 0; i < run->chunks->len; i++) {
    guint32 n = g_array_index (run->chunks, guint32, i);

    if (ks_engine_job_is_cancelled (job)) {
      g_set_error_literal (error, KS_ENGINE_ERROR, KS_ERR_CANCELLED, "cancelled");
      return FALSE;
    }
    if (!ks_error_check (ks_timeline_eval (tl, ids, n, &hooks, &err), &err, error))
      return FALSE;
    ids += n;
    run->peak = MAX (run->peak, ks_kv_table_get_n_entries (ks_timeline_get_table (tl)));
    if (run->dump_path != NULL)
      keep_log_beta (run, tl, n);
  }
  if (!run->failed)
    return TRUE;
  g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                       "the entries could not be read back; --dump needs a gate");
  return FALSE;
}

static gboolean
write_dump (Run *run, const KsEngineSetup *setup, cJSON **out_arrays, GError **error)
{
  const char *inputs[] = {setup->model_path, setup->gate_path, run->source->file, NULL};
  g_autoptr (CliDump) dump = NULL;
  const ks_kv_layout *layout = &setup->layout;
  guint64 beta_shape[3], logit_shape[2];

  if (inputs[1] == NULL)
    inputs[1] = setup->model_path; /* no gate: a hole would end the list */
  dump = cli_dump_new (run->dump_path, inputs, error);
  if (dump == NULL)
    return FALSE;
  beta_shape[0] = logit_shape[0] = run->ids->len;
  beta_shape[1] = layout->n_layer;
  beta_shape[2] = layout->n_kv_head;
  logit_shape[1] = run->n_vocab;
  cli_dump_begin (dump, "log_beta", "f32", 3, beta_shape);
  cli_dump_write (dump, run->log_beta->data, run->log_beta->len);
  cli_dump_begin (dump, "logits", "f32", 2, logit_shape);
  cli_dump_write (dump, run->logits->data, run->logits->len);
  return cli_dump_finish (dump, out_arrays, error);
}

static void
print_text (Run *run)
{
  cJSON *event, *heads, *stream;

  cJSON_ArrayForEach (event, run->events)
  {
    double last = cJSON_GetNumberValue (cJSON_GetObjectItem (event, "score_of_last_kept"));
    guint layer = 0;

    printf ("after %d tokens: %.0f of %.0f entries kept, last score %g\n",
            cJSON_GetObjectItem (event, "seen")->valueint,
            cJSON_GetObjectItem (event, "entries_after")->valuedouble,
            cJSON_GetObjectItem (event, "entries_before")->valuedouble, last);
    cJSON_ArrayForEach (heads, cJSON_GetObjectItem (event, "survivors"))
    {
      printf ("  layer %u:", layer++);
      cJSON_ArrayForEach (stream, heads) printf (" %d", cJSON_GetArraySize (stream));
      putchar ('\n');
    }
  }
  printf ("%d evictions, at most %" G_GUINT64_FORMAT " entries\n", cJSON_GetArraySize (run->events),
          run->peak);
}

static void
print_json (Run *run, KsEngineSetup *setup, const ks_timeline_params *params, cJSON *take_arrays)
{
  cJSON *json = cJSON_CreateObject (), *chunks = cJSON_CreateArray ();
  double n_stream = (double)setup->layout.n_layer * setup->layout.n_kv_head;

  for (guint i = 0; i < run->chunks->len; i++)
    cJSON_AddItemToArray (chunks, cJSON_CreateNumber (g_array_index (run->chunks, guint32, i)));
  cJSON_AddStringToObject (json, "model", setup->model_path);
  if (setup->gate_path != NULL)
    cJSON_AddStringToObject (json, "gate", setup->gate_path);
  cJSON_AddStringToObject (json, "policy", ks_policy_get_name (params->evict.policy));
  cJSON_AddBoolToObject (json, "forced", run->forced);
  cJSON_AddNumberToObject (json, "layers", setup->layout.n_layer);
  cJSON_AddNumberToObject (json, "kv_heads", setup->layout.n_kv_head);
  cJSON_AddNumberToObject (json, "K", (double)params->n_keep);
  cJSON_AddNumberToObject (json, "M", (double)params->n_keep / n_stream);
  cJSON_AddNumberToObject (json, "B", params->buffer);
  cJSON_AddNumberToObject (json, "lookahead_n", params->evict.lookahead);
  cJSON_AddNumberToObject (json, "floor_per_stream", params->evict.floor);
  cJSON_AddNumberToObject (json, "pin_first", params->evict.pin_first);
  cJSON_AddItemToObject (json, "chunks", chunks);
  cJSON_AddNumberToObject (json, "peak_entries", (double)run->peak);
  cJSON_AddItemToObject (json, "events", g_steal_pointer (&run->events));
  if (take_arrays != NULL) {
    cJSON_AddStringToObject (json, "file", run->dump_path);
    cJSON_AddItemToObject (json, "arrays", take_arrays);
  }
  cli_print_json (json);
}

static gboolean
evict_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  Run *run = data;
  KsEngineSetup *setup = ks_engine_get_setup (engine);
  const ks_tokenizer *tok = ks_model_get_tokenizer (setup->model);
  ks_timeline_params params = ks_engine_setup_get_timeline_params (setup);
  ks_timeline *tl = NULL;
  cJSON *arrays = NULL;
  ks_error err = {0};
  gboolean ok;

  run->be = &setup->be;
  run->n_vocab = ks_tokenizer_get_n_vocab (tok);
  run->ids = cli_token_source_read (run->source, tok, setup->alloc, error);
  if (run->ids == NULL || !choose_chunks (run, params.chunk, error))
    return FALSE;
  params.n_keep = (uint64_t)run->options->entries * setup->layout.n_layer * setup->layout.n_kv_head;
  params.buffer = (uint32_t)(run->options->buffer > 0 ? run->options->buffer : 32);
  params.force_evict = run->forced;
  params.want_taps = run->dump_path != NULL;
  params.max_logit_rows = run->dump_path != NULL ? params.chunk : 1;
  if (!ks_error_check (ks_timeline_new (setup->alloc, &params, &tl, &err), &err, error))
    return FALSE;
  ok = run_passes (run, tl, job, error) &&
       (run->dump_path == NULL || write_dump (run, setup, &arrays, error));
  ks_timeline_free (tl);
  if (ok && run->options->json)
    print_json (run, setup, &params, arrays);
  else if (ok)
    print_text (run);
  return ok;
}

/* Largest pass that is asked for. */
static gboolean
get_chunk (const Run *run, guint *out_chunk, GError **error)
{
  g_autoptr (GArray) list = NULL;

  *out_chunk = run->options->chunk > 0 ? (guint)run->options->chunk : 1;
  if (run->chunks_text == NULL)
    return TRUE;
  list = cli_parse_numbers (run->chunks_text, G_MAXUINT16, "chunk size", error);
  for (guint i = 0; list != NULL && i < list->len; i++)
    *out_chunk = MAX (*out_chunk, g_array_index (list, guint32, i));
  return list != NULL;
}

static int
run_command (Run *run)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsEngineOptions) options = cli_options_make_engine (run->options, &error);
  g_autoptr (KsEngine) engine = NULL;
  g_autoptr (KsEngineJob) load = NULL;
  guint chunk = 1, buffer = run->options->buffer > 0 ? (guint)run->options->buffer : 32;
  int code;

  if (options == NULL || !get_chunk (run, &chunk, &error))
    return cli_fail (error);
  if (run->options->kv_type == NULL)
    options->kv_dtype = KS_DTYPE_F32;
  if (options->policy_options.pin_first < 0)
    options->policy_options.pin_first = 0; /* the method alone pins nothing */
  /* Room for what lies between two evictions. */
  options->budget = (ks_budget_request){.entries = (uint64_t)run->options->entries + buffer};
  options->chunk = chunk;
  options->buffer = MIN (buffer, chunk);
  engine = ks_engine_new ();
  load = ks_engine_load (engine, options);
  if (!cli_wait (load, &error))
    return cli_fail (error);
  run->events = cJSON_CreateArray ();
  run->log_beta = g_array_new (FALSE, FALSE, sizeof (float));
  run->logits = g_array_new (FALSE, FALSE, sizeof (float));
  code = cli_run_on_engine (engine, evict_job, run);
  cJSON_Delete (run->events);
  g_array_unref (run->log_beta);
  g_array_unref (run->logits);
  g_clear_pointer (&run->ids, g_array_unref);
  g_clear_pointer (&run->chunks, g_array_unref);
  return code;
}

int
cli_inspect_evict_main (char **args)
{
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);
  g_auto (GStrv) rest = g_strdupv (args);
  g_auto (CliOptions) options;
  g_auto (CliTokenSource) source = {0};
  g_autofree char *chunks = NULL, *dump = NULL;
  Run run = {.options = &options, .source = &source};
  int code = CLI_OK;
  const GOptionEntry entries[] = {
      {"chunks", 0, 0, G_OPTION_ARG_STRING, &chunks,
       "sizes of the passes, one after the other (default: --chunk each, or 1)", "1,1,..."},
      {"forced", 0, 0, G_OPTION_ARG_NONE, &run.forced,
       "evict before the first chunk and after each one, as sessions do", NULL},
      {"dump", 0, 0, G_OPTION_ARG_FILENAME, &dump, "write log_beta and logits as raw f32", "FILE"},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  cli_options_init (&options);
  options.is_check = TRUE;
  cli_token_source_add (&source, context);
  g_option_context_add_main_entries (context, entries, NULL);
  cli_options_add_model (&options, context);
  cli_options_add_memory (&options, context);
  cli_options_add_json (&options, context);
  g_option_context_set_summary (context, "Traces which entries an eviction policy keeps.");
  g_option_context_set_description (context, help);
  if (!cli_parse (context, &rest, &code))
    return code;
  run.chunks_text = chunks;
  run.dump_path = dump;
  if (rest[1] != NULL)
    return cli_usage ("give the input with --text, --file or --ids");
  if (options.entries < 1 || options.budget != NULL || options.kv_budget != NULL)
    return cli_usage ("give the entries to keep in each stream with --entries M");
  return run_command (&run);
}
