/* ops-fixture.h - runs one CPU operation under every instruction set and several thread counts.
 * Scratch is allocated for each run at exactly the size the operation asked for, so that a
 * sanitizer sees any byte too far.  Sets this processor lacks are skipped; AVX-512 also runs
 * emulated. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/cpu-codes-internal.h"
#include "engine/cpu-isa-internal.h"
#include "engine/cpu-kv-internal.h"
#include "engine/cpu-packed-internal.h"
#include "tests/ks-test.h"

typedef struct ops_set {
  ks_isa isa;
  const ks_cpu_vec_fns *vec;
} ops_set;

/* Fills the tables of whole-number attention that can run here: at most eight. */
static inline size_t
ops_list_codes(const ks_cpu_codes_fns **out)
{
  const ks_cpu_id id = ks_cpu_id_read();
  size_t n = 0;

  for (size_t i = 0; i < KS_N_CPU_SET; i++)
    if (ks_cpu_id_supports(&id, &ks_cpu_sets[i]) && !ks_cpu_sets[i].bf16)
      out[n++] = ks_cpu_codes_get(ks_cpu_sets[i].isa, ks_cpu_sets[i].vnni);
#ifdef KS_EMULATED_AVX512
  if (ks_cpu_detect_isa() >= KS_ISA_AVX2) {
    out[n++] = &ks_cpu_codes_avxvnni_emulated;
    out[n++] = &ks_cpu_codes_avx512_emulated;
    out[n++] = &ks_cpu_codes_avx512vnni_emulated;
  }
#endif
  return n;
}

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
  f->ctx.packed = ks_cpu_packed_get(set.isa, false);
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
  /* Not numbers: an operation finds there what the one before it left. */
  memset(f->ctx.scratch, 0xff, ks_threads_get_n(f->threads) * f->ctx.scratch_bytes);
  memset(f->ctx.shared, 0xff, need.shared_bytes);
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
