/* eval-visual.c - see eval-visual.h.
 * A maker fills the scenes, the question and what is expected; the scenes then become turns, all in
 * one or one after the other.  Things that are asked for stand nowhere else. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-visual.h"

#include "app/eval-mme.h"
#include "app/eval-random.h"
#include "app/eval-synth-internal.h"
#include "app/eval-visual-draw.h"
#include "app/ks-error.h"

#include <string.h>

#define MAX_PICTURES 50u
#define MAX_WANTED 4u
#define N_THING ((guint)KS_VISUAL_N_SHAPE * (guint)KS_VISUAL_N_COLOUR)
#define ALPHABET "ABCDEFGHJKLMNPRSTUVWXYZ2345679" /* none that look alike */

const char *const ks_eval_visual_kinds[] = {
    "visual-yesno", "visual-index", "visual-code", "visual-all",   "visual-any",
    "visual-count", "visual-grid",  "visual-text", "visual-turns", NULL};

typedef struct {
  const KsEvalVisualOptions *options;
  KsEvalRandom random;
  KsVisualScene scenes[MAX_PICTURES];
  char *notes[MAX_PICTURES]; /* a sentence behind each picture, or NULL */
  KsVisualThing wanted[MAX_WANTED];
  guint n_wanted;
  char *question;
  char *expect[4]; /* NULL-terminated */
} Maker;

/* --- things --- */

static gboolean
is_same (const KsVisualThing *a, const KsVisualThing *b)
{
  return a->shape == b->shape && a->colour == b->colour;
}

/* One that is not asked for; like: of the shape that is asked for, in another colour, or of none of
 * these shapes. */
static KsVisualThing
draw_other (Maker *maker)
{
  for (;;) {
    guint n = ks_eval_random_pick (&maker->random, N_THING);
    KsVisualThing thing = {(KsVisualShape)(n % KS_VISUAL_N_SHAPE),
                           (KsVisualColour)(n / KS_VISUAL_N_SHAPE)};
    gboolean taken = FALSE;

    if (!maker->options->easy && maker->n_wanted > 0 && n % 2 == 0)
      thing.shape = maker->wanted[0].shape;
    for (guint i = 0; i < maker->n_wanted; i++)
      taken = taken || is_same (&thing, &maker->wanted[i]) ||
              (maker->options->easy && thing.shape == maker->wanted[i].shape);
    if (!taken)
      return thing;
  }
}

/* Another thing to ask for, unlike those there are in shape and colour. */
static KsVisualThing *
want (Maker *maker)
{
  KsVisualThing *thing = &maker->wanted[maker->n_wanted];
  gboolean taken = TRUE;

  while (taken) {
    thing->shape = (KsVisualShape)ks_eval_random_pick (&maker->random, KS_VISUAL_N_SHAPE);
    thing->colour = (KsVisualColour)ks_eval_random_pick (&maker->random, KS_VISUAL_N_COLOUR);
    taken = FALSE;
    for (guint i = 0; i < maker->n_wanted; i++)
      taken = taken || maker->wanted[i].shape == thing->shape ||
              maker->wanted[i].colour == thing->colour;
  }
  maker->n_wanted++;
  return thing;
}

/* One to three things in every picture, none of them asked for; a place is left for one more. */
static void
fill_scenes (Maker *maker)
{
  for (guint i = 0; i < maker->options->n_picture; i++) {
    KsVisualScene *scene = &maker->scenes[i];

    scene->side = 2;
    scene->n_thing = 1 + ks_eval_random_pick (&maker->random, 2);
    for (guint k = 0; k < scene->n_thing; k++)
      scene->things[k] = draw_other (maker);
  }
}

/* In a place of its own, or at the end. */
static void
put (Maker *maker, guint picture, const KsVisualThing *thing)
{
  KsVisualScene *scene = &maker->scenes[picture % maker->options->n_picture];
  guint at = ks_eval_random_pick (&maker->random, scene->n_thing + 1);

  g_return_if_fail (scene->n_thing < scene->side * scene->side);
  scene->things[scene->n_thing++] = scene->things[at];
  scene->things[at] = *thing;
}

static char *
name_thing (const KsVisualThing *thing)
{
  return g_strdup_printf ("%s %s", ks_visual_colour_get_name (thing->colour),
                          ks_visual_shape_get_name (thing->shape));
}

