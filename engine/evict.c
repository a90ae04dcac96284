/* evict.c - from a policy's scores to a shorter table: pins, dead entries, selection, compaction.
 * An eviction is one step of the backend and is never stopped halfway; before it nothing is
 * changed, after it the table has its new lengths. Source: docs/method.md, sections 3, 4 and 6. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/evict.h"

#include "engine/evict-internal.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define MAX_WINDOW 1024u /* queries that a policy may keep */

static bool
is_share(double x)
{
  return x >= 0.0 && x <= 1.0;
}

static ks_status
check_params(const ks_evict_params *params, ks_error *err)
{
  const ks_policy_ops *ops;

  if ((unsigned)params->policy >= KS_N_POLICY)
    return ks_fail(err, KS_ERR_ARG, "no eviction policy has number %d", (int)params->policy);
  ops = ks_policy_get_ops(params->policy);
  if (params->lookahead == 0)
    return ks_fail(err, KS_ERR_ARG, "the lookahead must be at least 1");
  if (!(params->threshold >= 0.0 && params->threshold < 1.0))
    return ks_fail(err, KS_ERR_ARG, "a threshold must be at least 0 and less than 1");
  if (params->threshold > 0.0 && (!ops->needs_gate || ops->score != NULL))
    return ks_fail(err, KS_ERR_ARG,
                   "a threshold is for policies with a retention gate; \"%s\" has no such scores",
                   ops->name);
  if (ops->has_window && (params->window == 0 || params->window > MAX_WINDOW))
    return ks_fail(err, KS_ERR_ARG, "the window of the policy \"%s\" must be 1 to %u tokens",
                   ops->name, MAX_WINDOW);
  if (ops->has_window && (params->pool % 2 == 0 || params->pool > MAX_WINDOW))
    return ks_fail(err, KS_ERR_ARG, "the width of a pool must be odd, at most %u", MAX_WINDOW - 1);
  if (!is_share(params->head_floor) || !is_share(params->mix) || !is_share(params->recent))
    return ks_fail(err, KS_ERR_ARG, "shares of a policy must lie between 0 and 1");
  return KS_OK;
}

ks_status
ks_evict_set_params(ks_evict *evict, const ks_evict_params *params, ks_error *err)
{
  const ks_status st = check_params(params, err);

  if (st != KS_OK)
    return st;
  evict->params = *params;
  evict->ops = ks_policy_get_ops(params->policy);
  return KS_OK;
}

ks_status
ks_evict_new(ks_alloc *a, ks_backend *be, const ks_evict_params *params, ks_evict **out,
             ks_error *err)
{
  ks_evict *evict = ks_mem_new(a, KS_MEM_HOST, 1, sizeof(*evict));
  ks_status st;

  if (evict == NULL)
    return ks_fail(err, KS_ERR_NOMEM, "not enough memory for the eviction state");
  evict->alloc = a;
  evict->be = be;
  st = ks_evict_set_params(evict, params, err);
  if (st != KS_OK) {
    ks_evict_free(evict);
    return st;
  }
  *out = evict;
  return KS_OK;
}

static void
free_entry_buffers(ks_evict *evict)
{
  if (evict->scores != 0)
    evict->be->t->mem_free(evict->be->dev, evict->scores);
  if (evict->keep != 0)
    evict->be->t->mem_free(evict->be->dev, evict->keep);
  ks_mem_free(evict->host_scores);
  ks_mem_free(evict->pos);
  evict->scores = evict->keep = 0;
  evict->host_scores = NULL;
  evict->pos = NULL;
  evict->capacity = 0;
}

void
ks_evict_release(ks_evict *evict)
{
  free_entry_buffers(evict);
  ks_evict_free_lines(evict);
}

