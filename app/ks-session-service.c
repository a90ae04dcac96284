/* ks-session-service.c - see ks-session-service.h.
 * What the writer thread needs lies in a Core of its own with two owners, the object and the
 * thread: the object may go while results are still on their way.  For that reason a waiting
 * request holds no reference to the object either, and its GTask is made only where the result is
 * handed over, on the caller's main context.  The thread knows no main context: it waits on a
 * queue and attaches one source for each result. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-session-service.h"

/* Old deletions and lost blobs are removed when nothing was asked for so long after opening: the
 * first list is what the user waits for. */
#define PURGE_AFTER_US (1 * G_USEC_PER_SEC)
/* Another program that runs may still take a younger deletion back. */
#define PURGE_AGE_US (3600 * (gint64)G_USEC_PER_SEC)

typedef struct {
  gatomicrefcount n_ref;
  char *dir;
  GAsyncQueue *requests; /* of Request */
  GMutex lock;           /* guards the next two */
  KsBlobStore *blobs;    /* NULL before open */
  char *read_only_reason;
  /* Writer thread only. */
  KsStore *store;
  GError *problem; /* why there is no store */
  gboolean purge_due;
} Core;

typedef enum { REQUEST_CALL, REQUEST_OPEN, REQUEST_QUIT } RequestKind;

typedef struct {
  RequestKind kind;
  KsStoreFunc func;
  gpointer data;
  GDestroyNotify destroy, free_result;
  gpointer result;
  GError *error;
  /* Asynchronous requests. */
  GWeakRef service;
  GMainContext *context; /* NULL: somebody waits on done */
  GCancellable *cancellable;
  GAsyncReadyCallback callback;
  gpointer user_data;
  /* Blocking ones. */
  GMutex lock;
  GCond cond;
  gboolean done;
} Request;

struct _KsSessionService {
  GObject parent_instance;
  Core *core;
  GThread *thread;
};

G_DEFINE_FINAL_TYPE (KsSessionService, ks_session_service, G_TYPE_OBJECT)

static Core *
core_new (const char *dir)
{
  Core *core = g_new0 (Core, 1);

  g_atomic_ref_count_init (&core->n_ref);
  core->dir =
      dir != NULL ? g_strdup (dir) : g_build_filename (g_get_user_data_dir (), "keepsake", NULL);
  core->requests = g_async_queue_new ();
  g_mutex_init (&core->lock);
  core->problem = g_error_new_literal (KS_STORAGE_ERROR, KS_STORAGE_ERROR_FAILED,
                                       "The stored sessions were not opened yet.");
  return core;
}

static void
core_unref (Core *core)
{
  if (!g_atomic_ref_count_dec (&core->n_ref))
    return;
  g_async_queue_unref (core->requests);
  g_mutex_clear (&core->lock);
  g_clear_object (&core->blobs);
  g_clear_error (&core->problem);
  g_free (core->read_only_reason);
  g_free (core->dir);
  g_free (core);
}

static Request *
request_new (RequestKind kind)
{
  Request *request = g_new0 (Request, 1);

  request->kind = kind;
  g_weak_ref_init (&request->service, NULL);
  g_mutex_init (&request->lock);
  g_cond_init (&request->cond);
  return request;
}

static void
request_free (Request *request)
{
  if (request->result != NULL && request->free_result != NULL)
    request->free_result (request->result);
  g_clear_error (&request->error);
  g_weak_ref_clear (&request->service);
  g_clear_pointer (&request->context, g_main_context_unref);
  g_clear_object (&request->cancellable);
  g_mutex_clear (&request->lock);
  g_cond_clear (&request->cond);
  g_free (request);
}

/* --- on the writer thread --- */

/* What keeps from writing, but not from reading. */
static gboolean
may_be_read (const GError *error)
{
  return g_error_matches (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_READ_ONLY) ||
         g_error_matches (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_FULL) ||
         g_error_matches (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_LOCKED);
}

static KsStore *
open_store (Core *core, char **out_reason, GError **error)
{
  g_autoptr (GError) refusal = NULL, local = NULL;
  KsStore *store = ks_store_open (core->dir, FALSE, &refusal);

  if (store != NULL)
    return store;
  if (may_be_read (refusal))
    store = ks_store_open (core->dir, TRUE, &local);
  if (store != NULL)
    *out_reason = g_strdup (refusal->message);
  /* Nothing there to read: what hinders making it is the sentence that helps. */
  else if (local == NULL || g_error_matches (local, KS_STORAGE_ERROR, KS_STORAGE_ERROR_NOT_FOUND))
    g_propagate_error (error, g_steal_pointer (&refusal));
  else
    g_propagate_error (error, g_steal_pointer (&local));
  return store;
}

