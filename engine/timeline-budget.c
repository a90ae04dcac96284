/* timeline-budget.c - how much a timeline may hold: room, budget changes, policy, pins, evictions.
 * The rule K = P*N - S*(C+P-1) (kv-pool.h) makes every later pass fit; here N is what the budget
 * leaves to this timeline, its own pages and the free ones.
 * Source: docs/method.md, sections 4 and 5. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/budget.h"
#include "engine/timeline-internal.h"

#include <assert.h>
#include <string.h>

static ks_policy
policy_of(const ks_timeline *tl)
{
  return ks_evict_get_params(tl->evict)->policy;
}

bool
ks_timeline_is_faithful(const ks_timeline *tl)
{
  return ks_evict_get_params(tl->evict)->mode == KS_EVICT_FAITHFUL &&
         !ks_policy_never_evicts(policy_of(tl));
}

static uint64_t
page_bytes(const ks_timeline *tl)
{
  return ks_kv_pool_get_layout(tl->params.pool)->page_bytes;
}

/* Pages that other timelines hold. */
static uint64_t
foreign_pages(const ks_timeline *tl)
{
  return ks_kv_pool_get_used_pages(tl->params.pool) - ks_kv_table_get_n_pages(tl->table);
}

/* New entries a stream that a pass may meet above K: a chunk; without forced evictions the decode
 * buffer may stand on top of K when the chunk begins. */
static uint32_t
pass_room(const ks_timeline *tl, uint32_t chunk)
{
  if (!tl->params.force_evict)
    return chunk + tl->params.buffer - 1;
  return chunk > tl->params.buffer ? chunk : tl->params.buffer;
}

/* New entries a stream that decoding lets gather on top of K.  A pass has room for a chunk. */
static uint64_t
count_slack(const ks_timeline *tl, const ks_room *room)
{
  const ks_timeline_params *p = &tl->params;
  uint64_t slack = 0;

  if (p->force_evict && p->buffer_part > 0)
    slack = room->n_keep / tl->n_stream / p->buffer_part;
  slack = slack < room->chunk ? slack : room->chunk;
  return slack > p->buffer ? slack : p->buffer;
}

/* n_tok: of the next pass; chunks are cut without regard to it. */
static ks_room
room_in(const ks_timeline *tl, uint64_t n_page, uint32_t n_tok)
{
  const ks_timeline_params *p = &tl->params;
  const ks_kv_layout *layout = ks_kv_pool_get_layout(p->pool);
  ks_room room = {.n_page = n_page, .chunk = p->chunk, .trigger = UINT64_MAX};

  if (ks_policy_never_evicts(policy_of(tl))) {
    room.n_keep = n_page / tl->n_stream * layout->page_entries * tl->n_stream;
    if (p->n_keep > 0 && p->n_keep < room.n_keep)
      room.n_keep = p->n_keep;
    return room;
  }
  if (p->force_evict && !ks_timeline_is_faithful(tl))
    room.chunk = ks_budget_pick_chunk(layout, n_page, p->n_keep, p->chunk, p->buffer);
  if (room.chunk < n_tok)
    room.chunk = n_tok;
  room.n_keep = ks_kv_entries_for_pages(layout, n_page, pass_room(tl, room.chunk));
  if (p->n_keep > 0 && p->n_keep < room.n_keep)
    room.n_keep = p->n_keep;
  room.trigger = room.n_keep + tl->n_stream * count_slack(tl, &room);
  return room;
}

ks_room
ks_timeline_find_room_for(const ks_timeline *tl, uint32_t n_tok)
{
  return room_in(tl, ks_kv_pool_get_budget_pages(tl->params.pool) - foreign_pages(tl), n_tok);
}

ks_room
ks_timeline_find_room(const ks_timeline *tl)
{
  return ks_timeline_find_room_for(tl, 0);
}

uint64_t
ks_timeline_get_n_keep(const ks_timeline *tl)
{
  return ks_timeline_find_room(tl).n_keep;
}

uint32_t
ks_timeline_get_chunk(const ks_timeline *tl)
{
  return ks_timeline_find_room(tl).chunk;
}

