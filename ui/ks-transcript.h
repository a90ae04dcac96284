/* ks-transcript.h - the messages of a session in a list that makes widgets only for what is near
 * the part that is seen.  Follows the end while it is in view; otherwise a button leads there.
 * Signals: "regenerate", "continue" (), "edit" (KsMessage, char *text), "select-branch" (KsMessage,
 * guint sibling), "open-attachment", "show-kept" (KsMessage, KsAttachment), "pin" (KsMessage, char
 * *hash or NULL, gboolean pinned).  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-library.h"
#include "ui/ks-attachment-button.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define KS_TYPE_TRANSCRIPT (ks_transcript_get_type ())
G_DECLARE_FINAL_TYPE (KsTranscript, ks_transcript, KS, TRANSCRIPT, GtkWidget)

GtkWidget *ks_transcript_new (void);
/* Shows the chat's messages from their end; whether anything can be asked for follows the chat's
 * state.  NULL empties it. */
void ks_transcript_set_chat (KsTranscript *self, KsChat *chat);
/* The same for any list of KsMessage, without a chat. */
void ks_transcript_set_model (KsTranscript *self, GListModel *messages);
/* Whether messages can be edited, regenerated and continued; with a chat it is known by itself. */
void ks_transcript_set_can_change (KsTranscript *self, gboolean can_change);
/* Where small pictures of files come from: the library, or any other source.  data outlives it. */
void ks_transcript_set_library (KsTranscript *self, KsLibrary *library);
void ks_transcript_set_thumbnails (KsTranscript *self, KsThumbnailFunc thumbnails, gpointer data);
/* Brings a message into view; the end with ks_transcript_scroll_to_end. */
void ks_transcript_scroll_to (KsTranscript *self, guint position);
void ks_transcript_scroll_to_end (KsTranscript *self);
gboolean ks_transcript_is_at_end (KsTranscript *self);

G_END_DECLS
