/* ks-train-state.h - the state file of a training: settings, learning curve, the trainer's bytes.
 * Layout: "KSTRAIN1", u32 length of a JSON object of settings, the object, u32 number of points,
 * the points, the trainer's state up to the end; little-endian.
 * Threads: any, one at a time. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/train.h"

#include <cjson/cJSON.h>
#include <gio/gio.h>

G_BEGIN_DECLS

/* One step, for the learning curve. */
typedef struct {
  guint32 step, kind; /* a ks_train_stage_kind */
  guint32 n_tok, reserved;
  float loss, kl, ce, local, capacity, mean_retention, seconds, n_entry_soft;
} KsTrainPoint;

/* Settings of params as an object: what must be equal for a run to go on. (transfer full) */
cJSON *ks_train_state_describe (const ks_train_params *params);

/* Writes through a temporary file; points: of KsTrainPoint. */
gboolean ks_train_state_write (const char *path, const cJSON *settings, const GArray *points,
                               const ks_trainer *trainer, GError **error);
/* Reads it into trainer and points, which must be empty.  KS_ENGINE_ERROR: damaged, or of other
 * settings, of which the first is named; G_FILE_ERROR_NOENT when there is none. */
gboolean ks_train_state_read (const char *path, const cJSON *settings, GArray *points,
                              ks_trainer *trainer, GError **error);

G_END_DECLS
