/* test-timeline-random.c - properties under random use: several timelines on one pool, turns of any
 * length, decode runs, budgets up and down, pins, policies, cancels.
 * After every step and inside passes: pages never exceed the budget, the checkers hold; after every
 * eviction with learned scores or StreamingLLM the survivors are those of a direct ranking over a
 * mirror of the entries. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/timeline.h"

#include "tests/unit/timeline-fixture.h"

#define N_TL 3u
#define N_STREAM 8u
#define MAX_TOK 2048u
#define P 4u

/* What a timeline should remember, kept beside it. */
typedef struct mirror {
  const tl_fixture *f;
  ks_timeline *tl;
  uint32_t seen;
  float log_beta[MAX_TOK][N_STREAM];
  bool live[MAX_TOK][N_STREAM];
  ks_evict_params evict;
  bool pinned[MAX_TOK];
  uint32_t stop_at, n_poll, n_checked;
} mirror;

static uint32_t
next_random(uint32_t *state, uint32_t n)
{
  *state = *state * 1664525u + 1013904223u;
  return (*state >> 8) % n;
}

static bool
stop_cb(void *user)
{
  mirror *m = user;

  KS_ASSERT_LE(ks_kv_pool_get_used_pages(m->f->pool), ks_kv_pool_get_budget_pages(m->f->pool));
  KS_ASSERT_LE(ks_kv_pool_get_committed_bytes(m->f->pool),
               ks_kv_pool_get_budget_bytes(m->f->pool) + 65536);
  return ++m->n_poll == m->stop_at;
}

/* Takes over the tokens of the last pass: their log_beta comes from the pass itself. */
static void
mirror_new_tokens(mirror *m)
{
  const uint32_t seen = ks_timeline_get_seen(m->tl);

  KS_ASSERT_LE(seen, MAX_TOK);
  for (uint32_t l = 0; l < 2 && seen > m->seen; l++) {
    const float *tap = ks_graph_get_tap(ks_timeline_get_graph(m->tl), KS_TAP_LOG_BETA, l);

    KS_ASSERT(tap != NULL);
    for (uint32_t i = m->seen; i < seen; i++)
      for (uint32_t h = 0; h < 4; h++) {
        m->log_beta[i][l * 4 + h] = tap[(i - m->seen) * 4 + h];
        m->live[i][l * 4 + h] = true;
      }
  }
  m->seen = seen;
}

/* Pins of the policy itself, shrunk to what the caller's pins leave. */
static void
find_own_pins(const mirror *m, uint64_t n_keep, uint32_t *out_first, uint32_t *out_last)
{
  uint64_t total = 0, longest = 0, need, room;

  for (uint32_t s = 0; s < N_STREAM; s++) {
    uint64_t n = 0;

    for (uint32_t i = 0; i < m->seen; i++)
      n += m->live[i][s] && m->pinned[i];
    total += n;
    longest = n > longest ? n : longest;
  }
  if (ks_policy_is_global(m->evict.policy))
    need = total + (total > 0 ? m->evict.floor * N_STREAM : 0);
  else
    need = longest * N_STREAM;
  KS_ASSERT_LE(need, n_keep);
  room = (n_keep - need) / N_STREAM;
  if (ks_policy_is_global(m->evict.policy))
    room -= room < m->evict.floor ? room : m->evict.floor;
  *out_first = m->evict.pin_first < room ? m->evict.pin_first : (uint32_t)room;
  *out_last =
      m->evict.pin_last < room - *out_first ? m->evict.pin_last : (uint32_t)room - *out_first;
}

typedef struct ranked {
  float score;
  uint32_t pos, stream;
} ranked;

static int
compare_ranked(const void *a, const void *b)
{
  const ranked *x = a, *y = b;

  if (x->score != y->score)
    return x->score > y->score ? -1 : 1;
  if (x->pos != y->pos)
    return x->pos > y->pos ? -1 : 1;
  return x->stream < y->stream ? -1 : x->stream > y->stream;
}

static ranked candidates[MAX_TOK * N_STREAM];

/* Live entries of the streams from .. to-1, best first. */
static size_t
rank(const mirror *m, uint32_t from, uint32_t to, uint32_t first, uint32_t last)
{
  size_t n = 0;

  for (uint32_t i = 0; i < m->seen; i++)
    for (uint32_t s = from; s < to; s++) {
      float score = (float)i;

      if (!m->live[i][s])
        continue;
      if (ks_policy_needs_gate(m->evict.policy))
        score = ks_retention_score(m->log_beta[i][s], i, m->seen, m->evict.lookahead);
      if (m->pinned[i] || i < first || i + last >= m->seen)
        score = INFINITY;
      candidates[n++] = (ranked){score, i, s};
    }
  qsort(candidates, n, sizeof(*candidates), compare_ranked);
  return n;
}

