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

static ks_dptr
second_hidden(const ks_op_gate *op)
{
  return op->u + (ks_dptr)op->n_tok * op->w1.n_out * sizeof(float);
}

uint32_t
ks_cpu_gate_get_n_hidden(const ks_op_gate *op)
{
  return op->w2.data != 0 ? 2 : 1;
}

/* The gate is computed in f32 in either compute mode: its weights are f32 and its output ranks. */
ks_op_linear
ks_cpu_gate_get_hidden(const ks_op_gate *op, uint32_t i)
{
  ks_op_linear linear = {.n_w = 1, .n_tok = op->n_tok, .epilogue = KS_EPI_STORE, .act = op->act};

  linear.w[0] = i == 0 ? op->w1 : op->w2;
  linear.bias[0] = i == 0 ? op->b1 : op->b2;
  linear.x = i == 0 ? op->x : op->u;
  linear.y[0] = i == 0 ? op->u : second_hidden(op);
  return linear;
}

/* z = w3 u + b3, log_beta = logsigmoid(z).  Members share the heads of all tokens, as where the
 * entries are appended: these are few rows, so plain dot products. */
void
ks_cpu_gate_out(const ks_cpu_ctx *ctx, const ks_op_gate *op, uint32_t member, uint32_t n_member)
{
  const size_t n_gate = op->w3.n_in, n_head = op->w3.n_out;
  const float *b3 = ks_cpu_ptr(op->b3);
  const float *u = ks_cpu_ptr(op->w2.data != 0 ? second_hidden(op) : op->u);
  const unsigned char *w3 = ks_cpu_ptr(op->w3.data);
  float *log_beta = ks_cpu_ptr(op->log_beta);
  size_t i, end;

  ks_cpu_slice(op->n_tok * n_head, member, n_member, &i, &end);
  while (i < end) {
    const size_t t = i / n_head, h = i % n_head, n = n_head - h < end - i ? n_head - h : end - i;
    const ks_cpu_rows rows = {w3 + h * op->w3.row_bytes, op->w3.row_bytes, n, NULL};

    ctx->vec->qk[KS_KV_F32](log_beta + i, n, u + t * n_gate, n_gate, 1, rows, n_gate);
    for (size_t j = 0; j < n; j++)
      log_beta[i + j] = ks_log_sigmoid(log_beta[i + j] + (b3 != NULL ? b3[h + j] : 0.0F));
    i += n;
  }
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
score_run(const ks_cpu_ctx *ctx, float *out, const ks_cpu_slots *run, const ks_op_kv_score *op,
          uint32_t live_from, uint32_t *pin)
{
  const uint32_t first = run->pos[0], last = run->pos[run->n - 1];

  while (*pin < op->n_pin && op->pins[*pin].end <= first)
    (*pin)++;
  if (op->lookahead <= 1)
    ctx->vec->retention(out, run->log_beta, run->pos, run->n, op->seen);
  else
    for (uint32_t i = 0; i < run->n; i++)
      out[i] = ks_retention_score(run->log_beta[i], run->pos[i], op->seen, op->lookahead);
  if (first >= live_from && (*pin == op->n_pin || op->pins[*pin].begin > last))
    return;
  for (uint32_t i = 0; i < run->n; i++) {
    const uint32_t pos = run->pos[i];

    while (*pin < op->n_pin && op->pins[*pin].end <= pos)
      (*pin)++;
    if (pos < live_from) /* out of its window: no query can see it any more, pinned or not */
      out[i] = -INFINITY;
    else if (*pin < op->n_pin && op->pins[*pin].begin <= pos)
      out[i] = INFINITY;
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
      score_run(ctx, to, &run, op, live_from, &pin);
      to += run.n;
      e += run.n;
    }
  }
}
