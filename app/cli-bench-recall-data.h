/* cli-bench-recall-data.h - recall prompts made by a seeded script: facts among paragraphs about
 * other things, and a question about one of the facts.  All sentences are our own. Same seed, same
 * prompts on every machine.  Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define BENCH_RECALL_MAX_FACTS 24u

typedef struct {
  char *statement;        /* the fact as it stands in the text */
  char *question, *value; /* a right answer contains the value */
  guint fact_at;          /* which fact is asked for, from 0 */
} BenchRecallQuestion;

typedef struct {
  char *text;        /* paragraphs, some of them with a fact */
  GArray *questions; /* of BenchRecallQuestion, in order of the facts, at least one */
  guint n_fact;
  /* The first question's. */
  const char *question, *value;
  guint fact_at;
} BenchRecallPrompt;

typedef struct {
  guint64 seed;
  guint index;          /* number in the series of seed */
  guint n_word;         /* about; 800 tokens are 550 words, at least 20 */
  gboolean other_words; /* the family of sentences that no gate of ours is trained on */
  guint n_fact;         /* 0 = 3 to 9, drawn; at most BENCH_RECALL_MAX_FACTS */
  guint n_ask;          /* questions, spread over the facts; 0 = one, drawn.  What is not asked for
                           distracts. */
} BenchRecallSpec;

BenchRecallPrompt *bench_recall_prompt_make (const BenchRecallSpec *spec);
/* The same with the first family, 3 to 9 facts and one question. */
BenchRecallPrompt *bench_recall_prompt_new (guint64 seed, guint index, guint n_word);
void bench_recall_prompt_free (BenchRecallPrompt *prompt);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (BenchRecallPrompt, bench_recall_prompt_free)

/* The value stands in the answer, case ignored and not as a part of a longer word or number. */
gboolean bench_recall_is_right (const char *answer, const char *value);

G_END_DECLS
