/* test-eval-results.c - answers that other programs wrote: MME's result files, LLaVA's answers to
 * TextVQA, and files that only look like them. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-results.h"
#include "app/eval-score.h"

#include "tests/remove-tree.h"

#include <string.h>

/* A reference between tabs. */
#define YES                                                                                        \
  "\t"                                                                                             \
  "Yes\t"

#define TEN "\"a\",\"a\",\"a\",\"a\",\"e\",\"f\",\"g\",\"h\",\"i\",\"j\""

typedef struct {
  char *folder;
} Fixture;

static void
set_up (Fixture *f, gconstpointer data)
{
  f->folder = g_dir_make_tmp ("keepsake-eval-results-XXXXXX", NULL);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  remove_tree (f->folder);
  g_free (f->folder);
}

/* (transfer full) */
static char *
write_file (Fixture *f, const char *name, const char *text)
{
  char *path = g_build_filename (f->folder, name, NULL);
  g_autofree char *folder = g_path_get_dirname (path);

  g_assert_cmpint (g_mkdir_with_parents (folder, 0755), ==, 0);
  g_assert_true (g_file_set_contents (path, text, -1, NULL));
  return path;
}

static void
expect_error (const char *path, const KsEvalLoadOptions *data, const char *words)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) rows = ks_eval_results_load (path, data, &error);

  g_assert_null (rows);
  g_assert_nonnull (error);
  if (strstr (error->message, words) == NULL)
    g_error ("'%s' does not say '%s'", error->message, words);
}

/* Mean of a metric over rows. */
static double
mean_of (const GPtrArray *rows, const char *metric)
{
  g_autoptr (GArray) scores = ks_eval_score_rows (rows, KS_EVAL_OFFICIAL, NULL);
  double sum = 0;
  guint n = 0;

  g_assert_nonnull (scores);
  for (guint i = 0; i < scores->len; i++) {
    const KsEvalScore *score = &g_array_index (scores, KsEvalScore, i);

    if (strcmp (score->metric, metric) == 0) {
      sum += score->value;
      n++;
    }
  }
  g_assert_cmpuint (n, >, 0);
  return sum / n;
}

/* Neighbours are a pair even where two pairs are about one picture; an answer may hold tabs, and
 * lines end as Windows ends them. */
static void
test_mme (Fixture *f, gconstpointer data)
{
  const KsEvalLoadOptions none = {0};
  g_autofree char *count = write_file (f, "r/count.txt",
                                       "1.png\tA?" YES "yes\r\n1.png\tB?\tNo\tNo,\tnone\r\n"
                                       "1.png\tC?" YES "no\r\n1.png\tD?\tNo\t**No**\r\n");
  g_autofree char *ocr = write_file (f, "r/OCR.txt", "2.png\tA?" YES "Yes\n2.png\tB?\tNo\tNo");
  g_autofree char *folder = g_path_get_dirname (count);
  g_autoptr (GPtrArray) rows = NULL, one = NULL;
  const KsEvalRow *row;

  g_assert_true (ks_eval_results_are (folder) && ks_eval_results_are (ocr));
  rows = ks_eval_results_load (folder, &none, NULL);
  g_assert_nonnull (rows);
  g_assert_cmpuint (rows->len, ==, 6);
  row = g_ptr_array_index (rows, 1);
  g_assert_cmpstr (row->prediction, ==, "No,\tnone");
  g_assert_cmpstr (row->part, ==, "count");
  g_assert_cmpstr (row->group, ==, ((KsEvalRow *)g_ptr_array_index (rows, 0))->group);
  g_assert_cmpstr (row->group, !=, ((KsEvalRow *)g_ptr_array_index (rows, 2))->group);
  g_assert_cmpfloat_with_epsilon (mean_of (rows, "accuracy"), 5.0 / 6, 1e-9);
  g_assert_cmpfloat_with_epsilon (mean_of (rows, "pair"), 2.0 / 3, 1e-9);
  one = ks_eval_results_load (ocr, &none, NULL);
  g_assert_cmpuint (one->len, ==, 2);
}

