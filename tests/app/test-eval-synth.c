/* test-eval-synth.c - made-up text tests: the same bytes for the same seed, within their length,
 * the answer in the text and not in the question, the needle where it was asked to be. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-synth.h"

#include <string.h>

/* A token a word, for what does not need a tokenizer. */
static guint
count_words (const char *text, gpointer user)
{
  guint n = 0;

  for (const char *p = text; *p != '\0'; p++)
    n += *p != ' ' && *p != '\n' && (p[1] == ' ' || p[1] == '\n' || p[1] == '\0');
  return n;
}

static KsEvalItem *
make (const char *kind, const KsEvalSynthOptions *options)
{
  g_autoptr (GError) error = NULL;
  KsEvalItem *item = ks_eval_synth_make (kind, options, count_words, NULL, &error);

  g_assert_no_error (error);
  g_assert_nonnull (item);
  return item;
}

/* Everything the model is shown, and the questions alone. */
static char *
join_turns (const KsEvalItem *item, gboolean asked_only, guint *out_n_word)
{
  GString *text = g_string_new (NULL);

  *out_n_word = 0;
  for (guint i = 0; i < item->turns->len; i++) {
    const KsEvalTurn *turn = g_ptr_array_index (item->turns, i);

    *out_n_word += count_words (turn->text, NULL);
    if (!asked_only || turn->reply == NULL)
      g_string_append_printf (text, "%s\n", turn->text);
  }
  return g_string_free (text, FALSE);
}

/* Each kind, asked later: what is expected stands in what was told, not in the question, and all of
 * it fits. */
static void
test_kinds (void)
{
  for (guint i = 0; ks_eval_synth_kinds[i] != NULL; i++) {
    const char *kind = ks_eval_synth_kinds[i];
    KsEvalSynthOptions options = {
        .seed = 3, .index = 2, .n_tok = 1500, .depth = 40, .after = TRUE, .n_other = 2};
    g_autoptr (KsEvalItem) a = make (kind, &options), b = make (kind, &options), c = NULL;
    guint n_word, n_asked;
    g_autofree char *told = join_turns (a, FALSE, &n_word),
                    *again = join_turns (b, FALSE, &n_asked);
    g_autofree char *asked = join_turns (a, TRUE, &n_asked), *other = NULL;

    g_assert_cmpstr (told, ==, again);
    g_assert_cmpuint (n_word + ks_eval_synth_get_reserve (kind), <=, 1500);
    g_assert_cmpuint (n_word, >, 500);
    for (guint t = 0; t < a->turns->len; t++) {
      const KsEvalTurn *turn = g_ptr_array_index (a->turns, t);

      for (guint k = 0; turn->reply == NULL && turn->expect[k] != NULL; k++) {
        g_assert_nonnull (strstr (told, turn->expect[k]));
        g_assert_null (strstr (asked, turn->expect[k]));
      }
      if (turn->reply == NULL)
        g_assert_cmpuint (g_strv_length (turn->expect), >, 0);
    }
    options.index = 3;
    c = make (kind, &options);
    other = join_turns (c, FALSE, &n_word);
    g_assert_cmpstr (told, !=, other);
    g_assert_cmpstr (a->id, !=, c->id);
  }
}

/* With the text: one message. After it: text, other turns, question; the text is the same. */
static void
test_order (void)
{
  KsEvalSynthOptions options = {.seed = 1, .n_tok = 900, .depth = 50};
  g_autoptr (KsEvalItem) with = make ("needle", &options), after = NULL;
  const KsEvalTurn *turn, *question;

  g_assert_cmpuint (with->turns->len, ==, 1);
  options.after = TRUE;
  options.n_other = 3;
  after = make ("needle", &options);
  g_assert_cmpuint (after->turns->len, ==, 5);
  g_assert_cmpuint (ks_eval_item_count_answers (after), ==, 1);
  question = g_ptr_array_index (after->turns, 4);
  turn = g_ptr_array_index (with->turns, 0);
  g_assert_true (g_str_has_suffix (turn->text, question->text));
  g_assert_cmpstr (turn->expect[0], ==, question->expect[0]);
  g_assert_cmpstr (with->id, ==, after->id);
}

/* At 0, 50 and 100 percent the needle stands at the beginning, in the middle and at the end. */
static void
test_depth (void)
{
  for (guint depth = 0; depth <= 100; depth += 50) {
    KsEvalSynthOptions options = {.seed = 5, .n_tok = 2000, .depth = depth, .after = TRUE};
    g_autoptr (KsEvalItem) item = make ("needle", &options);
    const KsEvalTurn *text = g_ptr_array_index (item->turns, 0);
    const KsEvalTurn *question = g_ptr_array_index (item->turns, 1);
    const char *found = strstr (text->text, question->expect[0]);
    double place;

    g_assert_nonnull (found);
    place = (double)(found - text->text) / (double)strlen (text->text);
    g_assert_cmpfloat (place, >=, depth / 100.0 - 0.05);
    g_assert_cmpfloat (place, <=, depth / 100.0 + 0.05);
  }
}

