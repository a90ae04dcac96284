/* test-attachment-strip.c - chips of pending attachments, over a chat that the test plays. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/fake-chat.h"
#include "tests/ui/ui-test.h"
#include "ui/ks-attachment-chip.h"
#include "ui/ks-attachment-strip.h"
#include "ui/ks-compat.h"
#include "ui/ks-reading-choice.h"

#include <string.h>

typedef struct {
  KsLibrary *library;
  KsChat *chat;
  KsAttachmentStrip *strip;
  GtkWindow *window;
} Fixture;

static void
set_up (Fixture *fixture, gconstpointer data)
{
  fixture->library = fake_library_new ();
  fixture->chat = fake_chat_new ();
  fixture->strip = ks_attachment_strip_new ();
  ks_attachment_strip_set_library (fixture->strip, fixture->library);
  ks_attachment_strip_set_chat (fixture->strip, fixture->chat);
  fixture->window = ui_test_present (GTK_WIDGET (fixture->strip), 360, 200);
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  ui_test_close (fixture->window);
  g_assert_finalize_object (fixture->chat);
  g_assert_finalize_object (fixture->library);
}

static GtkWidget *
find_chip (Fixture *fixture, const char *name)
{
  GtkWidget *label = ui_test_find_text (GTK_WIDGET (fixture->strip), name);

  return label == NULL ? NULL : gtk_widget_get_ancestor (label, KS_TYPE_ATTACHMENT_CHIP);
}

static guint
count_chips (GtkWidget *root)
{
  guint n = KS_IS_ATTACHMENT_CHIP (root) ? 1 : 0;

  for (GtkWidget *child = gtk_widget_get_first_child (root); child != NULL;
       child = gtk_widget_get_next_sibling (child))
    n += count_chips (child);
  return n;
}

/* What a chip says of itself below its name is seen and read aloud alike. */
static void
assert_detail (GtkWidget *chip, const char *name, const char *detail)
{
  gtk_test_accessible_assert_role (chip, GTK_ACCESSIBLE_ROLE_LIST_ITEM);
  gtk_test_accessible_assert_property (chip, GTK_ACCESSIBLE_PROPERTY_LABEL, name);
  gtk_test_accessible_assert_property (chip, GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, detail);
  if (detail[0] != '\0')
    g_assert_true (gtk_widget_get_visible (ui_test_find_text (chip, detail)));
}

static GtkWidget *
find_button (GtkWidget *root, const char *tooltip)
{
  GtkWidget *found = NULL;

  if (GTK_IS_BUTTON (root) && g_strcmp0 (gtk_widget_get_tooltip_text (root), tooltip) == 0)
    return root;
  for (GtkWidget *child = gtk_widget_get_first_child (root); child != NULL && found == NULL;
       child = gtk_widget_get_next_sibling (child))
    found = find_button (child, tooltip);
  return found;
}

