/* test-eval-run.c - run files keep what they were given, go on where they stopped, and refuse what
 * does not belong into them; rows score without a model. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-overlap.h"
#include "app/eval-random.h"
#include "app/eval-score.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

typedef struct {
  char *folder, *path;
  cJSON *header;
} Fixture;

static void
set_up (Fixture *f, gconstpointer data)
{
  f->folder = g_dir_make_tmp ("keepsake-eval-run-XXXXXX", NULL);
  f->path = g_build_filename (f->folder, "run.jsonl", NULL);
  f->header = cJSON_Parse ("{\"model_hash\": \"ab\", \"max_new\": 16}");
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  g_unlink (f->path);
  g_rmdir (f->folder);
  g_free (f->path);
  g_free (f->folder);
  cJSON_Delete (f->header);
}

static KsEvalRow *
make_row (const char *bench, const KsEvalCell *cell, const char *id, const char *prediction,
          const char *expect)
{
  KsEvalRow *row = ks_eval_row_new (cell, bench, "", id, 0);

  g_free (row->prediction);
  row->prediction = g_strdup (prediction);
  row->expect = g_strsplit (expect, "|", -1);
  row->stop = g_intern_string ("eos");
  return row;
}

static KsEvalRunFile *
open_file (Fixture *f)
{
  g_autoptr (GError) error = NULL;
  KsEvalRunFile *file = ks_eval_run_file_open (f->path, f->header, &error);

  g_assert_no_error (error);
  return file;
}

static void
append (KsEvalRunFile *file, KsEvalRow *take_row)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (ks_eval_run_file_append (file, take_row, &error));
  g_assert_no_error (error);
}

/* Every field of a row comes back from the file as it was. */
static void
test_round_trip (Fixture *f, gconstpointer data)
{
  KsEvalCell cell = ks_eval_cell ("snapkv:window=32", 512);
  KsEvalRow *row;
  g_autoptr (KsEvalRunFile) file = open_file (f), again = NULL;

  cell.question = g_intern_string ("after");
  cell.budget = g_intern_string ("text");
  cell.seed = 7;
  row = make_row ("mathvision", &cell, "12", "so \"x\" is\n{4}\xc3\xa4", "A|B");
  row->part = g_intern_string ("counting/level 2");
  row->group = g_strdup ("g");
  row->options = g_strsplit ("one|two", "|", -1);
  row->turn = 3;
  row->n_prompt = 100;
  row->n_new = 20;
  row->n_peak = 12345678901;
  row->peak_bytes = 99;
  row->prompt_s = 0.25;
  ks_eval_row_set_value (row, "nll", 1.5);
  ks_eval_row_set_value (row, "nll", 2.5);
  append (file, row);
  g_clear_pointer (&file, ks_eval_run_file_free);

  again = ks_eval_run_file_load (f->path, NULL);
  g_assert_nonnull (again);
  g_assert_cmpuint (ks_eval_run_file_get_rows (again)->len, ==, 1);
  row = g_ptr_array_index (ks_eval_run_file_get_rows (again), 0);
  g_assert_true (ks_eval_cell_equal (&row->cell, &cell));
  g_assert_cmpstr (row->prediction, ==, "so \"x\" is\n{4}\xc3\xa4");
  g_assert_cmpstr (row->part, ==, "counting/level 2");
  g_assert_cmpstr (row->group, ==, "g");
  g_assert_cmpstr (row->expect[1], ==, "B");
  g_assert_cmpstr (row->options[0], ==, "one");
  g_assert_cmpuint (row->turn, ==, 3);
  g_assert_cmpuint (row->n_new, ==, 20);
  g_assert_cmpuint (row->n_peak, ==, 12345678901);
  g_assert_cmpfloat (row->prompt_s, ==, 0.25);
  g_assert_cmpfloat (ks_eval_row_get_value (row, "nll"), ==, 2.5);
  g_assert_true (isnan (ks_eval_row_get_value (row, "other")));
  g_assert_cmpstr (row->stop, ==, "eos");
}

