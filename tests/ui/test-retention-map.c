/* test-retention-map.c - the heat map's colours are its numbers. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/fake-memory.h"
#include "tests/ui/ui-test.h"
#include "ui/ks-retention-map.h"

static const GdkRGBA black = {0, 0, 0, 1}, white = {1, 1, 1, 1};

static guint8 *
download (GdkTexture *texture)
{
  gsize stride = (gsize)gdk_texture_get_width (texture) * 4;
  guint8 *pixels = g_malloc (stride * (gsize)gdk_texture_get_height (texture));

  gdk_texture_download (texture, pixels, stride);
  return pixels;
}

/* Every cell has the colour of its own number: brightness = 255 * entries / most entries, at the
 * place of its layer (across) and head (down). */
static void
test_cells (void)
{
  static const struct {
    guint n_layer, n_kv_head;
    int width, height;
  } cases[] = {
      {30, 3, 300, 96}, {30, 3, 271, 95}, {36, 8, 288, 96}, {1, 1, 10, 10}, {80, 8, 120, 96}};

  for (gsize c = 0; c < G_N_ELEMENTS (cases); c++) {
    g_autoptr (KsMemoryView) view = fake_memory_new (cases[c].n_layer, cases[c].n_kv_head, 1);
    g_autoptr (GdkTexture) texture =
        ks_retention_map_make_texture (view, &black, &white, cases[c].width, cases[c].height);
    g_autofree guint8 *pixels = download (texture);
    guint32 most = view->by_stream[view->n_layer * view->n_kv_head - 1];

    for (guint layer = 0; layer < view->n_layer; layer++)
      for (guint head = 0; head < view->n_kv_head; head++) {
        int x = (int)((layer + 0.4) * cases[c].width / view->n_layer);
        int y = (int)((head + 0.4) * cases[c].height / view->n_kv_head);
        guint8 *texel = pixels + ((gsize)y * cases[c].width + x) * 4;
        double expected = 255.0 * view->by_stream[layer * view->n_kv_head + head] / most;

        g_assert_cmpfloat_with_epsilon (texel[0], expected, 1.0);
        g_assert_cmpint (texel[1], ==, texel[0]);
        g_assert_cmpint (texel[3], ==, 255);
      }
  }
}

/* No cells, no room, more layers than pixels, all zero, the largest numbers: no division by zero,
 * no overflow, no picture where there is nothing to show. */
static void
test_odd_views (void)
{
  g_autoptr (KsMemoryView) none = fake_memory_new (0, 0, 0);
  g_autoptr (KsMemoryView) view = fake_memory_new (500, 2, 0);
  g_autoptr (GdkTexture) texture = NULL, full = NULL, empty = NULL;
  g_autofree guint8 *pixels = NULL, *dark = NULL;

  g_assert_null (ks_retention_map_make_texture (NULL, &black, &white, 10, 10));
  g_assert_null (ks_retention_map_make_texture (none, &black, &white, 10, 10));
  g_assert_null (ks_retention_map_make_texture (view, &black, &white, 0, 10));
  texture = ks_retention_map_make_texture (view, &black, &white, 100, 40);
  g_assert_nonnull (texture);
  for (guint i = 0; i < 1000; i++)
    view->by_stream[i] = G_MAXUINT32;
  full = ks_retention_map_make_texture (view, &black, &white, 100, 40);
  pixels = download (full);
  g_assert_cmpint (pixels[0], ==, 255);
  memset (view->by_stream, 0, 1000 * sizeof *view->by_stream);
  empty = ks_retention_map_make_texture (view, &black, &white, 100, 40);
  dark = download (empty);
  g_assert_cmpint (dark[0], ==, 0);
}

/* The finding is a sentence and the grid's description; colour alone says nothing to a reader. */
static void
test_words (void)
{
  g_autoptr (KsMemoryView) view = fake_memory_new (30, 3, 4);
  GtkWidget *map = ks_retention_map_new ();
  GtkWindow *window = ui_test_present (map, 320, 300);
  GtkWidget *grid = ui_test_find (map, g_type_from_name ("KsRetentionGrid"));

  g_assert_cmpstr (ks_retention_map_get_finding (KS_RETENTION_MAP (map)), ==,
                   "Nothing is kept yet.");
  ks_retention_map_set_view (KS_RETENTION_MAP (map), view);
  g_assert_cmpstr (ks_retention_map_get_finding (KS_RETENTION_MAP (map)), ==,
                   "Layer 29 keeps most: 274 entries a head; layer 0 least: 13.");
  gtk_test_accessible_assert_role (grid, GTK_ACCESSIBLE_ROLE_IMG);
  gtk_test_accessible_assert_property (grid, GTK_ACCESSIBLE_PROPERTY_LABEL,
                                       "Kept entries by layer and head");
  gtk_test_accessible_assert_property (grid, GTK_ACCESSIBLE_PROPERTY_DESCRIPTION,
                                       ks_retention_map_get_finding (KS_RETENTION_MAP (map)));
  ui_test_settle (map);
  ks_retention_map_set_view (KS_RETENTION_MAP (map), NULL);
  ui_test_settle (map);
  ui_test_close (window);
}

int
main (int argc, char **argv)
{
  ui_test_init (&argc, &argv);
  g_test_add_func ("/retention-map/cells", test_cells);
  g_test_add_func ("/retention-map/odd-views", test_odd_views);
  g_test_add_func ("/retention-map/words", test_words);
  return g_test_run ();
}
