/* test-message-row.c - one message: what it shows in each state, what it lets one do, and which
 * widgets it touches while its text grows.
 * Over 700 lines because all of it is one widget, over one fixture. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/ui-test.h"
#include "ui/ks-block-view.h"
#include "ui/ks-code-view.h"
#include "ui/ks-message-edit.h"
#include "ui/ks-message-row.h"

#include <gtksourceview/gtksource.h>

#include <string.h>

typedef struct {
  GtkWidget *row;
  GtkWindow *window;
  KsMessage *message;
  GString *events; /* what the row asked for */
} Fixture;

static void
regenerate_cb (KsMessageRow *row, Fixture *fixture)
{
  g_string_append (fixture->events, "regenerate;");
}

static void
continue_cb (KsMessageRow *row, Fixture *fixture)
{
  g_string_append (fixture->events, "continue;");
}

static void
edit_cb (KsMessageRow *row, const char *text, Fixture *fixture)
{
  g_string_append_printf (fixture->events, "edit %s;", text);
}

static void
branch_cb (KsMessageRow *row, guint sibling, Fixture *fixture)
{
  g_string_append_printf (fixture->events, "branch %u;", sibling);
}

static void
open_cb (KsMessageRow *row, KsAttachment *attachment, Fixture *fixture)
{
  g_string_append_printf (fixture->events, "open %s;", ks_attachment_get_name (attachment));
}

static void
pin_cb (KsMessageRow *row, const char *hash, gboolean pinned, Fixture *fixture)
{
  g_string_append_printf (fixture->events, "%s %s;", pinned ? "pin" : "unpin",
                          hash != NULL ? hash : "turn");
}

/* Pictures that tests can see arriving: 2 x 1 pixels at once, or never for a file named late. */
static KsThumbnailDone late_done;
static gpointer late_data;

static void
fake_thumbnail (KsAttachment *attachment, guint max_side_px, GCancellable *cancellable,
                KsThumbnailDone done, gpointer done_data, gpointer data)
{
  g_autoptr (GBytes) bytes = g_bytes_new_static ("\1\2\3\377\4\5\6\377", 8);
  g_autoptr (KsPixels) pixels = ks_pixels_new (2, 1, bytes);

  g_string_append_printf (data, "thumbnail %s;", ks_attachment_get_name (attachment));
  if (strcmp (ks_attachment_get_name (attachment), "late.png") == 0) {
    late_done = done;
    late_data = done_data;
  } else {
    done (pixels, done_data);
  }
}

static void
set_up (Fixture *fixture, KsMessageRole role, const char *text)
{
  GtkWidget *scroller = NULL;

  fixture->events = g_string_new (NULL);
  fixture->message = ks_message_new (1, 0, role, text, 0);
  fixture->row = ks_message_row_new ();
  ks_message_row_set_thumbnails (KS_MESSAGE_ROW (fixture->row), fake_thumbnail, fixture->events);
  g_signal_connect (fixture->row, "regenerate", G_CALLBACK (regenerate_cb), fixture);
  g_signal_connect (fixture->row, "continue", G_CALLBACK (continue_cb), fixture);
  g_signal_connect (fixture->row, "edit", G_CALLBACK (edit_cb), fixture);
  g_signal_connect (fixture->row, "select-branch", G_CALLBACK (branch_cb), fixture);
  g_signal_connect (fixture->row, "open-attachment", G_CALLBACK (open_cb), fixture);
  g_signal_connect (fixture->row, "pin", G_CALLBACK (pin_cb), fixture);
  scroller = gtk_scrolled_window_new ();
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (scroller), fixture->row);
  fixture->window = ui_test_present (scroller, 600, 500);
}

static void
show (Fixture *fixture)
{
  ks_message_row_set_message (KS_MESSAGE_ROW (fixture->row), fixture->message);
  ks_message_row_set_place (KS_MESSAGE_ROW (fixture->row), TRUE, TRUE);
  ui_test_settle (fixture->row);
}

static void
tear_down (Fixture *fixture)
{
  ui_test_close (fixture->window);
  g_object_unref (fixture->message);
  g_string_free (fixture->events, TRUE);
}

