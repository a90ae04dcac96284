/* timeline.h - one inference timeline: tokens in, logits out, entries kept inside the budget.
 * Prefill runs in chunks with a forced eviction before the first and after each one; decode evicts
 * when the buffer is full.  The policy, the budget and the pins may change between any two calls.
 * Tokens of pictures are tokens like others: same gates, pages, ranking.
 * Invariants: entries and pages never exceed the pool's budget, not even inside a pass; seen never
 * falls; positions and sequence indices are separate.  Over 200 lines because all is one contract.
 * Threads: engine thread; a stop hook may read a flag that another thread sets.  Source:
 * docs/method.md, section 4. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/evict.h"
#include "engine/graph.h"

KS_BEGIN_DECLS

typedef enum ks_modality { KS_MODALITY_TEXT, KS_MODALITY_IMAGE, KS_N_MODALITY } ks_modality;

/* In patch_row: the patch is one of the overview, a picture's last view with a grid of its own. */
#define KS_PATCH_OVERVIEW 0x8000u

/* What the host remembers of every token: 24 bytes. */
typedef struct ks_token_info {
  ks_token id; /* KS_TOKEN_NONE for a visual token */
  uint16_t turn;
  uint8_t attachment; /* index within the turn, 0 = the message itself */
  uint8_t modality;
  uint16_t patch_row, patch_col; /* visual: its place in the picture's whole grid */
  int32_t rope_t, rope_h, rope_w;
} ks_token_info;

/* Visual tokens of one view (the picture, one of its tiles, its overview; a frame or a pair of
 * frames of a video), in raster order, embedded by a vision tower.  Embeddings are borrowed for the
 * call. */
typedef struct ks_visual_run {
  uint32_t first, n_tok;         /* ids[first ..] of the call are KS_TOKEN_NONE */
  const float *embd;             /* host [n_tok, n_embd] */
  const float *deep;             /* host, n_deep chunks [n_tok, n_embd] */
  size_t deep_stride;            /* floats from chunk to chunk */
  uint32_t n_deep;               /* as many as the model takes (ks_model_shape) */
  uint32_t grid_rows, grid_cols; /* n_tok = rows * cols */
  const uint32_t *places;        /* NULL, or fewer tokens: [n_tok] where each stands in the grid */
  uint16_t row0, col0;           /* place of the grid in that of the whole picture */
  bool is_overview;              /* its grid counts from 0 */
  uint8_t attachment;            /* of its tokens; the text between them keeps that of set_turn */
  /* Models with positions in three parts (Qwen): frames of one video share an origin and t goes
   * on.  follows: the origin is that of the run right before, of the same grid; t_shift: positions
   * from the origin to this frame, not falling within a video. */
  bool follows;
  uint32_t t_shift;
} ks_visual_run;

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
  uint32_t max_pos; /* positions in use at most: where more would be needed, those of older tokens
                       are moved together, down to half of it; 0 = positions run on */
  bool want_taps;
  ks_fastv fastv;          /* layer 0 = off.  By passes: the last token of each decides what is left
                              out, so that a prompt is as published only when it is one pass */
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
/* The same with pictures: runs [n_run] in order, one for every KS_TOKEN_NONE among the ids.
 * A view is cut over passes like text, but for models that see its tokens both ways (Gemma 3): it
 * is one pass there, and what is above K for it is evicted before.  KS_ERR_ARG: runs that do not
 * fit ids, model or grid, a view above ks_timeline_get_max_view; KS_ERR_BUDGET: the pool is too
 * small for such a pass (nothing was processed; the text names the smallest budget). */
KS_CHECK ks_status ks_timeline_eval_visual(ks_timeline *tl, const ks_token *ids, uint32_t n,
                                           const ks_visual_run *runs, uint32_t n_run,
                                           const ks_timeline_hooks *hooks, ks_error *err);
/* Tokens of the largest view that one pass can see both ways; UINT32_MAX when the model needs no
 * such pass.  It is the chunk that the timeline was made with: ks_budget_request.view_tok. */
uint32_t ks_timeline_get_max_view(const ks_timeline *tl);
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
 * there.  H2O knows of attention only since it is the policy, those with a window since the last
 * passes under one of them. */
