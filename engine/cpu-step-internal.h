/* cpu-step-internal.h - the recorded list of one step of the CPU backend, and what the machine is.
 * Records and copies of host arrays live in chunks that are kept from step to step.  A barrier
 * stands before an operation only when it touches what another one since the last barrier wrote, or
 * writes what that one touched (docs/adr/0015-fewer-barriers.md).
 * Threads: recorded and run by the engine thread; the run enters the thread pool once. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/cpu-backend-internal.h"

KS_BEGIN_DECLS

typedef enum ks_cpu_op_kind {
  KS_CPU_GATHER_ROWS,
  KS_CPU_STORE_ROWS,
  KS_CPU_ADD_ROWS,
  KS_CPU_RMS_NORM,
  KS_CPU_LAYER_NORM,
  KS_CPU_LINEAR,
  KS_CPU_LINEAR_TRANSPOSED,
  KS_CPU_ACT_MUL,
  KS_CPU_ROPE_ANGLES,
  KS_CPU_ROPE,
  KS_CPU_KV_APPEND,
  KS_CPU_ATTENTION,
  KS_CPU_ATTN_SEGMENTS,
  KS_CPU_GATE_OUT,
  KS_CPU_POOL,
  KS_CPU_KV_SCORE,
  KS_CPU_KV_SELECT,
  KS_CPU_KV_COMPACT,
  KS_CPU_KV_ADD_MASS,
  KS_CPU_HEAD,
  KS_CPU_CALL /* training: the record says which kernel (cpu-train-internal.h) */
} ks_cpu_op_kind;

struct ks_cpu_record;
struct ks_cpu_chunk;

#define KS_CPU_MAX_TOUCH 6u    /* regions of one operation */
#define KS_CPU_MAX_PENDING 32u /* regions that are remembered behind a barrier */
#define KS_CPU_MAX_GROUP 8u    /* operations between two barriers, each with a ticket of its own */

/* A region of memory that an operation reads or writes.  With items it is cut into n_item equal
 * pieces, and members work on them as ks_cpu_slice cuts n_item: two operations that cut the same
 * region alike need no barrier between them. */
typedef struct ks_cpu_touch {
  ks_dptr begin;
  uint64_t n_bytes;
  uint32_t n_item; /* 0: any member may touch any byte */
  bool writes;
} ks_cpu_touch;

typedef struct ks_cpu_touches {
  uint32_t n;
  ks_cpu_touch list[KS_CPU_MAX_TOUCH];
} ks_cpu_touches;

/* What was written and read by other operations does not count when the address is 0. */
void ks_cpu_touch_items(ks_cpu_touches *t, ks_dptr begin, size_t n_item, size_t item_bytes,
                        bool writes);
void ks_cpu_touch_all(ks_cpu_touches *t, ks_dptr begin, size_t n_bytes, bool writes);
/* n_row rows of n_col floats, stride floats apart (0: dense). */
void ks_cpu_touch_rows(ks_cpu_touches *t, ks_dptr begin, size_t n_row, size_t n_col, size_t stride,
                       bool writes);
/* The block that all members share. */
void ks_cpu_touch_shared(ks_cpu_touches *t, const ks_cpu_need *need);
bool ks_cpu_touch_conflicts(const ks_cpu_touch *a, const ks_cpu_touch *b);

/* What the operations touch (cpu-touch.c); pages count as one region. */
void ks_cpu_touch_norm(ks_cpu_touches *t, const ks_op_norm *op);
void ks_cpu_touch_linear(ks_cpu_touches *t, const ks_op_linear *op, const ks_cpu_need *need);
void ks_cpu_touch_rope_angles(ks_cpu_touches *t, const ks_cpu_rope_job *job);
void ks_cpu_touch_rope(ks_cpu_touches *t, const ks_cpu_rope_job *job);
void ks_cpu_touch_kv_append(ks_cpu_touches *t, const ks_op_kv_append *op);
void ks_cpu_touch_attention(ks_cpu_touches *t, const ks_op_attention *op, const ks_cpu_need *need);
void ks_cpu_touch_gate_out(ks_cpu_touches *t, const ks_op_gate *op);
void ks_cpu_touch_gather(ks_cpu_touches *t, const ks_op_gather_rows *op);

#define KS_CPU_N_ANGLES 4u /* tables of cosines and sines that one step keeps for later layers */

typedef struct ks_cpu_step {
  ks_alloc *alloc;
  struct ks_cpu_chunk *first_chunk, *chunk; /* all of them, and the one being filled */
  struct ks_cpu_record *first, *last;
  uint32_t n_group, n_pending; /* operations and their regions since the last barrier */
  ks_cpu_touch pending[KS_CPU_MAX_PENDING];
  ks_cpu_rope_job angles[KS_CPU_N_ANGLES]; /* operations whose tables are made */
  uint32_t n_angles;
  bool recording;
} ks_cpu_step;

void ks_cpu_step_init(ks_cpu_step *step, ks_alloc *alloc);
void ks_cpu_step_done(ks_cpu_step *step);
/* Bytes that the list has taken so far. */
uint64_t ks_cpu_step_get_bytes(const ks_cpu_step *step);
void ks_cpu_step_begin(ks_cpu_step *step);
void ks_cpu_step_abort(ks_cpu_step *step);
/* Appends an operation and returns the room for its descriptor; NULL without memory.  touches NULL:
 * it stands alone between two barriers. */
void *ks_cpu_step_add(ks_cpu_step *step, ks_cpu_op_kind kind, size_t n_bytes,
                      const ks_cpu_touches *touches);
/* Room that lives until the next step_begin, aligned to 16; NULL without memory. */
void *ks_cpu_step_get(ks_cpu_step *step, size_t n_bytes);
/* Runs what was recorded; false when stop (may be NULL) said so. */
bool ks_cpu_step_run(ks_cpu_step *step, const ks_cpu_ctx *ctx, ks_stop_fn stop, void *user);

/* Name and memory of this machine; n_unit and isa are left to the caller. */
void ks_cpu_fill_info(ks_dev_info *out);

KS_END_DECLS
