/* ks-train-sessions.h - stored sessions as conversations to be trained on: their turns as the model
 * reads them, attachments and pictures included, on the path that was shown last.
 * Threads: the store's. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-eyes.h"
#include "app/ks-train-data.h"
#include "storage/ks-store.h"

G_BEGIN_DECLS

/* Adds the session that name stands for (see ks_store_find_session), or all of them: NULL.
 * Sessions without an answer are passed over; *out_n counts the others. */
gboolean ks_train_sessions_add (KsTrainData *data, KsStore *store, const char *name,
                                const KsEyes *eyes, guint *out_n, GError **error);

G_END_DECLS
