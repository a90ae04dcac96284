/* ks-conversation.c - see ks-conversation.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-conversation.h"

#include "app/ks-conversation-core.h"
#include "app/ks-prompt-builder.h"

struct _KsConversation {
  GObject parent_instance;
  KsEngine *engine;
  KsConversationCore *core;
  KsPromptBuilder *builder;
  char *system;
  gint64 session;
  guint n_running; /* long requests that have not ended */
};

G_DEFINE_FINAL_TYPE (KsConversation, ks_conversation, G_TYPE_OBJECT)

/* One request on its way to the engine thread. */
typedef struct {
  KsConversationCore *core; /* outlives the request: freed by a job behind it */
  gint64 session;
  char *system;
  KsTurnText *turn;
  KsAnswerOptions *options;
  ks_budget_request budget;
  guint64 target_bytes;
  ks_policy policy;
  GPtrArray *turns;          /* of KsTurnText */
  guint turn_number, number; /* number: of a picture */
  KsPictureTrace *trace;
  char *hash; /* of a file; NULL = the turn */
  gboolean pinned, *out_is_whole;
} Request;

static void
free_request (gpointer data)
{
  Request *request = data;

  g_free (request->system);
  ks_turn_text_free (request->turn);
  ks_answer_options_free (request->options);
  g_clear_pointer (&request->turns, g_ptr_array_unref);
  g_free (request->hash);
  g_free (request);
}

/* Its requests have ended when none is counted, and what it holds has to be free before another
 * conversation's urgent requests look at the pool; otherwise it waits behind what runs. */
static gboolean
free_core_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  return TRUE;
}

static void
ks_conversation_dispose (GObject *object)
{
  KsConversation *self = KS_CONVERSATION (object);

  if (self->core != NULL) {
    g_autoptr (KsEngineJob) job = ks_engine_job_new (free_core_job, g_steal_pointer (&self->core),
                                                     (GDestroyNotify)ks_conversation_core_free);

    if (self->n_running == 0)
      ks_engine_push_urgent (self->engine, job);
    else
      ks_engine_push (self->engine, job);
  }
  g_clear_object (&self->engine);
  G_OBJECT_CLASS (ks_conversation_parent_class)->dispose (object);
}

static void
ks_conversation_finalize (GObject *object)
{
  KsConversation *self = KS_CONVERSATION (object);

  ks_prompt_builder_free (self->builder);
  g_free (self->system);
  G_OBJECT_CLASS (ks_conversation_parent_class)->finalize (object);
}

static void
ks_conversation_class_init (KsConversationClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = ks_conversation_dispose;
  G_OBJECT_CLASS (klass)->finalize = ks_conversation_finalize;
}

static void
ks_conversation_init (KsConversation *self)
{
  self->core = ks_conversation_core_new ();
  self->builder = ks_prompt_builder_new ();
}

KsConversation *
ks_conversation_new (KsEngine *engine)
{
  KsConversation *self;

  g_return_val_if_fail (KS_IS_ENGINE (engine), NULL);
  self = g_object_new (KS_TYPE_CONVERSATION, NULL);
  self->engine = g_object_ref (engine);
  return self;
}

void
ks_conversation_set_system (KsConversation *self, const char *text)
{
  char *copy = g_strdup (text);

  g_return_if_fail (KS_IS_CONVERSATION (self));
  g_free (self->system);
  self->system = copy;
}

void
ks_conversation_set_session (KsConversation *self, gint64 session)
{
  g_return_if_fail (KS_IS_CONVERSATION (self) && session >= 0);
  self->session = session;
}

void
ks_conversation_add_document (KsConversation *self, const char *name, const char *text)
{
  g_return_if_fail (KS_IS_CONVERSATION (self));
  ks_prompt_builder_add_document (self->builder, name, text);
}

KsPromptBuilder *
ks_conversation_get_builder (KsConversation *self)
{
  g_return_val_if_fail (KS_IS_CONVERSATION (self), NULL);
  return self->builder;
}

void
ks_conversation_add_picture (KsConversation *self, KsPicture *take_picture)
{
  g_return_if_fail (KS_IS_CONVERSATION (self) && take_picture != NULL);
  ks_prompt_builder_add_seen (self->builder, take_picture);
}

static gboolean
ask_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  Request *request = data;

  ks_conversation_core_set_session (request->core, request->session);
  return ks_conversation_core_ask (request->core, engine, job, request->system, request->turn,
                                   request->options, error);
}

static gboolean
continue_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  Request *request = data;

  ks_conversation_core_set_session (request->core, request->session);
  return ks_conversation_core_continue (request->core, engine, job, request->options, error);
}

static gboolean
restore_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  Request *request = data;

  ks_conversation_core_set_session (request->core, request->session);
  return ks_conversation_core_restore (request->core, engine, job, request->system, request->turns,
                                       error);
}

static gboolean
target_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  Request *request = data;

  return ks_conversation_core_set_target (request->core, engine, job, request->target_bytes, error);
}

static gboolean
budget_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  Request *request = data;

  return ks_conversation_core_set_budget (request->core, engine, job, &request->budget, error);
}

static gboolean
policy_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  Request *request = data;

  return ks_conversation_core_set_policy (request->core, engine, job, request->policy, error);
}

static Request *
new_request (KsConversation *self)
{
  Request *request = g_new0 (Request, 1);

  request->core = self->core;
  request->session = self->session;
  return request;
}

