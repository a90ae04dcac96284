/* fake-capture.c - see fake-capture.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/fake-capture.h"

struct _KsCapture {
  GObject parent_instance;
  gboolean is_there[KS_N_CAPTURE];
  KsCaptureSource asked;
  GTask *task;
  GFile *file;
  KsPixels *pixels;
};

G_DEFINE_FINAL_TYPE (KsCapture, ks_capture, G_TYPE_OBJECT)

static void
ks_capture_finalize (GObject *object)
{
  KsCapture *self = KS_CAPTURE (object);

  g_assert_null (self->task); /* every picture was answered */
  g_clear_object (&self->file);
  g_clear_pointer (&self->pixels, ks_pixels_unref);
  G_OBJECT_CLASS (ks_capture_parent_class)->finalize (object);
}

static void
ks_capture_class_init (KsCaptureClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = ks_capture_finalize;
  g_signal_new ("changed", KS_TYPE_CAPTURE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
}

static void
ks_capture_init (KsCapture *self)
{
  self->asked = KS_N_CAPTURE;
}

KsCapture *
ks_capture_new (void)
{
  return g_object_new (KS_TYPE_CAPTURE, NULL);
}

gboolean
ks_capture_has (KsCapture *self, KsCaptureSource source)
{
  return self->is_there[source];
}

void
ks_capture_take_async (KsCapture *self, KsCaptureSource source, GCancellable *cancellable,
                       GAsyncReadyCallback callback, gpointer user_data)
{
  g_assert_null (self->task); /* one at a time */
  self->asked = source;
  self->task = g_task_new (self, cancellable, callback, user_data);
}

gboolean
ks_capture_take_finish (KsCapture *self, GAsyncResult *result, GFile **out_file,
                        KsPixels **out_pixels, GError **error)
{
  if (!g_task_propagate_boolean (G_TASK (result), error))
    return FALSE;
  *out_file = g_steal_pointer (&self->file);
  *out_pixels = g_steal_pointer (&self->pixels);
  return TRUE;
}

void
fake_capture_set (KsCapture *self, KsCaptureSource source, gboolean is_there)
{
  self->is_there[source] = is_there;
  g_signal_emit_by_name (self, "changed");
}

KsCaptureSource
fake_capture_get_asked (KsCapture *self)
{
  return self->asked;
}

void
fake_capture_answer (KsCapture *self, GFile *file, KsPixels *pixels, const GError *error)
{
  g_autoptr (GTask) task = g_steal_pointer (&self->task);

  self->asked = KS_N_CAPTURE;
  if (error != NULL) {
    g_task_return_error (task, g_error_copy (error));
    return;
  }
  self->file = file != NULL ? g_object_ref (file) : NULL;
  self->pixels = pixels != NULL ? ks_pixels_ref (pixels) : NULL;
  g_task_return_boolean (task, TRUE);
}
