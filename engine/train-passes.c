/* train-passes.c - what the two stages record: forward until the losses and the soft size of the
 * cache are known, then, with the size's gradient from the host, back.
 * METHOD: the model as it is (teacher), the model with attention biased by age (student), their
 * logits in blocks; back through every layer.  LOCAL: the teacher alone; in each layer the rows'
 * attention once more with the bias, both outputs through the output matrix and compared; back into
 * the gates only.
 * Threads: engine thread.  Source: docs/method.md, section 12. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/train-internal.h"

static void
clear_sizes(ks_train_pass *p)
{
  const uint64_t n_stream = (uint64_t)p->s->n_layer * p->s->n_kv_head;

  ks_train_fill(p, p->d->size, p->n_tok * (p->tr->params.capacity_per_stream ? n_stream : 1));
}

static void
record_capacity_back(ks_train_pass *p, uint32_t index)
{
  const ks_train_dev *d = p->d;
  const bool per_head = p->tr->params.capacity_per_stream;
  const ks_op_capacity_back op = {
      .forward = {.log_beta = ks_train_plane(p, d->log_beta, index),
                  .first = d->first[ks_model_get_layer(p->tr->model, index)->is_local ? 1 : 0],
                  .n_tok = p->n_tok,
                  .n_kv_head = p->s->n_kv_head,
                  .per_head = per_head},
      .d_size = per_head ? ks_train_plane(p, d->d_size, index) : d->d_size,
      .d_log_beta = ks_train_plane(p, d->d_log_beta, index)};

  if (p->st == KS_OK && p->tr->params.capacity_weight != 0.0F)
    p->st = p->tt->capacity_back(p->dev, &op);
}

/* --- METHOD --- */

/* In place in x[1]; x[0] is what the student starts from too. */
static void
record_teacher(ks_train_pass *p)
{
  const ks_train_acts *acts = &p->d->shared;
  const ks_dptr x = ks_train_x(p, 1);

  ks_train_copy(p, x, ks_train_x(p, 0), p->n_tok, p->s->n_embd);
  for (uint32_t i = 0; i < p->s->n_layer; i++) {
    const ks_layer *layer = ks_model_get_layer(p->tr->model, i);

    ks_train_norm(p, p->d->h, x, layer->attn_norm, p->n_tok, p->s->n_embd);
    ks_train_layer_attention(p, i, x, x, acts, 0);
    ks_train_layer_hidden(p, i, x, acts, false);
    ks_train_layer_out(p, i, x, x, acts, false);
  }
}

static void
record_student(ks_train_pass *p)
{
  for (uint32_t i = 0; i < p->s->n_layer; i++) {
    const ks_layer *layer = ks_model_get_layer(p->tr->model, i);
    const ks_train_acts *acts = &p->tr->host.acts[i];
    const bool keep = p->want_grad && i + p->tr->plan.n_kept >= p->s->n_layer;
    const ks_dptr x = ks_train_x(p, i);

    ks_train_norm(p, p->d->h, x, layer->attn_norm, p->n_tok, p->s->n_embd);
    ks_train_gate_forward(p, i);
    ks_train_layer_attention(p, i, x, acts->x_mid, acts, ks_train_plane(p, p->d->log_beta, i));
    ks_train_layer_hidden(p, i, acts->x_mid, acts, keep);
    ks_train_layer_out(p, i, acts->x_mid, ks_train_x(p, i + 1), acts, keep);
  }
}

/* The rows that count, normed for the output matrix; raw keeps them as they were. */
static void
record_rows(ks_train_pass *p, ks_dptr x, ks_dptr raw, ks_dptr out)
{
  ks_train_pick(p, raw, x, p->s->n_embd);
  ks_train_norm(p, out, raw, ks_model_get_output_norm(p->tr->model), p->n_row, p->s->n_embd);
}

/* Losses of rows begin .. begin + n - 1, and the gradient of the student's normed rows. */
static void
record_block(ks_train_pass *p, uint32_t begin, uint32_t n)
{
  const ks_train_dev *d = p->d;
  const ks_weight *w = ks_model_get_output(p->tr->model);
  const ks_dptr at = (ks_dptr)begin * 4, row = at * p->s->n_embd;
  const ks_op_logit_loss op = {.p = d->p,
                               .q = d->q,
                               .dq = p->want_grad ? d->q : 0,
                               .target = d->target + at,
                               .w_kl = d->weight[0] + at,
                               .w_ce = d->weight[1] + at,
                               .kl = d->loss[0] + at,
                               .ce = d->loss[1] + at,
                               .n_row = n,
                               .n_vocab = p->s->n_vocab,
                               .cap = p->s->final_softcap};

  ks_train_linear(p, w, 0, d->t_rows + row, d->p, n, KS_EPI_STORE);
  ks_train_linear(p, w, 0, d->s_rows + row, d->q, n, KS_EPI_STORE);
  if (p->st == KS_OK)
    p->st = p->tt->logit_loss(p->dev, &op);
  if (p->want_grad)
    ks_train_linear_t(p, w, d->q, d->d_rows + row, n, false);
}

void
ks_train_method_forward(ks_train_pass *p)
{
  const ks_train_dev *d = p->d;
  const uint32_t block = p->tr->plan.block_row;

  clear_sizes(p);
  ks_train_embed(p);
  record_teacher(p);
  record_rows(p, ks_train_x(p, 1), d->s_raw, d->t_rows);
  record_student(p);
  record_rows(p, ks_train_x(p, p->s->n_layer), d->s_raw, d->s_rows);
  for (uint32_t i = 0; i < p->n_row; i += block)
    record_block(p, i, p->n_row - i < block ? p->n_row - i : block);
}

