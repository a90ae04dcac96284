/* cli-chat.c - keepsake-cli chat: a conversation in the terminal, line by line.
 * Lines wait in a queue while an answer runs; on a terminal commands about memory act at once, so
 * that the target can be moved in the middle of an answer. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-answer.h"
#include "app/ks-error.h"
#include "media/ks-media.h"

#include <errno.h>
#include <glib-unix.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "Lines are messages; lines that begin with / are commands (/help lists them). Ctrl-C stops "
    "the\n"
    "answer and keeps the conversation, a second Ctrl-C ends the program.\n\n"
    "Examples:\n"
    "  keepsake-cli chat\n"
    "  keepsake-cli chat --attach handbook.md --kv-budget 24MiB\n"
    "  printf 'Hello\\n/stats\\n' | keepsake-cli chat --json\n\n"
    "Exit codes: 0 ended with /quit or the end of input, 1 failed, 2 wrong options, 3 does not "
    "fit\n"
    "the memory target, 4 not supported, 130 ended with Ctrl-C.";

static const char commands_help[] =
    "/attach FILE      add a text file to the next message\n"
    "/continue         go on with an answer that was cut\n"
    "/budget SIZE      memory for everything, from now on (also while an answer runs)\n"
    "/kv-budget SIZE   memory for keys and values only\n"
    "/entries M        the same as entries in each stream\n"
    "/policy NAME      what to keep\n"
    "/stats            what is kept, and how much memory it takes\n"
    "/help             this list\n"
    "/quit             end\n";

typedef struct {
  CliTalk talk;
  KsAnswerOptions *answer_options;
  KsEngineJob *job; /* the answer that runs, or NULL */
  GQueue lines;     /* of char* */
  GString *input;   /* the beginning of a line */
  guint source;     /* watches standard input; 0 while enough is read or at its end */
  gboolean terminal, json, eof, quit;
  int code;
} Chat;

/* A command that waits for the engine for a moment only; prints what went wrong. */
static void
run_short_job (Chat *chat, KsEngineJob *take_job)
{
  g_autoptr (KsEngineJob) job = take_job;
  g_autoptr (GError) error = NULL;

  if (!ks_engine_job_wait (job, &error))
    cli_print_error ("%s", error->message);
  else if (chat->terminal)
    cli_talk_print_facts (&chat->talk);
}

static void
set_budget (Chat *chat, const char *which, const char *value)
{
  g_autoptr (GError) error = NULL;
  ks_budget_request request = {0};
  guint64 amount = 0;
  gboolean ok;

  if (g_str_equal (which, "/entries"))
    ok = g_ascii_string_to_unsigned (value, 10, 1, G_MAXUINT32, &amount, &error);
  else
    ok = cli_parse_bytes (value, &amount, &error);
  if (ok && amount == 0) {
    cli_print_error ("%s needs an amount, for example %s %s", which, which,
                     g_str_equal (which, "/entries") ? "512" : "24MiB");
    return;
  }
  if (!ok) {
    cli_print_error ("%s", error->message);
    return;
  }
  if (g_str_equal (which, "/entries"))
    request.entries = amount;
  else if (g_str_equal (which, "/budget"))
    request.total_bytes = amount;
  else
    request.kv_bytes = amount;
  run_short_job (chat, ks_conversation_set_budget (chat->talk.conversation, &request));
}

static void
set_policy (Chat *chat, const char *name)
{
  ks_policy policy;

  if (!ks_policy_parse (name, &policy))
    cli_print_error ("there is no policy '%s': see keepsake-cli chat --help for their names", name);
  else
    run_short_job (chat, ks_conversation_set_policy (chat->talk.conversation, policy));
}

static void
show_stats (Chat *chat)
{
  if (chat->json) {
    g_autoptr (KsMemoryStats) stats = ks_conversation_dup_stats (chat->talk.conversation);

    if (stats != NULL)
      cli_print_json (cli_talk_make_json (&chat->talk));
  } else {
    cli_talk_print_facts (&chat->talk);
  }
}

/* Commands that may act while an answer runs.  FALSE: line is none of them. */
static gboolean
run_memory_command (Chat *chat, const char *word, const char *rest)
{
  if (g_str_equal (word, "/budget") || g_str_equal (word, "/kv-budget") ||
      g_str_equal (word, "/entries"))
    set_budget (chat, word, rest);
  else if (g_str_equal (word, "/policy"))
    set_policy (chat, rest);
  else if (g_str_equal (word, "/stats"))
    show_stats (chat);
  else
    return FALSE;
  return TRUE;
}

