/* test-window.c - the window over a library with one stored session and no model. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-notices.h"
#include "storage/ks-database.h"
#include "tests/ui/ui-library.h"
#include "ui/ks-banner.h"
#include "ui/ks-error-text.h"
#include "ui/ks-file-viewer.h"
#include "ui/ks-preferences.h"
#include "ui/ks-window-header.h"
#include "ui/ks-window.h"

#include <adwaita.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  LibraryFixture base;
  KsWindow *window;
} Fixture;

static gboolean
is_mapped (gpointer widget)
{
  return gtk_widget_get_mapped (widget);
}

static void
open_window (Fixture *f, int width)
{
  g_settings_set_int (f->base.gsettings, "window-width", width);
  f->window = ks_window_new (NULL, f->base.library);
  gtk_window_present (GTK_WINDOW (f->window));
  ui_test_wait (is_mapped, f->window);
  ui_test_settle (GTK_WIDGET (f->window));
}

static void
set_up (Fixture *f, gconstpointer data)
{
  library_fixture_set_up (&f->base);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  if (f->window != NULL)
    ui_test_close (GTK_WINDOW (f->window));
  f->window = NULL;
  library_fixture_tear_down (&f->base);
}

static gboolean
is_shown (gpointer data)
{
  Fixture *f = data;
  KsSession *session = ks_chat_get_session (ks_window_get_chat (f->window));

  return session != NULL && ks_session_get_id (session) == ks_session_get_id (f->base.session) &&
         ks_chat_get_state (ks_window_get_chat (f->window)) == KS_CHAT_IDLE;
}

static KsBanner *
find_banner_in (GtkWidget *root, const char *text)
{
  KsBanner *found = NULL;

  if (KS_IS_BANNER (root) && g_strcmp0 (ks_banner_get_text (KS_BANNER (root)), text) == 0)
    return KS_BANNER (root);
  for (GtkWidget *child = gtk_widget_get_first_child (root); child != NULL && found == NULL;
       child = gtk_widget_get_next_sibling (child))
    found = find_banner_in (child, text);
  return found;
}

/* One that shows that text now. */
static KsBanner *
find_banner (Fixture *f, const char *text)
{
  return find_banner_in (GTK_WIDGET (f->window), text);
}

static gboolean
is_enabled (Fixture *f, const char *name)
{
  return g_action_group_get_action_enabled (G_ACTION_GROUP (f->window), name);
}

static void
activate (Fixture *f, const char *name)
{
  g_action_group_activate_action (G_ACTION_GROUP (f->window), name, NULL);
}

/* Without a model the window says so and offers one; a new session can be written all the same, and
 * there is nothing to rename, export or stop. */
static void
test_no_model (Fixture *f, gconstpointer data)
{
  open_window (f, 1100);
  g_assert_nonnull (find_button (GTK_WIDGET (f->window), "_Choose Model…"));
  g_assert_nonnull (ui_test_find (GTK_WIDGET (f->window), ADW_TYPE_STATUS_PAGE));
  g_assert_true (is_enabled (f, "new") && is_enabled (f, "attach") && is_enabled (f, "models"));
  g_assert_false (is_enabled (f, "rename") || is_enabled (f, "export") ||
                  is_enabled (f, "delete") || is_enabled (f, "stop") ||
                  is_enabled (f, "regenerate"));
}

/* A session shows its title everywhere and its commands work; deleting takes it away at once, Undo
 * brings it back, shown as before. */
static void
test_delete_and_undo (Fixture *f, gconstpointer data)
{
  GListModel *sessions = ks_library_get_sessions (f->base.library);

  open_window (f, 1100);
  ks_window_open_session (f->window, f->base.session);
  ui_test_wait (is_shown, f);
  g_assert_cmpstr (gtk_window_get_title (GTK_WINDOW (f->window)), ==, "Cable car");
  g_assert_true (is_enabled (f, "rename") && is_enabled (f, "export") && is_enabled (f, "delete") &&
                 is_enabled (f, "regenerate"));
  activate (f, "delete");
  ui_test_settle (GTK_WIDGET (f->window));
  g_assert_cmpuint (g_list_model_get_n_items (sessions), ==, 0);
  g_assert_null (ks_chat_get_session (ks_window_get_chat (f->window)));
  g_assert_nonnull (find_label ("“Cable car” was deleted"));
  click (GTK_WIDGET (f->window), "_Undo");
  ui_test_wait (is_shown, f);
  g_assert_cmpuint (g_list_model_get_n_items (sessions), ==, 1);
}

