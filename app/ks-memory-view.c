/* ks-memory-view.c - see ks-memory-view.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-memory-view.h"

#include <string.h>

G_DEFINE_BOXED_TYPE (KsMemoryView, ks_memory_view, ks_memory_view_copy, ks_memory_view_free)

KsMemoryView *
ks_memory_view_copy (const KsMemoryView *view)
{
  KsMemoryView *copy;
  gsize n_stream;

  g_return_val_if_fail (view != NULL, NULL);
  copy = g_memdup2 (view, sizeof *view);
  n_stream = (gsize)view->n_layer * view->n_kv_head;
  copy->by_stream = g_memdup2 (view->by_stream, n_stream * sizeof *view->by_stream);
  copy->by_turn = g_memdup2 (view->by_turn, view->n_turn * sizeof *view->by_turn);
  copy->turn_tokens = g_memdup2 (view->turn_tokens, view->n_turn * sizeof *view->turn_tokens);
  copy->pinned_turns = g_memdup2 (view->pinned_turns, view->n_turn * sizeof *view->pinned_turns);
  copy->pictures = g_memdup2 (view->pictures, view->n_picture * sizeof *view->pictures);
  for (guint i = 0; i < copy->n_picture; i++) {
    copy->pictures[i].name = g_strdup (view->pictures[i].name);
    copy->pictures[i].hash = g_strdup (view->pictures[i].hash);
  }
  return copy;
}

static void
clear_pictures (KsMemoryView *view)
{
  for (guint i = 0; i < view->n_picture; i++) {
    g_free (view->pictures[i].name);
    g_free (view->pictures[i].hash);
  }
  view->n_picture = 0;
  g_clear_pointer (&view->pictures, g_free);
}

void
ks_memory_view_free (KsMemoryView *view)
{
  if (view == NULL)
    return;
  clear_pictures (view);
  g_free (view->by_stream);
  g_free (view->by_turn);
  g_free (view->turn_tokens);
  g_free (view->pinned_turns);
  g_free (view);
}

void
ks_memory_view_forget_session (KsMemoryView *view)
{
  g_return_if_fail (view != NULL);
  clear_pictures (view);
  view->n_entries = view->n_pinned = view->n_evicted = 0;
  view->n_token = view->n_turn = 0;
  if (view->by_stream != NULL)
    memset (view->by_stream, 0, (gsize)view->n_layer * view->n_kv_head * sizeof *view->by_stream);
}

guint64
ks_memory_view_get_used_bytes (const KsMemoryView *view)
{
  g_return_val_if_fail (view != NULL, 0);
  return view->weight_bytes + view->copy_bytes + view->kv_used_bytes + view->scratch_bytes +
         view->eyes_bytes;
}

/* Entries of n_token tokens over all streams as a share. */
static double
get_share (const KsMemoryView *view, guint64 n_entries, guint n_token)
{
  double n_all = (double)n_token * view->n_layer * view->n_kv_head;

  return n_all > 0 ? MIN ((double)n_entries / n_all, 1.0) : 0;
}

double
ks_memory_view_get_turn_share (const KsMemoryView *view, guint turn)
{
  g_return_val_if_fail (view != NULL && turn < view->n_turn, 0);
  return get_share (view, view->by_turn[turn], view->turn_tokens[turn]);
}

double
ks_memory_view_get_picture_share (const KsMemoryView *view, guint i)
{
  g_return_val_if_fail (view != NULL && i < view->n_picture, 0);
  return get_share (view, view->pictures[i].n_entries, view->pictures[i].n_token);
}

double
ks_memory_view_get_kept_share (const KsMemoryView *view)
{
  g_return_val_if_fail (view != NULL, 0);
  return get_share (view, view->n_entries, view->n_token);
}
