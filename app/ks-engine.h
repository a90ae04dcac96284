/* ks-engine.h - owner of the one engine thread: jobs go in by queue, events come out on main.
 * Everything of the engine (model, gate, pool, timelines) lives on that thread.
 * Threads: functions marked (engine) run on the engine thread only, the rest on the main context.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-engine-job.h"
#include "app/ks-engine-setup.h"

G_BEGIN_DECLS

#define KS_TYPE_ENGINE (ks_engine_get_type ())
G_DECLARE_FINAL_TYPE (KsEngine, ks_engine, KS, ENGINE, GObject)

/* Starts the thread.  The last unref waits for the queued jobs and ends it. */
KsEngine *ks_engine_new (void);
/* The same with the thread and those it starts at a lower priority: for a program with a window,
 * which must get the processor first whenever it has something to draw. */
KsEngine *ks_engine_new_in_background (void);

/* Appends a job; the engine takes a reference. */
void ks_engine_push (KsEngine *self, KsEngineJob *job);
/* For short requests (a new budget) that a running answer must not delay: run between two steps of
 * the running job, or as the next one. */
void ks_engine_push_urgent (KsEngine *self, KsEngineJob *job);

/* Queues the loading of a model in place of the one that is there. (transfer full) */
KsEngineJob *ks_engine_load (KsEngine *self, const KsEngineOptions *options);

/* Kept states of a stored session (0: of all of them) go, or are made again after it was restored.
 */
void ks_engine_set_session_gone (KsEngine *self, gint64 session, gboolean is_gone);
/* Writes those that belong on the disk; before the last unref. (transfer full) */
KsEngineJob *ks_engine_flush (KsEngine *self);

/* (engine) What is loaded; NULL before a load succeeded. */
KsEngineSetup *ks_engine_get_setup (KsEngine *self);
/* (engine) Runs the waiting urgent jobs; called by long jobs between two steps. */
void ks_engine_run_urgent (KsEngine *self);

G_END_DECLS
