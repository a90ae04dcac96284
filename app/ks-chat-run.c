/* ks-chat-run.c - one request of a chat, step by step:
 *   store it -> wait for the engine -> read texts from the blobs -> read earlier turns again, when
 *   the model does not hold exactly them -> read the message and answer -> store the end.
 * Each step ends in a callback that looks at run.stop first; the run holds a reference to its chat.
 * What an answer writes is shown and stored by ks-chat-stream.c.
 * Threads: main; texts are made on a task's thread. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-chat-internal.h"

#include "app/ks-error.h"
#include "app/ks-notices.h"

#define SEED_STEP 7919 /* apart by more than there are turns */

gboolean
ks_chat_has_run (KsChat *self)
{
  return self->run.kind != KS_RUN_NONE;
}

static void
clear_run (KsChat *self)
{
  KsRun *run = &self->run;

  g_clear_object (&run->user);
  g_clear_object (&run->answer);
  g_clear_object (&run->edited);
  g_clear_object (&run->cancellable);
  g_clear_object (&run->job);
  g_clear_pointer (&run->texts, g_ptr_array_unref);
  g_clear_pointer (&run->reads, g_array_unref);
  g_clear_pointer (&run->asked, ks_turn_text_free);
  g_clear_pointer (&run->pending, g_ptr_array_unref);
  *run = (KsRun){0};
}

void
ks_chat_drop_conversation (KsChat *self)
{
  g_clear_object (&self->conversation);
  g_clear_pointer (&self->policy, g_free);
  g_clear_pointer (&self->system, g_free);
  self->kv_budget_bytes = 0;
  g_array_set_size (self->read, 0);
  self->in_step = FALSE;
}

guint
ks_chat_count_answer (KsChat *self)
{
  if (self->conversation == NULL)
    return self->run.n_before;
  return self->run.n_before + ks_conversation_get_answer (self->conversation).n_answer;
}

/* --- the end --- */

static void
end_run (KsChat *self, KsMessageState state, const char *problem)
{
  g_autoptr (KsMessage) answer = g_object_ref (self->run.answer);
  gboolean granted = self->run.granted;

  ks_chat_show_piece (self);
  g_clear_handle_id (&self->store_source, g_source_remove);
  if (granted)
    ks_message_set_n_tokens (answer, ks_chat_count_answer (self));
  if (self->run.user != NULL && self->run.n_prompt > 0)
    ks_message_set_n_tokens (self->run.user, self->run.n_prompt);
  ks_message_set_error (answer, problem);
  ks_message_set_state (answer, state);
  ks_chat_store_end (self, state, problem);
  clear_run (self);
  ks_chat_set_looking (self, NULL, 0, 0);
  ks_chat_set_progress (self, 0, 0);
  ks_chat_set_state (self, KS_CHAT_IDLE);
  ks_library_raise_session (self->library, self->session);
  ks_chat_emit_answered (self, answer);
  ks_library_release_slot (self->library, self);
  g_object_unref (self); /* of the run */
}

static void
fail_run (KsChat *self, const GError *error)
{
  self->failure = g_error_copy (error);
  end_run (self, KS_MESSAGE_FAILED, error->message);
}

/* Stopped or failed before the model was asked. */
static void
give_up (KsChat *self, const GError *error)
{
  if (self->run.stop || error == NULL || ks_error_is_cancelled (error))
    end_run (self, KS_MESSAGE_STOPPED, NULL);
  else
    fail_run (self, error);
}

/* --- answering --- */

static void
progress_cb (KsEngineJob *job, guint n_done, guint n_total, gpointer user_data)
{
  KsChat *self = user_data;

  if (job != self->run.job)
    return;
  ks_chat_set_progress (self, n_done, n_total);
  if (self->state == KS_CHAT_READING && n_done == n_total)
    ks_chat_set_state (self, KS_CHAT_ANSWERING);
}

