/* cli-sessions-show.c - keepsake-cli sessions show: a session's messages as text or JSON. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-sessions.h"

#include <stdio.h>
#include <string.h>

typedef struct {
  const char *name;
  gboolean json, all;
} Request;

static const char *const roles[] = {"system", "user", "assistant"};
static const char *const states[] = {"complete", "streaming",   "stopped",
                                     "limit",    "interrupted", "failed"};
static const char *const kinds[] = {"text", "pdf", "image", "video", "document"};

/* What is to be said about how a message ended; "" for nothing. */
static const char *
get_note (KsMessage *message)
{
  const char *text = ks_message_get_text (message);

  switch (ks_message_get_state (message)) {
  case KS_MESSAGE_STREAMING:
    return ", being written";
  case KS_MESSAGE_STOPPED:
    return text == NULL || text[0] == '\0' ? ", stopped before it was read" : ", stopped";
  case KS_MESSAGE_LIMIT:
    return ", met the length limit";
  case KS_MESSAGE_INTERRUPTED:
    return ", interrupted";
  case KS_MESSAGE_FAILED:
    return ", failed";
  default:
    return "";
  }
}

static void
print_attachments (KsMessage *message)
{
  GListModel *attachments = ks_message_get_attachments (message);

  for (guint i = 0; i < g_list_model_get_n_items (attachments); i++) {
    g_autoptr (KsAttachment) attachment = g_list_model_get_item (attachments, i);
    g_autofree char *name = cli_dup_printable (ks_attachment_get_name (attachment));
    g_autofree char *size = cli_format_bytes (ks_attachment_get_n_bytes (attachment));
    guint n_pages = ks_attachment_get_n_pages (attachment);

    printf ("    attached: %s (%s", name, size);
    if (n_pages > 0)
      printf (", %u page%s", n_pages, n_pages == 1 ? "" : "s");
    puts (")");
  }
}

/* turn: 0 = it is not on the active path. */
static void
print_message (KsMessage *message, gboolean all, guint turn)
{
  static const char *const speakers[] = {"System", "Question", "Answer"};
  g_autofree char *time = cli_format_time (ks_message_get_created_us (message));
  const char *text = ks_message_get_text (message), *problem = ks_message_get_error (message);

  printf ("\n[%s", speakers[ks_message_get_role (message)]);
  if (turn > 0 && ks_message_get_role (message) != KS_MESSAGE_SYSTEM)
    printf (" %u", turn);
  printf (", %s%s", time, get_note (message));
  if (all)
    printf ("; message %" G_GINT64_FORMAT " below %" G_GINT64_FORMAT "%s",
            ks_message_get_id (message), ks_message_get_parent_id (message),
            turn > 0 ? ", on the active path" : "");
  puts ("]");
  print_attachments (message);
  if (text != NULL && text[0] != '\0') {
    cli_print_text (text);
    if (!g_str_has_suffix (text, "\n"))
      putchar ('\n');
  }
  if (problem != NULL) {
    g_autofree char *printable = cli_dup_printable (problem);

    printf ("(%s)\n", printable);
  }
}

static cJSON *
make_attachments_json (KsMessage *message)
{
  GListModel *attachments = ks_message_get_attachments (message);
  cJSON *array = cJSON_CreateArray ();

  for (guint i = 0; i < g_list_model_get_n_items (attachments); i++) {
    g_autoptr (KsAttachment) attachment = g_list_model_get_item (attachments, i);
    cJSON *json = cJSON_CreateObject ();

    cJSON_AddStringToObject (json, "kind", kinds[ks_attachment_get_kind (attachment)]);
    cJSON_AddStringToObject (json, "name", ks_attachment_get_name (attachment));
    cJSON_AddStringToObject (json, "sha256", ks_attachment_get_hash (attachment));
    cJSON_AddNumberToObject (json, "bytes", (double)ks_attachment_get_n_bytes (attachment));
    cJSON_AddNumberToObject (json, "pages", ks_attachment_get_n_pages (attachment));
    cJSON_AddItemToArray (array, json);
  }
  return array;
}

static cJSON *
make_message_json (KsMessage *message, guint turn)
{
  g_autofree char *created = cli_format_time_iso (ks_message_get_created_us (message));
  const char *text = ks_message_get_text (message), *problem = ks_message_get_error (message);
  cJSON *json = cJSON_CreateObject ();

  cJSON_AddNumberToObject (json, "id", (double)ks_message_get_id (message));
  cJSON_AddNumberToObject (json, "parent", (double)ks_message_get_parent_id (message));
  cJSON_AddBoolToObject (json, "active", turn > 0);
  if (turn > 0 && ks_message_get_role (message) != KS_MESSAGE_SYSTEM)
    cJSON_AddNumberToObject (json, "turn", turn);
  cJSON_AddStringToObject (json, "role", roles[ks_message_get_role (message)]);
  cJSON_AddStringToObject (json, "state", states[ks_message_get_state (message)]);
  cJSON_AddStringToObject (json, "text", text != NULL ? text : "");
  cJSON_AddStringToObject (json, "created", created);
  cJSON_AddNumberToObject (json, "tokens", ks_message_get_n_tokens (message));
  if (problem != NULL)
    cJSON_AddStringToObject (json, "error", problem);
  cJSON_AddItemToObject (json, "attachments", make_attachments_json (message));
  return json;
}

