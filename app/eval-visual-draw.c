/* eval-visual-draw.c - see eval-visual-draw.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-visual-draw.h"

#include <cairo.h>

#include <math.h>
#include <string.h>

static const char *const shape_names[KS_VISUAL_N_SHAPE] = {"circle", "square", "triangle",
                                                           "star",   "cross",  "ring"};
static const char *const colour_names[KS_VISUAL_N_COLOUR] = {"red",    "blue",   "green",
                                                             "yellow", "purple", "black"};
static const double colours[KS_VISUAL_N_COLOUR][3] = {{0.85, 0.10, 0.10}, {0.10, 0.25, 0.85},
                                                      {0.05, 0.60, 0.15}, {0.95, 0.80, 0.05},
                                                      {0.55, 0.15, 0.70}, {0.05, 0.05, 0.05}};

const char *
ks_visual_shape_get_name (KsVisualShape shape)
{
  g_return_val_if_fail ((guint)shape < KS_VISUAL_N_SHAPE, "");
  return shape_names[shape];
}

const char *
ks_visual_colour_get_name (KsVisualColour colour)
{
  g_return_val_if_fail ((guint)colour < KS_VISUAL_N_COLOUR, "");
  return colour_names[colour];
}

/* n corners around the middle, every second one at the inner radius where that is above 0. */
static void
trace_corners (cairo_t *cr, guint n, double x, double y, double outer, double inner)
{
  guint n_point = inner > 0 ? 2 * n : n;

  for (guint i = 0; i < n_point; i++) {
    double angle = 2 * G_PI * i / n_point - G_PI / 2;
    double radius = inner > 0 && i % 2 == 1 ? inner : outer;

    cairo_line_to (cr, x + radius * cos (angle), y + radius * sin (angle));
  }
  cairo_close_path (cr);
}

/* Around (x, y) inside a circle of the radius. */
static void
draw_thing (cairo_t *cr, const KsVisualThing *thing, double x, double y, double radius)
{
  const double *colour = colours[thing->colour];

  cairo_set_source_rgb (cr, colour[0], colour[1], colour[2]);
  cairo_new_path (cr);
  switch (thing->shape) {
  case KS_VISUAL_CIRCLE:
    cairo_arc (cr, x, y, 0.85 * radius, 0, 2 * G_PI);
    break;
  case KS_VISUAL_SQUARE:
    cairo_rectangle (cr, x - 0.75 * radius, y - 0.75 * radius, 1.5 * radius, 1.5 * radius);
    break;
  case KS_VISUAL_TRIANGLE:
    trace_corners (cr, 3, x, y, radius, 0);
    break;
  case KS_VISUAL_STAR:
    trace_corners (cr, 5, x, y, radius, 0.42 * radius);
    break;
  case KS_VISUAL_CROSS:
    cairo_rectangle (cr, x - 0.85 * radius, y - 0.25 * radius, 1.7 * radius, 0.5 * radius);
    cairo_rectangle (cr, x - 0.25 * radius, y - 0.85 * radius, 0.5 * radius, 1.7 * radius);
    break;
  default:
    cairo_set_line_width (cr, 0.3 * radius);
    cairo_arc (cr, x, y, 0.7 * radius, 0, 2 * G_PI);
    cairo_stroke (cr);
    return;
  }
  cairo_fill (cr);
}

/* Letters and digits of five by seven dots, a row a byte, the highest of five bits on the left: no
 * font of the system, so that every machine draws the same. */
typedef struct {
  char letter;
  guint8 rows[7];
} Glyph;

