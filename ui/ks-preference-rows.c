/* ks-preference-rows.c - see ks-preference-rows.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-preference-rows.h"

#include <glib/gi18n.h>

#define TEXT_HEIGHT_PX 84

/* Names of models and folders are shown as they are: before anything else, markup is off. */
static void
set_texts (GtkWidget *row, const char *title, const char *subtitle)
{
  adw_preferences_row_set_use_markup (ADW_PREFERENCES_ROW (row), FALSE);
  adw_preferences_row_set_title (ADW_PREFERENCES_ROW (row), title);
  if (subtitle != NULL)
    adw_action_row_set_subtitle (ADW_ACTION_ROW (row), subtitle);
}

static void
set_label (GtkWidget *widget, const char *label)
{
  gtk_accessible_update_property (GTK_ACCESSIBLE (widget), GTK_ACCESSIBLE_PROPERTY_LABEL, label,
                                  -1);
}

GtkWidget *
ks_row_new (const char *title, const char *subtitle, GtkWidget *suffix)
{
  GtkWidget *row = adw_action_row_new ();

  set_texts (row, title, subtitle);
  if (suffix != NULL) {
    gtk_widget_set_valign (suffix, GTK_ALIGN_CENTER);
    adw_action_row_add_suffix (ADW_ACTION_ROW (row), suffix);
    adw_action_row_set_activatable_widget (ADW_ACTION_ROW (row), suffix);
  }
  return row;
}

GtkWidget *
ks_number_row_new (const char *title, const char *subtitle, const KsNumberRange *range)
{
  GtkAdjustment *adjustment =
      gtk_adjustment_new (range->min, range->min, range->max, range->step, 10 * range->step, 0);
  GtkWidget *spin = gtk_spin_button_new (adjustment, 0, range->digits);

  gtk_spin_button_set_numeric (GTK_SPIN_BUTTON (spin), TRUE);
  gtk_editable_set_width_chars (GTK_EDITABLE (spin), 7);
  gtk_editable_set_max_width_chars (GTK_EDITABLE (spin), 7);
  gtk_widget_add_css_class (spin, "numeric");
  set_label (spin, title);
  return ks_row_new (title, subtitle, spin);
}

GtkSpinButton *
ks_number_row_get_spin (GtkWidget *row)
{
  return GTK_SPIN_BUTTON (adw_action_row_get_activatable_widget (ADW_ACTION_ROW (row)));
}

/* What a choice row needs as long as it lives. */
typedef struct {
  const KsChoice *choices;
  guint n_choice;
  char *subtitle;
} ChoiceRow;

static void
free_choice_row (gpointer data)
{
  ChoiceRow *choice = data;

  g_free (choice->subtitle);
  g_free (choice);
}

static gboolean
index_of_value (GValue *selected, GVariant *variant, gpointer data)
{
  const ChoiceRow *choice = data;
  const char *value = g_variant_get_string (variant, NULL);
  guint i = 0;

  while (i < choice->n_choice && g_strcmp0 (choice->choices[i].value, value) != 0)
    i++;
  g_value_set_uint (selected, i < choice->n_choice ? i : 0);
  return TRUE;
}

static GVariant *
value_of_index (const GValue *selected, const GVariantType *type, gpointer data)
{
  const ChoiceRow *choice = data;
  guint i = g_value_get_uint (selected);

  return i < choice->n_choice ? g_variant_new_string (choice->choices[i].value) : NULL;
}

static void
selected_cb (AdwComboRow *row, GParamSpec *pspec, const ChoiceRow *choice)
{
  guint i = adw_combo_row_get_selected (row);
  const char *text = i < choice->n_choice ? choice->choices[i].explanation : NULL;

  adw_action_row_set_subtitle (ADW_ACTION_ROW (row), text != NULL ? _ (text) : choice->subtitle);
}

GtkWidget *
ks_choice_row_new (const char *title, const char *subtitle, GSettings *settings, const char *key,
                   const KsChoice *choices, guint n_choice)
{
  GtkWidget *row = adw_combo_row_new ();
  g_autoptr (GtkStringList) names = gtk_string_list_new (NULL);
  ChoiceRow *choice = g_new0 (ChoiceRow, 1);

  choice->choices = choices;
  choice->n_choice = n_choice;
  choice->subtitle = g_strdup (subtitle);
  for (guint i = 0; i < n_choice; i++)
    gtk_string_list_append (names, _ (choices[i].name));
  set_texts (row, title, subtitle);
  adw_combo_row_set_model (ADW_COMBO_ROW (row), G_LIST_MODEL (names));
  g_object_set_data_full (G_OBJECT (row), "ks-choice", choice, free_choice_row);
  g_signal_connect (row, "notify::selected", G_CALLBACK (selected_cb), choice);
  g_settings_bind_with_mapping (settings, key, row, "selected", G_SETTINGS_BIND_DEFAULT,
                                index_of_value, value_of_index, choice, NULL);
  selected_cb (ADW_COMBO_ROW (row), NULL, choice);
  return row;
}

