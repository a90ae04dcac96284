/* bench-attention.c - time of attention, selection and compaction of the CPU backend.
 * Usage: bench-attention [what [threads [isa [largest depth [mode]]]]], what = decode, prefill,
 * mass, evict or all, mode = exact or fast.  Pages are filled with noise and lie in a range as the
 * program's do; decode is compared with plain reading of the same bytes by the same threads,
 * prefill with the rate of multiplications of registers, evictions with the decode steps between
 * two of them.  Lines give the best and the median of many short runs: other load on the machine
 * can be told from the kernels.  Attention of decode is repeated over as many layers as make the
 * pages larger than the last-level cache. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-kv-internal.h"
#include "engine/kv-pool.h"
#include "tests/ks-clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 16u
#define MAX_RUNS 200
#define RANGE_UNIT ((size_t)2 << 20)
#define DECODE_BYTES ((size_t)72 << 20) /* larger than the usual last-level cache */

typedef struct geometry {
  uint32_t n_layer, n_kv_head, group, dim;
  ks_dtype dtype;
  uint32_t depth, n_new;
} geometry;

typedef struct bench {
  ks_alloc *a;
  ks_backend be;
  geometry g;
  ks_kv_layout layout;
  ks_kv_stream *streams;
  uint32_t n_stream;
  size_t range_bytes;
  ks_kv_view view;
  uint32_t n_thread;
} bench;

static const struct {
  ks_dtype dtype;
  const char *name;
} types[] = {{KS_DTYPE_F32, "f32"}, {KS_DTYPE_F16, "f16"}, {KS_DTYPE_Q8_0, "q8_0"}};

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
  /* With one thread the processor time: other load on the machine does not count then. */
  return 1e6 * ks_clock_seconds(n_thread == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC);
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
    ((float *)ks_cpu_ptr(p))[i] = (float)next_random(&seed) / 1073741824.0F - 1.0F;
  return p;
}

/* Fills page i of a stream: sequence indices, gates, and stored numbers of small size. */
static void
fill_page(const bench *b, uint32_t stream, uint32_t i, const unsigned char *noise, uint64_t *seed)
{
  const ks_kv_layout *layout = &b->layout;
  unsigned char *page = ks_cpu_ptr(b->view.base);
  size_t at = 0;

  page += (size_t)b->streams[stream].pages[i] * layout->page_bytes;
  while (at < layout->log_beta_offset) {
    const size_t left = layout->log_beta_offset - at, n = left < 4096 ? left : 4096;

    memcpy(page + at, noise + next_random(seed) % 64 * 64, n);
    at += n;
  }
  for (uint32_t j = 0; j < PAGE; j++) {
    ((uint32_t *)(void *)(page + layout->pos_offset))[j] = i * PAGE + j;
    ((float *)(void *)(page + layout->log_beta_offset))[j] =
        -(float)next_random(seed) / 4294967296.0F;
  }
}

