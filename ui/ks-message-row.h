/* ks-message-row.h - one message of the transcript: files, text, how it ended, branches, and what
 * can be done with it.
 * Signals: "regenerate", "continue" (), "edit" (char *text), "select-branch" (guint sibling),
 * "open-attachment", "show-kept" (KsAttachment), "pin" (char *hash, gboolean pinned; hash NULL =
 * the turn). Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "storage/ks-message.h"
#include "ui/ks-attachment-button.h"
#include "ui/ks-message-body.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

/* How much a model keeps of a file's pictures: 0 to 1; below 0: it has seen none. */
typedef double (*KsKeptFunc) (KsMessage *message, KsAttachment *attachment, gpointer data);

#define KS_TYPE_MESSAGE_ROW (ks_message_row_get_type ())
G_DECLARE_FINAL_TYPE (KsMessageRow, ks_message_row, KS, MESSAGE_ROW, GtkWidget)

GtkWidget *ks_message_row_new (void);
/* Before the first message; data outlives the row. */
void ks_message_row_set_thumbnails (KsMessageRow *self, KsThumbnailFunc thumbnails, gpointer data);
/* The same; ks_message_row_update_kept asks again for the files that are shown. */
void ks_message_row_set_kept (KsMessageRow *self, KsKeptFunc kept, gpointer data);
void ks_message_row_update_kept (KsMessageRow *self);
/* NULL lets go of it.  Cheap: what was read of the text stays with the message. */
void ks_message_row_set_message (KsMessageRow *self, KsMessage *message);
KsMessage *ks_message_row_get_message (KsMessageRow *self);
KsMessageBody *ks_message_row_get_body (KsMessageRow *self);
/* Only the last message can be regenerated or continued; only while can_change is TRUE can anything
 * be asked for but a copy. */
void ks_message_row_set_place (KsMessageRow *self, gboolean is_last, gboolean can_change);
/* Opens and closes the text for editing (a user's message). */
void ks_message_row_start_edit (KsMessageRow *self);
gboolean ks_message_row_is_edited (KsMessageRow *self);

G_END_DECLS
