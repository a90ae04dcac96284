/* ks-file-viewer.c - see ks-file-viewer.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-file-viewer.h"

#include "ui/ks-compat.h"
#include "ui/ks-image-viewer.h"
#include "ui/ks-kept-button.h"
#include "ui/ks-kept-file.h"
#include "ui/ks-text-viewer.h"

#define WIDTH_PX 720
#define HEIGHT_PX 640

/* Lives as long as the viewer. */
typedef struct {
  KsImageViewer *viewer; /* this belongs to it */
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

/* Page of the numbers; -1 = the file as a whole: a picture, and a video, of which one frame stands
 * for all. */
static int
get_page (Kept *kept)
{
  return ks_attachment_get_kind (kept->attachment) == KS_ATTACHMENT_PDF
             ? (int)ks_image_viewer_get_page (kept->viewer)
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
  ks_kept_file_present (GTK_WIDGET (kept->viewer), kept->library, kept->chat, kept->attachment,
                        kept->turn, get_page (kept));
}

static void
add_kept (KsImageViewer *viewer, KsLibrary *library, KsChat *chat, KsAttachment *attachment,
          int turn)
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
  g_signal_connect (viewer, "page-changed", G_CALLBACK (page_cb), kept);
  ks_image_viewer_add_to_header (viewer, kept->button);
  update (kept);
}

void
ks_file_viewer_present (GtkWidget *parent, KsLibrary *library, KsChat *chat,
                        KsAttachment *attachment, int turn)
{
  KsAttachmentKind kind = ks_attachment_get_kind (attachment);
  KsImageViewer *viewer = NULL;

  if (kind == KS_ATTACHMENT_TEXT || kind == KS_ATTACHMENT_DOCUMENT) { /* read as words */
    ks_text_viewer_present (parent, library, attachment);
    return;
  }
  viewer = ks_image_viewer_new (library, attachment);
  if (chat != NULL)
    add_kept (viewer, library, chat, attachment, turn);
  ks_dialog_present (
      ks_dialog_new (ks_attachment_get_name (attachment), GTK_WIDGET (viewer), WIDTH_PX, HEIGHT_PX),
      parent);
  gtk_widget_grab_focus (GTK_WIDGET (viewer));
}
