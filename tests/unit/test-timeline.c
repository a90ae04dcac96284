/* test-timeline.c - passes and evictions of one timeline on a tiny model: when it evicts and to how
 * many, what a cancel, a smaller budget or a pin does, windows, counts. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/timeline.h"

#include "engine/budget.h"
#include "tests/unit/timeline-fixture.h"

#define P 4u

static ks_timeline *
new_timeline(tl_fixture *f, uint32_t chunk, uint32_t buffer, uint64_t n_keep)
{
  ks_timeline_params params = ks_timeline_default_params(f->model, f->gate, f->pool);
  ks_timeline *tl = NULL;
  ks_error err;

  params.chunk = chunk;
  params.buffer = buffer;
  params.n_keep = n_keep;
  if (ks_timeline_new(f->alloc, &params, &tl, &err) != KS_OK)
    KS_FAIL("%s", err.text);
  return tl;
}

typedef struct watch {
  const tl_fixture *f;
  uint64_t most_entries;
  uint32_t n_event, seen[64], n_poll, stop_at;
  uint64_t before[64], after[64];
} watch;

static void
evicted_cb(void *user, const ks_evict_event *event, const ks_kv_table *table)
{
  watch *w = user;

  KS_ASSERT_LT(w->n_event, 64);
  KS_ASSERT_EQ(ks_kv_table_get_n_entries(table), event->n_after);
  w->seen[w->n_event] = event->seen;
  w->before[w->n_event] = event->n_before;
  w->after[w->n_event++] = event->n_after;
}

static bool
stop_cb(void *user)
{
  watch *w = user;

  KS_ASSERT_LE(ks_kv_pool_get_used_pages(w->f->pool), ks_kv_pool_get_budget_pages(w->f->pool));
  return ++w->n_poll == w->stop_at;
}

/* Sessions evict down to K before the first chunk and after each one; decode lets B tokens gather
 * and then goes back to exactly K. */
KS_TEST(timeline, when_it_evicts)
{
  tl_fixture f;
  watch w = {.f = &f};
  const ks_timeline_hooks hooks = {.evicted = evicted_cb, .stop = stop_cb, .user = &w};
  ks_timeline *tl;
  const uint64_t s = 8;

  tl_open_llama(&f, P, 400, 400);
  KS_ASSERT_EQ(f.n_stream, s);
  tl = new_timeline(&f, 16, 5, 10 * s);
  KS_ASSERT_EQ(ks_timeline_get_n_keep(tl), 10 * s);
  KS_ASSERT(ks_timeline_get_logits(tl) == NULL);
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1), 40, &hooks, NULL));
  KS_ASSERT_EQ(w.n_event, 3); /* after 16, 32 and 40 tokens */
  KS_ASSERT(w.seen[0] == 16 && w.seen[1] == 32 && w.seen[2] == 40);
  KS_ASSERT(w.before[0] == 16 * s && w.before[1] == 26 * s && w.before[2] == 18 * s);
  KS_ASSERT(w.after[0] == 10 * s && w.after[1] == 10 * s && w.after[2] == 10 * s);
  KS_ASSERT(ks_timeline_get_logits(tl) != NULL);
  for (uint32_t i = 0; i < 12; i++) {
    KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(2) + i, 1, &hooks, NULL));
    KS_ASSERT_EQ(tl_entries(tl), (10 + (i + 1) % 5) * s); /* 11 12 13 14, then 15 falls to 10 */
  }
  KS_ASSERT_EQ(w.n_event, 5);
  KS_ASSERT(w.before[3] == 15 * s && w.after[3] == 10 * s && w.seen[3] == 45);
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(3), 2, &hooks, NULL)); /* a turn: forced first */
  KS_ASSERT(w.before[5] == 12 * s && w.seen[5] == 52 && w.after[5] == 10 * s);
  KS_ASSERT(w.before[6] == 12 * s && w.seen[6] == 54);
  KS_ASSERT_EQ(ks_timeline_get_seen(tl), 54);
  KS_ASSERT(ks_timeline_check(tl));
  ks_timeline_free(tl);
  tl_close(&f);
}

/* A long stream lets a part of its length gather, never more than a pass, and never fewer than B.
 */
