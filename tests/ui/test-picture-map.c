/* test-picture-map.c - what is kept of a picture: shares by layer and head, places, words. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/ui-test.h"
#include "ui/ks-picture-map.h"

#include <string.h>

static const GdkRGBA black = {0, 0, 0, 1}, white = {1, 1, 1, 0.5f};

/* 4 layers of 2 heads over 6 x 9 tokens: layer 0 keeps all, layer 1 the left third, layer 2 its
 * head 1 only the corner at the bottom right, layer 3 nothing. */
static KsPatchGrid *
grid_new (void)
{
  KsPatchGrid *grid = ks_patch_grid_new (4, 2, 6, 9);

  for (guint row = 0; row < 6; row++)
    for (guint col = 0; col < 9; col++)
      for (guint head = 0; head < 2; head++) {
        ks_patch_grid_add (grid, 0, head, row, col);
        if (col < 3)
          ks_patch_grid_add (grid, 1, head, row, col);
      }
  ks_patch_grid_add (grid, 2, 1, 5, 8);
  ks_patch_grid_add (grid, 2, 1, 5, 8); /* twice is once */
  return grid;
}

static guint8 *
download (GdkTexture *texture)
{
  gsize stride = (gsize)gdk_texture_get_width (texture) * 4;
  guint8 *pixels = g_malloc (stride * (gsize)gdk_texture_get_height (texture));

  gdk_texture_download (texture, pixels, stride);
  return pixels;
}

/* A share counts the heads that are asked for and no others. */
static void
test_shares (void)
{
  g_autoptr (KsPatchGrid) grid = grid_new ();
  g_autofree float *all = ks_patch_grid_dup_shares (grid, KS_PATCH_ALL, KS_PATCH_ALL);
  g_autofree float *left = ks_patch_grid_dup_shares (grid, 1, KS_PATCH_ALL);
  g_autofree float *corner = ks_patch_grid_dup_shares (grid, 2, 1);
  g_autofree float *head = ks_patch_grid_dup_shares (grid, KS_PATCH_ALL, 1);

  g_assert_cmpfloat (all[0], ==, 0.5f);
  g_assert_cmpfloat (all[4], ==, 0.25f);
  g_assert_cmpfloat (all[6 * 9 - 1], ==, 0.375f);
  g_assert_cmpfloat (left[2], ==, 1);
  g_assert_cmpfloat (left[3], ==, 0);
  g_assert_cmpfloat (corner[6 * 9 - 1], ==, 1);
  g_assert_cmpuint (ks_patch_grid_count_kept (grid, 2, 1), ==, 1);
  g_assert_cmpuint (ks_patch_grid_count_kept (grid, KS_PATCH_ALL, 0), ==, 6 * (9 + 3));
  g_assert_cmpfloat (head[6 * 9 - 1], ==, 0.5f);
  g_assert_cmpfloat (ks_patch_grid_get_most (grid, left), ==, 1);
}

/* Places and streams that are not there change nothing; grids without tokens or with too many are
 * none. */
static void
test_bounds (void)
{
  g_autoptr (KsPatchGrid) grid = ks_patch_grid_new (2, 2, 3, 3);
  g_autofree float *shares = NULL;

  ks_patch_grid_add (grid, 2, 0, 0, 0);
  ks_patch_grid_add (grid, 0, 2, 0, 0);
  ks_patch_grid_add (grid, 0, 0, 3, 0);
  ks_patch_grid_add (grid, 0, 0, 0, 3);
  ks_patch_grid_add (grid, G_MAXUINT, G_MAXUINT, G_MAXUINT, G_MAXUINT);
  shares = ks_patch_grid_dup_shares (grid, KS_PATCH_ALL, KS_PATCH_ALL);
  g_assert_cmpfloat (ks_patch_grid_get_most (grid, shares), ==, 0);
  g_assert_null (ks_patch_grid_new (2, 2, 0, 3));
  g_assert_null (ks_patch_grid_new (0, 2, 3, 3));
  g_assert_null (ks_patch_grid_new (2, 2, G_MAXUINT, G_MAXUINT));
  g_assert_null (ks_patch_grid_new (G_MAXUINT, G_MAXUINT, 3, 3));
}

