/* test-kept-dialog.c - what is kept of one picture, and the ways to it from a file in the
 * transcript and from the viewer, over a chat and a library that the test plays. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/fake-chat.h"
#include "tests/ui/ui-test.h"
#include "ui/ks-compat.h"
#include "ui/ks-file-viewer.h"
#include "ui/ks-frames-preview.h"
#include "ui/ks-image-viewer.h"
#include "ui/ks-kept-button.h"
#include "ui/ks-kept-dialog.h"
#include "ui/ks-kept-file.h"
#include "ui/ks-picture-list.h"
#include "ui/ks-picture-map.h"
#include "ui/ks-transcript.h"

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
 * the two rows in the middle, the left half is kept.  Of the 16 places 10 had a token. */
static KsPictureTrace *
trace_new (void)
{
  KsPictureTrace *trace = ks_picture_trace_new ();

  trace->n_layer = trace->n_kv_head = 1;
  trace->n_row = trace->n_col = 4;
  trace->n_token = 10;
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
  KsMemoryPicture picture = {
      .turn = 2, .number = 3, .name = name, .hash = hash, .page = -1, .frame = -1};

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

/* It asks for that picture's place in the chat, draws that file, and tells the share of the
 * tokens that there were, as the file's card does. */
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
                   "80 % kept: most at the top left, least at the top right");
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

/* --- ways to it --- */

typedef struct {
  guint turn, number;
  int page;
  guint n_kept; /* of 10 tokens in one stream */
} Row;

/* One layer with one head, pictures of the file "00" as named. */
static KsMemoryView *
memory_new (const Row *rows, guint n)
{
  KsMemoryView *view = g_new0 (KsMemoryView, 1);

  view->n_layer = view->n_kv_head = 1;
  view->by_stream = g_new0 (guint32, 1);
  view->pictures = g_new0 (KsMemoryPicture, n);
  view->n_picture = n;
  for (guint i = 0; i < n; i++)
    view->pictures[i] = (KsMemoryPicture){.turn = rows[i].turn,
                                          .number = rows[i].number,
                                          .name = g_strdup ("report.pdf"),
                                          .hash = g_strdup ("00"),
                                          .page = rows[i].page,
                                          .frame = -1,
                                          .n_token = 10,
                                          .n_entries = rows[i].n_kept};
  return view;
}

/* Pages 1 and 3 in the first turn, page 1 once more in the third one. */
static const Row three[] = {{0, 1, 0, 10}, {0, 2, 2, 5}, {2, 1, 0, 1}};

/* A share is that of one turn: of all its pictures of the file, or of a page; of another file, turn
 * or page nothing is known. */
static void
test_share (void)
{
  g_autoptr (KsMemoryView) view = memory_new (three, 3);
  g_autoptr (KsAttachment) file =
      ks_attachment_new (KS_ATTACHMENT_PDF, "report.pdf", "00", 1, NULL, 4, 0, 0);
  g_autoptr (KsAttachment) other =
      ks_attachment_new (KS_ATTACHMENT_PDF, "report.pdf", "01", 1, NULL, 4, 0, 0);

  g_assert_cmpfloat (ks_kept_file_get_share (view, file, 0, -1), ==, 0.75);
  g_assert_cmpfloat (ks_kept_file_get_share (view, file, 0, 2), ==, 0.5);
  g_assert_cmpfloat (ks_kept_file_get_share (view, file, 2, -1), ==, 0.1);
  g_assert_cmpfloat (ks_kept_file_get_share (view, file, -1, -1), ==, 0.1);
  g_assert_cmpfloat (ks_kept_file_get_share (view, file, -1, 2), ==, 0.5);
  g_assert_cmpfloat (ks_kept_file_get_share (view, file, 1, -1), <, 0);
  g_assert_cmpfloat (ks_kept_file_get_share (view, file, 0, 1), <, 0);
  g_assert_cmpfloat (ks_kept_file_get_share (view, other, -1, -1), <, 0);
  g_assert_cmpfloat (ks_kept_file_get_share (NULL, file, -1, -1), <, 0);
}

typedef struct {
  KsLibrary *library;
  KsChat *chat;
  KsAttachment *file;
  GtkWindow *window;
} Way;

static void
set_up_way (Way *w, gconstpointer data)
{
  w->library = fake_library_new ();
  w->chat = fake_chat_new ();
  w->file = ks_attachment_new (KS_ATTACHMENT_PDF, "report.pdf", "00", 1, NULL, 4, 0, 0);
  fake_chat_store_file (w->chat, w->file);
  fake_chat_take_trace (w->chat, trace_new ());
  w->window = ui_test_present (gtk_label_new ("window"), 500, 400);
}

/* The newest dialog over the window: a window of its own, or one inside. */
static GtkWidget *
find_in_dialogs (Way *w, GType type)
{
  g_autoptr (GList) windows = gtk_window_list_toplevels ();
  GtkWidget *found = NULL;

  for (GList *l = windows; l != NULL; l = l->next)
    if (gtk_widget_get_mapped (l->data)) {
      GtkWidget *here = ui_test_find (l->data, type);

      found = here != NULL ? here : found;
    }
  return found;
}

