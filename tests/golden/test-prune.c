/* test-prune.c - VisionZip through the tiny towers and FastV through the tiny language models,
 * against numbers from a plain reference (make-prune-references.py).  Runs are listed in
 * prune/expected.json; their models, pictures and embeddings are those of the cases. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/vision.h"

#include "tests/golden/golden-picture.h"
#include "tests/golden/visual-case.h"

typedef struct machine {
  ks_alloc *alloc;
  ks_backend be;
} machine;

static machine
open_machine(void)
{
  machine m = {.alloc = ks_alloc_new()};
  ks_dev_params params = {.alloc = m.alloc, .n_thread = 2};

  KS_ASSERT_OK(ks_backend_open("cpu", &params, &m.be, NULL));
  return m;
}

static void
close_machine(machine *m)
{
  ks_backend_close(&m->be);
  ks_alloc_free(m->alloc);
}

static golden_case *
load_case(const char *env, const char *name)
{
  char folder[512], error[512];
  const char *root = getenv(env);
  golden_case *c;

  KS_ASSERT(root != NULL);
  snprintf(folder, sizeof folder, "%s%s%s", root, name[0] != '\0' ? "/" : "", name);
  c = golden_case_load(folder, error, sizeof error);
  if (c == NULL)
    KS_FAIL("%s", error);
  return c;
}

/* Calls fn for every run of a kind; returns how many. */
static uint32_t
for_each_run(const char *kind, void (*fn)(const golden_case *want, const cJSON *run))
{
  golden_case *want = load_case("KS_PRUNE_DEFAULT", "");
  const cJSON *run;
  uint32_t n = 0;

  cJSON_ArrayForEach(run, cJSON_GetObjectItemCaseSensitive(golden_case_get_json(want), "runs"))
  {
    if (strcmp(cJSON_GetObjectItemCaseSensitive(run, "kind")->valuestring, kind) != 0)
      continue;
    fn(want, run);
    n++;
  }
  golden_case_free(want);
  return n;
}

static const char *
case_of(const cJSON *run)
{
  return cJSON_GetObjectItemCaseSensitive(run, "case")->valuestring;
}

static void
check(const golden_case *want, const char *name, const float *got, size_t n)
{
  const golden_array *a = golden_case_find(want, name);
  double worst = 0;
  size_t n_wrong;

  KS_ASSERT(a != NULL && a->n_elem == n);
  n_wrong = golden_array_compare(a, got, 1.0, &worst);
  printf("# %s: off by at most %.2g\n", name, worst);
  KS_ASSERT_EQ(n_wrong, 0);
}

/* --- VisionZip --- */

static ks_vision_input *
new_input(const machine *m, const golden_case *c, const ks_vision *v, ks_vision_plan *plan)
{
  const ks_vision_prep *prep = &ks_vision_get_shape(v)->prep;
  const ks_vision_limits limits = {.min_pixels = 1, .max_pixels = 1u << 20};
  char *path = golden_case_dup_path(c, "img0.png");
  ks_vision_input *in = NULL;
  ks_rgb rgb;
  uint8_t *data = golden_picture_load(path, &rgb.width, &rgb.height);

  KS_ASSERT(data != NULL);
  rgb.data = data;
  KS_ASSERT_OK(ks_vision_plan_picture(prep, &limits, rgb.width, rgb.height, plan, NULL));
  KS_ASSERT_OK(ks_vision_input_new(m->alloc, prep, plan, &rgb, 1, &in, NULL));
  free(data);
  free(path);
  return in;
}

static ks_vision *
open_tower(machine *m, const golden_case *c, const ks_vision_zip *zip)
{
  char *path = golden_case_dup_path(c, "mmproj.gguf");
  ks_vision *v = NULL;
  ks_error err;

  if (ks_vision_open(m->alloc, path, &m->be, &v, &err) != KS_OK)
    KS_FAIL("%s", err.text);
  free(path);
  ks_vision_set_zip(v, zip);
  KS_ASSERT_OK(ks_vision_prepare(v, &(ks_vision_limits){0}, NULL));
  return v;
}

