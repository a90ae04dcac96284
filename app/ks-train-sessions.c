/* ks-train-sessions.c - see ks-train-sessions.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-train-sessions.h"

#include "app/ks-turn-source.h"

static void
take_turn (KsTrainChat *chat, const KsTurnSource *source, const KsTurnText *turn)
{
  KsTrainMessage *message = ks_train_chat_take (chat, KS_ROLE_USER, g_strdup (turn->message));

  for (guint i = 0; i < turn->pictures->len; i++)
    g_ptr_array_add (message->pictures, ks_picture_ref (g_ptr_array_index (turn->pictures, i)));
  if (source->answer_text != NULL && source->answer_text[0] != '\0')
    ks_train_chat_take (chat, KS_ROLE_ASSISTANT, g_strdup (source->answer_text));
}

static gboolean
has_answer (const KsTrainChat *chat)
{
  for (guint i = 0; i < chat->messages->len; i++)
    if (((const KsTrainMessage *)g_ptr_array_index (chat->messages, i))->role == KS_ROLE_ASSISTANT)
      return TRUE;
  return FALSE;
}

static gboolean
add_session (KsTrainData *data, KsStore *store, gint64 id, const KsEyes *eyes, guint *out_n,
             GError **error)
{
  g_autoptr (KsSessionSettings) settings = ks_store_get_settings (store, id, error);
  g_autoptr (GPtrArray) messages = NULL, sources = NULL;
  g_autoptr (GListStore) list = g_list_store_new (KS_TYPE_MESSAGE);
  g_autoptr (KsTrainChat) chat = ks_train_chat_new ();

  if (settings != NULL)
    messages = ks_store_list_messages (store, id, error);
  if (messages == NULL)
    return FALSE;
  g_list_store_splice (list, 0, 0, messages->pdata, messages->len);
  sources = ks_turn_source_list (G_LIST_MODEL (list), messages->len);
  if (settings->system_prompt != NULL)
    ks_train_chat_take (chat, KS_ROLE_SYSTEM, g_strdup (settings->system_prompt));
  for (guint i = 0; i < sources->len; i++) {
    const KsTurnSource *source = g_ptr_array_index (sources, i);
    g_autoptr (KsTurnText) turn = NULL;

    if (ks_turn_source_is_empty (source))
      continue;
    turn = ks_turn_source_make_text (source, ks_store_get_blobs (store), eyes);
    take_turn (chat, source, turn);
  }
  if (!has_answer (chat))
    return TRUE;
  ks_train_data_take_chat (data, g_steal_pointer (&chat));
  (*out_n)++;
  return TRUE;
}

gboolean
ks_train_sessions_add (KsTrainData *data, KsStore *store, const char *name, const KsEyes *eyes,
                       guint *out_n, GError **error)
{
  g_autoptr (KsSession) session = NULL;
  g_autoptr (GPtrArray) sessions = NULL;

  *out_n = 0;
  if (name != NULL) {
    session = ks_store_find_session (store, name, error);
    return session != NULL &&
           add_session (data, store, ks_session_get_id (session), eyes, out_n, error);
  }
  sessions = ks_store_list_sessions (store, 0, 0, error);
  for (guint i = 0; sessions != NULL && i < sessions->len; i++)
    if (!add_session (data, store, ks_session_get_id (g_ptr_array_index (sessions, i)), eyes, out_n,
                      error))
      return FALSE;
  return sessions != NULL;
}
