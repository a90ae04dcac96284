/* ks-preference-rows.h - pages, groups and the rows of preferences that libadwaita 1.2 lacks: a
 * number, a choice with an explanation that follows it, several lines of text; and the button that
 * brings defaults back. Titles and subtitles are plain text, never markup.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <adwaita.h>

G_BEGIN_DECLS

AdwPreferencesPage *ks_preference_page_new (const char *title, const char *icon_name);
/* At the end of page, which owns it; title and description may be NULL. (transfer none) */
AdwPreferencesGroup *ks_preference_group_new (AdwPreferencesPage *page, const char *title,
                                              const char *description);

/* AdwActionRow for anything: title and subtitle as they are, both read out with suffix (may be
 * NULL), which the row activates. */
GtkWidget *ks_row_new (const char *title, const char *subtitle, GtkWidget *suffix);

typedef struct {
  double min, max, step;
  guint digits;
} KsNumberRange;

GtkWidget *ks_number_row_new (const char *title, const char *subtitle, const KsNumberRange *range);
GtkSpinButton *ks_number_row_get_spin (GtkWidget *row); /* (transfer none) */

typedef struct {
  const char *value;       /* in the settings */
  const char *name;        /* to be translated */
  const char *explanation; /* to be translated; NULL = none */
} KsChoice;

/* AdwComboRow bound to a string key; choices outlives the row.  A value that is not in it shows the
 * first and stays until another is chosen. */
GtkWidget *ks_choice_row_new (const char *title, const char *subtitle, GSettings *settings,
                              const char *key, const KsChoice *choices, guint n_choice);

/* A text of several lines in buffer. */
GtkWidget *ks_text_row_new (const char *title, const char *subtitle, GtkTextBuffer *buffer);

/* A button in the middle, for the end of a page. */
GtkWidget *ks_page_button_new (const char *label, GCallback clicked, gpointer data);

G_END_DECLS
