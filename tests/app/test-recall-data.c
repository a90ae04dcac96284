/* test-recall-data.c - recall prompts are the same for the same seed, hold their answer, and the
 * scorer does not take a part of a number for the number. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-bench-recall-data.h"
#include "app/cli-bench-recall-words.h"

#include <string.h>

/* The fact stands in the text, the value not in the question, and the number of facts is in its
 * range. */
static void
test_prompts (void)
{
  for (guint i = 0; i < 200; i++) {
    g_autoptr (BenchRecallPrompt) prompt = bench_recall_prompt_new (3, i, 600);
    g_autoptr (BenchRecallPrompt) again = bench_recall_prompt_new (3, i, 600);

    g_assert_cmpuint (prompt->n_fact, >=, 3);
    g_assert_cmpuint (prompt->n_fact, <=, 9);
    g_assert_cmpuint (prompt->fact_at, <, prompt->n_fact);
    g_assert_true (bench_recall_is_right (prompt->text, prompt->value));
    g_assert_false (bench_recall_is_right (prompt->question, prompt->value));
    g_assert_null (strchr (prompt->text, '%'));
    g_assert_cmpstr (prompt->text, ==, again->text);
    g_assert_cmpstr (prompt->question, ==, again->question);
  }
}

/* Six questions about six of twenty facts, each with its value in the text and in no question, in
 * both families; the families share no question. */
static void
test_many_questions (void)
{
  for (guint i = 0; i < 100; i++) {
    BenchRecallSpec spec = {
        .seed = 5, .index = i, .n_word = 1300, .n_fact = 20, .n_ask = 6, .other_words = i % 2};
    g_autoptr (BenchRecallPrompt) prompt = bench_recall_prompt_make (&spec);

    g_assert_cmpuint (prompt->n_fact, ==, 20);
    g_assert_cmpuint (prompt->questions->len, ==, 6);
    g_assert_null (strchr (prompt->text, '%'));
    for (guint k = 0; k < 6; k++) {
      const BenchRecallQuestion *question =
          &g_array_index (prompt->questions, BenchRecallQuestion, k);

      g_assert_true (bench_recall_is_right (prompt->text, question->value));
      g_assert_false (bench_recall_is_right (question->question, question->value));
      g_assert_null (strchr (question->question, '%'));
      for (guint j = 0; j < k; j++)
        g_assert_cmpstr (question->question, !=,
                         g_array_index (prompt->questions, BenchRecallQuestion, j).question);
    }
  }
}

/* Wordings of the second family are not those of the first. */
static void
test_families (void)
{
  for (guint i = 0; i < bench_recall_other.n_kind; i++)
    for (guint k = 0; k < bench_recall_plain.n_kind; k++)
      g_assert_cmpstr (bench_recall_other.kinds[i].question, !=,
                       bench_recall_plain.kinds[k].question);
  for (guint kind = 0; kind < BENCH_N_SUBJECT; kind++)
    for (guint i = 0; i < bench_recall_other.subjects[kind].n; i++)
      for (guint k = 0; k < bench_recall_plain.subjects[kind].n; k++)
        g_assert_cmpstr (bench_recall_other.subjects[kind].words[i], !=,
                         bench_recall_plain.subjects[kind].words[k]);
}

/* The series of a seed does not change from version to version: stored results stay comparable. */
static void
test_fixed (void)
{
  g_autoptr (BenchRecallPrompt) prompt = bench_recall_prompt_new (1, 0, 550);
  g_autofree char *sum = g_compute_checksum_for_string (G_CHECKSUM_SHA256, prompt->text, -1);

  g_assert_cmpstr (sum, ==, "95ade749d0b9dde9688923b20e939d540d1166ba8143022d993b8b8e668dfec7");
}

static void
test_seeds (void)
{
  g_autoptr (BenchRecallPrompt) a = bench_recall_prompt_new (1, 0, 600);
  g_autoptr (BenchRecallPrompt) b = bench_recall_prompt_new (2, 0, 600);
  g_autoptr (BenchRecallPrompt) c = bench_recall_prompt_new (1, 1, 600);

  g_assert_cmpstr (a->text, !=, b->text);
  g_assert_cmpstr (a->text, !=, c->text);
}

static void
test_scorer (void)
{
  g_assert_true (bench_recall_is_right ("The code is 4821.", "4821"));
  g_assert_true (bench_recall_is_right ("It is GREEN", "green"));
  g_assert_true (bench_recall_is_right ("14821, no: 4821", "4821"));
  g_assert_false (bench_recall_is_right ("The code is 14821.", "4821"));
  g_assert_false (bench_recall_is_right ("The code is 48210.", "4821"));
  g_assert_false (bench_recall_is_right ("It is greenish", "green"));
  g_assert_false (bench_recall_is_right ("", "green"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/recall-data/prompts", test_prompts);
  g_test_add_func ("/recall-data/many-questions", test_many_questions);
  g_test_add_func ("/recall-data/families", test_families);
  g_test_add_func ("/recall-data/fixed", test_fixed);
  g_test_add_func ("/recall-data/seeds", test_seeds);
  g_test_add_func ("/recall-data/scorer", test_scorer);
  return g_test_run ();
}