/* K must hold one entry a stream and what is pinned, the future of a pinned range included. */
static ks_status
least_n_keep(ks_timeline *tl, const ks_pos_range *pins, uint32_t n_pin, uint64_t *out,
             ks_error *err)
{
  uint64_t need = 0;
  ks_status st = KS_OK;

  if (n_pin > 0)
    st = ks_evict_count_pinned(tl->evict, tl->table, pins, n_pin, &need, err);
  if (st != KS_OK)
    return st;
  for (uint32_t i = 0; i < n_pin; i++) {
    const uint32_t begin = pins[i].begin > tl->seen ? pins[i].begin : tl->seen;

    if (pins[i].end > begin)
      need += (uint64_t)(pins[i].end - begin) * tl->n_stream;
  }
  *out = need > tl->n_stream ? need : tl->n_stream;
  return KS_OK;
}

/* Bytes of the smallest pool budget under which n_keep entries may stay before a pass of n_tok. */
static uint64_t
least_bytes_for(const ks_timeline *tl, uint64_t n_keep, uint32_t n_tok)
{
  const ks_timeline_params *p = &tl->params;
  const uint32_t chunk = p->force_evict ? p->buffer : p->chunk;

  return (ks_kv_pages_for_entries(ks_kv_pool_get_layout(p->pool), n_keep,
                                  pass_room(tl, n_tok > chunk ? n_tok : chunk)) +
          foreign_pages(tl)) *
         page_bytes(tl);
}

static uint64_t
least_bytes(const ks_timeline *tl, uint64_t n_keep)
{
  return least_bytes_for(tl, n_keep, 0);
}

/* A budget for sentences, up to the next whole unit: callers round what is typed down to that. */
static void
format_least(uint64_t n_bytes, char out[KS_BUDGET_TEXT_BYTES])
{
  ks_budget_format_bytes((n_bytes + KS_KV_UNIT_BYTES - 1) / KS_KV_UNIT_BYTES * KS_KV_UNIT_BYTES,
                         KS_BUDGET_UP, out);
}

/* n_keep in entries a stream, as users count them. */
static unsigned long long
count_each(const ks_timeline *tl, uint64_t n_keep)
{
  return (unsigned long long)((n_keep + tl->n_stream - 1) / tl->n_stream);
}

static ks_status
fail_kv(const ks_timeline *tl, uint64_t n_least, ks_error *err)
{
  const unsigned long long n_each = count_each(tl, n_least);
  char needed[KS_BUDGET_TEXT_BYTES];

  format_least(least_bytes(tl, n_least), needed);
  return ks_fail(err, KS_ERR_BUDGET,
                 "that is too little memory for keys and values%s; the smallest budget that works "
                 "is %s (%llu %s in each stream)",
                 n_least > tl->n_stream ? ", since some are pinned" : "", needed, n_each,
                 n_each == 1 ? "entry" : "entries");
}

static ks_status
fail_total(uint64_t total_bytes, uint64_t taken, uint64_t least, ks_error *err)
{
  char asked[KS_BUDGET_TEXT_BYTES], fixed[KS_BUDGET_TEXT_BYTES], needed[KS_BUDGET_TEXT_BYTES];

  ks_budget_format_bytes(total_bytes, KS_BUDGET_DOWN, asked);
  ks_budget_format_bytes(taken, KS_BUDGET_UP, fixed);
  ks_budget_format_bytes(least, KS_BUDGET_UP, needed);
  return ks_fail(err, KS_ERR_BUDGET,
                 "a memory target of %s is too small: %s are taken before anything is remembered; "
                 "the smallest target that works is %s",
                 asked, fixed, needed);
}

/* The most tokens that fit behind the present ones. */
static uint32_t
count_fitting(const ks_timeline *tl, const ks_room *room, uint32_t n)
{
  const uint64_t n_own = ks_kv_table_get_n_pages(tl->table);
  uint32_t low = 0, high = n;

  while (low < high) {
    const uint32_t mid = low + (high - low + 1) / 2;

    if (ks_kv_table_count_needed(tl->table, mid) + n_own <= room->n_page)
      low = mid;
    else
      high = mid - 1;
  }
  return low;
}

/* Policy FULL: n tokens fit as a whole or none is processed.  With a sliding window entries die on
 * the way, so only the next pass can be judged. */
