/* test-train-gate.c - soft size of the cache and the gate: forward and gradients.
 * The promise: sizes are those of the formula, gradients its slopes, tied and local, whatever the
 * shape; a gradient goes through the recorded operations of the device as training uses them.  The
 * same bits for any number of threads. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-isa-internal.h"
#include "tests/ops/ops-slope.h"

OPS_DEFINE(capacity, ks_op_capacity)
OPS_DEFINE(capacity_back, ks_op_capacity_back)

/* --- soft size --- */

#define N_TOK 150u
#define N_HEAD 3u

typedef struct sizes {
  double *log_beta, *c; /* c: the factor of each size in the loss */
  const uint32_t *first;
  bool per_head;
} sizes;

static double
size_reference(const sizes *s, size_t t, size_t head)
{
  double size = 0;

  for (size_t j = s->first[t]; j <= t; j++)
    size += exp((double)(t - j) * s->log_beta[j * N_HEAD + head]);
  return size;
}

static double
size_loss(const void *user)
{
  const sizes *s = user;
  double loss = 0;

  for (size_t t = 0; t < N_TOK; t++)
    for (size_t h = 0; h < N_HEAD; h++)
      loss += s->c[s->per_head ? t * N_HEAD + h : t] * size_reference(s, t, h);
  return loss;
}

static uint64_t
capacity_variant(ops_fixture *f, bool per_head, uint64_t digest)
{
  const size_t n = (size_t)N_TOK * N_HEAD, n_size = per_head ? n : N_TOK;
  float *log_beta = ops_floats(f, n), *size = ops_floats(f, n_size), *c = ops_floats(f, n_size);
  float *before = ops_floats(f, n_size), *d = ops_floats(f, n), *d_before = ops_floats(f, n);
  uint32_t first[N_TOK];
  sizes s = {.first = first, .per_head = per_head};
  ks_op_capacity_back back = {.forward = {.log_beta = ops_dptr(log_beta),
                                          .first = ops_dptr(first),
                                          .size = ops_dptr(size),
                                          .n_tok = N_TOK,
                                          .n_kv_head = N_HEAD,
                                          .per_head = per_head},
                              .d_size = ops_dptr(c),
                              .d_log_beta = ops_dptr(d)};

  for (size_t i = 0; i < n; i++) /* some never forget, some at once */
    log_beta[i] = i % 11 == 0 ? 0.0F : i % 13 == 0 ? -90.0F : -0.2F * (1.0F + log_beta[i]);
  for (uint32_t t = 0; t < N_TOK; t++)
    first[t] = t < 69 ? 0 : 69;
  memcpy(before, size, n_size * sizeof(*size));
  memcpy(d_before, d, n * sizeof(*d));
  s.log_beta = ops_doubles(f, log_beta, n);
  s.c = ops_doubles(f, c, n_size);
  ops_capacity(f, &back.forward);
  for (size_t t = 0; t < N_TOK; t++) {
    double all = 0;

    for (size_t h = 0; h < N_HEAD; h++) {
      const double one = size_reference(&s, t, h);

      all += one;
      if (per_head)
        KS_ASSERT_NEAR(size[t * N_HEAD + h], (double)before[t * N_HEAD + h] + one, 1e-5 * one);
    }
    if (!per_head)
      KS_ASSERT_NEAR(size[t], (double)before[t] + all, 1e-5 * all);
  }
  ops_capacity_back(f, &back);
  if (ks_threads_get_n(f->threads) == 1)
    ops_check_slopes("d_log_beta", size_loss, &s, s.log_beta, d, d_before, n, 7, 1e-5);
  digest = ops_digest(ops_digest(digest, size, n_size), d, n);
  ks_mem_free(log_beta);
  ks_mem_free(size);
  ks_mem_free(c);
  ks_mem_free(before);
  ks_mem_free(d);
  ks_mem_free(d_before);
  ks_mem_free(s.log_beta);
  ks_mem_free(s.c);
  return digest;
}

static uint64_t
capacity_body(ops_fixture *f)
{
  return capacity_variant(f, true, capacity_variant(f, false, OPS_DIGEST_BEGIN));
}

/* One size for all heads and one for each, over two documents. */
KS_TEST(train_gate, capacity)
{
  ops_for_all_alike(capacity_body);
}

