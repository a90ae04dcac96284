/* test-logits.c - token ids to logits and inner activations, against the reference of every case.
 * A text case is a folder with model.gguf and arrays X.input_ids and X.logits whose ids hold no
 * image; a quantised case has one input_ids, and T.logits for a file NAME-T.gguf. Cases with images
 * are those of test-visual-logits.c: listed, not counted. The model is opened with the case's
 * length as its context, as the reference chose its rotation. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/golden/golden-case.h"
#include "tests/golden/graph-runner.h"
#include "tests/ks-test.h"

#include <dirent.h>

#define MAX_NAME 96
#define F16_FACTOR 10.0 /* cases/README.md: allow ten times as much */
#define F16_MARGIN 0.1  /* ids may leave the reference below this margin */
#define FAST_MARGIN 0.25
#define NEAR_TIE 1e-3 /* argmax may differ below this margin even in f32 */

typedef struct totals {
  uint32_t n_case, n_image, n_wrong;
} totals;

typedef void (*case_fn)(const golden_case *c, totals *sum);

/* Calls fn for every folder; a test without any folder fails, without its kind of case is skipped.
 */
static void
walk(case_fn fn)
{
  golden_list list = golden_list_new("KS_GOLDEN_DIR", "KS_GOLDEN_DEFAULT");
  totals sum = {0};

  KS_ASSERT(list.n > 0);
  for (size_t i = 0; i < list.n; i++) {
    char error[512];
    golden_case *c = golden_case_load(list.folders[i], error, sizeof error);

    if (c == NULL)
      KS_FAIL("%s", error);
    fn(c, &sum);
    golden_case_free(c);
  }
  golden_list_free(&list);
  printf("# %u cases, %u wrong; %u cases with images not run here\n", sum.n_case, sum.n_wrong,
         sum.n_image);
  if (sum.n_case == 0)
    KS_SKIP("the folder has cases, but none of text logits");
  KS_ASSERT_EQ(sum.n_wrong, 0);
}

static const golden_array *
find_array(const golden_case *c, const char *name, const char *part)
{
  char full[MAX_NAME + 32];

  snprintf(full, sizeof full, "%s.%s", name, part);
  return golden_case_find(c, full);
}

static bool
has_image(const golden_case *c, const golden_array *ids)
{
  const cJSON *id = cJSON_GetObjectItemCaseSensitive(golden_case_get_json(c), "image_token_id");
  const int32_t *p = ids->data;

  for (size_t i = 0; cJSON_IsNumber(id) && i < ids->n_elem; i++)
    if (p[i] == (int32_t)id->valuedouble)
      return true;
  return false;
}

/* X of "X.logits" with "X.input_ids" beside it, in a folder with model.gguf. */
static bool
is_text_case(const golden_case *c, const golden_array *logits, char name[MAX_NAME])
{
  size_t n = strlen(logits->name);
  const golden_array *ids;

  if (n < 8 || n - 7 >= MAX_NAME || strcmp(logits->name + n - 7, ".logits") != 0)
    return false;
  snprintf(name, MAX_NAME, "%.*s", (int)(n - 7), logits->name);
  ids = find_array(c, name, "input_ids");
  return ids != NULL && ids->dtype == GOLDEN_I32 && ids->n_elem > 0 &&
         golden_case_has_file(c, "model.gguf");
}

static bool
compare(const golden_case *c, const char *name, const golden_array *want, const float *got,
        double factor, const char *what)
{
  double worst = 0.0;
  size_t n_wrong = got != NULL ? golden_array_compare(want, got, factor, &worst) : want->n_elem;

  printf("# %s/%s %s: off by %.3g at most, allowed %.3g%s\n", golden_case_get_name(c), name, what,
         worst, factor * (want->tol_abs >= 0 ? want->tol_abs : want->tol_rel),
         n_wrong > 0 ? " WRONG" : "");
  return n_wrong == 0;
}

