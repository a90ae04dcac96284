/* ks-file-viewer.c - see ks-file-viewer.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-file-viewer.h"

#include "ui/ks-compat.h"
#include "ui/ks-frames-viewer.h"
#include "ui/ks-image-viewer.h"
#include "ui/ks-kept-button.h"
#include "ui/ks-kept-file.h"
#include "ui/ks-text-viewer.h"

#define WIDTH_PX 720
#define HEIGHT_PX 640

/* Lives as long as the viewer. */
typedef struct {
  GtkWidget *viewer; /* this belongs to it */
  KsLibrary *library;
  KsChat *chat;
  KsAttachment *attachment;
  GtkWidget *button;
  int turn;
} Kept;

static void
kept_free (gpointer data)
{
  Kept *kept = data;

  g_object_unref (kept->library);
  g_object_unref (kept->chat);
  g_object_unref (kept->attachment);
  g_free (kept);
}

/* Page of the numbers; -1 = the file as a whole: a picture, and all frames of a video. */
static int
get_page (Kept *kept)
{
  return ks_attachment_get_kind (kept->attachment) == KS_ATTACHMENT_PDF
             ? (int)ks_image_viewer_get_page (KS_IMAGE_VIEWER (kept->viewer))
             : -1;
}

static void
update (Kept *kept)
{
  g_autoptr (KsMemoryView) view = ks_chat_dup_memory (kept->chat);

  ks_kept_button_set_share (
      KS_KEPT_BUTTON (kept->button),
      ks_kept_file_get_share (view, kept->attachment, kept->turn, get_page (kept)));
}

static void
page_cb (KsImageViewer *viewer, Kept *kept)
{
  update (kept);
}

static void
clicked_cb (GtkButton *button, Kept *kept)
{
  ks_kept_file_present (kept->viewer, kept->library, kept->chat, kept->attachment, kept->turn,
                        get_page (kept));
}

/* Its button belongs to nobody yet. */
static Kept *
kept_new (GtkWidget *viewer, KsLibrary *library, KsChat *chat, KsAttachment *attachment, int turn)
{
  Kept *kept = g_new0 (Kept, 1);

  kept->viewer = viewer;
  kept->library = g_object_ref (library);
  kept->chat = g_object_ref (chat);
  kept->attachment = g_object_ref (attachment);
  kept->turn = turn;
  kept->button = ks_kept_button_new (ks_attachment_get_name (attachment));
  g_object_set_data_full (G_OBJECT (viewer), "ks-kept", kept, kept_free);
  g_signal_connect (kept->button, "clicked", G_CALLBACK (clicked_cb), kept);
  update (kept);
  return kept;
}

/* As the model that read this turn took them. */
static gboolean
has_pairs (KsChat *chat, KsAttachment *attachment, int turn)
{
  g_autoptr (KsMemoryView) view = chat == NULL ? NULL : ks_chat_dup_memory (chat);

  for (guint i = 0; view != NULL && i < view->n_picture; i++)
    if ((int)view->pictures[i].turn == turn && view->pictures[i].n_frame > 1 &&
        g_strcmp0 (view->pictures[i].hash, ks_attachment_get_hash (attachment)) == 0)
      return TRUE;
  return FALSE;
}

static void
present_frames (GtkWidget *parent, KsLibrary *library, KsChat *chat, KsAttachment *attachment,
                int turn)
{
  GtkWidget *viewer =
      ks_frames_viewer_new (library, attachment, has_pairs (chat, attachment, turn));
  GtkWidget *header = adw_header_bar_new ();

  if (chat != NULL)
    adw_header_bar_pack_start (ADW_HEADER_BAR (header),
                               kept_new (viewer, library, chat, attachment, turn)->button);
  ks_dialog_present (ks_dialog_new (ks_attachment_get_name (attachment),
                                    ks_page_new (header, viewer, NULL), WIDTH_PX, HEIGHT_PX),
                     parent);
}

void
ks_file_viewer_present (GtkWidget *parent, KsLibrary *library, KsChat *chat,
                        KsAttachment *attachment, int turn)
{
  KsAttachmentKind kind = ks_attachment_get_kind (attachment);
  KsImageViewer *viewer = NULL;
  Kept *kept = NULL;

  if (kind == KS_ATTACHMENT_TEXT || kind == KS_ATTACHMENT_DOCUMENT) { /* read as words */
    ks_text_viewer_present (parent, library, attachment);
    return;
  }
  if (ks_frames_viewer_can_show (attachment)) {
    present_frames (parent, library, chat, attachment, turn);
    return;
  }
  viewer = ks_image_viewer_new (library, attachment);
  if (chat != NULL) {
    kept = kept_new (GTK_WIDGET (viewer), library, chat, attachment, turn);
    g_signal_connect (viewer, "page-changed", G_CALLBACK (page_cb), kept);
    ks_image_viewer_add_to_header (viewer, kept->button);
  }
  ks_dialog_present (
      ks_dialog_new (ks_attachment_get_name (attachment), GTK_WIDGET (viewer), WIDTH_PX, HEIGHT_PX),
      parent);
  gtk_widget_grab_focus (GTK_WIDGET (viewer));
}
