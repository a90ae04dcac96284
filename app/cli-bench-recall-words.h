/* cli-bench-recall-words.h - what recall prompts are made of: two families of sentences with their
 * subjects and values, and paragraphs about other things.  All sentences are our own; the second
 * family is for evaluation only: no gate of ours is trained on its wordings.  Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef enum {
  BENCH_VALUE_CODE, /* four digits */
  BENCH_VALUE_ROOM, /* three digits */
  BENCH_VALUE_COLOUR,
  BENCH_VALUE_CITY,
  BENCH_VALUE_WORD,
  BENCH_VALUE_PET,
  BENCH_N_VALUE
} BenchValueKind;

typedef enum {
  BENCH_SUBJECT_PERSON,
  BENCH_SUBJECT_PLACE,
  BENCH_SUBJECT_THING,
  BENCH_N_SUBJECT
} BenchSubjectKind;

/* %1 is replaced by the subject, %2 by the value. */
typedef struct {
  BenchSubjectKind subject;
  BenchValueKind value;
  const char *statements[3];
  const char *question;
} BenchFactKind;

typedef struct {
  const char *const *words;
  guint n;
} BenchWordList;

typedef struct {
  const BenchFactKind *kinds;
  guint n_kind;
  BenchWordList subjects[BENCH_N_SUBJECT];
  BenchWordList values[BENCH_N_VALUE]; /* of codes and rooms: empty */
} BenchRecallFamily;

extern const BenchRecallFamily bench_recall_plain, bench_recall_other;
extern const BenchWordList bench_recall_fillers;

G_END_DECLS
