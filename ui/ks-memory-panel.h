/* ks-memory-panel.h - the side panel about the memory of a chat: its numbers, what is kept by layer
 * and head as a heat map, and what is kept of each turn as a share with words; old turns are folded
 * into groups, so that the panel's length has an end.  What is kept of each picture, where the
 * model has seen some; whether everything is to be kept, and how long that goes.
 * Signals: "open-picture" (const KsMemoryPicture *picture, valid in the handler);
 * "keep-everything" (gboolean keep), by the user.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-memory-view.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define KS_TYPE_MEMORY_PANEL (ks_memory_panel_get_type ())
G_DECLARE_FINAL_TYPE (KsMemoryPanel, ks_memory_panel, KS, MEMORY_PANEL, GtkWidget)

GtkWidget *ks_memory_panel_new (void);
/* The latest numbers, as often as there are some; shown six times a second at most, and a hidden
 * panel only keeps them.  NULL: no model. */
void ks_memory_panel_set_view (KsMemoryPanel *self, const KsMemoryView *view);
/* Whether the session keeps everything, and whether that is the user's choice here. */
void ks_memory_panel_set_keep (KsMemoryPanel *self, gboolean keep, gboolean can_change);
/* First words of each turn, ended by NULL; NULL or too few: turns have only their number. */
void ks_memory_panel_set_turn_labels (KsMemoryPanel *self, const char *const *labels);

G_END_DECLS