static void
run_zip(const golden_case *want, const cJSON *run)
{
  const ks_vision_zip zip = {visual_number(run, "n_dominant", 0),
                             visual_number(run, "n_context", 0)};
  golden_case *c = load_case("KS_GOLDEN_DEFAULT", case_of(run));
  machine m = open_machine();
  ks_vision *v = open_tower(&m, c, &zip);
  ks_vision_embeds out = {0};
  ks_vision_plan plan;
  ks_vision_input *in = new_input(&m, c, v, &plan);
  const golden_array *places;
  char name[96];
  ks_error err;

  if (ks_vision_encode(v, in, NULL, &out, &err) != KS_OK)
    KS_FAIL("%s", err.text);
  snprintf(name, sizeof name, "zip.%s.places", case_of(run));
  places = golden_case_find(want, name);
  KS_ASSERT(places != NULL && out.places != NULL);
  KS_ASSERT_EQ(out.n_tok, places->n_elem);
  KS_ASSERT_EQ(out.n_tok, plan.n_view * ks_vision_count_view_tok(v, &plan));
  KS_ASSERT(memcmp(out.places, places->data, places->n_elem * sizeof(uint32_t)) == 0);
  snprintf(name, sizeof name, "zip.%s.tokens", case_of(run));
  check(want, name, out.data, (size_t)out.n_tok * out.n_embd);
  ks_vision_embeds_clear(&out);
  ks_vision_input_free(in);
  ks_vision_close(v);
  close_machine(&m);
  golden_case_free(c);
}

/* Towers with and without a class token leave the tokens that the reference leaves, in its order,
 * with its numbers. */
KS_TEST(prune, zip_equals_the_reference)
{
  KS_ASSERT_EQ(for_each_run("zip", run_zip), 3);
}

/* Encodes img0 of the case with so much scratch; 0 = the usual limit. */
static ks_vision_embeds
encode(machine *m, const golden_case *c, const ks_vision_zip *zip, uint64_t scratch_limit,
       ks_vision_plan *plan)
{
  ks_vision *v = open_tower(m, c, zip);
  ks_vision_input *in = new_input(m, c, v, plan);
  ks_vision_embeds out = {0};
  uint64_t before;

  ks_vision_set_scratch_limit(v, scratch_limit);
  before = ks_alloc_get_bytes(m->alloc, KS_MEM_VISION);
  KS_ASSERT_OK(ks_vision_encode(v, in, NULL, &out, NULL));
  KS_ASSERT_LE(ks_alloc_get_peak_bytes(m->alloc, KS_MEM_VISION) - before,
               ks_vision_count_scratch_bytes(v, plan) +
                   (uint64_t)out.n_tok * (out.n_embd * (1 + out.n_deep) + 1) * sizeof(float) +
                   8192);
  ks_vision_input_free(in);
  ks_vision_close(v);
  return out;
}

/* With as many tokens allowed as there are nothing changes; dominant tokens are the ones of the
 * whole picture, features behind the layers included; memory is what was counted. */
KS_TEST(prune, zip_keeps_whole_tokens)
{
  const ks_vision_zip all = {1000, 0}, some = {6, 2};
  golden_case *c = load_case("KS_GOLDEN_DEFAULT", "qwen3-vl");
  machine m = open_machine();
  ks_vision_plan plan;
  ks_vision_embeds whole = encode(&m, c, &all, 0, &plan), left = encode(&m, c, &some, 0, &plan);

  KS_ASSERT(whole.places == NULL && whole.n_tok == plan.n_tok && left.n_tok == 8);
  KS_ASSERT(whole.n_deep == 2 && left.n_deep == 2);
  for (uint32_t d = 0; d <= 2; d++)
    for (uint32_t i = 0; i < 6; i++)
      KS_ASSERT(memcmp(left.data + ((size_t)d * 8 + i) * left.n_embd,
                       whole.data + ((size_t)d * whole.n_tok + left.places[i]) * whole.n_embd,
                       whole.n_embd * sizeof(float)) == 0);
  ks_vision_embeds_clear(&whole);
  ks_vision_embeds_clear(&left);
  close_machine(&m);
  golden_case_free(c);
}

/* --- FastV --- */

/* A tiny language model with a timeline whose passes take n_chunk tokens. */
typedef struct talker {
  machine m;
  ks_model *model;
  ks_kv_layout layout;
  ks_kv_pool *pool;
  ks_timeline *tl;
} talker;

