/* ks-screenshot.c - see ks-screenshot.h.
 * The portal answers a call with a request object at once and with that object's signal later; the
 * signal may come before the answer, so its path is made beforehand from our name on the bus. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-screenshot.h"

#include "media/ks-media.h"

#define PORTAL_NAME "org.freedesktop.portal.Desktop"
#define PORTAL_PATH "/org/freedesktop/portal/desktop"
#define PORTAL_INTERFACE "org.freedesktop.portal.Screenshot"
#define REQUEST_INTERFACE "org.freedesktop.portal.Request"
#define CHECK_MS 3000

/* --- is there one --- */

static void
checked_cb (GObject *source, GAsyncResult *result, gpointer user)
{
  g_autoptr (GTask) task = user;
  g_autoptr (GVariant) reply =
      g_dbus_connection_call_finish (G_DBUS_CONNECTION (source), result, NULL);

  g_task_return_boolean (task, reply != NULL);
}

static void
check_on (GTask *take_task, GDBusConnection *bus)
{
  g_dbus_connection_call (bus, PORTAL_NAME, PORTAL_PATH, "org.freedesktop.DBus.Properties", "Get",
                          g_variant_new ("(ss)", PORTAL_INTERFACE, "version"),
                          G_VARIANT_TYPE ("(v)"), G_DBUS_CALL_FLAGS_NONE, CHECK_MS,
                          g_task_get_cancellable (take_task), checked_cb, take_task);
}

static void
check_bus_cb (GObject *source, GAsyncResult *result, gpointer user)
{
  g_autoptr (GDBusConnection) bus = g_bus_get_finish (result, NULL);

  if (bus != NULL) {
    check_on (user, bus);
    return;
  }
  g_task_return_boolean (user, FALSE);
  g_object_unref (user);
}

void
ks_screenshot_check_async (GDBusConnection *bus, GCancellable *cancellable,
                           GAsyncReadyCallback callback, gpointer user)
{
  GTask *task = g_task_new (NULL, cancellable, callback, user);

  g_task_set_check_cancellable (task, FALSE);
  if (bus != NULL)
    check_on (task, bus);
  else
    g_bus_get (G_BUS_TYPE_SESSION, cancellable, check_bus_cb, task);
}

gboolean
ks_screenshot_check_finish (GAsyncResult *result)
{
  return g_task_propagate_boolean (G_TASK (result), NULL);
}

/* --- taking one --- */

typedef struct {
  GDBusConnection *bus;
  char *parent_window, *path; /* path: of the request object */
  guint signal_id;
  GSource *cancel; /* watches the cancellable */
  gboolean is_over;
} Take;

static void
take_free (gpointer data)
{
  Take *take = data;

  g_clear_object (&take->bus);
  g_free (take->parent_window);
  g_free (take->path);
  g_free (take);
}

/* Answers once, and lets go of everything that still holds the task. */
static void
end (GTask *task, char *take_path, GError *take_error)
{
  Take *take = g_task_get_task_data (task);

  if (take->is_over) {
    g_free (take_path);
    g_clear_error (&take_error);
    return;
  }
  take->is_over = TRUE;
  if (take->signal_id != 0)
    g_dbus_connection_signal_unsubscribe (take->bus, take->signal_id);
  take->signal_id = 0;
  if (take->cancel != NULL)
    g_source_destroy (take->cancel);
  g_clear_pointer (&take->cancel, g_source_unref);
  if (take_error != NULL)
    g_task_return_error (task, take_error);
  else
    g_task_return_pointer (task, take_path, g_free);
  g_object_unref (task);
}

static GError *
make_failure (const char *why)
{
  return g_error_new (KS_MEDIA_ERROR, KS_MEDIA_ERROR_FAILED,
                      "the desktop gave no screenshot: %s: take one with the desktop's own key and "
                      "attach the file",
                      why);
}

static GError *
make_cancelled (void)
{
  return g_error_new_literal (KS_MEDIA_ERROR, KS_MEDIA_ERROR_CANCELLED,
                              "the screenshot was cancelled");
}

static void
response_cb (GDBusConnection *bus, const char *sender, const char *object, const char *interface,
             const char *signal, GVariant *parameters, gpointer user)
{
  g_autoptr (GVariant) results = NULL;
  const char *uri = NULL;
  char *path = NULL;
  guint32 response;

  if (!g_variant_is_of_type (parameters, G_VARIANT_TYPE ("(ua{sv})"))) {
    end (user, NULL, make_failure ("its answer is not one"));
    return;
  }
  g_variant_get (parameters, "(u@a{sv})", &response, &results);
  if (response == 1) {
    end (user, NULL, make_cancelled ());
    return;
  }
  if (response == 0 && g_variant_lookup (results, "uri", "&s", &uri))
    path = g_filename_from_uri (uri, NULL, NULL);
  end (user, path, path == NULL ? make_failure ("it names no file") : NULL);
}

