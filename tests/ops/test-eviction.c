/* test-eviction.c - gate, scores, selection and compaction of entries.
 * The promise: the survivors are exactly those of a full sort by the stated rule, for any number of
 * threads, ties, floors and counts; nothing but dropped entries is lost when streams are compacted.
 * Worked numbers as in docs/method.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/retention.h"
#include "tests/ops/ops-store.h"

/* As the recorder cuts it: hidden layers, then the output. */
static void
gate_member(void *user, uint32_t member, uint32_t n_member)
{
  const ops_job *job = user;

  for (uint32_t i = 0; i < ks_cpu_gate_get_n_hidden(job->op); i++) {
    const ks_op_linear hidden = ks_cpu_gate_get_hidden(job->op, i);

    ks_cpu_linear(job->ctx, &hidden, member, n_member);
    ks_cpu_next_phase(job->ctx, member);
  }
  ks_cpu_gate_out(job->ctx, job->op, member, n_member);
}

static void
ops_gate(ops_fixture *f, const ks_op_gate *op)
{
  ks_cpu_need need = {0, 0}, most = {0, 0};

  for (uint32_t i = 0; i < ks_cpu_gate_get_n_hidden(op); i++) {
    const ks_op_linear hidden = ks_cpu_gate_get_hidden(op, i);

    ks_cpu_linear_need(&f->ctx, &hidden, &need);
    most.member_bytes =
        need.member_bytes > most.member_bytes ? need.member_bytes : most.member_bytes;
    most.shared_bytes =
        need.shared_bytes > most.shared_bytes ? need.shared_bytes : most.shared_bytes;
  }
  ops_run(f, most, gate_member, op);
}
OPS_DEFINE(kv_score, ks_op_kv_score)
OPS_DEFINE(kv_select, ks_op_kv_select)
OPS_DEFINE(kv_compact, ks_op_kv_compact)

/* ---- gate ---- */

/* The worked gate, tied form. */
static void
worked_gate_body(ops_fixture *f)
{
  const float x[] = {1, -2}, w1[] = {.5F, -.25F, 1, .5F}, b1[] = {.1F, -.2F};
  const float w2[] = {1, -1, .5F, .25F}, b2[] = {0, .3F}, w3[] = {2, 1, -1, 4}, b3[] = {1, .5F};
  float u[4], log_beta[2];
  ks_op_gate op = {.w1 = {ops_dptr(w1), KS_DTYPE_F32, 2, 2, 8},
                   .w2 = {ops_dptr(w2), KS_DTYPE_F32, 2, 2, 8},
                   .w3 = {ops_dptr(w3), KS_DTYPE_F32, 2, 2, 8},
                   .b1 = ops_dptr(b1),
                   .b2 = ops_dptr(b2),
                   .b3 = ops_dptr(b3),
                   .x = ops_dptr(x),
                   .u = ops_dptr(u),
                   .log_beta = ops_dptr(log_beta),
                   .n_tok = 1,
                   .act = KS_ACT_SILU};

  ops_gate(f, &op);
  KS_ASSERT_NEAR(u[0], .825286, 1e-6);
  KS_ASSERT_NEAR(u[3], .459628, 1e-6);
  KS_ASSERT_NEAR(log_beta[0], -.060962, 1e-6);
  KS_ASSERT_NEAR(log_beta[1], -.170135, 1e-6);
}

