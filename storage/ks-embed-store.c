/* ks-embed-store.c - see ks-embed-store.h.  The time of a file's last change is when it was used
 * last.  Another program may write and remove at the same time: what is gone is a miss. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-embed-store.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HASH_CHARS 64
#define TEMPORARY_PREFIX ".tmp-"
#define STALE_S 3600

struct _KsEmbedStore {
  GObject parent_instance;
  char *dir;
  GMutex lock;
  guint64 quota_bytes; /* under lock */
};

G_DEFINE_FINAL_TYPE (KsEmbedStore, ks_embed_store, G_TYPE_OBJECT)

static void
ks_embed_store_finalize (GObject *object)
{
  KsEmbedStore *self = KS_EMBED_STORE (object);

  g_free (self->dir);
  g_mutex_clear (&self->lock);
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
  g_mutex_init (&self->lock);
}

KsEmbedStore *
ks_embed_store_new (const char *dir)
{
  KsEmbedStore *self;

  g_return_val_if_fail (dir != NULL, NULL);
  self = g_object_new (KS_TYPE_EMBED_STORE, NULL);
  self->dir = g_strdup (dir);
  return self;
}

void
ks_embed_store_set_quota (KsEmbedStore *self, guint64 quota_bytes)
{
  g_return_if_fail (KS_IS_EMBED_STORE (self));
  g_mutex_lock (&self->lock);
  self->quota_bytes = quota_bytes;
  g_mutex_unlock (&self->lock);
}

/* --- the folder --- */

typedef struct {
  char *path;
  guint64 n_bytes;
  gint64 used_ns;
} File;

static void
clear_file (gpointer data)
{
  g_free (((File *)data)->path);
}

/* "<content hash>-<key>", both hex. */
static gboolean
is_our_name (const char *name)
{
  return strlen (name) == 2 * HASH_CHARS + 1 && name[HASH_CHARS] == '-' &&
         strspn (name, "0123456789abcdef") == HASH_CHARS &&
         strspn (name + HASH_CHARS + 1, "0123456789abcdef") == HASH_CHARS;
}

static gint64
get_used_ns (const struct stat *st)
{
  return (gint64)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* Ours in the folder, of File; what a killed program was writing is removed on the way. */
static GArray *
list_files (KsEmbedStore *self)
{
  GArray *files = g_array_new (FALSE, TRUE, sizeof (File));
  g_autoptr (GDir) dir = g_dir_open (self->dir, 0, NULL);
  const char *name;

  g_array_set_clear_func (files, clear_file);
  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL) {
    g_autofree char *path = g_build_filename (self->dir, name, NULL);
    File file = {0};
    struct stat st;

    if (lstat (path, &st) != 0 || !S_ISREG (st.st_mode))
      continue;
    if (g_str_has_prefix (name, TEMPORARY_PREFIX) &&
        g_get_real_time () / G_USEC_PER_SEC - st.st_mtime > STALE_S)
      (void)g_unlink (path);
    if (!is_our_name (name))
      continue;
    file.path = g_steal_pointer (&path);
    file.n_bytes = (guint64)st.st_size;
    file.used_ns = get_used_ns (&st);
    g_array_append_val (files, file);
  }
  return files;
}

static guint64
sum_bytes (GArray *files)
{
  guint64 n_bytes = 0;

  for (guint i = 0; i < files->len; i++)
    n_bytes += g_array_index (files, File, i).n_bytes;
  return n_bytes;
}

guint64
ks_embed_store_get_bytes (KsEmbedStore *self)
{
  g_autoptr (GArray) files = NULL;

  g_return_val_if_fail (KS_IS_EMBED_STORE (self), 0);
  files = list_files (self);
  return sum_bytes (files);
}

static int
compare_used (gconstpointer a, gconstpointer b)
{
  const File *x = a, *y = b;

  return (x->used_ns > y->used_ns) - (x->used_ns < y->used_ns);
}

/* The least recently used go until n_new bytes more fit into the quota. */
static void
make_room (KsEmbedStore *self, guint64 n_new, guint64 quota_bytes)
{
  g_autoptr (GArray) files = list_files (self);
  guint64 n_bytes = sum_bytes (files);

  g_array_sort (files, compare_used);
  for (guint i = 0; i < files->len && n_bytes + n_new > quota_bytes; i++) {
    const File *file = &g_array_index (files, File, i);

    if (g_unlink (file->path) == 0 || errno == ENOENT)
      n_bytes -= file->n_bytes;
  }
}

/* --- one file --- */

static char *
make_path (KsEmbedStore *self, const char *hash, const char *key)
{
  g_autofree char *name = g_strdup_printf ("%s-%s", hash, key);

  return is_our_name (name) ? g_build_filename (self->dir, name, NULL) : NULL;
}

