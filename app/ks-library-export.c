/* ks-library-export.c - whole sessions in and out of the program, and deleting everything.
 * Threads: main; store functions run on the writer thread. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-chat-internal.h"

#include "app/ks-error.h"

static KsExportFormat
get_format (KsExportAs format)
{
  switch (format) {
  case KS_EXPORT_AS_JSON:
    return KS_EXPORT_JSON;
  case KS_EXPORT_AS_HTML:
    return KS_EXPORT_HTML;
  default:
    return KS_EXPORT_MARKDOWN;
  }
}

char *
ks_library_make_export_name (KsSession *session, KsExportAs format)
{
  g_return_val_if_fail (KS_IS_SESSION (session), NULL);
  return ks_export_make_name (ks_session_get_title (session), get_format (format));
}

/* --- export --- */

typedef struct {
  gint64 session;
  KsExportFormat format;
} ExportRequest;

static gpointer
export_session (KsStore *store, gpointer data, GError **error)
{
  ExportRequest *request = data;

  return ks_export_session (store, request->session, request->format, error);
}

static void
replaced_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (GTask) task = user_data;
  GError *error = NULL;

  if (g_file_replace_contents_finish (G_FILE (source), result, NULL, &error))
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_error (task, error);
  ks_library_end_write (g_task_get_source_object (task));
}

static void
exported_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (GTask) task = user_data;
  KsLibrary *self = g_task_get_source_object (task);
  GError *error = NULL;
  g_autoptr (GBytes) content = ks_session_service_call_finish (self->service, result, &error);

  if (content == NULL) {
    g_task_return_error (task, error);
    ks_library_end_write (self);
    return;
  }
  /* Written beside the file and renamed over it: what was there stays until all of it is new. */
  g_file_replace_contents_bytes_async (g_task_get_task_data (task), content, NULL, FALSE,
                                       G_FILE_CREATE_PRIVATE | G_FILE_CREATE_REPLACE_DESTINATION,
                                       g_task_get_cancellable (task), replaced_cb,
                                       g_object_ref (task));
}

void
ks_library_export_async (KsLibrary *self, KsSession *session, KsExportAs format, GFile *file,
                         GCancellable *cancellable, GAsyncReadyCallback callback,
                         gpointer user_data)
{
  ExportRequest *request;
  GTask *task;

  g_return_if_fail (KS_IS_LIBRARY (self) && KS_IS_SESSION (session) && G_IS_FILE (file));
  task = g_task_new (self, cancellable, callback, user_data);
  g_task_set_task_data (task, g_object_ref (file), g_object_unref);
  request = g_new0 (ExportRequest, 1);
  request->session = ks_session_get_id (session);
  request->format = get_format (format);
  ks_library_begin_write (self);
  ks_session_service_call_async (self->service, export_session, request, g_free,
                                 (GDestroyNotify)g_bytes_unref, cancellable, exported_cb, task);
}

gboolean
ks_library_export_finish (KsLibrary *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (g_task_is_valid (result, self), FALSE);
  return g_task_propagate_boolean (G_TASK (result), error);
}

/* --- import --- */

static gpointer
import_session (KsStore *store, gpointer data, GError **error)
{
  return ks_import_file (store, data, error);
}

static void
imported_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (GTask) task = user_data;
  KsLibrary *self = g_task_get_source_object (task);
  GError *error = NULL;
  g_autoptr (KsSession) session = ks_session_service_call_finish (self->service, result, &error);

  if (session != NULL) {
    KsSession *adopted = ks_library_adopt_session (self, session);

    ks_library_show_session (self, adopted);
    g_task_return_pointer (task, g_object_ref (adopted), g_object_unref);
  } else {
    g_task_return_error (task, error);
  }
  ks_library_end_write (self);
}

void
ks_library_import_async (KsLibrary *self, GFile *file, GCancellable *cancellable,
                         GAsyncReadyCallback callback, gpointer user_data)
{
  GTask *task;
  char *path;

  g_return_if_fail (KS_IS_LIBRARY (self) && G_IS_FILE (file));
  task = g_task_new (self, cancellable, callback, user_data);
  path = g_file_get_path (file);
  if (path == NULL) {
    g_task_return_new_error (task, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
                             "Only files on this computer can be imported: copy it here first.");
    g_object_unref (task);
    return;
  }
  ks_library_begin_write (self);
  ks_session_service_call_async (self->service, import_session, path, g_free, g_object_unref,
                                 cancellable, imported_cb, task);
}

KsSession *
ks_library_import_finish (KsLibrary *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (g_task_is_valid (result, self), NULL);
  return g_task_propagate_pointer (G_TASK (result), error);
}

/* --- everything away --- */

static gpointer
delete_all (KsStore *store, gpointer data, GError **error)
{
  return GINT_TO_POINTER (ks_store_delete_all (store, error));
}

static void
deleted_all_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (GTask) task = user_data;
  KsLibrary *self = g_task_get_source_object (task);
  GError *error = NULL;

  (void)ks_session_service_call_finish (self->service, result, &error);
  if (error != NULL) {
    g_task_return_error (task, error);
  } else {
    ks_library_forget_sessions (self);
    ks_library_forget_media (self);
    g_task_return_boolean (task, TRUE);
  }
  ks_library_end_write (self);
}

void
ks_library_delete_all_async (KsLibrary *self, GAsyncReadyCallback callback, gpointer user_data)
{
  GTask *task;

  g_return_if_fail (KS_IS_LIBRARY (self));
  task = g_task_new (self, NULL, callback, user_data);
  if (self->active != NULL || !g_queue_is_empty (self->waiting) || self->closing) {
    g_task_return_new_error (task, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                             "An answer is being written: stop it, then delete.");
    g_object_unref (task);
    return;
  }
  ks_library_begin_write (self);
  ks_session_service_call_async (self->service, delete_all, NULL, NULL, NULL, NULL, deleted_all_cb,
                                 task);
}

gboolean
ks_library_delete_all_finish (KsLibrary *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (g_task_is_valid (result, self), FALSE);
  return g_task_propagate_boolean (G_TASK (result), error);
}