static void
random_gate_body(ops_fixture *f)
{
  static const struct {
    uint32_t n_tok, n_embd, n_gate, n_head;
    bool local;
  } cases[] = {{1, 64, 32, 3, false}, {7, 40, 17, 2, true}, {33, 96, 64, 8, false}};

  for (size_t c = 0; c < 3; c++) {
    const uint32_t n_tok = cases[c].n_tok, d = cases[c].n_embd, n = cases[c].n_gate;
    const uint32_t h = cases[c].n_head;
    float *x = ops_floats(f, n_tok * d), *w1 = ops_floats(f, n * d), *b1 = ops_floats(f, n);
    float *w2 = ops_floats(f, n * n), *b2 = ops_floats(f, n), *w3 = ops_floats(f, h * n);
    float *b3 = ops_floats(f, h), *u = ops_floats(f, 2 * n_tok * n),
          *out = ops_floats(f, n_tok * h);
    ks_op_gate op = {.w1 = {ops_dptr(w1), KS_DTYPE_F32, d, n, d * 4},
                     .w3 = {ops_dptr(w3), KS_DTYPE_F32, n, h, n * 4},
                     .b1 = ops_dptr(b1),
                     .b2 = ops_dptr(b2),
                     .b3 = ops_dptr(b3),
                     .x = ops_dptr(x),
                     .u = ops_dptr(u),
                     .log_beta = ops_dptr(out),
                     .n_tok = n_tok,
                     .act = KS_ACT_SILU};

    if (!cases[c].local)
      op.w2 = (ks_weight){
          .data = ops_dptr(w2), .dtype = KS_DTYPE_F32, .n_in = n, .n_out = n, .row_bytes = n * 4};
    ops_gate(f, &op);
    for (uint32_t t = 0; t < n_tok; t++) {
      double u1[64], u2[64];

      for (uint32_t i = 0; i < n; i++) {
        u1[i] = b1[i];
        for (uint32_t j = 0; j < d; j++)
          u1[i] += (double)w1[i * d + j] * x[t * d + j];
        u1[i] /= 1 + exp(-u1[i]);
      }
      for (uint32_t i = 0; i < n; i++) {
        u2[i] = b2[i];
        for (uint32_t j = 0; j < n; j++)
          u2[i] += (double)w2[i * n + j] * u1[j];
        u2[i] = cases[c].local ? u1[i] : u2[i] / (1 + exp(-u2[i]));
      }
      for (uint32_t i = 0; i < h; i++) {
        double z = b3[i];

        for (uint32_t j = 0; j < n; j++)
          z += (double)w3[i * n + j] * u2[j];
        KS_ASSERT_NEAR(out[t * h + i], -log1p(exp(-z)), 2e-5 * (1 + fabs(z)));
      }
    }
    ks_mem_free(x), ks_mem_free(w1), ks_mem_free(b1), ks_mem_free(w2), ks_mem_free(b2);
    ks_mem_free(w3), ks_mem_free(b3), ks_mem_free(u), ks_mem_free(out);
  }
}

/* Both forms; one token and many. */
KS_TEST(gate, forms)
{
  ops_for_all(worked_gate_body);
  ops_for_all(random_gate_body);
}

/* ---- scores ---- */

static void
score_body(ops_fixture *f)
{
  const ks_kv_layout shape = {.n_layer = 2,
                              .n_kv_head = 2,
                              .k_dim = 32,
                              .v_dim = 32,
                              .kv_dtype = KS_DTYPE_F16,
                              .page_entries = 8};
  const uint32_t lengths[] = {17, 0, 8, 33}, live_from[] = {0, 12};
  const ks_pos_range pins[] = {{0, 2}, {5, 6}, {20, 30}, {30, 31}};
  ops_store store;

  ops_store_init(f, &store, &shape, lengths, 0);
  ops_store_fill(f, &store, 0);
  for (uint32_t n = 1; n < 4; n++) {
    float *out = ops_floats(f, 58);
    ks_op_kv_score op = {store.view, ops_dptr(out), 200, n, live_from, pins, 4};
    size_t i = 0;

    ops_kv_score(f, &op);
    for (uint32_t s = 0; s < 4; s++)
      for (uint32_t e = 0; e < lengths[s]; e++, i++) {
        const ks_cpu_slots slot = ops_slot(&store, s, e);
        const uint32_t p = *slot.pos;

        if (p < live_from[s / 2])
          KS_ASSERT(out[i] == -INFINITY);
        else if (p < 2 || p == 5 || (p >= 20 && p < 31))
          KS_ASSERT(out[i] == INFINITY);
        else
          KS_ASSERT(out[i] == ks_retention_score(*slot.log_beta, p, 200, n));
      }
    ks_mem_free(out);
  }
  ops_store_done(&store);
}

/* The shared definition, pins above everything, dead entries below everything and pins. */
KS_TEST(kv_score, pins_and_windows)
{
  ops_for_all(score_body);
}

/* ---- selection ---- */

typedef struct candidate {
  float score;
  uint32_t pos, stream;
  size_t at;
} candidate;

static int
compare_candidates(const void *a, const void *b)
{
  const candidate *x = a, *y = b;

  if (x->score != y->score)
    return x->score > y->score ? -1 : 1;
  if (x->pos != y->pos)
    return x->pos > y->pos ? -1 : 1;
  return x->stream < y->stream ? -1 : 1;
}

