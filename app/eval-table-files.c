/* eval-table-files.c - tables as JSON, and everything of a table into a folder (see eval-table.h).
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-table-internal.h"

#include <math.h>

/* JSON has no NaN: what is not known is null. */
static void
add_number (cJSON *json, const char *name, double value)
{
  if (isfinite (value))
    cJSON_AddNumberToObject (json, name, value);
  else
    cJSON_AddNullToObject (json, name);
}

static void
add_interval (cJSON *json, const KsEvalInterval *interval)
{
  cJSON_AddNumberToObject (json, "n", (double)interval->n);
  add_number (json, "mean", interval->mean);
  add_number (json, "low", interval->low);
  add_number (json, "high", interval->high);
}

static cJSON *
make_line (const KsEvalTable *table, guint line, guint64 entries)
{
  const KsEvalLine *own = &g_array_index (table->lines, KsEvalLine, line);
  cJSON *json = cJSON_CreateObject ();

  cJSON_AddStringToObject (json, "policy", own->policy);
  cJSON_AddStringToObject (json, "budget", own->budget);
  cJSON_AddStringToObject (json, "mode", own->mode);
  cJSON_AddStringToObject (json, "question", own->question);
  cJSON_AddNumberToObject (json, "entries", (double)entries);
  return json;
}

static cJSON *
make_spot (const KsEvalTable *table, const KsEvalSheet *sheet, const KsEvalSpot *spot)
{
  cJSON *json = make_line (table, spot->line, spot->entries), *against;
  const KsEvalSpot *full = ks_eval_table_find_full (table, sheet, spot->line);
  KsEvalInterval interval = ks_eval_spot_get_interval (spot);
  KsEvalPaired paired;
  guint n_seed = 0;

  for (guint i = 0; i < spot->seen->len; i++)
    n_seed = MAX (n_seed, g_array_index (spot->seen, KsEvalSeen, i).n_seed);
  cJSON_AddNumberToObject (json, "seeds", n_seed);
  add_interval (json, &interval);
  if (full == NULL || full == spot || !ks_eval_spot_compare (spot, full, &paired))
    return json;
  against = cJSON_AddObjectToObject (json, "minus_full");
  add_interval (against, &paired.difference);
  cJSON_AddNumberToObject (against, "above", (double)paired.n_above);
  cJSON_AddNumberToObject (against, "below", (double)paired.n_below);
  add_number (against, "p", paired.p);
  return json;
}

/* Ids of all items that any cell of the sheet saw, each once. */
static cJSON *
make_ids (const KsEvalSheet *sheet)
{
  cJSON *list = cJSON_CreateArray ();
  g_autoptr (GHashTable) seen = g_hash_table_new (g_str_hash, g_str_equal);

  for (guint i = 0; i < sheet->spots->len; i++) {
    const KsEvalSpot *spot = g_ptr_array_index (sheet->spots, i);

    for (guint k = 0; k < spot->ids->len; k++) {
      const char *key = g_ptr_array_index (spot->ids, k);
      g_auto (GStrv) parts = g_strsplit (key, "\x1f", 2);
      g_autofree char *name = NULL;

      if (!g_hash_table_add (seen, (gpointer)key))
        continue;
      name = g_str_equal (parts[1], "0") ? g_strdup (parts[0])
                                         : g_strdup_printf ("%s, turn %s", parts[0], parts[1]);
      cJSON_AddItemToArray (list, cJSON_CreateString (name));
    }
  }
  return list;
}

static cJSON *
make_sheet (const KsEvalTable *table, const KsEvalSheet *sheet)
{
  static const char *const kinds[] = {"share", "loss", "number"};
  cJSON *json = cJSON_CreateObject (), *cells;

  cJSON_AddStringToObject (json, "bench", sheet->bench);
  cJSON_AddStringToObject (json, "part", sheet->part);
  cJSON_AddStringToObject (json, "metric", sheet->metric);
  cJSON_AddStringToObject (json, "kind", kinds[sheet->kind]);
  cells = cJSON_AddArrayToObject (json, "cells");
  for (guint i = 0; i < sheet->spots->len; i++)
    cJSON_AddItemToArray (cells, make_spot (table, sheet, g_ptr_array_index (sheet->spots, i)));
  cJSON_AddItemToObject (json, "items", make_ids (sheet));
  return json;
}

