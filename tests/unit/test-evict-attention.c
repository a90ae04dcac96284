/* test-evict-attention.c - policies that judge by attention, and those of the other published
 * competitors: examples of 12 tokens computed by hand, and stored results of a plain reference
 * (tests/golden/make-policy-cases.py) over two evictions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/evict.h"

#include "tests/unit/kv-fixture.h"
#include "tests/unit/policy-cases-data.h"

#define N_TOK 12u

/* One pass of n tokens as a timeline runs it: q [n, n_layer, n_head, FIX_DIM], or NULL; mass (H2O)
 * for all entries behind the pass, stream after stream, or NULL. */
static void
pass(kv_fixture *f, ks_evict *evict, uint32_t n_head, uint32_t pos0, uint32_t n, const float *lb,
     const float *keys, const float *q, const float *mass)
{
  const uint32_t n_layer = f->layout.n_layer, row = n_head * FIX_DIM;
  uint32_t last[FIX_ENTRY];
  ks_pass_watch watch;

  for (uint32_t i = 0; i < n; i++)
    last[i] = pos0 + i;
  KS_ASSERT_OK(ks_evict_begin_pass(evict, f->table, pos0, n, &watch, NULL));
  fix_append_only(f, f->table, pos0, n, lb, keys);
  for (uint32_t i = 0; q != NULL && watch.queries != 0 && i < n; i++)
    for (uint32_t l = 0; l < n_layer; l++)
      KS_ASSERT_OK(f->be.t->upload(f->be.dev,
                                   watch.queries + (l * watch.n_slot + (pos0 + i) % watch.n_slot) *
                                                       row * sizeof(float),
                                   q + (i * n_layer + l) * row, row * sizeof(float), NULL));
  if (watch.mass != 0)
    KS_ASSERT_OK(f->be.t->upload(
        f->be.dev, watch.mass, mass,
        (ks_kv_table_get_n_entries(f->table) + f->n_stream * n) * sizeof(float), NULL));
  KS_ASSERT_OK(ks_evict_end_pass(evict, f->table, pos0, n, last, NULL));
  ks_kv_table_commit(f->table, n);
}

/* Keys under which a query along the first axis gives entry i the weight m[i]: the logarithm of m
 * is the product. */
static void
fill_weights(const float *m, float *keys)
{
  memset(keys, 0, N_TOK * FIX_DIM * sizeof(*keys));
  for (uint32_t i = 0; i < N_TOK; i++)
    keys[i * FIX_DIM] = logf(m[i]);
}

/* Twelve tokens in one pass under a policy whose queries all lie along the first axis. */
static const char *
keep_of_twelve(uint32_t n_layer, uint32_t n_kv_head, const float *keys, const ks_evict_params *p,
               uint64_t n_keep)
{
  static float lb[16 * N_TOK], q[N_TOK * 16 * FIX_DIM];
  static char text[1024];
  ks_evict *evict = NULL;
  kv_fixture f;

  for (uint32_t i = 0; i < N_TOK * n_layer * n_kv_head; i++)
    q[i * FIX_DIM] = 1.0f;
  fix_open(&f, n_layer, n_kv_head, 4, 40);
  KS_ASSERT_OK(ks_evict_new(f.alloc, &f.be, p, &evict, NULL));
  ks_evict_set_heads(evict, n_kv_head, 1.0f);
  pass(&f, evict, n_kv_head, 0, N_TOK, lb, keys, q, NULL);
  KS_ASSERT_OK(ks_evict_run(evict, f.table, N_TOK, n_keep, f.live_from, NULL, 0, NULL, NULL));
  snprintf(text, sizeof(text), "%s", fix_survivors(&f, f.table));
  ks_evict_free(evict);
  fix_close(&f);
  return text;
}

static ks_evict_params
bare(ks_policy policy, uint32_t window, uint32_t pool, bool pool_max)
{
  ks_evict_params p = ks_evict_faithful_params(policy);

  p.window = window;
  p.pool = pool;
  p.pool_max = pool_max;
  return p;
}

