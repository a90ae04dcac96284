/* ks-compat.c - panes, pages, looks and speech on both sides of GTK 4.10 and libadwaita 1.4;
 * dialogs are in ks-compat-dialogs.c. The newer branch is what stays one day. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-compat.h"

#define ANNOUNCER "ks-announcer"

#if ADW_CHECK_VERSION(1, 4, 0)
#define SHOW_PROPERTY "show-sidebar"
#define COLLAPSED_PROPERTY "collapsed"
#define BREAK_MEMORY "max-width: 940sp"
#define BREAK_SESSIONS "max-width: 660sp"
#else
#define SHOW_PROPERTY "reveal-flap"
#define COLLAPSED_PROPERTY "folded"
#endif

GtkWidget *
ks_split_view_new (GtkPackType side, gboolean locked)
{
#if ADW_CHECK_VERSION(1, 4, 0)
  return g_object_new (ADW_TYPE_OVERLAY_SPLIT_VIEW, "sidebar-position", side, "pin-sidebar", locked,
                       NULL);
#else
  return g_object_new (ADW_TYPE_FLAP, "flap-position", side, "locked", locked, NULL);
#endif
}

void
ks_split_view_set_content (GtkWidget *view, GtkWidget *content)
{
#if ADW_CHECK_VERSION(1, 4, 0)
  adw_overlay_split_view_set_content (ADW_OVERLAY_SPLIT_VIEW (view), content);
#else
  adw_flap_set_content (ADW_FLAP (view), content);
#endif
}

void
ks_split_view_set_sidebar (GtkWidget *view, GtkWidget *sidebar, int width_px)
{
#if ADW_CHECK_VERSION(1, 4, 0)
  g_object_set (view, "sidebar", sidebar, "min-sidebar-width", (double)width_px,
                "max-sidebar-width", (double)width_px, "sidebar-width-unit", ADW_LENGTH_UNIT_PX,
                NULL);
#else
  GtkWidget *separator = gtk_separator_new (GTK_ORIENTATION_VERTICAL);

  gtk_widget_set_size_request (sidebar, width_px, -1);
  gtk_widget_set_hexpand (sidebar, FALSE);
  gtk_widget_add_css_class (sidebar, "background");
  adw_flap_set_flap (ADW_FLAP (view), sidebar);
  adw_flap_set_separator (ADW_FLAP (view), separator);
#endif
}

gboolean
ks_split_view_get_show_sidebar (GtkWidget *view)
{
  gboolean show = FALSE;

  g_object_get (view, SHOW_PROPERTY, &show, NULL);
  return show;
}

void
ks_split_view_set_show_sidebar (GtkWidget *view, gboolean show)
{
  if (ks_split_view_get_show_sidebar (view) != show)
    g_object_set (view, SHOW_PROPERTY, show, NULL);
}

gboolean
ks_split_view_get_collapsed (GtkWidget *view)
{
  gboolean collapsed = FALSE;

  g_object_get (view, COLLAPSED_PROPERTY, &collapsed, NULL);
  return collapsed;
}

GAction *
ks_split_view_action_new (GtkWidget *view, const char *name)
{
  return G_ACTION (g_property_action_new (name, view, SHOW_PROPERTY));
}

void
ks_split_view_connect_changed (GtkWidget *view, GCallback callback, gpointer data)
{
  g_signal_connect_object (view, "notify::" SHOW_PROPERTY, callback, data, G_CONNECT_DEFAULT);
  g_signal_connect_object (view, "notify::" COLLAPSED_PROPERTY, callback, data, G_CONNECT_DEFAULT);
}

GtkWidget *
ks_page_new (GtkWidget *header, GtkWidget *body, GtkWidget *bottom)
{
#if ADW_CHECK_VERSION(1, 4, 0)
  GtkWidget *page = adw_toolbar_view_new ();

  adw_toolbar_view_add_top_bar (ADW_TOOLBAR_VIEW (page), header);
  adw_toolbar_view_set_content (ADW_TOOLBAR_VIEW (page), body);
  if (bottom != NULL)
    adw_toolbar_view_add_bottom_bar (ADW_TOOLBAR_VIEW (page), bottom);
#else
  GtkWidget *page = gtk_box_new (GTK_ORIENTATION_VERTICAL, 0);

  gtk_widget_set_vexpand (body, TRUE);
  gtk_box_append (GTK_BOX (page), header);
  gtk_box_append (GTK_BOX (page), body);
  if (bottom != NULL)
    gtk_box_append (GTK_BOX (page), bottom);
#endif
  return page;
}

#if ADW_CHECK_VERSION(1, 4, 0)
static void
add_breakpoint (AdwApplicationWindow *window, const char *condition, GtkWidget *first,
                GtkWidget *second)
{
  AdwBreakpoint *breakpoint = adw_breakpoint_new (adw_breakpoint_condition_parse (condition));
  GValue collapsed = G_VALUE_INIT;

  g_value_init (&collapsed, G_TYPE_BOOLEAN);
  g_value_set_boolean (&collapsed, TRUE);
  adw_breakpoint_add_setter (breakpoint, G_OBJECT (first), COLLAPSED_PROPERTY, &collapsed);
  if (second != NULL)
    adw_breakpoint_add_setter (breakpoint, G_OBJECT (second), COLLAPSED_PROPERTY, &collapsed);
  adw_application_window_add_breakpoint (window, breakpoint);
  g_value_unset (&collapsed);
}
#endif

void
ks_compat_adapt (AdwApplicationWindow *window, GtkWidget *sessions, GtkWidget *memory)
{
  gtk_widget_set_size_request (GTK_WIDGET (window), 360, 294);
#if ADW_CHECK_VERSION(1, 4, 0)
  /* Of those that hold, the one added last counts. */
  add_breakpoint (window, BREAK_MEMORY, memory, NULL);
  add_breakpoint (window, BREAK_SESSIONS, memory, sessions);
