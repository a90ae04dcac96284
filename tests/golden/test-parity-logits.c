/* test-parity-logits.c - the default model against logits and choices that a reference gave for it.
 * Cases: lines of every *.jsonl in KS_PARITY_DIR (default: parity/) with prompt_token_ids and
 * reference_f32.  The model is KS_MODEL, else the file that run.sh puts in the user's data folder.
 * Rules, from docs/method.md: the same five best ids in order, where ids closer than 0.04 may swap;
 * their logits within 0.02; greedy ids equal wherever the reference was not near a tie.  Each way
 * of computing has its own margins (docs/adr/0010-precision.md).
 * The reference's own ids are fed, so that every step is compared on the same text. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/golden/graph-runner.h"
#include "tests/ks-test.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <unistd.h>

#define N_TOP 5
#define CHUNK 256u

typedef struct prompt {
  const char *id;
  ks_token *ids;
  uint32_t n;
  const cJSON *reference;
} prompt;

/* What a way of computing may change. */
typedef struct allowance {
  double margin; /* a choice, when the reference's two best are closer than this */
  double
      logit_tolerance; /* the five best logits, and the vector's mean and length; 0 = unchecked */
  double swap_margin;  /* places among the five, when the reference's logits are closer */
} allowance;

static const allowance exact_rule = {.margin = 0.05, .logit_tolerance = 0.02, .swap_margin = 0.04};
static const allowance fast_rule = {.margin = 0.25, .logit_tolerance = 0.6, .swap_margin = 0.5};
static const allowance half_kv_rule = {.margin = 0.1};

typedef struct totals {
  uint32_t n_prompt, n_step, n_left, n_wrong;
  double worst;
} totals;

/* Path of the model, or a failure with what to do. */
static const char *
model_path(char *buf, size_t size)
{
  const char *path = getenv("KS_MODEL"), *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");

  if (path != NULL && path[0] != '\0')
    snprintf(buf, size, "%s", path);
  else if (data != NULL && data[0] == '/')
    snprintf(buf, size, "%s/keepsake/models/SmolLM2-135M-Instruct.Q4_1.gguf", data);
  else
    snprintf(buf, size, "%s/.local/share/keepsake/models/SmolLM2-135M-Instruct.Q4_1.gguf",
             home != NULL ? home : "");
  return buf;
}

