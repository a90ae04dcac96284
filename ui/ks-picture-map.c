/* ks-picture-map.c - see ks-picture-map.h.
 * Two widgets: the plate draws the picture and the veil, the map adds the choices and the words. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-picture-map.h"

#include "ui/ks-compat.h"
#include "ui/ks-memory-words.h"
#include "ui/ks-swatch.h"

#include <glib/gi18n.h>

#define PLATE_MIN_PX 120
#define PLATE_NATURAL_PX 420
#define LARGEST_VEIL_PX 2048
#define MARGIN_PX 12

/* The picture itself. */
#define KS_TYPE_PICTURE_PLATE (ks_picture_plate_get_type ())
G_DECLARE_FINAL_TYPE (KsPicturePlate, ks_picture_plate, KS, PICTURE_PLATE, GtkWidget)

struct _KsPicturePlate {
  GtkWidget parent_instance;
  GtkWidget *let_go, *kept;
  GdkTexture *texture; /* may be NULL */
  KsPatchGrid *grid;   /* may be NULL */
  float *shares;       /* of grid */
  guint n_stream;      /* they are made of */
  GdkTexture *veil;    /* NULL: out of date */
  int veil_width, veil_height;
};

struct _KsPictureMap {
  AdwBin parent_instance;
  KsPicturePlate *plate;
  GtkWidget *choices;
  GtkDropDown *layers, *heads, *views;
  GtkLabel *most_label, *finding;
  KsPatchGrid *detail, *overview;
  guint n_token;        /* of both; 0 = as many as there are places */
  gboolean is_updating; /* the choices are being made, not changed by the user */
};

G_DEFINE_FINAL_TYPE (KsPicturePlate, ks_picture_plate, GTK_TYPE_WIDGET)
G_DEFINE_FINAL_TYPE (KsPictureMap, ks_picture_map, ADW_TYPE_BIN)

/* --- plate --- */

static void
ks_picture_plate_measure (GtkWidget *widget, GtkOrientation orientation, int for_size, int *minimum,
                          int *natural, int *minimum_baseline, int *natural_baseline)
{
  *minimum = PLATE_MIN_PX;
  *natural = PLATE_NATURAL_PX;
}

/* Width to height of what is shown. */
static double
get_ratio (KsPicturePlate *self)
{
  graphene_rect_t area;

  if (self->texture != NULL)
    return (double)gdk_texture_get_width (self->texture) / gdk_texture_get_height (self->texture);
  if (self->grid == NULL)
    return 1;
  ks_patch_grid_get_area (self->grid, &area);
  return (double)ks_patch_grid_get_n_col (self->grid) / ks_patch_grid_get_n_row (self->grid) /
         (double)(area.size.width / area.size.height);
}

/* Where the picture lies in the widget, and the grid, which may be larger than the picture. */
static void
get_places (KsPicturePlate *self, graphene_rect_t *out_picture, graphene_rect_t *out_grid)
{
  double width = gtk_widget_get_width (GTK_WIDGET (self));
  double height = gtk_widget_get_height (GTK_WIDGET (self));
  double ratio = get_ratio (self), shown_width = MIN (width, height * ratio);
  double shown_height = shown_width / ratio;
  graphene_rect_t area = GRAPHENE_RECT_INIT (0, 0, 1, 1);

  graphene_rect_init (out_picture, (float)((width - shown_width) / 2),
                      (float)((height - shown_height) / 2), (float)shown_width,
                      (float)shown_height);
  if (self->grid != NULL)
    ks_patch_grid_get_area (self->grid, &area);
  graphene_rect_init (out_grid, out_picture->origin.x + area.origin.x * out_picture->size.width,
                      out_picture->origin.y + area.origin.y * out_picture->size.height,
                      area.size.width * out_picture->size.width,
                      area.size.height * out_picture->size.height);
}

static void
forget_veil (KsPicturePlate *self)
{
  g_clear_object (&self->veil);
  gtk_widget_queue_draw (GTK_WIDGET (self));
}

