/* bench-limits.c - what the machine can do at most: memory bandwidth and rates of arithmetic.
 * Usage: bench-limits [MAX_THREADS]        prints one JSON object; about two seconds a thread count
 *   read, triad   GB/s from huge pages far larger than caches: a plain sum; a = b + s * c, counted
 *                 as three streams
 *   *_gflops      f32, a product and a sum in one instruction, counted as two
 *   *_gmacs       bytes times bytes, in products: pair16 sums pairs in 16 bits, pair32 on to 32 as
 *                 kernels must from time to time, vnni in one instruction
 * Loops of arithmetic stay in registers.  Best of many short rounds, since others disturb; a rate
 * that this processor does not have is left out.  Source of the goals: docs/performance.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/threads.h"
#include "tests/ks-clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define STREAM_FLOATS ((size_t)16 << 20) /* of one stream: 64 MiB */
#define HUGE_PAGE ((size_t)2 << 20)
#define N_SUM 12 /* chains of sums that do not wait for each other */
#define N_STEP 20000
#define N_MEMORY_ROUND 24
#define N_PEAK_ROUND 60

/* Four numbers in one register of any processor. */
typedef uint32_t lanes __attribute__((vector_size(16)));

typedef struct limits {
  ks_threads *threads;
  float *a, *b, *c;
  float sink[64];
} limits;

/* Best of n rounds, in runs a second. */
static double
best_rate(limits *l, ks_thread_fn fn, int n)
{
  double best = 0;

  for (int i = 0; i < n; i++) {
    double begin = ks_clock_seconds(CLOCK_MONOTONIC), rate;

    ks_threads_run(l->threads, fn, l);
    rate = 1 / (ks_clock_seconds(CLOCK_MONOTONIC) - begin);
    best = rate > best ? rate : best;
  }
  return best;
}

static void
slice(uint32_t member, uint32_t n_member, size_t *begin, size_t *end)
{
  size_t part = STREAM_FLOATS / n_member / 64 * 64;

  *begin = member * part;
  *end = member + 1 == n_member ? STREAM_FLOATS : *begin + part;
}

static void
triad_member(void *user, uint32_t member, uint32_t n_member)
{
  limits *l = user;
  float *restrict a = l->a;
  const float *restrict b = l->b, *restrict c = l->c;
  size_t begin, end;

  slice(member, n_member, &begin, &end);
  for (size_t i = begin; i < end; i++)
    a[i] = b[i] + 3 * c[i];
}

static void
read_member(void *user, uint32_t member, uint32_t n_member)
{
  limits *l = user;
  const float *streams[] = {l->a, l->b, l->c};
  lanes sum[4] = {{0}, {0}, {0}, {0}};
  size_t begin, end;

  slice(member, n_member, &begin, &end);
  for (int k = 0; k < 3; k++) {
    const lanes *at = (const lanes *)(const void *)(streams[k] + begin);
    const lanes *stop = at + (end - begin) / 4;

    for (; at < stop; at += 4) {
      sum[0] ^= at[0];
      sum[1] ^= at[1];
      sum[2] ^= at[2];
      sum[3] ^= at[3];
    }
  }
  sum[0] ^= sum[1] ^ sum[2] ^ sum[3];
  l->sink[member % 64] = (float)(sum[0][0] ^ sum[0][1] ^ sum[0][2] ^ sum[0][3]);
}

#if defined(__x86_64__)
/* One function for each kind of product: N_STEP times N_SUM independent steps.  The empty
 * statements keep the compiler from taking anything out of the loop. */
#define PEAK_FN(name, isa, type, set, step, get)                                                   \
  __attribute__((target(isa))) static void name(void *user, uint32_t member, uint32_t n_member)    \
  {                                                                                                \
    limits *l = user;                                                                              \
    type sum[N_SUM], w = set(3), x = set(1);                                                       \
                                                                                                   \
    (void)n_member;                                                                                \
    for (int i = 0; i < N_SUM; i++)                                                                \
      sum[i] = set(0);                                                                             \
    for (int r = 0; r < N_STEP; r++) {                                                             \
      _Pragma("GCC unroll 12") for (int i = 0; i < N_SUM; i++)                                     \
      {                                                                                            \
        __asm__ volatile("" : "+v"(w), "+v"(sum[i]));                                              \
        sum[i] = step(sum[i], w, x);                                                               \
      }                                                                                            \
    }                                                                                              \
    for (int i = 1; i < N_SUM; i++)                                                                \
      __asm__ volatile("" : : "v"(sum[i]));                                                        \
    l->sink[member % 64] = (float)get(sum[0]);                                                     \
  }

