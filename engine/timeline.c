/* timeline.c - tokens through the model in passes, with evictions around them.
 * A pass books its tokens behind seen, reserves pages, runs the graph and only then raises seen and
 * the lengths: whatever stops it before leaves no trace.
 * Not here: how much room there is (timeline-budget.c), what is counted (timeline-stats.c), what is
 * particular to pictures (timeline-visual.c).
 * Source: docs/method.md, section 4. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/timeline.h"

#include "engine/timeline-internal.h"

#include <assert.h>
#include <string.h>

ks_timeline_params
ks_timeline_default_params(const ks_model *model, const ks_gate *gate, ks_kv_pool *pool)
{
  const ks_timeline_params params = {.model = model,
                                     .gate = gate,
                                     .pool = pool,
                                     .evict =
                                         ks_evict_default_params(ks_timeline_pick_policy(gate)),
                                     .chunk = 256,
                                     .buffer = 32,
                                     .force_evict = true,
                                     .max_logit_rows = 1};

  return params;
}

static ks_status
check_params(const ks_timeline_params *p, ks_error *err)
{
  const ks_model_shape *shape = ks_model_get_shape(p->model);
  const ks_kv_layout *layout = ks_kv_pool_get_layout(p->pool);

  if (p->chunk == 0 || p->buffer == 0 || (p->force_evict && p->buffer > p->chunk))
    return ks_fail(err, KS_ERR_ARG,
                   "chunk (%u) and buffer (%u) must be 1 or more, the buffer no "
                   "larger than the chunk",
                   p->chunk, p->buffer);
  if (p->fastv.layer > 0 && (p->want_taps || !(p->fastv.drop >= 0.0 && p->fastv.drop <= 1.0)))
    return ks_fail(err, KS_ERR_ARG,
                   "FastV leaves out a part between 0 and 1, and goes without taps");
  if (p->max_logit_rows == 0)
    return ks_fail(err, KS_ERR_ARG, "a pass must have room for one row of logits");
  if (layout->n_layer != shape->n_layer || layout->n_kv_head != shape->n_kv_head ||
      layout->k_dim != shape->k_dim || layout->v_dim != shape->v_dim)
    return ks_fail(err, KS_ERR_ARG, "the page pool was made for another model");
  return KS_OK;
}

/* Everything whose size is known from the start; what is missing shows in the last test. */
static ks_status
take_memory(ks_timeline *tl, ks_error *err)
{
  const uint32_t chunk = tl->params.chunk;
  ks_alloc *a = tl->alloc;

  tl->rope_pos = ks_mem_new(a, KS_MEM_HOST, (size_t)chunk * 3, sizeof(*tl->rope_pos));
  tl->first_global = ks_mem_new(a, KS_MEM_HOST, chunk, sizeof(*tl->first_global));
  tl->first_local = ks_mem_new(a, KS_MEM_HOST, chunk, sizeof(*tl->first_local));
  tl->last = ks_mem_new(a, KS_MEM_HOST, chunk, sizeof(*tl->last));
  tl->rows = ks_mem_new(a, KS_MEM_HOST, chunk, sizeof(*tl->rows));
  tl->live_from = ks_mem_new(a, KS_MEM_HOST, tl->shape->n_layer, sizeof(*tl->live_from));
  tl->logits = ks_mem_new(a, KS_MEM_HOST, tl->shape->n_vocab, sizeof(*tl->logits));
  tl->pos = ks_mem_new(a, KS_MEM_HOST, KS_POS_BLOCK, sizeof(*tl->pos));
  tl->by_stream = ks_mem_new(a, KS_MEM_HOST, tl->n_stream, sizeof(*tl->by_stream));
  if (tl->rope_pos == NULL || tl->first_global == NULL || tl->first_local == NULL ||
      tl->last == NULL || tl->rows == NULL || tl->live_from == NULL || tl->logits == NULL ||
      tl->pos == NULL || tl->by_stream == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "not enough memory for a conversation");
  return KS_OK;
}

