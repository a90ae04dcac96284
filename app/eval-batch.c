/* eval-batch.c - see eval-batch.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-batch.h"

#include "app/ks-error.h"

#include <string.h>

/* --- cells --- */

static void
add_cells (GArray *cells, const KsEvalGrid *grid, const KsEvalCell *base, ks_policy policy)
{
  gboolean keeps_all = ks_policy_never_evicts (policy), draws = policy == KS_POLICY_RANDOM;
  guint n_entries = keeps_all ? 1 : grid->n_entries, n_seed = draws ? grid->n_seed : 1;

  for (guint e = 0; e < n_entries; e++)
    for (guint s = 0; s < n_seed; s++) {
      KsEvalCell cell = *base;

      cell.entries = keeps_all ? 0 : grid->entries[e];
      cell.seed = draws ? grid->seeds[s] : 0;
      g_array_append_val (cells, cell);
    }
}

/* A policy that keeps everything does so in any mode. */
static gboolean
add_policy (GArray *cells, const KsEvalGrid *grid, const char *text, GError **error)
{
  for (guint m = 0; grid->modes[m] != NULL; m++) {
    ks_evict_params params;

    if (!ks_eval_policy_parse (text, grid->modes[m], &params, error))
      return FALSE;
    if (m > 0 && ks_policy_never_evicts (params.policy))
      break;
    for (guint q = 0; grid->questions[q] != NULL; q++) {
      g_autofree char *name = g_strconcat (text, grid->looks, NULL);
      KsEvalCell cell = ks_eval_cell (name, 0);

      if (!ks_policy_never_evicts (params.policy)) {
        cell.mode = g_intern_string (grid->modes[m]);
        cell.budget = g_intern_string (grid->budget);
      }
      cell.question = g_intern_string (grid->questions[q]);
      add_cells (cells, grid, &cell, params.policy);
    }
  }
  return TRUE;
}

GArray *
ks_eval_grid_make_cells (const KsEvalGrid *grid, GError **error)
{
  g_autoptr (GArray) cells = g_array_new (FALSE, TRUE, sizeof (KsEvalCell));

  g_return_val_if_fail (grid->n_entries > 0 && grid->n_seed > 0, NULL);
  for (guint i = 0; grid->policies[i] != NULL; i++)
    if (!add_policy (cells, grid, grid->policies[i], error))
      return NULL;
  return g_steal_pointer (&cells);
}

/* --- running --- */

/* Those of an item's rows that are not there yet: a run may have been stopped between two of them.
 */
static gboolean
keep_rows (KsEvalRunFile *file, GPtrArray *rows, GError **error)
{
  for (guint i = 0; i < rows->len; i++) {
    KsEvalRow *row = g_ptr_array_index (rows, i);

    if (ks_eval_run_file_has (file, &row->cell, row->bench, row->id, row->turn))
      continue;
    rows->pdata[i] = NULL;
    if (!ks_eval_run_file_append (file, row, error))
      return FALSE;
  }
  return TRUE;
}

/* What goes wrong names the item: it may be too long, or its picture damaged. */
static gboolean
ask_item (KsEvalSession *session, const KsEvalItem *item, const KsEvalAsk *ask, GPtrArray *rows,
          GError **error)
{
  g_autoptr (GError) local = NULL;

  if (ks_eval_session_ask (session, item, ask, rows, &local))
    return TRUE;
  if (!ks_error_is_cancelled (local))
    g_prefix_error (&local, "item %s of %s: ", item->id, item->bench);
  g_propagate_error (error, g_steal_pointer (&local));
  return FALSE;
}

static gboolean
run_cell (const KsEvalBatch *batch, KsEngineSetup *setup, const KsEvalCell *cell, guint number,
          KsEvalRunFile *file, GError **error)
{
  g_autoptr (KsEvalSession) session = NULL;
  guint n_item = batch->items->len;

  for (guint i = 0; i < n_item; i++) {
    const KsEvalItem *item = g_ptr_array_index (batch->items, i);
    g_autoptr (GPtrArray) rows = NULL;

    if (ks_eval_item_is_done (item, cell, batch->ask.forced, file))
      continue;
    if (batch->progress != NULL)
      batch->progress (cell, number * n_item + i, batch->cells->len * n_item, batch->user);
    if (session == NULL)
      session = ks_eval_session_new (setup, cell, error);
    rows = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_eval_row_free);
    if (session == NULL || !ask_item (session, item, &batch->ask, rows, error) ||
        !keep_rows (file, rows, error))
      return FALSE;
  }
  return TRUE;
}

gboolean
ks_eval_batch_run (const KsEvalBatch *batch, KsEngineSetup *setup, KsEvalRunFile *file,
                   GError **error)
{
  for (guint i = 0; i < batch->cells->len; i++)
    if (!run_cell (batch, setup, &g_array_index (batch->cells, KsEvalCell, i), i, file, error))
      return FALSE;
  return TRUE;
}

/* --- header --- */

static char *
hash_vocabulary (const ks_tokenizer *tok)
{
  g_autoptr (GChecksum) sum = g_checksum_new (G_CHECKSUM_SHA256);
  guint n_vocab = ks_tokenizer_get_n_vocab (tok);

  for (guint i = 0; i < n_vocab; i++) {
    size_t n = 0;
    const char *piece = ks_tokenizer_get_piece (tok, (ks_token)i, true, &n);
    guint32 length = GUINT32_TO_LE ((guint32)n);

    g_checksum_update (sum, (const guchar *)&length, sizeof length);
    g_checksum_update (sum, (const guchar *)piece, (gssize)n);
  }
  return g_strdup (g_checksum_get_string (sum));
}

static void
add_hash (cJSON *json, const char *name, const char *hash)
{
  if (hash != NULL)
    cJSON_AddStringToObject (json, name, hash);
}

cJSON *
ks_eval_batch_make_header (const KsEngineSetup *setup, const char *model_hash,
                           const char *gate_hash, const char *mmproj_hash)
{
  g_autofree char *name = g_path_get_basename (setup->model_path);
  g_autofree char *vocabulary = hash_vocabulary (ks_model_get_tokenizer (setup->model));
  cJSON *json = cJSON_CreateObject ();

  cJSON_AddNumberToObject (json, "format", 1);
  cJSON_AddStringToObject (json, "model", name);
  add_hash (json, "model_hash", model_hash);
  add_hash (json, "gate_hash", gate_hash);
  add_hash (json, "mmproj_hash", mmproj_hash);
  cJSON_AddStringToObject (json, "tokenizer_hash", vocabulary);
  cJSON_AddStringToObject (json, "arithmetic", setup->mode == KS_COMPUTE_FAST ? "fast" : "exact");
  cJSON_AddStringToObject (json, "kv_type", ks_dtype_get_info (setup->layout.kv_dtype)->name);
  cJSON_AddNumberToObject (json, "chunk", setup->plan.chunk);
  cJSON_AddNumberToObject (json, "buffer", setup->plan.buffer);
  return json;
}
