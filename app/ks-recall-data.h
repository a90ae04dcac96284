/* ks-recall-data.h - the words of ks-recall-maker.c: what facts are about, how they are stated,
 * asked for and answered, and sentences about nothing.
 * In patterns %A stands for what is told, %S for of whom, %V for the value; sentences begin in
 * lower case where a pattern does and are put right when they are filled.
 * The questions of `keepsake-cli bench` use other words on purpose.  Threads: constant. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef enum {
  KS_RECALL_PERSON,
  KS_RECALL_THING,
  KS_RECALL_PLACE,
  KS_RECALL_EVENT,
  KS_RECALL_PROJECT
} KsRecallSubject;
#define KS_RECALL_N_SUBJECT 5u

typedef enum {
  KS_RECALL_NUMBER2, /* digits */
  KS_RECALL_NUMBER3,
  KS_RECALL_NUMBER4,
  KS_RECALL_NUMBER5,
  KS_RECALL_NUMBER7,
  KS_RECALL_MARK, /* "K7-214" */
  KS_RECALL_YEAR,
  KS_RECALL_DATE,
  KS_RECALL_TIME,
  KS_RECALL_PRICE,
  KS_RECALL_LENGTH,
  KS_RECALL_VERSION,
  KS_RECALL_PAIR, /* two words, "quiet-otter" */
  /* From a list of words, in the order of ks_recall_lists. */
  KS_RECALL_COLOUR,
  KS_RECALL_TOWN,
  KS_RECALL_NAME,
  KS_RECALL_WORD,
  KS_RECALL_DISH,
  KS_RECALL_INSTRUMENT,
  KS_RECALL_ANIMAL,
  KS_RECALL_TRADE,
  KS_RECALL_DAY,
  KS_RECALL_STREET,
  KS_RECALL_SPOT,
  KS_RECALL_FLOWER,
  KS_RECALL_MATERIAL
} KsRecallValue;

typedef struct {
  const char *const *words;
  guint n;
} KsRecallList;

/* A thing that can be said of some kinds of subjects, in any general pattern. */
typedef struct {
  KsRecallSubject subject;
  KsRecallValue value;
  const char *name;
} KsRecallAttribute;

/* A fact with words of its own. */
typedef struct {
  KsRecallSubject subject;
  KsRecallValue value;
  const char *statements[3], *questions[3], *answers[2]; /* question i asks for statement i */
} KsRecallFrame;

extern const KsRecallList ks_recall_subjects[KS_RECALL_N_SUBJECT];
extern const KsRecallList ks_recall_lists[]; /* [value - KS_RECALL_COLOUR] */
extern const KsRecallAttribute ks_recall_attributes[];
extern const guint ks_recall_n_attributes;
extern const KsRecallFrame ks_recall_frames[];
extern const guint ks_recall_n_frames;
/* General patterns: in a sentence, as a line of notes, questions, answers. */
extern const KsRecallList ks_recall_statements, ks_recall_notes, ks_recall_questions,
    ks_recall_answers;
/* What the rest of a conversation is made of. */
extern const KsRecallList ks_recall_openings, ks_recall_replies, ks_recall_small_talk,
    ks_recall_systems, ks_recall_sentences;

G_END_DECLS
