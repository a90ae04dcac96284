/* graph-prune.c - FastV: behind the first layers of a pass, the rows of pictures that the last row
 * looks at least are taken out of all layers that follow.
 * The pass becomes two steps of the backend.  The first one ends with the attention of the last row
 * alone; what it gave to each row is fetched, and the second step begins with fewer rows: residual
 * stream, positions, bounds, features.  Entries keep their sequence indices, streams of the later
 * layers become shorter.  Rows whose logits or queries are wanted stay in any case.
 * Memory is taken by the first such pass and grows with the entries of a layer.
 * Source: docs/method.md, section 13. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/graph-internal.h"

#include <math.h>
#include <string.h>

/* Offsets in the device block: what the second step reads, then the attention. */
static size_t
seq_at(const ks_graph *g)
{
  return (size_t)g->max_tok * 4;
}

static size_t
mass_at(const ks_graph *g)
{
  return (size_t)g->max_tok * 8;
}

static uint32_t
count_visual(const ks_graph_input *in)
{
  uint32_t n = 0;

  for (uint32_t i = 0; i < in->n_visual; i++)
    n += in->visuals[i].n_tok;
  return n;
}

uint32_t
ks_graph_prune_get_layer(const ks_graph_pass *p)
{
  const ks_fastv *fastv = p->in->fastv;
  const uint32_t n_visual = count_visual(p->in);

  if (fastv == NULL || fastv->layer == 0 || fastv->layer >= p->s->n_layer || n_visual == 0 ||
      fastv->drop * n_visual < 1.0)
    return p->s->n_layer;
  return fastv->layer;
}

/* The stream of head h in the last of the first layers. */
static const ks_kv_stream *
looked_at(const ks_graph_pass *p, uint32_t h)
{
  return &p->kv.streams[(p->in->fastv->layer - 1) * p->s->n_kv_head + h];
}