static void
looking_cb (KsEngineJob *job, const char *name, guint n_done, guint n_total, gpointer user_data)
{
  KsChat *self = user_data;

  if (job == self->run.job)
    ks_chat_set_looking (self, name, n_done, n_total);
}

static void
text_cb (KsEngineJob *job, const char *text, gpointer user_data)
{
  KsChat *self = user_data;

  if (job != self->run.job)
    return;
  ks_chat_add_piece (self, text);
}

static void
notice_cb (KsEngineJob *job, const char *text, gpointer user_data)
{
  ks_chat_emit_notice (user_data, text);
}

static void
watch_job (KsChat *self, KsEngineJob *take_job, GCallback finished)
{
  g_set_object (&self->run.job, take_job);
  g_object_unref (take_job);
  g_signal_connect_object (take_job, "progress", G_CALLBACK (progress_cb), self, 0);
  g_signal_connect_object (take_job, "looking", G_CALLBACK (looking_cb), self, 0);
  g_signal_connect_object (take_job, "text", G_CALLBACK (text_cb), self, 0);
  g_signal_connect_object (take_job, "notice", G_CALLBACK (notice_cb), self, 0);
  g_signal_connect_object (take_job, "finished", finished, self, 0);
  if (self->run.stop)
    ks_engine_job_cancel (take_job);
}

/* What the conversation holds after an answer that ended like this. */
static void
book_turn (KsChat *self, KsAnswerEnd end)
{
  KsTurnIds ids = {0};

  if (end == KS_ANSWER_NONE || end == KS_ANSWER_FAILED) {
    self->in_step = FALSE;
    return;
  }
  if (self->run.kind == KS_RUN_CONTINUE)
    return;
  ids.user = self->run.user != NULL ? ks_message_get_id (self->run.user) : 0;
  ids.answer = ks_message_get_id (self->run.answer);
  ids.pins = self->run.pins;
  g_array_append_val (self->read, ids);
}

static KsMessageState
get_end_state (KsAnswerEnd end, gboolean cancelled)
{
  if (cancelled)
    return KS_MESSAGE_STOPPED;
  return end == KS_ANSWER_LIMIT ? KS_MESSAGE_LIMIT : KS_MESSAGE_COMPLETE;
}

static void
answered_cb (KsEngineJob *job, gpointer user_data)
{
  KsChat *self = user_data;
  const GError *error = ks_engine_job_get_error (job);
  KsAnswerInfo info = ks_conversation_get_answer (self->conversation);
  gboolean cancelled = error != NULL && ks_error_is_cancelled (error);

  book_turn (self, info.end);
  self->run.n_prompt = info.n_prompt;
  if (error != NULL && !cancelled) {
    fail_run (self, error);
    return;
  }
  if (cancelled && info.end == KS_ANSWER_NONE && self->run.kind != KS_RUN_CONTINUE)
    ks_chat_emit_notice (self, KS_NOTICE_UNREAD);
  end_run (self, get_end_state (info.end, cancelled), NULL);
}

static KsAnswerOptions *
make_options (KsChat *self)
{
  KsAnswerOptions *options =
      self->answer_options != NULL
          ? ks_answer_options_copy (self->answer_options)
          : ks_settings_make_answer_options (self->library->settings, self->settings);

  options->may_continue = TRUE;
  /* Another draw for each branch of an answer. */
  options->sampler.seed += (guint64)SEED_STEP * ks_message_get_sibling (self->run.answer);
  return options;
}

static void
ask (KsChat *self)
{
  g_autoptr (KsAnswerOptions) options = make_options (self);
  KsEngineJob *job;

  ks_chat_set_progress (self, 0, 0);
  if (self->run.kind == KS_RUN_CONTINUE) {
    ks_chat_set_state (self, KS_CHAT_ANSWERING);
    job = ks_conversation_continue (self->conversation, options);
  } else {
    ks_chat_set_state (self, KS_CHAT_READING);
    job =
        ks_conversation_ask_turn (self->conversation, g_steal_pointer (&self->run.asked), options);
  }
  watch_job (self, job, G_CALLBACK (answered_cb));
  if (self->run.stop)
    ks_chat_set_state (self, KS_CHAT_STOPPING);
  ks_chat_start_storing (self);
}

