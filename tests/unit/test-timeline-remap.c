/* test-timeline-remap.c - a timeline longer than the model was trained for: positions stay inside,
 * the newest keep their distances, pictures stay whole, and keys are those of the new positions. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/timeline.h"

#include "tests/unit/timeline-fixture.h"

#define P 4u
#define MAX_POS 128u

static ks_timeline *
new_timeline(tl_fixture *f, ks_policy policy, uint64_t n_keep, uint32_t max_pos)
{
  ks_timeline_params params = ks_timeline_default_params(f->model, f->gate, f->pool);
  ks_timeline *tl = NULL;

  params.evict = ks_evict_default_params(policy);
  params.chunk = 16;
  params.buffer = 4;
  params.n_keep = n_keep;
  params.max_pos = max_pos;
  KS_ASSERT_OK(ks_timeline_new(f->alloc, &params, &tl, NULL));
  return tl;
}

static ks_kv_stats
stats_of(const ks_timeline *tl)
{
  ks_kv_stats stats;

  ks_timeline_get_stats(tl, &stats);
  return stats;
}

/* Ten times as many tokens as positions: no position is ever outside, they never fall, the newest
 * quarter counts one by one, and it happens rarely: 1,280 tokens, 64 positions gained each time. */
KS_TEST(remap, ten_times_as_long)
{
  const uint32_t n_total = 10 * MAX_POS;
  ks_timeline *tl;
  tl_fixture f;

  tl_open_llama(&f, P, 1200, 1200);
  tl = new_timeline(&f, KS_POLICY_DBTRIMKV, 8 * 30, MAX_POS);
  for (uint32_t n = 0; n < n_total;) {
    const uint32_t step = n % 3 == 0 ? 11 : 1;
    const ks_token_info *tokens;

    KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1) + n, step, NULL, NULL));
    n += step;
    KS_ASSERT_LE(stats_of(tl).n_position, MAX_POS);
    tokens = ks_timeline_get_tokens(tl);
    for (uint32_t i = 1; i < n; i++)
      KS_ASSERT_LE(tokens[i - 1].rope_t, tokens[i].rope_t);
    for (uint32_t i = n > MAX_POS / 4 ? n - MAX_POS / 4 + 1 : 1; i < n; i++)
      KS_ASSERT_EQ(tokens[i - 1].rope_t + 1, tokens[i].rope_t);
  }
  KS_ASSERT(ks_timeline_check(tl));
  KS_ASSERT_LE(stats_of(tl).n_remap, n_total / (MAX_POS / 2) + 1);
  KS_ASSERT_GE(stats_of(tl).n_remap, n_total / (MAX_POS / 2) - 2);
  ks_timeline_free(tl);
  tl_close(&f);
}

/* By hand.  StreamingLLM with 20 entries a stream: after 124 tokens the living are 0 1 2 3 and 108
 * to 123.  The next pass of 5 does not fit into 128 positions.  Half of 128 is 64, its newer half
 * are the positions from 124 - 32 = 92 on: those before are 0 to 3 and the gap from 3 to 92.  Of 64
 * positions 32 are the recent ones', 32 are left: the gaps 1 1 1 stay and 89 becomes 29.  So 0 to 3
 * stay where they are, 92 goes to 32, and everything from there on by as much: 60 less. */
KS_TEST(remap, by_hand)
{
  const ks_token_info *tokens;
  ks_timeline *tl;
  tl_fixture f;

  tl_open_llama(&f, P, 600, 600);
  tl = new_timeline(&f, KS_POLICY_STREAMING, 8 * 20, MAX_POS);
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1), 124, NULL, NULL));
  KS_ASSERT(stats_of(tl).n_position == 124 && stats_of(tl).n_remap == 0);
  KS_ASSERT_EQ(tl_entries(tl), 8 * 20);
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(2), 5, NULL, NULL));
  KS_ASSERT(stats_of(tl).n_position == 69 && stats_of(tl).n_remap == 1);
  tokens = ks_timeline_get_tokens(tl);
  for (uint32_t i = 0; i < 4; i++)
    KS_ASSERT_EQ(tokens[i].rope_t, i);
  for (uint32_t i = 4; i < 92; i++)
    KS_ASSERT_EQ(tokens[i].rope_t, 3); /* forgotten: with the living one before them */
  for (uint32_t i = 92; i < 129; i++)
    KS_ASSERT(tokens[i].rope_t == (int32_t)i - 60 && tokens[i].rope_h == tokens[i].rope_t);
  ks_timeline_free(tl);
  tl_close(&f);
}

