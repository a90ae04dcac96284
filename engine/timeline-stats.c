/* timeline-stats.c - counts of what a timeline still remembers, by stream, turn, modality and
 * picture, and which entries those are.
 * New tokens are added as they come; an eviction, which touches every entry anyway, counts anew.
 * Source: docs/method.md, section 5. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/timeline-internal.h"

#include <assert.h>
#include <string.h>

static ks_status
reserve_turn(ks_timeline *tl, ks_error *err)
{
  const uint32_t capacity = tl->turn + 16u;
  uint64_t *by_turn;
  uint32_t *turn_tokens;

  if (tl->turn < tl->turn_capacity)
    return KS_OK;
  by_turn = ks_mem_resize(tl->alloc, KS_MEM_HOST, tl->by_turn, capacity, sizeof(*by_turn));
  if (by_turn != NULL)
    tl->by_turn = by_turn;
  turn_tokens =
      ks_mem_resize(tl->alloc, KS_MEM_HOST, tl->turn_tokens, capacity, sizeof(*turn_tokens));
  if (turn_tokens != NULL)
    tl->turn_tokens = turn_tokens;
  if (by_turn == NULL || turn_tokens == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "not enough memory for the table of turns");
  tl->turn_capacity = capacity;
  return KS_OK;
}

ks_status
ks_timeline_reserve_counts(ks_timeline *tl, uint32_t n_run, ks_error *err)
{
  const uint64_t need = (uint64_t)tl->n_picture + n_run;
  const size_t capacity = (size_t)(need + need / 2 + 8);
  ks_picture_stats *pictures;

  if (n_run > 0 && need > tl->picture_capacity) {
    pictures = ks_mem_resize(tl->alloc, KS_MEM_HOST, tl->pictures, capacity, sizeof(*tl->pictures));
    if (pictures == NULL)
      return ks_fail(err, KS_ERR_NOMEM, "not enough memory for the table of pictures");
    tl->pictures = pictures;
    tl->picture_capacity = capacity < UINT32_MAX ? (uint32_t)capacity : UINT32_MAX;
  }
  return reserve_turn(tl, err);
}

static uint32_t
larger(uint32_t a, uint32_t b)
{
  return a > b ? a : b;
}

/* A visual token belongs to the newest picture or begins another; there is room for it. */
static void
count_visual(ks_timeline *tl, uint32_t seq)
{
  const ks_token_info *token = &tl->tokens[seq];
  const uint32_t row = token->patch_row & ~KS_PATCH_OVERVIEW, col = token->patch_col;
  ks_picture_stats *p = tl->n_picture > 0 ? &tl->pictures[tl->n_picture - 1] : NULL;

  if (p == NULL || p->turn != token->turn || p->attachment != token->attachment) {
    assert(tl->n_picture < tl->picture_capacity);
    p = &tl->pictures[tl->n_picture++];
    *p = (ks_picture_stats){.turn = token->turn, .attachment = token->attachment, .begin = seq};
  }
  p->end = seq + 1;
  p->n_tok++;
  p->n_entry += tl->n_stream;
  if (token->patch_row & KS_PATCH_OVERVIEW) {
    p->overview_rows = larger(p->overview_rows, row + 1);
    p->overview_cols = larger(p->overview_cols, col + 1);
  } else {
    p->grid_rows = larger(p->grid_rows, row + 1);
    p->grid_cols = larger(p->grid_cols, col + 1);
  }
}

void
ks_timeline_count_new(ks_timeline *tl, uint32_t n)
{
  const uint64_t n_entry = ks_kv_table_get_n_entries(tl->table);
  const uint64_t n_page = ks_kv_table_get_n_pages(tl->table);

  tl->n_entries_peak = n_entry > tl->n_entries_peak ? n_entry : tl->n_entries_peak;
  tl->n_pages_peak = n_page > tl->n_pages_peak ? n_page : tl->n_pages_peak;
  for (uint32_t i = tl->seen - n; i < tl->seen; i++) {
    const ks_token_info *token = &tl->tokens[i];

    if (token->turn >= tl->n_turn)
      tl->n_turn = token->turn + 1u;
    tl->by_turn[token->turn] += tl->n_stream;
    tl->turn_tokens[token->turn]++;
    tl->by_modality[token->modality] += tl->n_stream;
    if (token->modality == KS_MODALITY_IMAGE)
      count_visual(tl, i);
  }
}

