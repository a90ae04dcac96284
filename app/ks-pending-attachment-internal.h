/* ks-pending-attachment-internal.h - what a chat changes on its pending attachments.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-eyes.h"
#include "app/ks-pending-attachment.h"
#include "app/ks-token-count.h"

#include <gio/gio.h>

G_BEGIN_DECLS

KsPendingAttachment *ks_pending_attachment_new (const char *name);
/* The blob with its bytes, once they are stored; NULL before. */
void ks_pending_attachment_set_hash (KsPendingAttachment *self, const char *hash);
const char *ks_pending_attachment_get_hash (KsPendingAttachment *self);
/* Of the load that runs; a new one for each. (transfer none) */
GCancellable *ks_pending_attachment_renew_cancellable (KsPendingAttachment *self);
void ks_pending_attachment_cancel (KsPendingAttachment *self);

void ks_pending_attachment_set_progress (KsPendingAttachment *self, double progress);
/* LOADING, PASSWORD or FAILED; error may be NULL. */
void ks_pending_attachment_set_state (KsPendingAttachment *self, KsPendingState state,
                                      const char *error);
/* READY with what was found. */
void ks_pending_attachment_take_result (KsPendingAttachment *self, KsAttachment *take_attachment,
                                        KsPixels *take_thumbnail, const char *warning);
/* Frames of a video, before it is READY. */
void ks_pending_attachment_clear_frames (KsPendingAttachment *self, gboolean is_video,
                                         gboolean has_sound);
/* Before it is READY. */
void ks_pending_attachment_set_hides_pictures (KsPendingAttachment *self, gboolean hides);
void ks_pending_attachment_add_frame (KsPendingAttachment *self, KsPixels *pixels, gint64 time_us);
/* The same file read in another way. */
void ks_pending_attachment_set_attachment (KsPendingAttachment *self,
                                           KsAttachment *take_attachment);
/* Pictures that the model sees of it, and what they cost; before the text is counted. */
void ks_pending_attachment_set_pictures (KsPendingAttachment *self, guint n_pictures,
                                         const KsEyesCost *cost);
void ks_pending_attachment_set_n_tokens (KsPendingAttachment *self, guint n_text_tokens);
/* What it adds to a message, NULL before READY: counted again when the model is another one. */
void ks_pending_attachment_set_message (KsPendingAttachment *self, GBytes *message);
GBytes *ks_pending_attachment_get_message (KsPendingAttachment *self);
/* The count that runs; a former one is cancelled. */
void ks_pending_attachment_set_count (KsPendingAttachment *self, KsTokenCount *count);

G_END_DECLS
