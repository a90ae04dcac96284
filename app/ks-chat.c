/* ks-chat.c - see ks-chat.h.  The object: what is shown, and which requests are allowed now.
 * How a request runs is in ks-chat-run.c. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-chat-internal.h"

#include <string.h>

#define LOOK_AGAIN_MS 3000

G_DEFINE_FINAL_TYPE (KsChat, ks_chat, G_TYPE_OBJECT)

enum {
  PROP_0,
  PROP_STATE,
  PROP_N_DONE,
  PROP_N_TOTAL,
  PROP_LOOKING,
  PROP_SESSION,
  PROP_READ_ONLY_REASON,
  N_PROPS
};
static GParamSpec *properties[N_PROPS];

enum { SIGNAL_NOTICE, SIGNAL_FAILED, SIGNAL_ANSWERED, N_SIGNALS };
static guint signals[N_SIGNALS];

static void
ks_chat_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  KsChat *self = KS_CHAT (object);

  switch (id) {
  case PROP_STATE:
    g_value_set_int (value, (int)self->state);
    break;
  case PROP_N_DONE:
    g_value_set_uint (value, self->n_done);
    break;
  case PROP_N_TOTAL:
    g_value_set_uint (value, self->n_total);
    break;
  case PROP_LOOKING:
    g_value_set_string (value, self->looking);
    break;
  case PROP_SESSION:
    g_value_set_object (value, self->session);
    break;
  case PROP_READ_ONLY_REASON:
    g_value_set_string (value, self->read_only_reason);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
}

static void
ks_chat_dispose (GObject *object)
{
  KsChat *self = KS_CHAT (object);

  if (self->attachments != NULL)
    ks_chat_cancel_attachments (self);
  if (self->library != NULL)
    g_hash_table_remove (self->library->chats, self);
  g_clear_handle_id (&self->piece_source, g_source_remove);
  g_clear_handle_id (&self->store_source, g_source_remove);
  g_clear_handle_id (&self->lock_source, g_source_remove);
  g_clear_object (&self->conversation);
  g_clear_object (&self->attachments);
  G_OBJECT_CLASS (ks_chat_parent_class)->dispose (object);
}

static void
ks_chat_finalize (GObject *object)
{
  KsChat *self = KS_CHAT (object);

  g_clear_object (&self->session);
  g_clear_object (&self->messages);
  g_clear_pointer (&self->settings, ks_session_settings_free);
  g_array_unref (self->read);
  g_string_free (self->piece, TRUE);
  g_free (self->policy);
  g_free (self->system);
  g_free (self->read_only_reason);
  g_free (self->looking);
  ks_answer_options_free (self->answer_options);
  g_clear_error (&self->failure);
  g_clear_object (&self->library);
  G_OBJECT_CLASS (ks_chat_parent_class)->finalize (object);
}

static void
ks_chat_class_init (KsChatClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  const GParamFlags read = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS;
  GType type = G_TYPE_FROM_CLASS (klass);

  object_class->get_property = ks_chat_get_property;
  object_class->dispose = ks_chat_dispose;
  object_class->finalize = ks_chat_finalize;
  properties[PROP_STATE] =
      g_param_spec_int ("state", NULL, NULL, 0, KS_CHAT_STOPPING, KS_CHAT_IDLE, read);
  properties[PROP_N_DONE] = g_param_spec_uint ("n-done", NULL, NULL, 0, G_MAXUINT, 0, read);
  properties[PROP_N_TOTAL] = g_param_spec_uint ("n-total", NULL, NULL, 0, G_MAXUINT, 0, read);
  properties[PROP_LOOKING] = g_param_spec_string ("looking", NULL, NULL, NULL, read);
  properties[PROP_SESSION] = g_param_spec_object ("session", NULL, NULL, KS_TYPE_SESSION, read);
  properties[PROP_READ_ONLY_REASON] =
      g_param_spec_string ("read-only-reason", NULL, NULL, NULL, read);
  g_object_class_install_properties (object_class, N_PROPS, properties);
  signals[SIGNAL_NOTICE] = g_signal_new ("notice", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                         G_TYPE_NONE, 1, G_TYPE_STRING);
  signals[SIGNAL_FAILED] = g_signal_new ("failed", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                         G_TYPE_NONE, 1, G_TYPE_ERROR);
  signals[SIGNAL_ANSWERED] = g_signal_new ("answered", type, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                           G_TYPE_NONE, 1, KS_TYPE_MESSAGE);
}

static void
ks_chat_init (KsChat *self)
{
  self->messages = g_list_store_new (KS_TYPE_MESSAGE);
  self->attachments = g_list_store_new (KS_TYPE_PENDING_ATTACHMENT);
  self->settings = ks_session_settings_new ();
  self->read = g_array_new (FALSE, TRUE, sizeof (KsTurnIds));
  self->piece = g_string_new (NULL);
}

KsChat *
ks_chat_new (KsLibrary *library, KsSession *session)
{
  KsChat *self = g_object_new (KS_TYPE_CHAT, NULL);

  self->library = g_object_ref (library);
  g_hash_table_add (library->chats, self);
  self->session = session != NULL ? g_object_ref (session) : NULL;
  self->read_only_reason = g_strdup (ks_library_get_storage_error (library));
  if (session != NULL) {
    ks_chat_set_state (self, KS_CHAT_OPENING);
    ks_chat_reload (self);
  }
  return self;
}

/* --- what is shown --- */

