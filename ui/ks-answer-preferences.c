/* ks-answer-preferences.c - see ks-answer-preferences.h.
 * One table of numbers makes both pages.  On the page of a session a number is its own when it lies
 * in its range; the session stores -1 for one that follows the program. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-answer-preferences.h"

#include "ui/ks-preference-rows.h"

#include <glib/gi18n.h>

#define SAVE_AFTER_MS 400

typedef enum {
  TEMPERATURE,
  TOP_P,
  TOP_K,
  MIN_P,
  REPEAT_PENALTY,
  SEED,
  MAX_TOKENS,
  N_NUMBER
} Number;

static const struct {
  const char *key, *title, *subtitle;
  KsNumberRange range;
} numbers[N_NUMBER] = {
    [TEMPERATURE] = {"temperature",
                     N_ ("Variety"),
                     N_ ("Temperature: 0 always takes the likeliest word, higher values vary more"),
                     {0, 5, 0.05, 2}},
    [TOP_P] = {"top-p",
               N_ ("Share of likely words"),
               N_ ("Top-p: rarer words than this share are never taken; 1 allows all"),
               {0.01, 1, 0.01, 2}},
    [TOP_K] = {"top-k",
               N_ ("Number of likely words"),
               N_ ("Top-k: only this many are chosen from; 0 sets no limit"),
               {0, 1000, 1, 0}},
    [MIN_P] = {"min-p",
               N_ ("Least likelihood"),
               N_ ("Min-p: compared to the likeliest word; 0 sets no limit"),
               {0, 1, 0.01, 2}},
    [REPEAT_PENALTY] = {"repeat-penalty",
                        N_ ("Avoid repetition"),
                        N_ ("Repeat penalty: 1 does nothing, higher values avoid recent words"),
                        {1, 2, 0.05, 2}},
    [SEED] = {"seed",
              N_ ("Seed"),
              N_ ("The same number gives the same answer again; −1 takes another one each time"),
              {-1, 9007199254740992.0, 1, 0}},
    [MAX_TOKENS] = {"max-tokens",
                    N_ ("Longest answer"),
                    N_ ("In tokens, about three quarters of a word each; a longer answer stops "
                        "and can be continued"),
                    {1, 1000000, 64, 0}},
};

static const char *const keys[] = {"temperature", "top-p",          "top-k",
                                   "min-p",       "repeat-penalty", "seed",
                                   "max-tokens",  "system-prompt",  NULL};

const char *const *
ks_answer_page_get_keys (void)
{
  return keys;
}

/* --- all sessions --- */

AdwPreferencesPage *
ks_answer_page_new (KsSettings *settings)
{
  GSettings *gsettings = ks_settings_get_gsettings (settings);
  AdwPreferencesPage *page = ks_preference_page_new (_ ("Answers"), "text-x-generic-symbolic");
  AdwPreferencesGroup *group = ks_preference_group_new (
      page, _ ("How Words Are Chosen"),
      _ ("In force from the next answer on, in sessions that have no value of their own."));
  g_autoptr (GtkTextBuffer) buffer = gtk_text_buffer_new (NULL);

  for (guint i = 0; i < N_NUMBER; i++) {
    GtkWidget *row =
        ks_number_row_new (_ (numbers[i].title), _ (numbers[i].subtitle), &numbers[i].range);

    g_settings_bind (gsettings, numbers[i].key, ks_number_row_get_spin (row), "value",
                     G_SETTINGS_BIND_DEFAULT);
    adw_preferences_group_add (group, row);
  }
  group = ks_preference_group_new (page, _ ("Instruction"), NULL);
  g_settings_bind (gsettings, "system-prompt", buffer, "text", G_SETTINGS_BIND_DEFAULT);
  adw_preferences_group_add (
      group, ks_text_row_new (_ ("System prompt"),
                              _ ("Stands in front of every session; empty takes the model's own"),
                              buffer));
  return page;
}

/* --- one session --- */

/* Lives as long as its page. */
typedef struct {
  KsChat *chat;
  KsSettings *settings;
  GtkSpinButton *spins[N_NUMBER];
  GtkWidget *rows[N_NUMBER], *clears[N_NUMBER];
  GtkTextBuffer *prompt;
  guint save_source; /* the prompt is stored when typing rests */
  gboolean showing;  /* what changes is no wish of the user */
} SessionPage;