/* What a sort would keep. */
static void
reference_select(const ops_store *store, const ks_op_kv_select *op, uint8_t *keep)
{
  const float *scores = ks_cpu_ptr(op->scores);
  const size_t total = ks_cpu_n_live(&store->view);
  candidate *all = calloc(total + 1, sizeof(*all));
  uint64_t *quota = calloc(store->n_stream, sizeof(*quota));
  uint64_t n_global = op->n_keep - (uint64_t)op->floor * store->n_stream, n = 0;
  size_t i = 0;

  for (uint32_t s = 0; s < store->n_stream; s++)
    for (uint32_t e = 0; e < store->streams[s].n_entry; e++, i++)
      if (scores[i] > -INFINITY)
        all[n++] = (candidate){scores[i], *ops_slot(store, s, e).pos, s, i};
  memset(keep, 0, total);
  qsort(all, n, sizeof(*all), compare_candidates);
  for (i = 0; i < n && i < n_global; i++)
    quota[all[i].stream]++;
  for (uint32_t s = 0; s < store->n_stream; s++)
    quota[s] = op->per_stream_keep != NULL ? op->per_stream_keep[s] : quota[s] + op->floor;
  for (i = 0; i < n; i++)
    if (quota[all[i].stream] > 0) {
      quota[all[i].stream]--;
      keep[all[i].at] = 1;
    }
  free(all);
  free(quota);
}

static void
check_selection(ops_fixture *f, const ops_store *store, float *scores, uint64_t n_keep,
                uint32_t floor, const uint32_t *per_stream)
{
  const size_t total = ks_cpu_n_live(&store->view);
  uint8_t *keep = ks_mem_new(f->a, KS_MEM_SCRATCH, total, 1);
  uint8_t *want = ks_mem_new(f->a, KS_MEM_SCRATCH, total, 1);
  uint32_t *counts = ks_mem_new(f->a, KS_MEM_SCRATCH, store->n_stream, sizeof(*counts));
  float last = -1, first = -1, want_last = INFINITY, want_first = -INFINITY;
  ks_op_kv_select op = {store->view, ops_dptr(scores), ops_dptr(keep), n_keep, floor,
                        per_stream,  counts,           &last,          &first};
  size_t i = 0;

  memset(keep, 9, total);
  ops_kv_select(f, &op);
  reference_select(store, &op, want);
  for (uint32_t s = 0; s < store->n_stream; s++) {
    uint32_t n = 0;

    for (uint32_t e = 0; e < store->streams[s].n_entry; e++, i++) {
      KS_ASSERT_EQ(keep[i], want[i]);
      n += keep[i];
      if (keep[i] != 0)
        want_last = fminf(want_last, scores[i]);
      else if (!isnan(scores[i]))
        want_first = fmaxf(want_first, scores[i]);
    }
    KS_ASSERT_EQ(counts[s], n);
  }
  KS_ASSERT(last == want_last && first == want_first);
  ks_mem_free(keep);
  ks_mem_free(want);
  ks_mem_free(counts);
}

static void
select_body(ops_fixture *f)
{
  const ks_kv_layout shape = {.n_layer = 3,
                              .n_kv_head = 2,
                              .k_dim = 32,
                              .v_dim = 32,
                              .kv_dtype = KS_DTYPE_Q8_0,
                              .page_entries = 16};
  const uint32_t lengths[] = {300, 0, 17, 15, 1, 90}, quotas[] = {10, 5, 17, 3, 0, 200};
  static const uint64_t keeps[] = {0, 1, 30, 127, 300, 422, 423, 1000};
  ops_store store;
  float *scores;

  ops_store_init(f, &store, &shape, lengths, 0);
  ops_store_fill(f, &store, 0);
  scores = ops_floats(f, 423);
  for (int mode = 0; mode < 5; mode++) {
    for (size_t i = 0; i < 423; i++) {
      const float x = ops_random_float(f);

      /* distinct; coarse ties; all equal with both zeros; extremes; pins and dead entries */
      scores[i] = mode == 0   ? x
                  : mode == 1 ? rintf(x * 3.0F)
                  : mode == 2 ? (i % 2 == 0 ? 0.0F : -0.0F)
                  : mode == 3 ? x * powf(10.0F, (float)(i % 70) - 35.0F)
                              : (i % 5 == 0   ? INFINITY
                                 : i % 5 == 1 ? -INFINITY
                                              : rintf(x * 9.0F));
      if (mode == 4 && i % 31 == 7)
        scores[i] = NAN;
    }
    for (size_t k = 0; k < sizeof(keeps) / sizeof(keeps[0]); k++) {
      check_selection(f, &store, scores, keeps[k], 0, NULL);
      if (keeps[k] >= 30) {
        check_selection(f, &store, scores, keeps[k], 1, NULL);
        check_selection(f, &store, scores, keeps[k], 5, NULL);
      }
    }
    check_selection(f, &store, scores, 100, 0, quotas);
  }
  ks_mem_free(scores);
  ops_store_done(&store);
}

/* Every survivor is the one a sort would have kept. */
KS_TEST(kv_select, equals_sort)
{
  ops_for_all(select_body);
}

