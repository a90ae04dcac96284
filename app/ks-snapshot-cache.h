/* ks-snapshot-cache.h - kept states of conversations: the newest in host memory under a limit,
 * those that fall out of it on the disk, those of a session gone with it. Not here: what a state
 * stands for (ks-turn-hash.h) and what it holds (engine/snapshot.h). Threads: engine. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-turn-hash.h"
#include "storage/ks-snapshot-store.h"

G_BEGIN_DECLS

typedef struct _KsSnapshotCache KsSnapshotCache;

typedef struct {
  guint n_entry;        /* in memory */
  guint64 memory_bytes; /* of them */
  guint n_found, n_missed, n_spilled;
} KsSnapshotCounts;

/* store (NULL = memory only) is kept.  weights: of the loaded model. */
KsSnapshotCache *ks_snapshot_cache_new (KsSnapshotStore *store, const KsTurnHash *weights,
                                        guint64 memory_bytes);
/* Without writing anything more. */
void ks_snapshot_cache_free (KsSnapshotCache *cache); /* NULL is allowed */
const KsTurnHash *ks_snapshot_cache_get_weights (const KsSnapshotCache *cache);

/* Keeps the timeline as the state of a session (> 0) that content stands for; params: with_logits,
 * rng and notes.  is_scarce: the machine is short of memory, so that what is kept goes to the disk.
 * FALSE without an error when it is more than the limit; errors do not matter to an answer. */
gboolean ks_snapshot_cache_add (KsSnapshotCache *cache, gint64 session, const KsTurnHash *content,
                                ks_timeline *tl, const ks_snapshot_params *params,
                                gboolean is_scarce, GError **error);
/* Opened and whole, from memory or the disk; one that is damaged or older is removed.  Borrowed
 * until the next call. */
gboolean ks_snapshot_cache_find (KsSnapshotCache *cache, gint64 session, const KsTurnHash *content,
                                 ks_snapshot *out);
/* One that turned out to be of no use. */
void ks_snapshot_cache_drop (KsSnapshotCache *cache, gint64 session, const KsTurnHash *content);
/* The newest of each session goes to the disk: the model goes, or the program ends. */
void ks_snapshot_cache_flush (KsSnapshotCache *cache);
/* A session was deleted, or is back after all.  0: all were deleted. */
void ks_snapshot_cache_set_gone (KsSnapshotCache *cache, gint64 session, gboolean is_gone);
KsSnapshotCounts ks_snapshot_cache_get_counts (KsSnapshotCache *cache);

G_END_DECLS
