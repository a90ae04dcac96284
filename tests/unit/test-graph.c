/* test-graph.c - one pass equals many, rows can be picked, nothing unchecked reaches a kernel. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/graph.h"
#include "tests/unit/tiny-model.h"

#include <unistd.h>

enum { N_TOK = 40, WINDOW = 12 };

typedef struct fixture {
  ks_alloc *a;
  ks_backend be;
  unsigned char *bytes;
  ks_model *model;
  ks_kv_pool *pool;
  ks_kv_layout layout;
  ks_token ids[N_TOK];
} fixture;

static void
add_window(ks_gguf_writer *w)
{
  ks_gguf_writer_add_u32(w, "gemma3.attention.sliding_window", WINDOW);
  ks_gguf_writer_add_u32(w, "gemma3.attention.sliding_window_pattern", 2);
  ks_gguf_writer_add_f32(w, "gemma3.final_logit_softcapping", 0.5f);
}

static void
open_fixture(fixture *f, const char *arch, bool bias)
{
  tiny_spec spec = {.arch = arch, .bias = bias};
  ks_dev_params dev = {.n_thread = 2};
  uint64_t n_page = TINY_LAYER * TINY_KV_HEAD * (N_TOK / 16 + 1);
  size_t n_bytes;
  ks_error err;

  memset(f, 0, sizeof *f);
  spec.add_keys = strcmp(arch, "gemma3") == 0 ? add_window : NULL;
  f->a = dev.alloc = ks_alloc_new();
  KS_ASSERT_OK(ks_backend_open("cpu", &dev, &f->be, NULL));
  f->bytes = tiny_new_bytes(f->a, &spec, &n_bytes);
  if (tiny_open(f->a, &f->be, f->bytes, n_bytes, 0, &f->model, &err) != KS_OK)
    KS_FAIL("%s", err.text);
  f->layout = (ks_kv_layout){.n_layer = TINY_LAYER,
                             .n_kv_head = TINY_KV_HEAD,
                             .k_dim = TINY_DIM,
                             .v_dim = TINY_DIM,
                             .kv_dtype = KS_DTYPE_F32,
                             .page_entries = 16};
  KS_ASSERT_OK(ks_kv_layout_init(&f->layout, NULL));
  n_page *= f->layout.page_bytes;
  KS_ASSERT_OK(ks_kv_pool_new(f->a, &f->be, &f->layout, n_page, n_page, &f->pool, NULL));
  for (uint32_t i = 0; i < N_TOK; i++)
    f->ids[i] = (ks_token)(i * 37 % TINY_VOCAB);
}

static void
close_fixture(fixture *f)
{
  ks_kv_pool_free(f->pool);
  ks_model_close(f->model);
  ks_mem_free(f->bytes);
  ks_backend_close(&f->be);
  ks_alloc_free(f->a);
}

/* Arrays of one pass over tokens begin .. end - 1; every row's logits are wanted. */
typedef struct plan {
  ks_graph_input in;
  int32_t pos[3 * N_TOK];
  uint32_t first[N_TOK], local[N_TOK], last[N_TOK], rows[N_TOK];
} plan;

static void
make_plan(plan *p, const fixture *f, uint32_t begin, uint32_t end)
{
  uint32_t n = end - begin;

  for (uint32_t i = 0; i < n; i++) {
    p->pos[i] = p->pos[n + i] = p->pos[2 * n + i] = (int32_t)(begin + i);
    p->first[i] = 0;
    p->local[i] = begin + i >= WINDOW ? begin + i - WINDOW + 1 : 0;
    p->last[i] = begin + i;
    p->rows[i] = i;
  }
  p->in = (ks_graph_input){.n_tok = n,
                           .ids = f->ids + begin,
                           .rope_pos = p->pos,
                           .pos0 = begin,
                           .first_global = p->first,
                           .first_local = p->local,
                           .last = p->last,
                           .logit_rows = p->rows,
                           .n_logit = n};
}

