/* snapshot.h - a timeline as bytes and back: tokens, entries, pins, and what an answer goes on
 * from. A timeline that was read back goes on to the last bit as the one that was written, as long
 * as policy, budget and passes are the same.  Other types of keys, page sizes and numbers of aux
 * planes load as well; other weights, damaged and older files are refused, and the caller reads the
 * texts again.
 * Threads: engine thread; ks_snapshot_open: any.  Source: docs/formats/snapshot.md, ADR 0005. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/timeline.h"

KS_BEGIN_DECLS

#define KS_SNAPSHOT_HASH_BYTES 32u

/* What a snapshot belongs to; chosen by the caller. */
typedef struct ks_snapshot_label {
  uint8_t weights[KS_SNAPSHOT_HASH_BYTES]; /* model, gate, vision tower */
  uint8_t content[KS_SNAPSHOT_HASH_BYTES]; /* what was read and answered */
} ks_snapshot_label;

typedef struct ks_snapshot_params {
  ks_snapshot_label label;
  bool with_logits;  /* those after the last token, where there are any */
  uint64_t rng[2];   /* of the sampler; 0 where none goes on */
  const void *notes; /* the caller's own words, [n_notes] */
  size_t n_notes;
} ks_snapshot_params;

/* Takes the bytes in order; false = they cannot be kept. */
typedef bool (*ks_snapshot_sink)(void *user, const void *data, size_t n_bytes);

/* Bytes that ks_snapshot_write will give. */
uint64_t ks_snapshot_count_bytes(ks_timeline *tl, const ks_snapshot_params *params);
/* Errors: KS_ERR_IO when the sink refuses, KS_ERR_NOMEM, what the device says. */
KS_CHECK ks_status ks_snapshot_write(ks_timeline *tl, const ks_snapshot_params *params,
                                     ks_snapshot_sink sink, void *user, ks_error *err);

/* An opened snapshot: sizes and sums are right, contents are not looked at yet. Everything points
 * into the caller's data. */
typedef struct ks_snapshot {
  ks_snapshot_label label;
  uint32_t seen, n_remap, since_evict;
  int32_t rope_next, remap_from;
  uint16_t turn;
  uint8_t attachment;
  uint32_t n_vocab;
  uint64_t n_evicted, n_eviction_runs;
  uint64_t least_keep; /* smallest K to which its entries were ever cut; UINT64_MAX = never */
  uint64_t rng[2];
  ks_kv_layout layout; /* of the stored rows; nothing of pages */
  const unsigned char *tokens, *pins, *pictures, *lengths, *streams, *queries, *logits, *notes;
  size_t n_pin, n_picture, n_length, stream_bytes, query_bytes, n_logit, n_notes;
} ks_snapshot;

/* KS_ERR_FORMAT: damaged or cut; KS_ERR_UNSUPPORTED: of another version or byte order, or its label
 * is another one. */
KS_CHECK ks_status ks_snapshot_open(const void *data, size_t n_bytes,
                                    const ks_snapshot_label *label, ks_snapshot *out,
                                    ks_error *err);
/* In place of what tl holds.  KS_ERR_FORMAT: contents that no timeline of this model can have;
 * KS_ERR_UNSUPPORTED: another model's shape; KS_ERR_BUDGET: more than the pool has room for. After
 * an error tl is as before, or empty where the device or memory failed halfway. */
KS_CHECK ks_status ks_snapshot_read(ks_timeline *tl, const ks_snapshot *snap, ks_error *err);

KS_END_DECLS
