/* cli-chat.c - keepsake-cli chat: a conversation in the terminal, line by line.
 * Lines wait in a queue while an answer runs; on a terminal commands about memory act at once, so
 * that the target can be moved in the middle of an answer. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-answer.h"
#include "app/cli-pin.h"
#include "app/cli-session.h"
#include "app/cli-sessions.h"
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
    "answer and keeps the conversation, a second Ctrl-C ends the program. With --session the\n"
    "conversation is stored while it is held, and a stored one goes on.\n\n"
    "Examples:\n"
    "  keepsake-cli chat\n"
    "  keepsake-cli chat --attach handbook.md --kv-budget 24MiB\n"
    "  keepsake-cli chat --session new\n"
    "  keepsake-cli chat --session \"Cable car\"\n"
    "  printf 'Hello\\n/stats\\n' | keepsake-cli chat --json\n\n"
    "Exit codes: 0 ended with /quit or the end of input, 1 failed, 2 wrong options, 3 does not "
    "fit\n"
    "the memory target, 4 not supported, 130 ended with Ctrl-C.";

static const char commands_help[] =
    "/attach FILE      add a file to the next message\n"
    "/image FILE       add a picture that the model looks at\n"
    "/continue         go on with an answer that was cut\n"
    "/regenerate       answer the last question again (sessions)\n"
    "/title TEXT       give the session another title\n"
    "/export FORMAT [FILE]  write the session as md, json or html\n"
    "/sessions         list the stored sessions\n"
    "/budget SIZE      memory for everything, from now on (also while an answer runs)\n"
    "/kv-budget SIZE   memory for keys and values only\n"
    "/entries M        the same as entries in each stream\n"
    "/policy NAME      what to keep\n"
    "/pin TURN [FILE]  keep a turn, or a file's pictures in it, whatever else is let go\n"
    "/unpin TURN [FILE]  let it fade again\n"
    "/stats            what is kept, and how much memory it takes\n"
    "/help             this list\n"
    "/quit             end\n";

typedef struct {
  CliTalk talk;
  GQueue lines;       /* of char* */
  GString *input;     /* the beginning of a line */
  guint source;       /* watches standard input; 0 while enough is read or at its end */
  gboolean attaching; /* Ctrl-C means the file that is being read */
  gboolean answering; /* a request runs, or its end was not told yet */
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

/* NULL, and why is printed, before a session's first request. */
static KsConversation *
get_conversation (Chat *chat)
{
  KsConversation *conversation = cli_talk_get_conversation (&chat->talk);

  if (conversation == NULL)
    cli_print_error ("the model has read nothing of this session yet: write a message first, or "
                     "give the option when chat is started");
  return conversation;
}

