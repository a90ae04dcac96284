/* ks-recall-maker.c - see ks-recall-maker.h.
 * A fact is a subject with either an attribute (any general pattern fits) or a frame of its own
 * words.  Two facts never contradict each other or leave a question open: one attribute is told
 * once of a subject, and of a subject with a frame nothing else is. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-recall-maker.h"

#include "app/ks-recall-data.h"

#include <string.h>

#define MAX_FACT 40u
#define MAX_TRIES 30u
#define NOTE_PART 0.25    /* of the facts stand as a line of notes */
#define FRAME_PART 0.35   /* have words of their own */
#define SAME_KIND 0.35    /* tell the same of somebody else as the fact before */
#define SAME_SUBJECT 0.15 /* tell something else of the same */

typedef struct {
  KsRecallSubject kind;
  guint subject;
  const KsRecallFrame *frame;         /* or NULL */
  const KsRecallAttribute *attribute; /* or NULL */
  guint wording;                      /* of a frame: statement and question belong together */
  char *value, *statement;
} Fact;

typedef struct {
  KsTrainRandom *random;
  const KsRecallParams *params;
  Fact facts[MAX_FACT];
  guint n_fact;
  GPtrArray *paragraphs; /* of char *, facts among them */
} Maker;

static const char *
pick_word (KsTrainRandom *random, const KsRecallList *list)
{
  return list->words[ks_train_random_pick (random, list->n)];
}

static char *
make_number (KsTrainRandom *random, guint n_digit)
{
  guint low = 1;

  for (guint i = 1; i < n_digit; i++)
    low *= 10;
  return g_strdup_printf ("%u", low + ks_train_random_pick (random, 9 * low));
}

static char *
make_time (KsTrainRandom *random)
{
  guint hour = 1 + ks_train_random_pick (random, 12), minute = ks_train_random_pick (random, 60);

  if (ks_train_random_chance (random, 0.3))
    return g_strdup_printf ("half past %u", hour);
  return g_strdup_printf ("%u:%02u", hour, minute);
}

static char *
make_date (KsTrainRandom *random)
{
  static const char *const months[] = {"January",   "February", "March",    "April",
                                       "May",       "June",     "July",     "August",
                                       "September", "October",  "November", "December"};
  const char *month = months[ks_train_random_pick (random, G_N_ELEMENTS (months))];
  guint day = 1 + ks_train_random_pick (random, 28);

  return ks_train_random_chance (random, 0.5) ? g_strdup_printf ("%u %s", day, month)
                                              : g_strdup_printf ("%s %u", month, day);
}

static char *
make_mark (KsTrainRandom *random)
{
  guint a = ks_train_random_pick (random, 26), b = ks_train_random_pick (random, 10);
  guint c = 100 + ks_train_random_pick (random, 900);

  return g_strdup_printf ("%c%u-%u", (char)('A' + (int)a), b, c);
}

static char *
make_amount (KsTrainRandom *random)
{
  static const char *const units[] = {"euros", "pounds", "dollars", "crowns"};
  const char *unit = units[ks_train_random_pick (random, G_N_ELEMENTS (units))];

  return g_strdup_printf ("%u %s", 3 + ks_train_random_pick (random, 990), unit);
}

static char *
make_version (KsTrainRandom *random)
{
  guint major = 1 + ks_train_random_pick (random, 9), minor = ks_train_random_pick (random, 30);

  return g_strdup_printf (ks_train_random_chance (random, 0.5) ? "%u.%u" : "v%u.%u", major, minor);
}

static char *
make_value (KsTrainRandom *random, KsRecallValue kind)
{
  const KsRecallList *words = &ks_recall_lists[KS_RECALL_WORD - KS_RECALL_COLOUR];
  const char *first, *second;

  switch (kind) {
  case KS_RECALL_NUMBER2:
    return make_number (random, 2);
  case KS_RECALL_NUMBER3:
    return make_number (random, 3);
  case KS_RECALL_NUMBER4:
    return make_number (random, 4);
  case KS_RECALL_NUMBER5:
    return make_number (random, 5);
  case KS_RECALL_NUMBER7:
    return make_number (random, 7);
  case KS_RECALL_MARK:
    return make_mark (random);
  case KS_RECALL_YEAR:
    return g_strdup_printf ("%u", 1790 + ks_train_random_pick (random, 230));
  case KS_RECALL_DATE:
    return make_date (random);
  case KS_RECALL_TIME:
    return make_time (random);
  case KS_RECALL_PRICE:
    return make_amount (random);
  case KS_RECALL_LENGTH:
    return g_strdup_printf ("%u centimetres", 20 + ks_train_random_pick (random, 400));
  case KS_RECALL_VERSION:
    return make_version (random);
  case KS_RECALL_PAIR:
    first = pick_word (random, words);
    second = pick_word (random, words);
    return g_strdup_printf ("%s-%s", first, second);
  default:
    return g_strdup (pick_word (random, &ks_recall_lists[kind - KS_RECALL_COLOUR]));
  }
}

