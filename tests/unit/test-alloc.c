/* test-alloc.c - counting, limit, injected failure, checked arithmetic and the arena. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/alloc.h"
#include "tests/ks-test.h"

#include <pthread.h>
#include <unistd.h>

/* Blocks are zeroed, aligned to 64, counted under their kind, and gone from the count when freed.
 */
KS_TEST(alloc, counts_by_kind)
{
  ks_alloc *a = ks_alloc_new();
  unsigned char *p = ks_mem_new(a, KS_MEM_KV, 100, 3);
  void *empty = ks_mem_new(a, KS_MEM_HOST, 0, 8);
  uint64_t n_kv = ks_alloc_get_bytes(a, KS_MEM_KV);

  KS_ASSERT(p != NULL && empty != NULL);
  KS_ASSERT_EQ((uintptr_t)p % 64, 0);
  for (int i = 0; i < 300; i++)
    KS_ASSERT_EQ(p[i], 0);
  KS_ASSERT_GE(n_kv, 300);
  KS_ASSERT_LE(n_kv, 300 + 128);
  KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_SCRATCH), 0);
  KS_ASSERT_EQ(ks_alloc_get_n_calls(a), 2);
  ks_mem_free(p);
  ks_mem_free(empty);
  ks_mem_free(NULL);
  KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_KV), 0);
  KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_HOST), 0);
  KS_ASSERT_EQ(ks_alloc_get_peak_bytes(a, KS_MEM_KV), n_kv);
  ks_alloc_free(a);
  ks_alloc_free(NULL);
}

/* Growing keeps the content and zeroes the rest; a failed growth leaves the old block alone. */
KS_TEST(alloc, resize)
{
  ks_alloc *a = ks_alloc_new();
  unsigned char *p = ks_mem_resize(a, KS_MEM_HOST, NULL, 10, 1), *grown, *shrunk;

  KS_ASSERT(p != NULL);
  memset(p, 7, 10);
  grown = ks_mem_resize(a, KS_MEM_HOST, p, 1000, 1);
  KS_ASSERT(grown != NULL);
  for (int i = 0; i < 1000; i++)
    KS_ASSERT_EQ(grown[i], i < 10 ? 7 : 0);
  ks_alloc_fail_after(a, 0);
  KS_ASSERT(ks_mem_resize(a, KS_MEM_HOST, grown, 2000, 1) == NULL);
  KS_ASSERT_EQ(grown[9], 7);
  ks_alloc_fail_after(a, -1);
  shrunk = ks_mem_resize(a, KS_MEM_HOST, grown, 4, 1);
  KS_ASSERT(shrunk != NULL);
  KS_ASSERT_EQ(shrunk[3], 7);
  ks_mem_free(shrunk);
  ks_alloc_free(a);
}

/* Whether the system was asked to back the mapping of p with huge pages; true where it has none. */
static bool
is_advised(const void *p)
{
  FILE *f = fopen("/proc/self/smaps", "r");
  bool inside = false, advised = f == NULL, has_flags = false;
  char line[512];

  while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
    unsigned long long begin, end;

    if (sscanf(line, "%llx-%llx ", &begin, &end) == 2)
      inside = (uintptr_t)p >= begin && (uintptr_t)p < end;
    if (strncmp(line, "VmFlags:", 8) != 0)
      continue;
    has_flags = true;
    advised = advised || (inside && strstr(line, " hg") != NULL);
  }
  if (f != NULL)
    fclose(f);
  return advised || !has_flags || access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) != 0;
}

/* Large blocks of weights begin with a huge page, are zeroed, counted and limited like any other,
 * and leave the count when they are freed. */
KS_TEST(alloc, weights_in_huge_pages)
{
  const size_t n = ((size_t)5 << 20) + 1;
  ks_alloc *a = ks_alloc_new();
  unsigned char *p = ks_mem_new(a, KS_MEM_WEIGHTS, n, 1), *grown;

  KS_ASSERT(p != NULL);
  KS_ASSERT_EQ((uintptr_t)p % ((uintptr_t)2 << 20), 0);
  KS_ASSERT(is_advised(p));
  for (size_t i = 0; i < n; i += 4096)
    KS_ASSERT_EQ(p[i], 0);
  p[n - 1] = 9;
  KS_ASSERT_GE(ks_alloc_get_bytes(a, KS_MEM_WEIGHTS), n);
  KS_ASSERT_LE(ks_alloc_get_bytes(a, KS_MEM_WEIGHTS), n + 8192);
  ks_alloc_set_limit(a, 2 * n);
  KS_ASSERT(ks_mem_new(a, KS_MEM_WEIGHTS, n, 1) == NULL);
  ks_alloc_set_limit(a, 0);
  grown = ks_mem_resize(a, KS_MEM_WEIGHTS, p, 2 * n, 1);
  KS_ASSERT(grown != NULL);
  KS_ASSERT_EQ(grown[n - 1], 9);
  KS_ASSERT_EQ(grown[n], 0);
  ks_mem_free(grown);
  KS_ASSERT(ks_mem_new(a, KS_MEM_WEIGHTS, SIZE_MAX - 4096, 1) == NULL);
  KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_WEIGHTS), 0);
  ks_alloc_free(a);
}

