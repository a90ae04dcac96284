/* eval-item.c - see eval-item.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-item.h"

#include "app/eval-random.h"
#include "app/ks-error.h"

#include <string.h>

static void
free_picture (gpointer data)
{
  KsEvalPicture *picture = data;

  g_free (picture->path);
  g_clear_pointer (&picture->base64, g_bytes_unref);
  g_free (picture);
}

static void
free_turn (gpointer data)
{
  KsEvalTurn *turn = data;

  g_free (turn->text);
  g_free (turn->reply);
  g_strfreev (turn->expect);
  g_ptr_array_unref (turn->pictures);
  g_free (turn);
}

KsEvalItem *
ks_eval_item_new (const char *bench, const char *part, const char *id)
{
  KsEvalItem *item = g_new0 (KsEvalItem, 1);

  item->bench = g_intern_string (bench);
  item->part = g_intern_string (part);
  item->id = g_strdup (id);
  item->fields = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  item->turns = g_ptr_array_new_with_free_func (free_turn);
  return item;
}

void
ks_eval_item_free (KsEvalItem *item)
{
  if (item == NULL)
    return;
  g_free (item->id);
  g_free (item->group);
  g_strfreev (item->options);
  g_hash_table_unref (item->fields);
  g_ptr_array_unref (item->turns);
  g_free (item);
}

KsEvalTurn *
ks_eval_item_add_turn (KsEvalItem *item, const char *text, const char *reply)
{
  KsEvalTurn *turn = g_new0 (KsEvalTurn, 1);

  turn->text = g_strdup (text);
  turn->reply = g_strdup (reply);
  turn->pictures = g_ptr_array_new_with_free_func (free_picture);
  if (reply == NULL)
    turn->expect = g_new0 (char *, 1);
  g_ptr_array_add (item->turns, turn);
  return turn;
}

void
ks_eval_turn_add_expected (KsEvalTurn *turn, const char *text)
{
  guint n = turn->expect != NULL ? g_strv_length (turn->expect) : 0;

  turn->expect = g_renew (char *, turn->expect, n + 2);
  turn->expect[n] = g_strdup (text);
  turn->expect[n + 1] = NULL;
}

static KsEvalPicture *
add_picture (KsEvalTurn *turn, const char *path, GBytes *base64)
{
  KsEvalPicture *picture = g_new0 (KsEvalPicture, 1);

  picture->path = g_strdup (path);
  picture->base64 = base64 != NULL ? g_bytes_ref (base64) : NULL;
  g_ptr_array_add (turn->pictures, picture);
  return picture;
}

KsEvalPicture *
ks_eval_turn_add_picture (KsEvalTurn *turn, const char *path)
{
  return add_picture (turn, path, NULL);
}

KsEvalPicture *
ks_eval_turn_add_base64 (KsEvalTurn *turn, GBytes *base64)
{
  return add_picture (turn, NULL, base64);
}

guint
ks_eval_item_count_answers (const KsEvalItem *item)
{
  guint n = 0;

  for (guint i = 0; i < item->turns->len; i++)
    n += ((KsEvalTurn *)g_ptr_array_index (item->turns, i))->reply == NULL;
  return n;
}

char *
ks_eval_item_make_bench (const KsEvalItem *item, gboolean forced)
{
  return forced ? g_strconcat (item->bench, "-forced", NULL) : g_strdup (item->bench);
}

gboolean
ks_eval_item_is_done (const KsEvalItem *item, const KsEvalCell *cell, gboolean forced,
                      const KsEvalRunFile *file)
{
  g_autofree char *bench = ks_eval_item_make_bench (item, forced);

  for (guint i = 0; i < item->turns->len; i++)
    if (((KsEvalTurn *)g_ptr_array_index (item->turns, i))->reply == NULL &&
        !ks_eval_run_file_has (file, cell, bench, item->id, i))
      return FALSE;
  return TRUE;
}

static const char *
get_group (GPtrArray *items, guint i)
{
  const KsEvalItem *item = g_ptr_array_index (items, i);

  return item->group != NULL ? item->group : item->id;
}

void
ks_eval_items_sample (GPtrArray *items, guint n, guint64 seed)
{
  KsEvalRandom random = ks_eval_random (seed, 0);
  g_autofree guint *order = NULL;
  g_autoptr (GHashTable) sizes = NULL, chosen = NULL;
  guint n_chosen = 0;

  if (n == 0 || n >= items->len)
    return;
  sizes = g_hash_table_new (g_str_hash, g_str_equal);
  chosen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  order = g_new (guint, items->len);
  for (guint i = 0; i < items->len; i++) {
    gpointer size = g_hash_table_lookup (sizes, get_group (items, i));

    g_hash_table_insert (sizes, (gpointer)get_group (items, i),
                         GUINT_TO_POINTER (GPOINTER_TO_UINT (size) + 1));
  }
  ks_eval_random_shuffle (&random, order, items->len);
  for (guint i = 0; i < items->len; i++) {
    const char *group = get_group (items, order[i]);
    guint size = GPOINTER_TO_UINT (g_hash_table_lookup (sizes, group));

    if (n_chosen + size <= n && g_hash_table_add (chosen, g_strdup (group)))
      n_chosen += size;
  }
  for (guint i = items->len; i > 0; i--)
    if (!g_hash_table_contains (chosen, get_group (items, i - 1)))
      g_ptr_array_remove_index (items, i - 1);
}

gboolean
ks_eval_items_check_pictures (GPtrArray *items, GError **error)
{
  for (guint i = 0; i < items->len; i++) {
    const KsEvalItem *item = g_ptr_array_index (items, i);

    for (guint t = 0; t < item->turns->len; t++) {
      const KsEvalTurn *turn = g_ptr_array_index (item->turns, t);

      for (guint p = 0; p < turn->pictures->len; p++) {
        const KsEvalPicture *picture = g_ptr_array_index (turn->pictures, p);

        if (picture->path == NULL || g_file_test (picture->path, G_FILE_TEST_IS_REGULAR))
          continue;
        g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                     "the picture %s of item %s is not there: name the folder of the pictures with "
                     "--pictures",
                     picture->path, item->id);
        return FALSE;
      }
    }
  }
  return TRUE;
}

/* --- hash --- */