/* --- reading again --- */

static void
restored_cb (KsEngineJob *job, gpointer user_data)
{
  KsChat *self = user_data;
  const GError *error = ks_engine_job_get_error (job);

  if (error != NULL) {
    give_up (self, error);
    return;
  }
  g_array_set_size (self->read, 0);
  g_array_append_vals (self->read, self->run.reads->data, self->run.reads->len);
  self->in_step = TRUE;
  ask (self);
}

static void
setting_cb (KsEngineJob *job, gpointer user_data)
{
  const GError *error = ks_engine_job_get_error (job);

  if (error != NULL)
    ks_chat_emit_notice (user_data, error->message);
}

static void
watch_setting (KsChat *self, KsEngineJob *take_job)
{
  g_signal_connect_object (take_job, "finished", G_CALLBACK (setting_cb), self, 0);
  g_object_unref (take_job);
}

/* The session's, else the program's. (transfer full) */
static char *
dup_wanted_system (KsChat *self)
{
  if (self->settings->system_prompt != NULL)
    return g_strdup (self->settings->system_prompt);
  return ks_settings_dup_system_prompt (self->library->settings);
}

void
ks_chat_apply_kv_budget (KsChat *self)
{
  ks_budget_request request = {.kv_bytes = (guint64)MAX (self->settings->kv_budget_bytes, 0)};

  if (self->library->options != NULL || request.kv_bytes == self->kv_budget_bytes)
    return;
  self->kv_budget_bytes = request.kv_bytes;
  /* Whatever comes next has to set the target again; without a budget of its own that is now. */
  self->library->target_bent = TRUE;
  if (request.kv_bytes > 0)
    watch_setting (self, ks_conversation_set_budget (self->conversation, &request));
}

static void
make_conversation (KsChat *self)
{
  ks_policy policy;

  ks_chat_drop_conversation (self);
  self->conversation = ks_conversation_new (self->library->engine);
  self->system = dup_wanted_system (self);
  ks_conversation_set_system (self->conversation, self->system);
  ks_conversation_set_session (self->conversation, ks_session_get_id (self->session));
  ks_chat_apply_kv_budget (self);
  self->policy = g_strdup (self->settings->policy);
  if (self->policy != NULL && ks_policy_parse (self->policy, &policy))
    watch_setting (self, ks_conversation_set_policy (self->conversation, policy));
}

void
ks_chat_keep_from_now (KsChat *self)
{
  g_autoptr (KsMemoryStats) stats = NULL;

  if (self->conversation == NULL)
    return;
  stats = ks_conversation_dup_stats (self->conversation);
  if (stats == NULL || stats->kv.n_evicted > 0)
    return;
  g_free (self->policy);
  self->policy = g_strdup (self->settings->policy);
  watch_setting (self, ks_conversation_set_policy (self->conversation, KS_POLICY_FULL));
}

static void
read_again (KsChat *self)
{
  make_conversation (self);
  if (self->run.texts->len == 0) {
    self->in_step = TRUE;
    ask (self);
    return;
  }
  ks_chat_set_state (self, self->run.stop ? KS_CHAT_STOPPING : KS_CHAT_REREADING);
  watch_job (self, ks_conversation_restore (self->conversation, g_steal_pointer (&self->run.texts)),
             G_CALLBACK (restored_cb));
}

/* --- texts --- */

/* What a task's thread makes. */
typedef struct {
  KsBlobStore *blobs;
  GPtrArray *sources;  /* NULL = nothing is read again */
  KsTurnSource *asked; /* NULL for CONTINUE */
  KsEyes eyes;
  GPtrArray *texts;
  KsTurnText *message;
} Texts;

