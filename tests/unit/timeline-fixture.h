/* timeline-fixture.h - a tiny golden model with its gate and a page pool, for timeline tests.
 * KS_GOLDEN_DEFAULT names the folder of the golden cases. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/timeline.h"

#include "tests/ks-test.h"

typedef struct tl_fixture {
  ks_alloc *alloc;
  uint32_t n_thread; /* 0 = 1 */
  ks_backend be;
  ks_model *model;
  ks_gate *gate;
  ks_kv_layout layout;
  ks_kv_pool *pool;
  uint32_t n_stream;
} tl_fixture;

static inline const char *
tl_path(char *out, size_t size, const char *name)
{
  const char *folder = getenv("KS_GOLDEN_DEFAULT");

  KS_ASSERT(folder != NULL);
  snprintf(out, size, "%s/%s", folder, name);
  return out;
}

/* Everything but timelines; gate may be NULL.  For runs where memory fails: a status, and
 * tl_close cleans up whatever there is. */
static inline ks_status
tl_try_open(tl_fixture *f, const char *model, const char *gate, uint32_t page_entries,
            uint64_t n_page, uint64_t max_page)
{
  ks_dev_params params = {
      .n_thread = f->n_thread > 0 ? f->n_thread : 1, .mode = KS_COMPUTE_EXACT, .alloc = f->alloc};
  ks_model_params model_params = {.be = &f->be};
  const ks_model_shape *shape;
  char path[1024];
  ks_status st = ks_backend_open("cpu", &params, &f->be, NULL);

  if (st == KS_OK)
    st =
        ks_model_open(f->alloc, tl_path(path, sizeof(path), model), &model_params, &f->model, NULL);
  if (st == KS_OK && gate != NULL)
    st = ks_gate_open(f->alloc, tl_path(path, sizeof(path), gate), f->model, &f->gate, NULL);
  if (st != KS_OK)
    return st;
  shape = ks_model_get_shape(f->model);
  f->layout = (ks_kv_layout){.n_layer = shape->n_layer,
                             .n_kv_head = shape->n_kv_head,
                             .k_dim = shape->k_dim,
                             .v_dim = shape->v_dim,
                             .kv_dtype = KS_DTYPE_F32,
                             .page_entries = page_entries,
                             .n_aux = 1};
  f->n_stream = shape->n_layer * shape->n_kv_head;
  st = ks_kv_layout_init(&f->layout, NULL);
  if (st == KS_OK)
    st = ks_kv_pool_new(f->alloc, &f->be, &f->layout, n_page * f->layout.page_bytes,
                        max_page * f->layout.page_bytes, &f->pool, NULL);
  return st;
}

static inline void
tl_open(tl_fixture *f, const char *model, const char *gate, uint32_t page_entries, uint64_t n_page,
        uint64_t max_page)
{
  memset(f, 0, sizeof(*f));
  f->alloc = ks_alloc_new();
  KS_ASSERT(f->alloc != NULL);
  KS_ASSERT_OK(tl_try_open(f, model, gate, page_entries, n_page, max_page));
}

static inline void
tl_open_llama(tl_fixture *f, uint32_t page_entries, uint64_t n_page, uint64_t max_page)
{
  tl_open(f, "llama/model.gguf", "dbtrimkv/gate_tied.safetensors", page_entries, n_page, max_page);
}

static inline void
tl_close(tl_fixture *f)
{
  if (f->pool != NULL) {
    KS_ASSERT(ks_kv_pool_check(f->pool));
    KS_ASSERT_EQ(ks_kv_pool_get_used_pages(f->pool), 0);
  }
  ks_kv_pool_free(f->pool);
  ks_gate_free(f->gate);
  ks_model_close(f->model);
  ks_backend_close(&f->be);
  for (int kind = 0; kind < KS_N_MEM_KIND; kind++)
    KS_ASSERT_EQ(ks_alloc_get_bytes(f->alloc, (ks_mem_kind)kind), 0);
  ks_alloc_free(f->alloc);
}

/* Ids that differ and repeat, all small enough for the tiny vocabularies. */
static inline const ks_token *
tl_ids(uint32_t seed)
{
  static ks_token ids[4096];

  for (uint32_t i = 0; i < 4096; i++)
    ids[i] = (ks_token)(3 + (i * 31 + seed * 17 + i * i % 7) % 250);
  return ids;
}

static inline uint64_t
tl_entries(const ks_timeline *tl)
{
  return ks_kv_table_get_n_entries(ks_timeline_get_table(tl));
}
