/* ks-application.c - see ks-application.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-application.h"

#include "ui/ks-compat.h"
#include "ui/ks-frame-log.h"
#include "ui/ks-preferences.h"
#include "ui/ks-resource.h"
#include "ui/ks-shortcuts.h"
#include "ui/ks-window.h"

#include <glib/gi18n.h>

struct _KsApplication {
  AdwApplication parent_instance;

  KsSettings *settings;
  KsLibrary *library;
  char *data_dir;        /* of --data-dir; NULL = the user's */
  char *model;           /* of --model */
  gboolean is_closing;   /* the library stores what it has */
  gboolean wanted_again; /* started anew meanwhile */
};

G_DEFINE_FINAL_TYPE (KsApplication, ks_application, ADW_TYPE_APPLICATION)

/* --- start --- */

static void
apply_color_scheme (GSettings *settings, const char *key, gpointer data)
{
  g_autofree char *name = g_settings_get_string (settings, "color-scheme");
  AdwColorScheme scheme = g_str_equal (name, "light")  ? ADW_COLOR_SCHEME_FORCE_LIGHT
                          : g_str_equal (name, "dark") ? ADW_COLOR_SCHEME_FORCE_DARK
                                                       : ADW_COLOR_SCHEME_DEFAULT;

  adw_style_manager_set_color_scheme (adw_style_manager_get_default (), scheme);
}

static void
ensure_library (KsApplication *self)
{
  if (self->library != NULL)
    return;
  self->library = ks_library_new (self->settings, self->data_dir);
  if (self->model != NULL)
    ks_library_load_model (self->library, self->model);
}

/* NULL while the last run still ends: the window comes when it has. */
static KsWindow *
ensure_window (KsApplication *self)
{
  GtkWindow *window = gtk_application_get_active_window (GTK_APPLICATION (self));

  if (self->is_closing) {
    self->wanted_again = TRUE;
    return NULL;
  }
  ensure_library (self);
  while (window != NULL && !KS_IS_WINDOW (window))
    window = gtk_window_get_transient_for (window);
  if (window == NULL)
    window = GTK_WINDOW (ks_window_new (GTK_APPLICATION (self), self->library));
  return KS_WINDOW (window);
}

static void
ks_application_activate (GApplication *application)
{
  KsWindow *window = ensure_window (KS_APPLICATION (application));

  if (window != NULL)
    gtk_window_present (GTK_WINDOW (window));
}

static void
ks_application_open (GApplication *application, GFile **files, int n_file, const char *hint)
{
  KsWindow *window = ensure_window (KS_APPLICATION (application));

  if (window == NULL)
    return;
  gtk_window_present (GTK_WINDOW (window));
  ks_window_attach_files (window, files, (gsize)n_file);
}

/* --- end --- */

static void
call_bus (KsApplication *self, const char *method, GVariant *arguments,
          GAsyncReadyCallback callback)
{
  g_dbus_connection_call (g_application_get_dbus_connection (G_APPLICATION (self)),
                          "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
                          method, arguments, NULL, G_DBUS_CALL_FLAGS_NONE, -1, NULL, callback,
                          self);
}

/* The reference of close_library ends here. */
static void
end_closing (KsApplication *self)
{
  self->is_closing = FALSE;
  if (self->wanted_again) {
    self->wanted_again = FALSE;
    g_application_activate (G_APPLICATION (self));
  }
  g_application_release (G_APPLICATION (self));
  g_object_unref (self);
}

/* Everything that came by our name is here by now. */
static void
released_cb (GObject *bus, GAsyncResult *result, gpointer data)
{
  KsApplication *self = data;
  g_autoptr (GVariant) reply = NULL;

  reply = g_dbus_connection_call_finish (G_DBUS_CONNECTION (bus), result, NULL);
  if (self->wanted_again)
    call_bus (self, "RequestName", g_variant_new ("(su)", KS_APP_ID, 4 /* do not queue */), NULL);
  end_closing (self);
}

