/* ks-model-manager.c - see ks-model-manager.h.
 * Rows are made by a look into the folder; what changes while a model loads is only which of the
 * three widgets at their end is shown, so that the focus stays where it is. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-model-manager.h"

#include "app/ks-model-fit.h"
#include "ui/ks-compat.h"
#include "ui/ks-error-text.h"
#include "ui/ks-eyes-button.h"
#include "ui/ks-preference-rows.h"

#include <glib/gi18n.h>

#include <string.h>

struct _KsModelPage {
  AdwPreferencesPage parent_instance;

  KsLibrary *library;
  GCancellable *cancellable;
  char *wanted; /* path that is being loaded on request */
  AdwPreferencesGroup *group;
  GPtrArray *rows; /* what group holds: of models, or the one that says there is none */
  GtkWidget *error_row;
};

G_DEFINE_FINAL_TYPE (KsModelPage, ks_model_page, ADW_TYPE_PREFERENCES_PAGE)

static void look_again (KsModelPage *self);

static void
ks_model_page_dispose (GObject *object)
{
  KsModelPage *self = KS_MODEL_PAGE (object);

  if (self->cancellable != NULL)
    g_cancellable_cancel (self->cancellable);
  g_clear_object (&self->cancellable);
  g_clear_object (&self->library); /* signals are connected with g_signal_connect_object */
  g_clear_pointer (&self->rows, g_ptr_array_unref);
  g_clear_pointer (&self->wanted, g_free);
  G_OBJECT_CLASS (ks_model_page_parent_class)->dispose (object);
}

static void
ks_model_page_class_init (KsModelPageClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = ks_model_page_dispose;
}

static void
ks_model_page_init (KsModelPage *self)
{
  self->rows = g_ptr_array_new ();
}

/* --- a model in words --- */

static char *
describe_fit (KsLibrary *library, KsModelEntry *entry)
{
  guint64 need = ks_model_fit_get_need_bytes (entry);
  guint64 available = 0, machine = 0;
  g_autofree char *size = g_format_size_full (need, G_FORMAT_SIZE_IEC_UNITS);

  ks_model_fit_read_machine (&available, &machine);
  switch (ks_model_fit_judge (need, ks_library_get_target_bytes (library), available, machine)) {
  case KS_MODEL_FIT_OVER_MACHINE:
    /* Translators: here and below, %s is a size. */
    return g_strdup_printf (_ ("Too large for this machine: needs about %s"), size);
  case KS_MODEL_FIT_OVER_AVAILABLE:
    return g_strdup_printf (_ ("Needs about %s: close other programs first"), size);
  case KS_MODEL_FIT_OVER_TARGET:
    return g_strdup_printf (_ ("Fits, with a memory target of about %s"), size);
  case KS_MODEL_FIT_OK:
    break;
  }
  return g_strdup_printf (_ ("Fits: needs about %s"), size);
}

static char *
describe (KsLibrary *library, KsModelEntry *entry)
{
  const char *licence = ks_model_entry_get_licence (entry);
  g_autofree char *size =
      g_format_size_full (ks_model_entry_get_n_bytes (entry), G_FORMAT_SIZE_IEC_UNITS);
  g_autofree char *fit = describe_fit (library, entry);
  g_autofree char *eyes = ks_eyes_dup_words (entry);

  return g_strdup_printf ("%s\n%s · %s · %s\n%s\n%s", ks_model_entry_get_file_name (entry), size,
                          ks_model_entry_get_quantisation (entry),
                          licence != NULL ? licence : _ ("licence not stated"), fit, eyes);
}

/* --- rows --- */

static KsModelEntry *
entry_of (gpointer widget)
{
  return g_object_get_data (G_OBJECT (widget), "ks-entry");
}

static gboolean
is_asked_for (KsModelEntry *entry, const char *model)
{
  return model != NULL && (strcmp (ks_model_entry_get_path (entry), model) == 0 ||
                           strcmp (ks_model_entry_get_file_name (entry), model) == 0);
}

static KsModelEntry *
find_used (KsModelPage *self)
{
  const char *path = ks_library_get_model_path (self->library);

  for (guint i = 0; i < self->rows->len; i++) {
    KsModelEntry *entry = entry_of (g_ptr_array_index (self->rows, i));
    g_autofree char *full =
        entry == NULL ? NULL : g_canonicalize_filename (ks_model_entry_get_path (entry), NULL);

    if (full != NULL && g_strcmp0 (full, path) == 0)
      return entry;
  }
  return NULL;
}

