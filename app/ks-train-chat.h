/* ks-train-chat.h - a conversation to be trained on: messages, their pictures, and the words in
 * them that matter most.  A plain value.  Threads: a chat belongs to its holder. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-picture.h"
#include "engine/chat-template.h"

G_BEGIN_DECLS

/* Bytes begin .. end-1 of a text. */
typedef struct {
  gsize begin, end;
} KsTrainSpan;

typedef struct {
  ks_role role;
  char *text;          /* UTF-8 */
  GArray *values;      /* of KsTrainSpan, ascending: words that only memory can give; never NULL */
  GPtrArray *pictures; /* of KsPicture, in order of where they stand; never NULL */
} KsTrainMessage;

typedef struct {
  GPtrArray *messages; /* of KsTrainMessage */
} KsTrainChat;

KsTrainChat *ks_train_chat_new (void);
void ks_train_chat_free (KsTrainChat *chat); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsTrainChat, ks_train_chat_free)
/* Appends a message and returns it, borrowed. */
KsTrainMessage *ks_train_chat_take (KsTrainChat *chat, ks_role role, char *take_text);
/* Marks every place of value in the message's text. */
void ks_train_message_mark (KsTrainMessage *message, const char *value);

G_END_DECLS