/* The pattern with its words put in; the first letter large when begins. */
static char *
fill (const char *pattern, const Fact *fact, gboolean begins)
{
  GString *out = g_string_new (pattern);

  g_string_replace (out, "%S", ks_recall_subjects[fact->kind].words[fact->subject], 0);
  g_string_replace (out, "%V", fact->value, 0);
  if (fact->attribute != NULL)
    g_string_replace (out, "%A", fact->attribute->name, 0);
  if (begins && out->len > 0)
    out->str[0] = g_ascii_toupper (out->str[0]);
  return g_string_free (out, FALSE);
}

static gboolean
contradicts (const Maker *maker, const Fact *fact)
{
  for (guint i = 0; i < maker->n_fact; i++) {
    const Fact *other = &maker->facts[i];

    if (other->kind != fact->kind || other->subject != fact->subject)
      continue;
    if (other->frame != NULL || fact->frame != NULL || other->attribute == fact->attribute)
      return TRUE;
  }
  return FALSE;
}

static void
draw_fact (Maker *maker, Fact *out)
{
  KsTrainRandom *random = maker->random;
  const Fact *last = maker->n_fact > 0 ? &maker->facts[maker->n_fact - 1] : NULL;

  *out = (Fact){0};
  if (ks_train_random_chance (random, FRAME_PART)) {
    out->frame = &ks_recall_frames[ks_train_random_pick (random, ks_recall_n_frames)];
    out->kind = out->frame->subject;
  } else {
    out->attribute = &ks_recall_attributes[ks_train_random_pick (random, ks_recall_n_attributes)];
    if (last != NULL && last->attribute != NULL && ks_train_random_chance (random, SAME_KIND))
      out->attribute = last->attribute;
    out->kind = out->attribute->subject;
  }
  out->subject = ks_train_random_pick (random, ks_recall_subjects[out->kind].n);
  if (last != NULL && last->kind == out->kind && ks_train_random_chance (random, SAME_SUBJECT))
    out->subject = last->subject;
}

static void
state_fact (KsTrainRandom *random, Fact *fact)
{
  gboolean is_note = fact->frame == NULL && ks_train_random_chance (random, NOTE_PART);
  const char *pattern;

  fact->wording = ks_train_random_pick (random, 3);
  if (fact->frame != NULL)
    pattern = fact->frame->statements[fact->wording];
  else
    pattern = pick_word (random, is_note ? &ks_recall_notes : &ks_recall_statements);
  fact->statement = fill (pattern, fact, !is_note);
}

static void
draw_facts (Maker *maker)
{
  guint n_wanted = MIN (maker->params->n_fact, MAX_FACT);

  for (guint i = 0; i < n_wanted; i++) {
    Fact fact;
    guint n_try = 0;

    do
      draw_fact (maker, &fact);
    while (contradicts (maker, &fact) && ++n_try < MAX_TRIES);
    if (n_try == MAX_TRIES)
      continue;
    fact.value =
        make_value (maker->random, fact.frame != NULL ? fact.frame->value : fact.attribute->value);
    state_fact (maker->random, &fact);
    maker->facts[maker->n_fact++] = fact;
  }
}

static guint
count_words (const char *text)
{
  guint n = 1;

  for (const char *p = text; *p != '\0'; p++)
    n += *p == ' ' || *p == '\n';
  return n;
}

static char *
make_paragraph (Maker *maker)
{
  KsTrainRandom *random = maker->random;
  guint n_sentence = 1 + ks_train_random_pick (random, 5);
  char *text = NULL;
  GString *own;

  if (maker->params->paragraph != NULL && ks_train_random_chance (random, 0.5))
    text = maker->params->paragraph (maker->params->user, random,
                                     15 + ks_train_random_pick (random, 60));
  if (text != NULL)
    return text;
  own = g_string_new (NULL);
  for (guint i = 0; i < n_sentence; i++)
    g_string_append_printf (own, "%s%s", i > 0 ? " " : "",
                            pick_word (random, &ks_recall_sentences));
  return g_string_free (own, FALSE);
}

/* As a paragraph of its own behind number at, or at its beginning or end. */
static void
place_fact (Maker *maker, const Fact *fact, guint at)
{
  KsTrainRandom *random = maker->random;
  gboolean alone = strchr (fact->statement, '\n') != NULL || ks_train_random_chance (random, 0.5);
  char *old = at < maker->paragraphs->len ? g_ptr_array_index (maker->paragraphs, at) : NULL;

  if (alone || old == NULL) {
    g_ptr_array_insert (maker->paragraphs, old != NULL ? (gint)at + 1 : -1,
                        g_strdup (fact->statement));
    return;
  }
  maker->paragraphs->pdata[at] = ks_train_random_chance (random, 0.5)
                                     ? g_strconcat (fact->statement, " ", old, NULL)
                                     : g_strconcat (old, " ", fact->statement, NULL);
  g_free (old);
}

