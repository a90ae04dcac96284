/* eval-synth-count.c - variable tracking and counted words; see eval-synth.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-synth-internal.h"

#include <string.h>

#define N_HOP 4u
#define N_COMMON_WORD 10u
#define N_TOP 3u
#define NAME_LETTERS 5u
#define CODE_LETTERS 6u
#define N_CODE 60u /* coded words of a text, at most */

/* n letters that no other word so far consists of. */
static char *
draw_letters (KsSynth *synth, guint n, char first)
{
  for (;;) {
    char *word = g_malloc0 (n + 1);

    for (guint i = 0; i < n; i++)
      word[i] = (char)(first + (char)ks_eval_random_pick (&synth->random, 26));
    if (!g_ptr_array_find_with_equal_func (synth->words, word, g_str_equal, NULL))
      return word;
    g_free (word);
  }
}

/* --- tracking --- */

static int
compare_doubles (gconstpointer a, gconstpointer b)
{
  double x = *(const double *)a, y = *(const double *)b;

  return x < y ? -1 : x > y;
}

void
ks_synth_begin_tracking (KsSynth *synth)
{
  guint value = 10000 + ks_eval_random_pick (&synth->random, 90000);
  g_autoptr (GArray) places = g_array_new (FALSE, FALSE, sizeof (double));

  for (guint i = 0; i <= N_HOP; i++) {
    double place = ks_eval_random_unit (&synth->random);

    g_array_append_val (places, place);
  }
  g_array_sort (places, compare_doubles); /* each variable stands behind the one it copies */
  for (guint i = 0; i <= N_HOP; i++) {
    char *name = draw_letters (synth, NAME_LETTERS, 'A');
    const char *last = i > 0 ? g_ptr_array_index (synth->words, i - 1) : NULL;

    g_ptr_array_add (synth->words, name);
    ks_synth_add_expected (synth, name);
    ks_synth_add_needle (synth,
                         i == 0 ? g_strdup_printf ("VAR %s = %u.", name, value)
                                : g_strdup_printf ("VAR %s = VAR %s.", name, last),
                         g_array_index (places, double, i));
  }
  synth->intro = g_strdup ("A text follows in which values are given to variables. Remember which "
                           "variable has which value: you will be asked about it.");
  synth->question = g_strdup_printf (
      "Which variables have the value %u, directly or through another variable? There are five of "
      "them. Answer with their names only.",
      value);
}

/* --- common words --- */

/* Words in a random order, each as often as its count says, numbered. */
static char *
write_list (KsSynth *synth, GPtrArray *words, const guint *counts, gboolean numbered)
{
  GString *text = g_string_new (NULL);
  KsEvalRandom random = synth->filling;
  g_autoptr (GArray) all = g_array_new (FALSE, FALSE, sizeof (guint));
  g_autofree guint *order = NULL;

  for (guint i = 0; i < words->len; i++)
    for (guint k = 0; k < counts[i]; k++)
      g_array_append_val (all, i);
  order = g_new (guint, MAX (all->len, 1));
  ks_eval_random_shuffle (&random, order, all->len);
  for (guint i = 0; i < all->len; i++) {
    const char *word = g_ptr_array_index (words, g_array_index (all, guint, order[i]));

    if (numbered)
      g_string_append_printf (text, "%s%u. %s", i > 0 ? "\n" : "", i + 1, word);
    else
      g_string_append_printf (text, "%s%s", i > 0 ? " " : "", word);
  }
  return g_string_free (text, FALSE);
}

/* Single nouns first, then two of them in one word. */
static char *
make_word (const guint *order, guint i)
{
  guint n = ks_synth_n_noun;

  if (i < n)
    return g_strdup (ks_synth_nouns[order[i]]);
  i -= n;
  return g_strconcat (ks_synth_nouns[order[i % n]], ks_synth_nouns[order[(i + 1 + i / n) % n]],
                      NULL);
}

void
ks_synth_begin_common (KsSynth *synth)
{
  g_autofree guint *order = g_new (guint, ks_synth_n_noun);
  gboolean is_long = synth->options->n_tok >= 3072;

  ks_eval_random_shuffle (&synth->random, order, ks_synth_n_noun);
  /* The usual 30 and 3; a short text holds a third of that. */
  synth->n_common = is_long ? 30 : 10;
  synth->n_rare = is_long ? 3 : 1;
  for (guint i = 0; i < N_COMMON_WORD; i++) {
    g_ptr_array_add (synth->words, make_word (order, i));
    ks_synth_add_expected (synth, g_ptr_array_index (synth->words, i));
  }
  synth->keys = ks_eval_random_next (&synth->random);
  synth->intro = g_strdup ("A numbered list of words follows. Some words stand there much more "
                           "often than others. Remember those: you will be asked about them.");
  synth->question =
      g_strdup ("Which ten words stand most often in the list? Answer with the words only.");
}

char *
ks_synth_build_common (KsSynth *synth, guint n)
{
  g_autofree guint *order = g_new (guint, ks_synth_n_noun);
  g_autofree guint *counts = g_new (guint, N_COMMON_WORD + n);
  g_autoptr (GPtrArray) words = g_ptr_array_new_with_free_func (g_free);
  KsEvalRandom random = ks_eval_random (synth->keys, 0);
  guint n_made = 0;

  ks_eval_random_shuffle (&random, order, ks_synth_n_noun);
  for (guint i = 0; i < N_COMMON_WORD; i++)
    g_ptr_array_add (words, g_strdup (g_ptr_array_index (synth->words, i)));
  while (words->len < N_COMMON_WORD + n) {
    char *word = make_word (order, n_made++);

    if (g_ptr_array_find_with_equal_func (synth->words, word, g_str_equal, NULL))
      g_free (word);
    else
      g_ptr_array_add (words, word);
  }
  for (guint i = 0; i < words->len; i++)
    counts[i] = i < N_COMMON_WORD ? synth->n_common : synth->n_rare;
  return write_list (synth, words, counts, TRUE);
}

/* --- frequent words --- */

void
ks_synth_begin_frequent (KsSynth *synth)
{
  for (guint i = 0; i < N_CODE; i++)
    g_ptr_array_add (synth->words, draw_letters (synth, CODE_LETTERS, 'a'));
  for (guint i = 0; i < N_TOP; i++)
    ks_synth_add_expected (synth, g_ptr_array_index (synth->words, i));
  synth->intro = g_strdup ("A text of coded words follows. Find out which of them stand there most "
                           "often: you will be asked about it.");
  synth->question = g_strdup (
      "Which three coded words stand most often in the text? Answer with the words only.");
}

/* Rank r stands there about n * 6 / (pi r)^2 times; every word of the top three a different
 * number. */
char *
ks_synth_build_frequent (KsSynth *synth, guint n)
{
  guint counts[N_CODE], n_total = n + 40;

  for (guint i = 0; i < N_CODE; i++)
    counts[i] = (guint)(n_total * 0.6079271018540267 / ((i + 1.0) * (i + 1.0)) + 0.5);
  return write_list (synth, synth->words, counts, FALSE);
}