static void
set_code (Maker *maker, char *out)
{
  for (guint i = 0; i < 5; i++)
    out[i] = ALPHABET[ks_eval_random_pick (&maker->random, (guint)strlen (ALPHABET))];
  out[5] = '\0';
}

/* --- kinds --- */

static void
expect_yes (Maker *maker, gboolean yes)
{
  maker->expect[0] = g_strdup (yes ? "Yes" : "No");
}

static void
make_yesno (Maker *maker)
{
  KsVisualThing *anchor = want (maker), *target = want (maker);
  g_autofree char *of_anchor = name_thing (anchor), *of_target = name_thing (target);
  gboolean yes = maker->options->index % 2 == 0;

  fill_scenes (maker);
  put (maker, maker->options->position, anchor);
  /* The target is somewhere in any case, where there is another picture. */
  if (yes)
    put (maker, maker->options->position, target);
  else if (maker->options->n_picture > 1)
    put (maker, maker->options->position + 1, target);
  maker->question = g_strdup_printf (
      "Exactly one of the pictures contains a %s. Does that picture also contain a "
      "%s? Please answer yes or no.",
      of_anchor, of_target);
  expect_yes (maker, yes);
}

static void
make_index (Maker *maker)
{
  g_autofree char *name = name_thing (want (maker));

  fill_scenes (maker);
  put (maker, maker->options->position, &maker->wanted[0]);
  maker->question = g_strdup_printf (
      "Which picture contains a %s? The first picture is number 1. Answer with the number only.",
      name);
  maker->expect[0] = g_strdup_printf ("%u", maker->options->position + 1);
}

static void
make_code (Maker *maker)
{
  fill_scenes (maker);
  set_code (maker, maker->scenes[maker->options->position].text);
  maker->question =
      g_strdup ("A code of five characters is written in one of the pictures. What is "
                "the code? Answer with the code only.");
  maker->expect[0] = g_strdup (maker->scenes[maker->options->position].text);
}

/* "a red star", "a red star and a blue ring" */
static char *
list_wanted (const Maker *maker, const char *between)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < maker->n_wanted; i++) {
    g_autofree char *name = name_thing (&maker->wanted[i]);

    g_string_append_printf (text, "%sa %s", i > 0 ? between : "", name);
  }
  return g_string_free (text, FALSE);
}

static void
make_several (Maker *maker, gboolean all)
{
  gboolean yes = maker->options->index % 2 == 0;
  guint n = 2 + maker->options->index / 2 % 2, n_put = all ? (yes ? n : n - 1) : (yes ? 1 : 0);
  g_autofree char *names = NULL;

  for (guint i = 0; i < n; i++)
    (void)want (maker);
  names = list_wanted (maker, all ? " and " : " or ");
  fill_scenes (maker);
  if (maker->options->n_picture == 1)
    maker->scenes[0].n_thing = 1; /* room for all of them */
  for (guint i = 0; i < n_put; i++)
    put (maker, maker->options->position + i, &maker->wanted[i]);
  maker->question = g_strdup_printf (
      all ? "Do the pictures, taken together, contain %s, all of them? Please answer yes or no."
          : "Does any of the pictures contain %s? Please answer yes or no.",
      names);
  expect_yes (maker, yes);
}

static void
make_all (Maker *maker)
{
  make_several (maker, TRUE);
}

static void
make_any (Maker *maker)
{
  make_several (maker, FALSE);
}

static void
make_count (Maker *maker)
{
  g_autofree char *name = name_thing (want (maker));
  guint n = 1 + ks_eval_random_pick (&maker->random, MIN (3, maker->options->n_picture));

  fill_scenes (maker);
  for (guint i = 0; i < n; i++)
    put (maker, maker->options->position + i, &maker->wanted[0]);
  maker->question =
      g_strdup_printf ("How many of the pictures contain a %s? Answer with the number only.", name);
  maker->expect[0] = g_strdup_printf ("%u", n);
}

static void
make_grid (Maker *maker)
{
  g_autofree char *name = name_thing (want (maker));
  guint side = maker->options->grid, at;

  for (guint i = 0; i < maker->options->n_picture; i++) {
    maker->scenes[i].side = side;
    maker->scenes[i].n_thing = side * side;
    for (guint k = 0; k < side * side; k++)
      maker->scenes[i].things[k] = draw_other (maker);
  }
  at = ks_eval_random_pick (&maker->random, side * side);
  maker->scenes[maker->options->position].things[at] = maker->wanted[0];
  maker->question = g_strdup_printf (
      "Every picture is a grid of %u rows and %u columns. Where is the %s? Answer with three "
      "numbers, each from 1 on: picture, row, column.",
      side, side, name);
  maker->expect[0] = g_strdup_printf ("%u", maker->options->position + 1);
  maker->expect[1] = g_strdup_printf ("%u", at / side + 1);
  maker->expect[2] = g_strdup_printf ("%u", at % side + 1);
}

