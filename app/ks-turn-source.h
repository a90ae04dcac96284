/* ks-turn-source.h - one turn of a stored session, copied from its messages, and how it becomes the
 * text that a model reads: attachments from their blobs, the question last.
 * Threads: made on main; ks_turn_source_make_text and _make_texts run anywhere (they read files).
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-eyes.h"
#include "app/ks-reading.h"
#include "app/ks-turn-text.h"
#include "storage/ks-blob-store.h"
#include "storage/ks-message.h"

G_BEGIN_DECLS

typedef struct {
  gint64 user, answer; /* ids of the messages, 0 = none */
  char *question, *answer_text;
  gboolean unfinished;     /* the answer may be continued */
  gboolean stopped;        /* by the user */
  GPtrArray *attachments;  /* of KsAttachment */
  gboolean pinned;         /* is to stay in memory */
  GPtrArray *pinned_files; /* hashes of those of its files that are */
  guint pins;              /* ks_turn_source_hash_pins */
} KsTurnSource;

/* The turns of a path of KsMessage, at most n_message of them; (transfer full) of KsTurnSource. */
GPtrArray *ks_turn_source_list (GListModel *messages, guint n_message);
KsTurnSource *ks_turn_source_new (const char *question, GPtrArray *attachments);
void ks_turn_source_free (KsTurnSource *source); /* NULL is allowed */
/* No word of an answer, and none is coming. */
gboolean ks_turn_source_is_empty (const KsTurnSource *source);

/* A number for what is pinned of the turn that a user's message begins; 0 = nothing. */
guint ks_turn_source_hash_pins (KsMessage *user);

/* Pictures or videos are attached to it. */
gboolean ks_turn_source_has_pictures (const KsTurnSource *source);

/* The turn as a model with these eyes reads it; a text that is lost or damaged is one of its lost
 * ones, and the message says so. (transfer full) */
KsTurnText *ks_turn_source_make_text (const KsTurnSource *source, KsBlobStore *blobs,
                                      const KsEyes *eyes);
/* What an attachment alone adds to a message: its text, and how many pictures. (transfer full) */
GBytes *ks_turn_source_describe (KsAttachment *attachment, KsBlobStore *blobs, const KsEyes *eyes,
                                 guint *out_n_pictures);
/* Of all; (transfer full) of KsTurnText, NULL when it was cancelled. */
GPtrArray *ks_turn_source_make_texts (GPtrArray *sources, KsBlobStore *blobs, const KsEyes *eyes,
                                      GCancellable *cancellable, GError **error);

G_END_DECLS
