/* kv-pool-internal.h - what kv-pool.c and kv-table.c share: the pool's free lists and the tables.
 * Free pages are kept slab by slab, each slab's as a last-in-first-out list, and taken from the
 * lowest slab that has one, so that the last slabs empty by themselves.  A page belongs to the slab
 * that holds its last byte: the pages of the first n slabs lie wholly inside them. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/kv-pool.h"

KS_BEGIN_DECLS

#define KS_NO_PAGE UINT32_MAX

struct ks_kv_table {
  ks_kv_pool *pool;
  ks_kv_table *prev, *next; /* all tables of a pool, so that pages can be moved under them */
  ks_kv_stream *streams;    /* [n_stream] */
  uint32_t n_stream, n_page;
  uint64_t n_entry;
};

struct ks_kv_pool {
  ks_alloc *alloc;
  ks_backend *be;
  ks_kv_layout layout;
  ks_kv_table *tables;
  ks_dptr base;
  size_t range_bytes, slab_bytes, committed_bytes; /* [0, committed_bytes) of the range is backed */
  uint64_t budget_bytes;
  uint32_t budget_pages, used_pages;
  uint32_t n_page;        /* pages inside the committed bytes */
  uint32_t page_capacity; /* of the two arrays below */
  uint32_t *next_free;    /* [page_capacity] the free page below this one in its slab */
  uint8_t *mark;          /* [page_capacity] the checker's own */
  uint32_t *free_head;    /* [n_slab] top of a slab's free list, or KS_NO_PAGE */
  uint32_t n_slab;
  uint32_t low_slab; /* slabs before this one have no free page */
};

/* Commits slabs until n pages are free.  The caller has checked the budget. */
KS_CHECK ks_status ks_kv_pool_make_free(ks_kv_pool *pool, uint32_t n, ks_error *err);
/* Takes the top free page of the lowest slab; there is one. */
uint32_t ks_kv_pool_take(ks_kv_pool *pool);
void ks_kv_pool_give(ks_kv_pool *pool, uint32_t page);

KS_END_DECLS
