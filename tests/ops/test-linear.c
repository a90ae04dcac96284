/* test-linear.c - ks_cpu_linear for every weight type, epilogue and instruction set.
 * The promise: whatever the shape, the strides and the address of the weights, every instruction
 * set gives the product of the dequantised weight with x as computed in double, within f32
 * rounding. Sets this processor lacks run emulated where the build has an emulation
 * (KS_EMULATED_AVX512). */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-matmul-internal.h"
#include "engine/quant.h"
#include "tests/ks-test.h"

#define N_MEMBER 2u

static const ks_dtype all_types[] = {KS_DTYPE_F32,  KS_DTYPE_F16,    KS_DTYPE_BF16,  KS_DTYPE_Q4_0,
                                     KS_DTYPE_Q4_1, KS_DTYPE_Q5_0,   KS_DTYPE_Q5_1,  KS_DTYPE_Q8_0,
                                     KS_DTYPE_Q2_K, KS_DTYPE_Q3_K,   KS_DTYPE_Q4_K,  KS_DTYPE_Q5_K,
                                     KS_DTYPE_Q6_K, KS_DTYPE_IQ4_NL, KS_DTYPE_IQ4_XS};
#define N_TYPE (sizeof(all_types) / sizeof(all_types[0]))

/* One matrix with its values in double, at an odd address, as a file may have it. */
typedef struct matrix {
  unsigned char *bytes; /* the weight begins at bytes + 1 */
  double *values;
  ks_weight w;
} matrix;

typedef struct bench {
  ks_alloc *a;
  ks_threads *threads;
  uint64_t seed;
} bench;

static float
next_random(bench *b) /* -1 .. 1 */
{
  b->seed = b->seed * 6364136223846793005u + 1442695040888963407u;
  return (float)((double)(b->seed >> 40) / (1u << 23) - 1);
}

static void
bench_init(bench *b)
{
  *b = (bench){.a = ks_alloc_new(), .seed = 42};
  KS_ASSERT_OK(ks_threads_new(b->a, N_MEMBER, &b->threads, NULL));
}

static void
bench_done(bench *b)
{
  ks_threads_free(b->threads);
  ks_alloc_free(b->a);
}

/* Where a block has its half-precision scales: random bits there would be infinite or enormous. */
static void
mend_scales(bench *b, ks_dtype dtype, unsigned char *block)
{
  static const struct {
    ks_dtype dtype;
    int first, second;
  } at[] = {{KS_DTYPE_Q2_K, 80, 82}, {KS_DTYPE_Q3_K, 108, -1}, {KS_DTYPE_Q4_K, 0, 2},
            {KS_DTYPE_Q5_K, 0, 2},   {KS_DTYPE_Q6_K, 208, -1}, {KS_DTYPE_IQ4_NL, 0, -1},
            {KS_DTYPE_IQ4_XS, 0, -1}};

  for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
    uint16_t d = ks_f16_from_f32(0.01f + 0.005f * next_random(b));

    if (at[i].dtype != dtype)
      continue;
    memcpy(block + at[i].first, &d, 2);
    if (at[i].second >= 0)
      memcpy(block + at[i].second, &d, 2);
  }
}

static matrix
matrix_new(bench *b, ks_dtype dtype, uint32_t n_in, uint32_t n_out)
{
  const ks_dtype_info *info = ks_dtype_get_info(dtype);
  size_t row_bytes, n = (size_t)n_in * n_out;
  float *row = ks_mem_new(b->a, KS_MEM_HOST, n_in, sizeof(*row));
  matrix m;

  KS_ASSERT(ks_dtype_row_bytes(dtype, n_in, &row_bytes));
  m.bytes = ks_mem_new(b->a, KS_MEM_HOST, row_bytes * n_out + 1, 1);
  m.values = ks_mem_new(b->a, KS_MEM_HOST, n, sizeof(double));
  for (uint32_t r = 0; r < n_out; r++) {
    unsigned char *at = m.bytes + 1 + r * row_bytes;

    for (uint32_t i = 0; i < n_in; i++)
      row[i] = next_random(b);
    if (!ks_quantise_row(dtype, row, at, n_in))
      for (size_t i = 0; i < row_bytes; i++)
        at[i] = (unsigned char)(next_random(b) * 127 + 128);
    for (size_t i = 0; i < row_bytes; i += info->block_bytes)
      mend_scales(b, dtype, at + i);
    ks_dequantise_row(dtype, at, row, n_in);
    for (uint32_t i = 0; i < n_in; i++)
      m.values[(size_t)r * n_in + i] = row[i];
  }
  ks_mem_free(row);
  m.w = (ks_weight){(ks_dptr)(uintptr_t)(m.bytes + 1), dtype, n_in, n_out, row_bytes, 0};
  return m;
}