static GtkWidget *
label_new (const char *text, const char *css_class)
{
  GtkWidget *label = gtk_label_new (text);

  gtk_label_set_wrap (GTK_LABEL (label), TRUE);
  gtk_label_set_xalign (GTK_LABEL (label), 0);
  gtk_widget_add_css_class (label, css_class);
  return label;
}

GtkWidget *
ks_text_row_new (const char *title, const char *subtitle, GtkTextBuffer *buffer)
{
  GtkWidget *row = adw_preferences_row_new ();
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 6);
  GtkWidget *scroller = gtk_scrolled_window_new ();
  GtkWidget *view = gtk_text_view_new_with_buffer (buffer);
  GtkWidget *label = NULL;

  adw_preferences_row_set_use_markup (ADW_PREFERENCES_ROW (row), FALSE);
  adw_preferences_row_set_title (ADW_PREFERENCES_ROW (row), title); /* for the search */
  gtk_list_box_row_set_activatable (GTK_LIST_BOX_ROW (row), FALSE);
  gtk_widget_set_focusable (row, FALSE);
  gtk_text_view_set_wrap_mode (GTK_TEXT_VIEW (view), GTK_WRAP_WORD_CHAR);
  gtk_text_view_set_accepts_tab (GTK_TEXT_VIEW (view), FALSE);
  g_object_set (view, "top-margin", 6, "bottom-margin", 6, "left-margin", 9, "right-margin", 9,
                NULL);
  set_label (view, title);
  gtk_scrolled_window_set_child (GTK_SCROLLED_WINDOW (scroller), view);
  gtk_scrolled_window_set_policy (GTK_SCROLLED_WINDOW (scroller), GTK_POLICY_NEVER,
                                  GTK_POLICY_AUTOMATIC);
  gtk_scrolled_window_set_min_content_height (GTK_SCROLLED_WINDOW (scroller), TEXT_HEIGHT_PX);
  gtk_widget_set_overflow (scroller, GTK_OVERFLOW_HIDDEN);
  gtk_widget_add_css_class (scroller, "card");
  g_object_set (box, "margin-top", 12, "margin-bottom", 12, "margin-start", 12, "margin-end", 12,
                NULL);
  gtk_box_append (GTK_BOX (box), label_new (title, "title"));
  label = label_new (subtitle, "dim-label");
  gtk_widget_add_css_class (label, "caption");
  gtk_box_append (GTK_BOX (box), label);
  gtk_box_append (GTK_BOX (box), scroller);
  gtk_list_box_row_set_child (GTK_LIST_BOX_ROW (row), box);
  return row;
}

GtkWidget *
ks_page_button_new (const char *label, GCallback clicked, gpointer data)
{
  GtkWidget *button = gtk_button_new_with_mnemonic (label);

  gtk_widget_set_halign (button, GTK_ALIGN_CENTER);
  gtk_widget_add_css_class (button, "pill");
  g_signal_connect (button, "clicked", clicked, data);
  return button;
}

AdwPreferencesPage *
ks_preference_page_new (const char *title, const char *icon_name)
{
  GtkWidget *page = adw_preferences_page_new ();

  adw_preferences_page_set_title (ADW_PREFERENCES_PAGE (page), title);
  adw_preferences_page_set_icon_name (ADW_PREFERENCES_PAGE (page), icon_name);
  return ADW_PREFERENCES_PAGE (page);
}

AdwPreferencesGroup *
ks_preference_group_new (AdwPreferencesPage *page, const char *title, const char *description)
{
  GtkWidget *group = adw_preferences_group_new ();

  if (title != NULL)
    adw_preferences_group_set_title (ADW_PREFERENCES_GROUP (group), title);
  adw_preferences_group_set_description (ADW_PREFERENCES_GROUP (group), description);
  adw_preferences_page_add (page, ADW_PREFERENCES_GROUP (group));
  return ADW_PREFERENCES_GROUP (group);
}
