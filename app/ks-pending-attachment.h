/* ks-pending-attachment.h - a file on its way into the next message: decoded by the worker, stored
 * as a blob, counted in tokens.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-reading.h"
#include "media/ks-pixels.h"
#include "storage/ks-attachment.h"

G_BEGIN_DECLS

/* A frame of a video that goes to the model, small. */
typedef struct {
  KsPixels *pixels;
  gint64 time_us; /* from the video's start */
} KsPendingFrame;

typedef enum {
  KS_PENDING_LOADING,
  KS_PENDING_READY,
  KS_PENDING_PASSWORD, /* encrypted: ks_chat_unlock_attachment goes on; "error" says if one was
                          wrong */
  KS_PENDING_FAILED    /* "error" says why; messages go without it */
} KsPendingState;

#define KS_TYPE_PENDING_ATTACHMENT (ks_pending_attachment_get_type ())
G_DECLARE_FINAL_TYPE (KsPendingAttachment, ks_pending_attachment, KS, PENDING_ATTACHMENT, GObject)

/* Properties, all notify, read-only: "name" (string), "state" (int), "progress" (double, 0 to 1, -1
 * = unknown), "n-tokens" (guint, 0 = not counted yet), "error", "warning" (strings or NULL), "kind"
 * (int, KsAttachmentKind), "n-pages", "n-pictures" (guint, that the model sees of it), "seen"
 * (gboolean: the loaded model looks at it), "reading" (string or NULL: how it is read, see
 * ks_pending_attachment_dup_reading). "n-tokens" counts text and pictures. */
const char *ks_pending_attachment_get_name (KsPendingAttachment *self);
KsPendingState ks_pending_attachment_get_state (KsPendingAttachment *self);
KsAttachmentKind ks_pending_attachment_get_kind (KsPendingAttachment *self);
double ks_pending_attachment_get_progress (KsPendingAttachment *self);
guint ks_pending_attachment_get_n_tokens (KsPendingAttachment *self);
/* Tokens of its pictures alone, known as soon as it is READY. */
guint ks_pending_attachment_get_n_visual (KsPendingAttachment *self);
/* Tokens that the model was trained for, where its pictures take more than half of them; else 0.
 * *out_can_shrink (may be NULL): a smaller largest size of pictures makes them fewer. */
guint ks_pending_attachment_get_n_trained (KsPendingAttachment *self, gboolean *out_can_shrink);
guint ks_pending_attachment_get_n_pages (KsPendingAttachment *self);
guint ks_pending_attachment_get_n_pictures (KsPendingAttachment *self);
gboolean ks_pending_attachment_is_seen (KsPendingAttachment *self);
/* How it goes to the model; change it with ks_chat_set_reading. (transfer full) */
KsReading *ks_pending_attachment_dup_reading (KsPendingAttachment *self);
const char *ks_pending_attachment_get_error (KsPendingAttachment *self);
const char *ks_pending_attachment_get_warning (KsPendingAttachment *self);
/* Frames of a video that will be sent, of KsPendingFrame; NULL for anything else. (transfer none)
 */
GPtrArray *ks_pending_attachment_get_frames (KsPendingAttachment *self);
/* A video's sound, which no model here hears. */
gboolean ks_pending_attachment_has_sound (KsPendingAttachment *self);
/* Pages of a PDF go as text alone although the model would see pictures beside it. */
gboolean ks_pending_attachment_hides_pictures (KsPendingAttachment *self);
/* Small picture for display, NULL when there is none (yet). */
KsPixels *ks_pending_attachment_get_thumbnail (KsPendingAttachment *self);
/* What the message will hold; NULL until READY. */
KsAttachment *ks_pending_attachment_get_attachment (KsPendingAttachment *self);

G_END_DECLS
