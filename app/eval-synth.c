/* eval-synth.c - needles, and what all kinds of made-up text tests share; see eval-synth.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-synth.h"

#include "app/eval-synth-internal.h"
#include "app/eval-text.h"
#include "app/ks-error.h"

#include <string.h>

#define FRAME_TOKENS 96u /* for the chat format around texts and given replies */
#define PARAGRAPH 8u     /* sentences */
#define MAX_PIECES 200000u
#define N_NEEDLE 4u

const char *const ks_eval_synth_kinds[] = {
    "needle",   "needle-keys",  "needle-all",     "needle-values", "needle-queries",
    "tracking", "common-words", "frequent-words", "turns",         NULL};

typedef enum {
  NEEDLE,
  NEEDLE_KEYS,
  NEEDLE_ALL,
  NEEDLE_VALUES,
  NEEDLE_QUERIES,
  TRACKING,
  COMMON,
  FREQUENT,
  TURNS,
  N_KIND
} Kind;

static const guint reserves[N_KIND] = {128, 128, 128, 128, 128, 30, 120, 50, 32};

static Kind
find_kind (const char *name)
{
  guint i = 0;

  while (i < N_KIND && strcmp (ks_eval_synth_kinds[i], name) != 0)
    i++;
  return (Kind)i;
}

gboolean
ks_eval_synth_is_kind (const char *bench)
{
  return find_kind (bench) != N_KIND;
}

guint
ks_eval_synth_get_reserve (const char *kind)
{
  Kind i = find_kind (kind);

  g_return_val_if_fail (i != N_KIND, 0);
  return reserves[i];
}

/* --- filler --- */

static char *
make_value (KsSynth *synth, KsEvalRandom *random)
{
  guint64 a = ks_eval_random_next (random), b;

  if (synth->options->values == KS_EVAL_NUMBER)
    return g_strdup_printf ("%u", 1000000 + (guint)(a % 9000000));
  if (synth->options->values == KS_EVAL_WORDS)
    return ks_synth_make_pair (a, 0);
  b = ks_eval_random_next (random);
  return g_strdup_printf ("%08x-%04x-%04x-%04x-%012" G_GINT64_MODIFIER "x", (guint)(a >> 32),
                          (guint)(a >> 16 & 0xffff), (guint)(a & 0xffff), (guint)(b >> 48),
                          b & G_GUINT64_CONSTANT (0xffffffffffff));
}

static const char *
get_value_name (const KsSynth *synth)
{
  static const char *const names[] = {"number", "phrase", "code"};

  return names[synth->options->values];
}

static char *
make_needle (const KsSynth *synth, const char *key, const char *value)
{
  return g_strdup_printf ("The special %s for %s is %s.", get_value_name (synth), key, value);
}

static char *
draw_piece (KsSynth *synth)
{
  GPtrArray *own = synth->options->filler;

  if (synth->all_needles) {
    g_autofree char *key = ks_synth_make_pair (synth->keys, synth->n_key++);
    g_autofree char *value = make_value (synth, &synth->filling);

    return make_needle (synth, key, value);
  }
  if (own != NULL && own->len > 0)
    return g_strdup (
        g_ptr_array_index (own, (synth->options->index + synth->filler->len) % own->len));
  return ks_synth_make_sentence (&synth->filling);
}

const char *
ks_synth_get_filler (KsSynth *synth, guint n)
{
  while (synth->filler->len <= n)
    g_ptr_array_add (synth->filler, draw_piece (synth));
  return g_ptr_array_index (synth->filler, n);
}

GPtrArray *
ks_eval_synth_split (const char *text)
{
  g_autoptr (GString) valid = ks_eval_text_new (text);
  GPtrArray *sentences = g_ptr_array_new_with_free_func (g_free);
  const char *begin = valid->str;

  for (const char *p = begin;; p++) {
    gboolean stop = strchr (".!?", *p) != NULL && *p != '\0' && g_ascii_isspace (p[1]);

    if (!stop && *p != '\n' && *p != '\0')
      continue;
    {
      g_autofree char *one = g_strstrip (g_strndup (begin, (gsize)(p - begin) + stop));

      if (one[0] != '\0')
        g_ptr_array_add (sentences, g_steal_pointer (&one));
    }
    if (*p == '\0')
      return sentences;
    begin = p + 1;
  }
}

/* --- needles --- */

void
ks_synth_add_needle (KsSynth *synth, char *take_sentence, double place)
{
  g_ptr_array_add (synth->needles, take_sentence);
  g_array_append_val (synth->places, place);
}

