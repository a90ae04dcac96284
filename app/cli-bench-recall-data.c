/* cli-bench-recall-data.c - see cli-bench-recall-data.h.
 * Numbers come from splitmix64, so that the series does not depend on a library's generator. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-bench-recall-data.h"

#include <string.h>

#define MIN_FACTS 3u
#define MAX_FACTS 9u

/* %1 is replaced by the subject, %2 by the value. */
typedef enum { VALUE_CODE, VALUE_ROOM, VALUE_COLOUR, VALUE_CITY, VALUE_WORD, VALUE_PET } ValueKind;
typedef enum { SUBJECT_PERSON, SUBJECT_PLACE, SUBJECT_THING } SubjectKind;

typedef struct {
  SubjectKind subject;
  ValueKind value;
  const char *statements[3];
  const char *question;
} FactKind;

static const FactKind fact_kinds[] = {
    {SUBJECT_PERSON,
     VALUE_CODE,
     {"The locker code of %1 is %2.", "Please note that the locker code of %1 is %2.",
      "%1 has a locker, and the locker code of %1 is %2."},
     "What is the locker code of %1?"},
    {SUBJECT_PERSON,
     VALUE_ROOM,
     {"%1 works in room %2.", "Since Monday %1 works in room %2.",
      "You will find %1 at the end of the hall: %1 works in room %2."},
     "In which room does %1 work?"},
    {SUBJECT_PERSON,
     VALUE_CITY,
     {"%1 was born in %2.", "As a child %1 moved often, but %1 was born in %2.",
      "It is not well known that %1 was born in %2."},
     "In which city was %1 born?"},
    {SUBJECT_PERSON,
     VALUE_PET,
     {"The cat of %1 is called %2.", "%1 has a cat, and the cat of %1 is called %2.",
      "Everybody knows that the cat of %1 is called %2."},
     "What is the name of the cat of %1?"},
    {SUBJECT_PERSON,
     VALUE_COLOUR,
     {"The bicycle of %1 is %2.", "The bicycle of %1 is %2 and stands in the yard.",
      "In front of the house you can see that the bicycle of %1 is %2."},
     "What colour is the bicycle of %1?"},
    {SUBJECT_PLACE,
     VALUE_WORD,
     {"The password for the %1 is %2.", "From today the password for the %1 is %2.",
      "If you are asked for it, the password for the %1 is %2."},
     "What is the password for the %1?"},
    {SUBJECT_PLACE,
     VALUE_CODE,
     {"The telephone number of the %1 is %2.", "The new telephone number of the %1 is %2.",
      "In an emergency, remember that the telephone number of the %1 is %2."},
     "What is the telephone number of the %1?"},
    {SUBJECT_THING,
     VALUE_CODE,
     {"The serial number of the %1 is %2.",
      "On the label it says that the serial number of the %1 is %2.",
      "For the records, the serial number of the %1 is %2."},
     "What is the serial number of the %1?"},
    {SUBJECT_THING,
     VALUE_COLOUR,
     {"The %1 is painted %2.", "After the repair the %1 is painted %2.",
      "Nobody remembers why the %1 is painted %2."},
     "What colour is the %1 painted?"},
};

static const char *const people[] = {"Maria",  "Tobias", "Yusuf",  "Helena", "Viktor", "Amina",
                                     "Jonas",  "Priya",  "Oscar",  "Ingrid", "Marek",  "Rosa",
                                     "Daniel", "Keiko",  "Samuel", "Nadia",  "Peter",  "Lucia",
                                     "Thomas", "Elena",  "David",  "Sofia",  "Martin", "Clara"};
static const char *const places[] = {"library",   "archive", "workshop", "greenhouse", "laboratory",
                                     "reception", "canteen", "harbour",  "museum",     "garage"};
static const char *const things[] = {"water pump", "old boat", "printer",   "coffee machine",
                                     "generator",  "ladder",   "projector", "garden gate",
                                     "tractor",    "piano"};
static const char *const colours[] = {"red",    "blue",  "green", "yellow", "orange",
                                      "purple", "brown", "white", "black",  "silver"};
static const char *const cities[] = {"Lisbon", "Oslo",   "Vienna", "Dublin", "Prague",
                                     "Madrid", "Warsaw", "Athens", "Boston", "Toronto"};
static const char *const words[] = {"falcon",  "meadow", "lantern", "copper",  "walnut",
                                    "thunder", "pepper", "harvest", "crystal", "marble"};
