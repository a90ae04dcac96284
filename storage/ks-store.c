/* ks-store.c - opening, checking and emptying the store; sessions, messages, locks and search are
 * in ks-store-sessions.c, ks-store-messages.c, ks-store-locks.c and ks-search.c. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-store.h"

#include "storage/ks-migrations.h"
#include "storage/ks-store-internal.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>

#define DATABASE_NAME "sessions.db"

G_DEFINE_FINAL_TYPE (KsStore, ks_store, G_TYPE_OBJECT)

static void
ks_store_dispose (GObject *object)
{
  KsStore *self = KS_STORE (object);

  if (self->database != NULL) {
    g_autofree gpointer *ids = g_hash_table_get_keys_as_array (self->locks, NULL);

    for (guint i = 0; ids[i] != NULL; i++)
      ks_store_unlock_session (self, *(gint64 *)ids[i]);
  }
  g_clear_pointer (&self->database, ks_database_close);
  g_clear_object (&self->blobs);
  g_clear_object (&self->embeds);
  g_clear_object (&self->snapshots);
  G_OBJECT_CLASS (ks_store_parent_class)->dispose (object);
}

static void
ks_store_finalize (GObject *object)
{
  KsStore *self = KS_STORE (object);

  g_hash_table_unref (self->locks);
  g_hash_table_unref (self->marked);
  g_free (self->dir);
  G_OBJECT_CLASS (ks_store_parent_class)->finalize (object);
}

static void
ks_store_class_init (KsStoreClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = ks_store_dispose;
  G_OBJECT_CLASS (klass)->finalize = ks_store_finalize;
}

static void
ks_store_init (KsStore *self)
{
  self->locks = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  self->marked = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
}

/* Order matters: the file's mode changes only after it was found to be ours. */
static gboolean
prepare (KsStore *self, GError **error)
{
  if (!ks_migrations_run (self->database, error))
    return FALSE;
  if (ks_database_is_read_only (self->database))
    return TRUE;
  if (!ks_database_exec (self->database, "PRAGMA journal_mode = WAL", error))
    return FALSE;
  ks_database_trust (self->database);
  return ks_store_recover (self, error);
}

KsStore *
ks_store_open (const char *dir, gboolean read_only, GError **error)
{
  g_autoptr (KsStore) self = NULL;
  g_autofree char *path = NULL, *blobs = NULL, *embeds = NULL, *snapshots = NULL;

  g_return_val_if_fail (dir != NULL, NULL);
  if (!read_only && g_mkdir_with_parents (dir, 0700) != 0) {
    ks_storage_error_set_errno (error, errno, "Cannot make the folder", dir);
    return NULL;
  }
  self = g_object_new (KS_TYPE_STORE, NULL);
  self->dir = g_strdup (dir);
  path = g_build_filename (dir, DATABASE_NAME, NULL);
  self->database = ks_database_open (path, read_only, error);
  if (self->database == NULL || !prepare (self, error))
    return NULL;
  blobs = g_build_filename (dir, "blobs", NULL);
  self->blobs = ks_blob_store_new (blobs, error);
  embeds = g_build_filename (dir, "embeddings", NULL);
  self->embeds = ks_embed_store_new (embeds);
  snapshots = g_build_filename (dir, "snapshots", NULL);
  self->snapshots = ks_snapshot_store_new (snapshots);
  return self->blobs != NULL ? g_steal_pointer (&self) : NULL;
}

KsBlobStore *
ks_store_get_blobs (KsStore *self)
{
  g_return_val_if_fail (KS_IS_STORE (self), NULL);
  return self->blobs;
}

KsEmbedStore *
ks_store_get_embeds (KsStore *self)
{
  g_return_val_if_fail (KS_IS_STORE (self), NULL);
  return self->embeds;
}

KsSnapshotStore *
ks_store_get_snapshots (KsStore *self)
{
  g_return_val_if_fail (KS_IS_STORE (self), NULL);
  return self->snapshots;
}

static gboolean
fail_check (KsStore *self, const char *finding, GError **error)
{
  g_set_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_DAMAGED, "%s is damaged: %s.",
               ks_database_get_path (self->database), finding);
  return FALSE;
}

gboolean
ks_store_check (KsStore *self, GError **error)
{
  static const char *const questions[][2] = {
      {"SELECT count (*) FROM pragma_foreign_key_check", "a row refers to one that is gone"},
      {"SELECT count (*) FROM session s WHERE s.leaf <> 0 AND NOT EXISTS"
       " (SELECT 1 FROM message m WHERE m.id = s.leaf AND m.session = s.id)",
       "the end of a session is gone"},
      {"SELECT count (*) FROM session s WHERE s.n_messages <>"
       " (SELECT count (*) FROM message m WHERE m.session = s.id)",
       "a session's count of messages is wrong"},
      {"SELECT count (*) FROM message m JOIN message p ON m.parent = p.id"
       " WHERE m.session <> p.session OR m.parent >= m.id",
       "a message stands below one of another session"},
  };
  g_autoptr (KsStatement) statement = NULL;
  g_autofree char *finding = NULL;

  g_return_val_if_fail (KS_IS_STORE (self), FALSE);
  statement = ks_database_query (self->database, error, "PRAGMA integrity_check (1)", "");
  if (statement == NULL || !ks_statement_step (statement, error))
    return FALSE;
  finding = ks_statement_dup_text (statement, 0);
  if (g_strcmp0 (finding, "ok") != 0)
    return fail_check (self, finding, error);
  for (guint i = 0; i < G_N_ELEMENTS (questions); i++)
    if (ks_database_get_int (self->database, -1, questions[i][0], "") != 0)
      return fail_check (self, questions[i][1], error);
  return TRUE;
}

