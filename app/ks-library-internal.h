/* ks-library-internal.h - the library's parts (ks-library.c, -sessions, -model, -target, -media)
 * and what its chats ask of it.
 * One chat at a time has the engine (the slot); others wait in a queue.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-conversation.h"
#include "app/ks-eyes.h"
#include "app/ks-library-command.h"
#include "app/ks-library.h"
#include "app/ks-session-service.h"

G_BEGIN_DECLS

/* From the start, about, to the window's first frame: work that can wait for it does. */
#define KS_FIRST_FRAME_MS 200

struct _KsLibrary {
  GObject parent_instance;
  KsSettings *settings;
  KsEngineOptions *options; /* of the command line; NULL = from the settings */
  KsSessionService *service;
  char *models_dir;
  GError *storage_failure; /* NULL = sessions can be read and written */
  gboolean closing;
  gboolean store_idle; /* closing: nothing will be stored any more */
  guint n_lost;        /* answers that could not be stored */
  GTask *close_task;
  guint n_write; /* store calls under way */

  /* sessions */
  GListStore *all, *shown; /* of KsSession; shown: all, or the hits of a search */
  GHashTable *known;       /* id -> KsSession */
  GHashTable *chats;       /* every KsChat there is; each leaves when it ends */
  GCancellable *search;    /* of the search whose hits are shown or awaited; NULL = none */
  guint list_source;
  gboolean opened, all_listed;

  /* model */
  KsEngine *engine;
  KsModelState model_state;
  char *model_name, *model_path;
  GError *model_failure;
  char *model_wanted;  /* what is loaded, as it was asked for; NULL = the default */
  char *default_model; /* the same for chats that ask for none */
  GCancellable *load_cancellable;
  KsEngineJob *load_job;
  guint load_source;    /* the first load waits for the window's first frame; 0 = no */
  gboolean had_model;   /* before the load that runs */
  gboolean own_choice;  /* the user chose: in place of the command line's and of sessions' */
  gboolean store_model; /* the choice becomes the setting when it loads */
  gboolean load_again;  /* another model was asked for meanwhile, or answers have to stop first */
  KsEyes eyes;          /* of the model that is ready */
  KsMemoryView *idle_view; /* the device without a chat; NULL without a model */

  /* the slot */
  KsChat *active;  /* has it (strong) */
  KsChat *live;    /* its conversation is the one on the engine (strong) */
  GQueue *waiting; /* of KsChat (strong) */

  /* target */
  guint64 target_bytes, min_bytes, max_bytes;
  guint64 least_bytes;          /* min_bytes before anything was pinned and any picture read */
  guint64 default_target_bytes; /* for chats that ask for none */
  gboolean target_bent;         /* a chat's own KV budget is in force */
  guint64 next_target_bytes;    /* newest value that waits, 0 = none */
  KsEngineJob *target_job;
  guint save_source;

  /* pictures */
  struct KsPixelCache *pixels;
  GThreadPool *decoders;
};

/* --- ks-library.c --- */
void ks_library_notice (KsLibrary *self, const char *text);
void ks_library_notify (KsLibrary *self, const char *property);
/* A store call of a chat began or ended: closing waits for them. */
void ks_library_begin_write (KsLibrary *self);
void ks_library_end_write (KsLibrary *self);
void ks_library_check_closed (KsLibrary *self);

/* --- ks-library-sessions.c --- */
void ks_library_open_sessions (KsLibrary *self);
/* The object of a session by its id: the known one, brought up to date, or this one. (transfer
 * none) */
KsSession *ks_library_adopt_session (KsLibrary *self, KsSession *session);
/* New, renamed or answered: to the top. */
void ks_library_raise_session (KsLibrary *self, KsSession *session);
/* Where its time belongs in the list. */
void ks_library_show_session (KsLibrary *self, KsSession *session);
void ks_library_forget_sessions (KsLibrary *self); /* all of them were deleted */
void ks_library_clear_sessions (KsLibrary *self);

/* --- ks-library-model.c --- */
/* Asks for the engine: ks_chat_slot_granted comes, now or later, unless cancelled; with an error
 * when there is no model. */
void ks_library_want_slot (KsLibrary *self, KsChat *chat);
void ks_library_release_slot (KsLibrary *self, KsChat *chat); /* also cancels the waiting */
/* Whether a request of the chat would be refused for want of a model. */
gboolean ks_library_has_no_model (KsLibrary *self, KsChat *chat);
void ks_library_start_model (KsLibrary *self);
/* The states of sessions on the disk. (transfer full) */
KsSnapshotStore *ks_library_open_states (KsLibrary *self);
void ks_library_stop_model (KsLibrary *self);

/* --- ks-library-target.c --- */
/* The target of a chat that gets the engine: its own, or everybody's. */
void ks_library_apply_chat_target (KsLibrary *self, KsChat *chat);
void ks_library_clear_target (KsLibrary *self);
guint64 ks_library_read_saved_target (KsLibrary *self);

/* --- ks-library-media.c --- */
void ks_library_init_media (KsLibrary *self);
void ks_library_clear_media (KsLibrary *self);
void ks_library_forget_media (KsLibrary *self); /* pictures that are kept for the next look */

G_END_DECLS