/* Fills a store with betas (one stream after the other, pos = index), scores it and selects. */
static void
run_worked(ops_fixture *f, const ks_kv_layout *shape, uint32_t n, const float *beta, uint32_t seen,
           uint32_t lookahead, uint64_t n_keep, uint32_t floor, uint8_t *keep, float *scores)
{
  uint32_t lengths[4] = {0}, counts[4];
  const uint32_t n_stream = shape->n_layer * shape->n_kv_head;
  ops_store store;

  for (uint32_t s = 0; s < n_stream; s++)
    lengths[s] = n;
  ops_store_init(f, &store, shape, lengths, 0);
  for (uint32_t i = 0; i < n_stream * n; i++) {
    const ks_cpu_slots slot = ops_slot(&store, i / n, i % n);

    *slot.pos = i % n;
    *slot.log_beta = logf(beta[i]);
  }
  {
    ks_op_kv_score score = {store.view, ops_dptr(scores), seen, lookahead, NULL, NULL, 0};
    ks_op_kv_select select = {store.view, ops_dptr(scores), ops_dptr(keep), n_keep, floor,
                              NULL,       counts,           NULL,           NULL};

    ops_kv_score(f, &score);
    ops_kv_select(f, &select);
  }
  ops_store_done(&store);
}

static void
assert_kept(const uint8_t *keep, const char *want)
{
  for (size_t i = 0; want[i] != '\0'; i++)
    KS_ASSERT_EQ(keep[i], want[i] == '1');
}

static void
worked_budget_body(ops_fixture *f)
{
  const ks_kv_layout shape = {.n_layer = 2,
                              .n_kv_head = 1,
                              .k_dim = 4,
                              .v_dim = 4,
                              .kv_dtype = KS_DTYPE_F32,
                              .page_entries = 2};
  static const float beta[] = {.99F, .50F, .90F, .60F, .95F, .80F,
                               .97F, .98F, .30F, .96F, .20F, .70F};
  uint8_t keep[12];
  float s[12];

  run_worked(f, &shape, 6, beta, 6, 1, 4, 0, keep, s);
  KS_ASSERT_NEAR(s[0], -.070352, 2e-6);
  KS_ASSERT_NEAR(s[7], -.121216, 2e-6);
  KS_ASSERT_NEAR(s[1], -4.158883, 2e-6);
  KS_ASSERT_NEAR(s[8], -6.019864, 2e-6);
  assert_kept(keep, "100010010100");
  run_worked(f, &shape, 6, beta, 6, 1, 5, 0, keep, s);
  assert_kept(keep, "100010110100");
  run_worked(f, &shape, 6, beta, 6, 2, 4, 0, keep, s);
  KS_ASSERT_NEAR(s[0], .607732, 3e-6);
  KS_ASSERT_NEAR(s[7], .541678, 3e-6);
  KS_ASSERT_NEAR(s[9], .468835, 3e-6);
  KS_ASSERT_NEAR(s[4], .462656, 3e-6);
  assert_kept(keep, "100010010100");
}

/* One budget over layers: the worked ranking, with and without lookahead. */
KS_TEST(kv_select, worked_budget)
{
  ops_for_all(worked_budget_body);
}

static void
worked_floor_body(ops_fixture *f)
{
  const ks_kv_layout shape = {.n_layer = 1,
                              .n_kv_head = 2,
                              .k_dim = 4,
                              .v_dim = 4,
                              .kv_dtype = KS_DTYPE_F32,
                              .page_entries = 2};
  static const float beta[] = {.99F, .98F, .97F, .96F, .5F, .6F, .2F, .3F};
  uint8_t keep[8];
  float s[8];

  run_worked(f, &shape, 4, beta, 4, 1, 4, 0, keep, s);
  KS_ASSERT_NEAR(s[3], -.081644, 2e-6);
  KS_ASSERT_NEAR(s[5], -2.043302, 2e-6);
  assert_kept(keep, "11110000");
  run_worked(f, &shape, 4, beta, 4, 1, 4, 1, keep, s);
  assert_kept(keep, "11010100");
  run_worked(f, &shape, 4, beta, 4, 1, 4, 2, keep, s); /* all of it by floor: two each */
  assert_kept(keep, "11000101");
}

/* A starved head, and what a floor gives back to it. */
KS_TEST(kv_select, worked_floor)
{
  ops_for_all(worked_floor_body);
}

/* ---- compaction ---- */

