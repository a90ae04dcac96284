/* test-preferences.c - rows show the settings and change them, over a real library. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-model-fit.h"
#include "app/ks-prune.h"
#include "engine/evict.h"
#include "tests/ui/ui-library.h"
#include "ui/ks-compat.h"
#include "ui/ks-preference-rows.h"
#include "ui/ks-preferences.h"

#include <string.h>

typedef struct {
  LibraryFixture base;
  KsChat *chat;
  GtkWidget *dialog;
} Fixture;

static gboolean
is_idle (gpointer chat)
{
  return ks_chat_get_state (chat) == KS_CHAT_IDLE;
}

static void
set_up (Fixture *f, gconstpointer data)
{
  library_fixture_set_up (&f->base);
  f->chat = ks_library_open_chat (f->base.library, f->base.session);
  ui_test_wait (is_idle, f->chat);
  f->dialog = ks_preferences_present (f->base.child, f->base.library, f->chat);
  ui_test_settle (GTK_WIDGET (f->base.window));
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  ks_dialog_close (f->dialog);
  g_clear_object (&f->chat);
  library_fixture_tear_down (&f->base);
}

static GtkSpinButton *
spin_of (Fixture *f, const char *title, guint n)
{
  GtkWidget *row = find_row (f->dialog, title, n);

  g_assert_nonnull (row);
  return ks_number_row_get_spin (row);
}

/* A row shows its setting, follows it, changes it, and has a name for screen readers. */
static void
test_numbers (Fixture *f, gconstpointer data)
{
  GtkSpinButton *temperature = spin_of (f, "Variety", 0);

  g_assert_cmpfloat (gtk_spin_button_get_value (temperature), ==, 0.3);
  gtk_spin_button_set_value (temperature, 0.25);
  g_assert_cmpfloat (ks_settings_get_temperature (f->base.settings), ==, 0.25);
  g_settings_set_double (f->base.gsettings, "temperature", 1.5);
  g_assert_cmpfloat (gtk_spin_button_get_value (temperature), ==, 1.5);
  gtk_spin_button_set_value (spin_of (f, "Seed", 0), 4294967296.0);
  g_assert_cmpint (ks_settings_get_seed (f->base.settings), ==, G_GINT64_CONSTANT (4294967296));
  gtk_spin_button_set_value (spin_of (f, "Threads", 0), 3);
  g_assert_cmpuint (ks_settings_get_n_thread (f->base.settings), ==, 3);
  gtk_spin_button_set_value (spin_of (f, "Number of likely words", 0), 12);
  g_assert_cmpuint (ks_settings_get_top_k (f->base.settings), ==, 12);
  gtk_test_accessible_assert_property (temperature, GTK_ACCESSIBLE_PROPERTY_LABEL, "Variety");
}

/* Without a model there is no target to set, and the row says so. */
static void
test_target (Fixture *f, gconstpointer data)
{
  GtkWidget *row = find_row (f->dialog, "Memory target", 0);

  g_assert_false (gtk_widget_is_sensitive (GTK_WIDGET (ks_number_row_get_spin (row))));
  g_assert_cmpstr (adw_action_row_get_subtitle (ADW_ACTION_ROW (row)), ==,
                   "Can be set when a model is loaded");
}

/* Every policy that is offered exists, and all are but the one that differs by its gate alone;
 * choosing sets; one that is not known shows as
 * the first and is not overwritten by that. */
static void
test_choices (Fixture *f, gconstpointer data)
{
  AdwComboRow *row = ADW_COMBO_ROW (find_row (f->dialog, "What is kept", 0));
  guint n = g_list_model_get_n_items (adw_combo_row_get_model (row)), seen = 0;
  ks_policy policy = KS_N_POLICY;
  g_autofree char *left = NULL;

  g_assert_cmpuint (n, ==, KS_N_POLICY);
  g_assert_cmpuint (adw_combo_row_get_selected (row), ==, 0);
  for (guint i = 1; i < n; i++) {
    g_autofree char *name = NULL;

    adw_combo_row_set_selected (row, i);
    name = ks_settings_dup_policy (f->base.settings);
    g_assert_true (ks_policy_parse (name, &policy));
    seen |= 1u << policy;
    g_assert_cmpstr (adw_action_row_get_subtitle (ADW_ACTION_ROW (row)), !=, "");
  }
  g_assert_cmphex (seen, ==, ((1u << KS_N_POLICY) - 1) & ~(1u << KS_POLICY_UNTIED));
  g_settings_set_string (f->base.gsettings, "policy", "of-tomorrow");
  g_assert_cmpuint (adw_combo_row_get_selected (row), ==, 0);
  left = ks_settings_dup_policy (f->base.settings);
  g_assert_cmpstr (left, ==, "of-tomorrow");
}