KS_TEST(timeline, slack_grows_with_the_streams)
{
  static const struct {
    uint32_t part, gathered;
  } cases[] = {{0, 2}, {4, 10}, {40, 2}, {1, 16}}; /* of 40 entries a stream; B = 2, C = 16 */
  const uint64_t s = 8;

  for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
    tl_fixture f;
    watch w = {.f = &f};
    const ks_timeline_hooks hooks = {.evicted = evicted_cb, .stop = stop_cb, .user = &w};
    ks_timeline_params params;
    ks_timeline *tl = NULL;

    tl_open_llama(&f, P, 400, 400);
    params = ks_timeline_default_params(f.model, f.gate, f.pool);
    params.chunk = 16;
    params.buffer = 2;
    params.buffer_part = cases[c].part;
    params.n_keep = 40 * s;
    KS_ASSERT_OK(ks_timeline_new(f.alloc, &params, &tl, NULL));
    KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1), 60, NULL, NULL));
    for (uint32_t i = 0; i < 33; i++)
      KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(2) + i, 1, &hooks, NULL));
    KS_ASSERT_EQ(w.n_event, 33 / cases[c].gathered);
    KS_ASSERT(w.before[0] == (40 + cases[c].gathered) * s && w.after[0] == 40 * s);
    KS_ASSERT(ks_timeline_check(tl));
    ks_timeline_free(tl);
    tl_close(&f);
  }
}

/* K from the pool: whatever the lengths of the streams, prefill and decode run inside the pages. */
KS_TEST(timeline, entries_from_pages)
{
  tl_fixture f;
  watch w = {.f = &f};
  const ks_timeline_hooks hooks = {.stop = stop_cb, .user = &w};
  ks_timeline *tl;

  tl_open_llama(&f, P, 120, 120);
  tl = new_timeline(&f, 16, 4, 0);
  /* Room for 16 new tokens would take more than a quarter of 480 entries, and so does 8. */
  KS_ASSERT_EQ(ks_timeline_get_chunk(tl), 8);
  KS_ASSERT_EQ(ks_timeline_get_n_keep(tl), 480 - 8 * (8 + P - 1));
  for (uint32_t i = 0; i < 5; i++) {
    KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(i), 3 + 29 * i, &hooks, NULL));
    for (uint32_t k = 0; k < 7; k++)
      KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(i) + 200 + k, 1, &hooks, NULL));
    KS_ASSERT(ks_timeline_check(tl));
  }
  KS_ASSERT(w.n_poll > 100);
  ks_timeline_free(tl);
  tl_close(&f);
}

/* A cancelled pass leaves no trace: the same call again gives bit for bit what an undisturbed run
 * gives. */
KS_TEST(timeline, cancel_leaves_no_trace)
{
  tl_fixture f;
  ks_timeline *calm, *tl;
  const size_t n_bytes = 472 * sizeof(float);
  uint32_t n_cancel = 0;

  tl_open_llama(&f, P, 400, 400);
  KS_ASSERT_EQ(ks_model_get_shape(f.model)->n_vocab, 472);
  calm = new_timeline(&f, 16, 4, 80);
  tl = new_timeline(&f, 16, 4, 80);
  for (uint32_t turn = 0; turn < 6; turn++) {
    const uint32_t n = turn % 2 ? 1 : 16,
                   n_page = ks_kv_table_get_n_pages(ks_timeline_get_table(tl));
    const uint64_t n_entry = tl_entries(tl);
    watch w = {.f = &f, .stop_at = 1 + turn * 3};
    const ks_timeline_hooks hooks = {.stop = stop_cb, .user = &w};
    const uint32_t seen = ks_timeline_get_seen(tl);
    ks_status st;

    KS_ASSERT_OK(ks_timeline_eval(calm, tl_ids(turn), n, NULL, NULL));
    st = ks_timeline_eval(tl, tl_ids(turn), n, &hooks, NULL);
    if (st == KS_ERR_CANCELLED) {
      n_cancel++;
      KS_ASSERT_EQ(ks_timeline_get_seen(tl), seen);
      /* The eviction before a chunk is no part of the pass. */
      KS_ASSERT_EQ(tl_entries(tl), n > 1 && n_entry > 80 ? 80 : n_entry);
      KS_ASSERT_LE(ks_kv_table_get_n_pages(ks_timeline_get_table(tl)), n_page);
      KS_ASSERT(ks_timeline_check(tl));
      st = ks_timeline_eval(tl, tl_ids(turn), n, NULL, NULL);
    }
    KS_ASSERT_OK(st);
    KS_ASSERT(memcmp(ks_timeline_get_logits(tl), ks_timeline_get_logits(calm), n_bytes) == 0);
  }
  KS_ASSERT(n_cancel >= 3);
  ks_timeline_free(calm);
  ks_timeline_free(tl);
  tl_close(&f);
}

