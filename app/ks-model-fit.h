/* ks-model-fit.h - a guess, without loading it, at whether a model will run here.
 * Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-model-entry.h"

G_BEGIN_DECLS

typedef enum {
  KS_MODEL_FIT_OK,
  KS_MODEL_FIT_OVER_TARGET,    /* loading it raises the memory target */
  KS_MODEL_FIT_OVER_AVAILABLE, /* other programs hold the memory now */
  KS_MODEL_FIT_OVER_MACHINE
} KsModelFit;

/* Weights and a working share: what it takes at least, roughly. */
guint64 ks_model_fit_get_need_bytes (KsModelEntry *entry);
/* target_bytes 0 = none; 0 for the others = not known. The worst that holds. */
KsModelFit ks_model_fit_judge (guint64 need_bytes, guint64 target_bytes, guint64 available_bytes,
                               guint64 machine_bytes);
/* Memory of this machine now, 0 = not known. */
void ks_model_fit_read_machine (guint64 *out_available_bytes, guint64 *out_machine_bytes);

G_END_DECLS
