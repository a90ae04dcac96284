/* ks-library-frames.c - the frames of a video that would go to a model, for display.
 * Threads: main; decoding runs in a worker that another thread waits for. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-library-internal.h"

#include "media/ks-media.h"

typedef struct {
  char *path, *name;
  KsMediaSampling sampling;
  guint max_side_px;
} Load;

static void
load_free (gpointer data)
{
  Load *load = data;

  g_free (load->path);
  g_free (load->name);
  g_free (load);
}

void
ks_video_frame_free (KsVideoFrame *frame)
{
  if (frame == NULL)
    return;
  g_clear_pointer (&frame->pixels, ks_pixels_unref);
  g_free (frame);
}

void
ks_video_frames_free (KsVideoFrames *frames)
{
  if (frames == NULL)
    return;
  g_ptr_array_unref (frames->frames);
  g_free (frames->warning);
  g_free (frames);
}

static void
load_frames (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  Load *load = data;
  KsMediaOptions options = {.name = load->name, .max_side_px = load->max_side_px};
  g_autoptr (KsMediaResult) facts = NULL;
  GError *error = NULL;
  g_autoptr (GPtrArray) loaded =
      ks_media_load_frames (load->path, &load->sampling, &options, &facts, cancellable, &error);
  KsVideoFrames *frames;

  if (loaded == NULL) {
    g_task_return_error (task, error);
    return;
  }
  frames = g_new0 (KsVideoFrames, 1);
  frames->has_sound = facts->has_sound;
  frames->warning = g_steal_pointer (&facts->warning);
  frames->frames = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_video_frame_free);
  for (guint i = 0; i < loaded->len; i++) {
    KsMediaFrame *from = g_ptr_array_index (loaded, i);
    KsVideoFrame *frame = g_new0 (KsVideoFrame, 1);

    frame->pixels = g_steal_pointer (&from->pixels);
    frame->time_us = from->time_us;
    g_ptr_array_add (frames->frames, frame);
  }
  g_task_return_pointer (task, frames, (GDestroyNotify)ks_video_frames_free);
}

void
ks_library_load_frames_async (KsLibrary *self, KsAttachment *attachment,
                              const KsMediaSampling *sampling, guint max_side_px,
                              GCancellable *cancellable, GAsyncReadyCallback callback,
                              gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  g_autoptr (KsBlobStore) blobs = NULL;
  Load *load;

  g_return_if_fail (KS_IS_LIBRARY (self) && KS_IS_ATTACHMENT (attachment) && sampling != NULL);
  task = g_task_new (self, cancellable, callback, user_data);
  blobs = ks_session_service_ref_blobs (self->service);
  if (blobs == NULL) {
    g_task_return_new_error (task, KS_MEDIA_ERROR, KS_MEDIA_ERROR_FAILED,
                             "%s cannot be read: the sessions' folder is not open",
                             ks_attachment_get_name (attachment));
    return;
  }
  load = g_new0 (Load, 1);
  load->path = ks_blob_store_get_path (blobs, ks_attachment_get_hash (attachment));
  load->name = g_strdup (ks_attachment_get_name (attachment));
  load->sampling = *sampling;
  load->max_side_px = max_side_px;
  g_task_set_task_data (task, load, load_free);
  g_task_run_in_thread (task, load_frames);
}

KsVideoFrames *
ks_library_load_frames_finish (KsLibrary *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (g_task_is_valid (result, self), NULL);
  return g_task_propagate_pointer (G_TASK (result), error);
}
