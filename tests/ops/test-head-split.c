/* test-head-split.c - an output matrix in two halves: rows come back bit by bit, and the head finds
 * in it what it finds in the repacked matrix, whatever the input and the weights are. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ops/ops-fixture.h"

#include "engine/cpu-split-internal.h"
#include "engine/dtype.h"
#include "engine/quant.h"

OPS_DEFINE(head, ks_op_head)
OPS_DEFINE_PLAIN(gather_rows)

#define N_IN 576u
#define BLOCKS (N_IN / 32)
#define ROW_BYTES (BLOCKS * 34u)
#define MOST 256u

/* A matrix, its rows as they stand in a file and both other forms of it. */
typedef struct matrix {
  unsigned char *rows;
  ks_weight packed, split;
} matrix;

/* Scales of about the same size, any codes. */
static void
fill_rows(ops_fixture *f, unsigned char *rows, uint32_t n_row)
{
  for (uint32_t r = 0; r < n_row; r++)
    for (uint32_t b = 0; b < BLOCKS; b++) {
      unsigned char *block = rows + r * ROW_BYTES + b * 34;
      const uint16_t d = (uint16_t)(0x2000 + ops_random(f) % 0x600); /* 0.008 to 0.02 */

      memcpy(block, &d, 2);
      for (int i = 0; i < 32; i++)
        block[2 + i] = (unsigned char)ops_random(f);
    }
}

static ks_dptr
repack(ops_fixture *f, ks_weight *w)
{
  void *p = ks_mem_new(f->a, KS_MEM_WEIGHTS, 1, ks_cpu_repack_bytes(&f->ctx, w));

  KS_ASSERT(p != NULL && (uintptr_t)p % 64 == 0);
  memset(p, 0xff, ks_cpu_repack_bytes(&f->ctx, w));
  ks_cpu_weight_repack(&f->ctx, w, ops_dptr(p));
  return ops_dptr(p);
}

/* Both forms of the rows; the rows of the file are not to be read again. */
static void
make_forms(ops_fixture *f, matrix *m, uint32_t n_row)
{
  m->packed = (ks_weight){.data = ops_dptr(m->rows),
                          .dtype = KS_DTYPE_Q8_0,
                          .n_in = N_IN,
                          .n_out = n_row,
                          .row_bytes = ROW_BYTES};
  m->split = m->packed;
  m->split.is_output = true;
  KS_ASSERT_EQ(repack(f, &m->packed), m->packed.packed);
  KS_ASSERT_EQ(repack(f, &m->split), m->split.split);
  KS_ASSERT(m->split.packed == 0 && m->packed.split == 0);
  m->split.data = m->packed.data = 0;
}

static void
make_matrix(ops_fixture *f, matrix *m, uint32_t n_row)
{
  m->rows = ks_mem_new(f->a, KS_MEM_SCRATCH, n_row, ROW_BYTES);
  KS_ASSERT(m->rows != NULL);
  fill_rows(f, m->rows, n_row);
}

static void
free_matrix(matrix *m)
{
  ks_mem_free((void *)(uintptr_t)m->packed.packed);
  ks_mem_free((void *)(uintptr_t)m->split.split);
  ks_mem_free(m->rows);
}

/* Equal, or both no numbers. */
static bool
is_same(float a, float b)
{
  return a == b || (a != a && b != b);
}

/* The head of both forms: all logits, the best k, the listed. */
static void
check_heads(ops_fixture *f, const matrix *m, const float *x, uint32_t k, float cap)
{
  const uint32_t n = m->packed.n_out;
  const int32_t listed[] = {0, 0, (int32_t)n / 2, (int32_t)n - 1};
  float *want_all = ops_floats(f, n), *all = ops_floats(f, n);
  float want_listed[4], got_listed[4], want[MOST], got[MOST];
  int32_t want_ids[MOST], ids[MOST];
  ks_op_head op = {.w = m->packed,
                   .x = ops_dptr(x),
                   .n_row = 1,
                   .k = k,
                   .cap = cap,
                   .ids = listed,
                   .n_id = 4,
                   .out_ids = want_ids,
                   .out_logits = want,
                   .out_listed = want_listed,
                   .logits = ops_dptr(want_all)};

  ops_head(f, &op);
  op.w = m->split;
  op.out_ids = ids;
  op.out_logits = got;
  op.out_listed = got_listed;
  for (int search = 0; search < 2; search++) {
    op.logits = search ? 0 : ops_dptr(all);
    memset(ids, 0xee, sizeof ids);
    ops_head(f, &op);
    for (uint32_t i = 0; i < k; i++)
      KS_ASSERT(ids[i] == want_ids[i] && is_same(got[i], want[i]));
    for (uint32_t i = 0; i < 4; i++)
      KS_ASSERT(is_same(got_listed[i], want_listed[i]));
  }
  for (uint32_t i = 0; i < n; i++)
    KS_ASSERT(is_same(all[i], want_all[i]));
  ks_mem_free(want_all);
  ks_mem_free(all);
}