static gboolean
has_label (GtkWidget *button, const char *label)
{
  g_autofree char *other = NULL;

  if (g_strcmp0 (gtk_button_get_label (GTK_BUTTON (button)), label) == 0)
    return TRUE;
  if (!gtk_test_accessible_has_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL))
    return FALSE;
  other = gtk_test_accessible_check_property (GTK_ACCESSIBLE (button),
                                              GTK_ACCESSIBLE_PROPERTY_LABEL, label);
  return other == NULL;
}

/* The button with that label that is seen, NULL when there is none. */
static GtkWidget *
find_button (GtkWidget *root, const char *label)
{
  GtkWidget *found = NULL;

  if (GTK_IS_BUTTON (root) && gtk_widget_get_mapped (root) && has_label (root, label))
    return root;
  for (GtkWidget *child = gtk_widget_get_first_child (root); child != NULL && found == NULL;
       child = gtk_widget_get_next_sibling (child))
    found = find_button (child, label);
  return found;
}

static void
click (Fixture *fixture, const char *label)
{
  GtkWidget *button = find_button (fixture->row, label);

  g_assert_nonnull (button);
  g_assert_true (gtk_widget_get_sensitive (button));
  g_signal_emit_by_name (button, "clicked");
  ui_test_settle (fixture->row);
}

static gboolean
shows_text (GtkWidget *root, const char *text)
{
  GtkWidget *label = ui_test_find_text (root, text);

  return label != NULL && gtk_widget_get_mapped (label);
}

/* A user's message can be edited, an answer that is the last can be asked for again, each has a
 * name, and all icons have one. */
static void
test_roles (void)
{
  Fixture fixture;

  set_up (&fixture, KS_MESSAGE_USER, "What *is* it?");
  show (&fixture);
  gtk_test_accessible_assert_property (fixture.row, GTK_ACCESSIBLE_PROPERTY_LABEL, "Your message");
  g_assert_true (shows_text (fixture.row, "What *is* it?"));
  g_assert_nonnull (find_button (fixture.row, "Copy Message"));
  g_assert_nonnull (find_button (fixture.row, "Edit and Ask Again"));
  g_assert_null (find_button (fixture.row, "Answer Again"));
  tear_down (&fixture);

  set_up (&fixture, KS_MESSAGE_ASSISTANT, "It *is*.");
  show (&fixture);
  gtk_test_accessible_assert_property (fixture.row, GTK_ACCESSIBLE_PROPERTY_LABEL, "Answer");
  g_assert_true (shows_text (fixture.row, "It is."));
  g_assert_null (find_button (fixture.row, "Edit and Ask Again"));
  click (&fixture, "Answer Again");
  g_assert_cmpstr (fixture.events->str, ==, "regenerate;");
  ks_message_row_set_place (KS_MESSAGE_ROW (fixture.row), FALSE, TRUE);
  ui_test_settle (fixture.row);
  g_assert_null (find_button (fixture.row, "Answer Again"));
  tear_down (&fixture);
}

/* How an answer ended is said in words, with what can be done then. */
static void
test_states (void)
{
  static const struct {
    KsMessageState state;
    const char *sentence, *button, *event;
  } cases[] = {
      {KS_MESSAGE_STOPPED, "You stopped this answer.", "_Continue", "continue;"},
      {KS_MESSAGE_LIMIT, "The answer reached the length limit.", "_Continue", "continue;"},
      {KS_MESSAGE_INTERRUPTED, "The program was closed before this answer was complete.",
       "_Continue", "continue;"},
      {KS_MESSAGE_FAILED, "No room on the device.", "_Answer Again", "regenerate;"},
  };
  Fixture fixture;

  set_up (&fixture, KS_MESSAGE_ASSISTANT, "Half");
  show (&fixture);
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_string_truncate (fixture.events, 0);
    ks_message_set_error (fixture.message, "No room on the device.");
    ks_message_set_state (fixture.message, cases[i].state);
    ui_test_settle (fixture.row);
    g_assert_true (shows_text (fixture.row, cases[i].sentence));
    click (&fixture, cases[i].button);
    g_assert_cmpstr (fixture.events->str, ==, cases[i].event);
  }
  /* While another request runs nothing can be asked for. */
  ks_message_row_set_place (KS_MESSAGE_ROW (fixture.row), TRUE, FALSE);
  g_assert_false (gtk_widget_get_sensitive (find_button (fixture.row, "_Answer Again")));
  ks_message_set_state (fixture.message, KS_MESSAGE_COMPLETE);
  ui_test_settle (fixture.row);
  g_assert_false (shows_text (fixture.row, "No room on the device."));
  ks_message_set_text (fixture.message, "");
  ks_message_set_state (fixture.message, KS_MESSAGE_STREAMING);
  ui_test_settle (fixture.row);
  g_assert_true (shows_text (fixture.row, "Answering…"));
  g_assert_null (find_button (fixture.row, "Copy Message"));
  tear_down (&fixture);
}