/* Findings name the parts of the picture, also when the grid is larger than the picture. */
static void
test_findings (void)
{
  g_autoptr (KsPatchGrid) grid = grid_new (), padded = ks_patch_grid_new (1, 1, 4, 4);
  g_autoptr (KsPatchGrid) empty = ks_patch_grid_new (1, 1, 1, 1);
  g_autofree float *left = ks_patch_grid_dup_shares (grid, 1, KS_PATCH_ALL);
  g_autofree float *corner = ks_patch_grid_dup_shares (grid, 2, 1);
  g_autofree float *whole = ks_patch_grid_dup_shares (grid, 0, KS_PATCH_ALL);
  g_autofree float *none = ks_patch_grid_dup_shares (empty, KS_PATCH_ALL, KS_PATCH_ALL);
  g_autofree float *all = ks_patch_grid_dup_shares (grid, KS_PATCH_ALL, KS_PATCH_ALL);
  g_autofree char *left_words = ks_patch_grid_dup_finding (grid, left, 1.0 / 3);
  g_autofree char *corner_words = ks_patch_grid_dup_finding (grid, corner, 1.0 / 54);
  g_autofree char *whole_words = ks_patch_grid_dup_finding (grid, whole, 1);
  g_autofree char *none_words = ks_patch_grid_dup_finding (empty, none, 0);
  g_autofree char *cell_words = ks_patch_grid_dup_cell (grid, all, 8, 5, 8);
  g_autofree char *padded_words = NULL;
  g_autofree float *inner = NULL;

  g_assert_cmpstr (left_words, ==, "33 % kept: most at the top left, least at the top");
  g_assert_cmpstr (corner_words, ==, "2 % kept: most at the bottom right, least at the top left");
  g_assert_cmpstr (whole_words, ==, "100 % kept");
  g_assert_cmpstr (none_words, ==, "Nothing of this picture is kept any more.");
  g_assert_cmpstr (cell_words, ==, "Row 6, column 9: kept by 3 of 8 heads");

  /* Two rows of padding, without an entry: no part of the picture itself has less than another. */
  ks_patch_grid_set_area (padded, &GRAPHENE_RECT_INIT (0, -0.5f, 1, 2));
  for (guint col = 0; col < 4; col++) {
    ks_patch_grid_add (padded, 0, 0, 1, col);
    ks_patch_grid_add (padded, 0, 0, 2, col);
  }
  inner = ks_patch_grid_dup_shares (padded, KS_PATCH_ALL, KS_PATCH_ALL);
  padded_words = ks_patch_grid_dup_finding (padded, inner, 0.5);
  g_assert_cmpstr (padded_words, ==, "50 % kept");
}

/* Every cell has the colour of its own share, the most kept one the whole colour. */
static void
test_cells (void)
{
  static const int sizes[][2] = {{90, 60}, {91, 59}, {9, 6}, {4, 3}};
  g_autoptr (KsPatchGrid) grid = grid_new ();
  g_autofree float *shares = ks_patch_grid_dup_shares (grid, KS_PATCH_ALL, KS_PATCH_ALL);

  for (gsize i = 0; i < G_N_ELEMENTS (sizes); i++) {
    int width = sizes[i][0], height = sizes[i][1];
    g_autoptr (GdkTexture) texture =
        ks_patch_grid_make_texture (grid, shares, &black, &white, width, height);
    g_autofree guint8 *pixels = download (texture);

    for (int y = 0; y < height; y++)
      for (int x = 0; x < width; x++) {
        double share = (double)shares[y * 6 / height * 9 + x * 9 / width] / 0.5;
        const guint8 *texel = pixels + ((gsize)y * (gsize)width + (gsize)x) * 4;

        /* What is downloaded is multiplied with its opacity. */
        g_assert_cmpfloat_with_epsilon (texel[3], 255 * (1 - 0.5 * share), 1.5);
        g_assert_cmpfloat_with_epsilon (texel[0], 255 * share * (1 - 0.5 * share), 2.5);
      }
  }
  g_assert_null (ks_patch_grid_make_texture (grid, shares, &black, &white, 0, 10));
  g_assert_null (ks_patch_grid_make_texture (grid, shares, &black, &white, 10, 100000));
}

