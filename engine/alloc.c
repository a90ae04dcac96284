/* alloc.c - the counted allocator and the arena.
 * Each block is preceded by a header of 64 bytes that names its allocator, kind and size, so that
 * freeing needs no more than the pointer.  The counters include header and padding: they say what
 * was asked of the system, not what the caller can use. Fresh memory comes from calloc: large
 * blocks are then zero pages that cost nothing until touched.  Large blocks of weights are mapped
 * for themselves, with huge pages where the system has them: reading them is then bound by the
 * memory and not by translating addresses. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/alloc.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGN 64u
#define OVERHEAD (2 * (size_t)ALIGN) /* header, and room to align the block */
#define PAGE ((size_t)4 << 10)
#define HUGE_PAGE ((size_t)2 << 20)
#define HUGE_LEAST ((size_t)4 << 20) /* blocks of weights from here on are mapped */

struct ks_alloc {
  atomic_uint_least64_t bytes[KS_N_MEM_KIND];
  atomic_uint_least64_t peak[KS_N_MEM_KIND];
  atomic_uint_least64_t limited_bytes; /* all kinds, without mapped weights */
  atomic_uint_least64_t limit_bytes;   /* 0 = none */
  atomic_uint_least64_t n_calls;
  atomic_int_least64_t fail_after; /* -1 = never */
};

typedef struct block_header {
  ks_alloc *alloc;
  void *base; /* what calloc or mmap returned */
  size_t n_bytes, n_total;
  ks_mem_kind kind;
} block_header;

_Static_assert(sizeof(block_header) <= ALIGN, "the header fits before an aligned block");

static block_header *
header_of(void *p)
{
  return (block_header *)((unsigned char *)p - ALIGN);
}

ks_alloc *
ks_alloc_new(void)
{
  ks_alloc *a = calloc(1, sizeof(*a));

  if (a != NULL)
    atomic_init(&a->fail_after, -1);
  return a;
}

void
ks_alloc_free(ks_alloc *a)
{
  if (a == NULL)
    return;
  for (int kind = 0; kind < KS_N_MEM_KIND; kind++)
    assert(atomic_load(&a->bytes[kind]) == 0);
  free(a);
}

void
ks_alloc_set_limit(ks_alloc *a, uint64_t limit_bytes)
{
  atomic_store(&a->limit_bytes, limit_bytes);
}

void
ks_alloc_fail_after(ks_alloc *a, int64_t n)
{
  atomic_store(&a->fail_after, n);
}

uint64_t
ks_alloc_get_bytes(const ks_alloc *a, ks_mem_kind kind)
{
  return atomic_load(&a->bytes[kind]);
}

uint64_t
ks_alloc_get_peak_bytes(const ks_alloc *a, ks_mem_kind kind)
{
  return atomic_load(&a->peak[kind]);
}

uint64_t
ks_alloc_get_n_calls(const ks_alloc *a)
{
  return atomic_load(&a->n_calls);
}

/* Takes one of the allocations that may still succeed; false once they are used up. */
static bool
may_succeed(ks_alloc *a)
{
  int_least64_t left = atomic_load(&a->fail_after);

  atomic_fetch_add(&a->n_calls, 1);
  while (left > 0)
    if (atomic_compare_exchange_weak(&a->fail_after, &left, left - 1))
      return true;
  return left < 0;
}

/* Adds to the limited sum unless that would exceed the limit: never over it, not even briefly. */
static bool
take_limited(ks_alloc *a, uint64_t n_bytes)
{
  uint_least64_t now = atomic_load(&a->limited_bytes);

  do {
    uint_least64_t limit = atomic_load(&a->limit_bytes);

    if (now + n_bytes < now || (limit != 0 && now + n_bytes > limit))
      return false;
  } while (!atomic_compare_exchange_weak(&a->limited_bytes, &now, now + n_bytes));
  return true;
}

static void
count_up(ks_alloc *a, ks_mem_kind kind, uint64_t n_bytes)
{
  uint_least64_t now = atomic_fetch_add(&a->bytes[kind], n_bytes) + n_bytes;
  uint_least64_t peak = atomic_load(&a->peak[kind]);

  while (now > peak && !atomic_compare_exchange_weak(&a->peak[kind], &peak, now))
    ;
}

static void
count_down(ks_alloc *a, ks_mem_kind kind, uint64_t n_bytes)
{
  uint_least64_t before = atomic_fetch_sub(&a->bytes[kind], n_bytes);

  assert(before >= n_bytes);
  (void)before;
}

ks_status
ks_alloc_charge(ks_alloc *a, ks_mem_kind kind, uint64_t n_bytes)
{
  if (!may_succeed(a))
    return KS_ERR_NOMEM;
  if (kind != KS_MEM_WEIGHTS && !take_limited(a, n_bytes))
    return KS_ERR_NOMEM;
  count_up(a, kind, n_bytes);
  return KS_OK;
}

void
ks_alloc_uncharge(ks_alloc *a, ks_mem_kind kind, uint64_t n_bytes)
{
  count_down(a, kind, n_bytes);
  if (kind != KS_MEM_WEIGHTS)
    atomic_fetch_sub(&a->limited_bytes, n_bytes);
}

