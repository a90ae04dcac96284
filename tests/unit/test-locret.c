/* test-locret.c - LocRet's heads: what a pass writes down for its policy, and which files and
 * policies go together.  The scores are computed again from the keys and values that lie in the
 * pages (values as they are, keys where the rotation turns nothing, at the first token), and for
 * twelve tokens from the weights of the model. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/gguf.h"
#include "engine/safetensors.h"

#include "tests/unit/timeline-fixture.h"

#include <math.h>
#include <unistd.h>

/* The tiny llama: 8 query heads, 4 KV heads of 32 numbers, 2 layers. */
#define DIM 32u
#define N_HEAD 8u
#define N_KV_HEAD 4u
#define N_QKV ((N_HEAD + 2 * N_KV_HEAD) * DIM)
#define N_WIDTH 24u
#define N_LAYER 2u
#define N_EMBD 256u
#define N_TWELVE 12u

static float fc1[N_LAYER][N_WIDTH * N_QKV], fc2[N_LAYER][N_KV_HEAD * N_WIDTH];

/* Weights for keys or for values only; a file has halves of a head behind each other. */
static void
fill_heads(bool of_keys)
{
  const uint32_t begin = (of_keys ? N_HEAD : N_HEAD + N_KV_HEAD) * DIM;

  memset(fc1, 0, sizeof(fc1));
  for (uint32_t l = 0; l < N_LAYER; l++) {
    for (uint32_t r = 0; r < N_WIDTH; r++)
      for (uint32_t c = 0; c < N_KV_HEAD * DIM; c++)
        fc1[l][r * N_QKV + begin + c] = 0.1f * (float)((r * 37 + c * 11 + l) % 19) - 0.9f;
    for (uint32_t i = 0; i < N_KV_HEAD * N_WIDTH; i++)
      fc2[l][i] = 0.1f * (float)((i * 13 + l) % 17) - 0.8f;
  }
}

static ks_status
open_heads(tl_fixture *f, ks_gate **out)
{
  char folder[64] = "locret-test-XXXXXX", path[96], names[2 * N_LAYER][64];
  ks_st_tensor tensors[2 * N_LAYER];
  ks_status st;

  KS_ASSERT(mkdtemp(folder) != NULL);
  snprintf(path, sizeof(path), "%s/g.safetensors", folder);
  for (uint32_t i = 0; i < 2 * N_LAYER; i++) {
    const bool first = i % 2 == 0;
    const uint64_t n_row = first ? N_WIDTH : N_KV_HEAD, n_col = first ? N_QKV : N_WIDTH;

    snprintf(names[i], sizeof(names[i]), "model.layers.%u.self_attn.%s.weight", i / 2,
             first ? "fc1" : "fc2");
    tensors[i] = (ks_st_tensor){.name = names[i],
                                .dtype = KS_DTYPE_F32,
                                .n_dims = 2,
                                .shape = {n_row, n_col},
                                .data = (const unsigned char *)(first ? fc1[i / 2] : fc2[i / 2]),
                                .n_bytes = n_row * n_col * sizeof(float)};
  }
  KS_ASSERT_OK(ks_safetensors_write(f->alloc, path, tensors, 2 * N_LAYER, NULL, NULL));
  st = ks_gate_open(f->alloc, path, f->model, out, NULL);
  unlink(path);
  rmdir(folder);
  return st;
}

/* What head h says of rows [N_KV_HEAD, DIM], keys (neighbours turn together) or values. */
static double
score_of(uint32_t layer, uint32_t h, const float *rows, bool of_keys)
{
  const uint32_t begin = (of_keys ? N_HEAD : N_HEAD + N_KV_HEAD) * DIM;
  double score = 0.0;

  for (uint32_t r = 0; r < N_WIDTH; r++) {
    double z = 0.0;

    for (uint32_t c = 0; c < N_KV_HEAD * DIM; c++) {
      const uint32_t head = c / DIM, i = c % DIM;
      const uint32_t at = of_keys ? i % (DIM / 2) * 2 + i / (DIM / 2) : i;

      z += (double)fc1[layer][r * N_QKV + begin + c] * rows[head * DIM + at];
    }
    score += fc2[layer][h * N_WIDTH + r] * z / (1.0 + exp(-z));
  }
  return score;
}