/* Every state of an attachment has words, and the parts that belong to it. */
static void
test_states (Fixture *fixture, gconstpointer data)
{
  KsPendingAttachment *attachment = NULL;
  GtkWidget *chip = NULL, *progress = NULL, *password = NULL;

  g_assert_false (gtk_widget_get_visible (GTK_WIDGET (fixture->strip)));
  attachment = fake_chat_add (fixture->chat, "report.pdf", KS_PENDING_LOADING);
  g_assert_true (gtk_widget_get_visible (GTK_WIDGET (fixture->strip)));
  chip = find_chip (fixture, "report.pdf");
  progress = ui_test_find (chip, GTK_TYPE_PROGRESS_BAR);
  password = ui_test_find (chip, GTK_TYPE_PASSWORD_ENTRY);
  assert_detail (chip, "report.pdf", "Reading…");
  g_assert_false (gtk_widget_get_visible (progress));
  fake_pending_set_progress (attachment, 0.5);
  g_assert_true (gtk_widget_get_visible (progress));
  g_assert_cmpfloat (gtk_progress_bar_get_fraction (GTK_PROGRESS_BAR (progress)), ==, 0.5);
  fake_pending_set_facts (attachment, KS_ATTACHMENT_PDF, 12, 0, NULL);
  assert_detail (chip, "report.pdf", "Reading 12 pages…");
  g_assert_false (gtk_widget_get_mapped (password));

  fake_pending_set_state (attachment, KS_PENDING_PASSWORD, NULL);
  ui_test_settle (chip);
  assert_detail (chip, "report.pdf", "Locked with a password");
  g_assert_true (gtk_widget_get_mapped (password));
  g_assert_false (gtk_widget_get_visible (progress));

  fake_pending_set_state (attachment, KS_PENDING_FAILED, "The file is damaged.");
  assert_detail (chip, "report.pdf", "The file is damaged.");
  g_assert_true (gtk_widget_has_css_class (chip, "failed"));

  fake_pending_set_facts (attachment, KS_ATTACHMENT_PDF, 12, 308, NULL);
  fake_pending_set_state (attachment, KS_PENDING_READY, NULL);
  assert_detail (chip, "report.pdf", "12 pages · 308 tokens");
  g_assert_false (gtk_widget_has_css_class (chip, "failed"));
  fake_pending_set_facts (attachment, KS_ATTACHMENT_TEXT, 0, 1, "The text ends early.");
  assert_detail (chip, "report.pdf", "1 token\nThe text ends early.");
}

/* The cost is compared with what memory keeps, and compared again when the target moves. */
static void
test_cost (Fixture *fixture, gconstpointer data)
{
  KsPendingAttachment *attachment = fake_chat_add (fixture->chat, "a.txt", KS_PENDING_READY);
  GtkWidget *chip = find_chip (fixture, "a.txt");

  fake_pending_set_facts (attachment, KS_ATTACHMENT_TEXT, 0, 900, NULL);
  assert_detail (chip, "a.txt", "900 tokens");
  fake_library_set_n_kept (fixture->library, 899);
  assert_detail (chip, "a.txt",
                 "900 tokens, more than memory keeps: the rest will be read and let go");
  fake_library_set_n_kept (fixture->library, 900);
  assert_detail (chip, "a.txt", "900 tokens");
}

/* A picture is shown small, and says whether the model sees it. */
static void
test_picture (Fixture *fixture, gconstpointer data)
{
  KsPendingAttachment *attachment = fake_chat_add (fixture->chat, "a.png", KS_PENDING_READY);
  GtkWidget *chip = find_chip (fixture, "a.png");
  GtkImage *image = GTK_IMAGE (ui_test_find (chip, GTK_TYPE_IMAGE));

  fake_pending_set_facts (attachment, KS_ATTACHMENT_IMAGE, 0, 0, NULL);
  fake_pending_set_state (attachment, KS_PENDING_READY, NULL);
  g_assert_cmpint (gtk_image_get_storage_type (image), ==, GTK_IMAGE_PAINTABLE);
  assert_detail (chip, "a.png", "Not seen: this model cannot see pictures");
  fake_library_set_model (fixture->library, KS_MODEL_READY, NULL, TRUE);
  assert_detail (chip, "a.png", "Not seen by the model");
  fake_pending_set_facts (attachment, KS_ATTACHMENT_IMAGE, 0, 256, NULL);
  fake_pending_set_n_pictures (attachment, 1);
  assert_detail (chip, "a.png", "256 tokens\nSeen by the model");
  g_assert_true (gtk_widget_get_visible (ui_test_find (chip, GTK_TYPE_MENU_BUTTON)));
  fake_library_set_model (fixture->library, KS_MODEL_LOADING, NULL, FALSE);
  assert_detail (chip, "a.png", "256 tokens"); /* nobody knows what the next one can */
}

