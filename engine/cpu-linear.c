/* cpu-linear.c - linear: how the products of an operation are cut, and what happens to them.
 * Units of output rows are handed out in runs, the last ones by ticket, so that a member that was
 * interrupted does less.  A unit's products lie in the member's scratch; the epilogue takes them to
 * the output.
 *   w  [n_out, n_in] any type   x  [n_tok, n_in] f32   y  [n_tok, n_out] f32, sums in f32
 * In fast mode x is quantised once per operation: with few tokens by every member for itself, which
 * takes less time than waiting for each other, with many in slices that all members read.
 * Threads: runs on all members.  Source: docs/method.md, docs/adr/0014-packed-weights.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-linear-internal.h"
#include "engine/cpu-share-internal.h"
#include "engine/cpu-vec-internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define PANEL_K                                                                                    \
  ((size_t)288)               /* columns of a panel of f32: 16 rows of them stay in the L1 cache   \
                               */
#define SUPER_K ((size_t)256) /* the same for types with blocks of 256 */
#define PAIR_K ((size_t)512)  /* of a panel of pairs */
#define CODE_BYTES ((size_t)16 << 10) /* codes of the panels of one tile, in the L1 cache */
#define BLOCK_TOK ((size_t)480)       /* tokens per block of products, a multiple of every tile */
#define FEW_BYTES ((size_t)40 << 10)  /* of a unit with few tokens: some microseconds of reading */
#define FEW_ROWS ((size_t)128)
#define ASK_BYTES ((size_t)4 << 10) /* of weights, asked for while others are waited for */

#define ROUND_UP(n, unit) (((n) + (unit)-1) / (unit) * (unit))

/* --- units of work --- */

static bool
is_fast(const ks_cpu_ctx *ctx, const ks_op_linear *op)
{
  return ctx->mode == KS_COMPUTE_FAST && !op->exact;
}

/* Tokens up to which it is cheaper to take rows apart in registers, four tokens at a time, than to
 * unpack panels: measured on Zen 3, for blocks of 32 and of 256. */
static uint32_t
most_few_tokens(const ks_cpu_ctx *ctx, const ks_op_linear *op, const ks_weight *w)
{
  if (w->packed == 0)
    return ks_dtype_get_info(w->dtype)->block_elems > 32 ? 28 : 8;
  return is_fast(ctx, op) ? KS_MATMUL_FEW : 12;
}

static ks_linear_way
choose_way(const ks_cpu_ctx *ctx, const ks_op_linear *op, const ks_weight *w)
{
  const bool has_form = ks_packed_get_format(w->dtype).row_bytes > 0;

  if (op->n_tok <= most_few_tokens(ctx, op, w))
    return w->packed != 0 ? KS_LINEAR_STRIPS : KS_LINEAR_ROWS;
  if (ks_linear_has_pairs(ctx, op, w))
    return KS_LINEAR_PAIRS;
  return is_fast(ctx, op) && has_form ? KS_LINEAR_CODES : KS_LINEAR_PANELS;
}

static bool
has_panels(const ks_linear_plan *p)
{
  return p->has_way[KS_LINEAR_PANELS] || p->has_way[KS_LINEAR_PAIRS] || p->has_way[KS_LINEAR_CODES];
}

/* Columns of a panel: at most most (a multiple of 256), all panels of a row about equally wide,
 * whole blocks of the types. */
static size_t
choose_k(const ks_op_linear *op, size_t most)
{
  size_t n_in = op->w[0].n_in, n_panel = (n_in + most - 1) / most, unit = 32;

  for (uint32_t i = 0; i < op->n_w; i++)
    if (ks_dtype_get_info(op->w[i].dtype)->block_elems > 32)
      unit = SUPER_K;
  return ROUND_UP((n_in + n_panel - 1) / n_panel, unit);
}

static size_t
choose_panel_k(const ks_op_linear *op)
{
  size_t k = choose_k(op, PANEL_K);

  return k > PANEL_K ? SUPER_K : k;
}

static size_t
count_units(const ks_op_linear *op, uint32_t n_list, size_t unit_rows)
{
  size_t n = 0;

  for (uint32_t i = 0; i < n_list; i++)
    n += (op->w[i].n_out + unit_rows - 1) / unit_rows;
  return n;
}

