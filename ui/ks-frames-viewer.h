/* ks-frames-viewer.h - the frames of a video that were sent, with the times at which they are
 * shown.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-library.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

/* Whether it is known of an attachment which frames were taken: else there is nothing to show. */
gboolean ks_frames_viewer_can_show (KsAttachment *attachment);
/* in_pairs: the model saw them two by two. */
GtkWidget *ks_frames_viewer_new (KsLibrary *library, KsAttachment *attachment, gboolean in_pairs);

G_END_DECLS
