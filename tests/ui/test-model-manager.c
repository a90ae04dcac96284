/* test-model-manager.c - the list of models over a real library, with small model files. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/ui-library.h"
#include "ui/ks-compat.h"
#include "ui/ks-model-manager.h"

#include <glib/gstdio.h>

#include <string.h>

/* Each name is one that markup would stumble over. */
#define FIRST "a <b>first & best.gguf"
#define SECOND "b second.gguf"

typedef struct {
  LibraryFixture base;
  GtkWidget *dialog;
} Fixture;

static char *
path_of (Fixture *f, const char *name)
{
  return g_build_filename (ks_library_get_models_dir (f->base.library), name, NULL);
}

/* gconstpointer data: names of model files that are there, NULL ends. */
static void
set_up (Fixture *f, gconstpointer data)
{
  library_fixture_set_up (&f->base);
  g_assert_cmpint (g_mkdir_with_parents (ks_library_get_models_dir (f->base.library), 0700), ==, 0);
  for (const char *const *name = data; name != NULL && *name != NULL; name++) {
    g_autofree char *path = path_of (f, *name);
    g_autoptr (GFile) to = g_file_new_for_path (path);
    g_autoptr (GFile) from =
        g_file_new_build_filename (g_getenv ("KS_TEST_CASES"), "llama", "model.gguf", NULL);

    g_assert_true (g_file_copy (from, to, G_FILE_COPY_OVERWRITE, NULL, NULL, NULL, NULL));
  }
  f->dialog = ks_model_manager_present (f->base.child, f->base.library);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  g_autofree char *dir = g_strdup (ks_library_get_models_dir (f->base.library));
  g_autoptr (GDir) files = NULL;
  const char *name = NULL;

  ks_dialog_close (f->dialog);
  library_fixture_tear_down (&f->base);
  files = g_dir_open (dir, 0, NULL);
  while ((name = g_dir_read_name (files)) != NULL) {
    g_autofree char *path = g_build_filename (dir, name, NULL);

    g_assert_cmpint (g_unlink (path), ==, 0);
  }
}

static gboolean
has_label (gpointer beginning)
{
  return find_label (beginning) != NULL;
}

static gboolean
is_ready (gpointer library)
{
  return ks_library_get_model_state (library) == KS_MODEL_READY;
}

static gboolean
is_failed (gpointer library)
{
  return ks_library_get_model_state (library) == KS_MODEL_FAILED;
}

/* Row of a file: both files hold the same model. */
static GtkWidget *
row_of (Fixture *f, const char *file)
{
  for (guint i = 0;; i++) {
    GtkWidget *row = find_row (f->dialog, "tiny-llama", i);

    g_assert_nonnull (row);
    if (g_str_has_prefix (adw_action_row_get_subtitle (ADW_ACTION_ROW (row)), file))
      return row;
  }
}

static gboolean
is_used (GtkWidget *row)
{
  return gtk_widget_get_mapped (find_button (row, "_Reload"));
}

/* Without models the page says where to put one, and the window's error is told. */
static void
test_empty (Fixture *f, gconstpointer data)
{
  static char title[] = "No Models Yet", error[] = "No model is loaded", where[] = "Put a model";

  ui_test_wait (has_label, title);
  g_assert_nonnull (strstr (gtk_label_get_text (GTK_LABEL (find_label (where))),
                            ks_library_get_models_dir (f->base.library)));
  g_assert_nonnull (find_label (error));
  g_assert_nonnull (find_button (f->dialog, "Open Models Folder"));
}

/* A row says what the model is, and names of files are shown as they are. */
static void
test_rows (Fixture *f, gconstpointer data)
{
  static char name[] = "tiny-llama";
  const char *subtitle = NULL;

  ui_test_wait (has_label, name);
  subtitle = adw_action_row_get_subtitle (ADW_ACTION_ROW (row_of (f, FIRST)));
  g_assert_nonnull (strstr (subtitle, "licence not stated"));
  g_assert_nonnull (strstr (subtitle, "Fits: needs about "));
  g_assert_nonnull (find_label (FIRST));
  gtk_test_accessible_assert_property (find_button (row_of (f, SECOND), "_Load"),
                                       GTK_ACCESSIBLE_PROPERTY_LABEL, "Load tiny-llama");
  g_assert_false (is_used (row_of (f, FIRST)));
}

/* Load loads that file, marks it, and remembers it; of two files with the same model only the one
 * that was chosen is in use. */
static void
test_load (Fixture *f, gconstpointer data)
{
  static char name[] = "tiny-llama";
  g_autofree char *path = path_of (f, SECOND);
  g_autofree char *model = NULL;

  ui_test_wait (has_label, name);
  click (row_of (f, SECOND), "_Load");
  ui_test_wait (is_ready, f->base.library);
  ui_test_settle (GTK_WIDGET (f->base.window));
  g_assert_true (is_used (row_of (f, SECOND)));
  g_assert_false (is_used (row_of (f, FIRST)));
  g_assert_null (find_label ("No model is loaded"));
  model = ks_settings_dup_model (f->base.settings);
  g_assert_cmpstr (model, ==, path);
}

/* A file that is no model is refused with the reason; another one can be loaded after it. */
static void
test_damaged (Fixture *f, gconstpointer data)
{
  static char name[] = "tiny-llama", error[] = "The model file is damaged or no model";
  g_autofree char *path = path_of (f, "broken.gguf");

  ui_test_wait (has_label, name);
  g_assert_true (g_file_set_contents (path, "nothing that a model begins with", -1, NULL));
  ks_library_load_model (f->base.library, path);
  ui_test_wait (has_label, error);
  ui_test_wait (is_failed, f->base.library);
  click (f->dialog, "Look Again"); /* the broken file makes no row, and no noise */
  click (row_of (f, FIRST), "_Load");
  ui_test_wait (is_ready, f->base.library);
  ui_test_settle (GTK_WIDGET (f->base.window));
  g_assert_false (has_label (error));
}

