/* test-scoring.c - every line of every case file in the scoring folder equals the public
 * evaluators. The folder comes from KS_SCORING_DIR, else from the copy beside this file; no case =
 * failure. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-aime.h"
#include "app/eval-mathvision.h"
#include "app/eval-mmdu.h"
#include "app/eval-mme.h"
#include "app/eval-text.h"
#include "app/eval-textvqa.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#define TOLERANCE 1e-6

static const char *
text_of(const cJSON *row, const char *name)
{
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, name));

  return text != NULL ? text : "";
}

static gboolean
number_matches(const cJSON *row, const char *name, double got)
{
  const cJSON *want = cJSON_GetObjectItemCaseSensitive(row, name);

  if (cJSON_IsNull(want))
    return got == 0.0; /* the public code crashed here: no point */
  return cJSON_IsNumber(want) && fabs(want->valuedouble - got) <= TOLERANCE;
}

static const char **
strings_of(const cJSON *array)
{
  int n = cJSON_GetArraySize(array);
  const char **out = g_new0(const char *, (gsize)n + 1);

  for (int i = 0; i < n; i++)
    out[i] = cJSON_GetStringValue(cJSON_GetArrayItem(array, i));
  return out;
}

static gboolean
check_textvqa(const cJSON *row)
{
  g_autofree char *normalised = ks_eval_textvqa_normalise(text_of(row, "prediction"));
  const cJSON *list = cJSON_GetObjectItemCaseSensitive(row, "references");
  g_autofree const char **references = strings_of(list);
  double score = ks_eval_textvqa_score(text_of(row, "prediction"), references,
                                       (gsize)cJSON_GetArraySize(list));

  return strcmp(normalised, text_of(row, "normalized")) == 0 && number_matches(row, "score", score);
}

static gboolean
check_mme(const cJSON *row)
{
  const char *prediction = text_of(row, "prediction"), *reference = text_of(row, "reference");

  return strcmp(ks_eval_mme_answer_name(ks_eval_mme_parse(prediction, FALSE)),
                text_of(row, "parsed")) == 0 &&
         number_matches(row, "score", ks_eval_mme_is_correct(prediction, reference, FALSE)) &&
         number_matches(row, "score_lmms", ks_eval_mme_is_correct(prediction, reference, TRUE));
}

static gboolean
check_mme_aggregate(const cJSON *row)
{
  const cJSON *list = cJSON_GetObjectItemCaseSensitive(row, "items");
  const cJSON *want = cJSON_GetObjectItemCaseSensitive(row, "subtasks");
  gsize n = (gsize)cJSON_GetArraySize(list);
  g_autofree KsEvalMmeItem *items = g_new0(KsEvalMmeItem, n + 1);
  g_autofree char *problem = NULL;
  double tasks[KS_EVAL_MME_N_TASKS], perception, cognition;
  gboolean ok = TRUE;

  for (gsize i = 0; i < n; i++) {
    const cJSON *item = cJSON_GetArrayItem(list, (int)i);

    items[i] = (KsEvalMmeItem){text_of(item, "category"), text_of(item, "image"),
                               text_of(item, "reference"), text_of(item, "prediction")};
  }
  if (!ks_eval_mme_aggregate(items, n, FALSE, tasks, &perception, &cognition, &problem)) {
    g_test_message("%s", problem);
    return FALSE;
  }
  for (guint t = 0; t < KS_EVAL_MME_N_TASKS; t++)
    ok = ok && number_matches(want, ks_eval_mme_tasks[t], tasks[t]);
  return ok && number_matches(row, "perception", perception) &&
         number_matches(row, "cognition", cognition);
}

static gboolean
check_aime(const cJSON *row)
{
  const char *prediction = text_of(row, "prediction"), *reference = text_of(row, "reference");

  return number_matches(row, "score", ks_eval_aime_exact(prediction, reference)) &&
         number_matches(row, "score_int", ks_eval_aime_int(prediction, reference));
}

static gboolean
check_mathvision(const cJSON *row)
{
  const cJSON *reference = cJSON_GetObjectItemCaseSensitive(row, "reference");
  const char *prediction = text_of(row, "prediction"), *answer = text_of(reference, "answer");
  g_autofree const char **options =
      strings_of(cJSON_GetObjectItemCaseSensitive(reference, "options"));
  g_autofree char *extracted = ks_eval_mathvision_extract(prediction);

  if (strcmp(extracted, text_of(row, "extracted")) != 0)
    g_test_message("extracted %s", extracted);
  return strcmp(extracted, text_of(row, "extracted")) == 0 &&
         number_matches(row, "score",
                        ks_eval_mathvision_is_correct(prediction, answer, options, FALSE)) &&
         number_matches(row, "score_harness",
                        ks_eval_mathvision_is_correct(prediction, answer, options, TRUE));
}