void
ks_synth_add_expected (KsSynth *synth, const char *text)
{
  guint n = synth->expect != NULL ? g_strv_length (synth->expect) : 0;

  synth->expect = g_renew (char *, synth->expect, n + 2);
  synth->expect[n] = g_strdup (text);
  synth->expect[n + 1] = NULL;
}

static void
append_piece (GString *text, guint number, const char *piece)
{
  if (text->len > 0)
    g_string_append_c (text, number % PARAGRAPH == 0 ? '\n' : ' ');
  g_string_append (text, piece);
}

char *
ks_synth_build_text (KsSynth *synth, guint n)
{
  GString *text = g_string_new (NULL);

  for (guint i = 0; i <= n; i++) {
    for (guint k = 0; k < synth->needles->len; k++)
      if ((guint)(g_array_index (synth->places, double, k) * n) == i)
        append_piece (text, 1, g_ptr_array_index (synth->needles, k));
    if (i < n)
      append_piece (text, i, ks_synth_get_filler (synth, i));
  }
  return g_string_free (text, FALSE);
}

static void
set_question (KsSynth *synth, char **keys, guint n_asked)
{
  const char *name = get_value_name (synth);
  g_autoptr (GString) list = g_string_new (keys[0]);

  for (guint i = 1; i < n_asked; i++)
    g_string_append_printf (list, "%s%s", i + 1 < n_asked ? ", " : " and ", keys[i]);
  if (n_asked > 1 || synth->needles->len > 1)
    synth->question = g_strdup_printf ("Which special %ss does the text give for %s? Name all of "
                                       "them.",
                                       name, list->str);
  else
    synth->question =
        g_strdup_printf ("What is the special %s for %s that the text gives?", name, list->str);
}

/* N needles, each with a key and a value; some kinds share a key, some ask for all. */
static void
begin_needles (KsSynth *synth, Kind kind)
{
  guint n = kind == NEEDLE || kind == NEEDLE_ALL ? 1 : N_NEEDLE;
  guint n_asked = kind == NEEDLE_QUERIES ? N_NEEDLE : 1;
  double depth = MIN (synth->options->depth, 100) / 100.0;
  g_auto (GStrv) keys = g_new0 (char *, N_NEEDLE + 1);

  synth->all_needles = kind == NEEDLE_ALL;
  synth->keys = ks_eval_random_next (&synth->random);
  for (guint i = 0; i < n; i++) {
    g_autofree char *value = make_value (synth, &synth->random);
    double place = i == 0 ? depth : ks_eval_random_unit (&synth->random);

    keys[i] = ks_synth_make_pair (synth->keys, kind == NEEDLE_VALUES ? 0 : i);
    ks_synth_add_needle (synth, make_needle (synth, keys[i], value), place);
    if (i < n_asked || kind == NEEDLE_VALUES)
      ks_synth_add_expected (synth, value);
  }
  synth->n_key = n;
  synth->intro = g_strdup_printf ("A text follows in which special %ss are hidden. Remember them: "
                                  "you will be asked about them.",
                                  get_value_name (synth));
  if (kind == NEEDLE_KEYS)
    synth->question = g_strdup_printf ("What is the special %s for %s that the text gives?",
                                       get_value_name (synth), keys[0]);
  else
    set_question (synth, keys, n_asked);
}

/* --- fitting --- */

static guint
count_pieces (KsSynth *synth, KsSynthBuild build, guint n)
{
  g_autofree char *text = build (synth, n);

  return synth->count (text, synth->user);
}

gboolean
ks_synth_fit (KsSynth *synth, KsSynthBuild build, guint least, guint room, guint *out_n,
              GError **error)
{
  guint low = least, high = least + 1; /* low fits; high does not, once it is found */

  if (count_pieces (synth, build, low) > room) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                 "%u tokens are too few for this test: give more with --lengths",
                 synth->options->n_tok);
    return FALSE;
  }
  while (high < MAX_PIECES && count_pieces (synth, build, high) <= room) {
    low = high;
    high = least + 2 * (high - least);
  }
  while (high - low > 1) {
    guint middle = low + (high - low) / 2;

    if (count_pieces (synth, build, middle) <= room)
      low = middle;
    else
      high = middle;
  }
  *out_n = low;
  return TRUE;
}

/* --- items --- */

static void
add_turns (KsSynth *synth, KsEvalItem *item, const char *text)
{
  g_autofree char *whole = NULL, *read = g_strdup_printf ("%s\n\n%s", synth->intro, text);
  KsEvalTurn *turn;

  if (synth->options->after) {
    ks_eval_item_add_turn (item, read, "I have read it.");
    ks_synth_add_other_turns (synth, item, synth->options->n_other);
    turn = ks_eval_item_add_turn (item, synth->question, NULL);
  } else {
    whole = g_strdup_printf ("%s\n\n%s", read, synth->question);
    turn = ks_eval_item_add_turn (item, whole, NULL);
  }
  for (guint i = 0; synth->expect[i] != NULL; i++)
    ks_eval_turn_add_expected (turn, synth->expect[i]);
}

