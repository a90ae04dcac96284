/* test-rows.c - the operations on plain rows, and the inner loops themselves.
 * The promise: for any length and stride every instruction set agrees with double arithmetic, and
 * nothing outside the given rows is touched. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/quant.h"
#include "tests/ops/ops-fixture.h"

OPS_DEFINE_PLAIN(gather_rows)
OPS_DEFINE_PLAIN(store_rows)
OPS_DEFINE_PLAIN(add_rows)
OPS_DEFINE_PLAIN(rms_norm)
OPS_DEFINE_PLAIN(layer_norm)
OPS_DEFINE_PLAIN(act_mul)
OPS_DEFINE_PLAIN(pool)
OPS_DEFINE_PLAIN(rope_angles)
OPS_DEFINE_PLAIN(rope)
OPS_DEFINE(head, ks_op_head)
OPS_DEFINE(linear, ks_op_linear)

static const uint32_t widths[] = {1, 7, 8, 15, 16, 17, 32, 33, 63, 80, 576};
#define N_WIDTH (sizeof(widths) / sizeof(widths[0]))

static double
act_reference(ks_act act, double x)
{
  switch (act) {
  case KS_ACT_NONE:
    return x;
  case KS_ACT_SILU:
    return x / (1 + exp(-x));
  case KS_ACT_GELU_TANH:
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  case KS_ACT_GELU_ERF:
    return 0.5 * x * (1 + erf(x / sqrt(2)));
  case KS_ACT_GELU_QUICK:
    return x / (1 + exp(-1.702 * x));
  case KS_ACT_RELU6:
    return fmin(fmax(x, 0), 6);
  }
  return NAN;
}

static void
norm_body(ops_fixture *f)
{
  for (size_t i = 0; i < N_WIDTH; i++)
    for (int variant = 0; variant < 8; variant++) {
      const uint32_t n = widths[i], n_row = 3;
      const bool centred = (variant & 1) != 0, in_place = (variant & 4) != 0;
      const size_t stride = n + ((variant & 2) != 0 ? 5 : 0);
      float *x = ops_floats(f, n_row * stride), *w = ops_floats(f, n), *b = ops_floats(f, n);
      float *src = ops_floats(f, n_row * stride), *out = in_place ? x : ops_floats(f, n_row * n);
      const size_t out_stride = in_place ? stride : n;
      ks_op_norm op = {.x = ops_dptr(x),
                       .out = ops_dptr(out),
                       .n_row = n_row,
                       .n_col = n,
                       .x_stride = stride,
                       .out_stride = out_stride,
                       .eps = 1e-5F};

      op.w = (variant & 2) != 0 ? 0 : ops_dptr(w);
      op.b = centred ? ops_dptr(b) : 0;
      memcpy(src, x, n_row * stride * sizeof(*x));
      if (centred)
        ops_layer_norm(f, &op);
      else
        ops_rms_norm(f, &op);
      for (uint32_t r = 0; r < n_row; r++) {
        const float *row = src + r * stride;
        double mean = 0, square = 0;

        for (uint32_t j = 0; j < n; j++)
          mean += centred ? (double)row[j] / n : 0;
        for (uint32_t j = 0; j < n; j++)
          square += (row[j] - mean) * (row[j] - mean) / n;
        for (uint32_t j = 0; j < n; j++) {
          const double y = (row[j] - mean) / sqrt(square + (double)op.eps);

          KS_ASSERT_NEAR(out[r * out_stride + j],
                         y * (op.w != 0 ? w[j] : 1) + (op.b != 0 ? b[j] : 0), 3e-6);
        }
        for (size_t j = n; j < stride && in_place; j++)
          KS_ASSERT(x[r * stride + j] == src[r * stride + j]);
      }
      if (!in_place)
        ks_mem_free(out);
      ks_mem_free(src);
      ks_mem_free(b);
      ks_mem_free(w);
      ks_mem_free(x);
    }
}

/* RMS and layer norm, with and without weights, strided, in place. */
KS_TEST(rows, norms)
{
  ops_for_all(norm_body);
}

