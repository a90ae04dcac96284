/* ks-chat-internal.h - a chat's parts: ks-chat.c (object, list, branches), ks-chat-run.c (one
 * request from storing to the end of its answer), ks-chat-stream.c (what it writes),
 * ks-chat-store.c (what runs on the writer thread), ks-chat-attach.c (pending attachments),
 * ks-chat-trace.c (what is kept of a picture), ks-chat-pin.c (what is to stay).
 * Threads: main, except where a function says otherwise. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-chat.h"
#include "app/ks-conversation.h"
#include "app/ks-library-internal.h"
#include "app/ks-turn-source.h"

G_BEGIN_DECLS

typedef enum { KS_RUN_NONE, KS_RUN_SEND, KS_RUN_REGENERATE, KS_RUN_CONTINUE } KsRunKind;

/* One request.  Begins with ks_chat_start_run and ends with exactly one "answered" or "failed". */
typedef struct {
  KsRunKind kind;
  KsMessage *user, *answer; /* the turn that is answered; user may be NULL for CONTINUE */
  KsMessage *edited;        /* whose pins a new message takes over; NULL = none */
  guint n_before;           /* answer's tokens before it was continued */
  gboolean stop;            /* the user asked to stop */
  gboolean granted;         /* the engine is ours */
  GCancellable *cancellable;
  KsEngineJob *job;
  GPtrArray *texts;  /* KsTurnText to be read again, NULL = in step with the model */
  GArray *reads;     /* KsTurnIds of texts */
  guint pins;        /* of the turn that is asked: ks_turn_source_hash_pins */
  KsTurnText *asked; /* the message that is answered; NULL for CONTINUE */
  guint n_prompt;
  GPtrArray *pending; /* KsPendingAttachment that were taken for it */
} KsRun;

typedef struct {
  gint64 user, answer;
  guint pins; /* that were in force from its first token on */
} KsTurnIds;

struct _KsChat {
  GObject parent_instance;
  KsLibrary *library;
  KsSession *session;
  KsChatState state;
  guint n_done, n_total;
  char *looking;
  double look_share;
  GListStore *messages, *attachments;
  KsSessionSettings *settings;
  char *read_only_reason;
  gboolean is_locked; /* which is why it is read-only */
  guint lock_source;  /* timer that looks again */
  KsRun run;

  KsConversation *conversation; /* NULL = the model knows nothing of this chat */
  GArray *read;                 /* KsTurnIds: what the conversation holds, by turn */
  gboolean in_step;             /* read tells the truth */
  char *policy;                 /* of the conversation; NULL = the library's */
  guint64 kv_budget_bytes;      /* of the conversation alone; 0 = the library's target */
  char *system;                 /* text in front of it; NULL = the model's own */
  gboolean told_blind;          /* that pictures are not seen */

  GString *piece;     /* text that the message does not show yet */
  guint piece_source; /* timer that shows it */
  guint store_source; /* timer that stores what streams */
  gboolean store_busy, store_failed;
  GList *unsaved; /* ends of answers that could not be stored yet */

  KsAnswerOptions *answer_options; /* of the command line; NULL = from the settings */
  GError *failure;                 /* of the last answer; NULL = it did not fail */
};

KsChat *ks_chat_new (KsLibrary *library, KsSession *session);

/* --- ks-chat.c --- */
void ks_chat_set_state (KsChat *self, KsChatState state);
void ks_chat_set_progress (KsChat *self, guint n_done, guint n_total);
void ks_chat_set_looking (KsChat *self, const char *name, guint n_done, guint n_total);
void ks_chat_set_session (KsChat *self, KsSession *session);
void ks_chat_set_read_only_reason (KsChat *self, const char *reason);
void ks_chat_emit_notice (KsChat *self, const char *text);
void ks_chat_emit_failed (KsChat *self, const GError *error);
void ks_chat_emit_answered (KsChat *self, KsMessage *message);
/* Reads the active path again; objects of messages that stay are kept. */
void ks_chat_reload (KsChat *self);
/* The same for somebody who opens it again; nothing while it is busy. */
void ks_chat_reopen (KsChat *self);

