/* kv-pool.h - pages of keys and values under one byte budget per device.
 * A page holds P consecutive entries of ONE stream of ONE timeline: exactly one owner, no sharing.
 * Invariants: used pages <= budget pages at every return, also half-way through a prefill; every
 * page is owned once or free; committed bytes <= budget bytes rounded up to a slab. Memory is one
 * reserved range, committed by slabs and given back to the system on shrink. Threads: engine thread
 * only.  Source: docs/adr/0004-page-layout.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/backend.h"
#include "engine/pass-watch.h"

KS_BEGIN_DECLS

/* Memory is committed in multiples of this: a budget of whole units is never exceeded by a byte. */
#define KS_KV_UNIT_BYTES ((uint64_t)64 << 10)

typedef struct ks_kv_pool ks_kv_pool;
/* The page lists of one timeline; registers itself with the pool so that pages can be moved. */
typedef struct ks_kv_table ks_kv_table;

/* Fills the derived fields of layout (row bytes, plane offsets, page bytes) from the others.
 * KS_ERR_ARG for a page size that is no power of two, KS_ERR_UNSUPPORTED for a kv type. */
KS_CHECK ks_status ks_kv_layout_init(ks_kv_layout *layout, ks_error *err);

/* Creates a pool of at most budget_bytes, rounded down to whole pages, on be (borrowed, outlives
 * the pool).  max_bytes is the largest budget that may ever be set (address space, not memory).
 * Errors: KS_ERR_BUDGET if one page per stream does not fit, KS_ERR_NOMEM. */
KS_CHECK ks_status ks_kv_pool_new(ks_alloc *a, ks_backend *be, const ks_kv_layout *layout,
                                  uint64_t budget_bytes, uint64_t max_bytes, ks_kv_pool **out,
                                  ks_error *err);
void ks_kv_pool_free(ks_kv_pool *pool); /* NULL is allowed; all tables must be gone */
const ks_kv_layout *ks_kv_pool_get_layout(const ks_kv_pool *pool);
ks_backend *ks_kv_pool_get_backend(const ks_kv_pool *pool);
uint32_t ks_kv_pool_get_budget_pages(const ks_kv_pool *pool);
uint32_t ks_kv_pool_get_used_pages(const ks_kv_pool *pool);
uint64_t ks_kv_pool_get_budget_bytes(const ks_kv_pool *pool);
uint64_t ks_kv_pool_get_committed_bytes(const ks_kv_pool *pool);
/* Changes the budget.  Shrinking below what is used is KS_ERR_BUDGET: the owner evicts first
 * (ks_timeline_set_budget does).  Moves pages out of the last slabs and drops those. */
KS_CHECK ks_status ks_kv_pool_set_budget(ks_kv_pool *pool, uint64_t budget_bytes, ks_error *err);
/* Pages moved and slabs dropped as above without changing the budget; called after evictions when
 * the pool is much emptier than committed. */
void ks_kv_pool_trim(ks_kv_pool *pool);
/* Every page owned once or free, counts agree, lists long enough.  For asserts and tests. */
bool ks_kv_pool_check(const ks_kv_pool *pool);

KS_CHECK ks_status ks_kv_table_new(ks_kv_pool *pool, ks_kv_table **out, ks_error *err);
void ks_kv_table_free(ks_kv_table *table); /* gives its pages back; NULL is allowed */
ks_kv_pool *ks_kv_table_get_pool(const ks_kv_table *table);
ks_kv_view ks_kv_table_get_view(const ks_kv_table *table);
uint32_t ks_kv_table_get_n_stream(const ks_kv_table *table);
uint64_t ks_kv_table_get_n_entries(const ks_kv_table *table); /* over all streams */
uint32_t ks_kv_table_get_n_pages(const ks_kv_table *table);
/* Pages that n_new more entries in every stream would need beyond those owned. */
uint32_t ks_kv_table_count_needed(const ks_kv_table *table, uint32_t n_new);
/* Takes pages so that n_new entries can be appended to every stream.  KS_ERR_BUDGET when the pool
 * has not enough free pages: nothing was taken then. */
KS_CHECK ks_status ks_kv_table_reserve(ks_kv_table *table, uint32_t n_new, ks_error *err);
/* Takes pages for n_entry[s] entries of every stream of a table that has none; they are live at
 * once, what stands in them is the caller's to write.  KS_ERR_BUDGET: nothing was taken. */
KS_CHECK ks_status ks_kv_table_fill(ks_kv_table *table, const uint32_t *n_entry, ks_error *err);
/* The step is over: n_new entries became live in every stream. */
void ks_kv_table_commit(ks_kv_table *table, uint32_t n_new);
/* The same where streams of some layers got fewer: pages that were taken for more are given back.
 */
void ks_kv_table_commit_growth(ks_kv_table *table, const ks_pass_growth *growth);
/* The step failed or an eviction shortened the streams: sets lengths ([n_stream], each <= the
 * present one; NULL = unchanged) and releases pages past the end. */
void ks_kv_table_set_lengths(ks_kv_table *table, const uint32_t *n_entry);

/* Pages N and the room of one pass to the entries K that may stay: K = P*N - S*(C+P-1), 0 when
 * negative; S streams, C new tokens a pass.  Source: docs/method.md, section 4. */
uint64_t ks_kv_entries_for_pages(const ks_kv_layout *layout, uint64_t n_page, uint32_t chunk);
/* The smallest N with ks_kv_entries_for_pages(N) >= n_entry. */
uint64_t ks_kv_pages_for_entries(const ks_kv_layout *layout, uint64_t n_entry, uint32_t chunk);

KS_END_DECLS
