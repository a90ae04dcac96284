/* test-train-rows.c - gradients of norms and activations, losses between logits and rows.
 * The promise: each gradient is the slope of the forward direction as written in double, within f32
 * rounding, for every instruction set, odd widths and strides, in place or not; the same bits for
 * any number of threads. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ops/ops-slope.h"

OPS_DEFINE_PLAIN(fill)
OPS_DEFINE_PLAIN(norm_back)
OPS_DEFINE_PLAIN(act_mul_back)
OPS_DEFINE_PLAIN(logit_loss)
OPS_DEFINE_PLAIN(square_loss)

#define N_ROW 3u

/* What a loss in double looks at; each test sets what it needs. */
typedef struct inputs {
  double *x, *w, *b, *c; /* c: the factor of each output in the loss */
  size_t n;
  double eps, cap;
  ks_act act;
  const int32_t *target;
} inputs;

/* --- norm --- */

static double
norm_loss(const void *user)
{
  const inputs *in = user;
  double loss = 0;

  for (size_t r = 0; r < N_ROW; r++) {
    double square = 0;

    for (size_t j = 0; j < in->n; j++)
      square += in->x[r * in->n + j] * in->x[r * in->n + j];
    for (size_t j = 0; j < in->n; j++)
      loss += in->c[r * in->n + j] * in->x[r * in->n + j] * (in->w != NULL ? in->w[j] : 1) /
              sqrt(square / (double)in->n + in->eps);
  }
  return loss;
}

static uint64_t
norm_variant(ops_fixture *f, uint32_t n, bool weighted, bool add, bool in_place, uint64_t digest)
{
  float *x = ops_floats(f, N_ROW * n), *w = ops_floats(f, n), *dy = ops_floats(f, N_ROW * n);
  float *dx = ops_floats(f, N_ROW * n), *before = ops_floats(f, N_ROW * n);
  inputs in = {.n = n, .eps = 0.01, .x = ops_doubles(f, x, N_ROW * n)};
  ks_op_norm_back op = {.x = ops_dptr(x),
                        .dy = ops_dptr(dy),
                        .dx = ops_dptr(in_place ? dy : dx),
                        .w = weighted ? ops_dptr(w) : 0,
                        .n_row = N_ROW,
                        .n_col = n,
                        .eps = 0.01F,
                        .accumulate = add};

  in.w = weighted ? ops_doubles(f, w, n) : NULL;
  in.c = ops_doubles(f, dy, N_ROW * n);
  memcpy(before, dx, N_ROW * n * sizeof(*dx));
  ops_norm_back(f, &op);
  ops_check_slopes("dx", norm_loss, &in, in.x, in_place ? dy : dx, add ? before : NULL, N_ROW * n,
                   1, 2e-6);
  digest = ops_digest(digest, in_place ? dy : dx, N_ROW * n);
  ks_mem_free(x);
  ks_mem_free(w);
  ks_mem_free(dy);
  ks_mem_free(dx);
  ks_mem_free(before);
  ks_mem_free(in.x);
  ks_mem_free(in.w);
  ks_mem_free(in.c);
  return digest;
}

static uint64_t
norm_body(ops_fixture *f)
{
  static const uint32_t widths[] = {1, 7, 16, 37};
  uint64_t digest = OPS_DIGEST_BEGIN;

  for (size_t i = 0; i < 4; i++) {
    digest = norm_variant(f, widths[i], true, false, false, digest);
    digest = norm_variant(f, widths[i], false, true, false, digest);
    digest = norm_variant(f, widths[i], true, false, true, digest);
  }
  return digest;
}

/* With and without weights, added to what is there, and over dy itself. */
KS_TEST(train_rows, norm_back)
{
  ops_for_all_alike(norm_body);
}

/* Rows that lie apart are found, and nothing between them is touched. */
static void
strides_body(ops_fixture *f)
{
  enum { n = 19, apart = 23 };
  float *x = ops_floats(f, N_ROW * apart), *dy = ops_floats(f, N_ROW * apart);
  float *wide = ops_floats(f, N_ROW * apart), *dense = ops_floats(f, N_ROW * n);
  float kept[N_ROW * apart];
  ks_op_norm_back op = {.x = ops_dptr(x),
                        .dy = ops_dptr(dy),
                        .dx = ops_dptr(wide),
                        .n_row = N_ROW,
                        .n_col = n,
                        .x_stride = apart,
                        .dy_stride = apart,
                        .dx_stride = apart,
                        .eps = 1e-5F};

  memcpy(kept, wide, sizeof(kept));
  ops_norm_back(f, &op);
  for (size_t r = 0; r < N_ROW; r++) { /* the same rows, dense */
    memmove(x + r * n, x + r * apart, n * sizeof(*x));
    memmove(dy + r * n, dy + r * apart, n * sizeof(*dy));
  }
  op.x_stride = op.dy_stride = op.dx_stride = 0;
  op.dx = ops_dptr(dense);
  ops_norm_back(f, &op);
  for (size_t r = 0; r < N_ROW; r++) {
    KS_ASSERT(memcmp(wide + r * apart, dense + r * n, n * sizeof(*dense)) == 0);
    KS_ASSERT(memcmp(wide + r * apart + n, kept + r * apart + n, (apart - n) * sizeof(*kept)) == 0);
  }
  ks_mem_free(x);
  ks_mem_free(dy);
  ks_mem_free(wide);
  ks_mem_free(dense);
}