static void
check_scores(tl_fixture *f, const ks_timeline *tl, uint32_t n_tok, bool of_keys)
{
  const ks_kv_view view = ks_kv_table_get_view(ks_timeline_get_table(tl));

  for (uint32_t l = 0; l < N_LAYER; l++)
    for (uint32_t t = 0; t < n_tok; t++) {
      float rows[N_KV_HEAD * DIM], scores[N_KV_HEAD];

      for (uint32_t h = 0; h < N_KV_HEAD; h++)
        KS_ASSERT_OK(f->be.t->kv_read(
            f->be.dev, &view, l * N_KV_HEAD + h, t, t + 1, of_keys ? rows + h * DIM : NULL,
            of_keys ? NULL : rows + h * DIM, &scores[h], NULL, NULL, NULL));
      for (uint32_t h = 0; h < N_KV_HEAD; h++)
        KS_ASSERT_NEAR(scores[h], score_of(l, h, rows, of_keys), 2e-4);
    }
}

/* Entries carry what the heads say of their key and value, for whole prompts and single tokens, and
 * the best of them stay. */
KS_TEST(locret, scores_of_a_pass)
{
  for (int of_keys = 0; of_keys < 2; of_keys++) {
    ks_timeline_params params;
    ks_timeline *tl = NULL;
    tl_fixture f;

    tl_open(&f, "llama/model.gguf", NULL, 4, 400, 400);
    fill_heads(of_keys);
    KS_ASSERT_OK(open_heads(&f, &f.gate));
    KS_ASSERT(ks_gate_is_locret(f.gate) && !ks_gate_is_tied(f.gate) && !ks_gate_is_local(f.gate));
    params = ks_timeline_default_params(f.model, f.gate, f.pool);
    KS_ASSERT_EQ(params.evict.policy, KS_POLICY_LOCRET);
    params.chunk = 8;
    params.buffer = 4;
    KS_ASSERT_OK(ks_timeline_new(f.alloc, &params, &tl, NULL));
    KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(1), 13, NULL, NULL));
    KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(2), 1, NULL, NULL));
    check_scores(&f, tl, of_keys ? 1 : 14, of_keys);
    KS_ASSERT_OK(ks_timeline_set_n_keep(tl, 8 * 6, NULL));
    KS_ASSERT_EQ(tl_entries(tl), 8 * 6);
    ks_timeline_free(tl);
    tl_close(&f);
  }
}

/* One projection of x [N_EMBD]: y [n_out]. */
static void
project(const ks_gguf *g, const char *name, const double *x, uint32_t n_out, double *y)
{
  const ks_gguf_tensor *t = ks_gguf_find_tensor(g, name);
  const float *w;

  KS_ASSERT(t != NULL && t->dtype == KS_DTYPE_F32 && t->ne[0] == N_EMBD && t->ne[1] == n_out);
  w = (const float *)t->data;
  for (uint32_t r = 0; r < n_out; r++) {
    y[r] = 0.0;
    for (uint32_t c = 0; c < N_EMBD; c++)
      y[r] += (double)w[r * N_EMBD + c] * x[c];
  }
}

/* [q;k;v] of a token in the first layer, before rotation; the model's file has the halves of a head
 * of q and k as neighbours. */
static void
make_features(const ks_gguf *g, float eps, ks_token id, double *out)
{
  const ks_gguf_tensor *embd = ks_gguf_find_tensor(g, "token_embd.weight");
  const ks_gguf_tensor *norm = ks_gguf_find_tensor(g, "blk.0.attn_norm.weight");
  double x[N_EMBD], rows[N_QKV], sum = 0.0;

  KS_ASSERT(embd != NULL && embd->dtype == KS_DTYPE_F32 && norm != NULL);
  for (uint32_t i = 0; i < N_EMBD; i++) {
    x[i] = ((const float *)embd->data)[(size_t)id * N_EMBD + i];
    sum += x[i] * x[i];
  }
  for (uint32_t i = 0; i < N_EMBD; i++)
    x[i] *= ((const float *)norm->data)[i] / sqrt(sum / N_EMBD + (double)eps);
  project(g, "blk.0.attn_q.weight", x, N_HEAD * DIM, rows);
  project(g, "blk.0.attn_k.weight", x, N_KV_HEAD * DIM, rows + N_HEAD * DIM);
  project(g, "blk.0.attn_v.weight", x, N_KV_HEAD * DIM, rows + (N_HEAD + N_KV_HEAD) * DIM);
  for (uint32_t c = 0; c < N_QKV; c++) {
    const uint32_t i = c % DIM;

    out[c] =
        c >= (N_HEAD + N_KV_HEAD) * DIM ? rows[c] : rows[c - i + i % (DIM / 2) * 2 + i / (DIM / 2)];
  }
}

