/* test-eval-visual.c - visual haystacks: the same for the same numbers, evidence where it is said
 * to be, as many yes as no, and scorers that read answers as people write them. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-visual.h"

#include "app/eval-visual-draw.h"
#include "app/ks-error.h"

#include <string.h>

static const KsEvalVisualOptions usual = {
    .seed = 7, .n_picture = 5, .position = 2, .grid = 3, .size_px = 96};

static KsEvalItem *
make (const char *kind, const KsEvalVisualOptions *options)
{
  GError *error = NULL;
  KsEvalItem *item = ks_eval_visual_make (kind, options, &error);

  g_assert_no_error (error);
  return item;
}

/* N pictures in all turns together, each a PNG file; the last turn is asked and has references. */
static void
test_items (void)
{
  for (guint k = 0; ks_eval_visual_kinds[k] != NULL; k++)
    for (guint index = 0; index < 8; index++) {
      KsEvalVisualOptions options = usual;
      const KsEvalTurn *last;
      guint n_picture = 0;
      gboolean one_each = g_str_equal (ks_eval_visual_kinds[k], "visual-turns");
      g_autoptr (KsEvalItem) item = NULL;

      options.index = index;
      options.after = index % 2 == 1;
      item = make (ks_eval_visual_kinds[k], &options);
      g_assert_cmpstr (item->bench, ==, ks_eval_visual_kinds[k]);
      g_assert_cmpstr (item->part, ==, "5/50");
      g_assert_cmpuint (item->turns->len, ==, one_each ? 6 : options.after ? 2 : 1);
      for (guint t = 0; t < item->turns->len; t++) {
        const KsEvalTurn *turn = g_ptr_array_index (item->turns, t);

        n_picture += turn->pictures->len;
        for (guint p = 0; p < turn->pictures->len; p++) {
          const KsEvalPicture *picture = g_ptr_array_index (turn->pictures, p);

          g_assert_true (g_str_has_prefix (g_bytes_get_data (picture->base64, NULL), "iVBORw0KGg"));
          g_assert_cmpuint (picture->at, <=, strlen (turn->text));
        }
      }
      last = g_ptr_array_index (item->turns, item->turns->len - 1);
      g_assert_cmpuint (n_picture, ==, 5);
      g_assert_null (last->reply);
      g_assert_nonnull (last->expect[0]);
      g_assert_true (strstr (last->text, "?") != NULL);
    }
}

/* The same numbers give the same bytes, others do not. */
static void
test_same (void)
{
  KsEvalVisualOptions other = usual;
  g_autoptr (KsEvalItem) a = make ("visual-index", &usual);
  g_autoptr (KsEvalItem) b = make ("visual-index", &usual);
  g_autoptr (KsEvalItem) c = NULL;
  g_autoptr (GPtrArray) of_a = g_ptr_array_new (), of_b = g_ptr_array_new (),
                        of_c = g_ptr_array_new ();
  g_autofree char *sum_a = NULL, *sum_b = NULL, *sum_c = NULL;

  other.seed++;
  c = make ("visual-index", &other);
  g_ptr_array_add (of_a, a);
  g_ptr_array_add (of_b, b);
  g_ptr_array_add (of_c, c);
  sum_a = ks_eval_items_hash (of_a);
  sum_b = ks_eval_items_hash (of_b);
  sum_c = ks_eval_items_hash (of_c);
  g_assert_cmpstr (sum_a, ==, sum_b);
  g_assert_cmpstr (sum_a, !=, sum_c);
}

static const char *
get_expected (const KsEvalItem *item)
{
  const KsEvalTurn *last = g_ptr_array_index (item->turns, item->turns->len - 1);

  return last->expect[0];
}

/* Always yes is right half of the time, whatever the place. */
static void
test_balance (void)
{
  static const char *const names[] = {"visual-yesno", "visual-all", "visual-any"};

  for (guint k = 0; k < G_N_ELEMENTS (names); k++) {
    guint n_yes = 0;

    for (guint index = 0; index < 20; index++) {
      KsEvalVisualOptions options = usual;
      g_autoptr (KsEvalItem) item = NULL;

      options.index = index;
      options.n_picture = 1 + index % 3;
      options.position = 0;
      item = make (names[k], &options);
      n_yes += g_str_equal (get_expected (item), "Yes");
    }
    g_assert_cmpuint (n_yes, ==, 10);
  }
}

