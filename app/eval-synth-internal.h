/* eval-synth-internal.h - what the kinds of made-up text tests share: words, filler sentences, and
 * fitting a text to a length.  Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/eval-random.h"
#include "app/eval-synth.h"

G_BEGIN_DECLS

/* --- eval-synth-words.c: words and sentences --- */
extern const char *const ks_synth_nouns[];
extern const guint ks_synth_n_noun;
extern const char *const ks_synth_adjectives[];
extern const guint ks_synth_n_adjective;

/* One sentence about nothing that is asked for. (transfer full) */
char *ks_synth_make_sentence (KsEvalRandom *random);
/* "amber lantern": number i of a random order of all pairs. (transfer full) */
char *ks_synth_make_pair (guint64 seed, guint i);

/* --- eval-synth.c --- */
typedef struct _KsSynth KsSynth;

/* The text with n pieces of filler. (transfer full) */
typedef char *(*KsSynthBuild) (KsSynth *synth, guint n);

struct _KsSynth {
  const KsEvalSynthOptions *options;
  KsEvalRandom random;  /* what is asked for is drawn from */
  KsEvalRandom filling; /* and what stands around it */
  KsEvalCount count;
  gpointer user;
  GPtrArray *filler; /* pieces that were drawn so far */
  GPtrArray *needles;
  GArray *places; /* of double, 0 .. 1, of the needles */
  char **expect;
  char *intro, *question;
  gboolean all_needles;   /* the filler is needles, too */
  guint64 keys;           /* seed of the pairs that are keys */
  guint n_key;            /* keys that are used up */
  guint n_common, n_rare; /* counted words: how often each stands there */
  GPtrArray *words;       /* the common ones, the chain of variables, ... */
};

/* Piece number n of the filler, drawn when it is first asked for. */
const char *ks_synth_get_filler (KsSynth *synth, guint n);
/* The most pieces with which build's text has at most room tokens; an error when even least pieces
 * have more. */
gboolean ks_synth_fit (KsSynth *synth, KsSynthBuild build, guint least, guint room, guint *out_n,
                       GError **error);
/* n pieces of filler, the needles among them at their places. (transfer full) */
char *ks_synth_build_text (KsSynth *synth, guint n);
void ks_synth_add_expected (KsSynth *synth, const char *text);
void ks_synth_add_needle (KsSynth *synth, char *take_sentence, double place);

/* --- eval-synth-count.c --- */
/* Fill in intro, question and expect; then build gives the text. */
void ks_synth_begin_tracking (KsSynth *synth);
void ks_synth_begin_common (KsSynth *synth);
char *ks_synth_build_common (KsSynth *synth, guint n);
void ks_synth_begin_frequent (KsSynth *synth);
char *ks_synth_build_frequent (KsSynth *synth, guint n);
/* --- eval-synth-turns.c --- */
gboolean ks_synth_make_turns (KsSynth *synth, KsEvalItem *item, guint room, GError **error);
/* Appends turns about other things. */
void ks_synth_add_other_turns (KsSynth *synth, KsEvalItem *item, guint n);

G_END_DECLS
