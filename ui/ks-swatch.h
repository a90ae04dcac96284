/* ks-swatch.h - a small square of a colour, for legends; also where widgets that draw themselves
 * take their colours from: the style sheet gives a swatch its `color` by its class.  Threads: main.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define KS_TYPE_SWATCH (ks_swatch_get_type ())
G_DECLARE_FINAL_TYPE (KsSwatch, ks_swatch, KS, SWATCH, GtkWidget)

/* css_class: rule in data/style.css. */
GtkWidget *ks_swatch_new (const char *css_class);
/* A child that is never shown and only carries the colour. */
GtkWidget *ks_swatch_new_hidden (const char *css_class, GtkWidget *parent);
void ks_swatch_get_color (GtkWidget *swatch, GdkRGBA *out_color);

G_END_DECLS
