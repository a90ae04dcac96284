/* ks-toast.h - short messages over the window, from dialogs and whoever knows only a widget of it.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <adwaita.h>

G_BEGIN_DECLS

/* A toast with that plain text (no markup); a long one has several lines and stays longer. */
AdwToast *ks_toast_new (const char *text);
/* Shows toast in the window that widget is in; dropped when that has no place for toasts.
 * (transfer full) */
void ks_toast_add (GtkWidget *widget, AdwToast *toast);

G_END_DECLS