static ks_status
check_full(ks_timeline *tl, const ks_room *room, uint32_t n, ks_error *err)
{
  const uint64_t n_now = ks_kv_table_get_n_entries(tl->table);
  const uint64_t n_own = ks_kv_table_get_n_pages(tl->table);
  uint32_t fits;
  uint64_t need;

  if (tl->shape->window > 0 && n > room->chunk)
    n = room->chunk;
  fits = count_fitting(tl, room, n);
  if (tl->params.n_keep > 0) {
    const uint64_t left = tl->params.n_keep > n_now ? tl->params.n_keep - n_now : 0;

    if (left / tl->n_stream < fits)
      fits = (uint32_t)(left / tl->n_stream);
  }
  if (fits >= n)
    return KS_OK;
  need = (ks_kv_table_count_needed(tl->table, n) + n_own + foreign_pages(tl)) * page_bytes(tl);
  return ks_fail(
      err, KS_ERR_BUDGET,
      "the policy \"full\" forgets nothing: %u more tokens fit, %u were given; raise the "
      "memory for keys and values to %.1f MiB or choose another policy",
      fits, n, (double)((need * 10 + ((uint64_t)1 << 20) - 1) >> 20) / 10.0);
}

/* A prompt that is read as a whole: all of it fits before anything is forgotten. */
static ks_status
check_whole(const ks_timeline *tl, const ks_room *room, uint32_t n, ks_error *err)
{
  const uint64_t n_own = ks_kv_table_get_n_pages(tl->table);
  const uint64_t n_need = ks_kv_table_count_needed(tl->table, n) + n_own;

  if (n_need <= room->n_page)
    return KS_OK;
  return ks_fail(
      err, KS_ERR_BUDGET,
      "the mode \"faithful\" reads a prompt as a whole before it forgets: %u tokens need "
      "%.1f MiB for keys and values; give more memory or use the mode \"chunked\"",
      n, (double)((n_need + foreign_pages(tl)) * page_bytes(tl)) / 1048576.0);
}

ks_status
ks_timeline_check_room(ks_timeline *tl, const ks_room *room, uint32_t n,
                       const ks_timeline_hooks *hooks, ks_error *err)
{
  if (ks_policy_never_evicts(policy_of(tl))) {
    /* Dead entries of window layers go first; that forgets nothing. */
    if (tl->shape->window > 0 && check_full(tl, room, n, NULL) != KS_OK) {
      const ks_status st = ks_timeline_evict_to(tl, UINT64_MAX, hooks, err);

      if (st != KS_OK)
        return st;
    }
    return check_full(tl, room, n, err);
  }
  if (ks_timeline_is_faithful(tl) && n > 1)
    return check_whole(tl, room, n, err);
  return ks_timeline_check_pass(tl, 0, err);
}

ks_status
ks_timeline_check_pass(const ks_timeline *tl, uint32_t n_tok, ks_error *err)
{
  char needed[KS_BUDGET_TEXT_BYTES];

  if (ks_policy_never_evicts(policy_of(tl)) ||
      ks_timeline_find_room_for(tl, n_tok).n_keep >= tl->n_stream)
    return KS_OK;
  format_least(least_bytes_for(tl, tl->n_stream, n_tok), needed);
  return ks_fail(err, KS_ERR_BUDGET,
                 "the memory left for keys and values is too small; the smallest budget that works "
                 "is %s",
                 needed);
}

uint32_t
ks_timeline_first_above(const ks_timeline *tl, uint32_t end, int64_t limit)
{
  uint32_t low = 0, high = end;

  while (low < high) {
    const uint32_t mid = low + (high - low) / 2;

    if (tl->tokens[mid].rope_t > limit)
      high = mid;
    else
      low = mid + 1;
  }
  return low;
}

/* First sequence index that a later query can still see, layer by layer. */
static void
fill_live_from(ks_timeline *tl)
{
  const int64_t window = tl->shape->window;
  const uint32_t first =
      window > 0 ? ks_timeline_first_above(tl, tl->seen, (int64_t)tl->rope_next - window) : 0;

  for (uint32_t l = 0; l < tl->shape->n_layer; l++)
    tl->live_from[l] = ks_model_get_layer(tl->params.model, l)->is_local ? first : 0;
}

