/* test-linear.c - ks_cpu_linear for every weight type, epilogue, mode and instruction set.
 * The promise: whatever the shape, the strides and the address of the weights, repacked or not,
 * every instruction set gives the product of the dequantised weight with x as computed in double,
 * within f32 rounding; in fast mode with x as it is after quantising, wherever the type and the
 * number of tokens call for it.  Sets this processor lacks run emulated where the build has an
 * emulation (KS_EMULATED_AVX512). */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-isa-internal.h"
#include "engine/cpu-linear-internal.h"
#include "engine/cpu-vec-internal.h"
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

/* Puts a value where a block has its half-precision scales. */
static void
put_scales(ks_dtype dtype, unsigned char *block, float value)
{
  static const struct {
    ks_dtype dtype;
    int first, second;
  } at[] = {{KS_DTYPE_Q4_0, 0, -1},   {KS_DTYPE_Q4_1, 0, 2},    {KS_DTYPE_Q5_0, 0, -1},
            {KS_DTYPE_Q5_1, 0, 2},    {KS_DTYPE_Q8_0, 0, -1},   {KS_DTYPE_Q2_K, 80, 82},
            {KS_DTYPE_Q3_K, 108, -1}, {KS_DTYPE_Q4_K, 0, 2},    {KS_DTYPE_Q5_K, 0, 2},
            {KS_DTYPE_Q6_K, 208, -1}, {KS_DTYPE_IQ4_NL, 0, -1}, {KS_DTYPE_IQ4_XS, 0, -1}};
  const uint16_t d = ks_f16_from_f32(value);

  for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
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
    if (!ks_quantise_row(dtype, row, at, n_in)) {
      for (size_t i = 0; i < row_bytes; i++)
        at[i] = (unsigned char)(next_random(b) * 127 + 128);
      /* random bits as scales would be infinite or enormous */
      for (size_t i = 0; i < row_bytes; i += info->block_bytes)
        put_scales(dtype, at + i, 0.01f + 0.005f * next_random(b));
    }
    ks_dequantise_row(dtype, at, row, n_in);
    for (uint32_t i = 0; i < n_in; i++)
      m.values[(size_t)r * n_in + i] = row[i];
  }
  ks_mem_free(row);
  m.w = (ks_weight){.data = (ks_dptr)(uintptr_t)(m.bytes + 1),
                    .dtype = dtype,
                    .n_in = n_in,
                    .n_out = n_out,
                    .row_bytes = row_bytes};
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

/* One set of kernels, and the way it is asked to compute. */
typedef struct kernel_set {
  const char *name;
  const ks_cpu_matmul_fns *matmul;
  const ks_cpu_packed_fns *packed;
  const ks_cpu_bf16_fns *pairs; /* of fast mode; NULL = none */
  const ks_cpu_vec_fns *vec;
  ks_compute_mode mode;
  bool repacked; /* weights that have a packed form come in it */
} kernel_set;

static const ks_cpu_bf16_fns *
get_pairs(const kernel_set *set)
{
  return set->mode == KS_COMPUTE_FAST ? set->pairs : NULL;
}

/* Whether weight i is multiplied with quantised activations: in fast mode always when it is
 * repacked, else from the number of tokens on from which that is cheaper. */
static bool
is_quantised(const kernel_set *set, const ks_op_linear *op, uint32_t i)
{
  const ks_cpu_ctx ctx = {
      .matmul = set->matmul, .packed = set->packed, .pairs = get_pairs(set), .mode = set->mode};
  const ks_linear_plan plan = ks_linear_make_plan(&ctx, op, N_MEMBER);
  const bool quantised = set->mode == KS_COMPUTE_FAST &&
                         (plan.ways[i] == KS_LINEAR_CODES || plan.ways[i] == KS_LINEAR_STRIPS);

  KS_ASSERT(quantised || set->mode == KS_COMPUTE_EXACT || op->w[i].packed == 0);
  return quantised;
}

