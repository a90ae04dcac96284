/* ks-toast.c - see ks-toast.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-toast.h"

static AdwToastOverlay *
find_overlay (GtkWidget *root)
{
  AdwToastOverlay *found = ADW_IS_TOAST_OVERLAY (root) ? ADW_TOAST_OVERLAY (root) : NULL;

  for (GtkWidget *child = gtk_widget_get_first_child (root); child != NULL && found == NULL;
       child = gtk_widget_get_next_sibling (child))
    found = find_overlay (child);
  return found;
}

AdwToast *
ks_toast_new (const char *text)
{
  g_autofree char *markup = g_markup_escape_text (text, -1); /* titles are markup */
  AdwToast *toast = adw_toast_new (markup);

  /* What was just done is told now; a toast that is in its way comes back after it. */
  adw_toast_set_priority (toast, ADW_TOAST_PRIORITY_HIGH);
  return toast;
}

void
ks_toast_add (GtkWidget *widget, AdwToast *toast)
{
  GtkRoot *root = gtk_widget_get_root (widget);
  AdwToastOverlay *overlay = root == NULL ? NULL : find_overlay (GTK_WIDGET (root));

  if (overlay != NULL)
    adw_toast_overlay_add_toast (overlay, toast);
  else
    g_object_unref (toast);
}
