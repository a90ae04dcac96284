/* test-screenshot.c - the desktop's portal for screenshots, played by a second connection on a bus
 * of the test's own. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-media.h"
#include "media/ks-screenshot.h"

#include <string.h>

#define PORTAL_NAME "org.freedesktop.portal.Desktop"
#define PORTAL_PATH "/org/freedesktop/portal/desktop"

static const char portal_xml[] =
    "<node><interface name='org.freedesktop.portal.Screenshot'>"
    "<property name='version' type='u' access='read'/>"
    "<method name='Screenshot'><arg type='s' direction='in'/><arg type='a{sv}' direction='in'/>"
    "<arg type='o' direction='out'/></method></interface></node>";
static const char request_xml[] = "<node><interface name='org.freedesktop.portal.Request'>"
                                  "<method name='Close'/></interface></node>";

typedef enum { GIVES, GIVES_FIRST, OTHER_PATH, USER_SAYS_NO, NO_FILE, FAILS, SILENT } Mode;

/* The desktop's side. */
typedef struct {
  GTestDBus *bus;
  GDBusConnection *server, *client;
  GMainLoop *loop;
  Mode mode;
  guint n_called, n_closed;
  char *parent, *path; /* of the answer */
  GError *error;
  gboolean has_portal;
} Fixture;

static void
request_called_cb (GDBusConnection *bus, const char *sender, const char *object,
                   const char *interface, const char *method, GVariant *parameters,
                   GDBusMethodInvocation *invocation, gpointer user)
{
  Fixture *f = user;

  g_assert_cmpstr (method, ==, "Close");
  f->n_closed++;
  g_dbus_method_invocation_return_value (invocation, NULL);
}

static const GDBusInterfaceVTable request_table = {.method_call = request_called_cb};

static void
export_request (Fixture *f, const char *path)
{
  g_autoptr (GDBusNodeInfo) info = g_dbus_node_info_new_for_xml (request_xml, NULL);

  g_assert_cmpuint (g_dbus_connection_register_object (f->server, path, info->interfaces[0],
                                                       &request_table, f, NULL, NULL),
                    !=, 0);
}

static void
respond (Fixture *f, const char *path, guint response, const char *uri)
{
  GVariantBuilder results;
  g_autoptr (GError) error = NULL;

  g_variant_builder_init (&results, G_VARIANT_TYPE_VARDICT);
  if (uri != NULL)
    g_variant_builder_add (&results, "{sv}", "uri", g_variant_new_string (uri));
  g_dbus_connection_emit_signal (f->server, NULL, path, "org.freedesktop.portal.Request",
                                 "Response", g_variant_new ("(ua{sv})", response, &results),
                                 &error);
  g_assert_no_error (error);
}

/* The object's path is made of the caller's name and its token, as the portal's manual says. */
static char *
make_request_path (const char *sender, GVariant *options)
{
  g_autofree char *name = g_strdelimit (g_strdup (sender + 1), ".", '_');
  const char *token = NULL;
  gboolean interactive = FALSE;

  g_assert_true (g_variant_lookup (options, "handle_token", "&s", &token));
  g_assert_true (g_variant_lookup (options, "interactive", "b", &interactive) && interactive);
  return g_strdup_printf (PORTAL_PATH "/request/%s/%s", name, token);
}

static void
portal_called_cb (GDBusConnection *bus, const char *sender, const char *object,
                  const char *interface, const char *method, GVariant *parameters,
                  GDBusMethodInvocation *invocation, gpointer user)
{
  Fixture *f = user;
  g_autoptr (GVariant) options = NULL;
  g_autofree char *path = NULL;
  const char *parent;

  g_variant_get (parameters, "(&s@a{sv})", &parent, &options);
  g_free (f->parent);
  f->parent = g_strdup (parent);
  f->n_called++;
  path = f->mode == OTHER_PATH ? g_strdup (PORTAL_PATH "/request/old/1")
                               : make_request_path (sender, options);
  if (f->mode == FAILS) {
    g_dbus_method_invocation_return_dbus_error (invocation, "org.freedesktop.portal.Error.Failed",
                                                "no backend");
    return;
  }
  export_request (f, path);
  if (f->mode == GIVES_FIRST)
    respond (f, path, 0, "file:///pictures/shot%201.png");
  g_dbus_method_invocation_return_value (invocation, g_variant_new ("(o)", path));
  g_dbus_connection_flush_sync (f->server, NULL, NULL);
  if (f->mode == GIVES)
    respond (f, path, 0, "file:///pictures/shot%201.png");
  if (f->mode == USER_SAYS_NO)
    respond (f, path, 1, NULL);
  if (f->mode == NO_FILE)
    respond (f, path, 0, "https://example.org/shot.png");
}

static GVariant *
portal_property_cb (GDBusConnection *bus, const char *sender, const char *object,
                    const char *interface, const char *property, GError **error, gpointer user)
{
  return g_variant_new_uint32 (2);
}

static const GDBusInterfaceVTable portal_table = {.method_call = portal_called_cb,
                                                  .get_property = portal_property_cb};

static GDBusConnection *
connect_to (Fixture *f)
{
  g_autoptr (GError) error = NULL;
  GDBusConnection *bus =
      g_dbus_connection_new_for_address_sync (g_test_dbus_get_bus_address (f->bus),
                                              G_DBUS_CONNECTION_FLAGS_AUTHENTICATION_CLIENT |
                                                  G_DBUS_CONNECTION_FLAGS_MESSAGE_BUS_CONNECTION,
                                              NULL, NULL, &error);

  g_assert_no_error (error);
  return bus;
}

