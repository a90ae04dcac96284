/* ks-toast.c - see ks-toast.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-toast.h"

/* A title of its own stays on one line and is cut off. */
#define LONGEST_LINE 40
#define WIDTH_CHARS 46
#define CHARS_A_SECOND 14 /* read slowly */
#define SHORTEST_S 5      /* what the platform gives every toast */

static AdwToastOverlay *
find_overlay (GtkWidget *root)
{
  AdwToastOverlay *found = ADW_IS_TOAST_OVERLAY (root) ? ADW_TOAST_OVERLAY (root) : NULL;

  for (GtkWidget *child = gtk_widget_get_first_child (root); child != NULL && found == NULL;
       child = gtk_widget_get_next_sibling (child))
    found = find_overlay (child);
  return found;
}

static GtkWidget *
title_new (const char *text)
{
  GtkWidget *title = gtk_label_new (text);

  gtk_label_set_wrap (GTK_LABEL (title), TRUE);
  gtk_label_set_wrap_mode (GTK_LABEL (title), PANGO_WRAP_WORD_CHAR);
  gtk_label_set_max_width_chars (GTK_LABEL (title), WIDTH_CHARS);
  gtk_label_set_xalign (GTK_LABEL (title), 0);
  gtk_widget_set_margin_top (title, 6);
  gtk_widget_set_margin_bottom (title, 6);
  gtk_widget_add_css_class (title, "heading");
  return title;
}

AdwToast *
ks_toast_new (const char *text)
{
  g_autofree char *markup = g_markup_escape_text (text, -1); /* titles are markup */
  AdwToast *toast = adw_toast_new (markup);
  glong n_char = g_utf8_strlen (text, -1);

  if (n_char > LONGEST_LINE) {
    adw_toast_set_custom_title (toast, title_new (text));
    adw_toast_set_timeout (toast, MAX (SHORTEST_S, (guint)(n_char / CHARS_A_SECOND) + 1));
  }
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
