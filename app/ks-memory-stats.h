/* ks-memory-stats.h - a copy of the engine's memory numbers that any thread may keep and read.
 * Threads: a copy belongs to its holder. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-memory-view.h"
#include "app/ks-pin.h"
#include "app/ks-seen-picture.h"
#include "app/ks-sight.h"
#include "engine/timeline.h"

G_BEGIN_DECLS

/* The numbers of ks_kv_stats; its arrays point into this copy. */
typedef struct {
  ks_kv_stats kv;
  ks_policy policy;
  guint64 least_bytes;     /* the smallest target for everything that works now */
  guint64 eyes_room_bytes; /* what the target has set aside for that */
  guint64 eyes_bytes;      /* what the target pays for because the model sees; 0 for a blind one */
  guint64 eyes_weight_bytes;  /* share of it: the tower's weights */
  guint64 eyes_present_bytes; /* weights, scratch and embeddings that are there now */
  guint64 eyes_held_bytes;    /* that are taken now, the weights' file apart */
  guint64 eyes_peak_bytes;    /* that were ever taken at once */
  guint64 pixel_bytes;        /* of decoded frames, beside the target: kept now */
  guint64 pixel_peak_bytes;   /* of decoded pictures: most that was there at once */
  KsEmbedCounts pictures;     /* how they came by their embeddings */
  GPtrArray *seen;            /* of KsSeenPicture; shared, not changed */
  GPtrArray *pins;            /* of KsPin; shared, not changed; NULL = nothing is pinned */
} KsMemoryStats;

/* sight may be NULL; seen: of KsSeenPicture, a reference is taken.  engine */
KsMemoryStats *ks_memory_stats_new (ks_timeline *timeline, ks_policy policy, KsSight *sight,
                                    GPtrArray *seen);
/* The picture of a row of kv.pictures; NULL when it is not known. */
const KsSeenPicture *ks_memory_stats_find_seen (const KsMemoryStats *stats,
                                                const ks_picture_stats *picture);
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
