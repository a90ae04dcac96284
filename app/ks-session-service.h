/* ks-session-service.h - the writer thread: owns the one KsStore and runs every call to it in
 * order. A request is a function that runs on that thread; its result comes back as a GTask on the
 * main context of the caller.  Nothing of the window waits for the disk.
 * Threads: any may ask; request functions run on the writer thread. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "storage/ks-export.h"
#include "storage/ks-store.h"

G_BEGIN_DECLS

#define KS_TYPE_SESSION_SERVICE (ks_session_service_get_type ())
G_DECLARE_FINAL_TYPE (KsSessionService, ks_session_service, KS, SESSION_SERVICE, GObject)

/* dir NULL = the user's ($XDG_DATA_HOME/keepsake).  Starts the thread; the last unref runs what is
 * queued, closes the store and ends it. */
KsSessionService *ks_session_service_new (const char *dir);
const char *ks_session_service_get_dir (KsSessionService *self);

/* Opens the store: first read and write, then (where that is refused) read only.  Requests queued
 * before it has succeeded fail with its error.  What was deleted here is purged with the last
 * unref; what a run that was killed left is purged in the background, an hour later at least.
 * Opening again is fine, after a failure it tries again. */
void ks_session_service_open_async (KsSessionService *self, GCancellable *cancellable,
                                    GAsyncReadyCallback callback, gpointer user_data);
gboolean ks_session_service_open_finish (KsSessionService *self, GAsyncResult *result,
                                         GError **error);
/* After open: why nothing can be written (a sentence), NULL when it can. */
const char *ks_session_service_get_read_only_reason (KsSessionService *self);

/* Runs on the writer thread.  The result, NULL with error set on failure. */
typedef gpointer (*KsStoreFunc) (KsStore *store, gpointer data, GError **error);

/* data is freed with destroy on the writer thread after func ran or was skipped; a result that
 * nobody takes with free_result.  A request that was queued is not dropped when the caller goes:
 * only a cancelled one that has not begun is (G_IO_ERROR_CANCELLED); one that has begun gives its
 * result.  Waiting requests hold no reference to the service: a callback that comes after the last
 * unref gets NULL for it, which the _finish functions take. */
void ks_session_service_call_async (KsSessionService *self, KsStoreFunc func, gpointer data,
                                    GDestroyNotify destroy, GDestroyNotify free_result,
                                    GCancellable *cancellable, GAsyncReadyCallback callback,
                                    gpointer user_data);
gpointer ks_session_service_call_finish (KsSessionService *self, GAsyncResult *result,
                                         GError **error);
/* Blocks until it is done: for the command line and for the last words of a program that ends. */
gboolean ks_session_service_open (KsSessionService *self, GError **error);
gpointer ks_session_service_call (KsSessionService *self, KsStoreFunc func, gpointer data,
                                  GError **error);
/* Blobs may be read on any thread; NULL before open. (transfer full) */
KsBlobStore *ks_session_service_ref_blobs (KsSessionService *self);

G_END_DECLS