static char *
read_file(const char *path)
{
  FILE *f = fopen(path, "rb");
  char *text = NULL;
  long n;

  if (f == NULL)
    return NULL;
  if (fseek(f, 0, SEEK_END) == 0 && (n = ftell(f)) >= 0 && fseek(f, 0, SEEK_SET) == 0 &&
      (text = malloc((size_t)n + 1)) != NULL)
    text[fread(text, 1, (size_t)n, f)] = '\0';
  fclose(f);
  return text;
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

static void
best_ids(const float *x, uint32_t n, uint32_t out[N_TOP])
{
  for (int k = 0; k < N_TOP; k++) {
    uint32_t best = UINT32_MAX;

    for (uint32_t i = 0; i < n; i++) {
      bool taken = false;

      for (int j = 0; j < k; j++)
        taken |= out[j] == i;
      if (!taken && (best == UINT32_MAX || x[i] > x[best]))
        best = i;
    }
    out[k] = best;
  }
}

static double
number(const cJSON *object, const char *name)
{
  const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

  KS_ASSERT(cJSON_IsNumber(item));
  return item->valuedouble;
}

/* Our id at place k stands elsewhere in the reference's list, or behind its end. */
static bool
may_swap(const cJSON *top5, const float *x, int k, uint32_t ours, double margin)
{
  const cJSON *want = cJSON_GetArrayItem(top5, k);

  for (int j = 0; j < N_TOP; j++) {
    const cJSON *other = cJSON_GetArrayItem(top5, j);

    if ((uint32_t)number(other, "id") == ours)
      return fabs(number(other, "logit") - number(want, "logit")) < margin;
  }
  return k == N_TOP - 1 && x[ours] - x[(uint32_t)number(want, "id")] < margin;
}

static bool
check_top5(const prompt *p, const float *x, uint32_t n_vocab, const allowance *rule, totals *sum)
{
  const cJSON *top5 = cJSON_GetObjectItemCaseSensitive(p->reference, "top5");
  uint32_t ours[N_TOP];
  bool ok = true;

  KS_ASSERT_EQ(cJSON_GetArraySize(top5), N_TOP);
  best_ids(x, n_vocab, ours);
  for (int k = 0; k < N_TOP; k++) {
    const cJSON *want = cJSON_GetArrayItem(top5, k);
    uint32_t id = (uint32_t)number(want, "id");
    double off;

    KS_ASSERT_LT(id, n_vocab);
    off = fabs(x[id] - number(want, "logit"));
    sum->worst = off > sum->worst ? off : sum->worst;
    if (!(off <= rule->logit_tolerance) ||
        (ours[k] != id && !may_swap(top5, x, k, ours[k], rule->swap_margin))) {
      printf("# %s: place %d is %u (%.4f), the reference has %u (%.4f, ours %.4f)\n", p->id, k + 1,
             ours[k], x[ours[k]], id, number(want, "logit"), x[id]);
      ok = false;
    }
  }
  return ok;
}

/* Mean and length of the whole vector: no part of the vocabulary is off. */
static bool
check_norms(const prompt *p, const float *x, uint32_t n_vocab, double tolerance)
{
  double mean = 0.0, square = 0.0;
  double want_mean = number(p->reference, "logits_mean"),
         want_l2 = number(p->reference, "logits_l2");

  for (uint32_t i = 0; i < n_vocab; i++) {
    mean += x[i];
    square += (double)x[i] * x[i];
  }
  mean /= n_vocab;
  if (fabs(mean - want_mean) <= tolerance &&
      fabs(sqrt(square) - want_l2) <= tolerance * sqrt(n_vocab))
    return true;
  printf("# %s: mean %.5f and l2 %.3f, the reference has %.5f and %.3f\n", p->id, mean,
         sqrt(square), want_mean, want_l2);
  return false;
}

static bool
check_greedy(const prompt *p, graph_runner *r, double min_margin, totals *sum)
{
  const cJSON *ids = cJSON_GetObjectItemCaseSensitive(p->reference, "greedy_ids");
  const cJSON *margins = cJSON_GetObjectItemCaseSensitive(p->reference, "top1_minus_top2");
  int n = cJSON_GetArraySize(ids);
  bool ok = true;

  KS_ASSERT_LE(n, cJSON_GetArraySize(margins));
  for (int i = 0; i < n; i++) {
    ks_token want = (ks_token)cJSON_GetArrayItem(ids, i)->valuedouble;
    ks_token got = (ks_token)argmax(graph_runner_last_logits(r), graph_runner_n_vocab(r));
    double margin = cJSON_GetArrayItem(margins, i)->valuedouble;
    ks_error err;

    sum->n_step++;
    sum->n_left += got != want;
    if (got != want && margin >= min_margin) {
      printf("# %s: step %d chooses %d, the reference %d with margin %.4f\n", p->id, i, got, want,
             margin);
      ok = false;
    }
    if (graph_runner_eval(r, &want, NULL, 1, NULL, &err) != KS_OK)
      KS_FAIL("%s", err.text);
  }
  return ok;
}

static void
check_prompt(const prompt *p, graph_runner *r, const allowance *rule, totals *sum)
{
  uint32_t n_vocab = graph_runner_n_vocab(r);
  bool ok = true;
  ks_error err;

  if (graph_runner_reset(r, &err) != KS_OK ||
      graph_runner_eval(r, p->ids, NULL, p->n, NULL, &err) != KS_OK)
    KS_FAIL("%s: %s", p->id, err.text);
  if (rule->logit_tolerance > 0) {
    ok = check_top5(p, graph_runner_last_logits(r), n_vocab, rule, sum);
    ok &= check_norms(p, graph_runner_last_logits(r), n_vocab, rule->logit_tolerance);
  }
  ok &= check_greedy(p, r, rule->margin, sum);
  sum->n_prompt++;
  sum->n_wrong += !ok;
}

/* A line with the fields of a prompt; others (tokenizer cases) are passed over. */
static void
check_line(const char *line, graph_runner *r, const allowance *rule, totals *sum)
{
  cJSON *json = cJSON_Parse(line);
  const cJSON *ids = cJSON_GetObjectItemCaseSensitive(json, "prompt_token_ids");
  const cJSON *id = cJSON_GetObjectItemCaseSensitive(json, "id"), *item;
  prompt p = {.id = cJSON_IsString(id) ? id->valuestring : "?",
              .reference = cJSON_GetObjectItemCaseSensitive(json, "reference_f32")};

  if (json == NULL)
    KS_FAIL("a line is no JSON: %.60s", line);
  if (cJSON_GetArraySize(ids) > 0 && p.reference != NULL) {
    p.ids = malloc((size_t)cJSON_GetArraySize(ids) * sizeof *p.ids);
    KS_ASSERT(p.ids != NULL);
    cJSON_ArrayForEach(item, ids)
    {
      p.ids[p.n++] = (ks_token)item->valuedouble;
    }
    check_prompt(&p, r, rule, sum);
    free(p.ids);
  }
  cJSON_Delete(json);
}

static void
check_file(const char *path, graph_runner *r, const allowance *rule, totals *sum)
{
  char *text = read_file(path), *end;

  if (text == NULL)
    KS_FAIL("%s cannot be read", path);
  for (char *line = text; line != NULL && *line != '\0'; line = end) {
    end = strchr(line, '\n');
    if (end != NULL)
      *end++ = '\0';
    if (line[0] != '\0')
      check_line(line, r, rule, sum);
  }
  free(text);
}

static void
check_folder(graph_runner *r, const allowance *rule, totals *sum)
{
  const char *folder = getenv("KS_PARITY_DIR");
  struct dirent *entry;
  uint32_t n_file = 0;
  char path[4096];
  DIR *dir;

  if (folder == NULL || folder[0] == '\0')
    folder = getenv("KS_PARITY_DEFAULT");
  dir = folder != NULL ? opendir(folder) : NULL;
  if (dir == NULL)
    KS_FAIL("the folder of parity cases cannot be opened: %s", folder != NULL ? folder : "not set");
  while ((entry = readdir(dir)) != NULL) {
    size_t n = strlen(entry->d_name);

    if (n < 6 || strcmp(entry->d_name + n - 6, ".jsonl") != 0)
      continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    check_file(path, r, rule, sum);
    n_file++;
  }
  closedir(dir);
  if (n_file == 0)
    KS_FAIL("no *.jsonl in %s", folder);
}

static void
run(graph_runner_params params, const allowance *rule)
{
  char path[4096];
  graph_runner r;
  totals sum = {0};
  ks_error err;

  params.n_tok = 4096;
  params.chunk = CHUNK;
  params.path = model_path(path, sizeof path);
  if (access(path, R_OK) != 0)
    KS_FAIL("the default model is not at %s: run ./run.sh once or set KS_MODEL to the file", path);
  if (graph_runner_open(&r, &params, &err) != KS_OK)
    KS_FAIL("%s", err.text);
  KS_ASSERT_EQ(ks_model_get_repacked_bytes(r.model) > 0, params.packed);
  check_folder(&r, rule, &sum);
  graph_runner_close(&r);
  printf("# %u prompts, %u wrong; %u greedy steps, %u on another id within the margin",
         sum.n_prompt, sum.n_wrong, sum.n_step, sum.n_left);
  if (rule->logit_tolerance > 0)
    printf("; top-5 logits off by %.5f at most", sum.worst);
  printf("\n");
  if (sum.n_prompt == 0)
    KS_SKIP("the folder has cases, but no prompts");
  KS_ASSERT_EQ(sum.n_wrong, 0);
}

/* f32 activations, keys and values: the reference's numbers and choices. */
KS_TEST(parity, exact)
{
  run((graph_runner_params){.kv_dtype = KS_DTYPE_F32}, &exact_rule);
}

/* The repacked copy of the weights holds the same values. */
KS_TEST(parity, exact_packed)
{
  run((graph_runner_params){.kv_dtype = KS_DTYPE_F32, .packed = true}, &exact_rule);
}

/* The default f16 keys and values may only change a choice that was close. */
KS_TEST(parity, half_kv)
{
  run((graph_runner_params){.kv_dtype = KS_DTYPE_F16, .packed = true}, &half_kv_rule);
}

/* Activations in eight bits, from either order of the weights: choices change only where the
 * reference was undecided. */
KS_TEST(parity, fast)
{
  run((graph_runner_params){.kv_dtype = KS_DTYPE_F16, .mode = KS_COMPUTE_FAST}, &fast_rule);
}

KS_TEST(parity, fast_packed)
{
  run((graph_runner_params){.kv_dtype = KS_DTYPE_F16, .mode = KS_COMPUTE_FAST, .packed = true},
      &fast_rule);
}

KS_TEST_MAIN
