/* ks-export-dialog.c - see ks-export-dialog.h: the way out.  The library replaces a file only when
 * all of it is written beside it, so that giving up leaves what was there. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-export-dialog.h"

#include "app/ks-error-kind.h"
#include "ui/ks-compat.h"
#include "ui/ks-error-text.h"
#include "ui/ks-preference-rows.h"
#include "ui/ks-toast.h"

#include <glib/gi18n.h>

#define DATA "ks-export-dialog"
#define PULSE_MS 120

static const struct {
  KsExportAs format;
  const char *title, *subtitle, *filter, *pattern;
} formats[] = {
    {KS_EXPORT_AS_MARKDOWN, N_ ("Markdown"),
     N_ ("Text with headings, for notes and other programs; without attached files"),
     N_ ("Markdown"), "*.md"},
    {KS_EXPORT_AS_HTML, N_ ("Web page"),
     N_ ("One file for reading and printing, with pictures; needs no network"), N_ ("Web pages"),
     "*.html"},
    {KS_EXPORT_AS_JSON, N_ ("Complete bundle"),
     N_ ("JSON with all branches and attached files; can be imported again"), N_ ("Bundles"),
     "*.json"},
};

/* Lives as long as the dialog. */
typedef struct {
  GtkWidget *dialog; /* this belongs to it */
  GWeakRef parent;
  KsLibrary *library;
  KsSession *session;
  guint chosen;
  GtkWidget *stack, *export_button, *progress, *error_row; /* children */
  GCancellable *cancellable;                               /* of the export that runs */
  guint pulse_source;
} ExportDialog;

static void
stop_pulse (ExportDialog *self)
{
  g_clear_handle_id (&self->pulse_source, g_source_remove);
}

static void
export_dialog_free (gpointer data)
{
  ExportDialog *self = data;

  if (self->cancellable != NULL)
    g_cancellable_cancel (self->cancellable);
  g_clear_object (&self->cancellable);
  stop_pulse (self);
  g_weak_ref_clear (&self->parent);
  g_object_unref (self->library);
  g_object_unref (self->session);
  g_free (self);
}

static gboolean
pulse_cb (gpointer progress)
{
  gtk_progress_bar_pulse (GTK_PROGRESS_BAR (progress));
  return G_SOURCE_CONTINUE;
}

static void
show_running (ExportDialog *self, gboolean is_running)
{
  stop_pulse (self);
  if (is_running)
    self->pulse_source = g_timeout_add (PULSE_MS, pulse_cb, self->progress);
  gtk_widget_set_sensitive (self->export_button, !is_running);
  gtk_stack_set_visible_child_name (GTK_STACK (self->stack), is_running ? "running" : "choose");
  if (!is_running)
    gtk_widget_grab_focus (self->export_button);
}

static void
show_error (ExportDialog *self, const GError *error)
{
  g_autofree char *text = error == NULL ? NULL : ks_error_text_dup (error);

  gtk_widget_set_visible (self->error_row, text != NULL);
  if (text == NULL)
    return;
  adw_action_row_set_subtitle (ADW_ACTION_ROW (self->error_row), text);
  ks_announce (self->dialog, text);
}

/* --- what came of it --- */

typedef struct {
  GWeakRef parent;
  GFile *file;
} Shown;

static void
shown_free (gpointer data, GClosure *closure)
{
  Shown *shown = data;

  g_weak_ref_clear (&shown->parent);
  g_object_unref (shown->file);
  g_free (shown);
}

static void
show_in_files_cb (AdwToast *toast, Shown *shown)
{
  g_autoptr (GtkWidget) parent = g_weak_ref_get (&shown->parent);

  if (parent != NULL)
    ks_show_in_files (parent, shown->file);
}

static void
tell_exported (ExportDialog *self, GFile *file)
{
  g_autoptr (GtkWidget) parent = g_weak_ref_get (&self->parent);
  g_autofree char *path = g_file_get_parse_name (file);
  g_autofree char *name = g_path_get_basename (path);
  g_autofree char *text = NULL;
  AdwToast *toast = NULL;
  Shown *shown = NULL;

  if (parent == NULL)
    return;
  /* Translators: %s is the name of a file. */
  text = g_strdup_printf (_ ("Exported as %s"), name);
  toast = ks_toast_new (text);
  shown = g_new0 (Shown, 1);
  g_weak_ref_init (&shown->parent, parent);
  shown->file = g_object_ref (file);
  adw_toast_set_button_label (toast, _ ("_Show in Files"));
  g_signal_connect_data (toast, "button-clicked", G_CALLBACK (show_in_files_cb), shown, shown_free,
                         0);
  ks_toast_add (parent, toast);
  ks_announce (parent, text);
}

