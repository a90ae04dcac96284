/* fake-memory.h - memory views with chosen numbers, for tests of widgets. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-memory-view.h"

#define FAKE_MIB (G_GUINT64_CONSTANT (1) << 20)

/* 98 MiB of weights, 11.8 of 12 MiB kept, 9 MiB scratch, target 160 MiB; n_layer x n_kv_head
 * streams of which number i keeps 10 + 3 i entries; turn i has 100 tokens, of which a share of (i +
 * 1) / n_turn is kept. (transfer full) */
KsMemoryView *fake_memory_new (guint n_layer, guint n_kv_head, guint n_turn);
/* n pictures of 64 tokens in turn 0, of which picture i keeps a share of (i + 1) / n; the last one
 * is page 3 of a document. */
void fake_memory_add_pictures (KsMemoryView *view, guint n);