/* Before it is sent a picture says that it is large for the model, and where that is changed. */
static void
test_large (Fixture *fixture, gconstpointer data)
{
  KsPendingAttachment *attachment = fake_chat_add (fixture->chat, "a.jpg", KS_PENDING_READY);
  GtkWidget *chip = find_chip (fixture, "a.jpg");

  fake_library_set_model (fixture->library, KS_MODEL_READY, NULL, TRUE);
  fake_pending_set_facts (attachment, KS_ATTACHMENT_IMAGE, 0, 16224, NULL);
  fake_pending_set_n_pictures (attachment, 1);
  fake_pending_set_large (attachment, 4096, TRUE);
  assert_detail (chip, "a.jpg",
                 "16,224 tokens\nMore than the 4,096 tokens that this model was trained for\n"
                 "A smaller size can be set in Preferences, Pictures\nSeen by the model");
  fake_pending_set_large (attachment, 32000, FALSE);
  assert_detail (chip, "a.jpg",
                 "16,224 tokens\nMore than half of the 32,000 tokens that this model was trained "
                 "for\nSeen by the model");
  fake_pending_set_large (attachment, 0, TRUE);
  assert_detail (chip, "a.jpg", "16,224 tokens\nSeen by the model");
}

/* In the strip's window and in dialogs over it. */
static GtkWidget *
find_anywhere (const char *text)
{
  GListModel *windows = gtk_window_get_toplevels ();
  GtkWidget *found = NULL;

  for (guint i = 0; i < g_list_model_get_n_items (windows) && found == NULL; i++) {
    g_autoptr (GtkWidget) window = g_list_model_get_item (windows, i);

    found = ui_test_find_text (window, text);
  }
  return found;
}

static gboolean
has_reading (gpointer chat)
{
  return strstr (fake_chat_get_log (chat), "reading a.mp4 ") != NULL;
}

static gboolean
has_frames (gpointer text)
{
  return find_anywhere (text) != NULL;
}

/* It is a window of its own before libadwaita 1.5. */
static void
close_dialog_of (Fixture *fixture, GtkWidget *widget)
{
  GtkWidget *dialog = gtk_widget_get_ancestor (widget, g_type_from_name ("AdwDialog"));

  ks_dialog_close (dialog != NULL ? dialog : GTK_WIDGET (gtk_widget_get_root (widget)));
  ui_test_settle (GTK_WIDGET (fixture->window));
}

/* The frames that will be sent are shown with their cost; another number is told to the chat. */
static void
test_frames (Fixture *fixture, GtkWidget *button)
{
  static char before[] = "16 frames · 3,072 tokens", after[] = "5 frames · 3,072 tokens";
  GtkWidget *spin = NULL;

  g_assert_true (gtk_widget_get_visible (button));
  g_signal_emit_by_name (button, "clicked");
  ui_test_wait (has_frames, before);
  g_assert_nonnull (find_anywhere ("The sound is not heard: the model sees these frames only."));
  spin = gtk_widget_get_next_sibling (find_anywhere ("Frames"));
  gtk_spin_button_set_value (GTK_SPIN_BUTTON (spin), 5);
  ui_test_wait (has_reading, fixture->chat);
  ui_test_wait (has_frames, after);
  ui_test_save (GTK_WIDGET (gtk_widget_get_root (spin)), "video-dialog");
  close_dialog_of (fixture, spin);
}

