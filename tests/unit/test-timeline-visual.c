/* test-timeline-visual.c - visual tokens in a timeline: the same memory as for text, positions in
 * three parts, videos, views that are seen both ways under a small budget, pins, counts, refusals.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/timeline.h"

#include "tests/unit/timeline-fixture.h"

#define P 4u
#define MAX_EMBD 1024u

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

static void
eval(ks_timeline *tl, const ks_token *ids, uint32_t n, const ks_visual_run *runs, uint32_t n_run,
     const ks_timeline_hooks *hooks)
{
  ks_error err;

  if (ks_timeline_eval_visual(tl, ids, n, runs, n_run, hooks, &err) != KS_OK)
    KS_FAIL("%s", err.text);
}

/* n ids of text with KS_TOKEN_NONE where the runs are. */
static const ks_token *
ids_with(const ks_visual_run *runs, uint32_t n_run, uint32_t n)
{
  static ks_token ids[512];

  KS_ASSERT_LE(n, 512);
  memcpy(ids, tl_ids(5), n * sizeof *ids);
  for (uint32_t r = 0; r < n_run; r++)
    for (uint32_t k = 0; k < runs[r].n_tok; k++)
      ids[runs[r].first + k] = KS_TOKEN_NONE;
  return ids;
}

/* Numbers like those of embeddings, different for every seed. */
static const float *
some_embeddings(uint32_t seed)
{
  static float data[4][128 * MAX_EMBD];
  float *x = data[seed % 4];

  for (size_t i = 0; i < sizeof data[0] / sizeof *x; i++)
    x[i] = (float)((i * 7919 + seed * 104729) % 2003) / 1001.0f - 1.0f;
  return x;
}

static ks_visual_run
run_at(uint32_t first, uint32_t rows, uint32_t cols, const float *embd)
{
  return (ks_visual_run){.first = first,
                         .n_tok = rows * cols,
                         .embd = embd,
                         .grid_rows = rows,
                         .grid_cols = cols,
                         .attachment = 1};
}

/* Positions and log_beta of every stream are bit for bit the same. */
static void
compare_pages(const tl_fixture *f, const ks_timeline *a, const ks_timeline *b)
{
  const ks_kv_view va = ks_kv_table_get_view(ks_timeline_get_table(a));
  const ks_kv_view vb = ks_kv_table_get_view(ks_timeline_get_table(b));
  uint32_t pos[2][512];
  float log_beta[2][512];

  for (uint32_t s = 0; s < f->n_stream; s++) {
    const uint32_t n = va.streams[s].n_entry;

    KS_ASSERT_EQ(n, vb.streams[s].n_entry);
    KS_ASSERT_LE(n, 512);
    if (n == 0)
      continue;
    KS_ASSERT_OK(
        f->be.t->kv_read(f->be.dev, &va, s, 0, n, NULL, NULL, log_beta[0], pos[0], NULL, NULL));
    KS_ASSERT_OK(
        f->be.t->kv_read(f->be.dev, &vb, s, 0, n, NULL, NULL, log_beta[1], pos[1], NULL, NULL));
    KS_ASSERT(memcmp(pos[0], pos[1], n * sizeof(uint32_t)) == 0);
    KS_ASSERT(memcmp(log_beta[0], log_beta[1], n * sizeof(float)) == 0);
  }
}

/* A picture whose embeddings are rows of the embedding table is, in a model that scales nothing,
 * the text of those rows: same gates, same ranking, same survivors, same logits. */