static gboolean
check_mmdu(const cJSON *row)
{
  static const char *const names[] = {"official_mean_x10", "vlmeval_all", "vlmeval_valid"};
  g_autoptr(GPtrArray) replies = g_ptr_array_new();
  const cJSON *dialogue, *turn;
  KsEvalMmduTotals totals;
  gboolean ok;

  cJSON_ArrayForEach(dialogue, cJSON_GetObjectItemCaseSensitive(row, "judge_replies"))
      cJSON_ArrayForEach(turn, dialogue) g_ptr_array_add(replies, cJSON_GetStringValue(turn));
  ks_eval_mmdu_aggregate((const char *const *)replies->pdata, replies->len, &totals);
  ok = number_matches(row, "official_count", totals.n_official);
  for (guint k = 0; k < 3; k++) {
    const cJSON *want = cJSON_GetObjectItemCaseSensitive(row, names[k]);
    const double *got = k == 0 ? totals.official : k == 1 ? totals.all : totals.valid;

    for (guint i = 0; i < KS_EVAL_MMDU_N_FIELDS; i++)
      ok = ok && number_matches(want, ks_eval_mmdu_fields[i], got[i]);
  }
  return ok;
}

static const struct {
  const char *file;
  gboolean (*check)(const cJSON *row);
} scorers[] = {
    {"textvqa.jsonl", check_textvqa},
    {"mme.jsonl", check_mme},
    {"mme_aggregate.jsonl", check_mme_aggregate},
    {"aime.jsonl", check_aime},
    {"mathvision.jsonl", check_mathvision},
    {"mmdu_judge.jsonl", check_mmdu},
};

static const char *
scoring_dir(void)
{
  const char *dir = g_getenv("KS_SCORING_DIR");

  return dir != NULL && *dir != '\0' ? dir : g_getenv("KS_SCORING_DEFAULT");
}

/* One file; every line is a case, and an empty file is a failure. */
static void
test_file(gconstpointer data)
{
  gsize index = GPOINTER_TO_SIZE(data);
  g_autofree char *path = g_build_filename(scoring_dir(), scorers[index].file, NULL);
  g_autofree char *content = NULL;
  g_autoptr(GError) error = NULL;
  g_auto(GStrv) lines = NULL;
  guint n_cases = 0, n_wrong = 0;

  if (!g_file_get_contents(path, &content, NULL, &error))
    g_error("%s", error->message);
  lines = g_strsplit(content, "\n", -1);
  for (guint i = 0; lines[i] != NULL; i++) {
    cJSON *row;

    if (*g_strstrip(lines[i]) == '\0')
      continue;
    row = cJSON_Parse(lines[i]);
    n_cases++;
    if (row == NULL || !scorers[index].check(row)) {
      g_test_message("%s line %u differs: %.300s", scorers[index].file, i + 1, lines[i]);
      n_wrong++;
    }
    cJSON_Delete(row);
  }
  g_test_message("%s: %u of %u equal", scorers[index].file, n_cases - n_wrong, n_cases);
  g_assert_cmpuint(n_cases, >, 0);
  g_assert_cmpuint(n_wrong, ==, 0);
}

int
main(int argc, char **argv)
{
  gboolean any = FALSE;

  g_test_init(&argc, &argv, NULL);
  for (gsize i = 0; scoring_dir() != NULL && i < G_N_ELEMENTS(scorers); i++) {
    g_autofree char *path = g_build_filename(scoring_dir(), scorers[i].file, NULL);
    g_autofree char *name = g_strdup_printf("/scoring/%s", scorers[i].file);

    if (!g_file_test(path, G_FILE_TEST_EXISTS))
      continue;
    g_test_add_data_func(name, GSIZE_TO_POINTER(i), test_file);
    any = TRUE;
  }
  if (!any) {
    g_printerr("no scoring case in %s\n", scoring_dir() != NULL ? scoring_dir() : "(unset)");
    return 1;
  }
  return g_test_run();
}