static void
make_veil (KsPicturePlate *self, const graphene_rect_t *place)
{
  int scale = gtk_widget_get_scale_factor (GTK_WIDGET (self));
  int width = CLAMP ((int)place->size.width * scale, 1, LARGEST_VEIL_PX);
  int height = CLAMP ((int)place->size.height * scale, 1, LARGEST_VEIL_PX);
  GdkRGBA let_go, kept;

  if (self->veil != NULL && width == self->veil_width && height == self->veil_height)
    return;
  ks_swatch_get_color (self->let_go, &let_go);
  ks_swatch_get_color (self->kept, &kept);
  g_clear_object (&self->veil);
  self->veil = ks_patch_grid_make_texture (self->grid, self->shares, &let_go, &kept, width, height);
  self->veil_width = width;
  self->veil_height = height;
}

static void
ks_picture_plate_snapshot (GtkWidget *widget, GtkSnapshot *snapshot)
{
  KsPicturePlate *self = KS_PICTURE_PLATE (widget);
  graphene_rect_t picture, grid;
  GdkRGBA backing;

  if (self->texture == NULL && self->grid == NULL)
    return;
  get_places (self, &picture, &grid);
  gtk_snapshot_push_clip (snapshot, &picture);
  if (self->texture != NULL)
    gtk_snapshot_append_texture (snapshot, self->texture, &picture);
  else {
    ks_widget_color (widget, &backing);
    backing.alpha *= 0.3f;
    gtk_snapshot_append_color (snapshot, &backing, &picture);
  }
  if (self->grid != NULL) {
    make_veil (self, &grid);
    if (self->veil != NULL)
      gtk_snapshot_append_texture (snapshot, self->veil, &grid);
  }
  gtk_snapshot_pop (snapshot);
}

static gboolean
ks_picture_plate_query_tooltip (GtkWidget *widget, int x, int y, gboolean keyboard,
                                GtkTooltip *tooltip)
{
  KsPicturePlate *self = KS_PICTURE_PLATE (widget);
  graphene_rect_t picture, grid;
  g_autofree char *words = NULL;
  guint row = 0, col = 0;

  if (keyboard || self->grid == NULL)
    return FALSE;
  get_places (self, &picture, &grid);
  if (!graphene_rect_contains_point (&picture, &GRAPHENE_POINT_INIT ((float)x, (float)y)))
    return FALSE;
  col = (guint)(((float)x - grid.origin.x) / grid.size.width *
                (float)ks_patch_grid_get_n_col (self->grid));
  row = (guint)(((float)y - grid.origin.y) / grid.size.height *
                (float)ks_patch_grid_get_n_row (self->grid));
  words = ks_patch_grid_dup_cell (self->grid, self->shares, self->n_stream,
                                  MIN (row, ks_patch_grid_get_n_row (self->grid) - 1),
                                  MIN (col, ks_patch_grid_get_n_col (self->grid) - 1));
  gtk_tooltip_set_text (tooltip, words);
  return TRUE;
}

static void
ks_picture_plate_dispose (GObject *object)
{
  KsPicturePlate *self = KS_PICTURE_PLATE (object);

  g_clear_object (&self->texture);
  g_clear_object (&self->veil);
  g_clear_pointer (&self->grid, ks_patch_grid_unref);
  g_clear_pointer (&self->shares, g_free);
  g_clear_pointer (&self->let_go, gtk_widget_unparent);
  g_clear_pointer (&self->kept, gtk_widget_unparent);
  G_OBJECT_CLASS (ks_picture_plate_parent_class)->dispose (object);
}

static void
ks_picture_plate_class_init (KsPicturePlateClass *klass)
{
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS (klass);

  G_OBJECT_CLASS (klass)->dispose = ks_picture_plate_dispose;
  widget_class->measure = ks_picture_plate_measure;
  widget_class->snapshot = ks_picture_plate_snapshot;
  widget_class->query_tooltip = ks_picture_plate_query_tooltip;
  gtk_widget_class_set_css_name (widget_class, "pictureplate");
  gtk_widget_class_set_accessible_role (widget_class, GTK_ACCESSIBLE_ROLE_IMG);
}

