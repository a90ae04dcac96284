/* ks-attachment-strip.c - see ks-attachment-strip.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-attachment-strip.h"

#include "ui/ks-attachment-chip.h"
#include "ui/ks-memory-words.h"
#include "ui/ks-resource.h"

#include <glib/gi18n.h>

#include <math.h>

#define COUNTED_FROM 4 /* fewer are counted at a glance */

struct _KsAttachmentStrip {
  AdwBin parent_instance;

  GtkLabel *count;
  GtkScrolledWindow *scroller;
  GtkBox *row;

  KsLibrary *library;
  KsChat *chat;
  GListModel *model; /* strong, the chat's */
  guint follow_source;
  gboolean follows_end; /* the newest comes into view, until the user scrolls away */
};

G_DEFINE_FINAL_TYPE (KsAttachmentStrip, ks_attachment_strip, ADW_TYPE_BIN)

static void
emit_changed (KsAttachmentStrip *self)
{
  g_signal_emit_by_name (self, "changed");
}

static GtkWidget *
get_chip (KsAttachmentStrip *self, guint position)
{
  GtkWidget *chip = gtk_widget_get_first_child (GTK_WIDGET (self->row));

  for (; chip != NULL && position > 0; position--)
    chip = gtk_widget_get_next_sibling (chip);
  return chip;
}

/* Returns whether the chip had the focus. */
static gboolean
remove_chip (KsAttachmentStrip *self, GtkWidget *chip)
{
  GtkRoot *root = gtk_widget_get_root (chip);
  GtkWidget *focus = root == NULL ? NULL : gtk_root_get_focus (root);
  gboolean had_focus = focus != NULL && gtk_widget_is_ancestor (focus, chip);
  KsPendingAttachment *attachment = ks_attachment_chip_get_attachment (KS_ATTACHMENT_CHIP (chip));

  g_signal_handlers_disconnect_by_func (attachment, emit_changed, self);
  gtk_box_remove (self->row, chip);
  return had_focus;
}

static void
insert_chip (KsAttachmentStrip *self, guint position)
{
  g_autoptr (KsPendingAttachment) attachment = g_list_model_get_item (self->model, position);
  GtkWidget *chip = GTK_WIDGET (ks_attachment_chip_new (self->chat, self->library, attachment));
  GtkWidget *before = position == 0 ? NULL : get_chip (self, position - 1);

  gtk_box_insert_child_after (self->row, chip, before);
  g_signal_connect_object (attachment, "notify::state", G_CALLBACK (emit_changed), self,
                           G_CONNECT_SWAPPED);
}

static void
update_count (KsAttachmentStrip *self)
{
  guint n = g_list_model_get_n_items (self->model);
  g_autofree char *number = ks_words_count (n);
  /* Translators: how many files are attached, "34 files". */
  g_autofree char *text = g_strdup_printf (ngettext ("%s file", "%s files", n), number);

  gtk_label_set_text (self->count, text);
  gtk_widget_set_visible (GTK_WIDGET (self->count), n >= COUNTED_FROM);
}

static void
items_changed_cb (GListModel *model, guint position, guint n_removed, guint n_added,
                  KsAttachmentStrip *self)
{
  gboolean had_focus = FALSE;

  for (guint i = 0; i < n_removed; i++)
    had_focus |= remove_chip (self, get_chip (self, position));
  for (guint i = 0; i < n_added; i++)
    insert_chip (self, position + i);
  gtk_widget_set_visible (GTK_WIDGET (self), g_list_model_get_n_items (model) > 0);
  update_count (self);
  if (n_added > n_removed)
    self->follows_end = TRUE;
  if (had_focus) {
    GtkWidget *next = get_chip (self, position);

    if (next == NULL && position > 0)
      next = get_chip (self, position - 1);
    if (next != NULL)
      gtk_widget_child_focus (next, GTK_DIR_TAB_FORWARD);
  }
  emit_changed (self);
}

static gboolean
follow_cb (gpointer data)
{
  KsAttachmentStrip *self = data;
  GtkAdjustment *adjustment = gtk_scrolled_window_get_hadjustment (self->scroller);

  self->follow_source = 0;
  gtk_adjustment_set_value (adjustment, gtk_adjustment_get_upper (adjustment));
  return G_SOURCE_REMOVE;
}

/* Chips are laid out after they came, and grow with what becomes known of their files.  In the
 * middle of a layout the value would change, but not what is seen. */
static void
adjustment_changed_cb (GtkAdjustment *adjustment, KsAttachmentStrip *self)
{
  if (self->follows_end && self->follow_source == 0)
    self->follow_source = g_idle_add_full (G_PRIORITY_LOW, follow_cb, self, NULL);
}

static void
value_changed_cb (GtkAdjustment *adjustment, KsAttachmentStrip *self)
{
  double end = gtk_adjustment_get_upper (adjustment) - gtk_adjustment_get_page_size (adjustment);

  if (self->follow_source == 0 && gtk_adjustment_get_value (adjustment) < end - 1)
    self->follows_end = FALSE;
}

