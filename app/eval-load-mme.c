/* eval-load-mme.c - MME; see eval-load.h.
 * The release is a folder a subtask, in one of two forms: NAME.jpg beside NAME.txt, or images/ and
 * questions_answers_YN/.  Each text has two lines "question TAB Yes" and "question TAB No". */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-load-internal.h"

#include "app/eval-mme.h"
#include "app/eval-text.h"
#include "app/ks-error.h"

#include <string.h>

static const char request[] = "Please answer yes or no.";

static KsEvalTurn *
add_question (KsEvalLoading *loading, const char *task, const char *group, const char *question,
              const char *answer)
{
  g_autoptr (GString) bare = g_string_new (question);
  KsEvalItem *item = ks_eval_load_add (loading, task, group); /* numbered at the end */
  KsEvalTurn *turn;

  item->group = g_strdup (group);
  turn = ks_eval_item_add_turn (item, question, NULL);
  ks_eval_turn_add_expected (turn, answer);
  ks_eval_text_replace (bare, request, "");
  ks_eval_text_strip (bare);
  g_hash_table_insert (item->fields, g_strdup ("bare"), g_strdup (bare->str));
  return turn;
}

/* The answer behind the last tab of a line. */
static gboolean
split_line (char *line, char **out_answer)
{
  char *tab = strrchr (line, '\t');

  if (tab == NULL)
    return FALSE;
  *tab = '\0';
  *out_answer = g_strstrip (tab + 1);
  g_strstrip (line);
  return line[0] != '\0' && (g_ascii_strcasecmp (*out_answer, "yes") == 0 ||
                             g_ascii_strcasecmp (*out_answer, "no") == 0);
}

/* The picture of a text: same name, one of the suffixes. (transfer full) */
static char *
find_image (const char *folder, const char *name, GError **error)
{
  static const char *const suffixes[] = {".jpg", ".png", ".jpeg", ".JPG", ".PNG"};

  for (guint i = 0; i < G_N_ELEMENTS (suffixes); i++) {
    g_autofree char *file = g_strconcat (name, suffixes[i], NULL);
    g_autofree char *path = g_build_filename (folder, file, NULL);

    if (g_file_test (path, G_FILE_TEST_IS_REGULAR))
      return g_steal_pointer (&path);
  }
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "%s holds no picture of the name %s",
               folder, name);
  return NULL;
}

static gboolean
read_text (KsEvalLoading *loading, const char *task, const char *texts, const char *images,
           const char *file, GError **error)
{
  g_autofree char *path = g_build_filename (texts, file, NULL), *content = NULL, *name = NULL;
  g_autofree char *image = NULL, *group = NULL;
  g_auto (GStrv) lines = NULL;

  name = g_strndup (file, strlen (file) - strlen (".txt"));
  image = find_image (images, name, error);
  if (image == NULL || !g_file_get_contents (path, &content, NULL, error))
    return FALSE;
  group = g_strdup_printf ("%s/%s", task, name);
  lines = g_strsplit (content, "\n", -1);
  for (guint i = 0; lines[i] != NULL; i++) {
    g_autofree char *line = g_utf8_make_valid (lines[i], -1);
    char *answer;

    if (g_strstrip (line)[0] == '\0')
      continue;
    if (!split_line (line, &answer)) {
      g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                   "line %u of %s is no question with a tab and Yes or No", i + 1, path);
      return FALSE;
    }
    ks_eval_turn_add_picture (add_question (loading, task, group, line, answer), image);
  }
  return TRUE;
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

/* Names ending in .txt, sorted. */
static GPtrArray *
list_texts (const char *folder, GError **error)
{
  g_autoptr (GPtrArray) names = g_ptr_array_new_with_free_func (g_free);
  GDir *dir = g_dir_open (folder, 0, error);

  if (dir == NULL)
    return NULL;
  for (const char *name = g_dir_read_name (dir); name != NULL; name = g_dir_read_name (dir))
    if (g_str_has_suffix (name, ".txt") && name[0] != '.')
      g_ptr_array_add (names, g_strdup (name));
  g_dir_close (dir);
  g_ptr_array_sort (names, compare_names);
  return g_steal_pointer (&names);
}