static bool
progress_cb(void *user, uint32_t n_done, uint32_t n_total)
{
  (void)user;
  return n_done < 20 || n_total < 20;
}

/* Progress may stop a prefill between two chunks; what was done stays. */
KS_TEST(timeline, progress_stops_between_chunks)
{
  tl_fixture f;
  const ks_timeline_hooks hooks = {.progress = progress_cb};
  ks_timeline *tl;

  tl_open_llama(&f, P, 400, 400);
  tl = new_timeline(&f, 8, 4, 80);
  KS_ASSERT_STATUS(KS_ERR_CANCELLED, ks_timeline_eval(tl, tl_ids(1), 60, &hooks, NULL));
  KS_ASSERT_EQ(ks_timeline_get_seen(tl), 24);
  KS_ASSERT(ks_timeline_get_logits(tl) == NULL);
  KS_ASSERT(ks_timeline_check(tl));
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1) + 24, 36, NULL, NULL));
  KS_ASSERT_EQ(ks_timeline_get_seen(tl), 60);
  ks_timeline_free(tl);
  tl_close(&f);
}

typedef struct collected {
  uint32_t n, row[64];
  float first[64];
} collected;

static void
logits_cb(void *user, uint32_t row, const float *logits)
{
  collected *c = user;

  KS_ASSERT_LT(c->n, 64);
  c->row[c->n] = row;
  c->first[c->n++] = logits[5];
}

/* Rows that are asked for come in order, over chunk borders, and more than there is room for are
 * refused before anything is done. */
KS_TEST(timeline, logit_rows)
{
  static const uint32_t rows[] = {0, 7, 8, 19};
  tl_fixture f;
  ks_timeline_params params;
  collected all = {.n = 0}, some = {.n = 0};
  ks_timeline_hooks hooks = {.logits = logits_cb, .user = &all};
  ks_timeline *tl = NULL;

  tl_open_llama(&f, P, 400, 400);
  params = ks_timeline_default_params(f.model, f.gate, f.pool);
  params.chunk = 8;
  params.buffer = 4;
  params.max_logit_rows = 8;
  KS_ASSERT_OK(ks_timeline_new(f.alloc, &params, &tl, NULL));
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(4), 20, &hooks, NULL));
  KS_ASSERT_EQ(all.n, 20);
  KS_ASSERT(fabsf(all.first[7] - all.first[8]) > 1e-3f); /* the comparison below can fail */
  ks_timeline_reset(tl);
  hooks = (ks_timeline_hooks){.logits = logits_cb, .user = &some, .logit_rows = rows, .n_logit = 4};
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(4), 21, &hooks, NULL));
  KS_ASSERT_EQ(some.n, 4);
  for (uint32_t i = 0; i < 4; i++) {
    KS_ASSERT_EQ(some.row[i], rows[i]);
    KS_ASSERT_NEAR(some.first[i], all.first[rows[i]], 1e-4);
  }
  ks_timeline_free(tl);
  params.max_logit_rows = 2;
  KS_ASSERT_OK(ks_timeline_new(f.alloc, &params, &tl, NULL));
  hooks.logit_rows = NULL;
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_timeline_eval(tl, tl_ids(4), 3, &hooks, NULL));
  KS_ASSERT_EQ(ks_timeline_get_seen(tl), 0);
  KS_ASSERT_EQ(ks_kv_pool_get_used_pages(f.pool), 0);
  ks_timeline_free(tl);
  tl_close(&f);
}

