/* ks-quota-dir.c - see ks-quota-dir.h.  The time of a file's last change is when it was used last.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-quota-dir.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMPORARY_PREFIX ".tmp-"
#define STALE_S 3600

struct _KsQuotaDir {
  char *path;
  KsQuotaNameFunc is_ours;
  GMutex lock;
  guint64 quota_bytes; /* under lock */
};

KsQuotaDir *
ks_quota_dir_new (const char *path, KsQuotaNameFunc is_ours)
{
  KsQuotaDir *dir;

  g_return_val_if_fail (path != NULL && is_ours != NULL, NULL);
  dir = g_new0 (KsQuotaDir, 1);
  dir->path = g_strdup (path);
  dir->is_ours = is_ours;
  g_mutex_init (&dir->lock);
  return dir;
}

void
ks_quota_dir_free (KsQuotaDir *dir)
{
  if (dir == NULL)
    return;
  g_free (dir->path);
  g_mutex_clear (&dir->lock);
  g_free (dir);
}

void
ks_quota_dir_set_quota (KsQuotaDir *dir, guint64 quota_bytes)
{
  g_return_if_fail (dir != NULL);
  g_mutex_lock (&dir->lock);
  dir->quota_bytes = quota_bytes;
  g_mutex_unlock (&dir->lock);
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

static gint64
get_used_ns (const struct stat *st)
{
  return (gint64)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* Ours in the folder, of File; what a killed program was writing is removed on the way. */
static GArray *
list_files (KsQuotaDir *dir)
{
  GArray *files = g_array_new (FALSE, TRUE, sizeof (File));
  g_autoptr (GDir) entries = g_dir_open (dir->path, 0, NULL);
  const char *name;

  g_array_set_clear_func (files, clear_file);
  while (entries != NULL && (name = g_dir_read_name (entries)) != NULL) {
    g_autofree char *path = g_build_filename (dir->path, name, NULL);
    File file = {0};
    struct stat st;

    if (lstat (path, &st) != 0 || !S_ISREG (st.st_mode))
      continue;
    if (g_str_has_prefix (name, TEMPORARY_PREFIX) &&
        g_get_real_time () / G_USEC_PER_SEC - st.st_mtime > STALE_S)
      (void)g_unlink (path);
    if (!dir->is_ours (name, NULL))
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
ks_quota_dir_get_bytes (KsQuotaDir *dir)
{
  g_autoptr (GArray) files = NULL;

  g_return_val_if_fail (dir != NULL, 0);
  files = list_files (dir);
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
make_room (KsQuotaDir *dir, guint64 n_new, guint64 quota_bytes)
{
  g_autoptr (GArray) files = list_files (dir);
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
make_path (KsQuotaDir *dir, const char *name)
{
  return dir->is_ours (name, NULL) ? g_build_filename (dir->path, name, NULL) : NULL;
}

int
ks_quota_dir_open (KsQuotaDir *dir, const char *name)
{
  g_autofree char *path = NULL;
  struct stat st;
  int fd;

  g_return_val_if_fail (dir != NULL && name != NULL, -1);
  path = make_path (dir, name);
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

gboolean
ks_quota_dir_has (KsQuotaDir *dir, const char *name)
{
  g_autofree char *path = NULL;

  g_return_val_if_fail (dir != NULL && name != NULL, FALSE);
  path = make_path (dir, name);
  return path != NULL && g_file_test (path, G_FILE_TEST_IS_REGULAR);
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
write_file (KsQuotaDir *dir, const char *path, const struct iovec *parts, guint n_part,
            GError **error)
{
  g_autofree char *temporary = g_build_filename (dir->path, TEMPORARY_PREFIX "XXXXXX", NULL);
  gboolean ok;
  int fd;

  if (g_mkdir_with_parents (dir->path, 0700) != 0) {
    ks_storage_error_set_errno (error, errno, "Cannot make the folder", dir->path);
    return FALSE;
  }
  fd = g_mkstemp_full (temporary, O_RDWR | O_CLOEXEC, 0600);
  ok = fd >= 0;
  if (!ok)
    ks_storage_error_set_errno (error, errno, "Cannot write in", dir->path);
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
ks_quota_dir_put (KsQuotaDir *dir, const char *name, const struct iovec *parts, guint n_part,
                  GError **error)
{
  g_autofree char *path = NULL;
  guint64 n_bytes = 0, quota_bytes;

  g_return_val_if_fail (dir != NULL && name != NULL, FALSE);
  path = make_path (dir, name);
  g_return_val_if_fail (path != NULL, FALSE);
  for (guint i = 0; i < n_part; i++)
    n_bytes += parts[i].iov_len;
  g_mutex_lock (&dir->lock);
  quota_bytes = dir->quota_bytes;
  g_mutex_unlock (&dir->lock);
  make_room (dir, n_bytes, quota_bytes);
  return n_bytes <= quota_bytes && write_file (dir, path, parts, n_part, error);
}

void
ks_quota_dir_drop (KsQuotaDir *dir, const char *name)
{
  g_autofree char *path = NULL;

  g_return_if_fail (dir != NULL && name != NULL);
  path = make_path (dir, name);
  if (path != NULL)
    (void)g_unlink (path);
}

void
ks_quota_dir_remove (KsQuotaDir *dir, KsQuotaNameFunc func, gpointer user_data)
{
  g_autoptr (GArray) files = NULL;

  g_return_if_fail (dir != NULL && func != NULL);
  files = list_files (dir);
  for (guint i = 0; i < files->len; i++) {
    const char *path = g_array_index (files, File, i).path;
    g_autofree char *name = g_path_get_basename (path);

    if (func (name, user_data))
      (void)g_unlink (path);
  }
}