KS_TEST(timeline_visual, same_memory_as_text)
{
  tl_fixture f;
  ks_timeline *text, *seen;
  const ks_token *plain = tl_ids(5);
  const float *table;
  float *embd;
  ks_visual_run runs[2];
  ks_kv_stats stats;
  size_t n_embd;

  tl_open_llama(&f, P, 800, 800);
  n_embd = ks_model_get_shape(f.model)->n_embd;
  table = (const float *)(uintptr_t)ks_model_get_embd(f.model)->data;
  embd = calloc(60 * n_embd, sizeof *embd);
  KS_ASSERT(embd != NULL);
  for (uint32_t i = 0; i < 60; i++)
    memcpy(embd + i * n_embd, table + (size_t)plain[20 + i] * n_embd, n_embd * sizeof *embd);
  runs[0] = run_at(20, 6, 5, embd);
  runs[1] = run_at(60, 4, 5, embd + 40 * n_embd);
  text = new_timeline(&f, 16, 4, 8 * 30);
  seen = new_timeline(&f, 16, 4, 8 * 30);
  eval(text, plain, 100, NULL, 0, NULL);
  eval(seen, ids_with(runs, 2, 100), 100, runs, 2, NULL);
  for (uint32_t i = 0; i < 10; i++) {
    eval(text, plain + 100 + i, 1, NULL, 0, NULL);
    eval(seen, plain + 100 + i, 1, NULL, 0, NULL);
  }
  KS_ASSERT(memcmp(ks_timeline_get_logits(text), ks_timeline_get_logits(seen),
                   ks_model_get_shape(f.model)->n_vocab * sizeof(float)) == 0);
  compare_pages(&f, text, seen);
  ks_timeline_get_stats(seen, &stats);
  KS_ASSERT(stats.n_picture == 1 && stats.pictures[0].begin == 20 && stats.pictures[0].end == 80);
  KS_ASSERT_EQ(stats.pictures[0].n_tok, 50);
  KS_ASSERT_EQ(stats.pictures[0].n_entry, stats.by_modality[KS_MODALITY_IMAGE]);
  KS_ASSERT(stats.n_eviction_runs > 5 && stats.by_modality[KS_MODALITY_IMAGE] > 0);
  KS_ASSERT(ks_timeline_check(seen));
  free(embd);
  ks_timeline_free(text);
  ks_timeline_free(seen);
  tl_close(&f);
}

static void
expect_rope(const ks_timeline *tl, uint32_t at, int32_t t, int32_t h, int32_t w)
{
  const ks_token_info *info = &ks_timeline_get_tokens(tl)[at];

  if (info->rope_t != t || info->rope_h != h || info->rope_w != w)
    KS_FAIL("token %u at (%d, %d, %d), want (%d, %d, %d)", at, info->rope_t, info->rope_h,
            info->rope_w, t, h, w);
}

/* Worked by hand: a picture of 2 x 3 at 4, text at 7; a video of three frames of 2 x 2 from 8 on
 * with t at 0, 2 and 5 from its origin, cut over two calls; text behind the largest position. */
KS_TEST(timeline_visual, positions)
{
  const float *embd = some_embeddings(1);
  ks_visual_run picture = run_at(4, 2, 3, embd), frames[3];
  tl_fixture f;
  ks_timeline *tl;

  tl_open(&f, "qwen2.5-vl/model.gguf", NULL, P, 400, 400);
  tl = new_timeline(&f, 8, 4, 0);
  eval(tl, ids_with(&picture, 1, 12), 12, &picture, 1, NULL);
  expect_rope(tl, 3, 3, 3, 3);
  expect_rope(tl, 4, 4, 4, 4);
  expect_rope(tl, 6, 4, 4, 6);
  expect_rope(tl, 7, 4, 5, 4);
  expect_rope(tl, 9, 4, 5, 6);
  expect_rope(tl, 10, 7, 7, 7);
  expect_rope(tl, 11, 8, 8, 8);
  frames[0] = run_at(0, 2, 2, embd);
  frames[1] = run_at(4, 2, 2, embd);
  frames[2] = run_at(0, 2, 2, embd);
  frames[1].follows = frames[2].follows = true;
  frames[1].t_shift = 2;
  frames[2].t_shift = 5;
  eval(tl, ids_with(frames, 2, 8), 8, frames, 2, NULL);
  expect_rope(tl, 12, 9, 9, 9);
  expect_rope(tl, 15, 9, 10, 10);
  expect_rope(tl, 16, 11, 9, 9);
  expect_rope(tl, 19, 11, 10, 10);
  eval(tl, ids_with(&frames[2], 1, 5), 5, &frames[2], 1, NULL);
  expect_rope(tl, 20, 14, 9, 9);
  expect_rope(tl, 23, 14, 10, 10);
  expect_rope(tl, 24, 15, 15, 15);
  /* A frame needs one of its video before it. */
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_timeline_eval_visual(tl, ids_with(&frames[2], 1, 5), 5,
                                                       &frames[2], 1, NULL, NULL));
  KS_ASSERT_EQ(ks_timeline_get_seen(tl), 25);
  ks_timeline_free(tl);
  tl_close(&f);
}