/* The next start shows the session that was shown last, and the panes as they were left. */
static void
test_state_comes_back (Fixture *f, gconstpointer data)
{
  open_window (f, 1100);
  activate (f, "show-memory");
  ks_window_open_session (f->window, f->base.session);
  ui_test_wait (is_shown, f);
  ks_window_save_state (f->window);
  ui_test_close (GTK_WINDOW (f->window));
  open_window (f, 1100);
  ui_test_wait (is_shown, f);
  g_assert_true (g_settings_get_boolean (f->base.gsettings, "memory-visible"));
  activate (f, "next"); /* there is none: the session stays */
  g_assert_true (is_shown (f));
  activate (f, "new");
  g_assert_false (is_shown (f));
  activate (f, "next"); /* below a new one stands the newest */
  ui_test_wait (is_shown, f);
}

/* Files that the program is started with go to a new session, never into one that is stored. */
static void
test_attach (Fixture *f, gconstpointer data)
{
  g_autofree char *path = g_build_filename (f->base.dir, "note.txt", NULL);
  g_autoptr (GFile) file = g_file_new_for_path (path);

  g_assert_true (g_file_set_contents (path, "A note.\n", -1, NULL));
  open_window (f, 1100);
  ks_window_open_session (f->window, f->base.session);
  ui_test_wait (is_shown, f);
  ks_window_attach_files (f->window, &file, 1);
  g_assert_null (ks_chat_get_session (ks_window_get_chat (f->window)));
  g_assert_cmpuint (
      g_list_model_get_n_items (ks_chat_get_attachments (ks_window_get_chat (f->window))), ==, 1);
}

static gboolean
menu_has (GMenuModel *menu, const char *action)
{
  for (int i = 0; menu != NULL && i < g_menu_model_get_n_items (menu); i++) {
    g_autoptr (GMenuModel) section = g_menu_model_get_item_link (menu, i, G_MENU_LINK_SECTION);
    g_autofree char *name = NULL;

    g_menu_model_get_item_attribute (menu, i, G_MENU_ATTRIBUTE_ACTION, "s", &name);
    if (g_strcmp0 (name, action) == 0 || menu_has (section, action))
      return TRUE;
  }
  return FALSE;
}

static guint
count_menus_with (GtkWidget *root, const char *action)
{
  guint n = 0;

  if (GTK_IS_MENU_BUTTON (root))
    n += menu_has (gtk_menu_button_get_menu_model (GTK_MENU_BUTTON (root)), action);
  for (GtkWidget *child = gtk_widget_get_first_child (root); child != NULL;
       child = gtk_widget_get_next_sibling (child))
    n += count_menus_with (child, action);
  return n;
}

static GtkWidget *
find_chooser (void)
{
  GListModel *windows = gtk_window_get_toplevels ();

  for (guint i = 0; i < g_list_model_get_n_items (windows); i++) {
    g_autoptr (GtkWidget) window = g_list_model_get_item (windows, i);

    if (g_strcmp0 (G_OBJECT_TYPE_NAME (window), "GtkFileChooserDialog") == 0)
      return window;
  }
  return NULL;
}

static gboolean
has_chooser (gpointer data)
{
  return find_chooser () != NULL;
}

/* Menus of the window and of the composer offer folders beside files; what is asked for then is a
 * folder. */
static void
test_attach_folder (Fixture *f, gconstpointer data)
{
  int action = -1;

  open_window (f, 1100);
  g_assert_true (is_enabled (f, "attach-folder"));
  g_assert_cmpuint (count_menus_with (GTK_WIDGET (f->window), "win.attach-folder"), ==, 2);
  activate (f, "attach-folder");
  ui_test_wait (has_chooser, NULL);
  g_object_get (find_chooser (), "action", &action, NULL);
  g_assert_cmpint (action, ==, 2); /* GTK_FILE_CHOOSER_ACTION_SELECT_FOLDER, deprecated in 4.10 */
  gtk_window_close (GTK_WINDOW (find_chooser ()));
  ui_test_settle (GTK_WIDGET (f->window));
}

/* What was attached in a new session and not sent can be come back to: another new session would
 * hide it for good. */
static void
test_one_new_session (Fixture *f, gconstpointer data)
{
  g_autofree char *path = g_build_filename (f->base.dir, "note.txt", NULL);
  g_autoptr (GFile) file = g_file_new_for_path (path);
  KsChat *draft = NULL;

  g_assert_true (g_file_set_contents (path, "A note.\n", -1, NULL));
  open_window (f, 1100);
  ks_window_attach_files (f->window, &file, 1);
  draft = ks_window_get_chat (f->window);
  activate (f, "new");
  g_assert_true (ks_window_get_chat (f->window) == draft);
  ks_window_open_session (f->window, f->base.session);
  ui_test_wait (is_shown, f);
  activate (f, "new");
  g_assert_true (ks_window_get_chat (f->window) == draft);
  g_assert_cmpuint (g_list_model_get_n_items (ks_chat_get_attachments (draft)), ==, 1);
}

