/* cli-eval-judge.c - keepsake-cli eval judge: what a judge is to read of MMDU, one request a line,
 * and what comes of its replies.  Any judge can be asked in between; this program asks none. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-eval.h"

#include "app/eval-mmdu.h"
#include "app/eval-template.h"
#include "app/ks-error.h"

#include <stdio.h>
#include <string.h>

static const char help[] =
    "Writes one request a line: {\"key\": ..., \"prompt\": ..., \"images\": [...]}. The judge's "
    "replies\n"
    "are read as lines {\"key\": ..., \"reply\": ...}. A reply that is missing counts as one that "
    "cannot\n"
    "be parsed. Name the judge with --judge: its name stands in the result.\n\n"
    "Examples:\n"
    "  keepsake-cli eval judge mmdu.jsonl --data benchmark.json --requests ask.jsonl\n"
    "  keepsake-cli eval judge mmdu.jsonl --replies told.jsonl --judge \"some model\"\n";

typedef struct {
  CliEvalData data;
  char *requests, *replies, *judge;
  gboolean json;
} Options;

/* Names a turn of a cell in both files. (transfer full) */
static char *
make_key (const KsEvalRow *row)
{
  g_autofree char *cell = ks_eval_cell_make_key (&row->cell);

  return g_strdup_printf ("%s#%u|%s", row->id, row->turn, cell);
}

static gboolean
is_mmdu (const KsEvalRow *row)
{
  return strcmp (row->bench, "mmdu") == 0;
}

/* --- requests --- */

/* All pictures of the dialogue so far, by file name. */
static cJSON *
list_pictures (const KsEvalItem *item, guint turn)
{
  cJSON *list = cJSON_CreateArray ();

  for (guint t = 0; t <= turn && t < item->turns->len; t++) {
    const KsEvalTurn *at = g_ptr_array_index (item->turns, t);

    for (guint i = 0; i < at->pictures->len; i++) {
      const KsEvalPicture *picture = g_ptr_array_index (at->pictures, i);

      if (picture->path != NULL)
        cJSON_AddItemToArray (list, cJSON_CreateString (picture->path));
    }
  }
  return list;
}

/* (transfer full) */
static char *
make_prompt (const KsEvalTemplate *tmpl, const KsEvalItem *item, const KsEvalRow *row,
             GError **error)
{
  const KsEvalTurn *turn =
      row->turn < item->turns->len ? g_ptr_array_index (item->turns, row->turn) : NULL;
  g_autoptr (KsEvalItem) made = ks_eval_item_new ("mmdu", "", row->id);
  const char *reference = turn != NULL && turn->expect != NULL ? turn->expect[0] : NULL;
  KsEvalTurn *asked;

  if (turn == NULL || reference == NULL) {
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "the data has no turn %u of dialogue %s",
                 row->turn + 1, row->id);
    return NULL;
  }
  asked = ks_eval_item_add_turn (made, turn->text, NULL);
  g_hash_table_insert (made->fields, g_strdup ("reference"), g_strdup (reference));
  g_hash_table_insert (made->fields, g_strdup ("answer"), g_strdup (row->prediction));
  return ks_eval_template_fill (tmpl, made, error) ? g_strdup (asked->text) : NULL;
}

static const KsEvalItem *
find_item (const GPtrArray *items, const char *id, GError **error)
{
  for (guint i = 0; i < items->len; i++) {
    const KsEvalItem *item = g_ptr_array_index (items, i);

    if (strcmp (item->id, id) == 0)
      return item;
  }
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, "the data has no dialogue %s", id);
  return NULL;
}

static gboolean
add_request (GString *out, const KsEvalTemplate *tmpl, const GPtrArray *items, const KsEvalRow *row,
             GError **error)
{
  const KsEvalItem *item = find_item (items, row->id, error);
  g_autofree char *prompt = item != NULL ? make_prompt (tmpl, item, row, error) : NULL;
  g_autofree char *key = make_key (row);
  cJSON *json;
  char *line;

  if (prompt == NULL)
    return FALSE;
  json = cJSON_CreateObject ();
  cJSON_AddStringToObject (json, "key", key);
  cJSON_AddStringToObject (json, "prompt", prompt);
  cJSON_AddItemToObject (json, "images", list_pictures (item, row->turn));
  line = cJSON_PrintUnformatted (json);
  g_string_append_printf (out, "%s\n", line);
  cJSON_free (line);
  cJSON_Delete (json);
  return TRUE;
}

