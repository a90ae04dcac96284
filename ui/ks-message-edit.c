/* ks-message-edit.c - see ks-message-edit.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-message-edit.h"

#include "ui/ks-resource.h"

struct _KsMessageEdit {
  GtkWidget parent_instance;

  GtkWidget *box;
  GtkTextView *view;
  GtkWidget *accept_button;
  gboolean can_accept;
};

G_DEFINE_FINAL_TYPE (KsMessageEdit, ks_message_edit, GTK_TYPE_WIDGET)

enum { ACCEPTED, CANCELLED, N_SIGNALS };
static guint signals[N_SIGNALS];

char *
ks_message_edit_get_text (KsMessageEdit *self)
{
  GtkTextIter start, end;

  g_return_val_if_fail (KS_IS_MESSAGE_EDIT (self), NULL);
  gtk_text_buffer_get_bounds (gtk_text_view_get_buffer (self->view), &start, &end);
  return gtk_text_buffer_get_text (gtk_text_view_get_buffer (self->view), &start, &end, FALSE);
}

static void
update (KsMessageEdit *self)
{
  g_autofree char *text = g_strstrip (ks_message_edit_get_text (self));

  gtk_widget_set_sensitive (self->accept_button, self->can_accept && *text != '\0');
}

static void
accept_cb (KsMessageEdit *self)
{
  g_autofree char *text = ks_message_edit_get_text (self);

  if (gtk_widget_get_sensitive (self->accept_button))
    g_signal_emit (self, signals[ACCEPTED], 0, text);
}

static void
cancel_cb (KsMessageEdit *self)
{
  g_signal_emit (self, signals[CANCELLED], 0);
}

static gboolean
key_cb (GtkEventControllerKey *controller, guint keyval, guint keycode, GdkModifierType state,
        KsMessageEdit *self)
{
  GdkEvent *event = gtk_event_controller_get_current_event (GTK_EVENT_CONTROLLER (controller));
  gboolean is_enter =
      keyval == GDK_KEY_Return || keyval == GDK_KEY_KP_Enter || keyval == GDK_KEY_ISO_Enter;

  /* A half-composed character comes first, or Enter would send it. */
  if (event != NULL && gtk_text_view_im_context_filter_keypress (self->view, event))
    return GDK_EVENT_STOP;
  if (keyval == GDK_KEY_Escape)
    cancel_cb (self);
  else if (is_enter && (state & GDK_SHIFT_MASK) == 0)
    accept_cb (self);
  else
    return GDK_EVENT_PROPAGATE;
  return GDK_EVENT_STOP;
}

void
ks_message_edit_set_can_accept (KsMessageEdit *self, gboolean can_accept)
{
  g_return_if_fail (KS_IS_MESSAGE_EDIT (self));
  self->can_accept = can_accept;
  update (self);
}

static gboolean
ks_message_edit_grab_focus (GtkWidget *widget)
{
  return gtk_widget_grab_focus (GTK_WIDGET (KS_MESSAGE_EDIT (widget)->view));
}

static void
ks_message_edit_dispose (GObject *object)
{
  gtk_widget_dispose_template (GTK_WIDGET (object), KS_TYPE_MESSAGE_EDIT);
  G_OBJECT_CLASS (ks_message_edit_parent_class)->dispose (object);
}

static void
ks_message_edit_class_init (KsMessageEditClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ks_message_edit_dispose;
  widget_class->grab_focus = ks_message_edit_grab_focus;
  signals[ACCEPTED] = g_signal_new ("accepted", KS_TYPE_MESSAGE_EDIT, G_SIGNAL_RUN_LAST, 0, NULL,
                                    NULL, NULL, G_TYPE_NONE, 1, G_TYPE_STRING);
  signals[CANCELLED] = g_signal_new ("cancelled", KS_TYPE_MESSAGE_EDIT, G_SIGNAL_RUN_LAST, 0, NULL,
                                     NULL, NULL, G_TYPE_NONE, 0);
  gtk_widget_class_set_template_from_resource (widget_class, KS_RESOURCE "ks-message-edit.ui");
  gtk_widget_class_bind_template_child (widget_class, KsMessageEdit, box);
  gtk_widget_class_bind_template_child (widget_class, KsMessageEdit, view);
  gtk_widget_class_bind_template_child (widget_class, KsMessageEdit, accept_button);
  gtk_widget_class_bind_template_callback (widget_class, accept_cb);
  gtk_widget_class_bind_template_callback (widget_class, cancel_cb);
}

static void
ks_message_edit_init (KsMessageEdit *self)
{
  GtkEventController *keys = gtk_event_controller_key_new ();

  gtk_widget_init_template (GTK_WIDGET (self));
  self->can_accept = TRUE;
  gtk_event_controller_set_propagation_phase (keys, GTK_PHASE_CAPTURE);
  g_signal_connect (keys, "key-pressed", G_CALLBACK (key_cb), self);
  gtk_widget_add_controller (GTK_WIDGET (self->view), keys);
  g_signal_connect_object (gtk_text_view_get_buffer (self->view), "changed", G_CALLBACK (update),
                           self, G_CONNECT_SWAPPED);
}

GtkWidget *
ks_message_edit_new (const char *text)
{
  KsMessageEdit *self = g_object_new (KS_TYPE_MESSAGE_EDIT, NULL);

  gtk_text_buffer_set_text (gtk_text_view_get_buffer (self->view), text, -1);
  update (self);
  return GTK_WIDGET (self);
}
