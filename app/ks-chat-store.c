/* ks-chat-store.c - what a chat does on the writer thread: a request's first and last words in the
 * order that storage/README.md asks for. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-chat-internal.h"

#include <string.h>

#define MAX_TITLE_CHARS 60

void
ks_begin_request_free (gpointer data)
{
  KsBeginRequest *request = data;

  g_free (request->title);
  g_clear_pointer (&request->settings, ks_session_settings_free);
  g_free (request->text);
  g_free (request->answer_text);
  g_clear_pointer (&request->attachments, g_ptr_array_unref);
  g_clear_pointer (&request->pins, g_ptr_array_unref);
  g_free (request);
}

void
ks_begun_free (gpointer data)
{
  KsBegun *begun = data;

  g_clear_object (&begun->session);
  g_clear_object (&begun->user);
  g_clear_object (&begun->answer);
  g_free (begun);
}

static gboolean
store_pins (KsStore *store, const GPtrArray *pins, KsMessage *message, GError **error)
{
  for (guint i = 0; pins != NULL && i < pins->len; i++) {
    const char *word = g_ptr_array_index (pins, i), *hash = word[0] != '\0' ? word : NULL;

    if (!ks_store_set_pinned (store, ks_message_get_id (message), hash, TRUE, error))
      return FALSE;
    ks_message_set_pinned (message, hash, TRUE);
  }
  return TRUE;
}

static gboolean
store_messages (KsStore *store, KsBeginRequest *request, gint64 session, KsBegun *begun,
                GError **error)
{
  gint64 parent = request->parent;

  if (request->answer != 0)
    return ks_store_update_message (store, request->answer, request->answer_text,
                                    KS_MESSAGE_STREAMING, request->n_tokens, NULL, error);
  if (request->text != NULL) {
    begun->user =
        ks_store_add_message (store, session, parent, KS_MESSAGE_USER, KS_MESSAGE_COMPLETE,
                              request->text, request->attachments, error);
    if (begun->user == NULL || !store_pins (store, request->pins, begun->user, error))
      return FALSE;
    parent = ks_message_get_id (begun->user);
  }
  begun->answer = ks_store_add_message (store, session, parent, KS_MESSAGE_ASSISTANT,
                                        KS_MESSAGE_STREAMING, "", NULL, error);
  return begun->answer != NULL;
}

gpointer
ks_chat_store_begin (KsStore *store, gpointer data, GError **error)
{
  KsBeginRequest *request = data;
  KsBegun *begun = g_new0 (KsBegun, 1);
  gint64 session = request->session;

  if (session == 0) {
    begun->session = ks_store_add_session (store, request->title, request->settings, error);
    session = begun->session != NULL ? ks_session_get_id (begun->session) : 0;
  }
  if (session != 0 && ks_store_lock_session (store, session, error)) {
    if (store_messages (store, request, session, begun, error))
      return begun;
    ks_store_unlock_session (store, session);
  }
  /* Nobody saw a session that could not take its first words. */
  if (begun->session != NULL)
    (void)ks_store_delete_session (store, session, NULL);
  ks_begun_free (begun);
  return NULL;
}

void
ks_update_request_free (gpointer data)
{
  KsUpdateRequest *request = data;

  g_free (request->text);
  g_free (request->problem);
  g_free (request->user_text);
  g_free (request);
}

gpointer
ks_chat_store_update (KsStore *store, gpointer data, GError **error)
{
  KsUpdateRequest *request = data;

  if (request->user != 0 &&
      !ks_store_update_message (store, request->user, request->user_text, KS_MESSAGE_COMPLETE,
                                request->n_user_tokens, NULL, error))
    return NULL;
  if (!ks_store_update_message (store, request->message, request->text, request->state,
                                request->n_tokens, request->problem, error))
    return NULL;
  if (request->unlock)
    ks_store_unlock_session (store, request->session);
  return GINT_TO_POINTER (TRUE);
}

void
ks_opened_free (gpointer data)
{
  KsOpened *opened = data;

  g_clear_pointer (&opened->messages, g_ptr_array_unref);
  g_clear_pointer (&opened->settings, ks_session_settings_free);
  g_free (opened->lock_reason);
  g_free (opened);
}

static gboolean
has_streaming (GPtrArray *messages)
{
  for (guint i = 0; i < messages->len; i++)
    if (ks_message_get_state (g_ptr_array_index (messages, i)) == KS_MESSAGE_STREAMING)
      return TRUE;
  return FALSE;
}

gpointer
ks_chat_store_open (KsStore *store, gpointer data, GError **error)
{
  gint64 id = *(gint64 *)data;
  KsOpened *opened = g_new0 (KsOpened, 1);

  opened->messages = ks_store_list_messages (store, id, error);
  if (opened->messages != NULL)
    opened->settings = ks_store_get_settings (store, id, error);
  if (opened->settings != NULL) {
    g_autoptr (GError) locked = NULL;

    if (!ks_store_check_lock (store, id, &locked))
      opened->lock_reason = g_strdup (locked->message);
    else if (has_streaming (opened->messages) && ks_store_recover (store, NULL)) {
      /* Nobody writes it: its program was killed, and what is there can be continued. */
      g_ptr_array_unref (opened->messages);
      opened->messages = ks_store_list_messages (store, id, error);
    }
    if (opened->messages != NULL)
      return opened;
  }
  ks_opened_free (opened);
  return NULL;
}

/* Where the text is cut so that n_char characters stay: before the last word that does not fit; a
 * text without blanks is cut anywhere. */
static const char *
find_cut (const char *text, glong n_char)
{
  const char *end = g_utf8_offset_to_pointer (text, n_char);
  const char *blank = end;

  while (blank > text && *blank != ' ')
    blank--;
  return blank > g_utf8_offset_to_pointer (text, n_char / 2) ? blank : end;
}

char *
ks_chat_make_title (const char *text, GPtrArray *attachments)
{
  g_autofree char *valid = g_utf8_make_valid (text != NULL ? text : "", -1);
  GString *line = g_string_new (NULL);
  g_autofree char *whole = NULL;

  for (const char *p = valid; *p != '\0'; p = g_utf8_next_char (p)) {
    gunichar c = g_utf8_get_char (p);

    if (g_unichar_isprint (c) && !g_unichar_isspace (c))
      g_string_append_unichar (line, c);
    else if (line->len > 0 && line->str[line->len - 1] != ' ')
      g_string_append_c (line, ' ');
  }
  whole = g_strstrip (g_string_free (line, FALSE));
  if (whole[0] == '\0' && attachments != NULL && attachments->len > 0 && text != NULL)
    return ks_chat_make_title (ks_attachment_get_name (g_ptr_array_index (attachments, 0)), NULL);
  if (g_utf8_strlen (whole, -1) > MAX_TITLE_CHARS) {
    const char *cut = find_cut (whole, MAX_TITLE_CHARS - 1);

    return g_strdup_printf ("%.*s…", (int)(cut - whole), whole);
  }
  return g_steal_pointer (&whole);
}
