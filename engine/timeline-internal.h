/* timeline-internal.h - the timeline's state, shared by timeline.c (passes), timeline-visual.c
 * (pictures in them), timeline-remap.c (positions beyond the trained length), timeline-budget.c
 * (room, pins, evictions), timeline-stats.c (counts) and the snapshots. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/timeline.h"

KS_BEGIN_DECLS

#define KS_POS_BLOCK 1024u /* positions read from a stream at a time */

/* The queries of the last token, for ks_timeline_read_attention. */
typedef struct ks_probe {
  ks_dptr own;           /* [n_layer, n_head * k_dim]; 0 = not wanted */
  ks_dptr queries;       /* where the last pass noted them, 0 = nowhere */
  uint32_t n_slot, slot; /* of the ring they are in */
  uint32_t first_local;  /* what the token saw in layers with a window */
} ks_probe;

struct ks_timeline {
  ks_alloc *alloc;
  ks_timeline_params params; /* evict inside is unused: the evict object has the present one */
  const ks_model_shape *shape;
  ks_kv_table *table;
  ks_evict *evict;
  ks_graph *graph;
  uint32_t n_stream, max_rows;

  ks_token_info *tokens; /* [token_capacity], the first seen are processed */
  uint32_t seen, token_capacity;
  int32_t rope_next;   /* position of the next token */
  bool has_axes;       /* positions in three parts: M-RoPE */
  bool sees_both_ways; /* visual tokens of a view see each other: Gemma 3 */
  uint16_t turn;
  uint8_t attachment;

  ks_pos_range *pins; /* [pin_capacity], sorted, disjoint */
  uint32_t n_pin, pin_capacity;

  /* One pass, [chunk] each; rope_pos [3, n_tok] as the graph reads it. */
  int32_t *rope_pos;
  uint32_t *first_global, *first_local, *last, *rows;
  uint32_t *live_from;       /* [n_layer] */
  float *logits;             /* [n_vocab] */
  bool has_logits, has_head; /* of the last row; head: its logits can be made */

  uint32_t *pos;       /* [KS_POS_BLOCK] */
  uint32_t *by_stream; /* [n_stream] */
  uint64_t *by_turn;
  uint32_t *turn_tokens;
  uint32_t n_turn, turn_capacity;
  ks_picture_stats *pictures;
  uint32_t n_picture, picture_capacity;
  uint64_t by_modality[KS_N_MODALITY];
  uint64_t n_evicted, n_eviction_runs;
  uint64_t n_entries_peak, n_pages_peak;
  ks_probe probe;
  uint32_t since_evict; /* tokens since entries were last looked at by the policy */
  uint64_t least_keep;  /* smallest K to which entries were cut; UINT64_MAX = never */
  uint32_t n_remap;
  int32_t remap_from; /* position before which another re-map would gain too little */
};

/* What one eval was called with. */
typedef struct ks_eval_call {
  const ks_token *ids;
  uint32_t n;
  const ks_visual_run *runs;
  uint32_t n_run;
  const ks_timeline_hooks *hooks;
} ks_eval_call;

/* What the next pass may use. */
typedef struct ks_room {
  uint64_t n_page;  /* own and free pages of the budget */
  uint64_t n_keep;  /* K */
  uint64_t trigger; /* entries at which decode evicts */
  uint32_t chunk;   /* C */
} ks_room;

/* timeline-visual.c */
/* Whether the runs fit ids, grids and model, and those that are seen both ways the room. */
KS_CHECK ks_status ks_timeline_check_visual(const ks_timeline *tl, const ks_eval_call *call,
                                            ks_error *err);
/* Tokens of the pass that starts at begin: at most chunk and KS_GRAPH_MAX_VISUAL runs; a view that
 * is seen both ways is not cut, and may alone be more than chunk. */
uint32_t ks_timeline_pick_pass(const ks_timeline *tl, const ks_eval_call *call, uint32_t begin,
                               uint32_t chunk);
/* Books token `index` of a run at sequence index seq, whose position would be next if it were text;
 * returns the next one's. */
int32_t ks_timeline_place_visual(ks_timeline *tl, const ks_visual_run *run, uint32_t index,
                                 uint32_t seq, int32_t next);
/* The parts of runs that lie in tokens begin .. begin + n - 1, as rows of their pass; their number.
 */
uint32_t ks_timeline_cut_visuals(const ks_timeline *tl, const ks_eval_call *call, uint32_t begin,
                                 uint32_t n, ks_graph_visual out[KS_GRAPH_MAX_VISUAL]);

/* The whole grid of pictures of which this pass had tokens and others are left out; after they were
 * counted. */
void ks_timeline_note_grids(ks_timeline *tl, const ks_eval_call *call, uint32_t begin, uint32_t n);
/* timeline-probe.c */
void ks_timeline_begin_probe(ks_timeline *tl, ks_pass_watch *watch);
void ks_timeline_end_probe(ks_timeline *tl, const ks_pass_watch *watch, uint32_t last,
                           uint32_t first_local);
void ks_timeline_free_probe(ks_timeline *tl);

/* Positions that a run with an origin takes at most behind it. */
uint32_t ks_timeline_count_positions(const ks_visual_run *run);

/* timeline-remap.c */
/* Positions stay inside max_pos with the pass of tokens begin .. begin + n - 1: older ones are
 * moved together where they would not. */
KS_CHECK ks_status ks_timeline_make_positions(ks_timeline *tl, const ks_eval_call *call,
                                              uint32_t begin, uint32_t n, ks_error *err);

/* timeline-budget.c */
/* A prompt is read as a whole, then cut once. */
bool ks_timeline_is_faithful(const ks_timeline *tl);
ks_room ks_timeline_find_room(const ks_timeline *tl);
/* The same where the next pass has n_tok tokens, also if that is more than the chunk. */
ks_room ks_timeline_find_room_for(const ks_timeline *tl, uint32_t n_tok);
/* KS_ERR_BUDGET when the pool is too small for a pass of n_tok tokens, whatever is forgotten. */
KS_CHECK ks_status ks_timeline_check_pass(const ks_timeline *tl, uint32_t n_tok, ks_error *err);
/* KS_ERR_BUDGET when room is less than the smallest that works, or n tokens do not fit under FULL
 * or as a prompt that is read as a whole. */
KS_CHECK ks_status ks_timeline_check_room(ks_timeline *tl, const ks_room *room, uint32_t n,
                                          const ks_timeline_hooks *hooks, ks_error *err);
/* Evicts to n_keep, keeps the counts and calls the hook. */
KS_CHECK ks_status ks_timeline_evict_to(ks_timeline *tl, uint64_t n_keep,
                                        const ks_timeline_hooks *hooks, ks_error *err);
/* Smallest sequence index whose time position is above limit; seen when there is none before end.
 */
uint32_t ks_timeline_first_above(const ks_timeline *tl, uint32_t end, int64_t limit);

/* timeline-stats.c */
/* Room for counts of the present turn and of n_run more pictures. */
KS_CHECK ks_status ks_timeline_reserve_counts(ks_timeline *tl, uint32_t n_run, ks_error *err);
/* The last n tokens became live in every stream. */
void ks_timeline_count_new(ks_timeline *tl, uint32_t n);
/* Everything anew, from the tokens and from what lies in the pages: the timeline was read back. */
KS_CHECK ks_status ks_timeline_count_anew(ks_timeline *tl, ks_error *err);
/* After an eviction: counts anew from the positions in the pages. */
KS_CHECK ks_status ks_timeline_recount(ks_timeline *tl, ks_error *err);

KS_END_DECLS