static cJSON *
make_cost (const KsEvalTable *table, const KsEvalCost *cost)
{
  cJSON *json = make_line (table, cost->line, cost->entries);

  cJSON_AddNumberToObject (json, "peak_entries", (double)cost->n_peak);
  cJSON_AddNumberToObject (json, "peak_bytes", (double)cost->peak_bytes);
  add_number (json, "peak_share", ks_eval_cost_get_share (table, cost));
  cJSON_AddNumberToObject (json, "prompt_tokens", (double)cost->n_prompt);
  cJSON_AddNumberToObject (json, "prompt_seconds", cost->prompt_s);
  cJSON_AddNumberToObject (json, "new_tokens", (double)cost->n_new);
  cJSON_AddNumberToObject (json, "answer_seconds", cost->answer_s);
  return json;
}

cJSON *
ks_eval_table_to_json (KsEvalTable *table, const cJSON *header)
{
  cJSON *json = cJSON_CreateObject (), *list;

  g_return_val_if_fail (table != NULL, json);
  if (header != NULL)
    cJSON_AddItemToObject (json, "run", cJSON_Duplicate (header, 1));
  cJSON_AddNumberToObject (json, "bootstrap_draws", KS_EVAL_N_DRAW);
  cJSON_AddNumberToObject (json, "bootstrap_seed", KS_EVAL_SEED);
  list = cJSON_AddArrayToObject (json, "tables");
  for (guint i = 0; i < table->sheets->len; i++)
    cJSON_AddItemToArray (list, make_sheet (table, g_ptr_array_index (table->sheets, i)));
  list = cJSON_AddArrayToObject (json, "costs");
  for (guint i = 0; i < table->costs->len; i++)
    cJSON_AddItemToArray (list, make_cost (table, g_ptr_array_index (table->costs, i)));
  return json;
}

/* --- files --- */

static gboolean
write_text (const char *folder, const char *name, const char *ending, const char *text,
            GError **error)
{
  g_autofree char *file = g_strconcat (name, ending, NULL);
  g_autofree char *path = NULL;

  g_strdelimit (file, "/ ", '-');
  path = g_build_filename (folder, file, NULL);
  return g_file_set_contents (path, text, -1, error);
}

static gboolean
write_string (const char *folder, const char *name, const char *ending, GString *take_text,
              GError **error)
{
  gboolean ok = write_text (folder, name, ending, take_text->str, error);

  g_string_free (take_text, TRUE);
  return ok;
}

static gboolean
write_json (KsEvalTable *table, const cJSON *header, const char *folder, const char *name,
            GError **error)
{
  cJSON *json = ks_eval_table_to_json (table, header);
  char *text = cJSON_Print (json);
  gboolean ok;

  cJSON_Delete (json);
  if (text == NULL) {
    g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_NOMEM,
                 "there is not enough memory to write the table %s", name);
    return FALSE;
  }
  ok = write_text (folder, name, ".json", text, error);
  cJSON_free (text);
  return ok;
}

static gboolean
write_plots (KsEvalTable *table, const char *folder, const char *name, GError **error)
{
  for (guint i = 0; i < table->sheets->len; i++) {
    const KsEvalSheet *sheet = g_ptr_array_index (table->sheets, i);
    gboolean has_part = *sheet->part != '\0';
    g_autofree char *ending = g_strdup_printf ("-%s%s%s-%s.svg", sheet->bench, has_part ? "-" : "",
                                               sheet->part, sheet->metric);

    if (!write_string (folder, name, ending, ks_eval_table_plot_sheet (table, sheet), error))
      return FALSE;
  }
  return table->costs->len == 0 ||
         (write_string (folder, name, "-memory.svg", ks_eval_table_plot_memory (table), error) &&
          write_string (folder, name, "-speed.svg", ks_eval_table_plot_speed (table), error));
}

gboolean
ks_eval_table_write (KsEvalTable *table, const cJSON *header, const char *folder, const char *name,
                     GError **error)
{
  g_return_val_if_fail (table != NULL && folder != NULL && name != NULL, FALSE);
  return write_string (folder, name, ".md", ks_eval_table_to_markdown (table, header), error) &&
         write_string (folder, name, ".csv", ks_eval_table_to_csv (table), error) &&
         write_json (table, header, folder, name, error) &&
         write_plots (table, folder, name, error);
}