static void
finished_cb (KsEngineJob *job, gpointer user_data)
{
  Chat *chat = user_data;
  const GError *error = ks_engine_job_get_error (job);
  KsAnswerInfo info = ks_conversation_get_answer (chat->talk.conversation);

  cli_progress_clear (&chat->talk.progress);
  cli_talk_end_line (&chat->talk);
  if (error != NULL && !ks_error_is_cancelled (error))
    cli_print_error ("%s", error->message);
  else if (error != NULL && info.end == KS_ANSWER_NONE)
    cli_print_notice ("Cancelled before the message was read; it is dropped.");
  else if (error != NULL)
    cli_print_notice ("Cancelled; /continue goes on.");
  else if (chat->json)
    cli_print_json (cli_talk_make_json (&chat->talk));
  else if (info.end == KS_ANSWER_LIMIT)
    cli_print_notice ("The answer met its limit; /continue goes on.");
  if (error == NULL && chat->terminal)
    cli_talk_print_facts (&chat->talk);
  g_clear_object (&chat->job);
}

static void
start (Chat *chat, KsEngineJob *take_job)
{
  g_string_truncate (chat->talk.answer, 0);
  chat->job = take_job;
  cli_talk_watch (&chat->talk, chat->job);
  g_signal_connect (chat->job, "finished", G_CALLBACK (finished_cb), chat);
}

static void
run_line (Chat *chat, const char *line)
{
  g_auto (GStrv) parts = g_strsplit (line, " ", 2);
  const char *word = parts[0] != NULL ? parts[0] : "";
  const char *rest = parts[0] != NULL && parts[1] != NULL ? g_strstrip (parts[1]) : "";
  g_autoptr (GError) error = NULL;

  if (line[0] == '\0')
    return;
  if (line[0] != '/')
    start (chat, ks_conversation_ask (chat->talk.conversation, line, chat->answer_options));
  else if (run_memory_command (chat, word, rest))
    return;
  else if (g_str_equal (word, "/continue"))
    start (chat, ks_conversation_continue (chat->talk.conversation, chat->answer_options));
  else if (g_str_equal (word, "/quit"))
    chat->quit = TRUE;
  else if (g_str_equal (word, "/help"))
    fputs (commands_help, stderr);
  else if (!g_str_equal (word, "/attach"))
    cli_print_error ("there is no command '%s': /help lists them", word);
  else if (!cli_talk_attach (&chat->talk, rest, &error))
    cli_print_error ("%s", error->message);
}

static void
take_line (Chat *chat, const char *text, gsize n)
{
  g_autofree char *line = g_utf8_make_valid (text, (gssize)n);

  g_strchomp (line);
  if (chat->job != NULL && chat->terminal && line[0] == '/') {
    g_auto (GStrv) parts = g_strsplit (line, " ", 2);

    if (run_memory_command (chat, parts[0], parts[1] != NULL ? g_strstrip (parts[1]) : ""))
      return;
  }
  g_queue_push_tail (&chat->lines, g_steal_pointer (&line));
}

static void
end_input (Chat *chat)
{
  if (chat->input->len > 0)
    take_line (chat, chat->input->str, chat->input->len);
  g_string_truncate (chat->input, 0);
  chat->eof = TRUE;
}

/* Cuts the finished lines off; only what is new can hold a line break. */
static void
take_lines (Chat *chat, const char *block, gsize n)
{
  const char *end;

  while ((end = memchr (block, '\n', n)) != NULL) {
    g_string_append_len (chat->input, block, end - block);
    take_line (chat, chat->input->str, chat->input->len);
    g_string_truncate (chat->input, 0);
    n -= (gsize)(end + 1 - block);
    block = end + 1;
  }
  g_string_append_len (chat->input, block, (gssize)n);
}

static gboolean
input_cb (int fd, GIOCondition condition, gpointer user_data)
{
  Chat *chat = user_data;
  char block[4096];
  ssize_t n = read (fd, block, sizeof block);

  if (n < 0 && (errno == EINTR || errno == EAGAIN))
    return G_SOURCE_CONTINUE;
  if (n > 0) {
    take_lines (chat, block, (gsize)n);
    if (chat->input->len > KS_MEDIA_MAX_TEXT_BYTES) {
      cli_print_error ("a line is longer than %u MiB: put the text into files and /attach them",
                       KS_MEDIA_MAX_TEXT_BYTES >> 20);
      g_string_truncate (chat->input, 0);
      chat->code = CLI_FAILED;
      chat->quit = TRUE;
      if (chat->job != NULL)
        ks_engine_job_cancel (chat->job);
    }
    /* A pipe is read no faster than it is answered; at a terminal commands act at once. */
    if (chat->terminal || (g_queue_is_empty (&chat->lines) && !chat->quit))
      return G_SOURCE_CONTINUE;
  } else {
    if (n < 0) {
      cli_print_error ("cannot read standard input: %s", g_strerror (errno));
      chat->code = CLI_FAILED;
    }
    end_input (chat);
  }
  chat->source = 0;
  return G_SOURCE_REMOVE;
}

