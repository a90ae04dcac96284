/* graph.c - one forward pass, recorded as one step of the backend.
 * Per layer: norm, q/k/v and the retention gate from the same normed input, rotation, append to
 * the pages, attention, output, feed-forward.  Only rows whose logits are asked for go through the
 * last feed-forward and the output matrix; a pass that asks for none ends with the last layer's
 * append. All memory is taken when the graph is made; a pass allocates nothing. Rows of pictures
 * come as embeddings and are not scaled; features that a tower adds behind a layer are one add_rows
 * at its end.
 * Over 700 lines because a pass is read from top to bottom.  Source: docs/method.md, section 1. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/graph.h"

#include "engine/graph-internal.h"

#include <assert.h>
#include <string.h>

#define ALIGN 64u

/* Puts n * width 4-byte elements at the end of a block of *at bytes. */
static bool
add_plane(size_t *at, size_t *out, size_t n, size_t width)
{
  size_t bytes;

  *out = *at;
  return ks_mul_size(n, width, &bytes) && ks_mul_size(bytes, 4, &bytes) &&
         ks_add_size(bytes, ALIGN - 1, &bytes) && ks_add_size(*at, bytes / ALIGN * ALIGN, at);
}

bool
ks_graph_layout_init(ks_graph_layout *out, const ks_model_shape *s, const ks_gate *gate,
                     uint32_t n_tok, uint32_t n_row)
{
  ks_graph_layout *l = out;
  const size_t n_gate = gate != NULL ? ks_graph_count_gate_floats(gate, s) : 0;
  size_t d = 0, h = 0, n_f = s->n_ff > n_gate ? s->n_ff : n_gate;
  bool ok = add_plane(&d, &l->ids, n_tok, 1) && add_plane(&d, &l->pos, n_tok, 3) &&
            add_plane(&d, &l->first_global, n_tok, 1) && add_plane(&d, &l->first_local, n_tok, 1) &&
            add_plane(&d, &l->last, n_tok, 1) && add_plane(&d, &l->rows, (size_t)n_row + 3, 1) &&
            add_plane(&d, &l->x, n_tok, s->n_embd) && add_plane(&d, &l->h, n_tok, s->n_embd) &&
            add_plane(&d, &l->q, n_tok, (size_t)s->n_head * s->k_dim) &&
            add_plane(&d, &l->k, n_tok, (size_t)s->n_kv_head * s->k_dim) &&
            add_plane(&d, &l->v, n_tok, (size_t)s->n_kv_head * s->v_dim) &&
            add_plane(&d, &l->att, n_tok, (size_t)s->n_head * s->v_dim) &&
            add_plane(&d, &l->f, n_tok, n_f) && add_plane(&d, &l->log_beta, n_tok, s->n_kv_head) &&
            add_plane(&d, &l->x_rows, (size_t)n_row + 1, s->n_embd) &&
            add_plane(&d, &l->logits, n_row, s->n_vocab) &&
            add_plane(&d, &l->last_rows, 2, s->n_embd) &&
            add_plane(&d, &l->deep, (size_t)n_tok * s->n_deep, s->n_embd) &&
            add_plane(&d, &l->deep_rows, s->n_deep > 0 ? n_tok : 0, 1) &&
            add_plane(&h, &l->host_logits, n_row, s->n_vocab) &&
            add_plane(&h, &l->host_rows, (size_t)n_row + 3, 1) &&
            add_plane(&h, &l->host_deep_rows, s->n_deep > 0 ? n_tok : 0, 1);

  l->device_bytes = d;
  l->host_bytes = h;
  return ok;
}

uint64_t
ks_graph_count_scratch_bytes(const ks_model *model, const ks_gate *gate, uint32_t max_tok,
                             uint32_t max_logit)
{
  ks_graph_layout l;

  if (!ks_graph_layout_init(&l, ks_model_get_shape(model), gate, max_tok, max_logit))
    return UINT64_MAX;
  return (uint64_t)l.device_bytes + l.host_bytes;
}