typedef struct {
  GtkWidget *dialog; /* strong */
  GFile *file;
} Request;

static void
exported_cb (GObject *library, GAsyncResult *result, gpointer data)
{
  Request *request = data;
  ExportDialog *self = g_object_get_data (G_OBJECT (request->dialog), DATA);
  g_autoptr (GError) error = NULL;
  gboolean done = ks_library_export_finish (KS_LIBRARY (library), result, &error);

  g_clear_object (&self->cancellable);
  stop_pulse (self);
  if (done)
    tell_exported (self, request->file);
  if (gtk_widget_get_mapped (request->dialog)) {
    gboolean is_cancelled = ks_error_get_kind (error) == KS_ERROR_KIND_CANCELLED;

    show_running (self, FALSE);
    show_error (self, is_cancelled ? NULL : error);
    if (done)
      ks_dialog_close (request->dialog);
  }
  g_object_unref (request->dialog);
  g_object_unref (request->file);
  g_free (request);
}

void
ks_export_dialog_start (GtkWidget *dialog, GFile *file)
{
  ExportDialog *self = g_object_get_data (G_OBJECT (dialog), DATA);
  Request *request = NULL;

  g_return_if_fail (self != NULL && G_IS_FILE (file));
  if (self->cancellable != NULL) /* one runs */
    return;
  request = g_new0 (Request, 1);
  request->dialog = g_object_ref (dialog);
  request->file = g_object_ref (file);
  self->cancellable = g_cancellable_new ();
  show_error (self, NULL);
  show_running (self, TRUE);
  ks_library_export_async (self->library, self->session, formats[self->chosen].format, file,
                           self->cancellable, exported_cb, request);
}

/* --- choosing --- */

static void
saved_cb (GFile *file, gpointer dialog)
{
  if (file != NULL && g_object_get_data (dialog, DATA) != NULL)
    ks_export_dialog_start (dialog, file);
}

static void
export_cb (GtkButton *button, ExportDialog *self)
{
  g_autofree char *name = ks_library_make_export_name (self->session, formats[self->chosen].format);
  g_autoptr (GListStore) filters = g_list_store_new (GTK_TYPE_FILE_FILTER);
  g_autoptr (GtkFileFilter) filter = gtk_file_filter_new ();

  gtk_file_filter_set_name (filter, _ (formats[self->chosen].filter));
  gtk_file_filter_add_pattern (filter, formats[self->chosen].pattern);
  g_list_store_append (filters, filter);
  ks_file_save (self->dialog, _ ("Export Session"), name, G_LIST_MODEL (filters), saved_cb,
                g_object_ref (self->dialog), g_object_unref);
}

static void
cancel_cb (GtkButton *button, ExportDialog *self)
{
  if (self->cancellable != NULL)
    g_cancellable_cancel (self->cancellable);
  else
    ks_dialog_close (self->dialog);
}

/* Closed in the middle: the request still holds the dialog, so this is not the end of it. */
static void
unmap_cb (GtkWidget *dialog, ExportDialog *self)
{
  if (self->cancellable != NULL)
    g_cancellable_cancel (self->cancellable);
}

static void
toggled_cb (GtkCheckButton *check, ExportDialog *self)
{
  if (gtk_check_button_get_active (check))
    self->chosen = GPOINTER_TO_UINT (g_object_get_data (G_OBJECT (check), "ks-format"));
}