static void
ks_picture_plate_init (KsPicturePlate *self)
{
  AdwStyleManager *style = adw_style_manager_get_default ();

  self->let_go = ks_swatch_new_hidden ("veil", GTK_WIDGET (self));
  self->kept = ks_swatch_new_hidden ("kept-patch", GTK_WIDGET (self));
  gtk_widget_set_has_tooltip (GTK_WIDGET (self), TRUE);
  gtk_widget_set_hexpand (GTK_WIDGET (self), TRUE);
  gtk_widget_set_vexpand (GTK_WIDGET (self), TRUE);
  g_signal_connect_object (style, "notify::dark", G_CALLBACK (forget_veil), self,
                           G_CONNECT_SWAPPED);
  g_signal_connect_object (style, "notify::high-contrast", G_CALLBACK (forget_veil), self,
                           G_CONNECT_SWAPPED);
}

/* --- map --- */

/* Number of a choice; the first one means all. */
static int
get_choice (GtkDropDown *drop_down)
{
  guint selected = gtk_drop_down_get_selected (drop_down);

  return selected == 0 || selected == GTK_INVALID_LIST_POSITION ? KS_PATCH_ALL : (int)selected - 1;
}

static KsPatchGrid *
get_grid (KsPictureMap *self)
{
  gboolean is_overview = self->detail == NULL || gtk_drop_down_get_selected (self->views) == 1;

  return is_overview && self->overview != NULL ? self->overview : self->detail;
}

static char *
dup_most (KsPatchGrid *grid, const float *shares)
{
  g_autofree char *share = ks_words_share (ks_patch_grid_get_most (grid, shares));

  /* Translators: in a legend, %s is "42 % kept". */
  return g_strdup_printf (_ ("Bright: %s"), share);
}

static guint64
count_places (const KsPatchGrid *grid)
{
  return grid == NULL ? 0
                      : (guint64)ks_patch_grid_get_n_row (grid) * ks_patch_grid_get_n_col (grid);
}

/* Of the picture with all that the model saw of it, whichever is shown: the same as the memory's
 * numbers tell. */
static double
get_share (KsPictureMap *self, int layer, int head, guint n_stream)
{
  guint64 n_token = self->n_token > 0 ? self->n_token
                                      : count_places (self->detail) + count_places (self->overview);
  guint64 n_kept = 0;

  if (self->detail != NULL)
    n_kept += ks_patch_grid_count_kept (self->detail, layer, head);
  if (self->overview != NULL)
    n_kept += ks_patch_grid_count_kept (self->overview, layer, head);
  return MIN ((double)n_kept / ((double)n_token * n_stream), 1.0);
}

static void
update (KsPictureMap *self)
{
  KsPicturePlate *plate = self->plate;
  KsPatchGrid *grid = get_grid (self);
  int layer = get_choice (self->layers), head = get_choice (self->heads);
  g_autofree char *finding = NULL, *most = NULL;

  g_clear_pointer (&plate->grid, ks_patch_grid_unref);
  g_clear_pointer (&plate->shares, g_free);
  gtk_widget_set_visible (self->choices, grid != NULL);
  if (grid != NULL) {
    plate->grid = ks_patch_grid_ref (grid);
    plate->shares = ks_patch_grid_dup_shares (grid, layer, head);
    plate->n_stream = (layer == KS_PATCH_ALL ? ks_patch_grid_get_n_layer (grid) : 1) *
                      (head == KS_PATCH_ALL ? ks_patch_grid_get_n_kv_head (grid) : 1);
    finding = ks_patch_grid_dup_finding (grid, plate->shares,
                                         get_share (self, layer, head, plate->n_stream));
    most = dup_most (grid, plate->shares);
  } else
    finding = g_strdup (_ ("The model has not read this picture."));
  gtk_label_set_text (self->most_label, most == NULL ? "" : most);
  gtk_label_set_text (self->finding, finding);
  gtk_accessible_update_property (GTK_ACCESSIBLE (plate), GTK_ACCESSIBLE_PROPERTY_DESCRIPTION,
                                  finding, -1);
  forget_veil (plate);
}

static void
chosen_cb (KsPictureMap *self)
{
  if (!self->is_updating)
    update (self);
}

