/* ks-embed-store.c - see ks-embed-store.h; files and quota are those of ks-quota-dir.c. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-embed-store.h"

#include "storage/ks-quota-dir.h"

#include <string.h>

#define HASH_CHARS 64

struct _KsEmbedStore {
  GObject parent_instance;
  KsQuotaDir *files;
};

G_DEFINE_FINAL_TYPE (KsEmbedStore, ks_embed_store, G_TYPE_OBJECT)

static void
ks_embed_store_finalize (GObject *object)
{
  ks_quota_dir_free (KS_EMBED_STORE (object)->files);
  G_OBJECT_CLASS (ks_embed_store_parent_class)->finalize (object);
}

static void
ks_embed_store_class_init (KsEmbedStoreClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = ks_embed_store_finalize;
}

static void
ks_embed_store_init (KsEmbedStore *self)
{
}

/* "<content hash>-<key>", both hex. */
static gboolean
is_our_name (const char *name, gpointer user_data)
{
  return strlen (name) == 2 * HASH_CHARS + 1 && name[HASH_CHARS] == '-' &&
         strspn (name, "0123456789abcdef") == HASH_CHARS &&
         strspn (name + HASH_CHARS + 1, "0123456789abcdef") == HASH_CHARS;
}

KsEmbedStore *
ks_embed_store_new (const char *dir)
{
  KsEmbedStore *self;

  g_return_val_if_fail (dir != NULL, NULL);
  self = g_object_new (KS_TYPE_EMBED_STORE, NULL);
  self->files = ks_quota_dir_new (dir, is_our_name);
  return self;
}

void
ks_embed_store_set_quota (KsEmbedStore *self, guint64 quota_bytes)
{
  g_return_if_fail (KS_IS_EMBED_STORE (self));
  ks_quota_dir_set_quota (self->files, quota_bytes);
}

guint64
ks_embed_store_get_bytes (KsEmbedStore *self)
{
  g_return_val_if_fail (KS_IS_EMBED_STORE (self), 0);
  return ks_quota_dir_get_bytes (self->files);
}

/* --- one file --- */

static char *
make_name (const char *hash, const char *key)
{
  return g_strconcat (hash, "-", key, NULL);
}

int
ks_embed_store_open (KsEmbedStore *self, const char *hash, const char *key)
{
  g_autofree char *name = NULL;

  g_return_val_if_fail (KS_IS_EMBED_STORE (self) && hash != NULL && key != NULL, -1);
  name = make_name (hash, key);
  return ks_quota_dir_open (self->files, name);
}

gboolean
ks_embed_store_put (KsEmbedStore *self, const char *hash, const char *key,
                    const struct iovec *parts, guint n_part, GError **error)
{
  g_autofree char *name = NULL;

  g_return_val_if_fail (KS_IS_EMBED_STORE (self) && hash != NULL && key != NULL, FALSE);
  name = make_name (hash, key);
  return ks_quota_dir_put (self->files, name, parts, n_part, error);
}

void
ks_embed_store_drop (KsEmbedStore *self, const char *hash, const char *key)
{
  g_autofree char *name = NULL;

  g_return_if_fail (KS_IS_EMBED_STORE (self) && hash != NULL && key != NULL);
  name = make_name (hash, key);
  ks_quota_dir_drop (self->files, name);
}

/* --- many --- */

static gboolean
is_of_hash (const char *name, gpointer hash)
{
  return strlen (hash) == HASH_CHARS && strncmp (name, hash, HASH_CHARS) == 0;
}

void
ks_embed_store_remove (KsEmbedStore *self, const char *hash)
{
  g_return_if_fail (KS_IS_EMBED_STORE (self) && hash != NULL);
  ks_quota_dir_remove (self->files, is_of_hash, (gpointer)hash);
}

static gboolean
has_no_blob (const char *name, gpointer blobs)
{
  g_autofree char *hash = g_strndup (name, HASH_CHARS);

  return !ks_blob_store_has (blobs, hash);
}

void
ks_embed_store_sweep (KsEmbedStore *self, KsBlobStore *blobs)
{
  g_return_if_fail (KS_IS_EMBED_STORE (self) && KS_IS_BLOB_STORE (blobs));
  ks_quota_dir_remove (self->files, has_no_blob, blobs);
}

void
ks_embed_store_clear (KsEmbedStore *self)
{
  g_return_if_fail (KS_IS_EMBED_STORE (self));
  ks_quota_dir_remove (self->files, is_our_name, NULL);
}