/* Logits of every stored row, then the inner activations of the last token. */
static bool
check_outputs(const golden_case *c, const char *name, const graph_runner *r, const float *logits,
              double factor)
{
  const ks_model_shape *s = ks_model_get_shape(r->model);
  const golden_array *want = find_array(c, name, "logits"),
                     *rows = find_array(c, name, "logit_rows");
  const golden_array *part;
  float *picked = malloc(want->n_elem * sizeof *picked);
  float *layers = malloc((size_t)s->n_layer * s->n_embd * sizeof *layers);
  bool ok = true;

  KS_ASSERT(picked != NULL && layers != NULL);
  KS_ASSERT_EQ(want->shape[1], s->n_vocab);
  for (size_t i = 0; i < want->shape[0]; i++) {
    size_t row = rows != NULL ? (size_t)((const int32_t *)rows->data)[i] : i;

    KS_ASSERT_LT(row, r->n_seen);
    memcpy(picked + i * s->n_vocab, logits + row * s->n_vocab, s->n_vocab * sizeof *picked);
  }
  for (uint32_t i = 0; i < s->n_layer; i++)
    memcpy(layers + (size_t)i * s->n_embd, ks_graph_get_tap(r->graph, KS_TAP_LAYER_OUT, i),
           s->n_embd * sizeof *layers);
  ok &= compare(c, name, want, picked, factor, "logits");
  if ((part = find_array(c, name, "embed_last")) != NULL)
    ok &= compare(c, name, part, ks_graph_get_tap(r->graph, KS_TAP_EMBED, 0), 1.0, "embed_last");
  if ((part = find_array(c, name, "layer_out_last")) != NULL) {
    KS_ASSERT_EQ(part->n_elem, (size_t)s->n_layer * s->n_embd);
    ok &= compare(c, name, part, layers, factor, "layer_out_last");
  }
  if ((part = find_array(c, name, "final_norm_last")) != NULL)
    ok &= compare(c, name, part, ks_graph_get_tap(r->graph, KS_TAP_FINAL_NORM, 0), factor,
                  "final_norm_last");
  free(layers);
  free(picked);
  return ok;
}

/* One text case, chunk tokens a pass (0: all in one). */
static bool
run_text_case(const golden_case *c, const char *name, ks_dtype kv_dtype, uint32_t chunk,
              double factor)
{
  const golden_array *ids = find_array(c, name, "input_ids"),
                     *pos = find_array(c, name, "position_ids");
  uint32_t n = (uint32_t)ids->n_elem;
  char *path = golden_case_dup_path(c, "model.gguf");
  graph_runner_params params = {.path = path,
                                .kv_dtype = kv_dtype,
                                .n_ctx = n,
                                .n_tok = n,
                                .chunk = chunk > 0 && chunk < n ? chunk : n};
  graph_runner r;
  ks_error err;
  float *logits;
  bool ok;

  if (graph_runner_open(&r, &params, &err) != KS_OK)
    KS_FAIL("%s: %s", path, err.text);
  logits = malloc((size_t)n * graph_runner_n_vocab(&r) * sizeof *logits);
  KS_ASSERT(logits != NULL);
  if (graph_runner_eval(&r, ids->data,
                        pos != NULL && pos->n_elem == 3 * (size_t)n ? pos->data : NULL, n, logits,
                        &err) != KS_OK)
    KS_FAIL("%s: %s", path, err.text);
  ok = check_outputs(c, name, &r, logits, factor);
  free(logits);
  graph_runner_close(&r);
  free(path);
  return ok;
}

static void
walk_text(const golden_case *c, totals *sum, ks_dtype kv_dtype, uint32_t chunk, double factor)
{
  for (size_t i = 0; i < golden_case_get_n_arrays(c); i++) {
    char name[MAX_NAME];

    if (!is_text_case(c, golden_case_get_array(c, i), name))
      continue;
    if (has_image(c, find_array(c, name, "input_ids"))) {
      printf("# %s/%s holds images: not run here\n", golden_case_get_name(c), name);
      sum->n_image++;
      continue;
    }
    sum->n_case++;
    sum->n_wrong += !run_text_case(c, name, kv_dtype, chunk, factor);
  }
}

static void
exact_in_one_pass(const golden_case *c, totals *sum)
{
  walk_text(c, sum, KS_DTYPE_F32, 0, 1.0);
}

static void
exact_in_chunks(const golden_case *c, totals *sum)
{
  walk_text(c, sum, KS_DTYPE_F32, 13, 1.0);
}

static void
half_kv_in_chunks(const golden_case *c, totals *sum)
{
  walk_text(c, sum, KS_DTYPE_F16, 32, F16_FACTOR);
}

/* Every logit and the inner activations of the last token, whole text in one pass, f32 keys. */
KS_TEST(logits, exact)
{
  walk(exact_in_one_pass);
}

/* The same text in passes of 13 tokens: what was stored in pages counts the same. */
KS_TEST(logits, exact_in_chunks)
{
  walk(exact_in_chunks);
}

/* The default: f16 keys and values, ten times the tolerance. */
KS_TEST(logits, half_kv)
{
  walk(half_kv_in_chunks);
}

