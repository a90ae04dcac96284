/* cli-bench-recall-data.h - recall prompts made by a seeded script: facts among paragraphs about
 * other things, and a question about one of the facts.  All sentences are our own. Same seed, same
 * prompts on every machine.  Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef struct {
  char *text;     /* paragraphs, 3 to 9 of them with a fact */
  char *question; /* about one fact */
  char *value;    /* a right answer contains it */
  guint n_fact;
  guint fact_at; /* which fact is asked for, from 0 */
} BenchRecallPrompt;

/* Prompt number index of the series of seed; about n_word words long (800 tokens are 550 words). */
BenchRecallPrompt *bench_recall_prompt_new (guint64 seed, guint index, guint n_word);
void bench_recall_prompt_free (BenchRecallPrompt *prompt);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BenchRecallPrompt, bench_recall_prompt_free)

/* The value stands in the answer, case ignored and not as a part of a longer word or number. */
gboolean bench_recall_is_right (const char *answer, const char *value);

G_END_DECLS