#endif
}

void
ks_css_add (const char *css)
{
  g_autoptr (GtkCssProvider) provider = gtk_css_provider_new ();

#if GTK_CHECK_VERSION(4, 12, 0)
  gtk_css_provider_load_from_string (provider, css);
#else
  gtk_css_provider_load_from_data (provider, css, -1);
#endif
  gtk_style_context_add_provider_for_display (gdk_display_get_default (),
                                              GTK_STYLE_PROVIDER (provider),
                                              GTK_STYLE_PROVIDER_PRIORITY_APPLICATION);
}

void
ks_widget_color (GtkWidget *widget, GdkRGBA *out_color)
{
#if GTK_CHECK_VERSION(4, 10, 0)
  gtk_widget_get_color (widget, out_color);
#else
  gtk_style_context_get_color (gtk_widget_get_style_context (widget), out_color);
#endif
}

void
ks_announcer_install (GtkWindow *window, GtkOverlay *overlay)
{
#if !GTK_CHECK_VERSION(4, 14, 0)
  GtkWidget *label =
      g_object_new (GTK_TYPE_LABEL, "accessible-role", GTK_ACCESSIBLE_ROLE_STATUS, "opacity", 0.0,
                    "can-target", FALSE, "halign", GTK_ALIGN_START, "valign", GTK_ALIGN_END,
                    "ellipsize", PANGO_ELLIPSIZE_END, "max-width-chars", 1, NULL);

  gtk_overlay_add_overlay (overlay, label);
  g_object_set_data (G_OBJECT (window), ANNOUNCER, label);
#endif
}

void
ks_announce (GtkWidget *widget, const char *message)
{
#if GTK_CHECK_VERSION(4, 14, 0)
  gtk_accessible_announce (GTK_ACCESSIBLE (widget), message,
                           GTK_ACCESSIBLE_ANNOUNCEMENT_PRIORITY_MEDIUM);
#else
  GtkRoot *root = gtk_widget_get_root (widget);
  GtkWidget *label = root == NULL ? NULL : g_object_get_data (G_OBJECT (root), ANNOUNCER);

  if (label != NULL)
    gtk_label_set_text (GTK_LABEL (label), message);
#endif
}
