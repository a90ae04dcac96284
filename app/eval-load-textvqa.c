/* eval-load-textvqa.c - TextVQA; see eval-load.h.
 * Its pictures lie in train_images/, those of the validation set too. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-load-internal.h"

#include "app/eval-text.h"
#include "app/eval-textvqa.h"
#include "app/ks-error.h"

#include <string.h>

#define N_REFERENCES 10u

/* First letter upper, the rest lower case. */
static char *
make_sentence (const char *question)
{
  g_autoptr (GString) lower = ks_eval_text_lower (question);
  const char *rest;
  g_autofree char *first = NULL, *upper = NULL;

  ks_eval_text_strip (lower);
  if (lower->len == 0)
    return g_strdup ("");
  rest = g_utf8_next_char (lower->str);
  first = g_strndup (lower->str, (gsize)(rest - lower->str));
  upper = g_utf8_strup (first, -1);
  return g_strconcat (upper, rest, NULL);
}

/* words: image -> its words, or NULL without an OCR file. */
static KsEvalTurn *
add_textvqa (KsEvalLoading *loading, const char *id, const char *image, const char *question,
             char **answers, GHashTable *words, GError **error)
{
  g_autofree char *sentence = NULL;
  g_autoptr (GString) lower = NULL;
  KsEvalItem *item;
  KsEvalTurn *turn;

  if (g_strv_length (answers) != N_REFERENCES) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                 "it has %u reference answers where ten are needed (the test set's are not public)",
                 g_strv_length (answers));
    return NULL;
  }
  item = ks_eval_load_add (loading, "", id);
  lower = ks_eval_text_lower (question);
  g_hash_table_insert (item->fields, g_strdup ("place"),
                       ks_eval_textvqa_make_place (image, lower->str));
  turn = ks_eval_item_add_turn (item, question, NULL);
  for (guint i = 0; i < N_REFERENCES; i++)
    ks_eval_turn_add_expected (turn, answers[i]);
  sentence = make_sentence (question);
  g_hash_table_insert (item->fields, g_strdup ("sentence"), g_steal_pointer (&sentence));
  if (words != NULL) {
    const char *found = g_hash_table_lookup (words, image);

    g_hash_table_insert (item->fields, g_strdup ("ocr"), g_strdup (found != NULL ? found : ""));
  }
  return turn;
}

static gboolean
textvqa_row (KsEvalLoading *loading, const cJSON *row, gpointer user, GError **error)
{
  g_autofree char *id = ks_eval_load_dup_field (row, "question_id", error);
  g_autofree char *image = id != NULL ? ks_eval_load_dup_field (row, "image_id", error) : NULL;
  g_autofree char *question =
      image != NULL ? ks_eval_load_dup_field (row, "question", error) : NULL;
  g_auto (GStrv) answers = question != NULL ? ks_eval_load_dup_list (row, "answers", error) : NULL;
  g_autofree char *name = NULL, *path = NULL;
  KsEvalTurn *turn;

  if (answers == NULL)
    return FALSE;
  name = g_strconcat (image, ".jpg", NULL);
  path = ks_eval_load_find_picture (loading, "train_images", name, error);
  if (path == NULL)
    return FALSE;
  turn = add_textvqa (loading, id, image, question, answers, user, error);
  if (turn == NULL)
    return FALSE;
  ks_eval_turn_add_picture (turn, path);
  return TRUE;
}

static gboolean
textvqa_line (KsEvalLoading *loading, const KsEvalTsv *tsv, GError **error)
{
  g_autofree char *id = ks_eval_load_dup_column (tsv, "index|question_id", error);
  g_autofree char *image = ks_eval_load_dup_column (tsv, "image_id", NULL);
  g_autofree char *question = id != NULL ? ks_eval_load_dup_column (tsv, "question", error) : NULL;
  g_autofree char *answer =
      question != NULL ? ks_eval_load_dup_column (tsv, "answer|answers", error) : NULL;
  g_auto (GStrv) answers = answer != NULL ? ks_eval_parse_list (answer, error) : NULL;
  KsEvalTurn *turn;

  if (answers == NULL)
    return FALSE;
  turn = add_textvqa (loading, id, image != NULL ? image : id, question, answers, NULL, error);
  return turn != NULL && ks_eval_load_add_tsv_pictures (loading, tsv, turn, error);
}

