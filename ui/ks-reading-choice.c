/* ks-reading-choice.c - see ks-reading-choice.h.
 * Which pages of a PDF have no text is found in its text, which the library reads once. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-reading-choice.h"

#include "app/ks-document-parts.h"
#include "ui/ks-page-choice.h"

#include <glib/gi18n.h>

#define WIDTH_PX 300

struct _KsReadingChoice {
  AdwBin parent_instance;
  KsChat *chat;
  KsLibrary *library;
  KsPendingAttachment *attachment;
  KsPageChoice *pages;  /* NULL: no PDF */
  GtkSwitch *pictures;  /* NULL: no document */
  GtkSwitch *recognise; /* NULL: a document */
  GArray *blank;        /* guint, pages without text; NULL: not known yet */
  GCancellable *cancellable;
  gboolean is_updating; /* what changes is no wish of the user */
};

G_DEFINE_FINAL_TYPE (KsReadingChoice, ks_reading_choice, ADW_TYPE_BIN)

static gboolean
is_kind (KsPendingAttachment *attachment, KsAttachmentKind kind)
{
  return ks_pending_attachment_get_kind (attachment) == kind;
}

gboolean
ks_reading_choice_has_any (KsPendingAttachment *attachment)
{
  return is_kind (attachment, KS_ATTACHMENT_PDF) || is_kind (attachment, KS_ATTACHMENT_IMAGE) ||
         is_kind (attachment, KS_ATTACHMENT_DOCUMENT);
}

/* --- showing --- */

static void
show_pages (KsReadingChoice *self, const KsReading *reading)
{
  guint n_page = ks_pending_attachment_get_n_pages (self->attachment);
  g_autofree KsPageFact *facts = g_new0 (KsPageFact, n_page);

  for (guint i = 0; i < n_page; i++) {
    facts[i].has_text = TRUE;
    facts[i].mode = ks_reading_get_page (reading, i);
  }
  for (guint i = 0; self->blank != NULL && i < self->blank->len; i++)
    if (g_array_index (self->blank, guint, i) < n_page)
      facts[g_array_index (self->blank, guint, i)].has_text = reading->ocr;
  ks_page_choice_set_pages (self->pages, facts, n_page);
  ks_page_choice_set_can_see (self->pages, ks_library_can_see (self->library));
}

static void
update (KsReadingChoice *self)
{
  g_autoptr (KsReading) reading = NULL;

  if (self->attachment == NULL || self->is_updating)
    return;
  reading = ks_pending_attachment_dup_reading (self->attachment);
  self->is_updating = TRUE;
  if (self->pages != NULL)
    show_pages (self, reading);
  if (self->pictures != NULL)
    gtk_switch_set_active (self->pictures, !reading->no_pictures);
  if (self->recognise != NULL)
    gtk_switch_set_active (self->recognise, reading->ocr);
  self->is_updating = FALSE;
}

static void
read_cb (GObject *library, GAsyncResult *result, gpointer data)
{
  g_autoptr (KsReadingChoice) self = data;
  g_autofree char *text = ks_library_read_text_finish (KS_LIBRARY (library), result, NULL);

  if (text == NULL || self->attachment == NULL)
    return; /* every page may have text, then */
  self->blank = ks_document_list_blank_pages (text);
  update (self);
}

/* --- choosing --- */

static void
tell (KsReadingChoice *self, const KsReading *reading)
{
  self->is_updating = TRUE; /* what it sets off is known here */
  ks_chat_set_reading (self->chat, self->attachment, reading);
  self->is_updating = FALSE;
}

static void
pages_cb (KsPageChoice *pages, guint first, guint last, int mode, KsReadingChoice *self)
{
  g_autoptr (KsReading) reading = ks_pending_attachment_dup_reading (self->attachment);
  guint n_page = ks_pending_attachment_get_n_pages (self->attachment);

  for (guint page = first; page <= last && page < n_page; page++)
    ks_reading_set_page (reading, n_page, page, ks_page_choice_get_mode (pages, page));
  tell (self, reading);
}

static void
switched_cb (GtkSwitch *widget, GParamSpec *pspec, KsReadingChoice *self)
{
  g_autoptr (KsReading) reading = NULL;

  if (self->is_updating)
    return;
  reading = ks_pending_attachment_dup_reading (self->attachment);
  if (widget == self->pictures)
    reading->no_pictures = !gtk_switch_get_active (widget);
  else
    reading->ocr = gtk_switch_get_active (widget);
  tell (self, reading);
  update (self);
}

