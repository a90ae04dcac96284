/* ks-window-actions.h - the commands of the window as actions: new, attach, search, rename, export,
 * delete, import, models, stop, regenerate, previous, next, focus-composer.
 * show-sessions and show-memory belong to the panes.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "ui/ks-window.h"

G_BEGIN_DECLS

void ks_window_actions_install (KsWindow *window);
/* Enables what makes sense for the chat that is shown, in its present state. */
void ks_window_actions_update (KsWindow *window);

G_END_DECLS
