/* cpu-matmul.c - linear: matrix products of every weight type, and the plain kernels.
 * Units of output rows are drawn by ticket, so that a member that was interrupted does less.  A
 * unit's products lie in the member's scratch as c[n_tok, unit rows]; the epilogue takes them to
 * the output. Only a block of a unit's rows is ever f32: unit rows x at most BLOCK_K elements. w
 * [n_out, n_in] any type   x  [n_tok, n_in] f32   y  [n_tok, n_out] f32, sums in f32 Threads:
 * kernels run on all members.  Source: docs/method.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-matmul-internal.h"

#include "engine/quant.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define BLOCK_K ((size_t)288)   /* columns of a panel: 16 rows of them stay in the L1 cache */
#define SUPER_K ((size_t)256)   /* the same for types with blocks of 256 */
#define BLOCK_TOK ((size_t)480) /* tokens per block of products, a multiple of every tile */
#define TILES_PER_GROUP 16u     /* tiles whose inputs stay in the L2 cache */
#define ROW_PAD ((size_t)8)     /* unpacked rows a power of two apart would share cache sets */
#define FEW_ROWS_BYTES ((size_t)16 << 10)

#define ROUND_UP(n, unit) (((n) + (unit)-1) / (unit) * (unit))

/* --- the plain kernels --- */

#define PLAIN_ROWS 16
#define PLAIN_TOK 4

static float
dot(const float *a, const float *b, size_t n)
{
  float sum[8] = {0};
  float total;
  size_t i = 0;

  for (; i + 8 <= n; i += 8)
    for (size_t j = 0; j < 8; j++)
      sum[j] += a[i + j] * b[i + j];
  total = ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
  for (; i < n; i++)
    total += a[i] * b[i];
  return total;
}

static void
plain_multiply_rows(const ks_rows_job *job)
{
  const ks_dtype_info *info = ks_dtype_get_info(job->dtype);
  float w[SUPER_K];

  for (size_t r = 0; r < job->n_row; r++) {
    const unsigned char *row = job->rows + r * job->row_bytes;
    float *out = job->out + r;

    for (size_t t = 0; t < job->n_tok; t++)
      out[t * job->out_stride] = 0;
    for (size_t k = 0; k < job->n_in; k += SUPER_K) {
      size_t n = job->n_in - k < SUPER_K ? job->n_in - k : SUPER_K;

      ks_dequantise_row(job->dtype, row + k / info->block_elems * info->block_bytes, w, n);
      for (size_t t = 0; t < job->n_tok; t++)
        out[t * job->out_stride] += dot(w, job->x + t * job->x_stride + k, n);
    }
  }
}

static size_t
plain_pack_size(size_t n_in)
{
  return n_in;
}

static void
plain_pack(const float *x, size_t n_in, float *out)
{
  memcpy(out, x, n_in * sizeof(*x));
}

static void
plain_transpose(const float *rows, size_t row_stride, size_t n_k, float *panel)
{
  for (size_t k = 0; k < n_k; k++)
    for (size_t r = 0; r < PLAIN_ROWS; r++)
      panel[k * PLAIN_ROWS + r] = rows[r * row_stride + k];
}

static void
plain_multiply_tile(const float *panel, size_t n_k, const float *x, size_t x_stride, size_t n_tok,
                    float *c, size_t c_stride, bool add)
{
  for (size_t t = 0; t < n_tok; t++) {
    float sum[PLAIN_ROWS] = {0};

    for (size_t k = 0; k < n_k; k++)
      for (size_t r = 0; r < PLAIN_ROWS; r++)
        sum[r] += panel[k * PLAIN_ROWS + r] * x[t * x_stride + k];
    for (size_t r = 0; r < PLAIN_ROWS; r++)
      c[t * c_stride + r] = add ? c[t * c_stride + r] + sum[r] : sum[r];
  }
}

float
ks_cpu_act(ks_act act, float z)
{
  switch (act) {
  case KS_ACT_NONE:
    break;
  case KS_ACT_SILU:
    return z / (1.0f + expf(-z));
  case KS_ACT_GELU_TANH:
    return 0.5f * z * (1.0f + tanhf(0.79788456080286536f * (z + 0.044715f * z * z * z)));
  case KS_ACT_GELU_ERF:
    return 0.5f * z * (1.0f + erff(z * 0.70710678118654752f));
  case KS_ACT_GELU_QUICK:
    return z / (1.0f + expf(-1.702f * z));
  case KS_ACT_RELU6:
    return z < 0 ? 0 : z > 6 ? 6 : z;
  }
  return z;
}