static void
free_texts (gpointer data)
{
  Texts *texts = data;

  g_clear_object (&texts->blobs);
  g_clear_pointer (&texts->sources, g_ptr_array_unref);
  g_clear_pointer (&texts->asked, ks_turn_source_free);
  g_clear_pointer (&texts->texts, g_ptr_array_unref);
  ks_turn_text_free (texts->message);
  g_free (texts);
}

static void
make_texts (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  Texts *texts = data;
  GError *error = NULL;

  if (texts->sources != NULL)
    texts->texts =
        ks_turn_source_make_texts (texts->sources, texts->blobs, &texts->eyes, cancellable, &error);
  if (error == NULL && texts->asked != NULL)
    texts->message = ks_turn_source_make_text (texts->asked, texts->blobs, &texts->eyes);
  if (error != NULL)
    g_task_return_error (task, error);
  else
    g_task_return_boolean (task, TRUE);
}

static void
made_texts_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (KsChat) self = user_data;
  Texts *texts = g_task_get_task_data (G_TASK (result));
  g_autoptr (GError) error = NULL;

  if (!g_task_propagate_boolean (G_TASK (result), &error) || self->run.stop) {
    give_up (self, error);
    return;
  }
  self->run.texts = g_steal_pointer (&texts->texts);
  self->run.asked = g_steal_pointer (&texts->message);
  if (self->run.texts != NULL)
    read_again (self);
  else
    ask (self);
}

/* Where the question right before a new one is left out; later it is not told again. */
static void
tell_left_out (KsChat *self, const KsTurnSource *source, guint number)
{
  g_autofree char *text = NULL;

  if (self->run.kind != KS_RUN_SEND || self->run.edited != NULL)
    return;
  text = g_strdup_printf ("Question %u was %s and stays out: ask it again.", number,
                          source->stopped ? "stopped before it was read" : "not answered");
  ks_chat_emit_notice (self, text);
}

/* The turns that have to stand in front of what is asked.  One without a word of an answer is left
 * out, unless the model has read it or it is the one to go on with. */
static GPtrArray *
list_wanted (KsChat *self)
{
  gboolean go_on = self->run.kind == KS_RUN_CONTINUE;
  guint n_message = g_list_model_get_n_items (G_LIST_MODEL (self->messages)), number = 1;
  GPtrArray *sources;

  if (!go_on)
    n_message -= MIN (n_message, self->run.user != NULL ? 2u : 1u);
  sources = ks_turn_source_list (G_LIST_MODEL (self->messages), n_message);
  for (guint i = 0; i < sources->len; number++) {
    KsTurnSource *source = g_ptr_array_index (sources, i);
    gboolean is_read =
        i < self->read->len && g_array_index (self->read, KsTurnIds, i).answer == source->answer;

    if (ks_turn_source_is_empty (source) && !is_read && !(go_on && i + 1 == sources->len)) {
      if (i + 1 == sources->len)
        tell_left_out (self, source, number);
      g_ptr_array_remove_index (sources, i);
    } else {
      i++;
    }
  }
  return sources;
}

static gboolean
holds_exactly (KsChat *self, GPtrArray *sources)
{
  g_autofree char *system = dup_wanted_system (self);

  if (self->conversation == NULL || !self->in_step || self->read->len != sources->len ||
      g_strcmp0 (self->policy, self->settings->policy) != 0 ||
      g_strcmp0 (self->system, system) != 0)
    return FALSE;
  for (guint i = 0; i < sources->len; i++) {
    const KsTurnSource *source = g_ptr_array_index (sources, i);
    const KsTurnIds *ids = &g_array_index (self->read, KsTurnIds, i);

    if (ids->user != source->user || ids->answer != source->answer || ids->pins != source->pins)
      return FALSE;
  }
  return TRUE;
}

static KsTurnSource *
make_asked (KsChat *self)
{
  g_autoptr (GPtrArray) sources = ks_turn_source_list (
      G_LIST_MODEL (self->messages), g_list_model_get_n_items (G_LIST_MODEL (self->messages)));

  return sources->len > 0 ? g_ptr_array_steal_index (sources, sources->len - 1) : NULL;
}

