/* cpu-step-internal.h - the recorded list of one step of the CPU backend, and what the machine is.
 * Records and copies of host arrays live in chunks that are kept from step to step.
 * Threads: recorded and run by the engine thread; the run enters the thread pool once. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/cpu-backend-internal.h"

KS_BEGIN_DECLS

typedef enum ks_cpu_op_kind {
  KS_CPU_GATHER_ROWS,
  KS_CPU_ADD_ROWS,
  KS_CPU_RMS_NORM,
  KS_CPU_LAYER_NORM,
  KS_CPU_LINEAR,
  KS_CPU_ACT_MUL,
  KS_CPU_ROPE,
  KS_CPU_KV_APPEND,
  KS_CPU_ATTENTION,
  KS_CPU_ATTN_SEGMENTS,
  KS_CPU_GATE,
  KS_CPU_POOL,
  KS_CPU_KV_SCORE,
  KS_CPU_KV_SELECT,
  KS_CPU_KV_COMPACT,
  KS_CPU_LOGITS_TOPK
} ks_cpu_op_kind;

struct ks_cpu_record;
struct ks_cpu_chunk;

typedef struct ks_cpu_step {
  ks_alloc *alloc;
  struct ks_cpu_chunk *first_chunk, *chunk; /* all of them, and the one being filled */
  struct ks_cpu_record *first, *last;
  bool recording;
} ks_cpu_step;

void ks_cpu_step_init(ks_cpu_step *step, ks_alloc *alloc);
void ks_cpu_step_done(ks_cpu_step *step);
/* Bytes that the list has taken so far. */
uint64_t ks_cpu_step_get_bytes(const ks_cpu_step *step);
void ks_cpu_step_begin(ks_cpu_step *step);
void ks_cpu_step_abort(ks_cpu_step *step);
/* Appends an operation and returns the room for its descriptor; NULL without memory. */
void *ks_cpu_step_add(ks_cpu_step *step, ks_cpu_op_kind kind, size_t n_bytes);
/* Room that lives until the next step_begin, aligned to 16; NULL without memory. */
void *ks_cpu_step_get(ks_cpu_step *step, size_t n_bytes);
/* Runs what was recorded; false when stop (may be NULL) said so. */
bool ks_cpu_step_run(ks_cpu_step *step, const ks_cpu_ctx *ctx, ks_stop_fn stop, void *user);

/* Name and memory of this machine; n_unit and isa are left to the caller. */
void ks_cpu_fill_info(ks_dev_info *out);

KS_END_DECLS
