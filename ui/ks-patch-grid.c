/* ks-patch-grid.c - see ks-patch-grid.h.
 * Cells are enlarged here to device pixels: nearest filtering of textures is newer than the oldest
 * GTK that is supported. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ui/ks-patch-grid.h"

#include "ui/ks-memory-words.h"

#include <glib/gi18n.h>

#include <math.h>
#include <string.h>

#define N_CHANNEL 4
#define LARGEST_SIDE_PX 4096
#define N_PART 3         /* parts of the picture either way that a finding names */
#define SAME_SHARE 0.005 /* parts that differ by less are not told apart */
#define MAX_STREAM 65536u

struct _KsPatchGrid {
  grefcount n_ref;
  guint n_layer, n_kv_head, n_row, n_col;
  graphene_rect_t area;
  guint8 *kept; /* [n_layer, n_kv_head, n_row, n_col], 0 or 1 */
};

KsPatchGrid *
ks_patch_grid_new (guint n_layer, guint n_kv_head, guint n_row, guint n_col)
{
  KsPatchGrid *grid = NULL;
  gsize n_token = (gsize)n_row * n_col, n_stream = (gsize)n_layer * n_kv_head;

  if (n_token == 0 || n_token > KS_PATCH_MAX_TOKENS || n_stream == 0 || n_stream > MAX_STREAM)
    return NULL;
  grid = g_new0 (KsPatchGrid, 1);
  g_ref_count_init (&grid->n_ref);
  grid->n_layer = n_layer;
  grid->n_kv_head = n_kv_head;
  grid->n_row = n_row;
  grid->n_col = n_col;
  graphene_rect_init (&grid->area, 0, 0, 1, 1);
  grid->kept = g_malloc0_n (n_stream, n_token);
  return grid;
}

KsPatchGrid *
ks_patch_grid_ref (KsPatchGrid *grid)
{
  g_ref_count_inc (&grid->n_ref);
  return grid;
}

void
ks_patch_grid_unref (KsPatchGrid *grid)
{
  if (grid == NULL || !g_ref_count_dec (&grid->n_ref))
    return;
  g_free (grid->kept);
  g_free (grid);
}

void
ks_patch_grid_set_area (KsPatchGrid *grid, const graphene_rect_t *area)
{
  g_return_if_fail (area->size.width > 0 && area->size.height > 0);
  grid->area = *area;
}

void
ks_patch_grid_get_area (const KsPatchGrid *grid, graphene_rect_t *out_area)
{
  *out_area = grid->area;
}

static gsize
get_n_token (const KsPatchGrid *grid)
{
  return (gsize)grid->n_row * grid->n_col;
}

void
ks_patch_grid_add (KsPatchGrid *grid, guint layer, guint head, guint row, guint col)
{
  gsize stream = (gsize)layer * grid->n_kv_head + head;

  if (layer < grid->n_layer && head < grid->n_kv_head && row < grid->n_row && col < grid->n_col)
    grid->kept[stream * get_n_token (grid) + (gsize)row * grid->n_col + col] = 1;
}

guint
ks_patch_grid_get_n_layer (const KsPatchGrid *grid)
{
  return grid->n_layer;
}

guint
ks_patch_grid_get_n_kv_head (const KsPatchGrid *grid)
{
  return grid->n_kv_head;
}

guint
ks_patch_grid_get_n_row (const KsPatchGrid *grid)
{
  return grid->n_row;
}

guint
ks_patch_grid_get_n_col (const KsPatchGrid *grid)
{
  return grid->n_col;
}

/* --- shares --- */

static gboolean
is_chosen (int choice, guint i)
{
  return choice == KS_PATCH_ALL || i == (guint)choice;
}

float *
ks_patch_grid_dup_shares (const KsPatchGrid *grid, int layer, int head)
{
  gsize n_token = get_n_token (grid);
  float *shares = g_new0 (float, n_token);
  guint n_stream = 0;

  for (guint l = 0; l < grid->n_layer; l++)
    for (guint h = 0; h < grid->n_kv_head; h++) {
      const guint8 *kept = grid->kept + ((gsize)l * grid->n_kv_head + h) * n_token;

      if (!is_chosen (layer, l) || !is_chosen (head, h))
        continue;
      n_stream++;
      for (gsize i = 0; i < n_token; i++)
        shares[i] += kept[i];
    }
  for (gsize i = 0; i < n_token && n_stream > 0; i++)
    shares[i] /= (float)n_stream;
  return shares;
}

guint64
ks_patch_grid_count_kept (const KsPatchGrid *grid, int layer, int head)
{
  gsize n_token = get_n_token (grid);
  guint64 n = 0;

  for (guint l = 0; l < grid->n_layer; l++)
    for (guint h = 0; h < grid->n_kv_head; h++) {
      const guint8 *kept = grid->kept + ((gsize)l * grid->n_kv_head + h) * n_token;

      for (gsize i = 0; i < n_token && is_chosen (layer, l) && is_chosen (head, h); i++)
        n += kept[i];
    }
  return n;
}

double
ks_patch_grid_get_most (const KsPatchGrid *grid, const float *shares)
{
  gsize n_token = get_n_token (grid);
  float most = 0;

  for (gsize i = 0; i < n_token; i++)
    most = MAX (most, shares[i]);
  return (double)most;
}

/* --- words --- */