static void
show_error (KsModelPage *self, const char *title, const char *text)
{
  gtk_widget_set_visible (self->error_row, text != NULL);
  if (text == NULL)
    return;
  adw_preferences_row_set_title (ADW_PREFERENCES_ROW (self->error_row), title);
  adw_action_row_set_subtitle (ADW_ACTION_ROW (self->error_row), text);
}

static void
show_state (KsModelPage *self)
{
  KsModelState state = ks_library_get_model_state (self->library);
  KsModelEntry *used = find_used (self);
  const GError *failure = ks_library_get_model_failure (self->library);

  for (guint i = 0; i < self->rows->len; i++) {
    GtkWidget *row = g_ptr_array_index (self->rows, i);
    GtkStack *stack = g_object_get_data (G_OBJECT (row), "ks-stack");
    KsModelEntry *entry = entry_of (row);
    gboolean is_wanted =
        entry != NULL && self->wanted != NULL ? is_asked_for (entry, self->wanted) : entry == used;

    if (entry == NULL)
      continue;
    if (state == KS_MODEL_LOADING && is_wanted)
      gtk_stack_set_visible_child_name (stack, "loading");
    else
      gtk_stack_set_visible_child_name (stack,
                                        state == KS_MODEL_READY && entry == used ? "used" : "load");
  }
  if (state == KS_MODEL_FAILED && failure != NULL) {
    g_autofree char *text = ks_error_text_dup (failure);

    show_error (self, _ ("No model is loaded"), text);
  } else {
    show_error (self, NULL, NULL);
  }
}

static void
state_cb (KsModelPage *self)
{
  if (self->library == NULL)
    return;
  show_state (self);
  /* What is loaded has a row, from wherever it came. */
  if (ks_library_get_model_state (self->library) == KS_MODEL_READY && find_used (self) == NULL)
    look_again (self);
}

static void
load (KsModelPage *self, const char *path)
{
  g_free (self->wanted);
  self->wanted = g_strdup (path);
  ks_library_load_model (self->library, path);
}

static void
load_cb (GtkButton *button, KsModelPage *self)
{
  GtkWidget *row = gtk_widget_get_ancestor (GTK_WIDGET (button), ADW_TYPE_ACTION_ROW);

  gtk_widget_grab_focus (row); /* the button gives way to others */
  load (self, ks_model_entry_get_path (entry_of (row)));
}

static GtkWidget *
button_new (KsModelPage *self, const char *text, const char *label)
{
  GtkWidget *button = gtk_button_new_with_mnemonic (text);

  gtk_accessible_update_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL, label,
                                  -1);
  gtk_widget_set_valign (button, GTK_ALIGN_CENTER);
  g_signal_connect_object (button, "clicked", G_CALLBACK (load_cb), self, 0);
  return button;
}

static GtkWidget *
used_new (KsModelPage *self, KsModelEntry *entry)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  GtkWidget *image = gtk_image_new_from_icon_name ("object-select-symbolic");
  g_autofree char *label = g_strdup_printf (_ ("Load %s again"), ks_model_entry_get_name (entry));
  GtkWidget *again = button_new (self, _ ("_Reload"), label);

  gtk_widget_set_tooltip_text (image, C_ ("model", "In use"));
  gtk_accessible_update_property (GTK_ACCESSIBLE (image), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  C_ ("model", "In use"), -1);
  gtk_widget_add_css_class (image, "accent");
  gtk_widget_add_css_class (again, "flat");
  gtk_box_append (GTK_BOX (box), image);
  gtk_box_append (GTK_BOX (box), again);
  return box;
}

static void
eyes_cb (KsEyesButton *button, KsModelPage *self)
{
  look_again (self); /* rows are made again, with the words for it */
}

