/* test-composer.c - the composer alone, over a chat that the test plays. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/fake-chat.h"
#include "tests/ui/ui-test.h"
#include "ui/ks-composer.h"
#include "ui/ks-intake.h"

#include <string.h>

#define STOP_ICON "media-playback-stop-symbolic"

typedef struct {
  KsLibrary *library;
  KsChat *chat;
  KsComposer *composer;
  GtkWindow *window;
  GtkWidget *view;
  GtkWidget *attach, *send;
} Fixture;

/* Buttons of the composer in the order of the keyboard: attach, send. */
static GtkWidget *
find_button (GtkWidget *root, const char *css_class, const char *without)
{
  GtkWidget *found = NULL;

  if (GTK_IS_BUTTON (root) && gtk_widget_has_css_class (root, css_class) &&
      !gtk_widget_has_css_class (root, without))
    return root;
  for (GtkWidget *child = gtk_widget_get_first_child (root); child != NULL && found == NULL;
       child = gtk_widget_get_next_sibling (child))
    found = find_button (child, css_class, without);
  return found;
}

static void
set_up (Fixture *fixture, gconstpointer data)
{
  fixture->library = fake_library_new ();
  fixture->chat = fake_chat_new ();
  fixture->composer = ks_composer_new ();
  ks_composer_set_library (fixture->composer, fixture->library);
  ks_composer_set_chat (fixture->composer, fixture->chat);
  fixture->window = ui_test_present (GTK_WIDGET (fixture->composer), 500, 300);
  fixture->view = ui_test_find (GTK_WIDGET (fixture->composer), GTK_TYPE_TEXT_VIEW);
  fixture->attach = ui_test_find (GTK_WIDGET (fixture->composer), GTK_TYPE_MENU_BUTTON);
  fixture->send = find_button (GTK_WIDGET (fixture->composer), "circular", "flat");
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  ui_test_close (fixture->window);
  g_assert_finalize_object (fixture->chat);
  g_assert_finalize_object (fixture->library);
}

/* A key as the capture phase meets it. */
static gboolean
press (Fixture *fixture, guint key, GdkModifierType modifiers)
{
  g_autoptr (GListModel) controllers = gtk_widget_observe_controllers (fixture->view);
  gboolean was_taken = FALSE, was_found = FALSE;

  for (guint i = 0; i < g_list_model_get_n_items (controllers); i++) {
    g_autoptr (GtkEventController) controller = g_list_model_get_item (controllers, i);

    if (!GTK_IS_EVENT_CONTROLLER_KEY (controller) ||
        gtk_event_controller_get_propagation_phase (controller) != GTK_PHASE_CAPTURE)
      continue;
    was_found = TRUE;
    g_signal_emit_by_name (controller, "key-pressed", key, 0, modifiers, &was_taken);
  }
  g_assert_true (was_found);
  return was_taken;
}

static void
assert_text (Fixture *fixture, const char *expected)
{
  g_autofree char *text = ks_composer_get_text (fixture->composer);

  g_assert_cmpstr (text, ==, expected);
}

static GtkWidget *
get_note (Fixture *fixture, const char *text)
{
  GtkWidget *note = ui_test_find_text (GTK_WIDGET (fixture->composer), text);

  return note != NULL && gtk_widget_get_visible (note) ? note : NULL;
}

/* Enter sends the text once and empties the view; Shift+Enter breaks the line at the cursor in
 * place of the selection; other keys are left to the view. */
