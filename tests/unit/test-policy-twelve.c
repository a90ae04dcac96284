/* test-policy-twelve.c - policies whose entries are judged by a gate, by lot, by likeness on one
 * scale or not at all, on twelve tokens worked by hand.  SnapKV and the others that look at
 * attention: test-evict-attention.c; VisionZip and FastV: test-vision-prune.c. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/safetensors.h"

#include "tests/unit/kv-fixture.h"
#include "tests/unit/timeline-fixture.h"

#include <unistd.h>

#define N_TOK 12u

/* Two heads of a layer after twelve tokens: which are left of n_keep. */
static const char *
keep_of_two_heads(const ks_evict_params *p, const float *lb, const float *keys, uint64_t n_keep)
{
  static char text[256];
  kv_fixture f;

  fix_open(&f, 1, 2, 4, 20);
  fix_append(&f, f.table, 0, N_TOK, lb, keys);
  KS_ASSERT_OK(fix_evict(&f, f.table, p, N_TOK, n_keep, NULL, 0, NULL));
  snprintf(text, sizeof(text), "%s", fix_survivors(&f, f.table));
  fix_close(&f);
  return text;
}

/* Head 0 has beta .9, but .95 at token 0; head 1 has .8, but .99 at token 2. */
static void
fill_retention(float *lb)
{
  for (uint32_t t = 0; t < N_TOK; t++) {
    lb[t] = logf(t == 0 ? .95f : .9f);
    lb[N_TOK + t] = logf(t == 2 ? .99f : .8f);
  }
}

/* DBTrimKV.  Scores (13 - pos) log beta in order: head 1 token 2 -.111, head 0 tokens 11 10 9 -.211
 * -.316 -.421, head 1 token 11 -.446, head 0 tokens 8 7 -.527 -.632, its token 0 -.667, head 1
 * token 10 -.669, head 0 token 6 -.738.  n = 2 adds log beta + log(1 + beta), .617 where beta is
 * .95, .536 at .9, .365 at .8: token 0 overtakes head 1's token 11 (-.050 to -.082).  n = 64 makes
 * of token 0 2.24, more than 1.99 of head 0's newest.  Floor 2: four places in one ranking fall 3
 * to 1, so 5 and 3 stay. */
KS_TEST(policy_twelve, dbtrimkv)
{
  static const struct {
    uint32_t n_keep, lookahead, floor;
    const char *want;
  } cases[] = {
      {8, 1, 0, "0 7 8 9 10 11 | 2 11"},
      {6, 1, 0, "8 9 10 11 | 2 11"},
      {6, 2, 0, "0 8 9 10 11 | 2"},
      {3, 2, 0, "10 11 | 2"},
      {3, 64, 0, "0 11 | 2"},
      {8, 1, 2, "7 8 9 10 11 | 2 10 11"},
  };
  float lb[2 * N_TOK];

  fill_retention(lb);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    ks_evict_params p = ks_evict_faithful_params(KS_POLICY_DBTRIMKV);

    p.lookahead = cases[i].lookahead;
    p.floor = cases[i].floor;
    KS_ASSERT_STR(keep_of_two_heads(&p, lb, NULL, cases[i].n_keep), cases[i].want);
  }
}

/* TrimKV, C = 4: the same scores, ranked head by head; token 0 is among them from n = 64 on. */
KS_TEST(policy_twelve, trimkv)
{
  ks_evict_params p = ks_evict_faithful_params(KS_POLICY_TRIMKV);
  float lb[2 * N_TOK];

  fill_retention(lb);
  KS_ASSERT_STR(keep_of_two_heads(&p, lb, NULL, 8), "8 9 10 11 | 2 9 10 11");
  p.lookahead = 64;
  KS_ASSERT_STR(keep_of_two_heads(&p, lb, NULL, 8), "0 9 10 11 | 2 9 10 11");
}

/* Full: twelve tokens stay twelve, whatever K is. */
KS_TEST(policy_twelve, full)
{
  const ks_evict_params p = ks_evict_default_params(KS_POLICY_FULL);
  float lb[2 * N_TOK];

  fill_retention(lb);
  KS_ASSERT_STR(keep_of_two_heads(&p, lb, NULL, 2),
                "0 1 2 3 4 5 6 7 8 9 10 11 | 0 1 2 3 4 5 6 7 8 9 10 11");
}

/* Random, C = 4.  The lots of seed 7, in thousands: head 0 12105 2615 14669 16071 1789 14067 7431
 * 8674 3844 8851 8971 2111, head 1 16358 15921 13067 12053 15272 3299 4924 376 8212 8639 12949 217.
 * The log of beta counts for nothing. */
