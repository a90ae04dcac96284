/* train-forward.c - recording the model's way forward over dense rows: the same layers as
 * graph.c, without pages, exact in every mode, with attention that is biased by age for the student
 * and with what the gradient needs kept.
 * Recording goes on after a failure without doing anything; the pass holds the first one.
 * Threads: engine thread.  Source: docs/method.md, sections 1 and 12. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/train-internal.h"

/* --- small recordings --- */

void
ks_train_copy(ks_train_pass *p, ks_dptr dst, ks_dptr src, uint32_t n_row, uint32_t n_col)
{
  const ks_op_store_rows op = {.src = src,
                               .out = dst,
                               .dtype = KS_DTYPE_F32,
                               .out_row_bytes = n_col * sizeof(float),
                               .n_row = n_row,
                               .n_col = n_col,
                               .scale = 1.0F};

  if (p->st == KS_OK && dst != src)
    p->st = p->t->store_rows(p->dev, &op);
}

void
ks_train_pick(ks_train_pass *p, ks_dptr dst, ks_dptr src, uint32_t n_col)
{
  const ks_op_gather_rows op = {.table = {.data = src,
                                          .dtype = KS_DTYPE_F32,
                                          .n_in = n_col,
                                          .n_out = p->n_tok,
                                          .row_bytes = n_col * sizeof(float)},
                                .ids = p->d->rows,
                                .out = dst,
                                .n_tok = p->n_row,
                                .scale = 1.0F};

  if (p->st == KS_OK)
    p->st = p->t->gather_rows(p->dev, &op);
}

void
ks_train_norm(ks_train_pass *p, ks_dptr out, ks_dptr x, ks_dptr w, uint32_t n_row, uint32_t n_col)
{
  const ks_op_norm op = {
      .x = x, .out = out, .w = w, .n_row = n_row, .n_col = n_col, .eps = p->s->rms_eps};

  if (p->st == KS_OK)
    p->st = p->t->rms_norm(p->dev, &op);
}

void
ks_train_linear(ks_train_pass *p, const ks_weight *w, ks_dptr bias, ks_dptr x, ks_dptr y,
                uint32_t n_row, ks_epilogue epilogue)
{
  const ks_op_linear op = {.n_w = 1,
                           .w = {*w},
                           .bias = {bias},
                           .x = x,
                           .y = {y},
                           .n_tok = n_row,
                           .epilogue = epilogue,
                           .act = KS_ACT_NONE,
                           .exact = true};

  if (p->st == KS_OK)
    p->st = p->t->linear(p->dev, &op);
}

void
ks_train_add(ks_train_pass *p, ks_dptr dst, ks_dptr src, ks_dptr idx, uint32_t n_row)
{
  const ks_op_add_rows op = {
      .dst = dst, .src = src, .idx = idx, .n_row = n_row, .n_col = p->s->n_embd};

  if (p->st == KS_OK)
    p->st = p->t->add_rows(p->dev, &op);
}

void
ks_train_fill(ks_train_pass *p, ks_dptr x, uint64_t n)
{
  const ks_op_fill op = {.x = x, .n_elem = n, .value = 0.0F};

  if (p->st == KS_OK)
    p->st = p->tt->fill(p->dev, &op);
}

ks_dptr
ks_train_x(const ks_train_pass *p, uint32_t index)
{
  return p->d->x + (ks_dptr)index * p->n_tok * p->s->n_embd * sizeof(float);
}

ks_dptr
ks_train_plane(const ks_train_pass *p, ks_dptr planes, uint32_t index)
{
  return planes + (ks_dptr)index * p->n_tok * p->s->n_kv_head * sizeof(float);
}

/* --- the pieces of a layer --- */

ks_op_rope
ks_train_rope(const ks_train_pass *p, const ks_layer *layer, ks_dptr q, ks_dptr k)
{
  const ks_rope_shape *r = layer->is_local ? &p->s->rope_local : &p->s->rope;

  return (ks_op_rope){.q = q,
                      .k = k,
                      .n_tok = p->n_tok,
                      .n_head = p->s->n_head,
                      .n_kv_head = p->s->n_kv_head,
                      .head_dim = p->s->k_dim,
                      .n_rot = r->n_rot,
                      .pos = p->d->pos,
                      .inv_freq = r->inv_freq,
                      .axis = r->axis,
                      .mscale = r->mscale,
                      .neox = r->neox};
}

