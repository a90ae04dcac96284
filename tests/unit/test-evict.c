/* test-evict.c - evictions on the CPU backend: the worked examples of the method, ties, pins, dead
 * entries, and every policy against a direct computation. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/evict.h"

#include "engine/retention.h"

#include "tests/unit/kv-fixture.h"

static void
log_all(const float *beta, float *out, size_t n)
{
  for (size_t i = 0; i < n; i++)
    out[i] = logf(beta[i]);
}

static const float beta_a[12] = {.99f, .50f, .90f, .60f, .95f, .80f,
                                 .97f, .98f, .30f, .96f, .20f, .70f};

/* One ranking over two layers: K decides together how many entries each layer keeps. */
KS_TEST(evict, one_budget_over_layers)
{
  static const struct {
    uint64_t n_keep;
    uint32_t lookahead;
    const char *want;
    float last_kept, first_dropped;
  } cases[] = {
      {4, 1, "0 4 | 1 3", -.163288f, -.213214f},
      {5, 1, "0 4 | 0 1 3", -.213214f, -.446287f},
      {4, 2, "0 4 | 1 3", .462656f, NAN},
      {0, 1, " |", NAN, -.070352f},
  };
  float lb[12];

  log_all(beta_a, lb, 12);
  for (size_t i = 0; i < 4; i++) {
    ks_evict_params p = ks_evict_default_params(KS_POLICY_DBTRIMKV);
    ks_evict_event event;
    kv_fixture f;

    p.pin_first = 0;
    p.lookahead = cases[i].lookahead;
    fix_open(&f, 2, 1, 2, 16);
    fix_append(&f, f.table, 0, 6, lb, NULL);
    KS_ASSERT_OK(fix_evict(&f, f.table, &p, 6, cases[i].n_keep, NULL, 0, &event));
    if (cases[i].n_keep > 0)
      KS_ASSERT_STR(fix_survivors(&f, f.table), cases[i].want);
    KS_ASSERT_EQ(event.n_before, 12);
    KS_ASSERT_EQ(event.n_after, cases[i].n_keep);
    if (cases[i].n_keep > 0)
      KS_ASSERT_NEAR(event.last_kept, cases[i].last_kept, 2e-6);
    if (!isnan(cases[i].first_dropped))
      KS_ASSERT_NEAR(event.first_dropped, cases[i].first_dropped, 2e-6);
    fix_close(&f);
  }
}

/* A head that forgets fast may lose everything; rankings within heads and a floor prevent it. */
KS_TEST(evict, starved_head)
{
  static const float beta[8] = {.99f, .98f, .97f, .96f, .5f, .6f, .2f, .3f};
  static const struct {
    ks_policy policy;
    uint32_t floor;
    const char *want;
  } cases[] = {
      {KS_POLICY_DBTRIMKV, 0, "0 1 2 3 |"},
      {KS_POLICY_TRIMKV, 0, "0 1 | 1 3"},
      {KS_POLICY_DBTRIMKV, 1, "0 1 3 | 1"},
  };
  float lb[8];

  log_all(beta, lb, 8);
  for (size_t i = 0; i < 3; i++) {
    ks_evict_params p = ks_evict_default_params(cases[i].policy);
    kv_fixture f;

    p.pin_first = 0;
    p.floor = cases[i].floor;
    fix_open(&f, 1, 2, 2, 16);
    fix_append(&f, f.table, 0, 4, lb, NULL);
    KS_ASSERT_OK(fix_evict(&f, f.table, &p, 4, 4, NULL, 0, NULL));
    KS_ASSERT_STR(fix_survivors(&f, f.table), cases[i].want);
    fix_close(&f);
  }
}