void
ks_evict_free(ks_evict *evict)
{
  if (evict == NULL)
    return;
  free_entry_buffers(evict);
  ks_evict_free_watch(evict);
  ks_mem_free(evict->n_keep);
  ks_mem_free(evict->per_stream);
  ks_mem_free(evict->n_pinned);
  ks_mem_free(evict->keys);
  ks_mem_free(evict->anchor);
  ks_mem_free(evict->pins);
  ks_mem_free(evict);
}

const ks_evict_params *
ks_evict_get_params(const ks_evict *evict)
{
  return &evict->params;
}

uint64_t
ks_evict_get_scratch_bytes(const ks_evict *evict)
{
  return evict->capacity * (sizeof(float) + 1);
}

/* Buffers whose size follows from the layout; a pool's layout never changes. */
static ks_status
reserve_for_layout(ks_evict *evict, const ks_kv_table *table, ks_error *err)
{
  const uint32_t k_dim = ks_kv_table_get_view(table).layout->k_dim;
  const uint32_t n_stream = ks_kv_table_get_n_stream(table);

  if (evict->n_stream != n_stream) {
    ks_mem_free(evict->n_keep);
    ks_mem_free(evict->per_stream);
    ks_mem_free(evict->n_pinned);
    evict->n_stream = 0;
    evict->n_keep = ks_mem_new(evict->alloc, KS_MEM_HOST, n_stream, sizeof(*evict->n_keep));
    evict->per_stream = ks_mem_new(evict->alloc, KS_MEM_HOST, n_stream, sizeof(*evict->per_stream));
    evict->n_pinned = ks_mem_new(evict->alloc, KS_MEM_HOST, n_stream, sizeof(*evict->n_pinned));
    if (evict->n_keep == NULL || evict->per_stream == NULL || evict->n_pinned == NULL)
      return ks_fail(err, KS_ERR_NOMEM, "not enough memory to forget anything");
    evict->n_stream = n_stream;
  }
  if (evict->ops->score != NULL && evict->k_dim != k_dim) {
    ks_mem_free(evict->keys);
    ks_mem_free(evict->anchor);
    evict->k_dim = 0;
    evict->keys =
        ks_mem_new(evict->alloc, KS_MEM_HOST, (size_t)KS_KEY_BLOCK * k_dim, sizeof(*evict->keys));
    evict->anchor = ks_mem_new(evict->alloc, KS_MEM_HOST, k_dim, sizeof(*evict->anchor));
    if (evict->keys == NULL || evict->anchor == NULL)
      return ks_fail(err, KS_ERR_NOMEM, "not enough memory to compare keys");
    evict->k_dim = k_dim;
  }
  return KS_OK;
}

/* The longest stream when a pass has brought the table to n_entry entries. */
static uint32_t
longest_stream(const ks_kv_table *table, uint64_t n_entry)
{
  const ks_kv_view view = ks_kv_table_get_view(table);
  const uint32_t n_stream = ks_kv_table_get_n_stream(table);
  const uint64_t n_now = ks_kv_table_get_n_entries(table);
  uint32_t longest = 0;

  for (uint32_t s = 0; s < n_stream; s++)
    longest = view.streams[s].n_entry > longest ? view.streams[s].n_entry : longest;
  return longest + (uint32_t)(n_entry > n_now ? (n_entry - n_now + n_stream - 1) / n_stream : 0);
}

