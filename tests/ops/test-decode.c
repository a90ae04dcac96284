/* test-decode.c - what one decode step may cost beside its products: no allocation, few barriers.
 * Every allocation of the process is counted, those inside libc as well; AddressSanitizer has its
 * own malloc, there only the engine's allocator is looked at. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-backend-internal.h"
#include "engine/sampler.h"
#include "tests/unit/timeline-fixture.h"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
#define COUNTS_MALLOC 1

extern void *__libc_malloc(size_t n_bytes);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n_bytes);
extern void *__libc_memalign(size_t align, size_t n_bytes);

static uint64_t n_malloc;

static void
count_malloc(void)
{
  __atomic_fetch_add(&n_malloc, 1, __ATOMIC_RELAXED);
}

void *
malloc(size_t n_bytes)
{
  count_malloc();
  return __libc_malloc(n_bytes);
}

void *
calloc(size_t n, size_t size)
{
  count_malloc();
  return __libc_calloc(n, size);
}

void *
realloc(void *p, size_t n_bytes)
{
  count_malloc();
  return __libc_realloc(p, n_bytes);
}

void *
aligned_alloc(size_t align, size_t n_bytes)
{
  count_malloc();
  return __libc_memalign(align, n_bytes);
}

int
posix_memalign(void **out, size_t align, size_t n_bytes)
{
  count_malloc();
  *out = __libc_memalign(align, n_bytes);
  return *out != NULL ? 0 : 12;
}
#else
#define COUNTS_MALLOC 0
static uint64_t n_malloc;
#endif

typedef struct counts {
  uint64_t n_malloc, n_alloc;
  uint32_t n_barrier, n_run;
} counts;

static counts
take_counts(const tl_fixture *f)
{
  const ks_threads *threads = ks_cpu_get_ctx(f->be.dev)->threads;

  return (counts){n_malloc, ks_alloc_get_n_calls(f->alloc), ks_threads_get_n_barriers(threads),
                  ks_threads_get_n_runs(threads)};
}

/* A timeline after a prompt and enough steps for every list to have its size. */
static ks_timeline *
warm_timeline(tl_fixture *f, bool with_gate)
{
  ks_timeline_params params;
  ks_timeline *tl = NULL;

  memset(f, 0, sizeof(*f));
  f->n_thread = 2;
  f->alloc = ks_alloc_new();
  KS_ASSERT(f->alloc != NULL);
  KS_ASSERT_OK(tl_try_open(f, "llama/model.gguf",
                           with_gate ? "dbtrimkv/gate_tied.safetensors" : NULL, 4, 400, 400));
  params = ks_timeline_default_params(f->model, f->gate, f->pool);
  params.chunk = 16;
  params.buffer = 5;
  params.n_keep = 30 * f->n_stream;
  KS_ASSERT_OK(ks_timeline_new(f->alloc, &params, &tl, NULL));
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1), 60, NULL, NULL));
  for (uint32_t i = 0; i < 100; i++)
    KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(2) + i, 1, NULL, NULL));
  return tl;
}

static void
expect_no_allocation(bool with_gate)
{
  tl_fixture f;
  ks_timeline *tl = warm_timeline(&f, with_gate);
  ks_kv_stats stats;
  uint64_t n_run;
  counts before, after;

  ks_timeline_get_stats(tl, &stats);
  n_run = stats.n_eviction_runs;
  before = take_counts(&f);
  for (uint32_t i = 0; i < 50; i++)
    KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(3) + i, 1, NULL, NULL));
  after = take_counts(&f);
  ks_timeline_get_stats(tl, &stats);
  KS_ASSERT_EQ(stats.n_eviction_runs - n_run, 10);
  KS_ASSERT_EQ(after.n_alloc - before.n_alloc, 0);
  KS_ASSERT_EQ(after.n_malloc - before.n_malloc, 0);
  KS_ASSERT(!COUNTS_MALLOC || before.n_malloc > 100); /* the counter does count */
  ks_timeline_free(tl);
  tl_close(&f);
}

/* Fifty steps with ten evictions ask for no memory, with a gate and with a policy of the keys. */
KS_TEST(decode, allocates_nothing)
{
  expect_no_allocation(true);
  expect_no_allocation(false);
}

