/* empty-window.c - the smallest libadwaita program, which start-up times are compared with. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-frame-log.h"

#include <adwaita.h>

static void
activate_cb (GtkApplication *application)
{
  GtkWidget *window = adw_application_window_new (application);

  gtk_window_set_default_size (GTK_WINDOW (window), 1100, 760);
  ks_frame_log_start (GTK_WINDOW (window));
  gtk_window_present (GTK_WINDOW (window));
}

int
main (int argc, char **argv)
{
  g_autoptr (AdwApplication) application =
      adw_application_new ("org.keepsake.Empty", G_APPLICATION_DEFAULT_FLAGS);

  g_signal_connect (application, "activate", G_CALLBACK (activate_cb), NULL);
  return g_application_run (G_APPLICATION (application), argc, argv);
}
