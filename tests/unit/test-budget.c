/* test-budget.c - plans from one target, and amounts of memory as people write them. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/budget.h"

#include "tests/unit/timeline-fixture.h"

#define MIB ((uint64_t)1 << 20)

/* Amounts with units, fractions and spaces; everything else is a sentence. */
KS_TEST(budget, parse_bytes)
{
  static const struct {
    const char *text;
    uint64_t want;
  } good[] = {
      {"24000000", 24000000},  {"160MiB", 160 * MIB},
      {"1.5 GiB", 1536 * MIB}, {" 2gb ", 2000000000},
      {"0.5k", 512},           {"12 kB", 12000},
      {"100.1MiB", 104962458}, {"7b", 7},
      {".25m", MIB / 4},       {"1t", (uint64_t)1 << 40},
  };
  static const char *const bad[] = {"",
                                    "MiB",
                                    "-1",
                                    "1e9",
                                    "12 XB",
                                    "1.2.3",
                                    "99999999999999 GiB",
                                    "1 MiB more",
                                    "99999999999999999999999",
                                    "0x10",
                                    "."};
  uint64_t got = 77;
  ks_error err;

  for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
    KS_ASSERT_OK(ks_budget_parse_bytes(good[i].text, &got, NULL));
    KS_ASSERT_EQ(got, good[i].want);
  }
  got = 77;
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    KS_ASSERT_STATUS(KS_ERR_ARG, ks_budget_parse_bytes(bad[i], &got, &err));
    KS_ASSERT(err.text[0] != '\0' && got == 77);
  }
}

/* The chunk is halved until room for a pass takes at most a quarter of the entries, never below the
 * buffer, and not when K is reached anyway. */
KS_TEST(budget, pick_chunk)
{
  ks_kv_layout l = {.n_layer = 30,
                    .n_kv_head = 3,
                    .k_dim = 64,
                    .v_dim = 64,
                    .kv_dtype = KS_DTYPE_F16,
                    .page_entries = 16};

  KS_ASSERT_OK(ks_kv_layout_init(&l, NULL));
  /* 24 MiB: 5,957 pages, 95,312 entries; 90 * (128 + 15) = 12,870 is the first under a quarter. */
  KS_ASSERT_EQ(ks_budget_pick_chunk(&l, 24 * MIB / l.page_bytes, 0, 512, 32), 128);
  KS_ASSERT_EQ(ks_budget_pick_chunk(&l, 24 * MIB / l.page_bytes, 0, 128, 32), 128);
  KS_ASSERT_EQ(ks_budget_pick_chunk(&l, 24 * MIB / l.page_bytes, 90 * 300, 512, 32), 512);
  KS_ASSERT_EQ(ks_budget_pick_chunk(&l, 100, 0, 512, 40), 40);
}

/* A plan's parts add up to no more than the target, and a pool and timeline made from it work. */
KS_TEST(budget, plans_for_totals)
{
  tl_fixture f;
  uint64_t least = 0;

  tl_open_llama(&f, 4, 80, 80);
  for (uint64_t total = MIB; total < 24 * MIB; total += MIB / 3) {
    const ks_budget_request request = {.total_bytes = total};
    ks_budget_plan plan;
    ks_error err;
    const ks_status st =
        ks_budget_make_plan(f.model, f.gate, &f.layout, &request, 64, 8, &plan, &err);

    if (st == KS_ERR_BUDGET) {
      char *end;
      const char *number = strstr(err.text, "at least ");

      KS_ASSERT_EQ(least, 0); /* once it works, more works as well */
      KS_ASSERT(number != NULL);
      KS_ASSERT(strtod(number + 9, &end) * (double)MIB > (double)total);
      KS_ASSERT(strncmp(end, " MiB", 4) == 0);
      continue;
    }
    KS_ASSERT_OK(st);
    least = least == 0 ? total : least;
    KS_ASSERT_LE(plan.weight_bytes + plan.gate_bytes + plan.scratch_bytes + plan.kv_bytes, total);
    KS_ASSERT_EQ(plan.total_bytes,
                 plan.weight_bytes + plan.gate_bytes + plan.scratch_bytes + plan.kv_bytes);
    KS_ASSERT_EQ(plan.weight_bytes, ks_model_get_weight_bytes(f.model));
    KS_ASSERT_LE(plan.n_page * f.layout.page_bytes, plan.kv_bytes);
    KS_ASSERT_EQ(plan.n_keep, ks_kv_entries_for_pages(&f.layout, plan.n_page, plan.chunk));
    KS_ASSERT_GE(plan.n_keep, f.n_stream);
    KS_ASSERT(plan.chunk <= 64 && plan.chunk >= 8);
  }
  KS_ASSERT(least > 0);
  tl_close(&f);
}

