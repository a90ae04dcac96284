/* ks-pin-button.h - a small button that keeps a turn or a file in the model's memory, or lets it
 * fade again: functions over a GtkButton.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gtk/gtk.h>

G_BEGIN_DECLS

/* For a file with that content. */
GtkWidget *ks_pin_button_new (const char *hash);
const char *ks_pin_button_get_hash (GtkWidget *button); /* NULL for any other widget */
/* name: of the file; NULL = the turn. */
void ks_pin_button_update (GtkWidget *button, const char *name, gboolean pinned,
                           gboolean can_change);

G_END_DECLS
