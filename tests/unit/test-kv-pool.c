/* test-kv-pool.c - the page pool and the page lists on a fake backend: budget, order of pages,
 * growing and shrinking, failing halfway, and the rule from bytes to entries. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/kv-pool.h"

#include "tests/ks-test.h"
#include "tests/unit/fake-backend.h"

#include <unistd.h>

#define N_STREAM 6u
#define P 4u

typedef struct fixture {
  ks_alloc *alloc;
  ks_dev dev;
  ks_backend be;
  ks_kv_layout layout;
  ks_kv_pool *pool;
} fixture;

static void
set_up(fixture *f, uint32_t n_page, uint32_t max_page)
{
  memset(f, 0, sizeof(*f));
  f->alloc = ks_alloc_new();
  KS_ASSERT(f->alloc != NULL);
  f->be = (ks_backend){.t = &fake_table, .dev = &f->dev};
  f->layout = (ks_kv_layout){.n_layer = 3,
                             .n_kv_head = 2,
                             .k_dim = 64,
                             .v_dim = 32,
                             .kv_dtype = KS_DTYPE_F32,
                             .page_entries = P};
  KS_ASSERT_OK(ks_kv_layout_init(&f->layout, NULL));
  KS_ASSERT_OK(ks_kv_pool_new(f->alloc, &f->be, &f->layout, n_page * f->layout.page_bytes,
                              max_page * f->layout.page_bytes, &f->pool, NULL));
  KS_ASSERT(ks_kv_pool_check(f->pool));
}

static void
tear_down(fixture *f)
{
  KS_ASSERT(ks_kv_pool_check(f->pool));
  KS_ASSERT_EQ(ks_kv_pool_get_used_pages(f->pool), 0);
  ks_kv_pool_free(f->pool);
  KS_ASSERT_EQ(f->dev.n_committed, 0);
  KS_ASSERT_EQ(ks_alloc_get_bytes(f->alloc, KS_MEM_HOST), 0);
  ks_alloc_free(f->alloc);
}

/* Writes a mark of (tag, entry) into the pos plane of every entry of every stream. */
static void
write_marks(const ks_kv_table *table, uint32_t tag)
{
  const ks_kv_view view = ks_kv_table_get_view(table);

  for (uint32_t s = 0; s < N_STREAM; s++)
    for (uint32_t e = 0; e < view.streams[s].n_entry; e++) {
      char *page =
          (char *)(uintptr_t)view.base + view.streams[s].pages[e / P] * view.layout->page_bytes;

      ((uint32_t *)(void *)(page + view.layout->pos_offset))[e % P] = tag + 1000 * s + e;
    }
}

static bool
marks_hold(const ks_kv_table *table, uint32_t tag)
{
  const ks_kv_view view = ks_kv_table_get_view(table);

  for (uint32_t s = 0; s < N_STREAM; s++)
    for (uint32_t e = 0; e < view.streams[s].n_entry; e++) {
      const char *page = (const char *)(uintptr_t)view.base +
                         view.streams[s].pages[e / P] * view.layout->page_bytes;

      if (((const uint32_t *)(const void *)(page + view.layout->pos_offset))[e % P] !=
          tag + 1000 * s + e)
        return false;
    }
  return true;
}

static void
append(ks_kv_table *table, uint32_t n)
{
  KS_ASSERT_OK(ks_kv_table_reserve(table, n, NULL));
  ks_kv_table_commit(table, n);
}

/* Planes never overlap, are aligned, and page sizes follow from the types. */
KS_TEST(kv_pool, layout)
{
  ks_kv_layout l = {.n_layer = 2,
                    .n_kv_head = 3,
                    .k_dim = 64,
                    .v_dim = 64,
                    .kv_dtype = KS_DTYPE_F16,
                    .page_entries = 16};

  KS_ASSERT_OK(ks_kv_layout_init(&l, NULL));
  KS_ASSERT_EQ(l.k_row_bytes, 128);
  KS_ASSERT_EQ(l.v_offset, 2048);
  KS_ASSERT_EQ(l.log_beta_offset, 4096);
  KS_ASSERT_EQ(l.pos_offset, 4160);
  KS_ASSERT_EQ(l.page_bytes, 4224); /* 16 * (2 * 128 + 8) */
  l.kv_dtype = KS_DTYPE_Q8_0;
  l.n_aux = 1;
  KS_ASSERT_OK(ks_kv_layout_init(&l, NULL));
  KS_ASSERT_EQ(l.k_row_bytes, 68);
  KS_ASSERT_EQ(l.aux_offset, 2 * 16 * 68 + 128);
  KS_ASSERT_EQ(l.page_bytes, 2 * 16 * 68 + 192);
  l.k_dim = 40;
  KS_ASSERT_STATUS(KS_ERR_UNSUPPORTED, ks_kv_layout_init(&l, NULL));
  l.k_dim = 64;
  l.page_entries = 12;
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_kv_layout_init(&l, NULL));
  l.page_entries = 16;
  l.kv_dtype = KS_DTYPE_Q4_0;
  KS_ASSERT_STATUS(KS_ERR_UNSUPPORTED, ks_kv_layout_init(&l, NULL));
}