/* Positions begin .. of one stream into tl->pos; *out_n of them. */
static ks_status
read_block(const ks_timeline *tl, uint32_t stream, uint32_t begin, uint32_t *out_n, ks_error *err)
{
  const ks_kv_view view = ks_kv_table_get_view(tl->table);
  const ks_backend *be = ks_kv_pool_get_backend(tl->params.pool);
  const uint32_t left = view.streams[stream].n_entry - begin;
  const uint32_t n = left < KS_POS_BLOCK ? left : KS_POS_BLOCK;

  *out_n = n;
  return be->t->kv_read(be->dev, &view, stream, begin, begin + n, NULL, NULL, NULL, tl->pos, NULL,
                        err);
}

/* Counts one live entry; picture is the one before it, or the first. */
static ks_picture_stats *
count_entry(ks_timeline *tl, uint32_t pos, ks_picture_stats *picture)
{
  const ks_token_info *token = &tl->tokens[pos];

  tl->by_turn[token->turn]++;
  tl->by_modality[token->modality]++;
  if (token->modality == KS_MODALITY_IMAGE) {
    while (picture->end <= pos)
      picture++;
    picture->n_entry++;
  }
  return picture;
}

ks_status
ks_timeline_recount(ks_timeline *tl, ks_error *err)
{
  const ks_kv_stream *streams = ks_kv_table_get_view(tl->table).streams;

  memset(tl->by_modality, 0, sizeof(tl->by_modality));
  if (tl->turn_capacity > 0)
    memset(tl->by_turn, 0, tl->turn_capacity * sizeof(*tl->by_turn));
  for (uint32_t i = 0; i < tl->n_picture; i++)
    tl->pictures[i].n_entry = 0;
  for (uint32_t s = 0; s < tl->n_stream; s++) {
    ks_picture_stats *picture = tl->pictures; /* positions rise, and so do pictures */

    for (uint32_t e = 0, n; e < streams[s].n_entry; e += n) {
      const ks_status st = read_block(tl, s, e, &n, err);

      if (st != KS_OK)
        return st;
      for (uint32_t i = 0; i < n; i++)
        picture = count_entry(tl, tl->pos[i], picture);
    }
  }
  return KS_OK;
}

/* Pictures that the tokens make up, as count_visual tells them apart. */
static uint32_t
count_pictures(const ks_timeline *tl)
{
  const ks_token_info *last = NULL;
  uint32_t n = 0;

  for (uint32_t i = 0; i < tl->seen; i++) {
    const ks_token_info *token = &tl->tokens[i];

    if (token->modality != KS_MODALITY_IMAGE)
      continue;
    n += last == NULL || last->turn != token->turn || last->attachment != token->attachment;
    last = token;
  }
  return n;
}

ks_status
ks_timeline_count_anew(ks_timeline *tl, ks_error *err)
{
  const uint16_t turn = tl->turn;
  ks_status st;

  for (uint32_t i = 0; i < tl->seen; i++)
    tl->turn = tl->tokens[i].turn > tl->turn ? tl->tokens[i].turn : tl->turn;
  tl->n_turn = tl->n_picture = 0;
  st = ks_timeline_reserve_counts(tl, count_pictures(tl), err);
  tl->turn = turn;
  if (st != KS_OK)
    return st;
  memset(tl->turn_tokens, 0, tl->turn_capacity * sizeof(*tl->turn_tokens));
  ks_timeline_count_new(tl, tl->seen);
  return ks_timeline_recount(tl, err);
}

const ks_picture_stats *
ks_timeline_find_picture(const ks_timeline *tl, uint16_t turn, uint8_t attachment)
{
  for (uint32_t i = 0; i < tl->n_picture; i++)
    if (tl->pictures[i].turn == turn && tl->pictures[i].attachment == attachment)
      return &tl->pictures[i];
  return NULL;
}

ks_status
ks_timeline_read_survivors(const ks_timeline *tl, uint32_t begin, uint32_t end, ks_survivor_fn fn,
                           void *user, ks_error *err)
{
  const ks_kv_stream *streams = ks_kv_table_get_view(tl->table).streams;
  const uint32_t n_head = tl->shape->n_kv_head;

  for (uint32_t s = 0; s < tl->n_stream; s++)
    for (uint32_t e = 0, n; e < streams[s].n_entry; e += n) {
      const ks_status st = read_block(tl, s, e, &n, err);

      if (st != KS_OK)
        return st;
      for (uint32_t i = 0; i < n; i++)
        if (tl->pos[i] >= begin && tl->pos[i] < end)
          fn(user, s / n_head, s % n_head, tl->pos[i], &tl->tokens[tl->pos[i]]);
    }
  return KS_OK;
}