/* What is said of a chat stands whole beside the answer until it is closed, once however often it
 * is said, and does not follow into another chat; what is said of the program wraps. */
static void
test_notices (Fixture *f, gconstpointer data)
{
  static const char longer[] =
      "This conversation is now longer than the 2048 tokens the model was trained for: older parts "
      "move closer together, and answers may get worse.";
  static const char rule[] =
      "This model was not taught what to keep: Keepsake chooses by a general rule.";
  GtkWidget *label = NULL;

  open_window (f, 480);
  ks_window_open_session (f->window, f->base.session);
  ui_test_wait (is_shown, f);
  g_signal_emit_by_name (f->base.library, "notice", rule);
  g_signal_emit_by_name (ks_window_get_chat (f->window), "notice", longer);
  g_signal_emit_by_name (ks_window_get_chat (f->window), "notice", longer);
  ui_test_settle (GTK_WIDGET (f->window));
  label = find_label (longer);
  g_assert_nonnull (gtk_widget_get_ancestor (label, KS_TYPE_BANNER));
  g_assert_false (pango_layout_is_ellipsized (gtk_label_get_layout (GTK_LABEL (label))));
  label = find_label (rule);
  g_assert_nonnull (label);
  g_assert_false (pango_layout_is_ellipsized (gtk_label_get_layout (GTK_LABEL (label))));
  ui_test_save (GTK_WIDGET (f->window), "window-notices");
  click (GTK_WIDGET (f->window), "_Close");
  g_assert_null (find_banner (f, longer));
  g_signal_emit_by_name (ks_window_get_chat (f->window), "notice", longer);
  g_assert_nonnull (find_banner (f, longer));
  activate (f, "new");
  g_assert_null (find_banner (f, longer));
  /* The banner on pictures says this one already. */
  g_signal_emit_by_name (ks_window_get_chat (f->window), "notice", KS_NOTICE_BLIND);
  g_assert_null (find_banner (f, KS_NOTICE_BLIND));
}

static gboolean
is_attached (gpointer data)
{
  Fixture *f = data;
  g_autoptr (KsPendingAttachment) pending =
      g_list_model_get_item (ks_chat_get_attachments (ks_window_get_chat (f->window)), 0);

  return pending != NULL && ks_pending_attachment_get_attachment (pending) != NULL;
}

/* A text view under root that cannot be written in and shows something. */
static GtkTextBuffer *
find_viewed (GtkWidget *root)
{
  GtkTextBuffer *buffer = NULL;

  if (GTK_IS_TEXT_VIEW (root) && !gtk_text_view_get_editable (GTK_TEXT_VIEW (root))) {
    buffer = gtk_text_view_get_buffer (GTK_TEXT_VIEW (root));
    return gtk_text_buffer_get_char_count (buffer) > 0 ? buffer : NULL;
  }
  for (GtkWidget *child = gtk_widget_get_first_child (root); child != NULL && buffer == NULL;
       child = gtk_widget_get_next_sibling (child))
    buffer = find_viewed (child);
  return buffer;
}

/* (transfer full) what is viewed in any window; NULL when nothing is. */
static char *
dup_viewed_text (void)
{
  g_autoptr (GList) windows = gtk_window_list_toplevels ();

  for (GList *link = windows; link != NULL; link = link->next) {
    GtkTextBuffer *buffer = find_viewed (link->data);
    GtkTextIter start, end;

    if (buffer == NULL)
      continue;
    gtk_text_buffer_get_bounds (buffer, &start, &end);
    return gtk_text_buffer_get_text (buffer, &start, &end, FALSE);
  }
  return NULL;
}

static gboolean
is_viewed (gpointer data)
{
  g_autofree char *text = dup_viewed_text ();

  return text != NULL;
}