/* The order of two entries changes with time and with the lookahead. */
KS_TEST(evict, order_changes)
{
  static const struct {
    uint32_t pos[2], seen, lookahead;
    float beta[2];
    const char *want;
    float last_kept, first_dropped;
  } cases[] = {
      {{0, 8}, 9, 1, {.95f, .80f}, "8", -.446287f, -.512933f},
      {{0, 8}, 10, 1, {.95f, .80f}, "0", -.564226f, -.669431f},
      {{1, 14}, 15, 1, {.95f, .70f}, "14", -.713350f, -.769400f},
      {{1, 14}, 15, 2, {.95f, .70f}, "1", -.152860f, -.539397f},
  };

  for (size_t i = 0; i < 4; i++) {
    ks_evict_params p = ks_evict_default_params(KS_POLICY_DBTRIMKV);
    ks_evict_event event;
    float lb[2];
    kv_fixture f;

    p.pin_first = 0;
    p.lookahead = cases[i].lookahead;
    log_all(cases[i].beta, lb, 2);
    fix_open(&f, 1, 1, 2, 16);
    fix_append(&f, f.table, cases[i].pos[0], 1, &lb[0], NULL);
    fix_append(&f, f.table, cases[i].pos[1], 1, &lb[1], NULL);
    KS_ASSERT_OK(fix_evict(&f, f.table, &p, cases[i].seen, 1, NULL, 0, &event));
    KS_ASSERT_STR(fix_survivors(&f, f.table), cases[i].want);
    KS_ASSERT_NEAR(event.last_kept, cases[i].last_kept, 1e-5);
    KS_ASSERT_NEAR(event.first_dropped, cases[i].first_dropped, 1e-5);
    fix_close(&f);
  }
}

/* Equal scores: the newer entry, then the smaller layer, then the smaller head. */
KS_TEST(evict, ties)
{
  static const float lb[4 * 5]; /* log_beta 0: score 0 at any age */
  static const struct {
    uint64_t n_keep;
    const char *want;
  } cases[] = {{4, "4 | 4 | 4 | 4"}, {5, "3 4 | 4 | 4 | 4"}, {7, "3 4 | 3 4 | 3 4 | 4"}};

  for (size_t i = 0; i < 3; i++) {
    ks_evict_params p = ks_evict_default_params(KS_POLICY_DBTRIMKV);
    kv_fixture f;

    p.pin_first = 0;
    fix_open(&f, 2, 2, 4, 16);
    fix_append(&f, f.table, 0, 5, lb, NULL);
    KS_ASSERT_OK(fix_evict(&f, f.table, &p, 5, cases[i].n_keep, NULL, 0, NULL));
    KS_ASSERT_STR(fix_survivors(&f, f.table), cases[i].want);
    fix_close(&f);
  }
}

/* The worked compaction: stream A on pages 5 1 3 keeps entries 0 3 4, stream B on pages 0 4 keeps
 * entry 2; the free pages go from 6 2 to 6 2 3 4, the last one on top. */
KS_TEST(evict, worked_compaction)
{
  ks_evict_params p = ks_evict_default_params(KS_POLICY_DBTRIMKV);
  ks_kv_table *holder[4];
  const ks_kv_stream *s;
  kv_fixture f;
  float lb[10];

  fix_open(&f, 1, 2, 2, 8);
  for (uint32_t i = 0; i < 4; i++) { /* holder i: page 2i in stream A, 2i+1 in B */
    KS_ASSERT_OK(ks_kv_table_new(f.pool, &holder[i], NULL));
    KS_ASSERT_OK(ks_kv_table_reserve(holder[i], 2, NULL));
    ks_kv_table_commit(holder[i], 2);
    s = ks_kv_table_get_view(holder[i]).streams;
    KS_ASSERT_EQ(s[0].pages[0], 2 * i);
    KS_ASSERT_EQ(s[1].pages[0], 2 * i + 1);
  }
  /* Free 6 2 3 4 1 0 5 in this order, so that they are taken from 5 on. */
  ks_kv_table_set_lengths(holder[3], (const uint32_t[]){0, 2});
  ks_kv_table_set_lengths(holder[1], (const uint32_t[]){0, 2});
  ks_kv_table_set_lengths(holder[1], (const uint32_t[]){0, 0});
  ks_kv_table_set_lengths(holder[2], (const uint32_t[]){0, 2});
  ks_kv_table_set_lengths(holder[0], (const uint32_t[]){2, 0});
  ks_kv_table_set_lengths(holder[0], (const uint32_t[]){0, 0});
  ks_kv_table_set_lengths(holder[2], (const uint32_t[]){0, 0});
  for (uint32_t i = 0; i < 10; i++) /* A keeps 0 3 4, B keeps 2 */
    lb[i] = i == 0 || i == 3 || i == 4 || i == 5 + 2 ? 0.0f : -9.0f;
  for (uint32_t t = 0; t < 5; t += 2) {
    const uint32_t n = t < 4 ? 2 : 1;
    const float part[4] = {lb[t], n == 2 ? lb[t + 1] : lb[5 + t], lb[5 + t],
                           n == 2 ? lb[5 + t + 1] : 0.0f};

    fix_append(&f, f.table, t, n, part, NULL);
  }
  ks_kv_table_set_lengths(f.table, (const uint32_t[]){5, 3});
  s = ks_kv_table_get_view(f.table).streams;
  KS_ASSERT(s[0].pages[0] == 5 && s[0].pages[1] == 1 && s[0].pages[2] == 3 && s[0].n_page == 3);
  KS_ASSERT(s[1].pages[0] == 0 && s[1].pages[1] == 4 && s[1].n_page == 2);
  p.pin_first = 0;
  KS_ASSERT_OK(fix_evict(&f, f.table, &p, 5, 4, NULL, 0, NULL));
  KS_ASSERT_STR(fix_survivors(&f, f.table), "0 3 4 | 2");
  KS_ASSERT(s[0].n_page == 2 && s[0].pages[0] == 5 && s[0].pages[1] == 1);
  KS_ASSERT(s[1].n_page == 1 && s[1].pages[0] == 0);
  KS_ASSERT_OK(ks_kv_table_reserve(holder[0], 4, NULL)); /* takes 4 3 for A, 2 6 for B */
  s = ks_kv_table_get_view(holder[0]).streams;
  KS_ASSERT(s[0].pages[0] == 4 && s[0].pages[1] == 3);
  KS_ASSERT(s[1].pages[0] == 2 && s[1].pages[1] == 6);
  for (uint32_t i = 0; i < 4; i++)
    ks_kv_table_free(holder[i]);
  fix_close(&f);
}