ks_status
ks_evict_reserve(ks_evict *evict, const ks_kv_table *table, uint64_t n_entry, ks_error *err)
{
  const ks_backend *be = evict->be;
  const uint64_t capacity = n_entry + n_entry / 4 + 64;
  ks_status st = reserve_for_layout(evict, table, err);

  if (st == KS_OK)
    st = ks_evict_reserve_lines(evict, ks_kv_table_get_view(table).layout,
                                longest_stream(table, n_entry), err);
  if (st != KS_OK || n_entry <= evict->capacity)
    return st;
  free_entry_buffers(evict);
  st = be->t->mem_new(be->dev, KS_MEM_SCRATCH, (size_t)capacity * sizeof(float), &evict->scores,
                      err);
  if (st == KS_OK)
    st = be->t->mem_new(be->dev, KS_MEM_SCRATCH, (size_t)capacity, &evict->keep, err);
  if (st == KS_OK) {
    evict->host_scores = ks_mem_new(evict->alloc, KS_MEM_HOST, (size_t)capacity, sizeof(float));
    evict->pos = ks_mem_new(evict->alloc, KS_MEM_HOST, (size_t)capacity, sizeof(uint32_t));
    if (evict->host_scores == NULL || evict->pos == NULL)
      st = ks_fail(err, KS_ERR_NOMEM, "not enough memory to rank %llu entries",
                   (unsigned long long)n_entry);
  }
  if (st != KS_OK)
    free_entry_buffers(evict);
  else
    evict->capacity = capacity;
  return st;
}

static ks_status
read_pos(ks_evict *evict, const ks_kv_view *view, uint32_t stream, ks_error *err)
{
  if (view->streams[stream].n_entry == 0)
    return KS_OK;
  return evict->be->t->kv_read(evict->be->dev, view, stream, 0, view->streams[stream].n_entry, NULL,
                               NULL, NULL, evict->pos, NULL, err);
}

static bool
is_pinned(const ks_pos_range *pins, uint32_t n_pin, uint32_t pos)
{
  for (uint32_t i = 0; i < n_pin; i++)
    if (pos >= pins[i].begin && pos < pins[i].end)
      return true;
  return false;
}

ks_status
ks_evict_count_pinned(ks_evict *evict, const ks_kv_table *table, const ks_pos_range *ranges,
                      uint32_t n_range, uint64_t *out_n_keep, ks_error *err)
{
  const ks_kv_view view = ks_kv_table_get_view(table);
  const uint32_t n_stream = ks_kv_table_get_n_stream(table);
  uint64_t total = 0, longest = 0;
  ks_status st = ks_evict_reserve(evict, table, ks_kv_table_get_n_entries(table), err);

  for (uint32_t s = 0; st == KS_OK && s < n_stream; s++) {
    uint64_t n = 0;

    st = read_pos(evict, &view, s, err);
    for (uint32_t e = 0; st == KS_OK && e < view.streams[s].n_entry; e++)
      n += is_pinned(ranges, n_range, evict->pos[e]);
    total += n;
    longest = n > longest ? n : longest;
  }
  if (st != KS_OK)
    return st;
  if (!evict->ops->is_global)
    *out_n_keep = longest * n_stream;
  else
    *out_n_keep = total + (total > 0 ? (uint64_t)evict->params.floor * n_stream : 0);
  return KS_OK;
}

/* Adds a range to the merged list, which is kept sorted and disjoint. */
static void
add_pin(ks_evict *evict, ks_pos_range range)
{
  uint32_t n = 0, at;

  if (range.begin >= range.end)
    return;
  for (uint32_t i = 0; i < evict->n_pin; i++) {
    const ks_pos_range old = evict->pins[i];

    if (old.end < range.begin || range.end < old.begin) {
      evict->pins[n++] = old;
      continue;
    }
    range.begin = old.begin < range.begin ? old.begin : range.begin;
    range.end = old.end > range.end ? old.end : range.end;
  }
  for (at = n; at > 0 && evict->pins[at - 1].begin > range.begin; at--)
    evict->pins[at] = evict->pins[at - 1];
  evict->pins[at] = range;
  evict->n_pin = n + 1;
}

/* Newest entries that the policy keeps of C: its own, or those of the parameters if they are more.
 */
static uint64_t
count_newest(const ks_evict *evict, uint64_t share)
{
  const ks_evict_params *p = &evict->params;
  uint64_t newest = 0;

  if (p->recent > 0.0 && p->mode == KS_EVICT_CHUNKED)
    newest = (uint64_t)floor(p->recent * (double)share);
  else if (p->window > 0)
    newest = p->window < share / 2 ? p->window : share / 2;
  else if (p->recent > 0.0)
    newest = (uint64_t)floor(p->recent * (double)share);
  return newest > p->pin_last ? newest : p->pin_last;
}

