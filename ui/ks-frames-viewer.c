/* ks-frames-viewer.c - see ks-frames-viewer.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-frames-viewer.h"

#include "app/ks-reading.h"
#include "ui/ks-error-text.h"
#include "ui/ks-frames-preview.h"

#define FRAME_SIDE_PX 264 /* sharp on screens of twice the resolution */

/* The call for the frames: the viewer may be gone when it ends. */
typedef struct {
  GWeakRef preview;
  GCancellable *cancellable; /* of the viewer */
} Asking;

static void
asking_free (Asking *asking)
{
  g_weak_ref_clear (&asking->preview);
  g_object_unref (asking->cancellable);
  g_free (asking);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (Asking, asking_free)

static void
show_frames (KsFramesPreview *preview, const KsVideoFrames *frames)
{
  guint n = frames->frames->len;
  g_autofree KsFramesEntry *entries = g_new0 (KsFramesEntry, MAX (n, 1));

  for (guint i = 0; i < n; i++) {
    KsVideoFrame *frame = g_ptr_array_index (frames->frames, i);

    entries[i] = (KsFramesEntry){frame->pixels, frame->time_us};
  }
  ks_frames_preview_set_frames (preview, entries, n, 0, 0);
}

static void
loaded_cb (GObject *library, GAsyncResult *result, gpointer data)
{
  g_autoptr (Asking) asking = data;
  g_autoptr (KsFramesPreview) preview = g_weak_ref_get (&asking->preview);
  g_autoptr (GError) error = NULL;
  g_autoptr (KsVideoFrames) frames =
      ks_library_load_frames_finish (KS_LIBRARY (library), result, &error);

  if (preview == NULL || g_cancellable_is_cancelled (asking->cancellable))
    return;
  ks_frames_preview_set_busy (preview, FALSE);
  if (frames == NULL) {
    g_autofree char *sentence = ks_error_text_dup (error);

    ks_frames_preview_set_problem (preview, sentence);
    return;
  }
  ks_frames_preview_set_has_sound (preview, frames->has_sound);
  ks_frames_preview_set_problem (preview, frames->warning);
  show_frames (preview, frames);
}

gboolean
ks_frames_viewer_can_show (KsAttachment *attachment)
{
  g_autoptr (KsReading) reading = NULL;

  g_return_val_if_fail (KS_IS_ATTACHMENT (attachment), FALSE);
  reading = ks_reading_parse (ks_attachment_get_reading (attachment));
  return ks_attachment_get_kind (attachment) == KS_ATTACHMENT_VIDEO && reading->has_frames;
}

GtkWidget *
ks_frames_viewer_new (KsLibrary *library, KsAttachment *attachment, gboolean in_pairs)
{
  g_autoptr (KsReading) reading = NULL;
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();
  GtkWidget *preview = ks_frames_preview_new ();
  Asking *asking = g_new0 (Asking, 1);

  reading = ks_reading_parse (ks_attachment_get_reading (attachment));
  g_weak_ref_init (&asking->preview, preview);
  asking->cancellable = g_object_ref (cancellable);
  g_signal_connect_object (preview, "unrealize", G_CALLBACK (g_cancellable_cancel), cancellable,
                           G_CONNECT_SWAPPED);
  g_object_set_data_full (G_OBJECT (preview), "ks-cancellable", g_object_ref (cancellable),
                          g_object_unref);
  ks_frames_preview_hide_choice (KS_FRAMES_PREVIEW (preview));
  ks_frames_preview_set_in_pairs (KS_FRAMES_PREVIEW (preview), in_pairs);
  ks_frames_preview_set_busy (KS_FRAMES_PREVIEW (preview), TRUE);
  ks_library_load_frames_async (library, attachment, &reading->sampling, FRAME_SIDE_PX, cancellable,
                                loaded_cb, asking);
  return preview;
}