static void
test_enter (Fixture *fixture, gconstpointer data)
{
  GtkTextBuffer *buffer = gtk_text_view_get_buffer (GTK_TEXT_VIEW (fixture->view));
  GtkTextIter start, end;

  ks_composer_set_text (fixture->composer, "one two");
  gtk_text_buffer_get_iter_at_offset (buffer, &start, 3);
  gtk_text_buffer_get_iter_at_offset (buffer, &end, 4);
  gtk_text_buffer_select_range (buffer, &start, &end);
  g_assert_true (press (fixture, GDK_KEY_Return, GDK_SHIFT_MASK));
  assert_text (fixture, "one\ntwo");
  g_assert_cmpstr (fake_chat_get_log (fixture->chat), ==, "");
  g_assert_false (press (fixture, GDK_KEY_a, 0));

  g_assert_true (press (fixture, GDK_KEY_KP_Enter, 0));
  g_assert_cmpstr (fake_chat_get_log (fixture->chat), ==, "send one\ntwo\n");
  assert_text (fixture, "");
}

/* What cannot be sent stays where it is, with the reason in words beside it. */
static void
test_refused (Fixture *fixture, gconstpointer data)
{
  ks_composer_set_text (fixture->composer, "  \n ");
  press (fixture, GDK_KEY_Return, 0);
  g_assert_nonnull (get_note (fixture, "Write a message first."));
  g_assert_cmpstr (fake_chat_get_log (fixture->chat), ==, "");

  ks_composer_set_text (fixture->composer, "question");
  g_assert_null (get_note (fixture, "Write a message first."));
  fake_chat_refuse (fixture->chat, "The disk is full.");
  press (fixture, GDK_KEY_Return, 0);
  g_assert_nonnull (get_note (fixture, "The disk is full."));
  assert_text (fixture, "question");
}

/* A message that was taken but never stored comes back, before what was typed since; one that was
 * stored does not. */
static void
test_failed (Fixture *fixture, gconstpointer data)
{
  ks_composer_set_text (fixture->composer, "first");
  press (fixture, GDK_KEY_Return, 0);
  fake_chat_fail (fixture->chat, "No room.");
  assert_text (fixture, "first");

  press (fixture, GDK_KEY_Return, 0);
  ks_composer_set_text (fixture->composer, "later");
  fake_chat_fail (fixture->chat, "No room.");
  assert_text (fixture, "first\n\nlater");

  press (fixture, GDK_KEY_Return, 0);
  fake_chat_store (fixture->chat, "first\n\nlater");
  fake_chat_fail (fixture->chat, "The model is gone.");
  assert_text (fixture, "");

  /* The same words again, refused by the disk this time: the stored ones are not taken for them. */
  ks_composer_set_text (fixture->composer, "first\n\nlater");
  press (fixture, GDK_KEY_Return, 0);
  fake_chat_fail (fixture->chat, "No room.");
  assert_text (fixture, "first\n\nlater");
}

static void
assert_send (Fixture *fixture, gboolean sensitive, const char *tooltip)
{
  g_assert_cmpstr (gtk_button_get_icon_name (GTK_BUTTON (fixture->send)), !=, STOP_ICON);
  g_assert_cmpint (gtk_widget_get_sensitive (fixture->send), ==, sensitive);
  g_assert_cmpstr (gtk_widget_get_tooltip_text (fixture->send), ==, tooltip);
  gtk_test_accessible_assert_property (fixture->send, GTK_ACCESSIBLE_PROPERTY_LABEL, "Send");
  gtk_test_accessible_assert_property (fixture->send, GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, tooltip);
}

static void
assert_stop (Fixture *fixture, gboolean sensitive)
{
  g_assert_cmpstr (gtk_button_get_icon_name (GTK_BUTTON (fixture->send)), ==, STOP_ICON);
  g_assert_cmpint (gtk_widget_get_sensitive (fixture->send), ==, sensitive);
  gtk_test_accessible_assert_property (fixture->send, GTK_ACCESSIBLE_PROPERTY_LABEL, "Stop");
}

