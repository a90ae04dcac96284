/* ks-engine-job.h - one request to the engine thread: its work, progress, cancel and end.
 * A job is made and watched on the main context; its function runs on the engine thread.  Signals
 * come out on the main context that was the thread's default when the job was made. Threads:
 * functions marked (engine) run on the engine thread, (any) anywhere, the rest on main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

typedef struct _KsEngine KsEngine;

#define KS_TYPE_ENGINE_JOB (ks_engine_job_get_type ())
G_DECLARE_FINAL_TYPE (KsEngineJob, ks_engine_job, KS, ENGINE_JOB, GObject)

/* The work.  Returns FALSE with error set when it failed or was cancelled. */
typedef gboolean (*KsEngineJobFunc) (KsEngine *engine, KsEngineJob *job, gpointer data,
                                     GError **error);

/* Signals:
 *   "progress" (guint n_done, guint n_total)  tokens read so far
 *   "looking" (const char *name, guint n_done, guint n_total)  a picture goes through the eyes: 0
 *       of 0 while it is decoded, name NULL when it is done
 *   "text" (const char *text)                 a piece of an answer, valid UTF-8
 *   "notice" (const char *text)               a sentence the user should see once
 *   "finished" ()                             last signal; see ks_engine_job_get_error
 * data is freed with destroy on the engine thread, after func has run or was skipped. */
KsEngineJob *ks_engine_job_new (KsEngineJobFunc func, gpointer data, GDestroyNotify destroy);

void ks_engine_job_cancel (KsEngineJob *self);           /* any */
gboolean ks_engine_job_is_cancelled (KsEngineJob *self); /* any */
/* Cancelled with the job. (transfer none) any */
GCancellable *ks_engine_job_get_cancellable (KsEngineJob *self);
gboolean ks_engine_job_is_finished (KsEngineJob *self);
const GError *ks_engine_job_get_error (KsEngineJob *self); /* NULL when it succeeded */
/* Runs the main context until the job is finished; FALSE and error when it failed.  For the command
 * line and tests. */
gboolean ks_engine_job_wait (KsEngineJob *self, GError **error);

void ks_engine_job_emit_progress (KsEngineJob *self, guint n_done, guint n_total); /* engine */
void ks_engine_job_emit_looking (KsEngineJob *self, const char *name, guint n_done,
                                 guint n_total);                             /* engine */
void ks_engine_job_emit_text (KsEngineJob *self, const char *text, gsize n); /* engine */
void ks_engine_job_emit_notice (KsEngineJob *self, const char *text);        /* engine */
/* Runs the function and posts the end (engine; used by KsEngine only). */
void ks_engine_job_run (KsEngineJob *self, KsEngine *engine);

G_END_DECLS
