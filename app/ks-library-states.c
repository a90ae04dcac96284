/* ks-library-states.c - how much kept states of sessions take, and their removal: asked of the
 * engine thread, which owns those in memory.
 * Threads: main; the job's function runs on the engine thread. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-library-internal.h"

typedef struct {
  KsSnapshotStore *store; /* over the folder that the engine's own one uses */
  gboolean clear;
  KsStateSizes *sizes; /* of the task */
} States;

KsSnapshotStore *
ks_library_open_states (KsLibrary *self)
{
  g_autofree char *dir = g_build_filename (ks_library_get_data_dir (self), "snapshots", NULL);

  return ks_snapshot_store_new (dir);
}

static void
free_states (gpointer data)
{
  States *states = data;

  g_object_unref (states->store);
  g_free (states);
}

static gboolean
states_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  const States *states = data;
  KsEngineSetup *setup = ks_engine_get_setup (engine);
  KsSnapshotCache *kept = setup != NULL ? setup->kept : NULL;

  if (states->clear && kept != NULL)
    ks_snapshot_cache_set_gone (kept, 0, TRUE);
  if (states->clear)
    ks_snapshot_store_clear (states->store);
  if (kept != NULL)
    states->sizes->memory_bytes = ks_snapshot_cache_get_counts (kept).memory_bytes;
  states->sizes->disk_bytes = ks_snapshot_store_get_bytes (states->store);
  return TRUE;
}

static void
measured_cb (KsEngineJob *job, gpointer user_data)
{
  g_autoptr (GTask) task = user_data;
  const GError *error = ks_engine_job_get_error (job);

  if (error != NULL)
    g_task_return_error (task, g_error_copy (error));
  else
    g_task_return_boolean (task, TRUE);
}

void
ks_library_measure_states_async (KsLibrary *self, gboolean clear, GAsyncReadyCallback callback,
                                 gpointer user_data)
{
  GTask *task;
  g_autoptr (KsEngineJob) job = NULL;
  States *states;

  g_return_if_fail (KS_IS_LIBRARY (self));
  task = g_task_new (self, NULL, callback, user_data);
  states = g_new0 (States, 1);
  states->store = ks_library_open_states (self);
  states->clear = clear;
  states->sizes = g_new0 (KsStateSizes, 1);
  g_task_set_task_data (task, states->sizes, g_free);
  job = ks_engine_job_new (states_job, states, free_states);
  g_signal_connect (job, "finished", G_CALLBACK (measured_cb), task);
  ks_engine_push_urgent (self->engine, job);
}

gboolean
ks_library_measure_states_finish (KsLibrary *self, GAsyncResult *result, KsStateSizes *out_sizes,
                                  GError **error)
{
  g_return_val_if_fail (g_task_is_valid (result, self), FALSE);
  if (!g_task_propagate_boolean (G_TASK (result), error))
    return FALSE;
  *out_sizes = *(const KsStateSizes *)g_task_get_task_data (G_TASK (result));
  return TRUE;
}