/* The worked numbers of docs/method.md. */
static void
worked_body(ops_fixture *f)
{
  static const float beta[8] = {0.9F, 0.99F, 0.5F, 0.2F, 1.0F, 0.7F, 0.8F, 0.6F};
  static const double want[4] = {2, 3.89, 4.4901, 5.689299};
  float log_beta[8], size[4] = {0};
  ks_op_capacity op = {
      .log_beta = ops_dptr(log_beta), .size = ops_dptr(size), .n_tok = 4, .n_kv_head = 2};

  for (size_t i = 0; i < 8; i++)
    log_beta[i] = logf(beta[i]);
  ops_capacity(f, &op);
  for (size_t t = 0; t < 4; t++)
    KS_ASSERT_NEAR(size[t], want[t], 2e-6);
}

KS_TEST(train_gate, capacity_worked_example)
{
  ops_for_all(worked_body);
}

/* --- the gate --- */

enum { G_TOK = 13, G_EMBD = 21, G_GATE = 10, G_HEAD = 3 };

/* Offsets of the numbers of a gate in one array, and of their gradients in another. */
enum {
  AT_W1 = 0,
  AT_W2 = AT_W1 + G_GATE * G_EMBD,
  AT_W3 = AT_W2 + G_GATE * G_GATE,
  AT_B1 = AT_W3 + G_HEAD * G_GATE,
  AT_B2 = AT_B1 + G_GATE,
  AT_B3 = AT_B2 + G_GATE,
  AT_X = AT_B3 + G_HEAD,
  N_NUMBER = AT_X + G_TOK * G_EMBD
};

typedef struct gate {
  double number[N_NUMBER];
  float c[G_TOK * G_HEAD];
  bool local;
} gate;

static double
silu(double z)
{
  return z / (1 + exp(-z));
}

static double
gate_loss(const void *user)
{
  const gate *g = user;
  const double *n = g->number;
  double loss = 0;

  for (size_t t = 0; t < G_TOK; t++) {
    double u1[G_GATE], u2[G_GATE];

    for (size_t i = 0; i < G_GATE; i++) {
      double z = n[AT_B1 + i];

      for (size_t j = 0; j < G_EMBD; j++)
        z += n[AT_W1 + i * G_EMBD + j] * n[AT_X + t * G_EMBD + j];
      u1[i] = silu(z);
    }
    for (size_t i = 0; i < G_GATE; i++) {
      double z = n[AT_B2 + i];

      for (size_t j = 0; j < G_GATE; j++)
        z += n[AT_W2 + i * G_GATE + j] * u1[j];
      u2[i] = g->local ? u1[i] : silu(z);
    }
    for (size_t h = 0; h < G_HEAD; h++) {
      double z = n[AT_B3 + h];

      for (size_t i = 0; i < G_GATE; i++)
        z += n[AT_W3 + h * G_GATE + i] * u2[i];
      loss += (double)g->c[t * G_HEAD + h] * -log1p(exp(-z));
    }
  }
  return loss;
}

static ks_weight
weight_at(ks_dptr numbers, size_t at, uint32_t n_out, uint32_t n_in)
{
  return (ks_weight){.data = numbers + at * sizeof(float),
                     .dtype = KS_DTYPE_F32,
                     .n_in = n_in,
                     .n_out = n_out,
                     .row_bytes = n_in * sizeof(float)};
}

