/* ks-train-data.h - what a gate is trained on: files of text, files of conversations, stored
 * sessions, and invented conversations that ask for facts (ks-recall-maker.h).
 * Sequence number i depends on the seed, i and the sources only: a run that is resumed sees what it
 * would have seen.  Threads: one at a time; nothing runs behind. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-train-encode.h"

G_BEGIN_DECLS

typedef struct {
  guint64 seed;
  guint min_tok, max_tok; /* lengths of sequences: max_tok, halved as often as min_tok allows, all
                             equally often */
  double recall_share;    /* of sequences that are invented, 0 to 1 */
  double value_share;     /* of a sequence's weight on the values in its answers */
} KsTrainDataParams;

typedef struct _KsTrainData KsTrainData;

KsTrainData *ks_train_data_new (const KsTrainDataParams *params);
void ks_train_data_free (KsTrainData *data); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsTrainData, ks_train_data_free)

/* A file or all files of a folder, in the order of their names: conversations where the name ends
 * in .jsonl, text where it ends in .txt or .md or was named itself; others in folders are passed
 * over.  Files stay mapped.  Errors name the file and the line. */
gboolean ks_train_data_add_path (KsTrainData *data, const char *path, GError **error);
void ks_train_data_take_chat (KsTrainData *data, KsTrainChat *take_chat);
guint ks_train_data_get_n_items (const KsTrainData *data); /* texts and conversations */
guint64 ks_train_data_get_n_bytes (const KsTrainData *data);
/* SHA-256 in hex over names' ends, sizes and settings: the same data or not.  (transfer full) */
char *ks_train_data_make_mark (const KsTrainData *data);

/* (transfer full), not empty, at most max_tok tokens. */
KsTrainSequence *ks_train_data_make (KsTrainData *data, const KsTrainEncoder *encoder,
                                     guint64 index, GError **error);

G_END_DECLS