static void
closed_cb (GObject *library, GAsyncResult *result, gpointer data)
{
  KsApplication *self = data;

  (void)ks_library_close_finish (KS_LIBRARY (library), result);
  g_clear_object (&self->library);
  ks_settings_save (self->settings, NULL);
  /* A start that finds our name while we end would hand its wish to nobody: the name goes first. */
  if (g_application_get_dbus_connection (G_APPLICATION (self)) != NULL)
    call_bus (self, "ReleaseName", g_variant_new ("(s)", KS_APP_ID), released_cb);
  else
    end_closing (self);
}

/* The last window is gone: the process stays until everything is on the disk. */
static void
close_library (KsApplication *self)
{
  if (self->library == NULL || self->is_closing)
    return;
  self->is_closing = TRUE;
  g_application_hold (G_APPLICATION (self));
  ks_library_close_async (self->library, closed_cb, g_object_ref (self));
}

static void
ks_application_window_removed (GtkApplication *application, GtkWindow *window)
{
  GTK_APPLICATION_CLASS (ks_application_parent_class)->window_removed (application, window);
  if (KS_IS_WINDOW (window))
    close_library (KS_APPLICATION (application));
}

static gboolean
close_request_cb (GtkWindow *window, gpointer data)
{
  ks_window_save_state (KS_WINDOW (window));
  return GDK_EVENT_PROPAGATE;
}

static void
ks_application_window_added (GtkApplication *application, GtkWindow *window)
{
  GTK_APPLICATION_CLASS (ks_application_parent_class)->window_added (application, window);
  if (!KS_IS_WINDOW (window))
    return;
  g_signal_connect (window, "close-request", G_CALLBACK (close_request_cb), NULL);
  ks_frame_log_start (window);
}

void
ks_application_quit (KsApplication *self)
{
  g_autoptr (GList) windows = NULL;

  g_return_if_fail (KS_IS_APPLICATION (self));
  self->wanted_again = FALSE;
  windows = g_list_copy (gtk_application_get_windows (GTK_APPLICATION (self)));
  for (GList *l = windows; l != NULL; l = l->next)
    gtk_window_close (l->data);
  close_library (self);
}

/* --- actions and options --- */

static void
quit_action (GSimpleAction *action, GVariant *parameter, gpointer self)
{
  ks_application_quit (self);
}

static void
new_chat_action (GSimpleAction *action, GVariant *parameter, gpointer self)
{
  KsWindow *window = ensure_window (self);

  if (window == NULL)
    return;
  ks_window_open_session (window, NULL);
  gtk_window_present (GTK_WINDOW (window));
  ks_window_focus_composer (window);
}

static void
preferences_action (GSimpleAction *action, GVariant *parameter, gpointer self)
{
  KsWindow *window = ensure_window (self);

  if (window != NULL)
    ks_preferences_present (GTK_WIDGET (window), KS_APPLICATION (self)->library,
                            ks_window_get_chat (window));
}

static void
about_action (GSimpleAction *action, GVariant *parameter, gpointer self)
{
  KsWindow *window = ensure_window (self);

  if (window != NULL)
    ks_about (GTK_WIDGET (window));
}

static const GActionEntry entries[] = {
    {.name = "about", .activate = about_action},
    {.name = "new-chat", .activate = new_chat_action},
    {.name = "preferences", .activate = preferences_action},
    {.name = "quit", .activate = quit_action},
};

static const GOptionEntry options[] = {
    {"new", 0, 0, G_OPTION_ARG_NONE, NULL, N_ ("Begin a new session"), NULL},
    {"model", 0, 0, G_OPTION_ARG_FILENAME, NULL, N_ ("Load this model and keep to it"),
     N_ ("FILE")},
    {"data-dir", 0, 0, G_OPTION_ARG_FILENAME, NULL, N_ ("Keep sessions in this folder"),
     N_ ("FOLDER")},
    {"version", 0, 0, G_OPTION_ARG_NONE, NULL, N_ ("Print the version and exit"), NULL},
    {"check-display", 0, G_OPTION_FLAG_HIDDEN, G_OPTION_ARG_NONE, NULL, NULL, NULL},
    {NULL}};