/* A budget below one page per stream is refused with the smallest that works. */
KS_TEST(kv_pool, too_small_a_budget)
{
  fixture f;
  ks_kv_pool *pool = NULL;
  ks_error err;
  char want[32];

  set_up(&f, N_STREAM, 40);
  KS_ASSERT_STATUS(KS_ERR_BUDGET,
                   ks_kv_pool_new(f.alloc, &f.be, &f.layout, N_STREAM * f.layout.page_bytes - 1, 0,
                                  &pool, &err));
  snprintf(want, sizeof(want), "%zu", N_STREAM * f.layout.page_bytes);
  KS_ASSERT(strstr(err.text, want) != NULL);
  KS_ASSERT(pool == NULL);
  tear_down(&f);
}

/* Entries take a page every P of them, in every stream; the budget is a wall, and a refused
 * reservation takes nothing. */
KS_TEST(kv_pool, reserve_and_budget)
{
  fixture f;
  ks_kv_table *t = NULL;

  set_up(&f, 3 * N_STREAM, 40);
  KS_ASSERT_OK(ks_kv_table_new(f.pool, &t, NULL));
  KS_ASSERT_EQ(ks_kv_table_count_needed(t, 1), N_STREAM);
  append(t, 3);
  KS_ASSERT_EQ(ks_kv_pool_get_used_pages(f.pool), N_STREAM);
  KS_ASSERT_EQ(ks_kv_table_count_needed(t, 1), 0);
  KS_ASSERT_EQ(ks_kv_table_count_needed(t, 2), N_STREAM);
  append(t, 2);
  KS_ASSERT_EQ(ks_kv_table_get_n_pages(t), 2 * N_STREAM);
  KS_ASSERT_EQ(ks_kv_table_get_n_entries(t), 5 * N_STREAM);
  KS_ASSERT_STATUS(KS_ERR_BUDGET, ks_kv_table_reserve(t, 8, NULL));
  KS_ASSERT_EQ(ks_kv_pool_get_used_pages(f.pool), 2 * N_STREAM);
  append(t, 7);
  KS_ASSERT_EQ(ks_kv_pool_get_used_pages(f.pool), 3 * N_STREAM);
  KS_ASSERT_STATUS(KS_ERR_BUDGET, ks_kv_table_reserve(t, 1, NULL));
  /* A step that failed: what it reserved goes back. */
  ks_kv_table_set_lengths(t, (const uint32_t[]){1, 2, 3, 4, 5, 0});
  KS_ASSERT_EQ(ks_kv_pool_get_used_pages(f.pool), 6);
  KS_ASSERT_OK(ks_kv_table_reserve(t, 4, NULL));
  KS_ASSERT_EQ(ks_kv_pool_get_used_pages(f.pool), 2 + 2 + 2 + 2 + 3 + 1);
  KS_ASSERT(ks_kv_pool_check(f.pool));
  ks_kv_table_set_lengths(t, NULL);
  KS_ASSERT_EQ(ks_kv_pool_get_used_pages(f.pool), 6);
  KS_ASSERT_EQ(ks_kv_table_get_n_entries(t), 15);
  ks_kv_table_free(t);
  tear_down(&f);
}

/* Pages come back last in, first out; the method page's worked example ends on free pages 6 2 3 4.
 */
