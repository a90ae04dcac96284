/* test-image-viewer.c - pages and zoom of the viewer, over a library that the test plays. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-error.h"
#include "media/ks-media.h"
#include "tests/ui/fake-chat.h"
#include "tests/ui/ui-test.h"
#include "ui/ks-image-viewer.h"
#include "ui/ks-page-cache.h"
#include "ui/ks-shortcuts.h"

#define N_PAGE 12

typedef struct {
  KsLibrary *library;
  KsAttachment *attachment;
  KsImageViewer *viewer;
  GtkWindow *window;
  GtkStack *stack;
  GtkPicture *picture;
} Fixture;

static gboolean
has_asked (gpointer library)
{
  return fake_library_get_n_render (library) > 0;
}

static void
set_up (Fixture *fixture, gconstpointer is_image)
{
  fixture->library = fake_library_new ();
  fixture->attachment =
      is_image != NULL
          ? ks_attachment_new (KS_ATTACHMENT_IMAGE, "cat.png", "00", 1, NULL, 0, 300, 200)
          : ks_attachment_new (KS_ATTACHMENT_PDF, "report.pdf", "00", 1, NULL, N_PAGE, 0, 0);
  fixture->viewer = ks_image_viewer_new (fixture->library, fixture->attachment);
  fixture->window = ui_test_present (GTK_WIDGET (fixture->viewer), 600, 500);
  fixture->stack = GTK_STACK (ui_test_find (GTK_WIDGET (fixture->viewer), GTK_TYPE_STACK));
  fixture->picture = GTK_PICTURE (ui_test_find (GTK_WIDGET (fixture->viewer), GTK_TYPE_PICTURE));
  ui_test_wait (has_asked, fixture->library);
}

static gboolean
is_idle (gpointer library)
{
  return !g_main_context_pending (NULL);
}

static void
answer (Fixture *fixture, guint width, guint height)
{
  fake_library_answer (fixture->library, width, height);
  ui_test_wait (is_idle, NULL);
}

static void
answer_error (Fixture *fixture, GQuark domain, int code, const char *text)
{
  g_autoptr (GError) error = g_error_new_literal (domain, code, text);

  fake_library_answer_error (fixture->library, error);
  ui_test_wait (is_idle, NULL);
}

static void
tear_down (Fixture *fixture, gconstpointer data)
{
  ui_test_close (fixture->window);
  fake_library_give_up (fixture->library);
  ui_test_wait (is_idle, NULL);
  g_assert_finalize_object (fixture->attachment);
  g_assert_finalize_object (fixture->library);
}

static void
assert_state (Fixture *fixture, const char *name)
{
  g_assert_cmpstr (gtk_stack_get_visible_child_name (fixture->stack), ==, name);
}

static void
act (Fixture *fixture, const char *action)
{
  gtk_widget_activate_action (GTK_WIDGET (fixture->viewer), action, NULL);
}

static GtkWidget *
find_entry (Fixture *fixture)
{
  return ui_test_find (GTK_WIDGET (fixture->viewer), GTK_TYPE_ENTRY);
}

static void
enter_page (Fixture *fixture, const char *text)
{
  gtk_editable_set_text (GTK_EDITABLE (find_entry (fixture)), text);
  g_signal_emit_by_name (find_entry (fixture), "activate");
}

static GtkWidget *
find_action (GtkWidget *root, const char *action)
{
  GtkWidget *found = NULL;

  if (GTK_IS_BUTTON (root) &&
      g_strcmp0 (gtk_actionable_get_action_name (GTK_ACTIONABLE (root)), action) == 0)
    return root;
  for (GtkWidget *child = gtk_widget_get_first_child (root); child != NULL && found == NULL;
       child = gtk_widget_get_next_sibling (child))
    found = find_action (child, action);
  return found;
}

static gboolean
can_act (Fixture *fixture, const char *action)
{
  return gtk_widget_get_sensitive (find_action (GTK_WIDGET (fixture->viewer), action));
}

/* A page is asked for at the size there is room for, shown when it comes, and named. */
static void
test_shows (Fixture *fixture, gconstpointer data)
{
  assert_state (fixture, "loading");
  g_assert_cmpuint (fake_library_get_page (fixture->library), ==, 0);
  g_assert_cmpuint (fake_library_get_side (fixture->library), >=, 512);
  g_assert_cmpuint (fake_library_get_side (fixture->library), <=, 1024);
  answer (fixture, 70, 100);
  assert_state (fixture, "picture");
  g_assert_cmpint (
      gdk_paintable_get_intrinsic_height (gtk_picture_get_paintable (fixture->picture)), ==, 100);
  gtk_test_accessible_assert_property (fixture->picture, GTK_ACCESSIBLE_PROPERTY_LABEL,
                                       "report.pdf, page 1 of 12");
}