int
ks_embed_store_open (KsEmbedStore *self, const char *hash, const char *key)
{
  g_autofree char *path = NULL;
  struct stat st;
  int fd;

  g_return_val_if_fail (KS_IS_EMBED_STORE (self) && hash != NULL && key != NULL, -1);
  path = make_path (self, hash, key);
  fd = path != NULL ? g_open (path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW, 0) : -1;
  if (fd < 0)
    return -1;
  if (fstat (fd, &st) != 0 || !S_ISREG (st.st_mode)) {
    g_close (fd, NULL);
    return -1;
  }
  (void)futimens (fd, NULL); /* failing, it only goes sooner */
  return fd;
}

static gboolean
write_all (int fd, const char *path, const struct iovec *part, GError **error)
{
  const char *at = part->iov_base;
  gsize n = part->iov_len;

  while (n > 0) {
    ssize_t done = write (fd, at, n);

    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0) {
      ks_storage_error_set_errno (error, errno, "Cannot write", path);
      return FALSE;
    }
    at += done;
    n -= (gsize)done;
  }
  return TRUE;
}

/* Not flushed: a file that a crash of the machine tore fails its checksum and is made again. */
static gboolean
write_file (KsEmbedStore *self, const char *path, const struct iovec *parts, guint n_part,
            GError **error)
{
  g_autofree char *temporary = g_build_filename (self->dir, TEMPORARY_PREFIX "XXXXXX", NULL);
  gboolean ok;
  int fd;

  if (g_mkdir_with_parents (self->dir, 0700) != 0) {
    ks_storage_error_set_errno (error, errno, "Cannot make the folder", self->dir);
    return FALSE;
  }
  fd = g_mkstemp_full (temporary, O_RDWR | O_CLOEXEC, 0600);
  ok = fd >= 0;
  if (!ok)
    ks_storage_error_set_errno (error, errno, "Cannot write in", self->dir);
  for (guint i = 0; ok && i < n_part; i++)
    ok = write_all (fd, temporary, &parts[i], error);
  if (fd >= 0)
    g_close (fd, NULL);
  if (ok && g_rename (temporary, path) != 0) {
    ks_storage_error_set_errno (error, errno, "Cannot write", path);
    ok = FALSE;
  }
  if (!ok && fd >= 0)
    g_unlink (temporary);
  return ok;
}

gboolean
ks_embed_store_put (KsEmbedStore *self, const char *hash, const char *key,
                    const struct iovec *parts, guint n_part, GError **error)
{
  g_autofree char *path = NULL;
  guint64 n_bytes = 0, quota_bytes;

  g_return_val_if_fail (KS_IS_EMBED_STORE (self) && hash != NULL && key != NULL, FALSE);
  path = make_path (self, hash, key);
  g_return_val_if_fail (path != NULL, FALSE);
  for (guint i = 0; i < n_part; i++)
    n_bytes += parts[i].iov_len;
  g_mutex_lock (&self->lock);
  quota_bytes = self->quota_bytes;
  g_mutex_unlock (&self->lock);
  make_room (self, n_bytes, quota_bytes);
  return n_bytes <= quota_bytes && write_file (self, path, parts, n_part, error);
}

void
ks_embed_store_drop (KsEmbedStore *self, const char *hash, const char *key)
{
  g_autofree char *path = NULL;

  g_return_if_fail (KS_IS_EMBED_STORE (self) && hash != NULL && key != NULL);
  path = make_path (self, hash, key);
  if (path != NULL)
    (void)g_unlink (path);
}

/* --- many --- */

static void
remove_matching (KsEmbedStore *self, const char *hash, KsBlobStore *blobs)
{
  g_autoptr (GArray) files = list_files (self);

  for (guint i = 0; i < files->len; i++) {
    const char *path = g_array_index (files, File, i).path;
    g_autofree char *name = g_path_get_basename (path);

    name[HASH_CHARS] = '\0';
    if ((hash == NULL || g_str_equal (name, hash)) &&
        (blobs == NULL || !ks_blob_store_has (blobs, name)))
      (void)g_unlink (path);
  }
}

void
ks_embed_store_remove (KsEmbedStore *self, const char *hash)
{
  g_return_if_fail (KS_IS_EMBED_STORE (self) && hash != NULL);
  remove_matching (self, hash, NULL);
}

void
ks_embed_store_sweep (KsEmbedStore *self, KsBlobStore *blobs)
{
  g_return_if_fail (KS_IS_EMBED_STORE (self) && KS_IS_BLOB_STORE (blobs));
  remove_matching (self, NULL, blobs);
}

void
ks_embed_store_clear (KsEmbedStore *self)
{
  g_return_if_fail (KS_IS_EMBED_STORE (self));
  remove_matching (self, NULL, NULL);
}