/* One button: Send with the reason when it cannot, Stop while an answer runs. */
static void
test_send_button (Fixture *fixture, gconstpointer data)
{
  KsPendingAttachment *attachment = NULL;

  assert_send (fixture, FALSE, "Write a message first.");
  ks_composer_set_text (fixture->composer, "x");
  assert_send (fixture, TRUE, "Send the message (Enter)");

  attachment = fake_chat_add (fixture->chat, "a.pdf", KS_PENDING_LOADING);
  assert_send (fixture, FALSE, "“a.pdf” is still being read.");
  fake_pending_set_state (attachment, KS_PENDING_PASSWORD, NULL);
  assert_send (fixture, FALSE, "“a.pdf” needs its password. Enter it, or remove the file.");
  fake_pending_set_state (attachment, KS_PENDING_FAILED, "It is damaged.");
  assert_send (fixture, TRUE, "Send the message (Enter)");
  ks_composer_set_text (fixture->composer, "");
  assert_send (fixture, FALSE,
               "No attached file can be read. Write a message first, or attach another file.");
  ks_composer_set_text (fixture->composer, "x");
  fake_pending_set_state (attachment, KS_PENDING_READY, NULL);
  assert_send (fixture, TRUE, "Send the message (Enter)");

  fake_library_set_model (fixture->library, KS_MODEL_FAILED, "The file is cut.", FALSE);
  assert_send (fixture, FALSE, "The file is cut.");
  fake_library_set_model (fixture->library, KS_MODEL_LOADING, NULL, FALSE);
  fake_chat_set_state (fixture->chat, KS_CHAT_OPENING);
  assert_send (fixture, FALSE, "The chat is being opened.");

  for (int state = KS_CHAT_WAITING; state <= KS_CHAT_ANSWERING; state++) {
    fake_chat_set_state (fixture->chat, state);
    assert_stop (fixture, TRUE);
  }
  fake_chat_set_state (fixture->chat, KS_CHAT_STOPPING);
  assert_stop (fixture, FALSE);
  fake_chat_set_state (fixture->chat, KS_CHAT_IDLE);
  assert_send (fixture, TRUE, "Send the message (Enter)");
}

/* Files that cannot be read hold nothing back: beside the composer, where no card scrolls, it
 * stands how many there are; the message goes without them and their sentences are told.  A locked
 * one is waited for. */
static void
test_left_out (Fixture *fixture, gconstpointer data)
{
  static const char without[] = "4 files cannot be read: the message goes without them.";
  static const char locked[] = "1 file is locked: enter its password, or remove it, to send the "
                               "message.\n1 file cannot be read: the message goes without it.";
  KsPendingAttachment *attachment = NULL;

  for (guint i = 0; i < 4; i++) {
    g_autofree char *name = g_strdup_printf ("%u.mp3", i);

    attachment = fake_chat_add (fixture->chat, name, KS_PENDING_LOADING);
    fake_pending_set_state (attachment, KS_PENDING_FAILED, "It is sound.");
  }
  g_assert_nonnull (get_note (fixture, without));
  ui_test_save (GTK_WIDGET (fixture->window), "composer-left-out");
  ks_composer_set_text (fixture->composer, "question");
  press (fixture, GDK_KEY_Return, 0);
  g_assert_cmpstr (fake_chat_get_log (fixture->chat), ==, "send question\n");
  assert_text (fixture, "");
  g_assert_null (get_note (fixture, without));
  g_assert_nonnull (get_note (fixture, "“0.mp3” was left out: It is sound.\n"
                                       "“1.mp3” was left out: It is sound.\n"
                                       "“2.mp3” was left out: It is sound.\n"
                                       "1 more file was left out."));
  fake_chat_set_state (fixture->chat, KS_CHAT_IDLE);
  ks_composer_set_text (fixture->composer, "next");
  attachment = fake_chat_add (fixture->chat, "a.pdf", KS_PENDING_PASSWORD);
  fake_chat_add (fixture->chat, "b.mp3", KS_PENDING_FAILED);
  g_assert_nonnull (get_note (fixture, locked));
  assert_send (fixture, FALSE, "“a.pdf” needs its password. Enter it, or remove the file.");
  ks_composer_set_chat (fixture->composer, NULL);
  g_assert_null (get_note (fixture, locked));
  ks_composer_set_chat (fixture->composer, fixture->chat);
  ks_chat_remove_attachment (fixture->chat, attachment);
  g_assert_nonnull (get_note (fixture, "1 file cannot be read: the message goes without it."));
  assert_send (fixture, TRUE, "Send the message (Enter)");
}

