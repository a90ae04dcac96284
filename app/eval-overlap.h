/* eval-overlap.h - how much of a reference stands in a reply, without a judge: word overlap,
 * longest common subsequence, pictures named by number.  Proxies: they are no scores of the
 * benchmark. Words are runs of letters and digits in lower case.  Threads: pure functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* Harmonic mean of precision and recall over the words as a multiset; 0 where one side is empty. */
double ks_eval_overlap_f1 (const char *prediction, const char *reference);
/* The same over the longest common subsequence of words (ROUGE-L with equal weights). */
double ks_eval_overlap_rouge_l (const char *prediction, const char *reference);
/* The part of the numbers behind "image" or "picture" in the reference that the reply names in the
 * same way; -1 where the reference names none. */
double ks_eval_overlap_images (const char *prediction, const char *reference);

G_END_DECLS