/* n values as bfloat16 has them. */
static void
round_values(const ks_cpu_bf16_fns *pairs, float *x, size_t n)
{
  uint16_t rounded[1024];

  KS_ASSERT_GE(sizeof(rounded) / sizeof(rounded[0]), n + 1);
  pairs->round_row(x, n, rounded);
  for (size_t k = 0; k < n; k++) {
    uint32_t bits = (uint32_t)rounded[k] << 16;

    memcpy(&x[k], &bits, sizeof(bits));
  }
}

/* The activations that weight w meets: x, x as bfloat16, or d * q.  [n_tok, n_in] */
static float *
effective_x(bench *b, const kernel_set *set, const ks_op_linear *op, uint32_t i)
{
  const ks_weight *w = &op->w[i];
  const bool quantised = is_quantised(set, op, i);
  const size_t n_in = w->n_in, stride = op->x_stride != 0 ? op->x_stride : n_in;
  float *x = ks_mem_new(b->a, KS_MEM_HOST, op->n_tok * n_in, sizeof(*x));
  int8_t *q = ks_mem_new(b->a, KS_MEM_HOST, n_in, 1);
  float *scales = ks_mem_new(b->a, KS_MEM_HOST, n_in / 8, sizeof(*scales));

  for (size_t t = 0; t < op->n_tok; t++) {
    const float *src = (const float *)ks_cpu_ptr(op->x) + t * stride;

    memcpy(x + t * n_in, src, n_in * sizeof(*x));
    if (w->dtype == KS_DTYPE_BF16 && get_pairs(set) != NULL)
      round_values(set->pairs, x + t * n_in, n_in);
    if (!quantised)
      continue;
    set->packed->fill_acts(src, n_in, q, scales, scales + n_in / 32, scales + n_in / 16);
    for (size_t k = 0; k < n_in; k++)
      x[t * n_in + k] = scales[k / 32] * (float)q[k];
  }
  ks_mem_free(q);
  ks_mem_free(scales);
  return x;
}

/* w[row] x[t] + bias[row] in double, and the sum of the magnitudes: the scale of rounding errors.
 */