static void
add_format (ExportDialog *self, AdwPreferencesGroup *group, guint i, GtkCheckButton **first)
{
  GtkWidget *check = gtk_check_button_new ();
  GtkWidget *row = ks_row_new (_ (formats[i].title), _ (formats[i].subtitle), NULL);

  gtk_widget_set_valign (check, GTK_ALIGN_CENTER);
  gtk_accessible_update_property (GTK_ACCESSIBLE (check), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ (formats[i].title), GTK_ACCESSIBLE_PROPERTY_DESCRIPTION,
                                  _ (formats[i].subtitle), -1);
  g_object_set_data (G_OBJECT (check), "ks-format", GUINT_TO_POINTER (i));
  gtk_check_button_set_group (GTK_CHECK_BUTTON (check), *first);
  gtk_check_button_set_active (GTK_CHECK_BUTTON (check), *first == NULL);
  if (*first == NULL)
    *first = GTK_CHECK_BUTTON (check);
  g_signal_connect (check, "toggled", G_CALLBACK (toggled_cb), self);
  adw_action_row_add_prefix (ADW_ACTION_ROW (row), check);
  adw_action_row_set_activatable_widget (ADW_ACTION_ROW (row), check);
  adw_preferences_group_add (group, row);
}

static GtkWidget *
choose_new (ExportDialog *self)
{
  GtkWidget *page = adw_preferences_page_new ();
  GtkWidget *group = adw_preferences_group_new ();
  GtkCheckButton *first = NULL;

  self->error_row = ks_row_new (_ ("Nothing Was Exported"), "", NULL);
  gtk_widget_add_css_class (self->error_row, "error");
  gtk_widget_set_visible (self->error_row, FALSE);
  adw_action_row_add_prefix (ADW_ACTION_ROW (self->error_row),
                             gtk_image_new_from_icon_name ("dialog-warning-symbolic"));
  adw_preferences_group_add (ADW_PREFERENCES_GROUP (group), self->error_row);
  for (guint i = 0; i < G_N_ELEMENTS (formats); i++)
    add_format (self, ADW_PREFERENCES_GROUP (group), i, &first);
  adw_preferences_page_add (ADW_PREFERENCES_PAGE (page), ADW_PREFERENCES_GROUP (group));
  return page;
}

static GtkWidget *
running_new (ExportDialog *self)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 18);
  GtkWidget *label = gtk_label_new (_ ("Exporting…"));

  self->progress = gtk_progress_bar_new ();
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->progress), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Exporting…"), -1);
  gtk_widget_add_css_class (label, "title-3");
  gtk_widget_set_valign (box, GTK_ALIGN_CENTER);
  g_object_set (box, "margin-start", 36, "margin-end", 36, NULL);
  gtk_box_append (GTK_BOX (box), label);
  gtk_box_append (GTK_BOX (box), self->progress);
  return box;
}

static GtkWidget *
header_new (ExportDialog *self)
{
  GtkWidget *header = adw_header_bar_new ();
  GtkWidget *cancel = gtk_button_new_with_mnemonic (_ ("_Cancel"));

  self->export_button = gtk_button_new_with_mnemonic (_ ("_Export…"));
  gtk_widget_add_css_class (self->export_button, "suggested-action");
  g_signal_connect (cancel, "clicked", G_CALLBACK (cancel_cb), self);
  g_signal_connect (self->export_button, "clicked", G_CALLBACK (export_cb), self);
  adw_header_bar_set_show_start_title_buttons (ADW_HEADER_BAR (header), FALSE);
  adw_header_bar_set_show_end_title_buttons (ADW_HEADER_BAR (header), FALSE);
  adw_header_bar_pack_start (ADW_HEADER_BAR (header), cancel);
  adw_header_bar_pack_end (ADW_HEADER_BAR (header), self->export_button);
  return header;
}

GtkWidget *
ks_export_dialog_present (GtkWidget *parent, KsLibrary *library, KsSession *session)
{
  ExportDialog *self = g_new0 (ExportDialog, 1);

  g_weak_ref_init (&self->parent, parent);
  self->library = g_object_ref (library);
  self->session = g_object_ref (session);
  self->stack = gtk_stack_new ();
  gtk_stack_add_named (GTK_STACK (self->stack), choose_new (self), "choose");
  gtk_stack_add_named (GTK_STACK (self->stack), running_new (self), "running");
  self->dialog = ks_dialog_new (_ ("Export Session"),
                                ks_page_new (header_new (self), self->stack, NULL), 480, 380);
  g_object_set_data_full (G_OBJECT (self->dialog), DATA, self, export_dialog_free);
  g_signal_connect (self->dialog, "unmap", G_CALLBACK (unmap_cb), self);
  ks_dialog_present (self->dialog, parent);
  return self->dialog;
}
