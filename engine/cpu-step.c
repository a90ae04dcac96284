/* cpu-step.c - recording operations and running them in one parallel region.
 * The members walk the list together.  Operations form groups: inside a group members run on
 * without waiting, between two groups is a barrier; there, and through ks_cpu_poll inside long
 * operations, member 0 asks whether to stop. Every operation of a group draws from a ticket of its
 * own; the groups use two sets of tickets in turn: while one is drawn from nobody uses the other,
 * so member 0 can set it back before the barrier. Threads: see cpu-step-internal.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-step-internal.h"

#include "engine/cpu-share-internal.h"
#include "engine/cpu-train-internal.h"

#include <assert.h>

#define CHUNK_BYTES ((size_t)64 << 10)
#define POLL_NS 5000000u /* between two questions inside one operation */
#define ROUND_UP(n, unit) (((n) + (unit)-1) / (unit) * (unit))

/* A recorded operation; its descriptor follows. */
typedef struct ks_cpu_record {
  struct ks_cpu_record *next;
  ks_cpu_op_kind kind;
  bool waits; /* a barrier stands before it: it begins a group */
} record;

typedef struct ks_cpu_chunk {
  struct ks_cpu_chunk *next;
  size_t n_bytes, used; /* header included */
} chunk;

#define RECORD_BYTES ROUND_UP(sizeof(record), 16)
#define CHUNK_HEAD ROUND_UP(sizeof(chunk), 64)

typedef struct ticket {
  _Alignas(64) uint32_t next;
} ticket;

struct ks_cpu_run {
  const record *first;
  const ks_cpu_ctx *ctx;
  ks_stop_fn stop;
  void *stop_user;
  uint64_t last_poll_ns; /* member 0 only */
  uint32_t stopping;     /* the answer so far; loops inside an operation look at it */
  uint32_t stop_after;   /* members leave behind this group; set before the barrier there */
  ticket tickets[2][KS_CPU_MAX_GROUP];
};

void
ks_cpu_step_init(ks_cpu_step *step, ks_alloc *alloc)
{
  *step = (ks_cpu_step){.alloc = alloc};
}

void
ks_cpu_step_done(ks_cpu_step *step)
{
  while (step->first_chunk != NULL) {
    chunk *c = step->first_chunk;

    step->first_chunk = c->next;
    ks_mem_free(c);
  }
  *step = (ks_cpu_step){0};
}

uint64_t
ks_cpu_step_get_bytes(const ks_cpu_step *step)
{
  uint64_t n_bytes = 0;

  for (const chunk *c = step->first_chunk; c != NULL; c = c->next)
    n_bytes += c->n_bytes;
  return n_bytes;
}

void
ks_cpu_step_begin(ks_cpu_step *step)
{
  assert(!step->recording);
  step->recording = true;
  step->first = step->last = NULL;
  step->n_group = step->n_pending = step->n_angles = 0;
  step->chunk = step->first_chunk;
  if (step->chunk != NULL)
    step->chunk->used = CHUNK_HEAD;
}

void
ks_cpu_step_abort(ks_cpu_step *step)
{
  step->recording = false;
  step->first = step->last = NULL;
}

/* Makes the next chunk with room for n_bytes the current one. */
static bool
next_chunk(ks_cpu_step *step, size_t n_bytes)
{
  chunk *c = step->chunk != NULL ? step->chunk->next : step->first_chunk;
  size_t total;

  if (c == NULL || c->n_bytes - CHUNK_HEAD < n_bytes) {
    chunk *fresh, **link = step->chunk != NULL ? &step->chunk->next : &step->first_chunk;

    if (!ks_add_size(n_bytes, CHUNK_HEAD, &total))
      return false;
    total = total < CHUNK_BYTES ? CHUNK_BYTES : total;
    fresh = ks_mem_new(step->alloc, KS_MEM_SCRATCH, total, 1);
    if (fresh == NULL)
      return false;
    fresh->n_bytes = total;
    fresh->next = c;
    *link = fresh;
    c = fresh;
  }
  c->used = CHUNK_HEAD;
  step->chunk = c;
  return true;
}

