/* ks-attachment.h - value object: a file that belongs to a message, its bytes kept by content hash
 * outside the database, its text (documents) beside them.  Threads: main; immutable after creation.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

typedef enum {
  KS_ATTACHMENT_TEXT,
  KS_ATTACHMENT_PDF,
  KS_ATTACHMENT_IMAGE,
  KS_ATTACHMENT_VIDEO,
  KS_ATTACHMENT_DOCUMENT /* text with pictures in it: DOCX, ODT, EPUB, HTML, PPTX */
} KsAttachmentKind;
#define KS_N_ATTACHMENT_KIND (KS_ATTACHMENT_DOCUMENT + 1)

#define KS_TYPE_ATTACHMENT (ks_attachment_get_type ())
G_DECLARE_FINAL_TYPE (KsAttachment, ks_attachment, KS, ATTACHMENT, GObject)

/* name: the file's name for display (never used as a path); hash: SHA-256 of the bytes in hex;
 * text_hash: of the extracted text's blob, NULL for none. */
KsAttachment *ks_attachment_new (KsAttachmentKind kind, const char *name, const char *hash,
                                 guint64 n_bytes, const char *text_hash, guint n_pages,
                                 guint width_px, guint height_px);
/* The same file read in another way. reading: app's words for how it goes to the model (pages as
 * text or picture, frames of a video), NULL = as its kind is usually read; text_hash: see above;
 * duration_us: of a video. (transfer full) */
KsAttachment *ks_attachment_copy_with (KsAttachment *self, const char *reading,
                                       const char *text_hash, gint64 duration_us);
KsAttachmentKind ks_attachment_get_kind (KsAttachment *self);
const char *ks_attachment_get_name (KsAttachment *self);
const char *ks_attachment_get_hash (KsAttachment *self);
guint64 ks_attachment_get_n_bytes (KsAttachment *self);
const char *ks_attachment_get_text_hash (KsAttachment *self);
guint ks_attachment_get_n_pages (KsAttachment *self);
guint ks_attachment_get_width_px (KsAttachment *self);
guint ks_attachment_get_height_px (KsAttachment *self);
const char *ks_attachment_get_reading (KsAttachment *self);
gint64 ks_attachment_get_duration_us (KsAttachment *self);

G_END_DECLS
