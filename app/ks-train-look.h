/* ks-train-look.h - sequences as batches of the trainer: pictures go through the model's eyes once
 * and stand among the tokens as embeddings, with the positions that a session gives them.
 * Threads: engine. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-engine-setup.h"
#include "app/ks-train-encode.h"
#include "engine/train.h"

G_BEGIN_DECLS

typedef struct _KsTrainLook KsTrainLook;

KsTrainLook *ks_train_look_new (KsEngineSetup *setup, KsEngineJob *job);
void ks_train_look_free (KsTrainLook *look); /* NULL is allowed */
/* An encoder for the model; look outlives it. */
void ks_train_look_init_encoder (KsTrainLook *look, double prompt_weight, KsTrainEncoder *out);
/* out borrows from sequence and look, until the next call. */
gboolean ks_train_look_make_batch (KsTrainLook *look, const KsTrainSequence *sequence,
                                   ks_train_batch *out, GError **error);

G_END_DECLS
