/* ks-application.c - see ks-application.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-application.h"

#include "ui/ks-resource.h"
#include "ui/ks-window.h"

struct _KsApplication {
  AdwApplication parent_instance;
};

G_DEFINE_FINAL_TYPE (KsApplication, ks_application, ADW_TYPE_APPLICATION)

static void
ks_application_activate (GApplication *application)
{
  GtkWindow *window = gtk_application_get_active_window (GTK_APPLICATION (application));

  if (window == NULL)
    window = GTK_WINDOW (ks_window_new (GTK_APPLICATION (application)));
  gtk_window_present (window);
}

static void
ks_application_class_init (KsApplicationClass *klass)
{
  G_APPLICATION_CLASS (klass)->activate = ks_application_activate;
}

static void
ks_application_init (KsApplication *self)
{
}

KsApplication *
ks_application_new (void)
{
  return g_object_new (KS_TYPE_APPLICATION, "application-id", KS_APP_ID, "flags",
                       G_APPLICATION_DEFAULT_FLAGS, "resource-base-path", "/org/keepsake/Keepsake",
                       NULL);
}