static void
act_body(ops_fixture *f)
{
  for (size_t i = 0; i < N_WIDTH; i++)
    for (int act = KS_ACT_NONE; act <= (int)KS_ACT_RELU6; act++)
      for (uint32_t n_row = 1; n_row <= 7; n_row += 6) {
        const uint32_t n = widths[i];
        float *a = ops_floats(f, n_row * (n + 3)), *b = ops_floats(f, n_row * n);
        float *out = ops_floats(f, n_row * n);
        ks_op_act_mul op = {.a = ops_dptr(a),
                            .b = ops_dptr(b),
                            .out = ops_dptr(out),
                            .n_row = n_row,
                            .n_col = n,
                            .a_stride = n + 3,
                            .act = (ks_act)act};

        for (size_t j = 0; j < n_row * (n + 3); j++)
          a[j] *= j % 9 == 0 ? 120.0F : 8.0F;
        ops_act_mul(f, &op);
        for (uint32_t r = 0; r < n_row; r++)
          for (uint32_t j = 0; j < n; j++) {
            const double x = a[r * (n + 3) + j];
            const double want = act_reference((ks_act)act, x) * b[r * n + j];

            KS_ASSERT_NEAR(out[r * n + j], want, 3e-6 * (0.1 + fabs(want)));
          }
        ks_mem_free(a);
        ks_mem_free(b);
        ks_mem_free(out);
      }
}

/* All activations, small and large arguments. */
KS_TEST(rows, act_mul)
{
  ops_for_all(act_body);
}

/* Turned back what was turned forth is what it was, each time longer by mscale. */
static void
turn_back(ops_fixture *f, ks_cpu_rope_job *job, const float *q, const float *q0)
{
  const size_t stride = job->op.q_stride, dim = job->op.head_dim;

  job->back = true;
  ops_rope_angles(f, job);
  ops_rope(f, job);
  for (size_t i = 0; i < job->op.n_tok * stride; i++) {
    const bool rotated = i % stride < job->op.n_head * dim && i % stride % dim < job->op.n_rot;

    KS_ASSERT_NEAR(q[i], q0[i] * (rotated ? 1.5625 : 1.0), 1e-6);
  }
}

static void
rope_body(ops_fixture *f)
{
  for (int variant = 0; variant < 8; variant++) {
    const bool neox = (variant & 1) != 0, three_axes = (variant & 2) != 0;
    const uint32_t n_tok = (variant & 4) != 0 ? 1 : 5, n_rot = 22, dim = 32;
    const size_t q_stride = 3 * dim + 4;
    int32_t pos[15];
    uint8_t axis[11];
    float inv_freq[11], *q = ops_floats(f, n_tok * q_stride), *k = ops_floats(f, n_tok * dim);
    float *q0 = ops_floats(f, n_tok * q_stride), *k0 = ops_floats(f, n_tok * dim);
    ks_cpu_rope_job job;
    ks_op_rope op = {.q = ops_dptr(q),
                     .k = ops_dptr(k),
                     .n_tok = n_tok,
                     .n_head = 3,
                     .n_kv_head = 1,
                     .head_dim = dim,
                     .n_rot = n_rot,
                     .q_stride = q_stride,
                     .pos = ops_dptr(pos),
                     .inv_freq = ops_dptr(inv_freq),
                     .axis = three_axes ? ops_dptr(axis) : 0,
                     .mscale = 1.25F,
                     .neox = neox};

    memcpy(q0, q, n_tok * q_stride * sizeof(*q));
    memcpy(k0, k, n_tok * dim * sizeof(*k));
    for (uint32_t i = 0; i < 11; i++) {
      inv_freq[i] = powf(10000.0F, -2.0F * (float)i / (float)n_rot);
      axis[i] = (uint8_t)(i % 3);
    }
    for (uint32_t i = 0; i < 3 * n_tok; i++)
      pos[i] = (int32_t)(ops_random(f) % 9000);
    job = (ks_cpu_rope_job){.op = op, .angles = ops_floats(f, (size_t)n_tok * op.n_rot)};
    ops_rope_angles(f, &job);
    ops_rope(f, &job);
    for (uint32_t t = 0; t < n_tok; t++)
      for (uint32_t h = 0; h < 4; h++) {
        const float *got = h < 3 ? q + t * q_stride + h * dim : k + t * dim;
        const float *src = h < 3 ? q0 + t * q_stride + h * dim : k0 + t * dim;

        for (uint32_t i = 0; i < n_rot / 2; i++) {
          const double angle = (float)pos[(three_axes ? axis[i] : 0) * n_tok + t] * inv_freq[i];
          const uint32_t a = neox ? i : 2 * i, b = neox ? i + n_rot / 2 : 2 * i + 1;

          KS_ASSERT_NEAR(got[a], 1.25 * (src[a] * cos(angle) - src[b] * sin(angle)), 1e-6);
          KS_ASSERT_NEAR(got[b], 1.25 * (src[a] * sin(angle) + src[b] * cos(angle)), 1e-6);
        }
        for (uint32_t i = n_rot; i < dim; i++)
          KS_ASSERT(got[i] == src[i]);
      }
    turn_back(f, &job, q, q0);
    ks_mem_free(job.angles);
    ks_mem_free(q);
    ks_mem_free(k);
    ks_mem_free(q0);
    ks_mem_free(k0);
  }
}

