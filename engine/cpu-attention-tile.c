/* cpu-attention-tile.c - online softmax over blocks of keys.
 * A row keeps its largest score so far, the sum of exponentials below it and the output for that
 * maximum; when a block brings a larger score, both are scaled down.  All in f32. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-attention-internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static size_t
align_64(size_t n)
{
  return (n + 63) / 64 * 64;
}

size_t
ks_attn_result_bytes(size_t max_row, size_t v_dim)
{
  return align_64(max_row * (ks_cpu_pad(v_dim) + 2) * sizeof(float));
}

size_t
ks_attn_tile_bytes(size_t max_row, size_t k_dim, size_t v_dim)
{
  const size_t k_pad = ks_cpu_pad(k_dim), v_pad = ks_cpu_pad(v_dim);
  const size_t wide = k_pad > v_pad ? k_pad : v_pad;
  const size_t per_row = k_pad + KS_ATTN_KEYS + k_pad / 2 + 3; /* q, s, codes; scale, lo, hi */
  const size_t n_float = max_row * per_row + KS_ATTN_KEYS * (k_pad + wide);

  return align_64(n_float * sizeof(float)) + 64 + ks_attn_result_bytes(max_row, v_dim);
}

void
ks_attn_tile_set_result(ks_attn_tile *tile, void *memory, size_t max_row)
{
  tile->acc = memory;
  tile->max = tile->acc + max_row * tile->v_pad;
  tile->sum = tile->max + max_row;
}

void
ks_attn_tile_init(ks_attn_tile *tile, void *memory, size_t max_row, size_t k_dim, size_t v_dim)
{
  float *at = memory;

  tile->k_dim = k_dim;
  tile->v_dim = v_dim;
  tile->k_pad = ks_cpu_pad(k_dim);
  tile->v_pad = ks_cpu_pad(v_dim);
  tile->n_row = 0;
  tile->q = at;
  at += max_row * tile->k_pad;
  tile->codes = (int16_t *)(void *)at;
  at += max_row * tile->k_pad / 2;
  tile->s = at;
  at += max_row * KS_ATTN_KEYS;
  tile->keys_t = at;
  at += KS_ATTN_KEYS * tile->k_pad;
  tile->block = at;
  at += KS_ATTN_KEYS * (tile->k_pad > tile->v_pad ? tile->k_pad : tile->v_pad);
  tile->lo = (uint32_t *)(void *)at;
  tile->hi = tile->lo + max_row;
  tile->code_scale = (float *)(void *)(tile->hi + max_row);
  ks_attn_tile_set_result(tile, tile->code_scale + max_row, max_row);
}

void
ks_attn_tile_reset(ks_attn_tile *tile)
{
  memset(tile->acc, 0, tile->n_row * tile->v_pad * sizeof(float));
  for (size_t r = 0; r < tile->n_row; r++) {
    tile->max[r] = -INFINITY;
    tile->sum[r] = 0.0F;
  }
}

void
ks_attn_tile_set_query(ks_attn_tile *tile, size_t row, const float *q, float scale)
{
  float *to = tile->q + row * tile->k_pad;

  for (size_t i = 0; i < tile->k_dim; i++)
    to[i] = q[i] * scale;
  for (size_t i = tile->k_dim; i < tile->k_pad; i++)
    to[i] = 0.0F;
}

void
ks_attn_tile_score(ks_attn_tile *tile, const ks_cpu_vec_fns *vec, size_t n)
{
  const size_t half_pad = KS_CPU_PAD / 2;

  assert(n <= KS_ATTN_KEYS);
  vec->transpose(tile->keys_t, KS_ATTN_KEYS, tile->block, tile->k_pad, n, tile->k_dim);
  vec->gemm(tile->s, KS_ATTN_KEYS, tile->q, tile->k_pad, tile->keys_t, KS_ATTN_KEYS, tile->n_row,
            (n + half_pad - 1) / half_pad * half_pad, tile->k_dim, false);
}

void
ks_attn_tile_softmax(ks_attn_tile *tile, const ks_cpu_vec_fns *vec, uint32_t first, uint32_t n)
{
  for (size_t r = 0; r < tile->n_row; r++) {
    float *s = tile->s + r * KS_ATTN_KEYS, largest;
    uint32_t begin, end;

    ks_attn_clip(tile->lo[r], tile->hi[r], first, n, &begin, &end);
    largest = vec->max(s + begin, end - begin);
    if (!(largest > -INFINITY)) { /* nothing seen in this block */
      memset(s, 0, n * sizeof *s);
      continue;
    }
    if (largest > tile->max[r]) {
      const float factor = expf(tile->max[r] - largest); /* 0 at the first block */

      vec->scale(tile->acc + r * tile->v_pad, tile->v_dim, factor);
      tile->sum[r] *= factor;
      tile->max[r] = largest;
    }
    tile->sum[r] += vec->exp_sum(s + begin, end - begin, tile->max[r]);
    memset(s, 0, begin * sizeof *s);
    memset(s + end, 0, (n - end) * sizeof *s);
  }
}

void
ks_attn_tile_add_values(ks_attn_tile *tile, const ks_cpu_vec_fns *vec, size_t n)
{
  const size_t half_pad = KS_CPU_PAD / 2;

  vec->gemm(tile->acc, tile->v_pad, tile->s, KS_ATTN_KEYS, tile->block, tile->v_pad, tile->n_row,
            (tile->v_dim + half_pad - 1) / half_pad * half_pad, n, true);
}

void
ks_attn_tile_get_row(const ks_attn_tile *tile, const ks_cpu_vec_fns *vec, size_t row, float *out)
{
  memcpy(out, tile->acc + row * tile->v_pad, tile->v_dim * sizeof *out);
  vec->scale(out, tile->v_dim, tile->sum[row] > 0.0F ? 1.0F / tile->sum[row] : 0.0F);
}