static void
set_budget (Chat *chat, const char *which, const char *value)
{
  g_autoptr (GError) error = NULL;
  KsConversation *conversation = get_conversation (chat);
  ks_budget_request request = {0};
  guint64 amount = 0;
  gboolean ok;

  if (conversation == NULL)
    return;
  if (g_str_equal (which, "/entries"))
    ok = g_ascii_string_to_unsigned (value, 10, 1, G_MAXUINT32, &amount, NULL);
  else
    ok = cli_parse_bytes (value, &amount, &error);
  if (error == NULL && (!ok || amount == 0)) {
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
  run_short_job (chat, ks_conversation_set_budget (conversation, &request));
}

static void
set_policy (Chat *chat, const char *name)
{
  KsConversation *conversation = get_conversation (chat);
  ks_policy policy;

  if (conversation == NULL)
    return;
  if (!ks_policy_parse (name, &policy))
    cli_print_error ("there is no policy '%s': see keepsake-cli chat --help for their names", name);
  else
    run_short_job (chat, ks_conversation_set_policy (conversation, policy));
}

static void
show_stats (Chat *chat)
{
  KsConversation *conversation = get_conversation (chat);

  if (conversation == NULL)
    return;
  if (chat->json) {
    g_autoptr (KsMemoryStats) stats = ks_conversation_dup_stats (conversation);

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
tell_end (Chat *chat)
{
  const GError *error = chat->talk.error;
  KsAnswerInfo info = cli_talk_get_info (&chat->talk);

  chat->answering = FALSE;
  if (error != NULL && !ks_error_is_cancelled (error))
    cli_print_error ("%s", error->message);
  else if (error != NULL && info.end == KS_ANSWER_NONE && chat->talk.session == NULL)
    cli_print_notice ("Cancelled before the message was read; it is dropped.");
  else if (error != NULL)
    cli_print_notice ("Cancelled; /continue goes on.");
  else if (chat->json)
    cli_print_json (cli_talk_make_json (&chat->talk));
  else if (info.end == KS_ANSWER_LIMIT)
    cli_print_notice ("The answer met its limit; /continue goes on.");
  if (error == NULL && chat->terminal)
    cli_talk_print_facts (&chat->talk);
}

/* What asks the model.  FALSE: word is none of the commands that do. */
static gboolean
run_request (Chat *chat, const char *word, const char *line)
{
  g_autoptr (GError) error = NULL;
  gboolean begun;

  if (line[0] != '/')
    begun = cli_talk_ask (&chat->talk, line, &error);
  else if (g_str_equal (word, "/continue"))
    begun = cli_talk_continue (&chat->talk, &error);
  else if (g_str_equal (word, "/regenerate"))
    begun = cli_talk_regenerate (&chat->talk, &error);
  else
    return FALSE;
  if (begun)
    chat->answering = TRUE;
  else
    cli_print_error ("%s", error->message);
  return TRUE;
}

/* Commands about the stored session.  FALSE: word is none of them. */
static gboolean
run_session_command (Chat *chat, const char *word, const char *rest)
{
  g_auto (GStrv) parts = g_strsplit (rest, " ", 2);
  CliSession *session = chat->talk.session;
  g_autoptr (GError) error = NULL;
  gboolean ok = TRUE;

  if (g_str_equal (word, "/sessions")) {
    (void)cli_sessions_list (chat->json);
    return TRUE;
  }
  if (!g_str_equal (word, "/title") && !g_str_equal (word, "/export"))
    return FALSE;
  if (session == NULL)
    cli_print_error ("nothing is stored here: start chat with --session new");
  else if (g_str_equal (word, "/title"))
    ok = cli_session_rename (session, rest, &error);
  else
    ok = cli_session_export (session, parts[0] != NULL ? parts[0] : "",
                             parts[0] != NULL && parts[1] != NULL ? g_strstrip (parts[1]) : NULL,
                             &error);
  if (!ok)
    cli_print_error ("%s", error->message);
  return TRUE;
}

/* FALSE: word is neither of them. */
static gboolean
run_pin_command (Chat *chat, const char *word, const char *rest)
{
  g_autoptr (GError) error = NULL;
  gboolean pinned = g_str_equal (word, "/pin");

  if (!pinned && !g_str_equal (word, "/unpin"))
    return FALSE;
  if (!cli_talk_pin (&chat->talk, rest, pinned, &error))
    cli_print_error ("%s", error->message);
  return TRUE;
}

static void
attach (Chat *chat, const char *path, gboolean is_image)
{
  g_autoptr (GError) error = NULL;

  chat->attaching = TRUE;
  if (!(is_image ? cli_talk_attach_image (&chat->talk, path, &error)
                 : cli_talk_attach (&chat->talk, path, &error)))
    cli_print_error ("%s", error->message);
  chat->attaching = FALSE;
}

static void
run_line (Chat *chat, const char *line)
{
  g_auto (GStrv) parts = g_strsplit (line, " ", 2);
  const char *word = parts[0] != NULL ? parts[0] : "";
  const char *rest = parts[0] != NULL && parts[1] != NULL ? g_strstrip (parts[1]) : "";

  if (line[0] == '\0' || run_request (chat, word, line) || run_memory_command (chat, word, rest) ||
      run_session_command (chat, word, rest) || run_pin_command (chat, word, rest))
    return;
  if (g_str_equal (word, "/quit"))
    chat->quit = TRUE;
  else if (g_str_equal (word, "/help"))
    fputs (commands_help, stderr);
  else if ((g_str_equal (word, "/attach") || g_str_equal (word, "/image")) && rest[0] == '\0')
    cli_print_error ("name a file: %s FILE", word);
  else if (g_str_equal (word, "/attach") || g_str_equal (word, "/image"))
    attach (chat, rest, g_str_equal (word, "/image"));
  else
    cli_print_error ("there is no command '%s': /help lists them", word);
}

static void
take_line (Chat *chat, const char *text, gsize n)
{
  g_autofree char *line = g_utf8_make_valid (text, (gssize)n);

  g_strchomp (line);
  if (chat->answering && chat->terminal && line[0] == '/') {
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
      if (chat->answering)
        cli_talk_stop (&chat->talk);
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

  if (chat->attaching)
    return G_SOURCE_CONTINUE;
  if (chat->answering && !chat->talk.stopping) {
    cli_talk_stop (&chat->talk);
    return G_SOURCE_CONTINUE;
  }
  if (chat->answering)
    cli_exit_interrupted (); /* asked twice: do not wait for the step that runs */
  cli_print_error ("cancelled");
  chat->code = CLI_CANCELLED;
  chat->quit = TRUE;
  return G_SOURCE_CONTINUE;
}

static void
run_loop (Chat *chat)
{
  guint interrupt = cli_add_interrupt (interrupt_cb, chat);
  gboolean prompted = FALSE;

  while (!chat->quit || chat->answering) {
    if (chat->answering && !chat->talk.busy)
      tell_end (chat);
    if (chat->quit && !chat->answering)
      break;
    if (!chat->answering && !chat->quit && !g_queue_is_empty (&chat->lines)) {
      g_autofree char *line = g_queue_pop_head (&chat->lines);

      run_line (chat, line);
      prompted = FALSE;
      continue;
    }
    if (!chat->answering && chat->eof)
      break;
    if (chat->source == 0 && !chat->answering && !chat->eof)
      chat->source = g_unix_fd_add (STDIN_FILENO, G_IO_IN | G_IO_HUP | G_IO_ERR, input_cb, chat);
    if (!chat->answering && chat->terminal && !prompted) {
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

int
cli_chat_main (char **args)
{
  g_auto (GStrv) rest = g_strdupv (args);
  g_auto (CliOptions) options;
  Chat chat = {.code = CLI_OK};

  cli_options_init (&options);
  if (!cli_options_parse_talk (&options, NULL,
                               "Talks in the terminal, inside a fixed amount of memory.", help,
                               &rest, &chat.code))
    return chat.code;
  if (rest[1] != NULL)
    return cli_usage ("chat takes no arguments: for one question use keepsake-cli ask");
  chat.json = options.json;
  chat.terminal = isatty (STDIN_FILENO) && isatty (STDOUT_FILENO);
  chat.input = g_string_new (NULL);
  if (cli_talk_open (&chat.talk, &options, FALSE, &chat.code))
    run_loop (&chat);
  chat.code = cli_talk_close (&chat.talk, chat.code);
  g_queue_clear_full (&chat.lines, g_free);
  g_string_free (chat.input, TRUE);
  return chat.code;
}