/* An answer that was stopped before its first word says that the question is not known: for good,
 * and while it is the last one with a way to go on. */
static void
test_unread (void)
{
  static const char sentence[] =
      "Stopped before it was read: the model does not know this question.";
  Fixture fixture;

  set_up (&fixture, KS_MESSAGE_ASSISTANT, "");
  show (&fixture);
  ks_message_set_state (fixture.message, KS_MESSAGE_STOPPED);
  ui_test_settle (fixture.row);
  g_assert_true (shows_text (fixture.row, sentence));
  click (&fixture, "_Continue");
  g_assert_cmpstr (fixture.events->str, ==, "continue;");
  ks_message_row_set_place (KS_MESSAGE_ROW (fixture.row), FALSE, TRUE);
  ui_test_settle (fixture.row);
  g_assert_true (shows_text (fixture.row, sentence));
  g_assert_null (find_button (fixture.row, "_Continue"));
  tear_down (&fixture);
}

/* A question without an answer offers one, but not while an answer is on its way. */
static void
test_unanswered (void)
{
  Fixture fixture;

  set_up (&fixture, KS_MESSAGE_USER, "Hello?");
  show (&fixture);
  g_assert_true (shows_text (fixture.row, "This question has no answer yet."));
  click (&fixture, "_Answer");
  g_assert_cmpstr (fixture.events->str, ==, "regenerate;");
  ks_message_row_set_place (KS_MESSAGE_ROW (fixture.row), TRUE, FALSE);
  ui_test_settle (fixture.row);
  g_assert_false (shows_text (fixture.row, "This question has no answer yet."));
  tear_down (&fixture);
}

/* "2 / 3" with a way to both neighbours, and no way beyond the first and the last. */
static void
test_branches (void)
{
  Fixture fixture;

  set_up (&fixture, KS_MESSAGE_ASSISTANT, "Another wording");
  show (&fixture);
  g_assert_null (find_button (fixture.row, "Next Version"));
  ks_message_set_branch (fixture.message, 1, 3);
  ui_test_settle (fixture.row);
  g_assert_true (shows_text (fixture.row, "2 / 3"));
  gtk_test_accessible_assert_property (ui_test_find_text (fixture.row, "2 / 3"),
                                       GTK_ACCESSIBLE_PROPERTY_LABEL, "Version 2 of 3");
  click (&fixture, "Next Version");
  click (&fixture, "Previous Version");
  g_assert_cmpstr (fixture.events->str, ==, "branch 2;branch 0;");
  ks_message_set_branch (fixture.message, 2, 3);
  g_assert_false (gtk_widget_get_sensitive (find_button (fixture.row, "Next Version")));
  ks_message_set_branch (fixture.message, 0, 3);
  g_assert_false (gtk_widget_get_sensitive (find_button (fixture.row, "Previous Version")));
  tear_down (&fixture);
}

