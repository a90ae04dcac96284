/* test-capture-buttons.c - buttons for the screen and the camera, over both played by the test. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/fake-capture.h"
#include "tests/ui/fake-chat.h"
#include "tests/ui/ui-test.h"
#include "ui/ks-capture-buttons.h"

typedef struct {
  KsCapture *capture;
  KsChat *chat;
  GObject *listener;
  KsCaptureButtons *buttons;
  GtkWindow *window;
} Fixture;

static void
notice_cb (GObject *object, KsChat *chat, const char *notice)
{
  g_object_set_data_full (object, "notice", g_strdup (notice), g_free);
}

static gboolean
is_idle (gpointer unused)
{
  return !g_main_context_pending (NULL);
}

static void
set_up (Fixture *f, gconstpointer data)
{
  f->capture = ks_capture_new ();
  f->chat = fake_chat_new ();
  f->listener = g_object_new (G_TYPE_OBJECT, NULL);
  f->buttons = g_object_new (KS_TYPE_CAPTURE_BUTTONS, NULL);
  ks_capture_buttons_set_capture (f->buttons, f->capture);
  ks_capture_buttons_set_chat (f->buttons, f->chat, notice_cb, f->listener);
  f->window = ui_test_present (GTK_WIDGET (f->buttons), 200, 60);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  ui_test_close (f->window);
  g_assert_finalize_object (f->listener);
  g_assert_finalize_object (f->chat);
  g_assert_finalize_object (f->capture);
}

static GtkWidget *
find_button (GtkWidget *root, const char *icon_name)
{
  GtkWidget *found = NULL;

  if (GTK_IS_BUTTON (root) &&
      g_strcmp0 (gtk_button_get_icon_name (GTK_BUTTON (root)), icon_name) == 0)
    return root;
  for (GtkWidget *child = gtk_widget_get_first_child (root); child != NULL && found == NULL;
       child = gtk_widget_get_next_sibling (child))
    found = find_button (child, icon_name);
  return found;
}

static GtkWidget *
find_screen (Fixture *f)
{
  return find_button (GTK_WIDGET (f->buttons), "video-display-symbolic");
}

static GtkWidget *
find_camera (Fixture *f)
{
  return find_button (GTK_WIDGET (f->buttons), "camera-photo-symbolic");
}

/* Nothing is there until a source is found, and it goes when the source does. */
static void
test_hidden (Fixture *f, gconstpointer data)
{
  g_assert_false (gtk_widget_get_visible (GTK_WIDGET (f->buttons)));
  fake_capture_set (f->capture, KS_CAPTURE_CAMERA, TRUE);
  g_assert_true (gtk_widget_get_visible (GTK_WIDGET (f->buttons)));
  g_assert_true (gtk_widget_get_mapped (find_camera (f)));
  g_assert_false (gtk_widget_get_visible (find_screen (f)));
  gtk_test_accessible_assert_property (find_camera (f), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                       "Attach a Camera Picture");
  fake_capture_set (f->capture, KS_CAPTURE_SCREEN, TRUE);
  fake_capture_set (f->capture, KS_CAPTURE_CAMERA, FALSE);
  g_assert_true (gtk_widget_get_mapped (find_screen (f)));
  g_assert_false (gtk_widget_get_visible (find_camera (f)));
  ks_capture_buttons_set_capture (f->buttons, NULL);
  g_assert_false (gtk_widget_get_visible (GTK_WIDGET (f->buttons)));
}

/* A screenshot is attached as the file it is; one picture is taken at a time. */
static void
test_screen (Fixture *f, gconstpointer data)
{
  g_autoptr (GFile) file = g_file_new_for_path ("/pictures/Screenshot.png");

  fake_capture_set (f->capture, KS_CAPTURE_SCREEN, TRUE);
  fake_capture_set (f->capture, KS_CAPTURE_CAMERA, TRUE);
  g_signal_emit_by_name (find_screen (f), "clicked");
  g_assert_cmpint (fake_capture_get_asked (f->capture), ==, KS_CAPTURE_SCREEN);
  g_assert_false (gtk_widget_is_sensitive (find_camera (f)));
  g_signal_emit_by_name (find_camera (f), "clicked");
  g_assert_cmpint (fake_capture_get_asked (f->capture), ==, KS_CAPTURE_SCREEN);
  fake_capture_answer (f->capture, file, NULL, NULL);
  ui_test_wait (is_idle, NULL);
  g_assert_cmpstr (fake_chat_get_log (f->chat), ==, "file /pictures/Screenshot.png\n");
  g_assert_true (gtk_widget_is_sensitive (find_camera (f)));
}