static double
get_own (const KsSessionSettings *settings, Number number)
{
  switch (number) {
  case TEMPERATURE:
    return settings->temperature;
  case TOP_P:
    return settings->top_p;
  case TOP_K:
    return settings->top_k;
  case MIN_P:
    return settings->min_p;
  case REPEAT_PENALTY:
    return settings->repeat_penalty;
  case SEED:
    return (double)settings->seed;
  case MAX_TOKENS:
    return settings->max_tokens;
  case N_NUMBER:
    break;
  }
  return -1;
}

static void
set_own (KsSessionSettings *settings, Number number, double value)
{
  switch (number) {
  case TEMPERATURE:
    settings->temperature = value;
    break;
  case TOP_P:
    settings->top_p = value;
    break;
  case TOP_K:
    settings->top_k = (gint)value;
    break;
  case MIN_P:
    settings->min_p = value;
    break;
  case REPEAT_PENALTY:
    settings->repeat_penalty = value;
    break;
  case SEED:
    settings->seed = (gint64)value;
    break;
  case MAX_TOKENS:
    settings->max_tokens = (gint)value;
    break;
  case N_NUMBER:
    break;
  }
}

static double
get_common (KsSettings *settings, Number number)
{
  switch (number) {
  case TEMPERATURE:
    return ks_settings_get_temperature (settings);
  case TOP_P:
    return ks_settings_get_top_p (settings);
  case TOP_K:
    return ks_settings_get_top_k (settings);
  case MIN_P:
    return ks_settings_get_min_p (settings);
  case REPEAT_PENALTY:
    return ks_settings_get_repeat_penalty (settings);
  case SEED:
    return (double)ks_settings_get_seed (settings);
  case MAX_TOKENS:
    return ks_settings_get_max_tokens (settings);
  case N_NUMBER:
    break;
  }
  return 0;
}

static void
show_number (SessionPage *page, Number number)
{
  double own = get_own (ks_chat_get_settings (page->chat), number);
  gboolean is_own = own >= 0;

  g_return_if_fail (number < N_NUMBER);

  page->showing = TRUE;
  gtk_spin_button_set_value (page->spins[number],
                             is_own ? own : get_common (page->settings, number));
  page->showing = FALSE;
  adw_action_row_set_subtitle (ADW_ACTION_ROW (page->rows[number]),
                               is_own ? _ ("Only in this session") : _ ("As in all sessions"));
  gtk_widget_set_visible (page->clears[number], is_own);
}

static void
store_number (SessionPage *page, Number number, double value)
{
  g_autoptr (KsSessionSettings) settings =
      ks_session_settings_copy (ks_chat_get_settings (page->chat));

  set_own (settings, number, value);
  ks_chat_set_settings (page->chat, settings);
  show_number (page, number);
}

static Number
number_of (gpointer widget)
{
  return (Number)GPOINTER_TO_UINT (g_object_get_data (widget, "ks-number"));
}

static void
value_cb (GtkSpinButton *spin, SessionPage *page)
{
  if (!page->showing)
    store_number (page, number_of (spin), gtk_spin_button_get_value (spin));
}

static void
clear_cb (GtkButton *button, SessionPage *page)
{
  Number number = number_of (button);

  gtk_widget_grab_focus (GTK_WIDGET (page->spins[number])); /* the button disappears */
  store_number (page, number, -1);
}

static void
store_prompt (SessionPage *page)
{
  g_autoptr (KsSessionSettings) settings =
      ks_session_settings_copy (ks_chat_get_settings (page->chat));
  GtkTextIter start, end;
  g_autofree char *text = NULL;

  gtk_text_buffer_get_bounds (page->prompt, &start, &end);
  text = gtk_text_buffer_get_text (page->prompt, &start, &end, FALSE);
  if (g_strcmp0 (text, settings->system_prompt != NULL ? settings->system_prompt : "") == 0)
    return;
  g_free (settings->system_prompt);
  settings->system_prompt = text[0] != '\0' ? g_steal_pointer (&text) : NULL;
  ks_chat_set_settings (page->chat, settings);
}

