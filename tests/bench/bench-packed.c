/* bench-packed.c - kernels of repacked weights beside what the machine can do at most.
 * usage: bench-packed [threads [type [rounds]]]
 * One line each, key=value:
 *   rows   GB/s of weights, 64 MB of huge pages, beside plain reading of the same memory in the
 *          same rounds; cached: of strips in the L2 cache, one thread
 *   tile   products a second, in 10^9, of taking panels apart and multiplying them with 512 tokens;
 *          peak: of a loop that stays in registers; own_peak: the same with what signed codes need
 * Best of several rounds, since other programs disturb.  Not a test. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-packed-internal.h"
#include "tests/ks-clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define WEIGHT_BYTES ((size_t)64 << 20)
#define HUGE_PAGE ((size_t)2 << 20)
#define READ_AHEAD ((size_t)2048)
#define N_TOK ((size_t)512)
#define MAX_IN ((size_t)1536)
#define TILE_ROWS ((size_t)192) /* of one thread in the measurement of tiles */
#define PEAK_ROUNDS 10000
#define SHORT_ROUNDS 6 /* short measurements for one long one */
#define CACHED_BYTES ((size_t)192 << 10)

static const ks_dtype types[] = {KS_DTYPE_Q4_0, KS_DTYPE_Q4_1, KS_DTYPE_Q5_0,   KS_DTYPE_Q5_1,
                                 KS_DTYPE_Q8_0, KS_DTYPE_Q2_K, KS_DTYPE_Q3_K,   KS_DTYPE_Q4_K,
                                 KS_DTYPE_Q5_K, KS_DTYPE_Q6_K, KS_DTYPE_IQ4_NL, KS_DTYPE_IQ4_XS};

typedef struct bench {
  ks_threads *threads;
  uint32_t n_thread;
  int n_round;
  const ks_cpu_packed_fns *fns;
  unsigned char *weights; /* WEIGHT_BYTES */
  float *x;               /* [N_TOK, MAX_IN] */
  float *out;             /* [threads, N_TOK, TILE_ROWS] */
  unsigned char *scratch; /* [threads, scratch_bytes] */
  size_t scratch_bytes;
  ks_cpu_acts acts;
  ks_dtype dtype;
  bool fast, signed_bytes;
  uint32_t n_tok;
  size_t n_in;
  float sink[256];
  ks_thread_fn fn;     /* what is being measured */
  double seconds[256]; /* that each member took */
} bench;

static void
timed_member(void *user, uint32_t member, uint32_t n_member)
{
  bench *b = user;
  double begin = ks_clock_seconds(CLOCK_THREAD_CPUTIME_ID);

  b->fn(b, member, n_member);
  b->seconds[member % 256] = ks_clock_seconds(CLOCK_THREAD_CPUTIME_ID) - begin;
}

/* Seconds of the slowest member. */
static double
time_run(bench *b, ks_thread_fn fn)
{
  double most = 0;

  b->fn = fn;
  ks_threads_run(b->threads, timed_member, b);
  for (uint32_t i = 0; i < b->n_thread && i < 256; i++)
    most = b->seconds[i] > most ? b->seconds[i] : most;
  return most;
}

/* --- limits --- */

#if defined(__x86_64__)
#define PEAK_SUMS 8

__attribute__((target("avx2"))) static void
peak_member(void *user, uint32_t member, uint32_t n_member)
{
  bench *b = user;
  __m256i sum[PEAK_SUMS], w = _mm256_set1_epi8((char)(3 + member % 2)), x = _mm256_set1_epi8(1);

  (void)n_member;
  for (int i = 0; i < PEAK_SUMS; i++)
    sum[i] = _mm256_set1_epi8((char)i);
  for (int r = 0; r < PEAK_ROUNDS; r++) {
    __asm__ volatile("" : "+x"(w), "+x"(x)); /* so that products are made in every round */
#pragma GCC unroll 8
    for (int i = 0; i < PEAK_SUMS; i++) {
      __m256i product;

      __asm__ volatile("" : "+x"(w));
      if (b->signed_bytes) {
        product = _mm256_maddubs_epi16(w, _mm256_sign_epi8(x, w));
        product = _mm256_madd_epi16(product, x);
        sum[i] = _mm256_add_epi32(sum[i], product);
      } else
        sum[i] = _mm256_add_epi16(sum[i], _mm256_maddubs_epi16(w, x));
    }
  }
  for (int i = 1; i < PEAK_SUMS; i++)
    sum[0] = _mm256_xor_si256(sum[0], sum[i]);
  b->sink[member % 256] = (float)_mm256_extract_epi32(sum[0], 0);
}
#endif

