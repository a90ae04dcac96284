/* main.c - start of the window's program: locale, translations, signals. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-data-dir.h"
#include "ui/ks-application.h"

#include <glib-unix.h>
#include <glib/gi18n.h>

#include <locale.h>

static gboolean
quit_cb (gpointer data)
{
  g_application_quit (data);
  return G_SOURCE_REMOVE;
}

int
main (int argc, char **argv)
{
  g_autoptr (KsApplication) application = NULL;
  g_autofree char *locale_dir = ks_locale_dir_dup ();

  setlocale (LC_ALL, "");
  bindtextdomain (GETTEXT_PACKAGE, locale_dir);
  bind_textdomain_codeset (GETTEXT_PACKAGE, "UTF-8");
  textdomain (GETTEXT_PACKAGE);
  application = ks_application_new ();
  g_unix_signal_add (SIGINT, quit_cb, application);
  g_unix_signal_add (SIGTERM, quit_cb, application);
  return g_application_run (G_APPLICATION (application), argc, argv);
}