/* A text is opened as its words, complete, with long runs broken so that the view can show them. */
static void
test_text_is_read (Fixture *f, gconstpointer data)
{
  g_autofree char *path = g_build_filename (f->base.dir, "note.txt", NULL);
  g_autofree char *run = g_strnfill (1000, 'x');
  g_autofree char *written = g_strconcat ("The key lies under the stone.\n", run, "\nEnd", NULL);
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (KsPendingAttachment) pending = NULL;
  g_autofree char *viewed = NULL;
  g_auto (GStrv) lines = NULL;

  g_assert_true (g_file_set_contents (path, written, -1, NULL));
  open_window (f, 1100);
  ks_window_attach_files (f->window, &file, 1);
  ui_test_wait (is_attached, f);
  pending = g_list_model_get_item (ks_chat_get_attachments (ks_window_get_chat (f->window)), 0);
  ks_file_viewer_present (GTK_WIDGET (f->window), f->base.library, NULL,
                          ks_pending_attachment_get_attachment (pending), -1);
  ui_test_wait (is_viewed, NULL);
  viewed = dup_viewed_text ();
  g_assert_true (g_str_has_prefix (viewed, "The key lies under the stone.\n"));
  lines = g_strsplit (viewed, "\n", -1);
  for (guint i = 0; lines[i] != NULL; i++)
    g_assert_cmpuint (strlen (lines[i]), <=, 200);
  g_assert_cmpstr (lines[g_strv_length (lines) - 1], ==, "End");
}

/* Closes the dialog, which is a window of its own before libadwaita 1.5. */
static void
check_dialog_fits (Fixture *f, const char *name)
{
  GListModel *windows = gtk_window_get_toplevels ();
  GtkWindow *dialog = NULL;

  ui_test_settle (GTK_WIDGET (f->window));
  for (guint i = 0; i < g_list_model_get_n_items (windows); i++) {
    g_autoptr (GtkWindow) window = g_list_model_get_item (windows, i);

    if (gtk_window_get_transient_for (window) == GTK_WINDOW (f->window))
      dialog = window;
  }
  g_assert_cmpint (gtk_widget_get_width (GTK_WIDGET (f->window)), <=, 480);
  if (dialog == NULL)
    return;
  g_assert_cmpint (gtk_widget_get_width (GTK_WIDGET (dialog)), <=, 480);
  ui_test_save (GTK_WIDGET (dialog), name);
  gtk_window_destroy (dialog);
}

/* A picture is opened in a dialog that is no larger than the window it came from. */
static void
test_viewer_fits (Fixture *f, gconstpointer data)
{
  g_autoptr (KsAttachment) picture =
      ks_attachment_new (KS_ATTACHMENT_IMAGE, "a picture with a rather long name.png", "00", 2048,
                         NULL, 0, 1600, 1200);

  open_window (f, 480);
  ks_file_viewer_present (GTK_WIDGET (f->window), f->base.library, ks_window_get_chat (f->window),
                          picture, -1);
  check_dialog_fits (f, "viewer-480");
}

/* So are the preferences. */
static void
test_preferences_fit (Fixture *f, gconstpointer data)
{
  open_window (f, 480);
  ks_preferences_present (GTK_WIDGET (f->window), f->base.library, ks_window_get_chat (f->window));
  check_dialog_fits (f, "preferences-480");
}

/* At 360 pixels nothing is cut off: the list and the panel lie over the chat, and what the header
 * has no room for is in the menu. */
static void
test_narrow (Fixture *f, gconstpointer data)
{
  GtkWidget *header = NULL;
  int minimum = 0;

  open_window (f, 360);
  gtk_widget_measure (GTK_WIDGET (f->window), GTK_ORIENTATION_HORIZONTAL, -1, &minimum, NULL, NULL,
                      NULL);
  g_assert_cmpint (minimum, <=, 360);
  g_assert_cmpint (gtk_widget_get_width (GTK_WIDGET (f->window)), <=, 360);
  header = ui_test_find (GTK_WIDGET (f->window), KS_TYPE_WINDOW_HEADER);
  g_assert_false (gtk_widget_get_child_visible (find_button (header, "New session (Ctrl+N)")));
  activate (f, "show-memory");
  activate (f, "search"); /* brings the list out */
  ui_test_settle (GTK_WIDGET (f->window));
  g_assert_true (
      gtk_widget_get_mapped (ui_test_find (GTK_WIDGET (f->window), GTK_TYPE_SEARCH_ENTRY)));
}