/* A list of all and of each; what was chosen stays when it is still there. */
static void
fill_choices (GtkDropDown *drop_down, const char *all, const char *each, guint n)
{
  g_autoptr (GtkStringList) list = gtk_string_list_new (NULL);
  int before = get_choice (drop_down);

  gtk_string_list_append (list, all);
  for (guint i = 0; i < n; i++) {
    g_autofree char *number = g_strdup_printf ("%u", i);
    g_auto (GStrv) parts = g_strsplit (each, "%s", 2);
    g_autofree char *name = g_strjoinv (number, parts);

    gtk_string_list_append (list, name);
  }
  gtk_drop_down_set_model (drop_down, G_LIST_MODEL (list));
  gtk_drop_down_set_selected (drop_down,
                              before == KS_PATCH_ALL || before >= (int)n ? 0 : (guint)before + 1);
}

static void
fill_all (KsPictureMap *self)
{
  KsPatchGrid *grid = self->detail != NULL ? self->detail : self->overview;
  GListModel *model = gtk_drop_down_get_model (self->layers);
  guint n_layer = grid == NULL ? 0 : ks_patch_grid_get_n_layer (grid);
  guint n_head = grid == NULL ? 0 : ks_patch_grid_get_n_kv_head (grid);

  if (model != NULL && g_list_model_get_n_items (model) == n_layer + 1 &&
      g_list_model_get_n_items (gtk_drop_down_get_model (self->heads)) == n_head + 1)
    return; /* nothing is taken from under an open list */
  /* Translators: %s is a number, counted from 0. */
  fill_choices (self->layers, _ ("All layers"), _ ("Layer %s"), n_layer);
  /* Translators: %s is a number, counted from 0. */
  fill_choices (self->heads, _ ("All heads"), _ ("Head %s"), n_head);
}

void
ks_picture_map_set_grids (KsPictureMap *self, KsPatchGrid *detail, KsPatchGrid *overview)
{
  g_return_if_fail (KS_IS_PICTURE_MAP (self));
  if (detail != NULL)
    ks_patch_grid_ref (detail);
  if (overview != NULL)
    ks_patch_grid_ref (overview);
  ks_patch_grid_unref (self->detail);
  ks_patch_grid_unref (self->overview);
  self->detail = detail;
  self->overview = overview;
  self->is_updating = TRUE;
  fill_all (self);
  gtk_widget_set_visible (GTK_WIDGET (self->views), detail != NULL && overview != NULL);
  self->is_updating = FALSE;
  update (self);
}

void
ks_picture_map_set_n_token (KsPictureMap *self, guint n_token)
{
  g_return_if_fail (KS_IS_PICTURE_MAP (self));
  self->n_token = n_token;
  update (self);
}

void
ks_picture_map_set_problem (KsPictureMap *self, const char *problem)
{
  g_return_if_fail (KS_IS_PICTURE_MAP (self));
  ks_picture_map_set_grids (self, NULL, NULL);
  gtk_label_set_text (self->finding, problem);
}

void
ks_picture_map_set_texture (KsPictureMap *self, GdkTexture *texture)
{
  g_return_if_fail (KS_IS_PICTURE_MAP (self));
  g_set_object (&self->plate->texture, texture);
  forget_veil (self->plate);
}

void
ks_picture_map_set_filter (KsPictureMap *self, int layer, int head)
{
  g_return_if_fail (KS_IS_PICTURE_MAP (self));
  self->is_updating = TRUE;
  gtk_drop_down_set_selected (self->layers, (guint)(layer + 1));
  gtk_drop_down_set_selected (self->heads, (guint)(head + 1));
  self->is_updating = FALSE;
  update (self);
}

const char *
ks_picture_map_get_finding (KsPictureMap *self)
{
  g_return_val_if_fail (KS_IS_PICTURE_MAP (self), NULL);
  return gtk_label_get_text (self->finding);
}

/* --- life --- */

static void
ks_picture_map_dispose (GObject *object)
{
  KsPictureMap *self = KS_PICTURE_MAP (object);

  g_clear_pointer (&self->detail, ks_patch_grid_unref);
  g_clear_pointer (&self->overview, ks_patch_grid_unref);
  G_OBJECT_CLASS (ks_picture_map_parent_class)->dispose (object);
}