static void
set_up (Fixture *f, gconstpointer data)
{
  f->mode = (Mode)GPOINTER_TO_INT (data);
  f->loop = g_main_loop_new (NULL, FALSE);
  f->bus = g_test_dbus_new (G_TEST_DBUS_NONE);
  g_test_dbus_up (f->bus);
  f->server = connect_to (f);
  f->client = connect_to (f);
}

static void
start_portal (Fixture *f)
{
  g_autoptr (GDBusNodeInfo) info = g_dbus_node_info_new_for_xml (portal_xml, NULL);
  g_autoptr (GVariant) reply = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_cmpuint (g_dbus_connection_register_object (f->server, PORTAL_PATH, info->interfaces[0],
                                                       &portal_table, f, NULL, NULL),
                    !=, 0);
  reply = g_dbus_connection_call_sync (
      f->server, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
      "RequestName", g_variant_new ("(su)", PORTAL_NAME, 0), G_VARIANT_TYPE ("(u)"),
      G_DBUS_CALL_FLAGS_NONE, -1, NULL, &error);
  g_assert_no_error (error);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  g_dbus_connection_close_sync (f->client, NULL, NULL);
  g_dbus_connection_close_sync (f->server, NULL, NULL);
  g_clear_object (&f->client);
  g_clear_object (&f->server);
  g_test_dbus_down (f->bus);
  g_clear_object (&f->bus);
  g_main_loop_unref (f->loop);
  g_clear_error (&f->error);
  g_free (f->parent);
  g_free (f->path);
}

static void
checked_cb (GObject *source, GAsyncResult *result, gpointer user)
{
  Fixture *f = user;

  f->has_portal = ks_screenshot_check_finish (result);
  g_main_loop_quit (f->loop);
}

/* There is one where a portal answers, and none before it came. */
static void
test_check (Fixture *f, gconstpointer data)
{
  f->has_portal = TRUE;
  ks_screenshot_check_async (f->client, NULL, checked_cb, f);
  g_main_loop_run (f->loop);
  g_assert_false (f->has_portal);
  start_portal (f);
  ks_screenshot_check_async (f->client, NULL, checked_cb, f);
  g_main_loop_run (f->loop);
  g_assert_true (f->has_portal);
}

static void
taken_cb (GObject *source, GAsyncResult *result, gpointer user)
{
  Fixture *f = user;

  f->path = ks_screenshot_take_finish (result, &f->error);
  g_main_loop_quit (f->loop);
}

static void
take (Fixture *f, GCancellable *cancellable)
{
  start_portal (f);
  ks_screenshot_take_async (f->client, "x11:1f", cancellable, taken_cb, f);
  g_main_loop_run (f->loop);
}

/* The file that the desktop names, by whichever of the ways in which portals answer. */
static void
test_given (Fixture *f, gconstpointer data)
{
  take (f, NULL);
  g_assert_no_error (f->error);
  g_assert_cmpstr (f->path, ==, "/pictures/shot 1.png");
  g_assert_cmpstr (f->parent, ==, "x11:1f");
  g_assert_cmpuint (f->n_called, ==, 1);
}

static gboolean
respond_cb (gpointer user)
{
  Fixture *f = user;

  if (f->n_called == 0)
    return G_SOURCE_CONTINUE;
  respond (f, PORTAL_PATH "/request/old/1", 0, "file:///pictures/shot%201.png");
  return f->path == NULL ? G_SOURCE_CONTINUE : G_SOURCE_REMOVE;
}

/* A portal that chooses the request's path itself is heard there. */
static void
test_other_path (Fixture *f, gconstpointer data)
{
  guint source = g_timeout_add (50, respond_cb, f);

  take (f, NULL);
  g_source_remove (source);
  g_assert_no_error (f->error);
  g_assert_cmpstr (f->path, ==, "/pictures/shot 1.png");
}

/* The user's no is no failure. */
static void
test_user_says_no (Fixture *f, gconstpointer data)
{
  take (f, NULL);
  g_assert_null (f->path);
  g_assert_error (f->error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_CANCELLED);
}

/* Failures and files elsewhere are a sentence with a way out. */
static void
test_failure (Fixture *f, gconstpointer data)
{
  take (f, NULL);
  g_assert_null (f->path);
  g_assert_error (f->error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_FAILED);
  g_assert_nonnull (strstr (f->error->message, "attach the file"));
}

static gboolean
cancel_cb (gpointer user)
{
  g_cancellable_cancel (user);
  return G_SOURCE_REMOVE;
}

static gboolean
quit_cb (gpointer user)
{
  Fixture *f = user;

  if (f->n_closed == 0)
    return G_SOURCE_CONTINUE;
  g_main_loop_quit (f->loop);
  return G_SOURCE_REMOVE;
}

/* Cancelling answers at once and closes the desktop's question. */
static void
test_cancel (Fixture *f, gconstpointer data)
{
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();

  g_timeout_add (100, cancel_cb, cancellable);
  take (f, cancellable);
  g_assert_error (f->error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_CANCELLED);
  g_timeout_add (10, quit_cb, f);
  g_main_loop_run (f->loop);
  g_assert_cmpuint (f->n_closed, ==, 1);
}

#define ADD(name, mode, func)                                                                      \
  g_test_add ("/screenshot/" name, Fixture, GINT_TO_POINTER (mode), set_up, func, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("check", SILENT, test_check);
  ADD ("given", GIVES, test_given);
  ADD ("given-first", GIVES_FIRST, test_given);
  ADD ("other-path", OTHER_PATH, test_other_path);
  ADD ("user-says-no", USER_SAYS_NO, test_user_says_no);
  ADD ("no-file", NO_FILE, test_failure);
  ADD ("fails", FAILS, test_failure);
  ADD ("cancel", SILENT, test_cancel);
  return g_test_run ();
}