static gboolean
read_task (KsEvalLoading *loading, const char *task, const char *folder, GError **error)
{
  g_autofree char *texts = g_build_filename (folder, "questions_answers_YN", NULL);
  g_autofree char *images = g_build_filename (folder, "images", NULL);
  gboolean apart = g_file_test (texts, G_FILE_TEST_IS_DIR);
  const char *in = apart ? texts : folder;
  g_autoptr (GPtrArray) names = list_texts (in, error);

  for (guint i = 0; names != NULL && i < names->len; i++)
    if (!read_text (loading, task, in, apart ? images : folder, g_ptr_array_index (names, i),
                    error))
      return FALSE;
  return names != NULL;
}

static gboolean
read_release (KsEvalLoading *loading, GError **error)
{
  for (guint i = 0; i < KS_EVAL_MME_N_TASKS; i++) {
    g_autofree char *folder = g_build_filename (loading->folder, ks_eval_mme_tasks[i], NULL);

    if (g_file_test (folder, G_FILE_TEST_IS_DIR) &&
        !read_task (loading, ks_eval_mme_tasks[i], folder, error))
      return FALSE;
  }
  return TRUE;
}

/* Questions of one picture have one group: its name under its subtask's. */
static char *
make_group (const char *task, const char *image)
{
  gsize n = strlen (task);

  return strncmp (image, task, n) == 0 && image[n] == '/' ? g_strdup (image)
                                                          : g_strdup_printf ("%s/%s", task, image);
}

/* A row of a table that was written as JSON, pictures as files. */
static gboolean
mme_row (KsEvalLoading *loading, const cJSON *row, gpointer user, GError **error)
{
  g_autofree char *question = ks_eval_load_dup_field (row, "question", error);
  g_autofree char *answer = question != NULL ? ks_eval_load_dup_field (row, "answer", error) : NULL;
  g_autofree char *task = answer != NULL ? ks_eval_load_dup_field (row, "category", error) : NULL;
  g_autofree char *image =
      task != NULL ? ks_eval_load_dup_field (row, "image|image_path|question_id", error) : NULL;
  g_autofree char *path =
      image != NULL ? ks_eval_load_find_picture (loading, task, image, error) : NULL;
  g_autofree char *group = NULL;

  if (path == NULL)
    return FALSE;
  group = make_group (task, image);
  ks_eval_turn_add_picture (add_question (loading, task, group, question, answer), path);
  return TRUE;
}

/* The two questions of a picture need not stand side by side. */
static gboolean
mme_line (KsEvalLoading *loading, const KsEvalTsv *tsv, GError **error)
{
  g_autofree char *question = ks_eval_load_dup_column (tsv, "question", error);
  g_autofree char *answer =
      question != NULL ? ks_eval_load_dup_column (tsv, "answer", error) : NULL;
  g_autofree char *task = answer != NULL ? ks_eval_load_dup_column (tsv, "category", error) : NULL;
  g_autofree char *image =
      task != NULL ? ks_eval_load_dup_column (tsv, "image_path|question_id", error) : NULL;
  g_autofree char *group = NULL;

  if (image == NULL)
    return FALSE;
  group = make_group (task, image);
  return ks_eval_load_add_tsv_pictures (
      loading, tsv, add_question (loading, task, group, question, answer), error);
}

/* An id is the picture and the number of the question about it. */
static void
number_questions (GPtrArray *items)
{
  g_autoptr (GHashTable) counts = g_hash_table_new (g_str_hash, g_str_equal);

  for (guint i = 0; i < items->len; i++) {
    KsEvalItem *item = g_ptr_array_index (items, i);
    guint n = GPOINTER_TO_UINT (g_hash_table_lookup (counts, item->group)) + 1;

    g_hash_table_insert (counts, item->group, GUINT_TO_POINTER (n));
    g_free (item->id);
    item->id = g_strdup_printf ("%s#%u", item->group, n);
  }
}

gboolean
ks_eval_load_mme (KsEvalLoading *loading, GError **error)
{
  gboolean ok;

  if (loading->file == NULL)
    ok = read_release (loading, error);
  else if (ks_eval_load_is_tsv (loading))
    ok = ks_eval_load_tsv (loading, mme_line, error);
  else
    ok = ks_eval_load_json (loading, loading->file, mme_row, NULL, error);
  number_questions (loading->items);
  return ok;
}