/* Full memory: a call that does not fit is refused as a whole and says how many tokens do. */
KS_TEST(timeline, full_memory_runs_out)
{
  tl_fixture f;
  ks_evict_params full = ks_evict_default_params(KS_POLICY_FULL);
  ks_timeline *tl;
  ks_error err;

  tl_open_llama(&f, P, 8 * 10, 8 * 20); /* 40 tokens */
  tl = new_timeline(&f, 16, 4, 0);
  KS_ASSERT_OK(ks_timeline_set_policy(tl, &full, NULL));
  KS_ASSERT_EQ(ks_timeline_get_n_keep(tl), 40 * 8);
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1), 25, NULL, NULL));
  KS_ASSERT_STATUS(KS_ERR_BUDGET, ks_timeline_eval(tl, tl_ids(1), 16, NULL, &err));
  KS_ASSERT(strstr(err.text, "15 more tokens fit, 16 were given") != NULL);
  KS_ASSERT_EQ(ks_timeline_get_seen(tl), 25);
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1), 15, NULL, NULL));
  KS_ASSERT_EQ(tl_entries(tl), 40 * 8);
  KS_ASSERT_STATUS(KS_ERR_BUDGET, ks_timeline_eval(tl, tl_ids(1), 1, NULL, &err));
  KS_ASSERT_STATUS(KS_ERR_BUDGET, ks_timeline_set_budget(tl, 8 * 9 * f.layout.page_bytes, &err));
  KS_ASSERT_OK(ks_timeline_set_budget(tl, 8 * 20 * f.layout.page_bytes, &err));
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1), 1, NULL, &err));
  KS_ASSERT(ks_timeline_check(tl));
  ks_timeline_free(tl);
  tl_close(&f);
}

/* The amount of memory that an error names, with the number of entries behind it. */
static uint64_t
bytes_named(const char *text)
{
  const char *p = strstr(text, "smallest budget that works is ");
  const char *end = strstr(text, " (1 entry in each stream)");
  char amount[KS_BUDGET_TEXT_BYTES];
  uint64_t n_bytes = 0;

  if (p == NULL || end == NULL)
    KS_FAIL("no amount of memory in: %s", text);
  p += strlen("smallest budget that works is ");
  snprintf(amount, sizeof(amount), "%.*s", (int)(end - p), p);
  KS_ASSERT_OK(ks_budget_parse_bytes(amount, &n_bytes, NULL));
  return n_bytes;
}

/* A smaller budget between two decode steps holds at once; one too small names the smallest that
 * works, and that one works. */
KS_TEST(timeline, budget_changes)
{
  tl_fixture f;
  ks_timeline *tl;
  ks_error err;
  uint64_t least, named;

  tl_open_llama(&f, P, 8 * 40, 8 * 60);
  tl = new_timeline(&f, 16, 4, 0);
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1), 150, NULL, NULL));
  KS_ASSERT(tl_entries(tl) == 8 * (160 - 16 - 3));
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1), 1, NULL, NULL));
  KS_ASSERT_OK(ks_timeline_set_budget(tl, 8 * 12 * f.layout.page_bytes, NULL));
  KS_ASSERT_LE(ks_kv_pool_get_used_pages(f.pool), 8 * 12);
  KS_ASSERT_LE(ks_kv_pool_get_committed_bytes(f.pool), 8 * 12 * f.layout.page_bytes + 65536);
  KS_ASSERT_EQ(ks_timeline_get_chunk(tl), 8);
  KS_ASSERT_EQ(tl_entries(tl), 8 * (48 - 8 - 3));
  for (uint32_t i = 0; i < 9; i++)
    KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(2) + i, 1, NULL, NULL));
  KS_ASSERT(ks_timeline_check(tl));
  KS_ASSERT_STATUS(KS_ERR_BUDGET, ks_timeline_set_budget(tl, 2000, &err));
  named = bytes_named(err.text);
  KS_ASSERT(strstr(err.text, "iB (") != NULL); /* no bytes by the hundred thousand */
  for (least = 0; ks_timeline_set_budget(tl, least, &err) != KS_OK; least += f.layout.page_bytes)
    KS_ASSERT_EQ(bytes_named(err.text), named);
  KS_ASSERT_LE(least, named);
  KS_ASSERT_LT(named - least, 2 * KS_KV_UNIT_BYTES);
  KS_ASSERT_GE(ks_timeline_get_n_keep(tl), 8);
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(2), 30, NULL, &err));
  KS_ASSERT(ks_timeline_check(tl));
  KS_ASSERT_OK(ks_timeline_set_budget(tl, 8 * 60 * f.layout.page_bytes, NULL));
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(2), 100, NULL, &err));
  KS_ASSERT_GE(tl_entries(tl), 8 * 100);
  KS_ASSERT_STATUS(KS_ERR_BUDGET, ks_timeline_set_n_keep(tl, 7, &err));
  KS_ASSERT_OK(ks_timeline_set_n_keep(tl, 8 * 6, &err));
  KS_ASSERT_EQ(tl_entries(tl), 8 * 6);
  KS_ASSERT_LE(ks_kv_pool_get_committed_bytes(f.pool), 8 * 8 * f.layout.page_bytes + 65536);
  KS_ASSERT(ks_timeline_check(tl));
  ks_timeline_free(tl);
  tl_close(&f);
}