/* Tokens that are left of a picture stand where they stood in it, in any order, and what follows
 * stands as if all were there; a place outside the grid is refused. */
KS_TEST(timeline_visual, places)
{
  static const uint32_t places[] = {5, 1, 4}, outside[] = {0, 6, 1};
  const float *embd = some_embeddings(1);
  ks_visual_run picture = run_at(4, 2, 3, embd), next = run_at(0, 2, 3, embd);
  const ks_token *ids;
  ks_kv_stats stats;
  tl_fixture f;
  ks_timeline *tl;

  tl_open(&f, "qwen2.5-vl/model.gguf", NULL, P, 400, 400);
  tl = new_timeline(&f, 2, 2, 0); /* the picture is cut over two passes */
  picture.n_tok = next.n_tok = 3;
  picture.places = outside;
  ids = ids_with(&picture, 1, 8);
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_timeline_eval_visual(tl, ids, 8, &picture, 1, NULL, NULL));
  picture.places = next.places = places;
  picture.first = 3;
  eval(tl, ids_with(&picture, 1, 6), 6, &picture, 1, NULL);
  expect_rope(tl, 3, 3, 4, 5);
  expect_rope(tl, 4, 3, 3, 4);
  expect_rope(tl, 5, 3, 4, 4);
  KS_ASSERT(ks_timeline_get_tokens(tl)[3].patch_row == 1 &&
            ks_timeline_get_tokens(tl)[3].patch_col == 2);
  ks_timeline_get_stats(tl, &stats);
  KS_ASSERT(stats.n_picture == 1 && stats.pictures[0].n_tok == 3);
  KS_ASSERT(stats.pictures[0].grid_rows == 2 && stats.pictures[0].grid_cols == 3);
  next.follows = true; /* the next frame of a video, from the same origin */
  next.t_shift = 1;
  eval(tl, ids_with(&next, 1, 4), 4, &next, 1, NULL);
  expect_rope(tl, 6, 4, 4, 5);
  expect_rope(tl, 8, 4, 4, 4);
  expect_rope(tl, 9, 6, 6, 6);
  ks_timeline_free(tl);
  tl_close(&f);
}

typedef struct watch {
  const tl_fixture *f;
  const ks_visual_run *runs;
  uint32_t n_run, n_poll, stop_at;
} watch;

static bool
stop_cb(void *user)
{
  watch *w = user;

  KS_ASSERT_LE(ks_kv_pool_get_used_pages(w->f->pool), ks_kv_pool_get_budget_pages(w->f->pool));
  return ++w->n_poll == w->stop_at;
}

/* A pass never ends inside a view. */
static bool
progress_cb(void *user, uint32_t n_done, uint32_t n_total)
{
  const watch *w = user;

  KS_ASSERT_LE(n_done, n_total);
  for (uint32_t i = 0; i < w->n_run; i++)
    KS_ASSERT(n_done <= w->runs[i].first || n_done >= w->runs[i].first + w->runs[i].n_tok);
  return true;
}

/* Gemma 3 sees a view both ways, so it is one pass, also where the budget would cut passes of text
 * much shorter: what is above K for so long a pass goes before it, and the pool is never exceeded.
 */