static void
compact_body(ops_fixture *f)
{
  static const ks_dtype types[] = {KS_DTYPE_F32, KS_DTYPE_F16, KS_DTYPE_Q8_0};

  for (int c = 0; c < 12; c++) {
    const ks_kv_layout shape = {.n_layer = 1,
                                .n_kv_head = 4,
                                .k_dim = 32,
                                .v_dim = 64,
                                .kv_dtype = types[c % 3],
                                .page_entries = c < 6 ? 2 : 16,
                                .n_aux = 2};
    const uint32_t lengths[] = {65, 0, 16, 33};
    ops_store store, copy;
    uint8_t keep[114];
    size_t at = 0;

    ops_store_init(f, &store, &shape, lengths, 0);
    ops_store_fill(f, &store, 0);
    copy = store;
    copy.pages = ks_mem_new(f->a, KS_MEM_KV, 80, store.layout.page_bytes);
    memcpy(copy.pages, store.pages, (c < 6 ? 33 + 8 + 17 : 5 + 1 + 3) * store.layout.page_bytes);
    copy.view.base = ops_dptr(copy.pages);
    for (size_t i = 0; i < 114; i++) /* runs, single ones, all, none */
      keep[i] = c % 4 == 0 ? i / 7 % 2 != 0 : c % 4 == 1 ? ops_random(f) % 3 != 0 : c % 4 == 2;
    {
      ks_op_kv_compact op = {store.view, ops_dptr(keep)};

      ops_kv_compact(f, &op);
    }
    for (uint32_t s = 0; s < 4; s++) {
      uint32_t to = 0;

      for (uint32_t e = 0; e < lengths[s]; e++) {
        ks_cpu_slots a, b;

        if (keep[at++] == 0)
          continue;
        a = ops_slot(&store, s, to++);
        b = ops_slot(&copy, s, e);
        KS_ASSERT_EQ(*a.pos, *b.pos);
        KS_ASSERT(*a.log_beta == *b.log_beta && a.aux[0] == b.aux[0]);
        KS_ASSERT(a.aux[shape.page_entries] == b.aux[shape.page_entries]);
        KS_ASSERT(memcmp(a.k, b.k, store.layout.k_row_bytes) == 0);
        KS_ASSERT(memcmp(a.v, b.v, store.layout.v_row_bytes) == 0);
      }
    }
    ks_mem_free(copy.pages);
    ops_store_done(&store);
  }
}

/* Survivors slide to the front in order, with all their planes. */
KS_TEST(kv_compact, keeps_order)
{
  ops_for_all(compact_body);
}

/* The worked compaction: pages [5,1,3] keep 0, 3, 4; pages [0,4] keep 2. */
KS_TEST(kv_compact, worked)
{
  ks_kv_layout layout = {.n_layer = 1,
                         .n_kv_head = 2,
                         .k_dim = 4,
                         .v_dim = 4,
                         .kv_dtype = KS_DTYPE_F32,
                         .page_entries = 2};
  uint32_t list_a[] = {5, 1, 3}, list_b[] = {0, 4};
  ks_kv_stream streams[] = {{list_a, 3, 3, 5}, {list_b, 2, 2, 3}};
  const uint8_t keep[] = {1, 0, 0, 1, 1, 0, 0, 1};
  const uint32_t page_of[] = {5, 5, 1, 1, 3, 0, 0, 4};
  ops_fixture f;
  ks_kv_view view = {0, &layout, streams};
  unsigned char *pages;

  ops_init(&f, (ops_set){KS_ISA_SCALAR, ks_cpu_vec_get(KS_ISA_SCALAR)}, 2);
  KS_ASSERT_OK(ks_kv_layout_init(&layout, NULL));
  pages = ks_mem_new(f.a, KS_MEM_KV, 6, layout.page_bytes);
  view.base = ops_dptr(pages);
  for (uint32_t i = 0; i < 8; i++)
    ((uint32_t *)(void *)(pages + page_of[i] * layout.page_bytes +
                          layout.pos_offset))[i < 5 ? i % 2 : (i - 5) % 2] = 100 + i;
  {
    ks_op_kv_compact op = {view, ops_dptr(keep)};

    ops_kv_compact(&f, &op);
  }
  {
    const uint32_t *p5 =
        (const uint32_t *)(void *)(pages + 5 * layout.page_bytes + layout.pos_offset);
    const uint32_t *p1 = (const uint32_t *)(void *)(pages + layout.page_bytes + layout.pos_offset);
    const uint32_t *p0 = (const uint32_t *)(void *)(pages + layout.pos_offset);

    KS_ASSERT(p5[0] == 100 && p5[1] == 103 && p1[0] == 104 && p0[0] == 107);
  }
  ks_mem_free(pages);
  ops_done(&f);
}

KS_TEST_MAIN