/* That a file waits for its password is said where it was tried to send without, until the file is
 * unlocked, or waits for something else. */
static void
test_unlocked (Fixture *fixture, gconstpointer data)
{
  static const char locked[] = "“a.pdf” needs its password. Enter it, or remove the file.";
  KsPendingAttachment *attachment = fake_chat_add (fixture->chat, "a.pdf", KS_PENDING_PASSWORD);

  ks_composer_set_text (fixture->composer, "question");
  press (fixture, GDK_KEY_Return, 0);
  g_assert_nonnull (get_note (fixture, locked));
  fake_chat_add (fixture->chat, "b.pdf", KS_PENDING_READY);
  g_assert_nonnull (get_note (fixture, locked)); /* it still does */
  fake_pending_set_state (attachment, KS_PENDING_LOADING, NULL);
  g_assert_null (get_note (fixture, locked));
  fake_pending_set_state (attachment, KS_PENDING_READY, NULL);
  g_assert_null (get_note (fixture, locked));
  press (fixture, GDK_KEY_Return, 0);
  g_assert_cmpstr (fake_chat_get_log (fixture->chat), ==, "send question\n");
}

/* The button sends, then stops; both leave the keyboard in the text. */
static void
test_click (Fixture *fixture, gconstpointer data)
{
  ks_composer_set_text (fixture->composer, "x");
  gtk_widget_grab_focus (fixture->send);
  g_signal_emit_by_name (fixture->send, "clicked");
  g_assert_true (gtk_widget_has_focus (fixture->view));
  gtk_widget_grab_focus (fixture->send);
  g_signal_emit_by_name (fixture->send, "clicked");
  g_assert_true (gtk_widget_has_focus (fixture->view));
  g_assert_cmpstr (fake_chat_get_log (fixture->chat), ==, "send x\nstop\n");
}

/* While an answer runs, the next message can be written, but Enter does not lose it; the hint goes
 * with its cause. */
static void
test_busy (Fixture *fixture, gconstpointer data)
{
  fake_chat_set_state (fixture->chat, KS_CHAT_ANSWERING);
  ks_composer_set_text (fixture->composer, "next");
  press (fixture, GDK_KEY_Return, 0);
  assert_text (fixture, "next");
  g_assert_nonnull (get_note (fixture, "Wait until the answer ends, or stop it."));
  g_assert_cmpstr (fake_chat_get_log (fixture->chat), ==, "");
  fake_chat_set_state (fixture->chat, KS_CHAT_IDLE);
  g_assert_null (get_note (fixture, "Wait until the answer ends, or stop it."));
}

/* Nothing can be written into a chat that another program holds, or into none; both say so. */
static void
test_closed (Fixture *fixture, gconstpointer data)
{
  fake_chat_set_read_only (fixture->chat, "Another program answers here.");
  g_assert_false (gtk_widget_get_sensitive (fixture->view));
  g_assert_false (gtk_widget_get_sensitive (fixture->attach));
  g_assert_cmpstr (gtk_widget_get_tooltip_text (fixture->attach), ==,
                   "Another program answers here.");
  assert_send (fixture, FALSE, "Another program answers here.");
  fake_chat_set_read_only (fixture->chat, NULL);
  g_assert_true (gtk_widget_get_sensitive (fixture->view));

  ks_composer_set_chat (fixture->composer, NULL);
  g_assert_false (gtk_widget_get_sensitive (fixture->view));
  assert_send (fixture, FALSE, "No chat is open.");
  ks_composer_set_chat (fixture->composer, fixture->chat);
  g_assert_true (gtk_widget_get_sensitive (fixture->view));
}

