/* timeline-remap.c - a timeline longer than the model was trained for: positions are moved together
 * so that all of them stay inside what the model knows.
 * One map per timeline, not falling: the newest quarter of the trained length keeps its distances
 * exactly; before it gaps that evictions left shrink first, to a common largest one, and only when
 * that is not enough neighbours share positions in proportion. A view of a picture moves as a rigid
 * block. It goes down to half the trained length at once, so that it is rare; stored keys are
 * rotated in place. Sequence indices, and with them masks and ages, do not change.
 * Source: docs/method.md, section 5. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/timeline-internal.h"

#include <string.h>

/* The map in the making. */
typedef struct remap {
  ks_timeline *tl;
  uint8_t *live;         /* bits [seen]: some stream has an entry of the token */
  int32_t *delta;        /* [seen] what is added to its positions, all three */
  bool rigid;            /* views are blocks */
  int32_t recent_from;   /* positions from here on keep their distances */
  int64_t room;          /* positions for what lies before, without the blocks' own */
  int64_t most_gap;      /* larger gaps become this */
  int64_t n_span, n_gap; /* positions inside blocks; between units, gaps cut to most_gap */
  int32_t recent_delta;
} remap;

/* Neighbouring tokens that move together. */
typedef struct unit {
  uint32_t begin, end; /* tokens */
  int32_t low, high;   /* positions */
  bool live;
} unit;

static bool
is_live(const remap *m, uint32_t i)
{
  return (m->live[i / 8] >> i % 8 & 1) != 0;
}

static void
mark_live(void *user, uint32_t layer, uint32_t head, uint32_t pos, const ks_token_info *token)
{
  uint8_t *live = user;

  (void)layer;
  (void)head;
  (void)token;
  live[pos / 8] |= (uint8_t)(1u << pos % 8);
}

static int32_t
lowest(const ks_token_info *t)
{
  const int32_t side = t->rope_h < t->rope_w ? t->rope_h : t->rope_w;

  return t->rope_t < side ? t->rope_t : side;
}

static int32_t
highest(const ks_token_info *t)
{
  const int32_t side = t->rope_h > t->rope_w ? t->rope_h : t->rope_w;

  return t->rope_t > side ? t->rope_t : side;
}

/* The unit that begins with token i. */
static unit
find_unit(const remap *m, uint32_t i)
{
  const ks_token_info *first = &m->tl->tokens[i];
  unit u = {.begin = i, .end = i + 1, .live = is_live(m, i)};

  u.low = lowest(first);
  u.high = highest(first);
  if (!m->rigid || first->modality != KS_MODALITY_IMAGE)
    return u;
  for (; u.end < m->tl->seen; u.end++) {
    const ks_token_info *t = &m->tl->tokens[u.end];

    if (t->modality != KS_MODALITY_IMAGE || t->turn != first->turn ||
        t->attachment != first->attachment)
      break;
    u.low = lowest(t) < u.low ? lowest(t) : u.low;
    u.high = highest(t) > u.high ? highest(t) : u.high;
    u.live = u.live || is_live(m, u.end);
  }
  return u;
}

/* Adds up spans and cut gaps of what lies before the recent tokens. */
static void
measure(remap *m)
{
  int32_t before = 0;
  int64_t gap;
  unit u;

  m->n_span = m->n_gap = 0;
  for (uint32_t i = 0; i < m->tl->seen; i = u.end) {
    u = find_unit(m, i);
    if (u.low >= m->recent_from)
      break;
    if (!u.live)
      continue;
    gap = (int64_t)u.low - before;
    m->n_gap += gap < m->most_gap ? gap : m->most_gap;
    m->n_span += (int64_t)u.high - u.low;
    before = u.high;
  }
  gap = (int64_t)m->recent_from - before;
  if (gap > 0)
    m->n_gap += gap < m->most_gap ? gap : m->most_gap;
}

/* A block that reaches into the recent tokens belongs to them. */
static void
find_recent(remap *m, int32_t n_recent)
{
  unit u;

  m->recent_from = m->tl->rope_next - n_recent;
  for (uint32_t i = 0; i < m->tl->seen; i = u.end) {
    u = find_unit(m, i);
    if (u.high < m->recent_from)
      continue;
    m->recent_from = u.low < m->recent_from ? u.low : m->recent_from;
    break;
  }
}