static void
ks_picture_map_class_init (KsPictureMapClass *klass)
{
  G_OBJECT_CLASS (klass)->dispose = ks_picture_map_dispose;
}

static GtkDropDown *
drop_down_new (KsPictureMap *self, GtkWidget *box, const char *label)
{
  GtkWidget *drop_down = gtk_drop_down_new (NULL, NULL);

  gtk_widget_set_hexpand (drop_down, TRUE);
  gtk_accessible_update_property (GTK_ACCESSIBLE (drop_down), GTK_ACCESSIBLE_PROPERTY_LABEL, label,
                                  -1);
  g_signal_connect_object (drop_down, "notify::selected", G_CALLBACK (chosen_cb), self,
                           G_CONNECT_SWAPPED);
  gtk_box_append (GTK_BOX (box), drop_down);
  return GTK_DROP_DOWN (drop_down);
}

static GtkLabel *
label_new (GtkWidget *box, const char *css_class)
{
  GtkWidget *label = gtk_label_new (NULL);

  gtk_label_set_wrap (GTK_LABEL (label), TRUE);
  gtk_label_set_xalign (GTK_LABEL (label), 0);
  gtk_widget_add_css_class (label, css_class);
  gtk_box_append (GTK_BOX (box), label);
  return GTK_LABEL (label);
}

static GtkWidget *
choices_new (KsPictureMap *self)
{
  GtkWidget *choices = gtk_box_new (GTK_ORIENTATION_VERTICAL, 6);
  GtkWidget *row = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  GtkWidget *legend = gtk_box_new (GTK_ORIENTATION_HORIZONTAL, 6);
  g_autoptr (GtkStringList) views = gtk_string_list_new (NULL);

  gtk_box_set_homogeneous (GTK_BOX (row), TRUE);
  self->layers = drop_down_new (self, row, _ ("Layer"));
  self->heads = drop_down_new (self, row, _ ("Head"));
  gtk_box_append (GTK_BOX (choices), row);
  self->views = drop_down_new (self, choices, _ ("What the model saw"));
  gtk_string_list_append (views, _ ("The picture in tiles"));
  gtk_string_list_append (views, _ ("The whole picture at once"));
  gtk_drop_down_set_model (self->views, G_LIST_MODEL (views));
  gtk_box_append (GTK_BOX (legend), ks_swatch_new ("veil"));
  gtk_label_set_text (label_new (legend, "numeric"), _ ("Dark: let go"));
  gtk_box_append (GTK_BOX (legend), ks_swatch_new ("kept-patch"));
  self->most_label = label_new (legend, "numeric");
  gtk_widget_add_css_class (legend, "caption");
  gtk_box_append (GTK_BOX (choices), legend);
  return choices;
}

static void
ks_picture_map_init (KsPictureMap *self)
{
  GtkWidget *box = gtk_box_new (GTK_ORIENTATION_VERTICAL, 8);

  self->is_updating = TRUE; /* lists that are filled change what is chosen */
  g_object_set (box, "margin-top", MARGIN_PX, "margin-bottom", MARGIN_PX, "margin-start", MARGIN_PX,
                "margin-end", MARGIN_PX, NULL);
  self->plate = g_object_new (KS_TYPE_PICTURE_PLATE, NULL);
  gtk_box_append (GTK_BOX (box), GTK_WIDGET (self->plate));
  self->finding = label_new (box, "numeric");
  self->choices = choices_new (self);
  gtk_box_append (GTK_BOX (box), self->choices);
  adw_bin_set_child (ADW_BIN (self), box);
  self->is_updating = FALSE;
}

GtkWidget *
ks_picture_map_new (const char *name)
{
  KsPictureMap *self = g_object_new (KS_TYPE_PICTURE_MAP, NULL);
  /* Translators: %s is the name of a picture. */
  g_autofree char *label = g_strdup_printf (_ ("What is kept of %s"), name);

  gtk_accessible_update_property (GTK_ACCESSIBLE (self->plate), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                  label, -1);
  ks_picture_map_set_grids (self, NULL, NULL);
  return GTK_WIDGET (self);
}
