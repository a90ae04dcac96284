/* alloc.h - the counted allocator, checked size arithmetic and the per-step arena.
 * Every byte the engine takes from the system goes through one ks_alloc, by kind, so that the
 * window can show it and a test can make any single allocation fail. Counts include the overhead of
 * 128 bytes a block, of two pages at most with weights of 4 MiB and more. Invariant: the sum over
 * kinds of current bytes <= limit at every return. Threads: ks_mem_* may be called from any thread;
 * an arena belongs to one thread. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/status.h"

KS_BEGIN_DECLS

typedef enum ks_mem_kind {
  KS_MEM_WEIGHTS, /* mapped weight bytes (file-backed) and repacked copies */
  KS_MEM_KV,      /* committed KV slabs */
  KS_MEM_SCRATCH, /* activations, score and logit buffers */
  KS_MEM_VISION,  /* tower, its scratch, cached image embeddings on the device */
  KS_MEM_HOST,    /* host tables: vocabulary, page lists, token table ('program' in the window) */
  KS_N_MEM_KIND
} ks_mem_kind;

typedef struct ks_alloc ks_alloc;

/* Creates an allocator without a limit.  NULL when the system has no memory left.
 * It must outlive everything allocated from it; ks_alloc_free asserts that nothing is left. */
ks_alloc *ks_alloc_new(void);
void ks_alloc_free(ks_alloc *a); /* NULL is allowed */

/* Upper bound in bytes over all that ks_mem_new gives (repacked weights too) and what is charged
 * under other kinds than KS_MEM_WEIGHTS; so mapped files are not limited.  0 = none. */
void ks_alloc_set_limit(ks_alloc *a, uint64_t limit_bytes);
/* The next n allocations succeed, every later one fails, until called with -1.  Tests only. */
void ks_alloc_fail_after(ks_alloc *a, int64_t n);
uint64_t ks_alloc_get_bytes(const ks_alloc *a, ks_mem_kind kind);
uint64_t ks_alloc_get_peak_bytes(const ks_alloc *a, ks_mem_kind kind);
/* Number of allocations made so far; tests use it to size a failure sweep. */
uint64_t ks_alloc_get_n_calls(const ks_alloc *a);

/* Counts bytes that were not taken by ks_mem_new: mapped files, reserved ranges committed by the
 * pool.  Fails with KS_ERR_NOMEM (injected or over the limit) and then counts nothing. */
KS_CHECK ks_status ks_alloc_charge(ks_alloc *a, ks_mem_kind kind, uint64_t n_bytes);
void ks_alloc_uncharge(ks_alloc *a, ks_mem_kind kind, uint64_t n_bytes);

/* Zeroed memory for n elements of size bytes, aligned to 64; NULL on overflow, limit or failure.
 * KS_MEM_WEIGHTS of 4 MiB and more lie in huge pages where the system has them.
 * n * size == 0 returns a valid pointer. */
void *ks_mem_new(ks_alloc *a, ks_mem_kind kind, size_t n, size_t size);
/* Grows or shrinks; new bytes are zeroed.  On failure returns NULL and the old block stays valid.
 * p may be NULL. */
void *ks_mem_resize(ks_alloc *a, ks_mem_kind kind, void *p, size_t n, size_t size);
void ks_mem_free(void *p); /* NULL is allowed; the block knows its allocator and kind */
/* Copies n bytes and appends a NUL. */
char *ks_mem_dup_str(ks_alloc *a, ks_mem_kind kind, const char *text, size_t n);

/* a*b and a+b; false (and *out untouched) on overflow. */
KS_CHECK bool ks_mul_size(size_t a, size_t b, size_t *out);
KS_CHECK bool ks_add_size(size_t a, size_t b, size_t *out);

/* A bump allocator over one block, reset once per step. */
typedef struct ks_arena {
  ks_alloc *alloc;
  ks_mem_kind kind;
  unsigned char *base;
  size_t n_bytes, used, peak;
} ks_arena;

void ks_arena_init(ks_arena *arena, ks_alloc *a, ks_mem_kind kind);
void ks_arena_done(ks_arena *arena);
/* Makes room for at least n_bytes; only while nothing is in use. */
KS_CHECK ks_status ks_arena_reserve(ks_arena *arena, size_t n_bytes, ks_error *err);
/* NULL when the reserved room is used up.  Not zeroed.  Aligned to 64. */
void *ks_arena_get(ks_arena *arena, size_t n, size_t size);
void ks_arena_reset(ks_arena *arena);

KS_END_DECLS