/* Live positions of one stream that lie inside a range. */
static uint32_t
count_live(const tl_fixture *f, const ks_timeline *tl, uint32_t stream, uint32_t begin,
           uint32_t end)
{
  const ks_kv_view view = ks_kv_table_get_view(ks_timeline_get_table(tl));
  uint32_t pos[512], n = 0;

  KS_ASSERT_LE(view.streams[stream].n_entry, 512);
  if (view.streams[stream].n_entry > 0)
    KS_ASSERT_OK(f->be.t->kv_read(f->be.dev, &view, stream, 0, view.streams[stream].n_entry, NULL,
                                  NULL, NULL, pos, NULL, NULL));
  for (uint32_t e = 0; e < view.streams[stream].n_entry; e++)
    n += pos[e] >= begin && pos[e] < end;
  return n;
}

/* Pinned tokens stay in every stream; the newest pin is refused when it does not fit, and a budget
 * below what is pinned too. */
KS_TEST(timeline, pins)
{
  tl_fixture f;
  ks_timeline *tl;
  ks_error err;

  tl_open_llama(&f, P, 400, 400);
  tl = new_timeline(&f, 16, 4, 8 * 12);
  KS_ASSERT_OK(ks_timeline_pin(tl, 2, 5, NULL)); /* before the tokens are there */
  KS_ASSERT_OK(ks_timeline_pin(tl, 4, 8, NULL));
  KS_ASSERT_STATUS(KS_ERR_BUDGET, ks_timeline_pin(tl, 20, 27, &err));
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_timeline_pin(tl, 9, 9, NULL));
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1), 100, NULL, NULL));
  for (uint32_t s = 0; s < 8; s++)
    KS_ASSERT_EQ(count_live(&f, tl, s, 2, 8), 6);
  KS_ASSERT_STATUS(KS_ERR_BUDGET, ks_timeline_set_n_keep(tl, 8 * 6 - 1, &err));
  KS_ASSERT(strstr(err.text, "pinned") != NULL);
  KS_ASSERT_OK(ks_timeline_set_n_keep(tl, 8 * 6, NULL));
  for (uint32_t s = 0; s < 8; s++)
    KS_ASSERT_EQ(ks_kv_table_get_view(ks_timeline_get_table(tl)).streams[s].n_entry, 6);
  KS_ASSERT_OK(ks_timeline_unpin(tl, 3, 7, NULL)); /* 2 and 7 stay pinned */
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(2), 60, NULL, NULL));
  KS_ASSERT_OK(ks_timeline_set_n_keep(tl, 8 * 2, NULL));
  for (uint32_t s = 0; s < 8; s++)
    KS_ASSERT(count_live(&f, tl, s, 2, 3) == 1 && count_live(&f, tl, s, 7, 8) == 1);
  KS_ASSERT(ks_timeline_check(tl));
  ks_timeline_free(tl);
  tl_close(&f);
}

/* Policies change between two calls; one that needs a gate is refused without.  AdaKV rounds its
 * shares and may leave some of the room empty. */
KS_TEST(timeline, policy_changes)
{
  tl_fixture f;
  ks_timeline *tl;
  ks_evict_params p;

  tl_open(&f, "llama/model.gguf", NULL, P, 400, 400);
  tl = new_timeline(&f, 16, 4, 8 * 8);
  p = ks_evict_default_params(KS_POLICY_DBTRIMKV);
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_timeline_set_policy(tl, &p, NULL));
  for (int i = 0; i < KS_N_POLICY; i++) {
    p = ks_evict_default_params((ks_policy)i);
    if (ks_policy_needs_gate(p.policy) || ks_policy_never_evicts(p.policy))
      continue;
    KS_ASSERT_OK(ks_timeline_set_policy(tl, &p, NULL));
    KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids((uint32_t)i), 21, NULL, NULL));
    if (i == KS_POLICY_ADAKV)
      KS_ASSERT(tl_entries(tl) <= 8 * 8 && tl_entries(tl) > 8 * 6);
    else
      KS_ASSERT_EQ(tl_entries(tl), 8 * 8);
    KS_ASSERT(ks_timeline_check(tl));
  }
  ks_timeline_free(tl);
  tl_close(&f);
}