static void
ended_cb (KsEngineJob *job, gpointer user_data)
{
  ((KsConversation *)user_data)->n_running--;
}

static KsEngineJob *
push_long (KsConversation *self, KsEngineJobFunc func, Request *request)
{
  KsEngineJob *job = ks_engine_job_new (func, request, free_request);

  self->n_running++;
  g_signal_connect_object (job, "finished", G_CALLBACK (ended_cb), self, 0);
  ks_engine_push (self->engine, job);
  return job;
}

KsEngineJob *
ks_conversation_ask (KsConversation *self, const char *question, const KsAnswerOptions *options)
{
  g_return_val_if_fail (KS_IS_CONVERSATION (self) && question != NULL && options != NULL, NULL);
  return ks_conversation_ask_turn (self, ks_prompt_builder_take_turn (self->builder, question),
                                   options);
}

KsEngineJob *
ks_conversation_ask_turn (KsConversation *self, KsTurnText *take_turn,
                          const KsAnswerOptions *options)
{
  Request *request;

  g_return_val_if_fail (KS_IS_CONVERSATION (self) && take_turn != NULL && options != NULL, NULL);
  request = new_request (self);
  request->system = g_strdup (self->system);
  request->turn = take_turn;
  request->options = ks_answer_options_copy (options);
  return push_long (self, ask_job, request);
}

KsEngineJob *
ks_conversation_continue (KsConversation *self, const KsAnswerOptions *options)
{
  Request *request;

  g_return_val_if_fail (KS_IS_CONVERSATION (self) && options != NULL, NULL);
  request = new_request (self);
  request->options = ks_answer_options_copy (options);
  return push_long (self, continue_job, request);
}

KsEngineJob *
ks_conversation_restore (KsConversation *self, GPtrArray *take_turns)
{
  Request *request;

  g_return_val_if_fail (KS_IS_CONVERSATION (self) && take_turns != NULL, NULL);
  request = new_request (self);
  request->system = g_strdup (self->system);
  request->turns = take_turns;
  return push_long (self, restore_job, request);
}

KsEngineJob *
ks_conversation_set_target (KsConversation *self, guint64 total_bytes)
{
  KsEngineJob *job;
  Request *request;

  g_return_val_if_fail (KS_IS_CONVERSATION (self), NULL);
  request = new_request (self);
  request->target_bytes = total_bytes;
  job = ks_engine_job_new (target_job, request, free_request);
  ks_engine_push_urgent (self->engine, job);
  return job;
}

KsEngineJob *
ks_conversation_set_budget (KsConversation *self, const ks_budget_request *request)
{
  KsEngineJob *job;
  Request *copy;

  g_return_val_if_fail (KS_IS_CONVERSATION (self) && request != NULL, NULL);
  copy = new_request (self);
  copy->budget = *request;
  job = ks_engine_job_new (budget_job, copy, free_request);
  ks_engine_push_urgent (self->engine, job);
  return job;
}

KsEngineJob *
ks_conversation_set_policy (KsConversation *self, ks_policy policy)
{
  KsEngineJob *job;
  Request *request;

  g_return_val_if_fail (KS_IS_CONVERSATION (self), NULL);
  request = new_request (self);
  request->policy = policy;
  job = ks_engine_job_new (policy_job, request, free_request);
  ks_engine_push_urgent (self->engine, job);
  return job;
}

static gboolean
trace_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  Request *request = data;

  return ks_conversation_core_trace (request->core, request->turn_number, request->number,
                                     request->trace, error);
}

KsEngineJob *
ks_conversation_trace (KsConversation *self, guint turn, guint number, KsPictureTrace *trace)
{
  KsEngineJob *job;
  Request *request;

  g_return_val_if_fail (KS_IS_CONVERSATION (self) && trace != NULL, NULL);
  request = new_request (self);
  request->turn_number = turn;
  request->number = number;
  request->trace = trace;
  job = ks_engine_job_new (trace_job, request, free_request);
  ks_engine_push_urgent (self->engine, job);
  return job;
}

static gboolean
pin_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  Request *request = data;

  return ks_conversation_core_pin (request->core, job, request->turn_number, request->hash,
                                   request->pinned, request->out_is_whole, error);
}

KsEngineJob *
ks_conversation_pin (KsConversation *self, guint turn, const char *hash, gboolean pinned,
                     gboolean *out_is_whole)
{
  KsEngineJob *job;
  Request *request;

  g_return_val_if_fail (KS_IS_CONVERSATION (self), NULL);
  request = new_request (self);
  request->turn_number = turn;
  request->hash = g_strdup (hash);
  request->pinned = pinned;
  request->out_is_whole = out_is_whole;
  job = ks_engine_job_new (pin_job, request, free_request);
  ks_engine_push_urgent (self->engine, job);
  return job;
}

KsMemoryStats *
ks_conversation_dup_stats (KsConversation *self)
{
  g_return_val_if_fail (KS_IS_CONVERSATION (self), NULL);
  return ks_conversation_core_dup_stats (self->core);
}

KsAnswerInfo
ks_conversation_get_answer (KsConversation *self)
{
  g_return_val_if_fail (KS_IS_CONVERSATION (self), (KsAnswerInfo){0});
  return ks_conversation_core_get_answer (self->core);
}
