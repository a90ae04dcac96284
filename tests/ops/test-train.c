/* test-train.c - the trainer's behaviour: it learns, goes on where it stopped to the same bits,
 * changes nothing when it fails, keeps documents apart, takes what it states, refuses nonsense.
 * Losses and gradients have tests of their own (test-train-slopes.c, golden/test-train-gradient.c).
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ops/train-fixture.h"

#include <unistd.h>

/* --- capacity --- */

/* The worked numbers of docs/method.md: one layer, two heads, M = 2. */
KS_TEST(train, worked_capacity)
{
  const float size[] = {2.0F, 3.89F, 4.4901F, 5.689299F};
  const uint32_t doc[] = {0, 0, 0, 0};
  const struct {
    ks_train_capacity how;
    double term, slope;
  } cases[] = {{KS_TRAIN_CAPACITY_REFERENCE, 0.66737475, 0.25},
               {KS_TRAIN_CAPACITY_NEXT, 0.333687375, 0.125},
               {KS_TRAIN_CAPACITY_PAPER, 0.0732107, 0.03125}};
  ks_train_params params = tr_params(KS_TRAIN_METHOD, 1);
  float slope[4];

  params.n_entry = 2;
  params.capacity_weight = 1.0F;
  for (size_t i = 0; i < 3; i++) {
    params.capacity = cases[i].how;
    KS_ASSERT_NEAR(ks_train_capacity_term(&params, size, doc, 1, 4, 1, 2, slope), cases[i].term,
                   1e-6);
    KS_ASSERT(slope[0] == 0.0F && slope[1] == 0.0F && slope[2] > 0.0F);
    KS_ASSERT_NEAR(slope[3], cases[i].slope, 1e-7);
  }
}

/* Per stream, one M each: two streams at t = 2, 3 of sizes above and below 2; mean over the three
 * terms above, (1 / 1 + .5 / 2 + 1 / 2) / 3 in the form with t + 1 below the line. */
KS_TEST(train, capacity_per_stream)
{
  const float size[] = {1.0F, 1.0F, 2.0F, 1.5F, 3.0F, 1.9F, 2.5F, 3.0F}; /* [4, 2] */
  const uint32_t doc[] = {0, 0, 0, 0};
  ks_train_params params = tr_params(KS_TRAIN_METHOD, 1);
  float slope[8];

  params.n_entry = 2;
  KS_ASSERT_NEAR(ks_train_capacity_term(&params, size, doc, 1, 4, 2, 1, slope), 1.75 / 3.0, 1e-7);
  KS_ASSERT_NEAR(slope[4], 1.0 / 3.0, 1e-7);
  KS_ASSERT_NEAR(slope[5], 0.0, 0);
  KS_ASSERT_NEAR(slope[7], 0.5 / 3.0, 1e-7);
}

/* t is counted from the document's own start: the same sizes cost more early in a document. */
KS_TEST(train, capacity_counts_from_the_document)
{
  const float size[] = {0.0F, 0.0F, 0.0F, 6.0F};
  const uint32_t whole[] = {0, 0, 0, 0}, cut[] = {0, 0, 2, 2};
  ks_train_params params = tr_params(KS_TRAIN_METHOD, 1);

  params.n_entry = 1;
  KS_ASSERT_NEAR(ks_train_capacity_term(&params, size, whole, 1, 4, 1, 2, NULL), 4.0 / 6.0, 1e-7);
  KS_ASSERT_NEAR(ks_train_capacity_term(&params, size, cut, 1, 4, 1, 2, NULL), 4.0 / 2.0, 1e-7);
}

/* --- sampled rows --- */

/* Rows without weight are never met, shares add up to 1, and over many seeds a row's mean share is
 * its share of the weights. */
KS_TEST(train, samples_are_unbiased)
{
  const float weight[] = {1.0F, 0.0F, 2.0F, 0.5F, 0.0F, 4.0F, 0.5F};
  double mean[7] = {0};
  int32_t rows[4];
  float share[4];

  for (uint64_t seed = 0; seed < 4000; seed++) {
    const uint32_t n = ks_train_sample_rows(weight, 7, 4, seed, rows, share);
    double sum = 0.0;

    KS_ASSERT(n >= 2 && n <= 4);
    for (uint32_t i = 0; i < n; i++) {
      KS_ASSERT(i == 0 || rows[i] > rows[i - 1]);
      KS_ASSERT(weight[rows[i]] > 0.0F);
      sum += (double)share[i];
      mean[rows[i]] += (double)share[i] / 4000.0;
    }
    KS_ASSERT_NEAR(sum, 1.0, 1e-6);
  }
  for (size_t i = 0; i < 7; i++)
    KS_ASSERT_NEAR(mean[i], (double)weight[i] / 8.0, 0.01);
}