static gboolean
has_log (gpointer chat)
{
  return fake_chat_get_log (chat)[0] != '\0';
}

/* A camera's pixels become a file in memory that the decoder reads like any other. */
static void
test_camera (Fixture *f, gconstpointer data)
{
  static guint8 pixels[4 * 8 * 6];
  g_autoptr (GBytes) bytes = g_bytes_new_static (pixels, sizeof pixels);
  g_autoptr (KsPixels) picture = ks_pixels_new (8, 6, bytes);

  fake_capture_set (f->capture, KS_CAPTURE_CAMERA, TRUE);
  g_signal_emit_by_name (find_camera (f), "clicked");
  fake_capture_answer (f->capture, NULL, picture, NULL);
  ui_test_wait (has_log, f->chat);
  g_assert_true (g_str_has_prefix (fake_chat_get_log (f->chat), "bytes Camera picture "));
  g_assert_cmpmem (g_bytes_get_data (fake_chat_get_bytes (f->chat), NULL), 8, "\x89PNG\r\n\x1a\n",
                   8);
}

/* A failure is told with its reason; that the user gave up is not. */
static void
test_failure (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = g_error_new_literal (G_IO_ERROR, G_IO_ERROR_BUSY, "in use");
  g_autoptr (GError) given_up = g_error_new_literal (G_IO_ERROR, G_IO_ERROR_CANCELLED, "no");

  fake_capture_set (f->capture, KS_CAPTURE_CAMERA, TRUE);
  g_signal_emit_by_name (find_camera (f), "clicked");
  fake_capture_answer (f->capture, NULL, NULL, given_up);
  ui_test_wait (is_idle, NULL);
  g_assert_null (g_object_get_data (f->listener, "notice"));
  g_signal_emit_by_name (find_camera (f), "clicked");
  fake_capture_answer (f->capture, NULL, NULL, error);
  ui_test_wait (is_idle, NULL);
  g_assert_true (
      g_str_has_prefix (g_object_get_data (f->listener, "notice"), "No picture was taken: "));
  g_assert_cmpstr (fake_chat_get_log (f->chat), ==, "");
}

/* Without a chat nothing is taken; a window that closes meanwhile is not touched. */
static void
test_no_chat (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) given_up = g_error_new_literal (G_IO_ERROR, G_IO_ERROR_CANCELLED, "no");
  GtkWidget *other = g_object_new (KS_TYPE_CAPTURE_BUTTONS, NULL);
  GtkWindow *window = ui_test_present (other, 200, 60);

  fake_capture_set (f->capture, KS_CAPTURE_SCREEN, TRUE);
  ks_capture_buttons_set_chat (f->buttons, NULL, NULL, NULL);
  g_assert_false (gtk_widget_is_sensitive (find_screen (f)));
  ks_capture_buttons_set_capture (KS_CAPTURE_BUTTONS (other), f->capture);
  ks_capture_buttons_set_chat (KS_CAPTURE_BUTTONS (other), f->chat, notice_cb, f->listener);
  g_signal_emit_by_name (find_button (other, "video-display-symbolic"), "clicked");
  g_assert_cmpint (fake_capture_get_asked (f->capture), ==, KS_CAPTURE_SCREEN);
  ui_test_close (window);
  fake_capture_answer (f->capture, NULL, NULL, given_up);
  ui_test_wait (is_idle, NULL);
}

int
main (int argc, char **argv)
{
  ui_test_init (&argc, &argv);
#define ADD(name, function)                                                                        \
  g_test_add ("/capture-buttons/" name, Fixture, NULL, set_up, function, tear_down)
  ADD ("hidden", test_hidden);
  ADD ("screen", test_screen);
  ADD ("camera", test_camera);
  ADD ("failure", test_failure);
  ADD ("no-chat", test_no_chat);
  return g_test_run ();
}