/* Inputs as a model's last norm leaves them: a few columns hold most of it. */
static void
fill_input(ops_fixture *f, float *x, uint32_t loaded)
{
  for (uint32_t i = 0; i < N_IN; i++)
    x[i] = ops_random_float(f);
  for (uint32_t i = 0; i < loaded; i++)
    x[ops_random(f) % N_IN] *= 30;
}

/* Runs body where matrices are split. */
static void
for_all_split(void (*body)(ops_fixture *f))
{
  ops_set sets[4];
  const size_t n_set = ops_list_sets(sets);
  uint32_t n_run = 0;

  for (size_t i = 0; i < n_set; i++)
    for (size_t j = 0; j < OPS_N_THREAD_COUNTS; j++) {
      ops_fixture f;

      ops_init(&f, sets[i], ops_thread_counts[j]);
      if (f.ctx.packed->join != NULL) {
        body(&f);
        n_run++;
      }
      ops_done(&f);
    }
  KS_ASSERT(n_run > 0 || n_set == 1);
}

static void
rows_body(ops_fixture *f)
{
  const uint32_t n_row = 37;
  const int32_t ids[] = {0, 36, 8, 15, 16, 8};
  float want[N_IN], *got = ops_floats(f, 6 * N_IN);
  matrix m;
  ks_op_gather_rows op = {.ids = ops_dptr(ids), .out = ops_dptr(got), .n_tok = 6, .scale = 1};

  make_matrix(f, &m, n_row);
  make_forms(f, &m, n_row);
  op.table = m.split;
  ops_gather_rows(f, &op);
  for (uint32_t t = 0; t < 6; t++) {
    ks_dequantise_row(KS_DTYPE_Q8_0, m.rows + (size_t)ids[t] * ROW_BYTES, want, N_IN);
    KS_ASSERT_EQ(memcmp(got + (size_t)t * N_IN, want, sizeof want), 0);
  }
  ks_mem_free(got);
  free_matrix(&m);
}

/* Rows of the table come from the halves, bit by bit; -128 is a code too. */
KS_TEST(head_split, rows)
{
  for_all_split(rows_body);
}

static void
head_body(ops_fixture *f)
{
  static const struct {
    uint32_t n_row, k, loaded;
    float cap;
  } cases[] = {{4099, 1, 3, 0},   {4099, 40, 3, 0}, {4099, 40, 0, 0}, {4099, MOST, 40, 0},
               {4099, 20, 3, 30}, {1000, 7, 1, 2},  {5, 9, 1, 0}};
  float x[N_IN];

  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
    for (int mode = 0; mode < 2; mode++) {
      matrix m;

      f->ctx.mode = mode == 0 ? KS_COMPUTE_EXACT : KS_COMPUTE_FAST;
      make_matrix(f, &m, cases[c].n_row);
      make_forms(f, &m, cases[c].n_row);
      for (int input = 0; input < 3; input++) {
        fill_input(f, x, cases[c].loaded);
        check_heads(f, &m, x, cases[c].k, cases[c].cap);
      }
      free_matrix(&m);
    }
}

/* The same logits and the same best ones as in the repacked matrix, to the last bit: few and many,
 * inputs of all columns and of few, capped so far that logits become equal, fewer rows than k. */
KS_TEST(head_split, same_as_repacked)
{
  for_all_split(head_body);
}