/* Buttons without words have names; the text view has one too; Tab reaches all of them. */
static void
test_accessible (Fixture *fixture, gconstpointer data)
{
  GtkWidget *widgets[] = {fixture->attach, fixture->view, fixture->send};
  guint n_reached = 0;

  gtk_test_accessible_assert_property (fixture->view, GTK_ACCESSIBLE_PROPERTY_LABEL, "Message");
  gtk_test_accessible_assert_property (fixture->attach, GTK_ACCESSIBLE_PROPERTY_LABEL, "Attach");
  ks_composer_set_text (fixture->composer, "x");
  for (guint i = 0; i < 6; i++) {
    g_signal_emit_by_name (fixture->window, "move-focus", GTK_DIR_TAB_FORWARD);
    for (gsize k = 0; k < G_N_ELEMENTS (widgets); k++) /* a menu button passes it on */
      n_reached |=
          gtk_widget_get_state_flags (widgets[k]) & GTK_STATE_FLAG_FOCUS_WITHIN ? 1u << k : 0;
  }
  g_assert_cmpuint (n_reached, ==, 7);
}

static void
set_clipboard (Fixture *fixture, GdkContentProvider *provider)
{
  gdk_clipboard_set_content (gtk_widget_get_clipboard (fixture->view), provider);
  g_object_unref (provider);
  g_signal_emit_by_name (fixture->view, "paste-clipboard");
}

static gboolean
has_log (gpointer chat)
{
  return fake_chat_get_log (chat)[0] != '\0';
}

static gboolean
has_text (gpointer composer)
{
  g_autofree char *text = ks_composer_get_text (composer);

  return text[0] != '\0';
}

static GdkContentProvider *
text_provider_new (const char *text)
{
  return gdk_content_provider_new_typed (G_TYPE_STRING, text);
}

static GdkContentProvider *
files_provider_new (const char *uris)
{
  g_autoptr (GBytes) bytes = g_bytes_new (uris, strlen (uris));

  return gdk_content_provider_new_for_bytes ("text/uri-list", bytes);
}

static GdkTexture *
texture_new (void)
{
  static const guint8 pixels[] = {255, 0, 0, 255, 0, 255, 0, 255};
  g_autoptr (GBytes) bytes = g_bytes_new_static (pixels, sizeof pixels);

  return gdk_memory_texture_new (2, 1, GDK_MEMORY_R8G8B8A8, bytes, 8);
}

/* Files win over a picture, a picture over text, whatever order they are offered in. */
static void
test_paste_order (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GdkTexture) texture = texture_new ();
  GdkContentProvider *all[] = {text_provider_new ("words"),
                               gdk_content_provider_new_typed (GDK_TYPE_TEXTURE, texture),
                               files_provider_new ("file:///tmp/a%20b.txt\r\n")};
  GdkContentProvider *two[] = {text_provider_new ("words"),
                               gdk_content_provider_new_typed (GDK_TYPE_TEXTURE, texture)};

  set_clipboard (fixture, gdk_content_provider_new_union (all, 3));
  ui_test_wait (has_log, fixture->chat);
  g_assert_cmpstr (fake_chat_get_log (fixture->chat), ==, "file /tmp/a b.txt\n");
  fake_chat_clear_log (fixture->chat);
  set_clipboard (fixture, gdk_content_provider_new_union (two, 2));
  ui_test_wait (has_log, fixture->chat);
  g_assert_true (g_str_has_prefix (fake_chat_get_log (fixture->chat), "bytes Pasted picture "));
  assert_text (fixture, "");
  set_clipboard (fixture, text_provider_new ("words"));
  ui_test_wait (has_text, fixture->composer);
  assert_text (fixture, "words");
}

