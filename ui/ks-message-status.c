/* ks-message-status.c - see ks-message-status.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-message-status.h"

#include "ui/ks-markdown-internal.h"

#include <glib/gi18n.h>

#include <string.h>

/* Reasons are sentences; whatever is much longer is none, and would be slow to lay out. */
#define MAX_CHARS 400
#define LONGEST_RUN 60

struct _KsMessageStatus {
  GtkWidget parent_instance;

  GtkWidget *spinner;
  GtkWidget *icon;
  GtkWidget *label;
  GtkWidget *continue_button;
  GtkWidget *regenerate_button;
};

G_DEFINE_FINAL_TYPE (KsMessageStatus, ks_message_status, GTK_TYPE_WIDGET)

enum { REGENERATE, CONTINUE, N_SIGNALS };
static guint signals[N_SIGNALS];

static gboolean
is_empty (KsMessage *message)
{
  const char *text = ks_message_get_text (message);

  return text == NULL || *text == '\0';
}

/* A question that got no answer, because the program ended or nothing could be stored. */
static gboolean
is_unanswered (KsMessage *message, gboolean is_last, gboolean can_change)
{
  return ks_message_get_role (message) == KS_MESSAGE_USER && is_last && can_change;
}

/* One sentence; NULL = nothing to say. */
static const char *
get_sentence (KsMessage *message, gboolean is_last, gboolean can_change)
{
  const char *error = ks_message_get_error (message);

  if (is_unanswered (message, is_last, can_change))
    return _ ("This question has no answer yet.");
  switch (ks_message_get_state (message)) {
  case KS_MESSAGE_STREAMING:
    return is_empty (message) ? _ ("Answering…") : "";
  case KS_MESSAGE_STOPPED:
    return is_empty (message)
               ? _ ("Stopped before it was read: the model does not know this question.")
               : _ ("You stopped this answer.");
  case KS_MESSAGE_LIMIT:
    return _ ("The answer reached the length limit.");
  case KS_MESSAGE_INTERRUPTED:
    return _ ("The program was closed before this answer was complete.");
  case KS_MESSAGE_FAILED:
    return error != NULL && *error != '\0' ? error : _ ("The answer failed.");
  case KS_MESSAGE_COMPLETE:
  default:
    return is_empty (message) && ks_message_get_role (message) == KS_MESSAGE_ASSISTANT
               ? _ ("The model ended its answer without a word.")
               : NULL;
  }
}

static void
set_sentence (GtkLabel *label, const char *sentence)
{
  g_autofree char *clean = ks_markdown_clean (sentence, strlen (sentence));
  g_autofree char *cut = g_utf8_substring (clean, 0, MIN (MAX_CHARS, g_utf8_strlen (clean, -1)));
  g_autofree char *valid = g_strconcat (cut, strlen (cut) < strlen (clean) ? "\u2026" : NULL, NULL);
  guint run = 0;

  gtk_label_set_wrap_mode (label,
                           ks_markdown_longest_run (valid, strlen (valid), &run) > LONGEST_RUN
                               ? PANGO_WRAP_CHAR
                               : PANGO_WRAP_WORD_CHAR);
  gtk_label_set_text (label, valid);
}

gboolean
ks_message_status_is_needed (KsMessage *message, gboolean is_last, gboolean can_change)
{
  return get_sentence (message, is_last, can_change) != NULL;
}

