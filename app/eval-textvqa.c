/* eval-textvqa.c - TextVQA accuracy; the order of the steps is part of the definition. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-textvqa.h"

#include "app/eval-text.h"

#include <string.h>

#define N_REFERENCES 10
#define MAX_DELETED_DOTS 32

/* Contractions that are recognised without their apostrophes. */
static const char *const bare_contractions[] = {
    "ain't",     "aren't",      "can't",        "could've",  "couldn't",
    "didn't",    "doesn't",     "don't",        "hadn't",    "hasn't",
    "haven't",   "he'd",        "he's",         "how'd",     "how'll",
    "how's",     "isn't",       "it'd",         "it'll",     "ma'am",
    "mightn't",  "might've",    "mustn't",      "must've",   "needn't",
    "not've",    "o'clock",     "oughtn't",     "shan't",    "should've",
    "shouldn't", "somebody'll", "somebody's",   "someone'd", "someone'll",
    "someone's", "something'd", "something'll", "that's",    "there'd",
    "there're",  "there's",     "they'd",       "they'll",   "they're",
    "they've",   "'twas",       "wasn't",       "we've",     "weren't",
    "what'll",   "what're",     "what's",       "what've",   "when's",
    "where'd",   "where's",     "where've",     "who'd",     "who'll",
    "who's",     "who've",      "why'll",       "why're",    "why's",
    "won't",     "would've",    "wouldn't",     "y'all",     "you'd",
    "you'll",    "you're",      "you've",       NULL};

/* Contractions that are recognised with any one of their apostrophes left out. */
static const char *const double_contractions[] = {
    "couldn't've", "hadn't've",    "he'd've",       "it'd've",      "mightn't've",
    "she'd've",    "shouldn't've", "somebody'd've", "someone'd've", "something'd've",
    "there'd've",  "they'd've",    "we'd've",       "who'd've",     "wouldn't've",
    "you'd've",    "y'all'll",     "y'all'd've",    "'ow's'at",     NULL};

static const char *const number_words[] = {"zero", "one",   "two",   "three", "four", "five",
                                           "six",  "seven", "eight", "nine",  "ten"};

/* True when word is full with exactly one apostrophe missing. */
static gboolean
lacks_one_apostrophe (const char *word, const char *full)
{
  gsize n = strlen (full);

  if (strlen (word) + 1 != n)
    return FALSE;
  for (gsize i = 0; i < n; i++)
    if (full[i] == '\'' && strncmp (word, full, i) == 0 && strcmp (word + i, full + i + 1) == 0)
      return TRUE;
  return FALSE;
}

static const char *
expand_contraction (const char *word)
{
  if (strcmp (word, "somebody'd") == 0)
    return "somebodyd";
  for (guint i = 0; bare_contractions[i] != NULL; i++)
    if (lacks_one_apostrophe (word, bare_contractions[i]))
      return bare_contractions[i];
  for (guint i = 0; double_contractions[i] != NULL; i++)
    if (lacks_one_apostrophe (word, double_contractions[i]))
      return double_contractions[i];
  return word;
}

/* A mark next to a space anywhere vanishes everywhere; otherwise it becomes a space. */
static void
treat_punctuation (GString *text)
{
  static const char marks[] = ";/[]\"{}()=+\\_-><@`,?!";
  g_autofree char *before = g_strdup (text->str);

  for (const char *mark = marks; *mark != '\0'; mark++) {
    char found[2] = {*mark, '\0'}, then_space[3] = {*mark, ' ', '\0'},
         space_then[3] = {' ', *mark, '\0'};
    gboolean beside_space =
        strstr (before, then_space) != NULL || strstr (before, space_then) != NULL;

    ks_eval_text_replace (text, found, beside_space ? "" : " ");
  }
}

/* The first 32 dots that no decimal digit follows are deleted. */
static void
delete_dots (GString *text)
{
  g_autoptr (GString) out = g_string_new (NULL);
  guint n_deleted = 0;

  for (const char *p = text->str; *p != '\0'; p = g_utf8_next_char (p)) {
    gunichar next = g_utf8_get_char (g_utf8_next_char (p));

    if (*p == '.' && n_deleted < MAX_DELETED_DOTS &&
        g_unichar_type (next) != G_UNICODE_DECIMAL_NUMBER)
      n_deleted++;
    else
      g_string_append_unichar (out, g_utf8_get_char (p));
  }
  g_string_assign (text, out->str);
}

