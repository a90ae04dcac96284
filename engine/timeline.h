/* timeline.h - one inference timeline: tokens in, logits out, entries kept inside the budget.
 * Prefill runs in chunks with a forced eviction before the first and after each one; decode evicts
 * when the buffer is full.  The policy, the budget and the pins may change between any two calls.
 * Invariants: entries and pages never exceed the pool's budget, not even inside a pass; seen never
 * falls; positions and sequence indices are separate.
 * Threads: engine thread; a stop hook may read a flag that another thread sets.  Source:
 * docs/method.md, section 4. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/evict.h"
#include "engine/graph.h"

KS_BEGIN_DECLS

typedef enum ks_modality { KS_MODALITY_TEXT, KS_MODALITY_IMAGE, KS_N_MODALITY } ks_modality;

/* What the host remembers of every token: 24 bytes. */
typedef struct ks_token_info {
  ks_token id;
  uint16_t turn;
  uint8_t attachment; /* index within the turn, 0 = the message itself */
  uint8_t modality;
  uint16_t patch_row, patch_col;
  int32_t rope_t, rope_h, rope_w;
} ks_token_info;

typedef struct ks_timeline ks_timeline;

typedef struct ks_timeline_params {
  const ks_model *model; /* borrowed */
  const ks_gate *gate;   /* borrowed; NULL = none */
  ks_kv_pool *pool;      /* borrowed */
  ks_evict_params evict;
  uint32_t chunk;       /* C: tokens a prefill pass, >= 1; sessions halve it, down to B, where a
                           small budget could not afford it (ks_budget_pick_chunk) */
  uint32_t buffer;      /* B: slack per stream in decode, 1 <= B <= C in sessions */
  uint32_t buffer_part; /* sessions: where 1/part of the average stream is more than B, that many
                           tokens gather, at most a pass: the cost of an eviction grows with its
                           entries; 0 = always B */
  uint64_t n_keep;      /* K; 0 = as much as the pool's budget allows (bytes-to-entries rule) */
  bool force_evict;     /* sessions: true; traces of the method alone: false (trigger only) */
  bool want_taps;
  uint32_t max_logit_rows; /* rows of one pass whose logits may be asked for, >= 1 */
} ks_timeline_params;

ks_timeline_params ks_timeline_default_params(const ks_model *model, const ks_gate *gate,
                                              ks_kv_pool *pool);
KS_CHECK ks_status ks_timeline_new(ks_alloc *a, const ks_timeline_params *params, ks_timeline **out,
                                   ks_error *err);
void ks_timeline_free(ks_timeline *tl); /* NULL is allowed */

/* Forgets everything: no tokens, no entries. */
void ks_timeline_reset(ks_timeline *tl);
/* Turn and attachment that the next tokens are booked under (turn counts from 0). */
void ks_timeline_set_turn(ks_timeline *tl, uint16_t turn, uint8_t attachment);

/* Called after every chunk; false cancels. */
typedef bool (*ks_progress_fn)(void *user, uint32_t n_done, uint32_t n_total);
/* Called with the logits of each wanted row, in order of rows. */
typedef void (*ks_logits_fn)(void *user, uint32_t row, const float *logits);
/* Called after every pass with eviction, for traces. */
typedef void (*ks_evict_fn)(void *user, const ks_evict_event *event, const ks_kv_table *table);

typedef struct ks_timeline_hooks {
  ks_progress_fn progress;
  ks_logits_fn logits;
  const uint32_t *logit_rows; /* ascending rows of this call; NULL with logits set = every row */
  uint32_t n_logit;
  /* Told of the last row of the call, once it succeeded, instead of its logits; not with logits
   * set.  The logits are made when ks_timeline_get_logits asks for them. */
  const ks_head_request *head;
  ks_evict_fn evicted;
  ks_stop_fn stop; /* polled inside a pass; true = cancel, the pass leaves no trace */
  void *user;
} ks_timeline_hooks;

/* Processes n tokens in chunks (decode is n = 1).  hooks may be NULL.  On KS_ERR_CANCELLED, NOMEM
 * or IO all tokens of finished chunks stay processed: ks_timeline_get_seen tells how many.
 * KS_ERR_BUDGET: policy FULL has no room for n tokens (nothing was processed; the text says how
 * many fit), or the pool has less than the smallest room that works.  KS_ERR_ARG: an id that the
 * model does not have, more logit rows in one pass than max_logit_rows. */