/* With its length, so that no two lists of texts run together. */
static void
add_text (GChecksum *sum, const char *text)
{
  g_autofree char *length = g_strdup_printf ("%zu:", text != NULL ? strlen (text) : 0);

  g_checksum_update (sum, (const guchar *)length, -1);
  if (text != NULL)
    g_checksum_update (sum, (const guchar *)text, -1);
}

static void
add_texts (GChecksum *sum, char **texts)
{
  g_autofree char *n = g_strdup_printf ("%u", texts != NULL ? g_strv_length (texts) : 0);

  add_text (sum, n);
  for (guint i = 0; texts != NULL && texts[i] != NULL; i++)
    add_text (sum, texts[i]);
}

/* Files count by name: their content would have to be read whole. */
static void
add_turn (GChecksum *sum, const KsEvalTurn *turn)
{
  add_text (sum, turn->text);
  add_text (sum, turn->reply);
  add_texts (sum, turn->expect);
  for (guint i = 0; i < turn->pictures->len; i++) {
    const KsEvalPicture *picture = g_ptr_array_index (turn->pictures, i);
    g_autofree char *place = g_strdup_printf ("%zu", picture->at);
    g_autofree char *name = picture->path != NULL ? g_path_get_basename (picture->path) : NULL;

    add_text (sum, place);
    add_text (sum, name);
    if (picture->base64 != NULL)
      g_checksum_update (sum, g_bytes_get_data (picture->base64, NULL),
                         (gssize)g_bytes_get_size (picture->base64));
  }
}

char *
ks_eval_items_hash (GPtrArray *items)
{
  g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);

  for (guint i = 0; i < items->len; i++) {
    const KsEvalItem *item = g_ptr_array_index (items, i);

    add_text (sum, item->bench);
    add_text (sum, item->part);
    add_text (sum, item->id);
    add_texts (sum, item->options);
    for (guint t = 0; t < item->turns->len; t++)
      add_turn (sum, g_ptr_array_index (item->turns, t));
  }
  return g_strdup (g_checksum_get_string (sum));
}
