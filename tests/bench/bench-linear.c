/* bench-linear.c - how fast linear is for each weight type, beside what the machine can do at most.
 * usage: bench-linear [threads [n_in n_out [isa [type]]]]
 * Prints a table: products for prompts, and with the transposed weight, in GFLOP/s beside the peak
 * of fused multiply-adds; products for few tokens in GB/s of weights beside the bandwidth of
 * reading memory.  Exact mode, weights as they lie in a file.  Short runs in turn with short runs
 * of what they are compared with, the best of each, since other programs disturb.  Not a test. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-matmul-internal.h"
#include "engine/cpu-packed-internal.h"
#include "tests/ks-clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define N_TOK 512u
#define READ_BYTES ((size_t)192 << 20)
#define READ_SLICE ((size_t)24 << 20)
#define PEAK_ROUNDS 50000
#define N_REPEAT 8

static const ks_dtype all_types[] = {KS_DTYPE_F32,  KS_DTYPE_F16,    KS_DTYPE_BF16,  KS_DTYPE_Q4_0,
                                     KS_DTYPE_Q4_1, KS_DTYPE_Q5_0,   KS_DTYPE_Q5_1,  KS_DTYPE_Q8_0,
                                     KS_DTYPE_Q2_K, KS_DTYPE_Q3_K,   KS_DTYPE_Q4_K,  KS_DTYPE_Q5_K,
                                     KS_DTYPE_Q6_K, KS_DTYPE_IQ4_NL, KS_DTYPE_IQ4_XS};

typedef struct bench {
  ks_alloc *a;
  ks_threads *threads;
  ks_cpu_ctx ctx;
  uint32_t ticket;
  unsigned char *weights; /* READ_BYTES */
  float *x, *y;
  uint32_t n_in, n_out;
  size_t read_at;         /* of the next slice that is read */
  double peak, bandwidth; /* the best so far */
  float sink[256];
} bench;

/* Processor seconds of one member: what other programs take away is not counted, spinning is. */
static double
now(const bench *b)
{
  return ks_clock_seconds(CLOCK_PROCESS_CPUTIME_ID) / ks_threads_get_n(b->threads);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void
peak_member(void *user, uint32_t member, uint32_t n_member)
{
  bench *b = user;
  __m256 sum[12], f = _mm256_set1_ps(0.999f);

  (void)n_member;
  for (int i = 0; i < 12; i++)
    sum[i] = _mm256_set1_ps((float)i);
  for (int r = 0; r < PEAK_ROUNDS; r++)
#pragma GCC unroll 12
    for (int i = 0; i < 12; i++)
      sum[i] = _mm256_fmadd_ps(sum[i], f, f);
  for (int i = 1; i < 12; i++)
    sum[0] = _mm256_add_ps(sum[0], sum[i]);
  b->sink[member % 256] = _mm256_cvtss_f32(sum[0]);
}
#endif

/* One short run each; the best so far are kept. */
static void
measure_peak(bench *b)
{
#if defined(__x86_64__)
  double t = now(b), rate;

  if (!__builtin_cpu_supports("fma"))
    return;
  ks_threads_run(b->threads, peak_member, b);
  rate = 2.0 * 8 * 12 * PEAK_ROUNDS * ks_threads_get_n(b->threads) / (now(b) - t);
  b->peak = rate > b->peak ? rate : b->peak;
#else
  (void)b;
#endif
}

static void
read_member(void *user, uint32_t member, uint32_t n_member)
{
  bench *b = user;
  size_t begin, end;
  uint64_t sum[8] = {0};

  ks_cpu_slice(READ_SLICE / 64, member, n_member, &begin, &end);
  for (size_t i = begin; i < end; i++) {
    const uint64_t *line = (const uint64_t *)(const void *)(b->weights + b->read_at + i * 64);

    for (int j = 0; j < 8; j++)
      sum[j] += line[j];
  }
  b->sink[member % 256] =
      (float)(sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7]);
}

static void
measure_read(bench *b)
{
  double t = now(b), rate;

  ks_threads_run(b->threads, read_member, b);
  rate = (double)READ_SLICE / (now(b) - t);
  b->bandwidth = rate > b->bandwidth ? rate : b->bandwidth;
  b->read_at = (b->read_at + READ_SLICE) % READ_BYTES;
}

typedef struct call {
  bench *b;
  const ks_op_linear *op;
  const ks_op_linear_t *transposed; /* in place of op where it is set */
} call;

static void
linear_member(void *user, uint32_t member, uint32_t n_member)
{
  call *c = user;

  if (c->transposed != NULL)
    ks_cpu_linear_transposed(&c->b->ctx, c->transposed, member, n_member);
  else
    ks_cpu_linear(&c->b->ctx, c->op, member, n_member);
}

static bool
grow_scratch(bench *b, const ks_cpu_need *need)
{
  if (need->member_bytes <= b->ctx.scratch_bytes)
    return true;
  ks_mem_free(b->ctx.scratch);
  b->ctx.scratch_bytes = (need->member_bytes + 63) / 64 * 64;
  b->ctx.scratch =
      ks_mem_new(b->a, KS_MEM_SCRATCH, ks_threads_get_n(b->threads), b->ctx.scratch_bytes);
  return b->ctx.scratch != NULL;
}

/* Work a second in n_call calls, each with another matrix of the block, so that no cache holds the
 * weights. */
