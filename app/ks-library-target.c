/* ks-library-target.c - the memory target: the slider moves it all the time, so that at most one
 * change is on its way to the engine and only the newest value waits behind it; it is stored when
 * it has rested.
 * Threads: main; job functions run on the engine thread. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-chat-internal.h"

#define SAVE_AFTER_MS 500

guint64
ks_library_read_saved_target (KsLibrary *self)
{
  g_autofree char *text = ks_settings_dup_budget (self->settings);
  uint64_t n_bytes = 0;

  if (text == NULL || ks_budget_parse_bytes (text, &n_bytes, NULL) != KS_OK)
    return 0;
  return n_bytes;
}

static gboolean
save_cb (gpointer user_data)
{
  KsLibrary *self = user_data;
  g_autofree char *text = g_strdup_printf ("%" G_GUINT64_FORMAT, self->default_target_bytes);

  self->save_source = 0;
  ks_settings_set_budget (self->settings, text);
  return G_SOURCE_REMOVE;
}

void
ks_library_clear_target (KsLibrary *self)
{
  self->next_target_bytes = 0;
  if (self->save_source != 0) {
    g_clear_handle_id (&self->save_source, g_source_remove);
    (void)save_cb (self);
  }
}

static void push_target (KsLibrary *self, guint64 target_bytes);

/* Without a conversation the plan of the next one changes. */
typedef struct {
  guint64 target_bytes;
  guint64 kv_bytes, n_keep, scratch_bytes, copy_bytes; /* out */
} Plan;

static gboolean
plan_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  KsEngineSetup *setup = ks_engine_get_setup (engine);
  Plan *plan = data;

  if (setup == NULL || setup->n_user > 0)
    return TRUE; /* a conversation came between: it takes the target with it */
  if (!ks_engine_setup_set_target (setup, plan->target_bytes, error))
    return FALSE;
  plan->kv_bytes = setup->plan.kv_bytes;
  plan->n_keep = setup->plan.n_keep;
  plan->scratch_bytes = setup->plan.scratch_bytes;
  plan->copy_bytes = ks_model_get_repacked_bytes (setup->model);
  return TRUE;
}

typedef struct {
  KsLibrary *library;
  KsConversation *conversation; /* NULL = the plan */
  Plan *plan;
} Change;

static void
show_change (KsLibrary *self, const Change *change)
{
  if (change->conversation != NULL) {
    g_autoptr (KsMemoryStats) stats = ks_conversation_dup_stats (change->conversation);

    if (stats == NULL)
      return;
    self->min_bytes = MAX (stats->least_bytes, self->least_bytes);
    self->target_bytes = MAX (self->target_bytes, self->min_bytes);
    if (self->idle_view != NULL) { /* holds on when the conversation goes */
      self->idle_view->kv_budget_bytes = stats->kv.kv_budget_bytes;
      self->idle_view->n_keep = stats->kv.n_keep;
      self->idle_view->copy_bytes = stats->kv.repacked_bytes;
      self->idle_view->target_bytes = self->target_bytes;
    }
  } else if (self->idle_view != NULL && change->plan->kv_bytes > 0) {
    self->idle_view->kv_budget_bytes = change->plan->kv_bytes;
    self->idle_view->n_keep = change->plan->n_keep;
    self->idle_view->scratch_bytes = change->plan->scratch_bytes;
    self->idle_view->copy_bytes = change->plan->copy_bytes;
    self->idle_view->target_bytes = change->plan->target_bytes;
  }
}

static void
changed_cb (KsEngineJob *job, gpointer user_data)
{
  Change *change = user_data;
  KsLibrary *self = change->library;
  const GError *error = ks_engine_job_get_error (job);
  guint64 before = self->target_bytes;

  g_clear_object (&self->target_job);
  if (error != NULL)
    ks_library_notice (self, error->message);
  else
    show_change (self, change);
  if (self->target_bytes != before)
    ks_library_notify (self, "target-bytes");
  if (self->next_target_bytes > 0 && !self->closing) {
    guint64 next = self->next_target_bytes;

    self->next_target_bytes = 0;
    push_target (self, next);
  }
  ks_library_check_closed (self);
  g_clear_object (&change->conversation);
  g_free (change->plan);
  g_free (change);
  g_object_unref (self);
}

static void
push_target (KsLibrary *self, guint64 target_bytes)
{
  Change *change = g_new0 (Change, 1);

  change->library = g_object_ref (self);
  if (self->live != NULL && self->live->conversation != NULL) {
    change->conversation = g_object_ref (self->live->conversation);
    self->target_job = ks_conversation_set_target (change->conversation, target_bytes);
  } else {
    change->plan = g_new0 (Plan, 1);
    change->plan->target_bytes = target_bytes;
    self->target_job = ks_engine_job_new (plan_job, change->plan, NULL);
  }
  g_signal_connect (self->target_job, "finished", G_CALLBACK (changed_cb), change);
  /* In its turn: behind a former conversation that is being freed, before the next one. */
  if (change->conversation == NULL)
    ks_engine_push (self->engine, self->target_job);
}

static gboolean
change_target (KsLibrary *self, guint64 target_bytes)
{
  target_bytes = MAX (target_bytes, self->min_bytes);
  if (target_bytes == self->target_bytes && !self->target_bent)
    return FALSE;
  self->target_bent = FALSE;
  self->target_bytes = target_bytes;
  ks_library_notify (self, "target-bytes");
  if (self->target_job != NULL)
    self->next_target_bytes = target_bytes;
  else
    push_target (self, target_bytes);
  return TRUE;
}

void
ks_library_apply_chat_target (KsLibrary *self, KsChat *chat)
{
  gint64 own = self->options == NULL ? chat->settings->budget_bytes : -1;

  if (chat->conversation != NULL) {
    ks_chat_apply_kv_budget (chat);
    if (chat->kv_budget_bytes > 0)
      return; /* it stands in place of a target */
  }
  (void)change_target (self, own > 0 ? (guint64)own : self->default_target_bytes);
}

void
ks_library_set_target_bytes (KsLibrary *self, guint64 target_bytes)
{
  g_return_if_fail (KS_IS_LIBRARY (self));
  if (self->closing || self->model_state != KS_MODEL_READY || !change_target (self, target_bytes))
    return;
  self->default_target_bytes = self->target_bytes;
  if (self->options != NULL)
    return; /* the command line's target is not a setting */
  g_clear_handle_id (&self->save_source, g_source_remove);
  self->save_source = g_timeout_add (SAVE_AFTER_MS, save_cb, self);
}

guint64
ks_library_get_target_bytes (KsLibrary *self)
{
  g_return_val_if_fail (KS_IS_LIBRARY (self), 0);
  return self->target_bytes;
}

void
ks_library_get_target_range (KsLibrary *self, guint64 *out_min_bytes, guint64 *out_max_bytes)
{
  g_return_if_fail (KS_IS_LIBRARY (self) && out_min_bytes != NULL && out_max_bytes != NULL);
  *out_min_bytes = self->min_bytes;
  *out_max_bytes = MAX (self->max_bytes, self->min_bytes);
}

KsMemoryView *
ks_library_dup_memory (KsLibrary *self)
{
  KsMemoryView *view = NULL;

  g_return_val_if_fail (KS_IS_LIBRARY (self), NULL);
  if (self->live != NULL)
    view = ks_chat_dup_memory (self->live);
  if (view == NULL && self->idle_view != NULL && self->model_state == KS_MODEL_READY) {
    view = ks_memory_view_copy (self->idle_view);
    view->program_bytes = ks_memory_stats_get_program_bytes (view->copy_bytes);
  }
  return view;
}