/* Both pairings, one and three axes, elements behind n_rot untouched; its gradient turns back. */
KS_TEST(rows, rope)
{
  ops_for_all(rope_body);
}

static void
gather_body(ops_fixture *f)
{
  const uint32_t n = 64, n_table = 9, ids[] = {3, 0, 8, 3, 5};
  float *values = ops_floats(f, n_table * n), *out = ops_floats(f, 5 * n), row[64];
  unsigned char table[9 * 68], strips[2 * 16 * 68], nothing[1] = {0};
  static const int32_t idx[] = {1, 1, 0, 2};
  float *dst, *src;

  for (uint32_t i = 0; i < n_table; i++)
    KS_ASSERT(ks_quantise_row(KS_DTYPE_Q8_0, values + i * n, table + i * 68, n));
  for (uint32_t r = 0, n_strip = f->ctx.packed->strip_rows; r < n_table; r += n_strip)
    ks_packed_fill_strip(KS_DTYPE_Q8_0, table + r * 68, 68,
                         n_table - r < n_strip ? n_table - r : n_strip, 0, n, n_strip,
                         strips + r * 68);
  for (int repacked = 0; repacked < 2; repacked++) { /* then the rows of the file are not read */
    ks_op_gather_rows op = {.table = {.data = repacked ? ops_dptr(nothing) : ops_dptr(table),
                                      .dtype = KS_DTYPE_Q8_0,
                                      .n_in = n,
                                      .n_out = n_table,
                                      .row_bytes = 68,
                                      .packed = repacked ? ops_dptr(strips) : 0},
                            .ids = ops_dptr(ids),
                            .out = ops_dptr(out),
                            .n_tok = 5,
                            .scale = 2.0F};

    memset(out, 0, 5 * n * sizeof(*out));
    ops_gather_rows(f, &op);
    for (uint32_t t = 0; t < 5; t++) {
      ks_dequantise_row(KS_DTYPE_Q8_0, table + ids[t] * 68, row, n);
      for (uint32_t i = 0; i < n; i++)
        KS_ASSERT(out[t * n + i] == 2.0F * row[i]);
    }
  }
  dst = ops_floats(f, 3 * 33);
  src = ops_floats(f, 4 * 33);
  for (int with_idx = 0; with_idx < 2; with_idx++) {
    const uint32_t n_row = with_idx ? 4 : 3;
    ks_op_add_rows op = {.dst = ops_dptr(dst),
                         .src = ops_dptr(src),
                         .idx = with_idx ? ops_dptr(idx) : 0,
                         .n_row = n_row,
                         .n_col = 33};
    float want[3 * 33];

    memcpy(want, dst, sizeof(want));
    for (uint32_t i = 0; i < n_row; i++)
      for (uint32_t j = 0; j < 33; j++)
        want[(with_idx ? (uint32_t)idx[i] : i) * 33 + j] += src[i * 33 + j];
    ops_add_rows(f, &op);
    KS_ASSERT(memcmp(want, dst, sizeof(want)) == 0);
  }
  ks_mem_free(values);
  ks_mem_free(out);
  ks_mem_free(dst);
  ks_mem_free(src);
}

