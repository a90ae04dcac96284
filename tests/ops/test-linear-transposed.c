/* test-linear-transposed.c - ks_cpu_linear_transposed for every weight type and instruction set.
 * The promise: dx is dy times the dequantised weight as computed in double, within f32 rounding,
 * added to what was there or not, whatever the shape, the strides and the address of the weights;
 * and the same to the last bit for any number of threads.  Sets this processor lacks run emulated
 * where the build has an emulation (KS_EMULATED_AVX512). */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-matmul-internal.h"
#include "engine/quant.h"
#include "tests/ks-test.h"

static const ks_dtype all_types[] = {KS_DTYPE_F32,  KS_DTYPE_F16,    KS_DTYPE_BF16,  KS_DTYPE_Q4_0,
                                     KS_DTYPE_Q4_1, KS_DTYPE_Q5_0,   KS_DTYPE_Q5_1,  KS_DTYPE_Q8_0,
                                     KS_DTYPE_Q2_K, KS_DTYPE_Q3_K,   KS_DTYPE_Q4_K,  KS_DTYPE_Q5_K,
                                     KS_DTYPE_Q6_K, KS_DTYPE_IQ4_NL, KS_DTYPE_IQ4_XS};
#define N_TYPE (sizeof(all_types) / sizeof(all_types[0]))
#define GAP 3u /* floats between rows where strides are not dense */

/* A shape with its inputs; the weight begins at bytes + 1, an odd address as a file may have it. */
typedef struct shape {
  ks_alloc *a;
  ks_threads *threads;
  uint64_t seed;
  unsigned char *bytes;
  float *values, *dy, *before; /* [n_out, n_in], and with gaps [n_tok, n_out], [n_tok, n_in] */
  ks_op_linear_t op;
} shape;

static float
next_random(shape *s) /* -1 .. 1 */
{
  s->seed = s->seed * 6364136223846793005u + 1442695040888963407u;
  return (float)((double)(s->seed >> 40) / (1u << 23) - 1);
}

static float *
random_floats(shape *s, size_t n)
{
  float *v = ks_mem_new(s->a, KS_MEM_HOST, n, sizeof(*v));

  KS_ASSERT(v != NULL);
  for (size_t i = 0; i < n; i++)
    v[i] = next_random(s);
  return v;
}

static ks_dptr
dptr(const void *p)
{
  return (ks_dptr)(uintptr_t)p;
}

/* Types that cannot be quantised get bytes that are small numbers as scales and any codes in their
 * low halves. */
static void
shape_init(shape *s, ks_dtype dtype, uint32_t n_in, uint32_t n_out, uint32_t n_tok,
           uint32_t n_thread)
{
  size_t row_bytes;
  float *row;

  *s = (shape){.a = ks_alloc_new(), .seed = 7};
  KS_ASSERT_OK(ks_threads_new(s->a, n_thread, &s->threads, NULL));
  KS_ASSERT(ks_dtype_row_bytes(dtype, n_in, &row_bytes));
  s->bytes = ks_mem_new(s->a, KS_MEM_HOST, row_bytes * n_out + 1, 1);
  s->values = ks_mem_new(s->a, KS_MEM_HOST, (size_t)n_in * n_out, sizeof(float));
  for (size_t r = 0; r < n_out; r++) {
    unsigned char *at = s->bytes + 1 + r * row_bytes;

    row = random_floats(s, n_in);
    if (!ks_quantise_row(dtype, row, at, n_in))
      for (size_t i = 0; i < row_bytes; i++)
        at[i] = (unsigned char)(0x28 + (int)(next_random(s) * 8));
    ks_dequantise_row(dtype, at, s->values + r * n_in, n_in);
    ks_mem_free(row);
  }
  s->dy = random_floats(s, (size_t)(n_out + GAP) * (n_tok + 1));
  s->before = random_floats(s, (size_t)(n_in + GAP) * (n_tok + 1));
  s->op = (ks_op_linear_t){.dy = dptr(s->dy), .n_tok = n_tok};
  s->op.w = (ks_weight){.data = dptr(s->bytes + 1),
                        .dtype = dtype,
                        .n_in = n_in,
                        .n_out = n_out,
                        .row_bytes = row_bytes};
}

