/* ks-patch-grid.h - what is still remembered of a picture: for every layer and KV head the tokens
 * of the picture's grid that have an entry left, their shares, and the finding in words. Reference
 * counted; filled once, then only read.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gdk/gdk.h>
#include <graphene.h>

G_BEGIN_DECLS

#define KS_PATCH_ALL (-1)           /* every layer, every head */
#define KS_PATCH_MAX_TOKENS 262144u /* of one grid */

typedef struct _KsPatchGrid KsPatchGrid;

/* n_row x n_col tokens, none kept.  NULL for a side of 0 or too many. (transfer full) */
KsPatchGrid *ks_patch_grid_new (guint n_layer, guint n_kv_head, guint n_row, guint n_col);
KsPatchGrid *ks_patch_grid_ref (KsPatchGrid *grid);
void ks_patch_grid_unref (KsPatchGrid *grid);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsPatchGrid, ks_patch_grid_unref)

/* Where the grid lies: the picture is the square from 0 to 1 either way.  A picture that was padded
 * to a square lies in a grid that is larger than itself. */
void ks_patch_grid_set_area (KsPatchGrid *grid, const graphene_rect_t *area);
void ks_patch_grid_get_area (const KsPatchGrid *grid, graphene_rect_t *out_area);
/* One token is kept by one head of one layer; places outside the grid are left out. */
void ks_patch_grid_add (KsPatchGrid *grid, guint layer, guint head, guint row, guint col);

guint ks_patch_grid_get_n_layer (const KsPatchGrid *grid);
guint ks_patch_grid_get_n_kv_head (const KsPatchGrid *grid);
guint ks_patch_grid_get_n_row (const KsPatchGrid *grid);
guint ks_patch_grid_get_n_col (const KsPatchGrid *grid);

/* Shares [n_row, n_col] from 0 to 1 of the streams that keep each token, of one layer or head or
 * KS_PATCH_ALL of them. (g_free) */
float *ks_patch_grid_dup_shares (const KsPatchGrid *grid, int layer, int head);
/* Tokens that are kept, counted once for each stream of the choice. */
guint64 ks_patch_grid_count_kept (const KsPatchGrid *grid, int layer, int head);
/* Largest of the shares. */
double ks_patch_grid_get_most (const KsPatchGrid *grid, const float *shares);
/* "42 % kept: most at the top left, least in the middle", of the parts that lie in the picture;
 * share: 0 to 1, of the picture with all that the model saw of it. (transfer full) */
char *ks_patch_grid_dup_finding (const KsPatchGrid *grid, const float *shares, double share);
/* "Row 3, column 5: 14 of 90 heads keep it"; rows and columns from 1. (transfer full) */
char *ks_patch_grid_dup_cell (const KsPatchGrid *grid, const float *shares, guint n_stream,
                              guint row, guint col);
/* The cells enlarged to width_px x height_px: colours from let_go (share 0) to kept (the largest
 * share).  NULL without room. (transfer full) */
GdkTexture *ks_patch_grid_make_texture (const KsPatchGrid *grid, const float *shares,
                                        const GdkRGBA *let_go, const GdkRGBA *kept, int width_px,
                                        int height_px);

G_END_DECLS
