/* ks-reading-choice.c - see ks-reading-choice.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-reading-choice.h"

#include "ui/ks-page-choice.h"

#define WIDTH_PX 300

struct _KsReadingChoice {
  AdwBin parent_instance;
  KsChat *chat;
  KsLibrary *library;
  KsPendingAttachment *attachment;
  KsPageChoice *pages;
  gboolean is_updating; /* what changes is no wish of the user */
};

G_DEFINE_FINAL_TYPE (KsReadingChoice, ks_reading_choice, ADW_TYPE_BIN)

gboolean
ks_reading_choice_has_any (KsLibrary *library, KsPendingAttachment *attachment)
{
  return ks_pending_attachment_get_kind (attachment) == KS_ATTACHMENT_PDF &&
         ks_pending_attachment_get_n_pages (attachment) > 0;
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
  show_pages (self, reading);
  self->is_updating = FALSE;
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

/* --- life --- */

static void
ks_reading_choice_dispose (GObject *object)
{
  KsReadingChoice *self = KS_READING_CHOICE (object);

  g_clear_object (&self->chat);
  g_clear_object (&self->library);
  g_clear_object (&self->attachment);
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

GtkWidget *
ks_reading_choice_new (KsChat *chat, KsLibrary *library, KsPendingAttachment *attachment)
{
  KsReadingChoice *self = g_object_new (KS_TYPE_READING_CHOICE, NULL);

  self->chat = g_object_ref (chat);
  self->library = g_object_ref (library);
  self->attachment = g_object_ref (attachment);
  self->pages = KS_PAGE_CHOICE (ks_page_choice_new ());
  g_signal_connect (self->pages, "chosen", G_CALLBACK (pages_cb), self);
  gtk_widget_set_size_request (GTK_WIDGET (self->pages), WIDTH_PX, -1);
  adw_bin_set_child (ADW_BIN (self), GTK_WIDGET (self->pages));
  g_signal_connect_object (attachment, "notify", G_CALLBACK (update), self, G_CONNECT_SWAPPED);
  g_signal_connect_object (library, "notify::model-state", G_CALLBACK (update), self,
                           G_CONNECT_SWAPPED);
  update (self);
  return GTK_WIDGET (self);
}
