/* ks-snapshot-store.c - see ks-snapshot-store.h; files and quota are those of ks-quota-dir.c. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-snapshot-store.h"

#include "storage/ks-quota-dir.h"

#include <string.h>

#define SESSION_CHARS 16
#define KEY_CHARS 64

struct _KsSnapshotStore {
  GObject parent_instance;
  KsQuotaDir *files;
};

G_DEFINE_FINAL_TYPE (KsSnapshotStore, ks_snapshot_store, G_TYPE_OBJECT)

static void
ks_snapshot_store_finalize (GObject *object)
{
  ks_quota_dir_free (KS_SNAPSHOT_STORE (object)->files);
  G_OBJECT_CLASS (ks_snapshot_store_parent_class)->finalize (object);
}

static void
ks_snapshot_store_class_init (KsSnapshotStoreClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = ks_snapshot_store_finalize;
}

static void
ks_snapshot_store_init (KsSnapshotStore *self)
{
}

static gboolean
is_our_name (const char *name, gpointer user_data)
{
  return strlen (name) == SESSION_CHARS + 1 + KEY_CHARS && name[SESSION_CHARS] == '-' &&
         strspn (name, "0123456789abcdef") == SESSION_CHARS &&
         strspn (name + SESSION_CHARS + 1, "0123456789abcdef") == KEY_CHARS;
}

KsSnapshotStore *
ks_snapshot_store_new (const char *dir)
{
  KsSnapshotStore *self;

  g_return_val_if_fail (dir != NULL, NULL);
  self = g_object_new (KS_TYPE_SNAPSHOT_STORE, NULL);
  self->files = ks_quota_dir_new (dir, is_our_name);
  return self;
}

void
ks_snapshot_store_set_quota (KsSnapshotStore *self, guint64 quota_bytes)
{
  g_return_if_fail (KS_IS_SNAPSHOT_STORE (self));
  ks_quota_dir_set_quota (self->files, quota_bytes);
}

guint64
ks_snapshot_store_get_bytes (KsSnapshotStore *self)
{
  g_return_val_if_fail (KS_IS_SNAPSHOT_STORE (self), 0);
  return ks_quota_dir_get_bytes (self->files);
}

/* --- one file --- */

static char *
make_name (gint64 session, const char *key)
{
  return g_strdup_printf ("%016" G_GINT64_MODIFIER "x-%s", (guint64)session, key);
}

int
ks_snapshot_store_open (KsSnapshotStore *self, gint64 session, const char *key)
{
  g_autofree char *name = NULL;

  g_return_val_if_fail (KS_IS_SNAPSHOT_STORE (self) && session > 0 && key != NULL, -1);
  name = make_name (session, key);
  return ks_quota_dir_open (self->files, name);
}

gboolean
ks_snapshot_store_has (KsSnapshotStore *self, gint64 session, const char *key)
{
  g_autofree char *name = NULL;

  g_return_val_if_fail (KS_IS_SNAPSHOT_STORE (self) && session > 0 && key != NULL, FALSE);
  name = make_name (session, key);
  return ks_quota_dir_has (self->files, name);
}

gboolean
ks_snapshot_store_put (KsSnapshotStore *self, gint64 session, const char *key, gconstpointer data,
                       gsize n_bytes, GError **error)
{
  struct iovec part = {(gpointer)data, n_bytes};
  g_autofree char *name = NULL;

  g_return_val_if_fail (KS_IS_SNAPSHOT_STORE (self) && session > 0 && key != NULL, FALSE);
  name = make_name (session, key);
  return ks_quota_dir_put (self->files, name, &part, 1, error);
}

void
ks_snapshot_store_drop (KsSnapshotStore *self, gint64 session, const char *key)
{
  g_autofree char *name = NULL;

  g_return_if_fail (KS_IS_SNAPSHOT_STORE (self) && session > 0 && key != NULL);
  name = make_name (session, key);
  ks_quota_dir_drop (self->files, name);
}

/* --- many --- */

static gint64
get_session (const char *name)
{
  g_autofree char *digits = g_strndup (name, SESSION_CHARS);

  return (gint64)g_ascii_strtoull (digits, NULL, 16);
}

static gboolean
is_of_session (const char *name, gpointer session)
{
  return get_session (name) == *(const gint64 *)session;
}

void
ks_snapshot_store_remove (KsSnapshotStore *self, gint64 session)
{
  g_return_if_fail (KS_IS_SNAPSHOT_STORE (self));
  ks_quota_dir_remove (self->files, is_of_session, &session);
}

static gboolean
is_of_no_session (const char *name, gpointer sessions)
{
  gint64 session = get_session (name);

  return !g_hash_table_contains (sessions, &session);
}

void
ks_snapshot_store_sweep (KsSnapshotStore *self, GHashTable *sessions)
{
  g_return_if_fail (KS_IS_SNAPSHOT_STORE (self) && sessions != NULL);
  ks_quota_dir_remove (self->files, is_of_no_session, sessions);
}

void
ks_snapshot_store_clear (KsSnapshotStore *self)
{
  g_return_if_fail (KS_IS_SNAPSHOT_STORE (self));
  ks_quota_dir_remove (self->files, is_our_name, NULL);
}
