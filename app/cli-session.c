/* cli-session.c - see cli-session.h.  A KsLibrary with one KsChat, its signals printed. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/cli-session.h"

#include "app/cli-media.h"
#include "app/cli-store.h"
#include "app/ks-error.h"
#include "app/ks-library-command.h"
#include "storage/ks-export.h"

#include <stdio.h>
#include <string.h>

struct CliSession {
  CliTalk *talk;
  KsLibrary *library;
  KsChat *chat;
  KsMessage *message; /* the answer that streams or came last */
  gsize n_shown;      /* bytes of its text that are printed */
};

/* --- what the chat tells --- */

static void
notice_cb (GObject *source, const char *text, gpointer user_data)
{
  CliSession *self = user_data;

  cli_talk_notice (self->talk, text);
}

static void
progress_cb (GObject *chat, GParamSpec *pspec, gpointer user_data)
{
  CliSession *self = user_data;
  KsChatState state = ks_chat_get_state (self->chat);
  guint n_done = ks_chat_get_n_done (self->chat), n_total = ks_chat_get_n_total (self->chat);

  if (n_done >= n_total || (state != KS_CHAT_REREADING && state != KS_CHAT_READING))
    cli_progress_clear (&self->talk->progress);
  else
    cli_progress_update (&self->talk->progress,
                         state == KS_CHAT_REREADING ? "Reading the session again" : "Reading",
                         "tokens", n_done, n_total);
}

static void
looking_cb (GObject *chat, GParamSpec *pspec, gpointer user_data)
{
  CliSession *self = user_data;
  double share = -1;
  const char *name = ks_chat_get_looking (self->chat, &share);

  cli_progress_look (&self->talk->progress, name, (guint)(MAX (share, 0) * 1000),
                     share >= 0 ? 1000 : 0);
}

static void
text_cb (KsMessage *message, GParamSpec *pspec, gpointer user_data)
{
  CliSession *self = user_data;
  const char *text = ks_message_get_text (message);
  gsize n = text != NULL ? strlen (text) : 0;

  if (n <= self->n_shown)
    return;
  cli_talk_print (self->talk, text + self->n_shown);
  self->n_shown = n;
}

static void
watch_message (CliSession *self, KsMessage *message, gsize n_shown)
{
  if (self->message != NULL)
    g_signal_handlers_disconnect_by_data (self->message, self);
  g_set_object (&self->message, message);
  self->n_shown = n_shown;
  if (message != NULL)
    g_signal_connect (message, "notify::text", G_CALLBACK (text_cb), self);
}

/* The last message of the path; NULL when there is none. (transfer full) */
static KsMessage *
get_last (CliSession *self)
{
  GListModel *messages = ks_chat_get_messages (self->chat);
  guint n = g_list_model_get_n_items (messages);

  return n > 0 ? g_list_model_get_item (messages, n - 1) : NULL;
}

static void
messages_cb (GListModel *messages, guint at, guint n_removed, guint n_added, gpointer user_data)
{
  CliSession *self = user_data;
  g_autoptr (KsMessage) last = get_last (self);

  if (self->talk->busy && last != NULL && last != self->message &&
      ks_message_get_role (last) == KS_MESSAGE_ASSISTANT)
    watch_message (self, last, 0);
}

static void
failed_cb (KsChat *chat, const GError *error, gpointer user_data)
{
  CliSession *self = user_data;

  if (self->talk->busy)
    cli_talk_end (self->talk, g_error_copy (error));
  else
    cli_print_error ("%s", error->message);
}

static GError *
make_error (CliSession *self, KsMessage *message)
{
  const GError *failure = ks_chat_get_failure (self->chat);
  const char *text = ks_message_get_error (message);

  switch (ks_message_get_state (message)) {
  case KS_MESSAGE_STOPPED:
    return g_error_new_literal (G_IO_ERROR, G_IO_ERROR_CANCELLED, "cancelled");
  case KS_MESSAGE_FAILED:
    return failure != NULL ? g_error_copy (failure)
                           : g_error_new_literal (KS_APP_ERROR, KS_APP_ERROR_FAILED,
                                                  text != NULL ? text : "the answer failed");
  default:
    return NULL;
  }
}

static void
answered_cb (KsChat *chat, KsMessage *message, gpointer user_data)
{
  CliSession *self = user_data;

  if (message == self->message)
    text_cb (message, NULL, self);
  if (self->talk->busy)
    cli_talk_end (self->talk, make_error (self, message));
}

/* --- opening --- */

