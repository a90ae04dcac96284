/* ks-error-text.h - a failure in the user's language: what happened and what to do.
 * Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* A sentence; behind it, in brackets, the technical text where that carries facts (sizes, names).
 * Failures of no known kind give their technical text as a sentence.  Plain text, no markup.
 * (transfer full) */
char *ks_error_text_dup (const GError *error);

G_END_DECLS
