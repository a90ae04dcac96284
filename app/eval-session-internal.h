/* eval-session-internal.h - what the parts of an evaluation's session share: eval-session.c (turns,
 * answers, rows) and eval-session-look.c (pictures).  Threads: engine. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/eval-session.h"
#include "app/ks-picture-loader.h"

G_BEGIN_DECLS

struct _KsEvalSession {
  KsEngineSetup *setup;
  KsEvalCell cell;
  ks_timeline *tl;
  KsPictureLoader *loader;
  char *folder; /* for pictures that come as text; NULL until there is one */
  guint n_vocab;
  guint64 n_stream;
  /* of the item */
  const KsEvalAsk *ask;
  guint turn;
  gboolean answer_open; /* an answer stands at the end, not closed yet */
  ks_token last_id;
  guint n_text;   /* text tokens so far, for the budget "text" */
  guint n_prompt; /* read since the last answer */
  double prompt_s;
  guint64 n_peak;
  ks_token best; /* likeliest after the last token read */
  /* of a reference that is read */
  const ks_token *wanted;
  guint n_wanted, n_scored;
  double nll;
  GString *picks;
};

/* The pictures of one turn: how they stand in the message, and their embeddings. */
typedef struct {
  ks_chat_visual *visuals;
  ks_vision_embeds *embeds; /* with data of our own */
  guint n;
} KsEvalLooks;

/* Decodes and encodes the pictures of a turn. */
gboolean ks_eval_look (KsEvalSession *session, const KsEvalTurn *turn, KsEvalLooks *out,
                       GError **error);
void ks_eval_looks_clear (KsEvalLooks *looks);
/* The runs of visual tokens for the slots that the encoder made. (g_free) */
ks_visual_run *ks_eval_looks_make_runs (const KsEvalLooks *looks, const ks_chat_slots *slots);

G_END_DECLS
