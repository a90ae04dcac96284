/* test-train-attention.c - attention with a bias by age, and its gradient.
 * The promise: outputs are those of the formula in double, and the gradients of queries, keys,
 * values and log_beta are its slopes, for every instruction set; across blocks of keys and tiles of
 * queries, in documents and windows, for sampled queries and for queries that see ahead; the same
 * bits for any number of threads. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ops/ops-slope.h"

OPS_DEFINE(attn_bias, ks_op_attn_bias)
OPS_DEFINE(attn_bias_back, ks_op_attn_bias_back)

#define N_TOK 150u
#define GAP 3u /* floats between rows */

typedef struct shape {
  uint32_t n_q, n_head, n_kv_head, k_dim, v_dim;
  bool biased;
  uint32_t at[N_TOK], first[N_TOK], last[N_TOK];
  double *q, *k, *v, *beta, *c; /* rows with gaps, c dense */
} shape;

#define SCALE 0.375

static size_t
row_floats(uint32_t n_head, uint32_t dim)
{
  return (size_t)n_head * dim + GAP;
}

/* One query head; out and logsumexp may be NULL.  Returns its part of the loss. */
static double
attend_reference(const shape *s, uint32_t i, uint32_t head, double *out, double *logsumexp)
{
  const uint32_t g = head / (s->n_head / s->n_kv_head);
  const double *q = s->q + i * row_floats(s->n_head, s->k_dim) + (size_t)head * s->k_dim;
  double l[N_TOK], sum = 0, loss = 0;

  for (uint32_t j = s->first[i]; j <= s->last[i] && j < N_TOK; j++) {
    const double *k = s->k + j * row_floats(s->n_kv_head, s->k_dim) + (size_t)g * s->k_dim;
    const double age = s->at[i] > j ? (double)(s->at[i] - j) : 0;

    l[j] = s->biased ? age * s->beta[j * s->n_kv_head + g] : 0;
    for (uint32_t d = 0; d < s->k_dim; d++)
      l[j] += q[d] * k[d] * SCALE;
    l[j] = exp(l[j]);
    sum += l[j];
  }
  for (uint32_t d = 0; d < s->v_dim; d++) {
    const double *v = s->v + (size_t)g * s->v_dim + d;
    double y = 0;

    for (uint32_t j = s->first[i]; j <= s->last[i] && j < N_TOK; j++)
      y += l[j] / sum * v[j * row_floats(s->n_kv_head, s->v_dim)];
    if (out != NULL)
      out[d] = y;
    loss += y * s->c[((size_t)i * s->n_head + head) * s->v_dim + d];
  }
  if (logsumexp != NULL)
    *logsumexp = log(sum);
  return loss;
}

static double
attend_loss(const void *user)
{
  const shape *s = user;
  double loss = 0;

  for (uint32_t i = 0; i < s->n_q; i++)
    for (uint32_t head = 0; head < s->n_head; head++)
      loss += attend_reference(s, i, head, NULL, NULL);
  return loss;
}

/* The arrays of one run. */
typedef struct arrays {
  float *q, *k, *v, *beta, *c, *out, *logsumexp, *dq, *dk, *dv, *d_beta, *d_before;
} arrays;

static void
arrays_init(ops_fixture *f, arrays *x, shape *s)
{
  const size_t n_q = s->n_q * row_floats(s->n_head, s->k_dim);
  const size_t n_k = N_TOK * row_floats(s->n_kv_head, s->k_dim);
  const size_t n_v = N_TOK * row_floats(s->n_kv_head, s->v_dim);
  const size_t n_out = (size_t)s->n_q * s->n_head * s->v_dim, n_beta = N_TOK * s->n_kv_head;

  *x = (arrays){.q = ops_floats(f, n_q),
                .k = ops_floats(f, n_k),
                .v = ops_floats(f, n_v),
                .beta = ops_floats(f, n_beta),
                .c = ops_floats(f, n_out),
                .out = ops_floats(f, n_out),
                .logsumexp = ops_floats(f, (size_t)s->n_q * s->n_head),
                .dq = ops_floats(f, (size_t)s->n_q * s->n_head * s->k_dim),
                .dk = ops_floats(f, (size_t)N_TOK * s->n_kv_head * s->k_dim),
                .dv = ops_floats(f, (size_t)N_TOK * s->n_kv_head * s->v_dim),
                .d_beta = ops_floats(f, n_beta)};
  x->d_before = ops_floats(f, n_beta);
  memcpy(x->d_before, x->d_beta, n_beta * sizeof(float));
  for (size_t i = 0; i < n_beta; i++)
    x->beta[i] = i % 7 == 0 ? 0.0F : -0.2F * (1.0F + x->beta[i]);
  for (size_t i = 0; i < n_q; i++)
    x->q[i] *= 3.0F;
  s->q = ops_doubles(f, x->q, n_q);
  s->k = ops_doubles(f, x->k, n_k);
  s->v = ops_doubles(f, x->v, n_v);
  s->beta = ops_doubles(f, x->beta, n_beta);
  s->c = ops_doubles(f, x->c, n_out);
}

