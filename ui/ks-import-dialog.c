/* ks-import-dialog.c - the way in, of ks-export-dialog.h: a bundle becomes a session of its own.
 * Nothing is stored of a bundle that is damaged. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-error-kind.h"
#include "ui/ks-compat.h"
#include "ui/ks-error-text.h"
#include "ui/ks-export-dialog.h"
#include "ui/ks-toast.h"

#include <glib/gi18n.h>

/* From the choice of the file to the end of it. */
typedef struct {
  GWeakRef parent;
  KsLibrary *library;
  AdwToast *toast; /* while it runs */
} Import;

static Import *
import_new (GtkWidget *parent, KsLibrary *library)
{
  Import *self = g_new0 (Import, 1);

  g_weak_ref_init (&self->parent, parent);
  self->library = g_object_ref (library);
  return self;
}

static void
import_free (gpointer data)
{
  Import *self = data;

  g_weak_ref_clear (&self->parent);
  g_object_unref (self->library);
  g_clear_object (&self->toast);
  g_free (self);
}

static void
again_cb (gboolean accepted, gpointer data)
{
  Import *self = data;
  g_autoptr (GtkWidget) parent = g_weak_ref_get (&self->parent);

  if (accepted && parent != NULL)
    ks_import_present (parent, self->library);
}

static void
tell (Import *self, GtkWidget *parent, KsSession *session, const GError *error)
{
  g_autofree char *text = NULL;

  if (session != NULL) {
    /* Translators: %s is the title of a session. */
    text = g_strdup_printf (_ ("Imported “%s”"), ks_session_get_title (session));
    ks_toast_add (parent, ks_toast_new (text));
    ks_announce (parent, text);
  } else if (ks_error_get_kind (error) != KS_ERROR_KIND_CANCELLED) {
    text = ks_error_text_dup (error);
    ks_confirm (parent, _ ("Nothing Was Imported"), text, _ ("_Choose Another…"), FALSE, again_cb,
                import_new (parent, self->library), import_free);
  }
}

static void
imported_cb (GObject *library, GAsyncResult *result, gpointer data)
{
  Import *self = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (KsSession) session = ks_library_import_finish (KS_LIBRARY (library), result, &error);
  g_autoptr (GtkWidget) parent = g_weak_ref_get (&self->parent);

  adw_toast_dismiss (self->toast);
  if (parent != NULL && gtk_widget_get_root (parent) != NULL)
    tell (self, parent, session, error);
  import_free (self);
}

static void
cancel_cb (AdwToast *toast, GCancellable *cancellable)
{
  g_cancellable_cancel (cancellable);
}

void
ks_import_start (GtkWidget *parent, KsLibrary *library, GFile *file)
{
  Import *self = import_new (parent, library);
  g_autoptr (GCancellable) cancellable = g_cancellable_new ();

  self->toast = ks_toast_new (_ ("Importing…"));
  adw_toast_set_timeout (self->toast, 0);
  adw_toast_set_button_label (self->toast, _ ("_Cancel"));
  g_signal_connect_data (self->toast, "button-clicked", G_CALLBACK (cancel_cb),
                         g_object_ref (cancellable), (GClosureNotify)(GCallback)g_object_unref, 0);
  ks_toast_add (parent, g_object_ref (self->toast));
  ks_library_import_async (library, file, cancellable, imported_cb, self);
}

static void
chosen_cb (GListModel *files, gpointer data)
{
  Import *self = data;
  g_autoptr (GFile) file = files == NULL ? NULL : g_list_model_get_item (files, 0);
  g_autoptr (GtkWidget) parent = g_weak_ref_get (&self->parent);

  if (file != NULL && parent != NULL)
    ks_import_start (parent, self->library, file);
}

void
ks_import_present (GtkWidget *parent, KsLibrary *library)
{
  g_autoptr (GListStore) filters = g_list_store_new (GTK_TYPE_FILE_FILTER);
  g_autoptr (GtkFileFilter) filter = gtk_file_filter_new ();

  gtk_file_filter_set_name (filter, _ ("Bundles of Keepsake (JSON)"));
  gtk_file_filter_add_pattern (filter, "*.json");
  g_list_store_append (filters, filter);
  ks_file_open (parent, _ ("Import a Session"), G_LIST_MODEL (filters), FALSE, chosen_cb,
                import_new (parent, library), import_free);
}