/* Columns 32 .. 95 of rows of 128 elements of a type: what is read back is near, the rest stays. */
static void
store_body(ops_fixture *f)
{
  static const ks_dtype types[] = {KS_DTYPE_F32, KS_DTYPE_F16, KS_DTYPE_Q8_0};
  const uint32_t n_row = 7, n_col = 64;
  float *src = ops_floats(f, n_row * n_col), got[128];

  for (size_t i = 0; i < 3; i++) {
    unsigned char *out;
    size_t row_bytes = 0, skip = 0, written = 0;
    ks_op_store_rows op = {
        .src = ops_dptr(src), .dtype = types[i], .n_row = n_row, .n_col = n_col, .scale = 0.5F};

    KS_ASSERT(ks_dtype_row_bytes(types[i], 128, &row_bytes));
    KS_ASSERT(ks_dtype_row_bytes(types[i], 32, &skip));
    KS_ASSERT(ks_dtype_row_bytes(types[i], n_col, &written));
    out = ks_mem_new(f->a, KS_MEM_SCRATCH, n_row, row_bytes);
    KS_ASSERT(out != NULL);
    memset(out, 0x55, n_row * row_bytes);
    op.out = ops_dptr(out + skip);
    op.out_row_bytes = row_bytes;
    ops_store_rows(f, &op);
    for (uint32_t r = 0; r < n_row; r++) {
      const unsigned char *row = out + r * row_bytes;

      ks_dequantise_row(types[i], row + skip, got, n_col);
      for (uint32_t j = 0; j < n_col; j++)
        KS_ASSERT_NEAR(2 * got[j], src[r * n_col + j], i == 0 ? 0 : i == 1 ? 2.5e-4 : 4.5e-3);
      for (size_t j = 0; j < row_bytes; j++)
        KS_ASSERT((j >= skip && j < skip + written) || row[j] == 0x55);
    }
    ks_mem_free(out);
  }
  ks_mem_free(src);
}

KS_TEST(rows, store)
{
  ops_for_all(store_body);
}

/* Rows by id, scaled; sums into rows named twice. */
KS_TEST(rows, gather_and_add)
{
  ops_for_all(gather_body);
}

static void
pool_body(ops_fixture *f)
{
  const uint32_t gh = 6, gw = 9, n = 13, s = 3;
  float *in = ops_floats(f, gh * gw * n), *out = ops_floats(f, 2 * 3 * n);
  ks_op_pool op = {ops_dptr(in), ops_dptr(out), gh, gw, n, s};

  ops_pool(f, &op);
  for (uint32_t y = 0; y < gh / s; y++)
    for (uint32_t x = 0; x < gw / s; x++)
      for (uint32_t c = 0; c < n; c++) {
        double sum = 0;

        for (uint32_t i = 0; i < s * s; i++)
          sum += in[((y * s + i / s) * gw + x * s + i % s) * n + c];
        KS_ASSERT_NEAR(out[(y * 3 + x) * n + c], sum / 9, 1e-6);
      }
  ks_mem_free(in);
  ks_mem_free(out);
}

/* Cells of a grid that is not square. */
KS_TEST(rows, pool)
{
  ops_for_all(pool_body);
}

/* Checks one row of top-k against counting how many are better. */
static void
check_topk(const float *row, uint32_t n, uint32_t k, const int32_t *ids, const float *logits)
{
  for (uint32_t i = 0; i < k; i++) {
    uint32_t n_better = 0;

    if (i >= n) {
      KS_ASSERT_EQ(ids[i], -1);
      continue;
    }
    KS_ASSERT(ids[i] >= 0 && (uint32_t)ids[i] < n && row[ids[i]] == logits[i]);
    for (uint32_t j = 0; j < n; j++)
      n_better += row[j] > logits[i] || (row[j] == logits[i] && (int32_t)j < ids[i]);
    KS_ASSERT_EQ(n_better, i);
  }
}

/* logsumexp, the best k and the listed logits of every row, against the rows of all logits. */
static void
check_head(const ks_op_head *op, const float *full)
{
  const uint32_t n = op->w.n_out, k = op->k;

  for (uint32_t r = 0; r < op->n_row; r++) {
    const float *row = full + (size_t)r * n;
    double sum = 0;

    for (uint32_t i = 0; i < n; i++)
      sum += exp(row[i]);
    if (op->out_logsumexp != NULL)
      KS_ASSERT_NEAR(op->out_logsumexp[r], log(sum), 2e-6 * (1 + fabs(log(sum))));
    check_topk(row, n, k, op->out_ids + r * k, op->out_logits + r * k);
    for (uint32_t i = 0; i < op->n_id; i++)
      KS_ASSERT(op->out_listed[r * op->n_id + i] == row[op->ids[i]]);
  }
}