/* The mode faithful reads a prompt as a whole and cuts it once: what survives does not depend on
 * the passes, for policies that look at queries or count attention either; the most that was held
 * is the prompt.  A prompt that does not fit is refused before it is read. */
KS_TEST(timeline, faithful_prompt)
{
  static const ks_policy policies[] = {KS_POLICY_H2O,    KS_POLICY_SNAPKV,    KS_POLICY_ADAKV,
                                       KS_POLICY_RKV,    KS_POLICY_PYRAMIDKV, KS_POLICY_STREAMING,
                                       KS_POLICY_TRIMKV, KS_POLICY_DBTRIMKV};

  for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++) {
    uint32_t live[2][8][61];

    for (uint32_t k = 0; k < 2; k++) {
      ks_timeline_params params;
      ks_timeline *tl = NULL;
      ks_kv_stats stats;
      tl_fixture f;

      tl_open_llama(&f, P, 8 * 20, 8 * 20);
      params = ks_timeline_default_params(f.model, f.gate, f.pool);
      params.evict = ks_evict_faithful_params(policies[i]);
      params.evict.window = params.evict.window > 0 ? 6 : 0;
      params.chunk = k == 0 ? 13 : 60;
      params.buffer = 4;
      params.n_keep = 8 * 16;
      KS_ASSERT_OK(ks_timeline_new(f.alloc, &params, &tl, NULL));
      KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(4), 60, NULL, NULL));
      ks_timeline_get_stats(tl, &stats);
      KS_ASSERT_EQ(stats.n_entries_peak, 8 * 60);
      KS_ASSERT_EQ(stats.n_eviction_runs, 1);
      KS_ASSERT_LE(tl_entries(tl), 8 * 16);
      for (uint32_t s = 0; s < 8; s++)
        for (uint32_t t = 0; t < 60; t++)
          live[k][s][t] = count_live(&f, tl, s, t, t + 1);
      KS_ASSERT_STATUS(KS_ERR_BUDGET, ks_timeline_eval(tl, tl_ids(4), 90, NULL, NULL));
      KS_ASSERT_EQ(ks_timeline_get_seen(tl), 60);
      KS_ASSERT(ks_timeline_check(tl));
      ks_timeline_free(tl);
      tl_close(&f);
    }
    for (uint32_t s = 0; s < 8; s++)
      for (uint32_t t = 0; t < 60; t++)
        KS_ASSERT_EQ(live[0][s][t], live[1][s][t]);
  }
}

static bool
stop_at_once(void *user)
{
  uint32_t *n_left = user;

  return (*n_left)-- == 0;
}

/* A pass that is stopped halfway leaves nothing in the sums of H2O: read again, the tokens leave
 * the same entries as without the stop. */
KS_TEST(timeline, stopped_pass_adds_no_attention)
{
  char kept[2][400];

  for (int stopped = 0; stopped < 2; stopped++) {
    ks_timeline_params params;
    ks_timeline *tl = NULL;
    size_t at = 0;
    tl_fixture f;

    tl_open(&f, "llama/model.gguf", NULL, P, 400, 400);
    params = ks_timeline_default_params(f.model, NULL, f.pool);
    params.evict = ks_evict_default_params(KS_POLICY_H2O);
    params.chunk = 20;
    params.buffer = 4;
    params.n_keep = 8 * 10;
    KS_ASSERT_OK(ks_timeline_new(f.alloc, &params, &tl, NULL));
    KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(3), 10, NULL, NULL));
    for (uint32_t n = 1; stopped && n < 10; n += 4) {
      uint32_t n_left = n;
      const ks_timeline_hooks hooks = {.stop = stop_at_once, .user = &n_left};

      KS_ASSERT_STATUS(KS_ERR_CANCELLED, ks_timeline_eval(tl, tl_ids(5), 20, &hooks, NULL));
    }
    KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(5), 20, NULL, NULL));
    for (uint32_t s = 0; s < 8; s++)
      for (uint32_t t = 0; t < 30; t++)
        if (count_live(&f, tl, s, t, t + 1) > 0)
          at += (size_t)snprintf(kept[stopped] + at, sizeof(kept[0]) - at, "%u ", t);
    ks_timeline_free(tl);
    tl_close(&f);
  }
  KS_ASSERT_STR(kept[1], kept[0]);
}

/* Sliding-window layers: entries out of the window go when room is short, without changing a single
 * logit under full memory. */
