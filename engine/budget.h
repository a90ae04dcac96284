/* budget.h - from one target in bytes to weights, scratch, pages and entries, and back.
 * Threads: pure functions.  Source: docs/adr/0004-page-layout.md, docs/method.md section 4. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/kv-pool.h"
#include "engine/model.h"
#include "engine/retention.h"

KS_BEGIN_DECLS

/* Allowed for what the allocator adds to the few scratch blocks of a timeline. */
#define KS_BUDGET_BLOCK_BYTES 2048u

/* Exactly one of the first three is set, the others are 0; all 0 = no limit asked for (keep
 * everything up to the trained length, or what memory allows). */
typedef struct ks_budget_request {
  uint64_t total_bytes;  /* --budget: everything on the device */
  uint64_t kv_bytes;     /* --kv-budget: pages only */
  uint64_t entries;      /* --entries: M, the average per stream */
  uint32_t view_tok;     /* tokens that one pass must have room for: a view of a picture where its
                            tokens see each other both ways (Gemma 3); 0 = none */
  uint64_t other_bytes;  /* what else the total pays for: a vision tower, its scratch and results */
  uint64_t policy_bytes; /* scratch of the policy beside the ranking: ks_evict_count_watch_bytes */
} ks_budget_request;

typedef struct ks_budget_plan {
  uint64_t weight_bytes, gate_bytes, kv_bytes, other_bytes, total_bytes;
  uint64_t scratch_bytes;    /* activations, what the device takes for its steps, ranking */
  uint64_t n_page, n_keep;   /* N and K */
  uint32_t chunk, buffer;    /* C may be lowered to make a small target work */
  double entries_per_stream; /* M = K / S */
  uint64_t least_bytes;      /* the smallest total_bytes that works */
} ks_budget_plan;

/* gate may be NULL.  KS_ERR_BUDGET: too small; the text names the smallest that works, in the unit
 * that was asked in.
 */
KS_CHECK ks_status ks_budget_make_plan(const ks_model *model, const ks_gate *gate,
                                       const ks_kv_layout *layout, const ks_budget_request *request,
                                       uint32_t chunk, uint32_t buffer, ks_budget_plan *out,
                                       ks_error *err);
/* Tokens of a pass that the plan for request->total_bytes has.  For targets that are only thought
 * of: a plan must have been made before, nothing is recorded on the device. */
uint32_t ks_budget_find_chunk(const ks_model *model, const ks_gate *gate,
                              const ks_kv_layout *layout, const ks_budget_request *request,
                              uint32_t chunk, uint32_t buffer);
/* Bytes of pages, whole units of the range, that bytes pay for together with what ranks their
 * entries; and what ranks the entries of n_page pages. */
uint64_t ks_budget_get_kv_bytes(const ks_kv_layout *layout, uint64_t bytes);
/* The other way: the least bytes that pay for pages of at least kv_bytes. */
uint64_t ks_budget_get_bytes_for_kv(const ks_kv_layout *layout, uint64_t kv_bytes);
uint64_t ks_budget_get_rank_bytes(const ks_kv_layout *layout, uint64_t n_page);
/* The tokens of a prefill pass that a pool of n_page pages affords: chunk, halved down to buffer
 * while the room for a pass takes more than a quarter of the entries and leaves fewer than n_keep
 * (0 = as many as possible). */
uint32_t ks_budget_pick_chunk(const ks_kv_layout *layout, uint64_t n_page, uint64_t n_keep,
                              uint32_t chunk, uint32_t buffer);
/* "160MiB", "1.5 GiB", "24000000": bytes.  KS_ERR_ARG with a sentence. */
KS_CHECK ks_status ks_budget_parse_bytes(const char *text, uint64_t *out, ks_error *err);
/* "2.3 MiB" for sentences, below a tenth of it "37.5 KiB", below 1 KiB "12 bytes".  KS_BUDGET_UP:
 * to the next tenth above, so that the amount works when it is typed; KS_BUDGET_DOWN: to the one
 * below. */
typedef enum ks_budget_rounding { KS_BUDGET_UP, KS_BUDGET_DOWN } ks_budget_rounding;
#define KS_BUDGET_TEXT_BYTES 32u
void ks_budget_format_bytes(uint64_t n_bytes, ks_budget_rounding rounding,
                            char out[KS_BUDGET_TEXT_BYTES]);

KS_END_DECLS