ks_status
ks_graph_prune_begin(ks_graph_pass *p, ks_error *err)
{
  ks_graph_prune *prune = p->prune;
  const ks_graph *g = p->g;
  uint64_t n_mass = 0;
  size_t n_bytes;

  if (prune->lists == NULL)
    prune->lists = ks_mem_new(g->alloc, KS_MEM_SCRATCH, (size_t)g->max_tok * 6, 4);
  if (prune->ranks == NULL)
    prune->ranks = ks_mem_new(g->alloc, KS_MEM_SCRATCH, g->max_tok, sizeof *prune->ranks);
  if (prune->lists == NULL || prune->ranks == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory to choose among the tokens of a picture");
  for (uint32_t h = 0; h < p->s->n_kv_head; h++)
    n_mass += (uint64_t)looked_at(p, h)->n_entry + p->in->n_tok;
  n_bytes = mass_at(g) + (size_t)n_mass * sizeof(float);
  if (n_bytes <= prune->n_bytes)
    return KS_OK;
  if (prune->dev != 0)
    p->t->mem_free(p->dev, prune->dev);
  prune->dev = 0;
  prune->n_bytes = 0;
  n_bytes += n_bytes / 4;
  {
    ks_status st = p->t->mem_new(p->dev, KS_MEM_SCRATCH, n_bytes, &prune->dev, err);

    if (st == KS_OK)
      prune->n_bytes = n_bytes;
    return st;
  }
}

void
ks_graph_prune_done(ks_graph_prune *prune, const ks_backend *be)
{
  if (prune->dev != 0)
    be->t->mem_free(be->dev, prune->dev);
  ks_mem_free(prune->lists);
  ks_mem_free(prune->ranks);
  *prune = (ks_graph_prune){0};
}

/* Queries and entries of the layer are still where it left them; what comes out beside the mass is
 * not used. */
ks_status
ks_graph_prune_record_look(const ks_graph_pass *p)
{
  const ks_graph_layout *l = &p->g->layout;
  const uint32_t layer = p->in->fastv->layer - 1, row = p->in->n_tok - 1;
  const bool is_local = ks_model_get_layer(p->g->model, layer)->is_local;
  const ks_dptr dev = p->g->dev;
  const ks_op_attention op = {
      .kv = p->kv,
      .layer = layer,
      .n_tok = 1,
      .n_head = p->s->n_head,
      .n_new = p->in->n_tok,
      .q = dev + l->q + (ks_dptr)row * p->s->n_head * p->s->k_dim * sizeof(float),
      .out = dev + l->att,
      .first = dev + (is_local ? l->first_local : l->first_global) + (ks_dptr)row * 4,
      .last = dev + l->last + (ks_dptr)row * 4,
      .scale = p->s->attn_scale,
      .mass = p->prune->dev + mass_at(p->g),
      .mass_offset = p->g->mass_offset,
      .mass_window = 1};
  uint64_t at = 0;

  for (uint32_t h = 0; h < p->s->n_kv_head; h++) {
    p->g->mass_offset[h] = at;
    at += (uint64_t)looked_at(p, h)->n_entry + p->in->n_tok;
  }
  return p->t->attention(p->dev, &op);
}

/* Mean over heads of what each row of the pass got, into received [n_tok]; head is room for the
 * same. */
static ks_status
fetch_received(const ks_graph_pass *p, float *received, float *head, ks_error *err)
{
  const uint32_t n_tok = p->in->n_tok;
  uint64_t at = 0;
  ks_status st = KS_OK;

  memset(received, 0, n_tok * sizeof *received);
  for (uint32_t h = 0; st == KS_OK && h < p->s->n_kv_head; h++) {
    at += looked_at(p, h)->n_entry;
    st = p->t->download(p->dev, head, p->prune->dev + mass_at(p->g) + at * sizeof(float),
                        n_tok * sizeof *head, err);
    for (uint32_t i = 0; st == KS_OK && i < n_tok; i++)
      received[i] += head[i] / (float)p->s->n_head;
    at += n_tok;
  }
  return st;
}

/* Rows that a policy looks back at, and those whose logits are wanted. */
static bool
must_stay(const ks_graph_pass *p, uint32_t row, uint32_t *logit)
{
  const ks_graph_input *in = p->in;
  const uint32_t n_slot = in->watch != NULL && in->watch->queries != 0 ? in->watch->n_slot : 1;

  while (*logit < in->n_logit && in->logit_rows[*logit] < row)
    *logit += 1;
  return row + n_slot >= in->n_tok || (*logit < in->n_logit && in->logit_rows[*logit] == row);
}

/* Fills goes [n_tok]: 1 for rows that do not go on.  Returns how many do. */
static uint32_t
choose_rows(const ks_graph_pass *p, const float *received, uint8_t *goes)
{
  ks_prune_rank *ranks = p->prune->ranks;
  uint32_t n = 0, n_bound = 0, n_stay, logit = 0;

  memset(goes, 0, p->in->n_tok);
  for (uint32_t i = 0; i < p->in->n_visual; i++)
    for (uint32_t k = 0; k < p->in->visuals[i].n_tok; k++) {
      const uint32_t row = p->in->visuals[i].first + k;
      const bool is_bound = must_stay(p, row, &logit);

      ranks[n++] = (ks_prune_rank){is_bound ? INFINITY : received[row], row};
      n_bound += is_bound;
    }
  n_stay = ks_fastv_choose(p->in->fastv, ranks, n);
  for (uint32_t i = n_stay > n_bound ? n_stay : n_bound; i < n; i++)
    goes[ranks[i].index] = 1;
  for (n = 0, n_stay = 0; n < p->in->n_tok; n++)
    n_stay += goes[n] == 0;
  return n_stay;
}

/* Those of n values whose rows go on, put to the device. */
static ks_status
upload_kept(const ks_graph_pass *p, ks_dptr to, const uint32_t *values, const uint32_t *rows,
            uint32_t n, uint32_t *list, ks_error *err)
{
  for (uint32_t i = 0; i < n; i++)
    list[i] = values[rows[i]];
  return p->t->upload(p->dev, to, list, n * sizeof *list, err);
}

/* Rows, sequence indices, positions and bounds of the n rows that go on. */
static ks_status
upload_lists(const ks_graph_pass *p, const uint32_t *rows, uint32_t n, uint32_t *list,
             ks_error *err)
{
  const ks_graph_layout *l = &p->g->layout;
  const ks_graph_input *in = p->in;
  const ks_dptr dev = p->g->dev;
  ks_status st = p->t->upload(p->dev, p->prune->dev, rows, n * sizeof *rows, err);

  for (uint32_t i = 0; i < n; i++)
    list[i] = in->pos0 + rows[i];
  if (st == KS_OK)
    st = p->t->upload(p->dev, p->prune->dev + seq_at(p->g), list, n * sizeof *list, err);
  for (uint32_t axis = 0; st == KS_OK && axis < 3; axis++)
    st = upload_kept(p, dev + l->pos + (ks_dptr)axis * n * 4,
                     (const uint32_t *)in->rope_pos + (size_t)axis * in->n_tok, rows, n, list, err);
  if (st == KS_OK)
    st = upload_kept(p, dev + l->first_global, in->first_global, rows, n, list, err);
  if (st == KS_OK)
    st = upload_kept(p, dev + l->first_local, in->first_local, rows, n, list, err);
  return st == KS_OK ? upload_kept(p, dev + l->last, in->last, rows, n, list, err) : st;
}

/* The rows that leave the last layer, by their new numbers; place [n_tok] has those. */
static ks_status
upload_leaving(const ks_graph_pass *p, const uint32_t *place, ks_error *err)
{
  int32_t *leaving = (int32_t *)(void *)(p->g->host + p->g->layout.host_rows);

  for (uint32_t i = 0; i <= p->n_row; i++)
    leaving[i] = (int32_t)place[leaving[i]];
  return p->t->upload(p->dev, p->g->dev + p->g->layout.rows, leaving, 4 * ((size_t)p->n_row + 2),
                      err);
}

/* Features of the rows that go on, packed anew, for the layers that come. */
static ks_status
upload_features(ks_graph_pass *p, const uint8_t *goes, const uint32_t *place, ks_error *err)
{
  const ks_graph_layout *l = &p->g->layout;
  const size_t n_embd = p->s->n_embd, row_bytes = n_embd * sizeof(float);
  int32_t *rows = (int32_t *)(void *)(p->g->host + l->host_deep_rows);
  uint32_t n = 0, at = 0;
  ks_status st = KS_OK;

  if (p->in->fastv->layer >= p->s->n_deep)
    return KS_OK;
  for (uint32_t i = 0; i < p->in->n_visual; i++)
    for (uint32_t k = 0; k < p->in->visuals[i].n_tok; k++)
      if (goes[p->in->visuals[i].first + k] == 0)
        rows[n++] = (int32_t)place[p->in->visuals[i].first + k];
  for (uint32_t i = 0; i < p->in->n_visual; i++) {
    const ks_graph_visual *v = &p->in->visuals[i];

    for (uint32_t k = 0; k < v->n_tok; k++) {
      if (goes[v->first + k] != 0)
        continue;
      for (uint32_t d = p->in->fastv->layer; st == KS_OK && d < p->s->n_deep; d++)
        st = p->t->upload(p->dev, p->g->dev + l->deep + ((size_t)d * n + at) * row_bytes,
                          v->deep + d * v->deep_stride + k * n_embd, row_bytes, err);
      at++;
    }
  }
  p->n_deep_row = n;
  return st == KS_OK && n > 0
             ? p->t->upload(p->dev, p->g->dev + l->deep_rows, rows, 4 * (size_t)n, err)
             : st;
}

ks_status
ks_graph_prune_choose(ks_graph_pass *p, ks_error *err)
{
  const size_t n_tok = p->in->n_tok;
  uint32_t *rows = p->prune->lists, *place = rows + n_tok, *list = place + n_tok;
  float *received = (float *)(void *)(list + n_tok), *head = received + n_tok;
  uint8_t *goes = (uint8_t *)(head + n_tok);
  ks_status st = fetch_received(p, received, head, err);
  uint32_t n = 0;

  if (st != KS_OK)
    return st;
  p->prune->n_stay = choose_rows(p, received, goes);
  for (uint32_t i = 0; i < n_tok; i++) {
    place[i] = n;
    if (goes[i] == 0)
      rows[n++] = i;
  }
  if ((st = upload_lists(p, rows, n, list, err)) != KS_OK ||
      (st = upload_leaving(p, place, err)) != KS_OK)
    return st;
  return upload_features(p, goes, place, err);
}

ks_status
ks_graph_prune_record_rows(ks_graph_pass *p)
{
  const size_t row_bytes = (size_t)p->s->n_embd * sizeof(float);
  const ks_dptr h = p->g->dev + p->g->layout.h;
  const ks_op_gather_rows pick = {.table = {.data = p->x,
                                            .dtype = KS_DTYPE_F32,
                                            .n_in = p->s->n_embd,
                                            .n_out = p->n_x,
                                            .row_bytes = row_bytes},
                                  .ids = p->prune->dev,
                                  .out = h,
                                  .n_tok = p->prune->n_stay,
                                  .scale = 1.0f};
  const ks_op_store_rows put = {.src = h,
                                .out = p->x,
                                .dtype = KS_DTYPE_F32,
                                .out_row_bytes = row_bytes,
                                .n_row = p->prune->n_stay,
                                .n_col = p->s->n_embd,
                                .scale = 1.0f};
  ks_status st = p->t->gather_rows(p->dev, &pick);

  p->n_x = p->prune->n_stay;
  p->seq = p->prune->dev + seq_at(p->g);
  return st == KS_OK ? p->t->store_rows(p->dev, &put) : st;
}
