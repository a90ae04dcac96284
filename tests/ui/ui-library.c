/* ui-library.c - see ui-library.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/ui-library.h"

#include "storage/ks-store.h"
#include "tests/storage/storage-fixture.h"

static gint64
store_session (const char *dir)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsStore) store = ks_store_open (dir, FALSE, &error);
  g_autoptr (KsSession) session = NULL;
  g_autoptr (KsMessage) question = NULL;
  g_autoptr (KsMessage) answer = NULL;
  gint64 id;

  g_assert_no_error (error);
  session = ks_store_add_session (store, "Cable car", NULL, &error);
  g_assert_no_error (error);
  id = ks_session_get_id (session);
  question = ks_store_add_message (store, id, 0, KS_MESSAGE_USER, KS_MESSAGE_COMPLETE,
                                   "How long is the cable?", NULL, &error);
  g_assert_no_error (error);
  answer = ks_store_add_message (store, id, ks_message_get_id (question), KS_MESSAGE_ASSISTANT,
                                 KS_MESSAGE_COMPLETE, "It is 2,140 metres long.", NULL, &error);
  g_assert_no_error (error);
  return id;
}

static gboolean
is_opened (gpointer library)
{
  return ks_library_is_opened (library) &&
         g_list_model_get_n_items (ks_library_get_sessions (library)) == 1 &&
         ks_library_get_model_state (library) == KS_MODEL_FAILED;
}

void
library_fixture_set_up (LibraryFixture *f)
{
  GtkWidget *toasts = NULL;
  g_autoptr (GError) error = NULL;

  f->dir = g_dir_make_tmp ("ks-library-XXXXXX", &error);
  g_assert_no_error (error);
  (void)store_session (f->dir);
  f->settings = ks_settings_new (NULL);
  f->gsettings = ks_settings_get_gsettings (f->settings);
  g_assert_nonnull (f->gsettings);
  f->library = ks_library_new (f->settings, f->dir);
  ui_test_wait (is_opened, f->library);
  f->session = g_list_model_get_item (ks_library_get_sessions (f->library), 0);
  f->child = gtk_label_new ("window");
  toasts = adw_toast_overlay_new ();
  adw_toast_overlay_set_child (ADW_TOAST_OVERLAY (toasts), f->child);
  f->window = ui_test_present (toasts, 800, 700);
}

static void
closed_cb (GObject *library, GAsyncResult *result, gpointer is_closed)
{
  (void)ks_library_close_finish (KS_LIBRARY (library), result);
  *(gboolean *)is_closed = TRUE;
}

static gboolean
is_true (gpointer value)
{
  return *(gboolean *)value;
}

static gboolean
is_last (gpointer object)
{
  return G_OBJECT (object)->ref_count == 1;
}

void
library_fixture_close (LibraryFixture *f)
{
  gboolean is_closed = FALSE;

  ks_library_close_async (f->library, closed_cb, &is_closed);
  ui_test_wait (is_true, &is_closed);
  ui_test_wait (is_last, f->library);
  g_clear_object (&f->session);
  g_clear_object (&f->library);
}

void
library_fixture_tear_down (LibraryFixture *f)
{
  g_autoptr (GSettingsSchema) schema = NULL;
  g_auto (GStrv) keys = NULL;

  g_object_get (f->gsettings, "settings-schema", &schema, NULL);
  keys = g_settings_schema_list_keys (schema);
  for (char **key = keys; *key != NULL; key++)
    g_settings_reset (f->gsettings, *key);
  ui_test_close (f->window);
  library_fixture_close (f);
  g_clear_object (&f->settings);
  remove_tree (f->dir);
  g_clear_pointer (&f->dir, g_free);
}

static GtkWidget *
find_nth_row (GtkWidget *root, const char *title, guint *n)
{
  GtkWidget *found = NULL;

  if (ADW_IS_PREFERENCES_ROW (root) &&
      g_strcmp0 (adw_preferences_row_get_title (ADW_PREFERENCES_ROW (root)), title) == 0 &&
      (*n)-- == 0)
    return root;
  for (GtkWidget *child = gtk_widget_get_first_child (root); child != NULL && found == NULL;
       child = gtk_widget_get_next_sibling (child))
    found = find_nth_row (child, title, n);
  return found;
}

GtkWidget *
find_row (GtkWidget *root, const char *title, guint n)
{
  return find_nth_row (root, title, &n);
}

typedef gboolean (*Matches) (GtkWidget *widget, const char *text);

static GtkWidget *
find_below (GtkWidget *root, Matches matches, const char *text)
{
  GtkWidget *found = matches (root, text) ? root : NULL;

  for (GtkWidget *child = gtk_widget_get_first_child (root); child != NULL && found == NULL;
       child = gtk_widget_get_next_sibling (child))
    found = find_below (child, matches, text);
  return found;
}

/* Dialogs are windows of their own until libadwaita 1.5 and lie in the window from there on. */
static GtkWidget *
find_anywhere (Matches matches, const char *text)
{
  GListModel *windows = gtk_window_get_toplevels ();
  GtkWidget *found = NULL;

  for (guint i = 0; i < g_list_model_get_n_items (windows) && found == NULL; i++) {
    g_autoptr (GtkWidget) window = g_list_model_get_item (windows, i);

    found = find_below (window, matches, text);
  }
  return found;
}

static gboolean
is_button (GtkWidget *widget, const char *text)
{
  return GTK_IS_BUTTON (widget) &&
         (g_strcmp0 (gtk_button_get_label (GTK_BUTTON (widget)), text) == 0 ||
          g_strcmp0 (gtk_widget_get_tooltip_text (widget), text) == 0);
}

static gboolean
is_label (GtkWidget *widget, const char *text)
{
  return GTK_IS_LABEL (widget) && gtk_widget_get_mapped (widget) &&
         g_str_has_prefix (gtk_label_get_text (GTK_LABEL (widget)), text);
}

GtkWidget *
find_button (GtkWidget *root, const char *text)
{
  return root != NULL ? find_below (root, is_button, text) : find_anywhere (is_button, text);
}

void
click (GtkWidget *root, const char *text)
{
  GtkWidget *button = find_button (root, text);

  g_assert_nonnull (button);
  g_assert_true (gtk_widget_is_sensitive (button));
  g_signal_emit_by_name (button, "clicked");
}

GtkWidget *
find_label (const char *beginning)
{
  return find_anywhere (is_label, beginning);
}
