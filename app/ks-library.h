/* ks-library.h - the application without a window: stored sessions, the engine with its model, the
 * memory target, the settings.  The window's only entrance to everything below it.
 * Nothing here blocks.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-chat.h"
#include "app/ks-model-entry.h"
#include "app/ks-settings.h"
#include "media/ks-pixels.h"

G_BEGIN_DECLS

typedef enum {
  KS_MODEL_NONE, /* nothing was loaded yet */
  KS_MODEL_LOADING,
  KS_MODEL_READY,
  KS_MODEL_FAILED /* "model-error" says why and what to do */
} KsModelState;

typedef enum { KS_EXPORT_AS_MARKDOWN, KS_EXPORT_AS_JSON, KS_EXPORT_AS_HTML } KsExportAs;

#define KS_TYPE_LIBRARY (ks_library_get_type ())
G_DECLARE_FINAL_TYPE (KsLibrary, ks_library, KS, LIBRARY, GObject)

/* dir NULL = the user's data folder.  Opening of the database and loading of the model start at
 * once, side by side.
 * Properties, all notify, read-only: "storage-error" (string: the database cannot be used or only
 * read, and why; NULL = fine), "n-sessions" (guint), "opened" (gboolean), "model-state" (int),
 * "model-name", "model-error" (strings), "target-bytes" (guint64). Signal: "notice" (const char
 * *text).  Call ks_library_close_async before the last unref. */
KsLibrary *ks_library_new (KsSettings *settings, const char *dir);
KsSettings *ks_library_get_settings (KsLibrary *self); /* (transfer none) */
/* Folder of the sessions and their files. */
const char *ks_library_get_data_dir (KsLibrary *self);
/* Stops answers, stores them and lets the engine go; callback runs when all is on the disk. */
void ks_library_close_async (KsLibrary *self, GAsyncReadyCallback callback, gpointer user_data);
/* FALSE when an answer could not be stored; "notice" said why. */
gboolean ks_library_close_finish (KsLibrary *self, GAsyncResult *result);

/* --- sessions --- */
/* Of KsSession: all, newest first, or the hits of the search; filled in steps. (transfer none) */
GListModel *ks_library_get_sessions (KsLibrary *self);
gboolean
ks_library_is_opened (KsLibrary *self); /* the first sessions are there (or there are none) */
const char *ks_library_get_storage_error (KsLibrary *self);
/* The same with its code. */
const GError *ks_library_get_storage_failure (KsLibrary *self);
/* Words to look for in titles and messages; NULL or "" ends the search.  The list changes when the
 * answer is there; an older search that comes late is dropped. */
void ks_library_search (KsLibrary *self, const char *query);
/* session NULL = a new one, stored with its first message.  The same session gives the same chat
 * while somebody holds it. (transfer full) */
KsChat *ks_library_open_chat (KsLibrary *self, KsSession *session);
void ks_library_rename (KsLibrary *self, KsSession *session, const char *title);
/* Takes it out of the list and marks it; ks_library_restore undoes that until the program ends. */
void ks_library_delete (KsLibrary *self, KsSession *session);
void ks_library_restore (KsLibrary *self, KsSession *session);
/* Everything that was stored; refused while an answer runs. */
void ks_library_delete_all_async (KsLibrary *self, GAsyncReadyCallback callback,
                                  gpointer user_data);
gboolean ks_library_delete_all_finish (KsLibrary *self, GAsyncResult *result, GError **error);

/* A safe file name for the session. (transfer full) */
char *ks_library_make_export_name (KsSession *session, KsExportAs format);
/* file: exactly there (the user chose it; an existing file is replaced only after the content is
 * complete beside it). */
void ks_library_export_async (KsLibrary *self, KsSession *session, KsExportAs format, GFile *file,
                              GCancellable *cancellable, GAsyncReadyCallback callback,
                              gpointer user_data);
gboolean ks_library_export_finish (KsLibrary *self, GAsyncResult *result, GError **error);
void ks_library_import_async (KsLibrary *self, GFile *file, GCancellable *cancellable,
                              GAsyncReadyCallback callback, gpointer user_data);
KsSession *ks_library_import_finish (KsLibrary *self, GAsyncResult *result, GError **error);

/* A picture, a page (from 0) of a PDF or a picture (from 0) in a document, for display: decoded by
 * the worker, at most max_side_px a side; small ones come from a cache.  password: for encrypted
 * documents, else NULL. Errors: KS_MEDIA_ERROR_PASSWORD and the worker's sentences. */
void ks_library_render_async (KsLibrary *self, KsAttachment *attachment, guint page,
                              guint max_side_px, const char *password, GCancellable *cancellable,
                              GAsyncReadyCallback callback, gpointer user_data);