ks_status
ks_timeline_new(ks_alloc *a, const ks_timeline_params *params, ks_timeline **out, ks_error *err)
{
  ks_timeline *tl;
  ks_status st = check_params(params, err);

  if (st != KS_OK)
    return st;
  tl = ks_mem_new(a, KS_MEM_HOST, 1, sizeof(*tl));
  if (tl == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "not enough memory for a conversation");
  tl->alloc = a;
  tl->params = *params;
  tl->shape = ks_model_get_shape(params->model);
  tl->least_keep = UINT64_MAX;
  tl->n_stream = tl->shape->n_layer * tl->shape->n_kv_head;
  tl->has_axes = tl->shape->rope.axis != 0;
  tl->sees_both_ways = tl->shape->arch == KS_ARCH_GEMMA3;
  /* One row more than was asked for: the last row of a call is always computed. */
  tl->max_rows =
      params->max_logit_rows < params->chunk ? params->max_logit_rows + 1 : params->chunk;
  st = take_memory(tl, err);
  if (st == KS_OK)
    st = ks_kv_table_new(params->pool, &tl->table, err);
  if (st == KS_OK)
    st = ks_evict_new(a, ks_kv_pool_get_backend(params->pool), &params->evict, &tl->evict, err);
  if (st == KS_OK) {
    ks_evict_set_heads(tl->evict, tl->shape->n_head, tl->shape->attn_scale);
    st = ks_timeline_set_policy(tl, &params->evict, err);
  }
  if (st == KS_OK)
    st = ks_graph_new(a, params->model, params->gate, params->chunk, tl->max_rows, &tl->graph, err);
  if (st == KS_OK)
    st = ks_graph_prepare(tl->graph, ks_kv_pool_get_layout(params->pool), err);
  if (st != KS_OK)
    ks_timeline_free(tl);
  else
    *out = tl;
  return st;
}

void
ks_timeline_free(ks_timeline *tl)
{
  if (tl == NULL)
    return;
  ks_graph_free(tl->graph);
  ks_timeline_free_probe(tl);
  ks_evict_free(tl->evict);
  ks_kv_table_free(tl->table);
  ks_mem_free(tl->tokens);
  ks_mem_free(tl->pins);
  ks_mem_free(tl->rope_pos);
  ks_mem_free(tl->first_global);
  ks_mem_free(tl->first_local);
  ks_mem_free(tl->last);
  ks_mem_free(tl->rows);
  ks_mem_free(tl->live_from);
  ks_mem_free(tl->logits);
  ks_mem_free(tl->pos);
  ks_mem_free(tl->by_stream);
  ks_mem_free(tl->by_turn);
  ks_mem_free(tl->turn_tokens);
  ks_mem_free(tl->pictures);
  ks_mem_free(tl);
}

void
ks_timeline_reset(ks_timeline *tl)
{
  memset(tl->by_stream, 0, tl->n_stream * sizeof(*tl->by_stream));
  ks_kv_table_set_lengths(tl->table, tl->by_stream);
  ks_kv_pool_trim(tl->params.pool);
  tl->seen = 0;
  tl->rope_next = 0;
  tl->turn = 0;
  tl->attachment = 0;
  tl->n_pin = 0;
  tl->has_logits = tl->has_head = false;
  tl->n_turn = tl->n_picture = 0;
  tl->n_evicted = tl->n_eviction_runs = 0;
  tl->n_entries_peak = tl->n_pages_peak = 0;
  tl->since_evict = 0;
  ks_evict_forget_queries(tl->evict);
  tl->probe.queries = 0;
  tl->least_keep = UINT64_MAX;
  tl->n_remap = 0;
  tl->remap_from = 0;
  memset(tl->by_modality, 0, sizeof(tl->by_modality));
  if (tl->turn_capacity > 0) {
    memset(tl->by_turn, 0, tl->turn_capacity * sizeof(*tl->by_turn));
    memset(tl->turn_tokens, 0, tl->turn_capacity * sizeof(*tl->turn_tokens));
  }
}

void
ks_timeline_set_turn(ks_timeline *tl, uint16_t turn, uint8_t attachment)
{
  tl->turn = turn;
  tl->attachment = attachment;
}

static ks_status
reserve_tokens(ks_timeline *tl, uint32_t n, ks_error *err)
{
  uint64_t capacity = tl->token_capacity == 0 ? 1024 : tl->token_capacity;
  const uint64_t need = (uint64_t)tl->seen + n;
  ks_token_info *tokens;

  if (need > INT32_MAX / 2)
    return ks_fail(err, KS_ERR_ARG, "a conversation cannot have more than %d tokens",
                   INT32_MAX / 2);
  if (need <= tl->token_capacity)
    return KS_OK;
  while (capacity < need)
    capacity *= 2;
  tokens = ks_mem_resize(tl->alloc, KS_MEM_HOST, tl->tokens, (size_t)capacity, sizeof(*tokens));
  if (tokens == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "not enough memory for a table of %llu tokens",
                   (unsigned long long)capacity);
  tl->tokens = tokens;
  tl->token_capacity = (uint32_t)capacity;
  return KS_OK;
}