KS_TEST(train_rows, norm_back_strides)
{
  ops_for_all(strides_body);
}

/* --- activations --- */

static double
act_reference(ks_act act, double z)
{
  switch (act) {
  case KS_ACT_NONE:
    return z;
  case KS_ACT_SILU:
    return z / (1 + exp(-z));
  case KS_ACT_GELU_TANH:
    return 0.5 * z * (1 + tanh(0.7978845608028654 * (z + 0.044715 * z * z * z)));
  case KS_ACT_GELU_ERF:
    return 0.5 * z * (1 + erf(z * 0.7071067811865476));
  case KS_ACT_GELU_QUICK:
    return z / (1 + exp(-1.702 * z));
  case KS_ACT_RELU6:
    return z < 0 ? 0 : z > 6 ? 6 : z;
  }
  return 0;
}

static double
act_loss(const void *user)
{
  const inputs *in = user;
  double loss = 0;

  for (size_t i = 0; i < N_ROW * in->n; i++)
    loss += in->c[i] * act_reference(in->act, in->x[i]) * (in->b != NULL ? in->b[i] : 1);
  return loss;
}

/* In place: da over a, db over b. */
static uint64_t
act_variant(ops_fixture *f, ks_act act, bool gated, uint64_t digest)
{
  enum { n = 21, apart = 24 };
  float *a = ops_floats(f, N_ROW * apart), *b = ops_floats(f, N_ROW * n);
  float *dy = ops_floats(f, N_ROW * n), packed[N_ROW * n];
  inputs in = {.n = n, .act = act, .c = ops_doubles(f, dy, N_ROW * n)};
  ks_op_act_mul_back op = {.a = ops_dptr(a),
                           .b = gated ? ops_dptr(b) : 0,
                           .dy = ops_dptr(dy),
                           .da = ops_dptr(a),
                           .db = gated ? ops_dptr(b) : 0,
                           .n_row = N_ROW,
                           .n_col = n,
                           .a_stride = apart,
                           .da_stride = apart,
                           .act = act};

  for (size_t i = 0; i < N_ROW * apart; i++)
    a[i] *= 8.0F;
  for (size_t i = 0; i < N_ROW * n; i++)
    packed[i] = a[i / n * apart + i % n];
  in.x = ops_doubles(f, packed, N_ROW * n);
  in.b = gated ? ops_doubles(f, b, N_ROW * n) : NULL;
  ops_act_mul_back(f, &op);
  for (size_t i = 0; i < N_ROW * n; i++)
    packed[i] = a[i / n * apart + i % n];
  ops_check_slopes("da", act_loss, &in, in.x, packed, NULL, N_ROW * n, 1, 3e-6);
  if (gated)
    ops_check_slopes("db", act_loss, &in, in.b, b, NULL, N_ROW * n, 1, 3e-6);
  digest = ops_digest(digest, packed, N_ROW * n);
  ks_mem_free(a);
  ks_mem_free(b);
  ks_mem_free(dy);
  ks_mem_free(in.x);
  ks_mem_free(in.b);
  ks_mem_free(in.c);
  return digest;
}

static uint64_t
act_body(ops_fixture *f)
{
  uint64_t digest = OPS_DIGEST_BEGIN;

  for (int act = KS_ACT_NONE; act <= (int)KS_ACT_RELU6; act++) {
    digest = act_variant(f, (ks_act)act, true, digest);
    digest = act_variant(f, (ks_act)act, false, digest);
  }
  return digest;
}

/* Every activation, alone and gating. */
KS_TEST(train_rows, act_mul_back)
{
  ops_for_all_alike(act_body);
}

