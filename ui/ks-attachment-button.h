/* ks-attachment-button.h - a file that a message holds: small picture or kind, name, pages or size.
 * Clicked, it wants to be opened.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "media/ks-pixels.h"
#include "storage/ks-attachment.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

/* Where small pictures come from.  done is called once on the main thread, with NULL where there is
 * none, also when cancellable is cancelled. */
typedef void (*KsThumbnailDone) (KsPixels *pixels, gpointer done_data);
typedef void (*KsThumbnailFunc) (KsAttachment *attachment, guint max_side_px,
                                 GCancellable *cancellable, KsThumbnailDone done,
                                 gpointer done_data, gpointer data);

#define KS_TYPE_ATTACHMENT_BUTTON (ks_attachment_button_get_type ())
G_DECLARE_FINAL_TYPE (KsAttachmentButton, ks_attachment_button, KS, ATTACHMENT_BUTTON, GtkButton)

/* thumbnails may be NULL.  A picture that came once stays with the attachment. */
GtkWidget *ks_attachment_button_new (KsAttachment *attachment, KsThumbnailFunc thumbnails,
                                     gpointer data);
KsAttachment *ks_attachment_button_get_attachment (KsAttachmentButton *self);

G_END_DECLS