void
ks_message_status_show (KsMessageStatus *self, KsMessage *message, gboolean is_last,
                        gboolean can_change)
{
  const char *sentence = NULL;
  KsMessageState state = KS_MESSAGE_COMPLETE;
  gboolean is_streaming = FALSE, is_failed = FALSE, is_open = FALSE;

  g_return_if_fail (KS_IS_MESSAGE_STATUS (self) && KS_IS_MESSAGE (message));
  sentence = get_sentence (message, is_last, can_change);
  state = ks_message_get_state (message);
  is_streaming = state == KS_MESSAGE_STREAMING;
  is_failed = state == KS_MESSAGE_FAILED;
  is_open =
      state == KS_MESSAGE_STOPPED || state == KS_MESSAGE_LIMIT || state == KS_MESSAGE_INTERRUPTED;
  gtk_widget_set_visible (GTK_WIDGET (self), sentence != NULL);
  gtk_widget_set_visible (self->spinner, is_streaming);
  gtk_spinner_set_spinning (GTK_SPINNER (self->spinner), is_streaming);
  gtk_widget_set_visible (self->icon, is_failed);
  set_sentence (GTK_LABEL (self->label), sentence == NULL ? "" : sentence);
  gtk_widget_set_visible (self->label, sentence != NULL && *sentence != '\0');
  if (is_failed)
    gtk_widget_add_css_class (self->label, "error");
  else
    gtk_widget_remove_css_class (self->label, "error");
  gtk_widget_set_visible (self->continue_button, is_open && is_last);
  gtk_widget_set_visible (self->regenerate_button, is_last && !is_streaming && !is_open);
  gtk_widget_set_sensitive (self->continue_button, can_change);
  gtk_widget_set_sensitive (self->regenerate_button, can_change);
  gtk_button_set_label (GTK_BUTTON (self->regenerate_button),
                        is_unanswered (message, is_last, can_change) ? _ ("_Answer")
                                                                     : _ ("_Answer Again"));
}

static void
continue_cb (KsMessageStatus *self)
{
  g_signal_emit (self, signals[CONTINUE], 0);
}

static void
regenerate_cb (KsMessageStatus *self)
{
  g_signal_emit (self, signals[REGENERATE], 0);
}

static void
ks_message_status_dispose (GObject *object)
{
  GtkWidget *child = NULL;

  while ((child = gtk_widget_get_first_child (GTK_WIDGET (object))) != NULL)
    gtk_widget_unparent (child);
  G_OBJECT_CLASS (ks_message_status_parent_class)->dispose (object);
}

static void
ks_message_status_class_init (KsMessageStatusClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ks_message_status_dispose;
  signals[REGENERATE] = g_signal_new ("regenerate", KS_TYPE_MESSAGE_STATUS, G_SIGNAL_RUN_LAST, 0,
                                      NULL, NULL, NULL, G_TYPE_NONE, 0);
  signals[CONTINUE] = g_signal_new ("continue", KS_TYPE_MESSAGE_STATUS, G_SIGNAL_RUN_LAST, 0, NULL,
                                    NULL, NULL, G_TYPE_NONE, 0);
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BOX_LAYOUT);
  gtk_widget_class_set_css_name (widget_class, "messagestatus");
}

static GtkWidget *
add_button (KsMessageStatus *self, const char *label, GCallback callback)
{
  GtkWidget *button = gtk_button_new_with_mnemonic (label);

  gtk_widget_set_valign (button, GTK_ALIGN_CENTER);
  g_signal_connect_swapped (button, "clicked", callback, self);
  gtk_widget_set_parent (button, GTK_WIDGET (self));
  return button;
}

static void
ks_message_status_init (KsMessageStatus *self)
{
  GtkWidget *widget = GTK_WIDGET (self);

  gtk_box_layout_set_spacing (GTK_BOX_LAYOUT (gtk_widget_get_layout_manager (widget)), 8);
  self->spinner = gtk_spinner_new ();
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->spinner), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Answering"), -1);
  self->icon = gtk_image_new_from_icon_name ("dialog-warning-symbolic");
  gtk_widget_add_css_class (self->icon, "error");
  self->label = gtk_label_new (NULL);
  gtk_label_set_wrap (GTK_LABEL (self->label), TRUE);
  gtk_label_set_xalign (GTK_LABEL (self->label), 0);
  gtk_label_set_selectable (GTK_LABEL (self->label), TRUE);
  gtk_widget_add_css_class (self->label, "sentence");
  gtk_widget_set_parent (self->spinner, widget);
  gtk_widget_set_parent (self->icon, widget);
  gtk_widget_set_parent (self->label, widget);
  self->continue_button = add_button (self, _ ("_Continue"), G_CALLBACK (continue_cb));
  self->regenerate_button = add_button (self, _ ("_Answer Again"), G_CALLBACK (regenerate_cb));
}

GtkWidget *
ks_message_status_new (void)
{
  return g_object_new (KS_TYPE_MESSAGE_STATUS, NULL);
}