KS_TEST(policy_twelve, random)
{
  ks_evict_params p = ks_evict_faithful_params(KS_POLICY_RANDOM);
  float lb[2 * N_TOK];

  fill_retention(lb);
  p.seed = 7;
  KS_ASSERT_STR(keep_of_two_heads(&p, lb, NULL, 8), "0 2 3 5 | 0 1 2 4");
}

/* KeyDiff on one scale.  Nine keys of head 0 and ten of head 1 point one way, the others each their
 * own.  With mean 0 and variance 1 the odd ones have sqrt(9/3) and sqrt(10/2), the rest -sqrt(3/9)
 * and -sqrt(2/10): behind the five odd ones head 1 comes first.  By raw cosines (-.982 and -.990)
 * it would be head 0. */
KS_TEST(policy_twelve, keydiff_global)
{
  static float keys[2 * N_TOK * FIX_DIM], lb[2 * N_TOK];
  ks_evict_params p = ks_evict_faithful_params(KS_POLICY_KEYDIFF_GLOBAL);

  for (uint32_t t = 0; t < N_TOK; t++) {
    const bool odd0 = t == 1 || t == 4 || t == 7, odd1 = t == 2 || t == 5;

    keys[t * FIX_DIM + (odd0 ? t : 0)] = 2.0f;
    keys[(N_TOK + t) * FIX_DIM + (odd1 ? t : 0)] = 3.0f;
  }
  KS_ASSERT_STR(keep_of_two_heads(&p, lb, keys, 8), "1 4 7 | 2 5 9 10 11");
}

/* PyramidKV where the step from layer to layer is no whole number.  Four layers, w = 2, C = 6: c =
 * 4, most = 8, least = 0, so 8, 5 1/3, 2 2/3 and 0, rounded down, and two newest each: 23 of K
 * = 24. The original rounds the step itself: 8 6 4 2 and the newest would be 28. */
KS_TEST(policy_twelve, pyramid_inside_the_budget)
{
  static float lb[4 * N_TOK], keys[4 * N_TOK * FIX_DIM];
  ks_evict_params p = ks_evict_faithful_params(KS_POLICY_PYRAMIDKV);
  kv_fixture f;

  p.window = 2;
  p.pool = 1;
  fix_open(&f, 4, 1, 4, 40);
  fix_append(&f, f.table, 0, N_TOK, lb, keys);
  KS_ASSERT_OK(fix_evict(&f, f.table, &p, N_TOK, 24, NULL, 0, NULL));
  KS_ASSERT_STR(fix_survivors(&f, f.table), "2 3 4 5 6 7 8 9 10 11 | 5 6 7 8 9 10 11 | 8 9 10 11 | "
                                            "10 11");
  fix_close(&f);
}

/* Gates of the tiny llama (2 layers, 4 KV heads): 16 wide; only the first column of the last matrix
 * counts, and what it meets is silu(1) for every token. */
#define N_LAYER 2u
#define N_HEAD 4u
#define N_EMBD 256u
#define N_GATE 16u

static const float *
zeros(void)
{
  static const float values[N_GATE * N_EMBD];

  return values;
}

/* Opens a gate whose head h of layer l has the same beta[l][h] for every token. */
static ks_gate *
open_gate(tl_fixture *f, const double beta[N_LAYER][N_HEAD])
{
  static const char *const names[] = {"linear1.weight", "linear1.bias",   "linear2.weight",
                                      "linear2.bias",   "linear3.weight", "bias"};
  static const uint32_t sizes[][2] = {{N_GATE, N_EMBD}, {N_GATE, 0},      {N_GATE, N_GATE},
                                      {N_GATE, 0},      {N_HEAD, N_GATE}, {N_HEAD, 0}};
  static float ones[N_GATE], last[N_LAYER][N_HEAD * N_GATE];
  const double seen = 1.0 / (1.0 + exp(-1.0)); /* silu(1) */
  char folder[64] = "policy-test-XXXXXX", path[96], text[N_LAYER * 6][96];
  ks_st_tensor tensors[N_LAYER * 6];
  ks_gate *gate = NULL;

  KS_ASSERT(mkdtemp(folder) != NULL);
  snprintf(path, sizeof(path), "%s/g.safetensors", folder);
  for (uint32_t i = 0; i < N_GATE; i++)
    ones[i] = 1.0f;
  for (uint32_t l = 0; l < N_LAYER; l++) {
    for (uint32_t h = 0; h < N_HEAD; h++)
      last[l][h * N_GATE] = (float)(log(beta[l][h] / (1.0 - beta[l][h])) / seen);
    for (uint32_t i = 0; i < 6; i++) {
      const float *data = i == 3 ? ones : i == 4 ? last[l] : zeros();

      snprintf(text[l * 6 + i], sizeof(text[0]), "model.layers.%u.self_attn.retention_gate.%s", l,
               names[i]);
      tensors[l * 6 + i] = (ks_st_tensor){
          .name = text[l * 6 + i],
          .dtype = KS_DTYPE_F32,
          .n_dims = sizes[i][1] > 0 ? 2 : 1,
          .shape = {sizes[i][0], sizes[i][1]},
          .data = (const unsigned char *)data,
          .n_bytes = sizes[i][0] * (sizes[i][1] > 0 ? sizes[i][1] : 1) * sizeof(float)};
    }
  }
  KS_ASSERT_OK(ks_safetensors_write(f->alloc, path, tensors, N_LAYER * 6, NULL, NULL));
  KS_ASSERT_OK(ks_gate_open(f->alloc, path, f->model, &gate, NULL));
  unlink(path);
  rmdir(folder);
  return gate;
}