static GdkTexture *
picture_new (int width, int height)
{
  gsize n_byte = (gsize)4 * (gsize)width * (gsize)height;
  guint8 *pixels = g_malloc (n_byte);
  g_autoptr (GBytes) bytes = NULL;

  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) {
      guint8 *texel = pixels + ((gsize)y * (gsize)width + (gsize)x) * 4;

      texel[0] = (guint8)(255 * x / width);
      texel[1] = (guint8)(255 * y / height);
      texel[2] = (x / 20 + y / 20) % 2 == 0 ? 200 : 80;
      texel[3] = 255;
    }
  bytes = g_bytes_new_take (pixels, n_byte);
  return gdk_memory_texture_new (width, height, GDK_MEMORY_R8G8B8A8, bytes,
                                 (gsize)4 * (gsize)width);
}

static GtkWidget *
find_plate (GtkWidget *map)
{
  return ui_test_find (map, g_type_from_name ("KsPicturePlate"));
}

/* What is said below the picture is the description of the picture, follows the choice of layer and
 * head, and says when there is nothing. */
static void
test_map (void)
{
  GtkWidget *map = ks_picture_map_new ("cat.png");
  KsPictureMap *self = KS_PICTURE_MAP (map);
  GtkWindow *window = ui_test_present (map, 360, 520);
  g_autoptr (KsPatchGrid) grid = grid_new (), small = ks_patch_grid_new (4, 2, 2, 3);
  g_autoptr (GdkTexture) picture = picture_new (360, 240);

  gtk_test_accessible_assert_role (find_plate (map), GTK_ACCESSIBLE_ROLE_IMG);
  gtk_test_accessible_assert_property (find_plate (map), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                       "What is kept of cat.png");
  g_assert_cmpstr (ks_picture_map_get_finding (self), ==, "The model has not read this picture.");
  g_assert_false (gtk_widget_get_mapped (ui_test_find (map, GTK_TYPE_DROP_DOWN)));
  ks_picture_map_set_texture (self, picture);
  ks_picture_map_set_grids (self, grid, NULL);
  g_assert_cmpstr (ks_picture_map_get_finding (self), ==,
                   "34 % kept: most at the top left, least at the top");
  g_assert_nonnull (ui_test_find_text (map, "Bright: 50 % kept"));
  ks_picture_map_set_filter (self, 2, KS_PATCH_ALL);
  g_assert_cmpstr (ks_picture_map_get_finding (self), ==,
                   "under 1 % kept: most at the bottom right, least at the top left");
  ks_picture_map_set_filter (self, 3, 0);
  gtk_test_accessible_assert_property (find_plate (map), GTK_ACCESSIBLE_PROPERTY_DESCRIPTION,
                                       "Nothing of this picture is kept any more.");
  ui_test_settle (map);
  ks_picture_map_set_grids (self, grid, small); /* newer numbers: the choice stays */
  g_assert_cmpstr (ks_picture_map_get_finding (self), ==,
                   "Nothing of this picture is kept any more.");
  ks_picture_map_set_filter (self, KS_PATCH_ALL, KS_PATCH_ALL);
  ks_picture_map_set_grids (self, NULL, small);
  g_assert_cmpstr (ks_picture_map_get_finding (self), ==,
                   "Nothing of this picture is kept any more.");
  ks_picture_map_set_grids (self, NULL, NULL);
  g_assert_cmpstr (ks_picture_map_get_finding (self), ==, "The model has not read this picture.");
  ui_test_settle (map);
  ui_test_close (window);
}

/* The share is the picture's, tiles and overview together, whichever of them is shown, and of the
 * tokens that there were; the parts are those of what is shown. */
