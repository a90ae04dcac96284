/* ks-memory-view.h - one moment of a conversation's memory as the window shows it: what is used of
 * the target, what is kept by layer and head and by turn, what was let go.
 * A plain copy without engine types.  Threads: a copy belongs to its holder. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib-object.h>

G_BEGIN_DECLS

/* One picture, page or frame that the model has read. */
typedef struct {
  guint turn, number; /* number: within the turn, from 1 */
  char *name;         /* of its file */
  char *hash;         /* ks_attachment_get_hash () of its attachment */
  int page;           /* of a PDF, or picture of a document, from 0; else -1 */
  int frame;          /* of a video, the first of a pair, from 0; else -1 */
  guint n_frame;      /* of a video: 1, of a pair 2 */
  guint n_token;      /* visual tokens */
  guint64 n_entries;  /* kept now, of all streams */
  gboolean pinned;    /* by itself or with its turn */
} KsMemoryPicture;

typedef struct {
  guint64 target_bytes;    /* for everything on the device; 0 = no target */
  guint64 weight_bytes;    /* model and gate, as they lie in their files */
  guint64 copy_bytes;      /* the weights' copy in the order of the processor's kernels */
  guint64 kv_used_bytes;   /* pages in use */
  guint64 kv_budget_bytes; /* pages allowed */
  guint64 scratch_bytes;
  guint64 eyes_bytes;    /* vision tower, and now of scratch and of what it made of pictures */
  guint64 program_bytes; /* the rest of this process; not part of the target */
  guint64 n_entries;     /* kept now, of all streams */
  guint64 n_keep;        /* may be kept */
  guint64 n_pinned;      /* of n_entries: stay whatever else is let go */
  guint64 n_evicted;     /* let go so far */
  guint n_token;         /* read and written so far */
  guint n_layer, n_kv_head;
  guint n_turn;
  guint32 *by_stream;        /* entries [n_layer, n_kv_head] */
  guint64 *by_turn;          /* entries [n_turn] */
  guint32 *turn_tokens;      /* tokens [n_turn] */
  gboolean *pinned_turns;    /* [n_turn]; NULL = none is */
  KsMemoryPicture *pictures; /* [n_picture], in the order in which they were read */
  guint n_picture;
} KsMemoryView;

#define KS_TYPE_MEMORY_VIEW (ks_memory_view_get_type ())
GType ks_memory_view_get_type (void);
KsMemoryView *ks_memory_view_copy (const KsMemoryView *view);
void ks_memory_view_free (KsMemoryView *view); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsMemoryView, ks_memory_view_free)

/* Leaves what the program takes: tokens, entries and pictures are another session's. */
void ks_memory_view_forget_session (KsMemoryView *view);
/* weights + their copy + used pages + scratch + eyes. */
guint64 ks_memory_view_get_used_bytes (const KsMemoryView *view);
/* What is kept of a turn's tokens, averaged over the streams: 0 to 1. */
double ks_memory_view_get_turn_share (const KsMemoryView *view, guint turn);
/* The same of picture i. */
double ks_memory_view_get_picture_share (const KsMemoryView *view, guint i);
/* The same for everything that was read. */
double ks_memory_view_get_kept_share (const KsMemoryView *view);

G_END_DECLS
