/* cli-train.c - keepsake-cli train: its command table, and teaching a model's retention gate what
 * to keep.  The work is done by ks-train-run.c; here are its settings and what is printed. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-train.h"

#include "app/cli-options.h"
#include "app/ks-error.h"
#include "app/ks-session-service.h"
#include "app/ks-train-look.h"
#include "app/ks-train-run.h"
#include "app/ks-train-sessions.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const CliCommand commands[] = {
    {"gates", "teach a retention gate what to keep", cli_train_gates_main},
};

static const char help[] = "Examples:\n"
                           "  keepsake-cli train gates --data notes/ --out notes.safetensors\n";

int
cli_train_main (char **args)
{
  return cli_run_subcommand ("train", commands, G_N_ELEMENTS (commands), args, help);
}

static const char gates_help[] =
    "The model itself is not changed, and may be of any kind that the program runs. Data are files "
    "of\n"
    "text, files of conversations (.jsonl: {\"messages\": [{\"role\": \"user\", \"content\": "
    "\"...\"}, ...]},\n"
    "with pictures as {\"type\": \"image\", \"image\": \"FILE\"}), folders of both, and stored "
    "sessions. A part\n"
    "of the sequences is invented: facts among other text that are asked for later.\n\n"
    "First the gate learns layer by layer to leave each layer's attention as it is (cheap), then "
    "what\n"
    "matters for the answers. Every few minutes a checkpoint is written beside the gate; the same "
    "command\n"
    "goes on from it. Ctrl-C writes one more and ends.\n\n"
    "Examples:\n"
    "  keepsake-cli train gates --data texts/ --data chats.jsonl --out my-gate.safetensors\n"
    "  keepsake-cli train gates --data texts/ --tokens 2048 --min-tokens 512 --steps 400 --out "
    "long.safetensors\n"
    "  keepsake-cli train gates --sessions --gate my-gate.safetensors --local-steps 0 --out "
    "mine.safetensors\n"
    "  keepsake-cli ask --gate my-gate.safetensors --kv-budget 24MiB --attach book.txt \"Who is "
    "Tom?\"\n\n"
    "Exit codes: 0 trained, 1 failed, 2 wrong options, 3 does not fit, 4 not supported, 130 "
    "stopped with a\n"
    "checkpoint.";

/* ---- what is printed ---- */

static char *
format_left (double seconds)
{
  guint minutes = (guint)(MIN (seconds, 3.6e8) / 60);

  if (seconds < 0)
    return g_strdup ("?");
  if (minutes >= 60)
    return g_strdup_printf ("%u h %02u min", minutes / 60, minutes % 60);
  return minutes > 0 ? g_strdup_printf ("%u min", minutes) : g_strdup ("under a minute");
}

static void
begin_cb (gpointer user, guint64 trainer_bytes, guint n_done, guint n_step)
{
  CliTrain *t = user;
  g_autofree char *memory = cli_format_bytes (trainer_bytes);
  g_autofree char *read = cli_format_bytes (ks_train_data_get_n_bytes (t->train_data));

  if (t->options.json)
    return;
  printf ("data: %u texts and conversations, %s; memory beside the model: %s\n",
          ks_train_data_get_n_items (t->train_data), read, memory);
  if (n_done > 0)
    printf ("going on from step %u of %u\n", n_done, n_step);
  fflush (stdout);
}

static void
print_step_json (const KsTrainProgress *progress)
{
  const ks_train_stats *s = progress->stats;
  cJSON *json = cJSON_CreateObject ();
  char *text;

  cJSON_AddNumberToObject (json, "step", s->step);
  cJSON_AddNumberToObject (json, "steps", s->n_step);
  cJSON_AddStringToObject (json, "stage", s->kind == KS_TRAIN_LOCAL ? "local" : "method");
  cJSON_AddNumberToObject (json, "loss", (double)s->loss);
  if (s->kind == KS_TRAIN_LOCAL) {
    cJSON_AddNumberToObject (json, "mismatch", (double)s->local);
  } else {
    cJSON_AddNumberToObject (json, "kl", (double)s->kl);
    cJSON_AddNumberToObject (json, "next_token", (double)s->ce);
  }
  cJSON_AddNumberToObject (json, "capacity", (double)s->capacity);
  cJSON_AddNumberToObject (json, "entries", (double)s->n_entry_soft);
  cJSON_AddNumberToObject (json, "mean_retention", (double)s->mean_retention);
  cJSON_AddNumberToObject (json, "gradient", (double)s->grad_norm);
  cJSON_AddNumberToObject (json, "rate", (double)s->rate);
  cJSON_AddNumberToObject (json, "tokens", s->n_tok);
  cJSON_AddNumberToObject (json, "seconds", s->seconds);
  cJSON_AddNumberToObject (json, "tokens_per_second", progress->tok_per_s);
  if (progress->left_s >= 0)
    cJSON_AddNumberToObject (json, "seconds_left", progress->left_s);
  text = cJSON_PrintUnformatted (json);
  puts (text);
  cJSON_free (text);
  cJSON_Delete (json);
}

