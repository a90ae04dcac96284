/* ui-test.c - see ui-test.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/ui-test.h"

#include "ui/ks-resource.h"

#define LONGEST_WAIT_US (20 * G_USEC_PER_SEC)

void
ui_test_init (int *argc, char ***argv)
{
  g_autoptr (GtkCssProvider) provider = NULL;

  g_test_init (argc, argv, NULL);
  adw_init ();
  g_object_set (gtk_settings_get_default (), "gtk-enable-animations", FALSE, NULL);
  provider = gtk_css_provider_new ();
  gtk_css_provider_load_from_resource (provider, KS_RESOURCE "style.css");
  gtk_style_context_add_provider_for_display (gdk_display_get_default (),
                                              GTK_STYLE_PROVIDER (provider),
                                              GTK_STYLE_PROVIDER_PRIORITY_APPLICATION);
}

static gboolean
is_mapped (gpointer widget)
{
  return gtk_widget_get_mapped (widget);
}

GtkWindow *
ui_test_present (GtkWidget *widget, int width, int height)
{
  GtkWindow *window = GTK_WINDOW (gtk_window_new ());

  gtk_window_set_default_size (window, width, height);
  gtk_window_set_child (window, widget);
  gtk_window_present (window);
  ui_test_wait (is_mapped, window);
  ui_test_settle (GTK_WIDGET (window));
  return window;
}

void
ui_test_close (GtkWindow *window)
{
  gtk_window_destroy (window);
  while (g_main_context_iteration (NULL, FALSE))
    continue;
}

static gboolean
tick_cb (gpointer data)
{
  return G_SOURCE_CONTINUE;
}

void
ui_test_wait (UiTestCondition condition, gpointer data)
{
  gint64 end_us = g_get_monotonic_time () + LONGEST_WAIT_US;
  guint tick = g_timeout_add (20, tick_cb, NULL); /* the loop wakes up to look again */

  while (!condition (data)) {
    g_assert_cmpint (g_get_monotonic_time (), <, end_us);
    g_main_context_iteration (NULL, TRUE);
  }
  g_source_remove (tick);
}

static gboolean
frame_cb (GtkWidget *widget, GdkFrameClock *clock, gpointer n_frame)
{
  ++*(guint *)n_frame;
  return G_SOURCE_CONTINUE;
}

static gboolean
has_two_frames (gpointer n_frame)
{
  return *(guint *)n_frame >= 2;
}

void
ui_test_settle (GtkWidget *widget)
{
  guint n_frame = 0;
  guint id = gtk_widget_add_tick_callback (widget, frame_cb, &n_frame, NULL);

  ui_test_wait (has_two_frames, &n_frame);
  gtk_widget_remove_tick_callback (widget, id);
  while (g_main_context_iteration (NULL, FALSE))
    continue;
}

void
ui_test_save (GtkWidget *widget, const char *name)
{
  const char *dir = g_getenv ("KS_SHOT_DIR");
  g_autofree char *file = g_strdup_printf ("%s.png", name), *path = NULL;
  g_autoptr (GdkPaintable) paintable = NULL;
  g_autoptr (GskRenderNode) node = NULL;
  g_autoptr (GdkTexture) texture = NULL;
  GtkSnapshot *snapshot = NULL;

  if (dir == NULL)
    return;
  ui_test_settle (widget);
  paintable = gtk_widget_paintable_new (widget);
  snapshot = gtk_snapshot_new ();
  gdk_paintable_snapshot (paintable, GDK_SNAPSHOT (snapshot), gtk_widget_get_width (widget),
                          gtk_widget_get_height (widget));
  node = gtk_snapshot_free_to_node (snapshot);
  path = g_build_filename (dir, file, NULL);
  texture = gsk_renderer_render_texture (gtk_native_get_renderer (gtk_widget_get_native (widget)),
                                         node, NULL);
  g_assert_true (gdk_texture_save_to_png (texture, path));
}

GtkWidget *
ui_test_find (GtkWidget *root, GType type)
{
  GtkWidget *found = G_TYPE_CHECK_INSTANCE_TYPE (root, type) ? root : NULL;

  for (GtkWidget *child = gtk_widget_get_first_child (root); child != NULL && found == NULL;
       child = gtk_widget_get_next_sibling (child))
    found = ui_test_find (child, type);
  return found;
}

static gboolean
has_text (GtkWidget *widget, const char *text)
{
  if (GTK_IS_LABEL (widget))
    return g_strcmp0 (gtk_label_get_text (GTK_LABEL (widget)), text) == 0;
  if (GTK_IS_BUTTON (widget))
    return g_strcmp0 (gtk_button_get_label (GTK_BUTTON (widget)), text) == 0;
  return GTK_IS_EDITABLE (widget) &&
         g_strcmp0 (gtk_editable_get_text (GTK_EDITABLE (widget)), text) == 0;
}

GtkWidget *
ui_test_find_text (GtkWidget *root, const char *text)
{
  GtkWidget *found = has_text (root, text) ? root : NULL;

  for (GtkWidget *child = gtk_widget_get_first_child (root); child != NULL && found == NULL;
       child = gtk_widget_get_next_sibling (child))
    found = ui_test_find_text (child, text);
  return found;
}
