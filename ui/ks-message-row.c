/* ks-message-row.c - see ks-message-row.h.
 * What few messages need (files, status, branches, editing) is made when it is needed: a list keeps
 * about two hundred rows. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-message-row.h"

#include "ui/ks-branch-switcher.h"
#include "ui/ks-compat.h"
#include "ui/ks-kept-button.h"
#include "ui/ks-message-edit.h"
#include "ui/ks-message-status.h"
#include "ui/ks-pin-button.h"
#include "ui/ks-resource.h"
#include "ui/ks-wrap-layout.h"

#include <glib/gi18n.h>

#define KEPT_OF "ks-attachment" /* that a KsKeptButton speaks of */
#define DRAFT "ks-edit-draft"   /* char *: kept with a message while its text is edited */

/* Lines stay readable in wide windows. */
#define WIDEST_PX 780
/* Files side by side: three columns in a wide window, two in a narrow one. */
#define FILE_PX 216
/* What a user wrote never takes the whole width. */
#define BUBBLE_MARGIN_PX 36

struct _KsMessageRow {
  GtkWidget parent_instance;

  GtkWidget *column;
  GtkWidget *bubble;
  GtkWidget *footer;
  GtkWidget *actions;
  GtkWidget *copy_button;
  GtkWidget *edit_button;
  GtkWidget *regenerate_button;
  GtkWidget *pin_button;
  KsMessageBody *body;
  KsMessageStatus *status; /* NULL until it is needed, like the ones below */
  KsBranchSwitcher *branches;
  KsMessageEdit *edit;
  GtkWidget *files;

  KsMessage *message;
  GSignalGroup *message_signals;
  KsThumbnailFunc thumbnails;
  gpointer thumbnails_data;
  KsKeptFunc kept; /* may be NULL */
  gpointer kept_data;
  gboolean is_last, can_change;
};

G_DEFINE_FINAL_TYPE (KsMessageRow, ks_message_row, GTK_TYPE_WIDGET)

enum { REGENERATE, CONTINUE, EDIT, SELECT_BRANCH, OPEN_ATTACHMENT, PIN, SHOW_KEPT, N_SIGNALS };
static guint signals[N_SIGNALS];

static gboolean
has_role (KsMessageRow *self, KsMessageRole role)
{
  return self->message != NULL && ks_message_get_role (self->message) == role;
}

static void
set_class (KsMessageRow *self, const char *name, gboolean is_set)
{
  if (is_set)
    gtk_widget_add_css_class (GTK_WIDGET (self), name);
  else
    gtk_widget_remove_css_class (GTK_WIDGET (self), name);
}

/* --- what stands below the text --- */

static void
regenerate_cb (KsMessageRow *self)
{
  g_signal_emit (self, signals[REGENERATE], 0);
}

static void
continue_cb (KsMessageRow *self)
{
  g_signal_emit (self, signals[CONTINUE], 0);
}

static void
select_cb (KsMessageRow *self, guint sibling)
{
  g_signal_emit (self, signals[SELECT_BRANCH], 0, sibling);
}

static void
copy_cb (KsMessageRow *self)
{
  if (self->message == NULL)
    return;
  gdk_clipboard_set_text (gtk_widget_get_clipboard (GTK_WIDGET (self)),
                          ks_message_get_text (self->message));
  ks_announce (GTK_WIDGET (self), _ ("Message copied"));
}

static void
update_status (KsMessageRow *self)
{
  gboolean is_needed = self->message != NULL &&
                       ks_message_status_is_needed (self->message, self->is_last, self->can_change);

  if (self->status == NULL && !is_needed)
    return;
  if (self->status == NULL) {
    self->status = KS_MESSAGE_STATUS (ks_message_status_new ());
    g_signal_connect_swapped (self->status, "regenerate", G_CALLBACK (regenerate_cb), self);
    g_signal_connect_swapped (self->status, "continue", G_CALLBACK (continue_cb), self);
    gtk_box_insert_child_after (GTK_BOX (self->column), GTK_WIDGET (self->status), self->bubble);
  }
  gtk_widget_set_halign (GTK_WIDGET (self->status),
                         has_role (self, KS_MESSAGE_USER) ? GTK_ALIGN_END : GTK_ALIGN_START);
  if (is_needed)
    ks_message_status_show (self->status, self->message, self->is_last, self->can_change);
  else
    gtk_widget_set_visible (GTK_WIDGET (self->status), FALSE);
}

