/* cli-eval.c - keepsake-cli eval: its command table and what the commands share. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-eval.h"

#include "app/ks-data-dir.h"
#include "app/ks-error.h"

#include <string.h>

static const CliCommand commands[] = {
    {"run", "ask the questions of a benchmark, policy by policy, into a run file",
     cli_eval_run_main},
    {"score", "score run files; no model is needed", cli_eval_score_main},
    {"table", "tables with intervals, comparisons and plots, from run files", cli_eval_table_main},
    {"judge", "write what a judge is to read of MMDU, and read what it replied",
     cli_eval_judge_main},
};

static const char help[] =
    "Benchmarks: aime, mathvision, mme, mmdu, textvqa, from files that you have; nothing is\n"
    "fetched. Tests that need no data: needle, needle-keys, needle-all, needle-values,\n"
    "needle-queries, tracking, common-words, frequent-words, turns; with pictures: visual-yesno,\n"
    "visual-index, visual-code, visual-all, visual-any, visual-count, visual-grid, visual-text,\n"
    "visual-turns.\n\n"
    "Examples:\n"
    "  keepsake-cli eval run needle --lengths 1024,4096 --entries 128,512 --out needle.jsonl\n"
    "  keepsake-cli eval run mme --data MME_release --mmproj tower.gguf --out mme.jsonl\n"
    "  keepsake-cli eval score needle.jsonl mme.jsonl --scorer harness\n"
    "  keepsake-cli eval table needle.jsonl --out results\n";

int
cli_eval_main (char **args)
{
  return cli_run_subcommand ("eval", commands, G_N_ELEMENTS (commands), args, help);
}

void
cli_eval_data_add (CliEvalData *data, GOptionContext *context)
{
  const GOptionEntry entries[] = {
      {"data", 'd', 0, G_OPTION_ARG_FILENAME, &data->data,
       "the benchmark's file (.json, .jsonl, .tsv, .csv) or folder", "PATH"},
      {"pictures", 0, 0, G_OPTION_ARG_FILENAME, &data->pictures,
       "folder of its pictures (default: where the release has them)", "FOLDER"},
      {"ocr-file", 0, 0, G_OPTION_ARG_FILENAME, &data->ocr,
       "TextVQA: the file with the words of the pictures, for the wording 'ocr'", "FILE"},
      {"prompts", 0, 0, G_OPTION_ARG_FILENAME, &data->prompts,
       "TextVQA: LLaVA's file of questions (.jsonl), for the wording 'llava'", "FILE"},
      {"templates", 0, 0, G_OPTION_ARG_FILENAME, &data->templates,
       "folder with wordings of your own, BENCH.txt (default: those that come with the program)",
       "FOLDER"},
      {"template", 0, 0, G_OPTION_ARG_STRING, &data->wording,
       "which wording of the file (default: its first)", "NAME"},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  g_option_context_add_main_entries (context, entries, NULL);
}

void
cli_eval_data_clear (CliEvalData *data)
{
  g_free (data->data);
  g_free (data->pictures);
  g_free (data->ocr);
  g_free (data->prompts);
  g_free (data->templates);
  g_free (data->wording);
}

KsEvalLoadOptions
cli_eval_data_get_options (const CliEvalData *data)
{
  return (KsEvalLoadOptions){
      .data = data->data, .pictures = data->pictures, .ocr = data->ocr, .prompts = data->prompts};
}

GPtrArray *
cli_eval_data_load (const CliEvalData *data, const char *bench, GError **error)
{
  const KsEvalLoadOptions options = cli_eval_data_get_options (data);

  if (data->data != NULL)
    return ks_eval_load (bench, &options, error);
  g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_USAGE, "%s needs its files: name them with --data",
               bench);
  return NULL;
}

char *
cli_eval_data_find_template (const CliEvalData *data, const char *name)
{
  g_autofree char *own = ks_data_dir_dup (), *file = g_strconcat (name, ".txt", NULL);

  return data->templates != NULL ? g_build_filename (data->templates, file, NULL)
                                 : g_build_filename (own, "eval", file, NULL);
}

gboolean
cli_eval_data_complete (const CliEvalData *data, GPtrArray *rows, GError **error)
{
  g_autoptr (GHashTable) done = g_hash_table_new (g_str_hash, g_str_equal);

  for (guint i = 0; data->data != NULL && i < rows->len; i++) {
    const KsEvalRow *row = g_ptr_array_index (rows, i);
    g_autoptr (GPtrArray) items = NULL;

    if (!g_strv_contains (ks_eval_benches, row->bench) ||
        !g_hash_table_add (done, (gpointer)row->bench))
      continue;
    items = cli_eval_data_load (data, row->bench, error);
    if (items == NULL)
      return FALSE;
    ks_eval_score_complete (rows, items);
  }
  return TRUE;
}

char *
cli_eval_describe (const KsEvalCell *cell)
{
  GString *text = g_string_new (cell->policy);

  if (cell->entries > 0)
    g_string_append_printf (text, " %" G_GUINT64_FORMAT, cell->entries);
  if (strcmp (cell->budget, "text") == 0)
    g_string_append (text, " + text");
  if (strcmp (cell->mode, "chunked") != 0)
    g_string_append_printf (text, " %s", cell->mode);
  if (cell->question[0] != '\0')
    g_string_append_printf (text, " (%s)", cell->question);
  if (cell->seed != 0)
    g_string_append_printf (text, " seed %" G_GUINT64_FORMAT, cell->seed);
  return g_string_free (text, FALSE);
}