static void
run_plan(const fixture *f, const plan *p, ks_graph *g, ks_kv_table *table)
{
  ks_error err;

  KS_ASSERT_OK(ks_kv_table_reserve(table, p->in.n_tok, NULL));
  if (ks_graph_run(g, &p->in, table, NULL, NULL, &err) != KS_OK)
    KS_FAIL("%s: %s", ks_model_get_arch_name(f->model), err.text);
  ks_kv_table_commit(table, p->in.n_tok);
}

/* All logits [N_TOK, TINY_VOCAB], chunk tokens a pass. */
static void
run_all(const fixture *f, uint32_t chunk, float *logits)
{
  ks_kv_table *table = NULL;
  ks_graph *g = NULL;
  plan p;

  KS_ASSERT_OK(ks_kv_table_new(f->pool, &table, NULL));
  KS_ASSERT_OK(ks_graph_new(f->a, f->model, NULL, chunk, chunk, &g, NULL));
  for (uint32_t at = 0; at < N_TOK; at += chunk) {
    uint32_t end = at + chunk < N_TOK ? at + chunk : N_TOK;

    make_plan(&p, f, at, end);
    run_plan(f, &p, g, table);
    memcpy(logits + (size_t)at * TINY_VOCAB, ks_graph_get_logits(g, 0),
           (size_t)(end - at) * TINY_VOCAB * sizeof *logits);
  }
  ks_graph_free(g);
  ks_kv_table_free(table);
}

static double
max_diff(const float *a, const float *b, size_t n)
{
  double worst = 0.0;

  for (size_t i = 0; i < n; i++)
    worst = fmax(worst, fabs((double)a[i] - b[i]));
  return worst;
}

static float *
new_logits(void)
{
  float *x = malloc((size_t)N_TOK * TINY_VOCAB * sizeof *x);

  KS_ASSERT(x != NULL);
  return x;
}

/* The text in one pass, in passes of seven and token by token gives the same logits, whatever the
 * architecture; a wrong mask, window, position or page would show. */
KS_TEST(graph, chunks_do_not_matter)
{
  static const char *const archs[] = {"llama", "qwen2",   "qwen3",  "gemma3",
                                      "phi3",  "qwen2vl", "qwen3vl"};
  float *one = new_logits(), *many = new_logits();

  for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++) {
    fixture f;

    open_fixture(&f, archs[i], i == 1);
    run_all(&f, N_TOK, one);
    for (size_t k = 0; k < (size_t)N_TOK * TINY_VOCAB; k++)
      KS_ASSERT(isfinite(one[k]));
    KS_ASSERT(max_diff(one, one + TINY_VOCAB, TINY_VOCAB) > 1e-3);
    run_all(&f, 7, many);
    KS_ASSERT_NEAR(max_diff(one, many, (size_t)N_TOK * TINY_VOCAB), 0, 1e-5);
    run_all(&f, 1, many);
    KS_ASSERT_NEAR(max_diff(one, many, (size_t)N_TOK * TINY_VOCAB), 0, 1e-5);
    close_fixture(&f);
  }
  free(many);
  free(one);
}

/* A soft cap keeps logits inside (-cap, cap). */
KS_TEST(graph, soft_cap)
{
  float *x = new_logits();
  double biggest = 0.0;
  fixture f;

  open_fixture(&f, "gemma3", false);
  run_all(&f, N_TOK, x);
  for (size_t k = 0; k < (size_t)N_TOK * TINY_VOCAB; k++)
    biggest = fmax(biggest, fabs((double)x[k]));
  KS_ASSERT(biggest < 0.5 && biggest > 0.05);
  close_fixture(&f);
  free(x);
}

/* Asking for two rows, for the taps as well, or for none: the rows are the same, and a pass without
 * rows still leaves its keys and values behind. */
