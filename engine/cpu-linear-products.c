/* cpu-linear-products.c - the products of one unit of rows, four ways.
 * Few tokens: each weight is read once, in registers.  Many tokens: a block of rows is unpacked
 * into panels, of f32 or of 8-bit codes, and multiplied with tiles of tokens; only the panels of a
 * unit are ever unpacked.  Rows without a repacked copy are packed strip by strip on the way to
 * panels of codes.  Threads: each member on its own scratch. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-linear-internal.h"

#include <assert.h>
#include <string.h>

#define TILES_PER_GROUP 16u /* tiles whose inputs stay in the L2 cache */
#define ROW_PAD KS_LINEAR_ROW_PAD

static const unsigned char *
row_at(const ks_weight *w, size_t row, size_t k)
{
  const ks_dtype_info *info = ks_dtype_get_info(w->dtype);

  return (const unsigned char *)ks_cpu_ptr(w->data) + row * w->row_bytes +
         k / info->block_elems * info->block_bytes;
}

/* The strip of row row (a multiple of its rows) at column k. */
static const unsigned char *
strip_at(const ks_weight *w, uint32_t strip_rows, size_t row, size_t k)
{
  return (const unsigned char *)ks_cpu_ptr(w->packed) +
         row / strip_rows * ks_packed_strip_bytes(w->dtype, w->n_in, strip_rows) +
         ks_packed_strip_bytes(w->dtype, k, strip_rows);
}

const unsigned char *
ks_linear_weight_at(const ks_linear *l, uint32_t w, const ks_linear_unit *unit)
{
  const ks_weight *weight = &l->op->w[w];

  if (l->plan.ways[w] == KS_LINEAR_STRIPS)
    return strip_at(weight, l->ctx->packed->strip_rows, unit->row0, 0);
  return (const unsigned char *)ks_cpu_ptr(weight->data) + unit->row0 * weight->row_bytes;
}

/* --- few tokens --- */

static void
multiply_rows(const ks_linear *l, const ks_weight *w, const ks_linear_unit *unit, size_t t0,
              size_t n_tok, ks_linear_out out)
{
  const ks_cpu_matmul_fns *fns = l->ctx->matmul;
  void (*multiply)(const ks_rows_job *job) = ks_linear_has_pairs(l->ctx, l->op, w)
                                                 ? l->ctx->pairs->multiply_rows
                                                 : fns->multiply_rows[w->dtype];
  const bool packed = fns->wants_packed[w->dtype];
  const float *x = packed ? (const float *)(const void *)(l->scratch + l->plan.packed_at)
                          : (const float *)ks_cpu_ptr(l->op->x);
  ks_rows_job job = {.dtype = w->dtype,
                     .rows = row_at(w, unit->row0, 0),
                     .row_bytes = w->row_bytes,
                     .n_row = unit->n_row,
                     .n_in = w->n_in,
                     .x_stride = packed ? l->plan.pack_floats : ks_linear_x_stride(l->op),
                     .out_stride = out.stride};

  for (size_t t = 0; t < n_tok; t += KS_MATMUL_FEW) {
    job.n_tok = n_tok - t < KS_MATMUL_FEW ? (uint32_t)(n_tok - t) : KS_MATMUL_FEW;
    job.x = x + (t0 + t) * job.x_stride;
    job.out = out.c + t * out.stride;
    multiply(&job);
  }
}

/* Activations of the tokens from t on. */
static ks_cpu_acts
acts_from(const ks_cpu_acts *acts, size_t t)
{
  const size_t n_group = acts->n_in / KS_PACKED_GROUP;
  ks_cpu_acts part = *acts;

  part.x += t * acts->x_stride;
  part.sum += t * n_group;
  part.half_sum += 2 * t * n_group;
  if (acts->q != NULL) {
    part.q += t * acts->n_in;
    part.d += t * n_group;
    part.centre += t * n_group;
    part.half_centre += 2 * t * n_group;
  }
  return part;
}

