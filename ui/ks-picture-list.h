/* ks-picture-list.h - what is kept of each picture that the model has read, as a share with words;
 * a picture can be opened to see which parts of it are meant.
 * Signal: "open" (guint i), number of the picture in the view that was set last.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-memory-view.h"

#include <adwaita.h>

G_BEGIN_DECLS

#define KS_PICTURE_LIST_N_SINGLE 40u /* the newest ones have a row each, the others share one */

#define KS_TYPE_PICTURE_LIST (ks_picture_list_get_type ())
G_DECLARE_FINAL_TYPE (KsPictureList, ks_picture_list, KS, PICTURE_LIST, AdwBin)

/* Hidden while the view (NULL is allowed) has no pictures.  Rows are used again: numbers that
 * change ask for no new layout. */
void ks_picture_list_set_view (KsPictureList *self, const KsMemoryView *view);
/* "cat.png", "report.pdf, page 3", "cat.mp4, frame 3" (transfer full) */
char *ks_picture_list_dup_name (const KsMemoryPicture *picture);

G_END_DECLS