static gboolean
press (GtkWidget *widget, guint keyval, GdkModifierType state)
{
  g_autoptr (GListModel) controllers = gtk_widget_observe_controllers (widget);
  gboolean taken = FALSE;

  for (guint i = 0; i < g_list_model_get_n_items (controllers) && !taken; i++) {
    g_autoptr (GtkEventController) controller = g_list_model_get_item (controllers, i);

    /* Ours; the text view's own ones would do with the key what they always do. */
    if (GTK_IS_EVENT_CONTROLLER_KEY (controller) &&
        gtk_event_controller_get_propagation_phase (controller) == GTK_PHASE_CAPTURE)
      g_signal_emit_by_name (controller, "key-pressed", keyval, 0, state, &taken);
  }
  return taken;
}

/* Enter asks again with the new text, Shift+Enter is left to the text view, Escape gives up; what
 * was typed survives that the row shows another message meanwhile. */
static void
test_edit (void)
{
  Fixture fixture;
  GtkWidget *view = NULL;
  g_autoptr (KsMessage) other = ks_message_new (2, 0, KS_MESSAGE_USER, "Other", 0);

  set_up (&fixture, KS_MESSAGE_USER, "Old text");
  show (&fixture);
  click (&fixture, "Edit and Ask Again");
  g_assert_true (ks_message_row_is_edited (KS_MESSAGE_ROW (fixture.row)));
  view = ui_test_find (fixture.row, GTK_TYPE_TEXT_VIEW);
  gtk_test_accessible_assert_property (view, GTK_ACCESSIBLE_PROPERTY_LABEL, "Message Text");
  g_assert_false (press (view, GDK_KEY_Return, GDK_SHIFT_MASK));
  g_assert_true (press (view, GDK_KEY_Escape, 0));
  ui_test_settle (fixture.row);
  g_assert_false (ks_message_row_is_edited (KS_MESSAGE_ROW (fixture.row)));
  g_assert_true (shows_text (fixture.row, "Old text"));
  g_assert_cmpstr (fixture.events->str, ==, "");

  click (&fixture, "Edit and Ask Again");
  view = ui_test_find (fixture.row, GTK_TYPE_TEXT_VIEW);
  gtk_text_buffer_set_text (gtk_text_view_get_buffer (GTK_TEXT_VIEW (view)), "New text", -1);
  ks_message_row_set_message (KS_MESSAGE_ROW (fixture.row), other);
  g_assert_false (ks_message_row_is_edited (KS_MESSAGE_ROW (fixture.row)));
  ks_message_row_set_message (KS_MESSAGE_ROW (fixture.row), fixture.message);
  g_assert_true (ks_message_row_is_edited (KS_MESSAGE_ROW (fixture.row)));
  ui_test_settle (fixture.row);
  view = ui_test_find (fixture.row, GTK_TYPE_TEXT_VIEW);
  /* Not while the chat is busy: the text stays. */
  ks_message_row_set_place (KS_MESSAGE_ROW (fixture.row), TRUE, FALSE);
  press (view, GDK_KEY_Return, 0);
  g_assert_cmpstr (fixture.events->str, ==, "");
  ks_message_row_set_place (KS_MESSAGE_ROW (fixture.row), TRUE, TRUE);
  g_assert_true (press (view, GDK_KEY_Return, 0));
  g_assert_cmpstr (fixture.events->str, ==, "edit New text;");
  g_assert_false (ks_message_row_is_edited (KS_MESSAGE_ROW (fixture.row)));
  tear_down (&fixture);
}

static void
add_file (KsMessage *message, KsAttachmentKind kind, const char *name, guint n_pages)
{
  g_autoptr (KsAttachment) attachment = ks_attachment_new (kind, name, "00", 2048, NULL, n_pages,
                                                           kind == KS_ATTACHMENT_IMAGE ? 64 : 0,
                                                           kind == KS_ATTACHMENT_IMAGE ? 48 : 0);

  ks_message_add_attachment (message, attachment);
}

/* Files are named with what is known of them; pictures come from outside, once; a picture that
 * comes when its row is gone harms nobody. */