ks_status
ks_timeline_evict_to(ks_timeline *tl, uint64_t n_keep, const ks_timeline_hooks *hooks,
                     ks_error *err)
{
  ks_evict_event event;
  ks_status st;

  fill_live_from(tl);
  st = ks_evict_run(tl->evict, tl->table, tl->seen, n_keep, tl->live_from, tl->pins, tl->n_pin,
                    &event, err);
  if (st == KS_OK)
    tl->since_evict = 0;
  if (st != KS_OK || event.n_after == event.n_before)
    return st;
  tl->n_evicted += event.n_before - event.n_after;
  tl->n_eviction_runs++;
  tl->least_keep = n_keep < tl->least_keep ? n_keep : tl->least_keep;
  st = ks_timeline_recount(tl, err);
  if (st == KS_OK && hooks != NULL && hooks->evicted != NULL)
    hooks->evicted(hooks->user, &event, tl->table);
  return st;
}

ks_status
ks_timeline_evict(ks_timeline *tl, const ks_timeline_hooks *hooks, ks_error *err)
{
  const ks_room room = ks_timeline_find_room(tl);

  return ks_timeline_evict_to(tl, room.n_keep, hooks, err);
}

/* Evicts until a pool of n_page pages would hold everything; too small a pool is refused before. */
static ks_status
shrink_to(ks_timeline *tl, uint64_t n_page, ks_error *err)
{
  const uint64_t n_foreign = foreign_pages(tl);
  char needed[KS_BUDGET_TEXT_BYTES];
  uint64_t n_least = 0;
  ks_room room;
  ks_status st;

  if (ks_policy_never_evicts(policy_of(tl))) {
    st = ks_timeline_evict_to(tl, UINT64_MAX, NULL, err);
    if (st != KS_OK || n_page >= ks_kv_pool_get_used_pages(tl->params.pool))
      return st;
    format_least(ks_kv_pool_get_used_pages(tl->params.pool) * page_bytes(tl), needed);
    return ks_fail(err, KS_ERR_BUDGET,
                   "the policy \"full\" forgets nothing: what is remembered takes %s; that is the "
                   "smallest budget that works",
                   needed);
  }
  st = least_n_keep(tl, tl->pins, tl->n_pin, &n_least, err);
  if (st != KS_OK)
    return st;
  room = room_in(tl, n_page > n_foreign ? n_page - n_foreign : 0, 0);
  if (room.n_keep < n_least)
    return fail_kv(tl, n_least, err);
  return ks_timeline_evict_to(tl, room.n_keep, NULL, err);
}

ks_status
ks_timeline_set_budget(ks_timeline *tl, uint64_t budget_bytes, ks_error *err)
{
  ks_kv_pool *pool = tl->params.pool;
  const ks_kv_layout *layout = ks_kv_pool_get_layout(pool);
  ks_status st = KS_OK;

  if (budget_bytes < ks_kv_pool_get_budget_bytes(pool))
    st = shrink_to(tl, budget_bytes / page_bytes(tl), err);
  if (st == KS_OK)
    st = ks_kv_pool_set_budget(pool, budget_bytes, err);
  if (st == KS_OK && ks_evict_get_scratch_bytes(tl->evict) >
                         ks_budget_get_rank_bytes(layout, ks_kv_pool_get_budget_pages(pool)))
    ks_evict_release(tl->evict);
  return st;
}

/* Everything on the device apart from pages and what ranks their entries. */
static uint64_t
fixed_bytes(const ks_timeline *tl)
{
  const uint64_t gate_bytes = tl->params.gate != NULL ? ks_gate_get_bytes(tl->params.gate) : 0;

  return ks_model_get_weight_bytes(tl->params.model) + gate_bytes +
         ks_alloc_get_bytes(tl->alloc, KS_MEM_SCRATCH) - ks_evict_get_scratch_bytes(tl->evict) +
         KS_BUDGET_BLOCK_BYTES;
}

uint64_t
ks_timeline_get_least_total_budget(ks_timeline *tl)
{
  uint64_t n_least = 0;

  /* What is pinned cannot be counted: one entry a stream is what is left to say. */
  if (least_n_keep(tl, tl->pins, tl->n_pin, &n_least, NULL) != KS_OK)
    n_least = tl->n_stream;
  return fixed_bytes(tl) + ks_budget_get_bytes_for_kv(ks_kv_pool_get_layout(tl->params.pool),
                                                      least_bytes(tl, n_least));
}