KS_TEST(kv_pool, lifo_order)
{
  fixture f;
  ks_kv_table *a = NULL, *b = NULL;
  const ks_kv_stream *s;

  set_up(&f, 2 * N_STREAM, 40);
  KS_ASSERT_OK(ks_kv_table_new(f.pool, &a, NULL));
  append(a, 1);
  s = ks_kv_table_get_view(a).streams;
  for (uint32_t i = 0; i < N_STREAM; i++)
    KS_ASSERT_EQ(s[i].pages[0], i);
  ks_kv_table_set_lengths(a, (const uint32_t[]){1, 0, 1, 0, 0, 1}); /* frees 1, 3, 4 */
  KS_ASSERT_OK(ks_kv_table_new(f.pool, &b, NULL));
  append(b, 1);
  s = ks_kv_table_get_view(b).streams;
  KS_ASSERT_EQ(s[0].pages[0], 4);
  KS_ASSERT_EQ(s[1].pages[0], 3);
  KS_ASSERT_EQ(s[2].pages[0], 1);
  KS_ASSERT_EQ(s[3].pages[0], 6);
  ks_kv_table_free(a);
  ks_kv_table_free(b);
  tear_down(&f);
}

/* A shrink below what is used is refused; one above it moves pages of every table to the front,
 * keeps their contents and gives the memory back; growing again works. */
KS_TEST(kv_pool, shrink_moves_pages)
{
  fixture f;
  ks_kv_table *a = NULL, *b = NULL;
  uint64_t page;
  uint32_t short_lengths[N_STREAM];

  set_up(&f, 200 * N_STREAM, 400 * N_STREAM);
  page = f.layout.page_bytes;
  KS_ASSERT_OK(ks_kv_table_new(f.pool, &a, NULL));
  KS_ASSERT_OK(ks_kv_table_new(f.pool, &b, NULL));
  append(a, 90 * P);
  append(b, 100 * P);
  write_marks(a, 10000000);
  write_marks(b, 20000000);
  KS_ASSERT_EQ(f.dev.n_committed, ks_kv_pool_get_committed_bytes(f.pool));
  KS_ASSERT_STATUS(KS_ERR_BUDGET, ks_kv_pool_set_budget(f.pool, 189 * N_STREAM * page, NULL));
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_kv_pool_set_budget(f.pool, UINT64_MAX / 4, NULL));
  KS_ASSERT_EQ(f.dev.n_move, 0);
  for (uint32_t s = 0; s < N_STREAM; s++)
    short_lengths[s] = 1 + 7 * s;
  ks_kv_table_set_lengths(a, short_lengths);
  f.dev.fail_move = true;
  KS_ASSERT_STATUS(KS_ERR_LOST, ks_kv_pool_set_budget(f.pool, 110 * N_STREAM * page, NULL));
  KS_ASSERT(ks_kv_pool_check(f.pool));
  f.dev.fail_move = false;
  KS_ASSERT_OK(ks_kv_pool_set_budget(f.pool, 110 * N_STREAM * page, NULL));
  KS_ASSERT(f.dev.n_move > 0);
  KS_ASSERT(ks_kv_pool_check(f.pool));
  KS_ASSERT_LE(f.dev.n_committed, 110 * N_STREAM * page + 65536);
  KS_ASSERT(marks_hold(a, 10000000));
  KS_ASSERT(marks_hold(b, 20000000));
  KS_ASSERT_OK(ks_kv_pool_set_budget(f.pool, 400 * N_STREAM * page, NULL));
  append(a, 150 * P);
  KS_ASSERT(ks_kv_pool_check(f.pool));
  KS_ASSERT(marks_hold(b, 20000000));
  ks_kv_table_set_lengths(b, short_lengths);
  ks_kv_table_free(a);
  ks_kv_pool_trim(f.pool);
  KS_ASSERT_LE(f.dev.n_committed, 65536);
  KS_ASSERT(marks_hold(b, 20000000));
  ks_kv_table_free(b);
  tear_down(&f);
}

/* Memory that the system or the allocator refuses leaves the pool as it was, at every single
 * allocation of a reservation. */
