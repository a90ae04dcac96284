/* ks-retention-map.c - see ks-retention-map.h.
 * The grid is enlarged here to device pixels and shown one to one: nearest filtering of textures is
 * newer than the oldest GTK that is supported. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-retention-map.h"

#include "ui/ks-memory-words.h"
#include "ui/ks-swatch.h"

#include <adwaita.h>
#include <glib/gi18n.h>

#include <math.h>

#define N_CHANNEL 4
#define GRID_HEIGHT_PX 96
#define GRID_MIN_WIDTH_PX 120
#define GRID_WIDTH_PX 260
#define LARGEST_SIDE_PX 4096
#define SMALLEST_GAPPED_CELL_PX 6 /* smaller cells have no line between them */

/* The picture itself. */
#define KS_TYPE_RETENTION_GRID (ks_retention_grid_get_type ())
G_DECLARE_FINAL_TYPE (KsRetentionGrid, ks_retention_grid, KS, RETENTION_GRID, GtkWidget)

struct _KsRetentionGrid {
  GtkWidget parent_instance;
  GtkWidget *few, *many;
  KsMemoryView *view;
  GdkTexture *texture; /* NULL: out of date */
  int texture_width, texture_height;
};

struct _KsRetentionMap {
  GtkWidget parent_instance;
  GtkWidget *box;
  KsRetentionGrid *grid;
  GtkInscription *few_label, *many_label;
  GtkInscription *finding;
  char *finding_text;
};

G_DEFINE_FINAL_TYPE (KsRetentionGrid, ks_retention_grid, GTK_TYPE_WIDGET)
G_DEFINE_FINAL_TYPE (KsRetentionMap, ks_retention_map, GTK_TYPE_WIDGET)

static gboolean
has_cells (const KsMemoryView *view)
{
  return view != NULL && view->by_stream != NULL && view->n_layer > 0 && view->n_kv_head > 0;
}

static void
find_ends (const KsMemoryView *view, guint32 *out_few, guint32 *out_many)
{
  gsize n = (gsize)view->n_layer * view->n_kv_head;

  *out_few = *out_many = view->by_stream[0];
  for (gsize i = 1; i < n; i++) {
    *out_few = MIN (*out_few, view->by_stream[i]);
    *out_many = MAX (*out_many, view->by_stream[i]);
  }
}

/* --- picture --- */
static guint8
mix_channel (float few, float many, double share)
{
  return (guint8)lround (255 * CLAMP (few + (many - few) * share, 0, 1));
}

/* One cell as 8-bit RGBA, opaque. */
static void
color_cell (guint8 *texel, const GdkRGBA *few, const GdkRGBA *many, double share)
{
  texel[0] = mix_channel (few->red, many->red, share);
  texel[1] = mix_channel (few->green, many->green, share);
  texel[2] = mix_channel (few->blue, many->blue, share);
  texel[3] = mix_channel (few->alpha, many->alpha, share);
}

/* Last pixel row or column of its cell, where cells are large enough for a line between them. */
static gboolean
is_gap (guint pixel, guint n_pixel, guint n_cell)
{
  guint64 cell = (guint64)pixel * n_cell / n_pixel;

  return n_pixel / n_cell >= SMALLEST_GAPPED_CELL_PX && pixel + 1 < n_pixel &&
         (guint64)(pixel + 1) * n_cell / n_pixel != cell;
}

static void
fill_row (guint8 *row, const guint8 *cells, const KsMemoryView *view, guint y, guint width,
          guint height)
{
  guint head = (guint)((guint64)y * view->n_kv_head / height);

  if (is_gap (y, height, view->n_kv_head))
    return;
  for (guint x = 0; x < width; x++) {
    guint layer = (guint)((guint64)x * view->n_layer / width);

    if (!is_gap (x, width, view->n_layer))
      memcpy (row + (gsize)x * N_CHANNEL,
              cells + ((gsize)layer * view->n_kv_head + head) * N_CHANNEL, N_CHANNEL);
  }
}

GdkTexture *
ks_retention_map_make_texture (const KsMemoryView *view, const GdkRGBA *few, const GdkRGBA *many,
                               int width_px, int height_px)
{
  g_autofree guint8 *cells = NULL;
  g_autoptr (GBytes) bytes = NULL;
  guint8 *pixels;
  guint32 n_few, n_many;
  gsize n_cell, stride;

  if (!has_cells (view) || width_px <= 0 || height_px <= 0 || width_px > LARGEST_SIDE_PX ||
      height_px > LARGEST_SIDE_PX)
    return NULL;
  n_cell = (gsize)view->n_layer * view->n_kv_head;
  find_ends (view, &n_few, &n_many);
  cells = g_malloc (n_cell * N_CHANNEL);
  for (gsize i = 0; i < n_cell; i++)
    color_cell (cells + i * N_CHANNEL, few, many,
                n_many == 0 ? 0 : (double)view->by_stream[i] / n_many);
  stride = (gsize)width_px * N_CHANNEL;
  pixels = g_malloc0 (stride * (gsize)height_px);
  for (int y = 0; y < height_px; y++)
    fill_row (pixels + (gsize)y * stride, cells, view, (guint)y, (guint)width_px, (guint)height_px);
  bytes = g_bytes_new_take (pixels, stride * (gsize)height_px);
  return gdk_memory_texture_new (width_px, height_px, GDK_MEMORY_R8G8B8A8, bytes, stride);
}