/* Far out the slopes are those of 0 and of x itself, not NaN. */
static void
far_body(ops_fixture *f)
{
  static const ks_act acts[] = {KS_ACT_SILU, KS_ACT_GELU_TANH, KS_ACT_GELU_QUICK, KS_ACT_GELU_ERF};
  float a[4] = {-300.0F, 300.0F, -90.0F, 90.0F}, dy[4] = {1, 1, 1, 1}, da[4];

  for (size_t i = 0; i < 4; i++) {
    ks_op_act_mul_back op = {.a = ops_dptr(a),
                             .dy = ops_dptr(dy),
                             .da = ops_dptr(da),
                             .n_row = 1,
                             .n_col = 4,
                             .act = acts[i]};

    ops_act_mul_back(f, &op);
    for (size_t j = 0; j < 4; j++)
      KS_ASSERT_NEAR(da[j], j % 2, 1e-6);
  }
}

KS_TEST(train_rows, act_slopes_far_out)
{
  ops_for_all(far_body);
}

/* --- losses between logits --- */

#define N_VOCAB 43u

static double
capped(double z, double cap)
{
  return cap > 0 ? cap * tanh(z / cap) : z;
}

static double
logsumexp_reference(const double *z, double cap)
{
  double sum = 0;

  for (size_t i = 0; i < N_VOCAB; i++)
    sum += exp(capped(z[i], cap));
  return log(sum);
}

/* KL and cross-entropy of row r. */
static void
losses_reference(const inputs *in, size_t r, double *kl, double *ce)
{
  const double *p = in->b != NULL ? in->b + r * N_VOCAB : NULL, *q = in->x + r * N_VOCAB;
  const double sum_q = logsumexp_reference(q, in->cap);
  const double sum_p = p != NULL ? logsumexp_reference(p, in->cap) : 0;

  *kl = 0;
  for (size_t i = 0; i < N_VOCAB && p != NULL; i++) {
    const double log_p = capped(p[i], in->cap) - sum_p;

    *kl += exp(log_p) * (log_p - (capped(q[i], in->cap) - sum_q));
  }
  *ce = in->target[r] >= 0 ? sum_q - capped(q[in->target[r]], in->cap) : 0;
}

/* c holds the weights: N_ROW of KL, then N_ROW of the cross-entropy. */
static double
logit_total(const void *user)
{
  const inputs *in = user;
  double loss = 0;

  for (size_t r = 0; r < N_ROW; r++) {
    double kl, ce;

    losses_reference(in, r, &kl, &ce);
    loss += in->c[r] * kl + in->c[N_ROW + r] * ce;
  }
  return loss;
}

static uint64_t
logit_variant(ops_fixture *f, bool teacher, float cap, uint64_t digest)
{
  static const int32_t target[N_ROW] = {5, -1, N_VOCAB - 1};
  static const float weights[2 * N_ROW] = {0.5F, 0.75F, 0.0F, 1.5F, 2.0F, 0.25F};
  float *p = ops_floats(f, N_ROW * N_VOCAB), *q = ops_floats(f, N_ROW * N_VOCAB);
  float kl[N_ROW], ce[N_ROW];
  inputs in = {.target = target, .cap = (double)cap, .c = ops_doubles(f, weights, 2 * N_ROW)};
  ks_op_logit_loss op = {.p = teacher ? ops_dptr(p) : 0,
                         .q = ops_dptr(q),
                         .dq = ops_dptr(q),
                         .target = ops_dptr(target),
                         .w_kl = ops_dptr(weights),
                         .w_ce = ops_dptr(weights + N_ROW),
                         .kl = ops_dptr(kl),
                         .ce = ops_dptr(ce),
                         .n_row = N_ROW,
                         .n_vocab = N_VOCAB,
                         .cap = cap};

  for (size_t i = 0; i < N_ROW * N_VOCAB; i++) {
    p[i] *= 6.0F;
    q[i] *= 6.0F;
  }
  in.x = ops_doubles(f, q, N_ROW * N_VOCAB);
  in.b = teacher ? ops_doubles(f, p, N_ROW * N_VOCAB) : NULL;
  ops_logit_loss(f, &op);
  ops_check_slopes("dq", logit_total, &in, in.x, q, NULL, N_ROW * N_VOCAB, 1, 2e-6);
  for (size_t r = 0; r < N_ROW; r++) {
    double want_kl, want_ce;

    losses_reference(&in, r, &want_kl, &want_ce);
    KS_ASSERT_NEAR(kl[r], want_kl, 1e-5);
    KS_ASSERT_NEAR(ce[r], want_ce, 1e-5);
  }
  digest = ops_digest(digest, q, N_ROW * N_VOCAB);
  ks_mem_free(p);
  ks_mem_free(q);
  ks_mem_free(in.x);
  ks_mem_free(in.b);
  ks_mem_free(in.c);
  return digest;
}

static uint64_t
logit_body(ops_fixture *f)
{
  uint64_t digest = logit_variant(f, true, 0.0F, OPS_DIGEST_BEGIN);

  digest = logit_variant(f, true, 5.0F, digest);
  return logit_variant(f, false, 0.0F, digest);
}

