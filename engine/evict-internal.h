/* evict-internal.h - what a policy is made of, for evict.c and the policies' own files.
 * A policy either lets the device score (retention) or scores one stream at a time on the host;
 * pins, dead entries, ties, selection and compaction are common to all and lie in evict.c. A policy
 * that looks at attention says needs_mass and how many aux planes it fills; its score function
 * reads them with kv_read. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/evict.h"

KS_BEGIN_DECLS

/* One stream to be scored. */
typedef struct ks_score_job {
  ks_evict *evict;
  const ks_kv_view *view;
  uint32_t stream, n_entry, seen;
  uint32_t live_from;  /* entries with smaller pos are dead: no need to score them */
  const uint32_t *pos; /* [n_entry], ascending */
  float *scores;       /* [n_entry] out, finite */
} ks_score_job;

typedef ks_status (*ks_score_fn)(const ks_score_job *job, ks_error *err);

typedef struct ks_policy_ops {
  const char *name;
  bool needs_gate, needs_mass;
  bool is_global;    /* one ranking over all streams, else the best K / S of every stream */
  bool never_evicts; /* only dead entries go */
  uint32_t n_aux;
  uint32_t pin_first, pin_last; /* defaults */
  ks_score_fn score;            /* NULL: the device's kv_score */
} ks_policy_ops;

struct ks_evict {
  ks_alloc *alloc;
  ks_backend *be;
  ks_evict_params params;
  const ks_policy_ops *ops;
  uint64_t capacity;  /* entries that the buffers below hold */
  ks_dptr scores;     /* device f32 [capacity] */
  ks_dptr keep;       /* device u8 [capacity] */
  float *host_scores; /* [capacity] */
  uint32_t *pos;      /* [capacity], of one stream at a time */
  uint32_t n_stream;
  uint32_t *n_keep;     /* [n_stream] what the selection kept */
  uint32_t *per_stream; /* [n_stream] what it may keep, for rankings within streams */
  float *keys;          /* [KS_KEY_BLOCK, k_dim] for policies that look at keys */
  double *anchor;       /* [k_dim] */
  uint32_t k_dim;
  ks_pos_range *pins; /* [pin_capacity] merged */
  uint32_t n_pin, pin_capacity;
};

#define KS_KEY_BLOCK 64u

/* evict-window.c */
ks_status ks_score_recency(const ks_score_job *job, ks_error *err);
ks_status ks_score_random(const ks_score_job *job, ks_error *err);
ks_status ks_score_equal(const ks_score_job *job, ks_error *err);
/* evict-keys.c */
ks_status ks_score_keydiff(const ks_score_job *job, ks_error *err);
ks_status ks_score_keydiff_standard(const ks_score_job *job, ks_error *err);

KS_END_DECLS