static void
make_paragraphs (Maker *maker)
{
  guint n_word = 0;

  while (n_word < maker->params->n_word) {
    char *text = make_paragraph (maker);

    n_word += count_words (text);
    g_ptr_array_add (maker->paragraphs, text);
  }
  for (guint i = 0; i < maker->n_fact; i++)
    place_fact (maker, &maker->facts[i],
                ks_train_random_pick (maker->random, MAX (maker->paragraphs->len, 1)));
}

static char *
join_paragraphs (Maker *maker, guint begin, guint end)
{
  GString *out = g_string_new (NULL);

  for (guint i = begin; i < end; i++)
    g_string_append_printf (out, "%s%s", i > begin ? "\n\n" : "",
                            (const char *)g_ptr_array_index (maker->paragraphs, i));
  return g_string_free (out, FALSE);
}

static void
add_turn (Maker *maker, KsTrainChat *chat, char *take_text)
{
  ks_train_chat_take (chat, KS_ROLE_USER, take_text);
  ks_train_chat_take (chat, KS_ROLE_ASSISTANT,
                      g_strdup (pick_word (maker->random, &ks_recall_replies)));
}

static void
add_long_message (Maker *maker, KsTrainChat *chat)
{
  g_autofree char *text = join_paragraphs (maker, 0, maker->paragraphs->len);

  if (ks_train_random_chance (maker->random, 0.4))
    add_turn (maker, chat, g_steal_pointer (&text));
  else
    add_turn (maker, chat,
              g_strconcat (pick_word (maker->random, &ks_recall_openings), "\n\n", text, NULL));
}

static void
add_short_turns (Maker *maker, KsTrainChat *chat)
{
  for (guint begin = 0; begin < maker->paragraphs->len;) {
    guint n = 1 + ks_train_random_pick (maker->random, 3);
    guint end = MIN (begin + n, maker->paragraphs->len);

    add_turn (maker, chat, join_paragraphs (maker, begin, end));
    begin = end;
  }
}

static void
add_question (Maker *maker, KsTrainChat *chat, const Fact *fact)
{
  KsTrainRandom *random = maker->random;
  const char *question, *answer;
  KsTrainMessage *message;

  if (fact->frame != NULL) {
    question = fact->frame->questions[fact->wording];
    answer = fact->frame->answers[ks_train_random_pick (random, 2)];
  } else {
    question = pick_word (random, &ks_recall_questions);
    answer = pick_word (random, &ks_recall_answers);
  }
  ks_train_chat_take (chat, KS_ROLE_USER, fill (question, fact, TRUE));
  /* A value keeps its case, so that it stays the word that was told. */
  message = ks_train_chat_take (chat, KS_ROLE_ASSISTANT,
                                fill (answer, fact, !g_str_has_prefix (answer, "%V")));
  ks_train_message_mark (message, fact->value);
}

static void
add_questions (Maker *maker, KsTrainChat *chat)
{
  guint n = MIN (maker->params->n_question, maker->n_fact);

  for (guint i = 0; i < n; i++) {
    guint j = i + ks_train_random_pick (maker->random, maker->n_fact - i);
    Fact fact = maker->facts[j];

    maker->facts[j] = maker->facts[i];
    maker->facts[i] = fact;
    add_question (maker, chat, &fact);
  }
}

KsRecallParams
ks_recall_params_draw (KsTrainRandom *random, guint n_word)
{
  KsRecallParams params = {.n_word = n_word};

  params.n_fact = MIN (4 + ks_train_random_pick (random, 7 + n_word / 120), MAX_FACT);
  params.n_question = MIN (params.n_fact, 3 + ks_train_random_pick (random, 5 + n_word / 250));
  return params;
}

KsTrainChat *
ks_recall_make (KsTrainRandom *random, const KsRecallParams *params)
{
  KsTrainChat *chat = ks_train_chat_new ();
  Maker maker = {
      .random = random, .params = params, .paragraphs = g_ptr_array_new_with_free_func (g_free)};

  draw_facts (&maker);
  make_paragraphs (&maker);
  if (ks_train_random_chance (random, 0.15))
    ks_train_chat_take (chat, KS_ROLE_SYSTEM, g_strdup (pick_word (random, &ks_recall_systems)));
  if (ks_train_random_chance (random, 0.65))
    add_long_message (&maker, chat);
  else
    add_short_turns (&maker, chat);
  if (ks_train_random_chance (random, 0.2))
    add_turn (&maker, chat, g_strdup (pick_word (random, &ks_recall_small_talk)));
  add_questions (&maker, chat);
  for (guint i = 0; i < maker.n_fact; i++) {
    g_free (maker.facts[i].value);
    g_free (maker.facts[i].statement);
  }
  g_ptr_array_unref (maker.paragraphs);
  return chat;
}
