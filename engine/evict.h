/* evict.h - eviction policies: each gives every live entry a score; the best K survive.
 * Rules common to all (docs/method.md, sections 3 and 4): ties, pins, dead entries of sliding
 * windows, selection over all streams or within streams or layers, compaction.  The policies' own
 * files: evict-keys.c (KeyDiff, R-KV), evict-attention.c (H2O, SnapKV, AdaKV, PyramidKV),
 * evict-window.c (StreamingLLM, random, LocRet, full); retention needs no file of its own.
 * Threads: engine thread.  Source: docs/method.md, section 6. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/kv-pool.h"
#include "engine/pass-watch.h"

KS_BEGIN_DECLS

/* C is what a stream may keep on average, K / S. */
typedef enum ks_policy {
  KS_POLICY_DBTRIMKV,       /* learned scores, one ranking over all streams */
  KS_POLICY_UNTIED,         /* the same with a gate whose last layers differ: an ablation */
  KS_POLICY_TRIMKV,         /* learned scores, every stream keeps its own best C */
  KS_POLICY_FULL,           /* never evicts: running out of budget is an error */
  KS_POLICY_STREAMING,      /* first 4 and the last C - 4 of every stream */
  KS_POLICY_KEYDIFF,        /* least like the mean key; per stream */
  KS_POLICY_KEYDIFF_GLOBAL, /* the same standardised per stream, ranked globally, first 4 and last
                               32 pinned: the default for a model without a gate */
  KS_POLICY_H2O,            /* attention received from all queries, and the newest; per stream */
  KS_POLICY_SNAPKV,         /* attention received from the last queries, and these; per stream */
  KS_POLICY_ADAKV,          /* the same, C shared out among the heads of a layer by the scores */
  KS_POLICY_PYRAMIDKV,      /* the same, lower layers keep more than upper ones */
  KS_POLICY_RKV,            /* the same, less what resembles other keys; per stream */
  KS_POLICY_LOCRET,         /* scores of LocRet's heads, and the newest; per stream */
  KS_POLICY_RANDOM,         /* seeded; per stream */
  KS_N_POLICY
} ks_policy;

typedef enum ks_evict_mode {
  KS_EVICT_CHUNKED, /* evictions around the passes of a prompt: the budget holds throughout */
  KS_EVICT_FAITHFUL /* a prompt is read as a whole, then cut to K once, as the methods were
                       published: evaluation only, the pool must hold the prompt */
} ks_evict_mode;

typedef struct ks_evict_params {
  ks_policy policy;
  ks_evict_mode mode;
  uint32_t lookahead; /* n >= 1 */
  uint32_t floor;     /* m entries per stream; policies with one ranking only */
  uint32_t pin_first; /* first tokens of the timeline, kept in every stream, inside the budget; */
  uint32_t pin_last;  /* and the last ones.  Both shrink when K has no room, pin_last first */
  uint64_t seed;      /* random policy */
  double threshold;   /* learned scores: alpha in [0, 1), entries worth less go as well; 0 = off */
  uint32_t window;    /* w: last queries that are looked at; their entries stay, at most C / 2
                         (LocRet: the newest entries that a faithful run keeps) */
  uint32_t pool;      /* k, odd: attention is pooled over so many neighbours; 1 = not at all */
  bool pool_max;      /* their largest, else their mean */
  double head_floor;  /* f of AdaKV, 0 to 1: the part of C that every head has */
  double mix;         /* lambda of R-KV, 0 to 1: the weight of attention against redundancy */
  double recent;      /* H2O, LocRet (chunked), 0 to 1: the part of C that the newest have */
} ks_evict_params;

const char *ks_policy_get_name(ks_policy policy); /* "dbtrimkv" */
KS_CHECK bool ks_policy_parse(const char *name, ks_policy *out);
bool ks_policy_needs_gate(ks_policy policy);
bool ks_policy_needs_mass(ks_policy policy);    /* attention adds to the aux planes */
uint32_t ks_policy_get_n_aux(ks_policy policy); /* aux planes that a page layout must have */
bool ks_policy_is_global(ks_policy policy);     /* one ranking over all streams */
bool ks_policy_never_evicts(ks_policy policy);  /* drops dead entries only */
bool ks_policy_has_window(ks_policy policy);    /* looks at the last queries: params window, pool */
/* Defaults of a policy in sessions: chunked, lookahead 1, floor 0, the pins named above; where none
 * are named the first token is pinned (but for full). */
ks_evict_params ks_evict_default_params(ks_policy policy);
/* As published: faithful, no pins but those that belong to the method (StreamingLLM's). */
ks_evict_params ks_evict_faithful_params(ks_policy policy);
const char *ks_evict_mode_get_name(ks_evict_mode mode); /* "chunked" */
KS_CHECK bool ks_evict_mode_parse(const char *name, ks_evict_mode *out);