static void
step_cb (gpointer user, const KsTrainProgress *progress)
{
  CliTrain *t = user;
  const ks_train_stats *s = progress->stats;
  g_autofree char *left = format_left (progress->left_s);

  if (t->n_printed++ % (guint)t->print_every != 0 && s->step != s->n_step)
    return;
  if (t->options.json) {
    print_step_json (progress);
  } else if (s->kind == KS_TRAIN_LOCAL) {
    printf ("step %u of %u, layer by layer: loss %.4f, mismatch %.4f", s->step, s->n_step,
            (double)s->loss, (double)s->local);
  } else {
    printf ("step %u of %u: loss %.4f, KL %.4f, next token %.4f", s->step, s->n_step,
            (double)s->loss, (double)s->kl, (double)s->ce);
  }
  if (!t->options.json)
    printf (", over capacity %.4f (%.1f entries), mean retention %.4f, %.0f tokens/s, %s left\n",
            (double)s->capacity, (double)s->n_entry_soft, (double)s->mean_retention,
            progress->tok_per_s, left);
  fflush (stdout);
}

/* Its text; a picture's tokens are one mark, where a document begins is a line. */
static void
print_sequence (const ks_tokenizer *tok, const KsTrainSequence *sequence)
{
  const ks_token *ids = (const ks_token *)(const void *)sequence->ids->data;
  g_autoptr (GString) text = g_string_new (NULL);
  guint value = 0, start = 0;

  for (guint i = 0; i < sequence->ids->len; i++) {
    gboolean is_value =
        value < sequence->values->len && g_array_index (sequence->values, guint32, value) == i;
    size_t n = 0;
    const char *piece =
        ids[i] != KS_TOKEN_NONE ? ks_tokenizer_get_piece (tok, ids[i], true, &n) : NULL;

    if (start < sequence->starts->len && g_array_index (sequence->starts, guint32, start) == i) {
      g_string_append_printf (text, "\n--- document %u ---\n", ++start);
    }
    value += is_value ? 1 : 0;
    if (piece == NULL && (i == 0 || ids[i - 1] != KS_TOKEN_NONE))
      g_string_append (text, "[picture]");
    g_string_append (text, is_value ? "[[" : "");
    g_string_append_len (text, piece != NULL ? piece : "", (gssize)n);
    g_string_append (text, is_value ? "]]" : "");
  }
  g_string_append_c (text, '\n');
  cli_print_text (text->str);
}

static gboolean
show_data (CliTrain *t, KsEngineSetup *setup, KsEngineJob *job, GError **error)
{
  KsTrainLook *look = ks_train_look_new (setup, job);
  KsTrainEncoder encoder;
  gboolean ok = TRUE;

  ks_train_look_init_encoder (look, t->prompt_weight, &encoder);
  for (guint i = 0; ok && i < (guint)t->show; i++) {
    g_autoptr (KsTrainSequence) sequence = ks_train_data_make (t->train_data, &encoder, i, error);

    ok = sequence != NULL;
    if (!ok)
      break;
    printf ("=== sequence %u: %u tokens, %u of them values ===", i + 1, sequence->ids->len,
            sequence->values->len);
    print_sequence (encoder.tokenizer, sequence);
  }
  ks_train_look_free (look);
  return ok;
}

/* ---- the run ---- */

/* "gate.safetensors" -> "gate.state". */
static char *
change_ending (const char *path, const char *ending)
{
  gsize n = strlen (path);
  const char *own = ".safetensors";

  if (g_str_has_suffix (path, own))
    n -= strlen (own);
  return g_strdup_printf ("%.*s%s", (int)n, path, ending);
}

static gboolean
train_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  KsEngineSetup *setup = ks_engine_get_setup (engine);
  g_autofree char *name = NULL;
  ks_gguf_str text = {"", 0};
  CliTrain *t = data;

  if (t->show > 0)
    return show_data (t, setup, job, error);
  if (t->base_name == NULL &&
      ks_gguf_get_str (ks_model_get_gguf (setup->model), "general.name", &text))
    name = g_utf8_make_valid (text.data, (gssize)text.n_bytes);
  t->run.base_name = t->base_name != NULL ? t->base_name : name;
  return ks_train_run (setup, t->train_data, &t->run, job, &t->finished, error);
}

static KsEngineOptions *
make_engine_options (CliTrain *t, GError **error)
{
  KsEngineOptions *options;

  /* A new gate unless one is named: that of the model is found for answering, not for this. */
  if (t->options.gate == NULL)
    t->options.gate = g_strdup ("none");
  options = cli_options_make_engine (&t->options, error);
  if (options == NULL)
    return NULL;
  options->policy = KS_POLICY_FULL; /* no timeline is run */
  options->budget = (ks_budget_request){.entries = 1};
  return options;
}

