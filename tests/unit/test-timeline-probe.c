/* test-timeline-probe.c - what the last token attends to: recomputed on the host it is what the
 * attention operation counts for H2O, with and without a policy that keeps queries itself. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/timeline.h"

#include "tests/unit/timeline-fixture.h"

#include <math.h>

#define MAX_ENTRIES 512

static ks_timeline *
open_timeline(tl_fixture *f, ks_policy policy, uint64_t n_keep)
{
  ks_timeline_params params = ks_timeline_default_params(f->model, f->gate, f->pool);
  ks_timeline *tl = NULL;

  params.evict = ks_evict_default_params(policy);
  params.chunk = 16;
  params.buffer = 4;
  params.n_keep = n_keep;
  params.force_evict = true;
  KS_ASSERT_OK(ks_timeline_new(f->alloc, &params, &tl, NULL));
  return tl;
}

static void
read_aux(tl_fixture *f, ks_timeline *tl, uint32_t stream, uint32_t n, float *out)
{
  const ks_kv_view view = ks_kv_table_get_view(ks_timeline_get_table(tl));

  KS_ASSERT_OK(f->be.t->kv_read(f->be.dev, &view, stream, 0, n, NULL, NULL, NULL, NULL, out, NULL));
}

/* H2O adds the attention of every query, summed over the heads of a group, to what it knew: one
 * more token adds just its own, which is the group times what is read here. */
KS_TEST(timeline_probe, agrees_with_what_attention_counts)
{
  tl_fixture f;
  ks_timeline *tl;
  const ks_token *ids = tl_ids(1);
  static float before[64][MAX_ENTRIES], after[MAX_ENTRIES];
  double weights[MAX_ENTRIES];
  uint32_t pos[MAX_ENTRIES], group, n_head;

  tl_open_llama(&f, 16, 4096, 4096);
  tl = open_timeline(&f, KS_POLICY_H2O, 0);
  group = ks_model_get_shape(f.model)->n_head / f.layout.n_kv_head;
  n_head = f.layout.n_kv_head;
  KS_ASSERT(f.n_stream <= 64);
  KS_ASSERT_OK(ks_timeline_note_queries(tl, true, NULL));
  KS_ASSERT_OK(ks_timeline_eval(tl, ids, 40, NULL, NULL));
  for (uint32_t s = 0; s < f.n_stream; s++)
    read_aux(&f, tl, s, 40, before[s]);
  KS_ASSERT_OK(ks_timeline_eval(tl, ids + 40, 1, NULL, NULL));
  for (uint32_t s = 0; s < f.n_stream; s++) {
    double sum = 0.0;

    KS_ASSERT_OK(ks_timeline_read_attention(tl, s / n_head, s % n_head, weights, pos, NULL));
    read_aux(&f, tl, s, 41, after);
    for (uint32_t i = 0; i < 41; i++) {
      const double counted = (double)after[i] - (i < 40 ? (double)before[s][i] : 0.0);

      KS_ASSERT(fabs(weights[i] * group - counted) < 2e-5);
      KS_ASSERT_EQ(pos[i], i);
      sum += weights[i];
    }
    KS_ASSERT(fabs(sum - 1.0) < 1e-9);
  }
  ks_timeline_free(tl);
  tl_close(&f);
}

/* SnapKV keeps its queries in a ring of its own, DBTrimKV keeps none: with everything kept both see
 * the same text, and the last token attends alike. */
KS_TEST(timeline_probe, is_the_same_under_every_policy)
{
  tl_fixture f;
  const ks_policy policies[] = {KS_POLICY_FULL, KS_POLICY_SNAPKV, KS_POLICY_DBTRIMKV};
  const ks_token *ids = tl_ids(2);
  double first[MAX_ENTRIES], weights[MAX_ENTRIES];
  uint32_t pos[MAX_ENTRIES];

  tl_open_llama(&f, 16, 4096, 4096);
  for (uint32_t p = 0; p < 3; p++) {
    ks_timeline *tl = open_timeline(&f, policies[p], 0);

    KS_ASSERT_OK(ks_timeline_note_queries(tl, true, NULL));
    KS_ASSERT_OK(ks_timeline_eval(tl, ids, 77, NULL, NULL));
    KS_ASSERT_OK(ks_timeline_read_attention(tl, 1, 0, p == 0 ? first : weights, pos, NULL));
    for (uint32_t i = 0; p > 0 && i < 77; i++)
      KS_ASSERT(fabs(weights[i] - first[i]) < 1e-6);
    ks_timeline_free(tl);
  }
  tl_close(&f);
}

/* After an eviction the weights are over what is left, and still add up to 1. */
KS_TEST(timeline_probe, follows_evictions)
{
  tl_fixture f;
  ks_timeline *tl;
  ks_kv_stats stats;
  double weights[MAX_ENTRIES];
  uint32_t pos[MAX_ENTRIES], n_head;

  tl_open_llama(&f, 16, 4096, 4096);
  n_head = f.layout.n_kv_head;
  tl = open_timeline(&f, KS_POLICY_DBTRIMKV, 12ull * f.n_stream);
  KS_ASSERT_OK(ks_timeline_note_queries(tl, true, NULL));
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(3), 90, NULL, NULL));
  ks_timeline_get_stats(tl, &stats);
  KS_ASSERT_EQ(stats.n_entries, 12ull * f.n_stream);
  for (uint32_t s = 0; s < f.n_stream; s++) {
    double sum = 0.0;

    KS_ASSERT_OK(ks_timeline_read_attention(tl, s / n_head, s % n_head, weights, pos, NULL));
    for (uint32_t i = 0; i < stats.by_stream[s]; i++) {
      sum += weights[i];
      KS_ASSERT(pos[i] < 90 && (i == 0 || pos[i] > pos[i - 1]));
    }
    KS_ASSERT(stats.by_stream[s] == 0 || fabs(sum - 1.0) < 1e-9);
  }
  ks_timeline_free(tl);
  tl_close(&f);
}

/* Nothing is made up: without a noted query there is a status. */
KS_TEST(timeline_probe, needs_a_noted_query)
{
  tl_fixture f;
  ks_timeline *tl;
  double weights[MAX_ENTRIES];
  uint32_t pos[MAX_ENTRIES];

  tl_open_llama(&f, 16, 4096, 4096);
  tl = open_timeline(&f, KS_POLICY_FULL, 0);
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(3), 10, NULL, NULL));
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_timeline_read_attention(tl, 0, 0, weights, pos, NULL));
  KS_ASSERT_OK(ks_timeline_note_queries(tl, true, NULL));
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_timeline_read_attention(tl, 0, 0, weights, pos, NULL));
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(3), 1, NULL, NULL));
  KS_ASSERT_OK(ks_timeline_read_attention(tl, 0, 0, weights, pos, NULL));
  KS_ASSERT_OK(ks_timeline_note_queries(tl, false, NULL));
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_timeline_read_attention(tl, 0, 0, weights, pos, NULL));
  ks_timeline_free(tl);
  tl_close(&f);
}

KS_TEST_MAIN