/* More living tokens before the recent ones than positions for them: they share in proportion, in
 * order, over the whole room. */
KS_TEST(remap, neighbours_share)
{
  const ks_token_info *tokens;
  ks_timeline *tl;
  tl_fixture f;

  tl_open_llama(&f, P, 8 * 80, 8 * 80);
  tl = new_timeline(&f, KS_POLICY_FULL, 0, MAX_POS);
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1), 124, NULL, NULL));
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(2), 5, NULL, NULL));
  tokens = ks_timeline_get_tokens(tl);
  /* 92 gaps of 1 (the first living token stands at 0) become 32 positions. */
  for (int32_t i = 0; i < 92; i++)
    KS_ASSERT_EQ(tokens[i].rope_t, i * 32 / 92);
  KS_ASSERT(tokens[92].rope_t == 32 && tokens[128].rope_t == 68);
  KS_ASSERT(ks_timeline_check(tl));
  ks_timeline_free(tl);
  tl_close(&f);
}

/* Keys of layer 0 depend on token and position alone: after many re-maps they are what a model
 * reads at the new position.  f32 keys nearly exactly, f16 keys within 1e-2 of their length. */
static void
check_keys(ks_dtype dtype, double tolerance)
{
  static float key[512], want[512];
  static ks_token ids[MAX_POS];
  ks_timeline *tl, *fresh;
  const ks_token_info *tokens;
  uint32_t pos[64], n, dim, n_remap;
  ks_kv_view view, fresh_view;
  tl_fixture f;

  tl_open_llama(&f, P, 10, 10);
  ks_kv_pool_free(f.pool);
  f.pool = NULL;
  f.layout.kv_dtype = dtype;
  KS_ASSERT_OK(ks_kv_layout_init(&f.layout, NULL));
  KS_ASSERT_OK(ks_kv_pool_new(f.alloc, &f.be, &f.layout, 2000 * f.layout.page_bytes,
                              2000 * f.layout.page_bytes, &f.pool, NULL));
  dim = f.layout.k_dim;
  tl = new_timeline(&f, KS_POLICY_STREAMING, 8 * 20, MAX_POS);
  for (uint32_t i = 0; i < 21 * MAX_POS / 2; i += 7)
    KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1) + i, 7, NULL, NULL));
  n_remap = stats_of(tl).n_remap;
  KS_ASSERT_GE(n_remap, 18);
  tokens = ks_timeline_get_tokens(tl);
  view = ks_kv_table_get_view(ks_timeline_get_table(tl));
  n = view.streams[0].n_entry;
  KS_ASSERT(n >= 20 && n <= 64 && dim <= 512);
  KS_ASSERT_OK(f.be.t->kv_read(f.be.dev, &view, 0, 0, n, NULL, NULL, NULL, pos, NULL, NULL));
  memcpy(ids, tl_ids(3), sizeof ids);
  for (uint32_t e = 0; e < n; e++)
    ids[tokens[pos[e]].rope_t] = tokens[pos[e]].id;
  fresh = new_timeline(&f, KS_POLICY_FULL, 0, 0);
  KS_ASSERT_OK(ks_timeline_eval(fresh, ids, MAX_POS, NULL, NULL));
  fresh_view = ks_kv_table_get_view(ks_timeline_get_table(fresh));
  for (uint32_t e = 0; e < n; e++) {
    const uint32_t at = (uint32_t)tokens[pos[e]].rope_t;
    double error = 0, length = 0;

    KS_ASSERT_OK(f.be.t->kv_read(f.be.dev, &view, 0, e, e + 1, key, NULL, NULL, NULL, NULL, NULL));
    KS_ASSERT_OK(
        f.be.t->kv_read(f.be.dev, &fresh_view, 0, at, at + 1, want, NULL, NULL, NULL, NULL, NULL));
    for (uint32_t i = 0; i < dim; i++) {
      error += ((double)key[i] - want[i]) * ((double)key[i] - want[i]);
      length += (double)want[i] * want[i];
    }
    KS_ASSERT(length > 0);
    KS_ASSERT_LE(sqrt(error / length) * 1e6, tolerance * 1e6);
  }
  KS_ASSERT(tokens[pos[0]].rope_t == 0 && tokens[pos[1]].rope_t == 1);
  ks_timeline_free(tl);
  ks_timeline_free(fresh);
  tl_close(&f);
}

