/* cpu-linear-internal.h - matrix products of one operation, cut into units of rows.
 * Every member computes the same plan, gets units (ks_cpu_share) and takes a unit's products
 * c [n_tok, unit_rows] in its own scratch wherever the operation wants them: ks_cpu_linear to its
 * outputs, the head of the vocabulary to a list of the best.  Four ways lead to the products,
 * chosen for each weight.  Threads: a ks_linear belongs to one member. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/cpu-matmul-internal.h"
#include "engine/cpu-packed-internal.h"

KS_BEGIN_DECLS

typedef enum ks_linear_way {
  KS_LINEAR_ROWS,   /* few tokens, rows as they lie in the file */
  KS_LINEAR_STRIPS, /* few tokens, repacked rows */
  KS_LINEAR_PANELS, /* many tokens, panels of f32 */
  KS_LINEAR_PAIRS,  /* many tokens, panels of bfloat16 pairs: fast mode */
  KS_LINEAR_CODES   /* many tokens, panels of 8-bit codes: fast mode */
} ks_linear_way;

/* How an operation is cut, computed alike by every member. */
typedef struct ks_linear_plan {
  ks_linear_way ways[3];
  bool has_way[KS_LINEAR_CODES + 1];
  uint32_t n_list;    /* weights whose units are listed one behind the other */
  uint32_t n_product; /* products per unit: 2 when two weights make one output */
  size_t unit_rows, n_unit;
  size_t block_tok;               /* tokens of a block of products */
  size_t panel_k, pair_k, code_k; /* columns of a panel */
  size_t pack_floats; /* of one token for KS_LINEAR_ROWS; 0 when no weight reads packed input */
  /* scratch of a member, in bytes; products are at 0 */
  size_t packed_at, acts_at, panels_at, rows_at, pairs_at, codes_at, strip_at, member_bytes;
  /* shared by the members: activations of KS_LINEAR_CODES, then of KS_LINEAR_PAIRS */
  size_t rounded_at, shared_bytes;
} ks_linear_plan;

typedef struct ks_linear {
  const ks_cpu_ctx *ctx;
  const ks_op_linear *op;
  ks_linear_plan plan;
  unsigned char *scratch;
  ks_cpu_acts acts;
} ks_linear;

/* Rows row0 .. row0 + n_row - 1 of weight i (and of weight 1 when n_product is 2). */
typedef struct ks_linear_unit {
  uint32_t i;
  size_t row0, n_row;
} ks_linear_unit;

ks_linear_plan ks_linear_make_plan(const ks_cpu_ctx *ctx, const ks_op_linear *op, size_t n_member);
/* Plan, scratch, and the input as the ways read it.  Called by all members; may hold a barrier, and
 * takes no tickets. */
void ks_linear_begin(ks_linear *l, const ks_cpu_ctx *ctx, const ks_op_linear *op, uint32_t member,
                     uint32_t n_member);
/* The same with a plan that was made elsewhere. */
void ks_linear_begin_plan(ks_linear *l, ks_linear_plan plan, const ks_cpu_ctx *ctx,
                          const ks_op_linear *op, uint32_t member, uint32_t n_member);
ks_linear_unit ks_linear_get_unit(const ks_linear *l, size_t unit);
/* Where product j of a unit lies: c [block_tok, unit_rows]. */
float *ks_linear_get_product(const ks_linear *l, uint32_t j);
/* Where products go: c[t * stride + r]. */
typedef struct ks_linear_out {
  float *c;
  size_t stride;
  bool add; /* to what is there; with many tokens only */
} ks_linear_out;

/* c[t, r] (+)= x[t0 + t] . row (unit.row0 + r) of weight w for n_tok (<= block_tok) tokens; columns
 * up to the end of the last strip or panel are written. */
void ks_linear_multiply_to(const ks_linear *l, uint32_t w, const ks_linear_unit *unit, size_t t0,
                           size_t n_tok, ks_linear_out out);

/* The first row of a unit in weight w, where products with few tokens begin to read. */
const unsigned char *ks_linear_weight_at(const ks_linear *l, uint32_t w,
                                         const ks_linear_unit *unit);

/* The same to c [n_tok, unit_rows]. */
static inline void
ks_linear_multiply(const ks_linear *l, uint32_t w, const ks_linear_unit *unit, size_t t0,
                   size_t n_tok, float *c)
{
  ks_linear_multiply_to(l, w, unit, t0, n_tok, (ks_linear_out){c, l->plan.unit_rows, false});
}

#define KS_LINEAR_ROW_PAD ((size_t)8) /* rows a power of two apart would share cache sets */

/* Bytes of a panel of codes: the codes, then scales and offsets of every 16 elements at most. */
static inline size_t
ks_linear_panel_bytes(size_t n_k, uint32_t strip_rows)
{
  return n_k * strip_rows + 2 * (n_k / 16 * strip_rows * sizeof(float));
}

/* True when a weight is multiplied as bfloat16 pairs. */
static inline bool
ks_linear_has_pairs(const ks_cpu_ctx *ctx, const ks_op_linear *op, const ks_weight *w)
{
  return ctx->pairs != NULL && !op->exact && w->dtype == KS_DTYPE_BF16;
}

/* Pairs of columns of a row, the last one filled up. */
static inline size_t
ks_linear_n_pair(size_t n_in)
{
  return (n_in + 1) / 2;
}

static inline size_t
ks_linear_x_stride(const ks_op_linear *op)
{
  return op->x_stride != 0 ? op->x_stride : op->w[0].n_in;
}

KS_END_DECLS
