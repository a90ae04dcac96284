/* kv-fixture.h - a CPU backend with a page pool and one table, filled by hand.
 * For tests of evictions: entries get chosen positions, log_beta, keys and values. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/evict.h"

#include "tests/ks-test.h"

#define FIX_DIM 8u     /* elements of a key, of a value */
#define FIX_STREAM 64u /* most streams */
#define FIX_ENTRY 512u /* most entries of a stream that are read back */

typedef struct kv_fixture {
  ks_alloc *alloc;
  ks_backend be;
  ks_kv_layout layout;
  ks_kv_pool *pool;
  ks_kv_table *table;
  ks_dptr k, v, log_beta; /* one layer's new entries */
  uint32_t n_stream;
  uint32_t live_from[FIX_STREAM];
} kv_fixture;

static inline void
fix_open(kv_fixture *f, uint32_t n_layer, uint32_t n_kv_head, uint32_t page_entries,
         uint32_t n_page)
{
  ks_dev_params params = {.n_thread = 1, .mode = KS_COMPUTE_EXACT};

  memset(f, 0, sizeof(*f));
  f->alloc = ks_alloc_new();
  KS_ASSERT(f->alloc != NULL);
  params.alloc = f->alloc;
  KS_ASSERT_OK(ks_backend_open("cpu", &params, &f->be, NULL));
  f->layout = (ks_kv_layout){.n_layer = n_layer,
                             .n_kv_head = n_kv_head,
                             .k_dim = FIX_DIM,
                             .v_dim = FIX_DIM,
                             .kv_dtype = KS_DTYPE_F32,
                             .page_entries = page_entries,
                             .n_aux = 1};
  f->n_stream = n_layer * n_kv_head;
  KS_ASSERT_OK(ks_kv_layout_init(&f->layout, NULL));
  KS_ASSERT_OK(ks_kv_pool_new(f->alloc, &f->be, &f->layout, n_page * f->layout.page_bytes, 0,
                              &f->pool, NULL));
  KS_ASSERT_OK(ks_kv_table_new(f->pool, &f->table, NULL));
  KS_ASSERT_OK(f->be.t->mem_new(f->be.dev, KS_MEM_SCRATCH,
                                FIX_ENTRY * n_kv_head * FIX_DIM * sizeof(float), &f->k, NULL));
  KS_ASSERT_OK(f->be.t->mem_new(f->be.dev, KS_MEM_SCRATCH,
                                FIX_ENTRY * n_kv_head * FIX_DIM * sizeof(float), &f->v, NULL));
  KS_ASSERT_OK(f->be.t->mem_new(f->be.dev, KS_MEM_SCRATCH, FIX_ENTRY * n_kv_head * sizeof(float),
                                &f->log_beta, NULL));
}

static inline void
fix_close(kv_fixture *f)
{
  ks_kv_table_free(f->table);
  KS_ASSERT(ks_kv_pool_check(f->pool));
  KS_ASSERT_EQ(ks_kv_pool_get_used_pages(f->pool), 0);
  ks_kv_pool_free(f->pool);
  f->be.t->mem_free(f->be.dev, f->k);
  f->be.t->mem_free(f->be.dev, f->v);
  f->be.t->mem_free(f->be.dev, f->log_beta);
  ks_backend_close(&f->be);
  for (int kind = 0; kind < KS_N_MEM_KIND; kind++)
    KS_ASSERT_EQ(ks_alloc_get_bytes(f->alloc, (ks_mem_kind)kind), 0);
  ks_alloc_free(f->alloc);
}

/* The value that every test entry carries in its first place: tells stream and position. */
static inline float
fix_value(uint32_t stream, uint32_t pos)
{
  return (float)(stream * 4096 + pos);
}

/* Appends n entries at pos0, pos0 + 1, ... to every stream of table.  log_beta [n_stream, n]; keys
 * [n_stream, n, FIX_DIM] or NULL for zeros.  They are not live before ks_kv_table_commit. */
