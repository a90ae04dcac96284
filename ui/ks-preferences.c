/* ks-preferences.c - see ks-preferences.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-preferences.h"

#include "ui/ks-answer-preferences.h"
#include "ui/ks-compat.h"
#include "ui/ks-error-text.h"
#include "ui/ks-memory-words.h"
#include "ui/ks-model-manager.h"
#include "ui/ks-picture-preferences.h"
#include "ui/ks-preference-rows.h"
#include "ui/ks-state-preferences.h"

#include <glib/gi18n.h>

#define MIB (1024.0 * 1024.0)
#define TARGET_AFTER_MS 300

/* Lives as long as the dialog. */
typedef struct {
  GtkWidget *dialog; /* this belongs to it */
  KsLibrary *library;
  KsSettings *settings;
  GSettings *gsettings;                  /* NULL without a schema */
  GtkWidget *target_row, *delete_button; /* strong: answers may come after the dialog */
  guint target_source;                   /* the memory target is set when the number rests */
  gboolean showing_target;               /* what changes is no wish of the user */
} Preferences;

static const KsChoice schemes[] = {
    {"system", N_ ("As the Desktop"), NULL},
    {"light", N_ ("Light"), NULL},
    {"dark", N_ ("Dark"), NULL},
};

static const KsChoice policies[] = {
    {"", N_ ("Automatic"), N_ ("The trained gate where the model has one, else unusual entries")},
    {"dbtrimkv", N_ ("DBTrimKV"), N_ ("A trained gate decides, over all layers together")},
    {"trimkv", N_ ("TrimKV"), N_ ("A trained gate decides, in each layer alone")},
    {"keydiff-global", N_ ("KeyDiff"),
     N_ ("Entries unlike the others stay, over all layers together")},
    {"keydiff", N_ ("KeyDiff by Layer"),
     N_ ("Entries unlike the others stay, in each layer alone")},
    {"streaming", N_ ("First and Newest"), N_ ("The first words and the newest text stay")},
    {"h2o", "H2O", N_ ("What all words so far have looked at stays, and the newest text")},
    {"snapkv", "SnapKV", N_ ("What the newest words look at stays, in each head alone")},
    {"adakv", "AdaKV", N_ ("The same, heads that need more keep more")},
    {"pyramidkv", "PyramidKV", N_ ("The same, lower layers keep more than upper ones")},
    {"rkv", "R-KV", N_ ("The same, without what resembles other entries")},
    {"locret", "LocRet", N_ ("Heads trained as LocRet does decide, in each layer alone")},
    {"full", N_ ("Keep Everything"),
     N_ ("Nothing is let go; when the target is reached, answers end")},
    {"random", N_ ("Random"), N_ ("Entries are let go by chance, for comparison")},
};

static const KsChoice modes[] = {
    {"fast", N_ ("Fast"),
     N_ ("Numbers between the weights are rounded to 8 bits; answers hardly differ")},
    {"exact", N_ ("Exact"), N_ ("Nothing is rounded on the way; slower")},
};

static const KsNumberRange thread_range = {0, 1024, 1, 0};

static const char *const general_keys[] = {"color-scheme",  "compute-mode",    "n-thread", "policy",
                                           "snapshot-disk", "snapshot-memory", NULL};

static void
say (Preferences *self, const char *text)
{
  AdwToast *toast = NULL;
  g_autofree char *markup = NULL;

  if (!gtk_widget_get_mapped (self->dialog)) /* closed meanwhile */
    return;
  markup = g_markup_escape_text (text, -1);
  toast = adw_toast_new (markup);
  ks_prefs_add_toast (self->dialog, toast);
}

/* --- defaults, with a way back --- */

typedef struct {
  GSettings *gsettings;
  GVariant *values; /* a{sv} of what the user had changed */
} Undo;

static void
undo_free (gpointer data, GClosure *closure)
{
  Undo *undo = data;

  g_object_unref (undo->gsettings);
  g_variant_unref (undo->values);
  g_free (undo);
}

