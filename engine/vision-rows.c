/* vision-rows.c - the order of a tower's rows, and the pieces in which it works on them.
 * Where a family has windows, the tokens of one window lie together (windows in raster order, the
 * tokens inside in raster order, partial windows at the right and bottom edges), so that a window
 * is a run of rows and needs no mask.  Tiles are whole windows, or whole tokens; a small picture is
 * one tile.  Source: docs/method.md, section 10. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/vision-internal.h"

#include <assert.h>

static uint32_t
count_rows(const ks_vision *v, const ks_vision_plan *plan)
{
  const uint32_t merge = v->shape.prep.merge;

  return plan->grid_rows * plan->grid_cols * merge * merge + (v->has_class ? 1 : 0);
}

/* Tiles are multiples of this: the rows of a token, those of a row of pooled cells, or one. */
static uint32_t
tile_unit(const ks_vision *v, const ks_vision_plan *plan)
{
  const uint32_t merge = v->shape.prep.merge;

  return v->shape.family == KS_VISION_GEMMA3 ? merge * merge * plan->grid_cols : merge * merge;
}

static uint32_t
count_window_rows(const ks_vision *v)
{
  const uint32_t merge = v->shape.prep.merge;

  return v->window * v->window * merge * merge;
}

uint32_t
ks_vision_rows_count_tile(const ks_vision *v, const ks_vision_plan *plan)
{
  const uint32_t n_row = count_rows(v, plan), unit = tile_unit(v, plan);
  uint32_t n = v->tile_rows / unit * unit;

  if (n_row <= v->whole_rows || v->has_class)
    return n_row;
  n = n > unit ? n : unit;
  n = n > count_window_rows(v) ? n : count_window_rows(v);
  return n < n_row ? n : n_row;
}

static uint32_t
count_windows(const ks_vision *v, const ks_vision_plan *plan)
{
  const uint32_t w = v->window;

  return w > 0 ? ((plan->grid_rows + w - 1) / w) * ((plan->grid_cols + w - 1) / w) : 0;
}

uint64_t
ks_vision_rows_count_bytes(const ks_vision *v, const ks_vision_plan *plan)
{
  const uint64_t n_tok = (uint64_t)plan->grid_rows * plan->grid_cols;
  const uint64_t n_seg = count_windows(v, plan), tile = ks_vision_rows_count_tile(v, plan);
  const uint64_t most =
      2 * (count_rows(v, plan) / tile + 2); /* windows may leave tiles half full */

  return sizeof(uint32_t) * (2 * most + (n_seg > 0 ? n_tok + n_seg + 1 : 0));
}

/* Tokens of all windows, one window after the other. */
static void
fill_windows(ks_vision_rows *r, const ks_vision *v, const ks_vision_plan *plan)
{
  const uint32_t w = v->window, rows = plan->grid_rows, cols = plan->grid_cols;
  uint32_t n = 0;

  r->n_seg = 0;
  for (uint32_t y0 = 0; y0 < rows; y0 += w)
    for (uint32_t x0 = 0; x0 < cols; x0 += w) {
      r->segs[r->n_seg++] = n * r->per_token;
      for (uint32_t y = y0; y < y0 + w && y < rows; y++)
        for (uint32_t x = x0; x < x0 + w && x < cols; x++)
          r->order[n++] = y * cols + x;
    }
  r->segs[r->n_seg] = n * r->per_token;
  assert(n * r->per_token == r->n_patch);
}

static void
add_tile(ks_vision_rows *r, uint32_t first, uint32_t seg)
{
  const uint32_t n = r->n_tile > 0 ? first - r->tiles[r->n_tile - 1] : 0;

  r->max_tile_rows = n > r->max_tile_rows ? n : r->max_tile_rows;
  r->tiles[r->n_tile] = first;
  r->tile_segs[r->n_tile] = seg;
  r->n_tile++;
}

static void
fill_tiles(ks_vision_rows *r, uint32_t most)
{
  uint32_t first = 0, seg = 0;

  r->n_tile = 0;
  add_tile(r, 0, 0);
  while (first < r->n_row) {
    uint32_t end = first + most < r->n_row ? first + most : r->n_row;

    if (r->segs != NULL) {
      while (seg < r->n_seg && r->segs[seg + 1] <= end)
        seg++;
      end = r->segs[seg];
    }
    assert(end > first);
    first = end;
    add_tile(r, first, seg);
  }
  r->n_tile--; /* the last entry is the end */
}

ks_status
ks_vision_rows_init(ks_vision_rows *r, const ks_vision *v, const ks_vision_plan *plan,
                    ks_error *err)
{
  const uint32_t merge = v->shape.prep.merge, n_seg = count_windows(v, plan);
  const uint32_t most = ks_vision_rows_count_tile(v, plan);
  size_t n;

  *r = (ks_vision_rows){.n_row = count_rows(v, plan), .per_token = merge * merge};
  r->first_patch = v->has_class ? 1 : 0;
  r->n_patch = r->n_row - r->first_patch;
  n = 2 * ((size_t)r->n_row / most + 2);
  r->tiles = ks_mem_new(v->alloc, KS_MEM_VISION, n, sizeof *r->tiles);
  r->tile_segs = ks_mem_new(v->alloc, KS_MEM_VISION, n, sizeof *r->tile_segs);
  if (n_seg > 0) {
    r->segs = ks_mem_new(v->alloc, KS_MEM_VISION, (size_t)n_seg + 1, sizeof *r->segs);
    r->order = ks_mem_new(v->alloc, KS_MEM_VISION, r->n_patch / r->per_token + 1, sizeof *r->order);
  }
  if (r->tiles == NULL || r->tile_segs == NULL ||
      (n_seg > 0 && (r->segs == NULL || r->order == NULL))) {
    ks_vision_rows_done(r);
    return ks_fail(err, KS_ERR_NOMEM, "no memory for the order of %u patches", r->n_patch);
  }
  if (n_seg > 0)
    fill_windows(r, v, plan);
  fill_tiles(r, most);
  return KS_OK;
}

void
ks_vision_rows_done(ks_vision_rows *r)
{
  ks_mem_free(r->tiles);
  ks_mem_free(r->segs);
  ks_mem_free(r->tile_segs);
  ks_mem_free(r->order);
  *r = (ks_vision_rows){0};
}

uint32_t
ks_vision_rows_get_patch(const ks_vision_rows *r, uint32_t row)
{
  const uint32_t patch = row - r->first_patch;

  if (r->order == NULL)
    return patch;
  return r->order[patch / r->per_token] * r->per_token + patch % r->per_token;
}