static void
matrix_free(matrix *m)
{
  ks_mem_free(m->bytes);
  ks_mem_free(m->values);
}

static float *
random_floats(bench *b, size_t n)
{
  float *v = ks_mem_new(b->a, KS_MEM_HOST, n, sizeof(*v));

  for (size_t i = 0; i < n; i++)
    v[i] = next_random(b);
  return v;
}

static ks_dptr
dptr(const void *p)
{
  return (ks_dptr)(uintptr_t)p;
}

static double
exact_act(ks_act act, double z)
{
  switch (act) {
  case KS_ACT_NONE:
    return z;
  case KS_ACT_SILU:
    return z / (1 + exp(-z));
  case KS_ACT_GELU_TANH:
    return 0.5 * z * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (z + 0.044715 * z * z * z)));
  case KS_ACT_GELU_ERF:
    return 0.5 * z * (1 + erf(z / sqrt(2)));
  case KS_ACT_GELU_QUICK:
    return z / (1 + exp(-1.702 * z));
  case KS_ACT_RELU6:
    return z < 0 ? 0 : z > 6 ? 6 : z;
  }
  return 0;
}

/* w[row] x[t] + bias[row] in double, and the sum of the magnitudes: the scale of rounding errors.
 */
static double
exact_product(const matrix *m, const ks_op_linear *op, uint32_t i, uint32_t t, uint32_t row,
              double *magnitude)
{
  size_t stride = op->x_stride != 0 ? op->x_stride : m->w.n_in;
  const float *x = (const float *)ks_cpu_ptr(op->x) + t * stride;
  const float *bias = ks_cpu_ptr(op->bias[i]);
  double sum = bias != NULL ? (double)bias[row] : 0;

  *magnitude = fabs(sum);
  for (uint32_t k = 0; k < m->w.n_in; k++) {
    double p = m->values[(size_t)row * m->w.n_in + k] * (double)x[k];

    sum += p;
    *magnitude += fabs(p);
  }
  return sum;
}

static double
exact_output(const matrix *m, const ks_op_linear *op, uint32_t i, uint32_t t, uint32_t row,
             double before, double *magnitude)
{
  double z = exact_product(&m[i], op, i, t, row, magnitude), more;

  switch (op->epilogue) {
  case KS_EPI_STORE:
    return exact_act(op->act, z);
  case KS_EPI_ADD:
    *magnitude += fabs(before);
    return before + z;
  case KS_EPI_ACT_MUL:
    z = exact_act(op->act, z) * exact_product(&m[1], op, 1, t, row, &more);
    *magnitude = *magnitude * more + 1;
    return z;
  case KS_EPI_SOFTCAP:
    return (double)op->cap * tanh(z / (double)op->cap);
  }
  return 0;
}

typedef struct run_args {
  const ks_cpu_ctx *ctx;
  const ks_op_linear *op;
} run_args;

static void
run_one(void *user, uint32_t member, uint32_t n_member)
{
  const run_args *args = user;

  ks_cpu_linear(args->ctx, args->op, member, n_member);
}

/* Runs op with one set of kernels and compares y[i] (which held before[i]) with the reference. */
static void
check(bench *b, const ks_cpu_matmul_fns *fns, const char *isa, const matrix *m,
      const ks_op_linear *op, const float *const before[3])
{
  uint32_t ticket = 0, n_list = op->epilogue == KS_EPI_ACT_MUL ? 1 : op->n_w;
  ks_cpu_ctx ctx = {.threads = b->threads, .matmul = fns, .ticket = &ticket};
  ks_cpu_need need = {0};
  run_args args = {&ctx, op};

  ks_cpu_linear_need(&ctx, op, &need);
  ctx.scratch_bytes = (need.member_bytes + 63) / 64 * 64;
  ctx.scratch = ks_mem_new(b->a, KS_MEM_SCRATCH, N_MEMBER, ctx.scratch_bytes);
  memset(ctx.scratch, 0xff, N_MEMBER * ctx.scratch_bytes); /* what is read must be written first */
  ks_threads_run(b->threads, run_one, &args);
  ks_mem_free(ctx.scratch);
  for (uint32_t i = 0; i < n_list; i++)
    for (uint32_t t = 0; t < op->n_tok; t++)
      for (uint32_t r = 0; r < op->w[i].n_out; r++) {
        size_t at = t * (op->y_stride[i] != 0 ? op->y_stride[i] : op->w[i].n_out) + r;
        double magnitude, want = exact_output(m, op, i, t, r, (double)before[i][at], &magnitude);
        double got = (double)((const float *)ks_cpu_ptr(op->y[i]))[at];

        if (!(fabs(got - want) <= 2e-6 * magnitude + 1e-6))
          KS_FAIL("%s %s %ux%u tok %u epilogue %d act %d: y[%u][%u][%u] = %.9g, want %.9g", isa,
                  ks_dtype_get_info(op->w[0].dtype)->name, op->w[0].n_in, op->w[0].n_out, op->n_tok,
                  (int)op->epilogue, (int)op->act, i, t, r, got, want);
      }
}