static gboolean
make_text_item (KsSynth *synth, KsEvalItem *item, Kind kind, guint room, GError **error)
{
  KsSynthBuild build = ks_synth_build_text;
  g_autofree char *text = NULL;
  guint n_frame, n = 0;

  if (kind == TRACKING)
    ks_synth_begin_tracking (synth);
  else if (kind == COMMON)
    ks_synth_begin_common (synth);
  else if (kind == FREQUENT)
    ks_synth_begin_frequent (synth);
  else
    begin_needles (synth, kind);
  if (kind == COMMON)
    build = ks_synth_build_common;
  else if (kind == FREQUENT)
    build = ks_synth_build_frequent;
  n_frame = synth->count (synth->intro, synth->user) + synth->count (synth->question, synth->user);
  if (!ks_synth_fit (synth, build, 1, room > n_frame ? room - n_frame : 0, &n, error))
    return FALSE;
  text = build (synth, n);
  add_turns (synth, item, text);
  return TRUE;
}

/* What turns about other things take, counted on an item of their own. */
static guint
count_other_turns (KsSynth *synth)
{
  g_autoptr (KsEvalItem) item = ks_eval_item_new ("", "", "");
  KsEvalRandom before = synth->filling;
  guint n = 0;

  if (!synth->options->after)
    return 0;
  ks_synth_add_other_turns (synth, item, synth->options->n_other);
  for (guint i = 0; i < item->turns->len; i++) {
    const KsEvalTurn *turn = g_ptr_array_index (item->turns, i);

    n += synth->count (turn->text, synth->user) + synth->count (turn->reply, synth->user) + 24;
  }
  synth->filling = before;
  return n;
}

static void
synth_clear (KsSynth *synth)
{
  g_ptr_array_unref (synth->filler);
  g_ptr_array_unref (synth->needles);
  g_ptr_array_unref (synth->words);
  g_array_unref (synth->places);
  g_strfreev (synth->expect);
  g_free (synth->intro);
  g_free (synth->question);
}

KsEvalItem *
ks_eval_synth_make (const char *kind, const KsEvalSynthOptions *options, KsEvalCount count,
                    gpointer user, GError **error)
{
  Kind number = find_kind (kind);
  g_autofree char *part = g_strdup_printf ("%u/%u", options->n_tok, options->depth);
  g_autofree char *id = g_strdup_printf ("%s/%u", part, options->index);
  g_autoptr (KsEvalItem) item = ks_eval_item_new (kind, part, id);
  KsSynth synth = {.options = options, .count = count, .user = user};
  guint needed, room;
  gboolean ok;

  g_return_val_if_fail (number != N_KIND, NULL);
  /* Unlike series for each kind, depth and length; the filler's does not depend on the depth. */
  synth.random = ks_eval_random (options->seed + number * 7919u + options->depth * 104729u,
                                 ((guint64)options->n_tok << 32) + options->index);
  synth.filling = ks_eval_random (options->seed + number, options->index);
  synth.filler = g_ptr_array_new_with_free_func (g_free);
  synth.needles = g_ptr_array_new_with_free_func (g_free);
  synth.words = g_ptr_array_new_with_free_func (g_free);
  synth.places = g_array_new (FALSE, FALSE, sizeof (double));
  needed = reserves[number] + FRAME_TOKENS + count_other_turns (&synth);
  room = options->n_tok > needed ? options->n_tok - needed : 0;
  ok = number == TURNS ? ks_synth_make_turns (&synth, item, room, error)
                       : make_text_item (&synth, item, number, room, error);
  synth_clear (&synth);
  return ok ? g_steal_pointer (&item) : NULL;
}

double
ks_eval_synth_score (const char *prediction, const char *const *expect)
{
  g_autoptr (GString) valid = ks_eval_text_new (prediction), in = NULL;
  guint n = 0, n_found = 0;

  for (gsize i = 0; i < valid->len; i++)
    if (g_ascii_iscntrl (valid->str[i]))
      valid->str[i] = '\n';
  in = ks_eval_text_lower (valid->str);
  ks_eval_text_strip (in);
  for (; expect[n] != NULL; n++) {
    g_autoptr (GString) want = ks_eval_text_lower (expect[n]);

    n_found += strstr (in->str, want->str) != NULL;
  }
  return n > 0 ? (double)n_found / n : 0;
}