/* The smallest total that an error names works when it is typed, and gives a timeline that runs. */
KS_TEST(budget, the_smallest_works)
{
  tl_fixture f;
  ks_budget_request request = {.total_bytes = MIB};
  ks_budget_plan plan;
  ks_timeline_params params;
  ks_timeline *tl = NULL;
  ks_error err;
  char amount[32];

  tl_open_llama(&f, 4, 80, 2000);
  KS_ASSERT_STATUS(KS_ERR_BUDGET,
                   ks_budget_make_plan(f.model, f.gate, &f.layout, &request, 64, 8, &plan, &err));
  snprintf(amount, sizeof(amount), "%.7s", strstr(err.text, "at least ") + 9);
  KS_ASSERT_OK(ks_budget_parse_bytes(amount, &request.total_bytes, NULL));
  KS_ASSERT_OK(ks_budget_make_plan(f.model, f.gate, &f.layout, &request, 64, 8, &plan, &err));
  KS_ASSERT_EQ(plan.chunk, 8);
  KS_ASSERT_OK(ks_kv_pool_set_budget(f.pool, plan.kv_bytes, NULL));
  params = ks_timeline_default_params(f.model, f.gate, f.pool);
  params.chunk = plan.chunk;
  params.buffer = plan.buffer;
  KS_ASSERT_OK(ks_timeline_new(f.alloc, &params, &tl, NULL));
  KS_ASSERT_GE(ks_timeline_get_n_keep(tl), plan.n_keep);
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1), 30, NULL, NULL));
  KS_ASSERT_LE(ks_kv_pool_get_committed_bytes(f.pool), plan.kv_bytes);
  ks_timeline_free(tl);
  tl_close(&f);
}

/* Where a view of a picture must be one pass, a plan has room for it, also the smallest one, and
 * what the engine takes while the picture is read stays below the target. */
KS_TEST(budget, views_in_one_pass)
{
  static const float embd[48 * 1024];
  const ks_visual_run run = {.first = 5, .n_tok = 48, .embd = embd, .grid_rows = 6, .grid_cols = 8};
  ks_budget_request request = {.total_bytes = MIB, .view_tok = 48};
  const ks_budget_request blind = {.total_bytes = 64 * MIB};
  ks_token ids[80];
  tl_fixture f;
  ks_budget_plan plan, without;
  ks_timeline_params params;
  ks_timeline *tl = NULL;
  ks_error err;

  tl_open(&f, "gemma3/model.gguf", NULL, 4, 80, 4000);
  KS_ASSERT_LE(ks_model_get_shape(f.model)->n_embd, 1024);
  KS_ASSERT_OK(ks_budget_make_plan(f.model, NULL, &f.layout, &blind, 64, 8, &without, NULL));
  request.total_bytes = without.least_bytes;
  KS_ASSERT_STATUS(KS_ERR_BUDGET,
                   ks_budget_make_plan(f.model, NULL, &f.layout, &request, 64, 8, &plan, &err));
  request.total_bytes = 64 * MIB;
  KS_ASSERT_OK(ks_budget_make_plan(f.model, NULL, &f.layout, &request, 32, 8, &plan, NULL));
  KS_ASSERT(plan.chunk == 48 && plan.least_bytes > without.least_bytes);
  request.total_bytes = plan.least_bytes;
  KS_ASSERT_OK(ks_budget_make_plan(f.model, NULL, &f.layout, &request, 64, 8, &plan, NULL));
  KS_ASSERT_EQ(plan.chunk, 48);
  KS_ASSERT_OK(ks_kv_pool_set_budget(f.pool, plan.kv_bytes, NULL));
  params = ks_timeline_default_params(f.model, NULL, f.pool);
  params.chunk = plan.chunk;
  params.buffer = plan.buffer;
  KS_ASSERT_OK(ks_timeline_new(f.alloc, &params, &tl, NULL));
  memcpy(ids, tl_ids(1), sizeof ids);
  for (uint32_t i = 0; i < run.n_tok; i++)
    ids[run.first + i] = KS_TOKEN_NONE;
  for (uint32_t i = 0; i < 3; i++) {
    KS_ASSERT_OK(ks_timeline_eval_visual(tl, ids, 80, &run, 1, NULL, NULL));
    KS_ASSERT_LE(ks_model_get_weight_bytes(f.model) + ks_alloc_get_bytes(f.alloc, KS_MEM_SCRATCH) +
                     ks_alloc_get_bytes(f.alloc, KS_MEM_KV),
                 request.total_bytes);
    KS_ASSERT(ks_timeline_check(tl));
  }
  ks_timeline_free(tl);
  tl_close(&f);
}