/* With a teacher, with a soft cap, and the cross-entropy alone; a row without a next token. */
KS_TEST(train_rows, logit_loss)
{
  ops_for_all_alike(logit_body);
}

/* Equal logits: no distance, and no slope but that of the cross-entropy. */
static void
equal_body(ops_fixture *f)
{
  float *p = ops_floats(f, N_VOCAB), *q = ops_floats(f, N_VOCAB), *dq = ops_floats(f, N_VOCAB);
  const int32_t target = 7;
  const float weight = 1.0F;
  float kl = 1;
  ks_op_logit_loss op = {.p = ops_dptr(p),
                         .q = ops_dptr(q),
                         .dq = ops_dptr(dq),
                         .target = ops_dptr(&target),
                         .w_kl = ops_dptr(&weight),
                         .kl = ops_dptr(&kl),
                         .n_row = 1,
                         .n_vocab = N_VOCAB};

  memcpy(q, p, N_VOCAB * sizeof(*q));
  ops_logit_loss(f, &op);
  KS_ASSERT_NEAR(kl, 0, 1e-6);
  for (size_t i = 0; i < N_VOCAB; i++)
    KS_ASSERT_NEAR(dq[i], 0, 1e-7);
  ks_mem_free(p);
  ks_mem_free(q);
  ks_mem_free(dq);
}

KS_TEST(train_rows, equal_logits_have_no_distance)
{
  ops_for_all(equal_body);
}

/* --- distance over energy --- */

/* b: the other array, w: the reference rows, c: weights of the rows. */
static double
square_reference(const void *user)
{
  const inputs *in = user;
  double loss = 0;

  for (size_t r = 0; r < N_ROW; r++) {
    double distance = 0, energy = 0;

    for (size_t i = r * in->n; i < (r + 1) * in->n; i++) {
      distance += (in->x[i] - in->b[i]) * (in->x[i] - in->b[i]);
      energy += in->w[i] * in->w[i];
    }
    loss += in->c[r] * (energy > 0 ? distance / energy : 0);
  }
  return loss;
}

static uint64_t
square_body(ops_fixture *f)
{
  enum { n = 29 };
  static const float ones[N_ROW] = {1, 1, 1};
  float *a = ops_floats(f, N_ROW * n), *b = ops_floats(f, N_ROW * n);
  float *ref = ops_floats(f, N_ROW * n), *weight = ops_floats(f, N_ROW), loss[N_ROW] = {1, 2, 3};
  double total = 0;
  uint64_t digest;
  inputs in = {.n = n, .x = ops_doubles(f, a, N_ROW * n), .b = ops_doubles(f, b, N_ROW * n)};
  ks_op_square_loss op = {.a = ops_dptr(a),
                          .b = ops_dptr(b),
                          .ref = ops_dptr(ref),
                          .weight = ops_dptr(weight),
                          .loss = ops_dptr(loss),
                          .da = ops_dptr(a),
                          .n_row = N_ROW,
                          .n_col = n};

  memset(ref + 2 * n, 0, n * sizeof(*ref)); /* the last row has no energy */
  in.w = ops_doubles(f, ref, N_ROW * n);
  in.c = ops_doubles(f, weight, N_ROW);
  ops_square_loss(f, &op);
  ops_check_slopes("da", square_reference, &in, in.x, a, NULL, N_ROW * n, 1, 2e-6);
  digest = ops_digest(OPS_DIGEST_BEGIN, a, N_ROW * n);
  ks_mem_free(in.c);
  in.c = ops_doubles(f, ones, N_ROW); /* the losses themselves have no weights */
  for (size_t r = 0; r < N_ROW; r++)
    total += (double)loss[r];
  KS_ASSERT_NEAR(total, 6 + square_reference(&in), 1e-5);
  KS_ASSERT(loss[2] == 3);
  ks_mem_free(a);
  ks_mem_free(b);
  ks_mem_free(ref);
  ks_mem_free(weight);
  ks_mem_free(in.x);
  ks_mem_free(in.b);
  ks_mem_free(in.w);
  ks_mem_free(in.c);
  return digest;
}

KS_TEST(train_rows, square_loss)
{
  ops_for_all_alike(square_body);
}

static void
fill_body(ops_fixture *f)
{
  float *x = ops_floats(f, 101);
  ks_op_fill op = {.x = ops_dptr(x), .n_elem = 100, .value = 2.5F};
  const float last = x[100];

  ops_fill(f, &op);
  for (size_t i = 0; i < 100; i++)
    KS_ASSERT(x[i] == 2.5F);
  KS_ASSERT(x[100] == last);
  ks_mem_free(x);
}

/* All of it, and nothing behind it. */
KS_TEST(train_rows, fill)
{
  ops_for_all(fill_body);
}

KS_TEST_MAIN
