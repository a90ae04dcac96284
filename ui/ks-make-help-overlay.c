/* ks-make-help-overlay.c - program of the build: writes the list of keys that GtkApplication looks
 * for in its resources, gtk/help-overlay.ui, from the table of ks-shortcuts.c. Usage:
 * ks-make-help-overlay FILE */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-shortcuts.h"

static void
append_shortcut (GString *xml, const KsShortcut *shortcut)
{
  g_autofree char *title = g_markup_escape_text (shortcut->title, -1);
  g_autofree char *accel = g_markup_escape_text (shortcut->accels[0], -1);

  g_string_append_printf (xml,
                          "<child><object class=\"GtkShortcutsShortcut\">"
                          "<property name=\"title\" translatable=\"yes\">%s</property>"
                          "<property name=\"accelerator\">%s</property></object></child>\n",
                          title, accel);
}

int
main (int argc, char **argv)
{
  gsize n = 0;
  const KsShortcut *shortcuts = ks_shortcuts_get (&n);
  g_autoptr (GString) xml =
      g_string_new ("<interface domain=\"keepsake\">\n"
                    "<object class=\"GtkShortcutsWindow\" id=\"help_overlay\">"
                    "<property name=\"modal\">1</property>"
                    "<child><object class=\"GtkShortcutsSection\">"
                    "<property name=\"section-name\">shortcuts</property>\n");

  for (gsize i = 0; i < n; i++) {
    if (i == 0 || g_strcmp0 (shortcuts[i].group, shortcuts[i - 1].group) != 0) {
      g_autofree char *group = g_markup_escape_text (shortcuts[i].group, -1);

      g_string_append_printf (xml,
                              "%s<child><object class=\"GtkShortcutsGroup\">"
                              "<property name=\"title\" translatable=\"yes\">%s</property>\n",
                              i == 0 ? "" : "</object></child>\n", group);
    }
    append_shortcut (xml, &shortcuts[i]);
  }
  g_string_append (xml, "</object></child></object></child></object></interface>\n");
  return argc == 2 && g_file_set_contents (argv[1], xml->str, (gssize)xml->len, NULL) ? 0 : 1;
}
