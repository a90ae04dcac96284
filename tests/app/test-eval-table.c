/* test-eval-table.c - tables say what was scored: means of items over seeds, comparison on common
 * items, nothing bold that could be chance, text of others without markup. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/eval-table.h"

#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

static void
add (KsEvalTable *table, const char *policy, guint64 entries, guint item, double value)
{
  g_autofree char *id = g_strdup_printf ("q%u", item);
  KsEvalScore score = {.cell = ks_eval_cell (policy, entries),
                       .bench = "recall",
                       .part = "",
                       .metric = "right",
                       .id = id,
                       .group = id,
                       .value = value};

  ks_eval_table_add_score (table, &score);
}

/* 24 items: the full cache has 18 right, dbtrimkv the same but two, snapkv four. */
static KsEvalTable *
make_table (void)
{
  KsEvalTable *table = ks_eval_table_new ();

  for (guint i = 0; i < 24; i++) {
    add (table, "dbtrimkv", 128, i, i < 16);
    add (table, "snapkv", 128, i, i < 4);
    add (table, "full", 0, i, i < 18);
  }
  return table;
}

static void
test_cells (void)
{
  g_autoptr (KsEvalTable) table = make_table ();
  KsEvalCell cell = ks_eval_cell ("dbtrimkv", 128);
  KsEvalInterval interval;
  KsEvalPaired paired;

  g_assert_true (ks_eval_table_get (table, "recall", "", "right", &cell, &interval, &paired));
  g_assert_cmpuint (interval.n, ==, 24);
  g_assert_cmpfloat_with_epsilon (interval.mean, 16.0 / 24, 1e-12);
  g_assert_cmpfloat_with_epsilon (interval.low, ks_eval_wilson (16, 24).low, 1e-12);
  g_assert_cmpuint (paired.n_below, ==, 2);
  g_assert_cmpuint (paired.n_above, ==, 0);
  g_assert_cmpfloat_with_epsilon (paired.p, 0.5, 1e-9);
  cell.entries = 64;
  g_assert_false (ks_eval_table_get (table, "recall", "", "right", &cell, &interval, NULL));
}

/* Two seeds of an item are one item with their mean; a cell without the full cache's items is not
 * compared. */
static void
test_seeds (void)
{
  g_autoptr (KsEvalTable) table = ks_eval_table_new ();
  KsEvalCell cell = ks_eval_cell ("random", 64);
  KsEvalInterval interval;
  KsEvalPaired paired;

  add (table, "random", 64, 1, 1);
  add (table, "random", 64, 1, 0);
  add (table, "random", 64, 2, 1);
  add (table, "random", 64, 2, 1);
  add (table, "random", 64, 3, NAN);
  add (table, "full", 0, 9, 1);
  g_assert_true (ks_eval_table_get (table, "recall", "", "right", &cell, &interval, &paired));
  g_assert_cmpuint (interval.n, ==, 2);
  g_assert_cmpfloat_with_epsilon (interval.mean, 0.75, 1e-12);
  g_assert_true (isnan (paired.p));
}

/* Full first; the certain best is bold, with n and interval; less is better for a loss. */
static void
test_markdown (void)
{
  g_autoptr (KsEvalTable) table = make_table ();
  GString *text = ks_eval_table_to_markdown (table, NULL);
  const char *full = strstr (text->str, "| full |"), *own = strstr (text->str, "| dbtrimkv |");

  g_assert_nonnull (full);
  g_assert_nonnull (own);
  g_assert_true (full < own);
  g_assert_nonnull (strstr (text->str, "| **66.7 [46.7, 82.0] n=24** |"));
  g_assert_nonnull (strstr (text->str, "| full | 75.0 [55.1, 88.0] n=24 |"));
  g_assert_nonnull (strstr (text->str, "0 above, 2 below, p 0.500"));
  g_string_free (text, TRUE);
  ks_eval_table_set_kind (table, "right", KS_EVAL_LOSS);
  text = ks_eval_table_to_markdown (table, NULL);
  g_assert_nonnull (strstr (text->str, "| snapkv | | **0.167 ["));
  g_string_free (text, TRUE);
}

/* Two items apart is nothing: no bold. */
static void
test_not_bold (void)
{
  g_autoptr (KsEvalTable) table = ks_eval_table_new ();
  GString *text;

  for (guint i = 0; i < 24; i++) {
    add (table, "dbtrimkv", 128, i, i < 16);
    add (table, "snapkv", 128, i, i > 0 && i < 16);
  }
  text = ks_eval_table_to_markdown (table, NULL);
  g_assert_null (strstr (text->str, "**"));
  g_string_free (text, TRUE);
}