/* Hashes of a session's attachments, 0 = of all sessions. */
static GHashTable *
list_hashes (KsStore *self, gint64 session, GError **error)
{
  g_autoptr (GHashTable) hashes = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (KsStatement) statement = NULL;
  g_autoptr (GError) local = NULL;

  statement = ks_database_query (self->database, error,
                                 "SELECT a.hash, a.text_hash FROM attachment a"
                                 " JOIN message m ON m.id = a.message"
                                 " WHERE ?1 = 0 OR m.session = ?1",
                                 "i", session);
  if (statement == NULL)
    return NULL;
  while (ks_statement_step (statement, &local)) {
    char *hash = ks_statement_dup_text (statement, 0);
    char *text_hash = ks_statement_dup_text (statement, 1);

    g_hash_table_add (hashes, hash);
    if (text_hash != NULL)
      g_hash_table_add (hashes, text_hash);
  }
  if (local == NULL)
    return g_steal_pointer (&hashes);
  g_propagate_error (error, g_steal_pointer (&local));
  return NULL;
}

/* Counting and removing happen under the write lock, so that no other process can refer to a blob
 * in between: ks_store_add_message looks for the blob under the same lock. */
gboolean
ks_store_remove_unused (KsStore *self, GHashTable *hashes, GError **error)
{
  GHashTableIter iter;
  gpointer hash;
  gboolean done = TRUE;

  if (g_hash_table_size (hashes) == 0)
    return TRUE;
  if (!ks_database_begin (self->database, error))
    return FALSE;
  g_hash_table_iter_init (&iter, hashes);
  while (done && g_hash_table_iter_next (&iter, &hash, NULL)) {
    gint64 n = ks_database_get_int (self->database, -1,
                                    "SELECT (SELECT count (*) FROM attachment WHERE hash = ?1)"
                                    " + (SELECT count (*) FROM attachment WHERE text_hash = ?1)",
                                    "s", (const char *)hash);

    if (n == 0)
      done = ks_blob_store_remove (self->blobs, hash, error);
    if (n == 0 && done)
      ks_embed_store_remove (self->embeds, hash);
  }
  return ks_database_end (self->database, done, error);
}

gboolean
ks_store_remove_unused_blob (KsStore *self, const char *hash, GError **error)
{
  g_autoptr (GHashTable) hashes = g_hash_table_new (g_str_hash, g_str_equal);

  g_return_val_if_fail (KS_IS_STORE (self), FALSE);
  g_return_val_if_fail (hash != NULL, FALSE);
  g_hash_table_add (hashes, (gpointer)hash);
  return ks_store_remove_unused (self, hashes, error);
}

/* Ids of all sessions, those that are marked as well. */
static GHashTable *
list_sessions (KsStore *self, GError **error)
{
  g_autoptr (GHashTable) ids = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  g_autoptr (KsStatement) statement =
      ks_database_query (self->database, error, "SELECT id FROM session", "");
  GError *local = NULL;

  if (statement == NULL)
    return NULL;
  while (ks_statement_step (statement, &local)) {
    gint64 id = ks_statement_get_int (statement, 0);

    g_hash_table_add (ids, g_memdup2 (&id, sizeof id));
  }
  if (local == NULL)
    return g_steal_pointer (&ids);
  g_propagate_error (error, local);
  return NULL;
}

static gboolean
sweep (KsStore *self, GError **error)
{
  g_autoptr (GHashTable) sessions = NULL;
  g_autoptr (GHashTable) keep = NULL;

  if (!ks_database_begin (self->database, error))
    return FALSE;
  keep = list_hashes (self, 0, error);
  if (keep != NULL) {
    ks_blob_store_sweep (self->blobs, keep);
    ks_embed_store_sweep (self->embeds, self->blobs);
    sessions = list_sessions (self, error);
  }
  if (sessions != NULL)
    ks_snapshot_store_sweep (self->snapshots, sessions);
  return ks_database_end (self->database, sessions != NULL, error);
}

/* What was deleted must not live on in the log. */
static gboolean
fold_log (KsStore *self, GError **error)
{
  return ks_database_exec (self->database, "PRAGMA wal_checkpoint (TRUNCATE)", error);
}

