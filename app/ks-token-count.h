/* ks-token-count.h - how many tokens a text is for the model that is loaded.
 * Counted in short pieces between the steps of a running answer, so that neither waits for the
 * other; a piece ends at a line or a word, so that the sum is the text's to within a few.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-engine.h"

G_BEGIN_DECLS

typedef struct _KsTokenCount KsTokenCount;

/* Called once, unless cancelled first; 0 when there is no model to count with. */
typedef void (*KsTokenCountFunc) (guint n_tokens, gpointer user);

/* The count frees itself after it called func, or some time after cancel. */
KsTokenCount *ks_token_count_start (KsEngine *engine, GBytes *text, KsTokenCountFunc func,
                                    gpointer user);
void ks_token_count_cancel (KsTokenCount *count); /* func is not called any more */

G_END_DECLS