/* Forward and back on the device; numbers, what their gradients are added to, and those. */
static void
run_gate(const ks_backend *be, const gate *g, const float *number, float *gradient)
{
  const size_t n_bytes = N_NUMBER * sizeof(float);
  const size_t n_work = ks_gate_back_get_n_work(G_TOK, G_GATE, G_HEAD);
  const size_t n_out = G_TOK * G_HEAD * sizeof(float);
  ks_dptr all, at, to, work, log_beta, c;
  ks_op_gate op;
  ks_op_gate_back back;

  KS_ASSERT_OK(be->t->mem_new(be->dev, KS_MEM_SCRATCH,
                              2 * n_bytes + 2 * n_out + n_work * sizeof(float), &all, NULL));
  at = all;
  to = at + n_bytes;
  log_beta = to + n_bytes;
  c = log_beta + n_out;
  work = c + n_out;
  KS_ASSERT_OK(be->t->upload(be->dev, at, number, n_bytes, NULL));
  KS_ASSERT_OK(be->t->upload(be->dev, to, gradient, n_bytes, NULL));
  KS_ASSERT_OK(be->t->upload(be->dev, c, g->c, n_out, NULL));
  op = (ks_op_gate){.w1 = weight_at(at, AT_W1, G_GATE, G_EMBD),
                    .w3 = weight_at(at, AT_W3, G_HEAD, G_GATE),
                    .b1 = at + AT_B1 * 4,
                    .b2 = at + AT_B2 * 4,
                    .b3 = at + AT_B3 * 4,
                    .x = at + AT_X * 4,
                    .u = work,
                    .log_beta = log_beta,
                    .n_tok = G_TOK,
                    .act = KS_ACT_SILU};
  if (!g->local)
    op.w2 = weight_at(at, AT_W2, G_GATE, G_GATE);
  back = (ks_op_gate_back){.w1 = op.w1,
                           .w2 = op.w2,
                           .w3 = op.w3,
                           .b1 = op.b1,
                           .b2 = op.b2,
                           .b3 = op.b3,
                           .x = op.x,
                           .log_beta = log_beta,
                           .d_log_beta = c,
                           .dw1 = to + AT_W1 * 4,
                           .dw2 = to + AT_W2 * 4,
                           .dw3 = to + AT_W3 * 4,
                           .db1 = to + AT_B1 * 4,
                           .db2 = to + AT_B2 * 4,
                           .db3 = to + AT_B3 * 4,
                           .dx = to + AT_X * 4,
                           .work = work,
                           .n_tok = G_TOK,
                           .act = KS_ACT_SILU};
  KS_ASSERT_OK(be->t->step_begin(be->dev, NULL));
  KS_ASSERT_OK(be->t->gate(be->dev, &op));
  KS_ASSERT_OK(be->t->train->gate_back(be->dev, &back));
  KS_ASSERT_OK(be->t->step_end(be->dev, NULL, NULL, NULL));
  KS_ASSERT_OK(be->t->download(be->dev, gradient, to, n_bytes, NULL));
  be->t->mem_free(be->dev, all);
}

/* One set of instructions with some threads; false where the processor lacks it. */
static bool
check_gate(const char *isa, uint32_t n_thread, bool local, uint64_t *digest)
{
  ks_alloc *a = ks_alloc_new();
  ks_dev_params params = {.alloc = a, .n_thread = n_thread, .isa = isa};
  ks_backend be = {0};
  ops_fixture random = {.a = a, .seed = 99};
  float *number = ops_floats(&random, N_NUMBER), *gradient = ops_floats(&random, N_NUMBER);
  float before[N_NUMBER];
  gate g = {.local = local};
  const bool here = ks_backend_open("cpu", &params, &be, NULL) == KS_OK;

  for (size_t i = 0; i < N_NUMBER; i++)
    g.number[i] = (double)number[i];
  for (size_t i = 0; i < G_TOK * G_HEAD; i++)
    g.c[i] = ops_random_float(&random);
  memcpy(before, gradient, sizeof(before));
  if (here)
    run_gate(&be, &g, number, gradient);
  *digest = ops_digest(OPS_DIGEST_BEGIN, gradient, N_NUMBER);
  if (here && n_thread == 1)
    ops_check_slopes(isa, gate_loss, &g, g.number, gradient, before, N_NUMBER, 1, 5e-6);
  if (here && local) /* the second layer is not there */
    KS_ASSERT(memcmp(gradient + AT_W2, before + AT_W2, G_GATE * G_GATE * sizeof(float)) == 0);
  ks_mem_free(number);
  ks_mem_free(gradient);
  ks_backend_close(&be);
  ks_alloc_free(a);
  return here;
}

static void
check_gates(bool local)
{
  size_t n_open = 0;

  for (size_t i = 0; i < KS_N_CPU_SET; i++) {
    uint64_t first = 0, digest = 0;

    for (size_t j = 0; j < OPS_N_THREAD_COUNTS; j++) {
      if (!check_gate(ks_cpu_sets[i].name, ops_thread_counts[j], local, j == 0 ? &first : &digest))
        break;
      n_open++;
      KS_ASSERT(j == 0 || digest == first);
    }
  }
  KS_ASSERT(n_open > 0);
}

/* Three layers: weights, biases and the input, each added to what was there. */
KS_TEST(train_gate, tied_gate_back)
{
  check_gates(false);
}

/* Two layers. */
KS_TEST(train_gate, local_gate_back)
{
  check_gates(true);
}

KS_TEST_MAIN
