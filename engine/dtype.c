/* dtype.c - table of element types, half precision conversions.
 * The conversions work on bits, so they neither depend on the rounding mode nor on a CPU's
 * instructions; kernels have their own vector forms and are tested against these. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/dtype.h"

#include "engine/alloc.h"

#include <string.h>
#include <strings.h>

static const ks_dtype_info infos[KS_N_DTYPE] = {
    [KS_DTYPE_F32] = {"F32", 1, 4, false},        [KS_DTYPE_F16] = {"F16", 1, 2, false},
    [KS_DTYPE_Q4_0] = {"Q4_0", 32, 18, true},     [KS_DTYPE_Q4_1] = {"Q4_1", 32, 20, true},
    [KS_DTYPE_Q5_0] = {"Q5_0", 32, 22, true},     [KS_DTYPE_Q5_1] = {"Q5_1", 32, 24, true},
    [KS_DTYPE_Q8_0] = {"Q8_0", 32, 34, true},     [KS_DTYPE_Q2_K] = {"Q2_K", 256, 84, true},
    [KS_DTYPE_Q3_K] = {"Q3_K", 256, 110, true},   [KS_DTYPE_Q4_K] = {"Q4_K", 256, 144, true},
    [KS_DTYPE_Q5_K] = {"Q5_K", 256, 176, true},   [KS_DTYPE_Q6_K] = {"Q6_K", 256, 210, true},
    [KS_DTYPE_IQ4_NL] = {"IQ4_NL", 32, 18, true}, [KS_DTYPE_IQ4_XS] = {"IQ4_XS", 256, 136, true},
    [KS_DTYPE_I32] = {"I32", 1, 4, false},        [KS_DTYPE_BF16] = {"BF16", 1, 2, false},
};

const ks_dtype_info *
ks_dtype_get_info(uint32_t id)
{
  if (id >= KS_N_DTYPE || infos[id].name == NULL)
    return NULL;
  return &infos[id];
}

bool
ks_dtype_row_bytes(ks_dtype dtype, uint64_t n_elem, size_t *out_bytes)
{
  const ks_dtype_info *info = ks_dtype_get_info((uint32_t)dtype);

  if (info == NULL || n_elem > SIZE_MAX || n_elem % info->block_elems != 0)
    return false;
  return ks_mul_size((size_t)(n_elem / info->block_elems), info->block_bytes, out_bytes);
}

bool
ks_dtype_parse(const char *name, ks_dtype *out)
{
  for (uint32_t id = 0; id < KS_N_DTYPE; id++)
    if (infos[id].name != NULL && strcasecmp(infos[id].name, name) == 0) {
      *out = (ks_dtype)id;
      return true;
    }
  return false;
}

static uint32_t
bits_of(float value)
{
  uint32_t bits;

  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

static float
float_of(uint32_t bits)
{
  float value;

  memcpy(&value, &bits, sizeof(value));
  return value;
}

float
ks_f16_to_f32(uint16_t half)
{
  uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
  uint32_t exponent = (half >> 10) & 31u;
  uint32_t mantissa = half & 0x3ffu;

  if (exponent == 31) /* Inf, NaN: the payload moves up */
    return float_of(sign | 0x7f800000u | mantissa << 13);
  if (exponent == 0) { /* zero and subnormal: mantissa * 2^-24, exact in f32 */
    float magnitude = (float)mantissa * 0x1p-24f;

    return float_of(sign | bits_of(magnitude));
  }
  return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t
ks_f16_from_f32(float value)
{
  uint32_t bits = bits_of(value);
  uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t shift, mantissa, half, rest, middle;

  if (magnitude > 0x7f800000u) /* NaN stays one, also when the payload's upper bits are 0 */
    return (uint16_t)(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x47800000u) /* 2^16 and above, Inf */
    return (uint16_t)(sign | 0x7c00u);
  if (magnitude < 0x33000000u) /* below 2^-25: nearer to 0 than to the smallest subnormal */
    return (uint16_t)sign;
  if (magnitude >= 0x38800000u) { /* normal: rounding may carry into the exponent, up to Inf */
    half = (magnitude - 0x38000000u) >> 13;
    rest = magnitude & 0x1fffu;
    middle = 0x1000u;
  } else {
    shift = 126 - (magnitude >> 23);
    mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    half = mantissa >> shift;
    rest = mantissa & ((1u << shift) - 1);
    middle = 1u << (shift - 1);
  }
  if (rest > middle || (rest == middle && (half & 1) != 0))
    half++;
  return (uint16_t)(sign | half);
}

float
ks_bf16_to_f32(uint16_t half)
{
  return float_of((uint32_t)half << 16);
}

uint16_t
ks_bf16_from_f32(float value)
{
  uint32_t bits = bits_of(value);

  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return (uint16_t)(bits >> 16 | 0x40u); /* quiet: dropping the low payload must not leave Inf */
  return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