static void
prepare (KsChat *self)
{
  g_autoptr (GPtrArray) sources = list_wanted (self);
  g_autoptr (GTask) task = NULL;
  Texts *texts = g_new0 (Texts, 1);

  self->run.reads = g_array_new (FALSE, TRUE, sizeof (KsTurnIds));
  for (guint i = 0; i < sources->len; i++) {
    const KsTurnSource *source = g_ptr_array_index (sources, i);
    KsTurnIds ids = {.user = source->user, .answer = source->answer, .pins = source->pins};

    g_array_append_val (self->run.reads, ids);
    if (ks_turn_source_has_pictures (source))
      ks_chat_tell_blind (self);
  }
  texts->blobs = ks_session_service_ref_blobs (self->library->service);
  texts->eyes = self->library->eyes;
  if (self->run.kind != KS_RUN_CONTINUE)
    texts->asked = make_asked (self);
  if (texts->asked != NULL && ks_turn_source_has_pictures (texts->asked))
    ks_chat_tell_blind (self); /* sent before the model was there */
  self->run.pins = texts->asked != NULL ? texts->asked->pins : 0;
  if (!holds_exactly (self, sources)) {
    texts->sources = g_steal_pointer (&sources);
    ks_chat_set_state (self, KS_CHAT_REREADING);
  }
  self->run.cancellable = g_cancellable_new ();
  /* Without a source object: its thread may be the last to let go of a task. */
  task = g_task_new (NULL, self->run.cancellable, made_texts_cb, g_object_ref (self));
  g_task_set_task_data (task, texts, free_texts);
  g_task_run_in_thread (task, make_texts);
}

void
ks_chat_slot_granted (KsChat *self, const GError *error)
{
  self->run.granted = error == NULL;
  if (error != NULL || self->run.stop)
    give_up (self, error);
  else
    prepare (self);
}

/* --- the beginning --- */

/* Puts the new messages where the old branch stood. */
static void
show_begun (KsChat *self, const KsBegun *begun, gint64 parent)
{
  guint n = g_list_model_get_n_items (G_LIST_MODEL (self->messages)), keep = 0;
  gpointer added[2];
  guint n_added = 0;

  for (guint i = 0; i < n && parent != 0; i++) {
    g_autoptr (KsMessage) message = g_list_model_get_item (G_LIST_MODEL (self->messages), i);

    if (ks_message_get_id (message) == parent)
      keep = i + 1;
  }
  if (begun->user != NULL)
    added[n_added++] = begun->user;
  added[n_added++] = begun->answer;
  g_list_store_splice (self->messages, keep, n - keep, added, n_added);
}

typedef struct {
  KsChat *chat;
  gint64 parent;
  KsRunKind kind;
  gboolean has_user;
} Beginning;

static void
begin_failed (KsChat *self, const GError *error)
{
  ks_chat_give_back_attachments (self, self->run.pending);
  clear_run (self);
  ks_chat_set_state (self, KS_CHAT_IDLE);
  ks_chat_emit_failed (self, error);
  /* A message may have been stored before its answer could not be. */
  if (self->session != NULL)
    ks_chat_reload (self);
  g_object_unref (self); /* of the run */
}

