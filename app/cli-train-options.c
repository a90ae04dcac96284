/* cli-train-options.c - the settings of keepsake-cli train gates: options, defaults, limits, and
 * what they mean to the trainer. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-train.h"

#include "app/ks-error.h"

#define MAX_STEPS 10000000
#define MAX_TOKENS 131072

void
cli_train_init (CliTrain *train)
{
  ks_train_params params;

  ks_train_params_init (&params);
  *train = (CliTrain){
      .tokens = (int)params.max_tok,
      .steps = (int)params.stages[1].n_step,
      .local_steps = (int)params.stages[0].n_step,
      .warm_up = (int)params.stages[0].n_warm_up,
      .rate = (double)params.stages[1].rate,
      .local_rate = (double)params.stages[0].rate,
      .final_part = (double)params.stages[0].final_part,
      .width = (int)params.n_gate,
      .entries = (int)params.n_entry,
      .local_rows = 192,
      .print_every = 10,
      .bias = (double)params.bias_init,
      .deviation = (double)params.init_std,
      .kl_weight = (double)params.kl_weight,
      .next_weight = (double)params.ce_weight,
      .local_weight = (double)params.local_weight,
      .capacity_weight = (double)params.capacity_weight,
      .weight_decay = (double)params.weight_decay,
      .clip = (double)params.clip,
      .beta1 = (double)params.beta1,
      .beta2 = (double)params.beta2,
      .eps = (double)params.eps,
      .recall_share = 0.6,
      .value_share = 0.5,
      .prompt_weight = 1,
      .checkpoint_minutes = 3,
      .seed = 1,
  };
  cli_options_init (&train->options);
  train->options.is_check = TRUE;
  train->options.wants_eyes = TRUE;
}

static void
add_data_options (CliTrain *train, GOptionContext *context)
{
  const GOptionEntry entries[] = {
      {"data", 'd', 0, G_OPTION_ARG_FILENAME_ARRAY, &train->data,
       "text, conversations (.jsonl) or a folder; may be given more than once", "PATH"},
      {"sessions", 0, 0, G_OPTION_ARG_NONE, &train->sessions, "also all stored sessions", NULL},
      {"session", 'S', 0, G_OPTION_ARG_STRING_ARRAY, &train->session_names,
       "also this stored session: a number or a title; may be given more than once", "SESSION"},
      {"show", 0, 0, G_OPTION_ARG_INT, &train->show,
       "print the first N sequences, the values in [[ ]], and train nothing", "N"},
      {"recall-share", 0, 0, G_OPTION_ARG_DOUBLE, &train->recall_share,
       "part of the sequences that are invented and ask for facts (default 0.6)", "P"},
      {"value-share", 0, 0, G_OPTION_ARG_DOUBLE, &train->value_share,
       "part of such a sequence's weight on the values in its answers (default 0.5)", "P"},
      {"prompt-weight", 0, 0, G_OPTION_ARG_DOUBLE, &train->prompt_weight,
       "weight of what the user wrote, against 1 for answers (default 1; 0 = answers alone)", "W"},
      {"tokens", 'n', 0, G_OPTION_ARG_INT, &train->tokens,
       "longest sequence (default 512); memory grows with it", "N"},
      {"min-tokens", 0, 0, G_OPTION_ARG_INT, &train->min_tokens,
       "shortest: lengths are --tokens, half of it and so on down to this (default: all alike)",
       "N"},
      {"seed", 0, 0, G_OPTION_ARG_INT64, &train->seed,
       "of data and start values: the same seed, the same gate (default 1)", "N"},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  g_option_context_add_main_entries (context, entries, NULL);
}

static void
add_gate_options (CliTrain *train, GOptionContext *context)
{
  const GOptionEntry entries[] = {
      {"width", 0, 0, G_OPTION_ARG_INT, &train->width, "inner width of a new gate (default 64)",
       "N"},
      {"untied", 0, 0, G_OPTION_ARG_NONE, &train->untied,
       "last matrix of each layer its own, in a new gate", NULL},
      {"local-form", 0, 0, G_OPTION_ARG_NONE, &train->local_form,
       "a new gate of two layers with nothing shared (TrimKV)", NULL},
      {"bias", 0, 0, G_OPTION_ARG_DOUBLE, &train->bias,
       "start value of the last bias: how little is forgotten at first (default 6)", "X"},
      {"deviation", 0, 0, G_OPTION_ARG_DOUBLE, &train->deviation,
       "standard deviation of start values (default: 1 / sqrt(inputs))", "X"},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  g_option_context_add_main_entries (context, entries, NULL);
}

static void
add_loss_options (CliTrain *train, GOptionContext *context)
{
  const GOptionEntry entries[] = {
      {"entries", 'M', 0, G_OPTION_ARG_INT, &train->entries,
       "entries a stream, on average, that the gate learns to do with (default 32)", "M"},
      {"kl-weight", 0, 0, G_OPTION_ARG_DOUBLE, &train->kl_weight,
       "weight of the difference to the model that keeps everything (default 0.5)", "W"},
      {"next-weight", 0, 0, G_OPTION_ARG_DOUBLE, &train->next_weight,
       "weight of foretelling the next token (default 0.5)", "W"},
      {"local-weight", 0, 0, G_OPTION_ARG_DOUBLE, &train->local_weight,
       "weight of the difference of attention, layer by layer (default 1)", "W"},
      {"capacity-weight", 0, 0, G_OPTION_ARG_DOUBLE, &train->capacity_weight,
       "weight of holding more than --entries (default 1)", "W"},
      {"capacity", 0, 0, G_OPTION_ARG_STRING, &train->capacity,
       "what that is divided by: next, reference or paper (default next)", "NAME"},
      {"per-stream", 0, 0, G_OPTION_ARG_NONE, &train->per_stream,
       "--entries counts for every stream, instead of for all together", NULL},
      {"local-rows", 0, 0, G_OPTION_ARG_INT, &train->local_rows,
       "tokens of a sequence whose attention is compared (default 192; 0 = all)", "N"},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  g_option_context_add_main_entries (context, entries, NULL);
}

static void
add_step_options (CliTrain *train, GOptionContext *context)
{
  const GOptionEntry entries[] = {
      {"local-steps", 0, 0, G_OPTION_ARG_INT, &train->local_steps,
       "steps layer by layer, one sequence each (default 170)", "N"},
      {"steps", 0, 0, G_OPTION_ARG_INT, &train->steps,
       "steps on the answers, one sequence each (default 90)", "N"},
      {"local-rate", 0, 0, G_OPTION_ARG_DOUBLE, &train->local_rate,
       "learning rate of the first (default 0.003)", "X"},
      {"rate", 0, 0, G_OPTION_ARG_DOUBLE, &train->rate,
       "learning rate of the others (default 0.0015)", "X"},
      {"warm-up", 0, 0, G_OPTION_ARG_INT, &train->warm_up, "steps until it is reached (default 5)",
       "N"},
      {"final-part", 0, 0, G_OPTION_ARG_DOUBLE, &train->final_part,
       "part of it that is left at the end (default 0.05)", "P"},
      {"weight-decay", 0, 0, G_OPTION_ARG_DOUBLE, &train->weight_decay, "AdamW (default 1e-6)",
       "X"},
      {"beta1", 0, 0, G_OPTION_ARG_DOUBLE, &train->beta1, "AdamW (default 0.9)", "X"},
      {"beta2", 0, 0, G_OPTION_ARG_DOUBLE, &train->beta2, "AdamW (default 0.98)", "X"},
      {"eps", 0, 0, G_OPTION_ARG_DOUBLE, &train->eps, "AdamW (default 1e-8)", "X"},
      {"clip", 0, 0, G_OPTION_ARG_DOUBLE, &train->clip,
       "largest norm of a gradient (default 1; 0 = none)", "X"},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  g_option_context_add_main_entries (context, entries, NULL);
}

static void
add_run_options (CliTrain *train, GOptionContext *context)
{
  const GOptionEntry entries[] = {
      {"out", 'o', 0, G_OPTION_ARG_FILENAME, &train->out, "the gate that is made", "FILE"},
      {"state", 0, 0, G_OPTION_ARG_FILENAME, &train->state,
       "the checkpoint (default: the gate's name with .state)", "FILE"},
      {"fresh", 0, 0, G_OPTION_ARG_NONE, &train->fresh, "start again, whatever checkpoint is there",
       NULL},
      {"curve", 0, 0, G_OPTION_ARG_FILENAME, &train->curve,
       "the learning curve (default: the gate's name with .svg)", "FILE"},
      {"base-name", 0, 0, G_OPTION_ARG_STRING, &train->base_name,
       "the model's name in the gate (default: as its file says)", "NAME"},
      {"checkpoint-minutes", 0, 0, G_OPTION_ARG_DOUBLE, &train->checkpoint_minutes,
       "between two checkpoints (default 3)", "X"},
      {"stop-minutes", 0, 0, G_OPTION_ARG_DOUBLE, &train->stop_minutes,
       "stop with a checkpoint after so long (default: when all steps are done)", "X"},
      {"max-memory", 0, 0, G_OPTION_ARG_STRING, &train->max_memory,
       "most memory beside the model; more is refused before it starts", "SIZE"},
      {"keep-memory", 0, 0, G_OPTION_ARG_STRING, &train->keep_memory,
       "of that, for what would else be computed twice (default 512MiB)", "SIZE"},
      {"print-every", 0, 0, G_OPTION_ARG_INT, &train->print_every,
       "steps between two lines (default 10)", "N"},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  g_option_context_add_main_entries (context, entries, NULL);
}

static gboolean
check_between (const char *name, double value, double least, double most, GError **error)
{
  if (value >= least && value <= most)
    return TRUE;
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE, "%s must be between %g and %g", name, least,
               most);
  return FALSE;
}

gboolean
cli_train_check (const CliTrain *t, GError **error)
{
  const struct {
    const char *name;
    double value, least, most;
  } checks[] = {{"--recall-share", t->recall_share, 0, 1},
                {"--value-share", t->value_share, 0, 1},
                {"--prompt-weight", t->prompt_weight, 0, 1000},
                {"--tokens", t->tokens, 64, MAX_TOKENS},
                {"--min-tokens", t->min_tokens, 0, t->tokens},
                {"--width", t->width, 1, 16384},
                {"--entries", t->entries, 1, MAX_TOKENS},
                {"--local-rows", t->local_rows, 0, MAX_TOKENS},
                {"--local-steps", t->local_steps, 0, MAX_STEPS},
                {"--steps", t->steps, 0, MAX_STEPS},
                {"--warm-up", t->warm_up, 0, MAX_STEPS},
                {"--show", t->show, 0, MAX_STEPS},
                {"--print-every", t->print_every, 1, MAX_STEPS},
                {"--checkpoint-minutes", t->checkpoint_minutes, 0.01, 10000},
                {"--stop-minutes", t->stop_minutes, 0, 1000000}};

  for (guint i = 0; i < G_N_ELEMENTS (checks); i++)
    if (!check_between (checks[i].name, checks[i].value, checks[i].least, checks[i].most, error))
      return FALSE;
  if ((t->out == NULL && t->show == 0) || t->steps + t->local_steps == 0) {
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                         t->out == NULL && t->show == 0 ? "name the file for the gate with --out"
                                                        : "there is nothing to do without steps");
    return FALSE;
  }
  return TRUE;
}

static gboolean
parse_capacity (const char *name, ks_train_capacity *out, GError **error)
{
  static const char *const names[] = {"next", "reference", "paper"};

  *out = KS_TRAIN_CAPACITY_NEXT;
  if (name == NULL)
    return TRUE;
  for (guint i = 0; i < G_N_ELEMENTS (names); i++)
    if (g_str_equal (name, names[i])) {
      *out = (ks_train_capacity)i;
      return TRUE;
    }
  g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                       "--capacity must be next, reference or paper");
  return FALSE;
}

static void
set_stages (const CliTrain *t, ks_train_params *params)
{
  params->n_stage = 0;
  if (t->local_steps > 0)
    params->stages[params->n_stage++] = (ks_train_stage){.kind = KS_TRAIN_LOCAL,
                                                         .n_step = (uint32_t)t->local_steps,
                                                         .n_warm_up = (uint32_t)t->warm_up,
                                                         .rate = (float)t->local_rate,
                                                         .final_part = (float)t->final_part};
  if (t->steps > 0)
    params->stages[params->n_stage++] = (ks_train_stage){.kind = KS_TRAIN_METHOD,
                                                         .n_step = (uint32_t)t->steps,
                                                         .n_warm_up = (uint32_t)t->warm_up,
                                                         .rate = (float)t->rate,
                                                         .final_part = (float)t->final_part};
}

gboolean
cli_train_set_params (CliTrain *t, GError **error)
{
  ks_train_params *params = &t->run.train;
  guint64 keep_bytes = 0;

  ks_train_params_init (params);
  if (!parse_capacity (t->capacity, &params->capacity, error) ||
      !cli_parse_bytes (t->max_memory, &t->run.max_bytes, error) ||
      !cli_parse_bytes (t->keep_memory, &keep_bytes, error))
    return FALSE;
  if (keep_bytes > 0)
    params->keep_bytes = keep_bytes;
  params->max_tok = params->max_visual = (uint32_t)t->tokens;
  params->is_local = t->local_form != FALSE;
  params->is_tied = !t->local_form && !t->untied;
  params->n_gate = (uint32_t)t->width;
  params->bias_init = (float)t->bias;
  params->init_std = (float)t->deviation;
  params->seed = (uint64_t)t->seed;
  params->kl_weight = (float)t->kl_weight;
  params->ce_weight = (float)t->next_weight;
  params->local_weight = (float)t->local_weight;
  params->capacity_weight = (float)t->capacity_weight;
  params->n_entry = (uint32_t)t->entries;
  params->capacity_per_stream = t->per_stream != FALSE;
  params->n_local_row = (uint32_t)t->local_rows;
  params->beta1 = (float)t->beta1;
  params->beta2 = (float)t->beta2;
  params->eps = (float)t->eps;
  params->weight_decay = (float)t->weight_decay;
  params->clip = (float)t->clip;
  set_stages (t, params);
  return TRUE;
}

void
cli_train_add_options (CliTrain *train, GOptionContext *context)
{
  add_run_options (train, context);
  add_data_options (train, context);
  add_step_options (train, context);
  add_loss_options (train, context);
  add_gate_options (train, context);
  cli_options_add_model (&train->options, context);
  cli_options_add_json (&train->options, context);
}

void
cli_train_clear (CliTrain *train)
{
  cli_options_clear (&train->options);
  ks_train_data_free (train->train_data);
  g_strfreev (train->data);
  g_strfreev (train->session_names);
  g_free (train->out);
  g_free (train->state);
  g_free (train->curve);
  g_free (train->base_name);
  g_free (train->capacity);
  g_free (train->max_memory);
  g_free (train->keep_memory);
}
