/* eval-aime.h - AIME: two public rules for integer answers.
 * Source: docs/formats/scoring.md.  Threads: pure functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

/* String equality after cleaning (lm-evaluation-harness). */
gboolean ks_eval_aime_exact (const char *prediction, const char *reference);
/* Last box or text behind "Answer:", compared as integers where both are digits (lmms-eval). */
gboolean ks_eval_aime_int (const char *prediction, const char *reference);
/* Deletes <think> spans, then takes <answer> or the first box up to the next brace: what lmms-eval
 * does to the replies of reasoning models before any scorer sees them.  g_free. */
char *ks_eval_reasoning_answer (const char *prediction);