KS_TEST(kv_pool, out_of_memory)
{
  for (int64_t n = 0;; n++) {
    fixture f;
    ks_kv_table *t = NULL;
    ks_status st;

    set_up(&f, 100 * N_STREAM, 100 * N_STREAM);
    ks_alloc_fail_after(f.alloc, n);
    st = ks_kv_table_new(f.pool, &t, NULL);
    if (st == KS_OK)
      st = ks_kv_table_reserve(t, 80 * P, NULL);
    ks_alloc_fail_after(f.alloc, -1);
    KS_ASSERT(st == KS_OK || st == KS_ERR_NOMEM);
    KS_ASSERT(ks_kv_pool_check(f.pool));
    if (st != KS_OK)
      KS_ASSERT_EQ(ks_kv_pool_get_used_pages(f.pool), 0);
    ks_kv_table_free(t);
    tear_down(&f);
    if (st == KS_OK) {
      KS_ASSERT(n > 5); /* the sweep met something */
      break;
    }
  }
  {
    fixture f;
    ks_kv_table *t = NULL;

    set_up(&f, 100 * N_STREAM, 100 * N_STREAM);
    KS_ASSERT_OK(ks_kv_table_new(f.pool, &t, NULL));
    f.dev.fail_commit = true;
    KS_ASSERT_STATUS(KS_ERR_NOMEM, ks_kv_table_reserve(t, 1, NULL));
    KS_ASSERT_EQ(ks_kv_pool_get_committed_bytes(f.pool), 0);
    f.dev.fail_commit = false;
    KS_ASSERT_OK(ks_kv_table_reserve(t, 1, NULL));
    ks_kv_table_free(t);
    tear_down(&f);
  }
}