/* --- life --- */

static void
ks_reading_choice_dispose (GObject *object)
{
  KsReadingChoice *self = KS_READING_CHOICE (object);

  if (self->cancellable != NULL)
    g_cancellable_cancel (self->cancellable);
  g_clear_object (&self->cancellable);
  g_clear_object (&self->chat);
  g_clear_object (&self->library);
  g_clear_object (&self->attachment);
  g_clear_pointer (&self->blank, g_array_unref);
  G_OBJECT_CLASS (ks_reading_choice_parent_class)->dispose (object);
}

static void
ks_reading_choice_class_init (KsReadingChoiceClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = ks_reading_choice_dispose;
}

static void
ks_reading_choice_init (KsReadingChoice *self)
{
}

/* A switch with its name and what it does before it. */
static GtkSwitch *
add_switch (KsReadingChoice *self, GtkWidget *box, const char *title, const char *subtitle)
{
  GtkWidget *line = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 12);
  GtkWidget *texts = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  GtkWidget *name = gtk_label_new (title), *detail = gtk_label_new (subtitle);
  GtkWidget *toggle = gtk_switch_new ();

  gtk_label_set_xalign (GTK_LABEL (name), 0);
  gtk_label_set_xalign (GTK_LABEL (detail), 0);
  gtk_label_set_wrap (GTK_LABEL (detail), TRUE);
  gtk_label_set_max_width_chars (GTK_LABEL (detail), 34);
  gtk_widget_add_css_class (detail, "caption");
  gtk_widget_add_css_class (detail, "dim-label");
  gtk_widget_set_hexpand (texts, TRUE);
  gtk_widget_set_valign (toggle, GTK_ALIGN_CENTER);
  gtk_accessible_update_property (GTK_ACCESSIBLE (toggle), GTK_ACCESSIBLE_PROPERTY_LABEL, title,
                                  GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, subtitle, -1);
  g_signal_connect (toggle, "notify::active", G_CALLBACK (switched_cb), self);
  gtk_box_append (GTK_BOX (texts), name);
  gtk_box_append (GTK_BOX (texts), detail);
  gtk_box_append (GTK_BOX (line), texts);
  gtk_box_append (GTK_BOX (line), toggle);
  gtk_box_append (GTK_BOX (box), line);
  return GTK_SWITCH (toggle);
}

static void
build (KsReadingChoice *self)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 12);
  KsAttachment *stored = ks_pending_attachment_get_attachment (self->attachment);

  gtk_widget_set_size_request (box, WIDTH_PX, -1);
  self->is_updating = TRUE;
  if (is_kind (self->attachment, KS_ATTACHMENT_PDF)) {
    self->pages = KS_PAGE_CHOICE (ks_page_choice_new ());
    g_signal_connect (self->pages, "chosen", G_CALLBACK (pages_cb), self);
    gtk_box_append (GTK_BOX (box), GTK_WIDGET (self->pages));
  }
  if (is_kind (self->attachment, KS_ATTACHMENT_DOCUMENT))
    self->pictures = add_switch (self, box, _ ("With its pictures"),
                                 _ ("They go to the model where they stand in the text"));
  else
    self->recognise =
        add_switch (self, box, _ ("Read the text in it"),
                    _ ("Recognised by machine (OCR) and marked as that: it may hold errors"));
  self->is_updating = FALSE;
  adw_bin_set_child (ADW_BIN (self), box);
  if (self->pages == NULL || stored == NULL)
    return;
  self->cancellable = g_cancellable_new ();
  ks_library_read_text_async (self->library, stored, self->cancellable, read_cb,
                              g_object_ref (self));
}

GtkWidget *
ks_reading_choice_new (KsChat *chat, KsLibrary *library, KsPendingAttachment *attachment)
{
  KsReadingChoice *self = g_object_new (KS_TYPE_READING_CHOICE, NULL);

  self->chat = g_object_ref (chat);
  self->library = g_object_ref (library);
  self->attachment = g_object_ref (attachment);
  build (self);
  g_signal_connect_object (attachment, "notify", G_CALLBACK (update), self, G_CONNECT_SWAPPED);
  g_signal_connect_object (library, "notify::model-state", G_CALLBACK (update), self,
                           G_CONNECT_SWAPPED);
  update (self);
  return GTK_WIDGET (self);
}