KS_TEST(graph, picked_rows)
{
  static const uint32_t picked[2] = {3, 17};
  float *all = new_logits();
  ks_kv_table *table = NULL;
  ks_graph *g = NULL;
  fixture f;
  plan p;

  open_fixture(&f, "qwen3", false);
  run_all(&f, N_TOK, all);
  KS_ASSERT_OK(ks_kv_table_new(f.pool, &table, NULL));
  KS_ASSERT_OK(ks_graph_new(f.a, f.model, NULL, N_TOK, 2, &g, NULL));
  make_plan(&p, &f, 0, 20);
  p.in.logit_rows = picked;
  p.in.n_logit = 2;
  p.in.want_taps = true; /* the last row goes through as well, but gives no logits */
  run_plan(&f, &p, g, table);
  for (uint32_t i = 0; i < 2; i++)
    KS_ASSERT_NEAR(max_diff(ks_graph_get_logits(g, i), all + picked[i] * TINY_VOCAB, TINY_VOCAB), 0,
                   1e-5);
  KS_ASSERT(ks_graph_get_tap(g, KS_TAP_LAYER_OUT, TINY_LAYER - 1) != NULL);
  KS_ASSERT(ks_graph_get_tap(g, KS_TAP_LAYER_OUT, TINY_LAYER) == NULL);
  KS_ASSERT(ks_graph_get_tap(g, KS_TAP_LOG_BETA, 0) == NULL);
  make_plan(&p, &f, 20, N_TOK - 1);
  p.in.n_logit = 0;
  run_plan(&f, &p, g, table);
  KS_ASSERT(ks_graph_get_tap(g, KS_TAP_EMBED, 0) == NULL);
  make_plan(&p, &f, N_TOK - 1, N_TOK);
  run_plan(&f, &p, g, table);
  KS_ASSERT_NEAR(max_diff(ks_graph_get_logits(g, 0), all + (N_TOK - 1) * TINY_VOCAB, TINY_VOCAB), 0,
                 1e-5);
  ks_graph_free(g);
  ks_kv_table_free(table);
  close_fixture(&f);
  free(all);
}

/* Rows that come as embeddings: the table's own rows, unscaled, give what the ids give in a model
 * that does not scale; ids around them are looked up as ever. */
KS_TEST(graph, embeddings_in_place_of_ids)
{
  float *all = new_logits(), *embd = calloc((size_t)N_TOK * TINY_EMBD, sizeof *embd);
  const ks_graph_visual visuals[] = {
      {.first = 5, .n_tok = 6, .embd = embd + 5 * (size_t)TINY_EMBD},
      {.first = 12, .n_tok = 18, .embd = embd + 12 * (size_t)TINY_EMBD}};
  const float *table_rows;
  ks_kv_table *table = NULL;
  ks_graph *g = NULL;
  fixture f;
  plan p;

  open_fixture(&f, "llama", false);
  run_all(&f, N_TOK, all);
  table_rows = (const float *)(uintptr_t)ks_model_get_embd(f.model)->data;
  for (uint32_t i = 5; i < 30; i++) {
    memcpy(embd + (size_t)i * TINY_EMBD, table_rows + (size_t)f.ids[i] * TINY_EMBD,
           TINY_EMBD * sizeof *embd);
    if (i != 11)
      f.ids[i] = KS_TOKEN_NONE;
  }
  KS_ASSERT_OK(ks_kv_table_new(f.pool, &table, NULL));
  KS_ASSERT_OK(ks_graph_new(f.a, f.model, NULL, N_TOK, N_TOK, &g, NULL));
  make_plan(&p, &f, 0, N_TOK);
  p.in.visuals = visuals;
  p.in.n_visual = 2;
  run_plan(&f, &p, g, table);
  KS_ASSERT_NEAR(max_diff(ks_graph_get_logits(g, 0), all, (size_t)N_TOK * TINY_VOCAB), 0, 1e-6);
  ks_graph_free(g);
  ks_kv_table_free(table);
  close_fixture(&f);
  free(embd);
  free(all);
}