static void
plain_act_row(ks_act act, float *z, size_t n)
{
  for (size_t i = 0; i < n; i++)
    z[i] = ks_cpu_act(act, z[i]);
}

void
ks_cpu_act_row(const ks_cpu_ctx *ctx, ks_act act, float *z, size_t n)
{
  if (act != KS_ACT_NONE)
    ctx->matmul->act_row(act, z, n);
}

#define FOR_EVERY_TYPE(f)                                                                          \
  {                                                                                                \
    [KS_DTYPE_F32] = (f), [KS_DTYPE_F16] = (f), [KS_DTYPE_BF16] = (f), [KS_DTYPE_Q4_0] = (f),      \
    [KS_DTYPE_Q4_1] = (f), [KS_DTYPE_Q5_0] = (f), [KS_DTYPE_Q5_1] = (f), [KS_DTYPE_Q8_0] = (f),    \
    [KS_DTYPE_Q2_K] = (f), [KS_DTYPE_Q3_K] = (f), [KS_DTYPE_Q4_K] = (f), [KS_DTYPE_Q5_K] = (f),    \
    [KS_DTYPE_Q6_K] = (f), [KS_DTYPE_IQ4_NL] = (f), [KS_DTYPE_IQ4_XS] = (f)                        \
  }

static const ks_cpu_matmul_fns plain_fns = {
    .panel_rows = PLAIN_ROWS,
    .tile_tok = PLAIN_TOK,
    .unpack = FOR_EVERY_TYPE(ks_dequantise_row),
    .multiply_rows = FOR_EVERY_TYPE(plain_multiply_rows),
    .pack_size = plain_pack_size,
    .pack = plain_pack,
    .transpose = plain_transpose,
    .multiply_tile = plain_multiply_tile,
    .act_row = plain_act_row,
};

const ks_cpu_matmul_fns *
ks_cpu_matmul_get(ks_isa isa)
{
#if defined(__x86_64__)
  if (isa == KS_ISA_AVX512)
    return &ks_cpu_matmul_avx512;
  if (isa == KS_ISA_AVX2)
    return &ks_cpu_matmul_avx2;
#endif
  (void)isa;
  return &plain_fns;
}

/* --- units of work --- */

/* How an operation is cut, computed alike by every member. */
typedef struct plan {
  bool few;
  uint32_t n_list;    /* weights whose units are listed one behind the other */
  uint32_t n_product; /* products per unit: 2 when two weights make one output */
  size_t unit_rows, block_k, block_tok;
  size_t n_unit;
  size_t pack_floats; /* of one token; 0 when no weight reads packed input */
  /* scratch of a member, in floats */
  size_t products_at, panels_at, rows_at, packed_at, total;
} plan;

static size_t
x_stride(const ks_op_linear *op)
{
  return op->x_stride != 0 ? op->x_stride : op->w[0].n_in;
}