/* --- steps --- */

/* Both stages in turn on one batch: each ends below where it began, rates follow the schedule. */
KS_TEST(train, learns)
{
  tr_fixture f;
  ks_train_stats first = {0}, stats = {0};

  tr_open(&f, "llama", false);
  f.params.stages[0].kind = KS_TRAIN_LOCAL;
  f.params.stages[1] = f.params.stages[0];
  f.params.stages[1].kind = KS_TRAIN_METHOD;
  f.params.stages[0].n_step = f.params.stages[1].n_step = 20;
  f.params.n_stage = 2;
  tr_start(&f);
  KS_ASSERT_EQ(ks_trainer_get_n_step(f.trainer), 40);
  for (uint32_t i = 0; i < 40; i++) {
    const ks_train_stage_kind kind = i < 20 ? KS_TRAIN_LOCAL : KS_TRAIN_METHOD;

    KS_ASSERT_EQ(ks_trainer_get_kind(f.trainer), kind);
    stats = tr_step(&f);
    KS_ASSERT_EQ(stats.kind, kind);
    KS_ASSERT_EQ(stats.step, i + 1);
    KS_ASSERT_EQ(stats.n_counted, 18);
    if (i % 20 == 0) {
      first = stats;
      KS_ASSERT_NEAR(stats.rate, 1e-2, 1e-8);
    }
    if (i % 20 == 19) {
      KS_ASSERT_NEAR(stats.rate, 1e-3, 1e-8);
      printf("# loss %.5f to %.5f\n", (double)first.loss, (double)stats.loss);
      KS_ASSERT(stats.loss < first.loss - 1e-3F);
    }
  }
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_trainer_step(f.trainer, &f.batch, NULL, NULL, &stats, NULL));
  tr_close(&f);
}

/* Kept or made anew, activations give the same gradient to the bit. */
KS_TEST(train, keeping_changes_nothing)
{
  tr_fixture f;
  float *g;
  size_t n;

  tr_open(&f, "gemma3", false);
  tr_start(&f);
  KS_ASSERT_EQ(f.trainer->plan.n_kept, TINY_LAYER);
  tr_step(&f);
  n = ks_trainer_get_n_param(f.trainer) * sizeof *g;
  g = malloc(n);
  KS_ASSERT(g != NULL);
  memcpy(g, ks_trainer_get_gradient(f.trainer), n);
  f.params.keep_bytes = 0;
  tr_start(&f);
  KS_ASSERT_EQ(f.trainer->plan.n_kept, 0);
  tr_step(&f);
  KS_ASSERT(memcmp(g, ks_trainer_get_gradient(f.trainer), n) == 0);
  free(g);
  tr_close(&f);
}

/* Two documents in a pack cost what they cost alone, weighted by what counts in them. */
KS_TEST(train, documents_do_not_meet)
{
  static const uint32_t starts[] = {0, 10};
  tr_fixture f;
  ks_train_stats pack, a, b;
  double wa = 0.0, wb = 0.0;

  tr_open(&f, "qwen3", false);
  tr_start(&f);
  for (uint32_t i = 1; i < TR_TOK; i++)
    *(i < 10 ? &wa : &wb) += i == 10 ? 0.0 : (double)f.weights[i];
  f.batch.doc_starts = starts;
  f.batch.n_doc = 2;
  pack = tr_measure(&f, KS_TRAIN_METHOD);
  f.batch = (ks_train_batch){.n_tok = 10, .ids = f.ids, .weights = f.weights};
  a = tr_measure(&f, KS_TRAIN_METHOD);
  f.batch = (ks_train_batch){.n_tok = TR_TOK - 10, .ids = f.ids + 10, .weights = f.weights + 10};
  b = tr_measure(&f, KS_TRAIN_METHOD);
  KS_ASSERT(fabsf(a.ce - b.ce) > 1e-3F);
  KS_ASSERT_NEAR(pack.ce, (wa * (double)a.ce + wb * (double)b.ce) / (wa + wb), 1e-5);
  KS_ASSERT_NEAR(pack.kl, (wa * (double)a.kl + wb * (double)b.kl) / (wa + wb), 1e-6);
  KS_ASSERT_EQ(pack.n_counted, a.n_counted + b.n_counted);
  KS_ASSERT_NEAR(TR_TOK * (double)pack.n_entry_soft,
                 10 * (double)a.n_entry_soft + (TR_TOK - 10) * (double)b.n_entry_soft, 1e-4);
  tr_close(&f);
}