/* What is no result is told with its line. */
static void
test_damaged_mme (Fixture *f, gconstpointer data)
{
  const KsEvalLoadOptions none = {0};
  static const struct {
    const char *text, *says;
  } cases[] = {
      {"1\tA?\t"
       "Yes\n",
       "line 1"},
      {"\n \n", "no answer"},
      {"1\tA?" YES "yes\n\n1\tB?\tperhaps\tno\n", "line 3"},
      {"1\tA?" YES "yes\n2\tB?\tNo\tno\n", "side by side"},
      {"1\tA?" YES "yes\n1\tB?\tNo\tno\n2\tA?" YES "yes\n", "only one"},
  };
  g_autofree char *other = write_file (f, "notes.txt", "1\tA?" YES "yes\n1\tB?\tNo\tno\n");
  g_autofree char *empty = write_file (f, "empty/readme", "");
  g_autofree char *folder = g_path_get_dirname (empty);

  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *path = write_file (f, "r/count.txt", cases[i].text);

    expect_error (path, &none, cases[i].says);
  }
  g_assert_false (ks_eval_results_are (other)); /* a run file may be called so */
  expect_error (folder, &none, "no results of MME");
}

/* Answers find their references by picture and question; the three prompts that LLaVA has. */
static void
test_llava (Fixture *f, gconstpointer data)
{
  g_autofree char *annotations =
      write_file (f, "v.json",
                  "{\"data\":[{\"question_id\":1,\"image_id\":\"0f\",\"question\":\"What IS it?\","
                  "\"answers\":[" TEN "]},{\"question_id\":2,\"image_id\":\"0f\",\"question\":"
                  "\"Who?\",\"answers\":[" TEN "]}]}");
  g_autofree char *answers = write_file (
      f, "a.jsonl",
      "{\"question_id\":\"0f\",\"prompt\":\"Who?\\nOne word.\",\"text\":\"e\"}\n"
      "{\"question_id\":\"0f\",\"prompt\":\"what is it?\\nReference OCR token: X\\nOne "
      "word.\",\"text\":\"A.\",\"answer_id\":\"q\"}\n"
      "{\"question_id\":\"0f\",\"prompt\":\"OCR tokens: X. Question: who? Short answer:\","
      "\"text\":\"none\"}\n");
  const KsEvalLoadOptions with = {.data = annotations}, none = {0};
  g_autoptr (GPtrArray) rows = NULL;
  g_autofree char *bad = NULL;

  g_assert_true (ks_eval_results_are (answers));
  g_assert_false (ks_eval_results_are (annotations));
  expect_error (answers, &none, "--data");
  rows = ks_eval_results_load (answers, &with, NULL);
  g_assert_nonnull (rows);
  g_assert_cmpuint (rows->len, ==, 3);
  g_assert_cmpstr (((KsEvalRow *)g_ptr_array_index (rows, 1))->id, ==, "1");
  g_assert_cmpfloat_with_epsilon (mean_of (rows, "accuracy"), (0.3 + 1.0 + 0.0) / 3, 1e-9);
  bad = write_file (f, "b.jsonl",
                    "{\"question_id\":\"0f\",\"prompt\":\"Who?\\nOne.\",\"text\":\"e\"}\n"
                    "{\"question_id\":\"0e\",\"prompt\":\"Who?\\nOne.\",\"text\":\"e\"}\n");
  expect_error (bad, &with, "line 2");
  g_free (bad);
  bad = write_file (f, "b.jsonl", "{\"question_id\":\"0f\",\"prompt\":\"Who?\",\"text\":\"e\"}\n");
  expect_error (bad, &with, "as LLaVA writes them");
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add ("/eval-results/mme", Fixture, NULL, set_up, test_mme, tear_down);
  g_test_add ("/eval-results/damaged-mme", Fixture, NULL, set_up, test_damaged_mme, tear_down);
  g_test_add ("/eval-results/llava", Fixture, NULL, set_up, test_llava, tear_down);
  return g_test_run ();
}