static gboolean
ocr_row (KsEvalLoading *loading, const cJSON *row, gpointer user, GError **error)
{
  g_autofree char *image = ks_eval_load_dup_field (row, "image_id", error);
  g_auto (GStrv) tokens = image != NULL ? ks_eval_load_dup_list (row, "ocr_tokens", error) : NULL;

  if (tokens == NULL)
    return FALSE;
  g_hash_table_insert (user, g_steal_pointer (&image), g_strjoinv (", ", tokens));
  return TRUE;
}

/* A row of LLaVA's file of questions: "question_id" is the picture's name there. */
static gboolean
prompt_row (KsEvalLoading *loading, const cJSON *row, gpointer user, GError **error)
{
  g_autofree char *image = ks_eval_load_dup_field (row, "question_id", error);
  g_autofree char *text = image != NULL ? ks_eval_load_dup_field (row, "text", error) : NULL;
  g_autofree char *question = text != NULL ? ks_eval_textvqa_find_question (text) : NULL;

  if (question != NULL) {
    g_hash_table_insert (user, ks_eval_textvqa_make_place (image, question),
                         g_steal_pointer (&text));
    return TRUE;
  }
  if (text != NULL)
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                         "its \"text\" is no prompt as LLaVA words them");
  return FALSE;
}

/* The file of questions decides which items there are; each of its rows needs one. */
static gboolean
take_prompts (KsEvalLoading *loading, GError **error)
{
  g_autoptr (GHashTable) prompts = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  GHashTableIter iter;
  gpointer place;
  guint n = 0;

  if (!ks_eval_load_json (loading, loading->options->prompts, prompt_row, prompts, error))
    return FALSE;
  for (guint i = 0; i < loading->items->len;) {
    KsEvalItem *item = g_ptr_array_index (loading->items, i);
    const char *key = g_hash_table_lookup (item->fields, "place");
    const char *text = g_hash_table_lookup (prompts, key);

    if (text == NULL) {
      g_ptr_array_remove_index (loading->items, i);
      continue;
    }
    g_hash_table_insert (item->fields, g_strdup ("prompt"), g_strdup (text));
    i++;
  }
  for (guint i = 0; i < loading->items->len; i++) {
    const KsEvalItem *item = g_ptr_array_index (loading->items, i);

    g_hash_table_remove (prompts, g_hash_table_lookup (item->fields, "place"));
  }
  n = g_hash_table_size (prompts);
  if (n == 0)
    return TRUE;
  g_hash_table_iter_init (&iter, prompts);
  (void)g_hash_table_iter_next (&iter, &place, NULL);
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
               "%u questions of %s are not in %s, one about the picture %.*s: it belongs to other "
               "data",
               n, loading->options->prompts, loading->file, (int)strcspn (place, "\n"),
               (const char *)place);
  return FALSE;
}

static gboolean
load_annotations (KsEvalLoading *loading, GError **error)
{
  g_autoptr (GHashTable) words = NULL;

  if (ks_eval_load_is_tsv (loading))
    return ks_eval_load_tsv (loading, textvqa_line, error);
  if (loading->options->ocr != NULL) {
    words = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
    if (!ks_eval_load_json (loading, loading->options->ocr, ocr_row, words, error))
      return FALSE;
  }
  return ks_eval_load_json (loading, loading->file, textvqa_row, words, error);
}

gboolean
ks_eval_load_textvqa (KsEvalLoading *loading, GError **error)
{
  return load_annotations (loading, error) &&
         (loading->options->prompts == NULL || take_prompts (loading, error));
}
