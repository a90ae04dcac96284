/* ks-video-dialog.c - see ks-video-dialog.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-video-dialog.h"

#include "ui/ks-compat.h"
#include "ui/ks-error-text.h"
#include "ui/ks-frames-preview.h"

#include <glib/gi18n.h>

#define FRAME_SIDE_PX 264 /* sharp on screens of twice the resolution */
#define WIDTH_PX 560
#define HEIGHT_PX 600
#define DEFAULT_INTERVAL_MS 1000

/* Lives as long as the preview. */
typedef struct {
  KsFramesPreview *preview; /* this belongs to it */
  KsChat *chat;
  KsLibrary *library;
  KsPendingAttachment *attachment;
  GCancellable *cancellable; /* of the frames that are being taken; NULL = none */
  KsVideoFrames *frames;     /* shown; NULL = none yet */
} Dialog;

/* One request for frames. */
typedef struct {
  KsFramesPreview *preview; /* strong */
  GCancellable *cancellable;
} Request;

static void
request_free (Request *request)
{
  g_object_unref (request->preview);
  g_object_unref (request->cancellable);
  g_free (request);
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC (Request, request_free)

static void
cancel (Dialog *self)
{
  if (self->cancellable != NULL)
    g_cancellable_cancel (self->cancellable);
  g_clear_object (&self->cancellable);
}

static void
dialog_free (gpointer data)
{
  Dialog *self = data;

  cancel (self);
  ks_video_frames_free (self->frames);
  g_object_unref (self->chat);
  g_object_unref (self->library);
  g_object_unref (self->attachment);
  g_free (self);
}

/* Tokens that memory keeps on average over its streams; 0 = not known. */
static guint64
get_n_kept (Dialog *self)
{
  g_autoptr (KsMemoryView) memory = ks_library_dup_memory (self->library);
  guint64 n_stream = memory == NULL ? 0 : (guint64)memory->n_layer * memory->n_kv_head;

  return n_stream == 0 ? 0 : memory->n_keep / n_stream;
}

static void
show_frames (Dialog *self)
{
  guint n = self->frames == NULL ? 0 : self->frames->frames->len;
  guint n_picture = ks_pending_attachment_get_n_pictures (self->attachment);
  g_autofree KsFramesEntry *entries = g_new0 (KsFramesEntry, MAX (n, 1));

  for (guint i = 0; i < n; i++) {
    KsVideoFrame *frame = g_ptr_array_index (self->frames->frames, i);

    entries[i] = (KsFramesEntry){frame->pixels, frame->time_us};
  }
  ks_frames_preview_set_in_pairs (self->preview,
                                  n_picture > 0 && n_picture == (n + 1) / 2 && n > 1);
  ks_frames_preview_set_frames (self->preview, entries, n,
                                ks_pending_attachment_get_n_tokens (self->attachment),
                                get_n_kept (self));
}

static void
loaded_cb (GObject *library, GAsyncResult *result, gpointer data)
{
  g_autoptr (Request) request = data;
  Dialog *self = g_object_get_data (G_OBJECT (request->preview), "ks-video");
  g_autoptr (GError) error = NULL;
  KsVideoFrames *frames = ks_library_load_frames_finish (KS_LIBRARY (library), result, &error);
  g_autofree char *sentence = frames == NULL ? ks_error_text_dup (error) : NULL;

  if (self == NULL || self->cancellable != request->cancellable) {
    ks_video_frames_free (frames); /* others were asked for since, or it closed */
    return;
  }
  g_clear_object (&self->cancellable);
  ks_video_frames_free (self->frames);
  self->frames = frames;
  ks_frames_preview_set_busy (self->preview, FALSE);
  ks_frames_preview_set_has_sound (self->preview, frames != NULL && frames->has_sound);
  ks_frames_preview_set_problem (self->preview, frames == NULL ? sentence : frames->warning);
  show_frames (self);
}

static void
load (Dialog *self, const KsMediaSampling *sampling)
{
  KsAttachment *stored = ks_pending_attachment_get_attachment (self->attachment);
  Request *request = NULL;

  if (stored == NULL)
    return;
  cancel (self);
  self->cancellable = g_cancellable_new ();
  request = g_new0 (Request, 1);
  request->preview = g_object_ref (self->preview);
  request->cancellable = g_object_ref (self->cancellable);
  ks_frames_preview_set_busy (self->preview, TRUE);
  ks_library_load_frames_async (self->library, stored, sampling, FRAME_SIDE_PX, self->cancellable,
                                loaded_cb, request);
}

/* How it is read now; a video that was never chosen for is sampled as the settings say. */
static KsMediaSampling
get_sampling (Dialog *self)
{
  g_autoptr (KsReading) reading = ks_pending_attachment_dup_reading (self->attachment);
  KsMediaSampling sampling = {
      .mode = KS_MEDIA_SAMPLE_COUNT,
      .n_frames = ks_settings_get_video_frames (ks_library_get_settings (self->library))};

  return reading->has_frames ? reading->sampling : sampling;
}

static void
chosen_cb (KsFramesPreview *preview, Dialog *self)
{
  static const KsMediaSamplingMode modes[KS_N_FRAMES_MODE] = {
      [KS_FRAMES_COUNT] = KS_MEDIA_SAMPLE_COUNT,
      [KS_FRAMES_INTERVAL] = KS_MEDIA_SAMPLE_INTERVAL,
      [KS_FRAMES_SCENES] = KS_MEDIA_SAMPLE_SCENES};
  g_autoptr (KsReading) reading = ks_pending_attachment_dup_reading (self->attachment);
  KsFramesChoice choice;

  ks_frames_preview_get_choice (preview, &choice);
  reading->has_frames = TRUE;
  reading->n_frames = 0;
  reading->sampling = (KsMediaSampling){.mode = modes[choice.mode],
                                        .n_frames = choice.n_frame,
                                        .interval_us = (gint64)choice.interval_ms * 1000};
  load (self, &reading->sampling); /* before the attachment is read again and has none meanwhile */
  ks_chat_set_reading (self->chat, self->attachment, reading);
}

static void
show_choice (Dialog *self, const KsMediaSampling *sampling)
{
  KsFramesChoice choice = {.mode = sampling->mode == KS_MEDIA_SAMPLE_INTERVAL ? KS_FRAMES_INTERVAL
                                   : sampling->mode == KS_MEDIA_SAMPLE_SCENES ? KS_FRAMES_SCENES
                                                                              : KS_FRAMES_COUNT,
                           .n_frame = sampling->n_frames,
                           .interval_ms = sampling->interval_us > 0
                                              ? (guint)(sampling->interval_us / 1000)
                                              : DEFAULT_INTERVAL_MS};

  ks_frames_preview_set_choice (self->preview, &choice);
}

static void
cost_cb (KsPendingAttachment *attachment, GParamSpec *pspec, KsFramesPreview *preview)
{
  Dialog *self = g_object_get_data (G_OBJECT (preview), "ks-video");

  if (self != NULL && self->cancellable == NULL)
    show_frames (self);
}

GtkWidget *
ks_video_dialog_present (GtkWidget *parent, KsChat *chat, KsLibrary *library,
                         KsPendingAttachment *attachment)
{
  Dialog *self = g_new0 (Dialog, 1);
  GtkWidget *preview = ks_frames_preview_new ();
  /* Translators: %s is the name of a video. */
  g_autofree char *title =
      g_strdup_printf (_ ("Frames of %s"), ks_pending_attachment_get_name (attachment));
  GtkWidget *dialog = ks_dialog_new (title, ks_page_new (adw_header_bar_new (), preview, NULL),
                                     WIDTH_PX, HEIGHT_PX);
  KsMediaSampling sampling;

  self->preview = KS_FRAMES_PREVIEW (preview);
  self->chat = g_object_ref (chat);
  self->library = g_object_ref (library);
  self->attachment = g_object_ref (attachment);
  g_object_set_data_full (G_OBJECT (preview), "ks-video", self, dialog_free);
  sampling = get_sampling (self);
  show_choice (self, &sampling);
  g_signal_connect (preview, "chosen", G_CALLBACK (chosen_cb), self);
  g_signal_connect_object (attachment, "notify::n-tokens", G_CALLBACK (cost_cb), preview,
                           G_CONNECT_DEFAULT);
  load (self, &sampling);
  ks_dialog_present (dialog, parent);
  return dialog;
}
