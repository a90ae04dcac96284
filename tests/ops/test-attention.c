/* test-attention.c - paged attention and tower attention against plain softmax in double.
 * The promise: whatever the lengths, the page size, the type of the store, the number of queries
 * and of threads, and the instruction set, the output is softmax(q k) v over the visible entries,
 * and the mass is what the last queries give to each entry; in whole numbers (q8_0 in fast mode)
 * within what codes of 16 bits allow. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ops/ops-store.h"

OPS_DEFINE(attention, ks_op_attention)
OPS_DEFINE(attn_segments, ks_op_attn_segments)

typedef struct attn_case {
  uint32_t n_kv_head, group, k_dim, v_dim, page_entries;
  ks_dtype dtype;
  uint32_t n_tok, window;
  uint32_t lengths[4]; /* of the tested layer */
} attn_case;

/* Attention of one query head over one stream; adds the weights to mass when there is one. */
static void
reference_row(const ops_store *store, uint32_t stream, uint32_t n, const float *q, float scale,
              uint32_t first, uint32_t last, double *out, double *mass)
{
  const ks_kv_layout *layout = &store->layout;
  const ks_kv_kind kind = ks_kv_kind_get(layout->kv_dtype);
  float row[256];
  double *p = calloc(n + 1, sizeof(*p)), max = -INFINITY, sum = 0;

  for (uint32_t e = 0; e < n; e++) {
    const ks_cpu_slots slot = ops_slot(store, stream, e);

    p[e] = -INFINITY;
    if (*slot.pos < first || *slot.pos > last)
      continue;
    ks_cpu_vec_scalar.unpack[kind](row, slot.k, layout->k_dim);
    p[e] = 0;
    for (uint32_t i = 0; i < layout->k_dim; i++)
      p[e] += (double)q[i] * row[i] * scale;
    max = fmax(max, p[e]);
  }
  for (uint32_t e = 0; e < n; e++)
    sum += p[e] = p[e] > -INFINITY ? exp(p[e] - max) : 0;
  memset(out, 0, layout->v_dim * sizeof(*out));
  for (uint32_t e = 0; e < n && sum > 0; e++) {
    ks_cpu_vec_scalar.unpack[kind](row, ops_slot(store, stream, e).v, layout->v_dim);
    for (uint32_t i = 0; i < layout->v_dim; i++)
      out[i] += p[e] / sum * row[i];
    if (mass != NULL)
      mass[e] += p[e] / sum;
  }
  free(p);
}

/* Compares all rows and the mass of one case. */
static void
check_result(const ops_store *store, const ks_op_attention *op, const attn_case *c, bool in_codes)
{
  const double tol = in_codes ? 3e-4 : 4e-6, mass_tol = in_codes ? 1e-4 : 2e-6;
  const float *q = ks_cpu_ptr(op->q), *out = ks_cpu_ptr(op->out), *mass = ks_cpu_ptr(op->mass);
  const uint32_t *first = ks_cpu_ptr(op->first), *last = ks_cpu_ptr(op->last);

  for (uint32_t h = 0; h < c->n_kv_head; h++) {
    const uint32_t n = c->lengths[h] + op->n_new;
    double *want_mass = calloc(n + 1, sizeof(*want_mass)), want[256];

    for (uint32_t t = 0; t < c->n_tok; t++)
      for (uint32_t g = 0; g < c->group; g++) {
        const size_t row = (size_t)t * op->n_head + h * c->group + g;

        reference_row(store, op->layer * c->n_kv_head + h, n, q + row * c->k_dim, op->scale,
                      first[t], last[t], want, t + c->window >= c->n_tok ? want_mass : NULL);
        for (uint32_t i = 0; i < c->v_dim; i++)
          KS_ASSERT_NEAR(out[row * c->v_dim + i], want[i], tol);
      }
    for (uint32_t e = 0; e < n && mass != NULL; e++)
      KS_ASSERT_NEAR(mass[op->mass_offset[h] + e], want_mass[e], mass_tol * c->window * c->group);
    free(want_mass);
  }
}

