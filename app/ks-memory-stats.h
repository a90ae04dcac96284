/* ks-memory-stats.h - a copy of the engine's memory numbers that any thread may keep and read.
 * Threads: a copy belongs to its holder. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-memory-view.h"
#include "engine/timeline.h"

#include <glib.h>

G_BEGIN_DECLS

/* The numbers of ks_kv_stats; its arrays point into this copy. */
typedef struct {
  ks_kv_stats kv;
  ks_policy policy;
  guint64 least_bytes; /* the smallest target for everything that works now */
} KsMemoryStats;

KsMemoryStats *ks_memory_stats_new (ks_timeline *timeline, ks_policy policy); /* engine */
KsMemoryStats *ks_memory_stats_copy (const KsMemoryStats *stats);
void ks_memory_stats_free (KsMemoryStats *stats); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsMemoryStats, ks_memory_stats_free)

/* Average entries a stream may keep and keeps. */
double ks_memory_stats_get_entries_per_stream (const KsMemoryStats *stats);
double ks_memory_stats_get_kept_per_stream (const KsMemoryStats *stats);
/* Everything on the device. */
guint64 ks_memory_stats_get_total_bytes (const KsMemoryStats *stats);

/* For the window.  target_bytes: what was asked for everything. (transfer full) */
KsMemoryView *ks_memory_stats_make_view (const KsMemoryStats *stats, guint64 target_bytes);
/* Memory of this process apart from pages of files, less n_device_bytes: what the program takes
 * beside the target.  Cheap enough for every frame. */
guint64 ks_memory_stats_get_program_bytes (guint64 n_device_bytes);

G_END_DECLS
