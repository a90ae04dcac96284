/* ks-kept-button.c - see ks-kept-button.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-kept-button.h"

#include "ui/ks-memory-words.h"

#include <glib/gi18n.h>

struct _KsKeptButton {
  GtkButton parent_instance;
  GtkLabel *label;
  char *name;
};

G_DEFINE_FINAL_TYPE (KsKeptButton, ks_kept_button, GTK_TYPE_BUTTON)

void
ks_kept_button_set_share (KsKeptButton *self, double share)
{
  g_return_if_fail (KS_IS_KEPT_BUTTON (self));
  gtk_widget_set_visible (GTK_WIDGET (self), share >= 0);
  if (share >= 0) {
    g_autofree char *words = ks_words_share (share);
    g_autofree char *sentence = g_strdup_printf (C_ ("attachment", "%s: %s"), self->name, words);

    gtk_label_set_text (self->label, words);
    gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_LABEL, sentence,
                                    -1);
  }
}

static void
ks_kept_button_finalize (GObject *object)
{
  g_free (KS_KEPT_BUTTON (object)->name);
  G_OBJECT_CLASS (ks_kept_button_parent_class)->finalize (object);
}

static void
ks_kept_button_class_init (KsKeptButtonClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = ks_kept_button_finalize;
}

static void
ks_kept_button_init (KsKeptButton *self)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);

  self->label = GTK_LABEL (gtk_label_new (NULL));
  gtk_widget_add_css_class (GTK_WIDGET (self->label), "numeric");
  gtk_box_append (GTK_BOX (box), gtk_image_new_from_icon_name ("ks-memory-symbolic"));
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (self->label));
  gtk_button_set_child (GTK_BUTTON (self), box);
  gtk_widget_add_css_class (GTK_WIDGET (self), "flat");
  gtk_widget_add_css_class (GTK_WIDGET (self), "ks-kept");
  gtk_widget_set_tooltip_text (GTK_WIDGET (self), _ ("Show which parts the model keeps"));
  gtk_widget_set_visible (GTK_WIDGET (self), FALSE);
}

GtkWidget *
ks_kept_button_new (const char *name)
{
  KsKeptButton *self = g_object_new (KS_TYPE_KEPT_BUTTON, NULL);

  self->name = g_strdup (name);
  return GTK_WIDGET (self);
}