static void
undo_cb (AdwToast *toast, Undo *undo)
{
  GVariantIter iter;
  const char *key = NULL;
  GVariant *value = NULL;

  g_variant_iter_init (&iter, undo->values);
  while (g_variant_iter_loop (&iter, "{&sv}", &key, &value))
    g_settings_set_value (undo->gsettings, key, value);
}

static void
restore (Preferences *self, const char *const *keys)
{
  AdwToast *toast = adw_toast_new (_ ("Defaults restored"));
  Undo *undo = g_new0 (Undo, 1);
  GVariantBuilder builder;

  g_variant_builder_init (&builder, G_VARIANT_TYPE_VARDICT);
  for (; *keys != NULL; keys++) {
    g_autoptr (GVariant) value = g_settings_get_user_value (self->gsettings, *keys);

    if (value != NULL)
      g_variant_builder_add (&builder, "{sv}", *keys, value);
    g_settings_reset (self->gsettings, *keys);
  }
  undo->gsettings = g_object_ref (self->gsettings);
  undo->values = g_variant_ref_sink (g_variant_builder_end (&builder));
  adw_toast_set_button_label (toast, _ ("_Undo"));
  g_signal_connect_data (toast, "button-clicked", G_CALLBACK (undo_cb), undo, undo_free, 0);
  ks_prefs_add_toast (self->dialog, toast);
}

static void
restore_general_cb (GtkButton *button, Preferences *self)
{
  restore (self, general_keys);
}

static void
restore_answers_cb (GtkButton *button, Preferences *self)
{
  restore (self, ks_answer_page_get_keys ());
}

static void
restore_pictures_cb (GtkButton *button, Preferences *self)
{
  restore (self, ks_picture_page_get_keys ());
}

static void
add_restore_button (AdwPreferencesPage *page, GCallback clicked, Preferences *self)
{
  AdwPreferencesGroup *group = ks_preference_group_new (page, NULL, NULL);

  adw_preferences_group_add (group, ks_page_button_new (_ ("_Restore Defaults"), clicked, self));
}

/* --- memory target --- */

static void
show_target (Preferences *self)
{
  GtkSpinButton *spin = ks_number_row_get_spin (self->target_row);
  guint64 target = ks_library_get_target_bytes (self->library);
  guint64 min = 0, max = 0;
  g_autofree char *least = NULL;
  g_autofree char *most = NULL;
  g_autofree char *subtitle = NULL;

  gtk_widget_set_sensitive (GTK_WIDGET (spin), target > 0);
  if (target == 0) {
    adw_action_row_set_subtitle (ADW_ACTION_ROW (self->target_row),
                                 _ ("Can be set when a model is loaded"));
    return;
  }
  ks_library_get_target_range (self->library, &min, &max);
  least = ks_words_size (min); /* as at the ends of the slider */
  most = ks_words_size (max);
  /* Translators: both are sizes, "160 MiB". */
  subtitle = g_strdup_printf (_ ("For everything on the device, in MiB: %s to %s"), least, most);
  adw_action_row_set_subtitle (ADW_ACTION_ROW (self->target_row), subtitle);
  self->showing_target = TRUE;
  gtk_spin_button_set_range (spin, (double)min / MIB, (double)MAX (max, min) / MIB);
  gtk_spin_button_set_value (spin, (double)target / MIB);
  self->showing_target = FALSE;
}

static void
target_cb (GObject *library, GParamSpec *pspec, Preferences *self)
{
  if (self->target_source == 0) /* else the number that is being chosen is newer */
    show_target (self);
}

static gboolean
set_target_cb (gpointer data)
{
  Preferences *self = data;
  double mib = gtk_spin_button_get_value (ks_number_row_get_spin (self->target_row));

  self->target_source = 0;
  ks_library_set_target_bytes (self->library, (guint64)(mib * MIB));
  return G_SOURCE_REMOVE;
}

