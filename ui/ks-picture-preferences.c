/* ks-picture-preferences.c - see ks-picture-preferences.h.
 * Pixels are chosen from a list of squares; a number of the settings file that is none of them has
 * an entry of its own. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-picture-preferences.h"

#include "ui/ks-memory-words.h"
#include "ui/ks-preference-rows.h"

#include <glib/gi18n.h>

#define LEAST_KEY "picture-min-pixels"
#define MOST_KEY "picture-max-pixels"

static const char *const keys[] = {
    LEAST_KEY,        MOST_KEY,       "split-pictures", "recognise-text", "embedding-memory",
    "embedding-disk", "video-frames", "visionzip",      "fastv",          NULL};

static const KsChoice zips[] = {
    {"", N_ ("Off"),
     N_ ("Keeps what the eyes attend to most and merges the rest, so that pictures cost less")},
    {"162,30", N_ ("192 tokens a view"), N_ ("162 stay, the others are merged into 30")},
    {"108,20", N_ ("128 tokens a view"), N_ ("108 stay, the others are merged into 20")},
    {"54,10", N_ ("64 tokens a view"), N_ ("54 stay, the others are merged into 10")},
};

static const KsChoice fastvs[] = {
    {"", N_ ("Off"),
     N_ ("Later layers skip what of a picture is looked at least, so that it is read faster")},
    {"2,0.5", N_ ("Half of a picture"), N_ ("Is left out behind the second layer")},
    {"2,0.75", N_ ("Three quarters of a picture"), N_ ("Are left out behind the second layer")},
};

static const guint sides[] = {256, 384, 512, 768, 1024, 1536, 2048, 3072};

static const KsNumberRange frames_range = {1, 1024, 1, 0};
static const KsNumberRange memory_range = {0, 65536, 16, 0};
static const KsNumberRange disk_range = {0, 1048576, 64, 0};

const char *const *
ks_picture_page_get_keys (void)
{
  return keys;
}

/* --- a number of pixels --- */

/* What a row of pixels needs as long as it lives. */
typedef struct {
  GSettings *settings;
  const char *key, *other_key;
  GArray *pixels; /* guint, of the entries of its list */
  gboolean is_showing;
} PixelRow;

static void
pixel_row_free (gpointer data)
{
  PixelRow *row = data;

  g_array_unref (row->pixels);
  g_object_unref (row->settings);
  g_free (row);
}

static char *
dup_pixels_name (guint n_pixel)
{
  g_autofree char *count = ks_words_count (n_pixel);

  if (n_pixel == 0)
    return g_strdup (_ ("As the model wants"));
  for (gsize i = 0; i < G_N_ELEMENTS (sides); i++)
    if (n_pixel == sides[i] * sides[i])
      /* Translators: sides of a square in pixels. */
      return g_strdup_printf (C_ ("picture size", "%u × %u"), sides[i], sides[i]);
  return g_strdup_printf (ngettext ("%s pixel", "%s pixels", n_pixel), count);
}

static void
show_pixels (AdwComboRow *combo, PixelRow *row)
{
  guint n_pixel = g_settings_get_uint (row->settings, row->key), i = 0;

  while (i < row->pixels->len && g_array_index (row->pixels, guint, i) != n_pixel)
    i++;
  row->is_showing = TRUE;
  if (i == row->pixels->len) {
    g_autofree char *name = dup_pixels_name (n_pixel);

    g_array_append_val (row->pixels, n_pixel);
    gtk_string_list_append (GTK_STRING_LIST (adw_combo_row_get_model (combo)), name);
  }
  adw_combo_row_set_selected (combo, i);
  row->is_showing = FALSE;
}

static void
stored_cb (GSettings *settings, const char *key, AdwComboRow *combo)
{
  show_pixels (combo, g_object_get_data (G_OBJECT (combo), "ks-pixels"));
}

/* The least is never above the most: the other one follows. */
static void
selected_cb (AdwComboRow *combo, GParamSpec *pspec, PixelRow *row)
{
  guint i = adw_combo_row_get_selected (combo), n_pixel = 0;
  guint other = g_settings_get_uint (row->settings, row->other_key);
  gboolean is_most = g_strcmp0 (row->key, MOST_KEY) == 0;

  if (row->is_showing || i >= row->pixels->len)
    return;
  n_pixel = g_array_index (row->pixels, guint, i);
  if (n_pixel > 0 && other > 0 && (is_most ? other > n_pixel : other < n_pixel))
    g_settings_set_uint (row->settings, row->other_key, n_pixel);
  g_settings_set_uint (row->settings, row->key, n_pixel);
}