static void
update_branches (KsMessageRow *self)
{
  guint n = self->message == NULL ? 0 : ks_message_get_n_siblings (self->message);

  if (self->branches == NULL && n < 2)
    return;
  if (self->branches == NULL) {
    self->branches = KS_BRANCH_SWITCHER (ks_branch_switcher_new ());
    g_signal_connect_swapped (self->branches, "select", G_CALLBACK (select_cb), self);
    gtk_box_prepend (GTK_BOX (self->footer), GTK_WIDGET (self->branches));
  }
  gtk_widget_set_visible (GTK_WIDGET (self->branches), n >= 2);
  if (n >= 2)
    ks_branch_switcher_show (self->branches, ks_message_get_sibling (self->message), n,
                             self->can_change);
}

static void
update_actions (KsMessageRow *self)
{
  gboolean is_user = has_role (self, KS_MESSAGE_USER);
  gboolean is_streaming =
      self->message != NULL && ks_message_get_state (self->message) == KS_MESSAGE_STREAMING;

  gtk_widget_set_visible (self->edit_button, is_user);
  gtk_widget_set_sensitive (self->edit_button, self->can_change);
  gtk_widget_set_visible (self->regenerate_button,
                          has_role (self, KS_MESSAGE_ASSISTANT) && self->is_last && !is_streaming);
  gtk_widget_set_sensitive (self->regenerate_button, self->can_change);
  gtk_widget_set_visible (self->footer, self->edit == NULL && !is_streaming);
  if (self->edit != NULL)
    ks_message_edit_set_can_accept (self->edit, self->can_change);
}

static void
pin_cb (KsMessageRow *self)
{
  g_signal_emit (self, signals[PIN], 0, NULL, !ks_message_is_pinned (self->message, NULL));
}

static void
pin_file_cb (KsMessageRow *self, GtkWidget *button)
{
  const char *hash = ks_pin_button_get_hash (button);

  g_signal_emit (self, signals[PIN], 0, hash, !ks_message_is_pinned (self->message, hash));
}

/* A turn has its button where it begins; the pins of files stand beside them. */
static void
update_pins (KsMessageRow *self)
{
  gboolean is_user = has_role (self, KS_MESSAGE_USER);

  gtk_widget_set_visible (self->pin_button, is_user);
  if (!is_user)
    return;
  ks_pin_button_update (self->pin_button, NULL, ks_message_is_pinned (self->message, NULL),
                        self->can_change);
  for (GtkWidget *file = self->files != NULL ? gtk_widget_get_first_child (self->files) : NULL;
       file != NULL; file = gtk_widget_get_next_sibling (file)) {
    GtkWidget *line = gtk_widget_get_first_child (file);
    GtkWidget *button = gtk_widget_get_first_child (line);
    KsAttachment *attachment = ks_attachment_button_get_attachment (
        KS_ATTACHMENT_BUTTON (gtk_widget_get_last_child (line)));

    if (ks_pin_button_get_hash (button) != NULL)
      ks_pin_button_update (
          button, ks_attachment_get_name (attachment),
          ks_message_is_pinned (self->message, ks_attachment_get_hash (attachment)),
          self->can_change);
  }
}

static void
update_below (KsMessageRow *self)
{
  update_pins (self);
  update_status (self);
  update_branches (self);
  update_actions (self);
}

/* --- editing --- */

static void
keep_draft (KsMessageRow *self)
{
  if (self->edit != NULL && self->message != NULL)
    g_object_set_data_full (G_OBJECT (self->message), DRAFT, ks_message_edit_get_text (self->edit),
                            g_free);
}

