/* train-backward.c - recording the way back through a layer: from the gradient behind it to that
 * before it, and on the way into the gate's numbers.
 * A layer whose activations were not kept is gone through once more first.  The base has no
 * gradients of its own; below the first layer nothing is wanted but its gate's.
 * Threads: engine thread.  Source: docs/method.md, section 12. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/train-internal.h"

void
ks_train_linear_t(ks_train_pass *p, const ks_weight *w, ks_dptr dy, ks_dptr dx, uint32_t n_row,
                  bool accumulate)
{
  const ks_op_linear_t op = {.w = *w, .dy = dy, .dx = dx, .n_tok = n_row, .accumulate = accumulate};

  if (p->st == KS_OK)
    p->st = p->tt->linear_transposed(p->dev, &op);
}

void
ks_train_norm_back(ks_train_pass *p, ks_dptr x, ks_dptr w, ks_dptr dy, ks_dptr dx, uint32_t n_row,
                   uint32_t n_col, bool accumulate)
{
  const ks_op_norm_back op = {.x = x,
                              .dy = dy,
                              .dx = dx,
                              .w = w,
                              .n_row = n_row,
                              .n_col = n_col,
                              .eps = p->s->rms_eps,
                              .accumulate = accumulate};

  if (p->st == KS_OK)
    p->st = p->tt->norm_back(p->dev, &op);
}

void
ks_train_gate_back(ks_train_pass *p, uint32_t index, ks_dptr dh)
{
  const ks_train_dev *d = p->d;
  const ks_gate_layer w = ks_train_gate_layer(p->tr, index, d->params);
  const ks_gate_layer g = ks_train_gate_layer(p->tr, index, d->grad);
  const ks_op_gate_back op = {.w1 = w.w1,
                              .w2 = w.w2,
                              .w3 = w.w3,
                              .b1 = w.b1,
                              .b2 = w.b2,
                              .b3 = w.b3,
                              .x = d->h,
                              .log_beta = ks_train_plane(p, d->log_beta, index),
                              .d_log_beta = ks_train_plane(p, d->d_log_beta, index),
                              .dw1 = g.w1.data,
                              .dw2 = g.w2.data,
                              .dw3 = g.w3.data,
                              .db1 = g.b1,
                              .db2 = g.b2,
                              .db3 = g.b3,
                              .dx = dh,
                              .work = d->work,
                              .n_tok = p->n_tok,
                              .act = p->tr->gate.act};

  if (p->st == KS_OK)
    p->st = p->tt->gate_back(p->dev, &op);
}

/* The gradient of what a block returned: dx itself, or through the norm behind the block. */
static ks_dptr
through_post_norm(ks_train_pass *p, ks_dptr y, ks_dptr post_norm)
{
  if (post_norm == 0)
    return p->d->dx;
  ks_train_norm_back(p, y, post_norm, p->d->dx, p->d->dh, p->n_tok, p->s->n_embd, false);
  return p->d->dh;
}

/* dx goes from behind the feed-forward to between it and attention; a and b are used up. */
static void
feed_forward_back(ks_train_pass *p, const ks_layer *layer, const ks_train_acts *acts)
{
  const ks_train_dev *d = p->d;
  const ks_dptr dy = through_post_norm(p, acts->y_ffn, layer->post_ffn_norm);
  const ks_op_act_mul_back op = {.a = acts->a,
                                 .b = acts->b,
                                 .dy = d->f,
                                 .da = acts->a,
                                 .db = acts->b,
                                 .n_row = p->n_tok,
                                 .n_col = layer->w_up.n_out,
                                 .act = p->s->act};

  ks_train_linear_t(p, &layer->w_down, dy, d->f, p->n_tok, false);
  if (p->st == KS_OK)
    p->st = p->tt->act_mul_back(p->dev, &op);
  ks_train_linear_t(p, &layer->w_gate, acts->a, d->dh, p->n_tok, false);
  ks_train_linear_t(p, &layer->w_up, acts->b, d->dh, p->n_tok, true);
  ks_train_norm_back(p, acts->x_mid, layer->ffn_norm, d->dh, d->dx, p->n_tok, p->s->n_embd, true);
}

/* dh = the gradient of the normed input by way of q, k and v. */
static void
projections_back(ks_train_pass *p, const ks_layer *layer, const ks_train_acts *acts)
{
  const ks_train_dev *d = p->d;
  const ks_op_rope rope = ks_train_rope(p, layer, d->dq, d->dk);

  if (p->st == KS_OK)
    p->st = p->tt->rope_back(p->dev, &rope);
  if (layer->q_norm != 0)
    ks_train_norm_back(p, acts->q_raw, layer->q_norm, d->dq, d->dq, p->n_tok * p->s->n_head,
                       p->s->k_dim, false);
  if (layer->k_norm != 0)
    ks_train_norm_back(p, acts->k_raw, layer->k_norm, d->dk, d->dk, p->n_tok * p->s->n_kv_head,
                       p->s->k_dim, false);
  ks_train_linear_t(p, &layer->wq, d->dq, d->dh, p->n_tok, false);
  ks_train_linear_t(p, &layer->wk, d->dk, d->dh, p->n_tok, true);
  ks_train_linear_t(p, &layer->wv, d->dv, d->dh, p->n_tok, true);
}

static void
attention_back(ks_train_pass *p, uint32_t index, const ks_layer *layer, const ks_train_acts *acts)
{
  const ks_train_dev *d = p->d;
  const bool is_first = index == 0;
  const ks_dptr dy = through_post_norm(p, acts->y_att, layer->post_attn_norm);
  const ks_op_attn_bias_back op = {
      .forward = ks_train_attention(p, layer, acts, ks_train_plane(p, d->log_beta, index)),
      .d_out = d->d_att,
      .dq = is_first ? 0 : d->dq,
      .dk = is_first ? 0 : d->dk,
      .dv = is_first ? 0 : d->dv,
      .d_log_beta = ks_train_plane(p, d->d_log_beta, index)};

  ks_train_linear_t(p, &layer->wo, dy, d->d_att, p->n_tok, false);
  if (p->st == KS_OK)
    p->st = p->tt->attn_bias_back(p->dev, &op);
  if (!is_first)
    projections_back(p, layer, acts);
}

void
ks_train_layer_back(ks_train_pass *p, uint32_t index)
{
  const ks_train_dev *d = p->d;
  const ks_layer *layer = ks_model_get_layer(p->tr->model, index);
  const ks_train_acts *acts = &p->tr->host.acts[index];
  const ks_dptr x = ks_train_x(p, index);
  const bool was_kept = index + p->tr->plan.n_kept >= p->s->n_layer;

  if (!was_kept) {
    ks_train_norm(p, d->h, x, layer->attn_norm, p->n_tok, p->s->n_embd);
    ks_train_layer_attention(p, index, x, acts->x_mid, acts, ks_train_plane(p, d->log_beta, index));
    ks_train_layer_hidden(p, index, acts->x_mid, acts, true);
    if (layer->post_ffn_norm != 0)
      ks_train_layer_y_ffn(p, index, acts);
  }
  feed_forward_back(p, layer, acts);
  attention_back(p, index, layer, acts);
  ks_train_norm(p, d->h, x, layer->attn_norm, p->n_tok, p->s->n_embd);
  ks_train_gate_back(p, index, index > 0 ? d->dh : 0);
  if (index > 0)
    ks_train_norm_back(p, x, layer->attn_norm, d->dh, d->dx, p->n_tok, p->s->n_embd, true);
}