/* A run that was killed in the middle of a line goes on behind the last whole one. */
static void
test_cut (Fixture *f, gconstpointer data)
{
  KsEvalCell cell = ks_eval_cell ("full", 0), other = ks_eval_cell ("dbtrimkv", 64);
  g_autofree char *text = NULL;
  KsEvalRunFile *file = open_file (f);
  gsize n = 0;

  append (file, make_row ("aime", &cell, "1", "204", "204"));
  append (file, make_row ("aime", &cell, "2", "3", "4"));
  ks_eval_run_file_free (file);
  g_assert_true (g_file_get_contents (f->path, &text, &n, NULL));
  g_assert_true (g_file_set_contents (f->path, text, (gssize)n - 20, NULL));

  file = open_file (f);
  g_assert_true (ks_eval_run_file_has (file, &cell, "aime", "1", 0));
  g_assert_false (ks_eval_run_file_has (file, &cell, "aime", "2", 0));
  g_assert_false (ks_eval_run_file_has (file, &other, "aime", "1", 0));
  append (file, make_row ("aime", &cell, "2", "3", "4"));
  ks_eval_run_file_free (file);
  g_free (text);
  g_assert_true (g_file_get_contents (f->path, &text, &n, NULL));
  file = ks_eval_run_file_load (f->path, NULL);
  g_assert_nonnull (file);
  g_assert_cmpuint (ks_eval_run_file_get_rows (file)->len, ==, 2);
  ks_eval_run_file_free (file);
}

/* A loss that is no number, as a damaged model gives, does not spoil the file for going on. */
static void
test_no_number (Fixture *f, gconstpointer data)
{
  KsEvalCell cell = ks_eval_cell ("full", 0);
  KsEvalRunFile *file = open_file (f);
  KsEvalRow *row = make_row ("mmdu", &cell, "1", "7 8", "x");

  ks_eval_row_set_value (row, "nll", NAN);
  ks_eval_row_set_value (row, "n_scored", 2);
  append (file, row);
  ks_eval_run_file_free (file);
  file = open_file (f);
  g_assert_cmpuint (ks_eval_run_file_get_rows (file)->len, ==, 1);
  row = g_ptr_array_index (ks_eval_run_file_get_rows (file), 0);
  g_assert_true (isnan (ks_eval_row_get_value (row, "nll")));
  g_assert_cmpfloat (ks_eval_row_get_value (row, "n_scored"), ==, 2);
  ks_eval_run_file_free (file);
}

static void
expect_open_error (Fixture *f, const char *words)
{
  g_autoptr (GError) error = NULL;

  g_assert_null (ks_eval_run_file_open (f->path, f->header, &error));
  g_assert_nonnull (error);
  g_assert_nonnull (strstr (error->message, words));
}

/* Another model, a second writer, a row twice, a file of something else: each is refused with a
 * sentence that says so, and the file stays as it was. */
static void
test_refused (Fixture *f, gconstpointer data)
{
  KsEvalCell cell = ks_eval_cell ("full", 0);
  g_autofree char *text = NULL, *twice = NULL;
  KsEvalRunFile *file = open_file (f);
  cJSON *header = f->header;

  append (file, make_row ("aime", &cell, "1", "204", "204"));
  expect_open_error (f, "another run writes");
  ks_eval_run_file_free (file);

  f->header = cJSON_Parse ("{\"model_hash\": \"cd\", \"max_new\": 16}");
  expect_open_error (f, "model_hash");
  cJSON_Delete (f->header);
  f->header = cJSON_Parse ("{\"model_hash\": \"ab\", \"max_new\": 16, \"more\": 1}");
  expect_open_error (f, "more");
  cJSON_Delete (f->header);
  f->header = header;

  g_assert_true (g_file_get_contents (f->path, &text, NULL, NULL));
  twice = g_strconcat (text, strchr (text, '\n') + 1, NULL);
  g_assert_true (g_file_set_contents (f->path, twice, -1, NULL));
  expect_open_error (f, "twice");
  g_assert_true (g_file_set_contents (f->path, "{\"bench\": 4}\n", -1, NULL));
  expect_open_error (f, "policy");
  g_assert_true (g_file_set_contents (f->path, "not at all\n", -1, NULL));
  expect_open_error (f, "line 1");
  g_assert_true (g_file_set_contents (f->path, strchr (text, '\n') + 1, -1, NULL));
  expect_open_error (f, "does not say");
}