/* Of a video the frames are counted, and nobody thinks that its sound, if it has any, is heard. */
static void
test_video (Fixture *fixture, gconstpointer data)
{
  KsPendingAttachment *attachment = fake_chat_add (fixture->chat, "a.mp4", KS_PENDING_READY);
  GtkWidget *chip = find_chip (fixture, "a.mp4");

  fake_library_set_model (fixture->library, KS_MODEL_READY, NULL, TRUE);
  fake_pending_set_facts (attachment, KS_ATTACHMENT_VIDEO, 0, 3072, NULL);
  fake_pending_set_n_pictures (attachment, 12);
  assert_detail (chip, "a.mp4", "3,072 tokens\nSeen: 12 frames");
  fake_pending_set_has_sound (attachment, TRUE);
  fake_pending_set_n_pictures (attachment, 1);
  assert_detail (chip, "a.mp4", "3,072 tokens\nSeen: 1 frame; the sound is not heard");
  fake_pending_set_n_pictures (attachment, 12);
  assert_detail (chip, "a.mp4", "3,072 tokens\nSeen: 12 frames; the sound is not heard");
  ui_test_save (GTK_WIDGET (fixture->window), "strip-video");
  test_frames (fixture, find_button (chip, "How a.mp4 is read"));
}

/* Frames are counted as frames, also for a model that takes them two by two, which is said in the
 * same words in the chip and beside the frames. */
static void
test_pairs (Fixture *fixture, gconstpointer data)
{
  static char beside[] = "5 frames, in pairs · 3,072 tokens";
  KsPendingAttachment *attachment = fake_chat_add (fixture->chat, "a.mp4", KS_PENDING_READY);
  GtkWidget *chip = find_chip (fixture, "a.mp4");

  fake_library_set_model (fixture->library, KS_MODEL_READY, NULL, TRUE);
  fake_pending_set_facts (attachment, KS_ATTACHMENT_VIDEO, 0, 3072, NULL);
  fake_pending_set_reading (attachment, "frames=count:5 taken=5");
  fake_pending_set_n_pictures (attachment, 3);
  assert_detail (chip, "a.mp4", "3,072 tokens\nSeen: 5 frames, in pairs");
  g_signal_emit_by_name (find_button (chip, "How a.mp4 is read"), "clicked");
  ui_test_wait (has_frames, beside);
  close_dialog_of (fixture, find_anywhere (beside));
}

/* Pages are chosen in the chip; what is chosen is told to the chat, and what it becomes is shown.
 */
static void
test_pages (Fixture *fixture, gconstpointer data)
{
  KsPendingAttachment *attachment = fake_chat_add (fixture->chat, "a.pdf", KS_PENDING_READY);
  GtkWidget *chip = find_chip (fixture, "a.pdf"), *button = NULL, *choice = NULL, *both = NULL;

  fake_library_set_model (fixture->library, KS_MODEL_READY, NULL, TRUE);
  fake_pending_set_facts (attachment, KS_ATTACHMENT_PDF, 3, 90, NULL);
  fake_pending_set_state (attachment, KS_PENDING_READY, NULL);
  button = ui_test_find (chip, GTK_TYPE_MENU_BUTTON);
  g_assert_true (gtk_widget_get_visible (button));
  gtk_test_accessible_assert_property (button, GTK_ACCESSIBLE_PROPERTY_LABEL, "How a.pdf is read");
  gtk_menu_button_popup (GTK_MENU_BUTTON (button));
  ui_test_settle (chip);
  choice = ui_test_find (button, KS_TYPE_READING_CHOICE);
  g_assert_nonnull (choice);
  both = ui_test_find_text (choice, "Both");
  g_assert_true (
      gtk_toggle_button_get_active (GTK_TOGGLE_BUTTON (ui_test_find_text (choice, "Text"))));
  gtk_toggle_button_set_active (GTK_TOGGLE_BUTTON (both), TRUE);
  g_assert_cmpstr (fake_chat_get_log (fixture->chat), ==, "reading a.pdf pages=bbb\n");
  g_assert_true (gtk_toggle_button_get_active (GTK_TOGGLE_BUTTON (both)));
  fake_pending_set_n_pictures (attachment, 3);
  assert_detail (chip, "a.pdf", "3 pages · 90 tokens\n3 pictures in it are seen");
  ui_test_save (GTK_WIDGET (fixture->window), "strip-pages");
  ui_test_save (choice, "reading-choice");
  gtk_menu_button_popdown (GTK_MENU_BUTTON (button));
}