static void
listen_on (GTask *task, const char *path)
{
  Take *take = g_task_get_task_data (task);

  if (g_strcmp0 (take->path, path) == 0)
    return;
  if (take->signal_id != 0)
    g_dbus_connection_signal_unsubscribe (take->bus, take->signal_id);
  g_free (take->path);
  take->path = g_strdup (path);
  take->signal_id = g_dbus_connection_signal_subscribe (
      take->bus, PORTAL_NAME, REQUEST_INTERFACE, "Response", path, NULL, G_DBUS_SIGNAL_FLAGS_NONE,
      response_cb, g_object_ref (task), g_object_unref);
}

static void
called_cb (GObject *source, GAsyncResult *result, gpointer user)
{
  g_autoptr (GTask) task = user;
  g_autoptr (GError) error = NULL;
  g_autoptr (GVariant) reply =
      g_dbus_connection_call_finish (G_DBUS_CONNECTION (source), result, &error);
  Take *take = g_task_get_task_data (task);
  const char *path;

  if (reply == NULL) {
    g_dbus_error_strip_remote_error (error);
    end (task, NULL, make_failure (error->message));
  } else if (!take->is_over) {
    g_variant_get (reply, "(&o)", &path);
    listen_on (task, path); /* old portals choose the path themselves */
  }
}

static gboolean
cancelled_cb (GCancellable *cancellable, gpointer user)
{
  Take *take = g_task_get_task_data (user);

  if (take->bus != NULL && take->path != NULL && !take->is_over)
    g_dbus_connection_call (take->bus, PORTAL_NAME, take->path, REQUEST_INTERFACE, "Close", NULL,
                            NULL, G_DBUS_CALL_FLAGS_NONE, -1, NULL, NULL, NULL);
  end (user, NULL, make_cancelled ());
  return G_SOURCE_REMOVE;
}

static void
ask_portal (GTask *task, GDBusConnection *bus)
{
  Take *take = g_task_get_task_data (task);
  g_autofree char *token = g_strdup_printf ("keepsake%08x", g_random_int ());
  g_autofree char *sender = g_strdup (g_dbus_connection_get_unique_name (bus) + 1), *path = NULL;
  GVariantBuilder options;

  take->bus = g_object_ref (bus);
  path = g_strdup_printf (PORTAL_PATH "/request/%s/%s", g_strdelimit (sender, ".", '_'), token);
  listen_on (task, path);
  g_variant_builder_init (&options, G_VARIANT_TYPE_VARDICT);
  g_variant_builder_add (&options, "{sv}", "handle_token", g_variant_new_string (token));
  g_variant_builder_add (&options, "{sv}", "interactive", g_variant_new_boolean (TRUE));
  g_variant_builder_add (&options, "{sv}", "modal", g_variant_new_boolean (TRUE));
  g_dbus_connection_call (bus, PORTAL_NAME, PORTAL_PATH, PORTAL_INTERFACE, "Screenshot",
                          g_variant_new ("(sa{sv})", take->parent_window, &options),
                          G_VARIANT_TYPE ("(o)"), G_DBUS_CALL_FLAGS_NONE, G_MAXINT, NULL, called_cb,
                          g_object_ref (task));
}

static void
take_bus_cb (GObject *source, GAsyncResult *result, gpointer user)
{
  g_autoptr (GTask) task = user;
  g_autoptr (GError) error = NULL;
  g_autoptr (GDBusConnection) bus = g_bus_get_finish (result, &error);
  Take *take = g_task_get_task_data (task);

  if (bus == NULL)
    end (task, NULL, make_failure (error->message));
  else if (!take->is_over)
    ask_portal (task, bus);
}

void
ks_screenshot_take_async (GDBusConnection *bus, const char *parent_window,
                          GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user)
{
  GTask *task = g_task_new (NULL, cancellable, callback, user); /* end() gives it up */
  Take *take = g_new0 (Take, 1);

  take->parent_window = g_strdup (parent_window != NULL ? parent_window : "");
  g_task_set_task_data (task, take, take_free);
  g_task_set_check_cancellable (task, FALSE); /* the portal's window has to be closed first */
  if (cancellable != NULL) {
    take->cancel = g_cancellable_source_new (cancellable);
    g_source_set_callback (take->cancel, G_SOURCE_FUNC (cancelled_cb), g_object_ref (task),
                           g_object_unref);
    g_source_attach (take->cancel, g_task_get_context (task));
  }
  if (bus != NULL)
    ask_portal (task, bus);
  else
    g_bus_get (G_BUS_TYPE_SESSION, NULL, take_bus_cb, g_object_ref (task));
}

char *
ks_screenshot_take_finish (GAsyncResult *result, GError **error)
{
  return g_task_propagate_pointer (G_TASK (result), error);
}