/* The caller's pins (refused when they do not fit) and as many of the policy's own as do. */
static ks_status
merge_pins(ks_evict *evict, const ks_kv_table *table, uint32_t seen, uint64_t n_keep,
           const ks_pos_range *pins, uint32_t n_pin, ks_error *err)
{
  const uint64_t n_stream = ks_kv_table_get_n_stream(table);
  const uint64_t newest = count_newest(evict, n_keep / n_stream);
  uint64_t need = 0, room, first, last;

  if (n_pin > 0) {
    ks_status st = ks_evict_count_pinned(evict, table, pins, n_pin, &need, err);

    if (st != KS_OK)
      return st;
    if (need > n_keep)
      return ks_fail(err, KS_ERR_BUDGET,
                     "what is pinned needs %llu entries, the memory budget keeps %llu; "
                     "unpin something or raise the budget",
                     (unsigned long long)need, (unsigned long long)n_keep);
  }
  if (n_pin + 2 > evict->pin_capacity) {
    ks_pos_range *grown =
        ks_mem_resize(evict->alloc, KS_MEM_HOST, evict->pins, n_pin + 8, sizeof(*grown));

    if (grown == NULL)
      return ks_fail(err, KS_ERR_NOMEM, "not enough memory for the list of pins");
    evict->pins = grown;
    evict->pin_capacity = n_pin + 8;
  }
  evict->n_pin = 0;
  for (uint32_t i = 0; i < n_pin; i++)
    add_pin(evict, pins[i]);
  room = (n_keep - need) / n_stream;
  if (evict->ops->is_global)
    room -= room < evict->params.floor ? room : evict->params.floor;
  first = evict->params.pin_first < room ? evict->params.pin_first : room;
  last = newest < room - first ? newest : room - first;
  last = last < seen ? last : seen;
  evict->newest_from = seen - (uint32_t)last;
  add_pin(evict, (ks_pos_range){0, (uint32_t)first});
  add_pin(evict, (ks_pos_range){seen - (uint32_t)last, seen});
  return KS_OK;
}

/* Pins and dead entries of one stream put in; how many are pinned is kept. */
static void
put_in_pins(ks_evict *evict, const ks_score_job *job)
{
  uint32_t n_pinned = 0;

  for (uint32_t e = 0; e < job->n_entry; e++) {
    if (job->pos[e] < job->live_from) {
      job->scores[e] = -INFINITY;
    } else if (is_pinned(evict->pins, evict->n_pin, job->pos[e])) {
      job->scores[e] = INFINITY;
      n_pinned++;
    }
  }
  evict->n_pinned[job->stream] = n_pinned;
}

/* Scores of a policy that works on the host. */
static ks_status
score_on_host(ks_evict *evict, const ks_kv_view *view, uint32_t seen, const uint32_t *live_from,
              uint64_t n_entry, ks_error *err)
{
  const ks_backend *be = evict->be;
  uint64_t offset = 0;
  ks_status st = KS_OK;

  if (evict->ops->has_window) {
    st = ks_evict_sum_attention(evict, view, live_from, err);
    if (st == KS_OK)
      st = be->t->download(be->dev, evict->host_scores, evict->scores,
                           (size_t)n_entry * sizeof(float), err);
  }
  for (uint32_t s = 0; st == KS_OK && s < evict->n_stream; s++) {
    const ks_score_job job = {.evict = evict,
                              .view = view,
                              .stream = s,
                              .n_entry = view->streams[s].n_entry,
                              .seen = seen,
                              .live_from = live_from[s / view->layout->n_kv_head],
                              .newest_from = evict->newest_from,
                              .pos = evict->pos,
                              .scores = evict->host_scores + offset};

    st = read_pos(evict, view, s, err);
    if (st == KS_OK && job.n_entry > 0)
      st = evict->ops->score(&job, err);
    if (st == KS_OK)
      put_in_pins(evict, &job);
    offset += job.n_entry;
  }
  if (st != KS_OK || offset == 0)
    return st;
  return be->t->upload(be->dev, evict->scores, evict->host_scores, (size_t)offset * sizeof(float),
                       err);
}

