/* ks-memory-stats.c - see ks-memory-stats.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-memory-stats.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static void
own_arrays (ks_kv_stats *kv)
{
  gsize n_stream = (gsize)kv->n_layer * kv->n_kv_head;

  kv->by_stream = g_memdup2 (kv->by_stream, n_stream * sizeof *kv->by_stream);
  kv->by_turn = g_memdup2 (kv->by_turn, kv->n_turn * sizeof *kv->by_turn);
  kv->turn_tokens = g_memdup2 (kv->turn_tokens, kv->n_turn * sizeof *kv->turn_tokens);
  kv->pictures = g_memdup2 (kv->pictures, kv->n_picture * sizeof *kv->pictures);
}

KsMemoryStats *
ks_memory_stats_new (ks_timeline *timeline, ks_policy policy, KsSight *sight, GPtrArray *seen)
{
  KsMemoryStats *stats;

  g_return_val_if_fail (timeline != NULL, NULL);
  stats = g_new0 (KsMemoryStats, 1);
  ks_timeline_get_stats (timeline, &stats->kv);
  own_arrays (&stats->kv);
  stats->policy = policy;
  /* The copy of the weights goes when that is what is asked for. */
  stats->least_bytes = ks_timeline_get_least_total_budget (timeline) - stats->kv.repacked_bytes;
  stats->seen = g_ptr_array_ref (seen);
  if (sight != NULL) {
    stats->least_bytes += ks_sight_get_needed_bytes (sight);
    stats->eyes_bytes = ks_sight_get_used_bytes (sight);
    stats->eyes_room_bytes = ks_sight_get_device_bytes (sight);
    stats->eyes_weight_bytes = ks_sight_get_weight_bytes (sight);
    stats->eyes_peak_bytes = ks_sight_get_peak_bytes (sight);
    stats->eyes_present_bytes = ks_sight_get_present_bytes (sight);
    stats->eyes_held_bytes = ks_sight_get_held_bytes (sight);
    stats->pictures = ks_sight_get_counts (sight);
  }
  return stats;
}

KsMemoryStats *
ks_memory_stats_copy (const KsMemoryStats *stats)
{
  KsMemoryStats *copy;

  g_return_val_if_fail (stats != NULL, NULL);
  copy = g_memdup2 (stats, sizeof *stats);
  own_arrays (&copy->kv);
  g_ptr_array_ref (copy->seen);
  if (copy->pins != NULL)
    g_ptr_array_ref (copy->pins);
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
  g_free ((gpointer)stats->kv.pictures);
  g_ptr_array_unref (stats->seen);
  g_clear_pointer (&stats->pins, g_ptr_array_unref);
  g_free (stats);
}

const KsSeenPicture *
ks_memory_stats_find_seen (const KsMemoryStats *stats, const ks_picture_stats *picture)
{
  for (guint i = 0; i < stats->seen->len; i++) {
    const KsSeenPicture *seen = g_ptr_array_index (stats->seen, i);

    if (seen->turn == picture->turn && seen->number == picture->attachment)
      return seen;
  }
  return NULL;
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
         stats->kv.kv_budget_bytes + stats->eyes_bytes;
}

/* A "Name:  123 kB" line of /proc/self/status in bytes. */
static guint64
get_status_bytes (const char *text, const char *name)
{
  const char *line = strstr (text, name);

  return line != NULL ? g_ascii_strtoull (line + strlen (name), NULL, 10) * 1024 : 0;
}

