/* fuzz-train-jsonl.c - any bytes as a line of a file of conversations: a conversation, a text, or
 * one sentence that says what is wrong.  What comes out is text, and its pictures stand in it. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-train-jsonl.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void
require(gboolean promise)
{
  if (!promise)
    abort();
}

static void
check_message(const KsTrainMessage *message)
{
  const gsize n = strlen(message->text);
  gsize last = 0;

  require(g_utf8_validate(message->text, -1, NULL));
  require(message->role == KS_ROLE_SYSTEM || message->role == KS_ROLE_USER ||
          message->role == KS_ROLE_ASSISTANT);
  require(message->pictures->len == 0 || message->role == KS_ROLE_USER);
  for (guint i = 0; i < message->pictures->len; i++) {
    const KsPicture *picture = g_ptr_array_index(message->pictures, i);

    require(picture->at >= last && picture->at <= n && picture->path[0] != '\0');
    require(g_utf8_validate(message->text + picture->at, -1, NULL));
    last = picture->at;
  }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
  g_autofree char *text = NULL;
  g_autoptr(GError) error = NULL;
  g_autoptr(KsTrainChat) chat = NULL;

  g_log_set_always_fatal(G_LOG_FATAL_MASK | G_LOG_LEVEL_CRITICAL | G_LOG_LEVEL_WARNING);
  chat = ks_train_jsonl_parse((const char *)data, n, "folder", &text, &error);
  require((chat != NULL) + (text != NULL) + (error != NULL) == 1);
  require(text == NULL || g_utf8_validate(text, -1, NULL));
  require(error == NULL || (error->message[0] != '\0' && strchr(error->message, '\n') == NULL));
  require(chat == NULL || chat->messages->len > 0);
  for (guint i = 0; chat != NULL && i < chat->messages->len; i++)
    check_message(g_ptr_array_index(chat->messages, i));
  return 0;
}