/* Runs in every process that is started, before it knows whether it is the first. */
static int
ks_application_handle_local_options (GApplication *application, GVariantDict *given)
{
  KsApplication *self = KS_APPLICATION (application);
  g_autoptr (GError) error = NULL;
  const char *model = NULL;

  g_variant_dict_lookup (given, "data-dir", "^ay", &self->data_dir);
  if (g_variant_dict_lookup (given, "model", "^&ay", &model)) /* the settings will hold it */
    self->model = g_canonicalize_filename (model, NULL);
  if (!g_variant_dict_contains (given, "new"))
    return -1;
  if (!g_application_register (application, NULL, &error)) {
    g_warning ("%s", error->message);
    return 1;
  }
  g_action_group_activate_action (G_ACTION_GROUP (application), "new-chat", NULL);
  /* The first process has a window now; another one has handed the wish over. */
  return g_application_get_is_remote (application) ? 0 : -1;
}

static void
ks_application_startup (GApplication *application)
{
  KsApplication *self = KS_APPLICATION (application);
  gsize n = 0;
  const KsShortcut *shortcuts = ks_shortcuts_get (&n);
  GSettings *settings = NULL;

  G_APPLICATION_CLASS (ks_application_parent_class)->startup (application);
  gtk_window_set_default_icon_name (KS_APP_ID);
  self->settings = ks_settings_new (NULL);
  settings = ks_settings_get_gsettings (self->settings);
  if (settings != NULL) {
    g_signal_connect_object (settings, "changed::color-scheme", G_CALLBACK (apply_color_scheme),
                             self, G_CONNECT_DEFAULT);
    apply_color_scheme (settings, NULL, NULL);
  }
  g_action_map_add_action_entries (G_ACTION_MAP (self), entries, G_N_ELEMENTS (entries), self);
  for (gsize i = 0; i < n; i++)
    if (shortcuts[i].action != NULL)
      gtk_application_set_accels_for_action (GTK_APPLICATION (self), shortcuts[i].action,
                                             (const char *const *)shortcuts[i].accels);
}

static void
ks_application_finalize (GObject *object)
{
  KsApplication *self = KS_APPLICATION (object);

  g_clear_object (&self->library);
  g_clear_object (&self->settings);
  g_free (self->data_dir);
  g_free (self->model);
  G_OBJECT_CLASS (ks_application_parent_class)->finalize (object);
}

static void
ks_application_class_init (KsApplicationClass *klass)
{
  GApplicationClass *application_class = G_APPLICATION_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = ks_application_finalize;
  application_class->activate = ks_application_activate;
  application_class->open = ks_application_open;
  application_class->startup = ks_application_startup;
  application_class->handle_local_options = ks_application_handle_local_options;
  GTK_APPLICATION_CLASS (klass)->window_added = ks_application_window_added;
  GTK_APPLICATION_CLASS (klass)->window_removed = ks_application_window_removed;
}

static void
ks_application_init (KsApplication *self)
{
  g_application_add_main_option_entries (G_APPLICATION (self), options);
  g_application_set_option_context_parameter_string (G_APPLICATION (self), _ ("[FILE…]"));
  g_application_set_option_context_summary (
      G_APPLICATION (self), _ ("Opens the window; files are attached to a new session."));
}

KsApplication *
ks_application_new (void)
{
  return g_object_new (KS_TYPE_APPLICATION, "application-id", KS_APP_ID, "flags",
                       G_APPLICATION_HANDLES_OPEN, "resource-base-path", "/org/keepsake/Keepsake",
                       NULL);
}