ks_status
ks_timeline_set_total_budget(ks_timeline *tl, uint64_t total_bytes, ks_error *err)
{
  const ks_kv_layout *layout = ks_kv_pool_get_layout(tl->params.pool);
  uint64_t fixed, kv_bytes, n_least = 0, least;
  ks_status st = least_n_keep(tl, tl->pins, tl->n_pin, &n_least, err);

  if (st != KS_OK)
    return st;
  fixed = fixed_bytes(tl);
  least = least_bytes(tl, n_least);
  kv_bytes = total_bytes > fixed ? ks_budget_get_kv_bytes(layout, total_bytes - fixed) : 0;
  if (kv_bytes < least)
    return fail_total(total_bytes, fixed, fixed + ks_budget_get_bytes_for_kv(layout, least), err);
  return ks_timeline_set_budget(tl, kv_bytes, err);
}

ks_status
ks_timeline_set_n_keep(ks_timeline *tl, uint64_t n_keep, ks_error *err)
{
  uint64_t n_least = 0;
  ks_status st = KS_OK;

  if (n_keep > 0)
    st = least_n_keep(tl, tl->pins, tl->n_pin, &n_least, err);
  if (st != KS_OK)
    return st;
  if (n_keep < n_least)
    return ks_fail(err, KS_ERR_BUDGET,
                   "%llu entries in each stream are too few%s; the smallest number is %llu",
                   (unsigned long long)(n_keep / tl->n_stream),
                   n_least > tl->n_stream ? " for what is pinned" : "", count_each(tl, n_least));
  tl->params.n_keep = n_keep;
  if (!tl->params.force_evict)
    return KS_OK;
  st = ks_timeline_evict(tl, NULL, err);
  /* A much smaller K leaves most of what is committed unused. */
  if (ks_kv_pool_get_used_pages(tl->params.pool) * page_bytes(tl) <
      ks_kv_pool_get_committed_bytes(tl->params.pool) / 2)
    ks_kv_pool_trim(tl->params.pool);
  return st;
}

ks_policy
ks_timeline_pick_policy(const ks_gate *gate)
{
  if (gate == NULL)
    return KS_POLICY_KEYDIFF_GLOBAL;
  return ks_gate_is_locret(gate) ? KS_POLICY_LOCRET : KS_POLICY_DBTRIMKV;
}

ks_status
ks_timeline_check_policy(ks_policy policy, const ks_gate *gate, ks_error *err)
{
  const char *name = ks_policy_get_name(policy);

  if (!ks_policy_needs_gate(policy))
    return KS_OK;
  if (gate == NULL)
    return ks_fail(err, KS_ERR_ARG,
                   "the policy \"%s\" needs %s for this model; give one or choose another policy",
                   name, policy == KS_POLICY_LOCRET ? "LocRet's heads" : "a retention gate");
  if (ks_gate_is_locret(gate) != (policy == KS_POLICY_LOCRET))
    return ks_fail(err, KS_ERR_ARG,
                   policy == KS_POLICY_LOCRET
                       ? "the policy \"%s\" needs LocRet's heads, not a retention gate"
                       : "the policy \"%s\" needs a retention gate, not LocRet's heads",
                   name);
  if (policy == KS_POLICY_UNTIED && ks_gate_is_tied(gate))
    return ks_fail(err, KS_ERR_ARG,
                   "the policy \"%s\" needs a gate whose last layers differ; this one is tied",
                   name);
  return KS_OK;
}

ks_status
ks_timeline_set_policy(ks_timeline *tl, const ks_evict_params *params, ks_error *err)
{
  ks_status st;

  if ((unsigned)params->policy < KS_N_POLICY) {
    const uint32_t n_aux = ks_policy_get_n_aux(params->policy);

    st = ks_timeline_check_policy(params->policy, tl->params.gate, err);
    if (st != KS_OK)
      return st;
    if (n_aux > ks_kv_pool_get_layout(tl->params.pool)->n_aux)
      return ks_fail(err, KS_ERR_ARG,
                     "the policy \"%s\" keeps %u number%s more with every entry; choose it before "
                     "the model is loaded",
                     ks_policy_get_name(params->policy), n_aux, n_aux == 1 ? "" : "s");
  }
  tl->probe.queries = 0; /* a policy's own ring may go */
  st = ks_evict_set_params(tl->evict, params, err);
  return st == KS_OK
             ? ks_evict_reserve_watch(tl->evict, ks_kv_pool_get_layout(tl->params.pool), err)
             : st;
}