static gboolean
open_core (Core *core, GError **error)
{
  g_autofree char *reason = NULL;
  g_autoptr (GError) local = NULL;

  if (core->store != NULL)
    return TRUE;
  core->store = open_store (core, &reason, &local);
  g_clear_error (&core->problem);
  if (core->store == NULL) {
    core->problem = g_error_copy (local);
    g_propagate_error (error, g_steal_pointer (&local));
    return FALSE;
  }
  core->purge_due = reason == NULL;
  g_mutex_lock (&core->lock);
  core->blobs = g_object_ref (ks_store_get_blobs (core->store));
  core->read_only_reason = g_steal_pointer (&reason);
  g_mutex_unlock (&core->lock);
  return TRUE;
}

static void
run_request (Core *core, Request *request)
{
  if (g_cancellable_set_error_if_cancelled (request->cancellable, &request->error))
    ;
  else if (request->kind == REQUEST_OPEN)
    request->result = GINT_TO_POINTER (open_core (core, &request->error));
  else if (core->store == NULL)
    request->error = g_error_copy (core->problem);
  else
    request->result = request->func (core->store, request->data, &request->error);
  if (request->destroy != NULL)
    request->destroy (request->data);
}

/* On the caller's main context. */
static gboolean
hand_over_cb (gpointer user_data)
{
  Request *request = user_data;
  g_autoptr (KsSessionService) self = g_weak_ref_get (&request->service);
  g_autoptr (GTask) task =
      g_task_new (self, request->cancellable, request->callback, request->user_data);

  /* What was written was written, cancelled since or not. */
  g_task_set_check_cancellable (task, FALSE);
  if (request->error != NULL)
    g_task_return_error (task, g_steal_pointer (&request->error));
  else
    g_task_return_pointer (task, g_steal_pointer (&request->result), request->free_result);
  request_free (request);
  return G_SOURCE_REMOVE;
}

static void
hand_over (Request *request)
{
  g_autoptr (GSource) source = NULL;

  if (request->context == NULL) {
    g_mutex_lock (&request->lock);
    request->done = TRUE;
    g_cond_signal (&request->cond);
    g_mutex_unlock (&request->lock); /* the waiting thread may free it from here on */
    return;
  }
  source = g_idle_source_new ();
  g_source_set_priority (source, G_PRIORITY_DEFAULT);
  g_source_set_callback (source, hand_over_cb, request, NULL);
  g_source_set_static_name (source, "[keepsake] stored");
  g_source_attach (source, request->context);
}

static gpointer
run_thread (gpointer data)
{
  Core *core = data;
  gboolean quit = FALSE;

  while (!quit) {
    Request *request = core->purge_due ? g_async_queue_timeout_pop (core->requests, PURGE_AFTER_US)
                                       : g_async_queue_pop (core->requests);

    if (request == NULL) {
      core->purge_due = FALSE;
      /* Nobody asked for it, and the next start tries again. */
      (void)ks_store_purge_old (core->store, PURGE_AGE_US, NULL);
    } else if (request->kind == REQUEST_QUIT) {
      quit = TRUE;
      request_free (request);
    } else {
      run_request (core, request);
      hand_over (request);
    }
  }
  /* What was deleted here cannot be taken back any more. */
  if (core->store != NULL)
    (void)ks_store_purge_own (core->store, NULL);
  g_clear_object (&core->store);
  core_unref (core);
  return NULL;
}

/* --- the object --- */

static void
ks_session_service_dispose (GObject *object)
{
  KsSessionService *self = KS_SESSION_SERVICE (object);

  if (self->thread != NULL) {
    g_async_queue_push (self->core->requests, request_new (REQUEST_QUIT));
    if (self->thread == g_thread_self ())
      g_thread_unref (self->thread); /* data of a request held the last reference */
    else
      g_thread_join (self->thread);
    self->thread = NULL;
  }
  G_OBJECT_CLASS (ks_session_service_parent_class)->dispose (object);
}

static void
ks_session_service_finalize (GObject *object)
{
  KsSessionService *self = KS_SESSION_SERVICE (object);

  core_unref (self->core);
  G_OBJECT_CLASS (ks_session_service_parent_class)->finalize (object);
}

static void
ks_session_service_class_init (KsSessionServiceClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = ks_session_service_dispose;
  G_OBJECT_CLASS (klass)->finalize = ks_session_service_finalize;
}