/* One finished eviction, for traces. */
typedef struct ks_evict_event {
  uint32_t seen;
  uint64_t n_before, n_after;
  float last_kept, first_dropped; /* scores at the cut; NaN when nothing was dropped */
} ks_evict_event;

typedef struct ks_evict ks_evict;

KS_CHECK ks_status ks_evict_new(ks_alloc *a, ks_backend *be, const ks_evict_params *params,
                                ks_evict **out, ks_error *err);
void ks_evict_free(ks_evict *evict); /* NULL is allowed */
KS_CHECK ks_status ks_evict_set_params(ks_evict *evict, const ks_evict_params *params,
                                       ks_error *err);
const ks_evict_params *ks_evict_get_params(const ks_evict *evict);

/* What policies that look at attention need to know of the model; before the first pass. */
void ks_evict_set_heads(ks_evict *evict, uint32_t n_head, float attn_scale);
/* Takes the room for what the policy notes of passes now; ks_evict_begin_pass does it when needed.
 */
KS_CHECK ks_status ks_evict_reserve_watch(ks_evict *evict, const ks_kv_layout *layout,
                                          ks_error *err);
/* Before a pass of n_tok tokens from sequence index pos0 on: takes the room and says what the pass
 * must note (nothing for most policies).  A pass that fails leaves no queries behind. */
KS_CHECK ks_status ks_evict_begin_pass(ks_evict *evict, const ks_kv_table *table, uint32_t pos0,
                                       uint32_t n_tok, ks_pass_watch *out, ks_error *err);
/* What the pass appended, where that is not n_tok entries everywhere; before ks_evict_end_pass. */
void ks_evict_set_growth(ks_evict *evict, const ks_pass_growth *growth);
/* After it has succeeded and before its entries are committed; last [n_tok] is the last sequence
 * index that each of its queries saw. */
KS_CHECK ks_status ks_evict_end_pass(ks_evict *evict, const ks_kv_table *table, uint32_t pos0,
                                     uint32_t n_tok, const uint32_t *last, ks_error *err);
/* Another timeline's tokens follow: no query is known. */
void ks_evict_forget_queries(ks_evict *evict);
/* The queries that are known, for a snapshot: their bytes (0 = none), and what load makes of them
 * again.  load: bytes of another window are left aside, no query is known then; KS_ERR_FORMAT for
 * what no pass of seen tokens can have noted. */
uint64_t ks_evict_count_query_bytes(const ks_evict *evict, const ks_kv_layout *layout);
KS_CHECK ks_status ks_evict_save_queries(const ks_evict *evict, const ks_kv_layout *layout,
                                         unsigned char *out, ks_error *err);
KS_CHECK ks_status ks_evict_load_queries(ks_evict *evict, const ks_kv_layout *layout,
                                         const unsigned char *data, size_t n_bytes, uint32_t seen,
                                         ks_error *err);
/* Bytes that a policy takes on the device for passes of up to n_tok tokens beside its pages and the
 * ranking, for a plan of memory; 0 for most. */
uint64_t ks_evict_count_watch_bytes(const ks_evict_params *params, const ks_kv_layout *layout,
                                    uint32_t n_head, uint64_t n_keep, uint32_t n_tok);

/* Takes the scratch for evictions from tables of up to n_entry entries now, so that one can run
 * when memory is short.  ks_evict_run does the same when needed. */
KS_CHECK ks_status ks_evict_reserve(ks_evict *evict, const ks_kv_table *table, uint64_t n_entry,
                                    ks_error *err);
uint64_t ks_evict_get_scratch_bytes(const ks_evict *evict);

/* The smallest n_keep under which every live entry inside ranges (sorted, disjoint) survives. */
KS_CHECK ks_status ks_evict_count_pinned(ks_evict *evict, const ks_kv_table *table,
                                         const ks_pos_range *ranges, uint32_t n_range,
                                         uint64_t *out_n_keep, ks_error *err);

/* Gives back the buffers whose size follows the number of entries; the next use takes them anew. */
void ks_evict_release(ks_evict *evict);
/* Makes table hold at most n_keep entries after seen tokens; a table that does is left alone, but
 * for what lies under the threshold.
 * live_from [n_layer]: first sequence index that is still inside the sliding window (0 in global
 * layers).  pins: extra sorted disjoint ranges.  Policies that never evict drop dead entries only,
 * whatever n_keep is.  All or nothing: after a failure the table is as before.
 * KS_ERR_BUDGET when the pins alone exceed n_keep. */
KS_CHECK ks_status ks_evict_run(ks_evict *evict, ks_kv_table *table, uint32_t seen, uint64_t n_keep,
                                const uint32_t *live_from, const ks_pos_range *pins, uint32_t n_pin,
                                ks_evict_event *out_event, ks_error *err);

KS_END_DECLS