KS_TEST(timeline_visual, both_ways_in_one_pass)
{
  const float *embd = some_embeddings(2);
  const ks_visual_run runs[] = {run_at(3, 6, 6, embd), run_at(60, 5, 7, embd)};
  tl_fixture f;
  watch w = {.f = &f, .runs = runs, .n_run = 2};
  const ks_timeline_hooks hooks = {.stop = stop_cb, .progress = progress_cb, .user = &w};
  ks_timeline *tl;
  uint64_t k_text;
  ks_error err;

  tl_open(&f, "gemma3/model.gguf", NULL, P, 400, 400);
  KS_ASSERT_OK(ks_kv_pool_set_budget(f.pool, f.n_stream * 14 * f.layout.page_bytes, NULL));
  tl = new_timeline(&f, 40, 4, 0);
  KS_ASSERT_EQ(ks_timeline_get_max_view(tl), 40);
  KS_ASSERT_LT(ks_timeline_get_chunk(tl), 35);
  k_text = ks_timeline_get_n_keep(tl);
  eval(tl, ids_with(runs, 2, 120), 120, runs, 2, &hooks);
  KS_ASSERT(w.n_poll > 50);
  KS_ASSERT_LE(tl_entries(tl), k_text);
  KS_ASSERT(ks_timeline_check(tl));
  KS_ASSERT_OK(ks_timeline_set_budget(tl, f.n_stream * 9 * f.layout.page_bytes, NULL));
  KS_ASSERT_STATUS(KS_ERR_BUDGET,
                   ks_timeline_eval_visual(tl, ids_with(runs, 2, 120), 120, runs, 2, &hooks, &err));
  KS_ASSERT(strstr(err.text, "smallest budget that works") != NULL);
  KS_ASSERT_EQ(ks_timeline_get_seen(tl), 120);
  ks_timeline_free(tl);
  tl = new_timeline(&f, 30, 4, 0);
  KS_ASSERT_STATUS(KS_ERR_ARG,
                   ks_timeline_eval_visual(tl, ids_with(runs, 2, 120), 120, runs, 2, NULL, &err));
  KS_ASSERT(strstr(err.text, "36 tokens") != NULL);
  ks_timeline_free(tl);
  tl_close(&f);
}

/* A pinned picture stays whole in every stream; read again after a reset the same tokens leave the
 * same entries and logits. */
KS_TEST(timeline_visual, pins_and_replay)
{
  const float *embd = some_embeddings(3);
  const ks_visual_run runs[] = {run_at(10, 3, 4, embd), run_at(40, 3, 4, embd + 12 * MAX_EMBD / 2)};
  ks_visual_run other;
  const ks_picture_stats *p;
  tl_fixture f;
  ks_timeline *tl, *again;

  tl_open(&f, "qwen2.5-vl/model.gguf", NULL, P, 400, 400);
  tl = new_timeline(&f, 16, 4, f.n_stream * 20);
  again = new_timeline(&f, 16, 4, f.n_stream * 20);
  other = runs[1];
  other.attachment = 2;
  for (uint32_t round = 0; round < 2; round++) {
    const ks_visual_run both[] = {runs[0], other};
    ks_timeline *at = round == 0 ? tl : again;

    if (round == 1) { /* something else before */
      eval(at, tl_ids(9), 90, NULL, 0, NULL);
      ks_timeline_reset(at);
    }
    KS_ASSERT_OK(ks_timeline_pin(at, 40, 52, NULL));
    eval(at, ids_with(both, 2, 200), 200, both, 2, NULL);
    KS_ASSERT(ks_timeline_check(at));
  }
  p = ks_timeline_find_picture(tl, 0, 2);
  KS_ASSERT(p != NULL && p->begin == 40 && p->end == 52);
  KS_ASSERT_EQ(p->n_entry, 12 * (uint64_t)f.n_stream);
  p = ks_timeline_find_picture(tl, 0, 1);
  KS_ASSERT(p != NULL && p->n_tok == 12 && p->n_entry < 12 * (uint64_t)f.n_stream);
  KS_ASSERT(ks_timeline_find_picture(tl, 1, 1) == NULL);
  compare_pages(&f, tl, again);
  KS_ASSERT(memcmp(ks_timeline_get_logits(tl), ks_timeline_get_logits(again),
                   ks_model_get_shape(f.model)->n_vocab * sizeof(float)) == 0);
  ks_timeline_free(tl);
  ks_timeline_free(again);
  tl_close(&f);
}

