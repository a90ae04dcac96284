/* cli-bench-policies-items.c - what keepsake-cli bench policies measures: prompts with facts to be
 * asked for, and pieces of real text whose continuation is foreseen (see cli-bench-policies.h).
 * Prompts come from cli-bench-recall-data.h, in the model's own chat format. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-bench-policies.h"

#include "app/cli-bench-recall-data.h"
#include "app/cli-media.h"
#include "app/ks-data-dir.h"
#include "app/ks-error.h"

#include <math.h>
#include <string.h>

#define N_LONG_FACT 20u
#define N_LONG_ASK 6u
#define MAX_DEPTH 8 /* folders in folders */

static void
free_ask (gpointer data)
{
  BenchAsk *ask = data;

  g_array_unref (ask->ids);
  g_free (ask->expect);
  g_free (ask);
}

static BenchItem *
item_new (const char *bench, const char *id)
{
  BenchItem *item = g_new0 (BenchItem, 1);

  item->bench = g_intern_string (bench);
  item->id = g_strdup (id);
  item->text = g_array_new (FALSE, FALSE, sizeof (ks_token));
  item->asks = g_ptr_array_new_with_free_func (free_ask);
  return item;
}

void
bench_item_free (BenchItem *item)
{
  if (item == NULL)
    return;
  g_free (item->id);
  g_array_unref (item->text);
  g_ptr_array_unref (item->asks);
  g_clear_pointer (&item->scored, g_array_unref);
  g_free (item);
}

/* --- recall --- */

static gboolean
encode (KsEngineSetup *setup, const ks_chat_message *messages, gsize n, uint32_t options,
        GArray *ids, GError **error)
{
  const ks_chat_template *tmpl = ks_engine_setup_get_chat_template (setup);
  ks_token_list list;
  ks_error err = {0};
  gboolean ok;

  ks_token_list_init (&list, setup->alloc);
  ok = ks_error_check (ks_chat_encode (tmpl, ks_model_get_tokenizer (setup->model), messages, n,
                                       options, &list, &err),
                       &err, error);
  if (ok)
    g_array_append_vals (ids, list.ids, (guint)list.n);
  ks_token_list_done (&list);
  return ok;
}

static gboolean
add_ask (KsEngineSetup *setup, BenchItem *item, const BenchRecallQuestion *question, GError **error)
{
  ks_chat_message message = {
      .role = KS_ROLE_USER, .text = question->question, .n_bytes = strlen (question->question)};
  BenchAsk *ask = g_new0 (BenchAsk, 1);

  ask->ids = g_array_new (FALSE, FALSE, sizeof (ks_token));
  ask->expect = g_strdup (question->value);
  g_ptr_array_add (item->asks, ask);
  return encode (setup, &message, 1, KS_CHAT_GENERATE, ask->ids, error);
}

static gboolean
fill_recall (KsEngineSetup *setup, BenchItem *item, const BenchRecallPrompt *prompt, GError **error)
{
  static const char reply[] = "I have read it.";
  ks_chat_message messages[2] = {
      {.role = KS_ROLE_USER, .text = prompt->text, .n_bytes = strlen (prompt->text)},
      {.role = KS_ROLE_ASSISTANT, .text = reply, .n_bytes = sizeof reply - 1}};

  if (!encode (setup, messages, 2, KS_CHAT_FIRST, item->text, error))
    return FALSE;
  for (guint i = 0; i < prompt->questions->len; i++)
    if (!add_ask (setup, item, &g_array_index (prompt->questions, BenchRecallQuestion, i), error))
      return FALSE;
  return TRUE;
}

GPtrArray *
bench_items_make_recall (KsEngineSetup *setup, const char *bench, guint n, guint n_word,
                         guint64 seed, GError **error)
{
  g_autoptr (GPtrArray) items = g_ptr_array_new_with_free_func ((GDestroyNotify)bench_item_free);
  gboolean is_new = g_str_equal (bench, "recall-new"), is_long = g_str_equal (bench, "recall-long");

  for (guint i = 0; i < n; i++) {
    BenchRecallSpec spec = {
        .seed = seed, .index = i, .n_word = n_word, .other_words = is_new || (is_long && i % 2)};
    g_autofree char *id = g_strdup_printf ("%" G_GUINT64_FORMAT "-%u", seed, i);
    g_autoptr (BenchRecallPrompt) prompt = NULL;
    BenchItem *item = item_new (bench, id);

    if (is_long) {
      spec.n_fact = N_LONG_FACT;
      spec.n_ask = N_LONG_ASK;
    }
    g_ptr_array_add (items, item);
    prompt = bench_recall_prompt_make (&spec);
    if (!fill_recall (setup, item, prompt, error))
      return NULL;
  }
  return g_steal_pointer (&items);
}

double
bench_row_get_right (const KsEvalRow *row)
{
  if (row->expect == NULL || row->expect[0] == NULL || row->prediction == NULL)
    return NAN;
  return bench_recall_is_right (row->prediction, row->expect[0]) ? 1 : 0;
}