static void
close_edit (KsMessageRow *self)
{
  if (self->edit == NULL)
    return;
  gtk_box_remove (GTK_BOX (self->column), GTK_WIDGET (self->edit));
  self->edit = NULL;
  gtk_widget_set_visible (self->bubble, TRUE);
  set_class (self, "edited", FALSE);
}

static void
end_edit (KsMessageRow *self)
{
  g_object_set_data (G_OBJECT (self->message), DRAFT, NULL);
  close_edit (self);
  update_actions (self);
  gtk_widget_grab_focus (self->edit_button);
}

static void
accepted_cb (KsMessageRow *self, const char *text)
{
  g_autofree char *kept = g_strdup (text);
  g_autoptr (KsMessageRow) guard = g_object_ref (self);

  end_edit (self);
  g_signal_emit (self, signals[EDIT], 0, kept);
}

static void
open_edit (KsMessageRow *self, const char *text)
{
  if (self->edit != NULL)
    return;
  self->edit = KS_MESSAGE_EDIT (ks_message_edit_new (text));
  g_signal_connect_swapped (self->edit, "accepted", G_CALLBACK (accepted_cb), self);
  g_signal_connect_swapped (self->edit, "cancelled", G_CALLBACK (end_edit), self);
  gtk_box_insert_child_after (GTK_BOX (self->column), GTK_WIDGET (self->edit), self->bubble);
  gtk_widget_set_visible (self->bubble, FALSE);
  set_class (self, "edited", TRUE);
}

void
ks_message_row_start_edit (KsMessageRow *self)
{
  g_return_if_fail (KS_IS_MESSAGE_ROW (self));
  if (!has_role (self, KS_MESSAGE_USER))
    return;
  open_edit (self, ks_message_get_text (self->message));
  keep_draft (self);
  update_actions (self);
  gtk_widget_grab_focus (GTK_WIDGET (self->edit));
}

gboolean
ks_message_row_is_edited (KsMessageRow *self)
{
  g_return_val_if_fail (KS_IS_MESSAGE_ROW (self), FALSE);
  return self->edit != NULL;
}

/* --- files --- */

static void
open_cb (KsAttachmentButton *button, KsMessageRow *self)
{
  g_signal_emit (self, signals[OPEN_ATTACHMENT], 0, ks_attachment_button_get_attachment (button));
}

/* Files with pictures that the model looks at have a pin in front of them. */
static gboolean
can_pin (KsAttachment *attachment)
{
  switch (ks_attachment_get_kind (attachment)) {
  case KS_ATTACHMENT_IMAGE:
  case KS_ATTACHMENT_VIDEO:
  case KS_ATTACHMENT_DOCUMENT:
    return TRUE;
  case KS_ATTACHMENT_PDF:
    return ks_attachment_get_reading (attachment) != NULL; /* pages as pictures */
  case KS_ATTACHMENT_TEXT:
  default:
    return FALSE;
  }
}

static GtkWidget *
file_line_new (KsMessageRow *self, KsAttachment *attachment, GtkWidget *button)
{
  GtkWidget *line = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 4);

  if (can_pin (attachment)) {
    GtkWidget *pin = ks_pin_button_new (ks_attachment_get_hash (attachment));

    g_signal_connect_swapped (pin, "clicked", G_CALLBACK (pin_file_cb), self);
    gtk_box_append (GTK_BOX (line), pin);
  }
  gtk_widget_set_hexpand (button, TRUE);
  gtk_box_append (GTK_BOX (line), button);
  return line;
}

static void
kept_cb (KsKeptButton *button, KsMessageRow *self)
{
  g_signal_emit (self, signals[SHOW_KEPT], 0, g_object_get_data (G_OBJECT (button), KEPT_OF));
}