/* A password goes to its own file and does not stay in the entry. */
static void
test_password (Fixture *fixture, gconstpointer data)
{
  GtkWidget *chip = NULL, *entry = NULL;

  fake_chat_add (fixture->chat, "a.pdf", KS_PENDING_READY);
  fake_chat_add (fixture->chat, "b.pdf", KS_PENDING_PASSWORD);
  chip = find_chip (fixture, "b.pdf");
  entry = ui_test_find (chip, GTK_TYPE_PASSWORD_ENTRY);
  gtk_test_accessible_assert_property (entry, GTK_ACCESSIBLE_PROPERTY_LABEL, "Password of b.pdf");
  g_signal_emit_by_name (entry, "activate");
  g_assert_cmpstr (fake_chat_get_log (fixture->chat), ==, "");
  gtk_editable_set_text (GTK_EDITABLE (entry), "secret");
  g_signal_emit_by_name (entry, "activate");
  g_assert_cmpstr (fake_chat_get_log (fixture->chat), ==, "unlock b.pdf secret\n");
  g_assert_cmpstr (gtk_editable_get_text (GTK_EDITABLE (entry)), ==, "");
}

/* The button of a chip removes that one; the keyboard goes on to the next chip. */
static void
test_remove (Fixture *fixture, gconstpointer data)
{
  GtkWidget *button = NULL, *focus = NULL;

  fake_chat_add (fixture->chat, "a.txt", KS_PENDING_READY);
  fake_chat_add (fixture->chat, "b.txt", KS_PENDING_READY);
  fake_chat_add (fixture->chat, "c.txt", KS_PENDING_READY);
  ui_test_settle (GTK_WIDGET (fixture->strip));
  button = find_button (GTK_WIDGET (fixture->strip), "Remove b.txt");
  gtk_test_accessible_assert_property (button, GTK_ACCESSIBLE_PROPERTY_LABEL, "Remove b.txt");
  gtk_widget_grab_focus (button);
  g_signal_emit_by_name (button, "clicked");
  g_assert_cmpstr (fake_chat_get_log (fixture->chat), ==, "remove b.txt\n");
  g_assert_cmpuint (count_chips (GTK_WIDGET (fixture->strip)), ==, 2);
  g_assert_null (find_chip (fixture, "b.txt"));
  focus = gtk_window_get_focus (fixture->window);
  g_assert_nonnull (focus);
  g_assert_true (gtk_widget_is_ancestor (focus, find_chip (fixture, "c.txt")));
}

/* Another chat brings its own chips; none brings none; changes of the first chat do not matter. */
static void
test_chats (Fixture *fixture, gconstpointer data)
{
  KsChat *other = fake_chat_new ();

  fake_chat_add (fixture->chat, "a.txt", KS_PENDING_READY);
  fake_chat_add (other, "b.txt", KS_PENDING_READY);
  ks_attachment_strip_set_chat (fixture->strip, other);
  fake_chat_add (fixture->chat, "c.txt", KS_PENDING_READY);
  g_assert_cmpuint (count_chips (GTK_WIDGET (fixture->strip)), ==, 1);
  g_assert_nonnull (find_chip (fixture, "b.txt"));
  ks_attachment_strip_set_chat (fixture->strip, NULL);
  g_assert_cmpuint (count_chips (GTK_WIDGET (fixture->strip)), ==, 0);
  g_assert_false (gtk_widget_get_visible (GTK_WIDGET (fixture->strip)));
  g_assert_finalize_object (other);
}

static gboolean
is_last_seen (gpointer strip)
{
  GtkWidget *row = gtk_widget_get_parent (ui_test_find (strip, KS_TYPE_ATTACHMENT_CHIP));
  graphene_rect_t bounds;

  return gtk_widget_compute_bounds (gtk_widget_get_last_child (row), strip, &bounds) &&
         bounds.origin.x > 0 &&
         bounds.origin.x + bounds.size.width <= (float)gtk_widget_get_width (strip) + 1;
}