static void
test_files (void)
{
  Fixture fixture;

  set_up (&fixture, KS_MESSAGE_USER, "See these");
  add_file (fixture.message, KS_ATTACHMENT_PDF, "a.pdf", 12);
  add_file (fixture.message, KS_ATTACHMENT_TEXT, "b.txt", 0);
  add_file (fixture.message, KS_ATTACHMENT_IMAGE, "late.png", 0);
  show (&fixture);
  g_assert_cmpstr (fixture.events->str, ==, "thumbnail a.pdf;thumbnail late.png;");
  g_assert_nonnull (find_button (fixture.row, "b.txt, 2.0\u00a0KiB"));
  g_assert_nonnull (find_button (fixture.row, "late.png, 64 × 48"));
  g_string_truncate (fixture.events, 0);
  click (&fixture, "a.pdf, 12 pages");
  g_assert_cmpstr (fixture.events->str, ==, "open a.pdf;");
  g_string_truncate (fixture.events, 0);
  ks_message_row_set_message (KS_MESSAGE_ROW (fixture.row), NULL);
  late_done (NULL, late_data);
  show (&fixture);
  g_assert_cmpstr (fixture.events->str, ==, "thumbnail late.png;");
  late_done (NULL, late_data);
  tear_down (&fixture);
}

/* A folder of files is a grid that narrows with the window: never one column as high as three
 * windows, never wider than the row. */
static void
test_many_files (void)
{
  static const int widths[] = {480, 1000};
  int heights[G_N_ELEMENTS (widths)];
  Fixture fixture;

  set_up (&fixture, KS_MESSAGE_USER, "See these");
  for (guint i = 0; i < 34; i++) {
    g_autofree char *name = g_strdup_printf ("a photograph of some holidays %u.png", i);

    add_file (fixture.message, i % 2 == 0 ? KS_ATTACHMENT_IMAGE : KS_ATTACHMENT_TEXT, name, 0);
  }
  show (&fixture);
  for (gsize i = 0; i < G_N_ELEMENTS (widths); i++)
    gtk_widget_measure (fixture.row, GTK_ORIENTATION_VERTICAL, widths[i], NULL, &heights[i], NULL,
                        NULL);
  g_assert_cmpint (heights[1], <, 1000);
  g_assert_cmpint (heights[0], <, 1400);
  g_assert_cmpint (heights[0], >, heights[1]);
  gtk_widget_measure (fixture.row, GTK_ORIENTATION_HORIZONTAL, -1, &heights[0], NULL, NULL, NULL);
  g_assert_cmpint (heights[0], <=, 360);
  ui_test_save (fixture.row, "row-many-files");
  tear_down (&fixture);
}

static guint
count_widgets (GtkWidget *widget)
{
  guint n = 1;

  for (GtkWidget *child = gtk_widget_get_first_child (widget); child != NULL;
       child = gtk_widget_get_next_sibling (child))
    n += count_widgets (child);
  return n;
}

/* While a text grows, the widgets of finished blocks stay the same ones, and words that are added
 * to the last block make no new widget. */
/* The pins of a turn and of its pictures say what they would do, follow the message, and rest while
 * nothing can be asked for; text files and answers have none. */
static void
test_pins (void)
{
  Fixture fixture = {0};
  GtkWidget *button = NULL;

  set_up (&fixture, KS_MESSAGE_USER, "Look");
  add_file (fixture.message, KS_ATTACHMENT_IMAGE, "cat.png", 0);
  add_file (fixture.message, KS_ATTACHMENT_TEXT, "note.txt", 0);
  show (&fixture);
  g_assert_null (find_button (fixture.row, "Keep note.txt in Memory"));
  click (&fixture, "Keep This Turn in Memory");
  click (&fixture, "Keep cat.png in Memory");
  g_assert_cmpstr (strstr (fixture.events->str, "pin"), ==, "pin turn;pin 00;");
  ks_message_set_pinned (fixture.message, NULL, TRUE);
  ks_message_set_pinned (fixture.message, "00", TRUE);
  g_string_truncate (fixture.events, 0);
  click (&fixture, "Let This Turn Fade");
  click (&fixture, "Let cat.png Fade");
  g_assert_cmpstr (fixture.events->str, ==, "unpin turn;unpin 00;");
  button = find_button (fixture.row, "Let This Turn Fade");
  g_assert_true (gtk_widget_get_focusable (button));
  ks_message_row_set_place (KS_MESSAGE_ROW (fixture.row), TRUE, FALSE);
  g_assert_false (gtk_widget_get_sensitive (button));
  ui_test_save (fixture.row, "row-pinned");
  tear_down (&fixture);
  set_up (&fixture, KS_MESSAGE_ASSISTANT, "I see.");
  show (&fixture);
  g_assert_null (find_button (fixture.row, "Keep This Turn in Memory"));
  tear_down (&fixture);
}