static gboolean
write_requests (const Options *options, const GPtrArray *rows, GError **error)
{
  g_autofree char *path = cli_eval_data_find_template (&options->data, "mmdu-judge");
  g_autoptr (KsEvalTemplate) tmpl = ks_eval_template_load (path, options->data.wording, error);
  g_autoptr (GPtrArray) items =
      tmpl != NULL ? cli_eval_data_load (&options->data, "mmdu", error) : NULL;
  g_autoptr (GString) out = g_string_new (NULL);

  for (guint i = 0; items != NULL && i < rows->len; i++)
    if (is_mmdu (g_ptr_array_index (rows, i)) &&
        !add_request (out, tmpl, items, g_ptr_array_index (rows, i), error))
      return FALSE;
  return items != NULL &&
         g_file_set_contents (options->requests, out->str, (gssize)out->len, error);
}

/* --- replies --- */

/* key -> reply */
static GHashTable *
read_replies (const char *path, GError **error)
{
  g_autoptr (GHashTable) replies = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  g_autofree char *text = NULL;
  g_auto (GStrv) lines = NULL;

  if (!g_file_get_contents (path, &text, NULL, error))
    return NULL;
  lines = g_strsplit (text, "\n", -1);
  for (guint i = 0; lines[i] != NULL; i++) {
    cJSON *json = cJSON_Parse (lines[i]);
    const cJSON *key = cJSON_GetObjectItemCaseSensitive (json, "key");
    const cJSON *reply = cJSON_GetObjectItemCaseSensitive (json, "reply");
    gboolean ok = cJSON_IsString (key) && cJSON_IsString (reply);

    if (ok)
      g_hash_table_insert (replies, g_strdup (key->valuestring), g_strdup (reply->valuestring));
    cJSON_Delete (json);
    if (ok || g_strstrip (lines[i])[0] == '\0')
      continue;
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                 "line %u of %s has no texts \"key\" and \"reply\"", i + 1, path);
    return NULL;
  }
  return g_steal_pointer (&replies);
}

static cJSON *
make_result (const KsEvalCell *cell, const KsEvalMmduTotals *totals, guint n)
{
  g_autofree char *what = cli_eval_describe (cell);
  cJSON *json = cJSON_CreateObject (), *fields = cJSON_CreateObject ();

  cJSON_AddStringToObject (json, "cell", what);
  cJSON_AddNumberToObject (json, "turns", n);
  cJSON_AddNumberToObject (json, "complete", totals->n_official);
  for (guint i = KS_EVAL_MMDU_N_FIELDS; i > 0; i--) { /* the headline first */
    cJSON *field = cJSON_AddObjectToObject (fields, ks_eval_mmdu_fields[i - 1]);

    cJSON_AddNumberToObject (field, "official", totals->official[i - 1]);
    cJSON_AddNumberToObject (field, "all", totals->all[i - 1]);
    cJSON_AddNumberToObject (field, "valid", totals->valid[i - 1]);
  }
  cJSON_AddItemToObject (json, "fields", fields);
  return json;
}

static void
print_result (const cJSON *json)
{
  const cJSON *field;

  printf ("%s: %d turns, %d complete replies\n", cJSON_GetObjectItem (json, "cell")->valuestring,
          cJSON_GetObjectItem (json, "turns")->valueint,
          cJSON_GetObjectItem (json, "complete")->valueint);
  printf ("  %-34s %9s %9s %9s\n", "", "official", "all", "valid");
  cJSON_ArrayForEach (field, cJSON_GetObjectItem (json, "fields"))
  {
    printf ("  %-34s %9.2f %9.2f %9.2f\n", field->string,
            cJSON_GetObjectItem (field, "official")->valuedouble,
            cJSON_GetObjectItem (field, "all")->valuedouble,
            cJSON_GetObjectItem (field, "valid")->valuedouble);
  }
}

