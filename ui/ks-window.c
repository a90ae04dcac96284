/* ks-window.c - see ks-window.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-window.h"

#include "ui/ks-resource.h"

struct _KsWindow {
  AdwApplicationWindow parent_instance;
};

G_DEFINE_FINAL_TYPE (KsWindow, ks_window, ADW_TYPE_APPLICATION_WINDOW)

static void
ks_window_dispose (GObject *object)
{
  gtk_widget_dispose_template (GTK_WIDGET (object), KS_TYPE_WINDOW);
  G_OBJECT_CLASS (ks_window_parent_class)->dispose (object);
}

static void
ks_window_class_init (KsWindowClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ks_window_dispose;
  gtk_widget_class_set_template_from_resource (widget_class, KS_RESOURCE "ks-window.ui");
}

static void
ks_window_init (KsWindow *self)
{
  gtk_widget_init_template (GTK_WIDGET (self));
}

KsWindow *
ks_window_new (GtkApplication *application)
{
  return g_object_new (KS_TYPE_WINDOW, "application", application, NULL);
}
