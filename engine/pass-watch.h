/* pass-watch.h - what a policy wants a pass to note for it beside its entries (evict.h asks,
 * graph.h does), and what it left.  Most policies want nothing. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/backend.h"

KS_BEGIN_DECLS

typedef struct ks_pass_watch {
  /* f32 [n_layer, n_slot, n_head * k_dim]: the rotated query of token pos goes to slot pos % n_slot
   * of every layer, of a long pass those of the last n_slot tokens; 0 = not wanted. */
  ks_dptr queries;
  uint32_t n_slot;
  /* f32, as many as there are entries after the pass, stream after stream: the attention that each
   * receives from all queries of the pass; 0 = not wanted. */
  ks_dptr mass;
} ks_pass_watch;

/* Entries that a pass appended to each stream: n, from layer thin_from on n_thin. */
typedef struct ks_pass_growth {
  uint32_t n, thin_from, n_thin;
} ks_pass_growth;

static inline uint32_t
ks_pass_growth_get(const ks_pass_growth *growth, uint32_t layer)
{
  return layer < growth->thin_from ? growth->n : growth->n_thin;
}

KS_END_DECLS