static void
hidden_body(ops_fixture *f)
{
  const uint32_t n_row = 2000;
  float x[N_IN];
  matrix m;

  for (int mode = 0; mode < 2; mode++) {
    f->ctx.mode = mode == 0 ? KS_COMPUTE_EXACT : KS_COMPUTE_FAST;
    fill_input(f, x, 0);
    make_matrix(f, &m, n_row);
    for (uint32_t r = 0; r < n_row;
         r++) /* low halves that the input tells: by row for or against */
      for (uint32_t i = 0; i < N_IN; i++) {
        unsigned char *code = m.rows + r * ROW_BYTES + i / 32 * 34 + 2 + i % 32;

        *code = (unsigned char)((*code & 0xf0u) | ((x[i] > 0) == (r % 3 == 0) ? 15u : 0u));
      }
    make_forms(f, &m, n_row);
    check_heads(f, &m, x, 40, 0);
    free_matrix(&m);
  }
}

/* Low halves made for one input hide the best rows from it: that is noticed, and all are looked at.
 */
KS_TEST(head_split, low_halves_that_follow_the_input)
{
  for_all_split(hidden_body);
}

static void
broken_body(ops_fixture *f)
{
  static const float bad[] = {NAN, INFINITY, -INFINITY, 0, 1e30F};
  const uint16_t scales[] = {0x7e00, 0x7c00, 0xfc00, 0x8001, 0xbc00}; /* NaN, inf, -inf, tiny, -1 */
  const uint32_t n_row = 300;
  float x[N_IN];
  matrix m;

  make_matrix(f, &m, n_row);
  for (uint32_t r = 0; r < 5; r++)
    memcpy(m.rows + (size_t)(17 * r) * ROW_BYTES + 34 * r, &scales[r], 2);
  make_forms(f, &m, n_row);
  for (int mode = 0; mode < 2; mode++)
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
      f->ctx.mode = mode == 0 ? KS_COMPUTE_EXACT : KS_COMPUTE_FAST;
      fill_input(f, x, 1);
      check_heads(f, &m, x, 20, 0);
      if (bad[i] == 0)
        memset(x, 0, sizeof x);
      else
        x[100] = bad[i];
      check_heads(f, &m, x, 20, 0);
    }
  free_matrix(&m);
}

/* Weights and inputs that are no numbers give what they give elsewhere. */
KS_TEST(head_split, broken_numbers)
{
  for_all_split(broken_body);
}

static void
moving_body(ops_fixture *f)
{
  const uint32_t n_row = 600;
  float x[N_IN];
  matrix m;

  f->ctx.mode = KS_COMPUTE_FAST;
  make_matrix(f, &m, n_row);
  make_forms(f, &m, n_row);
  for (uint32_t i = 0; i < 150; i++) { /* other columns are chosen on the way */
    for (uint32_t c = 0; c < N_IN; c++)
      x[c] = ops_random_float(f) * (c / 48 == i / 40 ? 20 : 1);
    check_heads(f, &m, x, 5, 0);
  }
  free_matrix(&m);
}

/* Inputs that come to load other columns. */
KS_TEST(head_split, columns_that_change)
{
  for_all_split(moving_body);
}

static void
plain_body(ops_fixture *f)
{
  ks_weight w = {.dtype = KS_DTYPE_Q8_0, .n_in = N_IN, .n_out = 64, .row_bytes = ROW_BYTES};
  const size_t packed = ks_cpu_repack_bytes(&f->ctx, &w);

  w.is_output = true;
  KS_ASSERT_EQ(ks_cpu_repack_bytes(&f->ctx, &w) != packed, (f->ctx.packed->join != NULL));
}

/* Kernels that take the zero of codes off by themselves read the output as any other matrix. */
KS_TEST(head_split, where_kernels_allow_it)
{
  ops_for_all(plain_body);
}

/* Only q8_0 has halves, and they take about the room of the repacked form. */
KS_TEST(head_split, form)
{
  ks_weight w = {.dtype = KS_DTYPE_Q8_0, .n_in = N_IN, .n_out = 49152, .row_bytes = ROW_BYTES};
  ks_split_form form;

  KS_ASSERT(ks_split_get_form(&w, 8, &form));
  KS_ASSERT_LE(form.n_bytes, w.row_bytes * w.n_out * 107 / 100);
  w.dtype = KS_DTYPE_Q6_K;
  KS_ASSERT(!ks_split_get_form(&w, 8, &form));
}

KS_TEST_MAIN