/* Streams of depth entries and room for n_new more, pages interleaved as prefill leaves them. */
static void
store_init(bench *b, const geometry *g)
{
  const uint32_t n_page = (g->depth + g->n_new + PAGE - 1) / PAGE;
  unsigned char *noise = malloc(64 * 1024);
  uint64_t seed = 3;

  for (size_t i = 0; i < 64 * 1024; i++) /* codes and halves of small size */
    noise[i] = (unsigned char)(next_random(&seed) & 0x3B);
  b->g = *g;
  b->n_stream = g->n_layer * g->n_kv_head;
  b->layout = (ks_kv_layout){.n_layer = g->n_layer,
                             .n_kv_head = g->n_kv_head,
                             .k_dim = g->dim,
                             .v_dim = g->dim,
                             .kv_dtype = g->dtype,
                             .page_entries = PAGE};
  check(ks_kv_layout_init(&b->layout, NULL), "layout");
  b->range_bytes = (size_t)n_page * b->n_stream * b->layout.page_bytes;
  b->range_bytes = (b->range_bytes + RANGE_UNIT - 1) / RANGE_UNIT * RANGE_UNIT;
  check(b->be.t->range_new(b->be.dev, b->range_bytes, &b->view.base, NULL), "range");
  check(b->be.t->range_commit(b->be.dev, b->view.base, 0, b->range_bytes, NULL), "pages");
  b->streams = calloc(b->n_stream, sizeof(*b->streams));
  b->view.layout = &b->layout;
  b->view.streams = b->streams;
  for (uint32_t s = 0; s < b->n_stream; s++)
    b->streams[s] = (ks_kv_stream){calloc(n_page + 1, sizeof(uint32_t)), n_page, n_page, g->depth};
  for (uint32_t i = 0; i < n_page; i++)
    for (uint32_t s = 0; s < b->n_stream; s++) {
      b->streams[s].pages[i] = i * b->n_stream + s;
      fill_page(b, s, i, noise, &seed);
    }
  free(noise);
}

static void
store_done(bench *b)
{
  for (uint32_t s = 0; s < b->n_stream; s++)
    free(b->streams[s].pages);
  free(b->streams);
  b->be.t->range_free(b->be.dev, b->view.base, b->range_bytes);
}

/* ---- plain reading ---- */

typedef struct read_job {
  const ks_cpu_vec_fns *vec;
  const float *x;
  size_t n;
  float sums[256];
} read_job;

static void
read_slice(void *user, uint32_t member, uint32_t n_member)
{
  read_job *job = user;
  size_t begin, end;

  ks_cpu_slice(job->n / 16, member, n_member, &begin, &end);
  job->sums[member] = job->vec->sum(job->x + begin * 16, (end - begin) * 16);
}

/* One pass over the range; adding up keeps the reads. */
static double
time_reading(bench *b)
{
  const ks_cpu_ctx *ctx = ks_cpu_get_ctx(b->be.dev);
  read_job job = {ctx->vec, ks_cpu_ptr(b->view.base), b->range_bytes / sizeof(float), {0}};
  const double start = now_us(b->n_thread);

  ks_threads_run(ctx->threads, read_slice, &job);
  return now_us(b->n_thread) - start;
}

/* ---- attention ---- */

typedef struct attention_args {
  ks_dptr q, out, mass;
  uint64_t mass_offset[8];
  uint32_t *range; /* first [n_tok], last [n_tok] */
  uint32_t n_tok, window;
} attention_args;

static attention_args
args_new(bench *b, uint32_t n_tok, uint32_t window)
{
  const size_t width = (size_t)b->g.n_kv_head * b->g.group * b->g.dim;
  attention_args args = {.n_tok = n_tok, .window = window};

  args.q = device_floats(b, n_tok * width);
  args.out = device_floats(b, n_tok * width);
  args.range = calloc(2 * n_tok, sizeof(*args.range));
  for (uint32_t t = 0; t < n_tok; t++)
    args.range[n_tok + t] = b->g.depth + t;
  if (window > 0)
    args.mass = device_floats(b, (size_t)b->g.n_kv_head * (b->g.depth + n_tok));
  for (uint32_t h = 0; h < b->g.n_kv_head; h++)
    args.mass_offset[h] = (uint64_t)h * (b->g.depth + n_tok);
  return args;
}

static void
args_done(bench *b, attention_args *args)
{
  free(args->range);
  b->be.t->mem_free(b->be.dev, args->q);
  b->be.t->mem_free(b->be.dev, args->out);
  if (args->mass != 0)
    b->be.t->mem_free(b->be.dev, args->mass);
}