static const char *const pets[] = {"Biscuit", "Pepper", "Shadow", "Ginger", "Smokey",
                                   "Tiger",   "Cookie", "Lucky",  "Oliver", "Daisy"};

/* Paragraphs about other things; none of them answers a question. */
static const char *const fillers[] = {
    "Bread needs time more than anything else. The dough rests in a warm corner of the kitchen "
    "until it "
    "has grown to twice its size, and only then is it shaped. A hot oven gives a thick crust, and "
    "a bowl "
    "of water beside the loaf keeps it from drying out.",
    "Rivers move more soil than people think. After heavy rain the water turns the colour of clay, "
    "and "
    "where the current slows down, behind a bend or an island, the fine grains sink and build new "
    "land. "
    "Farmers have known this for as long as there have been fields.",
    "A good map leaves things out. The person who draws it has to decide what a walker needs, and "
    "everything else only makes the paper dark. Contour lines, paths and streams are enough for "
    "most "
    "journeys, and a scale that is easy to measure with a thumb.",
    "The theatre was full long before the doors should have opened. People stood along the walls "
    "and "
    "talked about the last play, which had been a disappointment. When the lights went down there "
    "was a "
    "silence, and then somebody laughed at the back.",
    "Clouds are named for their shape and for their height. The high ones are made of ice and look "
    "like "
    "feathers, the low ones are made of drops and look like wool. A grey sheet without any edges "
    "usually "
    "means that the rain will last until the evening.",
    "Learning an instrument is a matter of small steps. A few minutes on every day of the week do "
    "more "
    "than a long afternoon on Sunday. The fingers learn while one sleeps, teachers say, and a "
    "piece that "
    "was impossible yesterday may suddenly be easy.",
    "The market opens early in the morning, when the streets are still wet. Fish lies on ice, "
    "cheese is "
    "cut with a wire, and the first customers are cooks who look for something special. By noon "
    "the stalls "
    "are empty and the pigeons take over the square.",
    "Old houses are warm in a way that new ones are not. Their walls are thick, their windows are "
    "small, "
    "and the stove in the middle heats every room a little. It takes a long time to make them "
    "warm, but "
    "then they stay so for a whole night.",
    "Bees find their way by the sun. Even behind a cloud they see where it stands, because the "
    "light of "
    "the sky has a pattern that our eyes do not notice. When they come home they dance, and the "
    "others "
    "understand from the dance how far they have to fly.",
    "The committee met for two hours and decided very little. Some members wanted to repair the "
    "roof "
    "first, others the heating. In the end they agreed to ask for offers and to meet again in "
    "autumn, when "
    "the accounts of the year would be ready.",
    "Glass is made from sand, but not from any sand. It must be clean and fine, and it is mixed "
    "with soda "
    "so that it melts more easily. The workers take the glowing mass from the furnace with a long "
    "pipe, and "
    "they have only a moment to give it a shape.",
    "Mountain weather changes quickly. A morning without a single cloud can end in a storm, and "
    "whoever "
    "walks up in a shirt should carry a coat. The huts have an oven and blankets, and nobody is "
    "sent away, "
    "even when every bed is taken.",
    "A letter used to take several weeks to cross the ocean. Merchants wrote the same text more "
    "than once "
    "and sent it with different ships, since one of them might be lost. The answers arrived in the "
    "wrong "
    "order, and it was an art to make sense of them.",
    "Cats sleep for most of the day, yet they are awake at once when something moves. Their ears "
    "turn "
    "toward a sound before the head does. People who live with them learn to close the doors of "
    "the "
    "kitchen, above all when there is chicken on the table.",
    "The bridge was closed for the summer. Engineers had found rust in the cables, and every one "
    "of them "
    "had to be cleaned and painted again. The ferry, which had almost been forgotten, carried more "
    "passengers in those months than in ten years before.",
    "Chess is older than most of the countries in which it is played. The rules have changed "
    "several "
    "times, and the queen was once the weakest piece on the board. Today a telephone plays better "
    "than any "
    "human being, but the clubs are as full as ever.",
    "Apples keep through the winter if they do not touch each other. They lie on wooden shelves in "
    "the "
    "cellar, with paper below them, and once a week somebody looks for brown spots. One bad apple "
    "really "
    "does spoil the others, because of a gas that it gives off.",
    "The desert is not empty. At night small animals come out of their holes, and after one rain "
    "in spring "
    "the ground is covered with flowers for a few days. Travellers who see it then do not believe "
    "how the "
    "place looks in August.",
    "A dictionary is never finished. While the last volume is being printed, the first one is "
    "already out "
    "of date. The editors collect new words on little cards, argue about them at lunch, and throw "
    "most of "
    "them away again after a few years.",
    "Trains changed the way people thought about time. Before them every town had its own noon, "
    "when the "
    "sun stood highest. A timetable needs one clock for all, and so the railway companies decided "
    "what "
    "time it was, long before the governments did.",
    "Salt was once so valuable that wars were fought over it. It kept meat and fish from going "
    "bad, and "
    "whoever owned a mine or a warm coast was rich. Today it is thrown on roads in winter, and "
    "nobody "
    "gives it a second thought.",
    "The school garden is looked after by the younger children. They grow beans, carrots and far "
    "too much "
    "lettuce. In June they sell what they have at the gate, and the money pays for a day at the "
    "sea, where "
    "it usually rains.",
    "Whales sing, and their songs travel through the water for hundreds of miles. Each group has a "
    "song "
    "of its own that changes a little from year to year. Nobody knows for certain what the songs "
    "are for, "
    "although there is no lack of opinions.",
    "Painting a room looks easy. The difficult part comes before the first stroke: moving the "
    "furniture, "
    "filling the holes, covering the floor. Those who skip it save an hour and regret it for "
    "years, "
    "whenever the light falls on the wall from the side.",
    "The newspaper had a page on which readers could exchange things. A sewing machine for a tent, "
    "French "
    "lessons for firewood, a wedding dress for almost anything. Some people bought the paper only "
    "for that "
    "page, and the editors knew it very well.",
    "Snow is quiet because it is full of air. The sound of a street sinks into it as into a "
    "cushion, and "
    "in the first morning after a heavy fall even a city seems to hold its breath. By afternoon it "
    "is grey, "
    "and the noise has come back.",
    "A sailor learns knots before anything else. A good one holds under load and opens with two "
    "fingers. "
    "A bad one does the opposite, and it always does so in the dark, with cold hands, when the "
    "sail has "
    "to come down at once.",
    "Coffee came to the town with a travelling merchant. He gave it away for nothing during the "
    "first week "
    "and asked a high price in the second. The doctors warned against it, the innkeepers "
    "complained, and "
    "within a year every street had a coffee house.",
    "The forest is thinned every ten years. The foresters mark the trees that have to go with a "
    "stripe, "
    "and they choose the weak ones, so that the strong ones get more light. It takes three "
    "generations "
    "until a young oak can be cut.",
    "Nothing in the attic had been moved for a long time. There were suitcases, a broken chair, "
    "and boxes "
    "full of photographs on which nobody recognised anyone. The dust lay so thick that one could "
    "have "
    "written a whole letter in it.",
};