/* Columns per panel: all panels of a row about equally wide, whole blocks of the types. */
static size_t
choose_block_k(const ks_op_linear *op)
{
  size_t n_in = op->w[0].n_in, n_panel = (n_in + BLOCK_K - 1) / BLOCK_K;

  for (uint32_t i = 0; i < op->n_w; i++)
    if (ks_dtype_get_info(op->w[i].dtype)->block_elems > 32)
      return SUPER_K;
  return ROUND_UP((n_in + n_panel - 1) / n_panel, (size_t)32);
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
plan_rows(const ks_cpu_ctx *ctx, const ks_op_linear *op, size_t n_member, plan *p)
{
  size_t least = ctx->matmul->panel_rows;

  if (p->few) {
    p->unit_rows = ROUND_UP(FEW_ROWS_BYTES / (op->w[0].row_bytes + 1) + 1, (size_t)4);
    p->unit_rows = p->unit_rows > 64 ? 64 : p->unit_rows;
    while (p->unit_rows > 8 && count_units(op, p->n_list, p->unit_rows) < 8 * n_member)
      p->unit_rows = ROUND_UP(p->unit_rows / 2, (size_t)4);
    return;
  }
  p->unit_rows = KS_MATMUL_MAX_PANEL;
  while (p->unit_rows > least && count_units(op, p->n_list, p->unit_rows) < 12 * n_member)
    p->unit_rows /= 2;
}

static plan
make_plan(const ks_cpu_ctx *ctx, const ks_op_linear *op, size_t n_member)
{
  const ks_cpu_matmul_fns *fns = ctx->matmul;
  plan p = {.few = op->n_tok <= KS_MATMUL_FEW};
  size_t n_in = op->w[0].n_in;

  p.n_list = op->epilogue == KS_EPI_ACT_MUL ? 1 : op->n_w;
  p.n_product = op->epilogue == KS_EPI_ACT_MUL ? 2 : 1;
  plan_rows(ctx, op, n_member, &p);
  p.n_unit = count_units(op, p.n_list, p.unit_rows);
  p.block_tok = op->n_tok < BLOCK_TOK ? op->n_tok : BLOCK_TOK;
  p.block_k = choose_block_k(op);
  p.total = ROUND_UP(p.n_product * p.block_tok * p.unit_rows, (size_t)16);
  if (p.few) {
    for (uint32_t i = 0; i < op->n_w; i++)
      if (fns->wants_packed[op->w[i].dtype])
        p.pack_floats = ROUND_UP(fns->pack_size(n_in), (size_t)16);
    p.packed_at = p.total;
    p.total += p.pack_floats * op->n_tok;
  } else {
    p.panels_at = p.total;
    p.rows_at = p.panels_at + p.unit_rows * p.block_k;
    p.total = p.rows_at + fns->panel_rows * (p.block_k + ROW_PAD);
  }
  return p;
}

void
ks_cpu_linear_need(const ks_cpu_ctx *ctx, const ks_op_linear *op, ks_cpu_need *need)
{
  plan p = make_plan(ctx, op, ks_threads_get_n(ctx->threads));

  assert(op->n_w >= 1 && op->n_w <= 3);
  assert(op->epilogue != KS_EPI_ACT_MUL || (op->n_w == 2 && op->w[0].n_out == op->w[1].n_out));
  for (uint32_t i = 0; i < op->n_w; i++)
    assert(op->w[i].n_in == op->w[0].n_in && ctx->matmul->unpack[op->w[i].dtype] != NULL);
  if (p.total * sizeof(float) > need->member_bytes)
    need->member_bytes = p.total * sizeof(float);
}

/* --- products of a unit --- */

static const unsigned char *
weight_at(const ks_weight *w, size_t row, size_t k)
{
  const ks_dtype_info *info = ks_dtype_get_info(w->dtype);

  return (const unsigned char *)ks_cpu_ptr(w->data) + row * w->row_bytes +
         k / info->block_elems * info->block_bytes;
}

/* Unpacks columns k .. k + n_k - 1 of a unit's rows into its panels; rows that do not exist are 0.
 */
static void
fill_panels(const ks_cpu_matmul_fns *fns, const ks_weight *w, size_t row0, size_t n_row, size_t k,
            size_t n_k, float *rows, float *panels)
{
  const size_t stride = n_k + ROW_PAD;

  for (size_t p = 0; p < n_row; p += fns->panel_rows) {
    for (size_t r = 0; r < fns->panel_rows; r++) {
      if (p + r < n_row)
        fns->unpack[w->dtype](w->dtype, weight_at(w, row0 + p + r, k), rows + r * stride, n_k);
      else
        memset(rows + r * stride, 0, n_k * sizeof(*rows));
    }
    fns->transpose(rows, stride, n_k, panels + p * n_k);
  }
}

/* c [n_tok, unit_rows] for tokens t0 .. t0 + n_tok - 1 and rows row0 .. row0 + n_row - 1. */
static void
multiply_many(const ks_cpu_matmul_fns *fns, const plan *p, const ks_op_linear *op,
              const ks_weight *w, size_t row0, size_t n_row, size_t t0, size_t n_tok,
              float *scratch, float *c)
{
  size_t stride = x_stride(op), n_in = w->n_in;
  size_t group = (size_t)fns->tile_tok * TILES_PER_GROUP;
  const float *x = (const float *)ks_cpu_ptr(op->x) + t0 * stride;
  float *panels = scratch + p->panels_at;

  for (size_t k = 0; k < n_in; k += p->block_k) {
    size_t n_k = n_in - k < p->block_k ? n_in - k : p->block_k;

    fill_panels(fns, w, row0, n_row, k, n_k, scratch + p->rows_at, panels);
    for (size_t g = 0; g < n_tok; g += group) {
      size_t g_end = n_tok - g < group ? n_tok : g + group;

      for (size_t r = 0; r < n_row; r += fns->panel_rows)
        for (size_t t = g; t < g_end; t += fns->tile_tok) {
          size_t n = g_end - t < fns->tile_tok ? g_end - t : fns->tile_tok;

          fns->multiply_tile(panels + r * n_k, n_k, x + t * stride + k, stride, n,
                             c + t * p->unit_rows + r, p->unit_rows, k > 0);
        }
    }
  }
}

static void
multiply_few(const ks_cpu_matmul_fns *fns, const plan *p, const ks_op_linear *op,
             const ks_weight *w, size_t row0, size_t n_row, float *scratch, float *c)
{
  ks_rows_job job = {.dtype = w->dtype,
                     .rows = weight_at(w, row0, 0),
                     .row_bytes = w->row_bytes,
                     .n_row = n_row,
                     .n_in = w->n_in,
                     .n_tok = op->n_tok,
                     .x = ks_cpu_ptr(op->x),
                     .x_stride = x_stride(op),
                     .out = c,
                     .out_stride = p->unit_rows};

  if (fns->wants_packed[w->dtype]) {
    job.x = scratch + p->packed_at;
    job.x_stride = p->pack_floats;
  }
  fns->multiply_rows[w->dtype](&job);
}

/* --- epilogue --- */

static void
add_bias(float *z, ks_dptr bias, size_t row0, size_t n)
{
  const float *b = (const float *)ks_cpu_ptr(bias) + row0;

  if (bias == 0)
    return;
  for (size_t i = 0; i < n; i++)
    z[i] += b[i];
}

/* One token's products z of weight i (z1: of the second weight) to y[row0 ..]. */
static void
finish_row(const ks_cpu_ctx *ctx, const ks_op_linear *op, uint32_t i, size_t row0, size_t n,
           float *z, float *z1, float *y)
{
  add_bias(z, op->bias[i], row0, n);
  switch (op->epilogue) {
  case KS_EPI_STORE:
    ks_cpu_act_row(ctx, op->act, z, n);
    memcpy(y, z, n * sizeof(*y));
    break;
  case KS_EPI_ADD:
    for (size_t r = 0; r < n; r++)
      y[r] += z[r];
    break;
  case KS_EPI_ACT_MUL:
    ks_cpu_act_row(ctx, op->act, z, n);
    add_bias(z1, op->bias[1], row0, n);
    for (size_t r = 0; r < n; r++)
      y[r] = z[r] * z1[r];
    break;
  case KS_EPI_SOFTCAP:
    for (size_t r = 0; r < n; r++)
      y[r] = op->cap * tanhf(z[r] / op->cap);
    break;
  }
}

static void
run_unit(const ks_cpu_ctx *ctx, const plan *p, const ks_op_linear *op, size_t unit, float *scratch)
{
  uint32_t i = 0;
  size_t n_here, row0, n_row, y_stride;

  while (unit >= (n_here = (op->w[i].n_out + p->unit_rows - 1) / p->unit_rows)) {
    unit -= n_here;
    i++;
  }
  row0 = unit * p->unit_rows;
  n_row = op->w[i].n_out - row0 < p->unit_rows ? op->w[i].n_out - row0 : p->unit_rows;
  y_stride = op->y_stride[i] != 0 ? op->y_stride[i] : op->w[i].n_out;
  for (size_t t0 = 0; t0 < op->n_tok; t0 += p->block_tok) {
    size_t n_tok = op->n_tok - t0 < p->block_tok ? op->n_tok - t0 : p->block_tok;
    size_t product = p->block_tok * p->unit_rows;
    float *y = (float *)ks_cpu_ptr(op->y[i]) + t0 * y_stride + row0;

    for (uint32_t j = 0; j < p->n_product; j++) {
      if (p->few)
        multiply_few(ctx->matmul, p, op, &op->w[i + j], row0, n_row, scratch,
                     scratch + j * product);
      else
        multiply_many(ctx->matmul, p, op, &op->w[i + j], row0, n_row, t0, n_tok, scratch,
                      scratch + j * product);
    }
    for (size_t t = 0; t < n_tok; t++)
      finish_row(ctx, op, i, row0, n_row, scratch + t * p->unit_rows,
                 scratch + product + t * p->unit_rows, y + t * y_stride);
  }
}

void
ks_cpu_linear(const ks_cpu_ctx *ctx, const ks_op_linear *op, uint32_t member, uint32_t n_member)
{
  float *scratch = ks_cpu_scratch(ctx, member);
  plan p = make_plan(ctx, op, n_member);

  if (op->n_tok == 0)
    return;
  /* Every member packs for itself: that takes less than waiting for each other. */
  for (size_t t = 0; t < op->n_tok && p.pack_floats > 0; t++)
    ctx->matmul->pack((const float *)ks_cpu_ptr(op->x) + t * x_stride(op), op->w[0].n_in,
                      scratch + p.packed_at + t * p.pack_floats);
  for (size_t unit = ks_cpu_take(ctx); unit < p.n_unit; unit = ks_cpu_take(ctx)) {
    if (ks_cpu_poll(ctx, member))
      return;
    run_unit(ctx, &p, op, unit, scratch);
  }
}