static void
multiply_strips(const ks_linear *l, const ks_weight *w, const ks_linear_unit *unit, size_t t0,
                size_t n_tok, ks_linear_out out)
{
  const ks_cpu_packed_fns *fns = l->ctx->packed;
  const ks_packed_kernel *kernel = &fns->kernels[w->dtype];
  ks_cpu_acts acts;
  ks_packed_job job = {.strips = strip_at(w, fns->strip_rows, unit->row0, 0),
                       .strip_bytes = ks_packed_strip_bytes(w->dtype, w->n_in, fns->strip_rows),
                       .n_strip = (unit->n_row + fns->strip_rows - 1) / fns->strip_rows,
                       .acts = &acts,
                       .out_stride = out.stride};

  for (size_t t = 0; t < n_tok; t += KS_MATMUL_FEW) {
    acts = acts_from(&l->acts, t0 + t);
    job.n_tok = n_tok - t < KS_MATMUL_FEW ? (uint32_t)(n_tok - t) : KS_MATMUL_FEW;
    job.out = out.c + t * out.stride;
    if (acts.q != NULL)
      kernel->rows_fast(&job);
    else
      kernel->rows_exact(&job);
  }
}

/* --- many tokens, panels of f32 --- */

/* Columns k .. k + n_k - 1 of panel_rows rows from row on; rows that do not exist are 0. */
static void
fill_panel_from_rows(const ks_cpu_matmul_fns *fns, const ks_weight *w, size_t row, size_t k,
                     size_t n_k, float *rows, float *panel)
{
  const size_t stride = n_k + ROW_PAD;

  for (size_t r = 0; r < fns->panel_rows; r++) {
    if (row + r < w->n_out)
      fns->unpack[w->dtype](w->dtype, row_at(w, row + r, k), rows + r * stride, n_k);
    else
      memset(rows + r * stride, 0, n_k * sizeof(*rows));
  }
  fns->transpose(rows, stride, n_k, panel);
}

static void
fill_panel_from_strips(const ks_cpu_ctx *ctx, const ks_weight *w, size_t row, size_t k, size_t n_k,
                       float *panel)
{
  const uint32_t strip_rows = ctx->packed->strip_rows, panel_rows = ctx->matmul->panel_rows;

  assert(panel_rows % strip_rows == 0);
  for (size_t r = 0; r < panel_rows; r += strip_rows) {
    if (row + r < w->n_out) {
      ctx->packed->kernels[w->dtype].fill_exact(strip_at(w, strip_rows, row + r, k), n_k, panel + r,
                                                panel_rows);
      continue;
    }
    for (size_t i = 0; i < n_k; i++)
      memset(panel + i * panel_rows + r, 0, strip_rows * sizeof(*panel));
  }
}

static void
fill_panels(const ks_linear *l, const ks_weight *w, const ks_linear_unit *unit, size_t k,
            size_t n_k, float *panels)
{
  const ks_cpu_matmul_fns *fns = l->ctx->matmul;
  float *rows = (float *)(void *)(l->scratch + l->plan.rows_at);

  for (size_t p = 0; p < unit->n_row; p += fns->panel_rows) {
    if (w->packed != 0)
      fill_panel_from_strips(l->ctx, w, unit->row0 + p, k, n_k, panels + p * n_k);
    else
      fill_panel_from_rows(fns, w, unit->row0 + p, k, n_k, rows, panels + p * n_k);
  }
}

/* Rows behind a unit, which its member most often unpacks next: asked for bit by bit while tiles
 * are multiplied, since a unit's first read of its rows would wait for the memory. */
typedef struct ahead {
  const unsigned char *at, *end;
  size_t step;
} ahead;

static ahead
ahead_begin(const ks_weight *w, const ks_linear_unit *unit, size_t n_tile)
{
  const size_t next = unit->row0 + unit->n_row, left = w->n_out - next;
  ahead a = {.at = row_at(w, next, 0)};
  const size_t n_bytes = (left < unit->n_row ? left : unit->n_row) * w->row_bytes;

  a.end = a.at + (w->packed != 0 ? 0 : n_bytes);
  a.step = (n_bytes / (n_tile > 0 ? n_tile : 1) + 64) / 64 * 64;
  return a;
}