/* A picture that only the toolkit can read becomes PNG; encoded bytes are passed on untouched, even
 * when they are no picture at all: the decoder decides. */
static void
test_paste_picture (Fixture *fixture, gconstpointer data)
{
  g_autoptr (GdkTexture) texture = texture_new ();
  g_autoptr (GBytes) encoded = g_bytes_new_static ("not a picture", 13);
  gsize n_byte = 0;
  const guint8 *bytes = NULL;

  ks_intake_take_texture (texture, NULL, fixture->chat, NULL, G_OBJECT (fixture->composer));
  ui_test_wait (has_log, fixture->chat);
  bytes = g_bytes_get_data (fake_chat_get_bytes (fixture->chat), &n_byte);
  g_assert_cmpuint (n_byte, >, 8);
  g_assert_cmpmem (bytes, 8, "\x89PNG\r\n\x1a\n", 8);

  fake_chat_clear_log (fixture->chat);
  set_clipboard (fixture, gdk_content_provider_new_for_bytes ("image/jpeg", encoded));
  ui_test_wait (has_log, fixture->chat);
  g_assert_cmpstr (fake_chat_get_log (fixture->chat), ==, "bytes Pasted picture 2 13\n");
  g_assert_true (g_bytes_equal (fake_chat_get_bytes (fixture->chat), encoded));
}

/* A text over 20 kB never reaches the view: it is attached whole; one just below is inserted. */
static void
test_large_paste (Fixture *fixture, gconstpointer data)
{
  g_autofree char *text = g_strnfill (KS_INTAKE_MAX_TEXT_BYTES + 1, 'a');
  gint64 start_us = 0;

  set_clipboard (fixture, text_provider_new (text));
  ui_test_wait (has_log, fixture->chat);
  g_assert_cmpstr (fake_chat_get_log (fixture->chat), ==, "bytes Pasted text 20001\n");
  assert_text (fixture, "");
  g_assert_nonnull (get_note (fixture, "The pasted text is long: it was attached as a file."));

  /* One word as long as that would take 11 s to lay out with breaks between words only. */
  text[KS_INTAKE_MAX_TEXT_BYTES] = '\0';
  start_us = g_get_monotonic_time ();
  set_clipboard (fixture, text_provider_new (text));
  ui_test_wait (has_text, fixture->composer);
  ui_test_settle (fixture->view);
  g_assert_cmpint (g_get_monotonic_time () - start_us, <, 5 * G_USEC_PER_SEC);
  assert_text (fixture, text);
  ks_composer_set_text (fixture->composer, "short");
  g_assert_cmpint (gtk_text_view_get_wrap_mode (GTK_TEXT_VIEW (fixture->view)), ==,
                   GTK_WRAP_WORD_CHAR);
}

static gboolean
drop (GtkWidget *page, const GValue *value)
{
  g_autoptr (GListModel) controllers = gtk_widget_observe_controllers (page);
  gboolean was_taken = FALSE;

  for (guint i = 0; i < g_list_model_get_n_items (controllers); i++) {
    g_autoptr (GtkEventController) controller = g_list_model_get_item (controllers, i);

    if (GTK_IS_DROP_TARGET (controller))
      g_signal_emit_by_name (controller, "drop", value, 0.0, 0.0, &was_taken);
  }
  return was_taken;
}

/* Local files are attached; what lies elsewhere is not, and the user is told. */
static void
test_drop_files (Fixture *fixture, gconstpointer data)
{
  GtkWidget *page = gtk_overlay_new ();
  GSList *files = NULL;
  g_auto (GValue) value = G_VALUE_INIT;

  g_object_ref_sink (page);
  ks_composer_add_drop_target (fixture->composer, page);
  g_assert_nonnull (ui_test_find_text (page, "Drop to Attach"));
  files = g_slist_append (files, g_file_new_for_uri ("https://example.org/a.png"));
  files = g_slist_append (files, g_file_new_for_path ("/tmp/b.pdf"));
  g_value_init (&value, GDK_TYPE_FILE_LIST);
  g_value_take_boxed (&value, files);
  g_assert_true (drop (page, &value));
  g_assert_cmpstr (fake_chat_get_log (fixture->chat), ==, "file /tmp/b.pdf\n");
  g_assert_nonnull (
      get_note (fixture, "“https://example.org/a.png” is not on this machine, and Keepsake fetches "
                         "nothing from the network. Save it as a file first, then attach that."));
  g_object_unref (page);
}

