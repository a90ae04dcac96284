/* ks-library-media.c - pictures for display. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-library-internal.h"

void
ks_library_init_media (KsLibrary *self)
{
}

void
ks_library_clear_media (KsLibrary *self)
{
}

void
ks_library_render_async (KsLibrary *self, KsAttachment *attachment, guint page, guint max_side_px,
                         const char *password, GCancellable *cancellable,
                         GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = g_task_new (self, cancellable, callback, user_data);

  g_task_return_new_error (task, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED, "No pictures yet.");
}

KsPixels *
ks_library_render_finish (KsLibrary *self, GAsyncResult *result, GError **error)
{
  return g_task_propagate_pointer (G_TASK (result), error);
}
