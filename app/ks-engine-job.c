/* ks-engine-job.c - see ks-engine-job.h.
 * Events travel as idle sources of equal priority, so that they arrive in the order they were made.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-engine-job.h"

#include "app/ks-error.h"

struct _KsEngineJob {
  GObject parent_instance;
  GMainContext *context;
  KsEngineJobFunc func;
  gpointer data;
  GDestroyNotify destroy;
  GCancellable *cancellable;
  gboolean finished; /* main */
  GError *error;     /* written by the engine thread before the end is posted */
};

enum { SIGNAL_PROGRESS, SIGNAL_LOOKING, SIGNAL_TEXT, SIGNAL_NOTICE, SIGNAL_FINISHED, N_SIGNAL };
static guint signals[N_SIGNAL];

G_DEFINE_FINAL_TYPE (KsEngineJob, ks_engine_job, G_TYPE_OBJECT)

typedef struct {
  KsEngineJob *job;
  guint signal;
  guint n_done, n_total;
  char *text;
} JobEvent;

static void
ks_engine_job_finalize (GObject *object)
{
  KsEngineJob *self = KS_ENGINE_JOB (object);

  g_clear_pointer (&self->context, g_main_context_unref);
  g_clear_object (&self->cancellable);
  g_clear_error (&self->error);
  G_OBJECT_CLASS (ks_engine_job_parent_class)->finalize (object);
}

static void
ks_engine_job_class_init (KsEngineJobClass *klass)
{
  GType type = G_TYPE_FROM_CLASS (klass);

  G_OBJECT_CLASS (klass)->finalize = ks_engine_job_finalize;
  signals[SIGNAL_PROGRESS] = g_signal_new ("progress", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                           G_TYPE_NONE, 2, G_TYPE_UINT, G_TYPE_UINT);
  signals[SIGNAL_LOOKING] = g_signal_new ("looking", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                          G_TYPE_NONE, 3, G_TYPE_STRING, G_TYPE_UINT, G_TYPE_UINT);
  signals[SIGNAL_TEXT] = g_signal_new ("text", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                       G_TYPE_NONE, 1, G_TYPE_STRING);
  signals[SIGNAL_NOTICE] = g_signal_new ("notice", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                         G_TYPE_NONE, 1, G_TYPE_STRING);
  signals[SIGNAL_FINISHED] =
      g_signal_new ("finished", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
}

static void
ks_engine_job_init (KsEngineJob *self)
{
  self->context = g_main_context_ref_thread_default ();
  self->cancellable = g_cancellable_new ();
}

KsEngineJob *
ks_engine_job_new (KsEngineJobFunc func, gpointer data, GDestroyNotify destroy)
{
  KsEngineJob *self;

  g_return_val_if_fail (func != NULL, NULL);
  self = g_object_new (KS_TYPE_ENGINE_JOB, NULL);
  self->func = func;
  self->data = data;
  self->destroy = destroy;
  return self;
}

void
ks_engine_job_cancel (KsEngineJob *self)
{
  g_return_if_fail (KS_IS_ENGINE_JOB (self));
  g_cancellable_cancel (self->cancellable);
}

gboolean
ks_engine_job_is_cancelled (KsEngineJob *self)
{
  return g_cancellable_is_cancelled (self->cancellable);
}

GCancellable *
ks_engine_job_get_cancellable (KsEngineJob *self)
{
  return self->cancellable;
}

gboolean
ks_engine_job_is_finished (KsEngineJob *self)
{
  g_return_val_if_fail (KS_IS_ENGINE_JOB (self), TRUE);
  return self->finished;
}

const GError *
ks_engine_job_get_error (KsEngineJob *self)
{
  g_return_val_if_fail (KS_IS_ENGINE_JOB (self), NULL);
  return self->finished ? self->error : NULL;
}

gboolean
ks_engine_job_wait (KsEngineJob *self, GError **error)
{
  g_return_val_if_fail (KS_IS_ENGINE_JOB (self), FALSE);
  while (!self->finished)
    g_main_context_iteration (self->context, TRUE);
  if (self->error == NULL)
    return TRUE;
  if (error != NULL)
    *error = g_error_copy (self->error);
  return FALSE;
}

static gboolean
deliver_event (gpointer data)
{
  JobEvent *event = data;
  KsEngineJob *job = event->job;

  switch (event->signal) {
  case SIGNAL_PROGRESS:
    g_signal_emit (job, signals[SIGNAL_PROGRESS], 0, event->n_done, event->n_total);
    break;
  case SIGNAL_LOOKING:
    g_signal_emit (job, signals[SIGNAL_LOOKING], 0, event->text, event->n_done, event->n_total);
    break;
  case SIGNAL_FINISHED:
    job->finished = TRUE;
    g_signal_emit (job, signals[SIGNAL_FINISHED], 0);
    break;
  default:
    g_signal_emit (job, signals[event->signal], 0, event->text);
    break;
  }
  return G_SOURCE_REMOVE;
}

static void
free_event (gpointer data)
{
  JobEvent *event = data;

  g_object_unref (event->job);
  g_free (event->text);
  g_free (event);
}

static void
post (KsEngineJob *self, guint signal, char *take_text, guint n_done, guint n_total)
{
  g_autoptr (GSource) source = g_idle_source_new ();
  JobEvent *event = g_new0 (JobEvent, 1);

  event->job = g_object_ref (self);
  event->signal = signal;
  event->text = take_text;
  event->n_done = n_done;
  event->n_total = n_total;
  g_source_set_priority (source, G_PRIORITY_DEFAULT);
  g_source_set_callback (source, deliver_event, event, free_event);
  g_source_attach (source, self->context);
}

void
ks_engine_job_emit_progress (KsEngineJob *self, guint n_done, guint n_total)
{
  post (self, SIGNAL_PROGRESS, NULL, n_done, n_total);
}

void
ks_engine_job_emit_looking (KsEngineJob *self, const char *name, guint n_done, guint n_total)
{
  post (self, SIGNAL_LOOKING, g_strdup (name), n_done, n_total);
}

void
ks_engine_job_emit_text (KsEngineJob *self, const char *text, gsize n)
{
  /* A NUL that a model writes becomes U+FFFD: the signal's string would end there. */
  if (n > 0)
    post (self, SIGNAL_TEXT, g_utf8_make_valid (text, (gssize)n), 0, 0);
}

void
ks_engine_job_emit_notice (KsEngineJob *self, const char *text)
{
  post (self, SIGNAL_NOTICE, g_strdup (text), 0, 0);
}

void
ks_engine_job_run (KsEngineJob *self, KsEngine *engine)
{
  gboolean ok = FALSE;

  if (ks_engine_job_is_cancelled (self))
    g_set_error_literal (&self->error, KS_ENGINE_ERROR, KS_ERR_CANCELLED, "cancelled");
  else
    ok = self->func (engine, self, self->data, &self->error);
  if (!ok && self->error == NULL)
    g_set_error_literal (&self->error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "the request failed");
  if (ok)
    g_clear_error (&self->error);
  if (self->destroy != NULL)
    self->destroy (self->data);
  self->data = NULL;
  post (self, SIGNAL_FINISHED, NULL, 0, 0);
}