static void
head_body(ops_fixture *f)
{
  static const struct {
    uint32_t n_row, n_vocab, k;
    float cap;
    bool want_all;
  } cases[] = {{1, 1003, 40, 0, false}, {1, 3, 5, 0, true},   {7, 257, 1, 0, false},
               {2, 64, 64, 0, true},    {1, 16, 0, 0, false}, {3, 700, 9, 4, false},
               {5, 300, 20, 3, true}};
  const uint32_t n_in = 32;

  for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
    const uint32_t n_row = cases[c].n_row, n = cases[c].n_vocab, k = cases[c].k;
    const int32_t listed[] = {0, 2, 2, (int32_t)n - 1};
    float *w = ops_floats(f, (size_t)n * n_in), *x = ops_floats(f, n_row * n_in);
    float *full = ops_floats(f, n_row * n), *all = ops_floats(f, n_row * n);
    float *logits = ops_floats(f, n_row * k + 1), lse[7], got[7 * 4];
    int32_t *ids = ks_mem_new(f->a, KS_MEM_SCRATCH, n_row * k + 1, sizeof(*ids));
    ks_op_head op = {.w = {.data = ops_dptr(w),
                           .dtype = KS_DTYPE_F32,
                           .n_in = n_in,
                           .n_out = n,
                           .row_bytes = n_in * 4},
                     .x = ops_dptr(x),
                     .n_row = n_row,
                     .k = k,
                     .cap = cases[c].cap,
                     .ids = listed,
                     .n_id = 4,
                     .out_ids = ids,
                     .out_logits = logits,
                     .out_logsumexp = c == 2 ? NULL : lse,
                     .out_listed = got,
                     .logits = cases[c].want_all ? ops_dptr(all) : 0};
    ks_op_linear linear = {.n_w = 1,
                           .w = {op.w},
                           .x = op.x,
                           .y = {ops_dptr(full)},
                           .n_tok = n_row,
                           .cap = op.cap,
                           .epilogue = op.cap > 0 ? KS_EPI_SOFTCAP : KS_EPI_STORE};

    for (uint32_t i = 0; i < n_row * n_in; i++) /* halves times quarters: exact sums, many ties */
      x[i] = rintf(x[i] * 4.0F) / 2.0F;
    for (size_t i = 0; i < (size_t)n * n_in; i++)
      w[i] = rintf(w[i] * 2.0F) / 4.0F;
    ops_linear(f, &linear);
    ops_head(f, &op);
    check_head(&op, full);
    KS_ASSERT(!cases[c].want_all || memcmp(all, full, (size_t)n_row * n * sizeof(*all)) == 0);
    ks_mem_free(w);
    ks_mem_free(x);
    ks_mem_free(full);
    ks_mem_free(all);
    ks_mem_free(logits);
    ks_mem_free(ids);
  }
}

/* What the head tells is what the rows of logits say: best first, ties by id, rows shorter than k,
 * logsumexp, listed ids, softcap, all logits where they are wanted. */
KS_TEST(rows, head)
{
  ops_for_all(head_body);
}

/* Numbers that are none never stand among the best while others are left. */
static void
broken_head_body(ops_fixture *f)
{
  float *w = ops_floats(f, 200 * 32), x[32] = {1};
  float logits[150];
  int32_t ids[150];
  ks_op_head op = {
      .w = {.data = ops_dptr(w), .dtype = KS_DTYPE_F32, .n_in = 32, .n_out = 200, .row_bytes = 128},
      .x = ops_dptr(x),
      .n_row = 1,
      .k = 150,
      .out_ids = ids,
      .out_logits = logits};

  for (uint32_t i = 0; i < 200; i += 2) /* every other row */
    w[i * 32] = i % 3 == 0 ? NAN : -INFINITY;
  ops_head(f, &op);
  for (uint32_t i = 0; i < 150; i++)
    KS_ASSERT(i < 100 ? ids[i] % 2 == 1 : ids[i] % 2 == 0 && logits[i] == -INFINITY);
  ks_mem_free(w);
}

KS_TEST(rows, head_of_broken_logits)
{
  ops_for_all(broken_head_body);
}

/* ---- inner loops ---- */