ks_status
ks_graph_new(ks_alloc *a, const ks_model *model, const ks_gate *gate, uint32_t max_tok,
             uint32_t max_logit, ks_graph **out, ks_error *err)
{
  const ks_backend *be = ks_model_get_backend(model);
  ks_graph *g;
  ks_status st;

  if (max_tok == 0 || max_tok > INT32_MAX || max_logit > max_tok)
    return ks_fail(err, KS_ERR_ARG, "a pass of %u tokens and %u rows of logits is impossible",
                   max_tok, max_logit);
  g = ks_mem_new(a, KS_MEM_HOST, 1, sizeof *g);
  if (g == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for a graph");
  *g = (ks_graph){
      .alloc = a, .model = model, .gate = gate, .max_tok = max_tok, .max_logit = max_logit};
  if (!ks_graph_layout_init(&g->layout, ks_model_get_shape(model), gate, max_tok, max_logit)) {
    ks_graph_free(g);
    return ks_fail(err, KS_ERR_NOMEM, "the activations of %u tokens do not fit", max_tok);
  }
  g->host = ks_mem_new(a, KS_MEM_SCRATCH, 1, g->layout.host_bytes);
  g->mass_offset =
      ks_mem_new(a, KS_MEM_HOST, ks_model_get_shape(model)->n_kv_head, sizeof *g->mass_offset);
  if (g->host == NULL || g->mass_offset == NULL) {
    ks_graph_free(g);
    return ks_fail(err, KS_ERR_NOMEM, "no memory for %u rows of logits", max_logit);
  }
  st = be->t->mem_new(be->dev, KS_MEM_SCRATCH, g->layout.device_bytes, &g->dev, err);
  if (st != KS_OK) {
    ks_graph_free(g);
    return st;
  }
  *out = g;
  return KS_OK;
}

void
ks_graph_free(ks_graph *graph)
{
  const ks_backend *be;

  if (graph == NULL)
    return;
  be = ks_model_get_backend(graph->model);
  if (graph->dev != 0)
    be->t->mem_free(be->dev, graph->dev);
  if (graph->tap_dev != 0)
    be->t->mem_free(be->dev, graph->tap_dev);
  ks_mem_free(graph->tap_host);
  ks_mem_free(graph->host);
  ks_mem_free(graph->mass_offset);
  ks_graph_prune_done(&graph->prune, be);
  ks_mem_free(graph);
}

/* Elements before the log_beta planes: embed, layers, final norm. */
static size_t
tap_rows_elems(const ks_model_shape *s)
{
  return ((size_t)s->n_layer + 2) * s->n_embd;
}

size_t
ks_graph_tap_log_beta_at(const ks_graph *g, uint32_t layer)
{
  const ks_model_shape *s = ks_model_get_shape(g->model);

  return tap_rows_elems(s) + (size_t)layer * g->max_tok * s->n_kv_head;
}

static ks_status
take_taps(ks_graph *g, ks_error *err)
{
  const ks_backend *be = ks_model_get_backend(g->model);
  size_t n = ks_graph_tap_log_beta_at(g, ks_model_get_shape(g->model)->n_layer);
  ks_status st;

  if (g->tap_host == NULL)
    g->tap_host = ks_mem_new(g->alloc, KS_MEM_SCRATCH, n, sizeof *g->tap_host);
  if (g->tap_host == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory for the taps of a pass");
  if (g->tap_dev != 0)
    return KS_OK;
  st = be->t->mem_new(be->dev, KS_MEM_SCRATCH, n * sizeof *g->tap_host, &g->tap_dev, err);
  return st;
}

static ks_status
record_linear(const ks_graph_pass *p, const ks_weight *w, ks_dptr bias, ks_dptr x, ks_dptr y,
              uint32_t n_row, ks_epilogue epilogue)
{
  ks_op_linear op = {.n_w = 1,
                     .w = {*w},
                     .bias = {bias},
                     .x = x,
                     .y = {y},
                     .n_tok = n_row,
                     .epilogue = epilogue,
                     .act = KS_ACT_NONE};

  return p->t->linear(p->dev, &op);
}

static ks_status
record_norm(const ks_graph_pass *p, ks_dptr x, ks_dptr w, ks_dptr out, uint32_t n_row,
            uint32_t n_col)
{
  ks_op_norm op = {
      .x = x, .out = out, .w = w, .n_row = n_row, .n_col = n_col, .eps = p->s->rms_eps};

  return p->t->rms_norm(p->dev, &op);
}

/* The residual stream takes what a block made: straight, or through the block's post-norm. */
static ks_status
record_residual(const ks_graph_pass *p, const ks_weight *w, ks_dptr bias, ks_dptr in,
                ks_dptr post_norm)
{
  ks_dptr h = p->g->dev + p->g->layout.h;
  ks_op_add_rows add = {.dst = p->x, .src = h, .n_row = p->n_x, .n_col = p->s->n_embd};
  ks_status st;

  if (post_norm == 0)
    return record_linear(p, w, bias, in, p->x, p->n_x, KS_EPI_ADD);
  if ((st = record_linear(p, w, bias, in, h, p->n_x, KS_EPI_STORE)) != KS_OK ||
      (st = record_norm(p, h, post_norm, h, p->n_x, p->s->n_embd)) != KS_OK)
    return st;
  return p->t->add_rows(p->dev, &add);
}

/* Copies n rows of x, chosen by the indices at ids, to out. */
static ks_status
record_pick(const ks_graph_pass *p, ks_dptr x, uint32_t n_x, ks_dptr ids, uint32_t n, ks_dptr out)
{
  size_t row_bytes = (size_t)p->s->n_embd * sizeof(float);
  ks_op_gather_rows op = {.table = {.data = x,
                                    .dtype = KS_DTYPE_F32,
                                    .n_in = p->s->n_embd,
                                    .n_out = n_x,
                                    .row_bytes = row_bytes},
                          .ids = ids,
                          .out = out,
                          .n_tok = n,
                          .scale = 1.0f};

  return p->t->gather_rows(p->dev, &op);
}

/* Tap number i (0 embed, 1 + layer, n_layer + 1 final norm): the last row of x. */
static ks_status
record_tap(const ks_graph_pass *p, uint32_t i, ks_dptr x)
{
  const ks_graph *g = p->g;
  uint32_t which = p->n_x == p->in->n_tok ? p->n_row : p->n_row + 1; /* see fill_rows */

  if (!p->in->want_taps)
    return KS_OK;
  return record_pick(p, x, p->n_x, g->dev + g->layout.rows + (ks_dptr)which * 4, 1,
                     g->tap_dev + (ks_dptr)i * p->s->n_embd * sizeof(float));
}

/* Token rows are looked up; the visual ones between them were uploaded before the step. */
static ks_status
record_embedding(const ks_graph_pass *p)
{
  const ks_graph_layout *l = &p->g->layout;
  ks_status st = KS_OK;
  uint32_t begin = 0;

  for (uint32_t i = 0; st == KS_OK && i <= p->in->n_visual; i++) {
    const ks_graph_visual *v = i < p->in->n_visual ? &p->in->visuals[i] : NULL;
    const ks_op_gather_rows op = {.table = *ks_model_get_embd(p->g->model),
                                  .ids = p->g->dev + l->ids + (ks_dptr)begin * 4,
                                  .out = p->x + (ks_dptr)begin * p->s->n_embd * sizeof(float),
                                  .n_tok = (v != NULL ? v->first : p->in->n_tok) - begin,
                                  .scale = p->s->embd_scale};

    if (op.n_tok > 0)
      st = p->t->gather_rows(p->dev, &op);
    begin = v != NULL ? v->first + v->n_tok : p->in->n_tok;
  }
  return st == KS_OK ? record_tap(p, 0, p->x) : st;
}

/* q, k, v of one layer, projected from h. */
static ks_status
record_qkv(const ks_graph_pass *p, const ks_layer *layer)
{
  const ks_graph_layout *l = &p->g->layout;
  ks_dptr dev = p->g->dev;
  ks_op_linear lin = {.n_w = 3,
                      .w = {layer->wq, layer->wk, layer->wv},
                      .bias = {layer->bq, layer->bk, layer->bv},
                      .x = dev + l->h,
                      .y = {dev + l->q, dev + l->k, dev + l->v},
                      .n_tok = p->n_x,
                      .epilogue = KS_EPI_STORE,
                      .act = KS_ACT_NONE,
                      .exact = true};

  /* Scores of attention are differences of large sums: half of what fast arithmetic would change
   * in a model's logits comes from these three matrices, a sixth of its weights. */
  return p->t->linear(p->dev, &lin);
}

/* q and k normed per head where the model does so, and rotated. */
static ks_status
record_rotation(const ks_graph_pass *p, const ks_layer *layer)
{
  const ks_graph_layout *l = &p->g->layout;
  const ks_model_shape *s = p->s;
  const ks_rope_shape *r = layer->is_local ? &s->rope_local : &s->rope;
  ks_dptr dev = p->g->dev, q = dev + l->q, k = dev + l->k;
  ks_op_rope rope = {.q = q,
                     .k = k,
                     .n_tok = p->n_x,
                     .n_head = s->n_head,
                     .n_kv_head = s->n_kv_head,
                     .head_dim = s->k_dim,
                     .n_rot = r->n_rot,
                     .pos = dev + l->pos,
                     .inv_freq = r->inv_freq,
                     .axis = r->axis,
                     .mscale = r->mscale,
                     .neox = r->neox};
  ks_status st = KS_OK;

  if (layer->q_norm != 0)
    st = record_norm(p, q, layer->q_norm, q, p->n_x * s->n_head, s->k_dim);
  if (st == KS_OK && layer->k_norm != 0)
    st = record_norm(p, k, layer->k_norm, k, p->n_x * s->n_kv_head, s->k_dim);
  return st == KS_OK ? p->t->rope(p->dev, &rope) : st;
}

static ks_status
record_append(const ks_graph_pass *p, uint32_t layer, ks_dptr log_beta)
{
  const ks_graph_layout *l = &p->g->layout;
  ks_op_kv_append op = {.kv = p->kv,
                        .layer = layer,
                        .n_tok = p->n_x,
                        .pos0 = p->in->pos0,
                        .pos = p->seq,
                        .k = p->g->dev + l->k,
                        .v = p->g->dev + l->v,
                        .log_beta = log_beta};

  return p->t->kv_append(p->dev, &op);
}

static ks_status
record_attention(ks_graph_pass *p, uint32_t index, const ks_layer *layer)
{
  const ks_graph_layout *l = &p->g->layout;
  ks_dptr dev = p->g->dev;
  ks_op_attention op = {.kv = p->kv,
                        .layer = index,
                        .n_tok = p->n_x,
                        .n_head = p->s->n_head,
                        .n_new = p->n_x,
                        .q = dev + l->q,
                        .out = dev + l->att,
                        .first = dev + (layer->is_local ? l->first_local : l->first_global),
                        .last = dev + l->last,
                        .scale = p->s->attn_scale};
  ks_status st;

  ks_graph_ask_for_mass(p, index, &op);
  st = p->t->attention(p->dev, &op);
  return st == KS_OK ? record_residual(p, &layer->wo, layer->bo, op.out, layer->post_attn_norm)
                     : st;
}

static ks_status
record_ffn(const ks_graph_pass *p, const ks_layer *layer)
{
  ks_dptr h = p->g->dev + p->g->layout.h, f = p->g->dev + p->g->layout.f;
  ks_op_linear lin = {.n_w = 2,
                      .w = {layer->w_gate, layer->w_up},
                      .bias = {layer->b_gate, layer->b_up},
                      .x = h,
                      .y = {f},
                      .n_tok = p->n_x,
                      .epilogue = KS_EPI_ACT_MUL,
                      .act = p->s->act};
  ks_status st = record_norm(p, p->x, layer->ffn_norm, h, p->n_x, p->s->n_embd);

  if (st != KS_OK || (st = p->t->linear(p->dev, &lin)) != KS_OK)
    return st;
  return record_residual(p, &layer->w_down, layer->b_down, f, layer->post_ffn_norm);
}

/* What the tower adds to the visual rows behind one of the first layers. */
static ks_status
record_deep(const ks_graph_pass *p, uint32_t layer)
{
  const ks_graph *g = p->g;
  const size_t chunk_bytes = (size_t)p->n_deep_row * p->s->n_embd * sizeof(float);
  const ks_op_add_rows op = {.dst = p->x,
                             .src = g->dev + g->layout.deep + layer * chunk_bytes,
                             .idx = g->dev + g->layout.deep_rows,
                             .n_row = p->n_deep_row,
                             .n_col = p->s->n_embd};

  return layer < p->s->n_deep && p->n_deep_row > 0 ? p->t->add_rows(p->dev, &op) : KS_OK;
}

/* The operations that pictures add to a pass, at most; for measuring what the list takes. */
static ks_status
record_visual_room(const ks_graph_pass *p)
{
  const ks_op_gather_rows gather = {.table = *ks_model_get_embd(p->g->model), .scale = 1.0f};
  const ks_op_add_rows add = {.dst = p->x, .n_col = p->s->n_embd};
  ks_status st = KS_OK;

  for (uint32_t i = 0; st == KS_OK && i < KS_GRAPH_MAX_VISUAL; i++)
    st = p->t->gather_rows(p->dev, &gather);
  for (uint32_t i = 0; st == KS_OK && i < p->s->n_deep; i++)
    st = p->t->add_rows(p->dev, &add);
  return st;
}

static ks_status
record_layer(ks_graph_pass *p, uint32_t index)
{
  const ks_graph *g = p->g;
  const ks_layer *layer = ks_model_get_layer(g->model, index);
  bool is_last = index + 1 == p->s->n_layer;
  ks_dptr log_beta = 0;
  ks_status st;

  if ((st = record_norm(p, p->x, layer->attn_norm, g->dev + g->layout.h, p->n_x, p->s->n_embd)) !=
          KS_OK ||
      (st = record_qkv(p, layer)) != KS_OK ||
      (st = ks_graph_record_gate(p, index, &log_beta)) != KS_OK ||
      (st = record_rotation(p, layer)) != KS_OK ||
      (st = record_append(p, index, log_beta)) != KS_OK ||
      (st = ks_graph_record_queries(p, index)) != KS_OK)
    return st;
  if (is_last && p->n_row == 0 && (p->in->watch == NULL || p->in->watch->mass == 0))
    return KS_OK;
  if ((st = record_attention(p, index, layer)) != KS_OK)
    return st;
  if (is_last && p->n_row == 0)
    return KS_OK;
  if (is_last && p->n_row < p->n_x) {
    ks_dptr picked = g->dev + g->layout.x_rows;

    st = record_pick(p, p->x, p->n_x, g->dev + g->layout.rows, p->n_row, picked);
    if (st != KS_OK)
      return st;
    p->x = picked;
    p->n_x = p->n_row;
  }
  st = record_ffn(p, layer);
  if (st == KS_OK)
    st = record_tap(p, 1 + index, p->x);
  return st == KS_OK ? record_deep(p, index) : st;
}

/* Where the normed row of a pass with a head goes: a pass that is stopped leaves the other one. */
static ks_dptr
last_row(const ks_graph *g, uint32_t which)
{
  return g->dev + g->layout.last_rows +
         (ks_dptr)which * ks_model_get_shape(g->model)->n_embd * sizeof(float);
}

static ks_status
record_head(const ks_graph_pass *p, ks_dptr x, const ks_head_request *head)
{
  ks_op_head op = {.w = *ks_model_get_output(p->g->model),
                   .x = x,
                   .n_row = 1,
                   .k = head->k,
                   .cap = p->s->final_softcap,
                   .ids = head->ids,
                   .n_id = head->n_id,
                   .out_ids = head->out_ids,
                   .out_logits = head->out_logits,
                   .out_listed = head->out_listed};

  return p->t->head(p->dev, &op);
}

/* One row goes through the head, which may read another copy of the matrix than products do. */
static ks_status
record_logits(const ks_graph_pass *p, ks_dptr h)
{
  const ks_op_head head = {.w = *ks_model_get_output(p->g->model),
                           .x = h,
                           .n_row = 1,
                           .cap = p->s->final_softcap,
                           .logits = p->g->dev + p->g->layout.logits};
  ks_op_linear op = {.n_w = 1,
                     .w = {*ks_model_get_output(p->g->model)},
                     .x = h,
                     .y = {p->g->dev + p->g->layout.logits},
                     .n_tok = p->in->n_logit,
                     .epilogue = p->s->final_softcap > 0.0f ? KS_EPI_SOFTCAP : KS_EPI_STORE,
                     .act = KS_ACT_NONE,
                     .cap = p->s->final_softcap};

  if (head.w.split != 0 && p->in->n_logit == 1)
    return p->t->head(p->dev, &head);
  return p->t->linear(p->dev, &op);
}

static ks_status
record_output(const ks_graph_pass *p)
{
  const ks_graph *g = p->g;
  ks_dptr h = p->in->head != NULL ? last_row(g, 1 - g->kept) : g->dev + g->layout.h;
  ks_status st;

  if (p->n_row == 0)
    return KS_OK;
  st = record_norm(p, p->x, ks_model_get_output_norm(g->model), h, p->n_x, p->s->n_embd);
  if (st != KS_OK || (st = record_tap(p, p->s->n_layer + 1, h)) != KS_OK)
    return st;
  if (p->in->head != NULL)
    return record_head(p, h, p->in->head);
  return p->in->n_logit > 0 ? record_logits(p, h) : KS_OK;
}

static ks_status
record_layers(ks_graph_pass *p, uint32_t from, uint32_t to)
{
  ks_status st = KS_OK;

  for (uint32_t i = from; st == KS_OK && i < to; i++)
    st = record_layer(p, i);
  return st;
}

static ks_status
record_pass(ks_graph_pass *p)
{
  ks_status st = record_embedding(p);

  if (st == KS_OK)
    st = record_layers(p, 0, p->s->n_layer);
  return st == KS_OK ? record_output(p) : st;
}

static bool
is_head_valid(const ks_graph_input *in, uint32_t n_vocab)
{
  const ks_head_request *head = in->head;

  if (head == NULL)
    return true;
  for (uint32_t i = 0; i < head->n_id; i++)
    if (head->ids[i] < (i > 0 ? head->ids[i - 1] : 0) || (uint32_t)head->ids[i] >= n_vocab)
      return false;
  /* With taps the last row leaves the last layer as well. */
  return in->n_logit == 1 && in->logit_rows[0] == in->n_tok - 1 && head->k > 0 &&
         head->k <= KS_HEAD_MAX && head->n_id <= KS_HEAD_MAX;
}

/* Rows in order, none twice, with as many features as the model takes; *out_n of them. */
static bool
are_visuals_valid(const ks_graph_input *in, uint32_t n_deep, uint32_t *out_n)
{
  uint32_t end = 0, n = 0;

  if (in->n_visual > KS_GRAPH_MAX_VISUAL)
    return false;
  for (uint32_t i = 0; i < in->n_visual; i++) {
    const ks_graph_visual *v = &in->visuals[i];

    if (v->first < end || v->n_tok == 0 || v->first >= in->n_tok ||
        v->n_tok > in->n_tok - v->first || v->embd == NULL || (n_deep > 0 && v->deep == NULL))
      return false;
    for (uint32_t k = 0; k < v->n_tok; k++)
      if (in->ids[v->first + k] != KS_TOKEN_NONE)
        return false;
    end = v->first + v->n_tok;
    n += v->n_tok;
  }
  *out_n = n;
  return true;
}

static ks_status
check_ids(const ks_graph_input *in, const ks_model_shape *s, ks_error *err)
{
  uint32_t n_visual = 0, n_none = 0;

  for (uint32_t i = 0; i < in->n_tok; i++) {
    if (in->ids[i] != KS_TOKEN_NONE && (in->ids[i] < 0 || (uint32_t)in->ids[i] >= s->n_vocab))
      return ks_fail(err, KS_ERR_ARG, "token %d at place %u is not in the vocabulary of %u",
                     (int)in->ids[i], i, s->n_vocab);
    n_none += in->ids[i] == KS_TOKEN_NONE;
  }
  if (!are_visuals_valid(in, s->n_deep, &n_visual) || n_visual != n_none)
    return ks_fail(err, KS_ERR_ARG,
                   "%u rows of a pass have no token; the pictures given do not fill them", n_none);
  return KS_OK;
}

/* Nothing of the caller reaches a kernel unchecked. */
static ks_status
check_input(const ks_graph *g, const ks_graph_input *in, const ks_kv_view *kv, ks_error *err)
{
  const ks_model_shape *s = ks_model_get_shape(g->model);
  const ks_kv_layout *l = kv->layout;

  if (in->n_tok == 0 || in->n_tok > g->max_tok || in->n_logit > g->max_logit)
    return ks_fail(err, KS_ERR_ARG,
                   "a pass of %u tokens and %u rows of logits; room is for %u and %u", in->n_tok,
                   in->n_logit, g->max_tok, g->max_logit);
  if (l->n_layer != s->n_layer || l->n_kv_head != s->n_kv_head || l->k_dim != s->k_dim ||
      l->v_dim != s->v_dim)
    return ks_fail(err, KS_ERR_ARG, "the KV pages were made for another model");
  if (in->want_taps && in->fastv != NULL && in->fastv->layer > 0)
    return ks_fail(err, KS_ERR_ARG, "a pass that leaves rows out (FastV) has no taps");
  if (check_ids(in, s, err) != KS_OK)
    return KS_ERR_ARG;
  for (uint32_t i = 0; i < in->n_logit; i++)
    if (in->logit_rows[i] >= in->n_tok || (i > 0 && in->logit_rows[i] <= in->logit_rows[i - 1]))
      return ks_fail(err, KS_ERR_ARG, "the rows of logits are not ascending within the pass");
  if (!is_head_valid(in, s->n_vocab))
    return ks_fail(err, KS_ERR_ARG,
                   "the head of a pass must be that of its last row alone, at "
                   "most %u pairs and rising ids",
                   KS_HEAD_MAX);
  return KS_OK;
}

/* Indices for record_pick: the rows that leave the last layer (those with logits, and the last one
 * when taps want it), then the last row among all, then the last row among the chosen ones. */
static uint32_t
fill_rows(const ks_graph *g, const ks_graph_input *in)
{
  int32_t *rows = (int32_t *)(void *)(g->host + g->layout.host_rows);
  uint32_t n = in->n_logit;

  for (uint32_t i = 0; i < n; i++)
    rows[i] = (int32_t)in->logit_rows[i];
  if (in->want_taps && (n == 0 || in->logit_rows[n - 1] != in->n_tok - 1))
    rows[n++] = (int32_t)in->n_tok - 1;
  rows[n] = (int32_t)in->n_tok - 1;
  rows[n + 1] = (int32_t)n - 1;
  return n;
}

/* Embeddings to their rows; features packed, chunk after chunk, with the rows they belong to. */
static ks_status
upload_visuals(ks_graph_pass *p, ks_error *err)
{
  const ks_graph_layout *l = &p->g->layout;
  const size_t row_bytes = (size_t)p->s->n_embd * sizeof(float);
  int32_t *rows = (int32_t *)(void *)(p->g->host + l->host_deep_rows);
  const uint32_t n_deep = p->s->n_deep;
  uint32_t at = 0;
  ks_status st = KS_OK;

  for (uint32_t i = 0; n_deep > 0 && i < p->in->n_visual; i++)
    for (uint32_t k = 0; k < p->in->visuals[i].n_tok; k++)
      rows[p->n_deep_row++] = (int32_t)(p->in->visuals[i].first + k);
  for (uint32_t i = 0; st == KS_OK && i < p->in->n_visual; at += p->in->visuals[i++].n_tok) {
    const ks_graph_visual *v = &p->in->visuals[i];

    st = p->t->upload(p->dev, p->x + v->first * row_bytes, v->embd, v->n_tok * row_bytes, err);
    for (uint32_t k = 0; st == KS_OK && k < n_deep; k++)
      st = p->t->upload(p->dev, p->g->dev + l->deep + ((size_t)k * p->n_deep_row + at) * row_bytes,
                        v->deep + k * v->deep_stride, v->n_tok * row_bytes, err);
  }
  if (st == KS_OK && p->n_deep_row > 0)
    st = p->t->upload(p->dev, p->g->dev + l->deep_rows, rows, 4 * (size_t)p->n_deep_row, err);
  return st;
}

static ks_status
upload_input(ks_graph_pass *p, ks_error *err)
{
  const ks_graph *g = p->g;
  const ks_graph_input *in = p->in;
  const ks_graph_layout *l = &g->layout;
  size_t n = in->n_tok;
  const struct {
    size_t at;
    const void *src;
    size_t n_bytes;
  } parts[] = {{l->ids, in->ids, 4 * n},
               {l->pos, in->rope_pos, 12 * n},
               {l->first_global, in->first_global, 4 * n},
               {l->first_local, in->first_local, 4 * n},
               {l->last, in->last, 4 * n},
               {l->rows, g->host + l->host_rows, 4 * ((size_t)p->n_row + 2)}};
  ks_status st = KS_OK;

  for (size_t i = 0; st == KS_OK && i < sizeof parts / sizeof parts[0]; i++)
    st = p->t->upload(p->dev, g->dev + parts[i].at, parts[i].src, parts[i].n_bytes, err);
  return st == KS_OK ? upload_visuals(p, err) : st;
}

static ks_status
download_output(const ks_graph_pass *p, ks_error *err)
{
  const ks_graph *g = p->g;
  size_t n_logit = (size_t)p->in->n_logit * p->s->n_vocab;
  ks_status st = KS_OK;

  if (n_logit > 0 && p->in->head == NULL)
    st = p->t->download(p->dev, g->host + g->layout.host_logits, g->dev + g->layout.logits,
                        n_logit * sizeof(float), err);
  if (st == KS_OK && p->in->want_taps) {
    size_t n = g->gate != NULL ? ks_graph_tap_log_beta_at(g, p->s->n_layer) : tap_rows_elems(p->s);

    st = p->t->download(p->dev, g->tap_host, g->tap_dev, n * sizeof(float), err);
  }
  return st;
}

/* Runs what was recorded, or forgets it. */
static ks_status
end_step(const ks_graph_pass *p, ks_status st, ks_stop_fn stop, void *user, ks_error *err)
{
  if (st == KS_OK)
    return p->t->step_end(p->dev, stop, user, err);
  p->t->step_abort(p->dev);
  return ks_fail(err, st, "the pass could not be recorded: %s", ks_status_name(st));
}

/* The pass as one step, or as two where rows are left out in between. */
static ks_status
run_steps(ks_graph_pass *p, ks_stop_fn stop, void *user, ks_error *err)
{
  const uint32_t split = ks_graph_prune_get_layer(p);
  ks_status st = split < p->s->n_layer ? ks_graph_prune_begin(p, err) : KS_OK;

  if (st != KS_OK || (st = p->t->step_begin(p->dev, err)) != KS_OK)
    return st;
  if (split == p->s->n_layer)
    return end_step(p, record_pass(p), stop, user, err);
  if ((st = record_embedding(p)) == KS_OK && (st = record_layers(p, 0, split)) == KS_OK)
    st = ks_graph_prune_record_look(p);
  if ((st = end_step(p, st, stop, user, err)) != KS_OK ||
      (st = ks_graph_prune_choose(p, err)) != KS_OK ||
      (st = p->t->step_begin(p->dev, err)) != KS_OK)
    return st;
  if ((st = ks_graph_prune_record_rows(p)) == KS_OK &&
      (st = record_layers(p, split, p->s->n_layer)) == KS_OK)
    st = record_output(p);
  return end_step(p, st, stop, user, err);
}

ks_status
ks_graph_run(ks_graph *graph, const ks_graph_input *in, ks_kv_table *table, ks_stop_fn stop,
             void *user, ks_error *err)
{
  const ks_backend *be = ks_model_get_backend(graph->model);
  ks_graph_pass p = {.g = graph,
                     .in = in,
                     .s = ks_model_get_shape(graph->model),
                     .t = be->t,
                     .dev = be->dev,
                     .kv = ks_kv_table_get_view(table),
                     .x = graph->dev + graph->layout.x,
                     .n_x = in->n_tok,
                     .prune = &graph->prune};
  ks_status st = check_input(graph, in, &p.kv, err);

  graph->has_taps = false;
  graph->n_tok = graph->n_logit = 0;
  if (st == KS_OK && in->want_taps)
    st = take_taps(graph, err);
  if (st != KS_OK)
    return st;
  p.n_row = fill_rows(graph, in);
  if ((st = upload_input(&p, err)) != KS_OK || (st = run_steps(&p, stop, user, err)) != KS_OK ||
      (st = download_output(&p, err)) != KS_OK ||
      (st = ks_model_check_alive(graph->model, err)) != KS_OK)
    return st;
  graph->growth = (ks_pass_growth){
      .n = in->n_tok, .thin_from = ks_graph_prune_get_layer(&p), .n_thin = graph->prune.n_stay};
  graph->has_taps = in->want_taps;
  graph->n_tok = in->n_tok;
  graph->n_logit = in->head != NULL ? 0 : in->n_logit;
  graph->has_kept = in->head != NULL;
  if (in->head != NULL)
    graph->kept = 1 - graph->kept;
  return KS_OK;
}

ks_status
ks_graph_make_logits(ks_graph *graph, ks_error *err)
{
  const ks_backend *be = ks_model_get_backend(graph->model);
  const ks_graph_input in = {.n_logit = 1};
  const ks_graph_pass p = {
      .g = graph, .in = &in, .s = ks_model_get_shape(graph->model), .t = be->t, .dev = be->dev};
  ks_status st;

  if (!graph->has_kept)
    return ks_fail(err, KS_ERR_ARG, "no row is kept whose logits could be made");
  if ((st = p.t->step_begin(p.dev, err)) != KS_OK)
    return st;
  st = record_logits(&p, last_row(graph, graph->kept));
  if (st != KS_OK) {
    p.t->step_abort(p.dev);
    return ks_fail(err, st, "the logits could not be recorded: %s", ks_status_name(st));
  }
  if ((st = p.t->step_end(p.dev, NULL, NULL, err)) != KS_OK ||
      (st = download_output(&p, err)) != KS_OK ||
      (st = ks_model_check_alive(graph->model, err)) != KS_OK)
    return st;
  graph->n_logit = 1;
  return KS_OK;
}

ks_status
ks_graph_prepare(ks_graph *graph, const ks_kv_layout *layout, ks_error *err)
{
  const ks_backend *be = ks_model_get_backend(graph->model);
  const uint32_t sizes[] = {graph->max_tok, 1};
  const ks_op_kv_select select = {.kv = {.layout = layout}}; /* evictions take room too */
  const ks_head_request head = {.k = KS_HEAD_MAX};
  ks_status st = KS_OK;

  for (size_t i = 0; st == KS_OK && i < sizeof sizes / sizeof sizes[0]; i++) {
    ks_graph_input in = {.n_tok = sizes[i]};
    ks_graph_pass p = {.g = graph,
                       .in = &in,
                       .s = ks_model_get_shape(graph->model),
                       .t = be->t,
                       .dev = be->dev,
                       .kv = {.layout = layout},
                       .x = graph->dev + graph->layout.x,
                       .n_x = sizes[i]};

    p.n_row = in.n_logit = graph->max_logit < sizes[i] ? graph->max_logit : sizes[i];
    st = p.t->step_begin(p.dev, err);
    if (st != KS_OK)
      return st;
    st = record_pass(&p);
    if (st == KS_OK)
      st = record_visual_room(&p);
    if (st == KS_OK)
      st = p.t->kv_select(p.dev, &select);
    if (st == KS_OK)
      st = record_head(&p, last_row(graph, 0), &head);
    p.t->step_abort(p.dev);
    if (st != KS_OK)
      st = ks_fail(err, st, "not enough memory for passes of %u tokens", sizes[i]);
  }
  return st;
}

ks_pass_growth
ks_graph_get_growth(const ks_graph *graph)
{
  return graph->growth;
}

const float *
ks_graph_get_logits(const ks_graph *graph, uint32_t i)
{
  const float *logits = (const float *)(void *)(graph->host + graph->layout.host_logits);

  assert(i < graph->n_logit);
  return logits + (size_t)i * ks_model_get_shape(graph->model)->n_vocab;
}

const float *
ks_graph_get_tap(const ks_graph *graph, ks_tap tap, uint32_t layer)
{
  const ks_model_shape *s = ks_model_get_shape(graph->model);

  if (!graph->has_taps || layer >= s->n_layer)
    return NULL;
  switch (tap) {
  case KS_TAP_EMBED:
    return graph->tap_host;
  case KS_TAP_LAYER_OUT:
    return graph->tap_host + (size_t)(1 + layer) * s->n_embd;
  case KS_TAP_FINAL_NORM:
    return graph->tap_host + (size_t)(1 + s->n_layer) * s->n_embd;
  case KS_TAP_LOG_BETA:
    return graph->gate != NULL ? graph->tap_host + ks_graph_tap_log_beta_at(graph, layer) : NULL;
  }
  return NULL;
}

uint64_t
ks_graph_get_scratch_bytes(const ks_graph *graph)
{
  return (uint64_t)graph->layout.device_bytes + graph->layout.host_bytes;
}
