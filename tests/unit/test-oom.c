/* test-oom.c - every allocation of a whole run fails once: loading a model and its gate, prefill
 * with evictions, decode, a picture, a smaller budget.  Each run ends with a clean status, the
 * checkers hold, nothing leaks, and what was finished before the failure can go on. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/timeline.h"

#include "tests/unit/timeline-fixture.h"

#define P 4u

/* Text with a picture of 2 x 3 inside. */
static ks_status
see_picture(ks_timeline *tl)
{
  static const float embd[6 * 256];
  const ks_visual_run run = {
      .first = 2, .n_tok = 6, .embd = embd, .grid_rows = 2, .grid_cols = 3, .attachment = 1};
  ks_token ids[10];

  memcpy(ids, tl_ids(4), sizeof ids);
  for (uint32_t i = 0; i < run.n_tok; i++)
    ids[run.first + i] = KS_TOKEN_NONE;
  return ks_timeline_eval_visual(tl, ids, 10, &run, 1, NULL, NULL);
}

/* The run after loading; out_tl is set once there is a timeline. */
static ks_status
use_model(tl_fixture *f, ks_timeline **out_tl)
{
  ks_timeline_params params = ks_timeline_default_params(f->model, f->gate, f->pool);
  ks_status st;

  params.chunk = 8;
  params.buffer = 3;
  st = ks_timeline_new(f->alloc, &params, out_tl, NULL);
  if (st == KS_OK)
    st = ks_timeline_pin(*out_tl, 3, 5, NULL);
  if (st == KS_OK)
    st = ks_timeline_eval(*out_tl, tl_ids(1), 30, NULL, NULL);
  for (uint32_t i = 0; st == KS_OK && i < 4; i++)
    st = ks_timeline_eval(*out_tl, tl_ids(2) + i, 1, NULL, NULL);
  if (st == KS_OK)
    st = see_picture(*out_tl);
  if (st == KS_OK)
    st = ks_timeline_set_budget(*out_tl, 8 * 6 * f->layout.page_bytes, NULL);
  return st;
}

/* One run in which allocation number n fails (and all later ones until it ends). */
static ks_status
run_failing_at(int64_t n, uint64_t *out_n_load)
{
  tl_fixture f;
  ks_timeline *tl = NULL;
  ks_status st;

  memset(&f, 0, sizeof(f));
  f.alloc = ks_alloc_new();
  KS_ASSERT(f.alloc != NULL);
  ks_alloc_fail_after(f.alloc, n);
  st = tl_try_open(&f, "llama/model.gguf", "dbtrimkv/gate_tied.safetensors", P, 8 * 10, 8 * 10);
  *out_n_load = ks_alloc_get_n_calls(f.alloc);
  if (st == KS_OK)
    st = use_model(&f, &tl);
  ks_alloc_fail_after(f.alloc, -1);
  KS_ASSERT(st == KS_OK || st == KS_ERR_NOMEM);
  if (tl != NULL) {
    KS_ASSERT(ks_timeline_check(tl));
    /* With memory again the conversation goes on from the last finished pass. */
    KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(3), 9, NULL, NULL));
    KS_ASSERT(ks_timeline_check(tl));
  }
  ks_timeline_free(tl);
  tl_close(&f);
  return st;
}

KS_TEST(oom, whole_run)
{
  uint64_t n_load = 0;
  int64_t n = 0;

  while (run_failing_at(n, &n_load) != KS_OK)
    n++;
  printf("# %lld allocations failed one by one; loading makes %llu\n", (long long)n,
         (unsigned long long)n_load);
  KS_ASSERT(n > (int64_t)n_load + 20);
}

KS_TEST_MAIN