/* The ordinary wheel moves the row, which has no other way to go; as far as the toolkit moves a
 * page of that width. */
static gboolean
scroll_cb (GtkEventControllerScroll *controller, double dx, double dy, KsAttachmentStrip *self)
{
  GtkAdjustment *adjustment = gtk_scrolled_window_get_hadjustment (self->scroller);
  double page = gtk_adjustment_get_page_size (adjustment);
  double step = 1;

  if (dy == 0 || gtk_adjustment_get_upper (adjustment) <= page)
    return GDK_EVENT_PROPAGATE;
  if (gtk_event_controller_scroll_get_unit (controller) == GDK_SCROLL_UNIT_WHEEL)
    step = pow (page, 2.0 / 3.0);
  gtk_adjustment_set_value (adjustment, gtk_adjustment_get_value (adjustment) + dy * step);
  return GDK_EVENT_STOP;
}

static void
clear (KsAttachmentStrip *self)
{
  GtkWidget *chip = NULL;

  if (self->model != NULL)
    g_signal_handlers_disconnect_by_func (self->model, items_changed_cb, self);
  while ((chip = get_chip (self, 0)) != NULL)
    remove_chip (self, chip);
  g_clear_object (&self->model);
}

/* Chips are made for a chat and a library. */
static void
rebuild (KsAttachmentStrip *self)
{
  clear (self);
  gtk_widget_set_visible (GTK_WIDGET (self), FALSE);
  if (self->chat == NULL)
    return;
  self->model = g_object_ref (ks_chat_get_attachments (self->chat));
  g_signal_connect_object (self->model, "items-changed", G_CALLBACK (items_changed_cb), self,
                           G_CONNECT_DEFAULT);
  items_changed_cb (self->model, 0, 0, g_list_model_get_n_items (self->model), self);
}

static void
ks_attachment_strip_dispose (GObject *object)
{
  KsAttachmentStrip *self = KS_ATTACHMENT_STRIP (object);

  g_clear_handle_id (&self->follow_source, g_source_remove);
  if (self->row != NULL)
    clear (self);
  g_clear_object (&self->chat);
  g_clear_object (&self->library);
  adw_bin_set_child (ADW_BIN (self), NULL); /* its own, before the template lets go of it */
  gtk_widget_dispose_template (GTK_WIDGET (self), KS_TYPE_ATTACHMENT_STRIP);
  G_OBJECT_CLASS (ks_attachment_strip_parent_class)->dispose (object);
}

static void
ks_attachment_strip_class_init (KsAttachmentStripClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ks_attachment_strip_dispose;
  g_signal_new ("changed", KS_TYPE_ATTACHMENT_STRIP, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                G_TYPE_NONE, 0);
  gtk_widget_class_set_template_from_resource (widget_class, KS_RESOURCE "ks-attachment-strip.ui");
  gtk_widget_class_bind_template_child (widget_class, KsAttachmentStrip, row);
  gtk_widget_class_bind_template_child (widget_class, KsAttachmentStrip, count);
  gtk_widget_class_bind_template_child (widget_class, KsAttachmentStrip, scroller);
}

static void
ks_attachment_strip_init (KsAttachmentStrip *self)
{
  GtkEventController *wheel =
      gtk_event_controller_scroll_new (GTK_EVENT_CONTROLLER_SCROLL_VERTICAL);
  GtkAdjustment *adjustment = NULL;

  gtk_widget_init_template (GTK_WIDGET (self));
  gtk_event_controller_set_propagation_phase (wheel, GTK_PHASE_CAPTURE);
  g_signal_connect (wheel, "scroll", G_CALLBACK (scroll_cb), self);
  gtk_widget_add_controller (GTK_WIDGET (self), wheel);
  adjustment = gtk_scrolled_window_get_hadjustment (self->scroller);
  g_signal_connect_object (adjustment, "changed", G_CALLBACK (adjustment_changed_cb), self,
                           G_CONNECT_DEFAULT);
  g_signal_connect_object (adjustment, "value-changed", G_CALLBACK (value_changed_cb), self,
                           G_CONNECT_DEFAULT);
}

KsAttachmentStrip *
ks_attachment_strip_new (void)
{
  return g_object_new (KS_TYPE_ATTACHMENT_STRIP, NULL);
}

void
ks_attachment_strip_set_library (KsAttachmentStrip *self, KsLibrary *library)
{
  g_return_if_fail (KS_IS_ATTACHMENT_STRIP (self));
  if (g_set_object (&self->library, library))
    rebuild (self);
}

void
ks_attachment_strip_set_chat (KsAttachmentStrip *self, KsChat *chat)
{
  g_return_if_fail (KS_IS_ATTACHMENT_STRIP (self));
  if (g_set_object (&self->chat, chat))
    rebuild (self);
}