guint64
ks_memory_stats_get_program_bytes (guint64 n_device_bytes)
{
  char text[4096];
  int fd = open ("/proc/self/status", O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read (fd, text, sizeof text - 1) : -1;
  guint64 n_bytes;

  if (fd >= 0)
    close (fd);
  if (n <= 0)
    return 0;
  text[n] = '\0';
  n_bytes = get_status_bytes (text, "\nRssAnon:") + get_status_bytes (text, "\nRssShmem:");
  return n_bytes > n_device_bytes ? n_bytes - n_device_bytes : 0;
}

static gboolean
is_pinned (const KsMemoryStats *stats, guint turn, const char *hash)
{
  return stats->pins != NULL && ks_pin_list_holds (stats->pins, turn, hash);
}

/* Which turns are pinned; *out_n_entries: what is kept of them and of pinned pictures in others.
 * (transfer full) */
static gboolean *
make_pins (const KsMemoryStats *stats, guint64 *out_n_entries)
{
  const ks_kv_stats *kv = &stats->kv;
  gboolean *turns = g_new0 (gboolean, MAX (kv->n_turn, 1));
  guint64 n_entries = 0;

  for (guint i = 0; i < kv->n_turn; i++) {
    turns[i] = is_pinned (stats, i, NULL);
    n_entries += turns[i] ? kv->by_turn[i] : 0;
  }
  for (guint i = 0; i < kv->n_picture; i++) {
    const KsSeenPicture *seen = ks_memory_stats_find_seen (stats, &kv->pictures[i]);

    if (seen != NULL && !is_pinned (stats, seen->turn, NULL) &&
        is_pinned (stats, seen->turn, seen->hash))
      n_entries += kv->pictures[i].n_entry;
  }
  *out_n_entries = n_entries;
  return turns;
}

/* Texts are borrowed from stats. */
static GArray *
make_rows (const KsMemoryStats *stats)
{
  GArray *rows = g_array_new (FALSE, TRUE, sizeof (KsMemoryPicture));

  for (guint i = 0; i < stats->kv.n_picture; i++) {
    const ks_picture_stats *from = &stats->kv.pictures[i];
    const KsSeenPicture *seen = ks_memory_stats_find_seen (stats, from);
    KsMemoryPicture row = {.turn = from->turn,
                           .number = from->attachment,
                           .n_token = from->n_tok,
                           .n_entries = from->n_entry,
                           .page = -1,
                           .frame = -1};

    row.pinned = is_pinned (stats, from->turn, NULL);
    if (seen != NULL) {
      row.pinned = row.pinned || is_pinned (stats, from->turn, seen->hash);
      row.name = seen->name;
      row.hash = seen->hash;
      row.page = seen->source == KS_PICTURE_PAGE || seen->source == KS_PICTURE_PART
                     ? (int)seen->index
                     : -1;
      row.frame = seen->source == KS_PICTURE_FRAME ? (int)seen->index : -1;
      row.n_frame = seen->source == KS_PICTURE_FRAME ? seen->n_frame : 0;
    }
    g_array_append_val (rows, row);
  }
  return rows;
}

KsMemoryView *
ks_memory_stats_make_view (const KsMemoryStats *stats, guint64 target_bytes)
{
  g_autoptr (GArray) rows = NULL;
  g_autofree gboolean *pinned_turns = NULL;
  const ks_kv_stats *kv;
  KsMemoryView plain = {0};

  g_return_val_if_fail (stats != NULL, NULL);
  kv = &stats->kv;
  plain.target_bytes = target_bytes;
  plain.weight_bytes = kv->weight_bytes - kv->repacked_bytes + kv->gate_bytes;
  plain.copy_bytes = kv->repacked_bytes;
  plain.kv_used_bytes = kv->kv_used_bytes;
  plain.kv_budget_bytes = kv->kv_budget_bytes;
  plain.scratch_bytes = kv->scratch_bytes;
  plain.program_bytes = ks_memory_stats_get_program_bytes (
      kv->kv_committed_bytes + kv->scratch_bytes + kv->gate_bytes + kv->repacked_bytes +
      stats->eyes_held_bytes);
  plain.n_entries = kv->n_entries;
  plain.n_keep = kv->n_keep;
  plain.n_evicted = kv->n_evicted;
  plain.n_token = kv->seen;
  plain.n_layer = kv->n_layer;
  plain.n_kv_head = kv->n_kv_head;
  plain.n_turn = kv->n_turn;
  plain.eyes_bytes = stats->eyes_present_bytes;
  rows = make_rows (stats);
  plain.pictures = (KsMemoryPicture *)rows->data;
  plain.n_picture = rows->len;
  /* The copy owns its arrays; these are only read. */
  plain.by_stream = (guint32 *)kv->by_stream;
  plain.by_turn = (guint64 *)kv->by_turn;
  plain.turn_tokens = (guint32 *)kv->turn_tokens;
  plain.pinned_turns = pinned_turns = make_pins (stats, &plain.n_pinned);
  return ks_memory_view_copy (&plain);
}
