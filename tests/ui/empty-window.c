/* empty-window.c - the smallest libadwaita program: what start-up and frame times are compared
 * with. KS_BUSY_THREADS=N: every frame is drawn anew while N threads compute at the engine's
 * priority, so that it meets the same trouble as the window whose answer streams. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-frame-log.h"

#include <adwaita.h>
#include <glib-unix.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static gpointer
compute (gpointer data)
{
  volatile guint64 sum = 0;

  setpriority (PRIO_PROCESS, (id_t)syscall (SYS_gettid), getpriority (PRIO_PROCESS, 0) + 5);
  for (;;)
    sum = sum * 6364136223846793005u + 1;
  return NULL;
}

static gboolean
tick_cb (GtkWidget *bar, GdkFrameClock *clock, gpointer user_data)
{
  gtk_progress_bar_pulse (GTK_PROGRESS_BAR (bar));
  return G_SOURCE_CONTINUE;
}

static void
make_busy (GtkWidget *window, guint n_thread)
{
  GtkWidget *bar = gtk_progress_bar_new ();

  adw_application_window_set_content (ADW_APPLICATION_WINDOW (window), bar);
  gtk_widget_add_tick_callback (bar, tick_cb, NULL, NULL);
  for (guint i = 0; i < n_thread; i++)
    g_thread_unref (g_thread_new ("compute", compute, NULL));
}

/* Well, so that the frames are written. */
static gboolean
terminate_cb (gpointer window)
{
  gtk_window_destroy (GTK_WINDOW (window));
  return G_SOURCE_REMOVE;
}

static void
activate_cb (GtkApplication *application)
{
  GtkWidget *window = adw_application_window_new (application);
  const char *n_busy = g_getenv ("KS_BUSY_THREADS");

  gtk_window_set_default_size (GTK_WINDOW (window), 1100, 760);
  if (n_busy != NULL)
    make_busy (window, (guint)g_ascii_strtoull (n_busy, NULL, 10));
  ks_frame_log_start (GTK_WINDOW (window));
  g_unix_signal_add (SIGTERM, terminate_cb, window);
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