static void
arrays_done(arrays *x, shape *s)
{
  float *floats[] = {x->q,         x->k,  x->v,  x->beta, x->c,      x->out,
                     x->logsumexp, x->dq, x->dk, x->dv,   x->d_beta, x->d_before};
  double *doubles[] = {s->q, s->k, s->v, s->beta, s->c};

  for (size_t i = 0; i < sizeof(floats) / sizeof(floats[0]); i++)
    ks_mem_free(floats[i]);
  for (size_t i = 0; i < sizeof(doubles) / sizeof(doubles[0]); i++)
    ks_mem_free(doubles[i]);
}

static ks_op_attn_bias
op_of(const arrays *x, const shape *s)
{
  return (ks_op_attn_bias){.q = ops_dptr(x->q),
                           .k = ops_dptr(x->k),
                           .v = ops_dptr(x->v),
                           .log_beta = s->biased ? ops_dptr(x->beta) : 0,
                           .out = ops_dptr(x->out),
                           .logsumexp = ops_dptr(x->logsumexp),
                           .at = ops_dptr(s->at),
                           .first = ops_dptr(s->first),
                           .last = ops_dptr(s->last),
                           .n_q = s->n_q,
                           .n_tok = N_TOK,
                           .n_head = s->n_head,
                           .n_kv_head = s->n_kv_head,
                           .k_dim = s->k_dim,
                           .v_dim = s->v_dim,
                           .q_stride = row_floats(s->n_head, s->k_dim),
                           .k_stride = row_floats(s->n_kv_head, s->k_dim),
                           .v_stride = row_floats(s->n_kv_head, s->v_dim),
                           .scale = (float)SCALE};
}

static void
check_forward(const arrays *x, const shape *s)
{
  for (uint32_t i = 0; i < s->n_q; i++)
    for (uint32_t head = 0; head < s->n_head; head++) {
      const size_t row = (size_t)i * s->n_head + head;
      double out[16], logsumexp;

      (void)attend_reference(s, i, head, out, &logsumexp);
      if (s->first[i] > s->last[i])
        KS_ASSERT(x->logsumexp[row] == -INFINITY);
      else
        KS_ASSERT_NEAR(x->logsumexp[row], logsumexp, 2e-6 * (1 + fabs(logsumexp)));
      for (uint32_t d = 0; d < s->v_dim; d++)
        KS_ASSERT_NEAR(x->out[row * s->v_dim + d], out[d], 3e-6);
    }
}

/* Slopes of rows with gaps against dense gradients; every stride-th number. */
static void
check_rows(const char *name, const shape *s, double *x, const float *got, size_t n_row,
           size_t n_col, size_t stride)
{
  for (size_t i = 0; i < n_row * n_col; i += stride)
    ops_check_slopes(name, attend_loss, s, x + i / n_col * (n_col + GAP) + i % n_col, got + i, NULL,
                     1, 1, 5e-6);
}

/* The slopes are taken with one thread only: with more the bits must be the same. */
static uint64_t
run(ops_fixture *f, shape *s)
{
  const size_t n_beta = (size_t)N_TOK * s->n_kv_head;
  arrays x;
  ks_op_attn_bias_back back;
  uint64_t digest;

  arrays_init(f, &x, s);
  back = (ks_op_attn_bias_back){.forward = op_of(&x, s),
                                .d_out = ops_dptr(x.c),
                                .dq = ops_dptr(x.dq),
                                .dk = ops_dptr(x.dk),
                                .dv = ops_dptr(x.dv),
                                .d_log_beta = s->biased ? ops_dptr(x.d_beta) : 0};
  ops_attn_bias(f, &back.forward);
  check_forward(&x, s);
  ops_attn_bias_back(f, &back);
  if (ks_threads_get_n(f->threads) == 1) {
    check_rows("dq", s, s->q, x.dq, s->n_q, (size_t)s->n_head * s->k_dim, 67);
    check_rows("dk", s, s->k, x.dk, N_TOK, (size_t)s->n_kv_head * s->k_dim, 37);
    check_rows("dv", s, s->v, x.dv, N_TOK, (size_t)s->n_kv_head * s->v_dim, 41);
    ops_check_slopes("d_log_beta", attend_loss, s, s->beta, x.d_beta, x.d_before, n_beta,
                     s->biased ? 5 : n_beta, 3e-5);
  }
  digest = ops_digest(OPS_DIGEST_BEGIN, x.out, (size_t)s->n_q * s->n_head * s->v_dim);
  digest = ops_digest(digest, x.dq, (size_t)s->n_q * s->n_head * s->k_dim);
  digest = ops_digest(digest, x.dk, (size_t)N_TOK * s->n_kv_head * s->k_dim);
  digest = ops_digest(digest, x.dv, (size_t)N_TOK * s->n_kv_head * s->v_dim);
  digest = ops_digest(digest, x.d_beta, n_beta);
  arrays_done(&x, s);
  return digest;
}

