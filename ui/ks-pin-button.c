/* ks-pin-button.c - see ks-pin-button.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-pin-button.h"

#include <glib/gi18n.h>

#define HASH "ks-hash" /* char * */

GtkWidget *
ks_pin_button_new (const char *hash)
{
  GtkWidget *button = gtk_button_new_from_icon_name ("view-pin-symbolic");

  gtk_widget_add_css_class (button, "flat");
  gtk_widget_add_css_class (button, "pin");
  gtk_widget_set_valign (button, GTK_ALIGN_CENTER);
  g_object_set_data_full (G_OBJECT (button), HASH, g_strdup (hash), g_free);
  return button;
}

const char *
ks_pin_button_get_hash (GtkWidget *button)
{
  return g_object_get_data (G_OBJECT (button), HASH);
}

/* (transfer full) */
static char *
make_label (const char *name, gboolean pinned)
{
  if (name == NULL)
    return g_strdup (pinned ? _ ("Let This Turn Fade") : _ ("Keep This Turn in Memory"));
  /* Translators: %s is a file's name */
  return g_strdup_printf (pinned ? _ ("Let %s Fade") : _ ("Keep %s in Memory"), name);
}

void
ks_pin_button_update (GtkWidget *button, const char *name, gboolean pinned, gboolean can_change)
{
  g_autofree char *label = make_label (name, pinned);

  gtk_widget_set_tooltip_text (button, label);
  gtk_accessible_update_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL, label,
                                  -1);
  gtk_widget_set_sensitive (button, can_change);
  if (pinned)
    gtk_widget_add_css_class (button, "pinned");
  else
    gtk_widget_remove_css_class (button, "pinned");
}