typedef struct {
  guint64 state;
} Random;

static guint64
next_random (Random *random)
{
  guint64 z = (random->state += G_GUINT64_CONSTANT (0x9e3779b97f4a7c15));

  z = (z ^ (z >> 30)) * G_GUINT64_CONSTANT (0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * G_GUINT64_CONSTANT (0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static guint
pick (Random *random, guint n)
{
  return (guint)(next_random (random) % n);
}

/* The first n of a random order of 0 .. n_all-1. */
static void
shuffle (Random *random, guint *order, guint n_all)
{
  for (guint i = 0; i < n_all; i++)
    order[i] = i;
  for (guint i = n_all; i > 1; i--) {
    guint j = pick (random, i), t = order[i - 1];

    order[i - 1] = order[j];
    order[j] = t;
  }
}

static char *
make_value (Random *random, ValueKind kind)
{
  switch (kind) {
  case VALUE_CODE:
    return g_strdup_printf ("%u", 1000 + pick (random, 9000));
  case VALUE_ROOM:
    return g_strdup_printf ("%u", 100 + pick (random, 900));
  case VALUE_COLOUR:
    return g_strdup (colours[pick (random, G_N_ELEMENTS (colours))]);
  case VALUE_CITY:
    return g_strdup (cities[pick (random, G_N_ELEMENTS (cities))]);
  case VALUE_WORD:
    return g_strdup (words[pick (random, G_N_ELEMENTS (words))]);
  default:
    return g_strdup (pets[pick (random, G_N_ELEMENTS (pets))]);
  }
}

static char *
fill (const char *pattern, const char *subject, const char *value)
{
  GString *out = g_string_new (pattern);

  g_string_replace (out, "%1", subject, 0);
  g_string_replace (out, "%2", value, 0);
  return g_string_free (out, FALSE);
}

static guint
count_words (const char *text)
{
  guint n = 0;

  for (const char *p = text; *p != '\0'; p++)
    n += *p == ' ' || *p == '\n';
  return n + 1;
}

/* Subjects are used once in a prompt: two facts of one kind about one subject would contradict. */
typedef struct {
  guint people[G_N_ELEMENTS (people)], places[G_N_ELEMENTS (places)], things[G_N_ELEMENTS (things)];
} Subjects;

static const char *
get_subject (const Subjects *subjects, SubjectKind kind, guint i)
{
  if (kind == SUBJECT_PERSON)
    return people[subjects->people[i]];
  if (kind == SUBJECT_PLACE)
    return places[subjects->places[i]];
  return things[subjects->things[i]];
}

static void
add_fact (BenchRecallPrompt *prompt, Random *random, const Subjects *subjects, guint i,
          GString *text)
{
  const FactKind *kind = &fact_kinds[pick (random, G_N_ELEMENTS (fact_kinds))];
  const char *subject = get_subject (subjects, kind->subject, i);
  g_autofree char *value = make_value (random, kind->value);
  g_autofree char *statement =
      fill (kind->statements[pick (random, G_N_ELEMENTS (kind->statements))], subject, value);

  g_string_append (text, statement);
  if (i != prompt->fact_at)
    return;
  prompt->question = fill (kind->question, subject, value);
  prompt->value = g_steal_pointer (&value);
}

BenchRecallPrompt *
bench_recall_prompt_new (guint64 seed, guint index, guint n_word)
{
  BenchRecallPrompt *prompt = g_new0 (BenchRecallPrompt, 1);
  Random random = {seed * G_GUINT64_CONSTANT (0x9e3779b97f4a7c15) + index * 1000003u + 1};
  GString *text = g_string_new (NULL);
  guint order[G_N_ELEMENTS (fillers)], n_filler = 0, n_words = 0, n_done = 0;
  Subjects subjects;

  (void)next_random (&random);
  prompt->n_fact = MIN_FACTS + pick (&random, MAX_FACTS - MIN_FACTS + 1);
  prompt->fact_at = pick (&random, prompt->n_fact);
  shuffle (&random, order, G_N_ELEMENTS (fillers));
  shuffle (&random, subjects.people, G_N_ELEMENTS (people));
  shuffle (&random, subjects.places, G_N_ELEMENTS (places));
  shuffle (&random, subjects.things, G_N_ELEMENTS (things));
  while (n_words < n_word && n_filler < G_N_ELEMENTS (fillers))
    n_words += count_words (fillers[order[n_filler++]]);
  for (guint i = 0; i < n_filler; i++) {
    /* Facts are spread evenly; each stands behind a paragraph as one of its own. */
    guint n_due = (i + 1) * prompt->n_fact / n_filler;

    g_string_append (text, fillers[order[i]]);
    g_string_append (text, "\n\n");
    for (; n_done < n_due; n_done++) {
      add_fact (prompt, &random, &subjects, n_done, text);
      g_string_append (text, "\n\n");
    }
  }
  for (; n_done < prompt->n_fact; n_done++) {
    add_fact (prompt, &random, &subjects, n_done, text);
    g_string_append (text, "\n\n");
  }
  prompt->text = g_string_free (text, FALSE);
  return prompt;
}

void
bench_recall_prompt_free (BenchRecallPrompt *prompt)
{
  if (prompt == NULL)
    return;
  g_free (prompt->text);
  g_free (prompt->question);
  g_free (prompt->value);
  g_free (prompt);
}

gboolean
bench_recall_is_right (const char *answer, const char *value)
{
  g_autofree char *in = g_utf8_casefold (answer, -1), *want = g_utf8_casefold (value, -1);
  gsize n = strlen (want);

  for (const char *at = strstr (in, want); at != NULL; at = strstr (at + 1, want)) {
    gboolean begins = at == in || !g_ascii_isalnum (at[-1]);

    if (begins && !g_ascii_isalnum (at[n]))
      return TRUE;
  }
  return FALSE;
}