static void
open_talker(talker *t, const golden_case *c, const ks_fastv *fastv, ks_policy policy,
            uint32_t chunk, uint64_t n_keep)
{
  char *path = golden_case_dup_path(c, "model.gguf");
  ks_model_params params = {.be = &t->m.be};
  ks_timeline_params tp;
  const ks_model_shape *s;
  uint64_t n_bytes;
  ks_error err;

  *t = (talker){.m = open_machine()};
  if (ks_model_open(t->m.alloc, path, &params, &t->model, &err) != KS_OK)
    KS_FAIL("%s", err.text);
  free(path);
  s = ks_model_get_shape(t->model);
  t->layout = (ks_kv_layout){.n_layer = s->n_layer,
                             .n_kv_head = s->n_kv_head,
                             .k_dim = s->k_dim,
                             .v_dim = s->v_dim,
                             .kv_dtype = KS_DTYPE_F32,
                             .n_aux = ks_policy_get_n_aux(policy),
                             .page_entries = 8};
  KS_ASSERT_OK(ks_kv_layout_init(&t->layout, NULL));
  n_bytes = (uint64_t)s->n_layer * s->n_kv_head * 20 * t->layout.page_bytes;
  KS_ASSERT_OK(ks_kv_pool_new(t->m.alloc, &t->m.be, &t->layout, n_bytes, n_bytes, &t->pool, NULL));
  tp = ks_timeline_default_params(t->model, NULL, t->pool);
  tp.evict = ks_evict_default_params(policy);
  tp.chunk = chunk;
  tp.buffer = 1;
  tp.n_keep = n_keep;
  tp.fastv = *fastv;
  if (ks_timeline_new(t->m.alloc, &tp, &t->tl, &err) != KS_OK)
    KS_FAIL("%s", err.text);
}

static void
close_talker(talker *t)
{
  KS_ASSERT(ks_timeline_check(t->tl) && ks_kv_pool_check(t->pool));
  ks_timeline_free(t->tl);
  ks_kv_pool_free(t->pool);
  ks_model_close(t->model);
  close_machine(&t->m);
}

static void
read_case(talker *t, const visual_case *v)
{
  ks_error err;

  if (ks_timeline_eval_visual(t->tl, v->ids, v->n, v->runs, v->n_run, NULL, &err) != KS_OK)
    KS_FAIL("%s", err.text);
}

/* Which tokens each layer's first head has; all heads of a layer must agree. */
typedef struct survivors {
  uint8_t has[8][8][256];
  uint32_t n[8][8];
} survivors;

static void
survivor_cb(void *user, uint32_t layer, uint32_t head, uint32_t pos, const ks_token_info *token)
{
  survivors *s = user;

  (void)token;
  s->has[layer][head][pos] = 1;
  s->n[layer][head]++;
}

static survivors *
read_survivors(const talker *t)
{
  survivors *s = calloc(1, sizeof *s);

  KS_ASSERT(s != NULL);
  KS_ASSERT_OK(
      ks_timeline_read_survivors(t->tl, 0, ks_timeline_get_seen(t->tl), survivor_cb, s, NULL));
  return s;
}

typedef struct fastv_run {
  const golden_case *want;
  ks_fastv fastv;
  const char *name;
} fastv_run;

/* Layers up to K have every token, those behind what the reference leaves; logits are its own. */
static void
compare_fastv(const visual_case *v, void *user)
{
  const fastv_run *run = user;
  char name[96];
  const golden_array *stay;
  survivors *s;
  talker t;

  if (strcmp(v->name, "img0") != 0)
    return;
  open_talker(&t, v->c, &run->fastv, KS_POLICY_FULL, 256, 0);
  read_case(&t, v);
  snprintf(name, sizeof name, "fastv.%s.%u.stay", run->name, run->fastv.layer);
  stay = golden_case_find(run->want, name);
  KS_ASSERT(stay != NULL);
  s = read_survivors(&t);
  for (uint32_t l = 0; l < t.layout.n_layer; l++)
    for (uint32_t h = 0; h < t.layout.n_kv_head; h++) {
      KS_ASSERT_EQ(s->n[l][h], l < run->fastv.layer ? v->n : stay->n_elem);
      for (size_t i = 0; l >= run->fastv.layer && i < stay->n_elem; i++)
        KS_ASSERT(s->has[l][h][((const int32_t *)stay->data)[i]] == 1);
    }
  free(s);
  snprintf(name, sizeof name, "fastv.%s.%u.logits", run->name, run->fastv.layer);
  KS_ASSERT(ks_timeline_get_logits(t.tl) != NULL);
  check(run->want, name, ks_timeline_get_logits(t.tl), ks_model_get_shape(t.model)->n_vocab);
  close_talker(&t);
}

static void
run_fastv(const golden_case *want, const cJSON *run)
{
  golden_case *c = load_case("KS_GOLDEN_DEFAULT", case_of(run));
  fastv_run job = {
      want,
      {visual_number(run, "layer", 0), cJSON_GetObjectItemCaseSensitive(run, "drop")->valuedouble},
      case_of(run)};

  KS_ASSERT(visual_walk_case(c, compare_fastv, &job) > 0);
  golden_case_free(c);
}

