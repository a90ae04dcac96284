/* ks-capture.c - see ks-capture.h.
 * Cameras are listed again before a picture is taken, because they come and go; with several of
 * them the first one is taken. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-capture.h"

#include "media/ks-camera.h"
#include "media/ks-screenshot.h"

#define CAMERA_MAX_SIDE_PX 4096

struct _KsCapture {
  GObject parent_instance;
  GCancellable *cancellable; /* of the search for sources */
  gboolean is_there[KS_N_CAPTURE];
};

/* Of a taking: one of them. */
typedef struct {
  char *path;
  KsPixels *pixels;
} Taken;

enum { CHANGED, N_SIGNAL };

static guint signals[N_SIGNAL];

G_DEFINE_FINAL_TYPE (KsCapture, ks_capture, G_TYPE_OBJECT)

static void
taken_free (Taken *taken)
{
  g_free (taken->path);
  g_clear_pointer (&taken->pixels, ks_pixels_unref);
  g_free (taken);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (Taken, taken_free)

static void
ks_capture_dispose (GObject *object)
{
  g_cancellable_cancel (KS_CAPTURE (object)->cancellable);
  G_OBJECT_CLASS (ks_capture_parent_class)->dispose (object);
}

static void
ks_capture_finalize (GObject *object)
{
  g_object_unref (KS_CAPTURE (object)->cancellable);
  G_OBJECT_CLASS (ks_capture_parent_class)->finalize (object);
}

static void
ks_capture_class_init (KsCaptureClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = ks_capture_dispose;
  G_OBJECT_CLASS (klass)->finalize = ks_capture_finalize;
  signals[CHANGED] = g_signal_new ("changed", KS_TYPE_CAPTURE, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                   NULL, G_TYPE_NONE, 0);
}

static void
ks_capture_init (KsCapture *self)
{
  self->cancellable = g_cancellable_new ();
}

/* --- looking for sources --- */

static void
find (KsCapture *self, KsCaptureSource source, gboolean is_there)
{
  if (self->is_there[source] == is_there)
    return;
  self->is_there[source] = is_there;
  g_signal_emit (self, signals[CHANGED], 0);
}

/* A weak reference: the search is no reason to live on. */
static void
checked_cb (GObject *source, GAsyncResult *result, gpointer data)
{
  GWeakRef *weak = data;
  g_autoptr (KsCapture) self = g_weak_ref_get (weak);
  gboolean is_there = ks_screenshot_check_finish (result);

  if (self != NULL)
    find (self, KS_CAPTURE_SCREEN, is_there);
  g_weak_ref_clear (weak);
  g_free (weak);
}

static void
list_cameras (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  g_autoptr (GPtrArray) cameras = ks_camera_list (NULL, NULL);

  g_task_return_boolean (task, cameras->len > 0);
}

static void
listed_cb (GObject *source, GAsyncResult *result, gpointer data)
{
  GWeakRef *weak = data;
  g_autoptr (KsCapture) self = g_weak_ref_get (weak);
  gboolean is_there = g_task_propagate_boolean (G_TASK (result), NULL);

  if (self != NULL)
    find (self, KS_CAPTURE_CAMERA, is_there);
  g_weak_ref_clear (weak);
  g_free (weak);
}

static GWeakRef *
weak_new (KsCapture *self)
{
  GWeakRef *weak = g_new0 (GWeakRef, 1);

  g_weak_ref_init (weak, self);
  return weak;
}

KsCapture *
ks_capture_new (void)
{
  KsCapture *self = g_object_new (KS_TYPE_CAPTURE, NULL);
  g_autoptr (GTask) task = g_task_new (NULL, self->cancellable, listed_cb, weak_new (self));

  ks_screenshot_check_async (NULL, self->cancellable, checked_cb, weak_new (self));
  g_task_run_in_thread (task, list_cameras);
  return self;
}

gboolean
ks_capture_has (KsCapture *self, KsCaptureSource source)
{
  g_return_val_if_fail (KS_IS_CAPTURE (self) && source < KS_N_CAPTURE, FALSE);
  return self->is_there[source];
}

/* --- taking --- */

/* That somebody gave up is told in one way. */
static void
return_error (GTask *task, GError *take_error)
{
  if (g_error_matches (take_error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_CANCELLED)) {
    take_error->domain = G_IO_ERROR;
    take_error->code = G_IO_ERROR_CANCELLED;
  }
  g_task_return_error (task, take_error);
}

static void
shot_cb (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr (GTask) task = data;
  GError *error = NULL;
  Taken *taken = g_new0 (Taken, 1);

  taken->path = ks_screenshot_take_finish (result, &error);
  if (taken->path != NULL) {
    g_task_return_pointer (task, taken, (GDestroyNotify)taken_free);
    return;
  }
  taken_free (taken);
  return_error (task, error);
}

static void
take_from_camera (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  KsMediaOptions options = {.max_side_px = CAMERA_MAX_SIDE_PX};
  g_autoptr (GPtrArray) cameras = ks_camera_list (NULL, NULL);
  g_autoptr (Taken) taken = g_new0 (Taken, 1);
  GError *error = NULL;
  const KsCamera *camera = cameras->len > 0 ? g_ptr_array_index (cameras, 0) : NULL;

  if (camera == NULL) {
    g_task_return_new_error (task, KS_MEDIA_ERROR, KS_MEDIA_ERROR_FAILED,
                             "There is no camera any more: plug it in and try again.");
    return;
  }
  options.name = camera->name;
  taken->pixels = ks_camera_capture (camera->path, &options, cancellable, &error);
  if (taken->pixels == NULL)
    return_error (task, error);
  else
    g_task_return_pointer (task, g_steal_pointer (&taken), (GDestroyNotify)taken_free);
}

void
ks_capture_take_async (KsCapture *self, KsCaptureSource source, GCancellable *cancellable,
                       GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;

  g_return_if_fail (KS_IS_CAPTURE (self) && source < KS_N_CAPTURE);
  task = g_task_new (self, cancellable, callback, user_data);
  if (source == KS_CAPTURE_CAMERA)
    g_task_run_in_thread (task, take_from_camera);
  else
    ks_screenshot_take_async (NULL, "", cancellable, shot_cb, g_steal_pointer (&task));
}

gboolean
ks_capture_take_finish (KsCapture *self, GAsyncResult *result, GFile **out_file,
                        KsPixels **out_pixels, GError **error)
{
  g_autoptr (Taken) taken = NULL;

  g_return_val_if_fail (g_task_is_valid (result, self), FALSE);
  taken = g_task_propagate_pointer (G_TASK (result), error);
  if (taken == NULL)
    return FALSE;
  *out_file = taken->path != NULL ? g_file_new_for_path (taken->path) : NULL;
  *out_pixels = g_steal_pointer (&taken->pixels);
  return TRUE;
}
