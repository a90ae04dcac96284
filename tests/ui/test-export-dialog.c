/* test-export-dialog.c - a session goes out of the window and comes back, over a real library. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/ui-library.h"
#include "ui/ks-compat.h"
#include "ui/ks-export-dialog.h"

#include <glib/gstdio.h>

#include <string.h>

typedef struct {
  LibraryFixture base;
  GtkWidget *dialog;
  char *folder; /* where files go */
} Fixture;

/* A window that dialogs can lie in, as the program's: libadwaita 1.7 warns about questions that
 * have to be windows of their own. */
static void
use_adw_window (Fixture *f)
{
  g_autoptr (GtkWidget) content = g_object_ref (gtk_window_get_child (f->base.window));
  GtkWidget *window = adw_window_new ();

  gtk_window_set_child (f->base.window, NULL);
  ui_test_close (f->base.window);
  gtk_window_set_default_size (GTK_WINDOW (window), 800, 700);
  adw_window_set_content (ADW_WINDOW (window), content);
  f->base.window = GTK_WINDOW (window);
  gtk_window_present (f->base.window);
  ui_test_settle (window);
}

static void
set_up (Fixture *f, gconstpointer data)
{
  library_fixture_set_up (&f->base);
  use_adw_window (f);
  f->folder = g_build_filename (f->base.dir, "out", NULL);
  g_assert_cmpint (g_mkdir (f->folder, 0700), ==, 0);
  f->dialog = ks_export_dialog_present (f->base.child, f->base.library, f->base.session);
  g_object_ref (f->dialog);
  ui_test_settle (GTK_WIDGET (f->base.window));
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  if (gtk_widget_get_mapped (f->dialog))
    ks_dialog_close (f->dialog);
  g_clear_object (&f->dialog);
  library_fixture_tear_down (&f->base);
  g_free (f->folder);
}

static gboolean
has_label (gpointer beginning)
{
  return find_label (beginning) != NULL;
}

static gboolean
is_unmapped (gpointer widget)
{
  return !gtk_widget_get_mapped (widget);
}

static gboolean
is_last (gpointer object)
{
  return G_OBJECT (object)->ref_count == 1;
}

static guint
count_files (const char *folder)
{
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  guint n = 0;

  while (g_dir_read_name (dir) != NULL)
    n++;
  return n;
}

static GFile *
file_in (Fixture *f, const char *name)
{
  return g_file_new_build_filename (f->folder, name, NULL);
}

static char *
read_file (GFile *file)
{
  char *text = NULL;

  g_assert_true (g_file_load_contents (file, NULL, &text, NULL, NULL, NULL));
  return text;
}

static void
choose (Fixture *f, const char *format)
{
  GtkWidget *row = find_row (f->dialog, format, 0);
  GtkWidget *check = adw_action_row_get_activatable_widget (ADW_ACTION_ROW (row));

  gtk_test_accessible_assert_property (check, GTK_ACCESSIBLE_PROPERTY_LABEL, format);
  gtk_check_button_set_active (GTK_CHECK_BUTTON (check), TRUE);
}

/* Every format is explained and gives the file that it says, alone in its folder; the window tells
 * its name. */
static void
test_formats (Fixture *f, gconstpointer data)
{
  static const struct {
    const char *title, *name, *beginning;
  } formats[] = {
      {"Markdown", "a.md", "# Cable car"},
      {"Web page", "b.html", "<!DOCTYPE html>"},
      {"Complete bundle", "c.json", "{"},
  };

  for (guint i = 0; i < G_N_ELEMENTS (formats); i++) {
    g_autoptr (GFile) file = file_in (f, formats[i].name);
    g_autofree char *toast = g_strconcat ("Exported as ", formats[i].name, NULL);
    g_autofree char *text = NULL;

    if (i > 0) {
      g_object_unref (f->dialog);
      f->dialog =
          g_object_ref (ks_export_dialog_present (f->base.child, f->base.library, f->base.session));
      ui_test_settle (GTK_WIDGET (f->base.window));
    }
    choose (f, formats[i].title);
    ks_export_dialog_start (f->dialog, file);
    ui_test_wait (is_unmapped, f->dialog);
    text = read_file (file);
    g_assert_true (g_str_has_prefix (text, formats[i].beginning));
    g_assert_nonnull (strstr (text, "2,140 metres"));
    g_assert_cmpuint (count_files (f->folder), ==, i + 1);
    ui_test_wait (has_label, toast);
    g_assert_nonnull (find_button (NULL, "_Show in Files"));
  }
}