/* Resident bytes of this process that no file backs. */
static uint64_t
resident_bytes(void)
{
  FILE *file = fopen("/proc/self/statm", "r");
  unsigned long long total = 0, resident = 0, shared = 0;

  KS_ASSERT(file != NULL);
  KS_ASSERT_EQ(fscanf(file, "%llu %llu %llu", &total, &resident, &shared), 3);
  fclose(file);
  return (resident - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* On the real backend: what a smaller budget no longer pays for is gone from the process when the
 * call returns, and the bytes are counted as keys and values while they are there. */
KS_TEST(kv_pool, shrink_gives_memory_back)
{
  const uint64_t mib = 1 << 20;
  ks_dev_params params = {.n_thread = 1, .mode = KS_COMPUTE_EXACT};
  ks_backend be;
  ks_kv_pool *pool = NULL;
  ks_kv_table *a = NULL, *b = NULL;
  ks_kv_layout layout = {.n_layer = 3,
                         .n_kv_head = 2,
                         .k_dim = 64,
                         .v_dim = 64,
                         .kv_dtype = KS_DTYPE_F32,
                         .page_entries = P};
  uint64_t before, full, after;
  uint32_t zero[N_STREAM] = {0};

  params.alloc = ks_alloc_new();
  KS_ASSERT_OK(ks_backend_open("cpu", &params, &be, NULL));
  KS_ASSERT_OK(ks_kv_layout_init(&layout, NULL));
  KS_ASSERT_OK(ks_kv_pool_new(params.alloc, &be, &layout, 48 * mib, 64 * mib, &pool, NULL));
  KS_ASSERT_OK(ks_kv_table_new(pool, &a, NULL));
  KS_ASSERT_OK(ks_kv_table_new(pool, &b, NULL));
  before = resident_bytes();
  append(a, 10000);
  append(b, 4000);
  for (uint32_t p = 0; p < ks_kv_pool_get_used_pages(pool); p++) {
    const ks_kv_view view = ks_kv_table_get_view(a);

    memset((char *)(uintptr_t)view.base + p * layout.page_bytes, 0x5a, layout.page_bytes);
  }
  write_marks(b, 20000000);
  full = resident_bytes();
  KS_ASSERT_EQ(ks_alloc_get_bytes(params.alloc, KS_MEM_KV), ks_kv_pool_get_committed_bytes(pool));
  KS_ASSERT(full - before > 40 * mib);
  ks_kv_table_set_lengths(a, zero);
  KS_ASSERT_OK(ks_kv_pool_set_budget(pool, 16 * mib, NULL));
  after = resident_bytes();
  KS_ASSERT_LE(after, before + 17 * mib);
  KS_ASSERT_LE(ks_alloc_get_bytes(params.alloc, KS_MEM_KV), 16 * mib);
  KS_ASSERT(marks_hold(b, 20000000));
  KS_ASSERT(ks_kv_pool_check(pool));
  ks_kv_table_free(a);
  ks_kv_table_free(b);
  ks_kv_pool_free(pool);
  KS_ASSERT_EQ(ks_alloc_get_bytes(params.alloc, KS_MEM_KV), 0);
  ks_backend_close(&be);
  ks_alloc_free(params.alloc);
}

static uint32_t
next_random(uint32_t *state)
{
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

/* Three tables on one pool under random appends, cuts, trims and budget changes: the pool's checker
 * holds after each, used pages never pass the budget, contents stay. */
KS_TEST(kv_pool, random_use)
{
  fixture f;
  ks_kv_table *t[3] = {NULL, NULL, NULL};
  uint32_t rnd = 7;

  set_up(&f, 60 * N_STREAM, 120 * N_STREAM);
  for (int i = 0; i < 3; i++)
    KS_ASSERT_OK(ks_kv_table_new(f.pool, &t[i], NULL));
  for (int step = 0; step < 3000; step++) {
    const uint32_t i = next_random(&rnd) % 3, what = next_random(&rnd) % 8;

    if (what < 4) {
      const uint32_t n = 1 + next_random(&rnd) % 40;
      const uint32_t need = ks_kv_table_count_needed(t[i], n);
      const bool fits =
          need + ks_kv_pool_get_used_pages(f.pool) <= ks_kv_pool_get_budget_pages(f.pool);
      const ks_status st = ks_kv_table_reserve(t[i], n, NULL);

      KS_ASSERT_EQ(st, fits ? KS_OK : KS_ERR_BUDGET);
      if (st == KS_OK && what < 3)
        ks_kv_table_commit(t[i], n);
      else
        ks_kv_table_set_lengths(t[i], NULL);
    } else if (what < 6) {
      const ks_kv_stream *s = ks_kv_table_get_view(t[i]).streams;
      uint32_t n_entry[N_STREAM];

      for (uint32_t k = 0; k < N_STREAM; k++)
        n_entry[k] = next_random(&rnd) % (s[k].n_entry + 1);
      ks_kv_table_set_lengths(t[i], n_entry);
    } else if (what == 6) {
      const uint64_t n_page = N_STREAM + next_random(&rnd) % (119 * N_STREAM);
      const bool fits = n_page >= ks_kv_pool_get_used_pages(f.pool);

      KS_ASSERT_STATUS(fits ? KS_OK : KS_ERR_BUDGET,
                       ks_kv_pool_set_budget(f.pool, n_page * f.layout.page_bytes, NULL));
    } else {
      ks_kv_pool_trim(f.pool);
    }
    KS_ASSERT(ks_kv_pool_check(f.pool));
    KS_ASSERT_EQ(f.dev.n_committed, ks_kv_pool_get_committed_bytes(f.pool));
    if (what == 6 || what == 7) /* moved pages kept what was written before */
      for (uint32_t k = 0; k < 3; k++)
        KS_ASSERT(marks_hold(t[k], 1000000 * (k + 1)));
    write_marks(t[i], 1000000 * (i + 1));
  }
  for (int i = 0; i < 3; i++)
    ks_kv_table_free(t[i]);
  tear_down(&f);
}

/* With K = P*N - S*(C+P-1) no split of K over the streams lets a pass of C tokens need more than N
 * pages. */
KS_TEST(kv_pool, bytes_to_entries)
{
  ks_kv_layout l = {.n_layer = 288,
                    .n_kv_head = 1,
                    .k_dim = 128,
                    .v_dim = 128,
                    .kv_dtype = KS_DTYPE_F16,
                    .page_entries = 16};
  uint64_t worst = 0;

  KS_ASSERT_OK(ks_kv_layout_init(&l, NULL));
  KS_ASSERT_EQ(ks_kv_entries_for_pages(&l, 20000, 64), 16 * 20000 - 288 * 79);
  KS_ASSERT_EQ(ks_kv_entries_for_pages(&l, 100, 64), 0);
  for (uint64_t k = 0; k < 5000; k += 7) {
    const uint64_t n = ks_kv_pages_for_entries(&l, k, 32);

    KS_ASSERT_GE(ks_kv_entries_for_pages(&l, n, 32), k);
    KS_ASSERT(k == 0 || ks_kv_entries_for_pages(&l, n - 1, 32) < k);
  }
  /* Two streams, P = 4, C = 3, N = 9: K = 36 - 12 = 24.  Every split needs at most 9 pages; with P
   * entries more some split needs 10. */
  l.n_layer = 2;
  l.page_entries = 4;
  KS_ASSERT_OK(ks_kv_layout_init(&l, NULL));
  KS_ASSERT_EQ(ks_kv_entries_for_pages(&l, 9, 3), 24);
  for (uint64_t k = 24; k <= 28; k += 4) {
    worst = 0;
    for (uint64_t x = 0; x <= k; x++) {
      const uint64_t n = (x + 3 + 3) / 4 + (k - x + 3 + 3) / 4;

      worst = n > worst ? n : worst;
    }
    KS_ASSERT_EQ(worst, k == 24 ? 9 : 10);
  }
}

KS_TEST_MAIN
