/* evict-internal.h - what a policy is made of, for evict.c and the policies' own files.
 * A policy either lets the device score (retention) or scores one stream at a time on the host;
 * pins, dead entries, ties, selection and compaction are common to all and lie in evict.c.  What a
 * policy looks at beside entries is made by evict-watch.c: the attention that entries receive from
 * the last queries (has_window), or what passes added up in aux planes (n_aux). */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/evict.h"

KS_BEGIN_DECLS

/* One stream to be scored. */
typedef struct ks_score_job {
  ks_evict *evict;
  const ks_kv_view *view;
  uint32_t stream, n_entry, seen;
  uint32_t live_from;   /* entries with smaller pos are dead: no need to score them */
  uint32_t newest_from; /* entries from here on stay in any case */
  const uint32_t *pos;  /* [n_entry], ascending */
  float *scores;        /* [n_entry] in (has_window): attention received from the last queries, sum
                           over queries and heads of the group; out: finite scores */
} ks_score_job;

typedef ks_status (*ks_score_fn)(const ks_score_job *job, ks_error *err);

/* What is there when the counts of streams are decided: the device's scores are those of the
 * ranking, pinned and newest entries are infinite. */
typedef struct ks_allot_job {
  ks_evict *evict;
  const ks_kv_view *view;
  uint64_t n_keep;
  uint32_t share; /* C: n_keep / n_stream */
  uint32_t seen;
} ks_allot_job;

/* Fills evict->per_stream: entries that each stream would keep, window included. */
typedef ks_status (*ks_allot_fn)(const ks_allot_job *job, ks_error *err);

typedef struct ks_policy_ops {
  const char *name;
  bool needs_gate;
  bool is_global;    /* one ranking over all streams, else per_stream entries of every stream */
  bool never_evicts; /* only dead entries go */
  bool has_window;
  bool compares_keys;           /* every key with every other: room for a matrix of them */
  uint32_t n_aux;               /* plane 0: attention received from all queries of every pass */
  uint32_t pin_first, pin_last; /* defaults */
  uint32_t own_first;           /* of the method itself: also in faithful runs */
  uint32_t window, pool;        /* defaults */
  bool pool_max;
  double head_floor, mix, recent;
  ks_score_fn score; /* NULL: the device's kv_score */
  ks_allot_fn allot; /* NULL: C each */
} ks_policy_ops;

/* The last queries of every layer, and where their attention is computed. */
typedef struct ks_query_ring {
  ks_dptr queries;     /* device f32 [n_layer, n_slot, n_head * k_dim] */
  ks_dptr bounds;      /* device u32 [n_layer + 1, n_slot]: first seen layer by layer, last seen */
  ks_dptr out;         /* device f32 [n_slot, n_head * v_dim]: not used */
  uint32_t *slot_pos;  /* [n_slot] whose query lies there; KS_NO_POS: none */
  uint32_t *slot_last; /* [n_slot] the last sequence index that it saw */
  uint32_t *host;      /* [n_layer + 1, n_slot] */
  uint32_t n_slot;
} ks_query_ring;

struct ks_evict {
  ks_alloc *alloc;
  ks_backend *be;
  ks_evict_params params;
  const ks_policy_ops *ops;
  uint32_t n_head;
  float attn_scale;
  uint64_t capacity;  /* entries that the buffers below hold */
  ks_dptr scores;     /* device f32 [capacity] */
  ks_dptr keep;       /* device u8 [capacity] */
  float *host_scores; /* [capacity] */
  uint32_t *pos;      /* [capacity], of one stream at a time */
  uint32_t n_stream;
  uint32_t *n_keep;     /* [n_stream] what the selection kept */
  uint32_t *per_stream; /* [n_stream] what it may keep, for rankings within streams */
  uint32_t *n_pinned;   /* [n_stream] what must stay */
  float *keys;          /* [KS_KEY_BLOCK, k_dim] for policies that look at keys */
  double *anchor;       /* [k_dim] */
  uint32_t k_dim;
  ks_pos_range *pins; /* [pin_capacity] merged */
  uint32_t n_pin, pin_capacity;
  uint32_t newest_from; /* of the present eviction */
  ks_query_ring ring;
  ks_pass_growth growth; /* of the pass that was begun last */
  /* Of one stream at a time, for policies that pool or compare. */
  uint32_t line_capacity;
  float *line;          /* [line_capacity] */
  ks_dptr unit_keys;    /* device f32 [line_capacity, k_dim] */
  ks_dptr alike;        /* device f32 [KS_ALIKE_ROWS, line_capacity] */
  float *alike_host;    /* the same */
  double *alike_column; /* [line_capacity] */
};

#define KS_KEY_BLOCK 64u
#define KS_ALIKE_ROWS 128u /* rows of the matrix of similarities that are made at a time */
#define KS_NO_POS UINT32_MAX

/* evict-policy.c */
const ks_policy_ops *ks_policy_get_ops(ks_policy policy);

/* evict-watch.c */
/* Room for streams of up to n_entry entries, as far as the policy needs any. */
KS_CHECK ks_status ks_evict_reserve_lines(ks_evict *evict, const ks_kv_layout *layout,
                                          uint32_t n_entry, ks_error *err);
void ks_evict_free_lines(ks_evict *evict);
void ks_evict_free_watch(ks_evict *evict);
/* The device's scores become the attention that entries receive from the queries in the ring, zeros
 * where there are none. */
KS_CHECK ks_status ks_evict_sum_attention(ks_evict *evict, const ks_kv_view *view,
                                          const uint32_t *live_from, ks_error *err);
/* Queries in the ring. */
uint32_t ks_evict_count_queries(const ks_evict *evict);

/* evict-window.c */
ks_status ks_score_recency(const ks_score_job *job, ks_error *err);
ks_status ks_score_random(const ks_score_job *job, ks_error *err);
ks_status ks_score_equal(const ks_score_job *job, ks_error *err);
ks_status ks_score_fixed(const ks_score_job *job, ks_error *err);
/* evict-keys.c */
ks_status ks_score_keydiff(const ks_score_job *job, ks_error *err);
ks_status ks_score_keydiff_standard(const ks_score_job *job, ks_error *err);
ks_status ks_score_rkv(const ks_score_job *job, ks_error *err);
/* evict-attention.c */
ks_status ks_score_received(const ks_score_job *job, ks_error *err);
ks_status ks_score_pooled(const ks_score_job *job, ks_error *err);
ks_status ks_allot_heads(const ks_allot_job *job, ks_error *err);
ks_status ks_allot_pyramid(const ks_allot_job *job, ks_error *err);
/* The entries of a job that are alive and not among the newest: begin .. end - 1. */
void ks_score_find_range(const ks_score_job *job, uint32_t *begin, uint32_t *end);
/* scores[begin .. end - 1] pooled as the parameters say. */
void ks_score_pool(const ks_score_job *job, uint32_t begin, uint32_t end);

KS_END_DECLS