static guint
count_occurrences (const char *text, const char *word)
{
  g_auto (GStrv) words = g_strsplit_set (text, " \n", -1);
  guint n = 0;

  for (guint i = 0; words[i] != NULL; i++)
    n += strcmp (words[i], word) == 0;
  return n;
}

/* The expected words are the most frequent ones: each of the ten common ones 10 times below 3,072
 * tokens; the top three of the coded ones in their order. */
static void
test_counts (void)
{
  KsEvalSynthOptions options = {.seed = 2, .n_tok = 1000, .after = TRUE};
  g_autoptr (KsEvalItem) common = make ("common-words", &options);
  g_autoptr (KsEvalItem) frequent = make ("frequent-words", &options);
  const KsEvalTurn *text = g_ptr_array_index (common->turns, 0);
  const KsEvalTurn *question = g_ptr_array_index (common->turns, 1);
  guint last = G_MAXUINT;

  g_assert_cmpuint (g_strv_length (question->expect), ==, 10);
  for (guint i = 0; i < 10; i++)
    g_assert_cmpuint (count_occurrences (text->text, question->expect[i]), ==, 10);
  text = g_ptr_array_index (frequent->turns, 0);
  question = g_ptr_array_index (frequent->turns, 1);
  g_assert_cmpuint (g_strv_length (question->expect), ==, 3);
  for (guint i = 0; i < 3; i++) {
    guint n = count_occurrences (text->text, question->expect[i]);

    g_assert_cmpuint (n, >, 5);
    g_assert_cmpuint (n, <, last);
    last = n;
  }
}

/* Each variable stands behind the one that it copies; the value stands there once. */
static void
test_tracking (void)
{
  for (guint index = 0; index < 20; index++) {
    KsEvalSynthOptions options = {.seed = 9, .index = index, .n_tok = 800, .after = TRUE};
    g_autoptr (KsEvalItem) item = make ("tracking", &options);
    const KsEvalTurn *text = g_ptr_array_index (item->turns, 0);
    char **names = ((const KsEvalTurn *)g_ptr_array_index (item->turns, 1))->expect;
    const char *last = text->text;

    g_assert_cmpuint (g_strv_length (names), ==, 5);
    for (guint i = 0; i < 5; i++) {
      g_autofree char *start = g_strdup_printf ("VAR %s =", names[i]);
      const char *found = strstr (last, start);

      g_assert_nonnull (found);
      last = found + 1;
    }
  }
}

/* The user's sentences are the filler; none of ours is. */
static void
test_filler (void)
{
  g_autoptr (GPtrArray) sentences = ks_eval_synth_split ("One here. Two is 2.5 long!\n\nThree");
  KsEvalSynthOptions options = {.seed = 1, .n_tok = 600, .depth = 10, .filler = sentences};
  g_autoptr (KsEvalItem) item = make ("needle", &options);
  const KsEvalTurn *turn = g_ptr_array_index (item->turns, 0);

  g_assert_cmpuint (sentences->len, ==, 3);
  g_assert_cmpstr (g_ptr_array_index (sentences, 1), ==, "Two is 2.5 long!");
  g_assert_cmpuint (count_occurrences (turn->text, "Three"), >, 20);
  g_assert_null (strstr (turn->text, "the gardener"));
}

/* Too short a length is told, not cut. */
static void
test_short (void)
{
  KsEvalSynthOptions options = {.seed = 1, .n_tok = 150, .depth = 10};
  g_autoptr (GError) error = NULL;

  g_assert_null (ks_eval_synth_make ("common-words", &options, count_words, NULL, &error));
  g_assert_nonnull (strstr (error->message, "too few"));
}

/* The part that was found, case ignored, control characters as line breaks. */
static void
test_score (void)
{
  const char *const expect[] = {"Amber Lantern", "12345", "x", "\xc3\x84rger", NULL};

  g_assert_cmpfloat (ks_eval_synth_score ("AMBER lantern,\x02 1234 5", expect), ==, 0.25);
  g_assert_cmpfloat (ks_eval_synth_score ("\xc3\xa4RGER x 12345 amber lantern", expect), ==, 1);
  g_assert_cmpfloat (ks_eval_synth_score ("", expect), ==, 0);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/eval-synth/kinds", test_kinds);
  g_test_add_func ("/eval-synth/order", test_order);
  g_test_add_func ("/eval-synth/depth", test_depth);
  g_test_add_func ("/eval-synth/counts", test_counts);
  g_test_add_func ("/eval-synth/tracking", test_tracking);
  g_test_add_func ("/eval-synth/filler", test_filler);
  g_test_add_func ("/eval-synth/short", test_short);
  g_test_add_func ("/eval-synth/score", test_score);
  return g_test_run ();
}