static gboolean
read_data (CliTrain *t, GError **error)
{
  const KsTrainDataParams params = {.seed = (guint64)t->seed,
                                    .min_tok =
                                        (guint)(t->min_tokens > 0 ? t->min_tokens : t->tokens),
                                    .max_tok = (guint)t->tokens,
                                    .recall_share = t->recall_share,
                                    .value_share = t->value_share};

  t->train_data = ks_train_data_new (&params);
  for (guint i = 0; t->data != NULL && t->data[i] != NULL; i++)
    if (!ks_train_data_add_path (t->train_data, t->data[i], error))
      return FALSE;
  if (ks_train_data_get_n_items (t->train_data) == 0 && t->recall_share < 1 && !t->sessions &&
      t->session_names == NULL) {
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                         "there is no text to train on: name files or folders with --data");
    return FALSE;
  }
  return TRUE;
}

/* What the loaded model sees of them. */
static gboolean
ask_eyes (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  KsEngineSetup *setup = ks_engine_get_setup (engine);
  CliTrain *t = data;

  if (setup->sight != NULL)
    t->eyes = ks_sight_get_eyes (setup->sight);
  return TRUE;
}

static gpointer
add_sessions (KsStore *store, gpointer data, GError **error)
{
  CliTrain *t = data;
  guint n = 0, n_all = 0;

  for (guint i = 0; t->session_names != NULL && t->session_names[i] != NULL; i++) {
    if (!ks_train_sessions_add (t->train_data, store, t->session_names[i], &t->eyes, &n, error))
      return NULL;
    n_all += n;
  }
  if (t->sessions && !ks_train_sessions_add (t->train_data, store, NULL, &t->eyes, &n, error))
    return NULL;
  n_all += n;
  if (n_all == 0) {
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                         "no stored session that was named has an answer to train on");
    return NULL;
  }
  return t;
}

static gboolean
read_sessions (CliTrain *t, KsEngine *engine, GError **error)
{
  g_autoptr (KsSessionService) service = NULL;
  g_autoptr (KsEngineJob) eyes = NULL;

  if (!t->sessions && t->session_names == NULL)
    return TRUE;
  eyes = ks_engine_job_new (ask_eyes, t, NULL);
  ks_engine_push (engine, eyes);
  if (!ks_engine_job_wait (eyes, error))
    return FALSE;
  service = ks_session_service_new (NULL);
  return ks_session_service_open (service, error) &&
         ks_session_service_call (service, add_sessions, t, error) != NULL;
}

static int
run_train (CliTrain *t)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsEngineOptions) engine_options = NULL;
  g_autoptr (KsEngine) engine = NULL;
  g_autoptr (KsEngineJob) load = NULL;
  g_autofree char *state = NULL, *curve = NULL;
  int code;

  if (!cli_train_check (t, &error) || !cli_train_set_params (t, &error) || !read_data (t, &error))
    return cli_fail (error);
  engine_options = make_engine_options (t, &error);
  if (engine_options == NULL)
    return cli_fail (error);
  if (t->out != NULL) {
    state = t->state != NULL ? g_strdup (t->state) : change_ending (t->out, ".state");
    curve = t->curve != NULL ? g_strdup (t->curve) : change_ending (t->out, ".svg");
  }
  t->run.out_path = t->out;
  t->run.state_path = state;
  t->run.curve_path = curve;
  t->run.prompt_weight = t->prompt_weight;
  t->run.checkpoint_s = (guint)MAX (t->checkpoint_minutes * 60, 1);
  t->run.stop_s = (guint)ceil (t->stop_minutes * 60);
  t->run.fresh = t->fresh;
  t->run.on_begin = begin_cb;
  t->run.on_step = step_cb;
  t->run.user = t;
  engine = ks_engine_new ();
  load = ks_engine_load (engine, engine_options);
  if (!cli_wait (load, &error) || !read_sessions (t, engine, &error))
    return cli_fail (error);
  code = cli_run_on_engine (engine, train_job, t);
  if (code == CLI_OK && !t->options.json && t->show == 0)
    printf (t->finished ? "the gate is written: %s\n"
                        : "stopped with a checkpoint; the gate as it is: %s\n",
            t->out);
  return code;
}

int
cli_train_gates_main (char **args)
{
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);
  g_auto (GStrv) rest = g_strdupv (args);
  CliTrain train;
  int code = CLI_OK;

  cli_train_init (&train);
  cli_train_add_options (&train, context);
  g_option_context_set_summary (
      context, "Teaches a retention gate of a model what to keep, from your text.");
  g_option_context_set_description (context, gates_help);
  if (cli_parse (context, &rest, &code))
    code = rest[1] != NULL ? cli_usage ("'%s' is too much: data is named with --data", rest[1])
                           : run_train (&train);
  cli_train_clear (&train);
  return code;
}