/* An address that is dropped as text is inserted, with a word that nothing is fetched; ordinary
 * text comes without it; nothing can be dropped into no chat. */
static void
test_drop_text (Fixture *fixture, gconstpointer data)
{
  GtkWidget *page = g_object_ref_sink (gtk_box_new (GTK_ORIENTATION_VERTICAL, 0));
  g_auto (GValue) value = G_VALUE_INIT;

  ks_composer_add_drop_target (fixture->composer, page);
  g_value_init (&value, G_TYPE_STRING);
  g_value_set_static_string (&value, "see http://example.org");
  g_assert_true (drop (page, &value));
  assert_text (fixture, "see http://example.org");
  g_assert_false (ks_intake_is_address ("see http://example.org"));

  ks_composer_set_text (fixture->composer, "");
  g_value_set_static_string (&value, "http://example.org/\n");
  g_assert_true (drop (page, &value));
  assert_text (fixture, "http://example.org/\n");
  g_assert_nonnull (get_note (
      fixture, "Only the address was inserted: Keepsake fetches nothing from the network. To ask "
               "about what is there, save it as a file and attach that."));

  ks_composer_set_chat (fixture->composer, NULL);
  g_assert_false (drop (page, &value));
  ks_composer_set_chat (fixture->composer, fixture->chat);
  g_object_unref (page);
}

/* The composer grows with its text up to some lines, then scrolls. */
static void
test_growth (Fixture *fixture, gconstpointer data)
{
  GtkWidget *scroller = gtk_widget_get_ancestor (fixture->view, GTK_TYPE_SCROLLED_WINDOW);
  int heights[3] = {0};
  static const char *const texts[] = {"a", "a\nb\nc\nd",
                                      "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\nn"};

  gtk_widget_set_valign (GTK_WIDGET (fixture->composer), GTK_ALIGN_END);
  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++) {
    ks_composer_set_text (fixture->composer, texts[i]);
    ui_test_settle (fixture->view);
    ui_test_settle (fixture->view);
    heights[i] = gtk_widget_get_height (scroller);
  }
  g_assert_cmpint (heights[1], >, 2 * heights[0]);
  g_assert_cmpint (heights[2], >, heights[1]);
  g_assert_cmpint (heights[2], <, 3 * heights[1]); /* 14 lines would be */
  g_assert_cmpint (gtk_widget_get_height (fixture->view), >=, heights[2]);
}

int
main (int argc, char **argv)
{
  ui_test_init (&argc, &argv);
#define ADD(name, function)                                                                        \
  g_test_add ("/composer/" name, Fixture, NULL, set_up, function, tear_down)
  ADD ("enter", test_enter);
  ADD ("refused", test_refused);
  ADD ("failed", test_failed);
  ADD ("send-button", test_send_button);
  ADD ("left-out", test_left_out);
  ADD ("unlocked", test_unlocked);
  ADD ("click", test_click);
  ADD ("busy", test_busy);
  ADD ("closed", test_closed);
  ADD ("accessible", test_accessible);
  ADD ("paste-order", test_paste_order);
  ADD ("paste-picture", test_paste_picture);
  ADD ("large-paste", test_large_paste);
  ADD ("drop-files", test_drop_files);
  ADD ("drop-text", test_drop_text);
  ADD ("growth", test_growth);
  return g_test_run ();
}
