/* ks-memory-words.h - the numbers of a memory view in words: sizes, findings, one sentence each.
 * Translated.  Threads: main.  All strings: transfer full. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-memory-view.h"

G_BEGIN_DECLS

/* "98 MiB", "11.8 MiB", "101 MiB": one decimal, none for whole numbers and from 100 on. */
char *ks_words_size (guint64 bytes);
/* "38.2 of 160 MiB"; "900 KiB of 1.5 GiB" where the units differ. */
char *ks_words_size_of (guint64 bytes, guint64 total_bytes);
/* "71,204" as the locale groups digits. */
char *ks_words_count (guint64 n);
/* "71,204 entries let go" */
char *ks_words_let_go (guint64 n);
/* All of them in one line: "Weights 98 MiB · kept 11.8 of 12 MiB · scratch 9 MiB · 71,204 entries
 * let go". */
char *ks_words_memory (const KsMemoryView *view);
/* Which layers keep most and least: "Layer 7 keeps most: 412 entries a head; layer 22 least: 31."
 * Layers and heads are numbered from 0, as keepsake-cli does. */
char *ks_words_layers (const KsMemoryView *view);
/* "Layer 7, head 2: 412 entries" */
char *ks_words_cell (const KsMemoryView *view, guint layer, guint head);
/* When the room for a session that keeps everything ends, in tokens and, after some turns, in turns
 * like those so far; without keeping everything: from where on something is let go. */
char *ks_words_forecast (const KsMemoryView *view, gboolean keeps_everything);
/* "42 % kept" for a share from 0 to 1; never "100 %" when something is missing. */
char *ks_words_share (double share);
/* What is said of a row: its title, share in words, and whether it is pinned. */
char *ks_words_kept_row (const char *title, const char *share, gboolean pinned);

/* "8 frames", and "8 frames, in pairs" for a model that takes them two by two. */
char *ks_words_frames (guint n_frame, gboolean in_pairs);

G_END_DECLS