ks_op_attn_bias
ks_train_attention(const ks_train_pass *p, const ks_layer *layer, const ks_train_acts *acts,
                   ks_dptr log_beta)
{
  return (ks_op_attn_bias){.q = acts->q,
                           .k = acts->k,
                           .v = acts->v,
                           .log_beta = log_beta,
                           .out = acts->att,
                           .logsumexp = acts->lse,
                           .first = p->d->first[layer->is_local ? 1 : 0],
                           .last = p->d->last,
                           .n_q = p->n_tok,
                           .n_tok = p->n_tok,
                           .n_head = p->s->n_head,
                           .n_kv_head = p->s->n_kv_head,
                           .k_dim = p->s->k_dim,
                           .v_dim = p->s->v_dim,
                           .scale = p->s->attn_scale};
}

ks_gate_layer
ks_train_gate_layer(const ks_trainer *tr, uint32_t index, ks_dptr row)
{
  ks_weight w[KS_TRAIN_N_PART];

  for (int part = 0; part < KS_TRAIN_N_PART; part++) {
    const ks_train_tensor t = ks_train_find(&tr->gate, index, (ks_train_part)part);

    w[part] = (ks_weight){.data = t.n_row > 0 ? row + t.at * sizeof(float) : 0,
                          .dtype = KS_DTYPE_F32,
                          .n_in = t.n_col,
                          .n_out = t.n_row,
                          .row_bytes = t.n_col * sizeof(float)};
  }
  return (ks_gate_layer){.w1 = w[KS_TRAIN_W1],
                         .w2 = w[KS_TRAIN_W2],
                         .w3 = w[KS_TRAIN_W3],
                         .b1 = w[KS_TRAIN_B1].data,
                         .b2 = w[KS_TRAIN_B2].data,
                         .b3 = w[KS_TRAIN_B3].data};
}

void
ks_train_gate_forward(ks_train_pass *p, uint32_t index)
{
  const ks_train_dev *d = p->d;
  const ks_gate_layer w = ks_train_gate_layer(p->tr, index, d->params);
  const bool per_head = p->tr->params.capacity_per_stream;
  const ks_op_gate gate = {.w1 = w.w1,
                           .w2 = w.w2,
                           .w3 = w.w3,
                           .b1 = w.b1,
                           .b2 = w.b2,
                           .b3 = w.b3,
                           .x = d->h,
                           .u = d->work,
                           .log_beta = ks_train_plane(p, d->log_beta, index),
                           .n_tok = p->n_tok,
                           .act = p->tr->gate.act};
  const ks_op_capacity size = {
      .log_beta = gate.log_beta,
      .first = d->first[ks_model_get_layer(p->tr->model, index)->is_local ? 1 : 0],
      .size = per_head ? ks_train_plane(p, d->size, index) : d->size,
      .n_tok = p->n_tok,
      .n_kv_head = p->s->n_kv_head,
      .per_head = per_head};

  if (p->st == KS_OK)
    p->st = p->t->gate(p->dev, &gate);
  if (p->st == KS_OK)
    p->st = p->tt->capacity(p->dev, &size);
}

/* Rows that come as embeddings were uploaded; the others are looked up between them. */
void
ks_train_embed(ks_train_pass *p)
{
  uint32_t begin = 0;

  for (uint32_t i = 0; i <= p->batch->n_visual; i++) {
    const ks_graph_visual *v = i < p->batch->n_visual ? &p->batch->visuals[i] : NULL;
    const ks_op_gather_rows op = {.table = *ks_model_get_embd(p->tr->model),
                                  .ids = p->d->ids + (ks_dptr)begin * 4,
                                  .out = p->d->x + (ks_dptr)begin * p->s->n_embd * sizeof(float),
                                  .n_tok = (v != NULL ? v->first : p->n_tok) - begin,
                                  .scale = p->s->embd_scale};

    if (p->st == KS_OK && op.n_tok > 0)
      p->st = p->t->gather_rows(p->dev, &op);
    begin = v != NULL ? v->first + v->n_tok : p->n_tok;
  }
}

/* q, k, v from the normed input in h, normed by heads where the model does so, and rotated. */
static void
record_qkv(ks_train_pass *p, const ks_layer *layer, const ks_train_acts *acts)
{
  const ks_op_linear op = {.n_w = 3,
                           .w = {layer->wq, layer->wk, layer->wv},
                           .bias = {layer->bq, layer->bk, layer->bv},
                           .x = p->d->h,
                           .y = {acts->q_raw, acts->k_raw, acts->v},
                           .n_tok = p->n_tok,
                           .epilogue = KS_EPI_STORE,
                           .act = KS_ACT_NONE,
                           .exact = true};
  const ks_op_rope rope = ks_train_rope(p, layer, acts->q, acts->k);

  if (p->st == KS_OK)
    p->st = p->t->linear(p->dev, &op);
  if (layer->q_norm != 0)
    ks_train_norm(p, acts->q, acts->q_raw, layer->q_norm, p->n_tok * p->s->n_head, p->s->k_dim);
  if (layer->k_norm != 0)
    ks_train_norm(p, acts->k, acts->k_raw, layer->k_norm, p->n_tok * p->s->n_kv_head, p->s->k_dim);
  if (p->st == KS_OK)
    p->st = p->t->rope(p->dev, &rope);
}