typedef struct {
  const char *name;
  KsSession *session;
  KsSessionSettings *settings;
} Find;

static gboolean
find (KsStore *store, gpointer data, GError **error)
{
  Find *found = data;

  found->session = ks_store_find_session (store, found->name, error);
  if (found->session != NULL)
    found->settings = ks_store_get_settings (store, ks_session_get_id (found->session), error);
  return found->settings != NULL;
}

static gboolean
interrupt_cb (gpointer user_data)
{
  CliSession *self = user_data;

  self->talk->stopping = TRUE;
  return G_SOURCE_CONTINUE;
}

/* Until the sessions are open and the model is there or is not. */
static gboolean
wait_until_ready (CliSession *self, int *out_exit)
{
  guint interrupt = cli_add_interrupt (interrupt_cb, self);

  while (!self->talk->stopping && (!ks_library_is_opened (self->library) ||
                                   ks_library_get_model_state (self->library) == KS_MODEL_LOADING))
    g_main_context_iteration (NULL, TRUE);
  cli_remove_interrupt (interrupt);
  if (self->talk->stopping) {
    cli_print_error ("cancelled");
    *out_exit = CLI_CANCELLED;
  } else if (ks_library_get_storage_error (self->library) != NULL) {
    cli_print_error ("%s", ks_library_get_storage_error (self->library));
    *out_exit = CLI_FAILED;
  } else if (ks_library_get_model_failure (self->library) != NULL) {
    *out_exit = cli_fail (ks_library_get_model_failure (self->library));
  } else {
    return TRUE;
  }
  return FALSE;
}

static void
open_chat (CliSession *self, KsSession *session)
{
  GListModel *messages;

  self->chat = ks_library_open_chat (self->library, session);
  messages = ks_chat_get_messages (self->chat);
  g_signal_connect (messages, "items-changed", G_CALLBACK (messages_cb), self);
  g_signal_connect (self->chat, "notice", G_CALLBACK (notice_cb), self);
  g_signal_connect (self->chat, "failed", G_CALLBACK (failed_cb), self);
  g_signal_connect (self->chat, "answered", G_CALLBACK (answered_cb), self);
  g_signal_connect (self->chat, "notify::n-done", G_CALLBACK (progress_cb), self);
  g_signal_connect (self->chat, "notify::looking", G_CALLBACK (looking_cb), self);
  g_signal_connect (self->chat, "notify::state", G_CALLBACK (progress_cb), self);
  ks_chat_set_answer_options (self->chat, self->talk->answers);
  while (ks_chat_get_state (self->chat) == KS_CHAT_OPENING)
    g_main_context_iteration (NULL, TRUE);
}

/* A new session keeps what it was begun with; an old one takes another instruction only. */
static void
set_settings (CliSession *self, const CliOptions *options, gboolean is_new)
{
  g_autoptr (KsSessionSettings) settings =
      is_new ? cli_options_make_session (options)
             : ks_session_settings_copy (ks_chat_get_settings (self->chat));

  if (!is_new && options->system == NULL)
    return;
  if (options->system != NULL) {
    g_free (settings->system_prompt);
    settings->system_prompt = g_strdup (options->system);
  }
  ks_chat_set_settings (self->chat, settings);
}

static gboolean
open_library (CliSession *self, KsSession *session, const CliOptions *options, int *out_exit)
{
  g_autoptr (KsSettings) settings = ks_settings_new (NULL);

  self->library = ks_library_new_full (settings, NULL, self->talk->options);
  g_signal_connect (self->library, "notice", G_CALLBACK (notice_cb), self);
  if (!wait_until_ready (self, out_exit))
    return FALSE;
  open_chat (self, session);
  set_settings (self, options, session == NULL);
  return TRUE;
}

static gboolean
make_options (CliTalk *talk, CliOptions *options, const KsSessionSettings *settings,
              gboolean greedy, int *out_exit)
{
  g_autoptr (GError) error = NULL;

  if (settings != NULL)
    cli_options_take_session (options, settings);
  talk->answers = cli_options_make_answer (options, settings, greedy, &error);
  if (talk->answers != NULL)
    talk->options = cli_options_make_engine (options, &error);
  if (talk->options == NULL)
    *out_exit = cli_fail (error);
  else
    talk->answers->may_continue = TRUE;
  return talk->options != NULL;
}

