/* ks-recall-maker.h - conversations to be trained on in which facts are told among other text and
 * asked for much later: what a gate has to learn to keep.  Invented words only, the same for the
 * same numbers.  The questions of `keepsake-cli bench` are worded otherwise and are not among them.
 * Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-train-chat.h"
#include "app/ks-train-random.h"

G_BEGIN_DECLS

/* A paragraph of about n_word words about anything, without empty lines; NULL = none is there.
 * (transfer full) */
typedef char *(*KsRecallParagraph) (gpointer user, KsTrainRandom *random, guint n_word);

typedef struct {
  guint n_word;                /* of all text among which the facts stand, about */
  guint n_fact, n_question;    /* n_question of the n_fact are asked for, in any order */
  KsRecallParagraph paragraph; /* half of the text comes from here; NULL = all is invented */
  gpointer user;
} KsRecallParams;

/* Facts and questions as a text of n_word words usually has them. */
KsRecallParams ks_recall_params_draw (KsTrainRandom *random, guint n_word);
/* One long message, many short turns, or a talk about something else before the questions; the
 * values in the answers are marked. */
KsTrainChat *ks_recall_make (KsTrainRandom *random, const KsRecallParams *params);

G_END_DECLS