/* All layers once. */
static double
run_attention(bench *b, const attention_args *args)
{
  const double start = now_us(b->n_thread);

  check(b->be.t->step_begin(b->be.dev, NULL), "step");
  for (uint32_t layer = 0; layer < b->g.n_layer; layer++) {
    ks_op_attention op = {.kv = b->view,
                          .layer = layer,
                          .n_tok = args->n_tok,
                          .n_head = b->g.n_kv_head * b->g.group,
                          .n_new = args->n_tok,
                          .q = args->q,
                          .out = args->out,
                          .mass = args->mass,
                          .mass_offset = args->mass_offset,
                          .mass_window = args->window,
                          .scale = 0.125F};

    op.first = (ks_dptr)(uintptr_t)args->range;
    op.last = (ks_dptr)(uintptr_t)(args->range + args->n_tok);
    check(b->be.t->attention(b->be.dev, &op), "attention");
  }
  check(b->be.t->step_end(b->be.dev, NULL, NULL, NULL), "run");
  return now_us(b->n_thread) - start;
}

static double
best_of(double *times, int n, double *median)
{
  qsort(times, (size_t)n, sizeof(times[0]), compare_doubles);
  *median = times[n / 2];
  return times[0];
}

/* Layers that make the keys and values of one step larger than the cache, and its runs few. */
static uint32_t
layers_for(const geometry *g)
{
  size_t k_row = 0;

  if (!ks_dtype_row_bytes(g->dtype, g->dim, &k_row))
    exit(1);
  return (uint32_t)(DECODE_BYTES / (2 * k_row * g->n_kv_head * g->depth) + 1);
}

static void
decode_line(bench *b, const geometry *g, const char *type)
{
  double attn[MAX_RUNS], plain[MAX_RUNS], median, best, best_plain, median_plain, bytes;
  attention_args args;
  const int n_run = 11;

  store_init(b, g);
  args = args_new(b, 1, 0);
  for (int run = 0; run < n_run; run++) {
    attn[run] = run_attention(b, &args);
    plain[run] = time_reading(b);
  }
  best = best_of(attn, n_run, &median);
  best_plain = best_of(plain, n_run, &median_plain);
  bytes = (double)b->n_stream * (g->depth + 1) *
          (double)(b->layout.k_row_bytes + b->layout.v_row_bytes);
  printf("decode: %s %u %u %u %.0f %.0f %.1f %.1f %.2f\n", type, g->dim, g->group, g->depth, best,
         median, bytes / best / 1e3, (double)b->range_bytes / best_plain / 1e3,
         bytes / best / ((double)b->range_bytes / best_plain));
  fflush(stdout);
  args_done(b, &args);
  store_done(b);
}

static void
bench_decode(bench *b, uint32_t max_depth)
{
  static const uint32_t depths[] = {256, 1024, 4096, 16384};
  static const uint32_t shapes[][3] = {/* KV heads, group, head size */
                                       {3, 3, 64},
                                       {4, 1, 64},
                                       {2, 7, 64},
                                       {2, 4, 80},
                                       {2, 4, 128}};

  printf("decode: kv head group depth best_us median_us GB/s plain_GB/s share\n");
  for (size_t t = 0; t < 3; t++)
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
      for (size_t j = 0; j < sizeof(depths) / sizeof(depths[0]) && depths[j] <= max_depth; j++) {
        geometry g = {0, shapes[i][0], shapes[i][1], shapes[i][2], types[t].dtype, depths[j], 1};

        if (g.dtype == KS_DTYPE_Q8_0 && g.dim % 32 != 0)
          continue;
        g.n_layer = layers_for(&g);
        decode_line(b, &g, types[t].name);
      }
}

/* The rate of multiply-adds on registers and the first-level cache, GFLOP/s of all threads. */
static double
peak_gflops(bench *b)
{
  const ks_cpu_ctx *ctx = ks_cpu_get_ctx(b->be.dev);
  static float a[6 * 256], w[256 * 16], c[6 * 16];
  double best = 1e30;

  for (int run = 0; run < 20; run++) {
    const double start = now_us(1);
    double time;

    for (int i = 0; i < 100; i++)
      ctx->vec->gemm(c, 16, a, 256, w, 16, 6, 16, 256, false);
    time = now_us(1) - start;

    best = time < best ? time : best;
  }
  return 100 * 2.0 * 6 * 16 * 256 / best / 1e3 * b->n_thread;
}

