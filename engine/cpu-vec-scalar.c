/* cpu-vec-scalar.c - the vector primitives with one lane: plain C for every processor. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-backend-internal.h"
#include "engine/cpu-vec-internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define VEC_TABLE ks_cpu_vec_scalar
#define VEC_NAME "scalar"
#define VF 1 /* lanes */
#define GEMM_ROWS 4

typedef float vf;

static inline vf
vf_zero(void)
{
  return 0.0F;
}

static inline vf
vf_set1(float x)
{
  return x;
}

static inline vf
vf_load(const float *p)
{
  return *p;
}

static inline void
vf_store(float *p, vf x)
{
  *p = x;
}

static inline vf
vf_load_f16(const uint16_t *p)
{
  return ks_f16_to_f32(*p);
}

static inline void
vf_store_f16(uint16_t *p, vf x)
{
  *p = ks_f16_from_f32(x);
}

static inline vf
vf_gather_f16(const unsigned char *p, size_t stride)
{
  uint16_t half;

  (void)stride;
  memcpy(&half, p, sizeof half);
  return ks_f16_to_f32(half);
}

static inline vf
vf_load_i8(const int8_t *p)
{
  return (float)*p;
}

static inline vf
vf_fma(vf a, vf b, vf c)
{
  return a * b + c;
}

static inline vf
vf_add(vf a, vf b)
{
  return a + b;
}

static inline vf
vf_sub(vf a, vf b)
{
  return a - b;
}

static inline vf
vf_mul(vf a, vf b)
{
  return a * b;
}

static inline vf
vf_div(vf a, vf b)
{
  return a / b;
}

static inline vf
vf_max(vf a, vf b)
{
  return a > b ? a : b;
}

static inline vf
vf_min(vf a, vf b)
{
  return a < b ? a : b;
}

static inline float
vf_hsum(vf x)
{
  return x;
}

static inline float
vf_hmax(vf x)
{
  return x;
}

static inline void
vf_sum4(float *out, vf a, vf b, vf c, vf d)
{
  out[0] = a;
  out[1] = b;
  out[2] = c;
  out[3] = d;
}

static inline vf
vf_exp(vf x)
{
  return expf(x);
}

#include "engine/cpu-vec.inc"

#if !defined(__x86_64__)
const ks_cpu_vec_fns *
ks_cpu_vec_get(ks_isa isa)
{
  assert(isa == KS_ISA_SCALAR);
  return &ks_cpu_vec_scalar;
}
#else
const ks_cpu_vec_fns *
ks_cpu_vec_get(ks_isa isa)
{
  return isa == KS_ISA_AVX512 ? &ks_cpu_vec_avx512
         : isa == KS_ISA_AVX2 ? &ks_cpu_vec_avx2
                              : &ks_cpu_vec_scalar;
}
#endif
