/* test-seeing.c - the window with vision models: a picture of each family of eyes, from the file to
 * the answer and to what is kept of it. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/ui-library.h"
#include "ui/ks-compat.h"
#include "ui/ks-kept-button.h"
#include "ui/ks-memory-panel.h"
#include "ui/ks-picture-map.h"
#include "ui/ks-retention-map.h"
#include "ui/ks-transcript.h"
#include "ui/ks-window.h"

#include <string.h>

typedef struct {
  LibraryFixture base;
  KsWindow *window;
  guint n_answered;
} Fixture;

static gboolean
is_mapped (gpointer widget)
{
  return gtk_widget_get_mapped (widget);
}

static gboolean
is_ready (gpointer library)
{
  g_assert_cmpstr (ks_library_get_model_state (library) == KS_MODEL_FAILED
                       ? ks_library_get_model_error (library)
                       : NULL,
                   ==, NULL);
  return ks_library_get_model_state (library) == KS_MODEL_READY;
}

static gboolean
is_loading (gpointer library)
{
  return ks_library_get_model_state (library) == KS_MODEL_LOADING;
}

static char *
copy_case (Fixture *f, const char *name, const char *file)
{
  g_autofree char *from_path = g_build_filename (g_getenv ("KS_TEST_CASES"), name, file, NULL);
  char *to_path = g_build_filename (f->base.dir, file, NULL);
  g_autoptr (GFile) from = g_file_new_for_path (from_path);
  g_autoptr (GFile) to = g_file_new_for_path (to_path);
  g_autoptr (GError) error = NULL;

  (void)g_file_copy (from, to, G_FILE_COPY_NONE, NULL, NULL, NULL, &error);
  g_assert_no_error (error);
  return to_path;
}

/* The language model of a case beside its tower: two towers come without, and another case's fits.
 */
static char *
make_pair (Fixture *f, const char *name)
{
  gboolean is_gemma = strcmp (name, "gemma3-vision") == 0;

  if (!is_gemma && strcmp (name, "qwen2-vl") != 0)
    return g_build_filename (g_getenv ("KS_TEST_CASES"), name, "model.gguf", NULL);
  g_free (copy_case (f, name, "mmproj.gguf"));
  return copy_case (f, is_gemma ? "gemma3" : "qwen2.5-vl", "model.gguf");
}

/* data: the folder of a case. */
static void
set_up (Fixture *f, gconstpointer data)
{
  g_autofree char *model = NULL;

  library_fixture_set_up (&f->base);
  model = make_pair (f, data);
  f->n_answered = 0;
  g_settings_set_uint (f->base.gsettings, "max-tokens", 6);
  g_settings_set_int (f->base.gsettings, "window-width", 1100);
  g_settings_set_boolean (f->base.gsettings, "memory-visible", TRUE);
  ks_library_load_model (f->base.library, model);
  ui_test_wait (is_loading, f->base.library);
  ui_test_wait (is_ready, f->base.library);
  f->window = ks_window_new (NULL, f->base.library);
  gtk_window_present (GTK_WINDOW (f->window));
  ui_test_wait (is_mapped, f->window);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  ui_test_close (GTK_WINDOW (f->window));
  library_fixture_tear_down (&f->base);
}

static KsPendingAttachment *
peek_pending (Fixture *f)
{
  g_autoptr (KsPendingAttachment) pending =
      g_list_model_get_item (ks_chat_get_attachments (ks_window_get_chat (f->window)), 0);

  return pending; /* the chat holds it */
}

static gboolean
is_counted (gpointer data)
{
  KsPendingAttachment *pending = peek_pending (data);

  g_assert_nonnull (pending);
  g_assert_cmpstr (ks_pending_attachment_get_error (pending), ==, NULL);
  return ks_pending_attachment_is_seen (pending) &&
         ks_pending_attachment_get_n_tokens (pending) > 0;
}

static void
answered_cb (KsChat *chat, KsMessage *message, Fixture *f)
{
  g_assert_cmpstr (ks_message_get_error (message), ==, NULL);
  f->n_answered++;
}

static gboolean
is_answered (gpointer data)
{
  Fixture *f = data;

  return f->n_answered > 0 && !ks_chat_is_busy (ks_window_get_chat (f->window));
}

