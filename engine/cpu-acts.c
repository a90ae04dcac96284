/* cpu-acts.c - activations as products of repacked weights read them, and the choice of kernels.
 * One block of memory holds sums, scales and codes of all tokens, each part aligned
 * to 64 bytes.  Threads: members fill different tokens of the same block. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-packed-internal.h"

#include <assert.h>

#define ALIGNED(n) (((n) + 63) / 64 * 64)

/* Bytes of each part. */
typedef struct parts {
  size_t q, d, sum, half_sum, centre, half_centre;
} parts;

static parts
get_parts(size_t n_in, size_t n_tok, bool fast)
{
  const size_t n_group = n_in / KS_PACKED_GROUP * n_tok;
  parts p = {.sum = ALIGNED(n_group * sizeof(float)),
             .half_sum = ALIGNED(2 * n_group * sizeof(float))};

  assert(n_in % KS_PACKED_GROUP == 0);
  if (fast) {
    p.q = ALIGNED(n_in * n_tok);
    p.d = ALIGNED(n_group * sizeof(float));
    p.centre = ALIGNED(n_group * sizeof(uint32_t));
    p.half_centre = ALIGNED(2 * n_group * sizeof(uint32_t));
  }
  return p;
}

size_t
ks_cpu_acts_bytes(size_t n_in, size_t n_tok, bool fast)
{
  parts p = get_parts(n_in, n_tok, fast);

  return p.q + p.d + p.sum + p.half_sum + p.centre + p.half_centre;
}

void
ks_cpu_acts_init(ks_cpu_acts *acts, void *block, size_t n_in, size_t n_tok, bool fast)
{
  parts p = get_parts(n_in, n_tok, fast);
  unsigned char *at = block;

  *acts = (ks_cpu_acts){.n_in = n_in};
  acts->sum = (float *)(void *)at;
  acts->half_sum = (float *)(void *)(at + p.sum);
  if (fast) {
    acts->d = (float *)(void *)(at + p.sum + p.half_sum);
    at += p.sum + p.half_sum + p.d;
    acts->centre = (uint32_t *)(void *)at;
    acts->half_centre = (uint32_t *)(void *)(at + p.centre);
    acts->q = (int8_t *)(at + p.centre + p.half_centre);
  }
}

void
ks_cpu_acts_fill(const ks_cpu_ctx *ctx, ks_cpu_acts *acts, const float *x, size_t x_stride,
                 size_t begin, size_t end)
{
  const size_t n_in = acts->n_in, n_group = n_in / KS_PACKED_GROUP;
  const bool fast = acts->q != NULL;

  acts->x = x;
  acts->x_stride = x_stride;
  for (size_t t = begin; t < end; t++) {
    ctx->packed->fill_acts(x + t * x_stride, n_in, fast ? acts->q + t * n_in : NULL,
                           fast ? acts->d + t * n_group : NULL, acts->sum + t * n_group,
                           acts->half_sum + 2 * t * n_group);
    if (fast && ctx->packed->fill_centres != NULL)
      ctx->packed->fill_centres(acts->q + t * n_in, n_in, acts->centre + t * n_group,
                                acts->half_centre + 2 * t * n_group);
  }
}

const ks_cpu_packed_fns *
ks_cpu_packed_get(ks_isa isa, bool vnni)
{
  (void)vnni;
#if defined(KS_BUILT_AVX512VNNI)
  if (isa == KS_ISA_AVX512 && vnni)
    return &ks_cpu_packed_avx512vnni;
#endif
#if defined(KS_BUILT_AVXVNNI)
  if (isa == KS_ISA_AVX2 && vnni)
    return &ks_cpu_packed_avxvnni;
#endif
#if defined(__x86_64__)
  if (isa == KS_ISA_AVX512)
    return &ks_cpu_packed_avx512;
  if (isa == KS_ISA_AVX2)
    return &ks_cpu_packed_avx2;
#endif
  (void)isa;
  return &ks_cpu_packed_scalar;
}
