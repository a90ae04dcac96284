/* ks-window.h - the window: sessions at the side, one chat, its memory.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <adwaita.h>

G_BEGIN_DECLS

#define KS_TYPE_WINDOW (ks_window_get_type ())
G_DECLARE_FINAL_TYPE (KsWindow, ks_window, KS, WINDOW, AdwApplicationWindow)

KsWindow *ks_window_new (GtkApplication *application);

G_END_DECLS