void *
ks_cpu_step_get(ks_cpu_step *step, size_t n_bytes)
{
  void *p;

  assert(step->recording);
  if (!ks_add_size(n_bytes, 15, &n_bytes))
    return NULL;
  n_bytes = n_bytes / 16 * 16;
  if ((step->chunk == NULL || step->chunk->n_bytes - step->chunk->used < n_bytes) &&
      !next_chunk(step, n_bytes))
    return NULL;
  p = (unsigned char *)step->chunk + step->chunk->used;
  step->chunk->used += n_bytes;
  return p;
}

/* Books the regions of the next operation; true when it must wait for what came before. */
static bool
book_touches(ks_cpu_step *step, const ks_cpu_touches *t)
{
  bool waits =
      t == NULL || step->n_group == KS_CPU_MAX_GROUP || step->n_pending + t->n > KS_CPU_MAX_PENDING;

  for (uint32_t i = 0; !waits && i < t->n; i++)
    for (uint32_t j = 0; !waits && j < step->n_pending; j++)
      waits = ks_cpu_touch_conflicts(&t->list[i], &step->pending[j]);
  if (waits)
    step->n_group = step->n_pending = 0;
  step->n_group = t == NULL ? KS_CPU_MAX_GROUP : step->n_group + 1; /* full: nothing may join */
  for (uint32_t i = 0; t != NULL && i < t->n; i++)
    step->pending[step->n_pending++] = t->list[i];
  return waits;
}

void *
ks_cpu_step_add(ks_cpu_step *step, ks_cpu_op_kind kind, size_t n_bytes,
                const ks_cpu_touches *touches)
{
  record *r = ks_cpu_step_get(step, RECORD_BYTES + n_bytes);

  if (r == NULL)
    return NULL;
  r->next = NULL;
  r->kind = kind;
  r->waits = book_touches(step, touches);
  if (step->last != NULL)
    step->last->next = r;
  else
    step->first = r;
  step->last = r;
  return (unsigned char *)r + RECORD_BYTES;
}

static void
run_call(const ks_cpu_ctx *ctx, const ks_cpu_call *call, uint32_t member, uint32_t n_member)
{
  call->fn(ctx, call + 1, member, n_member);
}

static void
run_record(const ks_cpu_ctx *ctx, const record *r, uint32_t member, uint32_t n_member)
{
  const void *op = (const unsigned char *)r + RECORD_BYTES;

  switch (r->kind) {
  case KS_CPU_GATHER_ROWS:
    ks_cpu_gather_rows(ctx, op, member, n_member);
    break;
  case KS_CPU_STORE_ROWS:
    ks_cpu_store_rows(ctx, op, member, n_member);
    break;
  case KS_CPU_ADD_ROWS:
    ks_cpu_add_rows(ctx, op, member, n_member);
    break;
  case KS_CPU_RMS_NORM:
    ks_cpu_rms_norm(ctx, op, member, n_member);
    break;
  case KS_CPU_LAYER_NORM:
    ks_cpu_layer_norm(ctx, op, member, n_member);
    break;
  case KS_CPU_LINEAR:
    ks_cpu_linear(ctx, op, member, n_member);
    break;
  case KS_CPU_LINEAR_TRANSPOSED:
    ks_cpu_linear_transposed(ctx, op, member, n_member);
    break;
  case KS_CPU_ACT_MUL:
    ks_cpu_act_mul(ctx, op, member, n_member);
    break;
  case KS_CPU_ROPE_ANGLES:
    ks_cpu_rope_angles(ctx, op, member, n_member);
    break;
  case KS_CPU_ROPE:
    ks_cpu_rope(ctx, op, member, n_member);
    break;
  case KS_CPU_KV_APPEND:
    ks_cpu_kv_append(ctx, op, member, n_member);
    break;
  case KS_CPU_ATTENTION:
    ks_cpu_attention(ctx, op, member, n_member);
    break;
  case KS_CPU_ATTN_SEGMENTS:
    ks_cpu_attn_segments(ctx, op, member, n_member);
    break;
  case KS_CPU_GATE_OUT:
    ks_cpu_gate_out(ctx, op, member, n_member);
    break;
  case KS_CPU_POOL:
    ks_cpu_pool(ctx, op, member, n_member);
    break;
  case KS_CPU_KV_SCORE:
    ks_cpu_kv_score(ctx, op, member, n_member);
    break;
  case KS_CPU_KV_SELECT:
    ks_cpu_kv_select(ctx, op, member, n_member);
    break;
  case KS_CPU_KV_COMPACT:
    ks_cpu_kv_compact(ctx, op, member, n_member);
    break;
  case KS_CPU_KV_ADD_MASS:
    ks_cpu_kv_add_mass(ctx, op, member, n_member);
    break;
  case KS_CPU_HEAD:
    ks_cpu_head(ctx, op, member, n_member);
    break;
  case KS_CPU_CALL:
    run_call(ctx, op, member, n_member);
    break;
  }
}

