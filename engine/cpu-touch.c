/* cpu-touch.c - what recorded operations read and write, so that the recorder finds the places
 * where members have to wait for each other.  Weights, ids, positions and ranges are uploaded
 * before a step and written by no operation: they are left out. Why:
 * docs/adr/0015-fewer-barriers.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/cpu-step-internal.h"

#include <assert.h>

/* Addresses that no buffer has. */
#define SHARED_BLOCK ((ks_dptr)1)

static void
add_touch(ks_cpu_touches *t, ks_dptr begin, uint64_t n_bytes, uint32_t n_item, bool writes)
{
  if (begin == 0 || n_bytes == 0)
    return;
  assert(t->n < KS_CPU_MAX_TOUCH);
  t->list[t->n++] = (ks_cpu_touch){begin, n_bytes, n_item, writes};
}

void
ks_cpu_touch_items(ks_cpu_touches *t, ks_dptr begin, size_t n_item, size_t item_bytes, bool writes)
{
  add_touch(t, begin, (uint64_t)n_item * item_bytes, (uint32_t)n_item, writes);
}

void
ks_cpu_touch_all(ks_cpu_touches *t, ks_dptr begin, size_t n_bytes, bool writes)
{
  add_touch(t, begin, n_bytes, 0, writes);
}

void
ks_cpu_touch_rows(ks_cpu_touches *t, ks_dptr begin, size_t n_row, size_t n_col, size_t stride,
                  bool writes)
{
  if (n_row > 0)
    add_touch(t, begin, ((n_row - 1) * (stride != 0 ? stride : n_col) + n_col) * sizeof(float), 0,
              writes);
}

void
ks_cpu_touch_shared(ks_cpu_touches *t, const ks_cpu_need *need)
{
  if (need->shared_bytes > 0)
    add_touch(t, SHARED_BLOCK, 1, 0, true);
}

bool
ks_cpu_touch_conflicts(const ks_cpu_touch *a, const ks_cpu_touch *b)
{
  if (!a->writes && !b->writes)
    return false;
  if (a->begin >= b->begin + b->n_bytes || b->begin >= a->begin + a->n_bytes)
    return false;
  return a->n_item == 0 || a->n_item != b->n_item || a->begin != b->begin ||
         a->n_bytes != b->n_bytes;
}

/* Dense rows are items; rows with gaps between them count as one region. */
static void
touch_rows_or_items(ks_cpu_touches *t, ks_dptr begin, size_t n_row, size_t n_col, size_t stride,
                    bool writes)
{
  if (stride == 0 || stride == n_col)
    ks_cpu_touch_items(t, begin, n_row, n_col * sizeof(float), writes);
  else
    ks_cpu_touch_rows(t, begin, n_row, n_col, stride, writes);
}

void
ks_cpu_touch_norm(ks_cpu_touches *t, const ks_op_norm *op)
{
  touch_rows_or_items(t, op->x, op->n_row, op->n_col, op->x_stride, false);
  touch_rows_or_items(t, op->out, op->n_row, op->n_col, op->out_stride, true);
}

void
ks_cpu_touch_linear(ks_cpu_touches *t, const ks_op_linear *op, const ks_cpu_need *need)
{
  const uint32_t n_y = op->epilogue == KS_EPI_ACT_MUL ? 1 : op->n_w;

  ks_cpu_touch_rows(t, op->x, op->n_tok, op->w[0].n_in, op->x_stride, false);
  for (uint32_t i = 0; i < n_y; i++)
    ks_cpu_touch_rows(t, op->y[i], op->n_tok, op->w[i].n_out, op->y_stride[i], true);
  ks_cpu_touch_shared(t, need);
}

void
ks_cpu_touch_rope_angles(ks_cpu_touches *t, const ks_cpu_rope_job *job)
{
  ks_cpu_touch_items(t, (ks_dptr)(uintptr_t)job->angles, job->op.n_tok,
                     job->op.n_rot * sizeof(float), true);
}

/* Heads of all tokens are the items, those of the queries and those of the keys. */
void
ks_cpu_touch_rope(ks_cpu_touches *t, const ks_cpu_rope_job *job)
{
  const ks_op_rope *op = &job->op;
  const struct {
    ks_dptr x;
    size_t n_head, stride;
  } parts[] = {{op->q, op->n_head, op->q_stride}, {op->k, op->n_kv_head, op->k_stride}};

  for (int i = 0; i < 2; i++) {
    const size_t n_col = parts[i].n_head * op->head_dim;

    if (parts[i].stride == 0 || parts[i].stride == n_col)
      ks_cpu_touch_items(t, parts[i].x, op->n_tok * parts[i].n_head, op->head_dim * sizeof(float),
                         true);
    else
      ks_cpu_touch_rows(t, parts[i].x, op->n_tok, n_col, parts[i].stride, true);
  }
  ks_cpu_touch_all(t, (ks_dptr)(uintptr_t)job->angles, op->n_tok * op->n_rot * sizeof(float),
                   false);
}

/* The items are the heads of all tokens. */
void
ks_cpu_touch_kv_append(ks_cpu_touches *t, const ks_op_kv_append *op)
{
  const ks_kv_layout *layout = op->kv.layout;
  const size_t n_head = layout->n_kv_head, n_item = op->n_tok * n_head;
  const struct {
    ks_dptr x;
    size_t dim, stride;
  } parts[] = {{op->k, layout->k_dim, op->k_stride}, {op->v, layout->v_dim, op->v_stride}};

  for (int i = 0; i < 2; i++) {
    if (parts[i].stride == 0 || parts[i].stride == n_head * parts[i].dim)
      ks_cpu_touch_items(t, parts[i].x, n_item, parts[i].dim * sizeof(float), false);
    else
      ks_cpu_touch_rows(t, parts[i].x, op->n_tok, n_head * parts[i].dim, parts[i].stride, false);
  }
  ks_cpu_touch_items(t, op->log_beta, n_item, sizeof(float), false);
  ks_cpu_touch_all(t, op->kv.base, 1, true);
}

void
ks_cpu_touch_attention(ks_cpu_touches *t, const ks_op_attention *op, const ks_cpu_need *need)
{
  const ks_kv_layout *layout = op->kv.layout;
  const size_t n_row = (size_t)op->n_tok * op->n_head;

  ks_cpu_touch_all(t, op->q, n_row * layout->k_dim * sizeof(float), false);
  ks_cpu_touch_all(t, op->out, n_row * layout->v_dim * sizeof(float), true);
  ks_cpu_touch_all(t, op->kv.base, 1, false);
  ks_cpu_touch_all(t, op->mass, sizeof(float), true); /* stands for all of it */
  ks_cpu_touch_shared(t, need);
}

/* u: the hidden layer that the output reads; the items of log_beta are its numbers. */
void
ks_cpu_touch_gate_out(ks_cpu_touches *t, const ks_op_gate *op)
{
  const size_t n_layer = op->w2.data != 0 ? 2 : 1;

  ks_cpu_touch_all(t, op->u, n_layer * op->n_tok * op->w1.n_out * sizeof(float), false);
  ks_cpu_touch_items(t, op->log_beta, (size_t)op->n_tok * op->w3.n_out, sizeof(float), true);
}

/* A table of f32 may be made of activations. */
void
ks_cpu_touch_gather(ks_cpu_touches *t, const ks_op_gather_rows *op)
{
  if (op->table.dtype == KS_DTYPE_F32)
    ks_cpu_touch_all(t, op->table.data, op->table.n_out * op->table.row_bytes, false);
  ks_cpu_touch_items(t, op->out, op->n_tok, op->table.n_in * sizeof(float), true);
}
