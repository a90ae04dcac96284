/* fake-memory.c - see fake-memory.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/fake-memory.h"

KsMemoryView *
fake_memory_new (guint n_layer, guint n_kv_head, guint n_turn)
{
  KsMemoryView *view = g_new0 (KsMemoryView, 1);
  gsize n_stream = (gsize)n_layer * n_kv_head;

  view->target_bytes = 160 * FAKE_MIB;
  view->weight_bytes = 98 * FAKE_MIB;
  view->kv_used_bytes = 118 * FAKE_MIB / 10;
  view->kv_budget_bytes = 12 * FAKE_MIB;
  view->scratch_bytes = 9 * FAKE_MIB;
  view->program_bytes = 61 * FAKE_MIB;
  view->n_evicted = 71204;
  view->n_token = n_turn * 100;
  view->n_layer = n_layer;
  view->n_kv_head = n_kv_head;
  view->n_turn = n_turn;
  view->by_stream = g_new0 (guint32, n_stream);
  view->by_turn = g_new0 (guint64, n_turn);
  view->turn_tokens = g_new0 (guint32, n_turn);
  for (gsize i = 0; i < n_stream; i++) {
    view->by_stream[i] = (guint32)(10 + 3 * i);
    view->n_entries += view->by_stream[i];
  }
  view->n_keep = view->n_entries;
  for (guint i = 0; i < n_turn; i++) {
    view->turn_tokens[i] = 100;
    view->by_turn[i] = (guint64)(100.0 * n_stream * (i + 1) / n_turn + 0.5);
  }
  return view;
}

void
fake_memory_add_pictures (KsMemoryView *view, guint n)
{
  guint64 n_stream = (guint64)view->n_layer * view->n_kv_head;

  view->pictures = g_new0 (KsMemoryPicture, n);
  view->n_picture = n;
  for (guint i = 0; i < n; i++) {
    KsMemoryPicture *picture = &view->pictures[i];

    picture->number = i + 1;
    picture->name = i + 1 < n ? g_strdup_printf ("photo-%u.jpg", i + 1) : g_strdup ("report.pdf");
    picture->hash = g_strdup ("00");
    picture->page = i + 1 < n ? -1 : 2;
    picture->frame = -1;
    picture->n_token = 64;
    picture->n_entries = 64 * n_stream * (i + 1) / n;
  }
}