/* Sentences stand between the pictures; what is asked for is in one of them, or in a picture. */
static void
make_text (Maker *maker)
{
  guint position = maker->options->position;
  char code[8];

  fill_scenes (maker);
  set_code (maker, code);
  for (guint i = 0; i < maker->options->n_picture; i++)
    maker->notes[i] = ks_synth_make_sentence (&maker->random);
  if (maker->options->index % 2 == 0) {
    g_free (maker->notes[position]);
    maker->notes[position] = g_strdup_printf ("The mark on the old gate is %s.", code);
    maker->question = g_strdup ("What is the mark on the old gate? Answer with the mark only.");
  } else {
    g_strlcpy (maker->scenes[position].text, code, sizeof maker->scenes[position].text);
    maker->question = g_strdup ("A code of five characters is written in one of the pictures. What "
                                "is the code? Answer with the code only.");
  }
  maker->expect[0] = g_strdup (code);
}

typedef double (*ScoreFunc) (const char *metric, const char *prediction, const char *const *expect);

static double score_yesno (const char *metric, const char *prediction, const char *const *expect);
static double score_number (const char *metric, const char *prediction, const char *const *expect);
static double score_code (const char *metric, const char *prediction, const char *const *expect);
static double score_grid (const char *metric, const char *prediction, const char *const *expect);

/* In the order of ks_eval_visual_kinds. */
static const struct {
  void (*make) (Maker *);
  ScoreFunc score;
  const char *metrics[5];
} kinds[] = {
    {make_yesno, score_yesno, {"accuracy"}},
    {make_index, score_number, {"accuracy"}},
    {make_code, score_code, {"accuracy"}},
    {make_all, score_yesno, {"accuracy"}},
    {make_any, score_yesno, {"accuracy"}},
    {make_count, score_number, {"accuracy"}},
    {make_grid, score_grid, {"accuracy", "picture", "row", "column"}},
    {make_text, score_code, {"accuracy"}},
    {make_index, score_number, {"accuracy"}},
};

static guint
find_kind (const char *name)
{
  guint i = 0;

  while (ks_eval_visual_kinds[i] != NULL && strcmp (ks_eval_visual_kinds[i], name) != 0)
    i++;
  return i;
}

gboolean
ks_eval_visual_is_kind (const char *bench)
{
  return ks_eval_visual_kinds[find_kind (bench)] != NULL;
}

/* --- turns --- */

static void
add_picture (const Maker *maker, KsEvalTurn *turn, guint i, GString *text)
{
  g_autoptr (GBytes) base64 = ks_visual_scene_draw (&maker->scenes[i], maker->options->size_px);

  g_string_append_printf (text, "Picture %u:\n", i + 1);
  ks_eval_turn_add_base64 (turn, base64)->at = text->len;
  g_string_append_c (text, '\n');
  if (maker->notes[i] != NULL)
    g_string_append_printf (text, "%s\n", maker->notes[i]);
}

static void
set_text (KsEvalTurn *turn, GString *take_text)
{
  g_free (turn->text);
  turn->text = g_string_free (take_text, FALSE);
}

static void
add_turns (const Maker *maker, KsEvalItem *item, gboolean one_each)
{
  const KsEvalVisualOptions *options = maker->options;
  guint n_turn = one_each ? options->n_picture : 1, n_each = one_each ? 1 : options->n_picture;
  gboolean after = one_each || options->after;
  KsEvalTurn *turn = NULL;

  for (guint t = 0; t < n_turn; t++) {
    GString *text = g_string_new (NULL);

    turn = ks_eval_item_add_turn (item, "", after ? "I have looked at it." : NULL);
    for (guint i = 0; i < n_each; i++)
      add_picture (maker, turn, t * n_each + i, text);
    if (!after)
      g_string_append (text, maker->question);
    set_text (turn, text);
  }
  if (after)
    turn = ks_eval_item_add_turn (item, maker->question, NULL);
  for (guint i = 0; maker->expect[i] != NULL; i++)
    ks_eval_turn_add_expected (turn, maker->expect[i]);
}