/* e^x within 3e-7 relative over the whole range that softmax uses, exactly 0 for masked scores. */
KS_TEST(vec, exp)
{
  ops_set sets[4];
  const size_t n_set = ops_list_sets(sets);

  for (size_t s = 0; s < n_set; s++) {
    float x[1000], y[1000];
    double want = 0;

    for (int i = 0; i < 1000; i++)
      y[i] = x[i] = -87.0F * (float)i / 999.0F + 3.0F;
    y[999] = x[999] = -INFINITY;
    for (int i = 0; i < 1000; i++)
      want += exp((double)x[i] - 3.0);
    KS_ASSERT_NEAR(sets[s].vec->exp_sum(y, 1000, 3.0F), want, 3e-6 * want);
    KS_ASSERT_NEAR(sets[s].vec->sum_exp(x, 1000, 3.0F), want, 1e-6 * want);
    for (int i = 0; i < 999; i++)
      KS_ASSERT_NEAR(y[i] / exp((double)(x[i] - 3.0F)), 1.0, 3e-7);
    KS_ASSERT(y[999] == 0.0F);
  }
}

/* Stored rows of every length: f16 like the reference conversion, q8_0 within half a step. */
KS_TEST(vec, pack)
{
  ops_set sets[4];
  const size_t n_set = ops_list_sets(sets);

  for (size_t s = 0; s < n_set; s++)
    for (size_t n = 1; n <= 96; n += n < 40 ? 1 : 7) {
      float x[96], y[97], amax = 0;
      unsigned char row[4 * 96];
      uint16_t half[96];

      for (size_t i = 0; i < n; i++) {
        x[i] = sinf((float)(i * 37 + n)) * 5.0F;
        amax = fmaxf(amax, fabsf(x[i]));
      }
      y[n] = 77.0F;
      sets[s].vec->pack[KS_KV_F16](row, x, n);
      memcpy(half, row, n * 2);
      for (size_t i = 0; i < n; i++)
        KS_ASSERT_EQ(half[i], ks_f16_from_f32(x[i]));
      sets[s].vec->unpack[KS_KV_F16](y, row, n);
      for (size_t i = 0; i < n; i++)
        KS_ASSERT(y[i] == ks_f16_to_f32(half[i]));
      sets[s].vec->pack[KS_KV_Q8_0](row, x, n);
      sets[s].vec->unpack[KS_KV_Q8_0](y, row, n);
      for (size_t i = 0; i < n; i++)
        KS_ASSERT_NEAR(y[i], x[i], (double)amax / 127.0 * 0.502);
      KS_ASSERT(y[n] == 77.0F);
    }
}

/* A row of zeros and one with values beyond f16 do no harm. */
KS_TEST(vec, pack_extremes)
{
  ops_set sets[4];
  const size_t n_set = ops_list_sets(sets);

  for (size_t s = 0; s < n_set; s++) {
    float x[32] = {0}, y[32];
    unsigned char row[34];

    sets[s].vec->pack[KS_KV_Q8_0](row, x, 32);
    sets[s].vec->unpack[KS_KV_Q8_0](y, row, 32);
    for (int i = 0; i < 32; i++)
      KS_ASSERT(y[i] == 0.0F);
    x[3] = NAN;
    x[4] = 1e30F;
    sets[s].vec->pack[KS_KV_Q8_0](row, x, 32);
  }
}

/* Matrix product and transposition of every small shape. */
KS_TEST(vec, gemm)
{
  ops_set sets[4];
  const size_t n_set = ops_list_sets(sets);

  for (size_t s = 0; s < n_set; s++)
    for (size_t m = 1; m <= 20; m++)
      for (size_t n = 16; n <= 48; n += 16) {
        const size_t k = (m * 5 + n) % 23;
        float a[20 * 24], b[24 * 48], c[20 * 48], d[24 * 20];

        for (size_t i = 0; i < 20 * 24; i++)
          a[i] = sinf((float)i);
        for (size_t i = 0; i < 24 * 48; i++)
          b[i] = cosf((float)(i * 7 + s));
        for (size_t i = 0; i < 20 * 48; i++)
          c[i] = (float)i;
        sets[s].vec->gemm(c, 48, a, 24, b, 48, m, n, k, m % 2 == 0);
        for (size_t i = 0; i < m; i++)
          for (size_t j = 0; j < n; j++) {
            double want = m % 2 == 0 ? (double)(i * 48 + j) : 0;

            for (size_t l = 0; l < k; l++)
              want += (double)a[i * 24 + l] * b[l * 48 + j];
            KS_ASSERT_NEAR(c[i * 48 + j], want, 1e-5 + 2e-6 * fabs(want));
          }
        sets[s].vec->transpose(d, 20, a, 24, m, k);
        for (size_t i = 0; i < m; i++)
          for (size_t j = 0; j < k; j++)
            KS_ASSERT(d[j * 20 + i] == a[i * 24 + j]);
      }
}

KS_TEST_MAIN
