/* timeline-probe.c - what the last token attends to, recomputed from its noted queries and the
 * cached keys, on the host and in double: a slow path for diagnostics, never used for answers.
 * Queries come from a buffer of one token, or from the ring of a policy that looks at queries
 * itself.  Source: docs/method.md, section 12. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/timeline-internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static ks_backend *
backend_of(const ks_timeline *tl)
{
  return ks_kv_pool_get_backend(tl->params.pool);
}

static size_t
query_bytes(const ks_timeline *tl)
{
  return (size_t)tl->shape->n_head * tl->shape->k_dim * sizeof(float);
}

void
ks_timeline_free_probe(ks_timeline *tl)
{
  if (tl->probe.own != 0)
    backend_of(tl)->t->mem_free(backend_of(tl)->dev, tl->probe.own);
  tl->probe.own = tl->probe.queries = 0;
}

ks_status
ks_timeline_note_queries(ks_timeline *tl, bool wanted, ks_error *err)
{
  const ks_backend *be = backend_of(tl);
  size_t n_bytes;

  tl->probe.queries = 0;
  if (!wanted)
    ks_timeline_free_probe(tl);
  if (!wanted || tl->probe.own != 0)
    return KS_OK;
  if (!ks_mul_size(query_bytes(tl), tl->shape->n_layer, &n_bytes))
    return ks_fail(err, KS_ERR_NOMEM, "not enough memory to note queries");
  return be->t->mem_new(be->dev, KS_MEM_SCRATCH, n_bytes, &tl->probe.own, err);
}

void
ks_timeline_begin_probe(ks_timeline *tl, ks_pass_watch *watch)
{
  tl->probe.queries = 0;
  if (tl->probe.own == 0 || watch->queries != 0)
    return;
  watch->queries = tl->probe.own;
  watch->n_slot = 1;
}

void
ks_timeline_end_probe(ks_timeline *tl, const ks_pass_watch *watch, uint32_t last,
                      uint32_t first_local)
{
  if (tl->probe.own == 0)
    return;
  tl->probe.queries = watch->queries;
  tl->probe.n_slot = watch->n_slot;
  tl->probe.slot = last % watch->n_slot;
  tl->probe.first_local = first_local;
}

/* The queries of one layer and KV head: [group, k_dim], neighbours. */
static ks_status
fetch_queries(const ks_timeline *tl, uint32_t layer, uint32_t head, uint32_t group, float *out,
              ks_error *err)
{
  const ks_backend *be = backend_of(tl);
  const size_t slot = (size_t)layer * tl->probe.n_slot + tl->probe.slot;
  const size_t head_bytes = (size_t)group * tl->shape->k_dim * sizeof(float);

  return be->t->download(be->dev, out,
                         tl->probe.queries + slot * query_bytes(tl) + head * head_bytes, head_bytes,
                         err);
}

/* Adds the softmax of logits [n], divided by group, to out. */
static void
add_softmax(const double *logits, uint32_t n, uint32_t group, double *out)
{
  double most = -INFINITY, sum = 0.0;

  for (uint32_t i = 0; i < n; i++)
    most = logits[i] > most ? logits[i] : most;
  for (uint32_t i = 0; i < n; i++)
    sum += exp(logits[i] - most);
  for (uint32_t i = 0; i < n && sum > 0.0; i++)
    out[i] += exp(logits[i] - most) / (sum * group);
}

/* Logits of query g over the keys [n, k_dim]; entries behind a sliding window get none. */
static void
multiply_keys(const ks_timeline *tl, const float *q, const float *keys, const uint32_t *pos,
              uint32_t n, uint32_t live_from, double *out)
{
  const uint32_t k_dim = tl->shape->k_dim;

  for (uint32_t i = 0; i < n; i++) {
    double sum = 0.0;

    for (uint32_t d = 0; d < k_dim; d++)
      sum += (double)keys[(size_t)i * k_dim + d] * q[d];
    out[i] = pos[i] < live_from ? -INFINITY : (double)tl->shape->attn_scale * sum;
  }
}

static ks_status
read_stream(const ks_timeline *tl, uint32_t layer, uint32_t head, uint32_t n, float *room,
            double *logits, double *out_weights, uint32_t *out_pos, ks_error *err)
{
  const ks_kv_view view = ks_kv_table_get_view(tl->table);
  const uint32_t n_kv_head = tl->shape->n_kv_head, group = tl->shape->n_head / n_kv_head;
  const uint32_t k_dim = tl->shape->k_dim;
  const uint32_t live_from =
      ks_model_get_layer(tl->params.model, layer)->is_local ? tl->probe.first_local : 0;
  const ks_backend *be = backend_of(tl);
  float *keys = room + (size_t)group * k_dim;
  ks_status st = fetch_queries(tl, layer, head, group, room, err);

  if (st == KS_OK)
    st = be->t->kv_read(be->dev, &view, layer * n_kv_head + head, 0, n, keys, NULL, NULL, out_pos,
                        NULL, err);
  if (st != KS_OK)
    return st;
  for (uint32_t i = 0; i < n; i++)
    out_weights[i] = 0.0;
  for (uint32_t g = 0; g < group; g++) {
    multiply_keys(tl, room + (size_t)g * k_dim, keys, out_pos, n, live_from, logits);
    add_softmax(logits, n, group, out_weights);
  }
  return KS_OK;
}

ks_status
ks_timeline_read_attention(const ks_timeline *tl, uint32_t layer, uint32_t head,
                           double *out_weights, uint32_t *out_pos, ks_error *err)
{
  const ks_kv_view view = ks_kv_table_get_view(tl->table);
  const uint32_t n_kv_head = tl->shape->n_kv_head, group = tl->shape->n_head / n_kv_head;
  uint32_t n;
  double *logits;
  float *room;
  ks_status st = KS_OK;

  assert(layer < tl->shape->n_layer && head < n_kv_head);
  if (tl->probe.queries == 0)
    return ks_fail(err, KS_ERR_ARG, "no query is known: none was noted in the last pass");
  n = view.streams[layer * n_kv_head + head].n_entry;
  if (n == 0)
    return KS_OK;
  logits = ks_mem_new(tl->alloc, KS_MEM_HOST, n, sizeof(*logits));
  room = ks_mem_new(tl->alloc, KS_MEM_HOST, (size_t)n + group, tl->shape->k_dim * sizeof(*room));
  if (logits == NULL || room == NULL)
    st = ks_fail(err, KS_ERR_NOMEM, "not enough memory to look at the attention of a stream");
  else
    st = read_stream(tl, layer, head, n, room, logits, out_weights, out_pos, err);
  ks_mem_free(logits);
  ks_mem_free(room);
  return st;
}