/* Pixels are the model's own at first; the least never stands above the most; a number of the
 * settings file that is none of the list is shown as what it is. */
static void
test_pixels (Fixture *f, gconstpointer data)
{
  AdwComboRow *most = ADW_COMBO_ROW (find_row (f->dialog, "Largest picture", 0));
  AdwComboRow *least = ADW_COMBO_ROW (find_row (f->dialog, "Smallest picture", 0));
  GListModel *names = adw_combo_row_get_model (most);
  guint n = g_list_model_get_n_items (names);
  g_autoptr (GtkStringObject) name = NULL;

  g_assert_cmpuint (adw_combo_row_get_selected (most), ==, 0);
  g_assert_cmpuint (ks_settings_get_picture_max_pixels (f->base.settings), ==, 0);
  adw_combo_row_set_selected (most, 3);
  g_assert_cmpuint (ks_settings_get_picture_max_pixels (f->base.settings), ==, 512 * 512);
  adw_combo_row_set_selected (least, 5);
  g_assert_cmpuint (ks_settings_get_picture_min_pixels (f->base.settings), ==, 1024 * 1024);
  g_assert_cmpuint (ks_settings_get_picture_max_pixels (f->base.settings), ==, 1024 * 1024);
  g_assert_cmpuint (adw_combo_row_get_selected (most), ==, 5);
  adw_combo_row_set_selected (most, 1);
  g_assert_cmpuint (ks_settings_get_picture_min_pixels (f->base.settings), ==, 256 * 256);
  g_settings_set_uint (f->base.gsettings, "picture-max-pixels", 123456);
  g_assert_cmpuint (adw_combo_row_get_selected (most), ==, n);
  name = g_list_model_get_item (names, n);
  g_assert_cmpstr (gtk_string_object_get_string (name), ==, "123,456 pixels");
  g_assert_cmpuint (ks_settings_get_picture_max_pixels (f->base.settings), ==, 123456);
  adw_combo_row_set_selected (most, 0);
  adw_combo_row_set_selected (least, 2);
  g_assert_cmpuint (ks_settings_get_picture_max_pixels (f->base.settings), ==, 0);
  gtk_spin_button_set_value (spin_of (f, "Frames of a video", 0), 24);
  g_assert_cmpuint (ks_settings_get_video_frames (f->base.settings), ==, 24);
}

/* Arithmetic is fast unless the user wants it exact, and both say what they do. */
static void
test_mode (Fixture *f, gconstpointer data)
{
  AdwComboRow *row = ADW_COMBO_ROW (find_row (f->dialog, "Arithmetic", 0));

  g_assert_cmpuint (g_list_model_get_n_items (adw_combo_row_get_model (row)), ==, 2);
  g_assert_false (ks_settings_get_exact (f->base.settings));
  adw_combo_row_set_selected (row, 1);
  g_assert_true (ks_settings_get_exact (f->base.settings));
  g_assert_cmpstr (adw_action_row_get_subtitle (ADW_ACTION_ROW (row)), ==,
                   "Nothing is rounded on the way; slower");
  adw_combo_row_set_selected (row, 0);
  g_assert_false (ks_settings_get_exact (f->base.settings));
}

static gboolean
is_measured (gpointer row)
{
  return strstr (adw_action_row_get_subtitle (row), "on the disk") != NULL;
}

static gboolean
is_cleared (gpointer row)
{
  return strstr (adw_action_row_get_subtitle (row), ", 0\u00a0bytes on the disk") != NULL;
}

/* Limits of kept states are set here; what they take is told, and gone when it is cleared. */
static void
test_states (Fixture *f, gconstpointer data)
{
  GtkWidget *row = find_row (f->dialog, "States kept now", 0);
  g_autofree char *dir =
      g_build_filename (ks_library_get_data_dir (f->base.library), "snapshots", NULL);
  g_autofree char *key = g_strnfill (64, 'a'), *path = NULL;
  g_autoptr (GError) error = NULL;

  ui_test_wait (is_measured, row);
  gtk_spin_button_set_value (spin_of (f, "States in memory", 0), 256);
  gtk_spin_button_set_value (spin_of (f, "States on the disk", 0), 1024);
  g_assert_cmpuint (ks_settings_get_snapshot_memory_bytes (f->base.settings), ==, 256u << 20);
  g_assert_cmpuint (ks_settings_get_snapshot_disk_bytes (f->base.settings), ==, 1024u << 20);
  g_assert_cmpint (g_mkdir_with_parents (dir, 0700), ==, 0);
  path = g_strdup_printf ("%s/0000000000000001-%s", dir, key);
  g_assert_true (g_file_set_contents (path, "0123456789", 10, &error));
  g_assert_no_error (error);
  ks_dialog_close (f->dialog);
  f->dialog = ks_preferences_present (f->base.child, f->base.library, f->chat);
  row = find_row (f->dialog, "States kept now", 0);
  ui_test_wait (is_measured, row);
  g_assert_cmpstr (adw_action_row_get_subtitle (ADW_ACTION_ROW (row)), ==,
                   "0\u00a0bytes in memory, 10\u00a0bytes on the disk");
  click (row, "_Clear");
  ui_test_wait (is_cleared, row);
  g_assert_false (g_file_test (path, G_FILE_TEST_EXISTS));
}

