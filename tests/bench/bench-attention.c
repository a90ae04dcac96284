/* bench-attention.c - time of attention, selection and compaction of the CPU backend.
 * Usage: bench-attention [threads [isa [largest depth]]].  A store like that of a 135 M model (30
 * layers, 3 KV heads with 3 query heads each, 64 wide) is filled with noise; every line gives the
 * best and the median of the runs, so that other load on the machine can be told from the kernels.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/backend.h"
#include "engine/kv-pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N_LAYER 30u
#define N_KV_HEAD 3u
#define N_HEAD 9u
#define N_STREAM (N_LAYER * N_KV_HEAD)
#define DIM 64u
#define PAGE 16u
#define MAX_RUNS 200

typedef struct bench {
  ks_alloc *a;
  ks_backend be;
  ks_kv_layout layout;
  ks_kv_stream streams[N_STREAM];
  ks_kv_view view;
  uint32_t n_thread;
} bench;

static void
check(ks_status st, const char *what)
{
  if (st == KS_OK)
    return;
  fprintf(stderr, "%s: %s\n", what, ks_status_name(st));
  exit(1);
}

static double
now_us(uint32_t n_thread)
{
  struct timespec ts;

  /* With one thread the processor time: other load on the machine does not count then. */
  clock_gettime(n_thread == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &ts);
  return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static int
compare_doubles(const void *a, const void *b)
{
  const double x = *(const double *)a, y = *(const double *)b;

  return (x > y) - (x < y);
}

static uint32_t
next_random(uint64_t *seed)
{
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(*seed >> 33);
}

static ks_dptr
device_floats(bench *b, size_t n)
{
  uint64_t seed = 7;
  ks_dptr p;

  check(b->be.t->mem_new(b->be.dev, KS_MEM_SCRATCH, n * sizeof(float), &p, NULL), "memory");
  for (size_t i = 0; i < n; i++)
    ((float *)(uintptr_t)p)[i] = (float)next_random(&seed) / 1073741824.0F - 1.0F;
  return p;
}

/* Streams of depth entries and room for n_new more, pages interleaved as prefill leaves them. */
static void
store_init(bench *b, ks_dtype dtype, uint32_t depth, uint32_t n_new)
{
  const uint32_t n_page = (depth + n_new + PAGE - 1) / PAGE;
  uint64_t seed = 3;
  unsigned char *page, *noise = malloc(64 * 1024);

  for (size_t i = 0; i < 64 * 1024; i++) /* codes and halves of small size */
    noise[i] = (unsigned char)(next_random(&seed) & 0x3B);
  b->layout = (ks_kv_layout){.n_layer = N_LAYER,
                             .n_kv_head = N_KV_HEAD,
                             .k_dim = DIM,
                             .v_dim = DIM,
                             .kv_dtype = dtype,
                             .page_entries = PAGE};
  check(ks_kv_layout_init(&b->layout, NULL), "layout");
  check(b->be.t->mem_new(b->be.dev, KS_MEM_KV, (size_t)n_page * N_STREAM * b->layout.page_bytes,
                         &b->view.base, NULL),
        "pages");
  b->view.layout = &b->layout;
  b->view.streams = b->streams;
  for (uint32_t s = 0; s < N_STREAM; s++) {
    b->streams[s] = (ks_kv_stream){calloc(n_page + 1, sizeof(uint32_t)), n_page, n_page, depth};
    for (uint32_t i = 0; i < n_page; i++) {
      b->streams[s].pages[i] = i * N_STREAM + s;
      page = (unsigned char *)(uintptr_t)b->view.base +
             (size_t)b->streams[s].pages[i] * b->layout.page_bytes;
      memcpy(page, noise + next_random(&seed) % 64 * 64, b->layout.log_beta_offset);
      for (uint32_t j = 0; j < PAGE; j++) {
        ((uint32_t *)(void *)(page + b->layout.pos_offset))[j] = i * PAGE + j;
        ((float *)(void *)(page + b->layout.log_beta_offset))[j] =
            -(float)next_random(&seed) / 4294967296.0F;
      }
    }
  }
  free(noise);
}

static void
store_done(bench *b)
{
  for (uint32_t s = 0; s < N_STREAM; s++)
    free(b->streams[s].pages);
  b->be.t->mem_free(b->be.dev, b->view.base);
}

/* Runs n_tok queries through all layers; returns the best time and the median in *median. */
static double
time_attention(bench *b, uint32_t n_tok, int n_run, double *median)
{
  const ks_dptr q = device_floats(b, (size_t)n_tok * N_HEAD * DIM);
  const ks_dptr out = device_floats(b, (size_t)n_tok * N_HEAD * DIM);
  uint32_t *range = calloc(2 * n_tok, sizeof(*range));
  double times[MAX_RUNS];

  for (uint32_t t = 0; t < n_tok; t++)
    range[n_tok + t] = b->streams[0].n_entry + t;
  for (int run = 0; run < n_run; run++) {
    const double start = now_us(b->n_thread);

    check(b->be.t->step_begin(b->be.dev, NULL), "step");
    for (uint32_t layer = 0; layer < N_LAYER; layer++) {
      ks_op_attention op = {.kv = b->view,
                            .layer = layer,
                            .n_tok = n_tok,
                            .n_head = N_HEAD,
                            .n_new = n_tok,
                            .q = q,
                            .out = out,
                            .scale = 0.125F};

      op.first = (ks_dptr)(uintptr_t)range;
      op.last = (ks_dptr)(uintptr_t)(range + n_tok);
      check(b->be.t->attention(b->be.dev, &op), "attention");
    }
    check(b->be.t->step_end(b->be.dev, NULL, NULL, NULL), "run");
    times[run] = now_us(b->n_thread) - start;
  }
  qsort(times, (size_t)n_run, sizeof(times[0]), compare_doubles);
  *median = times[n_run / 2];
  free(range);
  b->be.t->mem_free(b->be.dev, q);
  b->be.t->mem_free(b->be.dev, out);
  return times[0];
}