/* The ids of path with the turn of each, from 1: a question with its answer. */
static GHashTable *
make_turns (GPtrArray *path)
{
  GHashTable *turns = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  gboolean answered = TRUE;
  guint turn = 0;

  for (guint i = 0; i < path->len; i++) {
    KsMessage *message = g_ptr_array_index (path, i);
    KsMessageRole role = ks_message_get_role (message);
    gint64 id = ks_message_get_id (message);

    turn += role == KS_MESSAGE_USER || (role == KS_MESSAGE_ASSISTANT && answered);
    if (role != KS_MESSAGE_SYSTEM)
      answered = role == KS_MESSAGE_ASSISTANT;
    g_hash_table_insert (turns, g_memdup2 (&id, sizeof id), GUINT_TO_POINTER (MAX (turn, 1)));
  }
  return turns;
}

static void
print_session (Request *request, KsSession *session, GPtrArray *messages, GHashTable *turns)
{
  cJSON *json = request->json ? cli_make_session_json (session) : NULL;
  cJSON *array = json != NULL ? cJSON_AddArrayToObject (json, "transcript") : NULL;

  if (json == NULL) {
    g_autofree char *title = cli_dup_title (session, G_MAXINT);
    g_autofree char *created = cli_format_time (ks_session_get_created_us (session));
    g_autofree char *n = cli_format_n (ks_session_get_n_messages (session), "message", "messages");

    printf ("%s\nsession %" G_GINT64_FORMAT ", begun %s, %s\n", title, ks_session_get_id (session),
            created, n);
  }
  for (guint i = 0; i < messages->len; i++) {
    KsMessage *message = g_ptr_array_index (messages, i);
    gint64 id = ks_message_get_id (message);
    guint turn = GPOINTER_TO_UINT (g_hash_table_lookup (turns, &id));

    if (json != NULL)
      cJSON_AddItemToArray (array, make_message_json (message, turn));
    else
      print_message (message, request->all, turn);
  }
  if (json != NULL)
    cli_print_json (json);
}

static gboolean
show (KsStore *store, gpointer data, GError **error)
{
  Request *request = data;
  g_autoptr (KsSession) session = ks_store_find_session (store, request->name, error);
  g_autoptr (GPtrArray) path = NULL, all = NULL;
  g_autoptr (GHashTable) turns = NULL;

  if (session == NULL)
    return FALSE;
  path = ks_store_list_messages (store, ks_session_get_id (session), error);
  if (path != NULL && request->all)
    all = ks_store_list_all_messages (store, ks_session_get_id (session), error);
  if (path == NULL || (request->all && all == NULL))
    return FALSE;
  turns = make_turns (path);
  print_session (request, session, all != NULL ? all : path, turns);
  return TRUE;
}

int
cli_sessions_show_main (char **args)
{
  g_autoptr (GOptionContext) context = g_option_context_new ("SESSION");
  g_auto (GStrv) rest = g_strdupv (args);
  Request request = {0};
  int code = CLI_OK;
  const GOptionEntry entries[] = {
      {"all", 0, 0, G_OPTION_ARG_NONE, &request.all,
       "every branch: answers that were made again, questions that were edited", NULL},
      {"json", 'j', 0, G_OPTION_ARG_NONE, &request.json, "print the result as JSON", NULL},
      {NULL, 0, 0, 0, NULL, NULL, NULL}};

  g_option_context_add_main_entries (context, entries, NULL);
  g_option_context_set_summary (context, "Prints the messages of a session, oldest first.");
  g_option_context_set_description (
      context, "SESSION is a number, a title, or the beginning of one title.\n\n"
               "Examples:\n  keepsake-cli sessions show 3\n"
               "  keepsake-cli sessions show --all --json \"Cable car\"\n\n"
               "Exit codes: 0 done, 1 failed or there is no such session, 2 wrong options, 4 the "
               "sessions are of a\nnewer Keepsake.");
  if (!cli_parse (context, &rest, &code))
    return code;
  if (g_strv_length (rest) != 2)
    return cli_usage ("%s takes one SESSION: see its --help", rest[0]);
  request.name = rest[1];
  return cli_run_on_store (FALSE, show, &request);
}