static void
plan_rows(const ks_cpu_ctx *ctx, const ks_op_linear *op, size_t n_member, ks_linear_plan *p)
{
  size_t least = 4, wanted = 8 * n_member;

  if (p->has_way[KS_LINEAR_STRIPS] || p->has_way[KS_LINEAR_CODES])
    least = ctx->packed->strip_rows;
  if (p->has_way[KS_LINEAR_PANELS] && ctx->matmul->panel_rows > least)
    least = ctx->matmul->panel_rows;
  if (p->has_way[KS_LINEAR_PAIRS] && ctx->pairs->panel_rows > least)
    least = ctx->pairs->panel_rows;
  if (has_panels(p)) {
    p->unit_rows = KS_MATMUL_MAX_PANEL;
    wanted = 12 * n_member;
  } else {
    size_t rows = ROUND_UP(FEW_BYTES / (op->w[0].row_bytes + 1) + 1, least);

    p->unit_rows = rows < FEW_ROWS ? rows : FEW_ROWS;
  }
  while (p->unit_rows > least && p->unit_rows > 8 &&
         count_units(op, p->n_list, p->unit_rows) < wanted)
    p->unit_rows = ROUND_UP(p->unit_rows / 2, least);
}

/* Takes n bytes of a member's scratch. */
static size_t
take(ks_linear_plan *p, size_t n_bytes)
{
  size_t at = p->member_bytes;

  p->member_bytes += ROUND_UP(n_bytes, (size_t)64);
  return at;
}

static void
plan_few(const ks_cpu_ctx *ctx, const ks_op_linear *op, ks_linear_plan *p)
{
  const size_t n_in = op->w[0].n_in;

  for (uint32_t i = 0; i < op->n_w; i++)
    if (p->ways[i] == KS_LINEAR_ROWS && ctx->matmul->wants_packed[op->w[i].dtype])
      p->pack_floats = ROUND_UP(ctx->matmul->pack_size(n_in), (size_t)16);
  p->packed_at = take(p, p->pack_floats * sizeof(float) * op->n_tok);
  if (p->has_way[KS_LINEAR_STRIPS])
    p->acts_at = take(p, ks_cpu_acts_bytes(n_in, op->n_tok, is_fast(ctx, op)));
}

static void
plan_many(const ks_cpu_ctx *ctx, const ks_op_linear *op, ks_linear_plan *p)
{
  if (p->has_way[KS_LINEAR_PANELS]) {
    size_t panel_rows = ctx->matmul->panel_rows;

    p->panel_k = choose_panel_k(op);
    p->panels_at = take(p, p->unit_rows * p->panel_k * sizeof(float));
    p->rows_at = take(p, panel_rows * (p->panel_k + KS_LINEAR_ROW_PAD) * sizeof(float));
  }
  if (p->has_way[KS_LINEAR_PAIRS]) {
    p->pair_k = choose_k(op, PAIR_K);
    p->pairs_at = take(p, ctx->pairs->panel_rows * p->pair_k / 2 * sizeof(uint32_t));
  }
  if (p->has_way[KS_LINEAR_CODES]) {
    uint32_t rows = ctx->packed->strip_rows, strips = ctx->packed->tile_strips;

    size_t most = CODE_BYTES / (rows * strips) / SUPER_K * SUPER_K;

    p->code_k = choose_k(op, most > 0 ? most : SUPER_K);
    p->codes_at = take(p, strips * ks_linear_panel_bytes(p->code_k, rows));
    p->strip_at = take(p, p->code_k * rows * 2); /* no type has more than two bytes an element */
    p->shared_bytes = ROUND_UP(ks_cpu_acts_bytes(op->w[0].n_in, op->n_tok, true), (size_t)64);
  }
  p->rounded_at = p->shared_bytes;
  if (p->has_way[KS_LINEAR_PAIRS])
    p->shared_bytes += op->n_tok * ks_linear_n_pair(op->w[0].n_in) * sizeof(uint32_t);
}

ks_linear_plan
ks_linear_make_plan(const ks_cpu_ctx *ctx, const ks_op_linear *op, size_t n_member)
{
  ks_linear_plan p = {.n_list = op->epilogue == KS_EPI_ACT_MUL ? 1 : op->n_w};

  p.n_product = op->epilogue == KS_EPI_ACT_MUL ? 2 : 1;
  for (uint32_t i = 0; i < op->n_w; i++) {
    p.ways[i] = choose_way(ctx, op, &op->w[i]);
    p.has_way[p.ways[i]] = true;
  }
  plan_rows(ctx, op, n_member, &p);
  p.n_unit = count_units(op, p.n_list, p.unit_rows);
  p.block_tok = op->n_tok < BLOCK_TOK ? op->n_tok : BLOCK_TOK;
  (void)take(&p, p.n_product * p.block_tok * p.unit_rows * sizeof(float));
  plan_few(ctx, op, &p);
  plan_many(ctx, op, &p);
  return p;
}