/* Every token is a query that sees all before it. */
static shape
causal(uint32_t n_head, uint32_t n_kv_head, uint32_t k_dim, uint32_t v_dim)
{
  shape s = {.n_q = N_TOK,
             .n_head = n_head,
             .n_kv_head = n_kv_head,
             .k_dim = k_dim,
             .v_dim = v_dim,
             .biased = true};

  for (uint32_t i = 0; i < N_TOK; i++)
    s.at[i] = s.last[i] = i;
  return s;
}

static uint64_t
causal_body(ops_fixture *f)
{
  shape s = causal(6, 2, 5, 9);

  return run(f, &s);
}

KS_TEST(train_attention, causal_with_groups)
{
  ops_for_all_alike(causal_body);
}

/* The teacher: no bias, and nothing is added to the gradient that nobody asked for. */
static uint64_t
plain_body(ops_fixture *f)
{
  shape s = causal(2, 2, 16, 16);

  s.biased = false;
  return run(f, &s);
}

KS_TEST(train_attention, without_bias)
{
  ops_for_all_alike(plain_body);
}

/* Two documents, a window of 40 in them, every third token a query; the last query sees nothing. */
static uint64_t
sampled_body(ops_fixture *f)
{
  shape s = causal(4, 2, 8, 8);

  s.n_q = N_TOK / 3;
  for (uint32_t i = 0; i < s.n_q; i++) {
    const uint32_t t = 3 * i + 2, document = t < 77 ? 0 : 77;

    s.at[i] = s.last[i] = t;
    s.first[i] = t >= document + 40 ? t - 39 : document;
  }
  s.first[s.n_q - 1] = N_TOK;
  return run(f, &s);
}

KS_TEST(train_attention, documents_windows_samples)
{
  ops_for_all_alike(sampled_body);
}

/* Tokens 50 .. 89 are a picture whose tokens see each other: what lies ahead has age 0. */
static uint64_t
ahead_body(ops_fixture *f)
{
  shape s = causal(3, 1, 4, 7);

  for (uint32_t i = 50; i < 90; i++)
    s.last[i] = 89;
  return run(f, &s);
}

KS_TEST(train_attention, pictures_see_ahead)
{
  ops_for_all_alike(ahead_body);
}

/* Gradients that are not wanted change nothing of those that are. */
static void
wanted_body(ops_fixture *f)
{
  shape s = causal(4, 2, 5, 5);
  const size_t n_beta = (size_t)N_TOK * s.n_kv_head;
  ks_op_attn_bias_back back;
  arrays x;

  arrays_init(f, &x, &s);
  back = (ks_op_attn_bias_back){
      .forward = op_of(&x, &s), .d_out = ops_dptr(x.c), .d_log_beta = ops_dptr(x.d_beta)};
  back.forward.first = back.forward.last = back.forward.at = 0; /* the same, by default */
  ops_attn_bias(f, &back.forward);
  check_forward(&x, &s);
  ops_attn_bias_back(f, &back);
  back.d_log_beta = ops_dptr(x.d_before);
  back.dq = ops_dptr(x.dq);
  back.dk = ops_dptr(x.dk);
  back.dv = ops_dptr(x.dv);
  ops_attn_bias_back(f, &back);
  KS_ASSERT(memcmp(x.d_beta, x.d_before, n_beta * sizeof(float)) == 0);
  arrays_done(&x, &s);
}

KS_TEST(train_attention, only_what_is_wanted)
{
  ops_for_all(wanted_body);
}

/* The worked numbers of docs/method.md: weights of three keys at t = 2. */
static void
worked_body(ops_fixture *f)
{
  const float q = 1, k[3] = {0.2F, 1.0F, -0.5F};
  const float beta[3] = {logf(0.9F), logf(0.5F), logf(0.8F)};
  static const double want[3] = {0.334800, 0.459945, 0.205255};

  for (size_t j = 0; j < 3; j++) {
    const float v[3] = {j == 0, j == 1, j == 2};
    const uint32_t at = 2;
    float out = 0;
    ks_op_attn_bias op = {.q = ops_dptr(&q),
                          .k = ops_dptr(k),
                          .v = ops_dptr(v),
                          .log_beta = ops_dptr(beta),
                          .out = ops_dptr(&out),
                          .at = ops_dptr(&at),
                          .n_q = 1,
                          .n_tok = 3,
                          .n_head = 1,
                          .n_kv_head = 1,
                          .k_dim = 1,
                          .v_dim = 1,
                          .scale = 1};

    ops_attn_bias(f, &op);
    KS_ASSERT_NEAR(out, want[j], 1e-6);
  }
}

KS_TEST(train_attention, worked_example)
{
  ops_for_all(worked_body);
}

KS_TEST_MAIN