static double
find_score (const GArray *scores, const char *metric, const char *id)
{
  for (guint i = 0; i < scores->len; i++) {
    const KsEvalScore *score = &g_array_index (scores, KsEvalScore, i);

    if (strcmp (score->metric, metric) == 0 && strcmp (score->id, id) == 0)
      return score->value;
  }
  return NAN;
}

/* Rows go to the scorer of their bench; both modes are told apart; MME pairs its questions by
 * picture, within one cell only. */
static void
test_scores (Fixture *f, gconstpointer data)
{
  static const char ten[] = "stop|stop|stop|halt|a|b|c|d|e|f";
  g_autoptr (GPtrArray) rows = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_eval_row_free);
  KsEvalCell cell = ks_eval_cell ("full", 0), other = ks_eval_cell ("random", 8);
  g_autoptr (GArray) official = NULL, harness = NULL;
  const char *const answers[] = {"Yes", "No.", "no"};

  g_ptr_array_add (rows, make_row ("textvqa", &cell, "t", "Stop", ten));
  g_ptr_array_add (rows, make_row ("aime", &cell, "a", "\\boxed{073}", "73"));
  g_ptr_array_add (rows, make_row ("aime", &cell, "b", "<think>5</think>7", "7"));
  g_ptr_array_add (rows,
                   make_row ("needle-values", &cell, "n", "it is 12\x01 and 34", "12|34|56|78"));
  for (guint i = 0; i < 3; i++) {
    KsEvalRow *row = make_row ("mme", i < 2 ? &cell : &other, i % 2 == 0 ? "m1" : "m2", answers[i],
                               i % 2 == 0 ? "Yes" : "No");

    row->group = g_strdup ("count/1");
    row->part = g_intern_string ("count");
    g_ptr_array_add (rows, row);
  }
  official = ks_eval_score_rows (rows, KS_EVAL_OFFICIAL, NULL);
  harness = ks_eval_score_rows (rows, KS_EVAL_HARNESS, NULL);
  g_assert_nonnull (official);
  g_assert_cmpfloat (find_score (official, "accuracy", "t"), ==, 0.9);
  g_assert_cmpfloat (find_score (official, "exact", "a"), ==, 0);
  g_assert_cmpfloat (find_score (official, "int", "a"), ==, 1);
  g_assert_cmpfloat (find_score (official, "exact", "b"), ==, 0);
  g_assert_cmpfloat (find_score (harness, "exact", "b"), ==, 1);
  g_assert_cmpfloat (find_score (official, "recall", "n"), ==, 0.5);
  g_assert_cmpfloat (find_score (official, "pair", "m2"), ==, 1);
  g_assert_true (isnan (find_score (official, "pair", "m1"))); /* one question of the other cell */
}

/* Losses come from sums; picks are compared with the full cache's; a row without reference needs
 * the data and gets it by id. */
static void
test_measured (Fixture *f, gconstpointer data)
{
  g_autoptr (GPtrArray) rows = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_eval_row_free);
  g_autoptr (GPtrArray) items = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_eval_item_free);
  KsEvalCell full = ks_eval_cell ("full", 0), cell = ks_eval_cell ("random", 8);
  g_autoptr (GArray) scores = NULL;
  g_autoptr (GError) error = NULL;
  const char *const picks[] = {"1 2 3 4", "1 5 3 4"};
  KsEvalItem *item = ks_eval_item_new ("aime", "", "x");

  for (guint i = 0; i < 2; i++) {
    KsEvalRow *row = ks_eval_row_new (i == 0 ? &full : &cell, "mmdu-forced", "", "d", 0);

    g_free (row->prediction);
    row->prediction = g_strdup (picks[i]);
    ks_eval_row_set_value (row, "nll", 8);
    ks_eval_row_set_value (row, "n_scored", 4);
    g_ptr_array_add (rows, row);
  }
  scores = ks_eval_score_rows (rows, KS_EVAL_OFFICIAL, NULL);
  g_assert_cmpfloat (find_score (scores, "loss", "d"), ==, 2);
  g_assert_cmpfloat (find_score (scores, "agreement", "d"), ==, 0.75);

  g_ptr_array_add (rows, ks_eval_row_new (&full, "aime", "", "x", 0));
  g_assert_null (ks_eval_score_rows (rows, KS_EVAL_OFFICIAL, &error));
  g_assert_nonnull (strstr (error->message, "--data"));
  ks_eval_turn_add_expected (ks_eval_item_add_turn (item, "q", NULL), "7");
  g_ptr_array_add (items, item);
  ks_eval_score_complete (rows, items);
  g_array_unref (scores);
  scores = ks_eval_score_rows (rows, KS_EVAL_OFFICIAL, NULL);
  g_assert_cmpfloat (find_score (scores, "exact", "x"), ==, 0);
}