void
ks_cpu_linear_need(const ks_cpu_ctx *ctx, const ks_op_linear *op, ks_cpu_need *need)
{
  ks_linear_plan p = ks_linear_make_plan(ctx, op, ks_threads_get_n(ctx->threads));

  assert(op->n_w >= 1 && op->n_w <= 3);
  assert(op->epilogue != KS_EPI_ACT_MUL || (op->n_w == 2 && op->w[0].n_out == op->w[1].n_out));
  for (uint32_t i = 0; i < op->n_w; i++)
    assert(op->w[i].n_in == op->w[0].n_in && ctx->matmul->unpack[op->w[i].dtype] != NULL);
  if (p.member_bytes > need->member_bytes)
    need->member_bytes = p.member_bytes;
  if (p.shared_bytes > need->shared_bytes)
    need->shared_bytes = p.shared_bytes;
}

ks_linear_unit
ks_linear_get_unit(const ks_linear *l, size_t unit)
{
  const size_t unit_rows = l->plan.unit_rows;
  ks_linear_unit u = {0};
  size_t n_here, left;

  while (unit >= (n_here = (l->op->w[u.i].n_out + unit_rows - 1) / unit_rows)) {
    unit -= n_here;
    u.i++;
  }
  u.row0 = unit * unit_rows;
  left = l->op->w[u.i].n_out - u.row0;
  u.n_row = left < unit_rows ? left : unit_rows;
  return u;
}

float *
ks_linear_get_product(const ks_linear *l, uint32_t j)
{
  return (float *)(void *)l->scratch + j * l->plan.block_tok * l->plan.unit_rows;
}

void
ks_linear_begin_plan(ks_linear *l, ks_linear_plan plan, const ks_cpu_ctx *ctx,
                     const ks_op_linear *op, uint32_t member, uint32_t n_member)
{
  const size_t n_in = op->w[0].n_in, stride = ks_linear_x_stride(op);
  const float *x = ks_cpu_ptr(op->x);
  size_t begin, end;

  *l = (ks_linear){.ctx = ctx, .op = op, .plan = plan};
  l->scratch = ks_cpu_scratch(ctx, member);
  for (size_t t = 0; t < op->n_tok && l->plan.pack_floats > 0; t++)
    ctx->matmul->pack(x + t * stride, n_in,
                      (float *)(void *)(l->scratch + l->plan.packed_at) + t * l->plan.pack_floats);
  if (l->plan.has_way[KS_LINEAR_STRIPS]) {
    ks_cpu_acts_init(&l->acts, l->scratch + l->plan.acts_at, n_in, op->n_tok, is_fast(ctx, op));
    ks_cpu_acts_fill(ctx, &l->acts, x, stride, 0, op->n_tok);
  }
  if (l->plan.has_way[KS_LINEAR_CODES]) {
    ks_cpu_acts_init(&l->acts, ctx->shared, n_in, op->n_tok, true);
    ks_cpu_slice(op->n_tok, member, n_member, &begin, &end);
    ks_cpu_acts_fill(ctx, &l->acts, x, stride, begin, end);
  }
  if (l->plan.has_way[KS_LINEAR_PAIRS]) {
    uint16_t *rounded = (uint16_t *)(void *)(ctx->shared + l->plan.rounded_at);

    ks_cpu_slice(op->n_tok, member, n_member, &begin, &end);
    for (size_t t = begin; t < end; t++)
      ctx->pairs->round_row(x + t * stride, n_in, rounded + 2 * t * ks_linear_n_pair(n_in));
  }
  if (l->plan.has_way[KS_LINEAR_CODES] || l->plan.has_way[KS_LINEAR_PAIRS])
    ks_threads_barrier(ctx->threads);
}

void
ks_linear_begin(ks_linear *l, const ks_cpu_ctx *ctx, const ks_op_linear *op, uint32_t member,
                uint32_t n_member)
{
  ks_linear_begin_plan(l, ks_linear_make_plan(ctx, op, n_member), ctx, op, member, n_member);
}

/* --- epilogue --- */

static void
add_bias(const ks_cpu_ctx *ctx, float *z, ks_dptr bias, size_t row0, size_t n)
{
  if (bias != 0)
    ctx->vec->add(z, (const float *)ks_cpu_ptr(bias) + row0, n);
}