CliSession *
cli_session_new (CliTalk *talk, CliOptions *options, gboolean greedy, int *out_exit)
{
  CliSession *self = g_new0 (CliSession, 1);
  Find found = {.name = options->session};
  gboolean done = TRUE;

  self->talk = talk;
  if (!g_str_equal (options->session, "new")) {
    *out_exit = cli_run_on_store (TRUE, find, &found);
    done = found.settings != NULL;
  }
  done = done && make_options (talk, options, found.settings, greedy, out_exit) &&
         open_library (self, found.session, options, out_exit);
  g_clear_object (&found.session);
  g_clear_pointer (&found.settings, ks_session_settings_free);
  if (done)
    return self;
  cli_session_free (self);
  return NULL;
}

/* --- the end --- */

static gboolean
leave_cb (gpointer user_data)
{
  CliSession *self = user_data;

  /* Heard once while it is being stored; what comes now is meant. */
  if (self->talk->stopping)
    cli_exit_interrupted ();
  self->talk->stopping = TRUE;
  return G_SOURCE_CONTINUE;
}

typedef struct {
  gboolean is_closed, is_stored;
} Closing;

static void
closed_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  Closing *closing = user_data;

  closing->is_stored = ks_library_close_finish (KS_LIBRARY (source), result);
  closing->is_closed = TRUE;
}

void
cli_session_free (CliSession *self)
{
  Closing closing = {.is_stored = TRUE};
  guint interrupt;

  if (self == NULL)
    return;
  self->talk->stopping = FALSE;
  interrupt = cli_add_interrupt (leave_cb, self);
  watch_message (self, NULL, 0);
  if (self->library != NULL) {
    ks_library_close_async (self->library, closed_cb, &closing);
    while (!closing.is_closed)
      g_main_context_iteration (NULL, TRUE);
    g_signal_handlers_disconnect_by_data (self->library, self);
  }
  if (self->chat != NULL) {
    g_signal_handlers_disconnect_by_data (ks_chat_get_messages (self->chat), self);
    g_signal_handlers_disconnect_by_data (self->chat, self);
  }
  cli_remove_interrupt (interrupt);
  self->talk->lost |= !closing.is_stored;
  g_clear_object (&self->chat);
  g_clear_object (&self->library);
  g_free (self);
}

KsConversation *
cli_session_get_conversation (CliSession *self)
{
  return self->chat != NULL ? ks_chat_get_conversation (self->chat) : NULL;
}

/* --- requests --- */

static gboolean
refuse (GError **error, const char *reason)
{
  const char *text = reason != NULL ? reason : "this cannot be done now";

  g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, text);
  return FALSE;
}

gboolean
cli_session_ask (CliSession *self, const char *text, GError **error)
{
  const char *reason = NULL;

  watch_message (self, NULL, 0);
  cli_talk_begin (self->talk);
  if (ks_chat_send (self->chat, text, &reason))
    return TRUE;
  self->talk->busy = FALSE;
  return refuse (error, reason);
}

gboolean
cli_session_continue (CliSession *self, GError **error)
{
  g_autoptr (KsMessage) last = get_last (self);
  const char *text = last != NULL ? ks_message_get_text (last) : NULL;

  cli_talk_begin (self->talk);
  watch_message (self, last, text != NULL ? strlen (text) : 0);
  if (ks_chat_continue (self->chat))
    return TRUE;
  self->talk->busy = FALSE;
  return refuse (error, "there is no answer that was cut: write a message, or /regenerate");
}

gboolean
cli_session_regenerate (CliSession *self, GError **error)
{
  watch_message (self, NULL, 0);
  cli_talk_begin (self->talk);
  if (ks_chat_regenerate (self->chat))
    return TRUE;
  self->talk->busy = FALSE;
  return refuse (error, "there is no answer to make again: write a message");
}

void
cli_session_stop (CliSession *self)
{
  ks_chat_stop (self->chat);
}

/* The message that a turn begins with. (transfer full) */
static KsMessage *
find_turn (CliSession *self, guint turn)
{
  GListModel *messages = ks_chat_get_messages (self->chat);

  for (guint i = 0; i < g_list_model_get_n_items (messages); i++) {
    g_autoptr (KsMessage) message = g_list_model_get_item (messages, i);

    if (ks_message_get_role (message) == KS_MESSAGE_USER && turn-- == 0)
      return g_steal_pointer (&message);
  }
  return NULL;
}

/* Borrowed from the message; NULL when it has no such file. */
static const char *
find_file (KsMessage *message, const char *name)
{
  GListModel *files = ks_message_get_attachments (message);

  for (guint i = 0; i < g_list_model_get_n_items (files); i++) {
    g_autoptr (KsAttachment) file = g_list_model_get_item (files, i);

    if (g_strcmp0 (ks_attachment_get_name (file), name) == 0)
      return ks_attachment_get_hash (file);
  }
  return NULL;
}

