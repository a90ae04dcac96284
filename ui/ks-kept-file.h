/* ks-kept-file.h - what a chat's model keeps of a file's pictures: of a photo, of a page, of the
 * frames of a video.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-library.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

/* turn: as in the view's pictures, -1 = the latest one in which the file was seen; page: from 0, of
 * a PDF, -1 = all of the file.  0 to 1, below 0: nothing of it was seen, or view is NULL. */
double ks_kept_file_get_share (const KsMemoryView *view, KsAttachment *file, int turn, int page);
/* Opens the map of that picture; of several pictures a list to choose from.  Nothing happens where
 * nothing was seen. */
void ks_kept_file_present (GtkWidget *parent, KsLibrary *library, KsChat *chat, KsAttachment *file,
                           int turn, int page);

G_END_DECLS