static gboolean
has_picture_row (gpointer window)
{
  GtkWidget *panel = ui_test_find (window, KS_TYPE_MEMORY_PANEL);
  GtkWidget *row = ui_test_find_text (panel, "img0.png");

  return row != NULL && gtk_widget_get_mapped (row);
}

static gboolean
is_known (gpointer unused)
{
  return find_label ("Bright: ") != NULL;
}

static gboolean
has_no_picture_row (gpointer window)
{
  return !has_picture_row (window);
}

/* A new session with a file attached has no picture and no token of the one that was left. */
static void
check_new_session (Fixture *f, GFile *file)
{
  GtkWidget *panel = ui_test_find (GTK_WIDGET (f->window), KS_TYPE_MEMORY_PANEL), *map = NULL;

  ks_window_open_session (f->window, NULL);
  ks_window_attach_files (f->window, &file, 1);
  ui_test_wait (is_counted, f);
  ui_test_wait (has_no_picture_row, f->window);
  map = ui_test_find (panel, KS_TYPE_RETENTION_MAP);
  g_assert_cmpstr (ks_retention_map_get_finding (KS_RETENTION_MAP (map)), ==,
                   "Nothing is kept yet.");
}

/* The chip says what the picture costs and that it is seen; the model answers; the panel has a row
 * for it, and the row opens what is kept of it, as the share below it in the transcript does. */
static void
test_family (Fixture *f, gconstpointer data)
{
  g_autofree char *path = g_build_filename (g_getenv ("KS_TEST_CASES"), data, "img0.png", NULL);
  g_autofree char *shot = g_strdup_printf ("seeing-%s", (const char *)data);
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (KsMemoryView) memory = NULL;
  KsChat *chat = ks_window_get_chat (f->window);
  GtkWidget *button = NULL;

  g_assert_true (ks_library_can_see (f->base.library));
  ks_window_attach_files (f->window, &file, 1);
  ui_test_wait (is_counted, f);
  ui_test_settle (GTK_WIDGET (f->window));
  g_assert_nonnull (find_label ("img0.png"));
  g_assert_cmpuint (ks_pending_attachment_get_n_pictures (peek_pending (f)), ==, 1);
  g_signal_connect (chat, "answered", G_CALLBACK (answered_cb), f);
  g_assert_true (ks_chat_send (chat, "What is it?", NULL));
  ui_test_wait (is_answered, f);
  memory = ks_chat_dup_memory (chat);
  g_assert_cmpuint (memory->n_picture, ==, 1);
  g_assert_cmpstr (memory->pictures[0].name, ==, "img0.png");
  g_assert_cmpuint (memory->pictures[0].n_token, >, 0);
  g_assert_cmpuint (memory->eyes_bytes, >, 0);
  ui_test_wait (has_picture_row, f->window);
  g_signal_emit_by_name (
      gtk_widget_get_ancestor (
          ui_test_find_text (ui_test_find (GTK_WIDGET (f->window), KS_TYPE_MEMORY_PANEL),
                             "img0.png"),
          GTK_TYPE_BUTTON),
      "clicked");
  ui_test_wait (is_known, NULL);
  button =
      ui_test_find (ui_test_find (GTK_WIDGET (f->window), KS_TYPE_TRANSCRIPT), KS_TYPE_KEPT_BUTTON);
  g_assert_true (gtk_widget_get_mapped (button));
  ui_test_save (GTK_WIDGET (f->window), shot);
  g_signal_handlers_disconnect_by_data (chat, f);
  check_new_session (f, file);
}

int
main (int argc, char **argv)
{
  static const char *const families[] = {"gemma3-vision", "idefics3",   "llava-1.5",
                                         "qwen2-vl",      "qwen2.5-vl", "qwen3-vl"};

  ui_test_init (&argc, &argv);
  for (gsize i = 0; i < G_N_ELEMENTS (families); i++) {
    g_autofree char *name = g_strdup_printf ("/seeing/%s", families[i]);

    g_test_add (name, Fixture, families[i], set_up, test_family, tear_down);
  }
  return g_test_run ();
}