static gboolean
save_cb (gpointer data)
{
  SessionPage *page = data;

  page->save_source = 0;
  store_prompt (page);
  return G_SOURCE_REMOVE;
}

static void
prompt_cb (GtkTextBuffer *buffer, SessionPage *page)
{
  g_clear_handle_id (&page->save_source, g_source_remove);
  page->save_source = g_timeout_add (SAVE_AFTER_MS, save_cb, page);
}

static void
session_page_free (gpointer data)
{
  SessionPage *page = data;

  if (page->save_source != 0) {
    g_clear_handle_id (&page->save_source, g_source_remove);
    store_prompt (page);
  }
  g_object_unref (page->prompt);
  g_object_unref (page->chat);
  g_object_unref (page->settings);
  g_free (page);
}

static GtkWidget *
session_row_new (SessionPage *page, Number number)
{
  GtkWidget *row = ks_number_row_new (_ (numbers[number].title), NULL, &numbers[number].range);
  GtkWidget *clear = gtk_button_new_from_icon_name ("edit-clear-symbolic");
  g_autofree char *label = NULL;

  /* Translators: %s is the title of a setting. */
  label = g_strdup_printf (_ ("%s: as in all sessions"), _ (numbers[number].title));
  gtk_widget_set_valign (clear, GTK_ALIGN_CENTER);
  gtk_widget_add_css_class (clear, "flat");
  gtk_widget_set_tooltip_text (clear, _ ("As in all sessions"));
  gtk_accessible_update_property (GTK_ACCESSIBLE (clear), GTK_ACCESSIBLE_PROPERTY_LABEL, label, -1);
  gtk_widget_set_tooltip_text (row, _ (numbers[number].subtitle));
  adw_action_row_add_suffix (ADW_ACTION_ROW (row), clear);
  page->rows[number] = row;
  page->clears[number] = clear;
  page->spins[number] = ks_number_row_get_spin (row);
  g_object_set_data (G_OBJECT (clear), "ks-number", GUINT_TO_POINTER ((guint)number));
  g_object_set_data (G_OBJECT (page->spins[number]), "ks-number", GUINT_TO_POINTER ((guint)number));
  show_number (page, number);
  g_signal_connect (page->spins[number], "value-changed", G_CALLBACK (value_cb), page);
  g_signal_connect (clear, "clicked", G_CALLBACK (clear_cb), page);
  return row;
}

AdwPreferencesPage *
ks_session_page_new (KsSettings *settings, KsChat *chat)
{
  AdwPreferencesPage *widget =
      ks_preference_page_new (_ ("This Session"), "document-open-recent-symbolic");
  AdwPreferencesGroup *group = NULL;
  SessionPage *page = g_new0 (SessionPage, 1);
  const KsSessionSettings *own = ks_chat_get_settings (chat);

  page->chat = g_object_ref (chat);
  page->settings = g_object_ref (settings);
  page->prompt = gtk_text_buffer_new (NULL);
  g_object_set_data_full (G_OBJECT (widget), "ks-session-page", page, session_page_free);
  group = ks_preference_group_new (widget, _ ("Instruction"), ks_chat_get_read_only_reason (chat));
  adw_preferences_group_add (
      group, ks_text_row_new (_ ("System prompt"),
                              _ ("Stands in front of this session; empty takes that of all "
                                 "sessions. After a change the model reads the session again."),
                              page->prompt));
  gtk_text_buffer_set_text (page->prompt, own->system_prompt != NULL ? own->system_prompt : "", -1);
  g_signal_connect (page->prompt, "changed", G_CALLBACK (prompt_cb), page);
  group = ks_preference_group_new (widget, _ ("How Words Are Chosen"),
                                   _ ("In force from the next answer on."));
  for (Number number = 0; number < N_NUMBER; number++)
    adw_preferences_group_add (group, session_row_new (page, number));
  gtk_widget_set_sensitive (GTK_WIDGET (widget), ks_chat_get_read_only_reason (chat) == NULL);
  return widget;
}