static uint32_t
argmax(const float *x, uint32_t n)
{
  uint32_t best = 0;

  for (uint32_t i = 1; i < n; i++)
    if (x[i] > x[best])
      best = i;
  return best;
}

/* The reference's own continuation is fed; at each step ours must choose the same token, except
 * where the reference was undecided. */
static void
check_greedy(const golden_case *c, totals *sum, graph_runner_params params, double min_margin)
{
  const cJSON *g = cJSON_GetObjectItemCaseSensitive(golden_case_get_json(c), "greedy");
  const cJSON *prompt = cJSON_GetObjectItemCaseSensitive(g, "prompt");
  const cJSON *tokens = cJSON_GetObjectItemCaseSensitive(g, "tokens");
  const cJSON *margins = cJSON_GetObjectItemCaseSensitive(g, "top1_minus_top2");
  const golden_array *ids =
      cJSON_IsString(prompt) ? golden_case_find(c, prompt->valuestring) : NULL;
  int n_step = cJSON_GetArraySize(tokens), n_wrong = 0;
  graph_runner r;
  ks_error err;
  char *path;

  params.chunk = 64;
  if (ids == NULL || n_step == 0 || !golden_case_has_file(c, "model.gguf"))
    return;
  KS_ASSERT_EQ(cJSON_GetArraySize(margins), n_step);
  params.path = path = golden_case_dup_path(c, "model.gguf");
  params.n_ctx = (uint32_t)ids->n_elem;
  params.n_tok = (uint32_t)ids->n_elem + (uint32_t)n_step;
  if (graph_runner_open(&r, &params, &err) != KS_OK ||
      graph_runner_eval(&r, ids->data, NULL, (uint32_t)ids->n_elem, NULL, &err) != KS_OK)
    KS_FAIL("%s: %s", path, err.text);
  for (int i = 0; i < n_step; i++) {
    ks_token want = (ks_token)cJSON_GetArrayItem(tokens, i)->valuedouble;
    ks_token got = (ks_token)argmax(graph_runner_last_logits(&r), graph_runner_n_vocab(&r));

    if (got != want && cJSON_GetArrayItem(margins, i)->valuedouble >= min_margin) {
      printf("# %s step %d: token %d instead of %d\n", golden_case_get_name(c), i, got, want);
      n_wrong++;
    }
    if (graph_runner_eval(&r, &want, NULL, 1, NULL, &err) != KS_OK)
      KS_FAIL("%s: %s", path, err.text);
  }
  graph_runner_close(&r);
  free(path);
  sum->n_case++;
  sum->n_wrong += n_wrong > 0;
}

static void
greedy_exact(const golden_case *c, totals *sum)
{
  check_greedy(c, sum, (graph_runner_params){.kv_dtype = KS_DTYPE_F32}, NEAR_TIE);
}

static void
greedy_half_kv(const golden_case *c, totals *sum)
{
  check_greedy(c, sum, (graph_runner_params){.kv_dtype = KS_DTYPE_F16}, F16_MARGIN);
}

/* One token at a time after the prompt: the same choices as the reference. */
KS_TEST(logits, greedy_exact)
{
  walk(greedy_exact);
}

KS_TEST(logits, greedy_half_kv)
{
  walk(greedy_half_kv);
}

static void
greedy_fast(const golden_case *c, totals *sum)
{
  check_greedy(c, sum, (graph_runner_params){.kv_dtype = KS_DTYPE_F16, .mode = KS_COMPUTE_FAST},
               FAST_MARGIN);
}

static void
greedy_fast_packed(const golden_case *c, totals *sum)
{
  check_greedy(
      c, sum,
      (graph_runner_params){.kv_dtype = KS_DTYPE_F16, .mode = KS_COMPUTE_FAST, .packed = true},
      FAST_MARGIN);
}

/* The program's default: fast arithmetic over f16 pages, with and without the copy. */
KS_TEST(logits, greedy_fast)
{
  walk(greedy_fast);
}

KS_TEST(logits, greedy_fast_packed)
{
  walk(greedy_fast_packed);
}

/* File of the folder that ends in "-type.gguf"; the caller frees it. */
static char *
dup_quantised_path(const golden_case *c, const char *type)
{
  DIR *dir = opendir(golden_case_get_folder(c));
  char tail[MAX_NAME + 8], *path = NULL;
  struct dirent *entry;

  KS_ASSERT(dir != NULL);
  snprintf(tail, sizeof tail, "-%s.gguf", type);
  while (path == NULL && (entry = readdir(dir)) != NULL) {
    size_t n = strlen(entry->d_name), n_tail = strlen(tail);

    if (n > n_tail && strcmp(entry->d_name + n - n_tail, tail) == 0)
      path = golden_case_dup_path(c, entry->d_name);
  }
  closedir(dir);
  return path;
}