/* The evidence stands where the part says; in a grid a cell of it. */
static void
test_places (void)
{
  for (guint position = 0; position < 5; position++) {
    KsEvalVisualOptions options = usual;
    g_autofree char *number = g_strdup_printf ("%u", position + 1);
    g_autoptr (KsEvalItem) index = NULL, grid = NULL, turns = NULL;

    options.position = position;
    index = make ("visual-index", &options);
    grid = make ("visual-grid", &options);
    turns = make ("visual-turns", &options);
    g_assert_cmpstr (get_expected (index), ==, number);
    g_assert_cmpstr (get_expected (grid), ==, number);
    g_assert_cmpstr (get_expected (turns), ==, number);
  }
}

/* The same scene gives the same file, another colour another one. */
static void
test_draw (void)
{
  KsVisualScene scene = {.side = 2, .n_thing = 1, .things = {{KS_VISUAL_SQUARE, KS_VISUAL_RED}}};
  KsVisualScene other = scene;
  g_autoptr (GBytes) a = ks_visual_scene_draw (&scene, 96), b = ks_visual_scene_draw (&scene, 96);
  g_autoptr (GBytes) c = NULL;

  other.things[0].colour = KS_VISUAL_BLUE;
  c = ks_visual_scene_draw (&other, 96);
  g_assert_true (g_bytes_equal (a, b));
  g_assert_false (g_bytes_equal (a, c));
}

static void
assert_score (const char *kind, const char *metric, const char *answer, const char *expect,
              double want)
{
  g_auto (GStrv) list = g_strsplit (expect, ",", -1);

  g_assert_cmpfloat (ks_eval_visual_score (kind, metric, answer, (const char *const *)list), ==,
                     want);
}

static void
test_scores (void)
{
  assert_score ("visual-yesno", "accuracy", "Yes, it does.", "Yes", 1);
  assert_score ("visual-yesno", "accuracy", "No.", "Yes", 0);
  assert_score ("visual-index", "accuracy", "Picture 12 of 20", "12", 1);
  assert_score ("visual-index", "accuracy", "112", "12", 0);
  assert_score ("visual-index", "accuracy", "none", "12", 0);
  assert_score ("visual-count", "accuracy", "There are 3.", "3", 1);
  assert_score ("visual-code", "accuracy", "The code is k7pq2.", "K7PQ2", 1);
  assert_score ("visual-code", "accuracy", "xK7PQ2", "K7PQ2", 0);
  assert_score ("visual-grid", "accuracy", "2, 1, 3", "2,1,3", 1);
  assert_score ("visual-grid", "accuracy", "2, 3, 1", "2,1,3", 0);
  assert_score ("visual-grid", "picture", "picture 2, row 3", "2,1,3", 1);
  assert_score ("visual-grid", "row", "picture 2, row 3", "2,1,3", 0);
  assert_score ("visual-grid", "column", "picture 2", "2,1,3", 0);
}

static void
test_wrong (void)
{
  KsEvalVisualOptions options = usual;
  GError *error = NULL;

  options.position = 5;
  g_assert_null (ks_eval_visual_make ("visual-index", &options, &error));
  g_assert_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE);
  g_clear_error (&error);
  options = usual;
  options.n_picture = 51;
  g_assert_null (ks_eval_visual_make ("visual-index", &options, &error));
  g_assert_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE);
  g_clear_error (&error);
  g_assert_false (ks_eval_visual_is_kind ("visual"));
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/eval-visual/items", test_items);
  g_test_add_func ("/eval-visual/same", test_same);
  g_test_add_func ("/eval-visual/balance", test_balance);
  g_test_add_func ("/eval-visual/places", test_places);
  g_test_add_func ("/eval-visual/draw", test_draw);
  g_test_add_func ("/eval-visual/scores", test_scores);
  g_test_add_func ("/eval-visual/wrong", test_wrong);
  return g_test_run ();
}
