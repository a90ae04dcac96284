/* ks-engine.c - see ks-engine.h.
 * Two queues under one lock: urgent jobs go first and may also run inside a long job. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-engine.h"

#include "app/ks-error.h"

#include <sys/resource.h>
#include <unistd.h>

/* Enough for a window to be served first, little enough not to starve behind other programs. */
#define BACKGROUND_NICE 5

struct _KsEngine {
  GObject parent_instance;
  GThread *thread;
  GMutex lock;
  GCond wake;
  GQueue jobs, urgent;  /* of KsEngineJob, under lock */
  gboolean quit;        /* under lock */
  gboolean background;  /* set before the thread starts */
  KsEngineSetup *setup; /* engine thread */
};

G_DEFINE_FINAL_TYPE (KsEngine, ks_engine, G_TYPE_OBJECT)

/* Waits for a job; NULL when the engine ends and nothing is queued. */
static KsEngineJob *
pop_job (KsEngine *self)
{
  KsEngineJob *job = NULL;

  g_mutex_lock (&self->lock);
  for (;;) {
    job = g_queue_pop_head (&self->urgent);
    if (job == NULL)
      job = g_queue_pop_head (&self->jobs);
    if (job != NULL || self->quit)
      break;
    g_cond_wait (&self->wake, &self->lock);
  }
  g_mutex_unlock (&self->lock);
  return job;
}

static gpointer
run_thread (gpointer data)
{
  KsEngine *self = data;
  KsEngineJob *job;

  /* On Linux a priority belongs to a thread, and the workers that compute are started from here:
   * they inherit it.  A refusal costs smoothness only. */
  if (self->background)
    (void)setpriority (PRIO_PROCESS, (id_t)gettid (), BACKGROUND_NICE);
  while ((job = pop_job (self)) != NULL) {
    ks_engine_job_run (job, self);
    g_object_unref (job);
  }
  g_clear_pointer (&self->setup, ks_engine_setup_free);
  return NULL;
}

static void
ks_engine_dispose (GObject *object)
{
  KsEngine *self = KS_ENGINE (object);

  if (self->thread != NULL) {
    g_mutex_lock (&self->lock);
    self->quit = TRUE;
    g_cond_signal (&self->wake);
    g_mutex_unlock (&self->lock);
    g_thread_join (g_steal_pointer (&self->thread));
  }
  G_OBJECT_CLASS (ks_engine_parent_class)->dispose (object);
}

static void
ks_engine_finalize (GObject *object)
{
  KsEngine *self = KS_ENGINE (object);

  g_mutex_clear (&self->lock);
  g_cond_clear (&self->wake);
  G_OBJECT_CLASS (ks_engine_parent_class)->finalize (object);
}

static void
ks_engine_class_init (KsEngineClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = ks_engine_dispose;
  G_OBJECT_CLASS (klass)->finalize = ks_engine_finalize;
}

static void
ks_engine_init (KsEngine *self)
{
  g_mutex_init (&self->lock);
  g_cond_init (&self->wake);
  g_queue_init (&self->jobs);
  g_queue_init (&self->urgent);
}

static KsEngine *
start (gboolean background)
{
  KsEngine *self = g_object_new (KS_TYPE_ENGINE, NULL);

  self->background = background;
  self->thread = g_thread_new ("ks-engine", run_thread, self);
  return self;
}

KsEngine *
ks_engine_new (void)
{
  return start (FALSE);
}

KsEngine *
ks_engine_new_in_background (void)
{
  return start (TRUE);
}

static void
push (KsEngine *self, GQueue *queue, KsEngineJob *job)
{
  g_mutex_lock (&self->lock);
  g_queue_push_tail (queue, g_object_ref (job));
  g_cond_signal (&self->wake);
  g_mutex_unlock (&self->lock);
}

void
ks_engine_push (KsEngine *self, KsEngineJob *job)
{
  g_return_if_fail (KS_IS_ENGINE (self) && KS_IS_ENGINE_JOB (job));
  push (self, &self->jobs, job);
}

void
ks_engine_push_urgent (KsEngine *self, KsEngineJob *job)
{
  g_return_if_fail (KS_IS_ENGINE (self) && KS_IS_ENGINE_JOB (job));
  push (self, &self->urgent, job);
}

static gboolean
load_job (KsEngine *self, KsEngineJob *job, gpointer data, GError **error)
{
  const KsEngineOptions *options = data;
  KsEngineSetup *setup;

  if (self->setup != NULL && self->setup->n_user > 0) {
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                         "close the open conversations before another model is loaded");
    return FALSE;
  }
  if (self->setup != NULL && self->setup->kept != NULL)
    ks_snapshot_cache_flush (self->setup->kept);
  g_clear_pointer (&self->setup, ks_engine_setup_free);
  setup = ks_engine_setup_new (options, error);
  if (setup == NULL)
    return FALSE;
  if (!options->late_target && !ks_engine_setup_make_copy (setup, job, error)) {
    ks_engine_setup_free (setup);
    return FALSE;
  }
  self->setup = setup;
  for (guint i = 0; i < setup->notices->len; i++)
    ks_engine_job_emit_notice (job, g_ptr_array_index (setup->notices, i));
  return TRUE;
}

KsEngineJob *
ks_engine_load (KsEngine *self, const KsEngineOptions *options)
{
  KsEngineJob *job;

  g_return_val_if_fail (KS_IS_ENGINE (self), NULL);
  job = ks_engine_job_new (load_job, ks_engine_options_copy (options),
                           (GDestroyNotify)ks_engine_options_free);
  ks_engine_push (self, job);
  return job;
}

KsEngineSetup *
ks_engine_get_setup (KsEngine *self)
{
  return self->setup;
}

void
ks_engine_run_urgent (KsEngine *self)
{
  for (;;) {
    KsEngineJob *job;

    g_mutex_lock (&self->lock);
    job = g_queue_pop_head (&self->urgent);
    g_mutex_unlock (&self->lock);
    if (job == NULL)
      return;
    ks_engine_job_run (job, self);
    g_object_unref (job);
  }
}

/* --- kept states --- */

typedef struct {
  gint64 session;
  gboolean is_gone;
} Gone;

static gboolean
gone_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  Gone *gone = data;

  if (engine->setup != NULL && engine->setup->kept != NULL)
    ks_snapshot_cache_set_gone (engine->setup->kept, gone->session, gone->is_gone);
  return TRUE;
}

void
ks_engine_set_session_gone (KsEngine *self, gint64 session, gboolean is_gone)
{
  g_autoptr (KsEngineJob) job = NULL;
  Gone *gone;

  g_return_if_fail (KS_IS_ENGINE (self));
  gone = g_new0 (Gone, 1);
  gone->session = session;
  gone->is_gone = is_gone;
  job = ks_engine_job_new (gone_job, gone, g_free);
  ks_engine_push_urgent (self, job);
}

static gboolean
flush_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  if (engine->setup != NULL && engine->setup->kept != NULL)
    ks_snapshot_cache_flush (engine->setup->kept);
  return TRUE;
}

KsEngineJob *
ks_engine_flush (KsEngine *self)
{
  KsEngineJob *job;

  g_return_val_if_fail (KS_IS_ENGINE (self), NULL);
  job = ks_engine_job_new (flush_job, NULL, NULL);
  ks_engine_push (self, job);
  return job;
}
