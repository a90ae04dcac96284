/* ks-swatch.c - see ks-swatch.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-swatch.h"

#include "ui/ks-compat.h"

#include <adwaita.h>

#define SIDE_PX 12
#define RADIUS_PX 3

struct _KsSwatch {
  GtkWidget parent_instance;
};

G_DEFINE_FINAL_TYPE (KsSwatch, ks_swatch, GTK_TYPE_WIDGET)

static void
ks_swatch_measure (GtkWidget *widget, GtkOrientation orientation, int for_size, int *minimum,
                   int *natural, int *minimum_baseline, int *natural_baseline)
{
  *minimum = *natural = SIDE_PX;
}

static void
ks_swatch_snapshot (GtkWidget *widget, GtkSnapshot *snapshot)
{
  int width = gtk_widget_get_width (widget), height = gtk_widget_get_height (widget);
  GskRoundedRect outline;
  GdkRGBA color;

  ks_widget_color (widget, &color);
  gsk_rounded_rect_init_from_rect (&outline, &GRAPHENE_RECT_INIT (0, 0, width, height), RADIUS_PX);
  gtk_snapshot_push_rounded_clip (snapshot, &outline);
  gtk_snapshot_append_color (snapshot, &color, &outline.bounds);
  gtk_snapshot_pop (snapshot);
}

static void
ks_swatch_class_init (KsSwatchClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  widget_class->measure = ks_swatch_measure;
  widget_class->snapshot = ks_swatch_snapshot;
  gtk_widget_class_set_css_name (widget_class, "swatch");
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_PRESENTATION);
}

static void
follow_contrast (KsSwatch *self)
{
  if (adw_style_manager_get_high_contrast (adw_style_manager_get_default ()))
    gtk_widget_add_css_class (GTK_WIDGET (self), "high-contrast");
  else
    gtk_widget_remove_css_class (GTK_WIDGET (self), "high-contrast");
}

static void
ks_swatch_init (KsSwatch *self)
{
  g_signal_connect_object (adw_style_manager_get_default (), "notify::high-contrast",
                           G_CALLBACK (follow_contrast), self, G_CONNECT_SWAPPED);
  follow_contrast (self);
  gtk_widget_set_valign (GTK_WIDGET (self), GTK_ALIGN_CENTER);
  gtk_widget_set_halign (GTK_WIDGET (self), GTK_ALIGN_CENTER);
}

GtkWidget *
ks_swatch_new (const char *css_class)
{
  GtkWidget *self = g_object_new (KS_TYPE_SWATCH, NULL);

  gtk_widget_add_css_class (self, css_class);
  return self;
}

GtkWidget *
ks_swatch_new_hidden (const char *css_class, GtkWidget *parent)
{
  GtkWidget *self = ks_swatch_new (css_class);

  gtk_widget_set_parent (self, parent);
  gtk_widget_set_child_visible (self, FALSE);
  return self;
}

void
ks_swatch_get_color (GtkWidget *swatch, GdkRGBA *out_color)
{
  g_return_if_fail (KS_IS_SWATCH (swatch));

  ks_widget_color (swatch, out_color);
}