static void
ahead_ask(ahead *a)
{
  const unsigned char *stop = (size_t)(a->end - a->at) > a->step ? a->at + a->step : a->end;

  for (; a->at < stop; a->at += 64)
    __builtin_prefetch(a->at, 0, 2); /* into the L2 cache: the L1 holds a panel */
  a->at = a->at < a->end ? a->at : a->end;
}

static void
multiply_panels(const ks_linear *l, const ks_weight *w, const ks_linear_unit *unit, size_t t0,
                size_t n_tok, ks_linear_out out)
{
  const ks_cpu_matmul_fns *fns = l->ctx->matmul;
  const size_t stride = ks_linear_x_stride(l->op);
  const size_t group = (size_t)fns->tile_tok * TILES_PER_GROUP;
  const float *x = (const float *)ks_cpu_ptr(l->op->x) + t0 * stride;
  float *panels = (float *)(void *)(l->scratch + l->plan.panels_at);
  ahead next = ahead_begin(w, unit,
                           (n_tok + fns->tile_tok - 1) / fns->tile_tok *
                               ((unit->n_row + fns->panel_rows - 1) / fns->panel_rows) *
                               ((w->n_in + l->plan.panel_k - 1) / l->plan.panel_k));

  for (size_t k = 0; k < w->n_in; k += l->plan.panel_k) {
    size_t n_k = w->n_in - k < l->plan.panel_k ? w->n_in - k : l->plan.panel_k;

    fill_panels(l, w, unit, k, n_k, panels);
    for (size_t g = 0; g < n_tok; g += group) {
      size_t g_end = n_tok - g < group ? n_tok : g + group;

      for (size_t r = 0; r < unit->n_row; r += fns->panel_rows)
        for (size_t t = g; t < g_end; t += fns->tile_tok) {
          size_t n = g_end - t < fns->tile_tok ? g_end - t : fns->tile_tok;

          ahead_ask(&next);
          fns->multiply_tile(panels + r * n_k, n_k, x + t * stride + k, stride, n,
                             out.c + t * out.stride + r, out.stride, out.add || k > 0);
        }
    }
  }
}

/* --- many tokens, panels of bfloat16 pairs --- */

static void
multiply_pairs(const ks_linear *l, const ks_weight *w, const ks_linear_unit *unit, size_t t0,
               size_t n_tok, ks_linear_out out)
{
  const ks_cpu_bf16_fns *fns = l->ctx->pairs;
  const size_t stride = ks_linear_n_pair(w->n_in), rows = fns->panel_rows;
  const uint16_t *x =
      (const uint16_t *)(const void *)(l->ctx->shared + l->plan.rounded_at) + 2 * t0 * stride;
  uint32_t *panel = (uint32_t *)(void *)(l->scratch + l->plan.pairs_at);

  for (size_t k = 0; k < w->n_in; k += l->plan.pair_k) {
    const size_t n_k = w->n_in - k < l->plan.pair_k ? w->n_in - k : l->plan.pair_k;

    for (size_t r = 0; r < unit->n_row; r += rows) {
      const size_t n_row = unit->n_row - r < rows ? unit->n_row - r : rows;

      fns->fill_panel(row_at(w, unit->row0 + r, k), w->row_bytes, n_row, n_k, panel);
      for (size_t t = 0; t < n_tok; t += fns->tile_tok) {
        const size_t n = n_tok - t < fns->tile_tok ? n_tok - t : fns->tile_tok;

        fns->multiply_tile(panel, ks_linear_n_pair(n_k), x + 2 * t * stride + k, stride, n,
                           out.c + t * out.stride + r, out.stride, out.add || k > 0);
      }
    }
  }
}

/* --- many tokens, panels of codes --- */

/* Columns k .. k + n_k - 1 of one strip, from its repacked copy or packed here. */
static void
fill_codes(const ks_linear *l, const ks_weight *w, size_t row, size_t k, size_t n_k,
           const ks_packed_panel *panel)
{
  const ks_cpu_packed_fns *fns = l->ctx->packed;
  const size_t left = w->n_out - row, n_row = left < fns->strip_rows ? left : fns->strip_rows;
  unsigned char *strip = l->scratch + l->plan.strip_at;

  if (w->packed != 0) {
    fns->kernels[w->dtype].fill_fast(strip_at(w, fns->strip_rows, row, k), n_k, panel);
    return;
  }
  ks_packed_fill_strip(w->dtype, row_at(w, row, 0), w->row_bytes, n_row, k, n_k, fns->strip_rows,
                       strip);
  fns->kernels[w->dtype].fill_fast(strip, n_k, panel);
}