void
ks_message_row_update_kept (KsMessageRow *self)
{
  GtkWidget *child = NULL;

  g_return_if_fail (KS_IS_MESSAGE_ROW (self));
  if (self->files == NULL || self->kept == NULL)
    return;
  for (child = gtk_widget_get_first_child (self->files); child != NULL;
       child = gtk_widget_get_next_sibling (child)) {
    GtkWidget *button = gtk_widget_get_last_child (child);

    if (KS_IS_KEPT_BUTTON (button)) {
      KsAttachment *attachment = g_object_get_data (G_OBJECT (button), KEPT_OF);

      ks_kept_button_set_share (KS_KEPT_BUTTON (button),
                                self->kept (self->message, attachment, self->kept_data));
    }
  }
}

/* Below the file; it shows itself when there is something to say. */
static void
add_kept (KsMessageRow *self, GtkWidget *file, KsAttachment *attachment)
{
  GtkWidget *button = ks_kept_button_new (ks_attachment_get_name (attachment));

  g_object_set_data_full (G_OBJECT (button), KEPT_OF, g_object_ref (attachment), g_object_unref);
  gtk_widget_set_halign (button, GTK_ALIGN_END);
  g_signal_connect (button, "clicked", G_CALLBACK (kept_cb), self);
  gtk_box_append (GTK_BOX (file), button);
}

static void
update_files (KsMessageRow *self)
{
  GListModel *list = self->message == NULL ? NULL : ks_message_get_attachments (self->message);
  guint n = list == NULL ? 0 : g_list_model_get_n_items (list);

  if (self->files != NULL)
    gtk_box_remove (GTK_BOX (self->column), self->files);
  self->files = NULL;
  if (n == 0)
    return;
  self->files = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);
  gtk_widget_set_layout_manager (self->files, ks_wrap_layout_new (FILE_PX, 4));
  gtk_widget_set_halign (self->files, GTK_ALIGN_END);
  gtk_widget_add_css_class (self->files, "files");
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->files), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Attached files"), -1);
  for (guint i = 0; i < n; i++) {
    g_autoptr (KsAttachment) attachment = g_list_model_get_item (list, i);
    GtkWidget *file = gtk_box_new (GTK_ORIENTATION_VERTICAL, 4);
    GtkWidget *button =
        ks_attachment_button_new (attachment, self->thumbnails, self->thumbnails_data);

    g_signal_connect (button, "clicked", G_CALLBACK (open_cb), self);
    gtk_box_append (GTK_BOX (file), file_line_new (self, attachment, button));
    if (self->kept != NULL && ks_attachment_get_kind (attachment) != KS_ATTACHMENT_TEXT)
      add_kept (self, file, attachment);
    gtk_box_append (GTK_BOX (self->files), file);
  }
  gtk_box_prepend (GTK_BOX (self->column), self->files);
  ks_message_row_update_kept (self);
}

/* --- the message --- */

static void
text_cb (KsMessageRow *self)
{
  ks_message_body_update (self->body);
  update_status (self);
}

static void
state_cb (KsMessageRow *self)
{
  ks_message_body_update (self->body);
  update_below (self);
}

static void
update_role (KsMessageRow *self)
{
  gboolean is_user = has_role (self, KS_MESSAGE_USER);

  set_class (self, "user", is_user);
  gtk_widget_set_margin_start (self->bubble, is_user ? BUBBLE_MARGIN_PX : 0);
  gtk_widget_set_halign (self->bubble, is_user ? GTK_ALIGN_END : GTK_ALIGN_FILL);
  gtk_widget_set_halign (self->footer, is_user ? GTK_ALIGN_END : GTK_ALIGN_START);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  is_user                                 ? _ ("Your message")
                                  : has_role (self, KS_MESSAGE_ASSISTANT) ? _ ("Answer")
                                                                          : _ ("Instructions"),
                                  -1);
}

void
ks_message_row_set_message (KsMessageRow *self, KsMessage *message)
{
  const char *draft = NULL;

  g_return_if_fail (KS_IS_MESSAGE_ROW (self));
  if (self->message == message)
    return;
  keep_draft (self);
  close_edit (self);
  g_set_object (&self->message, message);
  g_signal_group_set_target (self->message_signals, message);
  update_role (self);
  update_files (self);
  ks_message_body_set_message (self->body, message);
  draft = message == NULL ? NULL : g_object_get_data (G_OBJECT (message), DRAFT);
  if (draft != NULL)
    open_edit (self, draft);
  update_below (self);
}

