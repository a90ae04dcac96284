/* ks-file-viewer.h - a file of a chat in a dialog: a picture, the pages of a document, a text; with
 * what the chat's model keeps of it.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-library.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

/* chat: NULL is allowed.  turn: in which the file was read (ks_chat_get_turn), -1 = the latest. */
void ks_file_viewer_present (GtkWidget *parent, KsLibrary *library, KsChat *chat,
                             KsAttachment *attachment, int turn);

G_END_DECLS