static GtkWidget *
model_row_new (KsModelPage *self, KsModelEntry *entry)
{
  GtkWidget *stack = gtk_stack_new ();
  GtkWidget *spinner = gtk_spinner_new ();
  g_autofree char *subtitle = describe (self->library, entry);
  g_autofree char *label = g_strdup_printf (_ ("Load %s"), ks_model_entry_get_name (entry));
  GtkWidget *row = ks_row_new (ks_model_entry_get_name (entry), subtitle, stack);
  GtkWidget *eyes = ks_eyes_button_new (self->library, entry);

  gtk_spinner_start (GTK_SPINNER (spinner));
  gtk_accessible_update_property (GTK_ACCESSIBLE (spinner), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Loading"), -1);
  gtk_stack_add_named (GTK_STACK (stack), button_new (self, _ ("_Load"), label), "load");
  gtk_stack_add_named (GTK_STACK (stack), spinner, "loading");
  gtk_stack_add_named (GTK_STACK (stack), used_new (self, entry), "used");
  gtk_stack_set_hhomogeneous (GTK_STACK (stack), FALSE);
  adw_action_row_set_activatable_widget (ADW_ACTION_ROW (row), NULL);
  g_signal_connect_object (eyes, "chosen", G_CALLBACK (eyes_cb), self, G_CONNECT_DEFAULT);
  adw_action_row_add_suffix (ADW_ACTION_ROW (row), eyes);
  gtk_widget_set_tooltip_text (row, ks_model_entry_get_path (entry));
  g_object_set_data (G_OBJECT (row), "ks-stack", stack);
  g_object_set_data_full (G_OBJECT (row), "ks-entry", g_object_ref (entry), g_object_unref);
  return row;
}

/* --- the folder --- */

static void
open_folder_cb (GtkButton *button, KsModelPage *self)
{
  const char *dir = ks_library_get_models_dir (self->library);
  KsModelEntry *entry = self->rows->len > 0 ? entry_of (g_ptr_array_index (self->rows, 0)) : NULL;
  const char *path = entry != NULL ? ks_model_entry_get_path (entry) : dir;
  g_autofree char *parent = g_path_get_dirname (path);
  g_autoptr (GFile) file = NULL;

  g_mkdir_with_parents (dir, 0700); /* if that fails, the file manager will say so */
  file = g_file_new_for_path (g_str_equal (parent, dir) ? path : dir);
  ks_show_in_files (GTK_WIDGET (self), file);
}

static GtkWidget *
empty_new (KsModelPage *self)
{
  GtkWidget *page = adw_status_page_new ();
  GtkWidget *button = gtk_button_new_with_mnemonic (_ ("_Open Models Folder"));
  g_autofree char *dir = g_markup_escape_text (ks_library_get_models_dir (self->library), -1);
  g_autofree char *text = NULL;

  /* Translators: %s is a folder. */
  text = g_strdup_printf (_ ("Put a model in GGUF format into %s and look again, or choose a file "
                             "below."),
                          dir);
  adw_status_page_set_icon_name (ADW_STATUS_PAGE (page), "drive-harddisk-symbolic");
  adw_status_page_set_title (ADW_STATUS_PAGE (page), _ ("No Models Yet"));
  adw_status_page_set_description (ADW_STATUS_PAGE (page), text);
  gtk_widget_set_halign (button, GTK_ALIGN_CENTER);
  gtk_widget_add_css_class (button, "pill");
  gtk_widget_add_css_class (page, "compact");
  g_signal_connect_object (button, "clicked", G_CALLBACK (open_folder_cb), self, 0);
  adw_status_page_set_child (ADW_STATUS_PAGE (page), button);
  return page;
}

static void
add (KsModelPage *self, GtkWidget *row)
{
  adw_preferences_group_add (self->group, row);
  g_ptr_array_add (self->rows, row);
}

static void
listed_cb (GObject *library, GAsyncResult *result, gpointer data)
{
  KsModelPage *self = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) entries =
      ks_library_list_models_finish (KS_LIBRARY (library), result, &error);

  if (self->library == NULL || g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
    g_object_unref (self);
    return;
  }
  for (guint i = 0; i < self->rows->len; i++)
    adw_preferences_group_remove (self->group, g_ptr_array_index (self->rows, i));
  g_ptr_array_set_size (self->rows, 0);
  for (guint i = 0; entries != NULL && i < entries->len; i++)
    add (self, model_row_new (self, g_ptr_array_index (entries, i)));
  if (self->rows->len == 0)
    add (self, empty_new (self));
  show_state (self);
  if (error != NULL) {
    g_autofree char *text = ks_error_text_dup (error);

    show_error (self, _ ("The models folder cannot be read"), text);
  }
  g_object_unref (self);
}

static void
look_again (KsModelPage *self)
{
  if (self->cancellable != NULL)
    g_cancellable_cancel (self->cancellable);
  g_clear_object (&self->cancellable);
  self->cancellable = g_cancellable_new ();
  ks_library_list_models_async (self->library, self->cancellable, listed_cb, g_object_ref (self));
}

static void
look_again_cb (GtkButton *button, KsModelPage *self)
{
  look_again (self);
}

