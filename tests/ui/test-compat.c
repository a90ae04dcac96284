/* test-compat.c - the wrappers behave alike on every GTK. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/ui-test.h"
#include "ui/ks-compat.h"

static void
count_cb (GObject *object, GParamSpec *pspec, gpointer data)
{
  g_object_set_data (data, "count",
                     GINT_TO_POINTER (GPOINTER_TO_INT (g_object_get_data (data, "count")) + 1));
}

static gboolean
is_collapsed (gpointer view)
{
  return ks_split_view_get_collapsed (view);
}

/* The action, the property and the pane never disagree; a locked pane stays when it comes to lie
 * over the content in a narrow window. */
static void
test_split_view (void)
{
  GtkWidget *inner = ks_split_view_new (GTK_PACK_END, TRUE);
  GtkWidget *content = gtk_label_new ("content");
  GtkWidget *window = adw_application_window_new (NULL);
  GtkWidget *outer = ks_split_view_new (GTK_PACK_START, FALSE);
  g_autoptr (GAction) action = ks_split_view_action_new (inner, "memory");
  g_autoptr (GVariant) state = NULL;

  gtk_widget_set_size_request (content, 340, -1);
  ks_split_view_set_content (inner, content);
  ks_split_view_set_sidebar (inner, gtk_label_new ("memory"), 300);
  ks_split_view_set_content (outer, inner);
  ks_split_view_set_sidebar (outer, gtk_label_new ("sessions"), 260);
  ks_compat_adapt (ADW_APPLICATION_WINDOW (window), outer, inner);
  ks_split_view_connect_changed (inner, G_CALLBACK (count_cb), content);
  adw_application_window_set_content (ADW_APPLICATION_WINDOW (window), outer);

  ks_split_view_set_show_sidebar (inner, TRUE);
  state = g_action_get_state (action);
  g_assert_true (g_variant_get_boolean (state));
  g_action_activate (action, NULL);
  g_assert_false (ks_split_view_get_show_sidebar (inner));
  g_assert_cmpint (GPOINTER_TO_INT (g_object_get_data (G_OBJECT (content), "count")), >=, 1);

  ks_split_view_set_show_sidebar (inner, TRUE);
  gtk_window_set_default_size (GTK_WINDOW (window), 380, 400);
  gtk_window_present (GTK_WINDOW (window));
  ui_test_wait (is_collapsed, inner);
  ui_test_wait (is_collapsed, outer);
  g_assert_true (ks_split_view_get_show_sidebar (inner));
  g_assert_false (ks_split_view_get_show_sidebar (outer));
  ui_test_close (GTK_WINDOW (window));
}

/* Links of models and documents open the browser or the mail program, and nothing else. */
static void
test_open_uri (void)
{
  static const char *const refused[] = {
      "file:///etc/passwd", "javascript:alert(1)", "/etc/passwd", "data:text/html,x", "",
      "smb://a/b"};

  for (gsize i = 0; i < G_N_ELEMENTS (refused); i++)
    g_assert_false (ks_open_uri (NULL, refused[i]));
}

/* The colour of a widget is the one that the style sheets give it. */
static void
test_css_and_color (void)
{
  GtkWidget *label = gtk_label_new ("x");
  GtkWindow *window = NULL;
  GdkRGBA color;

  gtk_widget_add_css_class (label, "compat-test");
  ks_css_add (".compat-test { color: rgb(1,2,3); }");
  window = ui_test_present (label, 100, 100);
  ks_widget_color (label, &color);
  g_assert_cmpfloat_with_epsilon (color.red, 1 / 255.0, 1e-4);
  g_assert_cmpfloat_with_epsilon (color.blue, 3 / 255.0, 1e-4);
  ui_test_close (window);
}

static void
text_cb (const char *text, gpointer data)
{
  g_free (*(char **)data);
  *(char **)data = g_strdup (text == NULL ? "(none)" : text);
}

static gboolean
is_set (gpointer text)
{
  return *(char **)text != NULL;
}

/* A question that is asked is answered exactly once, also when its window is closed. */
static void
test_ask (void)
{
  GtkWidget *label = gtk_label_new ("x");
  GtkWindow *window = ui_test_present (label, 400, 400);
  g_autofree char *answer = NULL;
  GtkWidget *entry = NULL;
  GListModel *toplevels = gtk_window_get_toplevels ();

  ks_ask_text (label, "Password?", "It is locked.", "_Unlock", TRUE, text_cb, &answer, NULL);
  ui_test_settle (label);
  for (guint i = 0; i < g_list_model_get_n_items (toplevels) && entry == NULL; i++) {
    g_autoptr (GtkWidget) toplevel = g_list_model_get_item (toplevels, i);

    entry = ui_test_find (toplevel, GTK_TYPE_PASSWORD_ENTRY);
  }
  g_assert_nonnull (entry);
  gtk_test_accessible_assert_property (entry, GTK_ACCESSIBLE_PROPERTY_LABEL, "Password?");
  gtk_editable_set_text (GTK_EDITABLE (entry), "secret");
  gtk_widget_activate_default (entry);
  ui_test_wait (is_set, &answer);
  g_assert_cmpstr (answer, ==, "secret");
  ui_test_close (window);
}

int
main (int argc, char **argv)
{
  ui_test_init (&argc, &argv);
  g_test_add_func ("/compat/split-view", test_split_view);
  g_test_add_func ("/compat/open-uri", test_open_uri);
  g_test_add_func ("/compat/css-and-color", test_css_and_color);
  g_test_add_func ("/compat/ask", test_ask);
  return g_test_run ();
}
