/* eval-synth.h - text tests that need no data: needles, variable tracking, counted words, recall
 * over turns.  Same kind, options and tokenizer: same bytes on every machine.  All words and
 * sentences are our own.  Order matters for eviction: the question comes together with the text, or
 * in a later turn, after eviction and turns about other things. Source: docs/formats/evaluation.md.
 * Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/eval-item.h"

G_BEGIN_DECLS

/* "needle" (one), "needle-keys" (four, one is asked for), "needle-all" (nothing but needles),
 * "needle-values" (one key, four values), "needle-queries" (four keys asked for), "tracking",
 * "common-words", "frequent-words", "turns", NULL. */
extern const char *const ks_eval_synth_kinds[];

typedef enum { KS_EVAL_NUMBER, KS_EVAL_WORDS, KS_EVAL_UUID } KsEvalNeedleValue;

typedef struct {
  guint64 seed;
  guint index;    /* number of the item in its series */
  guint n_tok;    /* prompt and room for the answer together, at most */
  guint depth;    /* percent of the text before the needle; kinds with several: of the first */
  gboolean after; /* the question comes in a turn of its own */
  guint n_other;  /* turns about other things before it; only with after */
  KsEvalNeedleValue values; /* of needles */
  GPtrArray *filler;        /* sentences of the user's (ks_eval_synth_split); NULL = our own */
} KsEvalSynthOptions;

/* Tokens of a text, without any frame around it. */
typedef guint (*KsEvalCount) (const char *text, gpointer user);

gboolean ks_eval_synth_is_kind (const char *bench);
/* Tokens an answer may have, kept free inside n_tok. */
guint ks_eval_synth_get_reserve (const char *kind);
/* Questions with their expected values; the bench of the item is the kind, its part
 * "n_tok/depth".  NULL and a sentence when n_tok is too small. */
KsEvalItem *ks_eval_synth_make (const char *kind, const KsEvalSynthOptions *options,
                                KsEvalCount count, gpointer user, GError **error);
/* A text as sentences, cut behind full stops and at line breaks. (of char *, transfer full) */
GPtrArray *ks_eval_synth_split (const char *text);
/* The part of the expected values that stand in the answer, case ignored. */
double ks_eval_synth_score (const char *prediction, const char *const *expect);

G_END_DECLS
