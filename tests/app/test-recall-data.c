/* test-recall-data.c - recall prompts are the same for the same seed, hold their answer, and the
 * scorer does not take a part of a number for the number. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-bench-recall-data.h"

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
  g_test_add_func ("/recall-data/seeds", test_seeds);
  g_test_add_func ("/recall-data/scorer", test_scorer);
  return g_test_run ();
}