static void
place_text(ks_timeline *tl, ks_token id, uint32_t seq, int32_t rope)
{
  tl->tokens[seq] = (ks_token_info){.id = id,
                                    .turn = tl->turn,
                                    .attachment = tl->attachment,
                                    .modality = KS_MODALITY_TEXT,
                                    .rope_t = rope,
                                    .rope_h = rope,
                                    .rope_w = rope};
}

/* What row i of a pass, sequence index seq, sees.  view (NULL: none) is the run that it is part of:
 * where a view is seen both ways all of it is, in windows too. */
static void
fill_sight(ks_timeline *tl, uint32_t i, uint32_t seq, const ks_visual_run *view, uint32_t view_seq)
{
  const int64_t window = tl->shape->window;

  tl->last[i] = seq;
  tl->first_global[i] = 0;
  tl->first_local[i] =
      window > 0 ? ks_timeline_first_above(tl, seq, tl->tokens[seq].rope_t - window) : 0;
  if (view == NULL || !tl->sees_both_ways)
    return;
  tl->last[i] = view_seq + view->n_tok - 1;
  if (tl->first_local[i] > view_seq)
    tl->first_local[i] = view_seq;
}

/* Books tokens begin .. begin + n - 1 of the call behind seen and fills the arrays of their pass;
 * returns the position behind them. */
static int32_t
prepare_pass(ks_timeline *tl, const ks_eval_call *call, uint32_t begin, uint32_t n)
{
  int32_t next = tl->rope_next;
  uint32_t r = 0;

  for (uint32_t i = 0; i < n; i++) {
    const uint32_t at = begin + i, seq = tl->seen + i;
    const ks_visual_run *run;
    const ks_token_info *info = &tl->tokens[seq];

    while (r < call->n_run && call->runs[r].first + call->runs[r].n_tok <= at)
      r++;
    run = r < call->n_run && call->runs[r].first <= at ? &call->runs[r] : NULL;
    if (run != NULL)
      next = ks_timeline_place_visual(tl, run, at - run->first, seq, next);
    else
      place_text(tl, call->ids[at], seq, next++);
    tl->rope_pos[i] = info->rope_t;
    tl->rope_pos[n + i] = info->rope_h;
    tl->rope_pos[2 * n + i] = info->rope_w;
    fill_sight(tl, i, seq, run, run != NULL ? seq - (at - run->first) : 0);
  }
  return next;
}

/* Which rows of the pass begin .. begin+n-1 of a call of n_total tokens want logits. */
static ks_status
choose_rows(ks_timeline *tl, const ks_timeline_hooks *hooks, uint32_t begin, uint32_t n,
            uint32_t n_total, uint32_t *out_n, ks_error *err)
{
  const bool all = hooks != NULL && hooks->logits != NULL && hooks->logit_rows == NULL;
  uint32_t n_row = 0, n_asked = 0;

  if (all)
    n_asked = n;
  else if (hooks != NULL && hooks->logits != NULL)
    for (uint32_t i = 0; i < hooks->n_logit; i++)
      n_asked += hooks->logit_rows[i] >= begin && hooks->logit_rows[i] < begin + n;
  if (n_asked > tl->params.max_logit_rows)
    return ks_fail(err, KS_ERR_ARG, "%u rows of logits asked for in one pass, there is room for %u",
                   n_asked, tl->params.max_logit_rows);
  for (uint32_t i = 0; all && i < n; i++)
    tl->rows[n_row++] = i;
  for (uint32_t i = 0; !all && n_asked > 0 && i < hooks->n_logit; i++)
    if (hooks->logit_rows[i] >= begin && hooks->logit_rows[i] < begin + n)
      tl->rows[n_row++] = hooks->logit_rows[i] - begin;
  if (begin + n == n_total && (n_row == 0 || tl->rows[n_row - 1] != n - 1))
    tl->rows[n_row++] = n - 1;
  *out_n = n_row;
  return KS_OK;
}

