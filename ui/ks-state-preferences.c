/* ks-state-preferences.c - see ks-state-preferences.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-state-preferences.h"

#include "ui/ks-error-text.h"
#include "ui/ks-memory-words.h"
#include "ui/ks-preference-rows.h"

#include <glib/gi18n.h>

static const KsNumberRange memory_range = {0, 65536, 64, 0};
static const KsNumberRange disk_range = {0, 1048576, 256, 0};

static GtkWidget *
number_row_new (GSettings *settings, const char *key, const char *title, const char *subtitle,
                const KsNumberRange *range)
{
  GtkWidget *row = ks_number_row_new (title, subtitle, range);

  g_settings_bind (settings, key, ks_number_row_get_spin (row), "value", G_SETTINGS_BIND_DEFAULT);
  return row;
}

/* The row may have gone with its dialog: it is held until then. */
static void
measured_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (AdwActionRow) row = user_data;
  g_autoptr (GError) error = NULL;
  g_autofree char *text = NULL, *memory = NULL, *disk = NULL;
  KsStateSizes sizes;

  if (!ks_library_measure_states_finish (KS_LIBRARY (source), result, &sizes, &error)) {
    text = ks_error_text_dup (error);
  } else {
    memory = ks_words_size (sizes.memory_bytes);
    disk = ks_words_size (sizes.disk_bytes);
    /* Translators: two sizes, "12 MiB in memory, 300 MiB on the disk" */
    text = g_strdup_printf (_ ("%s in memory, %s on the disk"), memory, disk);
  }
  adw_action_row_set_subtitle (row, text);
}

static void
clear_cb (GtkWidget *button, KsLibrary *library)
{
  GtkWidget *row = gtk_widget_get_ancestor (button, ADW_TYPE_ACTION_ROW);

  ks_library_measure_states_async (library, TRUE, measured_cb, g_object_ref (row));
}

void
ks_state_group_add (AdwPreferencesPage *page, KsLibrary *library)
{
  GSettings *settings = ks_settings_get_gsettings (ks_library_get_settings (library));
  AdwPreferencesGroup *group = ks_preference_group_new (
      page, _ ("Kept States of Sessions"),
      _ ("What the model remembers is kept, so that going back to a session or an answer needs no "
         "reading. New limits are in force when a model is loaded the next time."));
  GtkWidget *button = gtk_button_new_with_mnemonic (_ ("_Clear"));
  GtkWidget *row = ks_row_new (_ ("States kept now"), "\u2026", button);

  adw_preferences_group_add (
      group, number_row_new (settings, "snapshot-memory", _ ("States in memory"),
                             _ ("In MiB, beside the memory target"), &memory_range));
  adw_preferences_group_add (group,
                             number_row_new (settings, "snapshot-disk", _ ("States on the disk"),
                                             _ ("In MiB; 0 keeps nothing there"), &disk_range));
  g_signal_connect_object (button, "clicked", G_CALLBACK (clear_cb), library, G_CONNECT_DEFAULT);
  adw_preferences_group_add (group, row);
  ks_library_measure_states_async (library, FALSE, measured_cb, g_object_ref (row));
}