/* What an eviction to n_keep should have left, by sorting everything. */
static void
evict_directly(mirror *m, uint64_t n_keep)
{
  uint32_t first = 0, last = 0, quota[N_STREAM], n_stream[N_STREAM];
  const bool global = ks_policy_is_global(m->evict.policy);
  const uint64_t n_floor = m->evict.floor * N_STREAM;

  find_own_pins(m, n_keep, &first, &last);
  for (uint32_t s = 0; s < N_STREAM; s++)
    quota[s] = global ? 0 : (uint32_t)(n_keep / N_STREAM);
  if (global) {
    const size_t n = rank(m, 0, N_STREAM, first, last);
    const uint64_t n_top = n_keep > n_floor ? n_keep - n_floor : 0;

    for (size_t i = 0; i < n && i < n_top; i++)
      quota[candidates[i].stream]++;
    for (uint32_t s = 0; s < N_STREAM; s++)
      quota[s] += m->evict.floor;
  }
  for (uint32_t s = 0; s < N_STREAM; s++) {
    const size_t n = rank(m, s, s + 1, first, last);

    n_stream[s] = 0;
    for (size_t i = 0; i < n; i++)
      m->live[candidates[i].pos][s] = n_stream[s]++ < quota[s];
  }
}

/* Entries of the table, stream by stream, into live; true when they are those of the mirror. */
static bool
equals_mirror(mirror *m, const ks_kv_table *table, bool adopt)
{
  const ks_kv_view view = ks_kv_table_get_view(table);
  bool equal = true;

  for (uint32_t s = 0; s < N_STREAM; s++) {
    static uint32_t pos[MAX_TOK];
    static bool there[MAX_TOK];
    const uint32_t n = view.streams[s].n_entry;

    memset(there, 0, sizeof(there));
    if (n > 0)
      KS_ASSERT_OK(
          m->f->be.t->kv_read(m->f->be.dev, &view, s, 0, n, NULL, NULL, NULL, pos, NULL, NULL));
    for (uint32_t e = 0; e < n; e++)
      there[pos[e]] = true;
    for (uint32_t i = 0; i < m->seen; i++) {
      equal = equal && there[i] == m->live[i][s];
      if (adopt)
        m->live[i][s] = there[i];
    }
  }
  return equal;
}

/* Policies whose scores the mirror can compute. */
static bool
is_checkable(const mirror *m)
{
  return ks_policy_needs_gate(m->evict.policy) || m->evict.policy == KS_POLICY_STREAMING;
}

static void
check_eviction(mirror *m, const ks_kv_table *table, uint64_t n_keep)
{
  if (!is_checkable(m)) {
    equals_mirror(m, table, true);
    return;
  }
  evict_directly(m, n_keep);
  KS_ASSERT(equals_mirror(m, table, false));
  m->n_checked++;
}

static void
evicted_cb(void *user, const ks_evict_event *event, const ks_kv_table *table)
{
  mirror *m = user;

  mirror_new_tokens(m);
  KS_ASSERT_EQ(event->seen, m->seen);
  KS_ASSERT_LE(event->n_after, ks_timeline_get_n_keep(m->tl));
  check_eviction(m, table, ks_timeline_get_n_keep(m->tl));
}

static bool
progress_cb(void *user, uint32_t n_done, uint32_t n_total)
{
  mirror_new_tokens(user);
  return true;
}

/* Evictions that a setter ran: no hook told of them. */
static void
sync_after_setter(mirror *m)
{
  const ks_kv_table *table = ks_timeline_get_table(m->tl);

  if (!equals_mirror(m, table, false))
    check_eviction(m, table, ks_timeline_get_n_keep(m->tl));
}

static void
reset(mirror *m)
{
  ks_timeline_reset(m->tl);
  m->seen = 0;
  memset(m->live, 0, sizeof(m->live));
  memset(m->pinned, 0, sizeof(m->pinned));
}

/* A turn of n tokens, in one call or token by token, perhaps cancelled somewhere. */
static uint32_t
take_turn(mirror *m, uint32_t *rnd, uint32_t n, bool decode)
{
  const ks_timeline_hooks hooks = {
      .progress = progress_cb, .evicted = evicted_cb, .stop = stop_cb, .user = m};
  uint32_t n_cancel = 0;

  if (ks_timeline_get_seen(m->tl) + n > MAX_TOK)
    reset(m);
  m->stop_at = next_random(rnd, 4) == 0 ? m->n_poll + 1 + next_random(rnd, 30) : 0;
  for (uint32_t done = 0; done < n; done += decode ? 1 : n) {
    const ks_status st = ks_timeline_eval(m->tl, tl_ids(n) + done, decode ? 1 : n, &hooks, NULL);

    KS_ASSERT(st == KS_OK || st == KS_ERR_CANCELLED || st == KS_ERR_BUDGET);
    KS_ASSERT_EQ(m->seen, ks_timeline_get_seen(m->tl));
    n_cancel += st == KS_ERR_CANCELLED;
    if (st != KS_OK)
      break;
  }
  return n_cancel;
}

