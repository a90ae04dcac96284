/* ks-wrap-layout.h - children side by side in columns of one width, in as many rows as they need.
 * AdwWrapBox is libadwaita 1.7; GtkFlowBox keeps the Tab key to itself.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define KS_TYPE_WRAP_LAYOUT (ks_wrap_layout_get_type ())
G_DECLARE_FINAL_TYPE (KsWrapLayout, ks_wrap_layout, KS, WRAP_LAYOUT, GtkLayoutManager)

/* column_px: what a column has at least when there is more than one.  What does not fill the width
 * stands at its end. */
GtkLayoutManager *ks_wrap_layout_new (int column_px, int spacing_px);

G_END_DECLS
