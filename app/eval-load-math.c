/* eval-load-math.c - MathVision and AIME; see eval-load.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-load-internal.h"

#include "app/eval-text.h"
#include "app/ks-error.h"

#include <string.h>

static void
set_field (KsEvalItem *item, const char *name, const char *text)
{
  g_hash_table_insert (item->fields, g_strdup (name), g_strdup (text));
}

/* --- MathVision --- */

/* One merged picture stands for all that the text names: "<image1>" and the like go. */
static char *
drop_markers (const char *question)
{
  g_autoptr (GRegex) regex = g_regex_new ("<image\\d*>", 0, 0, NULL);
  g_autofree char *text = g_regex_replace_literal (regex, question, -1, 0, "", 0, NULL);
  g_autoptr (GString) out = g_string_new (text);

  ks_eval_text_strip (out);
  return g_strdup (out->str);
}

/* The options are only letters: what they stand for is drawn in the picture. */
static gboolean
are_drawn (char **options)
{
  for (guint i = 0; options[i] != NULL; i++)
    if (options[i][0] != (char)('A' + i) || options[i][1] != '\0')
      return FALSE;
  return TRUE;
}

static void
set_options (KsEvalItem *item, char **take_options)
{
  g_autoptr (GString) choices = g_string_new (NULL), letters = g_string_new (NULL);

  item->options = take_options;
  for (guint i = 0; take_options[i] != NULL; i++) {
    g_string_append_printf (choices, "%s(%c) %s", i > 0 ? "\n" : "", 'A' + i, take_options[i]);
    g_string_append_printf (letters, "\n%c. %s", 'A' + i, take_options[i]);
  }
  if (letters->len > 0)
    g_string_prepend (letters, "Choices:");
  set_field (item, "choices", are_drawn (take_options) ? "" : choices->str);
  set_field (item, "letters", letters->str);
}

static KsEvalItem *
add_mathvision (KsEvalLoading *loading, const char *id, const char *question, const char *answer,
                const char *subject, const char *level)
{
  g_autofree char *text = drop_markers (question);
  g_autofree char *part =
      level != NULL ? g_strdup_printf ("%s/level %s", subject, level) : g_strdup (subject);
  KsEvalItem *item = ks_eval_load_add (loading, part, id);

  ks_eval_turn_add_expected (ks_eval_item_add_turn (item, text, NULL), answer);
  return item;
}

static gboolean
mathvision_row (KsEvalLoading *loading, const cJSON *row, gpointer user, GError **error)
{
  g_autofree char *id = ks_eval_load_dup_field (row, "id", error);
  g_autofree char *question = id != NULL ? ks_eval_load_dup_field (row, "question", error) : NULL;
  g_autofree char *answer = question != NULL ? ks_eval_load_dup_field (row, "answer", error) : NULL;
  g_autofree char *image = answer != NULL ? ks_eval_load_dup_field (row, "image", error) : NULL;
  g_autofree char *subject = ks_eval_load_dup_field (row, "subject|category", NULL);
  g_autofree char *level = ks_eval_load_dup_field (row, "level", NULL);
  g_autofree char *path =
      image != NULL ? ks_eval_load_find_picture (loading, NULL, image, error) : NULL;
  char **options = path != NULL ? ks_eval_load_dup_list (row, "options", error) : NULL;
  KsEvalItem *item;

  if (options == NULL)
    return FALSE;
  item = add_mathvision (loading, id, question, answer, subject != NULL ? subject : "", level);
  set_options (item, options);
  ks_eval_turn_add_picture (g_ptr_array_index (item->turns, 0), path);
  return TRUE;
}

static gboolean
mathvision_line (KsEvalLoading *loading, const KsEvalTsv *tsv, GError **error)
{
  g_autofree char *id = ks_eval_load_dup_column (tsv, "index|id", error);
  g_autofree char *question = id != NULL ? ks_eval_load_dup_column (tsv, "question", error) : NULL;
  g_autofree char *answer =
      question != NULL ? ks_eval_load_dup_column (tsv, "answer", error) : NULL;
  g_autofree char *choices = ks_eval_load_dup_column (tsv, "choices|options", NULL);
  g_autofree char *category = ks_eval_load_dup_column (tsv, "category|subject", NULL);
  g_autofree char *level = ks_eval_load_dup_column (tsv, "level", NULL);
  KsEvalItem *item;
  char **options;

  if (answer == NULL)
    return FALSE;
  options = choices != NULL && choices[0] != '\0' ? ks_eval_parse_list (choices, error)
                                                  : g_new0 (char *, 1);
  if (options == NULL)
    return FALSE;
  item = add_mathvision (loading, id, question, answer, category != NULL ? category : "", level);
  set_options (item, options);
  return ks_eval_load_add_tsv_pictures (loading, tsv, g_ptr_array_index (item->turns, 0), error);
}

gboolean
ks_eval_load_mathvision (KsEvalLoading *loading, GError **error)
{
  return ks_eval_load_is_tsv (loading)
             ? ks_eval_load_tsv (loading, mathvision_line, error)
             : ks_eval_load_json (loading, loading->file, mathvision_row, NULL, error);
}

/* --- AIME --- */

static void
add_aime (KsEvalLoading *loading, const char *id, const char *question, const char *answer)
{
  KsEvalItem *item = ks_eval_load_add (loading, "", id);

  ks_eval_turn_add_expected (ks_eval_item_add_turn (item, question, NULL), answer);
}

static gboolean
aime_row (KsEvalLoading *loading, const cJSON *row, gpointer user, GError **error)
{
  g_autofree char *question = ks_eval_load_dup_field (row, "problem|question", error);
  g_autofree char *answer = question != NULL ? ks_eval_load_dup_field (row, "answer", error) : NULL;
  g_autofree char *id = ks_eval_load_dup_field (row, "id", NULL);

  if (answer == NULL)
    return FALSE;
  if (id == NULL)
    id = g_strdup_printf ("%u", loading->items->len);
  add_aime (loading, id, question, answer);
  return TRUE;
}

static gboolean
aime_line (KsEvalLoading *loading, const KsEvalTsv *tsv, GError **error)
{
  g_autofree char *question = ks_eval_load_dup_column (tsv, "problem|question", error);
  g_autofree char *answer =
      question != NULL ? ks_eval_load_dup_column (tsv, "answer", error) : NULL;
  g_autofree char *id = ks_eval_load_dup_column (tsv, "id|index", NULL);

  if (answer == NULL)
    return FALSE;
  if (id == NULL)
    id = g_strdup_printf ("%u", loading->items->len);
  add_aime (loading, id, question, answer);
  return TRUE;
}

gboolean
ks_eval_load_aime (KsEvalLoading *loading, GError **error)
{
  return ks_eval_load_is_tsv (loading)
             ? ks_eval_load_tsv (loading, aime_line, error)
             : ks_eval_load_json (loading, loading->file, aime_row, NULL, error);
}