KS_TEST(timeline, dead_window_entries_make_room)
{
  const ks_evict_params full = ks_evict_default_params(KS_POLICY_FULL);
  static float want[4096];
  uint32_t n_stream = 0;

  for (int tight = 0; tight < 2; tight++) {
    tl_fixture f;
    ks_timeline *tl = NULL;
    ks_timeline_params params;
    uint32_t n_vocab;

    /* 90 tokens need 23 pages in each stream; with a window of 16 the local ones need 4 + 2. */
    tl_open(&f, "gemma3/model.gguf", NULL, P, 30 * 64, 30 * 64);
    n_stream = f.n_stream;
    n_vocab = ks_model_get_shape(f.model)->n_vocab;
    KS_ASSERT_LE(n_vocab, 4096);
    params = ks_timeline_default_params(f.model, NULL, f.pool);
    params.evict = full;
    params.chunk = 8;
    params.buffer = 4;
    params.force_evict = tight; /* else nothing goes before room is short */
    KS_ASSERT_OK(ks_timeline_new(f.alloc, &params, &tl, NULL));
    if (tight)
      KS_ASSERT_OK(ks_timeline_set_budget(tl, n_stream * 12 * f.layout.page_bytes, NULL));
    KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1), 90, NULL, NULL));
    KS_ASSERT(ks_timeline_check(tl));
    KS_ASSERT_EQ(tl_entries(tl) < 90 * n_stream, tight);
    if (tight)
      KS_ASSERT(memcmp(want, ks_timeline_get_logits(tl), n_vocab * sizeof(float)) == 0);
    else
      memcpy(want, ks_timeline_get_logits(tl), n_vocab * sizeof(float));
    ks_timeline_free(tl);
    tl_close(&f);
  }
}

/* Counts by stream, turn and modality add up to the entries; bytes are those of the pool. */
KS_TEST(timeline, statistics)
{
  tl_fixture f;
  ks_timeline *tl;
  ks_kv_stats stats;
  uint64_t by_stream = 0, by_turn = 0;

  tl_open_llama(&f, P, 400, 400);
  tl = new_timeline(&f, 16, 4, 8 * 20);
  for (uint16_t turn = 0; turn < 30; turn++) {
    ks_timeline_set_turn(tl, turn, turn % 3);
    KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(turn), 1 + turn % 5, NULL, NULL));
  }
  ks_timeline_get_stats(tl, &stats);
  KS_ASSERT_EQ(stats.n_turn, 30);
  KS_ASSERT_EQ(stats.seen, 90);
  KS_ASSERT_EQ(stats.n_entries, tl_entries(tl));
  KS_ASSERT_EQ(stats.n_entries + stats.n_evicted, 90 * 8);
  KS_ASSERT(stats.n_eviction_runs > 5);
  for (uint32_t s = 0; s < 8; s++)
    by_stream += stats.by_stream[s];
  for (uint32_t t = 0; t < 30; t++) {
    by_turn += stats.by_turn[t];
    KS_ASSERT_EQ(stats.turn_tokens[t], 1 + t % 5);
    KS_ASSERT_LE(stats.by_turn[t], 8 * stats.turn_tokens[t]);
  }
  KS_ASSERT_EQ(by_stream, stats.n_entries);
  KS_ASSERT_EQ(by_turn, stats.n_entries);
  KS_ASSERT_EQ(stats.by_modality[KS_MODALITY_TEXT], stats.n_entries);
  KS_ASSERT_EQ(stats.kv_used_bytes, stats.n_pages_used * f.layout.page_bytes);
  KS_ASSERT_EQ(stats.n_keep, 8 * 20);
  KS_ASSERT_EQ(stats.gate_bytes, ks_gate_get_bytes(f.gate));
  KS_ASSERT_EQ(sizeof(ks_token_info), 24);
  KS_ASSERT_EQ(ks_timeline_get_tokens(tl)[89].turn, 29);
  KS_ASSERT_EQ(ks_timeline_get_tokens(tl)[89].rope_t, 89);
  ks_timeline_reset(tl);
  KS_ASSERT(ks_timeline_check(tl));
  ks_timeline_get_stats(tl, &stats);
  KS_ASSERT(stats.seen == 0 && stats.n_turn == 0 && stats.n_entries == 0);
  KS_ASSERT_EQ(stats.kv_committed_bytes, 0);
  ks_timeline_free(tl);
  tl_close(&f);
}

KS_TEST_MAIN
