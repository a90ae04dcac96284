/* cli-train.h - the train commands, and the settings of a training.  Threads: main; on_step and its
 * like run on the engine thread. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/cli-common.h"
#include "app/cli-options.h"
#include "app/ks-train-run.h"

G_BEGIN_DECLS

typedef struct {
  CliOptions options;
  char **data, **session_names;
  gboolean sessions, fresh, untied, local_form, per_stream;
  char *out, *state, *curve, *base_name, *capacity, *max_memory, *keep_memory;
  int tokens, min_tokens, steps, local_steps, warm_up, width, entries, local_rows, print_every,
      show;
  double rate, local_rate, final_part, bias, deviation, kl_weight, next_weight, local_weight,
      capacity_weight, weight_decay, clip, beta1, beta2, eps, recall_share, value_share,
      prompt_weight, checkpoint_minutes, stop_minutes;
  gint64 seed;
  /* of the run */
  KsTrainData *train_data;
  KsEyes eyes;
  KsTrainRunOptions run;
  gboolean finished;
  guint n_printed;
} CliTrain;

int cli_train_gates_main (char **args);

/* Defaults; cli_train_clear frees what options and the run have put in. */
void cli_train_init (CliTrain *train);
void cli_train_add_options (CliTrain *train, GOptionContext *context);
void cli_train_clear (CliTrain *train);
/* KS_APP_ERROR_USAGE names what is wrong. */
gboolean cli_train_check (const CliTrain *train, GError **error);
/* train->run.train and its memory limit from the options. */
gboolean cli_train_set_params (CliTrain *train, GError **error);

G_END_DECLS
