/* eval-results.c - see eval-results.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-results.h"

#include "app/eval-mme.h"
#include "app/eval-text.h"
#include "app/eval-textvqa.h"
#include "app/ks-error.h"

#include <stdio.h>
#include <string.h>

#define PROBE_BYTES 65536u

static KsEvalRow *
add_row (GPtrArray *rows, const char *bench, const char *part, const char *id,
         const char *prediction)
{
  const KsEvalCell cell = ks_eval_cell ("theirs", 0);
  KsEvalRow *row = ks_eval_row_new (&cell, bench, part, id, 0);

  g_free (row->prediction);
  row->prediction = g_utf8_make_valid (prediction, -1);
  g_ptr_array_add (rows, row);
  return row;
}

/* --- MME --- */

static gboolean
fail_line (const char *path, guint line, const char *what, GError **error)
{
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "line %u of %s %s", line, path, what);
  return FALSE;
}

/* Picture, question, reference, answer; an answer may hold tabs.  Two lines that follow each other
 * are the questions about one picture, as the organisers' tool has it. */
static gboolean
add_mme_line (GPtrArray *rows, const char *task, const char *line, const char *first_image,
              GError **error)
{
  g_auto (GStrv) fields = g_strsplit (line, "\t", 4);
  g_autofree char *id = NULL;
  const guint n_of_task = rows->len;
  KsEvalRow *row;

  if (g_strv_length (fields) != 4)
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                         "has no picture, question, reference and answer with tabs between them");
  else if (g_ascii_strcasecmp (g_strstrip (fields[2]), "yes") != 0 &&
           g_ascii_strcasecmp (fields[2], "no") != 0)
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                         "has a reference that is not Yes or No");
  else if (first_image != NULL && strcmp (first_image, fields[0]) != 0)
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                         "is about another picture than its neighbour: the two questions of a "
                         "picture stand side by side");
  if (*error != NULL)
    return FALSE;
  id = g_strdup_printf ("%s/%s#%u", task, fields[0], n_of_task + 1);
  row = add_row (rows, "mme", task, id, fields[3]);
  row->group = g_strdup_printf ("%s/pair %u", task, n_of_task / 2 + 1);
  row->expect = g_strsplit (fields[2], "\t", 1);
  return TRUE;
}

static gboolean
load_mme_file (GPtrArray *all, const char *task, const char *path, GError **error)
{
  g_autoptr (GPtrArray) rows = g_ptr_array_new ();
  g_autofree char *text = ks_eval_load_text (path, NULL, error), *image = NULL;
  g_auto (GStrv) lines = text != NULL ? g_strsplit (text, "\n", -1) : NULL;
  gboolean ok = lines != NULL;

  for (guint i = 0; ok && lines[i] != NULL; i++) {
    g_autofree char *line = g_utf8_make_valid (lines[i], -1);
    g_autoptr (GError) local = NULL;

    g_strchomp (line);
    if (line[0] == '\0')
      continue;
    ok = add_mme_line (rows, task, line, rows->len % 2 == 1 ? image : NULL, &local) ||
         fail_line (path, i + 1, local->message, error);
    g_free (image);
    image = g_strndup (line, strcspn (line, "\t"));
  }
  if (ok && rows->len == 0) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "%s holds no answer", path);
    ok = FALSE;
  } else if (ok && rows->len % 2 == 1) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                 "%s has %u answers: the last picture has only one", path, rows->len);
    ok = FALSE;
  }
  for (guint i = 0; i < rows->len; i++)
    g_ptr_array_add (all, g_ptr_array_index (rows, i));
  return ok;
}

static gboolean
load_mme_folder (GPtrArray *rows, const char *folder, GError **error)
{
  for (guint i = 0; i < KS_EVAL_MME_N_TASKS; i++) {
    g_autofree char *name = g_strconcat (ks_eval_mme_tasks[i], ".txt", NULL);
    g_autofree char *path = g_build_filename (folder, name, NULL);

    if (g_file_test (path, G_FILE_TEST_IS_REGULAR) &&
        !load_mme_file (rows, ks_eval_mme_tasks[i], path, error))
      return FALSE;
  }
  if (rows->len > 0)
    return TRUE;
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
               "%s holds no results of MME: its files are named by subtask, existence.txt to "
               "code_reasoning.txt",
               folder);
  return FALSE;
}

/* The subtask that a file is named by, or NULL. */
static const char *
find_task (const char *path)
{
  g_autofree char *name = g_path_get_basename (path);

  for (guint i = 0; i < KS_EVAL_MME_N_TASKS; i++)
    if (g_str_has_prefix (name, ks_eval_mme_tasks[i]) &&
        strcmp (name + strlen (ks_eval_mme_tasks[i]), ".txt") == 0)
      return ks_eval_mme_tasks[i];
  return NULL;
}