static void
begun_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autofree Beginning *beginning = user_data;
  g_autoptr (KsChat) self = beginning->chat;
  g_autoptr (GError) error = NULL;
  KsBegun *begun = ks_session_service_call_finish (self->library->service, result, &error);

  ks_library_end_write (self->library);
  if (begun != NULL)
    g_clear_pointer (&self->run.pending, g_ptr_array_unref);
  if (begun == NULL) {
    begin_failed (self, error);
    return;
  }
  if (begun->session != NULL)
    ks_chat_set_session (self, begun->session);
  if (begun->user != NULL)
    g_set_object (&self->run.user, begun->user);
  if (begun->answer != NULL) {
    g_set_object (&self->run.answer, begun->answer);
    show_begun (self, begun, beginning->parent);
  } else {
    ks_message_set_error (self->run.answer, NULL);
    ks_message_set_state (self->run.answer, KS_MESSAGE_STREAMING);
  }
  ks_session_set_n_messages (self->session, ks_session_get_n_messages (self->session) +
                                                (begun->user != NULL) + (begun->answer != NULL));
  ks_begun_free (begun);
  ks_library_raise_session (self->library, self->session);
  if (self->run.stop)
    end_run (self, KS_MESSAGE_STOPPED, NULL);
  else
    ks_library_want_slot (self->library, self);
}

/* As KsBeginRequest has them. (transfer full) */
static GPtrArray *
list_pins (KsMessage *message)
{
  GListModel *list = ks_message_get_attachments (message);
  GPtrArray *pins = g_ptr_array_new_with_free_func (g_free);

  if (ks_message_is_pinned (message, NULL))
    g_ptr_array_add (pins, g_strdup (""));
  for (guint i = 0; i < g_list_model_get_n_items (list); i++) {
    g_autoptr (KsAttachment) attachment = g_list_model_get_item (list, i);

    if (ks_message_is_pinned (message, ks_attachment_get_hash (attachment)))
      g_ptr_array_add (pins, g_strdup (ks_attachment_get_hash (attachment)));
  }
  return pins;
}

void
ks_chat_start_run (KsChat *self, KsRunKind kind, gint64 parent, KsMessage *user, KsMessage *answer,
                   const char *text, GPtrArray *attachments)
{
  KsBeginRequest *request = g_new0 (KsBeginRequest, 1);
  Beginning *beginning = g_new0 (Beginning, 1);

  g_object_ref (self); /* of the run */
  g_clear_error (&self->failure);
  self->run.kind = kind;
  g_set_object (&self->run.user, user);
  if (kind == KS_RUN_CONTINUE) {
    g_set_object (&self->run.answer, answer);
    self->run.n_before = ks_message_get_n_tokens (answer);
    request->answer = ks_message_get_id (answer);
    request->answer_text = g_strdup (ks_message_get_text (answer));
    request->n_tokens = self->run.n_before;
  }
  request->session = self->session != NULL ? ks_session_get_id (self->session) : 0;
  if (request->session == 0) {
    request->title = ks_chat_make_title (text, attachments);
    request->settings = ks_session_settings_copy (self->settings);
  }
  request->parent = parent;
  if (self->run.edited != NULL)
    request->pins = list_pins (self->run.edited);
  request->text = g_strdup (text);
  request->attachments = attachments != NULL ? g_ptr_array_ref (attachments) : NULL;
  beginning->chat = g_object_ref (self);
  beginning->parent = parent;
  ks_chat_set_state (self, KS_CHAT_WAITING);
  ks_library_begin_write (self->library);
  ks_session_service_call_async (self->library->service, ks_chat_store_begin, request,
                                 ks_begin_request_free, ks_begun_free, NULL, begun_cb, beginning);
}

void
ks_chat_stop (KsChat *self)
{
  g_return_if_fail (KS_IS_CHAT (self));
  if (!ks_chat_has_run (self) || self->run.stop)
    return;
  self->run.stop = TRUE;
  if (self->run.job != NULL)
    ks_engine_job_cancel (self->run.job);
  if (self->run.cancellable != NULL)
    g_cancellable_cancel (self->run.cancellable);
  if (self->run.answer != NULL && !self->run.granted && self->state == KS_CHAT_WAITING &&
      ks_message_get_state (self->run.answer) == KS_MESSAGE_STREAMING &&
      g_queue_find (self->library->waiting, self) != NULL)
    end_run (self, KS_MESSAGE_STOPPED, NULL);
  else
    ks_chat_set_state (self, KS_CHAT_STOPPING);
}