/* Tiles of all tokens with the panels of neighbouring strips. */
static void
multiply_tiles(const ks_linear *l, const ks_packed_kernel *kernel, ks_packed_tile *tile, size_t t0,
               size_t n_tok, size_t k, float *c)
{
  const ks_cpu_acts *acts = &l->acts;
  const size_t n_group = acts->n_in / KS_PACKED_GROUP;
  const size_t tile_tok = l->ctx->packed->tile_tok;
  const size_t sums = kernel->group == KS_PACKED_GROUP ? 1 : 2; /* of a group */
  const float *sum = sums == 1 ? acts->sum : acts->half_sum;
  const uint32_t *centre = sums == 1 ? acts->centre : acts->half_centre;

  for (size_t t = 0; t < n_tok; t += tile_tok) {
    size_t at = (t0 + t) * n_group + k / KS_PACKED_GROUP;

    tile->n_tok = n_tok - t < tile_tok ? n_tok - t : tile_tok;
    tile->q = acts->q + (t0 + t) * acts->n_in + k;
    tile->d = acts->d + at;
    tile->sum = sum + at * sums;
    tile->centre = centre + at * sums;
    tile->c = c + t * tile->c_stride;
    kernel->tile_fast(tile);
  }
}

static void
multiply_codes(const ks_linear *l, const ks_weight *w, const ks_linear_unit *unit, size_t t0,
               size_t n_tok, ks_linear_out out)
{
  const ks_cpu_packed_fns *fns = l->ctx->packed;
  const ks_packed_kernel *kernel = &fns->kernels[w->dtype];
  const size_t R = fns->strip_rows, n_scale = l->plan.code_k / kernel->group * R;
  unsigned char *at = l->scratch + l->plan.codes_at;
  ks_packed_panel panels[KS_PACKED_MAX_STRIPS];
  ks_packed_tile tile = {.panels = panels, .n_in = w->n_in, .c_stride = out.stride};

  for (size_t s = 0; s < fns->tile_strips; s++) {
    panels[s].q = at;
    panels[s].d = (float *)(void *)(at + l->plan.code_k * R);
    panels[s].m = panels[s].d + n_scale;
    at += ks_linear_panel_bytes(l->plan.code_k, fns->strip_rows);
  }
  for (size_t r = 0; r < unit->n_row; r += R * fns->tile_strips) {
    size_t n_strip = (unit->n_row - r + R - 1) / R;

    tile.n_strip = n_strip < fns->tile_strips ? n_strip : fns->tile_strips;
    for (size_t k = 0; k < w->n_in; k += l->plan.code_k) {
      tile.n_k = w->n_in - k < l->plan.code_k ? w->n_in - k : l->plan.code_k;
      tile.add = out.add || k > 0;
      for (size_t s = 0; s < tile.n_strip; s++)
        fill_codes(l, w, unit->row0 + r + s * R, k, tile.n_k, &panels[s]);
      multiply_tiles(l, kernel, &tile, t0, n_tok, k, out.c + r);
    }
  }
}

void
ks_linear_multiply_to(const ks_linear *l, uint32_t w, const ks_linear_unit *unit, size_t t0,
                      size_t n_tok, ks_linear_out out)
{
  const ks_weight *weight = &l->op->w[w];

  switch (l->plan.ways[w]) {
  case KS_LINEAR_ROWS:
    multiply_rows(l, weight, unit, t0, n_tok, out);
    break;
  case KS_LINEAR_STRIPS:
    multiply_strips(l, weight, unit, t0, n_tok, out);
    break;
  case KS_LINEAR_PANELS:
    multiply_panels(l, weight, unit, t0, n_tok, out);
    break;
  case KS_LINEAR_PAIRS:
    multiply_pairs(l, weight, unit, t0, n_tok, out);
    break;
  case KS_LINEAR_CODES:
    multiply_codes(l, weight, unit, t0, n_tok, out);
    break;
  }
}