static void
change_policy(mirror *m, uint32_t *rnd)
{
  static const ks_policy choice[] = {KS_POLICY_DBTRIMKV,       KS_POLICY_DBTRIMKV,
                                     KS_POLICY_TRIMKV,         KS_POLICY_STREAMING,
                                     KS_POLICY_KEYDIFF_GLOBAL, KS_POLICY_RANDOM};
  ks_evict_params p = ks_evict_default_params(choice[next_random(rnd, 6)]);

  p.lookahead = 1 + next_random(rnd, 3);
  p.floor = next_random(rnd, 3) == 0 ? next_random(rnd, 3) : 0;
  p.pin_last = next_random(rnd, 3);
  KS_ASSERT_OK(ks_timeline_set_policy(m->tl, &p, NULL));
  m->evict = p;
}

static void
change_pins(mirror *m, uint32_t *rnd)
{
  const uint32_t begin = next_random(rnd, m->seen + 10), end = begin + 1 + next_random(rnd, 4);
  const bool pin = next_random(rnd, 3) > 0;
  ks_status st;

  if (end > MAX_TOK)
    return;
  st = pin ? ks_timeline_pin(m->tl, begin, end, NULL) : ks_timeline_unpin(m->tl, 0, end, NULL);
  KS_ASSERT(st == KS_OK || (pin && st == KS_ERR_BUDGET));
  for (uint32_t i = pin ? begin : 0; st == KS_OK && i < end; i++)
    m->pinned[i] = pin;
}

/* One random action on one timeline; true when it was a cancelled turn. */
static uint32_t
act(mirror *m, uint32_t *rnd)
{
  const tl_fixture *f = m->f;
  ks_status st = KS_OK;

  switch (next_random(rnd, 12)) {
  case 0:
  case 1:
  case 2:
    return take_turn(m, rnd, 2 + next_random(rnd, 40), false);
  case 3:
  case 4:
  case 5:
    return take_turn(m, rnd, 1 + next_random(rnd, 12), true);
  case 6:
  case 7:
    st = ks_timeline_set_budget(
        m->tl, (N_STREAM * 4 + next_random(rnd, N_STREAM * 36)) * f->layout.page_bytes, NULL);
    break;
  case 8:
    change_policy(m, rnd);
    break;
  case 9:
    change_pins(m, rnd);
    break;
  case 10:
    st = ks_timeline_set_n_keep(
        m->tl, next_random(rnd, 2) ? 0 : N_STREAM * 2 + next_random(rnd, N_STREAM * 20), NULL);
    break;
  default:
    if (next_random(rnd, 3) == 0)
      reset(m);
    break;
  }
  KS_ASSERT(st == KS_OK || st == KS_ERR_BUDGET);
  sync_after_setter(m);
  return 0;
}

KS_TEST(timeline_random, never_over_budget_and_ranked_right)
{
  static mirror m[N_TL];
  tl_fixture f;
  uint32_t rnd = 2024, n_checked = 0, n_cancel = 0;
  uint64_t n_run = 0;

  tl_open_llama(&f, P, N_STREAM * 40, N_STREAM * 40);
  KS_ASSERT_EQ(f.n_stream, N_STREAM);
  for (uint32_t i = 0; i < N_TL; i++) {
    ks_timeline_params params = ks_timeline_default_params(f.model, f.gate, f.pool);

    params.chunk = 16 >> i;
    params.buffer = 4 - i;
    params.want_taps = true;
    m[i] = (mirror){.f = &f, .evict = params.evict};
    KS_ASSERT_OK(ks_timeline_new(f.alloc, &params, &m[i].tl, NULL));
  }
  for (uint32_t step = 0; step < 400; step++) {
    n_cancel += act(&m[next_random(&rnd, N_TL)], &rnd);
    KS_ASSERT_LE(ks_kv_pool_get_used_pages(f.pool), ks_kv_pool_get_budget_pages(f.pool));
    for (uint32_t i = 0; i < N_TL; i++)
      KS_ASSERT(ks_timeline_check(m[i].tl));
  }
  for (uint32_t i = 0; i < N_TL; i++) {
    ks_kv_stats stats;

    KS_ASSERT(equals_mirror(&m[i], ks_timeline_get_table(m[i].tl), false));
    ks_timeline_get_stats(m[i].tl, &stats);
    n_run += stats.n_eviction_runs;
    n_checked += m[i].n_checked;
    ks_timeline_free(m[i].tl);
  }
  printf("# %u evictions ranked directly, %u passes cancelled\n", n_checked, n_cancel);
  KS_ASSERT(n_checked > 100 && n_cancel > 5);
  tl_close(&f);
}

KS_TEST_MAIN