/* A gate that forgets nothing is the model itself: no KL, and every token counts in the size. */
KS_TEST(train, keeping_everything_is_the_teacher)
{
  tr_fixture f;
  ks_train_stats stats;

  tr_open(&f, "llama", false);
  f.params.bias_init = 40.0F;
  tr_start(&f);
  stats = tr_measure(&f, KS_TRAIN_METHOD);
  KS_ASSERT_NEAR(stats.kl, 0.0, 1e-6);
  KS_ASSERT_NEAR(stats.mean_retention, 1.0, 1e-6);
  KS_ASSERT_NEAR(stats.n_entry_soft, (TR_TOK + 1) / 2.0, 1e-4);
  KS_ASSERT_NEAR(tr_measure(&f, KS_TRAIN_LOCAL).local, 0.0, 1e-9);
  tr_close(&f);
}

/* --- stop and resume --- */

typedef struct bytes {
  unsigned char data[1 << 16];
  size_t n, most;
} bytes;

static bool
write_cb(void *user, const void *data, size_t n_bytes)
{
  bytes *b = user;

  if (n_bytes > b->most - b->n)
    return false;
  memcpy(b->data + b->n, data, n_bytes);
  b->n += n_bytes;
  return true;
}

static void
make_two_stages(tr_fixture *f)
{
  tr_open(f, "llama", false);
  f->params.stages[0].kind = KS_TRAIN_LOCAL;
  f->params.stages[0].n_step = 3;
  f->params.stages[1] = f->params.stages[0];
  f->params.stages[1].kind = KS_TRAIN_METHOD;
  f->params.n_stage = 2;
  f->params.n_local_row = 5;
}

/* Stopped after every number of steps, also between two stages, a run goes on to the same bits. */
KS_TEST(train, resumes_to_the_same_bits)
{
  static bytes state;
  tr_fixture f;
  float *want;
  size_t n;

  make_two_stages(&f);
  tr_start(&f);
  n = ks_trainer_get_n_param(f.trainer) * sizeof *want;
  want = malloc(n);
  KS_ASSERT(want != NULL);
  for (uint32_t i = 0; i < 6; i++)
    tr_step(&f);
  memcpy(want, ks_trainer_get_params(f.trainer), n);
  for (uint32_t stop = 0; stop <= 6; stop++) {
    state = (bytes){.most = sizeof state.data};
    tr_start(&f);
    for (uint32_t i = 0; i < stop; i++)
      tr_step(&f);
    KS_ASSERT_OK(ks_trainer_save(f.trainer, write_cb, &state, NULL));
    KS_ASSERT_EQ(state.n, ks_trainer_get_state_bytes(f.trainer));
    tr_start(&f);
    KS_ASSERT_OK(ks_trainer_load(f.trainer, state.data, state.n, NULL));
    KS_ASSERT_EQ(ks_trainer_get_step(f.trainer), stop);
    for (uint32_t i = stop; i < 6; i++)
      tr_step(&f);
    KS_ASSERT(memcmp(want, ks_trainer_get_params(f.trainer), n) == 0);
  }
  free(want);
  tr_close(&f);
}

/* A state that is cut, changed in any byte or of other settings is refused and changes nothing. */
KS_TEST(train, refuses_other_states)
{
  static bytes state, after;
  tr_fixture f;

  make_two_stages(&f);
  tr_start(&f);
  tr_step(&f);
  state = (bytes){.most = sizeof state.data};
  KS_ASSERT_OK(ks_trainer_save(f.trainer, write_cb, &state, NULL));
  for (size_t i = 0; i < state.n; i += 1 + i / 7) {
    state.data[i] ^= 0x20;
    KS_ASSERT(ks_trainer_load(f.trainer, state.data, state.n, NULL) != KS_OK);
    state.data[i] ^= 0x20;
    KS_ASSERT(ks_trainer_load(f.trainer, state.data, i, NULL) != KS_OK);
  }
  after = (bytes){.most = sizeof after.data};
  KS_ASSERT_OK(ks_trainer_save(f.trainer, write_cb, &after, NULL));
  KS_ASSERT(after.n == state.n && memcmp(after.data, state.data, state.n) == 0);
  after = (bytes){.most = state.n / 2};
  KS_ASSERT_STATUS(KS_ERR_IO, ks_trainer_save(f.trainer, write_cb, &after, NULL));
  f.params.stages[1].rate *= 2;
  tr_start(&f);
  KS_ASSERT_STATUS(KS_ERR_UNSUPPORTED, ks_trainer_load(f.trainer, state.data, state.n, NULL));
  f.params.stages[1].rate /= 2;
  f.params.n_gate /= 2;
  tr_start(&f);
  KS_ASSERT_STATUS(KS_ERR_UNSUPPORTED, ks_trainer_load(f.trainer, state.data, state.n, NULL));
  tr_close(&f);
}