/* The replies to one cell's rows, in their order. */
static cJSON *
judge_cell (const GPtrArray *rows, const KsEvalCell *cell, GHashTable *replies)
{
  g_autoptr (GPtrArray) own = g_ptr_array_new ();
  KsEvalMmduTotals totals;

  for (guint i = 0; i < rows->len; i++) {
    const KsEvalRow *row = g_ptr_array_index (rows, i);
    g_autofree char *key = make_key (row);
    const char *reply = g_hash_table_lookup (replies, key);

    if (is_mmdu (row) && ks_eval_cell_equal (&row->cell, cell))
      g_ptr_array_add (own, (gpointer)(reply != NULL ? reply : ""));
  }
  ks_eval_mmdu_aggregate ((const char *const *)own->pdata, own->len, &totals);
  return make_result (cell, &totals, own->len);
}

static gboolean
read_judge (const Options *options, const GPtrArray *rows, GError **error)
{
  g_autoptr (GHashTable) replies = read_replies (options->replies, error);
  g_autoptr (GHashTable) done = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  const char *judge = options->judge != NULL ? options->judge : "not named";
  cJSON *list;

  if (replies == NULL)
    return FALSE;
  list = cJSON_CreateArray ();
  for (guint i = 0; i < rows->len; i++) {
    const KsEvalRow *row = g_ptr_array_index (rows, i);

    if (is_mmdu (row) && g_hash_table_add (done, ks_eval_cell_make_key (&row->cell)))
      cJSON_AddItemToArray (list, judge_cell (rows, &row->cell, replies));
  }
  if (options->json) {
    cJSON *json = cJSON_CreateObject ();

    cJSON_AddStringToObject (json, "judge", judge);
    cJSON_AddItemToObject (json, "cells", list);
    cli_print_json (json);
    return TRUE;
  }
  printf ("judge: %s\n", judge);
  for (const cJSON *at = list->child; at != NULL; at = at->next)
    print_result (at);
  cJSON_Delete (list);
  return TRUE;
}

static int
judge (const Options *options, char **paths)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsEvalRunFile) file = NULL;
  gboolean ok;

  if (paths[0] == NULL || paths[1] != NULL)
    return cli_usage ("name one run file: see keepsake-cli eval judge --help");
  if ((options->requests == NULL) == (options->replies == NULL))
    return cli_usage ("give one of --requests and --replies");
  file = ks_eval_run_file_load (paths[0], &error);
  ok = file != NULL && (options->requests != NULL
                            ? write_requests (options, ks_eval_run_file_get_rows (file), &error)
                            : read_judge (options, ks_eval_run_file_get_rows (file), &error));
  return ok ? CLI_OK : cli_fail (error);
}

int
cli_eval_judge_main (char **args)
{
  g_autoptr (GOptionContext) context = g_option_context_new ("FILE");
  g_auto (GStrv) rest = g_strdupv (args);
  Options options = {0};
  int code = CLI_OK;
  const GOptionEntry entries[] = {
      {"requests", 0, 0, G_OPTION_ARG_FILENAME, &options.requests,
       "write what the judge is to read", "FILE"},
      {"replies", 0, 0, G_OPTION_ARG_FILENAME, &options.replies, "read what it replied", "FILE"},
      {"judge", 0, 0, G_OPTION_ARG_STRING, &options.judge, "who judged", "NAME"},
      {"json", 'j', 0, G_OPTION_ARG_NONE, &options.json, "print the result as JSON", NULL},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  g_option_context_add_main_entries (context, entries, NULL);
  cli_eval_data_add (&options.data, context);
  g_option_context_set_summary (context, "Hands MMDU answers to a judge and sums up its replies.");
  g_option_context_set_description (context, help);
  if (cli_parse (context, &rest, &code))
    code = judge (&options, rest + 1);
  cli_eval_data_clear (&options.data);
  g_free (options.requests);
  g_free (options.replies);
  g_free (options.judge);
  return code;
}