/* With room the header shows everything, and the buttons without text have a name. */
static void
test_wide (Fixture *f, gconstpointer data)
{
  GtkWidget *header = NULL;
  GtkWidget *button = NULL;

  open_window (f, 1200);
  header = ui_test_find (GTK_WIDGET (f->window), KS_TYPE_WINDOW_HEADER);
  g_assert_cmpint (gtk_widget_get_width (header), >,
                   750); /* what the list and window buttons leave */
  button = find_button (header, "New session (Ctrl+N)");
  g_assert_true (gtk_widget_get_child_visible (button));
  gtk_test_accessible_assert_property (button, GTK_ACCESSIBLE_PROPERTY_LABEL, "New session");
  button = find_button (header, "What is remembered (Ctrl+M)");
  g_assert_true (gtk_widget_get_child_visible (button));
  gtk_test_accessible_assert_property (button, GTK_ACCESSIBLE_PROPERTY_LABEL, "What is remembered");
  button = find_button (header, "Sessions (F9)");
  gtk_test_accessible_assert_property (button, GTK_ACCESSIBLE_PROPERTY_LABEL, "Sessions");
  gtk_test_accessible_assert_property (gtk_widget_get_last_child (header),
                                       GTK_ACCESSIBLE_PROPERTY_LABEL, "Main menu");
}

/* A library over the fixture's folder as it is now, and the window over that. */
static void
reopen_damaged (Fixture *f, const char *damage)
{
  g_autofree char *path = g_build_filename (f->base.dir, "sessions.db", NULL);
  g_autoptr (GError) error = NULL;

  library_fixture_close (&f->base);
  if (g_strcmp0 (damage, "newer") == 0) {
    g_autoptr (KsDatabase) database = ks_database_open (path, FALSE, &error);

    g_assert_no_error (error);
    ks_database_trust (database);
    g_assert_true (ks_database_exec (database, "PRAGMA user_version = 99", &error));
  } else if (g_strcmp0 (damage, "truncated") == 0) {
    g_assert_cmpint (truncate (path, 600), ==, 0);
  } else {
    g_assert_cmpint (g_unlink (path), ==, 0);
    g_assert_cmpint (g_mkdir (path, 0700), ==, 0);
  }
  f->base.library = ks_library_new (f->base.settings, f->base.dir);
  open_window (f, 1100);
}

static gboolean
has_storage_error (gpointer library)
{
  return ks_library_get_storage_error (library) != NULL && ks_library_is_opened (library);
}

/* Sessions that cannot be used: the window opens, says why and what can be done in a line that
 * stays, and nothing can be imported or written into them. */
static void
test_damaged_store (Fixture *f, gconstpointer damage)
{
  g_autofree char *text = NULL;

  reopen_damaged (f, damage);
  ui_test_wait (has_storage_error, f->base.library);
  ui_test_settle (GTK_WIDGET (f->window));
  text = ks_error_text_dup (ks_library_get_storage_failure (f->base.library));
  g_test_message ("%s", text);
  g_assert_nonnull (find_label (text));
  if (strcmp (damage, "newer") == 0)
    g_assert_true (
        g_str_has_prefix (text, "The sessions were written by a newer Keepsake: update"));
  g_assert_false (is_enabled (f, "import"));
  g_assert_false (ks_chat_send (ks_window_get_chat (f->window), "lost?", NULL));
}

int
main (int argc, char **argv)
{
  ui_test_init (&argc, &argv);
  g_test_add ("/window/no-model", Fixture, NULL, set_up, test_no_model, tear_down);
  g_test_add ("/window/delete-and-undo", Fixture, NULL, set_up, test_delete_and_undo, tear_down);
  g_test_add ("/window/state-comes-back", Fixture, NULL, set_up, test_state_comes_back, tear_down);
  g_test_add ("/window/attach", Fixture, NULL, set_up, test_attach, tear_down);
  g_test_add ("/window/viewer-fits", Fixture, NULL, set_up, test_viewer_fits, tear_down);
  g_test_add ("/window/preferences-fit", Fixture, NULL, set_up, test_preferences_fit, tear_down);
  g_test_add ("/window/notices", Fixture, NULL, set_up, test_notices, tear_down);
  g_test_add ("/window/attach-folder", Fixture, NULL, set_up, test_attach_folder, tear_down);
  g_test_add ("/window/text-is-read", Fixture, NULL, set_up, test_text_is_read, tear_down);
  g_test_add ("/window/one-new-session", Fixture, NULL, set_up, test_one_new_session, tear_down);
  g_test_add ("/window/narrow", Fixture, NULL, set_up, test_narrow, tear_down);
  g_test_add ("/window/damaged/newer", Fixture, "newer", set_up, test_damaged_store, tear_down);
  g_test_add ("/window/damaged/truncated", Fixture, "truncated", set_up, test_damaged_store,
              tear_down);
  g_test_add ("/window/damaged/folder", Fixture, "folder", set_up, test_damaged_store, tear_down);
  g_test_add ("/window/wide", Fixture, NULL, set_up, test_wide, tear_down);
  return g_test_run ();
}