/* Root mean square of the differences: fast activations may be off by the case's allowance. */
static bool
compare_rms(const golden_case *c, const char *type, const golden_array *want, const float *got)
{
  const float *reference = want->data;
  double sum = 0, rms;

  for (size_t i = 0; i < want->n_elem; i++)
    sum += ((double)got[i] - reference[i]) * ((double)got[i] - reference[i]);
  rms = sqrt(sum / (double)want->n_elem);
  printf("# %s/%s fast logits: off by %.3g (rms), allowed %.3g\n", golden_case_get_name(c), type,
         rms, want->tol_int8_rms);
  return rms <= want->tol_int8_rms;
}

static bool
run_quantised(const golden_case *c, const char *type, graph_runner_params params,
              const golden_array *ids, const golden_array *want)
{
  uint32_t n = (uint32_t)ids->n_elem;
  const char *path = params.path;
  graph_runner r;
  ks_error err;
  float *logits;
  bool ok;

  if (graph_runner_open(&r, &params, &err) != KS_OK)
    KS_FAIL("%s: %s", path, err.text);
  KS_ASSERT_EQ(ks_model_get_repacked_bytes(r.model) > 0, params.packed);
  KS_ASSERT_EQ(want->n_elem, (size_t)n * graph_runner_n_vocab(&r));
  logits = malloc(want->n_elem * sizeof *logits);
  KS_ASSERT(logits != NULL);
  if (graph_runner_eval(&r, ids->data, NULL, n, logits, &err) != KS_OK)
    KS_FAIL("%s: %s", path, err.text);
  ok = params.mode == KS_COMPUTE_FAST ? compare_rms(c, type, want, logits)
                                      : compare(c, type, want, logits, 1.0, "logits");
  free(logits);
  graph_runner_close(&r);
  return ok;
}

/* Every quantised file of a case: all tokens in one pass, then one by one. */
static void
walk_quantised(const golden_case *c, totals *sum, graph_runner_params params)
{
  const golden_array *ids = golden_case_find(c, "input_ids");

  for (size_t i = 0; ids != NULL && i < golden_case_get_n_arrays(c); i++) {
    const golden_array *want = golden_case_get_array(c, i);
    const char *dot = strrchr(want->name, '.');
    char type[MAX_NAME], *path;

    if (dot == NULL || strcmp(dot, ".logits") != 0 || dot - want->name >= MAX_NAME)
      continue;
    snprintf(type, sizeof type, "%.*s", (int)(dot - want->name), want->name);
    params.path = path = dup_quantised_path(c, type);
    if (path == NULL)
      continue; /* the unquantised model lies elsewhere */
    params.kv_dtype = KS_DTYPE_F32;
    params.n_ctx = params.n_tok = (uint32_t)ids->n_elem;
    for (int one_by_one = 0; one_by_one < 2; one_by_one++) {
      params.chunk = one_by_one ? 1 : params.n_tok;
      sum->n_case++;
      sum->n_wrong += !run_quantised(c, type, params, ids, want);
    }
    free(path);
  }
}

static void
quantised(const golden_case *c, totals *sum)
{
  walk_quantised(c, sum, (graph_runner_params){0});
}

static void
quantised_packed(const golden_case *c, totals *sum)
{
  walk_quantised(c, sum, (graph_runner_params){.packed = true});
}

static void
quantised_fast(const golden_case *c, totals *sum)
{
  walk_quantised(c, sum, (graph_runner_params){.mode = KS_COMPUTE_FAST});
}

static void
quantised_fast_packed(const golden_case *c, totals *sum)
{
  walk_quantised(c, sum, (graph_runner_params){.mode = KS_COMPUTE_FAST, .packed = true});
}

/* Quantised weights, f32 activations: the product of the dequantised weights, at f32's tolerance.
 */
KS_TEST(logits, quantised)
{
  walk(quantised);
}

/* The repacked copy holds the same values: the same tolerance. */
KS_TEST(logits, quantised_packed)
{
  walk(quantised_packed);
}

/* Activations in eight bits: within the case's allowance for them, in either order of the weights.
 */
KS_TEST(logits, quantised_fast)
{
  walk(quantised_fast);
}

KS_TEST(logits, quantised_fast_packed)
{
  walk(quantised_fast_packed);
}

KS_TEST_MAIN
