/* cpu-share-internal.h - who works on what an operation reads once from memory, and asking for it
 * ahead of use.  Threads: a share belongs to one member.  Source: docs/adr/0015-fewer-barriers.md.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/cpu-backend-internal.h"

KS_BEGIN_DECLS

/* Handing out items 0 .. n - 1 of memory that is read once: most of them in one run of neighbours a
 * member, so that its reads follow each other, the rest by ticket to whoever becomes free. */
typedef struct ks_cpu_share {
  size_t at, end; /* what is left of the run */
  size_t n_fixed, n;
} ks_cpu_share;

static inline ks_cpu_share
ks_cpu_share_begin(size_t n, uint32_t member, uint32_t n_member)
{
  ks_cpu_share share = {.n_fixed = n_member > 1 ? n - n / 8 : n, .n = n};

  ks_cpu_slice(share.n_fixed, member, n_member, &share.at, &share.end);
  return share;
}

/* False when nothing is left. */
static inline bool
ks_cpu_share_next(const ks_cpu_ctx *ctx, ks_cpu_share *share, size_t *out)
{
  *out = share->at < share->end ? share->at++ : share->n_fixed + ks_cpu_take(ctx);
  return *out < share->n;
}

/* Asks for the lines that hold n bytes from p on. */
static inline void
ks_cpu_ask_ahead(const void *p, size_t n)
{
  for (size_t i = 0; i < n; i += 64)
    __builtin_prefetch((const unsigned char *)p + i, 0, 3);
}

/* Ask for the memory that a member reads first in op, before it may begin. */
void ks_cpu_attention_ask_ahead(const ks_cpu_ctx *ctx, const ks_op_attention *op, uint32_t member,
                                uint32_t n_member);
void ks_cpu_linear_ask_ahead(const ks_cpu_ctx *ctx, const ks_op_linear *op, uint32_t member,
                             uint32_t n_member);

KS_END_DECLS