/* x += what a block made, straight or through the norm behind the block; y keeps what it read. */
static void
record_residual(ks_train_pass *p, const ks_weight *w, ks_dptr bias, ks_dptr in, ks_dptr post_norm,
                ks_dptr y, ks_dptr x)
{
  if (post_norm == 0) {
    ks_train_linear(p, w, bias, in, x, p->n_tok, KS_EPI_ADD);
    return;
  }
  ks_train_linear(p, w, bias, in, y, p->n_tok, KS_EPI_STORE);
  ks_train_norm(p, p->d->h, y, post_norm, p->n_tok, p->s->n_embd);
  ks_train_add(p, x, p->d->h, 0, p->n_tok);
}

void
ks_train_layer_attention(ks_train_pass *p, uint32_t index, ks_dptr x_in, ks_dptr x_mid,
                         const ks_train_acts *acts, ks_dptr log_beta)
{
  const ks_layer *layer = ks_model_get_layer(p->tr->model, index);
  const ks_op_attn_bias op = ks_train_attention(p, layer, acts, log_beta);

  record_qkv(p, layer, acts);
  if (p->st == KS_OK)
    p->st = p->tt->attn_bias(p->dev, &op);
  ks_train_copy(p, x_mid, x_in, p->n_tok, p->s->n_embd);
  record_residual(p, &layer->wo, layer->bo, acts->att, layer->post_attn_norm, acts->y_att, x_mid);
}

void
ks_train_layer_hidden(ks_train_pass *p, uint32_t index, ks_dptr x_mid, const ks_train_acts *acts,
                      bool keep)
{
  const ks_layer *layer = ks_model_get_layer(p->tr->model, index);
  const ks_op_linear op = {.n_w = 2,
                           .w = {layer->w_gate, layer->w_up},
                           .bias = {layer->b_gate, layer->b_up},
                           .x = p->d->h,
                           .y = {keep ? acts->a : p->d->f, acts->b},
                           .n_tok = p->n_tok,
                           .epilogue = keep ? KS_EPI_STORE : KS_EPI_ACT_MUL,
                           .act = keep ? KS_ACT_NONE : p->s->act,
                           .exact = true};

  ks_train_norm(p, p->d->h, x_mid, layer->ffn_norm, p->n_tok, p->s->n_embd);
  if (p->st == KS_OK)
    p->st = p->t->linear(p->dev, &op);
}

/* f from a and b that were kept. */
static void
record_act_mul(ks_train_pass *p, const ks_layer *layer, const ks_train_acts *acts)
{
  const uint32_t n_ff = layer->w_up.n_out;
  const ks_op_act_mul op = {.a = acts->a,
                            .b = acts->b,
                            .out = p->d->f,
                            .n_row = p->n_tok,
                            .n_col = n_ff,
                            .a_stride = n_ff,
                            .b_stride = n_ff,
                            .out_stride = n_ff,
                            .act = p->s->act};

  if (p->st == KS_OK)
    p->st = p->t->act_mul(p->dev, &op);
}

/* What a tower adds to the visual rows behind one of the first layers. */
static void
record_deep(ks_train_pass *p, uint32_t index, ks_dptr x)
{
  const ks_dptr chunk = (ks_dptr)p->n_deep_row * p->s->n_embd * sizeof(float);

  if (index < p->s->n_deep && p->n_deep_row > 0)
    ks_train_add(p, x, p->d->deep + index * chunk, p->d->deep_rows, p->n_deep_row);
}

void
ks_train_layer_y_ffn(ks_train_pass *p, uint32_t index, const ks_train_acts *acts)
{
  const ks_layer *layer = ks_model_get_layer(p->tr->model, index);

  record_act_mul(p, layer, acts);
  ks_train_linear(p, &layer->w_down, layer->b_down, p->d->f, acts->y_ffn, p->n_tok, KS_EPI_STORE);
}

void
ks_train_layer_out(ks_train_pass *p, uint32_t index, ks_dptr x_mid, ks_dptr x_out,
                   const ks_train_acts *acts, bool kept)
{
  const ks_layer *layer = ks_model_get_layer(p->tr->model, index);

  if (kept)
    record_act_mul(p, layer, acts);
  ks_train_copy(p, x_out, x_mid, p->n_tok, p->s->n_embd);
  record_residual(p, &layer->w_down, layer->b_down, p->d->f, layer->post_ffn_norm, acts->y_ffn,
                  x_out);
  record_deep(p, index, x_out);
}
