/* eval-synth-words.c - words and filler sentences of the made-up text tests; see eval-synth.h.
 * Sentences are put together from four lists, so that a long text hardly repeats itself. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-synth-internal.h"

const char *const ks_synth_nouns[] = {
    "anchor",   "apron",    "arrow",    "attic",   "badge",    "balcony", "barrel",  "basin",
    "basket",   "beacon",   "bell",     "bench",   "blanket",  "boat",    "bottle",  "bracket",
    "branch",   "brick",    "bridge",   "broom",   "bucket",   "buckle",  "button",  "cabin",
    "candle",   "canvas",   "carpet",   "castle",  "chain",    "chapel",  "chest",   "chimney",
    "circle",   "cliff",    "cloud",    "coat",    "column",   "compass", "copper",  "corner",
    "cottage",  "cradle",   "crane",    "crown",   "cup",      "curtain", "cushion", "desert",
    "desk",     "ditch",    "dome",     "door",    "drawer",   "drum",    "engine",  "fabric",
    "feather",  "fence",    "ferry",    "field",   "flag",     "flute",   "forest",  "fork",
    "fountain", "frame",    "garden",   "gate",    "glass",    "glove",   "grain",   "guitar",
    "hammer",   "harbour",  "harp",     "hat",     "hedge",    "helmet",  "hill",    "hinge",
    "honey",    "hook",     "island",   "jacket",  "jar",      "kettle",  "key",     "kite",
    "ladder",   "lake",     "lamp",     "lantern", "leaf",     "lemon",   "letter",  "lever",
    "mantle",   "map",      "marble",   "market",  "mast",     "meadow",  "medal",   "mill",
    "mirror",   "mountain", "nail",     "needle",  "nest",     "net",     "oar",     "orchard",
    "oven",     "paddle",   "palace",   "paper",   "path",     "pearl",   "pebble",  "pencil",
    "piano",    "pillar",   "pillow",   "pipe",    "planet",   "plate",   "plough",  "pocket",
    "pond",     "porch",    "postcard", "pot",     "quarry",   "quilt",   "raft",    "rail",
    "ribbon",   "ring",     "river",    "road",    "roof",     "rope",    "saddle",  "sail",
    "scarf",    "shelf",    "shell",    "shield",  "ship",     "shovel",  "signal",  "silver",
    "sledge",   "spoon",    "spring",   "stable",  "stair",    "stamp",   "station", "statue",
    "stone",    "stool",    "storm",    "stove",   "straw",    "street",  "summit",  "table",
    "tailor",   "tent",     "thread",   "ticket",  "tile",     "timber",  "torch",   "tower",
    "train",    "tray",     "trumpet",  "tunnel",  "umbrella", "valley",  "vase",    "velvet",
    "village",  "violin",   "wagon",    "wall",    "wallet",   "wheel",   "whistle", "window",
};
const guint ks_synth_n_noun = G_N_ELEMENTS (ks_synth_nouns);

const char *const ks_synth_adjectives[] = {
    "amber",  "ancient", "autumn",  "bitter", "blue",    "bold",    "brave",   "bright",  "broad",
    "broken", "calm",    "clever",  "cold",   "crimson", "crooked", "curious", "damp",    "dark",
    "deep",   "distant", "dusty",   "eager",  "early",   "empty",   "faded",   "fancy",   "fierce",
    "frozen", "gentle",  "golden",  "grand",  "green",   "grey",    "happy",   "heavy",   "hidden",
    "hollow", "humble",  "icy",     "idle",   "ivory",   "jolly",   "late",    "lazy",    "lonely",
    "loud",   "lucky",   "mellow",  "misty",  "modest",  "narrow",  "noble",   "orange",  "pale",
    "plain",  "polite",  "proud",   "purple", "quick",   "quiet",   "rapid",   "rough",   "round",
    "royal",  "rusty",   "scarlet", "secret", "shallow", "sharp",   "shiny",   "silent",  "simple",
    "sleepy", "slow",    "small",   "smooth", "solid",   "steady",  "steep",   "strange", "sunny",
    "sweet",  "swift",   "tall",    "tender", "tidy",    "tiny",    "warm",    "weary",   "white",
    "wide",   "wild",    "winter",  "wise",   "wooden",  "yellow",
};
const guint ks_synth_n_adjective = G_N_ELEMENTS (ks_synth_adjectives);

static const char *const times[] = {
    "In the morning",      "Before noon",
    "Late in the evening", "During the first rain",
    "On a windy day",      "After the long winter",
    "When the bells rang", "Shortly before sunset",
    "At the end of May",   "Some years ago",
    "Every other week",    "On the way home",
    "While others slept",  "Once more",
    "Without any hurry",   "To the surprise of all",
    "As so often",         "Between two showers",
    "With the first snow", "Just in time",
};

static const char *const subjects[] = {
    "the gardener",     "an old sailor",     "the baker's daughter", "a tall stranger",
    "the new teacher",  "the ferryman",      "my neighbour",         "the watchmaker",
    "a young musician", "the night guard",   "the postwoman",        "a group of hikers",
    "the carpenter",    "the librarian",     "an elderly couple",    "the stationmaster",
    "the shepherd",     "a travelling cook", "the glazier",          "the mayor's cousin",
    "the weaver",       "a retired pilot",   "the innkeeper",        "the potter",
};

static const char *const actions[] = {
    "carried a heavy box",
    "looked for a lost umbrella",
    "talked about the weather",
    "painted a row of chairs",
    "counted the empty bottles",
    "waited for a friend",
    "mended a torn net",
    "sang an old song",
    "bought two loaves of bread",
    "drew a map of the coast",
    "fed the pigeons",
    "sorted a pile of letters",
    "cleaned the windows",
    "told a long story",
    "planted a young pear tree",
    "read a book about rivers",
    "repaired a squeaking wheel",
    "measured the height of a door",
    "listened to the wind",
    "swept the dry leaves together",
    "tasted the first cherries",
    "wrote a postcard",
    "rested on a low wall",
    "folded a large sheet of paper",
    "sharpened a set of knives",
    "watched the boats come in",
    "lost a bet about the harvest",
    "practised a difficult dance",
};

static const char *const places[] = {
    "near the harbour",           "behind the town hall",     "at the edge of the forest",
    "in the shade of a chestnut", "under the railway bridge", "by the old mill",
    "on the upper terrace",       "beside the fountain",      "in the empty theatre",
    "across from the chapel",     "on the slow train",        "in front of the museum",
    "at the northern gate",       "among the market stalls",  "on the far side of the lake",
    "in a narrow lane",           "next to the greenhouse",   "at the top of the stairs",
    "in the quiet courtyard",     "along the dusty road",
};

static const char *const endings[] = {
    "",
    ", and nobody thought much of it",
    ", which took longer than expected",
    ", as people there have always done",
    ", and then it was time for supper",
    ", although it was nearly dark",
};

#define PICK(list) (list)[ks_eval_random_pick (random, G_N_ELEMENTS (list))]

char *
ks_synth_make_sentence (KsEvalRandom *random)
{
  const char *time = PICK (times), *subject = PICK (subjects), *action = PICK (actions);
  const char *place = PICK (places), *ending = PICK (endings);

  return g_strdup_printf ("%s %s %s %s%s.", time, subject, action, place, ending);
}

/* A step that shares no factor with the number of pairs visits each of them once. */
static guint
find_step (KsEvalRandom *random, guint n)
{
  for (;;) {
    guint step = 1 + ks_eval_random_pick (random, n - 1), a = n, b = step;

    while (b != 0) {
      guint rest = a % b;

      a = b;
      b = rest;
    }
    if (a == 1)
      return step;
  }
}

char *
ks_synth_make_pair (guint64 seed, guint i)
{
  KsEvalRandom random = ks_eval_random (seed, 0);
  guint n = ks_synth_n_adjective * ks_synth_n_noun;
  guint64 first = ks_eval_random_pick (&random, n), step = find_step (&random, n);
  guint at = (guint)((first + step * (i % n)) % n);

  return g_strdup_printf ("%s %s", ks_synth_adjectives[at % ks_synth_n_adjective],
                          ks_synth_nouns[at / ks_synth_n_adjective]);
}
