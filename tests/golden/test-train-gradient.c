/* test-train-gradient.c - losses and gradients of gate training: every training case of every
 * folder (json "train_cases") is run through the trainer, with the activations of all layers kept
 * and of none, and must give the losses of a reference in double precision within 1e-4 and each
 * slope within 1e-4 of the largest one.  Format: cases/README.md, "Training". */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "engine/train.h"

#include "tests/golden/golden-case.h"
#include "tests/ks-test.h"

#define LOSS_TOL 1e-4

typedef struct run {
  const golden_case *file;
  const cJSON *json;
  const char *name;
  ks_alloc *alloc;
  ks_model *model;
  ks_gate *gate;
  ks_trainer *trainer;
  ks_train_stats stats;
  double worst; /* slope, as a part of what is allowed */
} run;

static double
number(const run *r, const cJSON *json, const char *key)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);

  if (!cJSON_IsNumber(item))
    KS_FAIL("%s: no number \"%s\"", r->name, key);
  return item->valuedouble;
}

static bool
is_text(const run *r, const char *key, const char *text)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(r->json, key);

  return cJSON_IsString(item) && strcmp(item->valuestring, text) == 0;
}

static const golden_array *
array_of(const run *r, const char *suffix)
{
  char name[160];
  const golden_array *a;

  snprintf(name, sizeof name, "%s.%s", r->name, suffix);
  a = golden_case_find(r->file, name);
  if (a == NULL)
    KS_FAIL("no array %s", name);
  return a;
}

static ks_train_params
params_of(const run *r, uint64_t keep_bytes)
{
  ks_train_params params;

  ks_train_params_init(&params);
  params.max_tok = 64;
  params.keep_bytes = keep_bytes;
  params.kl_weight = (float)number(r, r->json, "kl");
  params.ce_weight = (float)number(r, r->json, "ce");
  params.local_weight = (float)number(r, r->json, "local");
  params.capacity_weight = (float)number(r, r->json, "cap");
  params.n_entry = (uint32_t)number(r, r->json, "n_entry");
  params.capacity_per_stream =
      cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(r->json, "per_stream"));
  params.capacity = is_text(r, "capacity", "paper")       ? KS_TRAIN_CAPACITY_PAPER
                    : is_text(r, "capacity", "reference") ? KS_TRAIN_CAPACITY_REFERENCE
                                                          : KS_TRAIN_CAPACITY_NEXT;
  params.n_stage = 1;
  params.stages[0] = (ks_train_stage){
      .kind = is_text(r, "stage", "method") ? KS_TRAIN_METHOD : KS_TRAIN_LOCAL, .n_step = 1};
  return params;
}

static void
run_step(run *r, uint64_t keep_bytes)
{
  const golden_array *ids = array_of(r, "ids"), *starts = array_of(r, "starts");
  const ks_train_params params = params_of(r, keep_bytes);
  const ks_train_batch batch = {.n_tok = (uint32_t)ids->n_elem,
                                .ids = ids->data,
                                .doc_starts = starts->data,
                                .n_doc = (uint32_t)starts->n_elem,
                                .weights = array_of(r, "weights")->data};

  KS_ASSERT_OK(ks_trainer_new(r->alloc, r->model, r->gate, &params, &r->trainer, NULL));
  KS_ASSERT_OK(ks_trainer_step(r->trainer, &batch, NULL, NULL, &r->stats, NULL));
}

static void
check_losses(const run *r)
{
  const cJSON *want = cJSON_GetObjectItemCaseSensitive(r->json, "stats");
  const struct {
    const char *key;
    float got;
  } losses[] = {{"loss", r->stats.loss},
                {"kl", r->stats.kl},
                {"ce", r->stats.ce},
                {"local", r->stats.local},
                {"capacity", r->stats.capacity},
                {"n_entry_soft", r->stats.n_entry_soft},
                {"mean_retention", r->stats.mean_retention}};

  for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(want, losses[i].key);
    const double value = cJSON_IsNumber(item) ? item->valuedouble : 0.0; /* not of this stage */

    if (!(fabs(value - (double)losses[i].got) <= LOSS_TOL * fmax(1.0, fabs(value))))
      KS_FAIL("%s: %s is %.7g, want %.7g", r->name, losses[i].key, (double)losses[i].got, value);
  }
}