/* The largest common gap under which everything fits; 1 is the least. */
static void
choose_gap(remap *m)
{
  int64_t low = 1, high = m->tl->rope_next;

  while (low < high) {
    m->most_gap = low + (high - low + 1) / 2;
    measure(m);
    if (m->n_gap + m->n_span <= m->room)
      low = m->most_gap;
    else
      high = m->most_gap - 1;
  }
  m->most_gap = low;
  measure(m);
}

/* False when the blocks alone need more room than there is. */
static bool
plan(remap *m, int32_t target)
{
  const int32_t window = (int32_t)m->tl->shape->window;

  find_recent(m, target / 2 > window ? target / 2 : window);
  m->room = (int64_t)target - (m->tl->rope_next - m->recent_from);
  choose_gap(m);
  return m->room > m->n_span;
}

/* Where a unit goes that has so many cut gaps and block positions before it. */
static int32_t
place(const remap *m, int64_t n_gap, int64_t n_span)
{
  const int64_t room = m->room - m->n_span;

  return (int32_t)((m->n_gap <= room ? n_gap : n_gap * room / m->n_gap) + n_span);
}

/* Deltas of all tokens.  What no stream remembers stands with the living token before it. */
static void
fill_deltas(remap *m)
{
  int64_t n_gap = 0, n_span = 0, gap;
  int32_t before = 0, new_before = 0;
  uint32_t i = 0;
  unit u;

  for (; i < m->tl->seen; i = u.end) {
    int32_t delta;

    u = find_unit(m, i);
    if (u.low >= m->recent_from)
      break;
    delta = new_before - u.low;
    if (u.live) {
      gap = (int64_t)u.low - before;
      n_gap += gap < m->most_gap ? gap : m->most_gap;
      delta = place(m, n_gap, n_span) - u.low;
      n_span += (int64_t)u.high - u.low;
      before = u.high;
      new_before = u.high + delta;
    }
    for (uint32_t t = u.begin; t < u.end; t++)
      m->delta[t] = delta;
  }
  gap = (int64_t)m->recent_from - before;
  if (gap > 0)
    n_gap += gap < m->most_gap ? gap : m->most_gap;
  m->recent_delta = place(m, n_gap, n_span) - m->recent_from;
  for (; i < m->tl->seen; i++)
    m->delta[i] = m->recent_delta;
}

/* Deltas of a stream's entries into turn [3, n_entry]. */
static ks_status
fill_turn(const remap *m, const ks_kv_view *view, uint32_t stream, int32_t *turn, ks_error *err)
{
  const ks_timeline *tl = m->tl;
  const ks_backend *be = ks_kv_pool_get_backend(tl->params.pool);
  const uint32_t n_entry = view->streams[stream].n_entry;

  for (uint32_t e = 0, n; e < n_entry; e += n) {
    ks_status st;

    n = n_entry - e < KS_POS_BLOCK ? n_entry - e : KS_POS_BLOCK;
    st = be->t->kv_read(be->dev, view, stream, e, e + n, NULL, NULL, NULL, tl->pos, NULL, err);
    if (st != KS_OK)
      return st;
    for (uint32_t i = 0; i < n; i++)
      for (size_t axis = 0; axis < 3; axis++)
        turn[axis * n_entry + e + i] = m->delta[tl->pos[i]];
  }
  return KS_OK;
}