static void
close_dialogs (void)
{
  g_autoptr (GListModel) windows = g_object_ref (gtk_window_get_toplevels ());

  while (g_list_model_get_n_items (windows) > 0) {
    g_autoptr (GtkWindow) window = g_list_model_get_item (windows, 0);

    gtk_window_destroy (window);
  }
}

static void
tear_down_way (Way *w, gconstpointer data)
{
  close_dialogs ();
  fake_library_give_up (w->library);
  ui_test_wait (is_idle, NULL);
  g_assert_finalize_object (w->chat);
  g_assert_finalize_object (w->library);
  g_assert_finalize_object (w->file);
}

static void
assert_words (GtkWidget *button, const char *words)
{
  g_assert_true (KS_IS_KEPT_BUTTON (button));
  if (words == NULL)
    g_assert_false (gtk_widget_get_visible (button));
  else
    g_assert_nonnull (ui_test_find_text (button, words));
}

/* The viewer says what is kept of the page that it shows, and leads to that page's map. */
static void
test_viewer (Way *w, gconstpointer data)
{
  KsImageViewer *viewer = NULL;
  GtkWidget *button = NULL;

  fake_chat_take_memory (w->chat, memory_new (three, 3));
  ks_file_viewer_present (GTK_WIDGET (w->window), w->library, w->chat, w->file, 0);
  ui_test_wait (is_idle, NULL);
  viewer = KS_IMAGE_VIEWER (find_in_dialogs (w, KS_TYPE_IMAGE_VIEWER));
  button = find_in_dialogs (w, KS_TYPE_KEPT_BUTTON);
  assert_words (button, "100 % kept");
  fake_library_answer (w->library, 64, 48);
  ks_image_viewer_set_page (viewer, 1);
  assert_words (button, NULL);
  fake_library_answer (w->library, 64, 48);
  ks_image_viewer_set_page (viewer, 2);
  assert_words (button, "50 % kept");
  fake_library_answer (w->library, 64, 48);
  ui_test_save (GTK_WIDGET (viewer), "viewer-kept");
  g_signal_emit_by_name (button, "clicked");
  ui_test_wait (is_idle, NULL);
  g_assert_cmpstr (fake_chat_get_log (w->chat), ==, "trace 0 2\n");
  g_assert_cmpuint (fake_library_get_page (w->library), ==, 2);
}

/* Before the model has read it, and without a chat, the viewer says nothing. */
static void
test_viewer_unread (Way *w, gconstpointer data)
{
  ks_file_viewer_present (GTK_WIDGET (w->window), w->library, w->chat, w->file, -1);
  ui_test_wait (is_idle, NULL);
  assert_words (find_in_dialogs (w, KS_TYPE_KEPT_BUTTON), NULL);
}

/* A file with several pictures in a turn is a list of them; a choice opens that one's map. */
static void
test_several (Way *w, gconstpointer data)
{
  GtkWidget *list = NULL;

  fake_chat_take_memory (w->chat, memory_new (three, 3));
  ks_kept_file_present (GTK_WIDGET (w->window), w->library, w->chat, w->file, 0, -1);
  ui_test_wait (is_idle, NULL);
  list = find_in_dialogs (w, KS_TYPE_PICTURE_LIST);
  g_assert_nonnull (ui_test_find_text (list, "report.pdf, page 1"));
  g_assert_nonnull (ui_test_find_text (list, "report.pdf, page 3"));
  ui_test_save (list, "kept-list");
  g_assert_cmpstr (fake_chat_get_log (w->chat), ==, "");
  g_signal_emit_by_name (list, "open", 1);
  ui_test_wait (is_idle, NULL);
  g_assert_cmpstr (fake_chat_get_log (w->chat), ==, "trace 0 2\n");
}

static void
show_kept_cb (KsTranscript *transcript, KsMessage *message, KsAttachment *file, GString *log)
{
  g_string_append_printf (log, "%s of %s\n", ks_attachment_get_name (file),
                          ks_message_get_text (message));
}

/* In the transcript the share stands below the file once the answer is there, and asks for its map.
 */
static void
test_transcript (Way *w, gconstpointer data)
{
  g_autoptr (GString) log = g_string_new (NULL);
  GtkWidget *transcript = ks_transcript_new (), *button = NULL;

  g_signal_connect (transcript, "show-kept", G_CALLBACK (show_kept_cb), log);
  gtk_window_set_child (w->window, transcript);
  fake_chat_set_state (w->chat, KS_CHAT_ANSWERING);
  ks_transcript_set_chat (KS_TRANSCRIPT (transcript), w->chat);
  ui_test_settle (transcript);
  button = ui_test_find (transcript, KS_TYPE_KEPT_BUTTON);
  assert_words (button, NULL);
  fake_chat_take_memory (w->chat, memory_new (three, 3));
  fake_chat_set_state (w->chat, KS_CHAT_IDLE);
  assert_words (button, "75 % kept");
  ui_test_settle (transcript);
  ui_test_save (transcript, "transcript-kept");
  g_signal_emit_by_name (button, "clicked");
  g_assert_cmpstr (log->str, ==, "report.pdf of Look\n");
  ks_transcript_set_chat (KS_TRANSCRIPT (transcript), NULL);
}

