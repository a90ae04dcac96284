/* ks-eyes-button.c - see ks-eyes-button.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-eyes-button.h"

#include "ui/ks-compat.h"

#include <glib/gi18n.h>

#define PATH "ks-path"
#define NAME_CHARS 36

struct _KsEyesButton {
  AdwBin parent_instance;
  KsLibrary *library; /* weak: libadwaita 1.2 keeps rows of closed dialogs */
  KsModelEntry *entry;
  GtkMenuButton *button;
};

enum { CHOSEN, N_SIGNAL };

static guint signals[N_SIGNAL];

G_DEFINE_FINAL_TYPE (KsEyesButton, ks_eyes_button, ADW_TYPE_BIN)

char *
ks_eyes_dup_words (KsModelEntry *entry)
{
  const char *path = ks_model_entry_get_mmproj (entry);
  g_autofree char *name = path == NULL ? NULL : g_filename_display_basename (path);

  /* Translators: %s is the name of a file. */
  return name == NULL ? g_strdup (_ ("Sees no pictures"))
                      : g_strdup_printf (_ ("Sees pictures with %s"), name);
}

/* path "" = none. */
static void
choose (KsEyesButton *self, const char *path)
{
  if (self->library == NULL)
    return;
  gtk_menu_button_popdown (self->button);
  ks_library_set_mmproj (self->library, ks_model_entry_get_path (self->entry), path);
  g_signal_emit (self, signals[CHOSEN], 0);
}

static void
toggled_cb (GtkCheckButton *check, KsEyesButton *self)
{
  if (gtk_check_button_get_active (check))
    choose (self, g_object_get_data (G_OBJECT (check), PATH));
}

static void
file_cb (GListModel *files, gpointer data)
{
  KsEyesButton *self = data;
  g_autoptr (GFile) file = files == NULL ? NULL : g_list_model_get_item (files, 0);
  g_autofree char *path = file == NULL ? NULL : g_file_get_path (file);

  if (path != NULL)
    choose (self, path);
}

static void
other_cb (GtkButton *button, KsEyesButton *self)
{
  g_autoptr (GListStore) filters = g_list_store_new (GTK_TYPE_FILE_FILTER);
  g_autoptr (GtkFileFilter) filter = gtk_file_filter_new ();

  gtk_menu_button_popdown (self->button);
  gtk_file_filter_set_name (filter, _ ("Vision files (GGUF)"));
  gtk_file_filter_add_pattern (filter, "*.gguf");
  g_list_store_append (filters, filter);
  ks_file_open (GTK_WIDGET (self), _ ("Choose a Vision File"), G_LIST_MODEL (filters), FALSE,
                file_cb, g_object_ref (self), g_object_unref);
}

static GtkCheckButton *
add_choice (KsEyesButton *self, GtkWidget *box, GtkCheckButton *group, const char *label,
            const char *path, gboolean is_active)
{
  GtkWidget *check = gtk_check_button_new ();
  GtkWidget *text = gtk_label_new (label);

  gtk_label_set_ellipsize (GTK_LABEL (text), PANGO_ELLIPSIZE_MIDDLE);
  gtk_label_set_max_width_chars (GTK_LABEL (text), NAME_CHARS);
  gtk_label_set_xalign (GTK_LABEL (text), 0);
  gtk_widget_set_tooltip_text (check, path[0] != '\0' ? path : NULL);
  gtk_check_button_set_group (GTK_CHECK_BUTTON (check), group);
  gtk_check_button_set_active (GTK_CHECK_BUTTON (check), is_active);
  gtk_check_button_set_child (GTK_CHECK_BUTTON (check), text);
  gtk_accessible_update_property (GTK_ACCESSIBLE (check), GTK_ACCESSIBLE_PROPERTY_LABEL, label, -1);
  g_object_set_data_full (G_OBJECT (check), PATH, g_strdup (path), g_free);
  g_signal_connect (check, "toggled", G_CALLBACK (toggled_cb), self);
  gtk_box_append (GTK_BOX (box), check);
  return GTK_CHECK_BUTTON (check);
}

static GtkWidget *
list_new (KsEyesButton *self)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 6);
  GtkWidget *other = gtk_button_new_with_mnemonic (_ ("_Other File…"));
  GtkWidget *title = gtk_label_new (_ ("Sees pictures with"));
  const char *used = ks_model_entry_get_mmproj (self->entry);
  const char *const *paths = ks_model_entry_get_mmproj_choices (self->entry);
  gboolean is_listed = used == NULL;
  GtkCheckButton *group = NULL;

  gtk_label_set_xalign (GTK_LABEL (title), 0);
  gtk_widget_add_css_class (title, "heading");
  gtk_box_append (GTK_BOX (box), title);
  group = add_choice (self, box, NULL, _ ("Nothing: sees no pictures"), "", used == NULL);
  for (guint i = 0; paths != NULL && paths[i] != NULL; i++) {
    g_autofree char *name = g_filename_display_basename (paths[i]);
    gboolean is_used = g_strcmp0 (paths[i], used) == 0;

    is_listed |= is_used;
    add_choice (self, box, group, name, paths[i], is_used);
  }
  if (!is_listed) {
    g_autofree char *name = g_filename_display_basename (used);

    add_choice (self, box, group, name, used, TRUE);
  }
  g_signal_connect (other, "clicked", G_CALLBACK (other_cb), self);
  gtk_box_append (GTK_BOX (box), other);
  return box;
}

static void
ks_eyes_button_dispose (GObject *object)
{
  KsEyesButton *self = KS_EYES_BUTTON (object);

  g_clear_weak_pointer (&self->library);
  g_clear_object (&self->entry);
  G_OBJECT_CLASS (ks_eyes_button_parent_class)->dispose (object);
}

static void
ks_eyes_button_class_init (KsEyesButtonClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = ks_eyes_button_dispose;
  signals[CHOSEN] = g_signal_new ("chosen", KS_TYPE_EYES_BUTTON, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                  NULL, G_TYPE_NONE, 0);
}

static void
ks_eyes_button_init (KsEyesButton *self)
{
  GtkWidget *button = gtk_menu_button_new ();

  self->button = GTK_MENU_BUTTON (button);
  gtk_widget_set_valign (button, GTK_ALIGN_CENTER);
  gtk_widget_add_css_class (button, "flat");
  adw_bin_set_child (ADW_BIN (self), button);
}

GtkWidget *
ks_eyes_button_new (KsLibrary *library, KsModelEntry *entry)
{
  KsEyesButton *self = g_object_new (KS_TYPE_EYES_BUTTON, NULL);
  GtkWidget *popover = gtk_popover_new ();
  /* Translators: %s is the name of a model. */
  g_autofree char *label =
      g_strdup_printf (_ ("What %s sees with"), ks_model_entry_get_name (entry));
  g_autofree char *words = ks_eyes_dup_words (entry);

  g_set_weak_pointer (&self->library, library);
  self->entry = g_object_ref (entry);
  gtk_menu_button_set_icon_name (self->button, ks_model_entry_get_mmproj (entry) != NULL
                                                   ? "view-reveal-symbolic"
                                                   : "view-conceal-symbolic");
  gtk_widget_set_tooltip_text (GTK_WIDGET (self->button), words);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->button), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  label, -1);
  gtk_popover_set_child (GTK_POPOVER (popover), list_new (self));
  gtk_menu_button_set_popover (self->button, popover);
  return GTK_WIDGET (self);
}