void
ks_chat_set_state (KsChat *self, KsChatState state)
{
  if (self->state == state)
    return;
  self->state = state;
  g_object_notify_by_pspec (G_OBJECT (self), properties[PROP_STATE]);
}

void
ks_chat_set_progress (KsChat *self, guint n_done, guint n_total)
{
  if (self->n_total != n_total) {
    self->n_total = n_total;
    g_object_notify_by_pspec (G_OBJECT (self), properties[PROP_N_TOTAL]);
  }
  if (self->n_done != n_done) {
    self->n_done = n_done;
    g_object_notify_by_pspec (G_OBJECT (self), properties[PROP_N_DONE]);
  }
}

void
ks_chat_set_looking (KsChat *self, const char *name, guint n_done, guint n_total)
{
  if (name == NULL && self->looking == NULL)
    return;
  g_free (self->looking);
  self->looking = g_strdup (name);
  self->look_share = n_total > 0 ? (double)n_done / n_total : -1;
  g_object_notify_by_pspec (G_OBJECT (self), properties[PROP_LOOKING]);
}

void
ks_chat_set_session (KsChat *self, KsSession *session)
{
  g_set_object (&self->session, ks_library_adopt_session (self->library, session));
  g_object_notify_by_pspec (G_OBJECT (self), properties[PROP_SESSION]);
}

void
ks_chat_set_read_only_reason (KsChat *self, const char *reason)
{
  if (g_strcmp0 (self->read_only_reason, reason) == 0)
    return;
  g_free (self->read_only_reason);
  self->read_only_reason = g_strdup (reason);
  g_object_notify_by_pspec (G_OBJECT (self), properties[PROP_READ_ONLY_REASON]);
}

void
ks_chat_emit_notice (KsChat *self, const char *text)
{
  g_signal_emit (self, signals[SIGNAL_NOTICE], 0, text);
}

void
ks_chat_emit_failed (KsChat *self, const GError *error)
{
  g_signal_emit (self, signals[SIGNAL_FAILED], 0, error);
}

void
ks_chat_emit_answered (KsChat *self, KsMessage *message)
{
  g_signal_emit (self, signals[SIGNAL_ANSWERED], 0, message);
}