/* --- grid widget --- */
static void
ks_retention_grid_measure (GtkWidget *widget, GtkOrientation orientation, int for_size,
                           int *minimum, int *natural, int *minimum_baseline, int *natural_baseline)
{
  gboolean horizontal = orientation == GTK_ORIENTATION_HORIZONTAL;

  *minimum = horizontal ? GRID_MIN_WIDTH_PX : GRID_HEIGHT_PX;
  *natural = horizontal ? GRID_WIDTH_PX : GRID_HEIGHT_PX;
}

static void
forget_texture (KsRetentionGrid *self)
{
  g_clear_object (&self->texture);
  gtk_widget_queue_draw (GTK_WIDGET (self));
}

static void
ks_retention_grid_snapshot (GtkWidget *widget, GtkSnapshot *snapshot)
{
  KsRetentionGrid *self = KS_RETENTION_GRID (widget);
  int width = gtk_widget_get_width (widget), height = gtk_widget_get_height (widget);
  int scale = gtk_widget_get_scale_factor (widget);
  GskRoundedRect outline;
  GdkRGBA few, many;

  ks_swatch_get_color (self->few, &few);
  gsk_rounded_rect_init_from_rect (&outline,
                                   &GRAPHENE_RECT_INIT (0, 0, (float)width, (float)height), 4);
  gtk_snapshot_push_rounded_clip (snapshot, &outline);
  if (self->texture == NULL || self->texture_width != width * scale ||
      self->texture_height != height * scale) {
    ks_swatch_get_color (self->many, &many);
    g_clear_object (&self->texture);
    self->texture_width = width * scale;
    self->texture_height = height * scale;
    self->texture = ks_retention_map_make_texture (self->view, &few, &many, self->texture_width,
                                                   self->texture_height);
  }
  if (self->texture != NULL)
    gtk_snapshot_append_texture (snapshot, self->texture, &outline.bounds);
  else
    gtk_snapshot_append_color (snapshot, &few, &outline.bounds);
  gtk_snapshot_pop (snapshot);
}

static gboolean
ks_retention_grid_query_tooltip (GtkWidget *widget, int x, int y, gboolean keyboard,
                                 GtkTooltip *tooltip)
{
  KsRetentionGrid *self = KS_RETENTION_GRID (widget);
  int width = gtk_widget_get_width (widget), height = gtk_widget_get_height (widget);
  g_autofree char *words = NULL;

  if (keyboard || !has_cells (self->view) || x < 0 || y < 0 || x >= width || y >= height)
    return FALSE;
  words = ks_words_cell (self->view, (guint)((guint64)x * self->view->n_layer / (guint)width),
                         (guint)((guint64)y * self->view->n_kv_head / (guint)height));
  gtk_tooltip_set_text (tooltip, words);
  return TRUE;
}

static void
ks_retention_grid_dispose (GObject *object)
{
  KsRetentionGrid *self = KS_RETENTION_GRID (object);

  g_clear_object (&self->texture);
  g_clear_pointer (&self->few, gtk_widget_unparent);
  g_clear_pointer (&self->many, gtk_widget_unparent);
  g_clear_pointer (&self->view, ks_memory_view_free);
  G_OBJECT_CLASS (ks_retention_grid_parent_class)->dispose (object);
}

static void
ks_retention_grid_class_init (KsRetentionGridClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ks_retention_grid_dispose;
  widget_class->measure = ks_retention_grid_measure;
  widget_class->snapshot = ks_retention_grid_snapshot;
  widget_class->query_tooltip = ks_retention_grid_query_tooltip;
  gtk_widget_class_set_css_name (widget_class, "retentiongrid");
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_IMG);
}

static void
ks_retention_grid_init (KsRetentionGrid *self)
{
  AdwStyleManager *style = adw_style_manager_get_default ();

  self->few = ks_swatch_new_hidden ("few", GTK_WIDGET (self));
  self->many = ks_swatch_new_hidden ("many", GTK_WIDGET (self));
  gtk_widget_set_has_tooltip (GTK_WIDGET (self), TRUE);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  _ ("Kept entries by layer and head"), -1);
  g_signal_connect_object (style, "notify::dark", G_CALLBACK (forget_texture), self,
                           G_CONNECT_SWAPPED);
  g_signal_connect_object (style, "notify::high-contrast", G_CALLBACK (forget_texture), self,
                           G_CONNECT_SWAPPED);
}

