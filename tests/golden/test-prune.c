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

KS_TEST_MAIN
