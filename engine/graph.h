/* graph.h - one forward pass of the language model over a backend's table.
 * Reads the KV view, appends the new tokens' entries, never evicts.
 * Threads: engine thread.  Source: docs/method.md, section 1. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/head-request.h"
#include "engine/kv-pool.h"
#include "engine/model.h"
#include "engine/pass-watch.h"
#include "engine/retention.h"
#include "engine/vision-prune.h"

KS_BEGIN_DECLS

/* What a tap is called with: rows of one activation, on the host. */
typedef enum ks_tap { KS_TAP_EMBED, KS_TAP_LAYER_OUT, KS_TAP_FINAL_NORM, KS_TAP_LOG_BETA } ks_tap;

typedef struct ks_graph ks_graph;

/* Visuals of one pass: what the device takes to list its operations is known before. */
#define KS_GRAPH_MAX_VISUAL 16u

/* Neighbouring rows of a pass that come as embeddings; not scaled. */
typedef struct ks_graph_visual {
  uint32_t first, n_tok;
  const float *embd; /* host [n_tok, n_embd] */
  const float *deep; /* host, as many chunks [n_tok, n_embd] as the model's n_deep: chunk i is added
                        to the rows behind layer i */
  size_t deep_stride; /* floats from chunk to chunk */
} ks_graph_visual;

typedef struct ks_graph_input {
  uint32_t n_tok;
  const ks_token *ids;            /* [n_tok]; KS_TOKEN_NONE in the rows of visuals and only there */
  const ks_graph_visual *visuals; /* [n_visual <= KS_GRAPH_MAX_VISUAL], in order of rows */
  uint32_t n_visual;
  const int32_t *rope_pos; /* [3, n_tok] */
  uint32_t pos0;           /* sequence index of the first token */
  const uint32_t *first_global,
      *first_local;           /* [n_tok] first visible sequence index, by layer kind */
  const uint32_t *last;       /* [n_tok] last visible sequence index */
  const uint32_t *logit_rows; /* ascending rows whose logits are wanted, [n_logit] */
  uint32_t n_logit;
  const ks_fastv *fastv;       /* rows of visuals that leave early; NULL = none.  Not with taps */
  const ks_pass_watch *watch;  /* what a policy wants to be noted; NULL = nothing */
  const ks_head_request *head; /* of the only row of logits, whose logits are then not kept; NULL */
  bool
      want_taps; /* keep layer outputs of the last row (and log_beta of all) for ks_graph_get_tap */
} ks_graph_input;

/* Device and host bytes that a graph takes; gate may be NULL.  Exact; UINT64_MAX when they
 * overflow. */
uint64_t ks_graph_count_scratch_bytes(const ks_model *model, const ks_gate *gate, uint32_t max_tok,
                                      uint32_t max_logit);
/* Scratch for passes of up to max_tok tokens and max_logit rows is taken once, here; the first pass
 * with want_taps takes room for the taps on top. */
KS_CHECK ks_status ks_graph_new(ks_alloc *a, const ks_model *model, const ks_gate *gate,
                                uint32_t max_tok, uint32_t max_logit, ks_graph **out,
                                ks_error *err);
/* Records the largest pass, a pass of one token and a selection over pages of this layout and drops
 * them: the
 * device then has what it needs for them (ks_dev_info.own_bytes), later passes take nothing. */
KS_CHECK ks_status ks_graph_prepare(ks_graph *graph, const ks_kv_layout *layout, ks_error *err);
void ks_graph_free(ks_graph *graph); /* NULL is allowed */

/* Runs one pass.  The table must have reserved n_tok entries; the caller commits them afterwards.
 * On failure or cancel (KS_ERR_CANCELLED) the caller sets the old lengths.  KS_ERR_ARG: an id
 * outside the vocabulary, more tokens or rows than room was taken for; KS_ERR_IO: the model's file
 * was cut. */
KS_CHECK ks_status ks_graph_run(ks_graph *graph, const ks_graph_input *in, ks_kv_table *table,
                                ks_stop_fn stop, void *user, ks_error *err);
/* What the last run that succeeded appended. */
ks_pass_growth ks_graph_get_growth(const ks_graph *graph);
/* Host logits of the last run: row i of logit_rows, [n_vocab].  Valid until the next run. */
const float *ks_graph_get_logits(const ks_graph *graph, uint32_t i);
/* Logits of the row of the last run that succeeded with a head, as row 0.  KS_ERR_ARG when another
 * run succeeded since. */
KS_CHECK ks_status ks_graph_make_logits(ks_graph *graph, ks_error *err);
/* Tap of the last run with want_taps: EMBED and FINAL_NORM [n_embd]; LAYER_OUT of layer [n_embd]
 * (before the final norm); LOG_BETA of layer [n_tok, n_kv_head].  NULL when not kept. */
const float *ks_graph_get_tap(const ks_graph *graph, ks_tap tap, uint32_t layer);
uint64_t ks_graph_get_scratch_bytes(const ks_graph *graph); /* without taps */

KS_END_DECLS
