/* ks-session-row.h - one stored session in the list: title, when it was used last or where the
 * words were found; a menu; renaming in place. Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "storage/ks-session.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define KS_TYPE_SESSION_ROW (ks_session_row_get_type ())
G_DECLARE_FINAL_TYPE (KsSessionRow, ks_session_row, KS, SESSION_ROW, GtkWidget)

/* Signals: "rename" (const char *title), "export", "delete": what its user asks for. */
GtkWidget *ks_session_row_new (void);
/* NULL lets the session go. */
void ks_session_row_set_session (KsSessionRow *self, KsSession *session);
KsSession *ks_session_row_get_session (KsSessionRow *self);
/* Opens the popover with the title's entry; Enter emits "rename". */
void ks_session_row_start_rename (KsSessionRow *self);
/* x, y < 0: at the row itself, as the keyboard asks. The items are actions of the group "row". */
void ks_session_row_popup_menu (KsSessionRow *self, double x, double y);

/* When, in words that need no thinking: the time today, the weekday this week, else the date.
 * (transfer full) */
char *ks_session_row_format_time (gint64 time_us, gint64 now_us);

G_END_DECLS
