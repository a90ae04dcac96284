/* ks-chat-trace.c - what a chat's model still remembers of one picture, asked of the engine between
 * two of its steps.
 * Threads: main; the job's function runs on the engine thread. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-chat-internal.h"

#include "app/ks-error.h"

typedef struct {
  GTask *task;
  KsPictureTrace *trace;
} Trace;

static void
traced_cb (KsEngineJob *job, gpointer user_data)
{
  Trace *trace = user_data;
  const GError *error = ks_engine_job_get_error (job);

  if (error != NULL) {
    ks_picture_trace_free (trace->trace);
    g_task_return_error (trace->task, g_error_copy (error));
  } else {
    g_task_return_pointer (trace->task, trace->trace, (GDestroyNotify)ks_picture_trace_free);
  }
  g_object_unref (trace->task);
  g_free (trace);
}

void
ks_chat_trace_picture_async (KsChat *self, guint turn, guint number, GCancellable *cancellable,
                             GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = NULL;
  g_autoptr (KsEngineJob) job = NULL;
  Trace *trace;

  g_return_if_fail (KS_IS_CHAT (self));
  task = g_task_new (self, cancellable, callback, user_data);
  if (self->conversation == NULL) {
    g_task_return_new_error (task, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                             "the model has read nothing of this session yet");
    return;
  }
  trace = g_new0 (Trace, 1);
  trace->task = g_steal_pointer (&task);
  trace->trace = ks_picture_trace_new ();
  job = ks_conversation_trace (self->conversation, turn, number, trace->trace);
  g_signal_connect (job, "finished", G_CALLBACK (traced_cb), trace);
}

KsPictureTrace *
ks_chat_trace_picture_finish (KsChat *self, GAsyncResult *result, GError **error)
{
  g_return_val_if_fail (g_task_is_valid (result, self), NULL);
  return g_task_propagate_pointer (G_TASK (result), error);
}