/* Gives the logits of a finished pass to the hook and keeps those of the call's last row. */
static void
deliver_logits(ks_timeline *tl, const ks_timeline_hooks *hooks, uint32_t begin, uint32_t n,
               uint32_t n_total, uint32_t n_row, bool has_head)
{
  const bool is_last = begin + n == n_total;
  uint32_t n_asked = n_row;

  tl->has_logits = is_last && !has_head;
  tl->has_head = has_head;
  if (tl->has_logits) {
    memcpy(tl->logits, ks_graph_get_logits(tl->graph, n_row - 1),
           tl->shape->n_vocab * sizeof(*tl->logits));
    /* The last row was computed for us: did the caller ask for it as well? */
    if (hooks != NULL && hooks->logit_rows != NULL &&
        (hooks->n_logit == 0 || hooks->logit_rows[hooks->n_logit - 1] != n_total - 1))
      n_asked--;
  }
  if (hooks == NULL || hooks->logits == NULL)
    return;
  for (uint32_t i = 0; i < n_asked; i++)
    hooks->logits(hooks->user, begin + tl->rows[i], ks_graph_get_logits(tl->graph, i));
}

/* One pass over tokens begin .. begin+n-1 of the call. */
static ks_status
run_pass(ks_timeline *tl, const ks_eval_call *call, uint32_t begin, uint32_t n, ks_error *err)
{
  const ks_timeline_hooks *hooks = call->hooks;
  const uint64_t n_after = ks_kv_table_get_n_entries(tl->table) + (uint64_t)tl->n_stream * n;
  ks_graph_visual visuals[KS_GRAPH_MAX_VISUAL];
  ks_pass_watch watch;
  ks_graph_input in = {.n_tok = n,
                       .ids = call->ids + begin,
                       .visuals = visuals,
                       .n_visual = ks_timeline_cut_visuals(tl, call, begin, n, visuals),
                       .rope_pos = tl->rope_pos,
                       .pos0 = tl->seen,
                       .first_global = tl->first_global,
                       .first_local = tl->first_local,
                       .last = tl->last,
                       .logit_rows = tl->rows,
                       .fastv = &tl->params.fastv,
                       .watch = &watch,
                       .want_taps = tl->params.want_taps};
  ks_status st = choose_rows(tl, hooks, begin, n, call->n, &in.n_logit, err);
  ks_pass_growth growth;
  int32_t rope_next;

  if (hooks != NULL && begin + n == call->n && hooks->logits == NULL)
    in.head = hooks->head;
  if (st == KS_OK && !ks_policy_never_evicts(ks_evict_get_params(tl->evict)->policy))
    st = ks_evict_reserve(tl->evict, tl->table, n_after, err);
  if (st == KS_OK)
    st = ks_evict_begin_pass(tl->evict, tl->table, tl->seen, n, &watch, err);
  if (st == KS_OK)
    st = ks_kv_table_reserve(tl->table, n, err);
  if (st != KS_OK)
    return st;
  ks_timeline_begin_probe(tl, &watch);
  rope_next = prepare_pass(tl, call, begin, n);
  st = ks_graph_run(tl->graph, &in, tl->table, hooks != NULL ? hooks->stop : NULL,
                    hooks != NULL ? hooks->user : NULL, err);
  growth = ks_graph_get_growth(tl->graph);
  ks_evict_set_growth(tl->evict, &growth);
  if (st == KS_OK)
    st = ks_evict_end_pass(tl->evict, tl->table, tl->seen, n, tl->last, err);
  if (st != KS_OK) {
    ks_kv_table_set_lengths(tl->table, NULL);
    return st;
  }
  ks_kv_table_commit_growth(tl->table, &growth);
  tl->seen += n;
  ks_timeline_end_probe(tl, &watch, tl->seen - 1, tl->first_local[n - 1]);
  tl->since_evict += n;
  tl->rope_next = rope_next;
  ks_timeline_count_new(tl, n);
  ks_timeline_note_grids(tl, call, begin, n);
  deliver_logits(tl, hooks, begin, n, call->n, in.n_logit, in.head != NULL);
  /* What was counted in every stream is not in all of them. */
  return growth.thin_from < tl->shape->n_layer ? ks_timeline_recount(tl, err) : KS_OK;
}

/* Makes room before a pass of n tokens: prefill starts from K; decode only where pages ran out,
 * which happens when another timeline took them. */
static ks_status
evict_before(ks_timeline *tl, const ks_room *room, uint32_t n, bool is_prefill,
             const ks_timeline_hooks *hooks, ks_error *err)
{
  const uint64_t n_page = ks_kv_table_get_n_pages(tl->table);
  const bool lacks = ks_kv_table_count_needed(tl->table, n) + n_page > room->n_page;

  if (lacks || (is_prefill && tl->params.force_evict && !ks_timeline_is_faithful(tl)))
    return ks_timeline_evict_to(tl, room->n_keep, hooks, err);
  return KS_OK;
}