static void
test_streaming (void)
{
  Fixture fixture;
  KsMessageBody *body = NULL;
  GtkWidget *blocks[4];
  guint n = 0;

  set_up (&fixture, KS_MESSAGE_ASSISTANT, "");
  ks_message_set_state (fixture.message, KS_MESSAGE_STREAMING);
  show (&fixture);
  body = ks_message_row_get_body (KS_MESSAGE_ROW (fixture.row));
  ks_message_append_text (fixture.message, "# Head\n\nOne.\n\n```c\nint a;\n```\n\nThe la");
  g_assert_cmpuint (ks_message_body_get_n_blocks (body), ==, 4);
  for (guint i = 0; i < 4; i++)
    blocks[i] = ks_message_body_get_block (body, i);
  n = count_widgets (fixture.row);
  ks_message_append_text (fixture.message, "st words");
  g_assert_cmpuint (count_widgets (fixture.row), ==, n);
  for (guint i = 0; i < 4; i++)
    g_assert_true (blocks[i] == ks_message_body_get_block (body, i));
  g_assert_true (shows_text (fixture.row, "The last words"));
  ks_message_append_text (fixture.message, "\n\nAnd more");
  g_assert_cmpuint (ks_message_body_get_n_blocks (body), ==, 5);
  ks_message_set_state (fixture.message, KS_MESSAGE_COMPLETE);
  for (guint i = 0; i < 4; i++)
    g_assert_true (blocks[i] == ks_message_body_get_block (body, i));
  tear_down (&fixture);
}

/* Code and tables that grow keep their widgets: text is appended, cells are added. */
static void
test_growing_blocks (void)
{
  Fixture fixture;
  GtkWidget *view = NULL, *grid = NULL, *cell = NULL;
  GtkTextBuffer *buffer = NULL;
  GtkSourceLanguage *language = NULL;
  GtkTextIter start, end;
  g_autofree char *code = NULL;

  set_up (&fixture, KS_MESSAGE_ASSISTANT, "");
  ks_message_set_state (fixture.message, KS_MESSAGE_STREAMING);
  show (&fixture);
  ks_message_append_text (fixture.message, "```python\nprint(");
  view = ui_test_find (fixture.row, GTK_SOURCE_TYPE_VIEW);
  ks_message_append_text (fixture.message, "1)\n# two");
  g_assert_true (view == ui_test_find (fixture.row, GTK_SOURCE_TYPE_VIEW));
  buffer = gtk_text_view_get_buffer (GTK_TEXT_VIEW (view));
  gtk_text_buffer_get_bounds (buffer, &start, &end);
  code = gtk_text_buffer_get_text (buffer, &start, &end, FALSE);
  g_assert_cmpstr (code, ==, "print(1)\n# two");
  language = gtk_source_buffer_get_language (GTK_SOURCE_BUFFER (buffer));
  g_assert_nonnull (language);
  g_assert_false (gtk_text_view_get_editable (GTK_TEXT_VIEW (view)));
  ks_message_append_text (fixture.message, "\n```\n\n|a|b|\n|-|-|\n|1|2|\n");
  grid = ui_test_find (fixture.row, GTK_TYPE_GRID);
  cell = gtk_grid_get_child_at (GTK_GRID (grid), 0, 1);
  g_assert_cmpstr (gtk_label_get_text (GTK_LABEL (cell)), ==, "1");
  ks_message_append_text (fixture.message, "|3|4|\n");
  g_assert_true (grid == ui_test_find (fixture.row, GTK_TYPE_GRID));
  g_assert_true (cell == gtk_grid_get_child_at (GTK_GRID (grid), 0, 1));
  g_assert_nonnull (gtk_grid_get_child_at (GTK_GRID (grid), 1, 2));
  gtk_test_accessible_assert_property (grid, GTK_ACCESSIBLE_PROPERTY_LABEL,
                                       "Table, columns: 2, rows: 3");
  tear_down (&fixture);
}

