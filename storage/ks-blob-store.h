/* ks-blob-store.h - files by content hash (SHA-256) under one folder, mode 0600, written through a
 * temporary file and a rename; referenced and counted by the database, swept at start.
 * Threads: any; one process writes at a time (the name is the content, so races are harmless). */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "storage/ks-storage-error.h"

#include <gio/gio.h>

G_BEGIN_DECLS

#define KS_TYPE_BLOB_STORE (ks_blob_store_get_type ())
G_DECLARE_FINAL_TYPE (KsBlobStore, ks_blob_store, KS, BLOB_STORE, GObject)

/* dir is made (0700) when missing; where that is not allowed, the first write says so. */
KsBlobStore *ks_blob_store_new (const char *dir, GError **error);
/* Adds bytes; an equal blob is kept as it is. (transfer full) hex hash, NULL on error. */
char *ks_blob_store_add (KsBlobStore *self, GBytes *bytes, GError **error);
char *ks_blob_store_add_file (KsBlobStore *self, const char *path, GCancellable *cancellable,
                              guint64 *out_n_bytes, GError **error);
/* Reads and checks a blob; KS_STORAGE_ERROR_DAMAGED when its content is not what its name says. */
GBytes *ks_blob_store_get (KsBlobStore *self, const char *hash, GError **error);
/* Path of a blob for opening by descriptor; NULL for anything that is no hash. (transfer full) */
char *ks_blob_store_get_path (KsBlobStore *self, const char *hash);
/* Whether there is such a blob; its content is not read. */
gboolean ks_blob_store_has (KsBlobStore *self, const char *hash);
/* TRUE for 64 lower-case hex digits. */
gboolean ks_blob_store_is_hash (const char *text);
/* No blob of that name is fine. */
gboolean ks_blob_store_remove (KsBlobStore *self, const char *hash, GError **error);
/* Removes files that keep (a set of hashes) does not hold, and temporary ones; both only when
 * they are older than an hour, since another process may be about to refer to them. */
guint ks_blob_store_sweep (KsBlobStore *self, GHashTable *keep);

G_END_DECLS