static void
append_word (GString *out, const char *word)
{
  char digits[4];

  if (strcmp (word, "none") == 0)
    word = "0";
  for (guint i = 0; i < G_N_ELEMENTS (number_words); i++)
    if (strcmp (word, number_words[i]) == 0) {
      g_snprintf (digits, sizeof digits, "%u", i);
      word = digits;
      break;
    }
  if (strcmp (word, "a") == 0 || strcmp (word, "an") == 0 || strcmp (word, "the") == 0)
    return;
  if (out->len > 0)
    g_string_append_c (out, ' ');
  g_string_append (out, expand_contraction (word));
}

char *
ks_eval_textvqa_normalise (const char *answer)
{
  g_autoptr (GString) valid = ks_eval_text_new (answer);
  g_autoptr (GString) text = ks_eval_text_lower (valid->str);
  g_autoptr (GString) lower = NULL;
  g_autoptr (GString) word = g_string_new (NULL);
  GString *out = g_string_new (NULL);

  ks_eval_text_replace (text, ",", "");
  ks_eval_text_replace (text, "?", "");
  ks_eval_text_replace (text, "'s", " 's");
  ks_eval_text_strip (text);
  ks_eval_text_replace (text, "\n", " ");
  ks_eval_text_replace (text, "\t", " ");
  ks_eval_text_strip (text);
  treat_punctuation (text);
  delete_dots (text);
  lower = ks_eval_text_lower (text->str);
  for (const char *p = lower->str;; p = g_utf8_next_char (p)) {
    gunichar c = g_utf8_get_char (p);

    if (c != 0 && !ks_eval_text_is_space (c)) {
      g_string_append_unichar (word, c);
      continue;
    }
    if (word->len > 0)
      append_word (out, word->str);
    g_string_truncate (word, 0);
    if (c == 0)
      break;
  }
  return g_string_free (out, FALSE);
}

char *
ks_eval_textvqa_find_question (const char *prompt)
{
  g_autoptr (GString) valid = ks_eval_text_new (prompt);
  g_auto (GStrv) lines = g_strsplit (valid->str, "\n", -1);
  const guint n_line = g_strv_length (lines);
  g_autofree char *question = NULL;

  if (g_str_has_prefix (valid->str, "OCR tokens: ")) {
    const char *begin = strstr (valid->str, "Question: ");
    const char *end = begin != NULL ? strstr (begin, " Short answer:") : NULL;

    if (end != NULL)
      question =
          g_strndup (begin + strlen ("Question: "), (gsize)(end - begin) - strlen ("Question: "));
  } else if (n_line == 3 && strstr (valid->str, "Reference OCR token: ") != NULL) {
    question = g_strdup (lines[g_str_has_prefix (valid->str, "Reference OCR token:") ? 1 : 0]);
  } else if (n_line == 2) {
    question = g_strdup (lines[0]);
  }
  return question != NULL ? g_string_free (ks_eval_text_lower (question), FALSE) : NULL;
}

char *
ks_eval_textvqa_make_place (const char *image, const char *lower_question)
{
  return g_strdup_printf ("%s\n%s", image, lower_question);
}

double
ks_eval_textvqa_score (const char *prediction, const char *const *references, gsize n_references)
{
  static const double by_matches[] = {0.0, 0.3, 0.6, 0.9, 1.0};
  g_autofree char *answer = ks_eval_textvqa_normalise (prediction);
  guint n_equal = 0;

  if (n_references != N_REFERENCES)
    return -1.0;
  for (gsize i = 0; i < n_references; i++) {
    g_autofree char *reference = ks_eval_textvqa_normalise (references[i]);

    n_equal += strcmp (answer, reference) == 0;
  }
  return by_matches[MIN (n_equal, G_N_ELEMENTS (by_matches) - 1)];
}
