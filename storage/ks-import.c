/* ks-import.c - a checked bundle into the store: first the blobs, then all rows in one transaction.
 * Nothing of a bundle is ever a path: media are named by the hash of their bytes. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-export.h"

#include "storage/ks-bundle.h"
#include "storage/ks-store-internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static gboolean
add_media (KsStore *store, KsBundle *bundle, GError **error)
{
  GHashTableIter iter;
  gpointer hash, bytes;

  g_hash_table_iter_init (&iter, bundle->media);
  while (g_hash_table_iter_next (&iter, &hash, &bytes)) {
    g_autofree char *added = NULL;

    if (bytes == NULL)
      continue;
    added = ks_blob_store_add (store->blobs, bytes, error);
    if (added == NULL)
      return FALSE;
  }
  return TRUE;
}

static GPtrArray *
list_attachments (KsMessage *message)
{
  GListModel *model = ks_message_get_attachments (message);
  GPtrArray *attachments = g_ptr_array_new_with_free_func (g_object_unref);

  for (guint i = 0; i < g_list_model_get_n_items (model); i++)
    g_ptr_array_add (attachments, g_list_model_get_item (model, i));
  return attachments;
}

static gboolean
pin (KsStore *store, gint64 id, KsMessage *message, GPtrArray *attachments, GError **error)
{
  if (ks_message_is_pinned (message, NULL) && !ks_store_set_pinned (store, id, NULL, TRUE, error))
    return FALSE;
  for (guint i = 0; i < attachments->len; i++) {
    const char *hash = ks_attachment_get_hash (g_ptr_array_index (attachments, i));

    if (ks_message_is_pinned (message, hash) && !ks_store_set_pinned (store, id, hash, TRUE, error))
      return FALSE;
  }
  return TRUE;
}

/* ids[i] is the row of the bundle's message i + 1; blobs are not asked for, since a bundle may say
 * that one was lost. */
static gboolean
add_messages (KsStore *store, gint64 session, KsBundle *bundle, gint64 *ids, GError **error)
{
  for (guint i = 0; i < bundle->messages->len; i++) {
    KsMessage *message = g_ptr_array_index (bundle->messages, i);
    g_autoptr (GPtrArray) attachments = list_attachments (message);
    gint64 parent = ks_message_get_parent_id (message);
    KsMessageRow row = {.session = session,
                        .parent = parent > 0 ? ids[parent - 1] : 0,
                        .created_us = ks_message_get_created_us (message),
                        .role = ks_message_get_role (message),
                        .state = ks_message_get_state (message),
                        .text = ks_message_get_text (message),
                        .error = ks_message_get_error (message),
                        .n_tokens = ks_message_get_n_tokens (message),
                        .attachments = attachments};

    ids[i] = ks_store_insert_message (store, &row, FALSE, error);
    if (ids[i] == 0 || !pin (store, ids[i], message, attachments, error))
      return FALSE;
  }
  return TRUE;
}

static gint64
add_rows (KsStore *store, KsBundle *bundle, GError **error)
{
  g_autofree gint64 *ids = g_new0 (gint64, bundle->messages->len + 1);
  gint64 session = ks_store_insert_session (store, bundle->title, bundle->created_us,
                                            bundle->updated_us, bundle->settings, error);

  if (session == 0 || !add_messages (store, session, bundle, ids, error))
    return 0;
  if (bundle->active > 0 && !ks_store_set_leaf (store, session, ids[bundle->active - 1], error))
    return 0;
  for (guint i = 0; i < bundle->messages->len; i++) {
    guint child = g_array_index (bundle->active_children, guint, i);

    if (!ks_store_set_active_child (store, ids[i], child > 0 ? ids[child - 1] : 0, error))
      return 0;
  }
  return session;
}

KsSession *
ks_import_bundle (KsStore *store, GBytes *bundle, GError **error)
{
  g_autoptr (KsBundle) parsed = NULL;
  gint64 session = 0;
  gboolean done;

  g_return_val_if_fail (KS_IS_STORE (store), NULL);
  g_return_val_if_fail (bundle != NULL, NULL);
  parsed = ks_bundle_parse (bundle, error);
  if (parsed == NULL)
    return NULL;
  done = add_media (store, parsed, error);
  if (done && ks_database_begin (store->database, error)) {
    session = add_rows (store, parsed, error);
    done = ks_database_end (store->database, session != 0, error);
  } else {
    done = FALSE;
  }
  if (done)
    return ks_store_get_session (store, session, error);
  (void)ks_store_remove_unused (store, parsed->media, NULL);
  return NULL;
}

/* Opening must not wait for the writer of a pipe, and what is opened is what is looked at. */
static int
open_regular (const char *path, gsize *out_n_bytes, GError **error)
{
  g_autofree char *name = g_filename_display_name (path);
  struct stat st;
  int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

  if (fd < 0 || fstat (fd, &st) != 0)
    ks_storage_error_set_errno (error, errno, "Cannot open", path);
  else if (!S_ISREG (st.st_mode))
    g_set_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_FORMAT, "%s is not a regular file.",
                 name);
  else if ((guint64)st.st_size > KS_BUNDLE_MAX_BYTES)
    g_set_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_TOO_LARGE,
                 "%s is larger than the %u MiB that a bundle may have.", name,
                 (guint)(KS_BUNDLE_MAX_BYTES >> 20));
  else {
    *out_n_bytes = (gsize)st.st_size;
    return fd;
  }
  if (fd >= 0)
    close (fd);
  return -1;
}

/* Reads as much as the file had when it was opened. */
static GBytes *
read_regular (const char *path, GError **error)
{
  gsize n_bytes = 0, n_read = 0;
  int fd = open_regular (path, &n_bytes, error);
  g_autofree char *bytes = NULL;
  ssize_t n = 1;

  if (fd < 0)
    return NULL;
  bytes = g_try_malloc (n_bytes + 1);
  while (bytes != NULL && n > 0 && n_read < n_bytes) {
    n = read (fd, bytes + n_read, n_bytes - n_read);
    if (n < 0 && errno == EINTR)
      n = 1;
    else if (n > 0)
      n_read += (gsize)n;
  }
  if (bytes == NULL)
    errno = ENOMEM;
  if (bytes == NULL || n < 0)
    ks_storage_error_set_errno (error, errno, "Cannot read", path);
  close (fd);
  return bytes != NULL && n >= 0 ? g_bytes_new_take (g_steal_pointer (&bytes), n_read) : NULL;
}

KsSession *
ks_import_file (KsStore *store, const char *path, GError **error)
{
  g_autoptr (GBytes) bytes = NULL;

  g_return_val_if_fail (KS_IS_STORE (store), NULL);
  g_return_val_if_fail (path != NULL, NULL);
  bytes = read_regular (path, error);
  return bytes != NULL ? ks_import_bundle (store, bytes, error) : NULL;
}