/* Buttons, keys and the entry stay between the first page and the last. */
static void
test_bounds (Fixture *fixture, gconstpointer data)
{
  answer (fixture, 70, 100);
  g_assert_false (can_act (fixture, "viewer.previous"));
  act (fixture, "viewer.previous");
  g_assert_cmpuint (ks_image_viewer_get_page (fixture->viewer), ==, 0);
  act (fixture, "viewer.next");
  g_assert_cmpuint (ks_image_viewer_get_page (fixture->viewer), ==, 1);
  g_assert_true (can_act (fixture, "viewer.previous"));
  assert_state (fixture, "loading");

  enter_page (fixture, " 99 ");
  g_assert_cmpuint (ks_image_viewer_get_page (fixture->viewer), ==, N_PAGE - 1);
  g_assert_cmpstr (gtk_editable_get_text (GTK_EDITABLE (find_entry (fixture))), ==, "12");
  g_assert_false (can_act (fixture, "viewer.next"));
  act (fixture, "viewer.next");
  g_assert_cmpuint (ks_image_viewer_get_page (fixture->viewer), ==, N_PAGE - 1);
  enter_page (fixture, "0");
  g_assert_cmpuint (ks_image_viewer_get_page (fixture->viewer), ==, 0);
  enter_page (fixture, "-3");
  enter_page (fixture, "four");
  g_assert_cmpuint (ks_image_viewer_get_page (fixture->viewer), ==, 0);
  g_assert_cmpstr (gtk_editable_get_text (GTK_EDITABLE (find_entry (fixture))), ==, "1");
}

/* Turning pages fast gives up what is no longer wanted; a late answer is never shown; pages that
 * are held are shown without asking. */
static void
test_fast (Fixture *fixture, gconstpointer data)
{
  guint n_render = 0;

  answer (fixture, 70, 100);
  act (fixture, "viewer.next");
  g_assert_cmpuint (fake_library_get_page (fixture->library), ==, 1);
  act (fixture, "viewer.previous");
  g_assert_true (fake_library_is_render_cancelled (fixture->library));
  assert_state (fixture, "picture");
  answer (fixture, 700, 1000);
  g_assert_cmpint (
      gdk_paintable_get_intrinsic_height (gtk_picture_get_paintable (fixture->picture)), ==, 100);

  act (fixture, "viewer.next");
  answer (fixture, 70, 101);
  n_render = fake_library_get_n_render (fixture->library);
  act (fixture, "viewer.previous");
  g_assert_cmpint (
      gdk_paintable_get_intrinsic_height (gtk_picture_get_paintable (fixture->picture)), ==, 100);
  g_assert_cmpuint (fake_library_get_n_render (fixture->library), ==, n_render);
}

/* Zoom has ends, asks for as many pixels as it shows, and goes back to fitting in. */
static void
test_zoom (Fixture *fixture, gconstpointer data)
{
  int width = 0, height = 0;

  g_assert_false (can_act (fixture, "viewer.zoom-in"));
  answer (fixture, 700, 1000);
  g_assert_false (can_act (fixture, "viewer.zoom-fit"));
  act (fixture, "viewer.zoom-full");
  g_assert_cmpfloat (ks_image_viewer_get_zoom (fixture->viewer), ==, 1);
  gtk_widget_get_size_request (GTK_WIDGET (fixture->picture), &width, &height);
  g_assert_cmpint (height, ==, 1123);
  g_assert_cmpint (width, ==, 786);
  g_assert_cmpuint (fake_library_get_side (fixture->library), ==, 1536);
  answer (fixture, 1075, 1536);
  for (int i = 0; i < 40; i++)
    act (fixture, "viewer.zoom-in");
  g_assert_cmpfloat (ks_image_viewer_get_zoom (fixture->viewer), ==, 8);
  g_assert_false (can_act (fixture, "viewer.zoom-in"));
  g_assert_cmpuint (fake_library_get_side (fixture->library), ==, 4096);
  for (int i = 0; i < 40; i++)
    act (fixture, "viewer.zoom-out");
  g_assert_cmpfloat (ks_image_viewer_get_zoom (fixture->viewer), ==, 0.1);
  g_assert_false (can_act (fixture, "viewer.zoom-out"));
  act (fixture, "viewer.zoom-fit");
  g_assert_cmpfloat (ks_image_viewer_get_zoom (fixture->viewer), ==, 0);
}