/* Stopped inside a picture: nothing of that pass is left, and what is read afterwards gives what an
 * undisturbed run gives. */
KS_TEST(timeline_visual, cancel_leaves_no_trace)
{
  const float *embd = some_embeddings(0);
  const ks_visual_run run = run_at(2, 4, 5, embd);
  tl_fixture f;
  watch w = {.f = &f};
  const ks_timeline_hooks hooks = {.stop = stop_cb, .user = &w};
  ks_timeline *calm, *tl;
  ks_kv_stats stats;

  tl_open(&f, "qwen2.5-vl/model.gguf", NULL, P, 400, 400);
  calm = new_timeline(&f, 64, 4, 0);
  tl = new_timeline(&f, 64, 4, 0);
  eval(calm, ids_with(&run, 1, 30), 30, &run, 1, &hooks);
  KS_ASSERT(w.n_poll > 2);
  w = (watch){.f = &f, .stop_at = 2};
  KS_ASSERT_STATUS(KS_ERR_CANCELLED,
                   ks_timeline_eval_visual(tl, ids_with(&run, 1, 30), 30, &run, 1, &hooks, NULL));
  ks_timeline_get_stats(tl, &stats);
  KS_ASSERT(stats.seen == 0 && stats.n_picture == 0 && stats.n_entries == 0);
  eval(tl, ids_with(&run, 1, 30), 30, &run, 1, NULL);
  KS_ASSERT(memcmp(ks_timeline_get_logits(tl), ks_timeline_get_logits(calm),
                   ks_model_get_shape(f.model)->n_vocab * sizeof(float)) == 0);
  ks_timeline_free(calm);
  ks_timeline_free(tl);
  tl_close(&f);
}

static void
refuse(ks_timeline *tl, const ks_token *ids, uint32_t n, ks_visual_run run)
{
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_timeline_eval_visual(tl, ids, n, &run, 1, NULL, NULL));
  KS_ASSERT_EQ(ks_timeline_get_seen(tl), 0);
}

/* Runs that fit neither ids, grid nor model are refused before anything is done. */
KS_TEST(timeline_visual, refusals)
{
  const float *embd = some_embeddings(1);
  const ks_visual_run good = run_at(3, 2, 2, embd);
  tl_fixture f;
  ks_timeline *tl;
  ks_visual_run bad = good;
  const ks_token *ids = ids_with(&good, 1, 10);

  tl_open(&f, "qwen2.5-vl/model.gguf", NULL, P, 400, 400);
  tl = new_timeline(&f, 16, 4, 0);
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_timeline_eval(tl, ids, 10, NULL, NULL));
  bad.grid_cols = 3; /* no grid */
  refuse(tl, ids, 10, bad);
  bad = good;
  bad.first = 4; /* not where the ids want it */
  refuse(tl, ids, 10, bad);
  bad = good;
  bad.embd = NULL;
  refuse(tl, ids, 10, bad);
  bad = good;
  bad.n_deep = 1; /* this model takes no features */
  bad.deep = embd;
  refuse(tl, ids, 10, bad);
  bad = good;
  bad.row0 = 0x7ffe; /* outside any picture */
  refuse(tl, ids, 10, bad);
  bad = good;
  bad.first = UINT32_MAX - 1;
  refuse(tl, ids, 10, bad);
  bad = good;
  bad.follows = true; /* text stands before it */
  refuse(tl, ids, 10, bad);
  refuse(tl, tl_ids(5), 10, good); /* ids of text under a picture */
  refuse(tl, ids, 6, good);        /* cut off */
  eval(tl, ids, 10, &good, 1, NULL);
  ks_timeline_free(tl);
  tl_close(&f);
}

KS_TEST_MAIN