KS_TEST(remap, keys_f32)
{
  check_keys(KS_DTYPE_F32, 2e-5);
}

KS_TEST(remap, keys_f16_drift)
{
  check_keys(KS_DTYPE_F16, 1e-2);
}

/* A picture of a model with positions in three parts moves as a rigid block: rows and columns keep
 * their distances, in the recent part as in the older one. */
KS_TEST(remap, pictures_are_rigid)
{
  static const float embd[30 * 4096];
  const ks_visual_run run = {
      .first = 4, .n_tok = 30, .embd = embd, .grid_rows = 5, .grid_cols = 6, .attachment = 1};
  const ks_token_info *tokens;
  ks_timeline *tl;
  ks_token ids[50];
  tl_fixture f;
  uint32_t n = 50;

  tl_open(&f, "qwen2.5-vl/model.gguf", NULL, P, 2000, 2000);
  KS_ASSERT_LE(ks_model_get_shape(f.model)->n_embd, 4096);
  memcpy(ids, tl_ids(2), sizeof ids);
  for (uint32_t i = 0; i < run.n_tok; i++)
    ids[run.first + i] = KS_TOKEN_NONE;
  tl = new_timeline(&f, KS_POLICY_STREAMING, (uint64_t)f.n_stream * 30, MAX_POS);
  KS_ASSERT_OK(ks_timeline_pin(tl, 10, 20, NULL)); /* some of the picture stays */
  KS_ASSERT_OK(ks_timeline_eval_visual(tl, ids, 50, &run, 1, NULL, NULL));
  for (; n < 400; n += 10) {
    KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(3) + n, 10, NULL, NULL));
    KS_ASSERT_LE(stats_of(tl).n_position, MAX_POS);
    tokens = ks_timeline_get_tokens(tl);
    for (uint32_t i = 0; i < run.n_tok; i++) {
      const ks_token_info *t = &tokens[run.first + i], *t0 = &tokens[run.first];

      KS_ASSERT_EQ(t->rope_t, t0->rope_t);
      KS_ASSERT_EQ(t->rope_h, t0->rope_h + (int32_t)(i / 6));
      KS_ASSERT_EQ(t->rope_w, t0->rope_w + (int32_t)(i % 6));
    }
    KS_ASSERT_LE(tokens[run.first + 29].rope_w, tokens[run.first + 30].rope_t);
  }
  KS_ASSERT_GE(stats_of(tl).n_remap, 3);
  KS_ASSERT(ks_timeline_check(tl));
  ks_timeline_free(tl);
  tl_close(&f);
}