KsMessage *
ks_message_row_get_message (KsMessageRow *self)
{
  g_return_val_if_fail (KS_IS_MESSAGE_ROW (self), NULL);
  return self->message;
}

KsMessageBody *
ks_message_row_get_body (KsMessageRow *self)
{
  g_return_val_if_fail (KS_IS_MESSAGE_ROW (self), NULL);
  return self->body;
}

void
ks_message_row_set_place (KsMessageRow *self, gboolean is_last, gboolean can_change)
{
  g_return_if_fail (KS_IS_MESSAGE_ROW (self));
  if (self->is_last == is_last && self->can_change == can_change)
    return;
  self->is_last = is_last;
  self->can_change = can_change;
  set_class (self, "last", is_last);
  update_below (self);
}

void
ks_message_row_set_thumbnails (KsMessageRow *self, KsThumbnailFunc thumbnails, gpointer data)
{
  g_return_if_fail (KS_IS_MESSAGE_ROW (self));
  self->thumbnails = thumbnails;
  self->thumbnails_data = data;
}

void
ks_message_row_set_kept (KsMessageRow *self, KsKeptFunc kept, gpointer data)
{
  g_return_if_fail (KS_IS_MESSAGE_ROW (self));
  self->kept = kept;
  self->kept_data = data;
}

/* The same as a clamp of libadwaita, but that one asks for the width at a given height, which
 * labels can only find by laying out their text a dozen times. */
static void
ks_message_row_measure (GtkWidget *widget, GtkOrientation orientation, int for_size, int *minimum,
                        int *natural, int *minimum_baseline, int *natural_baseline)
{
  GtkWidget *column = KS_MESSAGE_ROW (widget)->column;

  if (orientation == GTK_ORIENTATION_HORIZONTAL) {
    gtk_widget_measure (column, orientation, -1, minimum, natural, NULL, NULL);
    *natural = MAX (*minimum, MIN (*natural, WIDEST_PX));
  } else {
    int least = 0;

    gtk_widget_measure (column, GTK_ORIENTATION_HORIZONTAL, -1, &least, NULL, NULL, NULL);
    if (for_size >= 0)
      for_size = MAX (least, MIN (for_size, WIDEST_PX));
    gtk_widget_measure (column, orientation, for_size, minimum, natural, NULL, NULL);
  }
}

static void
ks_message_row_size_allocate (GtkWidget *widget, int width, int height, int baseline)
{
  GtkWidget *column = KS_MESSAGE_ROW (widget)->column;
  GtkAllocation allocation = {.height = height};
  int least = 0;

  gtk_widget_measure (column, GTK_ORIENTATION_HORIZONTAL, -1, &least, NULL, NULL, NULL);
  allocation.width = MAX (least, MIN (width, WIDEST_PX));
  allocation.x = MAX (0, (width - allocation.width) / 2);
  gtk_widget_size_allocate (column, &allocation, -1);
}

static GtkSizeRequestMode
ks_message_row_get_request_mode (GtkWidget *widget)
{
  return GTK_SIZE_REQUEST_HEIGHT_FOR_WIDTH;
}

static void
ks_message_row_dispose (GObject *object)
{
  KsMessageRow *self = KS_MESSAGE_ROW (object);

  keep_draft (self);
  self->edit = NULL;
  g_clear_object (&self->message_signals);
  g_clear_object (&self->message);
  gtk_widget_dispose_template (GTK_WIDGET (object), KS_TYPE_MESSAGE_ROW);
  G_OBJECT_CLASS (ks_message_row_parent_class)->dispose (object);
}

