/* ks-snapshot-store.h - what the model remembers of sessions, kept on the disk so that none has to
 * be read again: DIR/<session id, 16 hex digits>-<key, 64>, mode 0600, under a quota, the least
 * recently used go first.  A session that is purged takes its files with it.  Contents are opaque
 * here: docs/formats/snapshot.md.
 * Threads: any; a file appears whole or not at all. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib-object.h>
#include <sys/uio.h>

G_BEGIN_DECLS

#define KS_TYPE_SNAPSHOT_STORE (ks_snapshot_store_get_type ())
G_DECLARE_FINAL_TYPE (KsSnapshotStore, ks_snapshot_store, KS, SNAPSHOT_STORE, GObject)

/* Nothing is made before the first write. */
KsSnapshotStore *ks_snapshot_store_new (const char *dir);
/* 0 = nothing is kept; takes effect with the next write. */
void ks_snapshot_store_set_quota (KsSnapshotStore *self, guint64 quota_bytes);
/* Bytes of all files. */
guint64 ks_snapshot_store_get_bytes (KsSnapshotStore *self);

/* session > 0; key: 64 hex digits.  An open descriptor for reading, -1 when there is none; the file
 * counts as used now. */
int ks_snapshot_store_open (KsSnapshotStore *self, gint64 session, const char *key);
gboolean ks_snapshot_store_has (KsSnapshotStore *self, gint64 session, const char *key);
/* More than the quota allows is not an error: nothing is kept, and FALSE comes back without one. */
gboolean ks_snapshot_store_put (KsSnapshotStore *self, gint64 session, const char *key,
                                gconstpointer data, gsize n_bytes, GError **error);
/* One that turned out to be of no use. */
void ks_snapshot_store_drop (KsSnapshotStore *self, gint64 session, const char *key);
/* All of a session; of sessions that are not in sessions (a set of gint64); everything. */
void ks_snapshot_store_remove (KsSnapshotStore *self, gint64 session);
void ks_snapshot_store_sweep (KsSnapshotStore *self, GHashTable *sessions);
void ks_snapshot_store_clear (KsSnapshotStore *self);

G_END_DECLS
