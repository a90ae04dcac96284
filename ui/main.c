/* main.c - start of the window's program: locale, translations, signals. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-data-dir.h"
#include "ui/ks-application.h"

#include <glib-unix.h>
#include <glib/gi18n.h>

#include <locale.h>

static gboolean
quit_cb (gpointer application)
{
  ks_application_quit (application);
  return G_SOURCE_CONTINUE;
}

static int
local_options_cb (GApplication *application, GVariantDict *given, gpointer data)
{
  if (g_variant_dict_contains (given, "check-display"))
    return gtk_init_check () ? 0 : 1;
  if (!g_variant_dict_contains (given, "version"))
    return -1;
  g_print ("Keepsake %s\n", KS_VERSION);
  return 0;
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
  g_signal_connect (application, "handle-local-options", G_CALLBACK (local_options_cb), NULL);
  g_unix_signal_add (SIGINT, quit_cb, application);
  g_unix_signal_add (SIGTERM, quit_cb, application);
  return g_application_run (G_APPLICATION (application), argc, argv);
}
