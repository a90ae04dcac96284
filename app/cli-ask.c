/* cli-ask.c - keepsake-cli ask: one question, one streamed answer, one line of memory facts. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-answer.h"
#include "media/ks-media.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "The question is given as argument, or on standard input. The answer streams to standard\n"
    "output; one line about memory goes to standard error. The likeliest token is taken at every "
    "step\n"
    "unless --temperature is given.\n\n"
    "Examples:\n"
    "  keepsake-cli ask \"What is a key/value cache?\"\n"
    "  keepsake-cli ask --attach manual.txt --budget 160MiB \"How do I reset it?\"\n"
    "  keepsake-cli ask --attach notes.md --attach data.csv --kv-budget 24MiB < question.txt\n"
    "  keepsake-cli ask --json --seed 7 --temperature 0.7 \"Name a river.\"\n\n"
    "Exit codes: 0 answered, 1 failed, 2 wrong options, 3 does not fit the memory target,\n"
    "4 not supported (model, gate, or a file without text), 130 cancelled.";

static char *
read_stdin (GError **error)
{
  g_autoptr (GByteArray) bytes = g_byte_array_new ();
  guint8 block[4096];
  ssize_t n;

  do {
    n = read (STDIN_FILENO, block, sizeof block);
    if (n > 0)
      g_byte_array_append (bytes, block, (guint)n);
  } while ((n > 0 && bytes->len <= KS_MEDIA_MAX_TEXT_BYTES) || (n < 0 && errno == EINTR));
  if (n < 0) {
    g_set_error (error, G_FILE_ERROR, (int)g_file_error_from_errno (errno),
                 "cannot read standard input: %s", g_strerror (errno));
    return NULL;
  }
  return cli_load_text_bytes ("standard input", bytes->data, bytes->len, error);
}

/* (transfer full) The question, NULL with *out_exit set. */
static char *
get_question (char **words, int *out_exit)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = NULL, *utf8 = NULL;

  if (words[0] != NULL && !(g_str_equal (words[0], "-") && words[1] == NULL)) {
    text = g_strjoinv (" ", words);
    utf8 = cli_load_text_bytes ("the question", text, strlen (text), &error);
  } else if (words[0] == NULL && isatty (STDIN_FILENO)) {
    *out_exit = cli_usage ("give a question as argument or on standard input: see keepsake-cli ask "
                           "--help");
    return NULL;
  } else {
    utf8 = read_stdin (&error);
  }
  if (utf8 == NULL) {
    *out_exit = cli_fail (error);
    return NULL;
  }
  g_strchomp (utf8);
  if (utf8[0] == '\0') {
    *out_exit = cli_usage ("the question is empty");
    return NULL;
  }
  return g_steal_pointer (&utf8);
}

static int
answer (CliTalk *talk, const CliOptions *options, const char *question,
        const KsAnswerOptions *answer_options)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsEngineJob) job = ks_conversation_ask (talk->conversation, question, answer_options);
  KsAnswerInfo info;
  gboolean ok;

  cli_talk_watch (talk, job);
  ok = cli_wait (job, &error);
  cli_progress_clear (&talk->progress);
  cli_talk_end_line (talk);
  info = ks_conversation_get_answer (talk->conversation);
  if (options->json && ok)
    cli_print_json (cli_talk_make_json (talk));
  else if (info.end != KS_ANSWER_NONE)
    cli_talk_print_facts (talk);
  if (ok && info.end == KS_ANSWER_LIMIT && !options->json)
    cli_print_notice ("The answer stopped at --max-tokens; a larger number makes it longer.");
  return ok ? CLI_OK : cli_fail (error);
}

static int
run (const CliOptions *options, const char *system, char **attach, const char *question)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsAnswerOptions) answer_options = cli_options_make_answer (options, &error);
  CliTalk talk = {0};
  int code = CLI_OK;

  if (answer_options == NULL)
    return cli_fail (error);
  if (!cli_options_has_temperature (options))
    answer_options->sampler.temperature = 0; /* one question wants one answer, the likeliest */
  if (cli_talk_open (&talk, options, &code)) {
    ks_conversation_set_system (talk.conversation, system);
    for (guint i = 0; code == CLI_OK && attach != NULL && attach[i] != NULL; i++)
      if (!cli_talk_attach (&talk, attach[i], &error))
        code = cli_fail (error);
    if (code == CLI_OK)
      code = answer (&talk, options, question, answer_options);
  }
  cli_talk_close (&talk);
  return code;
}

int
cli_ask_main (char **args)
{
  g_autoptr (GOptionContext) context = g_option_context_new ("[QUESTION]");
  g_autofree char *system = NULL, *question = NULL;
  g_auto (GStrv) attach = NULL, rest = g_strdupv (args);
  g_auto (CliOptions) options;
  int code = CLI_OK;
  const GOptionEntry entries[] = {{"attach", 'a', 0, G_OPTION_ARG_FILENAME_ARRAY, &attach,
                                   "text file to read first; may be given more than once", "FILE"},
                                  {"system", 's', 0, G_OPTION_ARG_STRING, &system,
                                   "instruction in front of the conversation", "TEXT"},
                                  {NULL, 0, 0, 0, NULL, NULL, NULL}};

  cli_options_init (&options);
  g_option_context_add_main_entries (context, entries, NULL);
  cli_options_add_model (&options, context);
  cli_options_add_memory (&options, context);
  cli_options_add_sampling (&options, context);
  cli_options_add_json (&options, context);
  g_option_context_set_summary (context, "Answers one question, about attached files or without.");
  g_option_context_set_description (context, help);
  if (!cli_parse (context, &rest, &code))
    return code;
  question = get_question (rest + 1, &code);
  if (question == NULL)
    return code;
  return run (&options, system, attach, question);
}