static GtkWidget *
pixel_row_new (GSettings *settings, const char *key, const char *other_key, const char *title,
               const char *subtitle)
{
  GtkWidget *combo = adw_combo_row_new ();
  PixelRow *row = g_new0 (PixelRow, 1);
  g_autoptr (GtkStringList) names = gtk_string_list_new (NULL);
  g_autofree char *signal = g_strconcat ("changed::", key, NULL);

  row->settings = g_object_ref (settings);
  row->key = key;
  row->other_key = other_key;
  row->pixels = g_array_new (FALSE, FALSE, sizeof (guint));
  for (gsize i = 0; i <= G_N_ELEMENTS (sides); i++) {
    guint n_pixel = i == 0 ? 0 : sides[i - 1] * sides[i - 1];
    g_autofree char *name = dup_pixels_name (n_pixel);

    g_array_append_val (row->pixels, n_pixel);
    gtk_string_list_append (names, name);
  }
  adw_preferences_row_set_use_markup (ADW_PREFERENCES_ROW (combo), FALSE);
  adw_preferences_row_set_title (ADW_PREFERENCES_ROW (combo), title);
  adw_action_row_set_subtitle (ADW_ACTION_ROW (combo), subtitle);
  adw_combo_row_set_model (ADW_COMBO_ROW (combo), G_LIST_MODEL (names));
  g_object_set_data_full (G_OBJECT (combo), "ks-pixels", row, pixel_row_free);
  show_pixels (ADW_COMBO_ROW (combo), row);
  g_signal_connect (combo, "notify::selected", G_CALLBACK (selected_cb), row);
  g_signal_connect_object (settings, signal, G_CALLBACK (stored_cb), combo, G_CONNECT_DEFAULT);
  return combo;
}

/* --- the page --- */

static GtkWidget *
switch_row_new (GSettings *settings, const char *key, const char *title, const char *subtitle)
{
  GtkWidget *toggle = gtk_switch_new ();

  gtk_accessible_update_property (GTK_ACCESSIBLE (toggle), GTK_ACCESSIBLE_PROPERTY_LABEL, title,
                                  -1);
  g_settings_bind (settings, key, toggle, "active", G_SETTINGS_BIND_DEFAULT);
  return ks_row_new (title, subtitle, toggle);
}

static GtkWidget *
number_row_new (GSettings *settings, const char *key, const char *title, const char *subtitle,
                const KsNumberRange *range)
{
  GtkWidget *row = ks_number_row_new (title, subtitle, range);

  g_settings_bind (settings, key, ks_number_row_get_spin (row), "value", G_SETTINGS_BIND_DEFAULT);
  return row;
}

static GtkWidget *
reload_row_new (KsLibrary *library)
{
  GtkWidget *button = gtk_button_new_with_mnemonic (_ ("_Load Again"));

  g_signal_connect_object (button, "clicked", G_CALLBACK (ks_library_reload_model), library,
                           G_CONNECT_SWAPPED);
  return ks_row_new (_ ("The model that is loaded now"),
                     _ ("Takes these numbers when it is loaded again"), button);
}

AdwPreferencesPage *
ks_picture_page_new (KsLibrary *library)
{
  GSettings *gsettings = ks_settings_get_gsettings (ks_library_get_settings (library));
  AdwPreferencesPage *page = ks_preference_page_new (_ ("Pictures"), "image-x-generic-symbolic");
  AdwPreferencesGroup *group = ks_preference_group_new (
      page, _ ("What the Model Sees"), _ ("More pixels show finer detail and cost more tokens."));

  adw_preferences_group_add (
      group, pixel_row_new (gsettings, MOST_KEY, LEAST_KEY, _ ("Largest picture"),
                            _ ("Larger ones are reduced to this, if the model takes any size")));
  adw_preferences_group_add (
      group, pixel_row_new (gsettings, LEAST_KEY, MOST_KEY, _ ("Smallest picture"),
                            _ ("Smaller ones are enlarged to this, if the model takes any size")));
  adw_preferences_group_add (
      group, switch_row_new (gsettings, "split-pictures", _ ("Look at tiles"),
                             _ ("If the model can: finer detail; else the whole picture once")));
  adw_preferences_group_add (
      group, number_row_new (gsettings, "video-frames", _ ("Frames of a video"),
                             _ ("At first; can be changed for each video before it is sent"),
                             &frames_range));
  adw_preferences_group_add (
      group, switch_row_new (gsettings, "recognise-text", _ ("Read the text in pictures"),
                             _ ("Recognised by machine (OCR) and marked as that: it may hold "
                                "errors")));
  group = ks_preference_group_new (page, _ ("Fewer Tokens of a Picture"),
                                   _ ("Faster and smaller, for some loss of detail."));
  adw_preferences_group_add (group,
                             ks_choice_row_new (_ ("Merge tokens (VisionZip)"), NULL, gsettings,
                                                "visionzip", zips, G_N_ELEMENTS (zips)));
  adw_preferences_group_add (group,
                             ks_choice_row_new (_ ("Leave out tokens (FastV)"), NULL, gsettings,
                                                "fastv", fastvs, G_N_ELEMENTS (fastvs)));
  group = ks_preference_group_new (
      page, _ ("Pictures That Were Looked At"),
      _ ("What the model made of a picture is kept, so that it looks at each one once."));
  adw_preferences_group_add (group, number_row_new (gsettings, "embedding-memory", _ ("In memory"),
                                                    _ ("In MiB, inside the memory target"),
                                                    &memory_range));
  adw_preferences_group_add (group,
                             number_row_new (gsettings, "embedding-disk", _ ("On the disk"),
                                             _ ("In MiB; 0 keeps nothing there"), &disk_range));
  group = ks_preference_group_new (page, NULL, NULL);
  adw_preferences_group_add (group, reload_row_new (library));
  return page;
}