static const Glyph glyphs[] = {
    {'A', {0x0e, 0x11, 0x11, 0x1f, 0x11, 0x11, 0x11}},
    {'B', {0x1e, 0x11, 0x11, 0x1e, 0x11, 0x11, 0x1e}},
    {'C', {0x0f, 0x10, 0x10, 0x10, 0x10, 0x10, 0x0f}},
    {'D', {0x1e, 0x11, 0x11, 0x11, 0x11, 0x11, 0x1e}},
    {'E', {0x1f, 0x10, 0x10, 0x1e, 0x10, 0x10, 0x1f}},
    {'F', {0x1f, 0x10, 0x10, 0x1e, 0x10, 0x10, 0x10}},
    {'G', {0x0f, 0x10, 0x10, 0x13, 0x11, 0x11, 0x0f}},
    {'H', {0x11, 0x11, 0x11, 0x1f, 0x11, 0x11, 0x11}},
    {'J', {0x07, 0x02, 0x02, 0x02, 0x02, 0x12, 0x0c}},
    {'K', {0x11, 0x12, 0x14, 0x18, 0x14, 0x12, 0x11}},
    {'L', {0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x1f}},
    {'M', {0x11, 0x1b, 0x15, 0x15, 0x11, 0x11, 0x11}},
    {'N', {0x11, 0x19, 0x15, 0x15, 0x13, 0x11, 0x11}},
    {'P', {0x1e, 0x11, 0x11, 0x1e, 0x10, 0x10, 0x10}},
    {'R', {0x1e, 0x11, 0x11, 0x1e, 0x14, 0x12, 0x11}},
    {'S', {0x0f, 0x10, 0x10, 0x0e, 0x01, 0x01, 0x1e}},
    {'T', {0x1f, 0x04, 0x04, 0x04, 0x04, 0x04, 0x04}},
    {'U', {0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x0e}},
    {'V', {0x11, 0x11, 0x11, 0x11, 0x0a, 0x0a, 0x04}},
    {'W', {0x11, 0x11, 0x11, 0x15, 0x15, 0x1b, 0x11}},
    {'X', {0x11, 0x11, 0x0a, 0x04, 0x0a, 0x11, 0x11}},
    {'Y', {0x11, 0x11, 0x0a, 0x04, 0x04, 0x04, 0x04}},
    {'Z', {0x1f, 0x01, 0x02, 0x04, 0x08, 0x10, 0x1f}},
    {'2', {0x0e, 0x11, 0x01, 0x06, 0x08, 0x10, 0x1f}},
    {'3', {0x1e, 0x01, 0x01, 0x0e, 0x01, 0x01, 0x1e}},
    {'4', {0x02, 0x06, 0x0a, 0x12, 0x1f, 0x02, 0x02}},
    {'5', {0x1f, 0x10, 0x1e, 0x01, 0x01, 0x11, 0x0e}},
    {'6', {0x06, 0x08, 0x10, 0x1e, 0x11, 0x11, 0x0e}},
    {'7', {0x1f, 0x01, 0x02, 0x04, 0x08, 0x08, 0x08}},
    {'9', {0x0e, 0x11, 0x11, 0x0f, 0x01, 0x02, 0x0c}},
};

static void
draw_glyph (cairo_t *cr, char letter, double x, double y, double dot)
{
  guint at = 0;

  while (at < G_N_ELEMENTS (glyphs) && glyphs[at].letter != letter)
    at++;
  g_return_if_fail (at < G_N_ELEMENTS (glyphs));
  for (guint row = 0; row < 7; row++)
    for (guint col = 0; col < 5; col++)
      if (glyphs[at].rows[row] >> (4 - col) & 1)
        cairo_rectangle (cr, x + dot * col, y + dot * row, dot, dot);
}

/* Across the lower edge; dots are whole pixels, so that edges stay sharp. */
static void
draw_text (cairo_t *cr, const char *text, guint size_px)
{
  guint n = (guint)strlen (text), dot = MAX (size_px / 48, 1);
  double x = (size_px - dot * (6.0 * n - 1)) / 2, y = size_px - 8.5 * dot;

  cairo_set_source_rgb (cr, 0, 0, 0);
  for (guint i = 0; i < n; i++)
    draw_glyph (cr, text[i], floor (x) + 6.0 * dot * i, floor (y), dot);
  cairo_fill (cr);
}

static cairo_status_t
write_cb (void *closure, const unsigned char *data, unsigned int length)
{
  g_byte_array_append (closure, data, length);
  return CAIRO_STATUS_SUCCESS;
}

GBytes *
ks_visual_scene_draw (const KsVisualScene *scene, guint size_px)
{
  cairo_surface_t *surface =
      cairo_image_surface_create (CAIRO_FORMAT_RGB24, (int)size_px, (int)size_px);
  cairo_t *cr = cairo_create (surface);
  g_autoptr (GByteArray) png = g_byte_array_new ();
  guint side = MAX (scene->side, 1);
  double height = scene->text[0] != '\0' ? 0.8 * size_px : size_px, size = size_px;
  char *base64;

  cairo_set_source_rgb (cr, 0.96, 0.96, 0.94);
  cairo_paint (cr);
  for (guint i = 0; i < scene->n_thing && i < side * side; i++) {
    double cell_w = size / side, cell_h = height / side;

    draw_thing (cr, &scene->things[i], cell_w * (i % side + 0.5), cell_h * (i / side + 0.5),
                0.42 * MIN (cell_w, cell_h));
  }
  if (scene->text[0] != '\0')
    draw_text (cr, scene->text, size_px);
  cairo_destroy (cr);
  cairo_surface_write_to_png_stream (surface, write_cb, png);
  cairo_surface_destroy (surface);
  base64 = g_base64_encode (png->data, png->len);
  return g_bytes_new_take (base64, strlen (base64));
}