static void
shape_done(shape *s)
{
  ks_mem_free(s->bytes);
  ks_mem_free(s->values);
  ks_mem_free(s->dy);
  ks_mem_free(s->before);
  ks_threads_free(s->threads);
  ks_alloc_free(s->a);
}

typedef struct run_args {
  const ks_cpu_ctx *ctx;
  const ks_op_linear_t *op;
} run_args;

static void
run_one(void *user, uint32_t member, uint32_t n_member)
{
  const run_args *args = user;

  ks_cpu_linear_transposed(args->ctx, args->op, member, n_member);
}

/* The dx of one run, gaps included, with scratch of exactly the size that was asked for. */
static float *
run(shape *s, const ks_cpu_matmul_fns *fns)
{
  const size_t n_dx = (size_t)(s->op.w.n_in + GAP) * (s->op.n_tok + 1);
  const uint32_t n_thread = ks_threads_get_n(s->threads);
  float *dx = ks_mem_new(s->a, KS_MEM_HOST, n_dx, sizeof(*dx));
  uint32_t ticket = 0;
  ks_cpu_ctx ctx = {.threads = s->threads, .matmul = fns, .ticket = &ticket};
  ks_cpu_need need = {0};
  run_args args = {&ctx, &s->op};

  memcpy(dx, s->before, n_dx * sizeof(*dx));
  s->op.dx = dptr(dx);
  ks_cpu_linear_transposed_need(&ctx, &s->op, &need);
  ctx.scratch_bytes = (need.member_bytes + 63) / 64 * 64;
  ctx.scratch = ks_mem_new(s->a, KS_MEM_SCRATCH, n_thread, ctx.scratch_bytes);
  memset(ctx.scratch, 0xff, n_thread * ctx.scratch_bytes); /* what is read must be written first */
  ks_threads_run(s->threads, run_one, &args);
  ks_mem_free(ctx.scratch);
  return dx;
}

static void
check(const shape *s, const float *dx, const char *isa)
{
  const ks_op_linear_t *op = &s->op;
  size_t n_in = op->w.n_in, n_out = op->w.n_out;
  size_t dx_stride = op->dx_stride != 0 ? op->dx_stride : n_in;
  size_t dy_stride = op->dy_stride != 0 ? op->dy_stride : n_out;

  for (size_t at = 0; at < (size_t)(n_in + GAP) * (op->n_tok + 1); at++) {
    size_t t = at / dx_stride, k = at % dx_stride;
    double sum = op->accumulate ? (double)s->before[at] : 0, magnitude = fabs(sum);

    if (t >= op->n_tok || k >= n_in) { /* nothing between or behind the rows was touched */
      KS_ASSERT(dx[at] == s->before[at]);
      continue;
    }
    for (size_t r = 0; r < n_out; r++) {
      double p = (double)s->dy[t * dy_stride + r] * (double)s->values[r * n_in + k];

      sum += p;
      magnitude += fabs(p);
    }
    if (!(fabs((double)dx[at] - sum) <= 1e-6 * magnitude))
      KS_FAIL("%s %s %zux%zu tok %u: dx[%zu][%zu] = %.9g, want %.9g", isa,
              ks_dtype_get_info(op->w.dtype)->name, n_in, n_out, op->n_tok, t, k, (double)dx[at],
              sum);
  }
}

#ifdef KS_EMULATED_AVX512
extern const ks_cpu_matmul_fns ks_cpu_matmul_avx512_emulated;
#endif

