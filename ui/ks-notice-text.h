/* ks-notice-text.h - the sentences of the application in the user's language.
 * Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Of a notice of a chat or the library; one that is not known (it has names or numbers) stays as it
 * is. (transfer none) */
const char *ks_notice_text (const char *notice);

G_END_DECLS
