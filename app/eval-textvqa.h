/* eval-textvqa.h - TextVQA accuracy: answer normalisation and the ten-reference soft score.
 * Source: docs/formats/scoring.md.  Threads: pure functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

/* The answer as it is compared; g_free. */
char *ks_eval_textvqa_normalise (const char *answer);
/* The question inside a prompt of LLaVA's file, in lower case: its first line, or the second where
 * the words of the picture come first, or what stands between "Question: " and " Short answer:".
 * NULL when it has none of these forms; g_free. */
char *ks_eval_textvqa_find_question (const char *prompt);
/* What LLaVA's files know an item by: its picture's name and its question in lower case; g_free. */
char *ks_eval_textvqa_make_place (const char *image, const char *lower_question);
/* 0, 0.3, 0.6, 0.9 or 1 by the number of equal references; exactly ten are needed, else -1. */
double ks_eval_textvqa_score (const char *prediction, const char *const *references,
                              gsize n_references);