/* Of a video the frame that is meant lies below the map, not its first one. */
static void
test_frame (Way *w, gconstpointer data)
{
  KsMemoryPicture picture = {
      .name = (char *)"cat.mp4", .hash = (char *)"02", .page = -1, .frame = 2};
  g_autoptr (KsAttachment) plain =
      ks_attachment_new (KS_ATTACHMENT_VIDEO, "cat.mp4", "02", 1, NULL, 0, 64, 36);
  g_autoptr (KsAttachment) video = ks_attachment_copy_with (plain, "frames=count:3", NULL, 0);
  g_autofree char *name = ks_picture_list_dup_name (&picture);

  g_assert_cmpstr (name, ==, "cat.mp4, frame 3");
  fake_chat_store_file (w->chat, video);
  ks_kept_dialog_present (GTK_WIDGET (w->window), w->library, w->chat, &picture);
  ui_test_wait (is_idle, NULL);
  g_assert_cmpuint (fake_library_get_n_render (w->library), ==, 0);
}

/* A video in a message opens as the frames that were seen, with their times; that they were seen in
 * pairs is said in the words that the list of what is kept has for a pair. */
static void
test_frames (Way *w, gconstpointer data)
{
  KsMemoryView *view = memory_new (three, 2);
  g_autoptr (KsAttachment) plain =
      ks_attachment_new (KS_ATTACHMENT_VIDEO, "cat.mp4", "00", 1, NULL, 0, 64, 36);
  g_autoptr (KsAttachment) video =
      ks_attachment_copy_with (plain, "frames=count:3 taken=3", NULL, 0);
  g_autofree char *pair = NULL, *last = NULL;
  GtkWidget *frames = NULL, *choice = NULL;

  view->pictures[0].frame = 0;
  view->pictures[0].n_frame = 2;
  view->pictures[1].frame = 2;
  view->pictures[1].n_frame = 1;
  view->pictures[0].page = view->pictures[1].page = -1;
  pair = ks_picture_list_dup_name (&view->pictures[0]);
  last = ks_picture_list_dup_name (&view->pictures[1]);
  g_assert_cmpstr (pair, ==, "report.pdf, frames 1 and 2");
  g_assert_cmpstr (last, ==, "report.pdf, frame 3");
  fake_chat_take_memory (w->chat, view);
  ks_file_viewer_present (GTK_WIDGET (w->window), w->library, w->chat, video, 0);
  ui_test_wait (is_idle, NULL);
  frames = find_in_dialogs (w, KS_TYPE_FRAMES_PREVIEW);
  g_assert_nonnull (frames);
  g_assert_nonnull (ui_test_find_text (frames, "0:00.0"));
  g_assert_nonnull (ui_test_find_text (frames, "0:02.0"));
  g_assert_nonnull (ui_test_find_text (frames, "3 frames, in pairs"));
  choice = ui_test_find (frames, GTK_TYPE_DROP_DOWN);
  g_assert_false (gtk_widget_get_mapped (choice));
  assert_words (find_in_dialogs (w, KS_TYPE_KEPT_BUTTON), "75 % kept");
  g_assert_cmpuint (fake_library_get_n_render (w->library), ==, 0);
  ui_test_save (frames, "viewer-frames");
}

int
main (int argc, char **argv)
{
  ui_test_init (&argc, &argv);
  g_test_add ("/kept-dialog/shows", Fixture, "trace", set_up, test_shows, tear_down);
  g_test_add ("/kept-dialog/unknown", Fixture, NULL, set_up, test_unknown, tear_down);
  g_test_add ("/kept-dialog/close", Fixture, "trace", set_up, test_close, tear_down);
  g_test_add_func ("/kept-dialog/share", test_share);
  g_test_add ("/kept-dialog/viewer", Way, NULL, set_up_way, test_viewer, tear_down_way);
  g_test_add ("/kept-dialog/viewer-unread", Way, NULL, set_up_way, test_viewer_unread,
              tear_down_way);
  g_test_add ("/kept-dialog/several", Way, NULL, set_up_way, test_several, tear_down_way);
  g_test_add ("/kept-dialog/transcript", Way, NULL, set_up_way, test_transcript, tear_down_way);
  g_test_add ("/kept-dialog/frames", Way, NULL, set_up_way, test_frames, tear_down_way);
  g_test_add ("/kept-dialog/frame", Way, NULL, set_up_way, test_frame, tear_down_way);
  return g_test_run ();
}
