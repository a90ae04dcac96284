/* eval-mathvision.h - MathVision: answer extraction and rule-based equality.
 * Source: docs/formats/scoring.md.  Threads: pure functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

/* The answer as it is compared; g_free. */
char *ks_eval_mathvision_extract (const char *prediction);
/* answer: the reference (a letter where there are options); options: NULL-terminated, may be empty.
 * harness: the reply first goes through ks_eval_reasoning_answer. */
gboolean ks_eval_mathvision_is_correct (const char *prediction, const char *answer,
                                        const char *const *options, gboolean harness);
