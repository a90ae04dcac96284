/* cli-sessions.c - keepsake-cli sessions: list, search, rename, delete; show is in
 * cli-sessions-show.c. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-sessions.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What fits a line of a terminal with the numbers in front. */
#define TITLE_CHARS 100u

typedef struct {
  gboolean json, all, yes;
  int limit;
  char **words; /* arguments behind the command */
  int code;     /* when func has printed what went wrong itself */
} Request;

/* A list, or one session a line and its snippet below it. */
static void
print_sessions (GPtrArray *sessions, gboolean json)
{
  cJSON *array = json ? cJSON_CreateArray () : NULL;

  for (guint i = 0; i < sessions->len; i++) {
    KsSession *session = g_ptr_array_index (sessions, i);
    g_autofree char *title = cli_dup_title (session, TITLE_CHARS);
    g_autofree char *changed = cli_format_time (ks_session_get_updated_us (session));
    const char *snippet = ks_session_get_snippet (session);

    if (json) {
      cJSON_AddItemToArray (array, cli_make_session_json (session));
      continue;
    }
    printf ("%5" G_GINT64_FORMAT "  %s  %4u  %s\n", ks_session_get_id (session), changed,
            ks_session_get_n_messages (session), title);
    if (snippet != NULL) {
      g_autofree char *printable = cli_dup_printable (snippet);

      printf ("%5s  %s\n", "", printable);
    }
  }
  if (json)
    cli_print_json (array);
}

static gboolean
list (KsStore *store, gpointer data, GError **error)
{
  Request *request = data;
  g_autoptr (GPtrArray) sessions = ks_store_list_sessions (store, 0, (guint)request->limit, error);

  if (sessions == NULL)
    return FALSE;
  if (sessions->len == 0 && !request->json)
    cli_print_notice ("There are no stored sessions; ask and chat begin one with --session new.");
  else if (!request->json)
    printf ("%5s  %-16s  %4s  %s\n", "ID", "CHANGED", "MSGS", "TITLE");
  print_sessions (sessions, request->json);
  return TRUE;
}

static gboolean
search (KsStore *store, gpointer data, GError **error)
{
  Request *request = data;
  g_autofree char *query = g_strjoinv (" ", request->words);
  g_autofree char *valid = g_utf8_make_valid (query, -1);
  g_autoptr (GPtrArray) sessions = ks_store_search (store, valid, (guint)request->limit, error);

  if (sessions == NULL)
    return FALSE;
  if (sessions->len == 0 && !request->json)
    cli_print_notice ("Nothing was found.");
  print_sessions (sessions, request->json);
  return TRUE;
}

static gboolean
rename_session (KsStore *store, gpointer data, GError **error)
{
  Request *request = data;
  g_autofree char *title = g_utf8_make_valid (request->words[1], -1);
  g_autoptr (KsSession) session = ks_store_find_session (store, request->words[0], error);
  gint64 id = session != NULL ? ks_session_get_id (session) : 0;

  g_strstrip (title);
  if (session == NULL || !ks_store_rename_session (store, id, title, error))
    return FALSE;
  ks_session_set_title (session, title);
  if (request->json) {
    cli_print_json (cli_make_session_json (session));
  } else {
    g_autofree char *shown = cli_dup_title (session, TITLE_CHARS);

    printf ("Session %" G_GINT64_FORMAT ": %s\n", id, shown);
  }
  return TRUE;
}

/* Asks on the terminal.  FALSE: nothing is to be deleted, and that is said. */
static gboolean
confirm (Request *request, const char *question)
{
  char answer[16] = "";

  if (request->yes)
    return TRUE;
  if (!isatty (STDIN_FILENO)) {
    request->code = cli_usage ("deleting cannot be undone: say --yes where nobody can be asked");
    return FALSE;
  }
  fprintf (stderr, "%s This cannot be undone. [y/N] ", question);
  fflush (stderr);
  if (fgets (answer, sizeof answer, stdin) != NULL) {
    g_strstrip (answer);
    if (g_ascii_strcasecmp (answer, "y") == 0 || g_ascii_strcasecmp (answer, "yes") == 0)
      return TRUE;
  }
  cli_print_error ("nothing was deleted");
  request->code = CLI_CANCELLED;
  return FALSE;
}