/* Ids of sessions that were marked as deleted before that time; of this store's own marks only. */
static GArray *
list_marked (KsStore *self, gint64 before_us, gboolean own, GError **error)
{
  g_autoptr (GArray) ids = g_array_new (FALSE, FALSE, sizeof (gint64));
  g_autoptr (KsStatement) statement = NULL;
  GError *local = NULL;

  statement = ks_database_query (self->database, error,
                                 "SELECT id FROM session WHERE deleted_us < ?1", "i", before_us);
  if (statement == NULL)
    return NULL;
  while (ks_statement_step (statement, &local)) {
    gint64 id = ks_statement_get_int (statement, 0);

    if (!own || g_hash_table_contains (self->marked, &id))
      g_array_append_val (ids, id);
  }
  if (local == NULL)
    return g_steal_pointer (&ids);
  g_propagate_error (error, local);
  return NULL;
}

/* Adds the hashes that it may have been the last one to need. */
static gboolean
purge_session (KsStore *self, gint64 id, GHashTable *hashes, GError **error)
{
  g_autoptr (GHashTable) more = list_hashes (self, id, error);
  GHashTableIter iter;
  gpointer hash;

  if (more == NULL)
    return FALSE;
  g_hash_table_iter_init (&iter, more);
  while (g_hash_table_iter_next (&iter, &hash, NULL)) {
    g_hash_table_iter_steal (&iter);
    g_hash_table_add (hashes, hash);
  }
  g_hash_table_remove (self->marked, &id);
  ks_snapshot_store_remove (self->snapshots, id);
  return ks_database_run (self->database, error, "DELETE FROM session WHERE id = ?1", "i", id);
}

static gboolean
purge (KsStore *self, gint64 before_us, gboolean own, GError **error)
{
  g_autoptr (GHashTable) hashes = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GArray) ids = NULL;
  gboolean done;

  if (!ks_database_begin (self->database, error))
    return FALSE;
  ids = list_marked (self, before_us, own, error);
  done = ids != NULL;
  for (guint i = 0; done && i < ids->len; i++)
    done = purge_session (self, g_array_index (ids, gint64, i), hashes, error);
  if (!ks_database_end (self->database, done, error))
    return FALSE;
  return ks_store_remove_unused (self, hashes, error) && sweep (self, error) &&
         (ids->len == 0 || fold_log (self, error));
}

gboolean
ks_store_purge (KsStore *self, GError **error)
{
  g_return_val_if_fail (KS_IS_STORE (self), FALSE);
  return purge (self, G_MAXINT64, FALSE, error);
}

gboolean
ks_store_purge_old (KsStore *self, gint64 least_age_us, GError **error)
{
  g_return_val_if_fail (KS_IS_STORE (self), FALSE);
  return purge (self, g_get_real_time () - least_age_us, FALSE, error);
}

gboolean
ks_store_purge_own (KsStore *self, GError **error)
{
  g_return_val_if_fail (KS_IS_STORE (self), FALSE);
  return g_hash_table_size (self->marked) == 0 || purge (self, G_MAXINT64, TRUE, error);
}

static gboolean
delete_rows (KsStore *self, GError **error)
{
  gint64 n_other = 0;
  gboolean done;

  if (!ks_database_begin (self->database, error))
    return FALSE;
  n_other = ks_store_is_locked_elsewhere (self, 0, NULL);
  if (n_other > 0)
    g_set_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_LOCKED,
                 "Another Keepsake is answering: stop it, then delete.");
  done = n_other == 0 && ks_database_exec (self->database, "DELETE FROM session", error) &&
         ks_database_exec (self->database, "DELETE FROM sqlite_sequence", error);
  return ks_database_end (self->database, done, error);
}

/* Copies that migrations made. */
static gboolean
remove_backups (KsStore *self, GError **error)
{
  g_autoptr (GDir) dir = g_dir_open (self->dir, 0, NULL);
  const char *name;

  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL) {
    g_autofree char *path = g_build_filename (self->dir, name, NULL);

    if (!g_str_has_prefix (name, DATABASE_NAME ".v"))
      continue;
    if (g_unlink (path) != 0) {
      ks_storage_error_set_errno (error, errno, "Cannot remove", path);
      return FALSE;
    }
  }
  return TRUE;
}

gboolean
ks_store_delete_all (KsStore *self, GError **error)
{
  g_autoptr (GHashTable) hashes = NULL;

  g_return_val_if_fail (KS_IS_STORE (self), FALSE);
  hashes = list_hashes (self, 0, error);
  if (hashes == NULL || !delete_rows (self, error))
    return FALSE;
  /* In place, not by unlinking: another process may have the file open. */
  ks_embed_store_clear (self->embeds);
  ks_snapshot_store_clear (self->snapshots);
  return ks_store_remove_unused (self, hashes, error) && sweep (self, error) &&
         ks_database_exec (self->database, "VACUUM", error) && fold_log (self, error) &&
         remove_backups (self, error);
}
