/* ks-video-dialog.h - which frames of a pending video go to the model, in a dialog: as they are
 * taken now, and another choice in its place.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-library.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

/* (transfer none) the dialog */
GtkWidget *ks_video_dialog_present (GtkWidget *parent, KsChat *chat, KsLibrary *library,
                                    KsPendingAttachment *attachment);

G_END_DECLS