static void
test_share (void)
{
  GtkWidget *map = ks_picture_map_new ("cat.png"), *views = NULL;
  KsPictureMap *self = KS_PICTURE_MAP (map);
  GtkWindow *window = ui_test_present (map, 360, 520);
  g_autoptr (KsPatchGrid) detail = ks_patch_grid_new (1, 2, 3, 3);
  g_autoptr (KsPatchGrid) overview = ks_patch_grid_new (1, 2, 1, 3);

  for (guint head = 0; head < 2; head++) {
    ks_patch_grid_add (detail, 0, head, 0, 0);
    for (guint col = 0; col < 3; col++)
      ks_patch_grid_add (overview, 0, head, 0, col);
  }
  ks_picture_map_set_grids (self, detail, overview);
  g_assert_cmpstr (ks_picture_map_get_finding (self), ==,
                   "33 % kept: most at the top left, least at the top");
  ks_picture_map_set_filter (self, 0, 1); /* as much of one head */
  g_assert_cmpstr (ks_picture_map_get_finding (self), ==,
                   "33 % kept: most at the top left, least at the top");
  views =
      gtk_widget_get_ancestor (ui_test_find_text (map, "The picture in tiles"), GTK_TYPE_DROP_DOWN);
  gtk_drop_down_set_selected (GTK_DROP_DOWN (views), 1);
  g_assert_cmpstr (ks_picture_map_get_finding (self), ==, "33 % kept");
  ks_picture_map_set_n_token (self, 8); /* a third of the places had none */
  g_assert_cmpstr (ks_picture_map_get_finding (self), ==, "50 % kept");
  ui_test_close (window);
}

/* Pictures for looking at: light, dark, narrow, wide, tiles with an overview, a padded square. */
static void
test_looks (void)
{
  static const struct {
    const char *name;
    int width, height;
    AdwColorScheme scheme;
  } looks[] = {{"picture-map-light", 480, 560, ADW_COLOR_SCHEME_FORCE_LIGHT},
               {"picture-map-dark", 480, 560, ADW_COLOR_SCHEME_FORCE_DARK},
               {"picture-map-narrow", 300, 480, ADW_COLOR_SCHEME_FORCE_LIGHT},
               {"picture-map-wide", 1000, 480, ADW_COLOR_SCHEME_FORCE_LIGHT}};
  g_autoptr (KsPatchGrid) grid = grid_new (), overview = ks_patch_grid_new (4, 2, 3, 3);
  g_autoptr (GdkTexture) picture = picture_new (360, 240);

  for (gsize i = 0; i < G_N_ELEMENTS (looks); i++) {
    GtkWidget *map = ks_picture_map_new ("cat.png");
    GtkWindow *window = NULL;

    adw_style_manager_set_color_scheme (adw_style_manager_get_default (), looks[i].scheme);
    ks_picture_map_set_texture (KS_PICTURE_MAP (map), picture);
    ks_picture_map_set_grids (KS_PICTURE_MAP (map), grid, i == 2 ? overview : NULL);
    window = ui_test_present (map, looks[i].width, looks[i].height);
    g_assert_cmpint (gtk_widget_get_width (map), <=, looks[i].width);
    ui_test_save (GTK_WIDGET (window), looks[i].name);
    ui_test_close (window);
  }
  adw_style_manager_set_color_scheme (adw_style_manager_get_default (), ADW_COLOR_SCHEME_DEFAULT);
}

int
main (int argc, char **argv)
{
  ui_test_init (&argc, &argv);
  g_test_add_func ("/picture-map/shares", test_shares);
  g_test_add_func ("/picture-map/bounds", test_bounds);
  g_test_add_func ("/picture-map/findings", test_findings);
  g_test_add_func ("/picture-map/cells", test_cells);
  g_test_add_func ("/picture-map/map", test_map);
  g_test_add_func ("/picture-map/share", test_share);
  g_test_add_func ("/picture-map/looks", test_looks);
  return g_test_run ();
}