/* --- loss --- */

static int
compare_paths (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

static gboolean
add_paths (GPtrArray *files, const char *path, int depth, GError **error)
{
  g_autoptr (GDir) dir = NULL;
  const char *name;

  if (!g_file_test (path, G_FILE_TEST_IS_DIR)) {
    g_ptr_array_add (files, g_strdup (path));
    return TRUE;
  }
  if (depth >= MAX_DEPTH) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
                 "%s: folders are nested deeper than %d levels", path, MAX_DEPTH);
    return FALSE;
  }
  dir = g_dir_open (path, 0, error);
  if (dir == NULL)
    return FALSE;
  while ((name = g_dir_read_name (dir)) != NULL) {
    g_autofree char *inner = g_build_filename (path, name, NULL);

    if (name[0] != '.' && !g_file_test (inner, G_FILE_TEST_IS_SYMLINK) &&
        !add_paths (files, inner, depth + 1, error))
      return FALSE;
  }
  return TRUE;
}

/* Sorted: the order of a folder is not the same everywhere. */
static GPtrArray *
list_files (char **paths, GError **error)
{
  g_autoptr (GPtrArray) files = g_ptr_array_new_with_free_func (g_free);

  if (paths == NULL || paths[0] == NULL) {
    g_autofree char *folder = ks_data_dir_dup ();

    g_ptr_array_add (files, g_build_filename (folder, "samples", "keepsake-handbook.md", NULL));
  }
  for (guint i = 0; paths != NULL && paths[i] != NULL; i++)
    if (!add_paths (files, paths[i], 0, error))
      return NULL;
  g_ptr_array_sort (files, compare_paths);
  return g_steal_pointer (&files);
}

/* (of ks_token; transfer full) */
static GArray *
read_file (KsEngineSetup *setup, const char *path, GError **error)
{
  gsize n = 0;
  g_autofree char *text = cli_load_text (path, &n, error);
  GArray *ids = NULL;
  ks_token_list list;
  ks_error err = {0};

  if (text == NULL)
    return NULL;
  ks_token_list_init (&list, setup->alloc);
  if (ks_error_check (
          ks_tokenizer_encode (ks_model_get_tokenizer (setup->model), text, n, 0, &list, &err),
          &err, error)) {
    ids = g_array_sized_new (FALSE, FALSE, sizeof (ks_token), (guint)list.n);
    g_array_append_vals (ids, list.ids, (guint)list.n);
  }
  ks_token_list_done (&list);
  return ids;
}

/* Its id follows its contents: two files may have one name. */
static void
add_piece (GPtrArray *items, const char *path, const ks_token *ids, guint n_text, guint n_scored)
{
  g_autofree char *name = g_path_get_basename (path);
  g_autofree char *sum = g_compute_checksum_for_data (G_CHECKSUM_SHA256, (const guchar *)ids,
                                                      (n_text + n_scored) * sizeof *ids);
  g_autofree char *id = g_strdup_printf ("%s-%.8s", name, sum);
  BenchItem *item = item_new ("loss", id);

  g_array_append_vals (item->text, ids, n_text);
  item->scored = g_array_new (FALSE, FALSE, sizeof (ks_token));
  g_array_append_vals (item->scored, ids + n_text, n_scored);
  g_ptr_array_add (items, item);
}

GPtrArray *
bench_items_make_loss (KsEngineSetup *setup, char **paths, guint n, guint n_text, guint n_scored,
                       GError **error)
{
  g_autoptr (GPtrArray) files = list_files (paths, error);
  g_autoptr (GPtrArray) items = g_ptr_array_new_with_free_func ((GDestroyNotify)bench_item_free);
  g_autoptr (GPtrArray) texts = g_ptr_array_new_with_free_func ((GDestroyNotify)g_array_unref);
  guint n_piece = n_text + n_scored;
  gboolean more = TRUE;

  if (files == NULL)
    return NULL;
  for (guint i = 0; i < files->len; i++) {
    GArray *ids = read_file (setup, g_ptr_array_index (files, i), error);

    if (ids == NULL)
      return NULL;
    g_ptr_array_add (texts, ids);
  }
  /* One piece of every file, then a second one of every file, ...; pieces do not overlap. */
  for (guint round = 0; more && items->len < n; round++) {
    more = FALSE;
    for (guint i = 0; i < texts->len && items->len < n; i++) {
      const GArray *ids = g_ptr_array_index (texts, i);

      if ((guint64)(round + 1) * n_piece > ids->len)
        continue;
      add_piece (items, g_ptr_array_index (files, i),
                 &g_array_index (ids, ks_token, round * n_piece), n_text, n_scored);
      more = TRUE;
    }
  }
  if (items->len > 0 || n == 0)
    return g_steal_pointer (&items);
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE,
               "none of the texts has the %u tokens of a piece: give longer ones with --text",
               n_piece);
  return NULL;
}