static bool
ask(struct ks_cpu_run *run)
{
  if (run->stop == NULL)
    return false;
  run->last_poll_ns = ks_now_ns();
  if (run->stop(run->stop_user))
    __atomic_store_n(&run->stopping, 1, __ATOMIC_RELAXED);
  return run->stopping != 0;
}

bool
ks_cpu_poll(const ks_cpu_ctx *ctx, uint32_t member)
{
  struct ks_cpu_run *run = ctx->run;

  if (run == NULL)
    return false;
  if (member == 0 && run->stop != NULL && ks_now_ns() - run->last_poll_ns > POLL_NS)
    (void)ask(run);
  return __atomic_load_n(&run->stopping, __ATOMIC_RELAXED) != 0;
}

/* Ends group number i of a member; false when it was the last one that is run. */
static bool
end_group(struct ks_cpu_run *run, uint32_t i, uint32_t member)
{
  if (member == 0) {
    for (uint32_t k = 0; k < KS_CPU_MAX_GROUP; k++)
      __atomic_store_n(&run->tickets[(i + 1) % 2][k].next, 0, __ATOMIC_RELAXED);
    if (ask(run) && run->stop_after > i)
      __atomic_store_n(&run->stop_after, i, __ATOMIC_RELAXED);
  }
  ks_threads_barrier(run->ctx->threads);
  /* Member 0 may already be ahead and set a later group: compare, do not test for a flag. */
  return __atomic_load_n(&run->stop_after, __ATOMIC_RELAXED) > i;
}

/* Before a barrier: asks for what this member reads first behind it. */
static void
ask_ahead(const ks_cpu_ctx *ctx, const record *r, uint32_t member, uint32_t n_member)
{
  for (const record *next = r; next != NULL && (next == r || !next->waits); next = next->next) {
    const void *op = (const unsigned char *)next + RECORD_BYTES;

    if (next->kind == KS_CPU_LINEAR)
      ks_cpu_linear_ask_ahead(ctx, op, member, n_member);
    else if (next->kind == KS_CPU_ATTENTION)
      ks_cpu_attention_ask_ahead(ctx, op, member, n_member);
    else
      continue;
    return;
  }
}

static void
run_member(void *user, uint32_t member, uint32_t n_member)
{
  struct ks_cpu_run *run = user;
  ks_cpu_ctx ctx = *run->ctx;
  uint32_t group = 0, at = 0;

  ctx.run = run;
  for (const record *r = run->first; r != NULL; r = r->next) {
    if (r->waits && r != run->first) {
      ask_ahead(&ctx, r, member, n_member);
      if (!end_group(run, group, member))
        break;
      group++;
      at = 0;
    }
    ctx.ticket = &run->tickets[group % 2][at++].next;
    run_record(&ctx, r, member, n_member);
  }
}

bool
ks_cpu_step_run(ks_cpu_step *step, const ks_cpu_ctx *ctx, ks_stop_fn stop, void *user)
{
  struct ks_cpu_run run = {.first = step->first, .ctx = ctx, .stop = stop, .stop_user = user};

  assert(step->recording);
  step->recording = false;
  run.stop_after = UINT32_MAX;
  run.last_poll_ns = ks_now_ns();
  if (stop != NULL && stop(user)) {
    step->first = step->last = NULL;
    return false;
  }
  if (run.first != NULL)
    ks_threads_run(ctx->threads, run_member, &run);
  step->first = step->last = NULL;
  return run.stopping == 0;
}