/* Only the row of a file tells it apart: all hold the same model. */
static gboolean
has_outside (gpointer dialog)
{
  for (guint i = 0;; i++) {
    GtkWidget *row = find_row (dialog, "tiny-llama", i);

    if (row == NULL)
      return FALSE;
    if (g_str_has_prefix (adw_action_row_get_subtitle (ADW_ACTION_ROW (row)), "outside.gguf"))
      return TRUE;
  }
}

/* What is loaded has a row and is marked, also where it lies in no models folder: at once when it
 * is loaded, and in a list that is opened later. */
static void
test_outside (Fixture *f, gconstpointer data)
{
  static char name[] = "tiny-llama";
  g_autofree char *path = g_build_filename (f->base.dir, "outside.gguf", NULL);
  g_autoptr (GFile) to = g_file_new_for_path (path);
  g_autoptr (GFile) from =
      g_file_new_build_filename (g_getenv ("KS_TEST_CASES"), "llama", "model.gguf", NULL);

  g_assert_true (g_file_copy (from, to, G_FILE_COPY_NONE, NULL, NULL, NULL, NULL));
  ui_test_wait (has_label, name);
  ks_library_load_model (f->base.library, path);
  ui_test_wait (has_outside, f->dialog);
  ui_test_settle (GTK_WIDGET (f->base.window));
  g_assert_true (is_used (row_of (f, "outside.gguf")));
  g_assert_false (is_used (row_of (f, FIRST)));
  ks_dialog_close (f->dialog);
  f->dialog = ks_model_manager_present (f->base.child, f->base.library);
  ui_test_wait (has_outside, f->dialog);
  ui_test_settle (GTK_WIDGET (f->base.window));
  g_assert_true (is_used (row_of (f, "outside.gguf")));
}

static void
copy_case (Fixture *f, const char *file, const char *name)
{
  g_autofree char *path = path_of (f, name);
  g_autoptr (GFile) to = g_file_new_for_path (path);
  g_autoptr (GFile) from =
      g_file_new_build_filename (g_getenv ("KS_TEST_CASES"), "idefics3", file, NULL);

  g_assert_true (g_file_copy (from, to, G_FILE_COPY_OVERWRITE, NULL, NULL, NULL, NULL));
}

static GtkWidget *
find_check (GtkWidget *root, const char *text)
{
  GtkWidget *label = ui_test_find_text (root, text);

  return label == NULL ? NULL : gtk_widget_get_ancestor (label, GTK_TYPE_CHECK_BUTTON);
}

static gboolean
sees_nothing (gpointer dialog)
{
  GtkWidget *row = find_row (dialog, "tiny-idefics3", 0);

  return row != NULL &&
         strstr (adw_action_row_get_subtitle (ADW_ACTION_ROW (row)), "Sees no pictures") != NULL;
}

static gboolean
sees (gpointer dialog)
{
  GtkWidget *row = find_row (dialog, "tiny-idefics3", 0);

  return row != NULL && strstr (adw_action_row_get_subtitle (ADW_ACTION_ROW (row)),
                                "Sees pictures with mmproj & a.gguf") != NULL;
}

/* A vision file beside its model is found; the choice of none is stored and shown, and can be taken
 * back; a model without one says that it is blind. */
static void
test_eyes (Fixture *f, gconstpointer data)
{
  GtkWidget *row = NULL;

  copy_case (f, "model.gguf", "seeing.gguf");
  copy_case (f, "mmproj.gguf", "mmproj & a.gguf");
  click (f->dialog, "Look Again");
  ui_test_wait (sees, f->dialog);
  g_assert_nonnull (strstr (adw_action_row_get_subtitle (ADW_ACTION_ROW (row_of (f, FIRST))),
                            "Sees no pictures"));
  row = find_row (f->dialog, "tiny-idefics3", 0);
  gtk_test_accessible_assert_property (ui_test_find (row, GTK_TYPE_MENU_BUTTON),
                                       GTK_ACCESSIBLE_PROPERTY_LABEL,
                                       "What tiny-idefics3 sees with");
  gtk_check_button_set_active (GTK_CHECK_BUTTON (find_check (row, "Nothing: sees no pictures")),
                               TRUE);
  ui_test_wait (sees_nothing, f->dialog);
  row = find_row (f->dialog, "tiny-idefics3", 0);
  g_assert_true (gtk_check_button_get_active (
      GTK_CHECK_BUTTON (find_check (row, "Nothing: sees no pictures"))));
  gtk_check_button_set_active (GTK_CHECK_BUTTON (find_check (row, "mmproj & a.gguf")), TRUE);
  ui_test_wait (sees, f->dialog);
}

int
main (int argc, char **argv)
{
  static const char *const both[] = {FIRST, SECOND, NULL};

  ui_test_init (&argc, &argv);
  g_test_add ("/model-manager/empty", Fixture, NULL, set_up, test_empty, tear_down);
  g_test_add ("/model-manager/rows", Fixture, both, set_up, test_rows, tear_down);
  g_test_add ("/model-manager/load", Fixture, both, set_up, test_load, tear_down);
  g_test_add ("/model-manager/outside", Fixture, both, set_up, test_outside, tear_down);
  g_test_add ("/model-manager/eyes", Fixture, both, set_up, test_eyes, tear_down);
  g_test_add ("/model-manager/damaged", Fixture, both, set_up, test_damaged, tear_down);
  return g_test_run ();
}
