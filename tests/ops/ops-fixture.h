/* ops-fixture.h - runs one CPU operation under every instruction set and several thread counts.
 * Scratch is allocated for each run at exactly the size the operation asked for, so that a
 * sanitizer sees any byte too far.  Sets this processor lacks are skipped; AVX-512 also runs
 * emulated.  Over 200 lines because it is the whole fixture, in functions that are inline. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/cpu-kv-internal.h"
#include "engine/kv-pool.h"
#include "tests/ks-test.h"

typedef struct ops_set {
  ks_isa isa;
  const ks_cpu_vec_fns *vec;
} ops_set;

/* Fills at most four sets; returns how many there are. */
static inline size_t
ops_list_sets(ops_set *sets)
{
  const ks_isa best = ks_cpu_detect_isa();
  size_t n = 0;

  for (int isa = KS_ISA_SCALAR; isa <= (int)best; isa++)
    sets[n++] = (ops_set){(ks_isa)isa, ks_cpu_vec_get((ks_isa)isa)};
#ifdef KS_EMULATED_AVX512
  if (best >= KS_ISA_AVX2)
    sets[n++] = (ops_set){KS_ISA_AVX2, &ks_cpu_vec_avx512_emulated};
#endif
  return n;
}

static const uint32_t ops_thread_counts[] = {1, 2, 5};
#define OPS_N_THREAD_COUNTS 3

typedef struct ops_fixture {
  ks_alloc *a;
  ks_threads *threads;
  ks_cpu_ctx ctx;
  uint32_t ticket;
  uint64_t seed;
} ops_fixture;

static inline void
ops_init(ops_fixture *f, ops_set set, uint32_t n_thread)
{
  memset(f, 0, sizeof(*f));
  f->seed = 12345;
  f->a = ks_alloc_new();
  KS_ASSERT(f->a != NULL);
  KS_ASSERT_OK(ks_threads_new(f->a, n_thread, &f->threads, NULL));
  f->ctx.threads = f->threads;
  f->ctx.isa = set.isa;
  f->ctx.vec = set.vec;
  f->ctx.matmul = ks_cpu_matmul_get(set.isa);
  f->ctx.ticket = &f->ticket;
}

static inline void
ops_done(ops_fixture *f)
{
  ks_threads_free(f->threads);
  ks_alloc_free(f->a);
}

static inline uint32_t
ops_random(ops_fixture *f)
{
  f->seed = f->seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(f->seed >> 33);
}

/* Uniform in (-1, 1). */
static inline float
ops_random_float(ops_fixture *f)
{
  return (float)ops_random(f) / 1073741824.0F - 1.0F;
}

static inline float *
ops_floats(ops_fixture *f, size_t n)
{
  float *x = ks_mem_new(f->a, KS_MEM_SCRATCH, n, sizeof(*x));

  KS_ASSERT(x != NULL);
  for (size_t i = 0; i < n; i++)
    x[i] = ops_random_float(f);
  return x;
}

static inline ks_dptr
ops_dptr(const void *p)
{
  return (ks_dptr)(uintptr_t)p;
}

typedef struct ops_job {
  const ks_cpu_ctx *ctx;
  const void *op;
} ops_job;

/* Runs fn with the scratch that need asks for. */
static inline void
ops_run(ops_fixture *f, ks_cpu_need need, ks_thread_fn fn, const void *op)
{
  ops_job job = {&f->ctx, op};

  f->ctx.scratch_bytes = (need.member_bytes + 63) / 64 * 64;
  f->ctx.shared_bytes = need.shared_bytes;
  f->ctx.scratch =
      ks_mem_new(f->a, KS_MEM_SCRATCH, ks_threads_get_n(f->threads), f->ctx.scratch_bytes);
  f->ctx.shared = ks_mem_new(f->a, KS_MEM_SCRATCH, 1, need.shared_bytes);
  KS_ASSERT(f->ctx.scratch != NULL && f->ctx.shared != NULL);
  f->ticket = 0;
  ks_threads_run(f->threads, fn, &job);
  ks_mem_free(f->ctx.scratch);
  ks_mem_free(f->ctx.shared);
}

/* Defines ops_<op>(fixture, descriptor). */
#define OPS_DEFINE_PLAIN(op_name)                                                                  \
  static inline void ops_call_##op_name(void *user, uint32_t member, uint32_t n_member)            \
  {                                                                                                \
    const ops_job *job = user;                                                                     \
    ks_cpu_##op_name(job->ctx, job->op, member, n_member);                                         \
  }                                                                                                \
  static inline void ops_##op_name(ops_fixture *f, const void *op)                                 \
  {                                                                                                \
    ops_run(f, (ks_cpu_need){0, 0}, ops_call_##op_name, op);                                       \
  }
#define OPS_DEFINE(op_name, op_type)                                                               \
  static inline void ops_call_##op_name(void *user, uint32_t member, uint32_t n_member)            \
  {                                                                                                \
    const ops_job *job = user;                                                                     \
    ks_cpu_##op_name(job->ctx, job->op, member, n_member);                                         \
  }                                                                                                \
  static inline void ops_##op_name(ops_fixture *f, const op_type *op)                              \
  {                                                                                                \
    ks_cpu_need need = {0, 0};                                                                     \
    ks_cpu_##op_name##_need(&f->ctx, op, &need);                                                   \
    ops_run(f, need, ops_call_##op_name, op);                                                      \
  }

/* Runs body(f, set) for every set and thread count. */
static inline void
ops_for_all(void (*body)(ops_fixture *f))
{
  ops_set sets[4];
  const size_t n_set = ops_list_sets(sets);

  for (size_t i = 0; i < n_set; i++)
    for (size_t j = 0; j < OPS_N_THREAD_COUNTS; j++) {
      ops_fixture f;

      ops_init(&f, sets[i], ops_thread_counts[j]);
      body(&f);
      ops_done(&f);
    }
}

/* ---- a paged store by hand ---- */

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