static ks_status
reserve_pins(ks_timeline *tl, ks_error *err)
{
  const uint32_t capacity = tl->n_pin * 2 + 8;
  ks_pos_range *pins;

  if (tl->pin_capacity >= tl->n_pin + 1)
    return KS_OK;
  pins = ks_mem_resize(tl->alloc, KS_MEM_HOST, tl->pins, capacity, sizeof(*pins));
  if (pins == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "not enough memory for the list of pins");
  tl->pins = pins;
  tl->pin_capacity = capacity;
  return KS_OK;
}

/* Writes the sorted, disjoint ranges of tl->pins joined with range into out [n_pin + 1]. */
static uint32_t
join_pins(const ks_timeline *tl, ks_pos_range range, ks_pos_range *out)
{
  uint32_t n = 0;
  bool placed = false;

  for (uint32_t i = 0; i < tl->n_pin; i++) {
    const ks_pos_range old = tl->pins[i];

    if (old.end < range.begin) {
      out[n++] = old;
    } else if (range.end < old.begin) {
      if (!placed)
        out[n++] = range;
      placed = true;
      out[n++] = old;
    } else {
      range.begin = old.begin < range.begin ? old.begin : range.begin;
      range.end = old.end > range.end ? old.end : range.end;
    }
  }
  if (!placed)
    out[n++] = range;
  return n;
}

ks_status
ks_timeline_pin(ks_timeline *tl, uint32_t begin, uint32_t end, ks_error *err)
{
  const ks_room room = ks_timeline_find_room(tl);
  ks_pos_range *joined;
  uint64_t need = 0;
  uint32_t n;
  ks_status st;

  if (begin >= end)
    return ks_fail(err, KS_ERR_ARG, "nothing to pin between %u and %u", begin, end);
  st = reserve_pins(tl, err);
  if (st != KS_OK)
    return st;
  joined = ks_mem_new(tl->alloc, KS_MEM_HOST, tl->n_pin + 1, sizeof(*joined));
  if (joined == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "not enough memory for the list of pins");
  n = join_pins(tl, (ks_pos_range){begin, end}, joined);
  st = least_n_keep(tl, joined, n, &need, err);
  if (st == KS_OK && need > room.n_keep)
    st = ks_fail(err, KS_ERR_BUDGET,
                 "this does not fit beside what is pinned already: %llu entries in each stream are "
                 "needed, the memory budget keeps %llu; unpin something or raise the budget",
                 count_each(tl, need), (unsigned long long)(room.n_keep / tl->n_stream));
  if (st == KS_OK) {
    memcpy(tl->pins, joined, n * sizeof(*joined));
    tl->n_pin = n;
  }
  ks_mem_free(joined);
  return st;
}

ks_status
ks_timeline_unpin(ks_timeline *tl, uint32_t begin, uint32_t end, ks_error *err)
{
  const ks_status st = reserve_pins(tl, err); /* a range may fall into two */

  if (st != KS_OK)
    return st;
  for (uint32_t i = 0; i < tl->n_pin;) {
    const ks_pos_range old = tl->pins[i];
    const ks_pos_range head = {old.begin, old.end < begin ? old.end : begin};
    const ks_pos_range tail = {old.begin > end ? old.begin : end, old.end};
    const uint32_t n_left = (head.begin < head.end) + (tail.begin < tail.end);

    if (begin >= end || old.end <= begin || old.begin >= end) {
      i++;
      continue;
    }
    memmove(&tl->pins[i + n_left], &tl->pins[i + 1], (tl->n_pin - i - 1) * sizeof(*tl->pins));
    if (head.begin < head.end)
      tl->pins[i] = head;
    if (tail.begin < tail.end)
      tl->pins[i + n_left - 1] = tail;
    tl->n_pin += n_left - 1;
    i += n_left;
  }
  assert(tl->n_pin <= tl->pin_capacity);
  return KS_OK;
}