/* The action that the viewer takes on a key, NULL = none. */
static const char *
find_key (Fixture *fixture, const char *accel)
{
  g_autoptr (GtkShortcutTrigger) trigger = gtk_shortcut_trigger_parse_string (accel);
  g_autoptr (GListModel) controllers =
      gtk_widget_observe_controllers (GTK_WIDGET (fixture->viewer));

  for (guint i = 0; i < g_list_model_get_n_items (controllers); i++) {
    g_autoptr (GListModel) shortcuts = g_list_model_get_item (controllers, i);

    for (guint k = 0; G_IS_LIST_MODEL (shortcuts) && k < g_list_model_get_n_items (shortcuts);
         k++) {
      g_autoptr (GtkShortcut) shortcut = g_list_model_get_item (shortcuts, k);
      GtkShortcutAction *action = gtk_shortcut_get_action (shortcut);

      if (GTK_IS_NAMED_ACTION (action) &&
          gtk_shortcut_trigger_equal (gtk_shortcut_get_trigger (shortcut), trigger))
        return gtk_named_action_get_action_name (GTK_NAMED_ACTION (action));
    }
  }
  return NULL;
}

/* Everything that the viewer does on a key stands in the list of keys, with a key that does it. */
static void
test_keys (Fixture *fixture, gconstpointer data)
{
  static const char *const actions[] = {"viewer.zoom-in",  "viewer.zoom-out", "viewer.zoom-full",
                                        "viewer.zoom-fit", "viewer.previous", "viewer.next"};
  gsize n = 0, n_listed = 0;
  const KsShortcut *shortcuts = ks_shortcuts_get (&n);

  for (gsize i = 0; i < n; i++)
    if (g_strcmp0 (shortcuts[i].group, "Pictures and Pages") == 0) {
      g_assert_cmpuint (n_listed, <, G_N_ELEMENTS (actions));
      g_assert_cmpstr (find_key (fixture, shortcuts[i].accels[0]), ==, actions[n_listed++]);
    }
  g_assert_cmpuint (n_listed, ==, G_N_ELEMENTS (actions));
}

/* A picture has no pages, is never asked for larger than it is, and is not blown up to fit. */
static void
test_picture (Fixture *fixture, gconstpointer data)
{
  g_assert_cmpuint (fake_library_get_side (fixture->library), ==, 512);
  g_assert_false (gtk_widget_get_mapped (find_entry (fixture)));
  answer (fixture, 300, 200);
  ui_test_settle (GTK_WIDGET (fixture->viewer));
  g_assert_nonnull (ui_test_find_text (GTK_WIDGET (fixture->viewer), "100%"));
  g_assert_cmpint (gtk_picture_get_content_fit (fixture->picture), ==, GTK_CONTENT_FIT_SCALE_DOWN);
  gtk_test_accessible_assert_property (fixture->picture, GTK_ACCESSIBLE_PROPERTY_LABEL, "cat.png");
}

/* Encrypted: asks, says when a password was wrong, and keeps the right one for the other pages. */
static void
test_password (Fixture *fixture, gconstpointer data)
{
  GtkWidget *entry = ui_test_find (GTK_WIDGET (fixture->viewer), GTK_TYPE_PASSWORD_ENTRY);

  gtk_test_accessible_assert_property (entry, GTK_ACCESSIBLE_PROPERTY_LABEL,
                                       "Password of the document");
  answer_error (fixture, KS_MEDIA_ERROR, KS_MEDIA_ERROR_PASSWORD, "encrypted");
  assert_state (fixture, "password");
  g_assert_null (fake_library_get_password (fixture->library));
  gtk_editable_set_text (GTK_EDITABLE (entry), "wrong");
  g_signal_emit_by_name (entry, "activate");
  g_assert_cmpstr (fake_library_get_password (fixture->library), ==, "wrong");
  assert_state (fixture, "loading");
  answer_error (fixture, KS_MEDIA_ERROR, KS_MEDIA_ERROR_WRONG_PASSWORD, "wrong");
  assert_state (fixture, "password");
  g_assert_nonnull (ui_test_find_text (
      GTK_WIDGET (fixture->viewer), "That password does not open the document. Try another one."));
  gtk_editable_set_text (GTK_EDITABLE (entry), "right");
  g_signal_emit_by_name (entry, "activate");
  answer (fixture, 70, 100);
  assert_state (fixture, "picture");
  act (fixture, "viewer.next");
  g_assert_cmpstr (fake_library_get_password (fixture->library), ==, "right");
}

