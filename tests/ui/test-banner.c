/* test-banner.c - the line above the chat, and the table of keys. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/ui-test.h"
#include "ui/ks-banner.h"
#include "ui/ks-resource.h"
#include "ui/ks-shortcuts.h"

/* A banner shows its sentence with a sign that is not only a colour, and goes when nothing is the
 * matter. */
static void
test_banner (void)
{
  GtkWidget *widget = ks_banner_new ();
  KsBanner *banner = KS_BANNER (widget);
  GtkWindow *window = ui_test_present (widget, 360, 200);
  GtkWidget *spinner = ui_test_find (widget, GTK_TYPE_SPINNER);

  g_assert_null (ks_banner_get_text (banner));
  ks_banner_set_text (banner, KS_BANNER_BUSY, "The model is being loaded.");
  g_assert_true (gtk_spinner_get_spinning (GTK_SPINNER (spinner)));
  ks_banner_set_text (banner, KS_BANNER_ERROR, "There is no model.");
  ks_banner_set_button (banner, "_Choose Model…", "win.model");
  g_assert_false (gtk_spinner_get_spinning (GTK_SPINNER (spinner)));
  g_assert_cmpstr (ks_banner_get_text (banner), ==, "There is no model.");
  g_assert_true (gtk_widget_get_visible (ui_test_find_text (widget, "_Choose Model…")));
  ks_banner_set_button (banner, NULL, NULL);
  g_assert_false (gtk_widget_get_visible (ui_test_find_text (widget, "_Choose Model…")));
  ks_banner_set_text (banner, KS_BANNER_INFO, NULL);
  g_assert_null (ks_banner_get_text (banner));
  ui_test_close (window);
}

/* Every key of the table is one that GTK can read, no key means two things, and the list of keys in
 * the resources names each of them under its title. */
static void
test_shortcuts (void)
{
  gsize n = 0;
  const KsShortcut *shortcuts = ks_shortcuts_get (&n);
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GBytes) xml = g_resources_lookup_data (KS_RESOURCE "gtk/help-overlay.ui",
                                                    G_RESOURCE_LOOKUP_FLAGS_NONE, NULL);
  g_autoptr (GtkBuilder) builder =
      gtk_builder_new_from_resource (KS_RESOURCE "gtk/help-overlay.ui");
  const char *text = NULL;

  g_assert_nonnull (xml);
  g_assert_true (GTK_IS_SHORTCUTS_WINDOW (gtk_builder_get_object (builder, "help_overlay")));
  text = g_bytes_get_data (xml, NULL);
  for (gsize i = 0; i < n; i++) {
    g_autofree char *title = g_markup_printf_escaped (">%s<", shortcuts[i].title);
    g_autofree char *accel = g_markup_printf_escaped (">%s<", shortcuts[i].accels[0]);

    g_assert_nonnull (strstr (text, title));
    g_assert_nonnull (strstr (text, accel));
    for (gsize j = 0; shortcuts[i].accels[j] != NULL; j++) {
      guint key = 0;
      GdkModifierType modifiers = 0;

      g_assert_true (gtk_accelerator_parse (shortcuts[i].accels[j], &key, &modifiers));
      g_assert_true (g_hash_table_add (seen, (gpointer)shortcuts[i].accels[j]));
    }
  }
  gtk_window_destroy (GTK_WINDOW (gtk_builder_get_object (builder, "help_overlay")));
}

int
main (int argc, char **argv)
{
  ui_test_init (&argc, &argv);
  g_test_add_func ("/banner/kinds", test_banner);
  g_test_add_func ("/shortcuts/table", test_shortcuts);
  return g_test_run ();
}
