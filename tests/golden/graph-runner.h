/* graph-runner.h - a model with its own pool and graph, driven directly, for the golden suites.
 * Nothing is evicted: room for the whole sequence is taken at the start. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/graph.h"

typedef struct graph_runner {
  ks_alloc *alloc;
  ks_backend be;
  ks_model *model;
  ks_kv_layout layout;
  ks_kv_pool *pool;
  ks_kv_table *table;
  ks_graph *graph;
  uint32_t chunk, n_seen;
} graph_runner;

typedef struct graph_runner_params {
  const char *path;
  ks_dtype kv_dtype;
  uint32_t n_ctx; /* as for ks_model_params */
  uint32_t n_tok; /* room, in tokens */
  uint32_t chunk; /* tokens a pass */
  ks_compute_mode mode;
  bool packed; /* with the repacked copy of the weights */
} graph_runner_params;

/* All or nothing; err tells why not. */
KS_CHECK ks_status graph_runner_open(graph_runner *r, const graph_runner_params *params,
                                     ks_error *err);
void graph_runner_close(graph_runner *r);
/* Empties the pages: the next token is number 0. */
KS_CHECK ks_status graph_runner_reset(graph_runner *r, ks_error *err);
/* Runs n tokens.  pos is [3, n] or NULL (then tokens are counted); logits is [n, n_vocab], or NULL:
 * then only those of the last token are made, see graph_runner_last_logits.  Taps are kept. */
KS_CHECK ks_status graph_runner_eval(graph_runner *r, const ks_token *ids, const int32_t *pos,
                                     uint32_t n, float *logits, ks_error *err);
const float *graph_runner_last_logits(const graph_runner *r);
uint32_t graph_runner_n_vocab(const graph_runner *r);
