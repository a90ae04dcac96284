/* eval-load-mmdu.c - MMDU, dialogues over several pictures; see eval-load.h.
 * Each "<ImageHere>" of a question stands for the next picture, in order, over all turns. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-load-internal.h"

#include "app/ks-error.h"

#include <string.h>

static const char marker[] = "<ImageHere>";

/* Pictures in order; each takes the next one. */
typedef struct {
  char **paths;     /* or */
  GPtrArray *bytes; /* of GBytes */
  guint n, next;
} Pictures;

static gboolean
take_picture (Pictures *pictures, KsEvalTurn *turn, gsize at, GError **error)
{
  KsEvalPicture *picture;

  if (pictures->next >= pictures->n) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                 "its questions name more pictures than the %u it has", pictures->n);
    return FALSE;
  }
  picture =
      pictures->paths != NULL
          ? ks_eval_turn_add_picture (turn, pictures->paths[pictures->next])
          : ks_eval_turn_add_base64 (turn, g_ptr_array_index (pictures->bytes, pictures->next));
  pictures->next++;
  picture->at = at;
  picture->in_question = TRUE;
  return TRUE;
}

static gboolean
add_turn (KsEvalItem *item, const char *question, const char *reference, Pictures *pictures,
          GError **error)
{
  g_autoptr (GString) text = g_string_new (NULL);
  KsEvalTurn *turn = ks_eval_item_add_turn (item, "", NULL);

  for (const char *p = question;;) {
    const char *found = strstr (p, marker);

    if (found == NULL) {
      g_string_append (text, p);
      break;
    }
    g_string_append_len (text, p, found - p);
    if (!take_picture (pictures, turn, text->len, error))
      return FALSE;
    p = found + sizeof marker - 1;
  }
  g_free (turn->text);
  turn->text = g_strdup (text->str);
  ks_eval_turn_add_expected (turn, reference);
  return TRUE;
}

/* --- JSON --- */

/* The reference behind each question; a dialogue that ends with a question has none for it. */
static gboolean
read_conversation (KsEvalItem *item, const cJSON *list, Pictures *pictures, GError **error)
{
  const cJSON *at;
  g_autofree char *question = NULL;

  cJSON_ArrayForEach (at, list)
  {
    g_autofree char *from = ks_eval_load_dup_field (at, "from|role", error);
    g_autofree char *text =
        from != NULL ? ks_eval_load_dup_field (at, "value|content", error) : NULL;

    if (text == NULL)
      return FALSE;
    if (strcmp (from, "user") == 0 || strcmp (from, "human") == 0) {
      g_free (question);
      question = g_steal_pointer (&text);
    } else if (question != NULL) {
      if (!add_turn (item, question, text, pictures, error))
        return FALSE;
      g_clear_pointer (&question, g_free);
    }
  }
  if (item->turns->len > 0)
    return TRUE;
  g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                       "its \"conversations\" hold no question with an answer");
  return FALSE;
}

static char **
find_pictures (KsEvalLoading *loading, char **names, GError **error)
{
  g_autoptr (GStrvBuilder) builder = g_strv_builder_new ();

  for (guint i = 0; names[i] != NULL; i++) {
    g_autofree char *path = ks_eval_load_find_picture (loading, NULL, names[i], error);

    if (path == NULL)
      return NULL;
    g_strv_builder_add (builder, path);
  }
  return g_strv_builder_end (builder);
}

static gboolean
mmdu_row (KsEvalLoading *loading, const cJSON *row, gpointer user, GError **error)
{
  g_autofree char *id = ks_eval_load_dup_field (row, "id", NULL);
  g_auto (GStrv) names = ks_eval_load_dup_list (row, "image", error);
  g_auto (GStrv) paths = names != NULL ? find_pictures (loading, names, error) : NULL;
  Pictures pictures = {.paths = paths};
  KsEvalItem *item;

  if (paths == NULL)
    return FALSE;
  pictures.n = g_strv_length (paths);
  if (id == NULL)
    id = g_strdup_printf ("%u", loading->items->len);
  item = ks_eval_load_add (loading, "", id);
  item->group = g_strdup (id);
  return read_conversation (item, cJSON_GetObjectItem (row, "conversations"), &pictures, error);
}

/* --- TSV --- */

static gboolean
mmdu_line (KsEvalLoading *loading, const KsEvalTsv *tsv, GError **error)
{
  g_autofree char *id = ks_eval_load_dup_column (tsv, "index", error);
  g_autofree char *question = id != NULL ? ks_eval_load_dup_column (tsv, "question", error) : NULL;
  g_autofree char *answer =
      question != NULL ? ks_eval_load_dup_column (tsv, "answer", error) : NULL;
  g_auto (GStrv) questions = answer != NULL ? ks_eval_parse_list (question, error) : NULL;
  g_auto (GStrv) answers = questions != NULL ? ks_eval_parse_list (answer, error) : NULL;
  g_autoptr (GPtrArray) bytes = ks_eval_tsv_get_base64 (tsv, "image");
  Pictures pictures = {.bytes = bytes, .n = bytes->len};
  KsEvalItem *item;

  if (answers == NULL)
    return FALSE;
  if (g_strv_length (questions) != g_strv_length (answers) || questions[0] == NULL) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "it has %u questions and %u answers",
                 g_strv_length (questions), g_strv_length (answers));
    return FALSE;
  }
  item = ks_eval_load_add (loading, "", id);
  item->group = g_strdup (id);
  for (guint i = 0; questions[i] != NULL; i++)
    if (!add_turn (item, questions[i], answers[i], &pictures, error))
      return FALSE;
  return TRUE;
}

gboolean
ks_eval_load_mmdu (KsEvalLoading *loading, GError **error)
{
  return ks_eval_load_is_tsv (loading)
             ? ks_eval_load_tsv (loading, mmdu_line, error)
             : ks_eval_load_json (loading, loading->file, mmdu_row, NULL, error);
}