/* Byte products a second of all threads, at least best; codes_signed: with what AVX2 needs for
 * signed codes. */
static double
measure_peak(bench *b, bool codes_signed, double best)
{
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    double rate;

    b->signed_bytes = codes_signed;
    rate = 32.0 * PEAK_SUMS * PEAK_ROUNDS * b->n_thread / time_run(b, peak_member);
    best = rate > best ? rate : best;
  }
#endif
  return best;
}

static void
read_member(void *user, uint32_t member, uint32_t n_member)
{
  bench *b = user;
  size_t begin, end;
  uint64_t sum[8] = {0};

  ks_cpu_slice(WEIGHT_BYTES / 64, member, n_member, &begin, &end);
  for (size_t i = begin; i < end; i++) {
    const uint64_t *line = (const uint64_t *)(const void *)(b->weights + i * 64);

    /* as kernels do it: the processor's own guesses end at borders of pages */
    __builtin_prefetch((const void *)((uintptr_t)line + READ_AHEAD));
    for (int j = 0; j < 8; j++)
      sum[j] += line[j];
  }
  b->sink[member % 256] =
      (float)(sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7]);
}

/* --- rows --- */

static void
run_strips(bench *b, uint32_t member, size_t begin, size_t end)
{
  const ks_packed_kernel *kernel = &b->fns->kernels[b->dtype];
  const size_t strip_bytes = ks_packed_strip_bytes(b->dtype, b->n_in, b->fns->strip_rows);
  ks_packed_job job = {.strip_bytes = strip_bytes,
                       .acts = &b->acts,
                       .n_tok = b->n_tok,
                       .out = b->out + (size_t)member * N_TOK * TILE_ROWS,
                       .out_stride = TILE_ROWS};

  for (size_t s = begin; s < end; s += job.n_strip) {
    job.strips = b->weights + s * strip_bytes;
    job.n_strip = end - s < 8 ? end - s : 8;
    if (b->fast)
      kernel->rows_fast(&job);
    else
      kernel->rows_exact(&job);
  }
}

static size_t
count_strips(const bench *b)
{
  return WEIGHT_BYTES / ks_packed_strip_bytes(b->dtype, b->n_in, b->fns->strip_rows);
}

static void
rows_member(void *user, uint32_t member, uint32_t n_member)
{
  bench *b = user;
  size_t begin, end;

  ks_cpu_slice(count_strips(b), member, n_member, &begin, &end);
  run_strips(b, member, begin, end);
}

static void
cached_member(void *user, uint32_t member, uint32_t n_member)
{
  bench *b = user;
  size_t n = CACHED_BYTES / ks_packed_strip_bytes(b->dtype, b->n_in, b->fns->strip_rows);

  (void)n_member;
  for (int i = 0; i < 8; i++)
    run_strips(b, member, 0, n);
}

static void
make_acts(bench *b, bool fast, size_t n_in)
{
  ks_cpu_acts *a = &b->acts;

  b->fast = fast;
  b->n_in = n_in;
  a->n_in = n_in;
  a->x = b->x;
  a->x_stride = n_in;
  for (size_t t = 0; t < N_TOK; t++) {
    b->fns->fill_acts(b->x + t * n_in, n_in, fast ? a->q + t * n_in : NULL, a->d + t * n_in / 32,
                      a->sum + t * n_in / 32, a->half_sum + t * n_in / 16);
    if (fast && b->fns->fill_centres != NULL)
      b->fns->fill_centres(a->q + t * n_in, n_in, a->centre + t * n_in / 32,
                           a->half_centre + t * n_in / 16);
  }
}