/* Counts that a policy wanted become counts that can be: no fewer than what is pinned, no more than
 * there is, and in all no more than K: the streams with most above their pins give way. */
static void
fit_counts(ks_evict *evict, const ks_kv_view *view, uint64_t n_keep)
{
  uint32_t *count = evict->per_stream;
  uint64_t total = 0;

  for (uint32_t s = 0; s < evict->n_stream; s++) {
    const uint32_t n = view->streams[s].n_entry;

    count[s] = count[s] < evict->n_pinned[s] ? evict->n_pinned[s] : count[s];
    count[s] = count[s] < n ? count[s] : n;
    total += count[s];
  }
  for (; total > n_keep; total--) {
    uint32_t most = 0;

    for (uint32_t s = 1; s < evict->n_stream; s++)
      if (count[s] - evict->n_pinned[s] > count[most] - evict->n_pinned[most])
        most = s;
    count[most]--;
  }
}

/* How many entries each stream may keep, for rankings within streams; NULL for one ranking. */
static ks_status
fill_per_stream(ks_evict *evict, const ks_kv_view *view, uint32_t seen, uint64_t n_keep,
                const uint32_t **out, ks_error *err)
{
  const ks_allot_job job = {.evict = evict,
                            .view = view,
                            .n_keep = n_keep,
                            .share = (uint32_t)(n_keep / evict->n_stream),
                            .seen = seen};

  *out = NULL;
  if (evict->ops->is_global)
    return KS_OK;
  *out = evict->per_stream;
  if (evict->ops->allot != NULL) {
    const ks_status st = evict->ops->allot(&job, err);

    if (st == KS_OK)
      fit_counts(evict, view, n_keep);
    return st;
  }
  for (uint32_t s = 0; s < evict->n_stream; s++) {
    const uint32_t n = view->streams[s].n_entry;

    evict->per_stream[s] = evict->ops->never_evicts || n < job.share ? n : job.share;
  }
  return KS_OK;
}

static ks_op_kv_score
make_score_op(const ks_evict *evict, const ks_kv_view *view, uint32_t seen,
              const uint32_t *live_from)
{
  return (ks_op_kv_score){.kv = *view,
                          .out = evict->scores,
                          .seen = seen,
                          .lookahead = evict->params.lookahead,
                          .live_from = live_from,
                          .pins = evict->pins,
                          .n_pin = evict->n_pin};
}

/* Scores of the device, what lies under the threshold dropped: for evaluation, as the scores visit
 * the host. */
static ks_status
score_above_threshold(ks_evict *evict, const ks_kv_view *view, uint32_t seen,
                      const uint32_t *live_from, uint64_t n_entry, ks_error *err)
{
  const ks_backend *be = evict->be;
  const ks_op_kv_score score = make_score_op(evict, view, seen, live_from);
  const float least = (float)log(evict->params.threshold);
  ks_status st = be->t->step_begin(be->dev, err);

  if (st != KS_OK)
    return st;
  st = be->t->kv_score(be->dev, &score);
  if (st != KS_OK) {
    be->t->step_abort(be->dev);
    return ks_fail(err, st, "the device could not take the scores");
  }
  st = be->t->step_end(be->dev, NULL, NULL, err);
  if (st == KS_OK)
    st = be->t->download(be->dev, evict->host_scores, evict->scores,
                         (size_t)n_entry * sizeof(float), err);
  for (uint64_t i = 0; st == KS_OK && i < n_entry; i++)
    if (evict->host_scores[i] < least)
      evict->host_scores[i] = -INFINITY;
  if (st != KS_OK)
    return st;
  return be->t->upload(be->dev, evict->scores, evict->host_scores, (size_t)n_entry * sizeof(float),
                       err);
}