static gboolean
confirm_sessions (Request *request, GPtrArray *sessions)
{
  g_autofree char *question = NULL;

  if (sessions->len == 1) {
    KsSession *session = g_ptr_array_index (sessions, 0);
    g_autofree char *title = cli_dup_title (session, TITLE_CHARS);
    g_autofree char *n = cli_format_n (ks_session_get_n_messages (session), "message", "messages");

    question = g_strdup_printf ("Delete session %" G_GINT64_FORMAT " \"%s\" with %s?",
                                ks_session_get_id (session), title, n);
  } else {
    question = g_strdup_printf ("Delete %u sessions%s?", sessions->len,
                                request->all ? ", everything that was stored" : "");
  }
  return confirm (request, question);
}

/* All of them are found before the first one goes. */
static GPtrArray *
find_sessions (KsStore *store, Request *request, GError **error)
{
  g_autoptr (GPtrArray) sessions = NULL;

  if (request->all)
    return ks_store_list_sessions (store, 0, 0, error);
  sessions = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint i = 0; request->words[i] != NULL; i++) {
    KsSession *session = ks_store_find_session (store, request->words[i], error);
    gboolean known = FALSE;

    if (session == NULL)
      return NULL;
    for (guint k = 0; k < sessions->len && !known; k++)
      known = ks_session_get_id (g_ptr_array_index (sessions, k)) == ks_session_get_id (session);
    if (known)
      g_object_unref (session);
    else
      g_ptr_array_add (sessions, session);
  }
  return g_steal_pointer (&sessions);
}

static gboolean
delete_found (KsStore *store, Request *request, GPtrArray *sessions, GError **error)
{
  if (request->all)
    return ks_store_delete_all (store, error);
  for (guint i = 0; i < sessions->len; i++)
    if (!ks_store_delete_session (store, ks_session_get_id (g_ptr_array_index (sessions, i)),
                                  error))
      return FALSE;
  return ks_store_purge (store, error);
}

static gboolean
delete_sessions (KsStore *store, gpointer data, GError **error)
{
  Request *request = data;
  g_autoptr (GPtrArray) sessions = find_sessions (store, request, error);

  if (sessions == NULL)
    return FALSE;
  if (!confirm_sessions (request, sessions) || !delete_found (store, request, sessions, error))
    return FALSE;
  if (request->json) {
    print_sessions (sessions, TRUE);
  } else {
    g_autofree char *n = cli_format_n (sessions->len, "session", "sessions");

    printf ("Deleted %s.\n", n);
  }
  return TRUE;
}

int
cli_sessions_list (gboolean json)
{
  Request request = {.json = json};

  return cli_run_on_store (FALSE, list, &request);
}

/* --- commands --- */

#define EXIT_CODES                                                                                 \
  "Exit codes: 0 done, 1 failed or there is no such session, 2 wrong options, 4 the sessions are " \
  "of a\nnewer Keepsake."

/* Parses what is common to all and runs func. */
static int
run (char **args, const char *arguments, const char *summary, const char *help,
     const GOptionEntry *entries, Request *request, guint n_least, guint n_most, gboolean writes,
     CliStoreFunc func)
{
  g_autoptr (GOptionContext) context = g_option_context_new (arguments);
  g_auto (GStrv) rest = g_strdupv (args);
  const GOptionEntry json[] = {
      {"json", 'j', 0, G_OPTION_ARG_NONE, &request->json, "print the result as JSON", NULL},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};
  int code = CLI_OK;
  guint n;

  if (entries != NULL)
    g_option_context_add_main_entries (context, entries, NULL);
  g_option_context_add_main_entries (context, json, NULL);
  g_option_context_set_summary (context, summary);
  g_option_context_set_description (context, help);
  if (!cli_parse (context, &rest, &code))
    return code;
  n = g_strv_length (rest + 1);
  if (request->all)
    n_least = n_most = 0;
  if (n < n_least || n > n_most)
    return cli_usage ("%s%s takes %s: see its --help", rest[0], request->all ? " --all" : "",
                      n_most == 0 ? "no arguments" : arguments);
  if (request->limit < 0)
    return cli_usage ("--limit must be at least 0, not %d", request->limit);
  request->words = rest + 1;
  code = cli_run_on_store (writes, func, request);
  return code == CLI_FAILED && request->code != CLI_OK ? request->code : code;
}