static void
bench_rows(bench *b, bool fast, uint32_t n_tok)
{
  double read = 0, rows = 0, cached = 0;
  const size_t strip_bytes = ks_packed_strip_bytes(b->dtype, MAX_IN, b->fns->strip_rows);

  make_acts(b, fast, MAX_IN);
  b->n_tok = n_tok;
  for (int i = 0; i < b->n_round; i++) {
    double rate = (double)WEIGHT_BYTES / time_run(b, read_member);

    read = rate > read ? rate : read;
    rate = (double)(count_strips(b) * strip_bytes) / time_run(b, rows_member);
    rows = rate > rows ? rate : rows;
    for (int j = 0; j < SHORT_ROUNDS; j++) {
      rate = (double)(CACHED_BYTES / strip_bytes * strip_bytes * 8) / time_run(b, cached_member);
      cached = rate > cached ? rate : cached;
    }
  }
  printf("rows type=%s mode=%s tokens=%u threads=%u gbps=%.2f read=%.2f ratio=%.3f cached=%.1f\n",
         ks_dtype_get_info(b->dtype)->name, fast ? "fast" : "exact", n_tok, b->n_thread,
         rows * 1e-9, read * 1e-9, rows / read, cached * 1e-9);
}

/* --- tiles --- */

/* Panels of TILE_ROWS rows are taken apart and multiplied, as linear does it. */
static void
tile_member(void *user, uint32_t member, uint32_t n_member)
{
  bench *b = user;
  const ks_cpu_packed_fns *fns = b->fns;
  const ks_packed_kernel *kernel = &fns->kernels[b->dtype];
  const size_t rows = fns->strip_rows, group = kernel->group, n_in = b->n_in;
  const size_t strip_bytes = ks_packed_strip_bytes(b->dtype, n_in, fns->strip_rows);
  unsigned char *at = b->scratch + member * b->scratch_bytes;
  ks_packed_panel panels[KS_PACKED_MAX_STRIPS];
  ks_packed_tile tile = {.panels = panels,
                         .n_strip = fns->tile_strips,
                         .n_k = n_in,
                         .n_in = n_in,
                         .c_stride = TILE_ROWS};

  (void)n_member;
  for (size_t s = 0; s < fns->tile_strips; s++) {
    panels[s].q = at;
    panels[s].d = (float *)(void *)(at + n_in * rows);
    panels[s].m = panels[s].d + n_in / group * rows;
    at += n_in * rows + 2 * n_in / group * rows * sizeof(float);
  }
  for (size_t r = 0; r < TILE_ROWS; r += fns->tile_strips * rows) {
    for (size_t s = 0; s < fns->tile_strips; s++)
      kernel->fill_fast(b->weights + (r / rows + s) * strip_bytes, n_in, &panels[s]);
    for (size_t t = 0; t < N_TOK; t += fns->tile_tok) {
      tile.n_tok = N_TOK - t < fns->tile_tok ? N_TOK - t : fns->tile_tok;
      tile.q = b->acts.q + t * n_in;
      tile.d = b->acts.d + t * n_in / 32;
      tile.sum = group == 16 ? b->acts.half_sum + t * n_in / 16 : b->acts.sum + t * n_in / 32;
      tile.centre =
          group == 16 ? b->acts.half_centre + t * n_in / 16 : b->acts.centre + t * n_in / 32;
      tile.c = b->out + (size_t)member * N_TOK * TILE_ROWS + t * TILE_ROWS + r;
      kernel->tile_fast(&tile);
    }
  }
}

