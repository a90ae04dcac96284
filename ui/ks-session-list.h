/* ks-session-list.h - the stored sessions at the side: search, list, context menu, keys.
 * Shows a model and says what its user asks for; changes nothing by itself.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "storage/ks-session.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define KS_TYPE_SESSION_LIST (ks_session_list_get_type ())
G_DECLARE_FINAL_TYPE (KsSessionList, ks_session_list, KS, SESSION_LIST, GtkWidget)

/* Signals: "open", "delete", "export" (KsSession *), "rename" (KsSession *, const char *title),
 * "search" (const char *query), "leave" (the user is done here: back to the composer). */
GtkWidget *ks_session_list_new (void);
/* Of KsSession; NULL = not known yet. */
void ks_session_list_set_model (KsSessionList *self, GListModel *model);
/* Marks that session, also when the list comes to hold it later; NULL = none.  Emits nothing. */
void ks_session_list_select (KsSessionList *self, KsSession *session);
/* The session step places below (above: negative) the marked one; NULL at the ends. (transfer full)
 */
KsSession *ks_session_list_get_neighbour (KsSessionList *self, int step);
/* Opens the title of the marked session for renaming; FALSE when it is not on the screen. */
gboolean ks_session_list_rename_selected (KsSessionList *self);
void ks_session_list_focus_search (KsSessionList *self);
const char *ks_session_list_get_query (KsSessionList *self);
void ks_session_list_end_search (KsSessionList *self);

G_END_DECLS
