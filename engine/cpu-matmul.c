/* cpu-matmul.c - the plain kernels of matrix products and activations, and the choice of kernels.
 * How an operation is cut and run: cpu-linear.c.  Threads: pure functions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-matmul-internal.h"

#include "engine/quant.h"

#include <math.h>
#include <string.h>

#define PIECE_K ((size_t)256) /* elements unpacked at a time; whole blocks of every type */

/* --- the plain kernels --- */

#define PLAIN_ROWS 16
#define PLAIN_TOK 4

static float
dot(const float *a, const float *b, size_t n)
{
  float sum[8] = {0};
  float total;
  size_t i = 0;

  for (; i + 8 <= n; i += 8)
    for (size_t j = 0; j < 8; j++)
      sum[j] += a[i + j] * b[i + j];
  total = ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
  for (; i < n; i++)
    total += a[i] * b[i];
  return total;
}

static void
plain_multiply_rows(const ks_rows_job *job)
{
  const ks_dtype_info *info = ks_dtype_get_info(job->dtype);
  float w[PIECE_K];

  for (size_t r = 0; r < job->n_row; r++) {
    const unsigned char *row = job->rows + r * job->row_bytes;
    float *out = job->out + r;

    for (size_t t = 0; t < job->n_tok; t++)
      out[t * job->out_stride] = 0;
    for (size_t k = 0; k < job->n_in; k += PIECE_K) {
      size_t n = job->n_in - k < PIECE_K ? job->n_in - k : PIECE_K;

      ks_dequantise_row(job->dtype, row + k / info->block_elems * info->block_bytes, w, n);
      for (size_t t = 0; t < job->n_tok; t++)
        out[t * job->out_stride] += dot(w, job->x + t * job->x_stride + k, n);
    }
  }
}

static size_t
plain_pack_size(size_t n_in)
{
  return n_in;
}

static void
plain_pack(const float *x, size_t n_in, float *out)
{
  memcpy(out, x, n_in * sizeof(*x));
}

static void
plain_transpose(const float *rows, size_t row_stride, size_t n_k, float *panel)
{
  for (size_t k = 0; k < n_k; k++)
    for (size_t r = 0; r < PLAIN_ROWS; r++)
      panel[k * PLAIN_ROWS + r] = rows[r * row_stride + k];
}

static void
plain_multiply_tile(const float *panel, size_t n_k, const float *x, size_t x_stride, size_t n_tok,
                    float *c, size_t c_stride, bool add)
{
  for (size_t t = 0; t < n_tok; t++) {
    float sum[PLAIN_ROWS] = {0};

    for (size_t k = 0; k < n_k; k++)
      for (size_t r = 0; r < PLAIN_ROWS; r++)
        sum[r] += panel[k * PLAIN_ROWS + r] * x[t * x_stride + k];
    for (size_t r = 0; r < PLAIN_ROWS; r++)
      c[t * c_stride + r] = add ? c[t * c_stride + r] + sum[r] : sum[r];
  }
}

float
ks_cpu_act(ks_act act, float z)
{
  switch (act) {
  case KS_ACT_NONE:
    break;
  case KS_ACT_SILU:
    return z / (1.0f + expf(-z));
  case KS_ACT_GELU_TANH:
    return 0.5f * z * (1.0f + tanhf(0.79788456080286536f * (z + 0.044715f * z * z * z)));
  case KS_ACT_GELU_ERF:
    return 0.5f * z * (1.0f + erff(z * 0.70710678118654752f));
  case KS_ACT_GELU_QUICK:
    return z / (1.0f + expf(-1.702f * z));
  case KS_ACT_RELU6:
    return z < 0 ? 0 : z > 6 ? 6 : z;
  }
  return z;
}

static void
plain_act_row(ks_act act, float *z, size_t n)
{
  for (size_t i = 0; i < n; i++)
    z[i] = ks_cpu_act(act, z[i]);
}

void
ks_cpu_act_row(const ks_cpu_ctx *ctx, ks_act act, float *z, size_t n)
{
  if (act != KS_ACT_NONE)
    ctx->matmul->act_row(act, z, n);
}

#define FOR_EVERY_TYPE(f)                                                                          \
  {                                                                                                \
    [KS_DTYPE_F32] = (f), [KS_DTYPE_F16] = (f), [KS_DTYPE_BF16] = (f), [KS_DTYPE_Q4_0] = (f),      \
    [KS_DTYPE_Q4_1] = (f), [KS_DTYPE_Q5_0] = (f), [KS_DTYPE_Q5_1] = (f), [KS_DTYPE_Q8_0] = (f),    \
    [KS_DTYPE_Q2_K] = (f), [KS_DTYPE_Q3_K] = (f), [KS_DTYPE_Q4_K] = (f), [KS_DTYPE_Q5_K] = (f),    \
    [KS_DTYPE_Q6_K] = (f), [KS_DTYPE_IQ4_NL] = (f), [KS_DTYPE_IQ4_XS] = (f)                        \
  }

static const ks_cpu_matmul_fns plain_fns = {
    .panel_rows = PLAIN_ROWS,
    .tile_tok = PLAIN_TOK,
    .unpack = FOR_EVERY_TYPE(ks_dequantise_row),
    .multiply_rows = FOR_EVERY_TYPE(plain_multiply_rows),
    .pack_size = plain_pack_size,
    .pack = plain_pack,
    .transpose = plain_transpose,
    .multiply_tile = plain_multiply_tile,
    .act_row = plain_act_row,
};

const ks_cpu_matmul_fns *
ks_cpu_matmul_get(ks_isa isa)
{
#if defined(__x86_64__)
  if (isa == KS_ISA_AVX512)
    return &ks_cpu_matmul_avx512;
  if (isa == KS_ISA_AVX2)
    return &ks_cpu_matmul_avx2;
#endif
  (void)isa;
  return &plain_fns;
}

const ks_cpu_bf16_fns *
ks_cpu_bf16_get(bool bf16)
{
#if defined(KS_BUILT_AVX512BF16)
  if (bf16)
    return &ks_cpu_matmul_bf16;
#endif
  (void)bf16;
  return NULL;
}
