/* cli-bench-dilution.h - the parts of keepsake-cli bench dilution: texts in which one sentence is
 * the evidence, and what the last token's attention makes of them.  Threads: engine thread. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/cli-bench.h"

G_BEGIN_DECLS

/* Every token belongs to the first of these that fits. */
typedef enum {
  DILUTION_EVIDENCE,
  DILUTION_QUESTION,
  DILUTION_SINK,   /* the first 4 tokens and those of the chat format */
  DILUTION_WINDOW, /* the last 32 */
  DILUTION_REST,
  DILUTION_N_CLASS
} DilutionClass;

typedef struct {
  GArray *text, *question; /* of ks_token */
  char *expect;
  guint evidence_begin, evidence_end; /* tokens of the text */

} DilutionItem;

/* Item number index with n_sentence sentences around its evidence, half of them before it; every
 * fourth states something of the same kind.  Evidence and question do not depend on n_sentence.
 * (transfer full) */
DilutionItem *dilution_item_make (KsEngineSetup *setup, guint64 seed, guint index, guint n_sentence,
                                  GError **error);
void dilution_item_free (DilutionItem *item); /* NULL is allowed */

/* Of a token of text and question, once both were read. */
DilutionClass dilution_item_classify (const DilutionItem *item, const KsEngineSetup *setup,
                                      guint pos);

/* At the place where the first token of the answer is chosen, means over streams. */
typedef struct {
  double mass[DILUTION_N_CLASS]; /* add up to 1 */
  double share;                  /* evidence / (evidence + rest) */
  double gain;                   /* log of attention an entry, evidence against rest; NAN when one
                                    of them has no entry left anywhere */
  double entropy, n_effective;   /* exp of the entropy */
  double recall, precision;      /* evidence kept / evidence, evidence kept / kept */
  double top_mass, top_share;    /* over the streams in top only */
} DilutionFacts;

/* tl has read text and question and notes its queries.  top: streams that count as retrieving, or
 * NULL; stream_mass (may be NULL): evidence mass of every stream is added to it. */
gboolean dilution_measure (KsEngineSetup *setup, ks_timeline *tl, const DilutionItem *item,
                           const gboolean *top, double *stream_mass, DilutionFacts *out,
                           GError **error);

G_END_DECLS