static const char *
get_part_name (guint part)
{
  /* Translators: parts of a picture, in the place of %s in "most %s, least %s". */
  static const char *const names[N_PART * N_PART] = {
      NC_ ("part of a picture", "at the top left"),     NC_ ("part of a picture", "at the top"),
      NC_ ("part of a picture", "at the top right"),    NC_ ("part of a picture", "on the left"),
      NC_ ("part of a picture", "in the middle"),       NC_ ("part of a picture", "on the right"),
      NC_ ("part of a picture", "at the bottom left"),  NC_ ("part of a picture", "at the bottom"),
      NC_ ("part of a picture", "at the bottom right"),
  };

  return g_dpgettext2 (NULL, "part of a picture", names[part]);
}

/* Third of the picture that the middle of cell i of n lies in; -1 outside of it. */
static int
get_third (guint i, guint n, float origin, float length)
{
  double at = (double)origin + (double)length * (i + 0.5) / n;

  return at < 0 || at >= 1 ? -1 : (int)(at * N_PART);
}

/* Means of the nine parts; those without a token have -1. */
static void
measure_parts (const KsPatchGrid *grid, const float *shares, double *parts)
{
  double sums[N_PART * N_PART] = {0};
  guint counts[N_PART * N_PART] = {0};

  for (guint row = 0; row < grid->n_row; row++) {
    int down = get_third (row, grid->n_row, grid->area.origin.y, grid->area.size.height);

    for (guint col = 0; col < grid->n_col && down >= 0; col++) {
      int across = get_third (col, grid->n_col, grid->area.origin.x, grid->area.size.width);

      if (across < 0)
        continue;
      sums[down * N_PART + across] += (double)shares[(gsize)row * grid->n_col + col];
      counts[down * N_PART + across]++;
    }
  }
  for (guint i = 0; i < N_PART * N_PART; i++)
    parts[i] = counts[i] == 0 ? -1 : sums[i] / counts[i];
}

char *
ks_patch_grid_dup_finding (const KsPatchGrid *grid, const float *shares, double share)
{
  double parts[N_PART * N_PART];
  int most = -1, least = -1;
  g_autofree char *words = ks_words_share (share);

  if (share <= 0)
    return g_strdup (_ ("Nothing of this picture is kept any more."));
  measure_parts (grid, shares, parts);
  for (int i = 0; i < N_PART * N_PART; i++) {
    if (parts[i] < 0)
      continue;
    if (most < 0 || parts[i] > parts[most])
      most = i;
    if (least < 0 || parts[i] < parts[least])
      least = i;
  }
  if (most < 0 || parts[most] - parts[least] < SAME_SHARE)
    return g_steal_pointer (&words);
  /* Translators: "42 % kept: most at the top left, least in the middle" */
  return g_strdup_printf (_ ("%s: most %s, least %s"), words, get_part_name ((guint)most),
                          get_part_name ((guint)least));
}

char *
ks_patch_grid_dup_cell (const KsPatchGrid *grid, const float *shares, guint n_stream, guint row,
                        guint col)
{
  guint n_kept = 0;

  g_return_val_if_fail (row < grid->n_row && col < grid->n_col, NULL);
  n_kept = (guint)lround ((double)shares[(gsize)row * grid->n_col + col] * n_stream);
  /* Translators: a place in a picture, then how many of the model's heads keep it. */
  return g_strdup_printf (ngettext ("Row %u, column %u: kept by %u of %u head",
                                    "Row %u, column %u: kept by %u of %u heads", n_stream),
                          row + 1, col + 1, n_kept, n_stream);
}

/* --- picture --- */

static guint8
mix_channel (float from, float to, double share)
{
  return (guint8)lround (255 * CLAMP ((double)from + (double)(to - from) * share, 0, 1));
}

static void
color_cells (const KsPatchGrid *grid, const float *shares, const GdkRGBA *let_go,
             const GdkRGBA *kept, guint8 *cells)
{
  gsize n_token = get_n_token (grid);
  double most = ks_patch_grid_get_most (grid, shares);

  for (gsize i = 0; i < n_token; i++) {
    double share = most > 0 ? (double)shares[i] / most : 0;
    guint8 *texel = cells + i * N_CHANNEL;

    texel[0] = mix_channel (let_go->red, kept->red, share);
    texel[1] = mix_channel (let_go->green, kept->green, share);
    texel[2] = mix_channel (let_go->blue, kept->blue, share);
    texel[3] = mix_channel (let_go->alpha, kept->alpha, share);
  }
}

GdkTexture *
ks_patch_grid_make_texture (const KsPatchGrid *grid, const float *shares, const GdkRGBA *let_go,
                            const GdkRGBA *kept, int width_px, int height_px)
{
  g_autofree guint8 *cells = NULL;
  g_autoptr (GBytes) bytes = NULL;
  guint8 *pixels = NULL;
  gsize stride = (gsize)MAX (width_px, 0) * N_CHANNEL;

  if (width_px <= 0 || height_px <= 0 || width_px > LARGEST_SIDE_PX || height_px > LARGEST_SIDE_PX)
    return NULL;
  cells = g_malloc (get_n_token (grid) * N_CHANNEL);
  color_cells (grid, shares, let_go, kept, cells);
  pixels = g_malloc (stride * (gsize)height_px);
  for (int y = 0; y < height_px; y++) {
    gsize row = (gsize)y * grid->n_row / (gsize)height_px;
    guint8 *out = pixels + (gsize)y * stride;

    for (int x = 0; x < width_px; x++) {
      gsize col = (gsize)x * grid->n_col / (gsize)width_px;

      memcpy (out + (gsize)x * N_CHANNEL, cells + (row * grid->n_col + col) * N_CHANNEL, N_CHANNEL);
    }
  }
  bytes = g_bytes_new_take (pixels, stride * (gsize)height_px);
  return gdk_memory_texture_new (width_px, height_px, GDK_MEMORY_R8G8B8A8, bytes, stride);
}