static double
best_rate(bench *b, ks_dtype dtype, uint32_t n_tok, bool transposed, uint32_t n_call, double work)
{
  ks_op_linear op = {.n_w = 1, .n_tok = n_tok};
  ks_op_linear_t op_t = {.n_tok = n_tok};
  call c = {b, &op, transposed ? &op_t : NULL};
  ks_cpu_need need = {0};
  size_t row_bytes, at = 0;
  double best = 0;

  if (!ks_dtype_row_bytes(dtype, b->n_in, &row_bytes))
    return 0;
  op.w[0] = op_t.w =
      (ks_weight){.dtype = dtype, .n_in = b->n_in, .n_out = b->n_out, .row_bytes = row_bytes};
  op.x = op_t.dx = (ks_dptr)(uintptr_t)b->x;
  op.y[0] = op_t.dy = (ks_dptr)(uintptr_t)b->y;
  if (transposed)
    ks_cpu_linear_transposed_need(&b->ctx, &op_t, &need);
  else
    ks_cpu_linear_need(&b->ctx, &op, &need);
  if (!grow_scratch(b, &need))
    return 0;
  for (int i = 0; i < N_REPEAT; i++) {
    double begin, t;

    measure_peak(b);
    measure_read(b);
    begin = now(b);
    for (uint32_t j = 0; j < n_call; j++) {
      at = at + row_bytes * b->n_out > READ_BYTES ? 0 : at;
      op.w[0].data = op_t.w.data = (ks_dptr)(uintptr_t)(b->weights + at);
      at += row_bytes * b->n_out;
      b->ticket = 0;
      ks_threads_run(b->threads, linear_member, &c);
    }
    t = now(b) - begin;
    best = work * n_call / t > best ? work * n_call / t : best;
  }
  return best;
}

/* only: a type's name or NULL for all */
static void
print_table(bench *b, const char *only)
{
  double flop = 2.0 * b->n_in * b->n_out;

  printf("%u threads, weights %u x %u\n", ks_threads_get_n(b->threads), b->n_in, b->n_out);
  printf("type     %u tok GFLOP/s of peak   transposed of peak   16 tok   4 tok GB/s   1 tok GB/s  "
         "of reading\n",
         N_TOK);
  for (size_t i = 0; i < sizeof(all_types) / sizeof(all_types[0]); i++) {
    ks_dtype dtype = all_types[i];
    size_t row_bytes;
    uint32_t n_call;
    double many, back, some, few, one, bytes;

    if (!ks_dtype_row_bytes(dtype, b->n_in, &row_bytes) ||
        (only != NULL && strcmp(only, ks_dtype_get_info(dtype)->name) != 0))
      continue;
    bytes = (double)row_bytes * b->n_out;
    n_call = (uint32_t)(8e6 / bytes) + 1;
    many = best_rate(b, dtype, N_TOK, false, 1, flop * N_TOK);
    back = best_rate(b, dtype, N_TOK, true, 1, flop * N_TOK);
    some = best_rate(b, dtype, 16, false, 1 + (uint32_t)(1e8 / (flop * 16)), flop * 16);
    few = best_rate(b, dtype, 4, false, n_call, bytes);
    one = best_rate(b, dtype, 1, false, n_call, bytes);
    printf("%-8s %15.1f %6.0f%% %12.1f %6.0f%% %8.1f %12.1f %12.1f %10.0f%%\n",
           ks_dtype_get_info(dtype)->name, many * 1e-9, 100 * many / b->peak, back * 1e-9,
           100 * back / b->peak, some * 1e-9, few * 1e-9, one * 1e-9, 100 * one / b->bandwidth);
  }
  printf("peak %.1f GFLOP/s, reading %.1f GB/s\n", b->peak * 1e-9, b->bandwidth * 1e-9);
}

int
main(int argc, char **argv)
{
  static bench b;
  ks_isa isa = ks_cpu_detect_isa();

  b.a = ks_alloc_new();
  b.n_in = argc > 3 ? (uint32_t)strtoul(argv[2], NULL, 10) : 1536;
  b.n_out = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 1536;
  if (argc > 4 && strcmp(argv[4], "scalar") == 0)
    isa = KS_ISA_SCALAR;
  else if (argc > 4 && strcmp(argv[4], "avx2") == 0 && isa > KS_ISA_AVX2)
    isa = KS_ISA_AVX2;
  if (b.a == NULL || b.n_in == 0 || b.n_out == 0 ||
      ks_threads_new(b.a, argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0, &b.threads, NULL) !=
          KS_OK)
    return 1;
  b.weights = ks_mem_new(b.a, KS_MEM_WEIGHTS, READ_BYTES, 1);
  b.x = ks_mem_new(b.a, KS_MEM_SCRATCH, (size_t)N_TOK * b.n_in, sizeof(float));
  b.y = ks_mem_new(b.a, KS_MEM_SCRATCH, (size_t)N_TOK * b.n_out, sizeof(float));
  if (b.weights == NULL || b.x == NULL || b.y == NULL)
    return 1;
  /* Bytes that are small numbers in every type: infinities and denormals would cost time. */
  for (size_t i = 0; i < READ_BYTES; i++)
    b.weights[i] = (unsigned char)(i % 2 != 0 ? 0x2c + i % 7 : i * 37);
  for (size_t i = 0; i < (size_t)N_TOK * b.n_in; i++)
    b.x[i] = (float)(i % 17) * 0.1f - 0.8f;
  b.ctx = (ks_cpu_ctx){.threads = b.threads,
                       .isa = isa,
                       .matmul = ks_cpu_matmul_get(isa),
                       .packed = ks_cpu_packed_get(isa, false),
                       .vec = ks_cpu_vec_get(isa),
                       .ticket = &b.ticket};
  print_table(&b, argc > 5 ? argv[5] : NULL);
  ks_mem_free(b.ctx.scratch);
  ks_mem_free(b.weights);
  ks_mem_free(b.x);
  ks_mem_free(b.y);
  ks_threads_free(b.threads);
  ks_alloc_free(b.a);
  return 0;
}