/* Pictures keep all their tokens unless the user wants fewer; every choice is one that works, and
 * says what it does. */
static void
test_fewer_tokens (Fixture *f, gconstpointer data)
{
  AdwComboRow *zip = ADW_COMBO_ROW (find_row (f->dialog, "Merge tokens (VisionZip)", 0));
  AdwComboRow *fastv = ADW_COMBO_ROW (find_row (f->dialog, "Leave out tokens (FastV)", 0));
  g_autofree char *none = ks_settings_dup_visionzip (f->base.settings);
  g_autofree char *no = ks_settings_dup_fastv (f->base.settings);

  g_assert_null (none);
  g_assert_null (no);
  g_assert_cmpuint (adw_combo_row_get_selected (zip), ==, 0);
  g_assert_nonnull (strstr (adw_action_row_get_subtitle (ADW_ACTION_ROW (zip)), "merges"));
  g_assert_nonnull (strstr (adw_action_row_get_subtitle (ADW_ACTION_ROW (fastv)), "skip"));
  for (guint i = 1; i < g_list_model_get_n_items (adw_combo_row_get_model (zip)); i++) {
    g_autofree char *text = NULL;
    ks_vision_zip value = {0};

    adw_combo_row_set_selected (zip, i);
    text = ks_settings_dup_visionzip (f->base.settings);
    g_assert_true (ks_prune_parse_zip (text, &value));
    g_assert_cmpuint (value.n_dominant, >, value.n_context);
  }
  for (guint i = 1; i < g_list_model_get_n_items (adw_combo_row_get_model (fastv)); i++) {
    g_autofree char *text = NULL;
    ks_fastv value = {0};

    adw_combo_row_set_selected (fastv, i);
    text = ks_settings_dup_fastv (f->base.settings);
    g_assert_true (ks_prune_parse_fastv (text, &value));
    g_assert_cmpfloat (value.drop, >, 0);
  }
}

/* The system prompt has lines. */
static void
test_prompt (Fixture *f, gconstpointer data)
{
  GtkWidget *view = ui_test_find (find_row (f->dialog, "System prompt", 0), GTK_TYPE_TEXT_VIEW);
  g_autofree char *text = NULL;

  gtk_text_buffer_set_text (gtk_text_view_get_buffer (GTK_TEXT_VIEW (view)), "Be brief.\nBe kind.",
                            -1);
  text = ks_settings_dup_system_prompt (f->base.settings);
  g_assert_cmpstr (text, ==, "Be brief.\nBe kind.");
  gtk_test_accessible_assert_property (view, GTK_ACCESSIBLE_PROPERTY_LABEL, "System prompt");
}

/* Defaults come back for the page and only for it, and can be undone. */
static void
test_restore (Fixture *f, gconstpointer data)
{
  GtkWidget *page =
      gtk_widget_get_ancestor (find_row (f->dialog, "Seed", 0), ADW_TYPE_PREFERENCES_PAGE);
  g_autofree char *prompt = NULL;

  g_settings_set_int (f->base.gsettings, "top-k", 7);
  g_settings_set_string (f->base.gsettings, "system-prompt", "x");
  g_settings_set_uint (f->base.gsettings, "n-thread", 5);
  click (page, "_Restore Defaults");
  g_assert_cmpuint (ks_settings_get_top_k (f->base.settings), ==, 40);
  prompt = ks_settings_dup_system_prompt (f->base.settings);
  g_assert_null (prompt);
  g_assert_cmpuint (ks_settings_get_n_thread (f->base.settings), ==, 5);
  ui_test_settle (GTK_WIDGET (f->base.window));
  click (f->dialog, "_Undo");
  g_assert_cmpuint (ks_settings_get_top_k (f->base.settings), ==, 7);
}

/* A session follows the program until a number is made its own, and again when that is given back;
 * its prompt is stored when typing rests, or at the latest when the dialog goes. */