/* Ids outside the vocabulary, too many tokens, rows out of order: refused before anything runs. */
KS_TEST(graph, bad_input)
{
  static const uint32_t falling[2] = {5, 4}, outside[1] = {8};
  static const float embd[2 * TINY_EMBD];
  ks_graph_visual visual = {.first = 3, .n_tok = 1, .embd = embd};
  ks_kv_table *table = NULL;
  ks_graph *g = NULL;
  fixture f;
  plan p;

  open_fixture(&f, "llama", false);
  KS_ASSERT_OK(ks_kv_table_new(f.pool, &table, NULL));
  KS_ASSERT_OK(ks_kv_table_reserve(table, N_TOK, NULL));
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_graph_new(f.a, f.model, NULL, 0, 0, &g, NULL));
  KS_ASSERT_OK(ks_graph_new(f.a, f.model, NULL, 8, 8, &g, NULL));
  make_plan(&p, &f, 0, 9);
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_graph_run(g, &p.in, table, NULL, NULL, NULL));
  make_plan(&p, &f, 0, 8);
  f.ids[3] = TINY_VOCAB;
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_graph_run(g, &p.in, table, NULL, NULL, NULL));
  f.ids[3] = -7;
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_graph_run(g, &p.in, table, NULL, NULL, NULL));
  f.ids[3] = KS_TOKEN_NONE; /* and no embeddings */
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_graph_run(g, &p.in, table, NULL, NULL, NULL));
  p.in.visuals = &visual;
  p.in.n_visual = 1;
  visual.n_tok = 2; /* one of which has an id */
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_graph_run(g, &p.in, table, NULL, NULL, NULL));
  visual = (ks_graph_visual){.first = 3, .n_tok = 1};
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_graph_run(g, &p.in, table, NULL, NULL, NULL));
  f.ids[7] = KS_TOKEN_NONE; /* filled as far as the pass goes, and one too far */
  visual = (ks_graph_visual){.first = 7, .n_tok = 2, .embd = embd};
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_graph_run(g, &p.in, table, NULL, NULL, NULL));
  p.in.n_visual = 0;
  f.ids[3] = f.ids[7] = 1;
  p.in.logit_rows = falling;
  p.in.n_logit = 2;
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_graph_run(g, &p.in, table, NULL, NULL, NULL));
  p.in.logit_rows = outside;
  p.in.n_logit = 1;
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_graph_run(g, &p.in, table, NULL, NULL, NULL));
  ks_graph_free(g);
  ks_kv_table_free(table);
  close_fixture(&f);
}

static bool
stop_at_once(void *user)
{
  ++*(int *)user;
  return true;
}

/* A pass that is stopped says so, and the next one is right again. */
KS_TEST(graph, cancel)
{
  float *all = new_logits();
  ks_kv_table *table = NULL;
  ks_graph *g = NULL;
  int n_asked = 0;
  fixture f;
  plan p;

  open_fixture(&f, "llama", false);
  run_all(&f, N_TOK, all);
  KS_ASSERT_OK(ks_kv_table_new(f.pool, &table, NULL));
  KS_ASSERT_OK(ks_graph_new(f.a, f.model, NULL, N_TOK, N_TOK, &g, NULL));
  make_plan(&p, &f, 0, N_TOK);
  KS_ASSERT_OK(ks_kv_table_reserve(table, N_TOK, NULL));
  KS_ASSERT_STATUS(KS_ERR_CANCELLED, ks_graph_run(g, &p.in, table, stop_at_once, &n_asked, NULL));
  KS_ASSERT(n_asked > 0);
  ks_kv_table_set_lengths(table, NULL);
  run_plan(&f, &p, g, table);
  KS_ASSERT_NEAR(max_diff(ks_graph_get_logits(g, 0), all, (size_t)N_TOK * TINY_VOCAB), 0, 1e-6);
  ks_graph_free(g);
  ks_kv_table_free(table);
  close_fixture(&f);
  free(all);
}

/* A file that is cut between two passes makes the next one an I/O error, not a crash and not
 * numbers. */