static void
run_case(ops_fixture *f, const attn_case *c)
{
  const ks_kv_layout shape = {.n_layer = 2,
                              .n_kv_head = c->n_kv_head,
                              .k_dim = c->k_dim,
                              .v_dim = c->v_dim,
                              .kv_dtype = c->dtype,
                              .page_entries = c->page_entries,
                              .n_aux = 1};
  const uint32_t n_head = c->n_kv_head * c->group, n_new = c->n_tok;
  uint32_t lengths[8] = {0}, first[600], last[600];
  uint64_t offset[4], total = 0;
  ks_op_attention op = {.layer = 1, .n_tok = c->n_tok, .n_head = n_head, .n_new = n_new};
  ops_store store;
  float *q, *out, *mass;

  for (uint32_t h = 0; h < c->n_kv_head; h++) {
    lengths[c->n_kv_head + h] = c->lengths[h];
    offset[h] = total;
    total += c->lengths[h] + n_new;
  }
  ops_store_init(f, &store, &shape, lengths, n_new);
  ops_store_fill(f, &store, n_new);
  for (uint32_t t = 0; t < c->n_tok; t++) { /* causal, with windows and blind queries between */
    first[t] = t % 5 == 3 ? 40 + t : 0;
    last[t] = t % 7 == 6 ? first[t] : 2 * (c->lengths[0] + t);
    if (t % 11 == 10)
      first[t] = last[t] = UINT32_MAX;
  }
  q = ops_floats(f, (size_t)c->n_tok * n_head * c->k_dim);
  for (size_t i = 0; i < (size_t)c->n_tok * n_head * c->k_dim; i++)
    q[i] *= 6.0F; /* peaked and flat rows */
  out = ops_floats(f, (size_t)c->n_tok * n_head * c->v_dim);
  mass = ops_floats(f, total + 1);
  op.kv = store.view;
  op.q = ops_dptr(q);
  op.out = ops_dptr(out);
  op.first = ops_dptr(first);
  op.last = ops_dptr(last);
  op.scale = 1.0F / sqrtf((float)c->k_dim);
  op.mass = c->window > 0 ? ops_dptr(mass) : 0;
  op.mass_offset = offset;
  op.mass_window = c->window;
  ops_attention(f, &op);
  check_result(&store, &op, c, f->ctx.codes != NULL);
  ks_mem_free(q);
  ks_mem_free(out);
  ks_mem_free(mass);
  ops_store_done(&store);
}

static void
decode_cases(ops_fixture *f)
{
  static const attn_case cases[] = {
      {3, 3, 64, 64, 16, KS_DTYPE_F16, 1, 0, {0, 1, 700, 0}},
      {3, 1, 64, 64, 32, KS_DTYPE_F32, 1, 1, {31, 32, 33, 0}},
      {1, 8, 128, 128, 16, KS_DTYPE_F16, 1, 4, {300, 0, 0, 0}},
      {2, 4, 32, 96, 16, KS_DTYPE_Q8_0, 1, 0, {15, 17, 0, 0}},
      {2, 2, 96, 32, 16, KS_DTYPE_Q8_0, 2, 2, {130, 64, 0, 0}},
      {4, 1, 80, 80, 16, KS_DTYPE_F16, 3, 0, {63, 64, 65, 1}},
      {1, 16, 256, 256, 16, KS_DTYPE_F16, 2, 1, {129, 0, 0, 0}},
      {2, 3, 20, 13, 4, KS_DTYPE_F32, 1, 1, {77, 3, 0, 0}},
      {2, 3, 27, 5, 4, KS_DTYPE_F16, 2, 2, {9, 70, 0, 0}},
      {2, 4, 64, 64, 16, KS_DTYPE_F16, 1, 1, {1000, 1, 0, 0}},
      {2, 7, 64, 64, 16, KS_DTYPE_Q8_0, 1, 1, {4, 330, 0, 0}},
      {2, 7, 80, 80, 32, KS_DTYPE_F16, 1, 0, {257, 66, 0, 0}},
      {1, 5, 128, 128, 64, KS_DTYPE_Q8_0, 2, 1, {513, 0, 0, 0}},
      {3, 4, 128, 64, 128, KS_DTYPE_F32, 1, 1, {0, 129, 640, 0}},
      {4, 1, 64, 64, 16, KS_DTYPE_Q8_0, 1, 1, {90, 2, 31, 401}},
      {1, 11, 96, 96, 8, KS_DTYPE_Q8_0, 1, 1, {77, 0, 0, 0}},
  };

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
    run_case(f, &cases[i]);
}

