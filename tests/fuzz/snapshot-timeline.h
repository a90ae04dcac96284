/* snapshot-timeline.h - a tiny model with a timeline, for the fuzz target of snapshots and the tool
 * that writes its seeds. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/snapshot.h"
#include "tests/unit/tiny-model.h"

typedef struct snapshot_bench {
  ks_alloc *alloc;
  ks_backend be;
  unsigned char *bytes;
  ks_model *model;
  ks_kv_layout layout;
  ks_kv_pool *pool;
  ks_timeline *tl;
} snapshot_bench;

/* False when anything fails; nothing is given back. */
static inline bool
snapshot_bench_open(snapshot_bench *b, ks_dtype kv_dtype, uint32_t n_aux)
{
  const tiny_spec spec = {.arch = "llama"};
  ks_dev_params dev_params = {.n_thread = 1, .mode = KS_COMPUTE_EXACT};
  ks_timeline_params params;
  size_t n = 0;

  memset(b, 0, sizeof(*b));
  b->alloc = dev_params.alloc = ks_alloc_new();
  if (b->alloc == NULL || ks_backend_open("cpu", &dev_params, &b->be, NULL) != KS_OK)
    return false;
  b->bytes = tiny_new_bytes(b->alloc, &spec, &n);
  if (tiny_open(b->alloc, &b->be, b->bytes, n, 0, &b->model, NULL) != KS_OK)
    return false;
  b->layout = (ks_kv_layout){.n_layer = TINY_LAYER,
                             .n_kv_head = TINY_KV_HEAD,
                             .k_dim = TINY_DIM,
                             .v_dim = TINY_DIM,
                             .kv_dtype = kv_dtype,
                             .page_entries = 4,
                             .n_aux = n_aux};
  if (ks_kv_layout_init(&b->layout, NULL) != KS_OK ||
      ks_kv_pool_new(b->alloc, &b->be, &b->layout, 200 * b->layout.page_bytes,
                     200 * b->layout.page_bytes, &b->pool, NULL) != KS_OK)
    return false;
  params = ks_timeline_default_params(b->model, NULL, b->pool);
  params.chunk = 8;
  params.buffer = 4;
  params.n_keep = 4 * 12;
  return ks_timeline_new(b->alloc, &params, &b->tl, NULL) == KS_OK;
}