static void
bench_prefill(bench *b, uint32_t max_depth)
{
  static const uint32_t depths[] = {0, 1024, 2048, 8192};
  static const uint32_t shapes[][3] = {{3, 3, 64}, {2, 4, 128}};
  const double peak = peak_gflops(b);

  printf("prefill of 256: kv head group depth best_us median_us GFLOP/s share_of_%.0f\n", peak);
  for (size_t t = 0; t < 3; t++)
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
      for (size_t j = 0; j < sizeof(depths) / sizeof(depths[0]) && depths[j] <= max_depth; j++) {
        const uint32_t n_tok = 256;
        const geometry g = {2,         shapes[i][0], shapes[i][1], shapes[i][2], types[t].dtype,
                            depths[j], n_tok};
        double times[MAX_RUNS], best, median, flop;
        attention_args args;

        store_init(b, &g);
        args = args_new(b, n_tok, 0);
        for (int run = 0; run < 7; run++)
          times[run] = run_attention(b, &args);
        best = best_of(times, 7, &median);
        flop =
            4.0 * g.dim * g.n_kv_head * g.group * g.n_layer * n_tok * (g.depth + (n_tok + 1) / 2.0);
        printf("prefill: %s %u %u %u %.0f %.0f %.1f %.2f\n", types[t].name, g.dim, g.group, g.depth,
               best, median, flop / best / 1e3, flop / best / 1e3 / peak);
        fflush(stdout);
        args_done(b, &args);
        store_done(b);
      }
}

/* Attention with and without the mass, alternating. */
static void
bench_mass(bench *b)
{
  static const uint32_t n_toks[] = {1, 256}, windows[] = {1, 32};

  printf("mass: kv n_tok window depth best_us best_with_us extra\n");
  for (size_t t = 0; t < 3; t++)
    for (size_t i = 0; i < 2; i++)
      for (uint32_t depth = 1024; depth <= 4096; depth *= 4) {
        const geometry g = {n_toks[i] > 1 ? 2 : 12, 3, 3, 64, types[t].dtype, depth, n_toks[i]};
        const int n_run = 15;
        double with[MAX_RUNS], without[MAX_RUNS], median, best, best_with;
        attention_args args, args_with;

        store_init(b, &g);
        args = args_new(b, n_toks[i], 0);
        args_with = args_new(b, n_toks[i], windows[i]);
        for (int run = 0; run < n_run; run++) {
          without[run] = run_attention(b, &args);
          with[run] = run_attention(b, &args_with);
        }
        best = best_of(without, n_run, &median);
        best_with = best_of(with, n_run, &median);
        printf("mass: %s %u %u %u %.0f %.0f %.1f%%\n", types[t].name, n_toks[i], windows[i], depth,
               best, best_with, (best_with / best - 1.0) * 100.0);
        fflush(stdout);
        args_done(b, &args);
        args_done(b, &args_with);
        store_done(b);
      }
}

/* ---- eviction ---- */

enum { SCORE, SELECT, COMPACT, LOOKAHEAD, N_PART };

static double
run_eviction_part(bench *b, int part, ks_dptr scores, ks_dptr keep, uint32_t *counts)
{
  const ks_op_kv_score score = {b->view, scores, b->g.depth, part == LOOKAHEAD ? 2 : 1,
                                NULL,    NULL,   0};
  const ks_op_kv_select select = {
      b->view, scores, keep, (uint64_t)b->n_stream * (b->g.depth - 32), 0, NULL,
      counts,  NULL,   NULL};
  const ks_op_kv_compact compact = {b->view, keep};
  const double start = now_us(b->n_thread);

  check(b->be.t->step_begin(b->be.dev, NULL), "step");
  if (part == SCORE || part == LOOKAHEAD)
    check(b->be.t->kv_score(b->be.dev, &score), "score");
  else if (part == SELECT)
    check(b->be.t->kv_select(b->be.dev, &select), "select");
  else
    check(b->be.t->kv_compact(b->be.dev, &compact), "compact");
  check(b->be.t->step_end(b->be.dev, NULL, NULL, NULL), "run");
  return now_us(b->n_thread) - start;
}