/* A long message shows its beginning and offers the rest in steps; one that was seen while it came
 * is not folded; a long block of code is cut too. */
static void
test_folding (void)
{
  Fixture fixture;
  KsMessageBody *body = NULL;
  g_autoptr (GString) text = g_string_new ("```\n");
  g_autoptr (GString) paragraphs = g_string_new (NULL);
  guint n = 0;

  for (guint i = 0; i < 2000; i++)
    g_string_append_printf (text, "line %u\n", i);
  for (guint i = 0; i < 2000; i++)
    g_string_append_printf (paragraphs, "Paragraph %u.\n\n", i);
  set_up (&fixture, KS_MESSAGE_ASSISTANT, paragraphs->str);
  show (&fixture);
  body = ks_message_row_get_body (KS_MESSAGE_ROW (fixture.row));
  n = ks_message_body_get_n_blocks (body);
  g_assert_cmpuint (n, ==, KS_MESSAGE_BODY_LINES);
  click (&fixture, "Show _More");
  g_assert_cmpuint (ks_message_body_get_n_blocks (body), >, n);
  g_assert_cmpuint (ks_message_body_get_n_blocks (body), <, 1000);
  g_assert_true (ks_message_body_has_more (body));

  ks_message_set_text (fixture.message, text->str);
  g_assert_cmpuint (ks_message_body_get_n_blocks (body), ==, 1);
  g_assert_cmpint (gtk_text_buffer_get_line_count (gtk_text_view_get_buffer (
                       GTK_TEXT_VIEW (ui_test_find (fixture.row, GTK_SOURCE_TYPE_VIEW)))),
                   <, 1000);
  g_assert_true (ks_message_body_has_more (body));

  ks_message_set_state (fixture.message, KS_MESSAGE_STREAMING);
  ks_message_set_text (fixture.message, paragraphs->str);
  ks_message_set_state (fixture.message, KS_MESSAGE_COMPLETE);
  g_assert_cmpuint (ks_message_body_get_n_blocks (body), ==, 2000);
  g_assert_false (ks_message_body_has_more (body));
  tear_down (&fixture);
}

static void
text_cb (GObject *clipboard, GAsyncResult *result, gpointer data)
{
  *(char **)data = gdk_clipboard_read_text_finish (GDK_CLIPBOARD (clipboard), result, NULL);
}

static gboolean
is_set (gpointer text)
{
  return *(char **)text != NULL;
}

static char *
read_clipboard (GtkWidget *widget)
{
  char *text = NULL;

  gdk_clipboard_read_text_async (gtk_widget_get_clipboard (widget), NULL, text_cb, &text);
  ui_test_wait (is_set, &text);
  return text;
}

/* Copies are what was written, not what is shown. */
static void
test_copy (void)
{
  static const char text[] = "*as* written\n\n```\nif\u2066x\n```\n";
  Fixture fixture;
  g_autofree char *message = NULL;
  g_autofree char *code = NULL;

  set_up (&fixture, KS_MESSAGE_ASSISTANT, text);
  show (&fixture);
  click (&fixture, "Copy Message");
  message = read_clipboard (fixture.row);
  g_assert_cmpstr (message, ==, text);
  click (&fixture, "Copy Code");
  code = read_clipboard (fixture.row);
  g_assert_cmpstr (code, ==, "if\u2066x");
  tear_down (&fixture);
}

