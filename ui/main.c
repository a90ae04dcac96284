/* main.c - start of the window's program: locale, translations, signals.
 * A start that finds another run hands its wish over and ends.  That run may be about to end, and
 * give its name away between our question and our wish: then the wish reached nobody, and this
 * start begins again. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-data-dir.h"
#include "ui/ks-application.h"
#include "ui/ks-resource.h"

#include <glib-unix.h>
#include <glib/gi18n.h>

#include <locale.h>

#define MAX_START 5u
#define N_LOOK 20u
#define LOOK_US 50000u

/* One start of the program. */
typedef struct {
  gboolean went_on;             /* no option ended it */
  gboolean is_registered;       /* as a run of its own, or with another one */
  GDBusConnection *handed_over; /* NULL when it is the run */
} start;

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
  if (!g_variant_dict_contains (given, "version")) {
    ((start *)data)->went_on = TRUE;
    return -1;
  }
  g_print ("Keepsake %s\n", KS_VERSION);
  return 0;
}

/* Where the run registered, and the bus when it is not the only one. */
static void
registered_cb (GApplication *application, GParamSpec *property, gpointer data)
{
  start *self = data;

  if (!g_application_get_is_registered (application))
    return;
  self->is_registered = TRUE;
  if (g_application_get_is_remote (application))
    g_set_object (&self->handed_over, g_application_get_dbus_connection (application));
}

/* Whether somebody has our name now, or within a moment: a run that was ending and got the wish in
 * time takes its name again. */
static gboolean
is_anybody_there (GDBusConnection *bus)
{
  for (guint i = 0; i < N_LOOK; i++) {
    g_autoptr (GVariant) reply = g_dbus_connection_call_sync (
        bus, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
        "NameHasOwner", g_variant_new ("(s)", KS_APP_ID), G_VARIANT_TYPE ("(b)"),
        G_DBUS_CALL_FLAGS_NONE, -1, NULL, NULL);
    gboolean has_owner = TRUE; /* without a bus there is nothing to find out */

    if (reply != NULL)
      g_variant_get (reply, "(b)", &has_owner);
    if (has_owner)
      return TRUE;
    g_usleep (LOOK_US);
  }
  return FALSE;
}

/* One start; FALSE when its wish reached nobody. */
static gboolean
run (int argc, char **argv, int *out_status)
{
  g_autoptr (KsApplication) application = ks_application_new ();
  start self = {0};
  gboolean is_done;
  guint signals[2];

  g_signal_connect (application, "handle-local-options", G_CALLBACK (local_options_cb), &self);
  g_signal_connect (application, "notify::is-registered", G_CALLBACK (registered_cb), &self);
  signals[0] = g_unix_signal_add (SIGINT, quit_cb, application);
  signals[1] = g_unix_signal_add (SIGTERM, quit_cb, application);
  *out_status = g_application_run (G_APPLICATION (application), argc, argv);
  g_source_remove (signals[0]);
  g_source_remove (signals[1]);
  g_signal_handlers_disconnect_by_data (application, &self);
  /* The other run may also go before it told us of its actions: then nothing is registered. */
  is_done = self.handed_over != NULL ? is_anybody_there (self.handed_over)
                                     : self.is_registered || !self.went_on;
  g_clear_object (&self.handed_over);
  return is_done;
}

int
main (int argc, char **argv)
{
  g_autofree char *locale_dir = ks_locale_dir_dup ();
  int status = 0;

  setlocale (LC_ALL, "");
  bindtextdomain (GETTEXT_PACKAGE, locale_dir);
  bind_textdomain_codeset (GETTEXT_PACKAGE, "UTF-8");
  textdomain (GETTEXT_PACKAGE);
  for (guint i = 0; i < MAX_START && !run (argc, argv, &status); i++)
    continue;
  return status;
}
