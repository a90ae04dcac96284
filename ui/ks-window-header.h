/* ks-window-header.h - what stands in the window's header bar: list, New, title, memory gauge,
 * memory panel, menu.  In a narrow window the title goes first, then New and the panel's button;
 * the menu has both. Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define KS_TYPE_WINDOW_HEADER (ks_window_header_get_type ())
G_DECLARE_FINAL_TYPE (KsWindowHeader, ks_window_header, KS, WINDOW_HEADER, GtkWidget)

GtkWidget *ks_window_header_new (void);
/* Plain texts. */
void ks_window_header_set_title (KsWindowHeader *self, const char *title, const char *subtitle);
/* The KsBudgetGauge. (transfer none) */
GtkWidget *ks_window_header_get_gauge (KsWindowHeader *self);

G_END_DECLS