/* Nothing that a message says can slow the window down or make it complain (warnings are fatal). */
static void
test_hazards (void)
{
  Fixture fixture;
  g_autofree char *run = g_strnfill (10240, 'x');
  g_autofree char *code = g_strdup_printf ("```\n%s\n```", run);
  const char *const texts[] = {
      run,
      code,
      "\xff\xfe broken \xe2\x82",
      "<a href='x'>&amp; &bogus; <span>",
      "\u202eturned [x](https://example.org/?a=<b>&c=\"d\")",
      "|a|\n|-|\n|<b>|\n",
      "- \n- - - -\n> > >",
      "```\n```",
      "![](x)",
      "",
  };

  set_up (&fixture, KS_MESSAGE_ASSISTANT, "");
  show (&fixture);
  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++) {
    gint64 start_us = g_get_monotonic_time ();

    ks_message_set_text (fixture.message, texts[i]);
    ui_test_settle (fixture.row);
    g_assert_cmpint (g_get_monotonic_time () - start_us, <, 5 * G_USEC_PER_SEC);
  }
  tear_down (&fixture);
}

/* Whatever a message holds, it fits into the narrowest window and scrolls only inside of itself. */
static void
test_narrow (void)
{
  Fixture fixture;
  g_autofree char *run = g_strnfill (2000, 'x');
  g_autofree char *head = g_strdup_printf ("# %s", run);
  g_autofree char *row = g_strdup_printf ("|%s|b|\n|-|-|\n|1|2|\n", run);
  const char *const texts[] = {
      run,
      head,
      row,
      "- a\n  - a\n    - a\n      - a\n        - a\n          - a\n            - a\n              "
      "- "
      "words that go on for more than one line in a window as narrow as this one",
      "> > > > > > > > - a\n> > > > > > > >   - words that go on for more than one line",
      "1000000. words that go on for more than one line in a window as narrow as this one",
      "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
  };

  set_up (&fixture, KS_MESSAGE_ASSISTANT, "");
  ks_message_set_branch (fixture.message, 99, 100);
  ks_message_set_error (fixture.message, run);
  ks_message_set_state (fixture.message, KS_MESSAGE_FAILED);
  show (&fixture);
  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++) {
    gint64 start_us = g_get_monotonic_time ();
    int width = 0;

    ks_message_set_text (fixture.message, texts[i]);
    ui_test_settle (fixture.row);
    g_test_message ("text %zu: %.0f ms", i, (double)(g_get_monotonic_time () - start_us) / 1000);
    gtk_widget_measure (fixture.row, GTK_ORIENTATION_HORIZONTAL, -1, &width, NULL, NULL, NULL);
    g_assert_cmpint (width, <=, 360);
  }
  tear_down (&fixture);
  set_up (&fixture, KS_MESSAGE_USER, run);
  add_file (fixture.message, KS_ATTACHMENT_TEXT, run, 0);
  show (&fixture);
  for (guint i = 0; i < 2; i++) {
    int width = 0;

    gtk_widget_measure (fixture.row, GTK_ORIENTATION_HORIZONTAL, -1, &width, NULL, NULL, NULL);
    g_assert_cmpint (width, <=, 360);
    ks_message_row_start_edit (KS_MESSAGE_ROW (fixture.row));
    ui_test_settle (fixture.row);
  }
  tear_down (&fixture);
}

int
main (int argc, char **argv)
{
  ui_test_init (&argc, &argv);
  g_test_add_func ("/message-row/roles", test_roles);
  g_test_add_func ("/message-row/states", test_states);
  g_test_add_func ("/message-row/unread", test_unread);
  g_test_add_func ("/message-row/unanswered", test_unanswered);
  g_test_add_func ("/message-row/branches", test_branches);
  g_test_add_func ("/message-row/edit", test_edit);
  g_test_add_func ("/message-row/files", test_files);
  g_test_add_func ("/message-row/many-files", test_many_files);
  g_test_add_func ("/message-row/pins", test_pins);
  g_test_add_func ("/message-row/streaming", test_streaming);
  g_test_add_func ("/message-row/growing-blocks", test_growing_blocks);
  g_test_add_func ("/message-row/folding", test_folding);
  g_test_add_func ("/message-row/copy", test_copy);
  g_test_add_func ("/message-row/hazards", test_hazards);
  g_test_add_func ("/message-row/narrow", test_narrow);
  return g_test_run ();
}
