/* ks-blob-store.c - see ks-blob-store.h.  Layout: DIR/<hash>; a file in the making is
 * DIR/.tmp-XXXXXX.  Adding a blob that exists renews its time, which keeps it from a sweep until
 * the database refers to it. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-blob-store.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HASH_CHARS 64
#define CHUNK_BYTES 65536
#define SWEEP_AGE_S 3600
#define TEMPORARY_PREFIX ".tmp-"

struct _KsBlobStore {
  GObject parent_instance;
  char *dir;
};

G_DEFINE_FINAL_TYPE (KsBlobStore, ks_blob_store, G_TYPE_OBJECT)

static void
ks_blob_store_finalize (GObject *object)
{
  g_free (KS_BLOB_STORE (object)->dir);
  G_OBJECT_CLASS (ks_blob_store_parent_class)->finalize (object);
}

static void
ks_blob_store_class_init (KsBlobStoreClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = ks_blob_store_finalize;
}

static void
ks_blob_store_init (KsBlobStore *self)
{
}

KsBlobStore *
ks_blob_store_new (const char *dir, GError **error)
{
  KsBlobStore *self;

  g_return_val_if_fail (dir != NULL, NULL);
  if (g_mkdir_with_parents (dir, 0700) != 0 &&
      ks_storage_error_from_errno (errno) != KS_STORAGE_ERROR_READ_ONLY) {
    ks_storage_error_set_errno (error, errno, "Cannot make the folder", dir);
    return NULL;
  }
  self = g_object_new (KS_TYPE_BLOB_STORE, NULL);
  self->dir = g_strdup (dir);
  return self;
}

gboolean
ks_blob_store_is_hash (const char *text)
{
  if (text == NULL || strlen (text) != HASH_CHARS)
    return FALSE;
  return strspn (text, "0123456789abcdef") == HASH_CHARS;
}

char *
ks_blob_store_get_path (KsBlobStore *self, const char *hash)
{
  g_return_val_if_fail (KS_IS_BLOB_STORE (self), NULL);
  return ks_blob_store_is_hash (hash) ? g_build_filename (self->dir, hash, NULL) : NULL;
}

gboolean
ks_blob_store_has (KsBlobStore *self, const char *hash)
{
  g_autofree char *path = ks_blob_store_get_path (self, hash);

  return path != NULL && g_file_test (path, G_FILE_TEST_IS_REGULAR);
}

/* A temporary file that becomes a blob. */
typedef struct {
  char *path;
  int fd;
  GChecksum *sum;
  guint64 n_bytes;
} Writer;

static gboolean
writer_open (Writer *writer, KsBlobStore *self, GError **error)
{
  writer->path = g_build_filename (self->dir, TEMPORARY_PREFIX "XXXXXX", NULL);
  writer->fd = g_mkstemp_full (writer->path, O_RDWR | O_CLOEXEC, 0600);
  if (writer->fd >= 0) {
    writer->sum = g_checksum_new (G_CHECKSUM_SHA256);
    return TRUE;
  }
  ks_storage_error_set_errno (error, errno, "Cannot write in", self->dir);
  g_clear_pointer (&writer->path, g_free);
  return FALSE;
}

static gboolean
writer_put (Writer *writer, const void *data, gsize n, GError **error)
{
  const char *at = data;

  g_checksum_update (writer->sum, data, (gssize)n);
  writer->n_bytes += n;
  while (n > 0) {
    ssize_t done = write (writer->fd, at, n);

    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0) {
      ks_storage_error_set_errno (error, errno, "Cannot write", writer->path);
      return FALSE;
    }
    at += done;
    n -= (gsize)done;
  }
  return TRUE;
}

