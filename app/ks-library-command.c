/* ks-library-command.c - see ks-library-command.h; what of it needs more is where that is. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-library-command.h"

#include "app/ks-chat-internal.h"

KsSessionService *
ks_library_get_service (KsLibrary *self)
{
  g_return_val_if_fail (KS_IS_LIBRARY (self), NULL);
  return self->service;
}

void
ks_chat_set_answer_options (KsChat *self, const KsAnswerOptions *options)
{
  g_return_if_fail (KS_IS_CHAT (self));
  ks_answer_options_free (self->answer_options);
  self->answer_options = options != NULL ? ks_answer_options_copy (options) : NULL;
}

KsConversation *
ks_chat_get_conversation (KsChat *self)
{
  g_return_val_if_fail (KS_IS_CHAT (self), NULL);
  return self->conversation;
}

const GError *
ks_chat_get_failure (KsChat *self)
{
  g_return_val_if_fail (KS_IS_CHAT (self), NULL);
  return self->failure;
}