/* Many files with long names never make a narrow window wider: the row scrolls, and the newest
 * comes into view. */
static void
test_narrow (Fixture *fixture, gconstpointer data)
{
  GtkScrolledWindow *scroller =
      GTK_SCROLLED_WINDOW (ui_test_find (GTK_WIDGET (fixture->strip), GTK_TYPE_SCROLLED_WINDOW));
  GtkAdjustment *adjustment = gtk_scrolled_window_get_hadjustment (scroller);
  int minimum = 0;

  for (int i = 0; i < 8; i++) {
    g_autofree char *name = g_strdup_printf ("a rather long name of a file %d.pdf", i);

    fake_chat_add (fixture->chat, name, KS_PENDING_LOADING);
  }
  ui_test_settle (GTK_WIDGET (fixture->strip));
  gtk_widget_measure (GTK_WIDGET (fixture->strip), GTK_ORIENTATION_HORIZONTAL, -1, &minimum, NULL,
                      NULL, NULL);
  g_assert_cmpint (minimum, <, 340);
  g_assert_cmpfloat (gtk_adjustment_get_upper (adjustment), >, 1000);
  ui_test_wait (is_last_seen, fixture->strip);
}

/* The wheel of an ordinary mouse moves the row, and many files are counted. */
static void
test_many (Fixture *fixture, gconstpointer data)
{
  GtkScrolledWindow *scroller =
      GTK_SCROLLED_WINDOW (ui_test_find (GTK_WIDGET (fixture->strip), GTK_TYPE_SCROLLED_WINDOW));
  GtkAdjustment *adjustment = gtk_scrolled_window_get_hadjustment (scroller);
  g_autoptr (GListModel) controllers = gtk_widget_observe_controllers (GTK_WIDGET (fixture->strip));
  gboolean is_taken = FALSE;

  for (int i = 0; i < 3; i++)
    fake_chat_add (fixture->chat, "a.txt", KS_PENDING_READY);
  g_assert_false (
      gtk_widget_get_visible (ui_test_find_text (GTK_WIDGET (fixture->strip), "3 files")));
  for (int i = 3; i < 34; i++)
    fake_chat_add (fixture->chat, "a.txt", KS_PENDING_READY);
  g_assert_true (
      gtk_widget_get_visible (ui_test_find_text (GTK_WIDGET (fixture->strip), "34 files")));
  ui_test_wait (is_last_seen, fixture->strip);
  gtk_adjustment_set_value (adjustment, 0);
  for (guint i = 0; i < g_list_model_get_n_items (controllers); i++) {
    g_autoptr (GObject) controller = g_list_model_get_item (controllers, i);

    if (GTK_IS_EVENT_CONTROLLER_SCROLL (controller))
      g_signal_emit_by_name (controller, "scroll", 0.0, 1.0, &is_taken);
  }
  g_assert_true (is_taken);
  g_assert_cmpfloat (gtk_adjustment_get_value (adjustment), >, 20);
  ui_test_save (GTK_WIDGET (fixture->window), "strip-many");
}

int
main (int argc, char **argv)
{
  ui_test_init (&argc, &argv);
#define ADD(name, function)                                                                        \
  g_test_add ("/attachment-strip/" name, Fixture, NULL, set_up, function, tear_down)
  ADD ("states", test_states);
  ADD ("cost", test_cost);
  ADD ("picture", test_picture);
  ADD ("large", test_large);
  ADD ("video", test_video);
  ADD ("pairs", test_pairs);
  ADD ("pages", test_pages);
  ADD ("password", test_password);
  ADD ("remove", test_remove);
  ADD ("chats", test_chats);
  ADD ("narrow", test_narrow);
  ADD ("many", test_many);
  return g_test_run ();
}
