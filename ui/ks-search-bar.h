/* ks-search-bar.h - the entry that finds words in titles and messages of all sessions.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define KS_TYPE_SEARCH_BAR (ks_search_bar_get_type ())
G_DECLARE_FINAL_TYPE (KsSearchBar, ks_search_bar, KS, SEARCH_BAR, GtkWidget)

/* Signals: "search" (const char *query), a moment after the last key, "" = no search any more;
 * "leave": Escape in an empty entry, or the arrow down into the list. */
GtkWidget *ks_search_bar_new (void);
const char *ks_search_bar_get_query (KsSearchBar *self); /* without blanks around, "" = none */
void ks_search_bar_clear (KsSearchBar *self);
void ks_search_bar_focus (KsSearchBar *self);

G_END_DECLS
