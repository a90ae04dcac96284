/* eval-synth-turns.c - facts told over several turns and asked for later; see eval-synth.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-synth-internal.h"

#include "app/ks-error.h"

#include <string.h>

#define N_FACT 6u
#define OTHER_SENTENCES 6u

typedef enum { PLACE, CODE, SHIP, PRICE, PLATFORM, FRUIT } Fact;

/* %1: a person, %2: what is asked for. */
static const struct {
  const char *statement, *question;
} facts[N_FACT] = {
    [PLACE] = {"By the way, %1 left the suitcase in the %2.",
               "In which place did %1 leave the suitcase?"},
    [CODE] = {"Before I forget it: %1 gave me %2 as the code of the side door.",
              "Which code of the side door did %1 give me?"},
    [SHIP] = {"The little boat that %1 rents every summer is called the %2.",
              "What is the boat called that %1 rents?"},
    [PRICE] = {"%1 paid exactly %2 euros for the old piano.",
               "How many euros did %1 pay for the piano?"},
    [PLATFORM] = {"Someone has to fetch %1: the train arrives on platform %2.",
                  "On which platform does the train of %1 arrive?"},
    [FRUIT] = {"For the cake %1 wants nothing but %2.", "Which fruit does %1 want for the cake?"},
};

static const char *const people[] = {"Agnes",  "Bruno",   "Clara",    "Dorian", "Edith",
                                     "Felix",  "Greta",   "Hannes",   "Irene",  "Jasper",
                                     "Katrin", "Leopold", "Mathilda", "Nils",   "Ottilie",
                                     "Philip", "Rosalie", "Stefan",   "Tilda",  "Ulrich"};
static const char *const rooms[] = {"greenhouse", "laundry", "observatory", "workshop", "cloakroom",
                                    "gallery",    "brewery", "boathouse",   "pharmacy", "aquarium"};
static const char *const fruits[] = {"gooseberries", "apricots", "cranberries", "pears",
                                     "blackberries", "plums",    "raspberries", "quinces",
                                     "cherries",     "figs"};

static char *
draw_answer (KsSynth *synth, Fact fact)
{
  KsEvalRandom *random = &synth->random;

  switch (fact) {
  case PLACE:
    return g_strdup (rooms[ks_eval_random_pick (random, G_N_ELEMENTS (rooms))]);
  case CODE:
    return g_strdup_printf ("%u", 1000 + ks_eval_random_pick (random, 9000));
  case SHIP:
    return ks_synth_make_pair (ks_eval_random_next (random), 0);
  case PRICE:
    return g_strdup_printf ("%u", 210 + ks_eval_random_pick (random, 780));
  case PLATFORM:
    return g_strdup_printf ("%u", 11 + ks_eval_random_pick (random, 89));
  default:
    return g_strdup (fruits[ks_eval_random_pick (random, G_N_ELEMENTS (fruits))]);
  }
}

static char *
fill (const char *pattern, const char *person, const char *answer)
{
  GString *out = g_string_new (pattern);

  g_string_replace (out, "%1", person, 0);
  g_string_replace (out, "%2", answer, 0);
  return g_string_free (out, FALSE);
}

/* Turn number i: n sentences of filler, the fact in their middle. */
static char *
build_turn (KsSynth *synth, guint i, guint n)
{
  GString *text = g_string_new (NULL);

  for (guint k = 0; k < n; k++) {
    if (k == n / 2)
      g_string_append_printf (text, "%s ", (char *)g_ptr_array_index (synth->needles, i));
    g_string_append_printf (text, "%s ", ks_synth_get_filler (synth, k * N_FACT + i));
  }
  if (n == 0)
    g_string_append (text, g_ptr_array_index (synth->needles, i));
  g_strchomp (text->str);
  return g_string_free (text, FALSE);
}

static char *
build_all (KsSynth *synth, guint n)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < N_FACT; i++) {
    g_autofree char *turn = build_turn (synth, i, n);

    g_string_append_printf (text, "%s\n", turn);
  }
  return g_string_free (text, FALSE);
}

void
ks_synth_add_other_turns (KsSynth *synth, KsEvalItem *item, guint n)
{
  for (guint i = 0; i < n; i++) {
    g_autoptr (GString) text = g_string_new ("Now something else.");

    for (guint k = 0; k < OTHER_SENTENCES; k++) {
      g_autofree char *sentence = ks_synth_make_sentence (&synth->filling);

      g_string_append_printf (text, " %s", sentence);
    }
    ks_eval_item_add_turn (item, text->str, "All right.");
  }
}

/* Each fact in its turn, other turns, then every question in a turn of its own. */
static void
add_turns (KsSynth *synth, KsEvalItem *item, char **questions, guint n)
{
  guint order[N_FACT];

  for (guint i = 0; i < N_FACT; i++) {
    g_autofree char *text = build_turn (synth, i, n);

    ks_eval_item_add_turn (item, text, "Noted.");
  }
  ks_synth_add_other_turns (synth, item, synth->options->n_other);
  ks_eval_random_shuffle (&synth->random, order, N_FACT);
  for (guint i = 0; i < N_FACT; i++)
    ks_eval_turn_add_expected (ks_eval_item_add_turn (item, questions[order[i]], NULL),
                               synth->expect[order[i]]);
}

gboolean
ks_synth_make_turns (KsSynth *synth, KsEvalItem *item, guint room, GError **error)
{
  guint kinds[N_FACT], persons[G_N_ELEMENTS (people)], n = 0, n_frame = 0;
  g_auto (GStrv) questions = g_new0 (char *, N_FACT + 1);

  ks_eval_random_shuffle (&synth->random, kinds, N_FACT);
  ks_eval_random_shuffle (&synth->random, persons, G_N_ELEMENTS (people));
  for (guint i = 0; i < N_FACT; i++) {
    const char *person = people[persons[i]];
    g_autofree char *answer = draw_answer (synth, kinds[i]);

    ks_synth_add_needle (synth, fill (facts[kinds[i]].statement, person, answer), 0);
    questions[i] = fill (facts[kinds[i]].question, person, answer);
    ks_synth_add_expected (synth, answer);
    /* each question, its frame and the answer, and the frame of its fact */
    n_frame += synth->count (questions[i], synth->user) + 24 + 32 + 24;
  }
  if (!ks_synth_fit (synth, build_all, 0, room > n_frame ? room - n_frame : 0, &n, error))
    return FALSE;
  item->group = g_strdup (item->id);
  add_turns (synth, item, questions, n);
  return TRUE;
}