/* One or few queries: streams are split over the members and the parts combined. */
KS_TEST(attention, few_queries)
{
  ops_for_all(decode_cases);
}

static void
code_cases(ops_fixture *f)
{
  static const attn_case cases[] = {
      {3, 3, 64, 64, 16, KS_DTYPE_Q8_0, 1, 0, {0, 1, 700, 0}},
      {2, 4, 32, 96, 16, KS_DTYPE_Q8_0, 1, 0, {15, 17, 0, 0}},
      {2, 2, 96, 32, 16, KS_DTYPE_Q8_0, 2, 2, {130, 64, 0, 0}},
      {2, 7, 64, 64, 32, KS_DTYPE_Q8_0, 1, 1, {4, 330, 0, 0}},
      {1, 5, 128, 128, 64, KS_DTYPE_Q8_0, 2, 1, {513, 0, 0, 0}},
      {4, 1, 64, 64, 128, KS_DTYPE_Q8_0, 1, 1, {90, 2, 31, 401}},
      {1, 16, 256, 256, 4, KS_DTYPE_Q8_0, 2, 1, {129, 0, 0, 0}},
      {1, 11, 96, 96, 8, KS_DTYPE_Q8_0, 1, 1, {77, 0, 0, 0}},
      {2, 2, 64, 64, 2, KS_DTYPE_Q8_0, 1, 1, {70, 9, 0, 0}}, /* no whole quads: in f32 */
  };
  const ks_cpu_codes_fns *tables[8];
  const size_t n = ops_list_codes(tables);

  for (size_t t = 0; t < n; t++) {
    f->ctx.codes = tables[t];
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
      run_case(f, &cases[i]);
  }
}

/* The same over codes: blocks of all streams, whatever the pages hold. */
KS_TEST(attention, few_queries_in_codes)
{
  ops_for_all(code_cases);
}

static void
prefill_cases(ops_fixture *f)
{
  static const attn_case cases[] = {
      {3, 3, 64, 64, 16, KS_DTYPE_F16, 37, 0, {200, 0, 5, 0}},
      {1, 1, 64, 64, 32, KS_DTYPE_F32, 131, 5, {1, 0, 0, 0}},
      {1, 8, 128, 128, 16, KS_DTYPE_F16, 13, 13, {70, 0, 0, 0}},
      {2, 4, 32, 96, 16, KS_DTYPE_Q8_0, 16, 32, {15, 140, 0, 0}},
      {2, 4, 20, 13, 4, KS_DTYPE_F32, 21, 3, {77, 3, 0, 0}},
      {1, 2, 256, 256, 16, KS_DTYPE_F16, 15, 0, {65, 0, 0, 0}},
      {2, 7, 64, 64, 16, KS_DTYPE_Q8_0, 40, 9, {300, 2, 0, 0}},
      {3, 4, 80, 80, 32, KS_DTYPE_F16, 33, 33, {0, 64, 191, 0}},
  };

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
    run_case(f, &cases[i]);
}

/* Tiles of queries against blocks of keys. */
KS_TEST(attention, many_queries)
{
  ops_for_all(prefill_cases);
}

/* Two runs with the same number of threads agree bit for bit. */
KS_TEST(attention, deterministic)
{
  const ks_kv_layout shape = {.n_layer = 1,
                              .n_kv_head = 3,
                              .k_dim = 64,
                              .v_dim = 64,
                              .kv_dtype = KS_DTYPE_F16,
                              .page_entries = 16};
  const uint32_t lengths[3] = {1000, 30, 400}, first[1] = {0}, last[1] = {UINT32_MAX};
  float out[2][9 * 64], *q;
  ops_set sets[4];
  ops_fixture f;
  ops_store store;

  ops_init(&f, sets[ops_list_sets(sets) - 1], 3);
  ops_store_init(&f, &store, &shape, lengths, 0);
  ops_store_fill(&f, &store, 0);
  q = ops_floats(&f, 9 * 64);
  for (int i = 0; i < 2; i++) {
    ks_op_attention op = {.kv = store.view,
                          .n_tok = 1,
                          .n_head = 9,
                          .q = ops_dptr(q),
                          .out = ops_dptr(out[i]),
                          .first = ops_dptr(first),
                          .last = ops_dptr(last),
                          .scale = 0.125F};

    ops_attention(&f, &op);
  }
  KS_ASSERT(memcmp(out[0], out[1], sizeof(out[0])) == 0);
  ks_mem_free(q);
  ops_store_done(&store);
  ops_done(&f);
}

