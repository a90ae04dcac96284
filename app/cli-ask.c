/* cli-ask.c - keepsake-cli ask: one question, one streamed answer, one line of memory facts. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-answer.h"
#include "app/cli-media.h"
#include "media/ks-media.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "The question is given as argument, or on standard input. The answer streams to standard\n"
    "output; one line about memory goes to standard error. The likeliest token is taken at every "
    "step\n"
    "unless --temperature is given. With --session the question and its answer are stored, and "
    "earlier "
    "ones are\nread again first.\n\n"
    "Examples:\n"
    "  keepsake-cli ask \"What is a key/value cache?\"\n"
    "  keepsake-cli ask --attach manual.txt --budget 160MiB \"How do I reset it?\"\n"
    "  keepsake-cli ask --attach notes.md --attach data.csv --kv-budget 24MiB < question.txt\n"
    "  keepsake-cli ask --session new --attach report.pdf \"What is it about?\"\n"
    "  keepsake-cli ask --image photo.jpg \"What is on it?\"\n"
    "  keepsake-cli ask --session 3 \"And who wrote it?\"\n"
    "  keepsake-cli ask --json --seed 7 --temperature 0.7 \"Name a river.\"\n\n"
    "Exit codes: 0 answered, 1 failed, 2 wrong options, 3 does not fit the memory target,\n"
    "4 not supported (model, gate, eyes, or a file without text), 130 cancelled.";

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
answer (CliTalk *talk, const CliOptions *options, const char *question)
{
  g_autoptr (GError) error = NULL;
  KsAnswerInfo info;
  gboolean ok;

  if (!cli_talk_ask (talk, question, &error))
    return cli_fail (error);
  ok = cli_talk_wait (talk);
  info = cli_talk_get_info (talk);
  if (options->json && ok)
    cli_print_json (cli_talk_make_json (talk));
  else if (info.end != KS_ANSWER_NONE)
    cli_talk_print_facts (talk);
  if (ok && info.end == KS_ANSWER_LIMIT && !options->json)
    cli_print_notice ("The answer stopped at --max-tokens; a larger number makes it longer.");
  return ok ? CLI_OK : cli_fail (talk->error);
}

int
cli_ask_main (char **args)
{
  g_autofree char *question = NULL;
  g_auto (GStrv) rest = g_strdupv (args);
  g_auto (CliOptions) options;
  CliTalk talk = {0};
  int code = CLI_OK;

  cli_options_init (&options);
  if (!cli_options_parse_talk (&options, "[QUESTION]",
                               "Answers one question, about attached files or without.", help,
                               &rest, &code))
    return code;
  question = get_question (rest + 1, &code);
  if (question == NULL)
    return code;
  if (cli_talk_open (&talk, &options, TRUE, &code))
    code = answer (&talk, &options, question);
  return cli_talk_close (&talk, code);
}