/* What cannot be written is said in the dialog, which stays; nothing is left behind. */
static void
test_failure (Fixture *f, gconstpointer data)
{
  static char title[] = "Nothing Was Exported";
  g_autoptr (GFile) file = file_in (f, "missing/a.md");

  g_assert_false (gtk_widget_get_mapped (find_row (f->dialog, title, 0)));
  ks_export_dialog_start (f->dialog, file);
  ui_test_wait (has_label, title);
  g_assert_true (gtk_widget_get_mapped (f->dialog));
  g_assert_true (gtk_widget_is_sensitive (find_button (f->dialog, "_Export…")));
  g_assert_cmpstr (adw_action_row_get_subtitle (ADW_ACTION_ROW (find_row (f->dialog, title, 0))),
                   !=, "");
  g_assert_cmpuint (count_files (f->folder), ==, 0);
}

/* Given up in the middle: the file that was there is the old one or the new one, never a part. */
static void
test_cancel (Fixture *f, gconstpointer data)
{
  g_autoptr (GFile) file = file_in (f, "a.md");
  g_autofree char *text = NULL;

  g_assert_true (g_file_set_contents (g_file_peek_path (file), "old", -1, NULL));
  ks_export_dialog_start (f->dialog, file);
  g_assert_false (gtk_widget_is_sensitive (find_button (f->dialog, "_Export…")));
  ks_dialog_close (f->dialog);
  ui_test_settle (GTK_WIDGET (f->base.window));
  ui_test_wait (is_last, f->dialog); /* the export holds it to its end */
  text = read_file (file);
  g_assert_true (g_strcmp0 (text, "old") == 0 || strstr (text, "2,140 metres.") != NULL);
  g_assert_cmpuint (count_files (f->folder), ==, 1);
}

static gboolean
has_two_sessions (gpointer library)
{
  return g_list_model_get_n_items (ks_library_get_sessions (library)) == 2;
}

/* An exported bundle is a session again. */
static void
test_import (Fixture *f, gconstpointer data)
{
  static char told[] = "Imported “Cable car”";
  g_autoptr (GFile) file = file_in (f, "a.json");

  choose (f, "Complete bundle");
  ks_export_dialog_start (f->dialog, file);
  ui_test_wait (is_unmapped, f->dialog);
  ks_import_start (f->base.child, f->base.library, file);
  ui_test_wait (has_two_sessions, f->base.library);
  ui_test_wait (has_label, told);
}

/* A bundle that is damaged is refused with the reason, and nothing of it is stored. */
static void
test_damaged (Fixture *f, gconstpointer data)
{
  static char told[] = "The file holds no session that Keepsake exported";
  static const char *const bundles[] = {"", "{", "[]", "{\"format\": 7}", "\xff\xfe\x00\x01"};

  ks_dialog_close (f->dialog); /* it has a button of that name as well */
  ui_test_settle (GTK_WIDGET (f->base.window));
  for (guint i = 0; i < G_N_ELEMENTS (bundles); i++) {
    g_autoptr (GFile) file = file_in (f, "a.json");

    g_assert_true (g_file_set_contents (g_file_peek_path (file), bundles[i], -1, NULL));
    ks_import_start (f->base.child, f->base.library, file);
    ui_test_wait (has_label, told);
    g_assert_nonnull (find_label ("Nothing Was Imported"));
    click (NULL, "_Cancel");
    while (has_label (told))
      ui_test_settle (GTK_WIDGET (f->base.window));
    g_assert_cmpuint (g_list_model_get_n_items (ks_library_get_sessions (f->base.library)), ==, 1);
  }
}

int
main (int argc, char **argv)
{
  ui_test_init (&argc, &argv);
  g_test_add ("/export-dialog/formats", Fixture, NULL, set_up, test_formats, tear_down);
  g_test_add ("/export-dialog/failure", Fixture, NULL, set_up, test_failure, tear_down);
  g_test_add ("/export-dialog/cancel", Fixture, NULL, set_up, test_cancel, tear_down);
  g_test_add ("/export-dialog/import", Fixture, NULL, set_up, test_import, tear_down);
  g_test_add ("/export-dialog/damaged", Fixture, NULL, set_up, test_damaged, tear_down);
  return g_test_run ();
}