void
ks_train_method_back(ks_train_pass *p)
{
  const ks_train_dev *d = p->d;
  const uint64_t n_stream = (uint64_t)p->s->n_layer * p->s->n_kv_head;

  ks_train_fill(p, d->grad, p->tr->gate.n_param);
  ks_train_fill(p, d->d_log_beta, p->n_tok * n_stream);
  ks_train_fill(p, d->dx, (uint64_t)p->n_tok * p->s->n_embd);
  ks_train_norm_back(p, d->s_raw, ks_model_get_output_norm(p->tr->model), d->d_rows, d->d_rows,
                     p->n_row, p->s->n_embd, false);
  ks_train_add(p, d->dx, d->d_rows, d->rows, p->n_row);
  for (uint32_t i = p->s->n_layer; i-- > 0;) {
    record_capacity_back(p, i);
    ks_train_layer_back(p, i);
  }
}

/* --- LOCAL --- */

/* What attention rows give the residual stream, before (raw) and behind the norm of some models. */
static ks_dptr
record_output_rows(ks_train_pass *p, const ks_layer *layer, ks_dptr att, ks_dptr raw,
                   ks_dptr normed)
{
  ks_train_linear(p, &layer->wo, layer->bo, att, raw, p->n_row, KS_EPI_STORE);
  if (layer->post_attn_norm == 0)
    return raw;
  ks_train_norm(p, normed, raw, layer->post_attn_norm, p->n_row, p->s->n_embd);
  return normed;
}

/* The student's attention of the rows. */
static ks_op_attn_bias
rows_attention(const ks_train_pass *p, uint32_t index, const ks_layer *layer)
{
  const ks_train_dev *d = p->d;
  ks_op_attn_bias op =
      ks_train_attention(p, layer, &d->shared, ks_train_plane(p, d->log_beta, index));

  op.q = d->dq;
  op.at = d->rows;
  op.first = d->row_first[layer->is_local ? 1 : 0];
  op.last = d->row_last;
  op.n_q = p->n_row;
  return op;
}

/* Behind a layer's attention: its rows once more with the bias, and how far they are off, measured
 * by the residual stream that they become part of. */
static void
record_mismatch(ks_train_pass *p, uint32_t index, const ks_layer *layer)
{
  const ks_train_dev *d = p->d;
  const ks_op_attn_bias att = rows_attention(p, index, layer);
  const ks_op_attn_bias_back back = {
      .forward = att, .d_out = d->d_att, .d_log_beta = ks_train_plane(p, d->d_log_beta, index)};
  ks_op_square_loss loss = {.ref = d->t_rows,
                            .weight = d->weight[0],
                            .loss = d->loss[0],
                            .da = p->want_grad ? d->d_rows : 0,
                            .n_row = p->n_row,
                            .n_col = p->s->n_embd};

  ks_train_pick(p, d->t_rows, ks_train_x(p, index + 1), p->s->n_embd);
  ks_train_pick(p, d->d_att, d->shared.att, p->s->n_head * p->s->v_dim);
  ks_train_pick(p, d->dq, d->shared.q, p->s->n_head * p->s->k_dim);
  loss.b = record_output_rows(p, layer, d->d_att, d->s_raw, d->s_raw);
  if (p->st == KS_OK)
    p->st = p->tt->attn_bias(p->dev, &att);
  loss.a = record_output_rows(p, layer, att.out, d->s_rows, d->h);
  if (p->st == KS_OK)
    p->st = p->tt->square_loss(p->dev, &loss);
  if (!p->want_grad)
    return;
  if (layer->post_attn_norm != 0)
    ks_train_norm_back(p, d->s_rows, layer->post_attn_norm, d->d_rows, d->d_rows, p->n_row,
                       p->s->n_embd, false);
  ks_train_linear_t(p, &layer->wo, d->d_rows, d->d_att, p->n_row, false);
  if (p->st == KS_OK)
    p->st = p->tt->attn_bias_back(p->dev, &back);
}

void
ks_train_local_forward(ks_train_pass *p)
{
  const ks_train_dev *d = p->d;
  const uint64_t n_stream = (uint64_t)p->s->n_layer * p->s->n_kv_head;

  clear_sizes(p);
  ks_train_fill(p, d->d_log_beta, p->n_tok * n_stream);
  ks_train_fill(p, d->loss[0], p->n_row);
  ks_train_embed(p);
  for (uint32_t i = 0; i < p->s->n_layer; i++) {
    const ks_layer *layer = ks_model_get_layer(p->tr->model, i);
    const ks_dptr x = ks_train_x(p, i + 1);

    ks_train_norm(p, d->h, ks_train_x(p, i), layer->attn_norm, p->n_tok, p->s->n_embd);
    ks_train_gate_forward(p, i);
    ks_train_layer_attention(p, i, ks_train_x(p, i), x, &d->shared, 0);
    record_mismatch(p, i, layer);
    if (i + 1 == p->s->n_layer)
      break; /* no further attention to look at */
    ks_train_layer_hidden(p, i, x, &d->shared, false);
    ks_train_layer_out(p, i, x, x, &d->shared, false);
  }
}

void
ks_train_local_back(ks_train_pass *p)
{
  const ks_train_dev *d = p->d;

  ks_train_fill(p, d->grad, p->tr->gate.n_param);
  for (uint32_t i = 0; i < p->s->n_layer; i++) {
    const ks_layer *layer = ks_model_get_layer(p->tr->model, i);

    record_capacity_back(p, i);
    ks_train_norm(p, d->h, ks_train_x(p, i), layer->attn_norm, p->n_tok, p->s->n_embd);
    ks_train_gate_back(p, i, 0);
  }
}
