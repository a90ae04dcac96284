/* cpu-attention-codes.c - blocks of q8_0 keys and values in whole numbers: finds the rows of a
 * block and hands them to the kernels of cpu-codes.inc.  While keys are read the values behind them
 * are asked for, and with the values the keys of the next block, so that memory is never waited
 * for. Threads: a tile belongs to one member. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-attention-internal.h"

#include <assert.h>

const ks_cpu_codes_fns *
ks_cpu_codes_get(ks_isa isa, bool vnni)
{
  (void)vnni;
#if defined(KS_BUILT_AVX512VNNI)
  if (isa == KS_ISA_AVX512 && vnni)
    return &ks_cpu_codes_avx512vnni;
#endif
#if defined(KS_BUILT_AVXVNNI)
  if (isa == KS_ISA_AVX2 && vnni)
    return &ks_cpu_codes_avxvnni;
#endif
#if defined(__x86_64__)
  if (isa == KS_ISA_AVX512)
    return &ks_cpu_codes_avx512;
  if (isa == KS_ISA_AVX2)
    return &ks_cpu_codes_avx2;
#endif
  (void)isa;
  return &ks_cpu_codes_scalar;
}

const ks_cpu_codes_fns *
ks_attn_codes_get(const ks_cpu_ctx *ctx, const ks_kv_layout *layout)
{
  const bool whole_quads = layout->page_entries % KS_CODES_QUAD == 0;

  return layout->kv_dtype == KS_DTYPE_Q8_0 && whole_quads ? ctx->codes : NULL;
}

void
ks_attn_tile_set_codes(ks_attn_tile *tile, const ks_cpu_codes_fns *fns)
{
  for (size_t r = 0; r < tile->n_row; r++)
    tile->code_scale[r] =
        fns->quantise(tile->codes + r * tile->k_pad, tile->q + r * tile->k_pad, tile->k_pad);
}

/* The rows of a block, whose first entry is a multiple of a quad; page by page. */
static void
find_rows(ks_attn_rows *rows, const ks_attn_place *place)
{
  const ks_kv_layout *layout = place->stream.layout;
  const uint32_t mask = layout->page_entries - 1, shift = (uint32_t)__builtin_ctz(mask + 1);
  const uint32_t stop = place->first + place->n;
  const size_t k_bytes = layout->k_row_bytes, v_bytes = layout->v_row_bytes;
  size_t n_quad = 0;

  rows->keys.row_bytes = k_bytes;
  rows->values.row_bytes = v_bytes;
  for (uint32_t e = place->first; e < stop;) {
    const uint32_t slot = e & mask, room = layout->page_entries - slot;
    const uint32_t end = room < stop - e ? e + room : stop;
    const unsigned char *k =
        place->stream.base + place->stream.pages[e >> shift] * layout->page_bytes;
    const unsigned char *v = k + layout->v_offset + slot * v_bytes;

    for (k += slot * k_bytes; e < end; e += KS_CODES_QUAD, n_quad++) {
      rows->keys.quad[n_quad] = k;
      rows->values.quad[n_quad] = v;
      k += KS_CODES_QUAD * k_bytes;
      v += KS_CODES_QUAD * v_bytes;
    }
  }
}

void
ks_attn_tile_add_codes(ks_attn_tile *tile, const ks_cpu_vec_fns *vec, const ks_cpu_codes_fns *fns,
                       ks_attn_walk *walk, const ks_attn_place *here, const ks_attn_place *next)
{
  ks_attn_rows *rows = &walk->rows[walk->at], *ahead = &walk->rows[1 - walk->at];

  assert(here->n <= KS_CODES_ROWS && here->first % KS_CODES_QUAD == 0);
  if (!walk->ready)
    find_rows(rows, here);
  if (next->n > 0)
    find_rows(ahead, next);
  rows->keys.n_row = rows->values.n_row = here->n;
  rows->keys.ahead = &rows->values;
  ahead->keys.n_row = next->n;
  rows->values.ahead = &ahead->keys;
  fns->qk(tile->s, KS_ATTN_KEYS, tile->codes, tile->k_pad, tile->code_scale, tile->n_row,
          &rows->keys, tile->k_pad / KS_Q8_BLOCK);
  ks_attn_tile_softmax(tile, vec, here->first, here->n);
  fns->pv(tile->acc, tile->v_pad, tile->s, KS_ATTN_KEYS, tile->n_row, &rows->values,
          tile->v_pad / KS_Q8_BLOCK);
  walk->at = 1 - walk->at;
  walk->ready = true;
}