#define FMA256(s, w, x) _mm256_fmadd_ps(w, x, s)
#define PAIR16(s, w, x) _mm256_add_epi16(s, _mm256_maddubs_epi16(w, x))
#define PAIR32(s, w, x) _mm256_add_epi32(s, _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), x))
#define FMA512(s, w, x) _mm512_fmadd_ps(w, x, s)
#define VNNI512(s, w, x) _mm512_dpbusd_epi32(s, w, x)
#define FIRST32(v) _mm_cvtsi128_si32(_mm256_castsi256_si128(v))
#define FIRST512(v) _mm_cvtsi128_si32(_mm512_castsi512_si128(v))

PEAK_FN(fma256_member, "avx2,fma", __m256, _mm256_set1_ps, FMA256, _mm256_cvtss_f32)
PEAK_FN(pair16_member, "avx2", __m256i, _mm256_set1_epi8, PAIR16, FIRST32)
PEAK_FN(pair32_member, "avx2", __m256i, _mm256_set1_epi8, PAIR32, FIRST32)
PEAK_FN(fma512_member, "avx512f", __m512, _mm512_set1_ps, FMA512, _mm512_cvtss_f32)
PEAK_FN(vnni512_member, "avx512f,avx512bw,avx512vnni", __m512i, _mm512_set1_epi8, VNNI512, FIRST512)

static void
print_peaks(limits *l)
{
  const struct {
    const char *name;
    ks_thread_fn fn;
    double per_step;
    bool is_there;
  } peaks[] = {
      {"avx2_gflops", fma256_member, 16, __builtin_cpu_supports("fma")},
      {"avx2_pair16_gmacs", pair16_member, 32, __builtin_cpu_supports("avx2")},
      {"avx2_pair32_gmacs", pair32_member, 32, __builtin_cpu_supports("avx2")},
      {"avx512_gflops", fma512_member, 32, __builtin_cpu_supports("avx512f")},
      {"avx512_vnni_gmacs", vnni512_member, 64, __builtin_cpu_supports("avx512vnni")},
  };
  const double steps = 1e-9 * N_SUM * N_STEP * ks_threads_get_n(l->threads);

  for (size_t i = 0; i < sizeof peaks / sizeof peaks[0]; i++)
    if (peaks[i].is_there)
      printf(", \"%s\": %.1f", peaks[i].name,
             steps * peaks[i].per_step * best_rate(l, peaks[i].fn, N_PEAK_ROUND));
}
#else
static void
print_peaks(limits *l)
{
  (void)l;
}
#endif

static float *
new_stream(void)
{
  float *p = aligned_alloc(HUGE_PAGE, STREAM_FLOATS * sizeof *p);

  if (p != NULL) {
    (void)madvise(p, STREAM_FLOATS * sizeof *p, MADV_HUGEPAGE);
    for (size_t i = 0; i < STREAM_FLOATS; i++)
      p[i] = (float)(i % 7);
  }
  return p;
}

int
main(int argc, char **argv)
{
  const uint32_t max = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 2;
  const double gigabytes = 3e-9 * STREAM_FLOATS * sizeof(float);
  static limits l;
  ks_alloc *alloc = ks_alloc_new();
  int rc = 0;

  l.a = new_stream();
  l.b = new_stream();
  l.c = new_stream();
  if (alloc == NULL || l.a == NULL || l.b == NULL || l.c == NULL || max < 1) {
    fprintf(stderr, "usage: bench-limits [MAX_THREADS]   (needs 200 MiB)\n");
    rc = 1;
  }
  for (uint32_t n = 1; rc == 0 && n <= max; n++) {
    if (ks_threads_new(alloc, n, &l.threads, NULL) != KS_OK) {
      rc = 1;
      break;
    }
    printf("%s\"%u\": {\"read\": %.2f", n > 1 ? ", " : "{", n,
           gigabytes * best_rate(&l, read_member, N_MEMORY_ROUND));
    printf(", \"triad\": %.2f", gigabytes * best_rate(&l, triad_member, N_MEMORY_ROUND));
    print_peaks(&l);
    printf("}%s", n == max ? "}\n" : "");
    ks_threads_free(l.threads);
  }
  ks_alloc_free(alloc);
  free(l.a);
  free(l.b);
  free(l.c);
  return rc;
}