/* A page that cannot be decoded says why, as text and not as markup, and can be tried again. */
static void
test_error (Fixture *fixture, gconstpointer data)
{
  GtkWidget *retry = NULL;
  guint n_render = fake_library_get_n_render (fixture->library);

  answer_error (fixture, KS_APP_ERROR, KS_APP_ERROR_FAILED, "a <b>& c");
  assert_state (fixture, "error");
  retry = ui_test_find_text (GTK_WIDGET (fixture->viewer), "Try _Again");
  g_assert_nonnull (retry);
  g_signal_emit_by_name (retry, "clicked");
  g_assert_cmpuint (fake_library_get_n_render (fixture->library), ==, n_render + 1);
  answer (fixture, 70, 100);
  assert_state (fixture, "picture");
}

/* A text has nothing to draw: nobody is asked for pictures, nothing can be tried again. */
static void
test_text (void)
{
  g_autoptr (KsLibrary) library = fake_library_new ();
  g_autoptr (KsAttachment) attachment =
      ks_attachment_new (KS_ATTACHMENT_TEXT, "a & b.txt", "00", 1, NULL, 0, 0, 0);
  KsImageViewer *viewer = ks_image_viewer_new (library, attachment);
  GtkWindow *window = ui_test_present (GTK_WIDGET (viewer), 360, 400);

  g_assert_nonnull (ui_test_find_text (GTK_WIDGET (viewer), "a & b.txt"));
  g_assert_false (gtk_widget_get_mapped (ui_test_find_text (GTK_WIDGET (viewer), "Try _Again")));
  g_assert_cmpuint (fake_library_get_n_render (library), ==, 0);
  ui_test_close (window);
}

/* Closing in the middle of a page gives it up. */
static void
test_close (Fixture *fixture, gconstpointer data)
{
  gtk_widget_set_visible (GTK_WIDGET (fixture->window), FALSE);
  g_assert_true (fake_library_is_render_cancelled (fixture->library));
}

/* Few pages are held, fewer when they are large; the one that is shown is never dropped. */
static void
test_cache (void)
{
  KsPageCache cache = {0};
  g_autoptr (GBytes) bytes = g_bytes_new_take (g_malloc0 (4 * 4096 * 4096), 4 * 4096 * 4096);
  g_autoptr (GdkTexture) large =
      gdk_memory_texture_new (4096, 4096, GDK_MEMORY_R8G8B8A8, bytes, 4 * 4096);
  g_autoptr (GdkTexture) small = gdk_memory_texture_new (8, 8, GDK_MEMORY_R8G8B8A8, bytes, 32);

  for (guint page = 0; page < 5; page++)
    g_assert_cmpuint (ks_page_cache_add (&cache, page, 512, small)->page, ==, page);
  g_assert_null (ks_page_cache_find (&cache, 1));
  g_assert_cmpuint (ks_page_cache_find (&cache, 2)->side_px, ==, 512);
  ks_page_cache_add (&cache, 7, 512, small);
  g_assert_nonnull (ks_page_cache_find (&cache, 2)); /* it was looked at: 3 went instead */
  g_assert_null (ks_page_cache_find (&cache, 3));

  ks_page_cache_add (&cache, 2, 4096, large);
  g_assert_cmpuint (ks_page_cache_find (&cache, 2)->side_px, ==, 4096);
  ks_page_cache_add (&cache, 8, 4096, large);
  ks_page_cache_add (&cache, 9, 4096, large);
  g_assert_cmpuint (cache.entries.length, ==, 2);
  g_assert_nonnull (ks_page_cache_find (&cache, 9));
  ks_page_cache_clear (&cache);
}

int
main (int argc, char **argv)
{
  ui_test_init (&argc, &argv);
#define ADD(name, function)                                                                        \
  g_test_add ("/image-viewer/" name, Fixture, NULL, set_up, function, tear_down)
  ADD ("shows", test_shows);
  ADD ("bounds", test_bounds);
  ADD ("fast", test_fast);
  ADD ("zoom", test_zoom);
  ADD ("keys", test_keys);
  ADD ("password", test_password);
  ADD ("error", test_error);
  ADD ("close", test_close);
  g_test_add ("/image-viewer/picture", Fixture, "image", set_up, test_picture, tear_down);
  g_test_add_func ("/image-viewer/text", test_text);
  g_test_add_func ("/image-viewer/cache", test_cache);
  return g_test_run ();
}