/* Everything that the device holds now: weights, gate, scratch of all kinds, pages. */
static uint64_t
taken_bytes(const tl_fixture *f)
{
  return ks_model_get_weight_bytes(f->model) + ks_gate_get_bytes(f->gate) +
         ks_alloc_get_bytes(f->alloc, KS_MEM_SCRATCH) + ks_alloc_get_bytes(f->alloc, KS_MEM_KV);
}

static void
eval_below(const tl_fixture *f, ks_timeline *tl, uint32_t n, uint64_t total)
{
  ks_kv_stats stats;

  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(n), n, NULL, NULL));
  KS_ASSERT_LE(taken_bytes(f), total);
  ks_timeline_get_stats(tl, &stats);
  KS_ASSERT_EQ(stats.scratch_bytes, ks_alloc_get_bytes(f->alloc, KS_MEM_SCRATCH));
}

static uint64_t
bytes_named(const char *text)
{
  const char *amount = strstr(text, "works is ");
  uint64_t n_bytes = 0;

  KS_ASSERT(amount != NULL && strstr(text, "MiB") != NULL);
  KS_ASSERT_OK(ks_budget_parse_bytes(amount + 9, &n_bytes, NULL));
  return n_bytes;
}

/* A target for everything holds for what the engine really takes, the device's tiles and lists and
 * the ranking included, when it is planned, lowered and raised; the smallest that an error names
 * works.  With the device's own memory left out of the sum the first pass exceeds it. */
KS_TEST(budget, totals_hold_for_what_is_taken)
{
  const uint64_t totals[] = {6 * MIB, 5 * MIB + 333, 13 * MIB / 2};

  for (uint32_t n_thread = 1; n_thread <= 3; n_thread += 2) {
    tl_fixture f;
    ks_timeline_params params;
    ks_timeline *tl = NULL;
    ks_budget_plan plan;
    ks_budget_request request = {.total_bytes = totals[0]};
    ks_error err;
    uint64_t least, named;

    memset(&f, 0, sizeof(f));
    f.alloc = ks_alloc_new();
    f.n_thread = n_thread;
    KS_ASSERT_OK(
        tl_try_open(&f, "llama/model.gguf", "dbtrimkv/gate_tied.safetensors", 4, 4000, 8000));
    KS_ASSERT_OK(ks_budget_make_plan(f.model, f.gate, &f.layout, &request, 64, 8, &plan, NULL));
    KS_ASSERT_GE(plan.kv_bytes, MIB);
    params = ks_timeline_default_params(f.model, f.gate, f.pool);
    params.chunk = plan.chunk;
    params.buffer = plan.buffer;
    KS_ASSERT_OK(ks_kv_pool_set_budget(f.pool, plan.kv_bytes, NULL));
    KS_ASSERT_OK(ks_timeline_new(f.alloc, &params, &tl, NULL));
    for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++) {
      if (i > 0)
        KS_ASSERT_OK(ks_timeline_set_total_budget(tl, totals[i], NULL));
      KS_ASSERT_LE(taken_bytes(&f), totals[i]);
      for (uint32_t n = 0; n < 3; n++)
        eval_below(&f, tl, 300, totals[i]);
      for (uint32_t n = 0; n < 3; n++)
        eval_below(&f, tl, 1, totals[i]);
      KS_ASSERT_GE(taken_bytes(&f) + MIB / 2, totals[i]); /* and it is used */
    }
    KS_ASSERT_STATUS(KS_ERR_BUDGET, ks_timeline_set_total_budget(tl, 1000, &err));
    named = bytes_named(err.text);
    least = ks_timeline_get_least_total_budget(tl);
    KS_ASSERT_GE(named, least);
    KS_ASSERT_LE(named, least + MIB / 10);
    KS_ASSERT_STATUS(KS_ERR_BUDGET, ks_timeline_set_total_budget(tl, least - 1, &err));
    KS_ASSERT_OK(ks_timeline_set_total_budget(tl, named, NULL));
    eval_below(&f, tl, 300, named);
    ks_timeline_free(tl);
    tl_close(&f);
  }
}