/* Says stop at the n-th question. */
static bool
stop_cb(void *user)
{
  return (*(int *)user)-- <= 0;
}

/* A step that is stopped, at whatever point, is as if it had not begun. */
KS_TEST(train, stopping_changes_nothing)
{
  static bytes before, after;
  tr_fixture f;
  ks_train_stats stats;
  ks_status st = KS_ERR_CANCELLED;
  int n_stopped = 0;

  make_two_stages(&f);
  tr_start(&f);
  for (uint32_t i = 0; i < 4; i++)
    tr_step(&f);
  before = (bytes){.most = sizeof before.data};
  KS_ASSERT_OK(ks_trainer_save(f.trainer, write_cb, &before, NULL));
  for (int n = 0; st == KS_ERR_CANCELLED; n++) {
    int left = n;

    st = ks_trainer_step(f.trainer, &f.batch, stop_cb, &left, &stats, NULL);
    if (st != KS_ERR_CANCELLED)
      break;
    n_stopped++;
    after = (bytes){.most = sizeof after.data};
    KS_ASSERT_OK(ks_trainer_save(f.trainer, write_cb, &after, NULL));
    KS_ASSERT(memcmp(after.data, before.data, before.n) == 0);
  }
  KS_ASSERT_OK(st);
  printf("# stopped at %d points\n", n_stopped);
  KS_ASSERT(n_stopped > 50);
  tr_close(&f);
}

/* --- memory, files, refusals --- */

/* What is stated before is what is taken, and a trainer without METHOD needs no room for it. */
KS_TEST(train, states_its_memory)
{
  tr_fixture f;
  uint64_t before, stated, scratch;
  ks_train_stats stats;

  tr_open(&f, "llama", false);
  before = ks_alloc_get_bytes(f.alloc, KS_MEM_SCRATCH);
  stated = ks_trainer_count_bytes(f.model, NULL, &f.params);
  tr_start(&f);
  scratch = ks_alloc_get_bytes(f.alloc, KS_MEM_SCRATCH) - before;
  KS_ASSERT_EQ(ks_trainer_get_bytes(f.trainer), stated);
  KS_ASSERT_NEAR(stated - sizeof(ks_trainer), scratch, 2 * 128);
  f.params.stages[0].kind = KS_TRAIN_LOCAL;
  KS_ASSERT_LT(ks_trainer_count_bytes(f.model, NULL, &f.params), stated);
  tr_start(&f);
  tr_step(&f);
  KS_ASSERT_STATUS(KS_ERR_ARG, ks_trainer_measure(f.trainer, KS_TRAIN_METHOD, &f.batch, NULL, NULL,
                                                  &stats, NULL));
  tr_close(&f);
}

/* Written and opened again, a gate of each kind is the one that was taught. */
KS_TEST(train, gate_goes_through_a_file)
{
  static const char *const metadata[] = {"base", "tiny-llama", "recipe", "of a test", NULL};

  for (int kind = 0; kind < 3; kind++) { /* tied, untied, local */
    char path[] = "/tmp/keepsake-gate-XXXXXX";
    ks_trainer *again = NULL;
    ks_gate *gate = NULL;
    tr_fixture f;
    int fd = mkstemp(path);

    KS_ASSERT(fd >= 0 && close(fd) == 0);
    tr_open(&f, "llama", false);
    f.params.is_tied = kind == 0;
    f.params.is_local = kind == 2;
    tr_start(&f);
    tr_step(&f);
    KS_ASSERT_OK(ks_trainer_write_gate(f.trainer, path, metadata, NULL));
    KS_ASSERT_OK(ks_gate_open(f.alloc, path, f.model, &gate, NULL));
    KS_ASSERT_EQ(ks_gate_is_tied(gate), kind == 0);
    KS_ASSERT_EQ(ks_gate_is_local(gate), kind == 2);
    f.params.n_gate = 999; /* the gate's own sizes count */
    f.params.is_local = f.params.is_tied = false;
    KS_ASSERT_OK(ks_trainer_new(f.alloc, f.model, gate, &f.params, &again, NULL));
    KS_ASSERT_EQ(ks_trainer_get_n_param(again), ks_trainer_get_n_param(f.trainer));
    KS_ASSERT(memcmp(ks_trainer_get_params(again), ks_trainer_get_params(f.trainer),
                     ks_trainer_get_n_param(again) * sizeof(float)) == 0);
    KS_ASSERT_EQ(unlink(path), 0);
    ks_trainer_free(again);
    ks_gate_free(gate);
    tr_close(&f);
  }
}

