/* eval-overlap.c - see eval-overlap.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-overlap.h"

#include "app/eval-text.h"

#include <string.h>

#define MAX_WORDS 20000u /* of a text that takes part; the rest of longer ones does not count */

static GPtrArray *
split_words (const char *text)
{
  GPtrArray *words = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GString) valid = ks_eval_text_new (text), lower = ks_eval_text_lower (valid->str);
  const char *begin = NULL;

  for (const char *p = lower->str; words->len < MAX_WORDS; p = g_utf8_next_char (p)) {
    gboolean is_word = *p != '\0' && g_unichar_isalnum (g_utf8_get_char (p));

    if (is_word && begin == NULL)
      begin = p;
    if (!is_word && begin != NULL) {
      g_ptr_array_add (words, g_strndup (begin, (gsize)(p - begin)));
      begin = NULL;
    }
    if (*p == '\0')
      break;
  }
  return words;
}

static double
make_f1 (double n_common, guint n_a, guint n_b)
{
  return n_common > 0 ? 2 * n_common / ((double)n_a + n_b) : 0;
}

double
ks_eval_overlap_f1 (const char *prediction, const char *reference)
{
  g_autoptr (GPtrArray) a = split_words (prediction), b = split_words (reference);
  g_autoptr (GHashTable) counts = g_hash_table_new (g_str_hash, g_str_equal);
  guint n_common = 0;

  for (guint i = 0; i < b->len; i++) {
    gpointer word = g_ptr_array_index (b, i);

    g_hash_table_insert (
        counts, word, GUINT_TO_POINTER (GPOINTER_TO_UINT (g_hash_table_lookup (counts, word)) + 1));
  }
  for (guint i = 0; i < a->len; i++) {
    gpointer word = g_ptr_array_index (a, i);
    guint n = GPOINTER_TO_UINT (g_hash_table_lookup (counts, word));

    if (n == 0)
      continue;
    g_hash_table_insert (counts, word, GUINT_TO_POINTER (n - 1));
    n_common++;
  }
  return make_f1 (n_common, a->len, b->len);
}

double
ks_eval_overlap_rouge_l (const char *prediction, const char *reference)
{
  g_autoptr (GPtrArray) a = split_words (prediction), b = split_words (reference);
  g_autofree guint *row = g_new0 (guint, b->len + 1);

  for (guint i = 0; i < a->len; i++) {
    guint diagonal = 0; /* length for the words before both */

    for (guint j = 0; j < b->len; j++) {
      guint above = row[j + 1];

      row[j + 1] = strcmp (g_ptr_array_index (a, i), g_ptr_array_index (b, j)) == 0
                       ? diagonal + 1
                       : MAX (above, row[j]);
      diagonal = above;
    }
  }
  return make_f1 (row[b->len], a->len, b->len);
}

/* Numbers that stand behind one of the words, "image 2", "pictures 3". */
static GHashTable *
find_images (const char *text)
{
  GHashTable *numbers = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autoptr (GPtrArray) words = split_words (text);

  for (guint i = 0; i + 1 < words->len; i++) {
    const char *word = g_ptr_array_index (words, i), *next = g_ptr_array_index (words, i + 1);
    g_autofree char *digits = NULL;

    if ((g_str_has_prefix (word, "image") || g_str_has_prefix (word, "picture")) &&
        ks_eval_text_all_digits (next, &digits))
      g_hash_table_add (numbers, g_steal_pointer (&digits));
  }
  return numbers;
}

double
ks_eval_overlap_images (const char *prediction, const char *reference)
{
  g_autoptr (GHashTable) found = find_images (prediction), wanted = find_images (reference);
  GHashTableIter iter;
  gpointer number;
  guint n = 0;

  if (g_hash_table_size (wanted) == 0)
    return -1;
  g_hash_table_iter_init (&iter, wanted);
  while (g_hash_table_iter_next (&iter, &number, NULL))
    n += g_hash_table_contains (found, number);
  return (double)n / g_hash_table_size (wanted);
}