/* Worked by hand: words as a multiset, order only for the subsequence, pictures by number. */
static void
test_overlap (void)
{
  g_assert_cmpfloat_with_epsilon (ks_eval_overlap_f1 ("The cat, the mat!", "the cat sat"),
                                  2.0 * 2 / 7, 1e-12);
  g_assert_cmpfloat_with_epsilon (ks_eval_overlap_rouge_l ("b a c d", "a b c e d"), 2.0 * 3 / 9,
                                  1e-12);
  g_assert_cmpfloat (ks_eval_overlap_f1 ("", "a"), ==, 0);
  g_assert_cmpfloat (ks_eval_overlap_images ("Image 2 is red", "image 1 and Image 2"), ==, 0.5);
  g_assert_cmpfloat (ks_eval_overlap_images ("x", "no number of an image here"), ==, -1);
}

/* Whole groups only, the same ones for the same seed, in their order. */
static void
test_sample (void)
{
  g_autoptr (GPtrArray) a = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_eval_item_free);
  g_autoptr (GPtrArray) b = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_eval_item_free);

  for (guint i = 0; i < 40; i++) {
    g_autofree char *id = g_strdup_printf ("%02u", i), *group = g_strdup_printf ("%u", i / 2);
    KsEvalItem *one = ks_eval_item_new ("mme", "", id), *two = ks_eval_item_new ("mme", "", id);

    one->group = g_strdup (group);
    two->group = g_strdup (group);
    g_ptr_array_add (a, one);
    g_ptr_array_add (b, two);
  }
  ks_eval_items_sample (a, 11, 5);
  ks_eval_items_sample (b, 11, 5);
  g_assert_cmpuint (a->len, ==, 10);
  for (guint i = 0; i < a->len; i++) {
    const KsEvalItem *one = g_ptr_array_index (a, i), *two = g_ptr_array_index (b, i);

    g_assert_cmpstr (one->id, ==, two->id);
    g_assert_cmpstr (one->group, ==, ((const KsEvalItem *)g_ptr_array_index (a, i ^ 1u))->group);
    if (i > 0)
      g_assert_cmpstr (((const KsEvalItem *)g_ptr_array_index (a, i - 1))->id, <, one->id);
  }
}

/* One series for each seed and number, each value about equally often. */
static void
test_random (void)
{
  KsEvalRandom a = ks_eval_random (1, 2), b = ks_eval_random (1, 2), c = ks_eval_random (2, 1);
  guint counts[5] = {0};

  g_assert_cmpuint (ks_eval_random_next (&a), ==, ks_eval_random_next (&b));
  g_assert_cmpuint (ks_eval_random_next (&a), !=, ks_eval_random_next (&c));
  for (guint i = 0; i < 5000; i++)
    counts[ks_eval_random_pick (&a, 5)]++;
  for (guint i = 0; i < 5; i++)
    g_assert_cmpuint (counts[i], >, 880);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add ("/eval-run/round-trip", Fixture, NULL, set_up, test_round_trip, tear_down);
  g_test_add ("/eval-run/cut", Fixture, NULL, set_up, test_cut, tear_down);
  g_test_add ("/eval-run/no-number", Fixture, NULL, set_up, test_no_number, tear_down);
  g_test_add ("/eval-run/refused", Fixture, NULL, set_up, test_refused, tear_down);
  g_test_add ("/eval-run/scores", Fixture, NULL, set_up, test_scores, tear_down);
  g_test_add ("/eval-run/measured", Fixture, NULL, set_up, test_measured, tear_down);
  g_test_add_func ("/eval-run/overlap", test_overlap);
  g_test_add_func ("/eval-run/sample", test_sample);
  g_test_add_func ("/eval-run/random", test_random);
  return g_test_run ();
}