void
ks_timeline_get_stats(const ks_timeline *tl, ks_kv_stats *out)
{
  const ks_kv_pool *pool = tl->params.pool;
  const ks_kv_layout *layout = ks_kv_pool_get_layout(pool);
  const ks_kv_stream *streams = ks_kv_table_get_view(tl->table).streams;

  for (uint32_t s = 0; s < tl->n_stream; s++)
    tl->by_stream[s] = streams[s].n_entry;
  *out =
      (ks_kv_stats){.weight_bytes = ks_model_get_weight_bytes(tl->params.model),
                    .repacked_bytes = ks_model_get_repacked_bytes(tl->params.model),
                    .gate_bytes = tl->params.gate != NULL ? ks_gate_get_bytes(tl->params.gate) : 0,
                    .kv_used_bytes = (uint64_t)ks_kv_pool_get_used_pages(pool) * layout->page_bytes,
                    .kv_budget_bytes = ks_kv_pool_get_budget_bytes(pool),
                    .kv_committed_bytes = ks_kv_pool_get_committed_bytes(pool),
                    .scratch_bytes = ks_alloc_get_bytes(tl->alloc, KS_MEM_SCRATCH),
                    .host_bytes = ks_alloc_get_bytes(tl->alloc, KS_MEM_HOST),
                    .n_entries = ks_kv_table_get_n_entries(tl->table),
                    .n_keep = ks_timeline_get_n_keep(tl),
                    .n_evicted = tl->n_evicted,
                    .n_eviction_runs = tl->n_eviction_runs,
                    .n_entries_peak = tl->n_entries_peak,
                    .kv_peak_bytes = tl->n_pages_peak * layout->page_bytes,
                    .n_pages_used = ks_kv_pool_get_used_pages(pool),
                    .n_pages_budget = ks_kv_pool_get_budget_pages(pool),
                    .page_entries = layout->page_entries,
                    .seen = tl->seen,
                    .n_position = (uint32_t)tl->rope_next,
                    .n_remap = tl->n_remap,
                    .n_layer = layout->n_layer,
                    .n_kv_head = layout->n_kv_head,
                    .n_turn = tl->n_turn,
                    .by_stream = tl->by_stream,
                    .by_turn = tl->by_turn,
                    .turn_tokens = tl->turn_tokens,
                    .pictures = tl->pictures,
                    .n_picture = tl->n_picture};
  memcpy(out->by_modality, tl->by_modality, sizeof(out->by_modality));
}

/* Positions of every stream rise and belong to tokens that were processed. */
static bool
check_positions(const ks_timeline *tl)
{
  const ks_kv_stream *streams = ks_kv_table_get_view(tl->table).streams;

  for (uint32_t s = 0; s < tl->n_stream; s++) {
    int64_t before = -1;

    for (uint32_t e = 0, n; e < streams[s].n_entry; e += n) {
      if (read_block(tl, s, e, &n, NULL) != KS_OK)
        return false;
      for (uint32_t i = 0; i < n; i++) {
        if ((int64_t)tl->pos[i] <= before || tl->pos[i] >= tl->seen)
          return false;
        before = tl->pos[i];
      }
    }
  }
  return true;
}

bool
ks_timeline_check(const ks_timeline *tl)
{
  const uint64_t n_entry = ks_kv_table_get_n_entries(tl->table);
  uint64_t by_turn = 0, by_modality = 0, by_picture = 0, n_token = 0;

  for (uint32_t t = 0; t < tl->n_turn; t++) {
    by_turn += tl->by_turn[t];
    n_token += tl->turn_tokens[t];
  }
  for (uint32_t m = 0; m < KS_N_MODALITY; m++)
    by_modality += tl->by_modality[m];
  for (uint32_t i = 0; i < tl->n_picture; i++)
    by_picture += tl->pictures[i].n_entry;
  return by_picture == tl->by_modality[KS_MODALITY_IMAGE] && ks_kv_pool_check(tl->params.pool) &&
         by_turn == n_entry && by_modality == n_entry && n_token == tl->seen && check_positions(tl);
}
