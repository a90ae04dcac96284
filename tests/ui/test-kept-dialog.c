/* test-kept-dialog.c - what is kept of one picture, over a chat and a library that the test plays.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/fake-chat.h"
#include "tests/ui/ui-test.h"
#include "ui/ks-compat.h"
#include "ui/ks-kept-dialog.h"
#include "ui/ks-picture-map.h"

typedef struct {
  KsLibrary *library;
  KsChat *chat;
  KsAttachment *attachment;
  GtkWindow *window;
  GtkWidget *dialog;
} Fixture;

static gboolean
is_idle (gpointer unused)
{
  return !g_main_context_pending (NULL);
}

static void
add_entry (GArray *entries, guint row, guint col)
{
  KsTraceEntry entry = {0, 0, (guint16)row, (guint16)col};

  g_array_append_val (entries, entry);
}

/* 4 x 4 tokens of one head over a picture that was padded above and below: of the picture itself,
 * the two rows in the middle, the left half is kept. */
static KsPictureTrace *
trace_new (void)
{
  KsPictureTrace *trace = ks_picture_trace_new ();

  trace->n_layer = trace->n_kv_head = 1;
  trace->n_row = trace->n_col = 4;
  trace->y = -0.5;
  trace->height = 2;
  for (guint row = 0; row < 4; row++)
    for (guint col = 0; col < 2; col++)
      add_entry (trace->entries, row, col);
  return trace;
}

static void
set_up (Fixture *f, gconstpointer data)
{
  static char name[] = "cat.png", hash[] = "00";
  KsMemoryPicture picture = {.turn = 2, .number = 3, .name = name, .hash = hash, .page = -1};

  f->library = fake_library_new ();
  f->chat = fake_chat_new ();
  f->attachment = ks_attachment_new (KS_ATTACHMENT_IMAGE, name, hash, 1, NULL, 0, 64, 32);
  fake_chat_store_file (f->chat, f->attachment);
  if (data != NULL)
    fake_chat_take_trace (f->chat, trace_new ());
  f->window = ui_test_present (gtk_label_new ("window"), 400, 400);
  f->dialog = ks_kept_dialog_present (GTK_WIDGET (f->window), f->library, f->chat, &picture);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  ks_dialog_close (f->dialog);
  ui_test_close (f->window);
  fake_library_give_up (f->library);
  ui_test_wait (is_idle, NULL);
  g_assert_finalize_object (f->chat);
  g_assert_finalize_object (f->library);
  g_assert_finalize_object (f->attachment);
}

static KsPictureMap *
find_map (Fixture *f)
{
  return KS_PICTURE_MAP (ui_test_find (f->dialog, KS_TYPE_PICTURE_MAP));
}

/* It asks for that picture's place in the chat, draws that file, and leaves the padding out. */
static void
test_shows (Fixture *f, gconstpointer data)
{
  ui_test_wait (is_idle, NULL);
  g_assert_cmpstr (fake_chat_get_log (f->chat), ==, "trace 2 3\n");
  g_assert_cmpuint (fake_library_get_n_render (f->library), ==, 1);
  g_assert_cmpuint (fake_library_get_page (f->library), ==, 0);
  fake_library_answer (f->library, 64, 32);
  ui_test_wait (is_idle, NULL);
  g_assert_cmpstr (ks_picture_map_get_finding (find_map (f)), ==,
                   "50 % kept: most at the top left, least at the top right");
  ui_test_save (f->dialog, "kept-dialog");
}

/* What cannot be read is said, in place of a finding. */
static void
test_unknown (Fixture *f, gconstpointer data)
{
  ui_test_wait (is_idle, NULL);
  g_assert_nonnull (ks_picture_map_get_finding (find_map (f)));
  g_assert_cmpstr (ks_picture_map_get_finding (find_map (f)), !=, "Reading what is kept…");
  fake_library_give_up (f->library);
}

/* Closed before the answers: both are given up and touch nothing. */
static void
test_close (Fixture *f, gconstpointer data)
{
  gtk_widget_set_visible (GTK_WIDGET (f->window), FALSE);
  ks_dialog_close (f->dialog);
  ui_test_wait (is_idle, NULL);
  g_assert_true (fake_library_is_render_cancelled (f->library));
  fake_library_answer (f->library, 64, 32);
  ui_test_wait (is_idle, NULL);
  f->dialog = ks_dialog_new ("none", gtk_label_new ("none"), 100, 100);
  ks_dialog_present (f->dialog, GTK_WIDGET (f->window));
}

int
main (int argc, char **argv)
{
  ui_test_init (&argc, &argv);
  g_test_add ("/kept-dialog/shows", Fixture, "trace", set_up, test_shows, tear_down);
  g_test_add ("/kept-dialog/unknown", Fixture, NULL, set_up, test_unknown, tear_down);
  g_test_add ("/kept-dialog/close", Fixture, "trace", set_up, test_close, tear_down);
  return g_test_run ();
}
