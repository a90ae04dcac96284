/* test-window.c - the window alone. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/ui-test.h"
#include "ui/ks-window.h"

static gboolean
is_mapped (gpointer widget)
{
  return gtk_widget_get_mapped (widget);
}

/* The template is complete: a window comes up and goes away without a word of warning. */
static void
test_window_opens (void)
{
  KsWindow *window = ks_window_new (NULL);

  gtk_window_present (GTK_WINDOW (window));
  ui_test_wait (is_mapped, window);
  ui_test_settle (GTK_WIDGET (window));
  ui_test_close (GTK_WINDOW (window));
}

int
main (int argc, char **argv)
{
  ui_test_init (&argc, &argv);
  g_test_add_func ("/window/opens", test_window_opens);
  return g_test_run ();
}
