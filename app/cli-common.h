/* cli-common.h - what the commands of keepsake-cli share: exit codes, messages, terminal progress,
 * Ctrl-C. Only cli-*.c print.  Results go to standard output, everything else to standard error.
 * Threads: main, unless a function says otherwise. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-engine.h"

#include <cjson/cJSON.h>
#include <gio/gio.h>

G_BEGIN_DECLS

typedef enum {
  CLI_OK = 0,
  CLI_FAILED = 1,      /* a file is damaged or missing, the system failed */
  CLI_USAGE = 2,       /* options that are wrong or contradict each other */
  CLI_BUDGET = 3,      /* does not fit the memory target, or memory is used up */
  CLI_UNSUPPORTED = 4, /* a model, gate or file of a kind this build does not know */
  CLI_CANCELLED = 130  /* Ctrl-C */
} CliExit;

typedef struct {
  const char *name, *summary;
  int (*run) (char **args); /* args[0] is the command's name */
} CliCommand;

int cli_ask_main (char **args);
int cli_chat_main (char **args);
int cli_memory_main (char **args);
int cli_models_main (char **args);
int cli_bench_main (char **args);
int cli_eval_main (char **args);
int cli_inspect_main (char **args);
int cli_devices_main (char **args);
int cli_gates_main (char **args);
int cli_sessions_main (char **args);
int cli_export_main (char **args);
int cli_import_main (char **args);
int cli_train_main (char **args);

/* Valid UTF-8 without control characters, each of them a '?': names and messages that come from a
 * file or an argument must not move the terminal's cursor. (transfer full) */
char *cli_dup_printable (const char *text);
/* Prints text that a model or a document made.  On a terminal control characters other than line
 * breaks and tabs become '?'; a pipe or file gets the text as it is. */
void cli_print_text (const char *text);
/* Call first: standard input, output and error that the parent closed are opened on /dev/null, so
 * that no file of ours takes their place. */
void cli_guard_streams (void);
/* Ctrl-C where nothing listens to it ends the program with CLI_CANCELLED and a line that says so.
 */
void cli_guard_interrupt (void);
/* func hears Ctrl-C from now on, until the number is removed again. */
guint cli_add_interrupt (GSourceFunc func, gpointer data);
void cli_remove_interrupt (guint number);
/* Ends the program at once, with the line and the code. */
void cli_exit_interrupted (void) G_GNUC_NORETURN;
/* Call last: the exit code, CLI_FAILED with a sentence when standard output could not be written.
 */
int cli_finish_output (int code);

/* "keepsake-cli: TEXT" to standard error, control characters replaced. */
void cli_print_error (const char *format, ...) G_GNUC_PRINTF (1, 2);
void cli_print_notice (const char *text);
/* The same about one file. */
void cli_print_file_notice (const char *name, const char *text);
/* That nobody hears a video's sound. */
void cli_tell_sound (const char *name);
/* The same for pictures that take more than half of the n_trained tokens that the model was trained
 * for; n_trained 0: nothing. */
void cli_tell_large (const char *name, gboolean is_video, guint n_token, guint n_trained,
                     gboolean can_shrink);
/* Prints the error and gives the exit code that belongs to it. */
int cli_fail (const GError *error);
int cli_usage (const char *format, ...) G_GNUC_PRINTF (1, 2);

/* Parses args in place: what remains are the positional ones behind args[0].  FALSE: *out_exit says
 * how to end.  --help prints and ends the program. */
gboolean cli_parse (GOptionContext *context, char ***args, int *out_exit);
/* Picks the subcommand args[1] and runs it, shifted; usage text when there is none. */
int cli_run_subcommand (const char *command, const CliCommand *commands, gsize n, char **args,
                        const char *help);

/* "23.9 MiB"; "16,000". (transfer full) */
char *cli_format_bytes (guint64 n_bytes);
char *cli_format_count (guint64 n);
/* Prints and frees; always valid UTF-8. */
void cli_print_json (cJSON *take_json);

/* One line of progress on standard error, only on a terminal. */
typedef struct {
  gboolean enabled, shown;
  gint64 begin_us, look_us; /* look_us: since when a picture is looked at, 0 = none is */
} CliProgress;

void cli_progress_init (CliProgress *progress);
/* what: "Reading"; unit: "tokens". */
void cli_progress_update (CliProgress *progress, const char *what, const char *unit, guint n_done,
                          guint n_total);
/* A picture that goes through a model's eyes, as a job's "looking" tells it. */
void cli_progress_look (CliProgress *progress, const char *name, guint n_done, guint n_total);
void cli_progress_clear (CliProgress *progress);

/* Waits for the job; the first Ctrl-C cancels it, the second ends the program with CLI_CANCELLED.
 */
gboolean cli_wait (KsEngineJob *job, GError **error);
/* Runs func on the engine thread under cli_wait and returns its exit code, or that of its error. */
int cli_run_on_engine (KsEngine *engine, KsEngineJobFunc func, gpointer data);

G_END_DECLS