/* Messages that are shown already stay the same objects; their branch numbers may be new. */
static void
show_path (KsChat *self, GPtrArray *messages)
{
  guint n = g_list_model_get_n_items (G_LIST_MODEL (self->messages)), same = 0;

  for (; same < MIN (n, messages->len); same++) {
    g_autoptr (KsMessage) old = g_list_model_get_item (G_LIST_MODEL (self->messages), same);
    KsMessage *new = g_ptr_array_index (messages, same);

    if (ks_message_get_id (old) != ks_message_get_id (new))
      break;
    ks_message_set_branch (old, ks_message_get_sibling (new), ks_message_get_n_siblings (new));
    /* Another process may have gone on writing it. */
    ks_message_set_text (old, ks_message_get_text (new));
    ks_message_set_error (old, ks_message_get_error (new));
    ks_message_set_n_tokens (old, ks_message_get_n_tokens (new));
    ks_message_set_state (old, ks_message_get_state (new));
  }
  if (same < n || same < messages->len)
    g_list_store_splice (self->messages, same, n - same, messages->pdata + same,
                         messages->len - same);
}

static gboolean
look_again_cb (gpointer user_data)
{
  KsChat *self = user_data;

  self->lock_source = 0;
  ks_chat_reload (self);
  return G_SOURCE_REMOVE;
}

/* While another program answers in this session it can be read here, and what comes is shown. */
static void
watch_lock (KsChat *self, const char *reason)
{
  if (reason == NULL && self->is_locked && !self->library->closing)
    ks_chat_set_read_only_reason (self, ks_library_get_storage_error (self->library));
  if (reason != NULL)
    ks_chat_set_read_only_reason (self, reason);
  self->is_locked = reason != NULL;
  g_clear_handle_id (&self->lock_source, g_source_remove);
  if (self->is_locked && !self->library->closing)
    self->lock_source = g_timeout_add (LOOK_AGAIN_MS, look_again_cb, self);
}

static void
opened_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (KsChat) self = user_data;
  g_autoptr (GError) error = NULL;
  KsOpened *opened = ks_session_service_call_finish (self->library->service, result, &error);

  if (opened != NULL && !ks_chat_has_run (self)) {
    show_path (self, opened->messages);
    ks_session_settings_free (self->settings);
    self->settings = g_steal_pointer (&opened->settings);
    watch_lock (self, opened->lock_reason);
  }
  if (self->state == KS_CHAT_OPENING)
    ks_chat_set_state (self, KS_CHAT_IDLE);
  if (error != NULL) {
    ks_chat_set_read_only_reason (self, error->message);
    ks_chat_emit_failed (self, error);
  }
  if (opened != NULL)
    ks_opened_free (opened);
}

void
ks_chat_reload (KsChat *self)
{
  gint64 *id = g_new (gint64, 1);

  *id = ks_session_get_id (self->session);
  ks_session_service_call_async (self->library->service, ks_chat_store_open, id, g_free,
                                 ks_opened_free, NULL, opened_cb, g_object_ref (self));
}

void
ks_chat_reopen (KsChat *self)
{
  if (self->state != KS_CHAT_IDLE || self->session == NULL || self->library->closing)
    return;
  ks_chat_set_state (self, KS_CHAT_OPENING);
  ks_chat_reload (self);
}

KsChatState
ks_chat_get_state (KsChat *self)
{
  g_return_val_if_fail (KS_IS_CHAT (self), KS_CHAT_IDLE);
  return self->state;
}

gboolean
ks_chat_is_busy (KsChat *self)
{
  g_return_val_if_fail (KS_IS_CHAT (self), FALSE);
  return self->state != KS_CHAT_IDLE;
}

KsSession *
ks_chat_get_session (KsChat *self)
{
  g_return_val_if_fail (KS_IS_CHAT (self), NULL);
  return self->session;
}

const char *
ks_chat_get_read_only_reason (KsChat *self)
{
  g_return_val_if_fail (KS_IS_CHAT (self), NULL);
  return self->read_only_reason;
}

guint
ks_chat_get_n_done (KsChat *self)
{
  g_return_val_if_fail (KS_IS_CHAT (self), 0);
  return self->n_done;
}

