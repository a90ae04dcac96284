/* cli-eval.h - what the eval commands share.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/cli-common.h"
#include "app/eval-load.h"
#include "app/eval-score.h"

G_BEGIN_DECLS

int cli_eval_run_main (char **args);
int cli_eval_score_main (char **args);
int cli_eval_table_main (char **args);
int cli_eval_judge_main (char **args);

/* Options that say where a benchmark's files are. */
typedef struct {
  char *data, *pictures, *ocr, *prompts, *templates, *wording;
} CliEvalData;

void cli_eval_data_add (CliEvalData *data, GOptionContext *context);
void cli_eval_data_clear (CliEvalData *data);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (CliEvalData, cli_eval_data_clear)
/* Borrows from data. */
KsEvalLoadOptions cli_eval_data_get_options (const CliEvalData *data);
/* (of KsEvalItem, transfer full) */
GPtrArray *cli_eval_data_load (const CliEvalData *data, const char *bench, GError **error);
/* Fills in what rows of other programs lack, from the data of their benches where it was named. */
gboolean cli_eval_data_complete (const CliEvalData *data, GPtrArray *rows, GError **error);
/* A file of wordings: --templates, else the program's own. (transfer full) */
char *cli_eval_data_find_template (const CliEvalData *data, const char *name);
/* A cell in words, for lists: "dbtrimkv 512 chunked after". (transfer full) */
char *cli_eval_describe (const KsEvalCell *cell);

G_END_DECLS
