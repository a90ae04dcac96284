/* cli-bench-recall-words.c - see cli-bench-recall-words.h.  Tables only. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-bench-recall-words.h"

#define LIST(words)                                                                                \
  {                                                                                                \
    words, G_N_ELEMENTS (words)                                                                    \
  }

static const BenchFactKind plain_kinds[] = {
    {BENCH_SUBJECT_PERSON,
     BENCH_VALUE_CODE,
     {"The locker code of %1 is %2.", "Please note that the locker code of %1 is %2.",
      "%1 has a locker, and the locker code of %1 is %2."},
     "What is the locker code of %1?"},
    {BENCH_SUBJECT_PERSON,
     BENCH_VALUE_ROOM,
     {"%1 works in room %2.", "Since Monday %1 works in room %2.",
      "You will find %1 at the end of the hall: %1 works in room %2."},
     "In which room does %1 work?"},
    {BENCH_SUBJECT_PERSON,
     BENCH_VALUE_CITY,
     {"%1 was born in %2.", "As a child %1 moved often, but %1 was born in %2.",
      "It is not well known that %1 was born in %2."},
     "In which city was %1 born?"},
    {BENCH_SUBJECT_PERSON,
     BENCH_VALUE_PET,
     {"The cat of %1 is called %2.", "%1 has a cat, and the cat of %1 is called %2.",
      "Everybody knows that the cat of %1 is called %2."},
     "What is the name of the cat of %1?"},
    {BENCH_SUBJECT_PERSON,
     BENCH_VALUE_COLOUR,
     {"The bicycle of %1 is %2.", "The bicycle of %1 is %2 and stands in the yard.",
      "In front of the house you can see that the bicycle of %1 is %2."},
     "What colour is the bicycle of %1?"},
    {BENCH_SUBJECT_PLACE,
     BENCH_VALUE_WORD,
     {"The password for the %1 is %2.", "From today the password for the %1 is %2.",
      "If you are asked for it, the password for the %1 is %2."},
     "What is the password for the %1?"},
    {BENCH_SUBJECT_PLACE,
     BENCH_VALUE_CODE,
     {"The telephone number of the %1 is %2.", "The new telephone number of the %1 is %2.",
      "In an emergency, remember that the telephone number of the %1 is %2."},
     "What is the telephone number of the %1?"},
    {BENCH_SUBJECT_THING,
     BENCH_VALUE_CODE,
     {"The serial number of the %1 is %2.",
      "On the label it says that the serial number of the %1 is %2.",
      "For the records, the serial number of the %1 is %2."},
     "What is the serial number of the %1?"},
    {BENCH_SUBJECT_THING,
     BENCH_VALUE_COLOUR,
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

static const BenchFactKind other_kinds[] = {
    {BENCH_SUBJECT_PERSON,
     BENCH_VALUE_CODE,
     {"To open the cabinet that belongs to %1, turn the dial to %2.",
      "%2 opens the cabinet that belongs to %1, as long as the key is in.",
      "The night porter wrote %2 on the back of a card: it opens the cabinet that belongs to %1."},
     "Which number opens the cabinet that belongs to %1?"},
    {BENCH_SUBJECT_PERSON,
     BENCH_VALUE_ROOM,
     {"Letters for %1 are to be left at desk %2.", "Whoever asks for %1 is sent to desk %2.",
      "Desk %2 has a lamp, two drawers and, since the spring, %1."},
     "At which desk does one find %1?"},
    {BENCH_SUBJECT_PERSON,
     BENCH_VALUE_CITY,
     {"When the holidays begin, %1 always takes the first train to %2.",
      "%1 spends every summer in %2, whatever the weather.",
      "There is a small flat in %2 where %1 spends the holidays."},
     "Where does %1 spend the holidays?"},
    {BENCH_SUBJECT_PERSON,
     BENCH_VALUE_PET,
     {"Each evening %1 walks along the canal with a dog that answers to %2.",
      "%2 is what %1 shouts when the dog has run too far.",
      "%1 found the dog behind the station and named it %2."},
     "What does %1 call the dog?"},
    {BENCH_SUBJECT_PERSON,
     BENCH_VALUE_COLOUR,
     {"You cannot miss %1 in the crowd: the coat is %2 from collar to hem.",
      "%1 owns one good coat, a %2 one.", "It was a %2 coat that %1 wore to the interview."},
     "Which colour is the coat that %1 wears?"},
    {BENCH_SUBJECT_PLACE,
     BENCH_VALUE_WORD,
     {"Say %2 at the door and they will let you into the %1.",
      "The guard of the %1 lets nobody pass who has not whispered %2.",
      "Into the %1 one comes with a single spoken word, and this week it is %2."},
     "What must be said at the door of the %1?"},
    {BENCH_SUBJECT_PLACE,
     BENCH_VALUE_CODE,
     {"Rent for the %1 went up again and now comes to %2 crowns.",
      "Nobody had expected that the %1 would cost %2 crowns a year.",
      "The lease of the %1 names a sum of %2 crowns."},
     "How many crowns does the %1 cost?"},
    {BENCH_SUBJECT_THING,
     BENCH_VALUE_CODE,
     {"Somebody has scratched %2 into the frame of the %1, as a mark against thieves.",
      "The mark against thieves on the %1 reads %2.",
      "Under the dust of the %1 there is a mark against thieves, %2."},
     "Which mark against thieves does the %1 bear?"},
    {BENCH_SUBJECT_THING,
     BENCH_VALUE_CITY,
     {"A firm in %2 built the %1 many years ago.", "The %1 was made by hand in %2.",
      "On a brass plate one reads that the %1 comes from %2."},
     "In which city was the %1 built?"},
};

static const char *const other_people[] = {
    "Anselm", "Birgit",  "Cosima", "Dario",  "Ewa",    "Fabian", "Giulia", "Henrik",
    "Ivana",  "Joachim", "Katya",  "Lorenz", "Malika", "Niklas", "Otilia", "Pavel",
    "Quirin", "Renata",  "Silvio", "Thekla", "Ursula", "Vasil",  "Wiebke", "Zora"};
static const char *const other_places[] = {
    "boathouse", "printing room", "chapel",  "observatory", "wine cellar", "clock tower",
    "bakehouse", "stable",        "orchard", "pottery",     "lighthouse",  "sawmill"};
static const char *const other_things[] = {
    "loom",       "telescope", "wardrobe", "carriage", "harmonium",    "grindstone",
    "typewriter", "sledge",    "cello",    "globe",    "barrel organ", "printing press"};
static const char *const other_colours[] = {"crimson", "beige", "turquoise", "grey",  "violet",
                                            "golden",  "pink",  "olive",     "cream", "navy"};
static const char *const other_cities[] = {"Ghent", "Bergen", "Cracow", "Seville", "Porto",
                                           "Turin", "Basel",  "Zagreb", "Tallinn", "Bristol"};
static const char *const other_words[] = {"anchor", "velvet", "sparrow", "cinnamon", "granite",
                                          "willow", "beacon", "saddle",  "amber",    "thistle"};
static const char *const other_pets[] = {"Bruno", "Hazel", "Pippin", "Rufus", "Juno",
                                         "Maple", "Otto",  "Pilot",  "Sable", "Waldo"};

const BenchRecallFamily bench_recall_plain = {
    .kinds = plain_kinds,
    .n_kind = G_N_ELEMENTS (plain_kinds),
    .subjects = {LIST (people), LIST (places), LIST (things)},
    .values = {{NULL, 0}, {NULL, 0}, LIST (colours), LIST (cities), LIST (words), LIST (pets)},
};

const BenchRecallFamily bench_recall_other = {
    .kinds = other_kinds,
    .n_kind = G_N_ELEMENTS (other_kinds),
    .subjects = {LIST (other_people), LIST (other_places), LIST (other_things)},
    .values = {{NULL, 0},
               {NULL, 0},
               LIST (other_colours),
               LIST (other_cities),
               LIST (other_words),
               LIST (other_pets)},
};

const BenchWordList bench_recall_fillers = LIST (fillers);