KS_CHECK ks_status ks_timeline_eval(ks_timeline *tl, const ks_token *ids, uint32_t n,
                                    const ks_timeline_hooks *hooks, ks_error *err);
/* Logits after the last token of the last eval that went to its end, [n_vocab]; NULL when tokens
 * were processed since (a later eval was cut short), none was, or what the eval left out (hook
 * head) cannot be made up for.  Valid until the next eval. */
const float *ks_timeline_get_logits(ks_timeline *tl);

/* A new pool budget in bytes: evicts first when it shrinks, at once.  KS_ERR_BUDGET names the
 * smallest that works. */
KS_CHECK ks_status ks_timeline_set_budget(ks_timeline *tl, uint64_t budget_bytes, ks_error *err);
/* The same from a target for everything on the device (--budget): the pool gets what weights, gate,
 * scratch and the ranking of its entries leave.  KS_ERR_BUDGET names the smallest that works. */
KS_CHECK ks_status ks_timeline_set_total_budget(ks_timeline *tl, uint64_t total_bytes,
                                                ks_error *err);
/* The smallest target that works now. */
uint64_t ks_timeline_get_least_total_budget(ks_timeline *tl);
/* K directly (0 = from the pool again); sessions evict at once.  KS_ERR_BUDGET below one entry a
 * stream or below what is pinned. */
KS_CHECK ks_status ks_timeline_set_n_keep(ks_timeline *tl, uint64_t n_keep, ks_error *err);
/* From the next eviction on.  KS_ERR_ARG when the policy needs a gate or aux planes that are not
 * there. */
KS_CHECK ks_status ks_timeline_set_policy(ks_timeline *tl, const ks_evict_params *params,
                                          ks_error *err);
/* Pins a range of sequence indices (a turn, a picture) or unpins it.  KS_ERR_BUDGET refuses a pin
 * that does not fit. */
KS_CHECK ks_status ks_timeline_pin(ks_timeline *tl, uint32_t begin, uint32_t end, ks_error *err);
KS_CHECK ks_status ks_timeline_unpin(ks_timeline *tl, uint32_t begin, uint32_t end, ks_error *err);
/* Evicts down to n_keep now. */
KS_CHECK ks_status ks_timeline_evict(ks_timeline *tl, const ks_timeline_hooks *hooks,
                                     ks_error *err);

uint32_t ks_timeline_get_seen(const ks_timeline *tl);
/* K in force now: what was set, or what the pool's free and own pages allow if that is less. Policy
 * FULL: entries that fit in all. */
uint64_t ks_timeline_get_n_keep(const ks_timeline *tl);
uint32_t ks_timeline_get_chunk(const ks_timeline *tl);              /* C in force now */
const ks_token_info *ks_timeline_get_tokens(const ks_timeline *tl); /* [seen] */
const ks_kv_table *ks_timeline_get_table(const ks_timeline *tl);
const ks_graph *ks_timeline_get_graph(const ks_timeline *tl);
const ks_model *ks_timeline_get_model(const ks_timeline *tl);

/* Numbers for the window; O(streams + turns), cheap enough for every frame.  Counts by turn and
 * modality are kept up to date by evictions. */
typedef struct ks_kv_stats {
  uint64_t weight_bytes, kv_used_bytes, kv_budget_bytes, kv_committed_bytes, gate_bytes, host_bytes;
  uint64_t repacked_bytes; /* share of weight_bytes: the copy in the device's order */
  uint64_t scratch_bytes;  /* of all timelines, and what the device takes for its steps */
  uint64_t n_entries, n_keep, n_evicted, n_eviction_runs;
  uint32_t n_pages_used, n_pages_budget, page_entries;
  uint32_t seen, n_layer, n_kv_head, n_turn;
  uint64_t by_modality[KS_N_MODALITY];
  const uint32_t *by_stream;   /* entries [n_layer, n_kv_head]; valid until the next call on tl */
  const uint64_t *by_turn;     /* entries [n_turn] */
  const uint32_t *turn_tokens; /* tokens [n_turn] */
} ks_kv_stats;

void ks_timeline_get_stats(const ks_timeline *tl, ks_kv_stats *out);
/* Pool checker and the timeline's own counts; for asserts and tests. */
bool ks_timeline_check(const ks_timeline *tl);

KS_END_DECLS