/* What the heads of the first layer say of twelve tokens, from the weights alone. */
static void
score_from_weights(const tl_fixture *f, const ks_token *ids, double scores[N_KV_HEAD][N_TWELVE])
{
  const float eps = ks_model_get_shape(f->model)->rms_eps;
  char path[1024];
  ks_gguf *g = NULL;

  KS_ASSERT_OK(ks_gguf_open(f->alloc, tl_path(path, sizeof(path), "llama/model.gguf"), &g, NULL));
  for (uint32_t t = 0; t < N_TWELVE; t++) {
    double qkv[N_QKV], u[N_WIDTH];

    make_features(g, eps, ids[t], qkv);
    for (uint32_t r = 0; r < N_WIDTH; r++) {
      double z = 0.0;

      for (uint32_t c = 0; c < N_QKV; c++)
        z += (double)fc1[0][r * N_QKV + c] * qkv[c];
      u[r] = z / (1.0 + exp(-z));
    }
    for (uint32_t h = 0; h < N_KV_HEAD; h++) {
      scores[h][t] = 0.0;
      for (uint32_t r = 0; r < N_WIDTH; r++)
        scores[h][t] += (double)fc2[0][h * N_WIDTH + r] * u[r];
    }
  }
  ks_gguf_close(g);
}

/* Twelve tokens, C = 6: of each head of the first layer the last floor(5/12 * 6) = 2 stay and the
 * four of the others of which fc2(act(fc1 [q;k;v])) is largest, with all three of q, k and v. */
KS_TEST(locret, twelve_tokens_from_the_weights)
{
  double scores[N_KV_HEAD][N_TWELVE];
  ks_timeline_params params;
  ks_timeline *tl = NULL;
  ks_kv_view view;
  tl_fixture f;

  tl_open(&f, "llama/model.gguf", NULL, 4, 100, 100);
  for (uint32_t i = 0; i < N_WIDTH * N_QKV; i++)
    fc1[0][i] = fc1[1][i] = 0.02f * (float)((i * 29 + i / N_QKV * 7) % 23) - 0.22f;
  for (uint32_t i = 0; i < N_KV_HEAD * N_WIDTH; i++)
    fc2[0][i] = fc2[1][i] = 0.1f * (float)(i * 13 % 17) - 0.8f;
  KS_ASSERT_OK(open_heads(&f, &f.gate));
  score_from_weights(&f, tl_ids(3), scores);
  params = ks_timeline_default_params(f.model, f.gate, f.pool);
  params.evict.pin_first = 0;
  params.chunk = 16;
  params.buffer = 4;
  KS_ASSERT_OK(ks_timeline_new(f.alloc, &params, &tl, NULL));
  KS_ASSERT_OK(ks_timeline_eval(tl, tl_ids(3), N_TWELVE, NULL, NULL));
  KS_ASSERT_OK(ks_timeline_set_n_keep(tl, 8 * 6, NULL));
  view = ks_kv_table_get_view(ks_timeline_get_table(tl));
  for (uint32_t h = 0; h < N_KV_HEAD; h++) {
    float got[6];
    uint32_t pos[6];

    KS_ASSERT_EQ(view.streams[h].n_entry, 6);
    KS_ASSERT_OK(f.be.t->kv_read(f.be.dev, &view, h, 0, 6, NULL, NULL, got, pos, NULL, NULL));
    KS_ASSERT(pos[4] == 10 && pos[5] == 11);
    for (uint32_t e = 0; e < 6; e++)
      KS_ASSERT_NEAR(got[e], scores[h][pos[e]], 2e-4);
    for (uint32_t e = 0; e < 4; e++) {
      uint32_t n_better = 0;

      for (uint32_t t = 0; t < 10; t++)
        n_better += scores[h][t] > scores[h][pos[e]];
      KS_ASSERT_LT(n_better, 4);
    }
  }
  ks_timeline_free(tl);
  tl_close(&f);
}

/* Scores are no retention: the policies of one kind do not run with the other's file. */
KS_TEST(locret, policies_and_files)
{
  tl_fixture f;
  ks_gate *tied;

  tl_open_llama(&f, 4, 400, 400);
  tied = f.gate;
  fill_heads(false);
  KS_ASSERT_OK(open_heads(&f, &f.gate));
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_timeline_check_policy(KS_POLICY_DBTRIMKV, f.gate, NULL));
  KS_ASSERT_OK(ks_timeline_check_policy(KS_POLICY_LOCRET, f.gate, NULL));
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_timeline_check_policy(KS_POLICY_LOCRET, tied, NULL));
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_timeline_check_policy(KS_POLICY_UNTIED, tied, NULL));
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_timeline_check_policy(KS_POLICY_LOCRET, NULL, NULL));
  KS_ASSERT_OK(ks_timeline_check_policy(KS_POLICY_TRIMKV, tied, NULL));
  KS_ASSERT_EQ(ks_timeline_pick_policy(tied), KS_POLICY_DBTRIMKV);
  KS_ASSERT_EQ(ks_timeline_pick_policy(NULL), KS_POLICY_KEYDIFF_GLOBAL);
  ks_gate_free(tied);
  tl_close(&f);
}

KS_TEST_MAIN
