/* ks-attachment-chip.h - one pending attachment: picture or kind, name, pages and cost in tokens,
 * progress, password or error, and a button that removes it.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-library.h"

#include <adwaita.h>

G_BEGIN_DECLS

#define KS_TYPE_ATTACHMENT_CHIP (ks_attachment_chip_get_type ())
G_DECLARE_FINAL_TYPE (KsAttachmentChip, ks_attachment_chip, KS, ATTACHMENT_CHIP, AdwBin)

/* library: NULL is allowed. */
KsAttachmentChip *ks_attachment_chip_new (KsChat *chat, KsLibrary *library,
                                          KsPendingAttachment *attachment);
KsPendingAttachment *ks_attachment_chip_get_attachment (KsAttachmentChip *self);

G_END_DECLS