/* After n more allocations every one fails, charges too, until it is switched off. */
KS_TEST(alloc, injected_failure)
{
  ks_alloc *a = ks_alloc_new();
  void *p;

  ks_alloc_fail_after(a, 2);
  p = ks_mem_new(a, KS_MEM_HOST, 1, 1);
  KS_ASSERT(p != NULL);
  KS_ASSERT_OK(ks_alloc_charge(a, KS_MEM_WEIGHTS, 1000));
  KS_ASSERT(ks_mem_new(a, KS_MEM_HOST, 1, 1) == NULL);
  KS_ASSERT_STATUS(KS_ERR_NOMEM, ks_alloc_charge(a, KS_MEM_WEIGHTS, 1));
  KS_ASSERT(ks_mem_dup_str(a, KS_MEM_HOST, "x", 1) == NULL);
  KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_WEIGHTS), 1000);
  KS_ASSERT_EQ(ks_alloc_get_n_calls(a), 5);
  ks_alloc_fail_after(a, -1);
  ks_mem_free(p);
  p = ks_mem_dup_str(a, KS_MEM_HOST, "abcd", 3);
  KS_ASSERT_STR(p, "abc");
  ks_mem_free(p);
  ks_alloc_uncharge(a, KS_MEM_WEIGHTS, 1000);
  ks_alloc_free(a);
}

/* The limit covers every kind together, except mapped weights; overflow is no way round it. */
KS_TEST(alloc, limit)
{
  ks_alloc *a = ks_alloc_new();
  void *p;

  ks_alloc_set_limit(a, 10000);
  KS_ASSERT_OK(ks_alloc_charge(a, KS_MEM_WEIGHTS, 1000000));
  KS_ASSERT_OK(ks_alloc_charge(a, KS_MEM_KV, 6000));
  KS_ASSERT(ks_mem_new(a, KS_MEM_SCRATCH, 4000, 1) == NULL); /* with its header */
  p = ks_mem_new(a, KS_MEM_SCRATCH, 3000, 1);
  KS_ASSERT(p != NULL);
  KS_ASSERT_STATUS(KS_ERR_NOMEM, ks_alloc_charge(a, KS_MEM_KV, 1000));
  KS_ASSERT_STATUS(KS_ERR_NOMEM, ks_alloc_charge(a, KS_MEM_KV, UINT64_MAX - 100));
  KS_ASSERT(ks_mem_new(a, KS_MEM_HOST, SIZE_MAX / 2, 3) == NULL);
  KS_ASSERT(ks_mem_new(a, KS_MEM_HOST, SIZE_MAX, 1) == NULL);
  KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_KV), 6000);
  ks_mem_free(p);
  KS_ASSERT_OK(ks_alloc_charge(a, KS_MEM_KV, 4000));
  ks_alloc_uncharge(a, KS_MEM_KV, 10000);
  ks_alloc_uncharge(a, KS_MEM_WEIGHTS, 1000000);
  ks_alloc_free(a);
}

static void *
allocate_often(void *alloc)
{
  for (int i = 0; i < 2000; i++)
    ks_mem_free(ks_mem_new(alloc, KS_MEM_SCRATCH, 16, 1));
  return NULL;
}

/* Threads may allocate side by side: no count gets lost. */
KS_TEST(alloc, counts_from_threads)
{
  ks_alloc *a = ks_alloc_new();
  pthread_t threads[4];

  for (int i = 0; i < 4; i++)
    KS_ASSERT_EQ(pthread_create(&threads[i], NULL, allocate_often, a), 0);
  for (int i = 0; i < 4; i++)
    pthread_join(threads[i], NULL);
  KS_ASSERT_EQ(ks_alloc_get_n_calls(a), 8000);
  KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_SCRATCH), 0);
  ks_alloc_free(a);
}

/* Sums and products that do not fit leave the output untouched. */
KS_TEST(alloc, checked_arithmetic)
{
  size_t out = 42;

  KS_ASSERT(!ks_mul_size(SIZE_MAX / 2, 3, &out));
  KS_ASSERT(!ks_add_size(SIZE_MAX, 1, &out));
  KS_ASSERT_EQ(out, 42);
  KS_ASSERT(ks_mul_size(SIZE_MAX, 1, &out) && out == SIZE_MAX);
  KS_ASSERT(ks_mul_size(7, 0, &out) && out == 0);
  KS_ASSERT(ks_add_size(SIZE_MAX - 1, 1, &out) && out == SIZE_MAX);
}

/* An arena hands out aligned pieces of one block, says NULL at its end and starts again. */
KS_TEST(alloc, arena)
{
  ks_alloc *a = ks_alloc_new();
  ks_arena arena;
  unsigned char *first, *second;

  ks_arena_init(&arena, a, KS_MEM_SCRATCH);
  KS_ASSERT(ks_arena_get(&arena, 1, 1) == NULL);
  KS_ASSERT_OK(ks_arena_reserve(&arena, 256, NULL));
  first = ks_arena_get(&arena, 10, 1);
  second = ks_arena_get(&arena, 48, 4);
  KS_ASSERT(first != NULL && second == first + 64);
  KS_ASSERT_EQ((uintptr_t)first % 64, 0);
  KS_ASSERT(ks_arena_get(&arena, 1, 1) == NULL);
  KS_ASSERT(ks_arena_get(&arena, SIZE_MAX, 2) == NULL);
  KS_ASSERT_EQ(arena.peak, 256);
  ks_arena_reset(&arena);
  KS_ASSERT(ks_arena_get(&arena, 256, 1) == first);
  ks_arena_reset(&arena);
  ks_alloc_fail_after(a, 0);
  KS_ASSERT_STATUS(KS_ERR_NOMEM, ks_arena_reserve(&arena, 257, NULL));
  KS_ASSERT(ks_arena_get(&arena, 256, 1) == first); /* the old room is still there */
  ks_arena_done(&arena);
  KS_ASSERT_EQ(ks_alloc_get_bytes(a, KS_MEM_SCRATCH), 0);
  ks_alloc_free(a);
}

KS_TEST_MAIN
