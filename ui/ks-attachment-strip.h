/* ks-attachment-strip.h - what is attached to the next message: a row of chips that scrolls
 * sideways, also with the ordinary wheel, and that counts them when they are many; hidden while
 * there are none.
 * Signal: "changed" (one came, went, or changed its state).  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-library.h"

#include <adwaita.h>

G_BEGIN_DECLS

#define KS_TYPE_ATTACHMENT_STRIP (ks_attachment_strip_get_type ())
G_DECLARE_FINAL_TYPE (KsAttachmentStrip, ks_attachment_strip, KS, ATTACHMENT_STRIP, AdwBin)

KsAttachmentStrip *ks_attachment_strip_new (void);
/* For what the model can see and how much memory keeps; NULL is allowed. */
void ks_attachment_strip_set_library (KsAttachmentStrip *self, KsLibrary *library);
void ks_attachment_strip_set_chat (KsAttachmentStrip *self, KsChat *chat); /* NULL is allowed */

G_END_DECLS