static void
target_value_cb (GtkSpinButton *spin, Preferences *self)
{
  if (self->showing_target)
    return;
  g_clear_handle_id (&self->target_source, g_source_remove);
  self->target_source = g_timeout_add (TARGET_AFTER_MS, set_target_cb, self);
}

static GtkWidget *
target_row_new (Preferences *self)
{
  const KsNumberRange range = {0, 1, 16, 0};

  self->target_row = g_object_ref_sink (ks_number_row_new (_ ("Memory target"), NULL, &range));
  show_target (self);
  g_signal_connect (ks_number_row_get_spin (self->target_row), "value-changed",
                    G_CALLBACK (target_value_cb), self);
  g_signal_connect (self->library, "notify::target-bytes", G_CALLBACK (target_cb), self);
  g_signal_connect (self->library, "notify::model-state", G_CALLBACK (target_cb), self);
  return self->target_row;
}

static AdwPreferencesPage *
general_page_new (Preferences *self)
{
  AdwPreferencesPage *page = ks_preference_page_new (_ ("General"), "emblem-system-symbolic");
  const char *problem = ks_settings_get_problem (self->settings);
  AdwPreferencesGroup *group = NULL;
  GtkWidget *threads = NULL;

  if (problem != NULL) {
    g_autofree char *escaped = g_markup_escape_text (problem, -1);

    (void)ks_preference_group_new (page, _ ("Changes Are Not Kept"), escaped);
  }
  group = ks_preference_group_new (page, _ ("Memory"), NULL);
  adw_preferences_group_add (group, target_row_new (self));
  if (self->gsettings == NULL)
    return page;
  adw_preferences_group_add (group,
                             ks_choice_row_new (_ ("What is kept"), NULL, self->gsettings, "policy",
                                                policies, G_N_ELEMENTS (policies)));
  group = ks_preference_group_new (
      page, _ ("Computing"),
      _ ("These and what is kept are in force when a model is loaded the next time."));
  adw_preferences_group_add (group,
                             ks_choice_row_new (_ ("Arithmetic"), NULL, self->gsettings,
                                                "compute-mode", modes, G_N_ELEMENTS (modes)));
  threads = ks_number_row_new (_ ("Threads"), _ ("0 takes one for each core of the machine"),
                               &thread_range);
  g_settings_bind (self->gsettings, "n-thread", ks_number_row_get_spin (threads), "value",
                   G_SETTINGS_BIND_DEFAULT);
  adw_preferences_group_add (group, threads);
  ks_state_group_add (page, self->library);
  group = ks_preference_group_new (page, _ ("Appearance"), NULL);
  adw_preferences_group_add (group,
                             ks_choice_row_new (_ ("Colours"), NULL, self->gsettings,
                                                "color-scheme", schemes, G_N_ELEMENTS (schemes)));
  add_restore_button (page, G_CALLBACK (restore_general_cb), self);
  return page;
}

/* --- privacy --- */

static void
deleted_cb (GObject *library, GAsyncResult *result, gpointer data)
{
  GtkWidget *dialog = data; /* held by this call */
  Preferences *self = g_object_get_data (G_OBJECT (dialog), "ks-preferences");
  g_autoptr (GError) error = NULL;

  if (ks_library_delete_all_finish (KS_LIBRARY (library), result, &error)) {
    say (self, _ ("All sessions and their files are deleted"));
  } else {
    g_autofree char *text = ks_error_text_dup (error);

    say (self, text);
  }
  gtk_widget_set_sensitive (self->delete_button, TRUE);
  g_object_unref (dialog);
}

static void
confirmed_cb (gboolean accepted, gpointer data)
{
  GtkWidget *dialog = data;
  Preferences *self = g_object_get_data (G_OBJECT (dialog), "ks-preferences");

  if (!accepted || self == NULL)
    return;
  gtk_widget_set_sensitive (self->delete_button, FALSE);
  ks_library_delete_all_async (self->library, deleted_cb, g_object_ref (dialog));
}

