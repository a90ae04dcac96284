/* ks-train-chat.c - see ks-train-chat.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-train-chat.h"

#include <string.h>

static void
message_free (gpointer data)
{
  KsTrainMessage *message = data;

  g_free (message->text);
  g_array_unref (message->values);
  g_ptr_array_unref (message->pictures);
  g_free (message);
}

KsTrainChat *
ks_train_chat_new (void)
{
  KsTrainChat *chat = g_new0 (KsTrainChat, 1);

  chat->messages = g_ptr_array_new_with_free_func (message_free);
  return chat;
}

void
ks_train_chat_free (KsTrainChat *chat)
{
  if (chat == NULL)
    return;
  g_ptr_array_unref (chat->messages);
  g_free (chat);
}

KsTrainMessage *
ks_train_chat_take (KsTrainChat *chat, ks_role role, char *take_text)
{
  KsTrainMessage *message = g_new0 (KsTrainMessage, 1);

  message->role = role;
  message->text = take_text;
  message->values = g_array_new (FALSE, FALSE, sizeof (KsTrainSpan));
  message->pictures = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_picture_unref);
  g_ptr_array_add (chat->messages, message);
  return message;
}

void
ks_train_message_mark (KsTrainMessage *message, const char *value)
{
  gsize n = strlen (value);

  if (n == 0)
    return;
  for (const char *at = strstr (message->text, value); at != NULL; at = strstr (at + n, value)) {
    KsTrainSpan span = {(gsize)(at - message->text), (gsize)(at - message->text) + n};

    g_array_append_val (message->values, span);
  }
}