static int
list_main (char **args)
{
  Request request = {0};
  const GOptionEntry entries[] = {
      {"limit", 'l', 0, G_OPTION_ARG_INT, &request.limit, "the newest N only", "N"},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  return run (args, NULL, "Lists the stored sessions, newest first.",
              "Examples:\n  keepsake-cli sessions list\n"
              "  keepsake-cli sessions list --limit 5 --json\n\n" EXIT_CODES,
              entries, &request, 0, 0, FALSE, list);
}

static int
search_main (char **args)
{
  Request request = {.limit = 50};
  const GOptionEntry entries[] = {{"limit", 'l', 0, G_OPTION_ARG_INT, &request.limit,
                                   "N hits at most, 0 = all (default 50)", "N"},
                                  {NULL, 0, 0, 0, NULL, NULL, NULL}};

  return run (args, "WORD...",
              "Looks for words in titles and messages: each of them has to occur, \"two words\" in "
              "quotes count as one.",
              "Examples:\n  keepsake-cli sessions search budget\n"
              "  keepsake-cli sessions search '\"cable car\" lines'\n\n" EXIT_CODES,
              entries, &request, 1, G_MAXUINT, FALSE, search);
}

static int
rename_main (char **args)
{
  Request request = {0};

  return run (args, "SESSION TITLE", "Gives a session another title.",
              "SESSION is a number, a title, or the beginning of one title.\n\n"
              "Examples:\n  keepsake-cli sessions rename 3 \"Cable car manual\"\n\n" EXIT_CODES,
              NULL, &request, 2, 2, TRUE, rename_session);
}

static int
delete_main (char **args)
{
  Request request = {0};
  const GOptionEntry entries[] = {
      {"all", 0, 0, G_OPTION_ARG_NONE, &request.all,
       "everything: sessions, attachments, copies made by updates", NULL},
      {"yes", 'y', 0, G_OPTION_ARG_NONE, &request.yes, "do not ask", NULL},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  return run (args, "SESSION...", "Deletes sessions for good, with attachments nobody else uses.",
              "SESSION is a number, a title, or the beginning of one title. Asks on a terminal; "
              "elsewhere\n--yes is needed. It cannot be undone: export first what you may want "
              "again.\n\n"
              "Examples:\n  keepsake-cli sessions delete 3\n"
              "  keepsake-cli sessions delete --yes 3 4 5\n"
              "  keepsake-cli sessions delete --all --yes\n\n" EXIT_CODES,
              entries, &request, 1, G_MAXUINT, TRUE, delete_sessions);
}

int
cli_sessions_main (char **args)
{
  static const CliCommand commands[] = {
      {"list", "the stored sessions, newest first", list_main},
      {"show", "the messages of a session", cli_sessions_show_main},
      {"rename", "give a session another title", rename_main},
      {"delete", "delete sessions for good", delete_main},
      {"search", "look for words in titles and messages", search_main},
  };

  return cli_run_subcommand (
      "sessions", commands, G_N_ELEMENTS (commands), args,
      "Examples:\n  keepsake-cli sessions list\n  keepsake-cli sessions show 3\n"
      "  keepsake-cli sessions search budget\n\n"
      "ask and chat go on with a session by --session; export and import are commands of their "
      "own.\n");
}