/* A picture that is read in several passes goes on where it began, wherever that is by then. */
KS_TEST(remap, in_the_middle_of_a_picture)
{
  static const float embd[60 * 4096];
  const ks_visual_run run = {
      .first = 2, .n_tok = 60, .embd = embd, .grid_rows = 10, .grid_cols = 6, .attachment = 1};
  const ks_token_info *tokens;
  ks_timeline *tl;
  ks_token ids[64];
  tl_fixture f;

  tl_open(&f, "qwen2.5-vl/model.gguf", NULL, P, 2000, 2000);
  memcpy(ids, tl_ids(2), sizeof ids);
  for (uint32_t i = 0; i < run.n_tok; i++)
    ids[run.first + i] = KS_TOKEN_NONE;
  tl = new_timeline(&f, KS_POLICY_STREAMING, (uint64_t)f.n_stream * 20, MAX_POS);
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1), 100, NULL, NULL));
  KS_ASSERT_EQ(stats_of(tl).n_remap, 0);
  KS_ASSERT_OK(ks_timeline_eval_visual(tl, ids, 64, &run, 1, NULL, NULL));
  KS_ASSERT_EQ(stats_of(tl).n_remap, 1);
  tokens = ks_timeline_get_tokens(tl) + 100;
  for (uint32_t i = 0; i < run.n_tok; i++) {
    KS_ASSERT_EQ(tokens[2 + i].rope_t, tokens[2].rope_t);
    KS_ASSERT_EQ(tokens[2 + i].rope_h, tokens[2].rope_h + (int32_t)(i / 6));
    KS_ASSERT_EQ(tokens[2 + i].rope_w, tokens[2].rope_w + (int32_t)(i % 6));
  }
  KS_ASSERT_EQ(tokens[62].rope_t, tokens[2].rope_t + 10);
  KS_ASSERT_EQ(tokens[1].rope_t + 1, tokens[2].rope_t);
  ks_timeline_free(tl);
  tl_close(&f);
}

/* Windows are measured on positions: nothing that had left one comes back by a re-map. */
KS_TEST(remap, windows_stay)
{
  ks_timeline *tl;
  tl_fixture f;
  uint32_t window;

  tl_open(&f, "phi3-window/model.gguf", NULL, P, 2000, 2000);
  window = ks_model_get_shape(f.model)->window;
  KS_ASSERT(window > 0 && window < MAX_POS / 2);
  tl = new_timeline(&f, KS_POLICY_STREAMING, (uint64_t)f.n_stream * 40, MAX_POS);
  for (uint32_t n = 0; n < 500; n += 6) {
    const ks_token_info *tokens;

    KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1) + n, 6, NULL, NULL));
    tokens = ks_timeline_get_tokens(tl);
    for (uint32_t i = 0; i + window < n + 6; i++)
      KS_ASSERT_GE(tokens[n + 5].rope_t - tokens[i].rope_t, window);
  }
  KS_ASSERT_GE(stats_of(tl).n_remap, 3);
  ks_timeline_free(tl);
  tl_close(&f);
}

/* Without room for the map nothing changes, and the conversation goes on when there is memory. */
KS_TEST(remap, out_of_memory)
{
  ks_status st = KS_ERR_NOMEM;
  uint32_t n_failed = 0;

  for (int64_t n = 0; st != KS_OK; n++) {
    ks_timeline *tl;
    tl_fixture f;

    tl_open_llama(&f, P, 600, 600);
    tl = new_timeline(&f, KS_POLICY_STREAMING, 8 * 20, MAX_POS);
    KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1), 124, NULL, NULL));
    ks_alloc_fail_after(f.alloc, n);
    st = ks_timeline_eval(tl, tl_ids(2), 5, NULL, NULL);
    ks_alloc_fail_after(f.alloc, -1);
    KS_ASSERT(st == KS_OK || st == KS_ERR_NOMEM);
    KS_ASSERT(st == KS_OK || ks_timeline_get_seen(tl) == 124);
    if (st != KS_OK)
      KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(2), 5, NULL, NULL));
    KS_ASSERT(stats_of(tl).n_remap == 1 && stats_of(tl).n_position == 69);
    KS_ASSERT(ks_timeline_check(tl));
    n_failed += st != KS_OK;
    ks_timeline_free(tl);
    tl_close(&f);
  }
  KS_ASSERT_GE(n_failed, 3);
}

KS_TEST_MAIN
