/* ks-chat.h - one session as the window and the command line use it: its messages, what is attached
 * to the next one, and the requests on it (send, stop, regenerate, edit, continue).
 * Joins the stored session (KsSessionService) and the live conversation (KsConversation): a user's
 * message is stored before its answer starts, the answer every 2 s while it streams and at its end.
 * What the model has not read (after reopening, regenerating, branching) is re-read first, with
 * progress.  A question whose answer was stopped before its first word is not known to the model,
 * unless it is continued.  Close the library before the last chat is let go.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-memory-view.h"
#include "app/ks-pending-attachment.h"
#include "app/ks-picture-trace.h"
#include "storage/ks-message.h"
#include "storage/ks-session.h"

G_BEGIN_DECLS

typedef enum {
  KS_CHAT_IDLE,
  KS_CHAT_OPENING,   /* messages are read from the database */
  KS_CHAT_WAITING,   /* the model is being loaded, or another chat answers */
  KS_CHAT_REREADING, /* earlier turns go through the model again */
  KS_CHAT_READING,   /* the new message does */
  KS_CHAT_ANSWERING,
  KS_CHAT_STOPPING
} KsChatState;

#define KS_TYPE_CHAT (ks_chat_get_type ())
G_DECLARE_FINAL_TYPE (KsChat, ks_chat, KS, CHAT, GObject)

/* Made by ks_library_open_chat.
 * Properties, all notify, read-only: "state" (int), "n-done", "n-total" (guint, tokens of the
 * reading that runs), "looking" (string: see ks_chat_get_looking; also notified when the share
 * changes), "session" (KsSession, NULL until a new chat's first message is stored),
 * "read-only-reason" (string, NULL = messages can be sent).
 * Signals:
 * - "notice" (const char *text): something the user should know once;
 * - "failed" (GError *error): a request came to nothing and nothing of it was stored; what was
 * typed is still the caller's, attachments are pending again;
 * - "answered" (KsMessage *message): an answer ended, however; when the model failed its state is
 *   FAILED and its "error" says why. */
KsChatState ks_chat_get_state (KsChat *self);
gboolean ks_chat_is_busy (KsChat *self); /* any state but IDLE */
KsSession *ks_chat_get_session (KsChat *self);
const char *ks_chat_get_read_only_reason (KsChat *self);
guint ks_chat_get_n_done (KsChat *self);
guint ks_chat_get_n_total (KsChat *self);
/* Name of the picture that goes through the model's eyes, NULL = none does; *out_share of it is
 * done, below 0 while it is decoded. */
const char *ks_chat_get_looking (KsChat *self, double *out_share);
/* The active path, oldest first, of KsMessage; "text" of the last one grows at most 20 times a
 * second. (transfer none) */
GListModel *ks_chat_get_messages (KsChat *self);

/* Pending attachments, of KsPendingAttachment. (transfer none) */
GListModel *ks_chat_get_attachments (KsChat *self);
void ks_chat_attach_file (KsChat *self,
                          GFile *file); /* local files only; others FAIL with a sentence; of a
                                           folder every file in it, a little later */
void ks_chat_attach_bytes (KsChat *self, const char *name, GBytes *bytes);
void ks_chat_unlock_attachment (KsChat *self, KsPendingAttachment *attachment,
                                const char *password);
/* Reads it in another way from now on: pages as text or picture, with OCR or without. */
void ks_chat_set_reading (KsChat *self, KsPendingAttachment *attachment, const KsReading *reading);
void ks_chat_remove_attachment (KsChat *self, KsPendingAttachment *attachment); /* cancels it */

/* Takes text and the READY attachments as the next message; those that FAILED are left out and
 * gone. FALSE when it cannot be sent now (busy, read only, nothing to send, an attachment that is
 * LOADING or locked): *out_reason (may be NULL) says why. */
gboolean ks_chat_send (KsChat *self, const char *text, const char **out_reason);
void ks_chat_stop (KsChat *self);
/* A new answer beside the last one, as a branch. */
gboolean ks_chat_regenerate (KsChat *self);
/* Goes on with a last answer that is STOPPED, LIMIT or INTERRUPTED. */
gboolean ks_chat_continue (KsChat *self);
/* Another wording of a user's message, as a branch, and an answer to it. */
gboolean ks_chat_edit (KsChat *self, KsMessage *message, const char *text);
/* Shows the branch through the message's sibling number i (from 0). */
gboolean ks_chat_select_branch (KsChat *self, KsMessage *message, guint sibling);

/* What the next answer depends on; NULL strings and -1 follow the program's settings. */
const KsSessionSettings *ks_chat_get_settings (KsChat *self);
void ks_chat_set_settings (KsChat *self, const KsSessionSettings *settings);
/* TRUE: nothing of this session is let go, and a message that does not fit is refused.
 * *out_can_change (may be NULL) is FALSE where that is not this session's own choice. */
gboolean ks_chat_keeps_everything (KsChat *self, gboolean *out_can_change);
/* Stored with the session.  At once where nothing was let go so far; else what the model has let go
 * is read again with the next message.  Setting a budget or policy of its own stays with
 * ks_chat_set_settings. */
void ks_chat_set_keep_everything (KsChat *self, gboolean keep);

/* The latest numbers, NULL when the model has read nothing yet.  Cheap: may be called every 100 ms.
 * (transfer full) */
KsMemoryView *ks_chat_dup_memory (KsChat *self);
/* What is kept of a picture (turn and number as in KsMemoryView's pictures), by place.  Errors: the
 * model has not read it (any more). (transfer full) */
void ks_chat_trace_picture_async (KsChat *self, guint turn, guint number, GCancellable *cancellable,
                                  GAsyncReadyCallback callback, gpointer user_data);
KsPictureTrace *ks_chat_trace_picture_finish (KsChat *self, GAsyncResult *result, GError **error);
/* Keeps the turn that a user's message begins (hash NULL), or the pictures of its file with that
 * content, in the model's memory whatever else is let go, or lets it fade again; stored with the
 * session.  Not while it is busy or read-only.  Errors: KS_ERROR_KIND_BUDGET when it does not fit
 * beside what is pinned already. */
void ks_chat_pin_async (KsChat *self, KsMessage *message, const char *hash, gboolean pinned,
                        GAsyncReadyCallback callback, gpointer user_data);
/* *out_is_whole (may be NULL): FALSE when some of it had been let go already; it comes back with
 * the next message, for which the session is read again. */
gboolean ks_chat_pin_finish (KsChat *self, GAsyncResult *result, gboolean *out_is_whole,
                             GError **error);
/* Turn (index of KsMemoryView's by_turn) of a message; -1 when the model has not read it. */
int ks_chat_get_turn (KsChat *self, KsMessage *message);

G_END_DECLS