static gboolean
check_options (const KsEvalVisualOptions *options, GError **error)
{
  const char *problem = NULL;

  if (options->n_picture < 1 || options->n_picture > MAX_PICTURES)
    problem = "1 to 50 pictures";
  else if (options->position >= options->n_picture)
    problem = "evidence in one of its pictures";
  else if (options->grid < 1 || options->grid > 4)
    problem = "a grid of 1 to 4 rows";
  else if (options->size_px < 64 || options->size_px > 1024)
    problem = "pictures of 64 to 1024 pixels";
  if (problem == NULL)
    return TRUE;
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE, "a visual haystack has %s", problem);
  return FALSE;
}

KsEvalItem *
ks_eval_visual_make (const char *kind, const KsEvalVisualOptions *options, GError **error)
{
  Maker maker = {.options = options};
  guint at = find_kind (kind), percent;
  g_autofree char *part = NULL, *id = NULL;
  KsEvalItem *item;

  g_return_val_if_fail (ks_eval_visual_kinds[at] != NULL, NULL);
  if (!check_options (options, error))
    return NULL;
  percent = options->n_picture > 1 ? options->position * 100 / (options->n_picture - 1) : 0;
  part = g_strdup_printf ("%u/%u", options->n_picture, percent);
  id = g_strdup_printf ("%" G_GUINT64_FORMAT "-%u-%u-%u", options->seed, options->n_picture,
                        options->position, options->index);
  maker.random =
      ks_eval_random (options->seed, ((guint64)options->n_picture << 40) +
                                         ((guint64)options->position << 32) + options->index);
  kinds[at].make (&maker);
  item = ks_eval_item_new (kind, part, id);
  add_turns (&maker, item, strcmp (kind, "visual-turns") == 0);
  for (guint i = 0; i < MAX_PICTURES; i++)
    g_free (maker.notes[i]);
  for (guint i = 0; i < G_N_ELEMENTS (maker.expect); i++)
    g_free (maker.expect[i]);
  g_free (maker.question);
  return item;
}

/* --- scores --- */

static double
score_yesno (const char *metric, const char *prediction, const char *const *expect)
{
  return ks_eval_mme_is_correct (prediction, expect[0], FALSE);
}

/* The number that begins at or behind *io_at; FALSE when there is none. */
static gboolean
next_number (const char **io_at, guint64 *out)
{
  const char *p = *io_at;

  while (*p != '\0' && !g_ascii_isdigit (*p))
    p++;
  if (*p == '\0')
    return FALSE;
  *out = g_ascii_strtoull (p, (char **)io_at, 10);
  return TRUE;
}

static double
score_number (const char *metric, const char *prediction, const char *const *expect)
{
  guint64 value = 0;

  return next_number (&prediction, &value) && value == g_ascii_strtoull (expect[0], NULL, 10);
}

static double
score_code (const char *metric, const char *prediction, const char *const *expect)
{
  g_autofree char *in = g_ascii_strup (prediction, -1);
  gsize n = strlen (expect[0]);

  for (const char *at = strstr (in, expect[0]); at != NULL; at = strstr (at + 1, expect[0])) {
    gboolean begins = at == in || !g_ascii_isalnum (at[-1]);

    if (begins && !g_ascii_isalnum (at[n]))
      return 1;
  }
  return 0;
}

static double
score_grid (const char *metric, const char *prediction, const char *const *expect)
{
  gboolean right[3] = {FALSE, FALSE, FALSE};

  for (guint i = 0; i < 3; i++) {
    guint64 value = 0;

    if (!next_number (&prediction, &value))
      break;
    right[i] = value == g_ascii_strtoull (expect[i], NULL, 10);
  }
  if (strcmp (metric, "picture") == 0)
    return right[0];
  if (strcmp (metric, "row") == 0)
    return right[1];
  if (strcmp (metric, "column") == 0)
    return right[2];
  return right[0] && right[1] && right[2];
}

const char *const *
ks_eval_visual_get_metrics (const char *kind)
{
  guint at = find_kind (kind);

  g_return_val_if_fail (ks_eval_visual_kinds[at] != NULL, NULL);
  return kinds[at].metrics;
}

double
ks_eval_visual_score (const char *kind, const char *metric, const char *prediction,
                      const char *const *expect)
{
  guint at = find_kind (kind);

  g_return_val_if_fail (ks_eval_visual_kinds[at] != NULL, 0);
  return kinds[at].score (metric, prediction, expect);
}
