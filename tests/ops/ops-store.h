/* ops-store.h - a paged store made by hand: streams of given lengths, pages in shuffled order. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/kv-pool.h"
#include "tests/ops/ops-fixture.h"

typedef struct ops_store {
  ks_kv_layout layout;
  ks_kv_stream *streams;
  unsigned char *pages;
  ks_kv_view view;
  uint32_t n_stream;
} ops_store;

/* Streams of the given lengths with room for extra more entries each; pages in shuffled order. */
static inline void
ops_store_init(ops_fixture *f, ops_store *store, const ks_kv_layout *shape, const uint32_t *lengths,
               uint32_t extra)
{
  uint32_t n_page = 0, next = 0, *ids;

  memset(store, 0, sizeof(*store));
  store->layout = *shape;
  KS_ASSERT_OK(ks_kv_layout_init(&store->layout, NULL));
  store->n_stream = shape->n_layer * shape->n_kv_head;
  store->streams = ks_mem_new(f->a, KS_MEM_HOST, store->n_stream, sizeof(*store->streams));
  for (uint32_t s = 0; s < store->n_stream; s++) {
    store->streams[s].n_entry = lengths[s];
    store->streams[s].n_page = (lengths[s] + extra + shape->page_entries - 1) / shape->page_entries;
    n_page += store->streams[s].n_page;
  }
  ids = ks_mem_new(f->a, KS_MEM_HOST, n_page + 1, sizeof(*ids));
  for (uint32_t i = 0; i < n_page; i++)
    ids[i] = i;
  for (uint32_t i = n_page; i > 1; i--) {
    uint32_t j = ops_random(f) % i, swap = ids[j];

    ids[j] = ids[i - 1];
    ids[i - 1] = swap;
  }
  for (uint32_t s = 0; s < store->n_stream; s++) {
    ks_kv_stream *stream = &store->streams[s];

    stream->page_capacity = stream->n_page;
    stream->pages = ks_mem_new(f->a, KS_MEM_HOST, stream->n_page, sizeof(*stream->pages));
    for (uint32_t i = 0; i < stream->n_page; i++)
      stream->pages[i] = ids[next++];
  }
  ks_mem_free(ids);
  store->pages = ks_mem_new(f->a, KS_MEM_KV, n_page, store->layout.page_bytes);
  KS_ASSERT(store->pages != NULL);
  store->view.base = ops_dptr(store->pages);
  store->view.layout = &store->layout;
  store->view.streams = store->streams;
}

static inline void
ops_store_done(ops_store *store)
{
  for (uint32_t s = 0; s < store->n_stream; s++)
    ks_mem_free(store->streams[s].pages);
  ks_mem_free(store->streams);
  ks_mem_free(store->pages);
}

static inline ks_cpu_slots
ops_slot(const ops_store *store, uint32_t stream, uint32_t entry)
{
  const ks_cpu_stream s = ks_cpu_stream_get(&store->view, stream);

  return ks_cpu_slots_get(&s, entry, 1);
}

/* Random entries, pos with gaps; the number of entries filled includes extra ones. */
static inline void
ops_store_fill(ops_fixture *f, ops_store *store, uint32_t extra)
{
  const ks_cpu_vec_fns *vec = &ks_cpu_vec_scalar;
  const ks_kv_kind kind = ks_kv_kind_get(store->layout.kv_dtype);

  for (uint32_t s = 0; s < store->n_stream; s++) {
    uint32_t pos = 0;

    for (uint32_t e = 0; e < store->streams[s].n_entry + extra; e++) {
      const ks_cpu_slots slot = ops_slot(store, s, e);
      float *k = ops_floats(f, store->layout.k_dim), *v = ops_floats(f, store->layout.v_dim);

      vec->pack[kind](slot.k, k, store->layout.k_dim);
      vec->pack[kind](slot.v, v, store->layout.v_dim);
      pos += ops_random(f) % 3;
      *slot.pos = pos++;
      *slot.log_beta = -0.001F * (float)(ops_random(f) % 1000);
      for (size_t j = 0; j < store->layout.n_aux; j++)
        slot.aux[j * store->layout.page_entries] = ops_random_float(f);
      ks_mem_free(k);
      ks_mem_free(v);
    }
  }
}