/* ---- towers ---- */

typedef struct tower_case {
  uint32_t n_head, head_dim, n_seg;
  uint32_t seg[5];
  uint32_t gap; /* floats between rows of q, k, v beyond the dense ones */
} tower_case;

static void
check_tower(const ks_op_attn_segments *op, const float *qkv, size_t stride, size_t width)
{
  const float *out = ks_cpu_ptr(op->out), *received = ks_cpu_ptr(op->received);
  double *want_received = calloc(op->n_row + 1, sizeof(*want_received));
  double *p = calloc(op->n_row + 1, sizeof(*p));

  for (uint32_t s = 0; s < op->n_seg; s++)
    for (uint32_t i = op->seg[s]; i < op->seg[s + 1]; i++)
      for (uint32_t h = 0; h < op->n_head; h++) {
        const uint32_t begin = op->seg[s], end = op->seg[s + 1], d = op->head_dim;
        double max = -INFINITY, sum = 0;

        for (uint32_t j = begin; j < end; j++) {
          p[j] = 0;
          for (uint32_t l = 0; l < d; l++)
            p[j] += (double)qkv[i * stride + h * d + l] * qkv[j * stride + width + h * d + l];
          p[j] *= op->scale;
          max = fmax(max, p[j]);
        }
        for (uint32_t j = begin; j < end; j++)
          sum += p[j] = exp(p[j] - max);
        for (uint32_t j = begin; j < end; j++)
          want_received[j] += p[j] / sum / (end - begin) / op->n_head;
        for (uint32_t l = 0; l < d; l++) {
          double want = 0;

          for (uint32_t j = begin; j < end; j++)
            want += p[j] / sum * qkv[j * stride + 2 * width + h * d + l];
          KS_ASSERT_NEAR(out[(size_t)i * width + h * d + l], want, 4e-6);
        }
      }
  for (uint32_t i = op->seg[0]; i < op->seg[op->n_seg] && received != NULL; i++)
    KS_ASSERT_NEAR(received[i], want_received[i], 1e-6);
  free(p);
  free(want_received);
}

static void
tower_cases(ops_fixture *f)
{
  static const tower_case cases[] = {
      {2, 72, 1, {0, 130}, 0},
      {3, 64, 3, {0, 16, 17, 97}, 8},
      {1, 80, 4, {0, 64, 64, 128, 131}, 0},
      {2, 13, 2, {0, 1, 33}, 1},
  };

  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
    for (int with_received = 0; with_received < 2; with_received++) {
      const tower_case *c = &cases[i];
      const size_t width = (size_t)c->n_head * c->head_dim, stride = 3 * width + c->gap;
      const uint32_t n_row = c->seg[c->n_seg];
      float *qkv = ops_floats(f, n_row * stride), *out = ops_floats(f, n_row * width);
      float *received = ops_floats(f, n_row);
      ks_op_attn_segments op = {.n_row = n_row,
                                .n_head = c->n_head,
                                .head_dim = c->head_dim,
                                .qkv_stride = stride,
                                .seg = c->seg,
                                .n_seg = c->n_seg,
                                .scale = 0.5F};

      op.q = ops_dptr(qkv);
      op.k = ops_dptr(qkv + width);
      op.v = ops_dptr(qkv + 2 * width);
      op.out = ops_dptr(out);
      op.received = with_received ? ops_dptr(received) : 0;
      ops_attn_segments(f, &op);
      check_tower(&op, qkv, stride, width);
      ks_mem_free(qkv);
      ks_mem_free(out);
      ks_mem_free(received);
    }
}

/* Rows see their own segment only, empty segments do no harm, and the received attention is a mean.
 */
KS_TEST(attention, segments)
{
  ops_for_all(tower_cases);
}

KS_TEST_MAIN