/* --- ks-chat-run.c --- */
/* parent: what the first new message follows, 0 = start; text and attachments (of KsAttachment): of
 * a new user's message, NULL for REGENERATE and CONTINUE, whose turn is user and answer. */
void ks_chat_start_run (KsChat *self, KsRunKind kind, gint64 parent, KsMessage *user,
                        KsMessage *answer, const char *text, GPtrArray *attachments);
/* The library's answer to ks_library_want_slot. */
void ks_chat_slot_granted (KsChat *self, const GError *error);
/* The engine is needed elsewhere, or the model goes. */
void ks_chat_drop_conversation (KsChat *self);
gboolean ks_chat_has_run (KsChat *self);
/* Nothing is let go any more, if nothing was; else the next message sees that the policy differs.
 */
void ks_chat_keep_from_now (KsChat *self);
/* Brings the session's own budget for keys and values to its conversation. */
void ks_chat_apply_kv_budget (KsChat *self);

/* Tokens of the answer so far, those before it was continued included. */
guint ks_chat_count_answer (KsChat *self);

/* --- ks-chat-stream.c --- */
void ks_chat_add_piece (KsChat *self, const char *text);
void ks_chat_show_piece (KsChat *self); /* what came since */
void ks_chat_start_storing (KsChat *self);
/* The message's text in this state, and the session's lock goes; tried until it is stored. */
void ks_chat_store_end (KsChat *self, KsMessageState state, const char *problem);
void ks_chat_store_unsaved (KsChat *self); /* the last try: the program ends */

/* --- ks-chat-store.c --- */
typedef struct {
  gint64 session; /* 0 = make one */
  char *title;
  KsSessionSettings *settings;
  gint64 parent;
  char *text; /* of a new user's message; NULL = none */
  GPtrArray *attachments;
  GPtrArray *pins; /* of the new message: hashes of files, "" for its turn; NULL = none */
  gint64 answer;   /* goes on with this one; 0 = a new one */
  char *answer_text;
  guint n_tokens;
} KsBeginRequest;

typedef struct {
  KsSession *session; /* NULL when it was there */
  KsMessage *user, *answer;
} KsBegun;

void ks_begin_request_free (gpointer request);
void ks_begun_free (gpointer begun);
gpointer ks_chat_store_begin (KsStore *store, gpointer request, GError **error); /* writer */

typedef struct {
  gint64 session, message;
  char *text, *problem;
  KsMessageState state;
  guint n_tokens;
  gint64 user; /* 0 = leave it */
  char *user_text;
  guint n_user_tokens;
  gboolean unlock;
} KsUpdateRequest;

void ks_update_request_free (gpointer request);
gpointer ks_chat_store_update (KsStore *store, gpointer request, GError **error); /* writer */

typedef struct {
  GPtrArray *messages;
  KsSessionSettings *settings;
  char *lock_reason; /* another program answers; NULL = none does */
} KsOpened;

void ks_opened_free (gpointer opened);
gpointer ks_chat_store_open (KsStore *store, gpointer session, GError **error); /* writer */
/* A title of a question's first words, or of a file's name. (transfer full) */
char *ks_chat_make_title (const char *text, GPtrArray *attachments);

/* --- ks-chat-attach.c --- */
/* Takes all out; (transfer full) of KsPendingAttachment, NULL when there are none. */
GPtrArray *ks_chat_take_attachments (KsChat *self);
/* The message could not be stored: what was taken is pending again.  NULL is allowed. */
void ks_chat_give_back_attachments (KsChat *self, GPtrArray *taken);
/* NULL when all are READY or FAILED, else why a message cannot be sent. */
const char *ks_chat_check_attachments (KsChat *self);
gboolean ks_chat_has_ready_attachment (KsChat *self);
/* The model is there, or another one: tokens are counted anew. */
void ks_chat_count_attachments (KsChat *self);
void ks_chat_cancel_attachments (KsChat *self);
/* There are pictures: once for each chat, that the model does not see them; nothing before it is
 * loaded. */
void ks_chat_tell_blind (KsChat *self);

G_END_DECLS