static void
add_signals (void)
{
  signals[REGENERATE] = g_signal_new ("regenerate", KS_TYPE_MESSAGE_ROW, G_SIGNAL_RUN_LAST, 0, NULL,
                                      NULL, NULL, G_TYPE_NONE, 0);
  signals[CONTINUE] = g_signal_new ("continue", KS_TYPE_MESSAGE_ROW, G_SIGNAL_RUN_LAST, 0, NULL,
                                    NULL, NULL, G_TYPE_NONE, 0);
  signals[EDIT] = g_signal_new ("edit", KS_TYPE_MESSAGE_ROW, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                G_TYPE_NONE, 1, G_TYPE_STRING);
  signals[SELECT_BRANCH] = g_signal_new ("select-branch", KS_TYPE_MESSAGE_ROW, G_SIGNAL_RUN_LAST, 0,
                                         NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_UINT);
  signals[OPEN_ATTACHMENT] =
      g_signal_new ("open-attachment", KS_TYPE_MESSAGE_ROW, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                    G_TYPE_NONE, 1, KS_TYPE_ATTACHMENT);
  signals[PIN] = g_signal_new ("pin", KS_TYPE_MESSAGE_ROW, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                               G_TYPE_NONE, 2, G_TYPE_STRING, G_TYPE_BOOLEAN);
  signals[SHOW_KEPT] = g_signal_new ("show-kept", KS_TYPE_MESSAGE_ROW, G_SIGNAL_RUN_LAST, 0, NULL,
                                     NULL, NULL, G_TYPE_NONE, 1, KS_TYPE_ATTACHMENT);
}

static void
ks_message_row_class_init (KsMessageRowClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ks_message_row_dispose;
  widget_class->measure = ks_message_row_measure;
  widget_class->size_allocate = ks_message_row_size_allocate;
  widget_class->get_request_mode = ks_message_row_get_request_mode;
  add_signals ();
  gtk_widget_class_set_css_name (widget_class, "messagerow");
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_GROUP);
  gtk_widget_class_set_template_from_resource (widget_class, KS_RESOURCE "ks-message-row.ui");
  gtk_widget_class_bind_template_child (widget_class, KsMessageRow, column);
  gtk_widget_class_bind_template_child (widget_class, KsMessageRow, bubble);
  gtk_widget_class_bind_template_child (widget_class, KsMessageRow, footer);
  gtk_widget_class_bind_template_child (widget_class, KsMessageRow, actions);
  gtk_widget_class_bind_template_child (widget_class, KsMessageRow, copy_button);
  gtk_widget_class_bind_template_child (widget_class, KsMessageRow, edit_button);
  gtk_widget_class_bind_template_child (widget_class, KsMessageRow, regenerate_button);
  gtk_widget_class_bind_template_child (widget_class, KsMessageRow, pin_button);
  gtk_widget_class_bind_template_callback (widget_class, copy_cb);
  gtk_widget_class_bind_template_callback (widget_class, pin_cb);
  gtk_widget_class_bind_template_callback (widget_class, regenerate_cb);
  gtk_widget_class_bind_template_callback (widget_class, ks_message_row_start_edit);
}

static void
ks_message_row_init (KsMessageRow *self)
{
  gtk_widget_init_template (GTK_WIDGET (self));
  self->body = KS_MESSAGE_BODY (ks_message_body_new ());
  gtk_box_append (GTK_BOX (self->bubble), GTK_WIDGET (self->body));
  self->message_signals = g_signal_group_new (KS_TYPE_MESSAGE);
  g_signal_group_connect_swapped (self->message_signals, "notify::text", G_CALLBACK (text_cb),
                                  self);
  g_signal_group_connect_swapped (self->message_signals, "notify::state", G_CALLBACK (state_cb),
                                  self);
  g_signal_group_connect_swapped (self->message_signals, "notify::error",
                                  G_CALLBACK (update_status), self);
  g_signal_group_connect_swapped (self->message_signals, "notify::pinned", G_CALLBACK (update_pins),
                                  self);
  g_signal_group_connect_swapped (self->message_signals, "notify::sibling",
                                  G_CALLBACK (update_branches), self);
  g_signal_group_connect_swapped (self->message_signals, "notify::n-siblings",
                                  G_CALLBACK (update_branches), self);
}

GtkWidget *
ks_message_row_new (void)
{
  return g_object_new (KS_TYPE_MESSAGE_ROW, NULL);
}