static void
sync_folder (const char *dir)
{
  int fd = g_open (dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

  if (fd < 0)
    return;
  (void)fsync (fd);
  g_close (fd, NULL);
}

/* The blob is there when the rename is; the content is on the disk before that. */
static char *
writer_finish (Writer *writer, KsBlobStore *self, GError **error)
{
  const char *hash = g_checksum_get_string (writer->sum);
  g_autofree char *path = ks_blob_store_get_path (self, hash);

  if (fsync (writer->fd) != 0 || g_rename (writer->path, path) != 0) {
    ks_storage_error_set_errno (error, errno, "Cannot write", path);
    return NULL;
  }
  g_clear_pointer (&writer->path, g_free);
  sync_folder (self->dir);
  return g_strdup (hash);
}

static void
writer_done (Writer *writer)
{
  if (writer->fd >= 0)
    g_close (writer->fd, NULL);
  if (writer->path != NULL)
    g_unlink (writer->path);
  g_free (writer->path);
  if (writer->sum != NULL)
    g_checksum_free (writer->sum);
}

/* TRUE when a sound blob of that name exists; its time is renewed. */
static gboolean
renew (KsBlobStore *self, const char *hash)
{
  g_autoptr (GBytes) bytes = NULL;
  g_autofree char *path = ks_blob_store_get_path (self, hash);

  if (!ks_blob_store_has (self, hash))
    return FALSE;
  bytes = ks_blob_store_get (self, hash, NULL);
  return bytes != NULL && utimensat (AT_FDCWD, path, NULL, 0) == 0;
}

char *
ks_blob_store_add (KsBlobStore *self, GBytes *bytes, GError **error)
{
  g_autofree char *hash = NULL;
  Writer writer = {.fd = -1};
  char *result = NULL;
  gsize n;
  const void *data;

  g_return_val_if_fail (KS_IS_BLOB_STORE (self), NULL);
  g_return_val_if_fail (bytes != NULL, NULL);
  data = g_bytes_get_data (bytes, &n);
  hash = g_compute_checksum_for_bytes (G_CHECKSUM_SHA256, bytes);
  if (renew (self, hash))
    return g_steal_pointer (&hash);
  if (writer_open (&writer, self, error) && writer_put (&writer, data, n, error))
    result = writer_finish (&writer, self, error);
  writer_done (&writer);
  return result;
}

/* Not a folder, a device or a pipe that would never end. */
static int
open_regular (const char *path, GError **error)
{
  int fd = g_open (path, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
  struct stat st;

  if (fd < 0) {
    ks_storage_error_set_errno (error, errno, "Cannot read", path);
    return -1;
  }
  if (fstat (fd, &st) == 0 && S_ISREG (st.st_mode))
    return fd;
  g_set_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_FAILED, "%s is not a file.", path);
  g_close (fd, NULL);
  return -1;
}

static gboolean
copy_all (Writer *writer, int fd, const char *path, GCancellable *cancellable, GError **error)
{
  g_autofree char *chunk = g_malloc (CHUNK_BYTES);

  for (;;) {
    ssize_t n;

    if (g_cancellable_set_error_if_cancelled (cancellable, error))
      return FALSE;
    n = read (fd, chunk, CHUNK_BYTES);
    if (n == 0)
      return TRUE;
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0) {
      ks_storage_error_set_errno (error, errno, "Cannot read", path);
      return FALSE;
    }
    if (!writer_put (writer, chunk, (gsize)n, error))
      return FALSE;
  }
}

char *
ks_blob_store_add_file (KsBlobStore *self, const char *path, GCancellable *cancellable,
                        guint64 *out_n_bytes, GError **error)
{
  Writer writer = {.fd = -1};
  char *result = NULL;
  int fd;

  g_return_val_if_fail (KS_IS_BLOB_STORE (self), NULL);
  g_return_val_if_fail (path != NULL, NULL);
  fd = open_regular (path, error);
  if (fd < 0)
    return NULL;
  if (writer_open (&writer, self, error) && copy_all (&writer, fd, path, cancellable, error)) {
    if (renew (self, g_checksum_get_string (writer.sum)))
      result = g_strdup (g_checksum_get_string (writer.sum));
    else
      result = writer_finish (&writer, self, error);
  }
  if (result != NULL && out_n_bytes != NULL)
    *out_n_bytes = writer.n_bytes;
  writer_done (&writer);
  g_close (fd, NULL);
  return result;
}

GBytes *
ks_blob_store_get (KsBlobStore *self, const char *hash, GError **error)
{
  g_autofree char *path = ks_blob_store_get_path (self, hash);
  g_autofree char *found = NULL;
  g_autoptr (GBytes) bytes = NULL;
  g_autoptr (GError) local = NULL;
  char *data = NULL;
  gsize n = 0;

  if (path == NULL || !g_file_get_contents (path, &data, &n, &local)) {
    g_set_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_NOT_FOUND,
                 "The stored file %s is missing.", hash != NULL ? hash : "(none)");
    return NULL;
  }
  bytes = g_bytes_new_take (data, n);
  found = g_compute_checksum_for_bytes (G_CHECKSUM_SHA256, bytes);
  if (strcmp (found, hash) == 0)
    return g_steal_pointer (&bytes);
  g_set_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_DAMAGED,
               "The stored file %s is damaged: attach the original again.", path);
  return NULL;
}

gboolean
ks_blob_store_remove (KsBlobStore *self, const char *hash, GError **error)
{
  g_autofree char *path = ks_blob_store_get_path (self, hash);

  if (path == NULL || g_unlink (path) == 0 || errno == ENOENT)
    return TRUE;
  ks_storage_error_set_errno (error, errno, "Cannot remove", path);
  return FALSE;
}

static gboolean
is_stale (KsBlobStore *self, const char *name, GHashTable *keep)
{
  g_autofree char *path = g_build_filename (self->dir, name, NULL);
  struct stat st;

  /* An unfinished copy is judged by its age alone. */
  if (!g_str_has_prefix (name, TEMPORARY_PREFIX) &&
      (!ks_blob_store_is_hash (name) || g_hash_table_contains (keep, name)))
    return FALSE;
  return lstat (path, &st) == 0 && S_ISREG (st.st_mode) &&
         g_get_real_time () / G_USEC_PER_SEC - st.st_mtime > SWEEP_AGE_S;
}

guint
ks_blob_store_sweep (KsBlobStore *self, GHashTable *keep)
{
  g_autoptr (GDir) dir = NULL;
  const char *name;
  guint n_removed = 0;

  g_return_val_if_fail (KS_IS_BLOB_STORE (self), 0);
  g_return_val_if_fail (keep != NULL, 0);
  dir = g_dir_open (self->dir, 0, NULL);
  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL) {
    g_autofree char *path = g_build_filename (self->dir, name, NULL);

    if (is_stale (self, name, keep) && g_unlink (path) == 0)
      n_removed++;
  }
  return n_removed;
}
