/* ks-attachment-words.h - what is said of the files that wait for a message: which of them keep it
 * back, and which it goes without.
 * Translated.  Threads: main.  Lists are of KsPendingAttachment; all strings: transfer full. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-pending-attachment.h"

G_BEGIN_DECLS

/* Why a file keeps the message back: “a.pdf” is still read, or locked; NULL when none does. */
char *ks_attachment_words_dup_reason (GListModel *attachments);
/* Whether one of them would go with the message. */
gboolean ks_attachment_words_has_ready (GListModel *attachments);
/* How many are locked or cannot be read, and what becomes of them, a line each; NULL when none is.
 * Cards scroll out of sight, this does not. */
char *ks_attachment_words_dup_hint (GListModel *attachments);
/* That the message went without the files that could not be read, and why; NULL when there were
 * none. */
char *ks_attachment_words_dup_left_out (GListModel *attachments);

G_END_DECLS
