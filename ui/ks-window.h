/* ks-window.h - the window: sessions at the side, one chat, its memory at the other side.
 * Its commands are actions of the group "win" (ks-window-actions.h).  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-library.h"

#include <adwaita.h>

G_BEGIN_DECLS

#define KS_TYPE_WINDOW (ks_window_get_type ())
G_DECLARE_FINAL_TYPE (KsWindow, ks_window, KS, WINDOW, AdwApplicationWindow)

KsWindow *ks_window_new (GtkApplication *application, KsLibrary *library);
KsLibrary *ks_window_get_library (KsWindow *self);
/* The chat that is shown; always one. */
KsChat *ks_window_get_chat (KsWindow *self);
/* session NULL = a new one. */
void ks_window_open_session (KsWindow *self, KsSession *session);
/* The session step places below the one that is shown, if there is one. */
void ks_window_open_neighbour (KsWindow *self, int step);
/* To a new session, unless the one that is shown is new itself. */
void ks_window_attach_files (KsWindow *self, GFile *const *files, gsize n_file);
/* Out of the list, with a toast that takes it back. */
void ks_window_delete_session (KsWindow *self, KsSession *session);
void ks_window_rename_session (KsWindow *self);
void ks_window_focus_search (KsWindow *self);
void ks_window_focus_composer (KsWindow *self);
void ks_window_choose_files (KsWindow *self);
void ks_window_choose_folders (KsWindow *self);
/* Stores what the next start wants to know: size, panes, session. */
void ks_window_save_state (KsWindow *self);

G_END_DECLS