/* One eviction of 90 streams down to depth - 32 a stream, beside the attention of 32 steps. */
static void
bench_eviction(bench *b)
{
  static const char *const names[] = {"score", "select", "compact", "score_lookahead_2"};

  printf("eviction: kv entries part best_us median_us\n");
  for (size_t t = 1; t < 3; t++)
    for (uint32_t depth = 1056; depth <= 4128; depth += 3072) {
      const geometry g = {30, 3, 3, 64, types[t].dtype, depth, 1};
      double times[N_PART + 1][MAX_RUNS], median, best, sum = 0;
      uint32_t counts[90];
      attention_args args;
      ks_dptr scores, keep;

      store_init(b, &g);
      args = args_new(b, 1, 0);
      scores = device_floats(b, (size_t)b->n_stream * depth);
      keep = device_floats(b, (size_t)b->n_stream * depth / 4 + 1);
      for (int run = 0; run < 15; run++) {
        for (int part = 0; part < N_PART; part++)
          times[part][run] = run_eviction_part(b, part, scores, keep, counts);
        times[N_PART][run] = run_attention(b, &args);
      }
      for (int part = 0; part < N_PART; part++) {
        best = best_of(times[part], 15, &median);
        sum += part != LOOKAHEAD ? best : 0;
        printf("eviction: %s %u %s %.0f %.0f\n", types[t].name, depth, names[part], best, median);
      }
      best = best_of(times[N_PART], 15, &median);
      printf("eviction: %s %u attention_of_a_step %.0f %.0f; one eviction / 32 steps' attention "
             "%.2f%%\n",
             types[t].name, depth, best, median, sum / (32 * best) * 100);
      fflush(stdout);
      args_done(b, &args);
      b->be.t->mem_free(b->be.dev, scores);
      b->be.t->mem_free(b->be.dev, keep);
      store_done(b);
    }
}

int
main(int argc, char **argv)
{
  static bench b;
  const char *what = argc > 1 ? argv[1] : "all";
  const uint32_t max_depth = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 16384;
  ks_dev_params params = {.n_thread = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0};
  const bool all = strcmp(what, "all") == 0;
  ks_dev_info info;
  ks_error err;

  b.a = ks_alloc_new();
  params.alloc = b.a;
  params.isa = argc > 3 && strcmp(argv[3], "best") != 0 ? argv[3] : NULL;
  params.mode = argc > 5 && strcmp(argv[5], "fast") == 0 ? KS_COMPUTE_FAST : KS_COMPUTE_EXACT;
  if (ks_backend_open("cpu", &params, &b.be, &err) != KS_OK) {
    fprintf(stderr, "%s\n", err.text);
    return 1;
  }
  b.be.t->get_info(b.be.dev, &info);
  b.n_thread = info.n_unit;
  printf("%s, %u threads, %s, %s\n", info.name, info.n_unit, info.isa,
         params.mode == KS_COMPUTE_FAST ? "fast" : "exact");
  if (all || strcmp(what, "decode") == 0)
    bench_decode(&b, max_depth);
  if (all || strcmp(what, "prefill") == 0)
    bench_prefill(&b, max_depth);
  if (all || strcmp(what, "mass") == 0)
    bench_mass(&b);
  if (all || strcmp(what, "evict") == 0)
    bench_eviction(&b);
  ks_backend_close(&b.be);
  ks_alloc_free(b.a);
  return 0;
}