/* --- LLaVA's answers --- */

static const char *
text_of (const cJSON *row, const char *name)
{
  return cJSON_GetStringValue (cJSON_GetObjectItemCaseSensitive (row, name));
}

/* Picture and question find the item: "question_id" is the picture's name. */
static gboolean
add_llava_row (GPtrArray *rows, const cJSON *json, GHashTable *by_place, GError **error)
{
  const cJSON *name = cJSON_GetObjectItemCaseSensitive (json, "question_id");
  const char *prompt = text_of (json, "prompt"), *answer = text_of (json, "text");
  g_autofree char *question = prompt != NULL ? ks_eval_textvqa_find_question (prompt) : NULL;
  g_autofree char *image = cJSON_IsNumber (name) ? g_strdup_printf ("%.0f", name->valuedouble)
                                                 : g_strdup (cJSON_GetStringValue (name));
  g_autofree char *place = NULL;
  const KsEvalItem *item;
  const KsEvalTurn *turn;
  KsEvalRow *row;

  if (image == NULL || question == NULL || answer == NULL) {
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                         "it has no \"question_id\", \"prompt\" and \"text\" as LLaVA writes them");
    return FALSE;
  }
  place = ks_eval_textvqa_make_place (image, question);
  item = g_hash_table_lookup (by_place, place);
  if (item == NULL) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                 "the data hold no question \"%s\" about the picture %s", question, image);
    return FALSE;
  }
  turn = g_ptr_array_index (item->turns, 0);
  row = add_row (rows, "textvqa", "", item->id, answer);
  row->expect = g_strdupv (turn->expect);
  return TRUE;
}

static gboolean
load_llava_lines (GPtrArray *rows, const char *path, GHashTable *by_place, GError **error)
{
  g_autofree char *text = ks_eval_load_text (path, NULL, error);
  g_auto (GStrv) lines = text != NULL ? g_strsplit (text, "\n", -1) : NULL;

  for (guint i = 0; lines != NULL && lines[i] != NULL; i++) {
    g_autoptr (GError) local = NULL;
    cJSON *json;
    gboolean ok;

    if (g_strstrip (lines[i])[0] == '\0')
      continue;
    json = cJSON_Parse (lines[i]);
    ok = add_llava_row (rows, json, by_place, &local);
    cJSON_Delete (json);
    if (!ok) {
      g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "line %u of %s cannot be used: %s",
                   i + 1, path, local->message);
      return FALSE;
    }
  }
  return lines != NULL;
}

static gboolean
load_llava (GPtrArray *rows, const char *path, const KsEvalLoadOptions *data, GError **error)
{
  g_autoptr (GHashTable) by_place = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GPtrArray) items = NULL;

  if (data->data == NULL) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                 "%s holds answers without references: name TextVQA's file with --data", path);
    return FALSE;
  }
  items = ks_eval_load ("textvqa", data, error);
  for (guint i = 0; items != NULL && i < items->len; i++) {
    KsEvalItem *item = g_ptr_array_index (items, i);

    g_hash_table_insert (by_place, g_hash_table_lookup (item->fields, "place"), item);
  }
  return items != NULL && load_llava_lines (rows, path, by_place, error);
}

/* A first line with "question_id" and "text", and without the "bench" of our own rows. */
static gboolean
is_llava (const char *path)
{
  g_autofree char *text = g_malloc0 (PROBE_BYTES + 1);
  FILE *file = fopen (path, "rb");
  const char *begin = text, *end = NULL;
  cJSON *json;
  gboolean yes;

  if (file == NULL)
    return FALSE;
  text[fread (text, 1, PROBE_BYTES, file)] = '\0';
  fclose (file);
  while (g_ascii_isspace (*begin))
    begin++;
  json = cJSON_ParseWithOpts (begin, &end, FALSE);
  yes = text_of (json, "text") != NULL &&
        cJSON_GetObjectItemCaseSensitive (json, "question_id") != NULL &&
        cJSON_GetObjectItemCaseSensitive (json, "bench") == NULL;
  cJSON_Delete (json);
  return yes;
}

gboolean
ks_eval_results_are (const char *path)
{
  return g_file_test (path, G_FILE_TEST_IS_DIR) || find_task (path) != NULL || is_llava (path);
}

GPtrArray *
ks_eval_results_load (const char *path, const KsEvalLoadOptions *data, GError **error)
{
  g_autoptr (GPtrArray) rows = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_eval_row_free);
  const char *task = find_task (path);
  gboolean ok;

  if (g_file_test (path, G_FILE_TEST_IS_DIR))
    ok = load_mme_folder (rows, path, error);
  else if (task != NULL)
    ok = load_mme_file (rows, task, path, error);
  else
    ok = load_llava (rows, path, data, error);
  return ok ? g_steal_pointer (&rows) : NULL;
}
