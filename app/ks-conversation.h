/* ks-conversation.h - a live session: system text, messages, attached documents, answers.
 * A main-context object over KsConversationCore, which lives on the engine thread.  Requests return
 * a job; only one answer at a time runs, a new budget or policy takes effect between two of its
 * steps. Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-answer.h"
#include "app/ks-engine.h"
#include "app/ks-memory-stats.h"
#include "app/ks-picture-trace.h"
#include "app/ks-prompt-builder.h"
#include "app/ks-turn-text.h"

G_BEGIN_DECLS

#define KS_TYPE_CONVERSATION (ks_conversation_get_type ())
G_DECLARE_FINAL_TYPE (KsConversation, ks_conversation, KS, CONVERSATION, GObject)

/* engine must have a model loaded by the time the first request runs. */
KsConversation *ks_conversation_new (KsEngine *engine);

/* Used in front of the first message; NULL = the model's own default. */
void ks_conversation_set_system (KsConversation *self, const char *text);
/* The stored session whose states are kept, so that going back to one of them costs no reading; 0
 * (at first) = none are. */
void ks_conversation_set_session (KsConversation *self, gint64 session);
/* A document for the next message; text is UTF-8. */
void ks_conversation_add_document (KsConversation *self, const char *name, const char *text);

/* What the next message is made of, for parts of documents. (transfer none) */
KsPromptBuilder *ks_conversation_get_builder (KsConversation *self);
/* A picture for the next message, seen by a model with eyes. */
void ks_conversation_add_picture (KsConversation *self, KsPicture *take_picture);

/* Signals of the jobs: ks-engine-job.h. (transfer full) */
KsEngineJob *ks_conversation_ask (KsConversation *self, const char *question,
                                  const KsAnswerOptions *options);
/* The same with a message that is complete; its answer is ignored. (transfer full) */
KsEngineJob *ks_conversation_ask_turn (KsConversation *self, KsTurnText *take_turn,
                                       const KsAnswerOptions *options);
/* Goes on with an answer that met its limit or was cancelled. (transfer full) */
KsEngineJob *ks_conversation_continue (KsConversation *self, const KsAnswerOptions *options);
/* Reads stored turns (of KsTurnText) in place of what was read before; progress in tokens.
 * Failed or cancelled: the conversation is as new, restore it again. (transfer full) */
KsEngineJob *ks_conversation_restore (KsConversation *self, GPtrArray *take_turns);
/* Take effect at once, also in the middle of an answer. (transfer full) */
KsEngineJob *ks_conversation_set_budget (KsConversation *self, const ks_budget_request *request);
/* For everything on the device; below the smallest that works (ks_conversation_dup_stats tells it)
 * the smallest is taken. (transfer full) */
KsEngineJob *ks_conversation_set_target (KsConversation *self, guint64 total_bytes);
KsEngineJob *ks_conversation_set_policy (KsConversation *self, ks_policy policy);

/* Keeps a turn (hash NULL), or the pictures of the file with that hash in it, whatever else is let
 * go, or lets it fade again.  *out_is_whole (may be NULL, borrowed until the job has finished):
 * nothing of it had been let go.  Fails with KS_ERR_BUDGET where it does not fit. (transfer full)
 */
KsEngineJob *ks_conversation_pin (KsConversation *self, guint turn, const char *hash,
                                  gboolean pinned, gboolean *out_is_whole);
/* Fills trace (borrowed until the job has finished) with what is kept of a picture, between two
 * steps; fails when there is no such picture. (transfer full) */
KsEngineJob *ks_conversation_trace (KsConversation *self, guint turn, guint number,
                                    KsPictureTrace *trace);
/* The latest numbers; NULL before the first request ran. (transfer full) */
KsMemoryStats *ks_conversation_dup_stats (KsConversation *self);
/* The answer that runs or ran last. */
KsAnswerInfo ks_conversation_get_answer (KsConversation *self);

G_END_DECLS