/* Twelve tokens through the model under a gate and a policy; n [8]: how many each stream keeps,
 * which are its newest. */
static void
count_kept(tl_fixture *f, ks_gate *gate, ks_policy policy, uint64_t n_keep, uint32_t *n)
{
  ks_timeline_params params = ks_timeline_default_params(f->model, gate, f->pool);
  ks_timeline *tl = NULL;
  ks_kv_view view;

  params.evict = ks_evict_default_params(policy);
  params.evict.pin_first = 0;
  params.chunk = 16;
  params.buffer = 4;
  KS_ASSERT_OK(ks_timeline_new(f->alloc, &params, &tl, NULL));
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1), N_TOK, NULL, NULL));
  KS_ASSERT_EQ(tl_entries(tl), f->n_stream * N_TOK);
  KS_ASSERT_OK(ks_timeline_set_n_keep(tl, n_keep, NULL));
  view = ks_kv_table_get_view(ks_timeline_get_table(tl));
  for (uint32_t s = 0; s < f->n_stream; s++) {
    uint32_t pos[N_TOK];

    n[s] = view.streams[s].n_entry;
    if (n[s] > 0)
      KS_ASSERT_OK(
          f->be.t->kv_read(f->be.dev, &view, s, 0, n[s], NULL, NULL, NULL, pos, NULL, NULL));
    for (uint32_t e = 0; e < n[s]; e++)
      KS_ASSERT_EQ(pos[e], N_TOK - n[s] + e);
  }
  ks_timeline_free(tl);
}

static void
expect_counts(const uint32_t *got, const uint32_t *want)
{
  for (uint32_t s = 0; s < N_LAYER * N_HEAD; s++)
    KS_ASSERT_EQ(got[s], want[s]);
}

/* Untied, K = 16.  Head 0 of layer 0 forgets by .9 a token, of layer 1 by .8, the others by half.
 * (13 - pos) log beta: layer 0 from -.211 to -1.370, layer 1 -.446 -.669 -.893 -1.116 -1.339, the
 * others -1.386 at best: 11 and 5 stay, of 17 one more.  With layer 0's projection in both layers,
 * as a tied gate has it, 8 and 8 would; ranked stream by stream 2 each. */
KS_TEST(policy_twelve, untied)
{
  static const double untied[N_LAYER][N_HEAD] = {{.9, .5, .5, .5}, {.8, .5, .5, .5}};
  static const double tied[N_LAYER][N_HEAD] = {{.9, .5, .5, .5}, {.9, .5, .5, .5}};
  uint32_t n[N_LAYER * N_HEAD];
  tl_fixture f;
  ks_gate *gate;

  tl_open(&f, "llama/model.gguf", NULL, 4, 100, 100);
  gate = open_gate(&f, untied);
  KS_ASSERT(!ks_gate_is_tied(gate));
  count_kept(&f, gate, KS_POLICY_UNTIED, 16, n);
  expect_counts(n, (uint32_t[]){11, 0, 0, 0, 5, 0, 0, 0});
  count_kept(&f, gate, KS_POLICY_UNTIED, 17, n);
  expect_counts(n, (uint32_t[]){12, 0, 0, 0, 5, 0, 0, 0});
  count_kept(&f, gate, KS_POLICY_TRIMKV, 16, n);
  expect_counts(n, (uint32_t[]){2, 2, 2, 2, 2, 2, 2, 2});
  ks_gate_free(gate);
  gate = open_gate(&f, tied);
  KS_ASSERT(ks_gate_is_tied(gate));
  count_kept(&f, gate, KS_POLICY_DBTRIMKV, 16, n);
  expect_counts(n, (uint32_t[]){8, 0, 0, 0, 8, 0, 0, 0});
  ks_gate_free(gate);
  tl_close(&f);
}

KS_TEST_MAIN