KS_CHECK ks_status ks_timeline_set_policy(ks_timeline *tl, const ks_evict_params *params,
                                          ks_error *err);
/* The policy of a model with this gate (NULL: none) where nothing else is asked for, and whether a
 * policy can be used with it (KS_ERR_ARG). */
ks_policy ks_timeline_pick_policy(const ks_gate *gate);
KS_CHECK ks_status ks_timeline_check_policy(ks_policy policy, const ks_gate *gate, ks_error *err);
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

/* One picture, or what else was booked as one: the visual tokens that came under one turn and one
 * attachment with no others between them. */
typedef struct ks_picture_stats {
  uint16_t turn;
  uint8_t attachment;
  uint32_t begin, end; /* sequence indices; text between its views lies inside (a range to pin) */
  uint32_t n_tok;      /* visual tokens */
  uint64_t n_entry;    /* live ones of its n_tok * streams */
  uint32_t grid_rows, grid_cols;         /* of the whole grid without the overview */
  uint32_t overview_rows, overview_cols; /* 0 = none */
} ks_picture_stats;

/* Numbers for the window; O(streams + turns), cheap enough for every frame.  Counts by turn,
 * modality and picture are kept up to date by evictions. */
typedef struct ks_kv_stats {
  uint64_t weight_bytes, kv_used_bytes, kv_budget_bytes, kv_committed_bytes, gate_bytes, host_bytes;
  uint64_t repacked_bytes; /* share of weight_bytes: the copy in the device's order */
  uint64_t scratch_bytes;  /* of all timelines, and what the device takes for its steps */
  uint64_t n_entries, n_keep, n_evicted, n_eviction_runs;
  uint64_t n_entries_peak, kv_peak_bytes; /* the most that was held since the timeline was made or
                                             reset: in the mode faithful more than the budget */
  uint32_t n_pages_used, n_pages_budget, page_entries;
  uint32_t seen, n_layer, n_kv_head, n_turn;
  uint32_t n_position, n_remap; /* the next token's position; times that they were moved together */
  uint64_t by_modality[KS_N_MODALITY];
  const uint32_t *by_stream;   /* entries [n_layer, n_kv_head]; valid until the next call on tl */
  const uint64_t *by_turn;     /* entries [n_turn] */
  const uint32_t *turn_tokens; /* tokens [n_turn] */
  const ks_picture_stats *pictures; /* [n_picture], in order of begin */
  uint32_t n_picture;
} ks_kv_stats;

void ks_timeline_get_stats(const ks_timeline *tl, ks_kv_stats *out);
/* The picture of a turn and an attachment (the first one, if they were used again), or NULL. */
const ks_picture_stats *ks_timeline_find_picture(const ks_timeline *tl, uint16_t turn,
                                                 uint8_t attachment);

/* Called for every live entry whose token is one of begin .. end - 1: layer by layer, head by head,
 * in order of tokens. */
typedef void (*ks_survivor_fn)(void *user, uint32_t layer, uint32_t head, uint32_t pos,
                               const ks_token_info *token);
/* Which entries survive, read from the pages: for heat maps and checks, not for every frame. */
KS_CHECK ks_status ks_timeline_read_survivors(const ks_timeline *tl, uint32_t begin, uint32_t end,
                                              ks_survivor_fn fn, void *user, ks_error *err);
/* From now on every pass notes the queries of its last token, so that its attention can be looked
 * at; false gives the room back. */
KS_CHECK ks_status ks_timeline_note_queries(ks_timeline *tl, bool wanted, ks_error *err);
/* What the last token attends to among the entries that live now: for each of the stream's
 * (by_stream of ks_kv_stats tells how many), in their order, the softmax weight (mean over the
 * query heads of the KV head; they add up to 1) and its sequence index.  Recomputed on the host
 * from the cached keys: for diagnostics.  KS_ERR_ARG when the last pass noted nothing. */
KS_CHECK ks_status ks_timeline_read_attention(const ks_timeline *tl, uint32_t layer, uint32_t head,
                                              double *out_weights, uint32_t *out_pos,
                                              ks_error *err);
/* Pool checker and the timeline's own counts; for asserts and tests. */
bool ks_timeline_check(const ks_timeline *tl);

KS_END_DECLS
