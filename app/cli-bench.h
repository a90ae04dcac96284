/* cli-bench.h - what the bench commands share: real text as tokens, timing.
 * Threads: engine thread, except the command mains. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/cli-common.h"
#include "app/cli-options.h"

#include "engine/tokenizer.h"

G_BEGIN_DECLS

int cli_bench_speed_main (char **args);
int cli_bench_memory_main (char **args);
int cli_bench_perplexity_main (char **args);
int cli_bench_recall_main (char **args);
int cli_bench_policies_main (char **args);
int cli_bench_context_main (char **args);
int cli_bench_dilution_main (char **args);
int cli_bench_snapshot_main (char **args);
int cli_bench_long_main (char **args);

/* The option --file of what reads a text (char **). */
#define CLI_BENCH_TEXT_ENTRY(files)                                                                \
  {                                                                                                \
    "file", 'f', 0, G_OPTION_ARG_FILENAME_ARRAY, (files),                                          \
        "text to read; may be given more than once (default: the handbook that comes with "        \
        "Keepsake)",                                                                               \
        "FILE"                                                                                     \
  }

/* n_tok ids (of ks_token) of the files, one after the other and again from the start when they are
 * too short; *out_n_repeat tells how often.  files NULL or empty = the handbook that comes with the
 * program. */
GArray *cli_bench_read_tokens (KsEngineSetup *setup, char **files, guint32 n_tok,
                               guint *out_n_repeat, GError **error);
/* Feeds n tokens and gives the seconds it took. */
gboolean cli_bench_eval (ks_timeline *tl, KsEngineJob *job, const ks_token *ids, guint32 n,
                         double *out_seconds, GError **error);
/* The likeliest tokens behind the last ones, at most n_most, until the model ends; *out_n, which
 * may be NULL, of them.  NULL and error. (transfer full) */
char *cli_bench_answer (KsEngineSetup *setup, ks_timeline *tl, KsEngineJob *job, guint n_most,
                        guint *out_n, GError **error);
double cli_bench_median (double *values, gsize n); /* sorts them */
/* Resident bytes of this process; 0 when the system does not say. */
guint64 cli_bench_get_resident_bytes (void);
/* Prints its text to standard error when that is a terminal, over the last one; NULL clears it. */
void cli_bench_show_progress (const char *text);
/* Facts of machine and model that every result names. */
cJSON *cli_bench_make_header (KsEngineSetup *setup, const char *what);
/* The same in one line of text: mode, types, weights and their copy. */
void cli_bench_print_header (KsEngineSetup *setup);
/* Loads the model and runs func with data on the engine thread. */
int cli_bench_run (const KsEngineOptions *options, KsEngineJobFunc func, gpointer data);

G_END_DECLS