#ifdef KS_EMULATED_AVX512
extern const ks_cpu_matmul_fns ks_cpu_matmul_avx512_emulated;
#endif

/* The sets of kernels that can run here. */
static size_t
list_fns(const ks_cpu_matmul_fns *fns[4], const char *names[4])
{
  ks_isa best = ks_cpu_detect_isa();
  size_t n = 0;

  fns[n] = ks_cpu_matmul_get(KS_ISA_SCALAR);
  names[n++] = "scalar";
  if (best >= KS_ISA_AVX2) {
    fns[n] = ks_cpu_matmul_get(KS_ISA_AVX2);
    names[n++] = "avx2";
  }
  if (best >= KS_ISA_AVX512) {
    fns[n] = ks_cpu_matmul_get(KS_ISA_AVX512);
    names[n++] = "avx512";
  }
#ifdef KS_EMULATED_AVX512
  if (best >= KS_ISA_AVX2) {
    fns[n] = &ks_cpu_matmul_avx512_emulated;
    names[n++] = "avx512 (emulated)";
  }
#endif
  return n;
}

/* One shape through every set of kernels; pad: strides larger than the rows. */
static void
check_shape(bench *b, ks_op_linear op, const ks_dtype dtypes[3], const uint32_t n_out[3],
            uint32_t n_in, uint32_t n_tok, bool with_bias, size_t pad)
{
  const ks_cpu_matmul_fns *fns[4];
  const char *names[4];
  size_t n_fns = list_fns(fns, names);
  matrix m[3];
  float *x = random_floats(b, (n_in + pad) * (n_tok + 1)), *y[3], *bias[3];
  const float *before[3];

  op.n_tok = n_tok;
  op.x = dptr(x);
  op.x_stride = pad != 0 ? n_in + pad : 0;
  for (uint32_t i = 0; i < op.n_w; i++) {
    size_t n_y = (n_out[i] + pad) * (n_tok + 1);

    m[i] = matrix_new(b, dtypes[i], n_in, n_out[i]);
    op.w[i] = m[i].w;
    bias[i] = random_floats(b, n_out[i]);
    op.bias[i] = with_bias ? dptr(bias[i]) : 0;
    before[i] = random_floats(b, n_y);
    y[i] = random_floats(b, n_y);
    op.y[i] = dptr(y[i]);
    op.y_stride[i] = pad != 0 ? n_out[i] + pad : 0;
  }
  for (size_t f = 0; f < n_fns; f++) {
    for (uint32_t i = 0; i < op.n_w; i++)
      memcpy(y[i], before[i], (n_out[i] + pad) * (n_tok + 1) * sizeof(float));
    check(b, fns[f], names[f], m, &op, before);
    for (uint32_t i = 0; i < op.n_w; i++) /* nothing between or behind the rows was touched */
      for (size_t at = 0; pad != 0 && at < (n_out[i] + pad) * (n_tok + 1); at++)
        if (at % (n_out[i] + pad) >= n_out[i] || at / (n_out[i] + pad) >= n_tok)
          KS_ASSERT(y[i][at] == before[i][at]);
  }
  for (uint32_t i = 0; i < op.n_w; i++) {
    matrix_free(&m[i]);
    ks_mem_free(bias[i]);
    ks_mem_free(y[i]);
    ks_mem_free((void *)(uintptr_t)before[i]);
  }
  ks_mem_free(x);
}