/* One tensor of the gate: shape, and where its slopes begin in the trainer's row. */
static size_t
check_tensor(run *r, uint32_t layer, const char *part, size_t at)
{
  char suffix[96];
  const golden_array *want;
  const float *got = ks_trainer_get_gradient(r->trainer) + at;

  snprintf(suffix, sizeof suffix, "grad.%u.%s", layer, part);
  want = array_of(r, suffix);
  for (size_t i = 0; i < want->n_elem; i++) {
    const double w = ((const float *)want->data)[i], d = fabs(w - (double)got[i]);

    if (!(d <= want->tol_abs))
      KS_FAIL("%s: slope %zu of %s is %.7g, want %.7g (+- %.2g)", r->name, i, suffix,
              (double)got[i], w, want->tol_abs);
    r->worst = fmax(r->worst, d / want->tol_abs);
  }
  return at + (want->n_elem + 15) / 16 * 16;
}

static void
check_gradient(run *r)
{
  const uint32_t n_layer = ks_model_get_shape(r->model)->n_layer;
  static const char *const tied[] = {"linear1.weight", "linear1.bias", "linear2.weight",
                                     "linear2.bias"};
  static const char *const local[] = {"linear1.weight", "linear1.bias", "linear2.weight", "bias"};
  const char *const *parts = is_text(r, "gate", "tied") ? tied : local;
  size_t at = 0;

  for (uint32_t l = 0; l < n_layer; l++)
    for (size_t i = 0; i < 4; i++)
      at = check_tensor(r, l, parts[i], at);
  if (parts == tied) {
    at = check_tensor(r, 0, "linear3.weight", at);
    at = check_tensor(r, 0, "bias", at);
  }
  KS_ASSERT_EQ(at, ks_trainer_get_n_param(r->trainer));
}

static void
run_case(run *r, ks_alloc *alloc)
{
  static const uint64_t rooms[] = {0, (uint64_t)1 << 30};
  char gate_name[64];
  char *path;

  snprintf(gate_name, sizeof gate_name, "gate_%s.safetensors",
           is_text(r, "gate", "tied") ? "tied" : "local");
  path = golden_case_dup_path(r->file, gate_name);
  r->alloc = alloc;
  KS_ASSERT_OK(ks_gate_open(alloc, path, r->model, &r->gate, NULL));
  free(path);
  for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++) {
    run_step(r, rooms[i]);
    check_losses(r);
    check_gradient(r);
    ks_trainer_free(r->trainer);
  }
  printf("# %s: worst slope at %.2g of what is allowed\n", r->name, r->worst);
  ks_gate_free(r->gate);
}

static void
run_file(const golden_case *file)
{
  const cJSON *cases = cJSON_GetObjectItemCaseSensitive(golden_case_get_json(file), "train_cases");
  const cJSON *model = cJSON_GetObjectItemCaseSensitive(golden_case_get_json(file), "model");
  ks_alloc *alloc = ks_alloc_new();
  ks_dev_params dev = {.alloc = alloc, .n_thread = 2, .mode = KS_COMPUTE_FAST};
  ks_backend be;
  ks_model_params params = {.be = &be};
  ks_model *opened = NULL;
  const cJSON *json;
  char *path = golden_case_dup_path(file, model->valuestring);

  KS_ASSERT_OK(ks_backend_open("cpu", &dev, &be, NULL));
  KS_ASSERT_OK(ks_model_open(alloc, path, &params, &opened, NULL));
  cJSON_ArrayForEach(json, cases)
  {
    run r = {.file = file, .json = json, .model = opened};

    r.name = cJSON_GetObjectItemCaseSensitive(json, "name")->valuestring;
    run_case(&r, alloc);
  }
  ks_model_close(opened);
  ks_backend_close(&be);
  ks_alloc_free(alloc);
  free(path);
}

/* Losses and gradients are those of the definition, also on a device opened for fast inference:
 * training is exact in every mode. */
KS_TEST(train_gradient, equals_the_reference)
{
  golden_list list = golden_list_new("KS_GOLDEN_DIR", "KS_GOLDEN_DEFAULT");
  size_t n = 0;

  KS_ASSERT(list.n > 0);
  for (size_t i = 0; i < list.n; i++) {
    char error[256] = "";
    golden_case *file = golden_case_load(list.folders[i], error, sizeof error);

    if (file == NULL)
      KS_FAIL("%s: %s", list.folders[i], error);
    if (cJSON_IsArray(
            cJSON_GetObjectItemCaseSensitive(golden_case_get_json(file), "train_cases"))) {
      run_file(file);
      n++;
    }
    golden_case_free(file);
  }
  golden_list_free(&list);
  if (n == 0)
    KS_SKIP("the folder has cases, but none of training");
}

KS_TEST_MAIN
