/* cpu-linear-transposed.c - products with transposed weights, for gradients: dx = dy W.
 * A row of W is already a row of the panel that products of tiles want, so strips of columns are
 * unpacked row by row, once for many tokens, and multiplied with the kernels of cpu-matmul.
 * A unit of work is a strip of columns for a block of tokens.  Every element of dx is summed over
 * the rows in the same blocks and order, whatever the number of members: results do not depend on
 * it, to the last bit.
 *   w  [n_out, n_in] any type   dy [n_tok, n_out] f32   dx [n_tok, n_in] f32, sums in f32
 * Threads: kernels run on all members. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-matmul-internal.h"
#include "engine/cpu-share-internal.h"

#include <assert.h>
#include <string.h>

#define STRIP_COLS ((size_t)128)         /* a multiple of every panel_rows */
#define PANELS_FLOATS ((size_t)32 << 10) /* unpacked at a time: they stay in the L2 cache */
#define BLOCK_ROWS ((size_t)256)         /* of them, at most: one panel stays in the L1 cache */
#define LEAST_TOK ((size_t)96)           /* tokens that are worth unpacking a strip once more */
#define ROWS_AHEAD ((size_t)12)          /* asked for while others are unpacked */
#define TILES_PER_GROUP ((size_t)16)     /* tiles whose inputs stay in the L2 cache */

/* How an operation is cut; only the units depend on the number of members. */
typedef struct cut {
  size_t strip_cols, block_rows, block_tok;
  size_t n_strip, n_unit;
  size_t row_at, edge_at, total; /* scratch of a member, in floats; panels are at 0 */
} cut;

static size_t
ceil_div(size_t n, size_t unit)
{
  return (n + unit - 1) / unit;
}

static cut
make_cut(const ks_cpu_ctx *ctx, const ks_op_linear_t *op, size_t n_member)
{
  size_t block_elems = ks_dtype_get_info(op->w.dtype)->block_elems, n_block;
  size_t n_panel_row = ctx->matmul->panel_rows;
  cut c;

  c.strip_cols = block_elems > STRIP_COLS ? block_elems : STRIP_COLS;
  c.block_rows = PANELS_FLOATS / c.strip_cols;
  c.block_rows = c.block_rows < BLOCK_ROWS ? c.block_rows : BLOCK_ROWS;
  c.n_strip = ceil_div(op->w.n_in, c.strip_cols);
  n_block = ceil_div(4 * n_member, c.n_strip);
  if (n_block > op->n_tok / LEAST_TOK)
    n_block = op->n_tok / LEAST_TOK;
  n_block = n_block > 0 ? n_block : 1;
  c.block_tok =
      ceil_div(ceil_div(op->n_tok, n_block), ctx->matmul->tile_tok) * ctx->matmul->tile_tok;
  c.n_unit = c.n_strip * ceil_div(op->n_tok, c.block_tok > 0 ? c.block_tok : 1);
  c.row_at = c.strip_cols * c.block_rows;
  c.edge_at = c.row_at + c.strip_cols;
  c.total = c.edge_at + n_panel_row * ctx->matmul->tile_tok;
  return c;
}

void
ks_cpu_linear_transposed_need(const ks_cpu_ctx *ctx, const ks_op_linear_t *op, ks_cpu_need *need)
{
  cut c = make_cut(ctx, op, ks_threads_get_n(ctx->threads));

  assert(ctx->matmul->unpack[op->w.dtype] != NULL);
  if (c.total * sizeof(float) > need->member_bytes)
    need->member_bytes = c.total * sizeof(float);
}

/* Columns col .. col + n_col - 1 of rows row .. row + n_row - 1, in panels one behind the other;
 * columns that do not exist are 0. */
static void
fill_panels(const ks_cpu_matmul_fns *fns, const ks_weight *w, size_t col, size_t n_col, size_t row,
            size_t n_row, float *one, float *panels)
{
  const ks_dtype_info *info = ks_dtype_get_info(w->dtype);
  const unsigned char *at = (const unsigned char *)ks_cpu_ptr(w->data) + row * w->row_bytes +
                            col / info->block_elems * info->block_bytes;
  const size_t width = fns->panel_rows, n_panel = ceil_div(n_col, width);

  memset(one + n_col, 0, (n_panel * width - n_col) * sizeof(*one));
  for (size_t r = 0; r < n_row; r++) {
    /* A few blocks of each row lie too far apart for the processor to guess them. */
    ks_cpu_ask_ahead(at + (r + ROWS_AHEAD < n_row ? r + ROWS_AHEAD : r) * w->row_bytes,
                     (n_col + info->block_elems - 1) / info->block_elems * info->block_bytes);
    fns->unpack[w->dtype](w->dtype, at + r * w->row_bytes, one, n_col);
    for (size_t p = 0; p < n_panel; p++)
      memcpy(panels + (p * n_row + r) * width, one + p * width, width * sizeof(*one));
  }
}