static char *
dup_question (guint n_session)
{
  if (n_session == 0)
    return g_strdup (_ ("No session is stored; what is left of deleted ones is removed from this "
                        "machine."));
  return g_strdup_printf (
      ngettext ("%u session with its messages and attached files is deleted from this machine. "
                "This cannot be undone. Models and preferences stay.",
                "%u sessions with their messages and attached files are deleted from this "
                "machine. This cannot be undone. Models and preferences stay.",
                n_session),
      n_session);
}

static void
delete_cb (GtkButton *button, Preferences *self)
{
  guint n = 0;
  g_autofree char *body = NULL;

  g_object_get (self->library, "n-sessions", &n, NULL);
  body = dup_question (n);
  ks_confirm (self->dialog, _ ("Delete All My Data?"), body, _ ("_Delete All"), TRUE, confirmed_cb,
              g_object_ref (self->dialog), g_object_unref);
}

static void
show_folder_cb (GtkButton *button, Preferences *self)
{
  g_autoptr (GFile) file = g_file_new_for_path (ks_library_get_data_dir (self->library));

  ks_show_in_files (self->dialog, file);
}

static AdwPreferencesPage *
privacy_page_new (Preferences *self)
{
  AdwPreferencesPage *page = ks_preference_page_new (_ ("Privacy"), "dialog-password-symbolic");
  AdwPreferencesGroup *group = ks_preference_group_new (
      page, _ ("Your Data"),
      _ ("Sessions, attached files and models stay on this machine. Keepsake sends "
         "nothing anywhere."));
  const char *dir = ks_library_get_data_dir (self->library);
  GtkWidget *show = gtk_button_new_with_mnemonic (_ ("_Show in Files"));

  g_signal_connect (show, "clicked", G_CALLBACK (show_folder_cb), self);
  adw_preferences_group_add (group, ks_row_new (_ ("Where it lies"), dir, show));
  group = ks_preference_group_new (page, NULL, NULL);
  self->delete_button = g_object_ref_sink (
      ks_page_button_new (_ ("_Delete All My Data…"), G_CALLBACK (delete_cb), self));
  gtk_widget_add_css_class (self->delete_button, "destructive-action");
  adw_preferences_group_add (group, self->delete_button);
  return page;
}

/* --- the dialog --- */

static void
preferences_free (gpointer data)
{
  Preferences *self = data;

  g_signal_handlers_disconnect_by_data (self->library, self);
  if (self->target_source != 0) {
    g_clear_handle_id (&self->target_source, g_source_remove);
    set_target_cb (self);
  }
  g_object_unref (self->target_row);
  g_object_unref (self->delete_button);
  g_object_unref (self->library);
  g_object_unref (self->settings);
  g_free (self);
}

GtkWidget *
ks_preferences_present (GtkWidget *parent, KsLibrary *library, KsChat *chat)
{
  Preferences *self = g_new0 (Preferences, 1);
  AdwPreferencesPage *pages[7] = {NULL};
  guint n = 0;

  self->library = g_object_ref (library);
  self->settings = g_object_ref (ks_library_get_settings (library));
  self->gsettings = ks_settings_get_gsettings (self->settings);
  pages[n++] = general_page_new (self);
  if (self->gsettings != NULL) {
    pages[n++] = ks_answer_page_new (self->settings);
    add_restore_button (pages[n - 1], G_CALLBACK (restore_answers_cb), self);
  }
  pages[n++] = ks_model_page_new (library);
  if (self->gsettings != NULL) {
    pages[n++] = ks_picture_page_new (library);
    add_restore_button (pages[n - 1], G_CALLBACK (restore_pictures_cb), self);
  }
  if (chat != NULL)
    pages[n++] = ks_session_page_new (self->settings, chat);
  pages[n++] = privacy_page_new (self);
  self->dialog = ks_prefs_present (parent, _ ("Preferences"), pages, TRUE);
  g_object_set_data_full (G_OBJECT (self->dialog), "ks-preferences", self, preferences_free);
  return self->dialog;
}