static uint32_t
next_random(uint32_t *state)
{
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

#define N_TOK 60u
#define N_STREAM 6u

static void
fill_random(float *lb, float *keys)
{
  uint32_t rnd = 5;

  for (uint32_t i = 0; i < N_STREAM * N_TOK; i++)
    lb[i] = -(float)(next_random(&rnd) % 1000) / 900.0f;
  for (uint32_t i = 0; i < N_STREAM * N_TOK * FIX_DIM; i++)
    keys[i] = (float)(next_random(&rnd) % 2000) / 1000.0f - 0.7f;
}

/* Pins survive whatever their score is; what is pinned in excess is refused and nothing changes. */
KS_TEST(evict, pins)
{
  static const ks_pos_range pins[] = {{10, 12}, {30, 31}};
  static float lb[N_STREAM * N_TOK], keys[N_STREAM * N_TOK * FIX_DIM];

  fill_random(lb, keys);
  for (uint32_t s = 0; s < N_STREAM; s++)
    lb[s * N_TOK + 10] = lb[s * N_TOK + 11] = lb[s * N_TOK + 30] = lb[s * N_TOK] = -50.0f;
  for (int policy = 0; policy < KS_N_POLICY; policy++) {
    ks_evict_params p = ks_evict_default_params((ks_policy)policy);
    const ks_kv_stream *s;
    kv_fixture f;

    if (ks_policy_never_evicts((ks_policy)policy))
      continue;
    p.pin_first = 1;
    p.pin_last = 2;
    fix_open(&f, 3, 2, 4, 200);
    fix_append(&f, f.table, 0, N_TOK, lb, keys);
    KS_ASSERT_STATUS(KS_ERR_BUDGET,
                     fix_evict(&f, f.table, &p, N_TOK, N_STREAM * 3 - 1, pins, 2, NULL));
    KS_ASSERT_EQ(ks_kv_table_get_n_entries(f.table), N_STREAM * N_TOK);
    KS_ASSERT_OK(fix_evict(&f, f.table, &p, N_TOK, N_STREAM * 6, pins, 2, NULL));
    KS_ASSERT_STR(fix_survivors(&f, f.table),
                  "0 10 11 30 58 59 | 0 10 11 30 58 59 | 0 10 11 30 58 59 | 0 10 11 30 58 59 | "
                  "0 10 11 30 58 59 | 0 10 11 30 58 59");
    /* With less room the pins of the policy give way, the last tokens first. */
    KS_ASSERT_OK(fix_evict(&f, f.table, &p, N_TOK, N_STREAM * 4, pins, 2, NULL));
    s = ks_kv_table_get_view(f.table).streams;
    for (uint32_t i = 0; i < N_STREAM; i++)
      KS_ASSERT_EQ(s[i].n_entry, 4);
    KS_ASSERT(strncmp(fix_survivors(&f, f.table), "0 10 11 30 |", 12) == 0);
    fix_close(&f);
  }
}

/* Entries out of a layer's window go first and even when pinned; full memory drops nothing else. */
KS_TEST(evict, dead_entries)
{
  static float lb[4 * 10];
  ks_evict_params p = ks_evict_default_params(KS_POLICY_FULL);
  static const ks_pos_range pin = {2, 4};
  kv_fixture f;

  for (uint32_t i = 0; i < 40; i++)
    lb[i] = i / 10 < 2 ? -0.01f : -1.0f; /* layer 0 would win every place */
  fix_open(&f, 2, 2, 4, 40);
  fix_append(&f, f.table, 0, 10, lb, NULL);
  KS_ASSERT_OK(fix_evict(&f, f.table, &p, 10, 0, &pin, 1, NULL));
  KS_ASSERT_EQ(ks_kv_table_get_n_entries(f.table), 40);
  f.live_from[0] = 7;
  KS_ASSERT_OK(fix_evict(&f, f.table, &p, 10, 0, &pin, 1, NULL));
  KS_ASSERT_STR(fix_survivors(&f, f.table),
                "7 8 9 | 7 8 9 | 0 1 2 3 4 5 6 7 8 9 | 0 1 2 3 4 5 6 7 8 9");
  p = ks_evict_default_params(KS_POLICY_DBTRIMKV);
  p.pin_first = 0;
  f.live_from[0] = 8;
  KS_ASSERT_OK(fix_evict(&f, f.table, &p, 10, 10, &pin, 1, NULL));
  KS_ASSERT_STR(fix_survivors(&f, f.table), "8 9 | 8 9 | 2 3 9 | 2 3 9");
  p = ks_evict_default_params(KS_POLICY_STREAMING);
  p.pin_first = 0;
  f.live_from[0] = 9;
  KS_ASSERT_OK(fix_evict(&f, f.table, &p, 10, 8, NULL, 0, NULL));
  KS_ASSERT_STR(fix_survivors(&f, f.table), "9 | 9 | 3 9 | 3 9");
  fix_close(&f);
}

/* StreamingLLM: the first four and the last M - 4 of every stream. */
KS_TEST(evict, streaming)
{
  static float lb[N_STREAM * N_TOK];
  const ks_evict_params p = ks_evict_default_params(KS_POLICY_STREAMING);
  const char *one = "0 1 2 3 56 57 58 59";
  kv_fixture f;

  fix_open(&f, 3, 2, 8, 200);
  fix_append(&f, f.table, 0, N_TOK, lb, NULL);
  KS_ASSERT_OK(fix_evict(&f, f.table, &p, N_TOK, N_STREAM * 8 + 5, NULL, 0, NULL));
  KS_ASSERT_EQ(ks_kv_table_get_n_entries(f.table), N_STREAM * 8);
  KS_ASSERT(strncmp(fix_survivors(&f, f.table), one, strlen(one)) == 0);
  fix_close(&f);
}

/* Random: the same seed gives the same survivors however often evictions run; another seed others;
 * old and new tokens have the same chance. */
KS_TEST(evict, random_is_a_fair_sample)
{
  static float lb[N_STREAM * N_TOK];
  ks_evict_params p = ks_evict_default_params(KS_POLICY_RANDOM);
  char first[2000];
  uint32_t n_old = 0;

  for (int run = 0; run < 3; run++) {
    kv_fixture f;

    p.seed = run == 2 ? 8 : 7;
    fix_open(&f, 3, 2, 4, 200);
    for (uint32_t t = 0; t < N_TOK; t++) {
      fix_append(&f, f.table, t, 1, lb, NULL);
      if (run == 1)
        KS_ASSERT_OK(fix_evict(&f, f.table, &p, t + 1, N_STREAM * 10, NULL, 0, NULL));
    }
    KS_ASSERT_OK(fix_evict(&f, f.table, &p, N_TOK, N_STREAM * 10, NULL, 0, NULL));
    if (run == 0) {
      uint32_t pos[10];
      const ks_kv_view view = ks_kv_table_get_view(f.table);

      snprintf(first, sizeof(first), "%s", fix_survivors(&f, f.table));
      for (uint32_t s = 0; s < N_STREAM; s++) {
        KS_ASSERT_OK(f.be.t->kv_read(f.be.dev, &view, s, 0, 10, NULL, NULL, NULL, pos, NULL, NULL));
        for (uint32_t e = 0; e < 10; e++)
          n_old += pos[e] < N_TOK / 2;
      }
      KS_ASSERT(n_old > 18 && n_old < 42); /* of 60; three standard deviations of a fair coin */
    } else {
      KS_ASSERT_EQ(strcmp(first, fix_survivors(&f, f.table)) == 0, run == 1);
    }
    fix_close(&f);
  }
}

/* -cos(key, mean of the unit keys), straight from the definition; standardised on request. */
static void
keydiff_scores(const float *keys, bool standard, double *out)
{
  double anchor[FIX_DIM] = {0}, mean = 0.0, var = 0.0, len_a = 0.0;

  for (uint32_t t = 0; t < N_TOK; t++) {
    double len = 0.0;

    for (uint32_t i = 0; i < FIX_DIM; i++)
      len += (double)keys[t * FIX_DIM + i] * keys[t * FIX_DIM + i];
    for (uint32_t i = 0; i < FIX_DIM; i++)
      anchor[i] += keys[t * FIX_DIM + i] / sqrt(len) / N_TOK;
  }
  for (uint32_t i = 0; i < FIX_DIM; i++)
    len_a += anchor[i] * anchor[i];
  for (uint32_t t = 0; t < N_TOK; t++) {
    double dot = 0.0, len = 0.0;

    for (uint32_t i = 0; i < FIX_DIM; i++) {
      dot += anchor[i] * keys[t * FIX_DIM + i];
      len += (double)keys[t * FIX_DIM + i] * keys[t * FIX_DIM + i];
    }
    out[t] = -dot / sqrt(len * len_a);
    mean += out[t] / N_TOK;
  }
  for (uint32_t t = 0; t < N_TOK; t++)
    var += (out[t] - mean) * (out[t] - mean) / N_TOK;
  for (uint32_t t = 0; standard && t < N_TOK; t++)
    out[t] = (out[t] - mean) / sqrt(var);
}

/* Writes the survivors of a ranking of scores [N_STREAM, N_TOK] the way fix_survivors does. */
static void
rank_directly(const double *scores, bool is_global, uint32_t n_keep, char *text, size_t size)
{
  size_t at = 0;

  for (uint32_t s = 0; s < N_STREAM; s++) {
    if (s > 0)
      at += (size_t)snprintf(text + at, size - at, " |");
    for (uint32_t t = 0; t < N_TOK; t++) {
      uint32_t n_better = 0;

      for (uint32_t s2 = 0; s2 < N_STREAM; s2++)
        for (uint32_t t2 = 0; t2 < N_TOK; t2++)
          if (is_global || s2 == s)
            n_better += scores[s2 * N_TOK + t2] > scores[s * N_TOK + t];
      if (n_better < n_keep)
        at += (size_t)snprintf(text + at, size - at, "%s%u", at > 0 ? " " : "", t);
    }
  }
}

/* KeyDiff keeps the keys least like the mean direction, per stream and in one ranking. */
KS_TEST(evict, keydiff)
{
  static float lb[N_STREAM * N_TOK], keys[N_STREAM * N_TOK * FIX_DIM];
  static double scores[N_STREAM * N_TOK];
  static char want[20000];

  fill_random(lb, keys);
  for (int global = 0; global < 2; global++) {
    ks_evict_params p =
        ks_evict_default_params(global ? KS_POLICY_KEYDIFF_GLOBAL : KS_POLICY_KEYDIFF);
    kv_fixture f;

    p.pin_first = p.pin_last = 0;
    for (uint32_t s = 0; s < N_STREAM; s++)
      keydiff_scores(keys + s * N_TOK * FIX_DIM, global == 1, scores + s * N_TOK);
    rank_directly(scores, global == 1, global ? 14 * N_STREAM : 14, want, sizeof(want));
    fix_open(&f, 3, 2, 4, 200);
    fix_append(&f, f.table, 0, N_TOK, lb, keys);
    KS_ASSERT_OK(fix_evict(&f, f.table, &p, N_TOK, 14 * N_STREAM, NULL, 0, NULL));
    KS_ASSERT_STR(fix_survivors(&f, f.table), want);
    fix_close(&f);
  }
}

/* Learned scores under random numbers of tokens: the survivors of a direct ranking. */
KS_TEST(evict, retention_against_direct_ranking)
{
  static float lb[N_STREAM * N_TOK], keys[N_STREAM * N_TOK * FIX_DIM];
  static double scores[N_STREAM * N_TOK];
  static char want[20000];
  uint32_t rnd = 99;

  fill_random(lb, keys);
  for (uint32_t round = 0; round < 12; round++) {
    ks_evict_params p = ks_evict_default_params(round % 2 ? KS_POLICY_DBTRIMKV : KS_POLICY_TRIMKV);
    const uint32_t m = 1 + next_random(&rnd) % (N_TOK - 1);
    const uint32_t seen = N_TOK + next_random(&rnd) % 50;
    kv_fixture f;

    p.pin_first = 0;
    p.lookahead = 1 + round % 3;
    for (uint32_t i = 0; i < N_STREAM * N_TOK; i++) {
      lb[i] -= 1e-4f * (float)(next_random(&rnd) % 97); /* no ties */
      scores[i] = ks_retention_score(lb[i], i % N_TOK, seen, p.lookahead);
    }
    rank_directly(scores, round % 2, round % 2 ? m * N_STREAM : m, want, sizeof(want));
    fix_open(&f, 3, 2, 4, 200);
    fix_append(&f, f.table, 0, N_TOK, lb, NULL);
    KS_ASSERT_OK(fix_evict(&f, f.table, &p, seen, m * N_STREAM, NULL, 0, NULL));
    KS_ASSERT_STR(fix_survivors(&f, f.table), want);
    fix_close(&f);
  }
}

/* Whatever allocation fails, the table is as before or evicted as asked, and nothing leaks. */
KS_TEST(evict, out_of_memory)
{
  static const ks_pos_range pin = {3, 5};
  static float lb[N_STREAM * N_TOK], keys[N_STREAM * N_TOK * FIX_DIM];
  const ks_policy policies[] = {KS_POLICY_DBTRIMKV, KS_POLICY_KEYDIFF_GLOBAL};

  fill_random(lb, keys);
  for (size_t i = 0; i < 2; i++)
    for (int64_t n = 0;; n++) {
      const ks_evict_params p = ks_evict_default_params(policies[i]);
      ks_evict *evict = NULL;
      kv_fixture f;
      ks_status st;

      fix_open(&f, 3, 2, 4, 200);
      fix_append(&f, f.table, 0, N_TOK, lb, keys);
      ks_alloc_fail_after(f.alloc, n);
      st = ks_evict_new(f.alloc, &f.be, &p, &evict, NULL);
      if (st == KS_OK)
        st = ks_evict_run(evict, f.table, N_TOK, 100, f.live_from, &pin, 1, NULL, NULL);
      ks_alloc_fail_after(f.alloc, -1);
      KS_ASSERT(st == KS_OK || st == KS_ERR_NOMEM);
      KS_ASSERT_EQ(ks_kv_table_get_n_entries(f.table), st == KS_OK ? 100 : N_STREAM * N_TOK);
      KS_ASSERT(ks_kv_pool_check(f.pool));
      ks_evict_free(evict);
      fix_close(&f);
      if (st == KS_OK) {
        KS_ASSERT(n > 4);
        break;
      }
    }
}

/* Names go there and back, and say what a policy needs. */
KS_TEST(evict, policy_names)
{
  ks_policy policy = KS_N_POLICY;

  for (int i = 0; i < KS_N_POLICY; i++) {
    KS_ASSERT(ks_policy_parse(ks_policy_get_name((ks_policy)i), &policy));
    KS_ASSERT_EQ(policy, i);
  }
  KS_ASSERT(!ks_policy_parse("fulll", &policy));
  KS_ASSERT(ks_policy_needs_gate(KS_POLICY_DBTRIMKV) && ks_policy_needs_gate(KS_POLICY_TRIMKV));
  KS_ASSERT(!ks_policy_needs_gate(KS_POLICY_RANDOM));
  KS_ASSERT_EQ(ks_evict_default_params(KS_POLICY_DBTRIMKV).pin_first, 1);
  KS_ASSERT_EQ(ks_evict_default_params(KS_POLICY_KEYDIFF_GLOBAL).pin_last, 32);
}

KS_TEST_MAIN