static inline void
fix_append_only(kv_fixture *f, ks_kv_table *table, uint32_t pos0, uint32_t n, const float *log_beta,
                const float *keys)
{
  static float lb[FIX_ENTRY * FIX_STREAM], k[FIX_ENTRY * FIX_STREAM * FIX_DIM],
      v[FIX_ENTRY * FIX_STREAM * FIX_DIM];
  const uint32_t n_head = f->layout.n_kv_head;
  ks_backend *be = &f->be;

  KS_ASSERT_OK(ks_kv_table_reserve(table, n, NULL));
  for (uint32_t l = 0; l < f->layout.n_layer; l++) {
    const ks_op_kv_append op = {.kv = ks_kv_table_get_view(table),
                                .layer = l,
                                .n_tok = n,
                                .pos0 = pos0,
                                .k = f->k,
                                .v = f->v,
                                .log_beta = f->log_beta};

    memset(v, 0, sizeof(v));
    memset(k, 0, sizeof(k));
    for (uint32_t h = 0; h < n_head; h++)
      for (uint32_t t = 0; t < n; t++) {
        const uint32_t stream = l * n_head + h, at = t * n_head + h;

        lb[at] = log_beta[stream * n + t];
        v[at * FIX_DIM] = fix_value(stream, pos0 + t);
        if (keys != NULL)
          memcpy(k + at * FIX_DIM, keys + (stream * n + t) * FIX_DIM, FIX_DIM * sizeof(float));
      }
    KS_ASSERT_OK(be->t->upload(be->dev, f->k, k, n * n_head * FIX_DIM * sizeof(float), NULL));
    KS_ASSERT_OK(be->t->upload(be->dev, f->v, v, n * n_head * FIX_DIM * sizeof(float), NULL));
    KS_ASSERT_OK(be->t->upload(be->dev, f->log_beta, lb, n * n_head * sizeof(float), NULL));
    KS_ASSERT_OK(be->t->step_begin(be->dev, NULL));
    KS_ASSERT_OK(be->t->kv_append(be->dev, &op));
    KS_ASSERT_OK(be->t->step_end(be->dev, NULL, NULL, NULL));
  }
}

static inline void
fix_append(kv_fixture *f, ks_kv_table *table, uint32_t pos0, uint32_t n, const float *log_beta,
           const float *keys)
{
  fix_append_only(f, table, pos0, n, log_beta, keys);
  ks_kv_table_commit(table, n);
}

/* "0 3 4 | 1" : positions stream by stream; also checks that every value still fits its position.
 */
static inline const char *
fix_survivors(kv_fixture *f, const ks_kv_table *table)
{
  static char text[FIX_STREAM * FIX_ENTRY * 6];
  static uint32_t pos[FIX_ENTRY];
  static float v[FIX_ENTRY * FIX_DIM];
  const ks_kv_view view = ks_kv_table_get_view(table);
  size_t at = 0;

  text[0] = '\0';
  for (uint32_t s = 0; s < f->n_stream; s++) {
    const uint32_t n = view.streams[s].n_entry;

    KS_ASSERT_LE(n, FIX_ENTRY);
    if (n > 0)
      KS_ASSERT_OK(f->be.t->kv_read(f->be.dev, &view, s, 0, n, NULL, v, NULL, pos, NULL, NULL));
    if (s > 0)
      at += (size_t)snprintf(text + at, sizeof(text) - at, "%s|", n > 0 || at > 0 ? " " : "");
    for (uint32_t e = 0; e < n; e++) {
      KS_ASSERT_EQ(v[e * FIX_DIM], fix_value(s, pos[e]));
      at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%u", at > 0 ? " " : "", pos[e]);
    }
  }
  KS_ASSERT(ks_kv_pool_check(f->pool));
  return text;
}

/* Makes an evictor with params, runs it once on table, frees it. */
static inline ks_status
fix_evict(kv_fixture *f, ks_kv_table *table, const ks_evict_params *params, uint32_t seen,
          uint64_t n_keep, const ks_pos_range *pins, uint32_t n_pin, ks_evict_event *out_event)
{
  ks_evict *evict = NULL;
  ks_status st;

  KS_ASSERT_OK(ks_evict_new(f->alloc, &f->be, params, &evict, NULL));
  ks_evict_set_heads(evict, f->layout.n_kv_head, 1.0f);
  st = ks_evict_run(evict, table, seen, n_keep, f->live_from, pins, n_pin, out_event, NULL);
  ks_evict_free(evict);
  return st;
}
