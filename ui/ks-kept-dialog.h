/* ks-kept-dialog.h - what a chat's model still keeps of one picture, in a dialog.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-library.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

/* picture: of the chat's numbers (ks_chat_dup_memory), copied.  The numbers are read once; what
 * cannot be read is said. (transfer none) the dialog */
GtkWidget *ks_kept_dialog_present (GtkWidget *parent, KsLibrary *library, KsChat *chat,
                                   const KsMemoryPicture *picture);

G_END_DECLS