/* --- the map with its words --- */
static void
update_words (KsRetentionMap *self, const KsMemoryView *view)
{
  guint32 few = 0, many = 0;
  g_autofree char *few_text = NULL, *count = NULL, *many_text = NULL;

  if (has_cells (view))
    find_ends (view, &few, &many);
  few_text = ks_words_count (0);
  count = ks_words_count (many);
  many_text = g_strdup_printf (ngettext ("%s entry", "%s entries", many), count);
  gtk_inscription_set_text (self->few_label, few_text);
  gtk_inscription_set_text (self->many_label, many_text);
  g_free (self->finding_text);
  self->finding_text = ks_words_layers (view);
  gtk_inscription_set_text (self->finding, self->finding_text);
  gtk_accessible_update_property (GTK_ACCESSIBLE (self->grid), GTK_ACCESSIBLE_PROPERTY_DESCRIPTION,
                                  self->finding_text, -1);
}

void
ks_retention_map_set_view (KsRetentionMap *self, const KsMemoryView *view)
{
  g_return_if_fail (KS_IS_RETENTION_MAP (self));

  ks_memory_view_free (self->grid->view);
  self->grid->view = view == NULL ? NULL : ks_memory_view_copy (view);
  forget_texture (self->grid);
  update_words (self, view);
}

const char *
ks_retention_map_get_finding (KsRetentionMap *self)
{
  g_return_val_if_fail (KS_IS_RETENTION_MAP (self), NULL);

  return self->finding_text;
}

GtkWidget *
ks_retention_map_new (void)
{
  return g_object_new (KS_TYPE_RETENTION_MAP, NULL);
}

static GtkInscription *
add_inscription (GtkWidget *box, guint n_chars, guint n_lines)
{
  GtkInscription *inscription = GTK_INSCRIPTION (gtk_inscription_new (""));

  g_object_set (inscription, "min-chars", MIN (n_chars, 6), "nat-chars", n_chars, "min-lines",
                n_lines, "nat-lines", n_lines, "yalign", 0.0f, NULL);
  gtk_widget_add_css_class (GTK_WIDGET (inscription), "numeric");
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (inscription));
  return inscription;
}

static void
add_legend (KsRetentionMap *self)
{
  GtkWidget *legend = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);

  gtk_box_append (GTK_BOX (legend), ks_swatch_new ("few"));
  self->few_label = add_inscription (legend, 2, 1);
  g_object_set (self->few_label, "min-chars", 2, NULL);
  gtk_box_append (GTK_BOX (legend), ks_swatch_new ("many"));
  self->many_label = add_inscription (legend, 18, 1);
  gtk_widget_add_css_class (legend, "caption");
  gtk_box_append (GTK_BOX (self->box), legend);
}

static void
add_axis (KsRetentionMap *self)
{
  GtkWidget *axis = gtk_label_new (
      _ ("Layers from left to right, heads from top to bottom, both counted from 0"));

  gtk_label_set_xalign (GTK_LABEL (axis), 0);
  gtk_label_set_wrap (GTK_LABEL (axis), TRUE);
  gtk_widget_add_css_class (axis, "caption");
  gtk_widget_add_css_class (axis, "dim-label");
  gtk_box_append (GTK_BOX (self->box), axis);
}

static void
ks_retention_map_dispose (GObject *object)
{
  g_clear_pointer (&KS_RETENTION_MAP (object)->box, gtk_widget_unparent);
  G_OBJECT_CLASS (ks_retention_map_parent_class)->dispose (object);
}

static void
ks_retention_map_finalize (GObject *object)
{
  g_free (KS_RETENTION_MAP (object)->finding_text);
  G_OBJECT_CLASS (ks_retention_map_parent_class)->finalize (object);
}

static void
ks_retention_map_class_init (KsRetentionMapClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ks_retention_map_dispose;
  G_OBJECT_CLASS (klass)->finalize = ks_retention_map_finalize;
  gtk_widget_class_set_layout_manager_type (widget_class, GTK_TYPE_BIN_LAYOUT);
  gtk_widget_class_set_css_name (widget_class, "retentionmap");
}

static void
ks_retention_map_init (KsRetentionMap *self)
{
  self->box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 6);
  gtk_widget_set_parent (self->box, GTK_WIDGET (self));
  self->grid = g_object_new (KS_TYPE_RETENTION_GRID, NULL);
  gtk_box_append (GTK_BOX (self->box), GTK_WIDGET (self->grid));
  add_legend (self);
  add_axis (self);
  self->finding = add_inscription (self->box, 28, 3);
  g_object_set (self->finding, "text-overflow", GTK_INSCRIPTION_OVERFLOW_ELLIPSIZE_END, "wrap-mode",
                PANGO_WRAP_WORD_CHAR, NULL);
  update_words (self, NULL);
}