guint
ks_chat_get_n_total (KsChat *self)
{
  g_return_val_if_fail (KS_IS_CHAT (self), 0);
  return self->n_total;
}

const char *
ks_chat_get_looking (KsChat *self, double *out_share)
{
  g_return_val_if_fail (KS_IS_CHAT (self), NULL);
  if (out_share != NULL)
    *out_share = self->look_share;
  return self->looking;
}

GListModel *
ks_chat_get_messages (KsChat *self)
{
  g_return_val_if_fail (KS_IS_CHAT (self), NULL);
  return G_LIST_MODEL (self->messages);
}

GListModel *
ks_chat_get_attachments (KsChat *self)
{
  g_return_val_if_fail (KS_IS_CHAT (self), NULL);
  return G_LIST_MODEL (self->attachments);
}

/* --- requests --- */

/* Why no request can begin now; NULL when one can. */
static const char *
check_idle (KsChat *self)
{
  if (self->library->closing)
    return "The program is ending.";
  if (self->read_only_reason != NULL)
    return self->read_only_reason;
  if (self->state == KS_CHAT_OPENING)
    return "The session is being opened.";
  if (self->state != KS_CHAT_IDLE)
    return "An answer is being written: stop it first.";
  if (ks_library_has_no_model (self->library, self))
    return self->library->model_failure->message;
  if (self->library->model_state == KS_MODEL_NONE)
    return "There is no model: choose one first.";
  return NULL;
}

/* Message i of the path from the end; NULL when there is none. (transfer none) */
static KsMessage *
peek_message (KsChat *self, guint from_end)
{
  guint n = g_list_model_get_n_items (G_LIST_MODEL (self->messages));
  g_autoptr (KsMessage) message = NULL;

  if (from_end >= n)
    return NULL;
  message = g_list_model_get_item (G_LIST_MODEL (self->messages), n - 1 - from_end);
  return message; /* the list keeps it */
}

static gboolean
has_role (KsMessage *message, KsMessageRole role)
{
  return message != NULL && ks_message_get_role (message) == role;
}

static gboolean
is_blank (const char *text)
{
  for (const char *p = text; p != NULL && *p != '\0'; p = g_utf8_next_char (p))
    if (!g_unichar_isspace (g_utf8_get_char (p)))
      return FALSE;
  return TRUE;
}

gboolean
ks_chat_send (KsChat *self, const char *text, const char **out_reason)
{
  g_autoptr (GPtrArray) attachments = g_ptr_array_new_with_free_func (g_object_unref);
  g_autofree char *valid = NULL;
  const char *reason;
  GPtrArray *taken;
  KsMessage *last;

  g_return_val_if_fail (KS_IS_CHAT (self), FALSE);
  valid = g_utf8_make_valid (text != NULL ? text : "", -1);
  reason = check_idle (self);
  if (reason == NULL)
    reason = ks_chat_check_attachments (self);
  if (reason == NULL && is_blank (valid) && !ks_chat_has_ready_attachment (self))
    reason = "There is nothing to send: write a message or attach a file.";
  if (out_reason != NULL)
    *out_reason = reason;
  if (reason != NULL)
    return FALSE;
  taken = ks_chat_take_attachments (self);
  for (guint i = 0; taken != NULL && i < taken->len; i++) {
    KsPendingAttachment *pending = g_ptr_array_index (taken, i);

    if (ks_pending_attachment_get_state (pending) == KS_PENDING_READY)
      g_ptr_array_add (attachments, g_object_ref (ks_pending_attachment_get_attachment (pending)));
  }
  last = peek_message (self, 0);
  ks_chat_start_run (self, KS_RUN_SEND, last != NULL ? ks_message_get_id (last) : 0, NULL, NULL,
                     valid, attachments);
  self->run.pending = taken;
  return TRUE;
}