/* SnapKV, w = 2, C = 6: four of the first ten by pooled weights, and the last two.  Means over
 * three are 6 7 11 11 11 3 4 9 10 8 thirds; the largest of three are 5 5 9 9 9 1 2 6 6 6, of which
 * the newest 6 stays. */
KS_TEST(evict_attention, snapkv_by_hand)
{
  static const float m[N_TOK] = {5, 1, 1, 9, 1, 1, 1, 2, 6, 2, 1, 1};
  static float keys[N_TOK * FIX_DIM];
  ks_evict_params p = bare(KS_POLICY_SNAPKV, 2, 3, false);

  fill_weights(m, keys);
  KS_ASSERT_STR(keep_of_twelve(1, 1, keys, &p, 6), "2 3 4 8 10 11");
  p.pool_max = true;
  KS_ASSERT_STR(keep_of_twelve(1, 1, keys, &p, 6), "2 3 4 9 10 11");
  p.pool = 1;
  KS_ASSERT_STR(keep_of_twelve(1, 1, keys, &p, 6), "0 3 8 9 10 11");
  p.pin_first = 2; /* inside the six */
  KS_ASSERT_STR(keep_of_twelve(1, 1, keys, &p, 6), "0 1 3 8 10 11");
}

/* AdaKV, two heads, w = 2, C = 6, so 8 places in the layer.  Head 0 gives six entries 8 times the
 * weight of the others, head 1 all the same: of the best 8, six are head 0's.  With f = 0.2 the
 * heads keep round(4.8) = 5 and round(1.6) = 2, with f = 0.5 round(3 + 2) and round(1 + 2). */