/* Amounts in sentences: an amount that is named works when it is typed again, and a small one is
 * not told as nothing. */
KS_TEST(budget, format_bytes)
{
  static const struct {
    uint64_t n_bytes;
    const char *up, *down;
  } rows[] = {
      {0, "0 bytes", "0 bytes"},
      {1, "1 byte", "1 byte"},
      {1023, "1023 bytes", "1023 bytes"},
      {1025, "1.1 KiB", "1.0 KiB"},
      {40960, "40.0 KiB", "40.0 KiB"},
      {104857, "102.4 KiB", "102.3 KiB"},
      {104858, "0.2 MiB", "0.1 MiB"},
      {4 * MIB + 1, "4.1 MiB", "4.0 MiB"},
      {UINT64_MAX >> 4, "1099511627776.0 MiB", "1099511627775.9 MiB"},
  };
  char text[KS_BUDGET_TEXT_BYTES];
  uint64_t back = 0;

  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    ks_budget_format_bytes(rows[i].n_bytes, KS_BUDGET_DOWN, text);
    KS_ASSERT_STR(text, rows[i].down);
    ks_budget_format_bytes(rows[i].n_bytes, KS_BUDGET_UP, text);
    KS_ASSERT_STR(text, rows[i].up);
    if (i + 1 < sizeof rows / sizeof rows[0]) {
      KS_ASSERT_OK(ks_budget_parse_bytes(text, &back, NULL));
      KS_ASSERT_GE(back, rows[i].n_bytes);
    }
  }
}

/* Requests in other units, none, and several at once. */
KS_TEST(budget, other_requests)
{
  tl_fixture f;
  ks_budget_request request = {.entries = 128};
  ks_budget_plan plan;
  ks_error err;

  tl_open_llama(&f, 4, 80, 80);
  KS_ASSERT_OK(ks_budget_make_plan(f.model, NULL, &f.layout, &request, 64, 8, &plan, &err));
  KS_ASSERT_EQ(plan.n_keep, 128 * 8);
  KS_ASSERT_NEAR(plan.entries_per_stream, 128.0, 1e-9);
  KS_ASSERT_GE(ks_kv_entries_for_pages(&f.layout, plan.n_page, plan.chunk), plan.n_keep);
  KS_ASSERT_EQ(plan.kv_bytes % KS_KV_UNIT_BYTES, 0);
  KS_ASSERT_LT(plan.kv_bytes - plan.n_page * f.layout.page_bytes, KS_KV_UNIT_BYTES);
  request = (ks_budget_request){.kv_bytes = 1000};
  KS_ASSERT_STATUS(KS_ERR_BUDGET,
                   ks_budget_make_plan(f.model, NULL, &f.layout, &request, 64, 8, &plan, &err));
  request = (ks_budget_request){.kv_bytes = 2 * MIB};
  KS_ASSERT_OK(ks_budget_make_plan(f.model, NULL, &f.layout, &request, 64, 8, &plan, &err));
  KS_ASSERT_EQ(plan.n_page, 2 * MIB / f.layout.page_bytes);
  request = (ks_budget_request){.kv_bytes = 2 * MIB + KS_KV_UNIT_BYTES - 1};
  KS_ASSERT_OK(ks_budget_make_plan(f.model, NULL, &f.layout, &request, 64, 8, &plan, &err));
  KS_ASSERT_EQ(plan.kv_bytes, 2 * MIB); /* commits go by whole units: none may pass the request */
  request.entries = 3;
  KS_ASSERT_STATUS(KS_ERR_ARG,
                   ks_budget_make_plan(f.model, NULL, &f.layout, &request, 64, 8, &plan, &err));
  request = (ks_budget_request){0};
  KS_ASSERT_OK(ks_budget_make_plan(f.model, NULL, &f.layout, &request, 64, 8, &plan, &err));
  KS_ASSERT_GE(plan.n_keep, (uint64_t)ks_model_get_shape(f.model)->n_ctx_train * 8);
  tl_close(&f);
}

KS_TEST_MAIN