static void
bench_attention(bench *b, uint32_t max_depth)
{
  static const struct {
    ks_dtype dtype;
    const char *name;
  } types[] = {{KS_DTYPE_F32, "f32"}, {KS_DTYPE_F16, "f16"}, {KS_DTYPE_Q8_0, "q8_0"}};
  static const uint32_t depths[] = {0, 128, 512, 1024, 2048, 8192};
  double median;

  printf("decode: kv depth best_us median_us GB/s\n");
  for (int i = 0; i < 3; i++)
    for (size_t j = 1; j < sizeof(depths) / sizeof(depths[0]) && depths[j] <= max_depth; j++) {
      double best, bytes;

      store_init(b, types[i].dtype, depths[j], 1);
      best = time_attention(b, 1, depths[j] > 2048 ? 20 : 100, &median);
      bytes =
          (double)N_STREAM * depths[j] * (double)(b->layout.k_row_bytes + b->layout.v_row_bytes);
      printf("decode: %s %u %.0f %.0f %.1f\n", types[i].name, depths[j], best, median,
             bytes / best / 1e3);
      store_done(b);
    }
  printf("prefill of 512: kv depth best_us median_us GFLOP/s\n");
  for (int i = 0; i < 3; i++)
    for (size_t j = 0; j < 5 && depths[j] <= max_depth; j += 4) {
      const uint32_t n_tok = 512;
      double best, flop;

      store_init(b, types[i].dtype, depths[j], n_tok);
      best = time_attention(b, n_tok, 5, &median);
      flop = 4.0 * DIM * N_HEAD * N_LAYER * n_tok * (depths[j] + (n_tok + 1) / 2.0);
      printf("prefill: %s %u %.0f %.0f %.1f\n", types[i].name, depths[j], best, median,
             flop / best / 1e3);
      store_done(b);
    }
}

/* One eviction of 90 streams of 1,056 entries down to 1,024 a stream. */
static void
bench_eviction(bench *b)
{
  const size_t total = (size_t)N_STREAM * 1056;
  uint32_t counts[N_STREAM];
  double times[4][MAX_RUNS];
  ks_dptr scores, keep;

  store_init(b, KS_DTYPE_F16, 1056, 0);
  scores = device_floats(b, total);
  keep = device_floats(b, total / 4 + 1);
  for (int run = 0; run < 20; run++)
    for (int part = 0; part < 4; part++) {
      const ks_op_kv_score score = {b->view, scores, 1056, part == 3 ? 2 : 1, NULL, NULL, 0};
      const ks_op_kv_select select = {b->view, scores, keep, (uint64_t)N_STREAM * 1024, 0, NULL,
                                      counts,  NULL,   NULL};
      const ks_op_kv_compact compact = {b->view, keep};
      const double start = now_us(b->n_thread);

      check(b->be.t->step_begin(b->be.dev, NULL), "step");
      if (part == 0 || part == 3)
        check(b->be.t->kv_score(b->be.dev, &score), "score");
      else if (part == 1)
        check(b->be.t->kv_select(b->be.dev, &select), "select");
      else
        check(b->be.t->kv_compact(b->be.dev, &compact), "compact");
      check(b->be.t->step_end(b->be.dev, NULL, NULL, NULL), "run");
      times[part][run] = now_us(b->n_thread) - start;
    }
  printf("eviction of %zu entries: part best_us median_us\n", total);
  for (int part = 0; part < 4; part++) {
    static const char *const names[] = {"score", "select", "compact", "score_lookahead_2"};

    qsort(times[part], 20, sizeof(times[0][0]), compare_doubles);
    printf("eviction: %s %.0f %.0f\n", names[part], times[part][0], times[part][10]);
  }
  b->be.t->mem_free(b->be.dev, scores);
  b->be.t->mem_free(b->be.dev, keep);
  store_done(b);
}

int
main(int argc, char **argv)
{
  static bench b;
  ks_dev_params params = {.n_thread = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0};
  ks_dev_info info;
  ks_error err;

  b.a = ks_alloc_new();
  params.alloc = b.a;
  params.isa = argc > 2 ? argv[2] : NULL;
  if (ks_backend_open("cpu", &params, &b.be, &err) != KS_OK) {
    fprintf(stderr, "%s\n", err.text);
    return 1;
  }
  b.be.t->get_info(b.be.dev, &info);
  b.n_thread = info.n_unit;
  printf("%s, %u threads, %s\n", info.name, info.n_unit, info.isa);
  bench_attention(&b, argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 8192);
  bench_eviction(&b);
  ks_backend_close(&b.be);
  ks_alloc_free(b.a);
  return 0;
}