gboolean
ks_chat_regenerate (KsChat *self)
{
  KsMessage *answer, *user;

  g_return_val_if_fail (KS_IS_CHAT (self), FALSE);
  answer = peek_message (self, 0);
  if (check_idle (self) != NULL || answer == NULL)
    return FALSE;
  /* A question whose answer could not even be stored is answered now. */
  user = has_role (answer, KS_MESSAGE_USER) ? answer : peek_message (self, 1);
  if (!has_role (user, KS_MESSAGE_USER))
    return FALSE;
  ks_chat_start_run (self, KS_RUN_REGENERATE, ks_message_get_id (user), user, NULL, NULL, NULL);
  return TRUE;
}

gboolean
ks_chat_continue (KsChat *self)
{
  KsMessage *answer, *user;
  KsMessageState state;

  g_return_val_if_fail (KS_IS_CHAT (self), FALSE);
  answer = peek_message (self, 0);
  if (check_idle (self) != NULL || !has_role (answer, KS_MESSAGE_ASSISTANT))
    return FALSE;
  state = ks_message_get_state (answer);
  if (state != KS_MESSAGE_STOPPED && state != KS_MESSAGE_LIMIT && state != KS_MESSAGE_INTERRUPTED)
    return FALSE;
  user = peek_message (self, 1);
  ks_chat_start_run (self, KS_RUN_CONTINUE, 0, has_role (user, KS_MESSAGE_USER) ? user : NULL,
                     answer, NULL, NULL);
  return TRUE;
}

gboolean
ks_chat_edit (KsChat *self, KsMessage *message, const char *text)
{
  g_autoptr (GPtrArray) attachments = NULL;
  g_autofree char *valid = NULL;
  GListModel *list;

  g_return_val_if_fail (KS_IS_CHAT (self) && KS_IS_MESSAGE (message), FALSE);
  if (check_idle (self) != NULL || !has_role (message, KS_MESSAGE_USER) ||
      !g_list_store_find (self->messages, message, NULL))
    return FALSE;
  list = ks_message_get_attachments (message);
  valid = g_utf8_make_valid (text != NULL ? text : "", -1);
  if (is_blank (valid) && g_list_model_get_n_items (list) == 0)
    return FALSE;
  attachments = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint i = 0; i < g_list_model_get_n_items (list); i++)
    g_ptr_array_add (attachments, g_list_model_get_item (list, i));
  self->run.edited = g_object_ref (message);
  ks_chat_start_run (self, KS_RUN_SEND, ks_message_get_parent_id (message), NULL, NULL, valid,
                     attachments);
  return TRUE;
}

/* --- branches --- */

typedef struct {
  gint64 session, message;
  guint sibling;
} Selection;

/* Writer thread. */
static gpointer
store_selection (KsStore *store, gpointer data, GError **error)
{
  Selection *selection = data;

  if (!ks_store_select_branch (store, selection->message, selection->sibling, error))
    return NULL;
  return ks_chat_store_open (store, &selection->session, error);
}

gboolean
ks_chat_select_branch (KsChat *self, KsMessage *message, guint sibling)
{
  Selection *selection;

  g_return_val_if_fail (KS_IS_CHAT (self) && KS_IS_MESSAGE (message), FALSE);
  if (self->state != KS_CHAT_IDLE || self->read_only_reason != NULL || self->session == NULL ||
      sibling >= ks_message_get_n_siblings (message))
    return FALSE;
  selection = g_new0 (Selection, 1);
  selection->session = ks_session_get_id (self->session);
  selection->message = ks_message_get_id (message);
  selection->sibling = sibling;
  ks_chat_set_state (self, KS_CHAT_OPENING);
  ks_session_service_call_async (self->library->service, store_selection, selection, g_free,
                                 ks_opened_free, NULL, opened_cb, g_object_ref (self));
  return TRUE;
}

/* --- settings and memory --- */

const KsSessionSettings *
ks_chat_get_settings (KsChat *self)
{
  g_return_val_if_fail (KS_IS_CHAT (self), NULL);
  return self->settings;
}

typedef struct {
  gint64 session;
  KsSessionSettings *settings;
} SettingsRequest;

