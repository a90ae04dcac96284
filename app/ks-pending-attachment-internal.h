/* ks-pending-attachment-internal.h - what a chat changes on its pending attachments.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-pending-attachment.h"

#include <gio/gio.h>

G_BEGIN_DECLS

KsPendingAttachment *ks_pending_attachment_new (const char *name);
/* Where it comes from: one of the two, kept until it is READY, for another try with a password. */
void ks_pending_attachment_set_path (KsPendingAttachment *self, const char *path);
const char *ks_pending_attachment_get_path (KsPendingAttachment *self);
void ks_pending_attachment_set_bytes (KsPendingAttachment *self, GBytes *bytes);
GBytes *ks_pending_attachment_get_bytes (KsPendingAttachment *self);
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
void ks_pending_attachment_set_n_tokens (KsPendingAttachment *self, guint n_tokens);
/* Bytes of text that it adds to a message. */
void ks_pending_attachment_set_n_text (KsPendingAttachment *self, gsize n_text);
gsize ks_pending_attachment_get_n_text (KsPendingAttachment *self);

G_END_DECLS