static void
ks_session_service_init (KsSessionService *self)
{
}

KsSessionService *
ks_session_service_new (const char *dir)
{
  KsSessionService *self = g_object_new (KS_TYPE_SESSION_SERVICE, NULL);

  self->core = core_new (dir);
  g_atomic_ref_count_inc (&self->core->n_ref);
  self->thread = g_thread_new ("keepsake-store", run_thread, self->core);
  return self;
}

const char *
ks_session_service_get_dir (KsSessionService *self)
{
  g_return_val_if_fail (KS_IS_SESSION_SERVICE (self), NULL);
  return self->core->dir;
}

const char *
ks_session_service_get_read_only_reason (KsSessionService *self)
{
  const char *reason;

  g_return_val_if_fail (KS_IS_SESSION_SERVICE (self), NULL);
  g_mutex_lock (&self->core->lock);
  reason = self->core->read_only_reason; /* set once */
  g_mutex_unlock (&self->core->lock);
  return reason;
}

KsBlobStore *
ks_session_service_ref_blobs (KsSessionService *self)
{
  KsBlobStore *blobs = NULL;

  g_return_val_if_fail (KS_IS_SESSION_SERVICE (self), NULL);
  g_mutex_lock (&self->core->lock);
  if (self->core->blobs != NULL)
    blobs = g_object_ref (self->core->blobs);
  g_mutex_unlock (&self->core->lock);
  return blobs;
}

static void
push_async (KsSessionService *self, Request *request, GCancellable *cancellable,
            GAsyncReadyCallback callback, gpointer user_data)
{
  g_weak_ref_set (&request->service, self);
  request->context = g_main_context_ref_thread_default ();
  request->cancellable = cancellable != NULL ? g_object_ref (cancellable) : NULL;
  request->callback = callback;
  request->user_data = user_data;
  g_async_queue_push (self->core->requests, request);
}

/* The result of a request that somebody waits for. */
static gpointer
push_and_wait (KsSessionService *self, Request *request, GError **error)
{
  gpointer result;

  g_mutex_lock (&request->lock);
  g_async_queue_push (self->core->requests, request);
  while (!request->done)
    g_cond_wait (&request->cond, &request->lock);
  g_mutex_unlock (&request->lock);
  result = g_steal_pointer (&request->result);
  if (request->error != NULL)
    g_propagate_error (error, g_steal_pointer (&request->error));
  request_free (request);
  return result;
}

void
ks_session_service_open_async (KsSessionService *self, GCancellable *cancellable,
                               GAsyncReadyCallback callback, gpointer user_data)
{
  g_return_if_fail (KS_IS_SESSION_SERVICE (self));
  push_async (self, request_new (REQUEST_OPEN), cancellable, callback, user_data);
}

gboolean
ks_session_service_open_finish (KsSessionService *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (g_task_is_valid (result, self), FALSE);
  return g_task_propagate_pointer (G_TASK (result), error) != NULL;
}

void
ks_session_service_call_async (KsSessionService *self, KsStoreFunc func, gpointer data,
                               GDestroyNotify destroy, GDestroyNotify free_result,
                               GCancellable *cancellable, GAsyncReadyCallback callback,
                               gpointer user_data)
{
  Request *request;

  g_return_if_fail (KS_IS_SESSION_SERVICE (self) && func != NULL);
  request = request_new (REQUEST_CALL);
  request->func = func;
  request->data = data;
  request->destroy = destroy;
  request->free_result = free_result;
  push_async (self, request, cancellable, callback, user_data);
}

gpointer
ks_session_service_call_finish (KsSessionService *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (g_task_is_valid (result, self), NULL);
  return g_task_propagate_pointer (G_TASK (result), error);
}

gboolean
ks_session_service_open (KsSessionService *self, GError **error)
{
  g_return_val_if_fail (KS_IS_SESSION_SERVICE (self), FALSE);
  g_return_val_if_fail (self->thread != g_thread_self (), FALSE);
  return push_and_wait (self, request_new (REQUEST_OPEN), error) != NULL;
}

gpointer
ks_session_service_call (KsSessionService *self, KsStoreFunc func, gpointer data, GError **error)
{
  Request *request;

  g_return_val_if_fail (KS_IS_SESSION_SERVICE (self) && func != NULL, NULL);
  g_return_val_if_fail (self->thread != g_thread_self (), NULL);
  request = request_new (REQUEST_CALL);
  request->func = func;
  request->data = data;
  return push_and_wait (self, request, error);
}