static void
bench_tiles(bench *b, size_t n_in)
{
  const bool is_signed = b->fns->kernels[b->dtype].codes_signed;
  double peak = 0, own = 0, best = 0;

  make_acts(b, true, n_in);
  for (int i = 0; i < SHORT_ROUNDS * b->n_round; i++) {
    double rate = (double)(N_TOK * TILE_ROWS * n_in) * b->n_thread / time_run(b, tile_member);

    best = rate > best ? rate : best;
    peak = measure_peak(b, false, peak);
    own = is_signed ? measure_peak(b, true, own) : peak;
  }
  printf("tile type=%s n_in=%zu threads=%u gmacs=%.1f peak=%.1f ratio=%.3f own_peak=%.1f "
         "own_ratio=%.3f\n",
         ks_dtype_get_info(b->dtype)->name, n_in, b->n_thread, best * 1e-9, peak * 1e-9,
         best / peak, own * 1e-9, best / own);
}

static bool
setup(bench *b)
{
  const size_t n_group = N_TOK * MAX_IN / 32;

  b->scratch_bytes = KS_PACKED_MAX_STRIPS * MAX_IN * KS_PACKED_MAX_ROWS * 2;
  b->weights = aligned_alloc(HUGE_PAGE, WEIGHT_BYTES);
  b->x = calloc(N_TOK * MAX_IN, sizeof(float));
  b->out = calloc(b->n_thread * N_TOK * TILE_ROWS, sizeof(float));
  b->scratch = aligned_alloc(64, b->n_thread * b->scratch_bytes);
  b->acts.q = calloc(N_TOK * MAX_IN, 1);
  b->acts.d = calloc(n_group, sizeof(float));
  b->acts.sum = calloc(n_group, sizeof(float));
  b->acts.half_sum = calloc(2 * n_group, sizeof(float));
  b->acts.centre = calloc(n_group, sizeof(uint32_t));
  b->acts.half_centre = calloc(2 * n_group, sizeof(uint32_t));
  if (b->weights == NULL || b->x == NULL || b->out == NULL || b->scratch == NULL ||
      b->acts.q == NULL || b->acts.d == NULL || b->acts.sum == NULL || b->acts.half_sum == NULL ||
      b->acts.centre == NULL || b->acts.half_centre == NULL)
    return false;
  (void)madvise(b->weights, WEIGHT_BYTES, MADV_HUGEPAGE);
  /* Bytes that are ordinary numbers in every type: infinities and denormals would cost time. */
  for (size_t i = 0; i < WEIGHT_BYTES; i++)
    b->weights[i] = (unsigned char)(i % 2 != 0 ? 0x2c + i % 7 : i * 37);
  for (size_t i = 0; i < N_TOK * MAX_IN; i++)
    b->x[i] = (float)(i % 17) * 0.1f - 0.8f;
  return true;
}

static void
teardown(bench *b)
{
  free(b->weights);
  free(b->x);
  free(b->out);
  free(b->scratch);
  free(b->acts.q);
  free(b->acts.d);
  free(b->acts.sum);
  free(b->acts.half_sum);
  free(b->acts.centre);
  free(b->acts.half_centre);
}

int
main(int argc, char **argv)
{
  static bench b;
  ks_alloc *a = ks_alloc_new();
  const char *only = argc > 2 ? argv[2] : "all";

  b.n_round = argc > 3 ? (int)strtol(argv[3], NULL, 10) : 12;
  b.fns = &ks_cpu_packed_avx2;
  if (a == NULL || ks_threads_new(a, argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0,
                                  &b.threads, NULL) != KS_OK)
    return 1;
  b.n_thread = ks_threads_get_n(b.threads);
  if (!setup(&b))
    return 1;
  for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
    if (strcmp(only, "all") != 0 && strcmp(only, ks_dtype_get_info(types[i])->name) != 0)
      continue;
    b.dtype = types[i];
    for (uint32_t n_tok = 1; n_tok <= 4; n_tok *= 4) {
      bench_rows(&b, true, n_tok);
      bench_rows(&b, false, n_tok);
    }
    if (ks_packed_get_format(b.dtype).block_elems == 32)
      bench_tiles(&b, 576);
    bench_tiles(&b, 1536);
  }
  teardown(&b);
  ks_threads_free(b.threads);
  ks_alloc_free(a);
  return 0;
}
