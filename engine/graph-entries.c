/* graph-entries.c - what a pass finds out about its tokens for the sake of forgetting: the number
 * that a gate gives to each entry, and what a policy that judges by attention wants to be noted.
 * Source: docs/method.md, sections 2 and 6. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/graph-internal.h"

/* Numbers of one token's q, k and v. */
static uint32_t
qkv_floats(const ks_model_shape *s)
{
  return s->n_head * s->k_dim + s->n_kv_head * (s->k_dim + s->v_dim);
}

size_t
ks_graph_count_gate_floats(const ks_gate *gate, const ks_model_shape *s)
{
  const size_t n_gate = ks_gate_get_width(gate);

  return ks_gate_is_locret(gate) ? qkv_floats(s) + n_gate : 2 * n_gate;
}

static ks_status
record_retention(const ks_graph_pass *p, const ks_gate_layer *w, ks_dptr log_beta)
{
  const ks_graph *g = p->g;
  const ks_op_gate op = {.w1 = w->w1,
                         .w2 = w->w2,
                         .w3 = w->w3,
                         .b1 = w->b1,
                         .b2 = w->b2,
                         .b3 = w->b3,
                         .x = g->dev + g->layout.h,
                         .u = g->dev + g->layout.f,
                         .log_beta = log_beta,
                         .n_tok = p->n_x,
                         .act = ks_gate_get_act(g->gate)};

  return p->t->gate(p->dev, &op);
}

/* q, k and v of every token side by side, as LocRet's first layer reads them. */
static ks_status
record_side_by_side(const ks_graph_pass *p, ks_dptr out)
{
  const ks_graph_layout *l = &p->g->layout;
  const struct {
    size_t at;
    uint32_t n_col;
  } parts[] = {{l->q, p->s->n_head * p->s->k_dim},
               {l->k, p->s->n_kv_head * p->s->k_dim},
               {l->v, p->s->n_kv_head * p->s->v_dim}};
  ks_status st = KS_OK;

  for (size_t i = 0; st == KS_OK && i < sizeof parts / sizeof parts[0]; i++) {
    const ks_op_store_rows op = {.src = p->g->dev + parts[i].at,
                                 .out = out,
                                 .dtype = KS_DTYPE_F32,
                                 .out_row_bytes = qkv_floats(p->s) * sizeof(float),
                                 .n_row = p->n_x,
                                 .n_col = parts[i].n_col,
                                 .scale = 1.0f};

    st = p->t->store_rows(p->dev, &op);
    out += parts[i].n_col * sizeof(float);
  }
  return st;
}

static ks_status
record_locret(const ks_graph_pass *p, const ks_gate_layer *w, ks_dptr scores)
{
  const ks_graph *g = p->g;
  const ks_dptr qkv = g->dev + g->layout.f;
  const ks_dptr hidden = qkv + (size_t)p->n_x * qkv_floats(p->s) * sizeof(float);
  ks_op_linear op = {.n_w = 1,
                     .w = {w->w1},
                     .x = qkv,
                     .y = {hidden},
                     .n_tok = p->n_x,
                     .epilogue = KS_EPI_STORE,
                     .act = ks_gate_get_act(g->gate),
                     .exact = true};
  ks_status st = record_side_by_side(p, qkv);

  if (st == KS_OK)
    st = p->t->linear(p->dev, &op);
  if (st != KS_OK)
    return st;
  op.w[0] = w->w3;
  op.x = hidden;
  op.y[0] = scores;
  op.act = KS_ACT_NONE;
  return p->t->linear(p->dev, &op);
}

ks_status
ks_graph_record_gate(const ks_graph_pass *p, uint32_t layer, ks_dptr *out_log_beta)
{
  const ks_graph *g = p->g;
  const ks_gate_layer *w;

  if (g->gate == NULL)
    return KS_OK;
  *out_log_beta = p->in->want_taps ? g->tap_dev + ks_graph_tap_log_beta_at(g, layer) * sizeof(float)
                                   : g->dev + g->layout.log_beta;
  w = ks_gate_get_layer(g->gate, layer);
  return ks_gate_is_locret(g->gate) ? record_locret(p, w, *out_log_beta)
                                    : record_retention(p, w, *out_log_beta);
}

/* The queries of the last tokens go to their slots: two runs where the ring begins anew. */
ks_status
ks_graph_record_queries(const ks_graph_pass *p, uint32_t layer)
{
  const ks_pass_watch *watch = p->in->watch;
  const uint32_t n_col = p->s->n_head * p->s->k_dim;
  const ks_dptr row_bytes = n_col * sizeof(float);
  ks_dptr to, from = p->g->dev + p->g->layout.q;
  uint32_t n, slot;
  ks_status st = KS_OK;

  if (watch == NULL || watch->queries == 0)
    return KS_OK;
  n = p->in->n_tok < watch->n_slot ? p->in->n_tok : watch->n_slot; /* none of these is left out */
  from += (p->n_x - n) * row_bytes;
  to = watch->queries + (ks_dptr)layer * watch->n_slot * row_bytes;
  slot = (p->in->pos0 + p->in->n_tok - n) % watch->n_slot;
  while (st == KS_OK && n > 0) {
    const uint32_t room = watch->n_slot - slot, n_row = n < room ? n : room;
    const ks_op_store_rows op = {.src = from,
                                 .out = to + slot * row_bytes,
                                 .dtype = KS_DTYPE_F32,
                                 .out_row_bytes = row_bytes,
                                 .n_row = n_row,
                                 .n_col = n_col,
                                 .scale = 1.0f};

    st = p->t->store_rows(p->dev, &op);
    from += n_row * row_bytes;
    n -= n_row;
    slot = 0;
  }
  return st;
}

void
ks_graph_ask_for_mass(ks_graph_pass *p, uint32_t layer, ks_op_attention *op)
{
  const ks_pass_watch *watch = p->in->watch;

  if (watch == NULL || watch->mass == 0)
    return;
  for (uint32_t h = 0; h < p->s->n_kv_head; h++) {
    p->g->mass_offset[h] = p->mass_at;
    p->mass_at += (uint64_t)p->kv.streams[layer * p->s->n_kv_head + h].n_entry + p->n_x;
  }
  op->mass = watch->mass;
  op->mass_offset = p->g->mass_offset;
  op->mass_window = p->n_x;
}
