/* ks-text-viewer.c - see ks-text-viewer.h.
 * The view lays out whole paragraphs: long ones are broken for display, and what is too much for a
 * view ends with an ellipsis. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-text-viewer.h"

#include "ui/ks-compat.h"
#include "ui/ks-error-text.h"

#define MAX_SHOWN_BYTES ((gsize)2 << 20)
#define MAX_LINE_CHARS 1000
#define SOFT_LINE_CHARS 800 /* from here a blank is good enough */
#define MAX_RUN_CHARS 200   /* without a blank */
#define MARGIN_PX 12

/* (transfer full) */
static char *
make_shown (const char *text)
{
  GString *shown = g_string_new (NULL);
  guint n_line = 0, n_run = 0;

  for (const char *p = text; *p != '\0'; p = g_utf8_next_char (p)) {
    gunichar c = g_utf8_get_char (p);
    gboolean is_blank = g_unichar_isspace (c);

    if (shown->len >= MAX_SHOWN_BYTES) {
      g_string_append (shown, "\n…");
      break;
    }
    n_line = c == '\n' ? 0 : n_line + 1;
    n_run = is_blank ? 0 : n_run + 1;
    g_string_append_unichar (shown, c);
    if (n_line >= MAX_LINE_CHARS || n_run >= MAX_RUN_CHARS ||
        (is_blank && n_line >= SOFT_LINE_CHARS)) {
      g_string_append_c (shown, '\n');
      n_line = n_run = 0;
    }
  }
  return g_string_free (shown, FALSE);
}

/* data is a reference to the view, which may have been closed meanwhile. */
static void
read_cb (GObject *source, GAsyncResult *result, gpointer data)
{
  g_autoptr (GtkTextView) view = data;
  g_autoptr (GError) error = NULL;
  g_autofree char *text = ks_library_read_text_finish (KS_LIBRARY (source), result, &error);
  g_autofree char *shown = text != NULL ? make_shown (text) : ks_error_text_dup (error);

  gtk_text_buffer_set_text (gtk_text_view_get_buffer (view), shown, -1);
}

static GtkWidget *
make_view (const char *name)
{
  GtkWidget *view = gtk_text_view_new ();
  GtkTextView *text_view = GTK_TEXT_VIEW (view);

  gtk_text_view_set_editable (text_view, FALSE);
  gtk_text_view_set_cursor_visible (text_view, FALSE);
  gtk_text_view_set_wrap_mode (text_view, GTK_WRAP_WORD_CHAR);
  gtk_text_view_set_left_margin (text_view, MARGIN_PX);
  gtk_text_view_set_right_margin (text_view, MARGIN_PX);
  gtk_text_view_set_top_margin (text_view, MARGIN_PX);
  gtk_text_view_set_bottom_margin (text_view, MARGIN_PX);
  gtk_accessible_update_property (GTK_ACCESSIBLE (view), GTK_ACCESSIBLE_PROPERTY_LABEL, name, -1);
  return view;
}

void
ks_text_viewer_present (GtkWidget *parent, KsLibrary *library, KsAttachment *attachment)
{
  const char *name = ks_attachment_get_name (attachment);
  GtkWidget *view = make_view (name);
  GtkWidget *scrolled = gtk_scrolled_window_new ();

  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (scrolled), view);
  gtk_widget_set_vexpand (scrolled, TRUE);
  ks_library_read_text_async (library, attachment, NULL, read_cb, g_object_ref (view));
  ks_dialog_present (ks_dialog_new (name, scrolled, 720, 640), parent);
  gtk_widget_grab_focus (view);
}
