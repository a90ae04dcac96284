/* ks-kept-row.c - see ks-kept-row.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-kept-row.h"

#include <glib/gi18n.h>

KsKeptRow
ks_kept_row_new (PangoEllipsizeMode ellipsize)
{
  KsKeptRow row;
  GtkWidget *line = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);

  row.box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 3);
  row.title = GTK_LABEL (gtk_label_new (NULL));
  row.pin = gtk_image_new_from_icon_name ("view-pin-symbolic");
  row.share = GTK_INSCRIPTION (gtk_inscription_new (""));
  row.bar = GTK_LEVEL_BAR (gtk_level_bar_new ());
  gtk_label_set_xalign (row.title, 0);
  gtk_label_set_ellipsize (row.title, ellipsize);
  gtk_widget_set_hexpand (GTK_WIDGET (row.title), TRUE);
  gtk_widget_set_visible (row.pin, FALSE);
  gtk_widget_set_tooltip_text (row.pin, _ ("Kept in memory"));
  gtk_widget_add_css_class (row.pin, "accent");
  g_object_set (row.share, "min-chars", 10, "nat-chars", 13, "xalign", 1.0f, NULL);
  gtk_widget_add_css_class (GTK_WIDGET (row.share), "numeric");
  gtk_widget_add_css_class (GTK_WIDGET (row.share), "dim-label");
  gtk_level_bar_remove_offset_value (row.bar, GTK_LEVEL_BAR_OFFSET_LOW);
  gtk_level_bar_remove_offset_value (row.bar, GTK_LEVEL_BAR_OFFSET_HIGH);
  gtk_level_bar_remove_offset_value (row.bar, GTK_LEVEL_BAR_OFFSET_FULL);
  gtk_box_append (GTK_BOX (line), GTK_WIDGET (row.title));
  gtk_box_append (GTK_BOX (line), row.pin);
  gtk_box_append (GTK_BOX (line), GTK_WIDGET (row.share));
  gtk_box_append (GTK_BOX (row.box), line);
  gtk_box_append (GTK_BOX (row.box), GTK_WIDGET (row.bar));
  return row;
}