KS_TEST(graph, file_cut)
{
  tiny_spec spec = {.arch = "llama"};
  char path[] = "/tmp/ks-graph-XXXXXX";
  int fd = mkstemp(path);
  ks_kv_table *table = NULL;
  ks_graph *g = NULL;
  unsigned char *bytes;
  size_t n_bytes;
  fixture f;
  plan p;

  open_fixture(&f, "llama", false);
  ks_model_close(f.model);
  f.model = NULL;
  bytes = tiny_new_bytes(f.a, &spec, &n_bytes);
  KS_ASSERT(fd >= 0 && write(fd, bytes, n_bytes) == (ssize_t)n_bytes);
  KS_ASSERT_OK(ks_model_open(f.a, path, &(ks_model_params){.be = &f.be}, &f.model, NULL));
  KS_ASSERT_OK(ks_kv_table_new(f.pool, &table, NULL));
  KS_ASSERT_OK(ks_graph_new(f.a, f.model, NULL, N_TOK, N_TOK, &g, NULL));
  make_plan(&p, &f, 0, 4);
  run_plan(&f, &p, g, table);
  KS_ASSERT_EQ(ftruncate(fd, 4096), 0);
  make_plan(&p, &f, 4, 8);
  KS_ASSERT_OK(ks_kv_table_reserve(table, 4, NULL));
  KS_ASSERT_STATUS(KS_ERR_IO, ks_graph_run(g, &p.in, table, NULL, NULL, NULL));
  ks_graph_free(g);
  ks_kv_table_free(table);
  ks_mem_free(bytes);
  close(fd);
  unlink(path);
  close_fixture(&f);
}

/* Making a graph and its first pass survive every single failure of an allocation. */
KS_TEST(graph, out_of_memory)
{
  ks_status st = KS_ERR_NOMEM;
  fixture f;
  plan p;

  open_fixture(&f, "qwen3", false);
  make_plan(&p, &f, 0, 20);
  p.in.want_taps = true;
  for (int64_t n = 0; st != KS_OK && n < 200; n++) {
    ks_kv_table *table = NULL;
    ks_graph *g = NULL;

    ks_alloc_fail_after(f.a, n);
    st = ks_kv_table_new(f.pool, &table, NULL);
    if (st == KS_OK)
      st = ks_kv_table_reserve(table, p.in.n_tok, NULL);
    if (st == KS_OK)
      st = ks_graph_new(f.a, f.model, NULL, N_TOK, N_TOK, &g, NULL);
    if (st == KS_OK)
      st = ks_graph_run(g, &p.in, table, NULL, NULL, NULL);
    ks_alloc_fail_after(f.a, -1);
    KS_ASSERT(st == KS_OK || st == KS_ERR_NOMEM);
    ks_graph_free(g);
    ks_kv_table_free(table);
    KS_ASSERT(ks_kv_pool_check(f.pool));
  }
  KS_ASSERT_OK(st);
  close_fixture(&f);
}

/* The announced scratch is what is taken: one block on the device, one on the host. */
KS_TEST(graph, scratch_is_exact)
{
  ks_kv_table *table = NULL;
  ks_graph *g = NULL;
  uint64_t before, want, block_overhead;
  fixture f;
  void *probe;
  plan p;

  open_fixture(&f, "gemma3", false);
  KS_ASSERT_OK(ks_kv_table_new(f.pool, &table, NULL));
  before = ks_alloc_get_bytes(f.a, KS_MEM_SCRATCH);
  probe = ks_mem_new(f.a, KS_MEM_SCRATCH, 1, 64);
  block_overhead = ks_alloc_get_bytes(f.a, KS_MEM_SCRATCH) - before - 64;
  ks_mem_free(probe);
  want = ks_model_get_scratch_bytes(f.model, N_TOK, 3);
  KS_ASSERT_OK(ks_graph_new(f.a, f.model, NULL, N_TOK, 3, &g, NULL));
  KS_ASSERT_EQ(ks_alloc_get_bytes(f.a, KS_MEM_SCRATCH) - before - 2 * block_overhead, want);
  KS_ASSERT_EQ(ks_graph_get_scratch_bytes(g), want);
  KS_ASSERT_EQ(ks_graph_count_scratch_bytes(f.model, NULL, N_TOK, 3), want);
  KS_ASSERT_LT(want, ks_model_get_scratch_bytes(f.model, N_TOK + 16, 3));
  KS_ASSERT_EQ(ks_model_get_scratch_bytes(f.model, UINT32_MAX, UINT32_MAX) < UINT64_MAX,
               SIZE_MAX > UINT32_MAX);
  make_plan(&p, &f, 0, 2);
  run_plan(&f, &p, g, table);
  ks_graph_free(g);
  ks_kv_table_free(table);
  close_fixture(&f);
}

KS_TEST_MAIN
