/* ks-message.h - value object: one stored utterance of a session.
 * Messages form a tree (regenerated answers and edited questions are branches); the store hands out
 * the active path.  While an answer streams, only "text" and "state" of one object change. Threads:
 * main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "storage/ks-attachment.h"

G_BEGIN_DECLS

typedef enum { KS_MESSAGE_SYSTEM, KS_MESSAGE_USER, KS_MESSAGE_ASSISTANT } KsMessageRole;
typedef enum {
  KS_MESSAGE_COMPLETE,    /* ended by itself */
  KS_MESSAGE_STREAMING,   /* being written; found at start-up it becomes INTERRUPTED */
  KS_MESSAGE_STOPPED,     /* the user stopped it */
  KS_MESSAGE_LIMIT,       /* met the length limit: can be continued */
  KS_MESSAGE_INTERRUPTED, /* the program ended while it was written */
  KS_MESSAGE_FAILED       /* "error" says why */
} KsMessageState;

#define KS_TYPE_MESSAGE (ks_message_get_type ())
G_DECLARE_FINAL_TYPE (KsMessage, ks_message, KS, MESSAGE, GObject)

/* Properties, all notify: "id", "parent-id" (gint64, 0 = none), "role", "state" (int), "text",
 * "error" (strings), "n-tokens" (guint), "created-us" (gint64), "n-siblings", "sibling" (guint,
 * branch i of n, i from 0), "attachments" (GListModel of KsAttachment), "pinned" (gboolean, the
 * turn's; also notified for its files). */
KsMessage *ks_message_new (gint64 id, gint64 parent_id, KsMessageRole role, const char *text,
                           gint64 created_us);
gint64 ks_message_get_id (KsMessage *self);
gint64 ks_message_get_parent_id (KsMessage *self);
KsMessageRole ks_message_get_role (KsMessage *self);
KsMessageState ks_message_get_state (KsMessage *self);
void ks_message_set_state (KsMessage *self, KsMessageState state);
const char *ks_message_get_text (KsMessage *self);
void ks_message_set_text (KsMessage *self, const char *text);
/* Appends without copying what is there: O(n) of the piece. */
void ks_message_append_text (KsMessage *self, const char *piece);
const char *ks_message_get_error (KsMessage *self);
void ks_message_set_error (KsMessage *self, const char *error);
guint ks_message_get_n_tokens (KsMessage *self);
void ks_message_set_n_tokens (KsMessage *self, guint n_tokens);
gint64 ks_message_get_created_us (KsMessage *self);
void ks_message_set_branch (KsMessage *self, guint sibling, guint n_siblings);
guint ks_message_get_sibling (KsMessage *self);
guint ks_message_get_n_siblings (KsMessage *self);
GListModel *ks_message_get_attachments (KsMessage *self); /* borrowed */
void ks_message_add_attachment (KsMessage *self, KsAttachment *attachment);
/* What a user asked to keep in the model's memory: the turn that a user's message begins (hash
 * NULL), or an attached file by its content. */
gboolean ks_message_is_pinned (KsMessage *self, const char *hash);
void ks_message_set_pinned (KsMessage *self, const char *hash, gboolean pinned);

G_END_DECLS