KsPixels *ks_library_render_finish (KsLibrary *self, GAsyncResult *result, GError **error);

typedef struct {
  KsPixels *pixels;
  gint64 time_us; /* when it is shown */
} KsVideoFrame;

typedef struct {
  GPtrArray *frames; /* of KsVideoFrame, by time, at least one */
  gboolean has_sound;
  char *warning; /* NULL = none */
} KsVideoFrames;

void ks_video_frame_free (KsVideoFrame *frame);    /* NULL is allowed */
void ks_video_frames_free (KsVideoFrames *frames); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsVideoFrames, ks_video_frames_free)
/* The frames of a video that a reading with this sampling would take, for display. */
void ks_library_load_frames_async (KsLibrary *self, KsAttachment *attachment,
                                   const KsMediaSampling *sampling, guint max_side_px,
                                   GCancellable *cancellable, GAsyncReadyCallback callback,
                                   gpointer user_data);
KsVideoFrames *ks_library_load_frames_finish (KsLibrary *self, GAsyncResult *result,
                                              GError **error);

/* The text of a text attachment, or what was read out of a document; valid text. */
void ks_library_read_text_async (KsLibrary *self, KsAttachment *attachment,
                                 GCancellable *cancellable, GAsyncReadyCallback callback,
                                 gpointer user_data);
char *ks_library_read_text_finish (KsLibrary *self, GAsyncResult *result, GError **error);

/* --- model --- */
KsModelState ks_library_get_model_state (KsLibrary *self);
const char *ks_library_get_model_name (KsLibrary *self); /* NULL when none */
/* The file of that name; NULL when none. */
const char *ks_library_get_model_path (KsLibrary *self);
const char *ks_library_get_model_error (KsLibrary *self); /* NULL when none */
/* The same with its code; NULL when a model could be loaded or none was tried. */
const GError *ks_library_get_model_failure (KsLibrary *self);
/* The eyes of a model file from now on: path of its mmproj file, "" = it stays blind, NULL = the
 * likeliest in its folder.  Stored in the settings; the model is loaded again when it is this one.
 */
void ks_library_set_mmproj (KsLibrary *self, const char *model_path, const char *mmproj);
/* Loads the same model once more: what the settings say about pictures holds from then on. */
void ks_library_reload_model (KsLibrary *self);
/* Whether the model can see pictures. */
gboolean ks_library_can_see (KsLibrary *self);
/* Model files in the models folder, and last the one that is loaded where it lies elsewhere.
 * (transfer full) of KsModelEntry */
void ks_library_list_models_async (KsLibrary *self, GCancellable *cancellable,
                                   GAsyncReadyCallback callback, gpointer user_data);
GPtrArray *ks_library_list_models_finish (KsLibrary *self, GAsyncResult *result, GError **error);
const char *ks_library_get_models_dir (KsLibrary *self);
/* By path, file name or name; NULL = what the settings say.  Stored in the settings when it loads.
 * Answers that run are stopped first; chats are re-read by the new model when they go on. */
void ks_library_load_model (KsLibrary *self, const char *model);

/* --- memory --- */
/* Target for everything on the device, in force at once, also in the middle of an answer; stored
 * in the settings.  Below the smallest that works the smallest is taken.  Without a setting it is
 * what keeps an eighth of the trained length (1,024 to 4,096 tokens) in every stream, on average,
 * and at most half of the machine's memory.  A session's own target holds while it is answered. */
void ks_library_set_target_bytes (KsLibrary *self, guint64 target_bytes);
guint64 ks_library_get_target_bytes (KsLibrary *self); /* 0 before a model is there */
/* Range for the slider: the smallest that works and the most that makes sense here (memory of the
 * machine, the model's trained length kept whole). */
void ks_library_get_target_range (KsLibrary *self, guint64 *out_min_bytes, guint64 *out_max_bytes);
/* The device's numbers when no chat has any yet. (transfer full) NULL without a model. */
KsMemoryView *ks_library_dup_memory (KsLibrary *self);

/* --- kept states --- */
/* What the states of sessions take that going back to one finds again, or takes once clear has
 * removed them all. */
typedef struct {
  guint64 memory_bytes, disk_bytes;
} KsStateSizes;
void ks_library_measure_states_async (KsLibrary *self, gboolean clear, GAsyncReadyCallback callback,
                                      gpointer user_data);
gboolean ks_library_measure_states_finish (KsLibrary *self, GAsyncResult *result,
                                           KsStateSizes *out_sizes, GError **error);

G_END_DECLS