/* Only the first stream can fail without the device being lost: it takes the scratch for all. */
static ks_status
rotate_keys(const remap *m, ks_error *err)
{
  const ks_timeline *tl = m->tl;
  const ks_kv_view view = ks_kv_table_get_view(tl->table);
  const ks_backend *be = ks_kv_pool_get_backend(tl->params.pool);
  uint32_t most = 0;
  int32_t *turn;
  ks_status st = KS_OK;

  for (uint32_t s = 0; s < tl->n_stream; s++)
    most = view.streams[s].n_entry > most ? view.streams[s].n_entry : most;
  turn = ks_mem_new(tl->alloc, KS_MEM_HOST, (size_t)most * 3, sizeof(*turn));
  if (turn == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "not enough memory to move positions");
  for (uint32_t s = 0; s < tl->n_stream && st == KS_OK; s++) {
    const uint32_t layer = s / tl->shape->n_kv_head;
    const ks_rope_shape *shape = ks_model_get_layer(tl->params.model, layer)->is_local
                                     ? &tl->shape->rope_local
                                     : &tl->shape->rope;
    const ks_op_rope rope = {.head_dim = tl->shape->k_dim,
                             .n_rot = shape->n_rot,
                             .inv_freq = shape->inv_freq,
                             .axis = shape->axis,
                             .mscale = 1.0F,
                             .neox = shape->neox};

    st = fill_turn(m, &view, s, turn, err);
    if (st == KS_OK)
      st = be->t->kv_rotate(be->dev, &view, s, &rope, turn, err);
  }
  ks_mem_free(turn);
  return st;
}

static int32_t
move_position(int32_t pos, int32_t delta, int32_t end)
{
  const int32_t moved = pos + delta;

  return moved < 0 ? 0 : moved < end ? moved : end - 1;
}

/* Forgotten pictures are not blocks any more: what would stand outside is drawn in. */
static void
move_tokens(const remap *m)
{
  ks_timeline *tl = m->tl;

  tl->rope_next += m->recent_delta;
  ks_evict_forget_queries(tl->evict); /* they were turned to the former positions */
  for (uint32_t i = 0; i < tl->seen; i++) {
    ks_token_info *t = &tl->tokens[i];

    t->rope_t = move_position(t->rope_t, m->delta[i], tl->rope_next);
    t->rope_h = move_position(t->rope_h, m->delta[i], tl->rope_next);
    t->rope_w = move_position(t->rope_w, m->delta[i], tl->rope_next);
  }
  tl->n_remap++;
}

/* live and delta are there.  A map that gains little is not worth its rotations: later. */
static ks_status
run(remap *m, ks_error *err)
{
  ks_timeline *tl = m->tl;
  const int32_t max_pos = (int32_t)tl->params.max_pos;
  ks_status st = ks_timeline_read_survivors(tl, 0, tl->seen, mark_live, m->live, err);

  if (st != KS_OK)
    return st;
  m->rigid = true;
  if (!plan(m, max_pos / 2) && !tl->has_axes) {
    m->rigid = false;
    (void)plan(m, max_pos / 2);
  }
  if (m->room > m->n_span)
    fill_deltas(m);
  if (m->recent_delta >= 0 || m->recent_delta > -max_pos / 8) {
    tl->remap_from = tl->rope_next + max_pos / 8;
    return KS_OK;
  }
  st = rotate_keys(m, err);
  if (st == KS_OK)
    move_tokens(m);
  return st;
}

static ks_status
move_together(ks_timeline *tl, ks_error *err)
{
  remap m = {.tl = tl};
  ks_status st;

  m.live = ks_mem_new(tl->alloc, KS_MEM_HOST, (size_t)tl->seen / 8 + 1, 1);
  m.delta = ks_mem_new(tl->alloc, KS_MEM_HOST, tl->seen, sizeof(*m.delta));
  if (m.live == NULL || m.delta == NULL)
    st = ks_fail(err, KS_ERR_NOMEM, "not enough memory to move positions");
  else
    st = run(&m, err);
  ks_mem_free(m.live);
  ks_mem_free(m.delta);
  return st;
}

ks_status
ks_timeline_make_positions(ks_timeline *tl, const ks_eval_call *call, uint32_t begin, uint32_t n,
                           ks_error *err)
{
  int64_t need = n;

  if (tl->params.max_pos == 0 || tl->seen == 0)
    return KS_OK;
  for (uint32_t i = 0; tl->has_axes && i < call->n_run; i++) {
    const ks_visual_run *run = &call->runs[i];

    if (run->first < begin + n && run->first + run->n_tok > begin)
      need += ks_timeline_count_positions(run);
  }
  if (tl->rope_next + need <= (int64_t)tl->params.max_pos || tl->rope_next < tl->remap_from)
    return KS_OK;
  return move_together(tl, err);
}
