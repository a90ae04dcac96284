/* eval-session.h - asks a loaded model the items of one cell: its policy, budget and seed, one item
 * after the other from an empty memory.  The page pool must hold the longest item whole for the
 * policy full (ks_engine_options.budget.entries).
 * Threads: engine. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/eval-item.h"
#include "app/ks-engine-setup.h"

G_BEGIN_DECLS

/* "name", or "name:option=value:...", as it
 * stands in a cell.  mode: the cell's.  KS_APP_ERROR_USAGE says what is wrong. */
gboolean ks_eval_policy_parse (const char *text, const char *mode, ks_evict_params *out,
                               GError **error);

typedef struct {
  guint max_new;    /* tokens of an answer, at most */
  gboolean forced;  /* the references are read in place of answers, and their loss is measured */
  KsEngineJob *job; /* asked whether to stop; NULL = never */
} KsEvalAsk;

typedef struct _KsEvalSession KsEvalSession;

KsEvalSession *ks_eval_session_new (KsEngineSetup *setup, const KsEvalCell *cell, GError **error);
void ks_eval_session_free (KsEvalSession *session); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsEvalSession, ks_eval_session_free)

/* Reads and answers all turns of an item whose template was filled in.  rows gets one for each turn
 * that the model answers, with references, tokens, peak, times; bench "NAME-forced" with "nll",
 * "n_scored" and the likeliest ids as prediction where the references were read. */
gboolean ks_eval_session_ask (KsEvalSession *session, const KsEvalItem *item, const KsEvalAsk *ask,
                              GPtrArray *rows, GError **error);
/* Tokens of text alone; a KsEvalCount whose user is the setup. */
guint ks_eval_session_count (const char *text, gpointer setup);
/* What stands in its memory after the last item; borrowed. */
ks_timeline *ks_eval_session_get_timeline (KsEvalSession *session);

G_END_DECLS
