/* ks-retention-map.h - heat map of the kept entries: layers from left to right, KV heads from top
 * to bottom, with a legend, the number of each cell as a tooltip, and the finding in words.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-memory-view.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

#define KS_TYPE_RETENTION_MAP (ks_retention_map_get_type ())
G_DECLARE_FINAL_TYPE (KsRetentionMap, ks_retention_map, KS, RETENTION_MAP, GtkWidget)

GtkWidget *ks_retention_map_new (void);
/* NULL, or no layers: an empty map that says so. */
void ks_retention_map_set_view (KsRetentionMap *self, const KsMemoryView *view);
/* The sentence below the map. */
const char *ks_retention_map_get_finding (KsRetentionMap *self);

/* The picture: cells of width_px / n_layer x height_px / n_kv_head, from few (no entries) to many
 * (as many as the fullest cell).  NULL without cells. (transfer full) */
GdkTexture *ks_retention_map_make_texture (const KsMemoryView *view, const GdkRGBA *few,
                                           const GdkRGBA *many, int width_px, int height_px);

G_END_DECLS