/* is_end: the pass was the last one of its call. */
static ks_status
evict_after(ks_timeline *tl, const ks_room *room, bool is_prefill, bool is_end,
            const ks_timeline_hooks *hooks, ks_error *err)
{
  const bool is_due =
      ks_kv_table_get_n_entries(tl->table) >= room->trigger ||
      (ks_evict_get_params(tl->evict)->threshold > 0.0 && tl->since_evict >= tl->params.buffer);

  if (is_prefill && ks_timeline_is_faithful(tl))
    return is_end ? ks_timeline_evict_to(tl, room->n_keep, hooks, err) : KS_OK;
  if ((is_prefill && tl->params.force_evict) || is_due)
    return ks_timeline_evict_to(tl, room->n_keep, hooks, err);
  return KS_OK;
}

/* Passes with their evictions until the call is done. */
static ks_status
run_call(ks_timeline *tl, const ks_eval_call *call, ks_error *err)
{
  const ks_timeline_hooks *hooks = call->hooks;
  const bool is_prefill = call->n > 1;
  ks_status st = KS_OK;

  for (uint32_t begin = 0; st == KS_OK && begin < call->n;) {
    /* Anew for every pass: a hook or another timeline may have changed what is free. */
    const ks_room room = ks_timeline_find_room(tl);
    const uint32_t n = ks_timeline_pick_pass(tl, call, begin, room.chunk);
    const ks_room longer = ks_timeline_find_room_for(tl, n);

    st = ks_timeline_check_room(tl, &room, call->n - begin, hooks, err);
    if (st == KS_OK)
      st = evict_before(tl, &longer, n, is_prefill, hooks, err);
    if (st == KS_OK)
      st = ks_timeline_make_positions(tl, call, begin, n, err);
    if (st == KS_OK)
      st = run_pass(tl, call, begin, n, err);
    if (st != KS_OK)
      break;
    begin += n;
    st = evict_after(tl, &room, is_prefill, begin == call->n, hooks, err);
    if (st == KS_OK && hooks != NULL && hooks->progress != NULL &&
        !hooks->progress(hooks->user, begin, call->n) && begin < call->n)
      st = ks_fail(err, KS_ERR_CANCELLED, "stopped after %u of %u tokens", begin, call->n);
  }
  return st;
}

ks_status
ks_timeline_eval_visual(ks_timeline *tl, const ks_token *ids, uint32_t n, const ks_visual_run *runs,
                        uint32_t n_run, const ks_timeline_hooks *hooks, ks_error *err)
{
  const ks_eval_call call = {.ids = ids, .n = n, .runs = runs, .n_run = n_run, .hooks = hooks};
  ks_status st = reserve_tokens(tl, n, err);

  if (st == KS_OK)
    st = ks_timeline_check_visual(tl, &call, err);
  if (st == KS_OK)
    st = ks_timeline_reserve_counts(tl, n_run, err);
  return st == KS_OK ? run_call(tl, &call, err) : st;
}

ks_status
ks_timeline_eval(ks_timeline *tl, const ks_token *ids, uint32_t n, const ks_timeline_hooks *hooks,
                 ks_error *err)
{
  return ks_timeline_eval_visual(tl, ids, n, NULL, 0, hooks, err);
}

const float *
ks_timeline_get_logits(ks_timeline *tl)
{
  if (!tl->has_logits && tl->has_head && ks_graph_make_logits(tl->graph, NULL) == KS_OK) {
    memcpy(tl->logits, ks_graph_get_logits(tl->graph, 0), tl->shape->n_vocab * sizeof(*tl->logits));
    tl->has_logits = true;
  }
  return tl->has_logits ? tl->logits : NULL;
}

uint32_t
ks_timeline_get_seen(const ks_timeline *tl)
{
  return tl->seen;
}

const ks_token_info *
ks_timeline_get_tokens(const ks_timeline *tl)
{
  return tl->tokens;
}

const ks_kv_table *
ks_timeline_get_table(const ks_timeline *tl)
{
  return tl->table;
}

const ks_graph *
ks_timeline_get_graph(const ks_timeline *tl)
{
  return tl->graph;
}

const ks_model *
ks_timeline_get_model(const ks_timeline *tl)
{
  return tl->params.model;
}