/* One token's products z of weight i (z1: of the second weight) to y[row0 ..]. */
static void
finish_row(const ks_cpu_ctx *ctx, const ks_op_linear *op, uint32_t i, size_t row0, size_t n,
           float *z, float *z1, float *y)
{
  add_bias(ctx, z, op->bias[i], row0, n);
  switch (op->epilogue) {
  case KS_EPI_STORE:
    ks_cpu_act_row(ctx, op->act, z, n);
    memcpy(y, z, n * sizeof(*y));
    break;
  case KS_EPI_ADD:
    ctx->vec->add(y, z, n);
    break;
  case KS_EPI_ACT_MUL:
    add_bias(ctx, z1, op->bias[1], row0, n);
    ctx->vec->act_mul(y, z, z1, n, op->act);
    break;
  case KS_EPI_SOFTCAP:
    for (size_t r = 0; r < n; r++)
      y[r] = op->cap * tanhf(z[r] / op->cap);
    break;
  }
}

/* True when the products of a unit are the output, or only added to it: then they go straight
 * there.  Kernels write whole strips and panels, and only tiles add. */
static bool
is_direct(const ks_linear *l, const ks_linear_unit *unit)
{
  const ks_op_linear *op = l->op;
  const ks_linear_way way = l->plan.ways[unit->i];
  const bool few = way == KS_LINEAR_ROWS || way == KS_LINEAR_STRIPS;
  const size_t width = way == KS_LINEAR_ROWS     ? 1
                       : way == KS_LINEAR_PANELS ? l->ctx->matmul->panel_rows
                       : way == KS_LINEAR_PAIRS  ? l->ctx->pairs->panel_rows
                                                 : l->ctx->packed->strip_rows;

  if (op->bias[unit->i] != 0 || unit->n_row % width != 0)
    return false;
  return op->epilogue == KS_EPI_STORE ? op->act == KS_ACT_NONE : op->epilogue == KS_EPI_ADD && !few;
}

static void
run_unit(const ks_linear *l, size_t number)
{
  const ks_op_linear *op = l->op;
  const ks_linear_plan *p = &l->plan;
  const ks_linear_unit unit = ks_linear_get_unit(l, number);
  const size_t y_stride = op->y_stride[unit.i] != 0 ? op->y_stride[unit.i] : op->w[unit.i].n_out;
  float *z = ks_linear_get_product(l, 0), *z1 = ks_linear_get_product(l, 1);

  for (size_t t0 = 0; t0 < op->n_tok; t0 += p->block_tok) {
    size_t n_tok = op->n_tok - t0 < p->block_tok ? op->n_tok - t0 : p->block_tok;
    float *y = (float *)ks_cpu_ptr(op->y[unit.i]) + t0 * y_stride + unit.row0;

    if (is_direct(l, &unit)) {
      ks_linear_multiply_to(l, unit.i, &unit, t0, n_tok,
                            (ks_linear_out){y, y_stride, op->epilogue == KS_EPI_ADD});
      continue;
    }
    for (uint32_t j = 0; j < p->n_product; j++)
      ks_linear_multiply(l, unit.i + j, &unit, t0, n_tok, ks_linear_get_product(l, j));
    for (size_t t = 0; t < n_tok; t++)
      finish_row(l->ctx, op, unit.i, unit.row0, unit.n_row, z + t * p->unit_rows,
                 z1 + t * p->unit_rows, y + t * y_stride);
  }
}

void
ks_cpu_linear(const ks_cpu_ctx *ctx, const ks_op_linear *op, uint32_t member, uint32_t n_member)
{
  ks_cpu_share share;
  ks_linear l;
  size_t unit;

  if (op->n_tok == 0)
    return;
  ks_linear_begin(&l, ctx, op, member, n_member);
  share = ks_cpu_share_begin(l.plan.n_unit, member, n_member);
  while (ks_cpu_share_next(ctx, &share, &unit)) {
    if (ks_cpu_poll(ctx, member))
      return;
    run_unit(&l, unit);
  }
}

void
ks_cpu_linear_ask_ahead(const ks_cpu_ctx *ctx, const ks_op_linear *op, uint32_t member,
                        uint32_t n_member)
{
  ks_linear l = {.ctx = ctx, .op = op};
  ks_cpu_share share;
  ks_linear_unit unit;

  if (op->n_tok == 0 || op->n_tok > KS_MATMUL_FEW)
    return;
  l.plan = ks_linear_make_plan(ctx, op, n_member);
  share = ks_cpu_share_begin(l.plan.n_unit, member, n_member);
  if (share.at == share.end)
    return;
  unit = ks_linear_get_unit(&l, share.at);
  for (uint32_t j = 0; j < l.plan.n_product; j++)
    ks_cpu_ask_ahead(ks_linear_weight_at(&l, unit.i + j, &unit), ASK_BYTES / l.plan.n_product);
}