static bool
is_mapped(ks_mem_kind kind, size_t n_bytes)
{
  return kind == KS_MEM_WEIGHTS && n_bytes >= HUGE_LEAST;
}

/* n_total bytes whose second page begins a huge page; the header lies at the end of the first. */
static unsigned char *
map_huge(size_t n_total)
{
  unsigned char *base, *p;
  size_t front, n_map;

  if (!ks_add_size(n_total, HUGE_PAGE, &n_map))
    return NULL;
  base = mmap(NULL, n_map, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED)
    return NULL;
  front = (HUGE_PAGE - ((uintptr_t)base + PAGE) % HUGE_PAGE) % HUGE_PAGE;
  p = base + front;
  if (front > 0)
    (void)munmap(base, front);
  if (front < HUGE_PAGE)
    (void)munmap(p + n_total, HUGE_PAGE - front);
#ifdef MADV_HUGEPAGE
  (void)madvise(p + PAGE, n_total - PAGE, MADV_HUGEPAGE); /* small pages are correct, only slower */
#endif
  return p;
}

void *
ks_mem_new(ks_alloc *a, ks_mem_kind kind, size_t n, size_t size)
{
  size_t n_bytes, n_total;
  unsigned char *base, *p;

  if (!ks_mul_size(n, size, &n_bytes) || !ks_add_size(n_bytes, 2 * PAGE, &n_total))
    return NULL;
  n_total = is_mapped(kind, n_bytes) ? n_total / PAGE * PAGE : n_bytes + OVERHEAD;
  if (!may_succeed(a) || !take_limited(a, n_total))
    return NULL;
  base = is_mapped(kind, n_bytes) ? map_huge(n_total) : calloc(1, n_total);
  if (base == NULL) {
    atomic_fetch_sub(&a->limited_bytes, n_total);
    return NULL;
  }
  count_up(a, kind, n_total);
  p = is_mapped(kind, n_bytes) ? base + PAGE
                               : base + ALIGN + (ALIGN - (uintptr_t)base % ALIGN) % ALIGN;
  *header_of(p) = (block_header){
      .alloc = a, .base = base, .n_bytes = n_bytes, .n_total = n_total, .kind = kind};
  return p;
}

void *
ks_mem_resize(ks_alloc *a, ks_mem_kind kind, void *p, size_t n, size_t size)
{
  void *grown = ks_mem_new(a, kind, n, size);

  if (grown == NULL || p == NULL)
    return grown;
  if (n * size < header_of(p)->n_bytes)
    memcpy(grown, p, n * size);
  else
    memcpy(grown, p, header_of(p)->n_bytes);
  ks_mem_free(p);
  return grown;
}

void
ks_mem_free(void *p)
{
  block_header header;

  if (p == NULL)
    return;
  header = *header_of(p);
  if (is_mapped(header.kind, header.n_bytes))
    (void)munmap(header.base, header.n_total);
  else
    free(header.base);
  count_down(header.alloc, header.kind, header.n_total);
  atomic_fetch_sub(&header.alloc->limited_bytes, header.n_total);
}

char *
ks_mem_dup_str(ks_alloc *a, ks_mem_kind kind, const char *text, size_t n)
{
  char *copy;
  size_t n_bytes;

  if (!ks_add_size(n, 1, &n_bytes))
    return NULL;
  copy = ks_mem_new(a, kind, n_bytes, 1);
  if (copy != NULL && n > 0)
    memcpy(copy, text, n);
  return copy;
}

bool
ks_mul_size(size_t a, size_t b, size_t *out)
{
  if (b != 0 && a > SIZE_MAX / b)
    return false;
  *out = a * b;
  return true;
}

bool
ks_add_size(size_t a, size_t b, size_t *out)
{
  if (a > SIZE_MAX - b)
    return false;
  *out = a + b;
  return true;
}

void
ks_arena_init(ks_arena *arena, ks_alloc *a, ks_mem_kind kind)
{
  *arena = (ks_arena){.alloc = a, .kind = kind};
}

void
ks_arena_done(ks_arena *arena)
{
  ks_mem_free(arena->base);
  *arena = (ks_arena){.alloc = arena->alloc, .kind = arena->kind};
}

ks_status
ks_arena_reserve(ks_arena *arena, size_t n_bytes, ks_error *err)
{
  unsigned char *base;

  assert(arena->used == 0);
  if (n_bytes <= arena->n_bytes)
    return KS_OK;
  base = ks_mem_new(arena->alloc, arena->kind, n_bytes, 1);
  if (base == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for %zu bytes of working space", n_bytes);
  ks_mem_free(arena->base);
  arena->base = base;
  arena->n_bytes = n_bytes;
  return KS_OK;
}

void *
ks_arena_get(ks_arena *arena, size_t n, size_t size)
{
  size_t n_bytes, start;

  if (!ks_mul_size(n, size, &n_bytes) || !ks_add_size(arena->used, ALIGN - 1, &start))
    return NULL;
  start -= start % ALIGN;
  if (start > arena->n_bytes || n_bytes > arena->n_bytes - start)
    return NULL;
  arena->used = start + n_bytes;
  if (arena->used > arena->peak)
    arena->peak = arena->used;
  return arena->base + start;
}

void
ks_arena_reset(ks_arena *arena)
{
  arena->used = 0;
}
