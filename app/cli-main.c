/* cli-main.c - keepsake-cli: the command table. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-common.h"

#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const CliCommand commands[] = {
    {"ask", "ask one question, about attached files or without", cli_ask_main},
    {"chat", "talk in the terminal", cli_chat_main},
    {"sessions", "list, show, rename, delete and search stored sessions", cli_sessions_main},
    {"export", "write sessions to files", cli_export_main},
    {"import", "add sessions from exported bundles", cli_import_main},
    {"memory", "tell what is remembered of a stored session, by turn and picture", cli_memory_main},
    {"models", "list, describe and check model files", cli_models_main},
    {"gates", "import and inspect what tells a model how long to remember", cli_gates_main},
    {"bench", "measure speed, memory and recall", cli_bench_main},
    {"eval", "run and score benchmarks, policy by policy", cli_eval_main},
    {"train", "teach a retention gate from text, conversations and sessions", cli_train_main},
    {"inspect", "look into files, tokens, logits and evictions", cli_inspect_main},
    {"devices", "list what can compute here", cli_devices_main},
};

static void
print_help (FILE *out)
{
  fputs ("Usage: keepsake-cli COMMAND [OPTION...]\n\n"
         "Answers questions about long texts inside a fixed amount of memory.\n\nCommands:\n",
         out);
  for (gsize i = 0; i < G_N_ELEMENTS (commands); i++)
    fprintf (out, "  %-10s %s\n", commands[i].name, commands[i].summary);
  fputs ("\nEvery command explains itself: keepsake-cli COMMAND --help\n\n"
         "Examples:\n"
         "  keepsake-cli ask --attach manual.txt --budget 160MiB \"How do I reset it?\"\n"
         "  keepsake-cli chat --kv-budget 24MiB\n"
         "  keepsake-cli models\n\n"
         "The environment variable KEEPSAKE_MODEL names the model where --model is not given.\n\n"
         "Exit codes:\n"
         "  0    done\n"
         "  1    a file is missing or damaged, or the system failed\n"
         "  2    wrong options\n"
         "  3    does not fit the memory target\n"
         "  4    a model, gate, database or file of a kind this build does not know\n"
         "  130  cancelled with Ctrl-C\n",
         out);
}

/* Numbers are printed the same everywhere; text is UTF-8 even where the locale is plain C. */
static void
set_locale (void)
{
  const char *charset = NULL;

  setlocale (LC_CTYPE, "");
  setlocale (LC_MESSAGES, "");
  if (!g_get_charset (&charset))
    setlocale (LC_CTYPE, "C.UTF-8");
}

static int
run (int argc, char **argv)
{
  g_auto (GStrv) args = NULL;

  if (argc < 2) {
    print_help (stderr);
    return CLI_USAGE;
  }
  if (strcmp (argv[1], "--help") == 0 || strcmp (argv[1], "-h") == 0 ||
      strcmp (argv[1], "help") == 0) {
    print_help (stdout);
    return CLI_OK;
  }
  if (strcmp (argv[1], "--version") == 0) {
    puts ("keepsake-cli " KS_VERSION);
    return CLI_OK;
  }
  args = g_strdupv (argv + 1);
  for (gsize i = 0; i < G_N_ELEMENTS (commands); i++)
    if (strcmp (argv[1], commands[i].name) == 0)
      return commands[i].run (args);
  return cli_usage ("there is no command '%s': see keepsake-cli --help", argv[1]);
}

int
main (int argc, char **argv)
{
  cli_guard_streams ();
  cli_guard_interrupt ();
  set_locale ();
  signal (SIGXFSZ, SIG_IGN); /* a limit on sizes of files is an error like a full disk */
  signal (SIGPIPE, SIG_DFL); /* a reader that goes away ends the program quietly */
  return cli_finish_output (run (argc, argv));
}