KS_TEST(evict_attention, adakv_by_hand)
{
  static const float m[2][N_TOK] = {{8, 8, 8, 8, 8, 8, 1, 1, 1, 1, 1, 1},
                                    {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
  static float keys[2 * N_TOK * FIX_DIM];
  ks_evict_params p = bare(KS_POLICY_ADAKV, 2, 1, true);

  for (uint32_t h = 0; h < 2; h++)
    fill_weights(m[h], keys + h * N_TOK * FIX_DIM);
  KS_ASSERT_STR(keep_of_twelve(1, 2, keys, &p, 12), "1 2 3 4 5 10 11 | 8 9 10 11");
  p.head_floor = 0.5;
  KS_ASSERT_STR(keep_of_twelve(1, 2, keys, &p, 12), "1 2 3 4 5 10 11 | 7 8 9 10 11");
  p.head_floor = 1.0; /* SnapKV */
  KS_ASSERT_STR(keep_of_twelve(1, 2, keys, &p, 12), "2 3 4 5 10 11 | 6 7 8 9 10 11");
}

/* PyramidKV, three layers, w = 2, C = 5: c = 3, the line goes from 6 over 3 to 0; with C = 7, c =
 * 5, from 10 over 5 to 0, whose first end is all there is before the window. */
KS_TEST(evict_attention, pyramidkv_by_hand)
{
  static const float m[N_TOK] = {9, 1, 8, 1, 7, 6, 5, 4, 3, 2, 1, 1};
  static float keys[3 * N_TOK * FIX_DIM];
  const ks_evict_params p = bare(KS_POLICY_PYRAMIDKV, 2, 1, true);

  for (uint32_t l = 0; l < 3; l++)
    fill_weights(m, keys + l * N_TOK * FIX_DIM);
  KS_ASSERT_STR(keep_of_twelve(3, 1, keys, &p, 15), "0 2 4 5 6 7 10 11 | 0 2 4 10 11 | 10 11");
  KS_ASSERT_STR(keep_of_twelve(3, 1, keys, &p, 21),
                "0 1 2 3 4 5 6 7 8 9 10 11 | 0 2 4 5 6 10 11 | 10 11");
}

/* R-KV, w = 2, C = 8: keys 6 to 9 are one direction, 10 and 11 repeat those of 0 and 1; all get the
 * same attention.  In rows 6 to 9 the newest copy does not count, nor do 10 and 11: columns 6 and 7
 * are resembled three times, 8 twice, 9 and the others never.  6, 7, 8 go, and then the oldest. */
KS_TEST(evict_attention, rkv_by_hand)
{
  static const uint32_t axis[N_TOK] = {1, 2, 3, 4, 5, 6, 7, 7, 7, 7, 1, 2};
  static float keys[N_TOK * FIX_DIM];
  ks_evict_params p = bare(KS_POLICY_RKV, 2, 1, true);

  for (uint32_t i = 0; i < N_TOK; i++)
    keys[i * FIX_DIM + axis[i]] = 1.0f + (float)(i % 3); /* lengths do not matter */
  KS_ASSERT_STR(keep_of_twelve(1, 1, keys, &p, 8), "1 2 3 4 5 9 10 11");
  p.mix = 1.0;
  KS_ASSERT_STR(keep_of_twelve(1, 1, keys, &p, 8), "4 5 6 7 8 9 10 11");
}

/* H2O, C = 6: the last three, and the three that received most over all passes. */
KS_TEST(evict_attention, h2o_by_hand)
{
  static const float mass[3][N_TOK] = {
      {1, 0, 3, 0}, {1, 0, 0, 2, 5, 0, 0, 1}, {4, 1, 0, 0, 0, 5, 0, 0, 3, 9, 9, 9}};
  static float lb[N_TOK];
  ks_evict_params p = ks_evict_faithful_params(KS_POLICY_H2O);
  ks_evict *evict = NULL;
  kv_fixture f;

  fix_open(&f, 1, 1, 4, 40);
  KS_ASSERT_OK(ks_evict_new(f.alloc, &f.be, &p, &evict, NULL));
  for (uint32_t i = 0; i < 3; i++) /* sums 6 1 3 2 5 5 0 1 3 9 9 9 */
    pass(&f, evict, 1, 4 * i, 4, lb, NULL, NULL, mass[i]);
  KS_ASSERT_OK(ks_evict_run(evict, f.table, N_TOK, 6, f.live_from, NULL, 0, NULL, NULL));
  KS_ASSERT_STR(fix_survivors(&f, f.table), "0 4 5 9 10 11");
  /* What has been received moves with the entry and stays. */
  p.recent = 0.0;
  KS_ASSERT_OK(ks_evict_set_params(evict, &p, NULL));
  KS_ASSERT_OK(ks_evict_run(evict, f.table, N_TOK, 4, f.live_from, NULL, 0, NULL, NULL));
  KS_ASSERT_STR(fix_survivors(&f, f.table), "0 9 10 11");
  ks_evict_free(evict);
  fix_close(&f);
}

/* StreamingLLM, C = 6: the first four and the last two.  KeyDiff, C = 6: eight keys point along one
 * axis, the four others stay, then the newest.  LocRet, C = 6: floor(5/12 * 6) = 2 newest, and the
 * four best scores, which do not change with age. */
KS_TEST(evict_attention, others_by_hand)
{
  static const float score[N_TOK] = {-9, 4, 3, -1, 0, 7, 2, 1, -2, 1.5f, -8, -7};
  static float keys[N_TOK * FIX_DIM];
  ks_evict_params p = ks_evict_faithful_params(KS_POLICY_STREAMING);
  kv_fixture f;

  KS_ASSERT_STR(keep_of_twelve(1, 1, keys, &p, 6), "0 1 2 3 10 11");
  for (uint32_t i = 0; i < N_TOK; i++)
    keys[i * FIX_DIM + (i % 3 == 1 ? 1 + i / 3 : 0)] = 1.0f;
  p = ks_evict_faithful_params(KS_POLICY_KEYDIFF);
  KS_ASSERT_STR(keep_of_twelve(1, 1, keys, &p, 6), "1 4 7 9 10 11");
  p = ks_evict_default_params(KS_POLICY_LOCRET);
  p.pin_first = 0;
  fix_open(&f, 1, 1, 4, 40);
  fix_append(&f, f.table, 0, N_TOK, score, NULL);
  KS_ASSERT_OK(fix_evict(&f, f.table, &p, N_TOK, 6, NULL, 0, NULL));
  KS_ASSERT_STR(fix_survivors(&f, f.table), "1 2 5 6 10 11");
  fix_close(&f);
}

/* A threshold drops what is worth less than alpha, with room left; pins and K stand above it. */
KS_TEST(evict_attention, threshold_by_hand)
{
  static float lb[N_TOK];
  ks_evict_params p = ks_evict_faithful_params(KS_POLICY_DBTRIMKV);
  ks_evict_event event;
  kv_fixture f;

  for (uint32_t i = 0; i < N_TOK; i++) /* worth 0.81, 0.729, ... from the newest on */
    lb[i] = logf(0.9f);
  p.threshold = 0.5; /* 0.9^6 = 0.531, 0.9^7 = 0.478 */
  fix_open(&f, 1, 1, 4, 40);
  fix_append(&f, f.table, 0, N_TOK, lb, NULL);
  KS_ASSERT_OK(fix_evict(&f, f.table, &p, N_TOK, 100, NULL, 0, &event));
  KS_ASSERT_STR(fix_survivors(&f, f.table), "7 8 9 10 11");
  KS_ASSERT_EQ(event.n_after, 5);
  KS_ASSERT_OK(fix_evict(&f, f.table, &p, N_TOK, 4, NULL, 0, NULL));
  KS_ASSERT_STR(fix_survivors(&f, f.table), "8 9 10 11");
  KS_ASSERT_OK(fix_evict(&f, f.table, &p, N_TOK + 3, 100, &(ks_pos_range){8, 9}, 1, NULL));
  KS_ASSERT_STR(fix_survivors(&f, f.table), "8 10 11");
  fix_close(&f);
}

/* The generator of the stored cases: values between -1 and 1 in thousandths. */
static float
next_value(uint32_t *state)
{
  *state = *state * 1664525u + 1013904223u;
  return (float)((int32_t)((*state >> 8) % 2001) - 1000) / 1000.0f;
}

/* What H2O's passes leave: the attention of every query of the pass, summed by entry. */
static void
sum_attention(kv_fixture *f, const float *all_keys, const float *q, uint32_t n, float *mass)
{
  const uint32_t n_head = CASE_KV_HEAD * CASE_GROUP;
  const ks_kv_view view = ks_kv_table_get_view(f->table);

  for (uint32_t s = 0; s < f->n_stream; s++) {
    const uint32_t n_old = view.streams[s].n_entry, layer = s / CASE_KV_HEAD;
    uint32_t pos[FIX_ENTRY];
    float key[FIX_ENTRY * FIX_DIM];

    if (n_old > 0)
      KS_ASSERT_OK(
          f->be.t->kv_read(f->be.dev, &view, s, 0, n_old, key, NULL, NULL, pos, NULL, NULL));
    for (uint32_t i = 0; i < n; i++)
      memcpy(key + (n_old + i) * FIX_DIM, all_keys + (s * n + i) * FIX_DIM,
             FIX_DIM * sizeof(float));
    memset(mass, 0, (n_old + n) * sizeof(*mass));
    for (uint32_t i = 0; i < n * CASE_GROUP; i++) {
      const uint32_t head = s % CASE_KV_HEAD * CASE_GROUP + i % CASE_GROUP, t = i / CASE_GROUP;
      const float *query = q + ((t * CASE_LAYER + layer) * n_head + head) * FIX_DIM;
      double weight[FIX_ENTRY], sum = 0.0;

      for (uint32_t e = 0; e <= n_old + t; e++) {
        double dot = 0.0;

        for (uint32_t k = 0; k < FIX_DIM; k++)
          dot += (double)query[k] * key[e * FIX_DIM + k];
        sum += weight[e] = exp(dot * (double)CASE_SCALE);
      }
      for (uint32_t e = 0; e <= n_old + t; e++)
        mass[e] += (float)(weight[e] / sum);
    }
    mass += n_old + n;
  }
}

/* Both evictions of a stored case. */
static void
run_case(const policy_case *c)
{
  static float keys[CASE_LAYER * CASE_KV_HEAD * CASE_FIRST * FIX_DIM], lb[64 * CASE_FIRST];
  static float q[CASE_FIRST * CASE_LAYER * CASE_KV_HEAD * CASE_GROUP * FIX_DIM];
  static float mass[64 * FIX_ENTRY];
  const uint32_t n_head = CASE_KV_HEAD * CASE_GROUP, lengths[2] = {CASE_FIRST, CASE_SECOND};
  ks_evict_params p = ks_evict_faithful_params(c->policy);
  uint32_t state = c->seed, seen = 0;
  ks_evict *evict = NULL;
  kv_fixture f;

  p.lookahead = c->lookahead;
  p.floor = c->floor;
  p.threshold = c->threshold;
  if (c->window > 0) {
    p.window = c->window;
    p.pool = c->pool;
    p.pool_max = c->pool_max;
    p.head_floor = c->head_floor;
    p.mix = c->mix;
  }
  fix_open(&f, CASE_LAYER, CASE_KV_HEAD, 4, 400);
  KS_ASSERT_OK(ks_evict_new(f.alloc, &f.be, &p, &evict, NULL));
  ks_evict_set_heads(evict, n_head, CASE_SCALE);
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t n = lengths[i];

    for (uint32_t k = 0; k < f.n_stream * n * FIX_DIM; k++)
      keys[k] = next_value(&state);
    for (uint32_t k = 0; k < n * CASE_LAYER * n_head * FIX_DIM; k++)
      q[k] = next_value(&state);
    for (uint32_t k = 0; ks_policy_needs_gate(c->policy) && k < f.n_stream * n; k++)
      lb[k] = (next_value(&state) - 1.0f) / 16.0f;
    sum_attention(&f, keys, q, n, mass);
    pass(&f, evict, n_head, seen, n, lb, keys, q, mass);
    seen += n;
    KS_ASSERT_OK(ks_evict_run(evict, f.table, seen, f.n_stream * CASE_SHARE, f.live_from, NULL, 0,
                              NULL, NULL));
    KS_ASSERT_STR(fix_survivors(&f, f.table), c->want[i]);
  }
  ks_evict_free(evict);
  fix_close(&f);
}

/* Every policy agrees with a reference that knows no rings, passes or pages; none is left out. */
KS_TEST(evict_attention, agrees_with_reference)
{
  bool seen[KS_N_POLICY] = {false};

  for (size_t i = 0; i < sizeof(policy_cases) / sizeof(policy_cases[0]); i++)
    seen[policy_cases[i].policy] = true;
  for (int i = 0; i < KS_N_POLICY; i++)
    KS_ASSERT(seen[i]);
  for (size_t i = 0; i < sizeof(policy_cases) / sizeof(policy_cases[0]); i++)
    run_case(&policy_cases[i]);
}

/* Whatever allocation fails, the table is as before or evicted as asked, and nothing leaks. */
KS_TEST(evict_attention, out_of_memory)
{
  static const ks_policy policies[] = {KS_POLICY_H2O, KS_POLICY_ADAKV, KS_POLICY_RKV};
  static float lb[64 * 20], keys[64 * 20 * FIX_DIM];

  for (uint32_t i = 0; i < 64 * 20 * FIX_DIM; i++)
    keys[i] = (float)(i % 37) - 18.0f;
  for (size_t i = 0; i < 3; i++)
    for (int64_t n = 0;; n++) {
      const ks_evict_params p = ks_evict_default_params(policies[i]);
      ks_pass_watch watch;
      uint32_t last[20];
      ks_evict *evict = NULL;
      kv_fixture f;
      ks_status st;

      for (uint32_t k = 0; k < 20; k++)
        last[k] = k;
      fix_open(&f, 2, 2, 4, 200);
      fix_append_only(&f, f.table, 0, 20, lb, keys);
      ks_alloc_fail_after(f.alloc, n);
      st = ks_evict_new(f.alloc, &f.be, &p, &evict, NULL);
      if (st == KS_OK) {
        ks_evict_set_heads(evict, 2, 1.0f);
        st = ks_evict_begin_pass(evict, f.table, 0, 20, &watch, NULL);
      }
      if (st == KS_OK && watch.queries != 0)
        memset((void *)(uintptr_t)watch.queries, 0,
               2 * (size_t)watch.n_slot * 2 * FIX_DIM * sizeof(float));
      if (st == KS_OK && watch.mass != 0)
        memset((void *)(uintptr_t)watch.mass, 0, 80 * sizeof(float));
      if (st == KS_OK)
        st = ks_evict_end_pass(evict, f.table, 0, 20, last, NULL);
      ks_kv_table_commit(f.table, 20);
      if (st == KS_OK)
        st = ks_evict_run(evict, f.table, 20, 40, f.live_from, NULL, 0, NULL, NULL);
      ks_alloc_fail_after(f.alloc, -1);
      KS_ASSERT(st == KS_OK || st == KS_ERR_NOMEM);
      KS_ASSERT(ks_kv_table_get_n_entries(f.table) == 80 || st == KS_OK);
      KS_ASSERT_LE(ks_kv_table_get_n_entries(f.table), st == KS_OK ? 40 : 80);
      ks_evict_free(evict);
      fix_close(&f);
      if (st == KS_OK) {
        KS_ASSERT(n > 4);
        break;
      }
    }
}

/* Parameters outside their bounds are refused, names of modes go there and back. */
KS_TEST(evict_attention, parameters)
{
  ks_evict_params p = ks_evict_default_params(KS_POLICY_SNAPKV);
  ks_evict_mode mode = KS_EVICT_CHUNKED;
  ks_evict *evict = NULL;
  kv_fixture f;

  fix_open(&f, 1, 1, 4, 4);
  KS_ASSERT_OK(ks_evict_new(f.alloc, &f.be, &p, &evict, NULL));
  p.pool = 4;
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_evict_set_params(evict, &p, NULL));
  p.pool = 5;
  p.window = 0;
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_evict_set_params(evict, &p, NULL));
  p = ks_evict_default_params(KS_POLICY_ADAKV);
  p.head_floor = 1.5;
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_evict_set_params(evict, &p, NULL));
  p = ks_evict_default_params(KS_POLICY_SNAPKV);
  p.threshold = 0.5; /* its scores are no shares of an entry's worth */
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_evict_set_params(evict, &p, NULL));
  ks_evict_free(evict);
  fix_close(&f);
  KS_ASSERT(ks_evict_mode_parse(ks_evict_mode_get_name(KS_EVICT_FAITHFUL), &mode));
  KS_ASSERT_EQ(mode, KS_EVICT_FAITHFUL);
  KS_ASSERT(!ks_evict_mode_parse("whole", &mode));
  KS_ASSERT_EQ(ks_evict_faithful_params(KS_POLICY_STREAMING).pin_first, 4);
  KS_ASSERT_EQ(ks_evict_faithful_params(KS_POLICY_DBTRIMKV).pin_first, 0);
  KS_ASSERT_EQ(ks_evict_default_params(KS_POLICY_SNAPKV).pin_first, 1);
  KS_ASSERT(ks_policy_has_window(KS_POLICY_RKV) && !ks_policy_has_window(KS_POLICY_H2O));
  KS_ASSERT_EQ(ks_policy_get_n_aux(KS_POLICY_H2O), 1);
}

KS_TEST_MAIN
