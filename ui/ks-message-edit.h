/* ks-message-edit.h - a message's text while it is edited in its place.
 * Enter accepts, Shift+Enter breaks the line, Escape gives up; an input method is asked first.
 * Signals: "accepted" (char *text), "cancelled".  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define KS_TYPE_MESSAGE_EDIT (ks_message_edit_get_type ())
G_DECLARE_FINAL_TYPE (KsMessageEdit, ks_message_edit, KS, MESSAGE_EDIT, GtkWidget)

GtkWidget *ks_message_edit_new (const char *text);
char *ks_message_edit_get_text (KsMessageEdit *self); /* (transfer full) */
void ks_message_edit_set_can_accept (KsMessageEdit *self, gboolean can_accept);

G_END_DECLS
