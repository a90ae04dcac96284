/* ks-picture-list.c - see ks-picture-list.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-picture-list.h"

#include "ui/ks-kept-row.h"
#include "ui/ks-memory-words.h"

#include <glib/gi18n.h>

typedef struct {
  GtkWidget *button;
  KsKeptRow kept;
} PictureRow;

struct _KsPictureList {
  AdwBin parent_instance;
  GtkWidget *box;
  GArray *rows; /* of PictureRow, as many as were ever needed; the first one is that of the older */
  guint n_older; /* pictures without a row of their own */
};

enum { OPEN, N_SIGNAL };

static guint signals[N_SIGNAL];

G_DEFINE_FINAL_TYPE (KsPictureList, ks_picture_list, ADW_TYPE_BIN)

char *
ks_picture_list_dup_name (const KsMemoryPicture *picture)
{
  g_autofree char *valid = g_utf8_make_valid (picture->name != NULL ? picture->name : "", -1);

  if (picture->frame >= 0 && picture->n_frame > 1)
    /* Translators: of a model that takes frames in pairs: "cat.mp4, frames 3 and 4". */
    return g_strdup_printf (_ ("%s, frames %d and %d"), valid, picture->frame + 1,
                            picture->frame + (int)picture->n_frame);
  if (picture->frame >= 0)
    /* Translators: a video's file, then which of the frames that the model saw: "cat.mp4, frame 3".
     */
    return g_strdup_printf (_ ("%s, frame %d"), valid, picture->frame + 1);
  if (picture->page < 0)
    return g_steal_pointer (&valid);
  /* Translators: a file's name, then its page: "report.pdf, page 3". */
  return g_strdup_printf (_ ("%s, page %d"), valid, picture->page + 1);
}

static void
clicked_cb (GtkButton *button, KsPictureList *self)
{
  guint row = GPOINTER_TO_UINT (g_object_get_data (G_OBJECT (button), "ks-row"));

  g_signal_emit (self, signals[OPEN], 0, self->n_older + row - 1);
}

static PictureRow
row_new (KsPictureList *self, guint i)
{
  PictureRow row = {gtk_button_new (), ks_kept_row_new (PANGO_ELLIPSIZE_MIDDLE)};

  gtk_button_set_child (GTK_BUTTON (row.button), row.kept.box);
  gtk_widget_add_css_class (row.button, "flat");
  gtk_widget_add_css_class (row.button, "ks-picture-row");
  gtk_widget_set_sensitive (row.button, i > 0); /* several pictures cannot be opened */
  g_object_set_data (G_OBJECT (row.button), "ks-row", GUINT_TO_POINTER (i));
  g_signal_connect (row.button, "clicked", G_CALLBACK (clicked_cb), self);
  gtk_box_append (GTK_BOX (self->box), row.button);
  return row;
}

static PictureRow *
get_row (KsPictureList *self, guint i)
{
  while (self->rows->len <= i) {
    PictureRow row = row_new (self, self->rows->len);

    g_array_append_val (self->rows, row);
  }
  return &g_array_index (self->rows, PictureRow, i);
}

static void
fill_row (PictureRow *row, const char *title, double share, gboolean pinned)
{
  g_autofree char *words = ks_words_share (share);
  g_autofree char *sentence = ks_words_kept_row (title, words, pinned);

  if (g_strcmp0 (gtk_label_get_text (row->kept.title), title) != 0) {
    gtk_label_set_text (row->kept.title, title);
    gtk_widget_set_tooltip_text (row->button, title);
  }
  gtk_widget_set_visible (row->kept.pin, pinned);
  gtk_inscription_set_text (row->kept.share, words);
  gtk_level_bar_set_value (row->kept.bar, CLAMP (share, 0, 1));
  gtk_accessible_update_property (GTK_ACCESSIBLE (row->button), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  sentence, -1);
}

static void
fill_older (KsPictureList *self, const KsMemoryView *view)
{
  g_autofree char *count = ks_words_count (self->n_older);
  g_autofree char *title = g_strdup_printf (
      ngettext ("%s earlier picture", "%s earlier pictures", self->n_older), count);
  double kept = 0, n_token = 0;
  gboolean pinned = FALSE;

  for (guint i = 0; i < self->n_older; i++) {
    pinned = pinned || view->pictures[i].pinned;
    kept += ks_memory_view_get_picture_share (view, i) * view->pictures[i].n_token;
    n_token += view->pictures[i].n_token;
  }
  fill_row (get_row (self, 0), title, n_token > 0 ? kept / n_token : 0, pinned);
}

void
ks_picture_list_set_view (KsPictureList *self, const KsMemoryView *view)
{
  guint n = view == NULL ? 0 : view->n_picture, n_row = 0;

  g_return_if_fail (KS_IS_PICTURE_LIST (self));
  self->n_older = n > KS_PICTURE_LIST_N_SINGLE ? n - KS_PICTURE_LIST_N_SINGLE : 0;
  if (self->n_older > 0)
    fill_older (self, view);
  for (guint i = self->n_older; i < n; i++) {
    g_autofree char *title = ks_picture_list_dup_name (&view->pictures[i]);

    fill_row (get_row (self, i - self->n_older + 1), title,
              ks_memory_view_get_picture_share (view, i), view->pictures[i].pinned);
  }
  n_row = n - self->n_older;
  for (guint i = 0; i < self->rows->len; i++)
    gtk_widget_set_visible (g_array_index (self->rows, PictureRow, i).button,
                            i == 0 ? self->n_older > 0 : i <= n_row);
  gtk_widget_set_visible (GTK_WIDGET (self), n > 0);
}

static void
ks_picture_list_finalize (GObject *object)
{
  g_array_unref (KS_PICTURE_LIST (object)->rows);
  G_OBJECT_CLASS (ks_picture_list_parent_class)->finalize (object);
}

static void
ks_picture_list_class_init (KsPictureListClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = ks_picture_list_finalize;
  signals[OPEN] = g_signal_new ("open", KS_TYPE_PICTURE_LIST, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                NULL, G_TYPE_NONE, 1, G_TYPE_UINT);
}

static void
ks_picture_list_init (KsPictureList *self)
{
  GtkWidget *heading = gtk_label_new (_ ("Kept by Picture"));

  self->rows = g_array_new (FALSE, FALSE, sizeof (PictureRow));
  self->box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 2);
  gtk_label_set_xalign (GTK_LABEL (heading), 0);
  gtk_widget_add_css_class (heading, "heading");
  gtk_box_append (GTK_BOX (self->box), heading);
  adw_bin_set_child (ADW_BIN (self), self->box);
  gtk_widget_set_visible (GTK_WIDGET (self), FALSE);
}
