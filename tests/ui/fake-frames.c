/* fake-frames.c - frames of a video, played by the test: black ones a second apart, with sound.
 * Takes the place of app/'s own when it is linked first. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-library.h"

void
ks_video_frame_free (KsVideoFrame *frame)
{
  ks_pixels_unref (frame->pixels);
  g_free (frame);
}

void
ks_video_frames_free (KsVideoFrames *frames)
{
  if (frames != NULL)
    g_ptr_array_unref (frames->frames);
  g_free (frames);
}

void
ks_library_load_frames_async (KsLibrary *self, KsAttachment *attachment,
                              const KsMediaSampling *sampling, guint max_side_px,
                              GCancellable *cancellable, GAsyncReadyCallback callback,
                              gpointer user_data)
{
  g_autoptr (GTask) task = g_task_new (self, cancellable, callback, user_data);
  g_autoptr (GBytes) bytes = g_bytes_new_take (g_malloc0 (4 * 64 * 36), 4 * 64 * 36);
  KsVideoFrames *frames = g_new0 (KsVideoFrames, 1);

  frames->has_sound = TRUE;
  frames->frames = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_video_frame_free);
  for (guint i = 0; i < sampling->n_frames; i++) {
    KsVideoFrame *frame = g_new0 (KsVideoFrame, 1);

    frame->pixels = ks_pixels_new (64, 36, bytes);
    frame->time_us = (gint64)i * G_USEC_PER_SEC;
    g_ptr_array_add (frames->frames, frame);
  }
  g_task_return_pointer (task, frames, (GDestroyNotify)ks_video_frames_free);
}

KsVideoFrames *
ks_library_load_frames_finish (KsLibrary *self, GAsyncResult *result, GError **error)
{
  return g_task_propagate_pointer (G_TASK (result), error);
}
