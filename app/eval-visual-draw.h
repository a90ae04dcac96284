/* eval-visual-draw.h - the pictures of visual haystacks: a plain ground, shapes in cells, words.
 * Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef enum {
  KS_VISUAL_CIRCLE,
  KS_VISUAL_SQUARE,
  KS_VISUAL_TRIANGLE,
  KS_VISUAL_STAR,
  KS_VISUAL_CROSS,
  KS_VISUAL_RING,
  KS_VISUAL_N_SHAPE
} KsVisualShape;

typedef enum {
  KS_VISUAL_RED,
  KS_VISUAL_BLUE,
  KS_VISUAL_GREEN,
  KS_VISUAL_YELLOW,
  KS_VISUAL_PURPLE,
  KS_VISUAL_BLACK,
  KS_VISUAL_N_COLOUR
} KsVisualColour;

#define KS_VISUAL_MAX_CELLS 16u

typedef struct {
  KsVisualShape shape;
  KsVisualColour colour;
} KsVisualThing;

/* side x side cells in raster order; only the first n_thing of them may be used. */
typedef struct {
  guint side;
  KsVisualThing things[KS_VISUAL_MAX_CELLS];
  guint n_thing;
  /* Across the lower edge; capitals without I, O, Q and digits without 0, 1, 8; "" = none. */
  char text[16];
} KsVisualScene;

const char *ks_visual_shape_get_name (KsVisualShape shape);
const char *ks_visual_colour_get_name (KsVisualColour colour);
/* The scene as a PNG file in base64. (transfer full) */
GBytes *ks_visual_scene_draw (const KsVisualScene *scene, guint size_px);

G_END_DECLS