/* What one step takes, evictions aside. */
static counts
count_step(bool with_gate)
{
  tl_fixture f;
  ks_timeline *tl = warm_timeline(&f, with_gate);
  counts before = take_counts(&f), after;

  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(4), 1, NULL, NULL));
  after = take_counts(&f);
  ks_timeline_free(tl);
  tl_close(&f);
  return (counts){.n_barrier = after.n_barrier - before.n_barrier,
                  .n_run = after.n_run - before.n_run};
}

/* Two layers: nine places a layer where members wait, the gate's second hidden layer is one more
 * and its output another; two behind the layers.  All of it is one parallel region. */
KS_TEST(decode, barriers_of_a_step)
{
  const counts gated = count_step(true), plain = count_step(false);

  KS_ASSERT_LE(gated.n_barrier, 23);
  KS_ASSERT_LE(plain.n_barrier, 20);
  KS_ASSERT_EQ(gated.n_run, 1);
  KS_ASSERT_EQ(plain.n_run, 1);
}

/* An eviction by the gate is one region more: fifty steps with ten of them are sixty. */
KS_TEST(decode, one_region_an_eviction)
{
  tl_fixture f;
  ks_timeline *tl = warm_timeline(&f, true);
  const counts before = take_counts(&f);

  for (uint32_t i = 0; i < 50; i++)
    KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(3) + i, 1, NULL, NULL));
  KS_ASSERT_EQ(take_counts(&f).n_run - before.n_run, 60);
  ks_timeline_free(tl);
  tl_close(&f);
}

/* Answers n tokens, from heads where the sampler can. */
static void
answer(ks_timeline *tl, const ks_sampler_params *params, uint32_t n_vocab, bool with_head,
       ks_token *out, uint32_t n)
{
  ks_alloc *a = ks_alloc_new();
  ks_sampler *s = NULL;
  uint32_t n_wanted = 0;
  bool has_head = false;

  KS_ASSERT_OK(ks_sampler_new(a, params, n_vocab, &s, NULL));
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1), 20, NULL, NULL));
  for (uint32_t i = 0; i < n; i++) {
    ks_timeline_hooks hooks = {0};
    ks_head_request head;
    const float *logits = has_head ? NULL : ks_timeline_get_logits(tl);

    KS_ASSERT(has_head || logits != NULL);
    out[i] = has_head ? ks_sampler_pick_wanted(s) : ks_sampler_pick(s, logits);
    has_head = with_head && ks_sampler_want(s, out[i], &head);
    hooks.head = has_head ? &head : NULL;
    KS_ASSERT_OK(ks_timeline_eval(tl, &out[i], 1, &hooks, NULL));
    ks_sampler_accept(s, out[i]);
    n_wanted += has_head;
    has_head = has_head && i % 3 != 0; /* the others take the logits that were left out */
  }
  KS_ASSERT(!with_head || n_wanted == n);
  ks_sampler_free(s);
  ks_alloc_free(a);
}

/* The head tells the sampler enough: the same ids as from all logits, with and without penalties;
 * logits that a pass left out can be made afterwards. */
KS_TEST(decode, head_picks_the_same_ids)
{
  for (uint32_t variant = 0; variant < 4; variant++) {
    ks_sampler_params params = ks_sampler_default_params();
    ks_token ids[2][40];
    tl_fixture f;

    params.seed = variant;
    params.temperature = variant == 0 ? 0.0f : 2.0f;
    params.repeat_penalty = variant == 2 ? 1.4f : variant == 3 ? 0.6f : 1.0f;
    params.repeat_last = 20;
    for (uint32_t i = 0; i < 2; i++) {
      ks_timeline *tl = warm_timeline(&f, true);

      answer(tl, &params, ks_model_get_shape(f.model)->n_vocab, i == 1, ids[i], 40);
      ks_timeline_free(tl);
      tl_close(&f);
    }
    KS_ASSERT_EQ(memcmp(ids[0], ids[1], sizeof(ids[0])), 0);
  }
}

KS_TEST_MAIN