/* Score, select and compact; the last two, and scores of the device, are one step of it. */
static ks_status
run_step(ks_evict *evict, const ks_kv_view *view, uint32_t seen, uint64_t n_keep,
         const uint32_t *live_from, ks_evict_event *event, ks_error *err)
{
  const ks_backend_table *t = evict->be->t;
  ks_dev *dev = evict->be->dev;
  const ks_op_kv_score score = make_score_op(evict, view, seen, live_from);
  const bool has_threshold = evict->params.threshold > 0.0;
  ks_op_kv_select select = {.kv = *view,
                            .scores = evict->scores,
                            .keep = evict->keep,
                            .n_keep = n_keep,
                            .floor = evict->params.floor,
                            .out_n_keep = evict->n_keep,
                            .out_last_kept = &event->last_kept,
                            .out_first_dropped = &event->first_dropped};
  const ks_op_kv_compact compact = {.kv = *view, .keep = evict->keep};
  ks_status st = KS_OK;

  if (evict->ops->score != NULL)
    st = score_on_host(evict, view, seen, live_from, event->n_before, err);
  else if (has_threshold)
    st = score_above_threshold(evict, view, seen, live_from, event->n_before, err);
  if (st == KS_OK)
    st = fill_per_stream(evict, view, seen, n_keep, &select.per_stream_keep, err);
  if (st == KS_OK)
    st = t->step_begin(dev, err);
  if (st != KS_OK)
    return st;
  if (evict->ops->score == NULL && !has_threshold)
    st = t->kv_score(dev, &score);
  if (st == KS_OK)
    st = t->kv_select(dev, &select);
  if (st == KS_OK)
    st = t->kv_compact(dev, &compact);
  if (st != KS_OK) {
    t->step_abort(dev);
    return ks_fail(err, st, "the device could not take the eviction step");
  }
  return t->step_end(dev, NULL, NULL, err);
}

static bool
has_dead(const uint32_t *live_from, uint32_t n_layer)
{
  for (uint32_t l = 0; l < n_layer; l++)
    if (live_from[l] > 0)
      return true;
  return false;
}

ks_status
ks_evict_run(ks_evict *evict, ks_kv_table *table, uint32_t seen, uint64_t n_keep,
             const uint32_t *live_from, const ks_pos_range *pins, uint32_t n_pin,
             ks_evict_event *out_event, ks_error *err)
{
  const ks_kv_view view = ks_kv_table_get_view(table);
  const uint64_t n_before = ks_kv_table_get_n_entries(table);
  ks_evict_event event = {.seen = seen,
                          .n_before = n_before,
                          .n_after = n_before,
                          .last_kept = NAN,
                          .first_dropped = NAN};
  const bool idle = evict->ops->never_evicts        ? !has_dead(live_from, view.layout->n_layer)
                    : evict->params.threshold > 0.0 ? n_before == 0
                                                    : n_before <= n_keep;
  ks_status st = KS_OK;

  if (!idle) {
    const uint64_t room = evict->ops->never_evicts ? n_before : n_keep;

    st = ks_evict_reserve(evict, table, n_before, err);
    if (st == KS_OK)
      st = merge_pins(evict, table, seen, room, pins, n_pin, err);
    if (st == KS_OK)
      st = run_step(evict, &view, seen, room, live_from, &event, err);
    if (st != KS_OK)
      return st;
    ks_kv_table_set_lengths(table, evict->n_keep);
    event.n_after = ks_kv_table_get_n_entries(table);
    assert(event.n_after <= room);
  }
  if (out_event != NULL)
    *out_event = event;
  return KS_OK;
}
