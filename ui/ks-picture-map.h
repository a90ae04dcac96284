/* ks-picture-map.h - a picture with what the model still remembers of it: what was let go lies
 * under a veil.  By layer and head, with a legend, the number of each place as a tooltip, and the
 * finding in words.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "ui/ks-patch-grid.h"

#include <adwaita.h>

G_BEGIN_DECLS

#define KS_TYPE_PICTURE_MAP (ks_picture_map_get_type ())
G_DECLARE_FINAL_TYPE (KsPictureMap, ks_picture_map, KS, PICTURE_MAP, AdwBin)

GtkWidget *ks_picture_map_new (const char *name);
/* What is shown below the veil; NULL: not known (yet), the grid alone is shown. */
void ks_picture_map_set_texture (KsPictureMap *self, GdkTexture *texture);
/* detail: of the picture, or of its tiles joined; overview: of the whole picture as the model saw
 * it once more, or NULL.  Both NULL: nothing is known, which is said.  The choice of layer and head
 * stays where it fits. */
void ks_picture_map_set_grids (KsPictureMap *self, KsPatchGrid *detail, KsPatchGrid *overview);
/* Visual tokens of both grids; 0, as at first: one at every place. */
void ks_picture_map_set_n_token (KsPictureMap *self, guint n_token);
/* Why nothing is known, in place of the finding, until there are grids. */
void ks_picture_map_set_problem (KsPictureMap *self, const char *problem);
/* KS_PATCH_ALL = all of them. */
void ks_picture_map_set_filter (KsPictureMap *self, int layer, int head);
/* The sentence below the picture. */
const char *ks_picture_map_get_finding (KsPictureMap *self);

G_END_DECLS
