/* ks-memory-stats.c - see ks-memory-stats.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-memory-stats.h"

static void
own_arrays (ks_kv_stats *kv)
{
  gsize n_stream = (gsize)kv->n_layer * kv->n_kv_head;

  kv->by_stream = g_memdup2 (kv->by_stream, n_stream * sizeof *kv->by_stream);
  kv->by_turn = g_memdup2 (kv->by_turn, kv->n_turn * sizeof *kv->by_turn);
  kv->turn_tokens = g_memdup2 (kv->turn_tokens, kv->n_turn * sizeof *kv->turn_tokens);
}

KsMemoryStats *
ks_memory_stats_new (const ks_timeline *timeline, ks_policy policy)
{
  KsMemoryStats *stats;

  g_return_val_if_fail (timeline != NULL, NULL);
  stats = g_new0 (KsMemoryStats, 1);
  ks_timeline_get_stats (timeline, &stats->kv);
  own_arrays (&stats->kv);
  stats->policy = policy;
  return stats;
}

KsMemoryStats *
ks_memory_stats_copy (const KsMemoryStats *stats)
{
  KsMemoryStats *copy;

  g_return_val_if_fail (stats != NULL, NULL);
  copy = g_memdup2 (stats, sizeof *stats);
  own_arrays (&copy->kv);
  return copy;
}

void
ks_memory_stats_free (KsMemoryStats *stats)
{
  if (stats == NULL)
    return;
  g_free ((gpointer)stats->kv.by_stream);
  g_free ((gpointer)stats->kv.by_turn);
  g_free ((gpointer)stats->kv.turn_tokens);
  g_free (stats);
}

static double
per_stream (const KsMemoryStats *stats, guint64 n)
{
  guint64 n_stream = (guint64)stats->kv.n_layer * stats->kv.n_kv_head;

  return n_stream > 0 ? (double)n / (double)n_stream : 0;
}

double
ks_memory_stats_get_entries_per_stream (const KsMemoryStats *stats)
{
  return per_stream (stats, stats->kv.n_keep);
}

double
ks_memory_stats_get_kept_per_stream (const KsMemoryStats *stats)
{
  return per_stream (stats, stats->kv.n_entries);
}

guint64
ks_memory_stats_get_total_bytes (const KsMemoryStats *stats)
{
  return stats->kv.weight_bytes + stats->kv.gate_bytes + stats->kv.scratch_bytes +
         stats->kv.kv_budget_bytes;
}
