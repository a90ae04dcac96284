/* ks-train-run.h - a training from start to end: sequences to the trainer, checkpoints, resuming,
 * the learning curve.  Everything a stopped run needs lies in one state file, written beside its
 * place and renamed; the gate is written with it.
 * Threads: engine. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-engine-setup.h"
#include "app/ks-train-data.h"
#include "engine/train.h"

G_BEGIN_DECLS

/* After each step. */
typedef struct {
  const ks_train_stats *stats;
  double tok_per_s; /* over the last steps */
  double left_s;    /* estimated; below 0 = not known yet */
} KsTrainProgress;

typedef struct {
  ks_train_params train;
  double prompt_weight;   /* of tokens in conversations that the model does not write itself */
  const char *out_path;   /* the gate */
  const char *state_path; /* the checkpoint */
  const char *curve_path; /* SVG; NULL = none */
  const char *base_name;  /* of the model, for the gate's file; NULL = not said */
  guint checkpoint_s;     /* seconds between two checkpoints */
  guint stop_s;           /* a checkpoint and an end after so many seconds; 0 = run through */
  gboolean fresh;         /* a state file that is there is not read */
  guint64 max_bytes;      /* KS_ERR_BUDGET where the trainer takes more; 0 = no limit */
  void (*on_begin) (gpointer user, guint64 trainer_bytes, guint n_done, guint n_step);
  void (*on_step) (gpointer user, const KsTrainProgress *progress);
  void (*on_checkpoint) (gpointer user, guint n_done);
  gpointer user;
} KsTrainRunOptions;

/* Trains the gate of a loaded model; setup->gate, where there is one, gives the start values.
 * *out_finished tells whether all stages are over (else: stop_s ended it).  A cancelled run leaves
 * a checkpoint and gives KS_ERR_CANCELLED. */
gboolean ks_train_run (KsEngineSetup *setup, KsTrainData *data, const KsTrainRunOptions *options,
                       KsEngineJob *job, gboolean *out_finished, GError **error);

G_END_DECLS
