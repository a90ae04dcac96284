/* ks-kept-button.h - how much the model keeps of a picture, as a small button that leads to which
 * parts of it.  Hidden while nothing is known.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define KS_TYPE_KEPT_BUTTON (ks_kept_button_get_type ())
G_DECLARE_FINAL_TYPE (KsKeptButton, ks_kept_button, KS, KEPT_BUTTON, GtkButton)

/* name: of the file, for screen readers. */
GtkWidget *ks_kept_button_new (const char *name);
/* 0 to 1; below 0 hides it. */
void ks_kept_button_set_share (KsKeptButton *self, double share);

G_END_DECLS
