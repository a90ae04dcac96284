/* ks-picture-trace.h - what is still remembered of one picture, by layer, KV head and place.
 * A plain value without engine types.  Threads: a copy belongs to its holder. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib-object.h>

G_BEGIN_DECLS

/* One token that one head of one layer keeps. */
typedef struct {
  guint16 layer, head, row, col;
} KsTraceEntry;

typedef struct {
  guint n_layer, n_kv_head;
  guint n_row, n_col;                 /* tokens of the picture, its tiles joined; 0 = none */
  guint overview_rows, overview_cols; /* of the whole picture once more; 0 = none */
  guint n_token; /* visual tokens that were read: fewer than there are places where some are left
                    out */
  /* Where the grid lies, in widths and heights of the picture from its top left corner: a picture
   * that was padded to a square lies in a larger grid. */
  double x, y, width, height;
  GArray *entries, *overview; /* of KsTraceEntry */
} KsPictureTrace;

#define KS_TYPE_PICTURE_TRACE (ks_picture_trace_get_type ())
GType ks_picture_trace_get_type (void);
/* Nothing is kept. */
KsPictureTrace *ks_picture_trace_new (void);
KsPictureTrace *ks_picture_trace_copy (const KsPictureTrace *trace);
void ks_picture_trace_free (KsPictureTrace *trace); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsPictureTrace, ks_picture_trace_free)

G_END_DECLS
