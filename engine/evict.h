/* evict.h - eviction policies: each gives every live entry a score; the best K survive.
 * Rules common to all (docs/method.md, sections 3 and 4): ties, pins, dead entries of sliding
 * windows, global or per-stream selection, compaction.  The policies' own files: evict-keys.c
 * (KeyDiff), evict-window.c (StreamingLLM, random, full); retention needs no file of its own.
 * Threads: engine thread. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/kv-pool.h"

KS_BEGIN_DECLS

typedef enum ks_policy {
  KS_POLICY_DBTRIMKV,       /* learned scores, one ranking over all streams */
  KS_POLICY_TRIMKV,         /* learned scores, every stream keeps its own best M */
  KS_POLICY_FULL,           /* never evicts: running out of budget is an error */
  KS_POLICY_STREAMING,      /* first 4 and the last M - 4 of every stream */
  KS_POLICY_KEYDIFF,        /* least like the mean key; per stream */
  KS_POLICY_KEYDIFF_GLOBAL, /* the same standardised per stream, ranked globally, first 4 and last
                               32 pinned: the default for a model without a gate */
  KS_POLICY_RANDOM,         /* seeded; per stream */
  KS_N_POLICY
} ks_policy;

typedef struct ks_evict_params {
  ks_policy policy;
  uint32_t lookahead; /* n >= 1 */
  uint32_t floor;     /* m entries per stream; policies with one ranking only */
  uint32_t pin_first; /* first tokens of the timeline, kept in every stream, inside the budget; */
  uint32_t pin_last;  /* and the last ones.  Both shrink when K has no room, pin_last first */
  uint64_t seed;      /* random policy */
} ks_evict_params;

const char *ks_policy_get_name(ks_policy policy); /* "dbtrimkv" */
KS_CHECK bool ks_policy_parse(const char *name, ks_policy *out);
bool ks_policy_needs_gate(ks_policy policy);
bool ks_policy_needs_mass(ks_policy policy);    /* attention adds to the aux planes */
uint32_t ks_policy_get_n_aux(ks_policy policy); /* aux planes that a page layout must have */
bool ks_policy_is_global(ks_policy policy);     /* one ranking over all streams */
bool ks_policy_never_evicts(ks_policy policy);  /* drops dead entries only */
/* Defaults of a policy: lookahead 1, floor 0, the pins named above; DBTrimKV pins the first token,
 * StreamingLLM the first 4. */
ks_evict_params ks_evict_default_params(ks_policy policy);

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
/* Makes table hold at most n_keep entries after seen tokens; a table that does is left alone.
 * live_from [n_layer]: first sequence index that is still inside the sliding window (0 in global
 * layers).  pins: extra sorted disjoint ranges.  Policies that never evict drop dead entries only,
 * whatever n_keep is.  All or nothing: after a failure the table is as before.
 * KS_ERR_BUDGET when the pins alone exceed n_keep. */
KS_CHECK ks_status ks_evict_run(ks_evict *evict, ks_kv_table *table, uint32_t seen, uint64_t n_keep,
                                const uint32_t *live_from, const ks_pos_range *pins, uint32_t n_pin,
                                ks_evict_event *out_event, ks_error *err);

KS_END_DECLS