/* The sets of kernels that can run here. */
static size_t
list_fns(const ks_cpu_matmul_fns *fns[4], const char *names[4])
{
  static const char *const isa_names[KS_N_ISA] = {"scalar", "avx2", "avx512"};
  ks_isa best = ks_cpu_detect_isa();
  size_t n = 0;

  for (int isa = KS_ISA_SCALAR; isa <= (int)best; isa++) {
    fns[n] = ks_cpu_matmul_get((ks_isa)isa);
    names[n++] = isa_names[isa];
  }
#ifdef KS_EMULATED_AVX512
  if (best >= KS_ISA_AVX2) {
    fns[n] = &ks_cpu_matmul_avx512_emulated;
    names[n++] = "avx512 (emulated)";
  }
#endif
  return n;
}

static void
check_shape(ks_dtype dtype, uint32_t n_in, uint32_t n_out, uint32_t n_tok, bool accumulate,
            bool gaps)
{
  const ks_cpu_matmul_fns *fns[4];
  const char *names[4];
  size_t n_fns = list_fns(fns, names);
  shape s;

  shape_init(&s, dtype, n_in, n_out, n_tok, 2);
  s.op.accumulate = accumulate;
  s.op.dy_stride = gaps ? n_out + GAP : 0;
  s.op.dx_stride = gaps ? n_in + GAP : 0;
  for (size_t f = 0; f < n_fns; f++) {
    float *dx = run(&s, fns[f]);

    check(&s, dx, names[f]);
    ks_mem_free(dx);
  }
  shape_done(&s);
}

/* Every type; columns that fill their panels and do not, one row and more rows than one block. */
KS_TEST(linear_transposed, every_type_and_shape)
{
  static const uint32_t n_toks[] = {0, 1, 5, 13}, n_outs[] = {1, 7, 300};

  for (size_t i = 0; i < N_TYPE; i++) {
    uint32_t block = ks_dtype_get_info(all_types[i])->block_elems;
    uint32_t n_in = block == 1 ? 75 : block == 32 ? 96 : 512;

    for (size_t t = 0; t < sizeof(n_toks) / sizeof(n_toks[0]); t++)
      for (size_t o = 0; o < sizeof(n_outs) / sizeof(n_outs[0]); o++)
        check_shape(all_types[i], n_in, n_outs[o], n_toks[t], (t + o) % 2 != 0, o % 2 != 0);
  }
}

/* Every count around those of tiles and of groups of tiles, added to what is there. */
KS_TEST(linear_transposed, every_token_count)
{
  for (uint32_t n_tok = 1; n_tok <= 130; n_tok++)
    check_shape(n_tok % 2 != 0 ? KS_DTYPE_F32 : KS_DTYPE_Q4_1, 96, 19, n_tok, true, n_tok % 3 == 0);
}

/* Tokens are divided among more threads than there are strips of columns; nothing is rounded
 * otherwise for that. */
KS_TEST(linear_transposed, same_bits_for_any_number_of_threads)
{
  static const uint32_t n_threads[] = {1, 2, 3, 7};
  const ks_cpu_matmul_fns *fns[4];
  const char *names[4];
  size_t n_fns = list_fns(fns, names);

  for (size_t f = 0; f < n_fns; f++) {
    float *want = NULL;

    for (size_t i = 0; i < sizeof(n_threads) / sizeof(n_threads[0]); i++) {
      size_t n_dx = (96 + GAP) * 401u;
      shape s;
      float *dx;

      shape_init(&s, KS_DTYPE_Q5_0, 96, 270, 400, n_threads[i]);
      dx = run(&s, fns[f]);
      check(&s, dx, names[f]);
      if (want == NULL) {
        want = malloc(n_dx * sizeof(*want));
        KS_ASSERT(want != NULL);
        memcpy(want, dx, n_dx * sizeof(*want));
      }
      KS_ASSERT(memcmp(dx, want, n_dx * sizeof(*want)) == 0);
      ks_mem_free(dx);
      shape_done(&s);
    }
    free(want);
  }
}

KS_TEST_MAIN