static void
pinned_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_set_object ((GAsyncResult **)user_data, result);
}

gboolean
cli_session_pin (CliSession *self, guint turn, const char *name, gboolean pinned, GError **error)
{
  g_autoptr (KsMessage) message = find_turn (self, turn);
  g_autoptr (GAsyncResult) result = NULL;
  const char *hash = message != NULL && name != NULL ? find_file (message, name) : NULL;

  if (message == NULL)
    return refuse (error, "the session has no such turn");
  if (name != NULL && hash == NULL)
    return refuse (error, "there is no file of that name in that turn");
  ks_chat_pin_async (self->chat, message, hash, pinned, pinned_cb, &result);
  while (result == NULL)
    g_main_context_iteration (NULL, TRUE);
  return ks_chat_pin_finish (self->chat, result, NULL, error);
}

gboolean
cli_session_can_see (CliSession *self)
{
  return ks_library_can_see (self->library);
}

/* --- attaching --- */

static gboolean
stop_loading_cb (gpointer user_data)
{
  gboolean *stopped = user_data;

  *stopped = TRUE;
  return G_SOURCE_CONTINUE;
}

/* Until it is loaded, or Ctrl-C. */
static gboolean
wait_for_attachment (CliSession *self, KsPendingAttachment *pending)
{
  gboolean stopped = FALSE;
  guint interrupt = cli_add_interrupt (stop_loading_cb, &stopped);

  cli_progress_init (&self->talk->progress);
  while (!stopped && ks_pending_attachment_get_state (pending) == KS_PENDING_LOADING) {
    double done = ks_pending_attachment_get_progress (pending);

    if (done >= 0)
      cli_progress_update (&self->talk->progress, "Reading the file", "%", (guint)(done * 100),
                           100);
    g_main_context_iteration (NULL, TRUE);
  }
  cli_progress_clear (&self->talk->progress);
  cli_remove_interrupt (interrupt);
  return !stopped;
}

static gboolean
unlock (CliSession *self, KsPendingAttachment *pending, gboolean *out_asked)
{
  gboolean was_wrong = ks_pending_attachment_get_error (pending) != NULL;
  g_autofree char *typed =
      cli_ask_password (ks_pending_attachment_get_name (pending), was_wrong, out_asked);

  if (typed != NULL)
    ks_chat_unlock_attachment (self->chat, pending, typed);
  return typed != NULL;
}

static void
tell_large (KsPendingAttachment *pending)
{
  gboolean can_shrink = FALSE;
  guint n_trained = ks_pending_attachment_get_n_trained (pending, &can_shrink);

  cli_tell_large (ks_pending_attachment_get_name (pending),
                  ks_pending_attachment_get_kind (pending) == KS_ATTACHMENT_VIDEO,
                  ks_pending_attachment_get_n_visual (pending), n_trained, can_shrink);
}

/* A picture, or pages without text, that this model cannot see, and nobody looks for words. */
static gboolean
lacks_words (CliSession *self, KsPendingAttachment *pending)
{
  g_autoptr (KsReading) reading = ks_pending_attachment_dup_reading (pending);
  gboolean found = ks_pending_attachment_get_kind (pending) == KS_ATTACHMENT_IMAGE;

  if (cli_session_can_see (self) || self->talk->options->ocr ||
      ks_settings_get_recognise_text (ks_library_get_settings (self->library)))
    return FALSE;
  for (guint i = 0; !found && i < ks_pending_attachment_get_n_pages (pending); i++)
    found = ks_reading_get_page (reading, i) == KS_PAGE_PICTURE;
  return found && !self->talk->options->has_page_mode;
}

static void
tell_ready (CliSession *self, KsPendingAttachment *pending)
{
  const char *name = ks_pending_attachment_get_name (pending);
  const char *warning = ks_pending_attachment_get_warning (pending);

  if (warning != NULL)
    cli_print_file_notice (name, warning);
  if (ks_pending_attachment_hides_pictures (pending))
    cli_talk_tell_mixed (self->talk, name);
  if (lacks_words (self, pending))
    cli_talk_tell_ocr (self->talk, name);
  if (ks_pending_attachment_is_seen (pending) && ks_pending_attachment_has_sound (pending))
    cli_tell_sound (name);
  tell_large (pending);
}