/* Names come from users' files. */
static void
test_names (void)
{
  g_autoptr (KsEvalTable) table = ks_eval_table_new ();
  cJSON *header = cJSON_CreateObject ();
  GString *text;

  add (table, "a|b,\"c\"<i>", 64, 1, 1);
  cJSON_AddStringToObject (header, "model", "x|y");
  cJSON_AddNumberToObject (header, "threads", 1);
  text = ks_eval_table_to_markdown (table, header);
  g_assert_nonnull (strstr (text->str, "a\\|b,\"c\"\\<i>"));
  g_assert_nonnull (strstr (text->str, "- model: x\\|y\n- threads: 1\n"));
  g_string_free (text, TRUE);
  text = ks_eval_table_to_csv (table);
  g_assert_nonnull (
      strstr (text->str, "recall,,right,\"a|b,\"\"c\"\"<i>\",fixed,chunked,,64,1,1,"));
  g_string_free (text, TRUE);
  cJSON_Delete (header);
}

/* Every line of the CSV has as many fields as its head. */
static void
test_csv (void)
{
  g_autoptr (KsEvalTable) table = make_table ();
  GString *text = ks_eval_table_to_csv (table);
  g_auto (GStrv) lines = g_strsplit (text->str, "\n", -1);

  g_assert_cmpuint (g_strv_length (lines), ==, 5); /* head, three cells, the end */
  for (guint i = 0; lines[i][0] != '\0'; i++) {
    g_auto (GStrv) fields = g_strsplit (lines[i], ",", -1);

    g_assert_cmpuint (g_strv_length (fields), ==, 23);
  }
  g_string_free (text, TRUE);
}

/* Peak over the turns of an item against all entries its tokens would have; rates from sums. */
static void
test_costs (void)
{
  g_autoptr (KsEvalTable) table = ks_eval_table_new ();
  KsEvalCell cell = ks_eval_cell ("dbtrimkv", 64);
  cJSON *json;
  const cJSON *cost;

  ks_eval_table_set_n_stream (table, 10);
  for (guint turn = 0; turn < 2; turn++) {
    g_autoptr (KsEvalRow) row = ks_eval_row_new (&cell, "recall", "", "a", turn);

    row->n_prompt = 90;
    row->n_new = 10;
    row->n_peak = 640 + 160 * turn;
    row->peak_bytes = 5000;
    row->prompt_s = 1;
    row->answer_s = 0.5;
    ks_eval_table_add_row (table, row);
  }
  json = ks_eval_table_to_json (table, NULL);
  cost = cJSON_GetArrayItem (cJSON_GetObjectItem (json, "costs"), 0);
  g_assert_cmpint (cJSON_GetObjectItem (cost, "peak_entries")->valueint, ==, 800);
  g_assert_cmpfloat_with_epsilon (cJSON_GetObjectItem (cost, "peak_share")->valuedouble, 0.4,
                                  1e-12); /* 800 of 10 * 200 */
  g_assert_cmpint (cJSON_GetObjectItem (cost, "prompt_tokens")->valueint, ==, 180);
  cJSON_Delete (json);
}

/* All files are there, and the JSON holds cells and ids. */
static void
test_write (void)
{
  g_autoptr (KsEvalTable) table = make_table ();
  g_autofree char *folder = g_dir_make_tmp ("ks-table-XXXXXX", NULL);
  static const char *const names[] = {"t.md", "t.csv", "t.json", "t-recall-right.svg"};
  GError *error = NULL;

  g_assert_true (ks_eval_table_write (table, NULL, folder, "t", &error));
  g_assert_no_error (error);
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *path = g_build_filename (folder, names[i], NULL);
    g_autofree char *text = NULL;

    g_assert_true (g_file_get_contents (path, &text, NULL, NULL));
    g_assert_cmpuint (strlen (text), >, 100);
    if (i == 2) {
      cJSON *json = cJSON_Parse (text);
      const cJSON *sheet = cJSON_GetArrayItem (cJSON_GetObjectItem (json, "tables"), 0);

      g_assert_cmpint (cJSON_GetArraySize (cJSON_GetObjectItem (sheet, "cells")), ==, 3);
      g_assert_cmpint (cJSON_GetArraySize (cJSON_GetObjectItem (sheet, "items")), ==, 24);
      cJSON_Delete (json);
    }
    g_remove (path);
  }
  g_assert_cmpint (g_rmdir (folder), ==, 0); /* no other file was left */
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  g_test_add_func ("/eval-table/cells", test_cells);
  g_test_add_func ("/eval-table/seeds", test_seeds);
  g_test_add_func ("/eval-table/markdown", test_markdown);
  g_test_add_func ("/eval-table/not-bold", test_not_bold);
  g_test_add_func ("/eval-table/names", test_names);
  g_test_add_func ("/eval-table/csv", test_csv);
  g_test_add_func ("/eval-table/costs", test_costs);
  g_test_add_func ("/eval-table/write", test_write);
  return g_test_run ();
}
