/* graph-runner.c - see graph-runner.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/golden/graph-runner.h"

#include <stdlib.h>
#include <string.h>

#define PAGE_ENTRIES 16u

static ks_status
open_pool(graph_runner *r, const graph_runner_params *params, ks_error *err)
{
  const ks_model_shape *s = ks_model_get_shape(r->model);
  uint64_t n_stream = (uint64_t)s->n_layer * s->n_kv_head;
  uint64_t n_page = n_stream * (params->n_tok / PAGE_ENTRIES + 1);
  ks_status st;

  r->layout = (ks_kv_layout){.n_layer = s->n_layer,
                             .n_kv_head = s->n_kv_head,
                             .k_dim = s->k_dim,
                             .v_dim = s->v_dim,
                             .kv_dtype = params->kv_dtype,
                             .page_entries = PAGE_ENTRIES};
  if ((st = ks_kv_layout_init(&r->layout, err)) != KS_OK)
    return st;
  st = ks_kv_pool_new(r->alloc, &r->be, &r->layout, n_page * r->layout.page_bytes,
                      n_page * r->layout.page_bytes, &r->pool, err);
  return st == KS_OK ? ks_kv_table_new(r->pool, &r->table, err) : st;
}

ks_status
graph_runner_open(graph_runner *r, const graph_runner_params *params, ks_error *err)
{
  ks_dev_params dev = {.n_thread = 2, .mode = params->mode};
  ks_model_params mp = {
      .be = &r->be, .n_ctx = params->n_ctx, .repack_room = params->packed ? UINT64_MAX : 0};
  ks_status st;

  *r = (graph_runner){.alloc = ks_alloc_new(), .chunk = params->chunk};
  if (r->alloc == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "no memory");
  dev.alloc = r->alloc;
  if ((st = ks_backend_open("cpu", &dev, &r->be, err)) != KS_OK ||
      (st = ks_model_open(r->alloc, params->path, &mp, &r->model, err)) != KS_OK ||
      (st = open_pool(r, params, err)) != KS_OK ||
      (st = ks_graph_new(r->alloc, r->model, NULL, params->chunk, params->chunk, &r->graph, err)) !=
          KS_OK)
    graph_runner_close(r);
  return st;
}

void
graph_runner_close(graph_runner *r)
{
  ks_graph_free(r->graph);
  ks_kv_table_free(r->table);
  ks_kv_pool_free(r->pool);
  ks_model_close(r->model);
  ks_backend_close(&r->be);
  ks_alloc_free(r->alloc);
  *r = (graph_runner){0};
}

ks_status
graph_runner_reset(graph_runner *r, ks_error *err)
{
  ks_kv_table_free(r->table);
  r->table = NULL;
  r->n_seen = 0;
  return ks_kv_table_new(r->pool, &r->table, err);
}

uint32_t
graph_runner_n_vocab(const graph_runner *r)
{
  return ks_model_get_shape(r->model)->n_vocab;
}

/* One pass.  buf is [7, n]: three rows of positions, first_global, first_local, last, rows. */
static ks_status
run_pass(graph_runner *r, const ks_token *ids, uint32_t *buf, uint32_t n, bool all_rows,
         ks_error *err)
{
  uint32_t window = ks_model_get_shape(r->model)->window;
  uint32_t *rows = buf + 6 * (size_t)n;
  ks_graph_input in = {.n_tok = n,
                       .ids = ids,
                       .rope_pos = (const int32_t *)buf,
                       .pos0 = r->n_seen,
                       .first_global = buf + 3 * (size_t)n,
                       .first_local = buf + 4 * (size_t)n,
                       .last = buf + 5 * (size_t)n,
                       .logit_rows = all_rows ? rows : rows + n - 1,
                       .n_logit = all_rows ? n : 1,
                       .want_taps = true};
  ks_status st;

  for (uint32_t i = 0; i < n; i++) {
    uint32_t at = r->n_seen + i;

    buf[3 * (size_t)n + i] = 0;
    buf[4 * (size_t)n + i] = window > 0 && at >= window ? at - window + 1 : 0;
    buf[5 * (size_t)n + i] = at;
    rows[i] = i;
  }
  if ((st = ks_kv_table_reserve(r->table, n, err)) != KS_OK)
    return st;
  if ((st = ks_graph_run(r->graph, &in, r->table, NULL, NULL, err)) != KS_OK)
    return st;
  ks_kv_table_commit(r->table, n);
  r->n_seen += n;
  return KS_OK;
}

ks_status
graph_runner_eval(graph_runner *r, const ks_token *ids, const int32_t *pos, uint32_t n,
                  float *logits, ks_error *err)
{
  uint32_t n_vocab = graph_runner_n_vocab(r);
  uint32_t *buf = malloc((size_t)r->chunk * 7 * sizeof *buf);
  ks_status st = buf != NULL ? KS_OK : ks_fail(err, KS_ERR_NOMEM, "no memory");

  for (uint32_t at = 0; st == KS_OK && at < n;) {
    uint32_t n_now = n - at < r->chunk ? n - at : r->chunk;

    for (uint32_t axis = 0; axis < 3; axis++)
      for (uint32_t i = 0; i < n_now; i++)
        buf[axis * n_now + i] =
            pos != NULL ? (uint32_t)pos[(size_t)axis * n + at + i] : r->n_seen + i;
    st = run_pass(r, ids + at, buf, n_now, logits != NULL, err);
    if (st == KS_OK && logits != NULL)
      memcpy(logits + (size_t)at * n_vocab, ks_graph_get_logits(r->graph, 0),
             (size_t)n_now * n_vocab * sizeof *logits);
    at += n_now;
  }
  free(buf);
  return st;
}

const float *
graph_runner_last_logits(const graph_runner *r)
{
  return ks_graph_get_logits(r->graph, 0);
}