static gboolean
interrupt_cb (gpointer user_data)
{
  Chat *chat = user_data;

  if (chat->job != NULL && !ks_engine_job_is_cancelled (chat->job)) {
    ks_engine_job_cancel (chat->job);
    return G_SOURCE_CONTINUE;
  }
  fflush (stdout);
  fputs ("\nkeepsake-cli: cancelled\n", stderr);
  if (chat->job != NULL)
    _exit (CLI_CANCELLED); /* asked twice: do not wait for the step that runs */
  chat->code = CLI_CANCELLED;
  chat->quit = TRUE;
  return G_SOURCE_CONTINUE;
}

static void
run_loop (Chat *chat)
{
  guint interrupt = cli_add_interrupt (interrupt_cb, chat);
  gboolean prompted = FALSE;

  while (!chat->quit) {
    if (chat->job == NULL && !g_queue_is_empty (&chat->lines)) {
      g_autofree char *line = g_queue_pop_head (&chat->lines);

      run_line (chat, line);
      prompted = FALSE;
      continue;
    }
    if (chat->job == NULL && chat->eof)
      break;
    if (chat->source == 0 && chat->job == NULL && !chat->eof)
      chat->source = g_unix_fd_add (STDIN_FILENO, G_IO_IN | G_IO_HUP | G_IO_ERR, input_cb, chat);
    if (chat->job == NULL && chat->terminal && !prompted) {
      fputs ("> ", stdout);
      fflush (stdout);
      prompted = TRUE;
    }
    g_main_context_iteration (NULL, TRUE);
  }
  if (chat->source != 0)
    g_source_remove (chat->source);
  cli_remove_interrupt (interrupt);
}

static int
run (const CliOptions *options, const char *system, char **attach)
{
  g_autoptr (GError) error = NULL;
  Chat chat = {.json = options->json, .input = g_string_new (NULL)};

  chat.terminal = isatty (STDIN_FILENO) && isatty (STDOUT_FILENO);
  chat.answer_options = cli_options_make_answer (options, &error);
  if (chat.answer_options == NULL) {
    chat.code = cli_fail (error);
  } else if (cli_talk_open (&chat.talk, options, &chat.code)) {
    chat.answer_options->may_continue = TRUE;
    ks_conversation_set_system (chat.talk.conversation, system);
    for (guint i = 0; chat.code == CLI_OK && attach != NULL && attach[i] != NULL; i++)
      if (!cli_talk_attach (&chat.talk, attach[i], &error))
        chat.code = cli_fail (error);
    if (chat.code == CLI_OK)
      run_loop (&chat);
  }
  cli_talk_close (&chat.talk);
  ks_answer_options_free (chat.answer_options);
  g_queue_clear_full (&chat.lines, g_free);
  g_string_free (chat.input, TRUE);
  return chat.code;
}

int
cli_chat_main (char **args)
{
  g_autoptr (GOptionContext) context = g_option_context_new (NULL);
  g_autofree char *system = NULL;
  g_auto (GStrv) attach = NULL, rest = g_strdupv (args);
  g_auto (CliOptions) options;
  int code = CLI_OK;
  const GOptionEntry entries[] = {
      {"attach", 'a', 0, G_OPTION_ARG_FILENAME_ARRAY, &attach,
       "text file that belongs to the first message; may be given more than once", "FILE"},
      {"system", 's', 0, G_OPTION_ARG_STRING, &system, "instruction in front of the conversation",
       "TEXT"},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  cli_options_init (&options);
  g_option_context_add_main_entries (context, entries, NULL);
  cli_options_add_model (&options, context);
  cli_options_add_memory (&options, context);
  cli_options_add_sampling (&options, context);
  cli_options_add_json (&options, context);
  g_option_context_set_summary (context, "Talks in the terminal, inside a fixed amount of memory.");
  g_option_context_set_description (context, help);
  if (!cli_parse (context, &rest, &code))
    return code;
  if (rest[1] != NULL)
    return cli_usage ("chat takes no arguments: for one question use keepsake-cli ask");
  return run (&options, system, attach);
}
