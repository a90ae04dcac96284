/* ks-conversation-core.h - the engine side of a conversation: timeline, sampler, chat encoding.
 * An answer's tokens are evaluated as soon as they are picked, so that it can be continued at any
 * point; what closes it (end-of-turn tokens) is encoded in front of the next message. Threads:
 * engine thread only, except the published numbers (under their lock). */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-answer.h"
#include "app/ks-engine.h"
#include "app/ks-memory-stats.h"
#include "app/ks-picture-trace.h"
#include "app/ks-turn-text.h"

G_BEGIN_DECLS

typedef struct _KsConversationCore KsConversationCore;

KsConversationCore *ks_conversation_core_new (void); /* any thread */
/* Frees it; on the engine thread once something was asked. */
void ks_conversation_core_free (KsConversationCore *core);

/* The stored session whose states are kept for going back to them; 0 = none are. */
void ks_conversation_core_set_session (KsConversationCore *core, gint64 session);
/* Reads a user's message with its pictures (system may be NULL; used before the first message) and
 * answers it; pieces go out as "text" events of job.  FALSE and error when it failed or was
 * cancelled: a message whose reading was cancelled is dropped, a cancelled answer stays and can be
 * continued. */
gboolean ks_conversation_core_ask (KsConversationCore *core, KsEngine *engine, KsEngineJob *job,
                                   const char *system, const KsTurnText *turn,
                                   const KsAnswerOptions *options, GError **error);
gboolean ks_conversation_core_continue (KsConversationCore *core, KsEngine *engine,
                                        KsEngineJob *job, const KsAnswerOptions *options,
                                        GError **error);
/* In place of whatever was read: the turns (of KsTurnText) as if they had just been had, each under
 * its own number; an unfinished last answer can be continued.  Failed or cancelled: nothing is read
 * at all. */
gboolean ks_conversation_core_restore (KsConversationCore *core, KsEngine *engine, KsEngineJob *job,
                                       const char *system, GPtrArray *turns, GError **error);
gboolean ks_conversation_core_set_budget (KsConversationCore *core, KsEngine *engine,
                                          KsEngineJob *job, const ks_budget_request *request,
                                          GError **error);
/* Target for everything; below the smallest that works the smallest is taken. */
gboolean ks_conversation_core_set_target (KsConversationCore *core, KsEngine *engine,
                                          KsEngineJob *job, guint64 total_bytes, GError **error);
gboolean ks_conversation_core_set_policy (KsConversationCore *core, KsEngine *engine,
                                          KsEngineJob *job, ks_policy policy, GError **error);

/* Keeps a turn, or the pictures of one file in it, from now on whatever else is let go, or lets it
 * fade again; nothing where the model has not read it.  *out_is_whole (may be NULL): nothing of it
 * was let go before.  Refused with KS_ERR_BUDGET where it does not fit. */
gboolean ks_conversation_core_pin (KsConversationCore *core, KsEngineJob *job, guint turn,
                                   const char *hash, gboolean pinned, gboolean *out_is_whole,
                                   GError **error);

/* What is kept of one picture. */
gboolean ks_conversation_core_trace (KsConversationCore *core, guint turn, guint number,
                                     KsPictureTrace *trace, GError **error);

/* Any thread. */
KsMemoryStats *
ks_conversation_core_dup_stats (KsConversationCore *core); /* NULL before the first */
KsAnswerInfo ks_conversation_core_get_answer (KsConversationCore *core);

G_END_DECLS