static void
refuse_batch(tr_fixture *f, ks_train_batch batch)
{
  ks_error err = {.text = ""};
  ks_train_stats stats;

  KS_ASSERT_STATUS(KS_ERR_ARG, ks_trainer_step(f->trainer, &batch, NULL, NULL, &stats, &err));
  KS_ASSERT(err.text[0] != '\0');
}

/* Nothing of a batch reaches a kernel unchecked. */
KS_TEST(train, refuses_batches)
{
  static const uint32_t late[] = {1, 5}, twice[] = {0, 5, 5}, behind[] = {0, TR_TOK};
  float weights[TR_TOK] = {0};
  ks_token ids[TR_TOK];
  uint32_t last[TR_TOK];
  ks_train_batch b;
  tr_fixture f;

  tr_open(&f, "llama", false);
  tr_start(&f);
  b = f.batch;
  b.n_tok = 0;
  refuse_batch(&f, b);
  b.n_tok = TR_TOK + 1;
  refuse_batch(&f, b);
  b = f.batch;
  b.weights = weights; /* nothing counts */
  refuse_batch(&f, b);
  weights[3] = NAN;
  refuse_batch(&f, b);
  memcpy(ids, f.ids, sizeof ids);
  b = f.batch;
  b.ids = ids;
  ids[2] = TINY_VOCAB;
  refuse_batch(&f, b);
  ids[2] = KS_TOKEN_NONE; /* and no picture */
  refuse_batch(&f, b);
  b = f.batch;
  b.doc_starts = late;
  b.n_doc = 2;
  refuse_batch(&f, b);
  b.doc_starts = twice;
  b.n_doc = 3;
  refuse_batch(&f, b);
  b.doc_starts = behind;
  b.n_doc = 2;
  refuse_batch(&f, b);
  b = f.batch;
  for (uint32_t t = 0; t < TR_TOK; t++)
    last[t] = t == 4 ? TR_TOK : t;
  b.visual_last = last;
  refuse_batch(&f, b);
  KS_ASSERT_EQ(ks_trainer_get_step(f.trainer), 0);
  tr_close(&f);
}

static void
refuse_params(tr_fixture *f, ks_train_params params)
{
  ks_error err = {.text = ""};
  ks_trainer *tr = NULL;

  KS_ASSERT_STATUS(KS_ERR_ARG, ks_trainer_new(f->alloc, f->model, NULL, &params, &tr, &err));
  KS_ASSERT(tr == NULL && err.text[0] != '\0');
}

KS_TEST(train, refuses_settings)
{
  ks_train_params p;
  tr_fixture f;

  tr_open(&f, "llama", false);
  p = f.params;
  p.n_stage = 0;
  refuse_params(&f, p);
  p = f.params;
  p.stages[0].n_step = 0;
  refuse_params(&f, p);
  p = f.params;
  p.kl_weight = -1.0F;
  refuse_params(&f, p);
  p = f.params;
  p.n_gate = 0;
  refuse_params(&f, p);
  p = f.params;
  p.max_tok = 1;
  refuse_params(&f, p);
  p = f.params;
  p.beta2 = 1.0F;
  refuse_params(&f, p);
  p = f.params;
  p.n_entry = 0;
  refuse_params(&f, p);
  tr_close(&f);
}

/* Every allocation of a whole run fails once; each run ends clean. */
KS_TEST(train, survives_without_memory)
{
  const char path[] = "/tmp/keepsake-train-oom.safetensors";
  ks_status st = KS_ERR_NOMEM;
  tr_fixture f;
  int64_t n = 0;

  tr_open(&f, "llama", false);
  for (; st == KS_ERR_NOMEM; n++) {
    ks_train_stats stats;

    ks_alloc_fail_after(f.alloc, n);
    st = ks_trainer_new(f.alloc, f.model, NULL, &f.params, &f.trainer, NULL);
    if (st == KS_OK)
      st = ks_trainer_step(f.trainer, &f.batch, NULL, NULL, &stats, NULL);
    if (st == KS_OK)
      st = ks_trainer_write_gate(f.trainer, path, NULL, NULL);
    ks_alloc_fail_after(f.alloc, -1);
    ks_trainer_free(f.trainer);
    f.trainer = NULL;
  }
  KS_ASSERT_OK(st);
  printf("# %lld allocations failed one by one\n", (long long)n - 1);
  KS_ASSERT(n > 5);
  KS_ASSERT_EQ(unlink(path), 0);
  tr_close(&f);
}

KS_TEST_MAIN