static void
free_settings_request (gpointer data)
{
  SettingsRequest *request = data;

  ks_session_settings_free (request->settings);
  g_free (request);
}

/* Writer thread. */
static gpointer
store_settings (KsStore *store, gpointer data, GError **error)
{
  SettingsRequest *request = data;

  return GINT_TO_POINTER (
      ks_store_set_settings (store, request->session, request->settings, error));
}

static void
stored_settings_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (KsChat) self = user_data;
  g_autoptr (GError) error = NULL;

  (void)ks_session_service_call_finish (self->library->service, result, &error);
  ks_library_end_write (self->library);
  if (error != NULL)
    ks_chat_emit_notice (self, error->message);
}

void
ks_chat_set_settings (KsChat *self, const KsSessionSettings *settings)
{
  KsSessionSettings *copy;
  SettingsRequest *request;

  g_return_if_fail (KS_IS_CHAT (self) && settings != NULL);
  copy = ks_session_settings_copy (settings);
  ks_session_settings_free (self->settings);
  self->settings = copy;
  if (self->session == NULL || self->read_only_reason != NULL)
    return;
  request = g_new0 (SettingsRequest, 1);
  request->session = ks_session_get_id (self->session);
  request->settings = ks_session_settings_copy (copy);
  ks_library_begin_write (self->library);
  ks_session_service_call_async (self->library->service, store_settings, request,
                                 free_settings_request, NULL, NULL, stored_settings_cb,
                                 g_object_ref (self));
}

static gboolean
is_full (const char *policy)
{
  return g_strcmp0 (policy, ks_policy_get_name (KS_POLICY_FULL)) == 0;
}

gboolean
ks_chat_keeps_everything (KsChat *self, gboolean *out_can_change)
{
  g_autofree char *common = NULL;

  g_return_val_if_fail (KS_IS_CHAT (self), FALSE);
  common = ks_settings_dup_policy (self->library->settings);
  if (out_can_change != NULL)
    *out_can_change = !is_full (common) && self->read_only_reason == NULL;
  return is_full (self->settings->policy != NULL ? self->settings->policy : common);
}

void
ks_chat_set_keep_everything (KsChat *self, gboolean keep)
{
  g_autoptr (KsSessionSettings) settings = NULL;

  g_return_if_fail (KS_IS_CHAT (self));
  if (keep == ks_chat_keeps_everything (self, NULL))
    return;
  settings = ks_session_settings_copy (self->settings);
  g_free (settings->policy);
  settings->policy = keep ? g_strdup (ks_policy_get_name (KS_POLICY_FULL)) : NULL;
  ks_chat_set_settings (self, settings);
  if (keep)
    ks_chat_keep_from_now (self);
}

KsMemoryView *
ks_chat_dup_memory (KsChat *self)
{
  g_autoptr (KsMemoryStats) stats = NULL;

  g_return_val_if_fail (KS_IS_CHAT (self), NULL);
  if (self->conversation == NULL)
    return NULL;
  stats = ks_conversation_dup_stats (self->conversation);
  if (stats == NULL)
    return NULL;
  return ks_memory_stats_make_view (stats, self->library->target_bytes);
}

int
ks_chat_get_turn (KsChat *self, KsMessage *message)
{
  gint64 id;

  g_return_val_if_fail (KS_IS_CHAT (self) && KS_IS_MESSAGE (message), -1);
  id = ks_message_get_id (message);
  if (self->conversation == NULL)
    return -1;
  for (guint i = 0; i < self->read->len; i++) {
    const KsTurnIds *ids = &g_array_index (self->read, KsTurnIds, i);

    if (ids->user == id || ids->answer == id)
      return (int)i;
  }
  /* The one that is being read or answered. */
  if (self->run.granted && self->in_step && self->run.kind != KS_RUN_CONTINUE &&
      (message == self->run.user || message == self->run.answer))
    return (int)self->read->len;
  return -1;
}