/* Plain and three-axis positions, deepstack behind the cut, heads in groups: the same tokens stay
 * and the same logits come out. */
KS_TEST(prune, fastv_equals_the_reference)
{
  KS_ASSERT_EQ(for_each_run("fastv", run_fastv), 4);
}

typedef struct stopper {
  uint32_t n_poll, stop_at;
} stopper;

static bool
stop_cb(void *user)
{
  stopper *s = user;

  return ++s->n_poll == s->stop_at;
}

static void
run_with_policies(const visual_case *v, void *user)
{
  const ks_policy policies[] = {KS_POLICY_KEYDIFF_GLOBAL, KS_POLICY_H2O, KS_POLICY_SNAPKV,
                                KS_POLICY_RANDOM, KS_POLICY_STREAMING};
  const ks_fastv fastv = {.layer = 1, .drop = .6};
  uint32_t *n_done = user;

  for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
    stopper s = {.stop_at = 2 + (uint32_t)i};
    const ks_timeline_hooks hooks = {.stop = stop_cb, .user = &s};
    ks_kv_stats stats;
    ks_status st;
    talker t;

    open_talker(&t, v->c, &fastv, policies[i], 24, 0);
    KS_ASSERT_OK(
        ks_timeline_set_n_keep(t.tl, (uint64_t)t.layout.n_layer * t.layout.n_kv_head * 20, NULL));
    st = ks_timeline_eval_visual(t.tl, v->ids, v->n, v->runs, v->n_run, &hooks, NULL);
    KS_ASSERT(st == KS_ERR_CANCELLED && ks_timeline_check(t.tl));
    ks_timeline_reset(t.tl);
    read_case(&t, v);
    for (ks_token id = 5; id < 40; id++)
      KS_ASSERT_OK(ks_timeline_eval(t.tl, &id, 1, NULL, NULL));
    ks_timeline_get_stats(t.tl, &stats);
    KS_ASSERT_LE(stats.n_entries, (uint64_t)t.layout.n_layer * t.layout.n_kv_head * 21);
    KS_ASSERT_EQ(stats.n_entries,
                 stats.by_modality[KS_MODALITY_TEXT] + stats.by_modality[KS_MODALITY_IMAGE]);
    KS_ASSERT_EQ(ks_timeline_get_seen(t.tl), v->n + 35);
    close_talker(&t);
  }
  *n_done += 1;
}

/* With a policy, in small passes: the budget holds, the counts agree with the pages, decoding goes
 * on; a pass that is stopped, also between its two steps, leaves no trace. */
KS_TEST(prune, fastv_with_policies)
{
  golden_case *c = load_case("KS_GOLDEN_DEFAULT", "qwen3-vl");
  uint32_t n_done = 0;

  KS_ASSERT(visual_walk_case(c, run_with_policies, &n_done) > 0);
  KS_ASSERT_EQ(n_done, 3);
  golden_case_free(c);
}

static void
compare_off(const visual_case *v, void *user)
{
  const ks_fastv settings[] = {{0, .5}, {3, .5}, {2, 0}};
  float first[1024];
  const uint32_t *n_vocab = user;

  if (strcmp(v->name, "img0") != 0)
    return;
  for (size_t i = 0; i < 3; i++) {
    talker t;

    open_talker(&t, v->c, &settings[i], KS_POLICY_FULL, 256, 0);
    read_case(&t, v);
    if (i == 0)
      memcpy(first, ks_timeline_get_logits(t.tl), *n_vocab * sizeof *first);
    KS_ASSERT(memcmp(first, ks_timeline_get_logits(t.tl), *n_vocab * sizeof *first) == 0);
    KS_ASSERT_EQ(ks_kv_table_get_n_entries(ks_timeline_get_table(t.tl)),
                 (uint64_t)t.layout.n_layer * t.layout.n_kv_head * v->n);
    close_talker(&t);
  }
}

/* No layer, a layer that the model does not have, and a part of 0 change nothing. */
KS_TEST(prune, fastv_off)
{
  golden_case *c = load_case("KS_GOLDEN_DEFAULT", "llava-1.5");
  uint32_t n_vocab = 502;

  KS_ASSERT(visual_walk_case(c, compare_off, &n_vocab) > 0);
  golden_case_free(c);
}

KS_TEST_MAIN
