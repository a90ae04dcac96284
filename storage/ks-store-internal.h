/* ks-store-internal.h - what the parts of KsStore share. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "storage/ks-database.h"
#include "storage/ks-store.h"

G_BEGIN_DECLS

struct _KsStore {
  GObject parent_instance;
  KsDatabase *database;
  KsBlobStore *blobs;
  KsEmbedStore *embeds;
  KsSnapshotStore *snapshots;
  char *dir;
  GHashTable *locks;  /* set of gint64: sessions that this store has locked */
  GHashTable *marked; /* set of gint64: sessions that it has marked as deleted */
};

/* All fields of a message as they are to be stored; attachments may be NULL. */
typedef struct {
  gint64 session, parent, created_us;
  KsMessageRole role;
  KsMessageState state;
  const char *text, *error;
  guint n_tokens;
  GPtrArray *attachments;
} KsMessageRow;

/* Inserts inside the caller's transaction, without touching leaf or times; 0 on error.
 * check_blobs: attachments without a blob are refused. */
gint64 ks_store_insert_message (KsStore *self, const KsMessageRow *row, gboolean check_blobs,
                                GError **error);
/* Makes the path to leaf the active one: the session's leaf and each node's active child. */
gboolean ks_store_set_leaf (KsStore *self, gint64 session, gint64 leaf, GError **error);
gint64 ks_store_insert_session (KsStore *self, const char *title, gint64 created_us,
                                gint64 updated_us, const KsSessionSettings *settings,
                                GError **error);
/* 0 when there is none. */
gint64 ks_store_get_leaf (KsStore *self, gint64 session);
gint64 ks_store_get_active_child (KsStore *self, gint64 message);
gboolean ks_store_set_active_child (KsStore *self, gint64 message, gint64 child, GError **error);
gboolean ks_store_read_attachments (KsStore *self, KsMessage *message, GError **error);
/* Columns id, title, created_us, updated_us, n_messages. */
KsSession *ks_store_read_session (KsStatement *statement);

/* Removes those of hashes (a set) that no attachment refers to. */
gboolean ks_store_remove_unused (KsStore *self, GHashTable *hashes, GError **error);
/* TRUE when another living process has the session; out_pid may be NULL. */
gboolean ks_store_is_locked_elsewhere (KsStore *self, gint64 session, gint64 *out_pid);

G_END_DECLS