static void
chosen_cb (GListModel *files, gpointer data)
{
  KsModelPage *self = data;
  g_autoptr (GFile) file = files == NULL ? NULL : g_list_model_get_item (files, 0);
  g_autofree char *path = file == NULL ? NULL : g_file_get_path (file);

  if (file == NULL || self->library == NULL)
    return;
  if (path == NULL)
    show_error (self, _ ("This file cannot be loaded"),
                _ ("Only files on this machine can be: copy it into the models folder first."));
  else
    load (self, path);
}

static void
choose_cb (GtkButton *button, KsModelPage *self)
{
  g_autoptr (GListStore) filters = g_list_store_new (GTK_TYPE_FILE_FILTER);
  g_autoptr (GtkFileFilter) filter = gtk_file_filter_new ();

  gtk_file_filter_set_name (filter, _ ("Models (GGUF)"));
  gtk_file_filter_add_pattern (filter, "*.gguf");
  g_list_store_append (filters, filter);
  ks_file_open (GTK_WIDGET (self), _ ("Choose a Model"), G_LIST_MODEL (filters), FALSE, chosen_cb,
                g_object_ref (self), g_object_unref);
}

/* --- the page --- */

static GtkWidget *
icon_button_new (KsModelPage *self, const char *icon_name, const char *label, GCallback clicked)
{
  GtkWidget *button = gtk_button_new_from_icon_name (icon_name);

  gtk_widget_set_tooltip_text (button, label);
  gtk_accessible_update_property (GTK_ACCESSIBLE (button), GTK_ACCESSIBLE_PROPERTY_LABEL, label,
                                  -1);
  gtk_widget_add_css_class (button, "flat");
  g_signal_connect_object (button, "clicked", clicked, self, 0);
  return button;
}

static void
add_groups (KsModelPage *self)
{
  AdwPreferencesGroup *other = ADW_PREFERENCES_GROUP (adw_preferences_group_new ());
  GtkWidget *buttons = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 0);
  GtkWidget *choose = gtk_button_new_with_mnemonic (_ ("_Choose File…"));
  GtkWidget *warning = gtk_image_new_from_icon_name ("dialog-warning-symbolic");

  self->group = ADW_PREFERENCES_GROUP (adw_preferences_group_new ());
  adw_preferences_group_set_title (self->group, _ ("Models on This Machine"));
  gtk_widget_set_valign (buttons, GTK_ALIGN_CENTER);
  gtk_box_append (GTK_BOX (buttons),
                  icon_button_new (self, "view-refresh-symbolic", _ ("Look Again"),
                                   G_CALLBACK (look_again_cb)));
  gtk_box_append (GTK_BOX (buttons),
                  icon_button_new (self, "folder-symbolic", _ ("Open Models Folder"),
                                   G_CALLBACK (open_folder_cb)));
  adw_preferences_group_set_header_suffix (self->group, buttons);
  self->error_row = ks_row_new ("", "", NULL);
  gtk_widget_add_css_class (self->error_row, "error");
  adw_action_row_add_prefix (ADW_ACTION_ROW (self->error_row), warning);
  adw_preferences_group_add (self->group, self->error_row);
  g_signal_connect_object (choose, "clicked", G_CALLBACK (choose_cb), self, 0);
  adw_preferences_group_add (
      other, ks_row_new (_ ("Another file"), _ ("A model in GGUF format from anywhere"), choose));
  adw_preferences_page_add (ADW_PREFERENCES_PAGE (self), self->group);
  adw_preferences_page_add (ADW_PREFERENCES_PAGE (self), other);
}

AdwPreferencesPage *
ks_model_page_new (KsLibrary *library)
{
  KsModelPage *self = g_object_new (KS_TYPE_MODEL_PAGE, "title", _ ("Model"), "icon-name",
                                    "application-x-executable-symbolic", NULL);

  self->library = g_object_ref (library);
  add_groups (self);
  g_signal_connect_object (library, "notify::model-state", G_CALLBACK (state_cb), self,
                           G_CONNECT_SWAPPED);
  g_signal_connect_object (library, "notify::model-name", G_CALLBACK (state_cb), self,
                           G_CONNECT_SWAPPED);
  show_state (self);
  look_again (self);
  return ADW_PREFERENCES_PAGE (self);
}

GtkWidget *
ks_model_manager_present (GtkWidget *parent, KsLibrary *library)
{
  AdwPreferencesPage *pages[] = {ks_model_page_new (library), NULL};

  return ks_prefs_present (parent, _ ("Models"), pages, FALSE);
}