static void
set_refused (KsPendingAttachment *pending, gboolean asked, GError **error)
{
  const char *text = ks_pending_attachment_get_error (pending);
  const char *name = ks_pending_attachment_get_name (pending);

  if (asked && ks_pending_attachment_get_state (pending) == KS_PENDING_PASSWORD)
    cli_set_closed (error, name);
  else if (text == NULL)
    g_set_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED,
                 "%s is encrypted: give its password with --password", name);
  else if (ks_pending_attachment_get_kind (pending) != KS_ATTACHMENT_TEXT) /* not for these eyes */
    g_set_error_literal (error, KS_ENGINE_ERROR, KS_ERR_UNSUPPORTED, text);
  else
    g_set_error_literal (error, KS_APP_ERROR, KS_APP_ERROR_FAILED, text);
}

gboolean
cli_session_attach (CliSession *self, const char *path, GError **error)
{
  g_autoptr (GFile) file = g_file_new_for_commandline_arg (path);
  GListModel *list = ks_chat_get_attachments (self->chat);
  g_autoptr (KsPendingAttachment) pending = NULL;
  gboolean tried = FALSE, asked = FALSE, loaded;

  ks_chat_attach_file (self->chat, file);
  pending = g_list_model_get_item (list, g_list_model_get_n_items (list) - 1);
  loaded = wait_for_attachment (self, pending);
  while (loaded && ks_pending_attachment_get_state (pending) == KS_PENDING_PASSWORD) {
    if (!tried && self->talk->password != NULL)
      ks_chat_unlock_attachment (self->chat, pending, self->talk->password);
    else if (!unlock (self, pending, &asked))
      break;
    tried = TRUE;
    loaded = wait_for_attachment (self, pending);
  }
  if (ks_pending_attachment_get_state (pending) == KS_PENDING_READY) {
    tell_ready (self, pending);
    return TRUE;
  }
  if (!loaded)
    g_set_error_literal (error, G_IO_ERROR, G_IO_ERROR_CANCELLED, "cancelled");
  else
    set_refused (pending, asked, error);
  ks_chat_remove_attachment (self->chat, pending);
  return FALSE;
}

/* --- the session itself --- */

void
cli_session_add_json (CliSession *self, cJSON *json)
{
  KsSession *session = ks_chat_get_session (self->chat);

  if (session == NULL)
    return;
  cJSON_AddItemToObject (json, "session", cli_make_session_json (session));
  if (self->message != NULL)
    cJSON_AddNumberToObject (json, "message", (double)ks_message_get_id (self->message));
}

static gboolean
has_session (CliSession *self, GError **error)
{
  return ks_chat_get_session (self->chat) != NULL ||
         refuse (error, "the session begins with its first message: write one");
}

typedef struct {
  gint64 session;
  const char *title, *path;
  KsExportFormat format;
} Change;

static gpointer
rename_session (KsStore *store, gpointer data, GError **error)
{
  Change *change = data;

  return GINT_TO_POINTER (ks_store_rename_session (store, change->session, change->title, error));
}

gboolean
cli_session_rename (CliSession *self, const char *title, GError **error)
{
  KsSessionService *service = ks_library_get_service (self->library);
  g_autofree char *valid = g_utf8_make_valid (title, -1);
  Change change = {.title = valid};

  if (!has_session (self, error))
    return FALSE;
  change.session = ks_session_get_id (ks_chat_get_session (self->chat));
  if (ks_session_service_call (service, rename_session, &change, error) == NULL)
    return FALSE;
  ks_session_set_title (ks_chat_get_session (self->chat), valid);
  return TRUE;
}

static gpointer
export_session (KsStore *store, gpointer data, GError **error)
{
  Change *change = data;

  if (change->path == NULL)
    return ks_export_session_to_folder (store, change->session, change->format, ".", error);
  return ks_export_session_to_file (store, change->session, change->format, change->path, error)
             ? g_strdup (change->path)
             : NULL;
}

gboolean
cli_session_export (CliSession *self, const char *format, const char *path, GError **error)
{
  KsSessionService *service = ks_library_get_service (self->library);
  Change change = {.path = path};
  g_autofree char *written = NULL, *name = NULL, *printable = NULL;

  if (!ks_export_parse_format (format, &change.format))
    return refuse (error, "/export needs a format: md, json or html");
  if (!has_session (self, error))
    return FALSE;
  change.session = ks_session_get_id (ks_chat_get_session (self->chat));
  written = ks_session_service_call (service, export_session, &change, error);
  if (written == NULL)
    return FALSE;
  name = g_filename_display_name (written);
  printable = cli_dup_printable (name);
  fprintf (stderr, "Written: %s\n", printable);
  return TRUE;
}