/* A tile of which only n_col columns exist. */
static void
multiply_edge(const ks_cpu_matmul_fns *fns, const float *panel, size_t n_row, const float *dy,
              size_t dy_stride, size_t n_tok, float *dx, size_t dx_stride, size_t n_col, bool add,
              float *edge)
{
  const size_t width = fns->panel_rows;

  for (size_t t = 0; t < n_tok && add; t++)
    memcpy(edge + t * width, dx + t * dx_stride, n_col * sizeof(*dx));
  fns->multiply_tile(panel, n_row, dy, dy_stride, n_tok, edge, width, add);
  for (size_t t = 0; t < n_tok; t++)
    memcpy(dx + t * dx_stride, edge + t * width, n_col * sizeof(*dx));
}

/* One panel of columns for tokens g .. g_end - 1. */
static void
multiply_panel(const ks_cpu_matmul_fns *fns, const float *panel, size_t n_row, const float *dy,
               size_t dy_stride, size_t n_tok, float *dx, size_t dx_stride, size_t n_col, bool add,
               float *edge)
{
  for (size_t t = 0; t < n_tok; t += fns->tile_tok) {
    size_t n = n_tok - t < fns->tile_tok ? n_tok - t : fns->tile_tok;
    const float *from = dy + t * dy_stride;
    float *to = dx + t * dx_stride;

    if (n_col >= fns->panel_rows)
      fns->multiply_tile(panel, n_row, from, dy_stride, n, to, dx_stride, add);
    else
      multiply_edge(fns, panel, n_row, from, dy_stride, n, to, dx_stride, n_col, add, edge);
  }
}

static void
run_unit(const ks_cpu_ctx *ctx, const cut *c, const ks_op_linear_t *op, size_t unit, float *scratch)
{
  const ks_cpu_matmul_fns *fns = ctx->matmul;
  const size_t group = (size_t)fns->tile_tok * TILES_PER_GROUP;
  size_t n_in = op->w.n_in, n_out = op->w.n_out;
  size_t dy_stride = op->dy_stride != 0 ? op->dy_stride : n_out;
  size_t dx_stride = op->dx_stride != 0 ? op->dx_stride : n_in;
  size_t col = unit % c->n_strip * c->strip_cols, t0 = unit / c->n_strip * c->block_tok;
  size_t n_col = n_in - col < c->strip_cols ? n_in - col : c->strip_cols;
  size_t t_end = op->n_tok - t0 < c->block_tok ? op->n_tok : t0 + c->block_tok;

  for (size_t row = 0; row < n_out; row += c->block_rows) {
    size_t n_row = n_out - row < c->block_rows ? n_out - row : c->block_rows;

    fill_panels(fns, &op->w, col, n_col, row, n_row, scratch + c->row_at, scratch);
    for (size_t g = t0; g < t_end; g += group) {
      size_t n_tok = t_end - g < group ? t_end - g : group;
      const float *dy = (const float *)ks_cpu_ptr(op->dy) + g * dy_stride + row;
      float *dx = (float *)ks_cpu_ptr(op->dx) + g * dx_stride + col;

      for (size_t p = 0; p < n_col; p += fns->panel_rows)
        multiply_panel(fns, scratch + p * n_row, n_row, dy, dy_stride, n_tok, dx + p, dx_stride,
                       n_col - p, op->accumulate || row > 0, scratch + c->edge_at);
    }
  }
}

void
ks_cpu_linear_transposed(const ks_cpu_ctx *ctx, const ks_op_linear_t *op, uint32_t member,
                         uint32_t n_member)
{
  float *scratch = ks_cpu_scratch(ctx, member);
  cut c = make_cut(ctx, op, n_member);

  for (size_t unit = ks_cpu_take(ctx); unit < c.n_unit; unit = ks_cpu_take(ctx)) {
    if (ks_cpu_poll(ctx, member))
      return;
    run_unit(ctx, &c, op, unit, scratch);
  }
}
