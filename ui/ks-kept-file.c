/* ks-kept-file.c - see ks-kept-file.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-kept-file.h"

#include "ui/ks-compat.h"
#include "ui/ks-kept-dialog.h"
#include "ui/ks-picture-list.h"

#define LIST_WIDTH_PX 400
#define LIST_HEIGHT_PX 440
#define MARGIN_PX 12

/* What the list opens; lives as long as the list. */
typedef struct {
  KsLibrary *library;
  KsChat *chat;
  KsMemoryView *view; /* with this file's pictures only */
} Choice;

static gboolean
is_meant (const KsMemoryPicture *picture, KsAttachment *file, int turn, int page)
{
  return g_strcmp0 (picture->hash, ks_attachment_get_hash (file)) == 0 &&
         (turn < 0 || picture->turn == (guint)turn) && (page < 0 || picture->page == page);
}

static int
find_latest_turn (const KsMemoryView *view, KsAttachment *file, int page)
{
  int turn = -1;

  for (guint i = 0; i < view->n_picture; i++)
    if (is_meant (&view->pictures[i], file, -1, page))
      turn = MAX (turn, (int)view->pictures[i].turn);
  return turn;
}

/* Leaves only the pictures that are meant. (transfer full) */
static KsMemoryView *
choose (const KsMemoryView *view, KsAttachment *file, int turn, int page)
{
  KsMemoryView part = *view;
  g_autoptr (GArray) pictures = g_array_new (FALSE, FALSE, sizeof (KsMemoryPicture));

  if (turn < 0)
    turn = find_latest_turn (view, file, page);
  for (guint i = 0; turn >= 0 && i < view->n_picture; i++)
    if (is_meant (&view->pictures[i], file, turn, page))
      g_array_append_val (pictures, view->pictures[i]); /* texts are borrowed from view */
  part.pictures = (KsMemoryPicture *)pictures->data;
  part.n_picture = pictures->len;
  return ks_memory_view_copy (&part);
}

double
ks_kept_file_get_share (const KsMemoryView *view, KsAttachment *file, int turn, int page)
{
  double kept = 0, n_token = 0;

  g_return_val_if_fail (KS_IS_ATTACHMENT (file), -1);
  if (view == NULL)
    return -1;
  if (turn < 0)
    turn = find_latest_turn (view, file, page);
  for (guint i = 0; turn >= 0 && i < view->n_picture; i++) {
    if (!is_meant (&view->pictures[i], file, turn, page))
      continue;
    kept += ks_memory_view_get_picture_share (view, i) * view->pictures[i].n_token;
    n_token += view->pictures[i].n_token;
  }
  return n_token > 0 ? kept / n_token : -1;
}

static void
choice_free (gpointer data)
{
  Choice *choice = data;

  g_object_unref (choice->library);
  g_object_unref (choice->chat);
  ks_memory_view_free (choice->view);
  g_free (choice);
}

static void
open_cb (KsPictureList *list, guint i, Choice *choice)
{
  ks_kept_dialog_present (GTK_WIDGET (list), choice->library, choice->chat,
                          &choice->view->pictures[i]);
}

static void
present_list (GtkWidget *parent, KsLibrary *library, KsChat *chat, KsAttachment *file,
              KsMemoryView *take_view)
{
  GtkWidget *list = g_object_new (KS_TYPE_PICTURE_LIST, NULL), *scroller = NULL;
  Choice *choice = g_new0 (Choice, 1);

  choice->library = g_object_ref (library);
  choice->chat = g_object_ref (chat);
  choice->view = take_view;
  ks_picture_list_set_view (KS_PICTURE_LIST (list), take_view);
  g_object_set_data_full (G_OBJECT (list), "ks-choice", choice, choice_free);
  g_signal_connect (list, "open", G_CALLBACK (open_cb), choice);
  gtk_widget_set_margin_start (list, MARGIN_PX);
  gtk_widget_set_margin_end (list, MARGIN_PX);
  gtk_widget_set_margin_top (list, MARGIN_PX);
  gtk_widget_set_margin_bottom (list, MARGIN_PX);
  scroller = gtk_scrolled_window_new ();
  gtk_scrolled_window_set_policy (GTK_SCROLLED_WINDOW (scroller), GTK_POLICY_NEVER,
                                  GTK_POLICY_AUTOMATIC);
  gtk_widget_set_vexpand (scroller, TRUE);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (scroller), list);
  ks_dialog_present (ks_dialog_new (ks_attachment_get_name (file),
                                    ks_page_new (adw_header_bar_new (), scroller, NULL),
                                    LIST_WIDTH_PX, LIST_HEIGHT_PX),
                     parent);
}

void
ks_kept_file_present (GtkWidget *parent, KsLibrary *library, KsChat *chat, KsAttachment *file,
                      int turn, int page)
{
  g_autoptr (KsMemoryView) view = ks_chat_dup_memory (chat), part = NULL;

  g_return_if_fail (KS_IS_ATTACHMENT (file));
  if (view == NULL)
    return;
  part = choose (view, file, turn, page);
  if (part->n_picture == 1)
    ks_kept_dialog_present (parent, library, chat, &part->pictures[0]);
  else if (part->n_picture > 1)
    present_list (parent, library, chat, file, g_steal_pointer (&part));
}
