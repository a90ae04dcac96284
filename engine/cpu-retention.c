/* cpu-retention.c - the retention gate of a layer and the scores of all live entries.
 *   x         [n_tok, n_embd]      f32  in   what the q/k/v projections read
 *   w1        [n_gate, n_embd]     f32  in   own per layer; w2 [n_gate, n_gate] too
 *   w3        [n_kv_head, n_gate]  f32  in   tied: one for all layers
 *   log_beta  [n_tok, n_kv_head]   f32  out  <= 0, multiplied by the age when entries are ranked
 * Reference for other backends.  Source: docs/method.md, sections 2 and 3. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-kv-internal.h"
#include "engine/retention.h"

#include <math.h>

#define PREFETCH 6u /* pages asked for ahead of use */

/* One hidden layer of the gate as a linear operation. */
static ks_op_linear
hidden_linear(const ks_op_gate *op, const ks_weight *w, ks_dptr bias, ks_dptr x, ks_dptr y)
{
  ks_op_linear linear = {.n_w = 1, .n_tok = op->n_tok, .epilogue = KS_EPI_STORE, .act = op->act};

  linear.w[0] = *w;
  linear.bias[0] = bias;
  linear.x = x;
  linear.y[0] = y;
  return linear;
}

static ks_dptr
second_hidden(const ks_op_gate *op)
{
  return op->u + (ks_dptr)op->n_tok * op->w1.n_out * sizeof(float);
}

void
ks_cpu_gate_need(const ks_cpu_ctx *ctx, const ks_op_gate *op, ks_cpu_need *need)
{
  ks_op_linear linear = hidden_linear(op, &op->w1, op->b1, op->x, op->u);
  ks_cpu_need second = {0};

  ks_cpu_linear_need(ctx, &linear, need);
  if (op->w2.data == 0)
    return;
  linear = hidden_linear(op, &op->w2, op->b2, op->u, second_hidden(op));
  ks_cpu_linear_need(ctx, &linear, &second);
  if (second.member_bytes > need->member_bytes)
    need->member_bytes = second.member_bytes;
  if (second.shared_bytes > need->shared_bytes)
    need->shared_bytes = second.shared_bytes;
}

/* z = w3 u + b3, log_beta = logsigmoid(z): few rows, so plain dot products. */
static void
gate_output(const ks_cpu_ctx *ctx, const ks_op_gate *op, const float *u, uint32_t member,
            uint32_t n_member)
{
  const size_t n_gate = op->w3.n_in, n_head = op->w3.n_out;
  const float *b3 = ks_cpu_ptr(op->b3);
  float *log_beta = ks_cpu_ptr(op->log_beta);
  const ks_cpu_rows rows = {ks_cpu_ptr(op->w3.data), op->w3.row_bytes, n_head, NULL};
  size_t begin, end;

  ks_cpu_slice(op->n_tok, member, n_member, &begin, &end);
  ctx->vec->qk[KS_KV_F32](log_beta + begin * n_head, n_head, u + begin * n_gate, n_gate,
                          end - begin, rows, n_gate);
  for (size_t i = begin * n_head; i < end * n_head; i++)
    log_beta[i] = ks_log_sigmoid(log_beta[i] + (b3 != NULL ? b3[i % n_head] : 0.0F));
}

/* The gate is computed in f32 in either compute mode: its weights are f32 and its output ranks. */
void
ks_cpu_gate(const ks_cpu_ctx *ctx, const ks_op_gate *op, uint32_t member, uint32_t n_member)
{
  ks_op_linear linear = hidden_linear(op, &op->w1, op->b1, op->x, op->u);
  ks_dptr u = op->u;

  ks_cpu_linear(ctx, &linear, member, n_member);
  ks_cpu_next_phase(ctx, member);
  if (op->w2.data != 0) {
    u = second_hidden(op);
    linear = hidden_linear(op, &op->w2, op->b2, op->u, u);
    ks_cpu_linear(ctx, &linear, member, n_member);
    ks_cpu_next_phase(ctx, member);
  }
  gate_output(ctx, op, ks_cpu_ptr(u), member, n_member);
}

void
ks_cpu_kv_score_need(const ks_cpu_ctx *ctx, const ks_op_kv_score *op, ks_cpu_need *need)
{
  (void)ctx;
  (void)op;
  (void)need; /* computed in place */
}

/* Scores of one run of entries; pins are met in ascending order, *pin is the first one not passed.
 */
static void
score_run(float *out, const ks_cpu_slots *run, const ks_op_kv_score *op, uint32_t live_from,
          uint32_t *pin)
{
  for (uint32_t i = 0; i < run->n; i++) {
    const uint32_t pos = run->pos[i];

    while (*pin < op->n_pin && op->pins[*pin].end <= pos)
      (*pin)++;
    if (pos < live_from) /* out of its window: no query can see it any more, pinned or not */
      out[i] = -INFINITY;
    else if (*pin < op->n_pin && op->pins[*pin].begin <= pos)
      out[i] = INFINITY;
    else
      out[i] = ks_retention_score(run->log_beta[i], pos, op->seen, op->lookahead);
  }
}

/* A page brings two short planes: asked for early, their misses overlap. */
static void
prefetch_marks(const ks_cpu_stream *stream, uint32_t entry, uint32_t end)
{
  if (entry < end) {
    const ks_cpu_slots slots = ks_cpu_slots_get(stream, entry, 1);

    __builtin_prefetch(slots.log_beta, 0, 3);
    __builtin_prefetch(slots.pos, 0, 3);
  }
}

void
ks_cpu_kv_score(const ks_cpu_ctx *ctx, const ks_op_kv_score *op, uint32_t member, uint32_t n_member)
{
  float *out = ks_cpu_ptr(op->out);
  ks_cpu_walk walk;
  size_t begin, end;

  (void)ctx;
  ks_cpu_slice(ks_cpu_n_live(&op->kv), member, n_member, &begin, &end);
  walk = ks_cpu_walk_init(begin, end);
  while (ks_cpu_walk_next(&op->kv, &walk)) {
    const ks_cpu_stream stream = ks_cpu_stream_get(&op->kv, walk.stream);
    const uint32_t layer = walk.stream / op->kv.layout->n_kv_head;
    const uint32_t live_from = op->live_from != NULL ? op->live_from[layer] : 0;
    float *to = out + walk.offset;
    uint32_t pin = 0;

    for (uint32_t e = walk.begin; e < walk.end;) {
      const ks_cpu_slots run = ks_cpu_slots_get(&stream, e, walk.end - e);

      prefetch_marks(&stream, e + PREFETCH * op->kv.layout->page_entries, walk.end);
      score_run(to, &run, op, live_from, &pin);
      to += run.n;
      e += run.n;
    }
  }
}