/* Every type, token counts around the limits of the two ways, row counts around those of panels. */
KS_TEST(linear, every_type_and_shape)
{
  static const uint32_t n_toks[] = {0, 1, 2, 3, 4, 5, 17}, n_outs[] = {1, 3, 16, 33};
  bench b;

  bench_init(&b);
  for (size_t i = 0; i < N_TYPE; i++) {
    uint32_t block = ks_dtype_get_info(all_types[i])->block_elems;
    uint32_t n_in = block == 1 ? 75 : block == 32 ? 352 : 512;

    for (size_t t = 0; t < sizeof(n_toks) / sizeof(n_toks[0]); t++)
      for (size_t o = 0; o < sizeof(n_outs) / sizeof(n_outs[0]); o++) {
        ks_op_linear op = {.n_w = 1};

        check_shape(&b, op, &all_types[i], &n_outs[o], n_in, n_toks[t], false, 0);
      }
  }
  bench_done(&b);
}

/* Three weights of different types and heights over one input, as a layer's projections are. */
KS_TEST(linear, three_weights)
{
  static const uint32_t n_out[3] = {70, 18, 33};
  bench b;

  bench_init(&b);
  for (size_t i = 0; i + 3 <= N_TYPE; i++)
    for (uint32_t n_tok = 1; n_tok < 70; n_tok += 63) {
      ks_op_linear op = {.n_w = 3};

      check_shape(&b, op, &all_types[i], n_out, 256, n_tok, true, 5);
    }
  bench_done(&b);
}

KS_TEST(linear, epilogues)
{
  static const ks_dtype dtypes[3] = {KS_DTYPE_Q4_1, KS_DTYPE_Q8_0, KS_DTYPE_F32};
  static const uint32_t n_out[3] = {37, 37, 37};
  bench b;

  bench_init(&b);
  for (uint32_t n_tok = 1; n_tok <= 64; n_tok += 21)
    for (int act = KS_ACT_NONE; act <= KS_ACT_RELU6; act++)
      for (int pad = 0; pad < 4; pad += 3) {
        ks_op_linear op = {.n_w = 1, .act = (ks_act)act};

        check_shape(&b, op, dtypes, n_out, 96, n_tok, true, (size_t)pad);
        op.epilogue = KS_EPI_ACT_MUL;
        op.n_w = 2;
        check_shape(&b, op, dtypes, n_out, 96, n_tok, pad != 0, (size_t)pad);
        op.n_w = 3;
        op.act = KS_ACT_NONE;
        op.epilogue = KS_EPI_ADD;
        check_shape(&b, op, dtypes, n_out, 96, n_tok, pad != 0, (size_t)pad);
        op.epilogue = KS_EPI_SOFTCAP;
        op.cap = 1.5f;
        check_shape(&b, op, dtypes, n_out, 96, n_tok, pad != 0, (size_t)pad);
      }
  bench_done(&b);
}

/* More tokens than one block of products, more columns than one panel, more rows than one unit. */
KS_TEST(linear, several_blocks)
{
  static const uint32_t n_out[3] = {67, 67, 67};
  static const ks_dtype dtypes[3] = {KS_DTYPE_Q4_0, KS_DTYPE_Q6_K, KS_DTYPE_F16};
  bench b;

  bench_init(&b);
  for (size_t i = 0; i < 3; i++) {
    ks_op_linear op = {.n_w = 1};

    check_shape(&b, op, &dtypes[i], n_out, 768, 487, false, 0);
  }
  bench_done(&b);
}

/* Far from zero the vector activations neither overflow nor lose the sign. */
KS_TEST(linear, activations_at_the_ends)
{
  static const float at[] = {-1e30f, -1000, -88.5f, -20, -1e-20f, 0, 1e-20f, 3, 88.5f, 1000, 1e30f};
  const ks_cpu_matmul_fns *fns[4];
  const char *names[4];
  size_t n_fns = list_fns(fns, names);

  for (size_t f = 0; f < n_fns; f++)
    for (int act = KS_ACT_NONE; act <= KS_ACT_RELU6; act++)
      for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        float z[19];

        for (size_t j = 0; j < 19; j++)
          z[j] = at[i];
        if (act != KS_ACT_NONE)
          fns[f]->act_row((ks_act)act, z, 19);
        for (size_t j = 0; j < 19; j++)
          KS_ASSERT_NEAR(z[j], exact_act((ks_act)act, (double)at[i]),
                         1e-6 * fabs((double)at[i]) + 1e-30);
      }
}

KS_TEST_MAIN