static double
exact_product(const matrix *m, const ks_op_linear *op, uint32_t i, const float *x, uint32_t row,
              double *magnitude)
{
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
exact_output(const matrix *m, const ks_op_linear *op, uint32_t i, float *const x[3], uint32_t t,
             uint32_t row, double before, double *magnitude)
{
  const size_t at = (size_t)t * m[0].w.n_in;
  double z = exact_product(&m[i], op, i, x[i] + at, row, magnitude), more;

  switch (op->epilogue) {
  case KS_EPI_STORE:
    return exact_act(op->act, z);
  case KS_EPI_ADD:
    *magnitude += fabs(before);
    return before + z;
  case KS_EPI_ACT_MUL:
    z = exact_act(op->act, z) * exact_product(&m[1], op, 1, x[1] + at, row, &more);
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

/* A repacked copy of a weight for one set; 0 for types without. */
static ks_dptr
repack(bench *b, const kernel_set *set, const ks_weight *w)
{
  const uint32_t strip_rows = set->packed->strip_rows;
  const unsigned char *rows = ks_cpu_ptr(w->data);
  size_t strip_bytes, n_strip = (w->n_out + strip_rows - 1) / strip_rows;
  unsigned char *strips;

  if (!set->repacked || ks_packed_get_format(w->dtype).row_bytes == 0)
    return 0;
  strip_bytes = ks_packed_strip_bytes(w->dtype, w->n_in, strip_rows);
  strips = ks_mem_new(b->a, KS_MEM_WEIGHTS, n_strip, strip_bytes);
  for (size_t s = 0; s < n_strip; s++) {
    size_t row = s * strip_rows, left = w->n_out - row;

    ks_packed_fill_strip(w->dtype, rows + row * w->row_bytes, w->row_bytes,
                         left < strip_rows ? left : strip_rows, 0, w->n_in, strip_rows,
                         strips + s * strip_bytes);
  }
  return dptr(strips);
}

/* Runs op on all members with scratch of exactly the size it asks for. */
static void
run_linear(bench *b, const kernel_set *set, const ks_op_linear *op)
{
  uint32_t ticket = 0;
  ks_cpu_ctx ctx = {.threads = b->threads,
                    .matmul = set->matmul,
                    .packed = set->packed,
                    .pairs = get_pairs(set),
                    .vec = set->vec,
                    .mode = set->mode,
                    .ticket = &ticket};
  ks_cpu_need need = {0};
  run_args args = {&ctx, op};

  ks_cpu_linear_need(&ctx, op, &need);
  ctx.scratch_bytes = (need.member_bytes + 63) / 64 * 64;
  ctx.scratch = ks_mem_new(b->a, KS_MEM_SCRATCH, N_MEMBER, ctx.scratch_bytes);
  ctx.shared = ks_mem_new(b->a, KS_MEM_SCRATCH, 1, need.shared_bytes);
  memset(ctx.scratch, 0xff, N_MEMBER * ctx.scratch_bytes); /* what is read must be written first */
  memset(ctx.shared, 0xff, need.shared_bytes);
  ks_threads_run(b->threads, run_one, &args);
  ks_mem_free(ctx.scratch);
  ks_mem_free(ctx.shared);
}

/* Runs op with one set of kernels and compares y[i] (which held before[i]) with the reference. */
static void
check(bench *b, const kernel_set *set, const matrix *m, const ks_op_linear *desc,
      const float *const before[3])
{
  uint32_t n_list = desc->epilogue == KS_EPI_ACT_MUL ? 1 : desc->n_w;
  ks_op_linear op = *desc;
  float *x[3];

  for (uint32_t i = 0; i < op.n_w; i++) {
    op.w[i].packed = repack(b, set, &op.w[i]);
    x[i] = effective_x(b, set, &op, i);
  }
  run_linear(b, set, &op);
  for (uint32_t i = 0; i < n_list; i++)
    for (uint32_t t = 0; t < op.n_tok; t++)
      for (uint32_t r = 0; r < op.w[i].n_out; r++) {
        size_t at = t * (op.y_stride[i] != 0 ? op.y_stride[i] : op.w[i].n_out) + r;
        double magnitude;
        double want = exact_output(m, &op, i, x, t, r, (double)before[i][at], &magnitude);
        double got = (double)((const float *)ks_cpu_ptr(op.y[i]))[at];

        if (!(fabs(got - want) <= 2e-6 * magnitude + 1e-6) && isfinite(magnitude))
          KS_FAIL("%s%s%s %s %ux%u tok %u epilogue %d act %d: y[%u][%u][%u] = %.9g, want %.9g",
                  set->name, set->repacked ? " repacked" : "",
                  set->mode == KS_COMPUTE_FAST ? " fast" : "",
                  ks_dtype_get_info(op.w[0].dtype)->name, op.w[0].n_in, op.w[0].n_out, op.n_tok,
                  (int)op.epilogue, (int)op.act, i, t, r, got, want);
      }
  for (uint32_t i = 0; i < op.n_w; i++) {
    ks_mem_free(ks_cpu_ptr(op.w[i].packed));
    ks_mem_free(x[i]);
  }
}

#ifdef KS_EMULATED_AVX512
extern const ks_cpu_matmul_fns ks_cpu_matmul_avx512_emulated;
#endif

#define MAX_SET 8u

/* The sets of kernels that can run here. */
static size_t
list_sets(kernel_set sets[MAX_SET])
{
  static const char *const names[] = {"scalar", "avx2", "avx512"};
  const bool has_bf16 = ks_cpu_detect_set()->bf16;
  ks_isa best = ks_cpu_detect_isa();
  size_t n = 0;

  for (int isa = KS_ISA_SCALAR; isa <= (int)best; isa++)
    sets[n++] = (kernel_set){.name = names[isa],
                             .matmul = ks_cpu_matmul_get((ks_isa)isa),
                             .packed = ks_cpu_packed_get((ks_isa)isa, false),
                             .pairs = ks_cpu_bf16_get(isa == KS_ISA_AVX512 && has_bf16),
                             .vec = ks_cpu_vec_get((ks_isa)isa)};
#ifdef KS_EMULATED_AVX512
  if (best >= KS_ISA_AVX2)
    sets[n++] = (kernel_set){.name = "avx512 (emulated)",
                             .matmul = &ks_cpu_matmul_avx512_emulated,
                             .packed = &ks_cpu_packed_avx512_emulated,
                             .pairs = &ks_cpu_matmul_bf16_emulated,
                             .vec = &ks_cpu_vec_avx512_emulated};
#endif
  return n;
}

/* One shape through every set of kernels; pad: strides larger than the rows. */
static void
check_shape(bench *b, ks_op_linear op, const ks_dtype dtypes[3], const uint32_t n_out[3],
            uint32_t n_in, uint32_t n_tok, bool with_bias, size_t pad)
{
  kernel_set sets[MAX_SET];
  size_t n_set = list_sets(sets);
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
  for (size_t f = 0; f < 4 * n_set; f++) {
    kernel_set set = sets[f / 4];

    set.mode = f % 4 / 2 != 0 ? KS_COMPUTE_FAST : KS_COMPUTE_EXACT;
    set.repacked = f % 2 != 0;
    for (uint32_t i = 0; i < op.n_w; i++)
      memcpy(y[i], before[i], (n_out[i] + pad) * (n_tok + 1) * sizeof(float));
    check(b, &set, m, &op, before);
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
  static const uint32_t n_toks[] = {0, 1, 2, 3, 4, 7, 18, 33}, n_outs[] = {1, 3, 16, 33};
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
  kernel_set sets[MAX_SET];
  size_t n_set = list_sets(sets);

  for (size_t f = 0; f < n_set; f++)
    for (int act = KS_ACT_NONE; act <= KS_ACT_RELU6; act++)
      for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        float z[19];

        for (size_t j = 0; j < 19; j++)
          z[j] = at[i];
        if (act != KS_ACT_NONE)
          sets[f].matmul->act_row((ks_act)act, z, 19);
        for (size_t j = 0; j < 19; j++)
          KS_ASSERT_NEAR(z[j], exact_act((ks_act)act, (double)at[i]),
                         1e-6 * fabs((double)at[i]) + 1e-30);
      }
}

/* Codes are the nearest ones, scales reach 127 exactly, and the sums are those of what is stored.
 */
KS_TEST(linear, quantised_activations)
{
  enum { N = 32 * 40 };
  static float x[N];
  static int8_t q[N];
  static float d[N / 32], sum[N / 32], half_sum[N / 16];
  kernel_set sets[MAX_SET];
  size_t n_set = list_sets(sets);
  bench b;

  bench_init(&b);
  for (size_t f = 0; f < n_set; f++) {
    for (size_t i = 0; i < N; i++)
      x[i] = next_random(&b) * ldexpf(1, (int)(i / 32) * 2 - 40);
    memset(x + 64, 0, 32 * sizeof(*x));
    sets[f].packed->fill_acts(x, N, q, d, sum, half_sum);
    for (size_t g = 0; g < N / 32; g++) {
      double largest = 0, total[2] = {0};

      for (size_t i = 32 * g; i < 32 * g + 32; i++) {
        largest = fmax(largest, fabs((double)x[i]));
        total[i % 32 / 16] += (double)d[g] * q[i];
        KS_ASSERT_GE(q[i], -127);
        KS_ASSERT_NEAR(d[g] * (float)q[i], x[i], 0.50001 * (double)d[g]);
      }
      KS_ASSERT_NEAR(d[g], largest / 127, 1e-7 * largest);
      KS_ASSERT_NEAR(half_sum[2 * g], total[0], 1e-6 * largest);
      KS_ASSERT_NEAR(half_sum[2 * g + 1], total[1], 1e-6 * largest);
      KS_ASSERT_NEAR(sum[g], total[0] + total[1], 2e-6 * largest);
    }
    sets[f].packed->fill_acts(x, N, NULL, NULL, sum, half_sum);
    for (size_t g = 0; g < N / 16; g++) {
      double total = 0, largest = 0;

      for (size_t i = 16 * g; i < 16 * g + 16; i++) {
        total += (double)x[i];
        largest = fmax(largest, fabs((double)x[i]));
      }
      KS_ASSERT_NEAR(half_sum[g], total, 2e-6 * largest);
    }
  }
  bench_done(&b);
}

/* Activations that are no numbers touch nothing outside their group; too small ones become 0. */
KS_TEST(linear, activations_that_are_no_numbers)
{
  static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY, 1e-38f, -1e-44f, 0.0f};
  kernel_set sets[MAX_SET];
  size_t n_set = list_sets(sets);

  for (size_t f = 0; f < n_set; f++)
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
      float x[96], d[3], sum[3], half_sum[6];
      int8_t q[96];

      for (size_t k = 0; k < 96; k++)
        x[k] = k / 32 == 1 ? i < 4 && k % 5 != 0 ? 3.0f : bad[i] : 1.0f;
      sets[f].packed->fill_acts(x, 96, q, d, sum, half_sum);
      for (size_t k = 0; k < 96; k++)
        if (k / 32 != 1 || i >= 4)
          KS_ASSERT_EQ(q[k], k / 32 == 1 ? 0 : 127);
      KS_ASSERT(i < 4 ? !isfinite(d[1]) && !isfinite(sum[1]) : sum[1] == 0);
      KS_ASSERT_NEAR(sum[0], 32, 1e-5);
      KS_ASSERT_NEAR(half_sum[5], 16, 1e-5);
    }
}

/* Every byte at its end, and rows whose scales are no numbers: the rows beside them are right, also
 * where all activations have the largest code, and nothing is read that is not there. */
KS_TEST(linear, extreme_codes)
{
  static const unsigned char bytes[] = {0x00, 0x7f, 0x80, 0xff};
  kernel_set sets[MAX_SET];
  size_t n_set = list_sets(sets);
  bench b;

  bench_init(&b);
  for (size_t i = 0; i < N_TYPE * 2 * n_set; i++) {
    kernel_set set = sets[i / 2 % n_set];
    const ks_dtype dtype = all_types[i / 2 / n_set];
    const ks_dtype_info *info = ks_dtype_get_info(dtype);
    matrix m = matrix_new(&b, dtype, 512, 24);
    float *x = random_floats(&b, 512 * 6), *y = random_floats(&b, 24 * 6);
    ks_op_linear op = {.n_w = 1, .w = {m.w}, .x = dptr(x), .y = {dptr(y)}};
    const float *before[3] = {y, NULL, NULL};

    set.repacked = true;
    set.mode = i % 2 != 0 ? KS_COMPUTE_FAST : KS_COMPUTE_EXACT;
    for (size_t k = 0; k < 512 * 6; k++)
      x[k] = k % 7 == 0 ? -1.0f : 1.0f;
    for (size_t r = 0; r < 24; r++) {
      unsigned char *row = m.bytes + 1 + r * m.w.row_bytes;
      float values[512];

      if (r % 6 == 0 || !info->is_quantised)
        continue; /* as it was drawn */
      memset(row, bytes[r % 4], m.w.row_bytes);
      for (size_t at = 0; at < m.w.row_bytes && r % 6 < 4; at += info->block_bytes)
        put_scales(dtype, row + at, 0.01f);
      ks_dequantise_row(dtype, row, values, 512);
      for (size_t k = 0; k < 512; k++)
        m.values[r * 512 + k] = (double)values[k];
    }
    for (op.n_tok = 1; op.n_tok <= 6; op.n_tok += 5)
      check(&b, &set, &m, &op, before);
    matrix_free(&m);
    ks_mem_free(x);
    ks_mem_free(y);
  }
  bench_done(&b);
}

KS_TEST_MAIN