static void
test_session (Fixture *f, gconstpointer data)
{
  GtkWidget *row = find_row (f->dialog, "Variety", 1);
  GtkSpinButton *spin = ks_number_row_get_spin (row);
  GtkWidget *clear = find_button (row, "As in all sessions");
  GtkWidget *view = ui_test_find (find_row (f->dialog, "System prompt", 1), GTK_TYPE_TEXT_VIEW);

  g_assert_cmpfloat (gtk_spin_button_get_value (spin), ==, 0.3);
  g_assert_false (gtk_widget_get_visible (clear));
  gtk_spin_button_set_value (spin, 1.25);
  g_assert_cmpfloat (ks_chat_get_settings (f->chat)->temperature, ==, 1.25);
  g_assert_cmpfloat (ks_chat_get_settings (f->chat)->top_p, ==, -1);
  g_assert_cmpfloat (ks_settings_get_temperature (f->base.settings), ==, 0.3);
  g_assert_true (gtk_widget_get_visible (clear));
  gtk_test_accessible_assert_property (clear, GTK_ACCESSIBLE_PROPERTY_LABEL,
                                       "Variety: as in all sessions");
  g_signal_emit_by_name (clear, "clicked");
  g_assert_cmpfloat (ks_chat_get_settings (f->chat)->temperature, ==, -1);
  g_assert_cmpfloat (gtk_spin_button_get_value (spin), ==, 0.3);
  gtk_text_buffer_set_text (gtk_text_view_get_buffer (GTK_TEXT_VIEW (view)), "Only here.", -1);
  ks_dialog_close (f->dialog);
  ui_test_settle (GTK_WIDGET (f->base.window));
  g_assert_cmpstr (ks_chat_get_settings (f->chat)->system_prompt, ==, "Only here.");
  f->dialog = ks_preferences_present (f->base.child, f->base.library, NULL);
  g_assert_null (find_row (f->dialog, "Variety", 1));
}

static gboolean
is_empty (gpointer library)
{
  return g_list_model_get_n_items (ks_library_get_sessions (library)) == 0;
}

static gboolean
has_label (gpointer beginning)
{
  return find_label (beginning) != NULL;
}

/* Deleting asks, with numbers; giving up deletes nothing. */
static void
test_delete (Fixture *f, gconstpointer data)
{
  static char question[] = "1 session with its messages", answer[] = "All sessions";

  click (f->dialog, "_Delete All My Data…");
  ui_test_wait (has_label, question);
  click (NULL, "_Cancel");
  ui_test_settle (GTK_WIDGET (f->base.window));
  g_assert_false (is_empty (f->base.library));
  click (f->dialog, "_Delete All My Data…");
  ui_test_settle (GTK_WIDGET (f->base.window));
  g_clear_object (&f->chat); /* its session goes */
  f->chat = ks_library_open_chat (f->base.library, NULL);
  click (NULL, "_Delete All");
  ui_test_wait (is_empty, f->base.library);
  ui_test_wait (has_label, answer);
}

/* The guess at what fits names the worst of what holds, and nothing that is not known. */
static void
test_fit (void)
{
  g_assert_cmpint (ks_model_fit_judge (100, 0, 0, 0), ==, KS_MODEL_FIT_OK);
  g_assert_cmpint (ks_model_fit_judge (100, 100, 100, 100), ==, KS_MODEL_FIT_OK);
  g_assert_cmpint (ks_model_fit_judge (101, 100, 200, 300), ==, KS_MODEL_FIT_OVER_TARGET);
  g_assert_cmpint (ks_model_fit_judge (201, 100, 200, 300), ==, KS_MODEL_FIT_OVER_AVAILABLE);
  g_assert_cmpint (ks_model_fit_judge (301, 100, 200, 300), ==, KS_MODEL_FIT_OVER_MACHINE);
}

int
main (int argc, char **argv)
{
  ui_test_init (&argc, &argv);
  g_test_add ("/preferences/numbers", Fixture, NULL, set_up, test_numbers, tear_down);
  g_test_add ("/preferences/target", Fixture, NULL, set_up, test_target, tear_down);
  g_test_add ("/preferences/choices", Fixture, NULL, set_up, test_choices, tear_down);
  g_test_add ("/preferences/mode", Fixture, NULL, set_up, test_mode, tear_down);
  g_test_add ("/preferences/pixels", Fixture, NULL, set_up, test_pixels, tear_down);
  g_test_add ("/preferences/states", Fixture, NULL, set_up, test_states, tear_down);
  g_test_add ("/preferences/fewer-tokens", Fixture, NULL, set_up, test_fewer_tokens, tear_down);
  g_test_add ("/preferences/prompt", Fixture, NULL, set_up, test_prompt, tear_down);
  g_test_add ("/preferences/restore", Fixture, NULL, set_up, test_restore, tear_down);
  g_test_add ("/preferences/session", Fixture, NULL, set_up, test_session, tear_down);
  g_test_add ("/preferences/delete", Fixture, NULL, set_up, test_delete, tear_down);
  g_test_add_func ("/preferences/fit", test_fit);
  return g_test_run ();
}
