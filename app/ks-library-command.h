/* ks-library-command.h - library and chats for the command line, whose options stand in place of
 * the settings.  Apart from ks-library.h because it speaks of the engine, which the window never
 * sees. Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-conversation.h"
#include "app/ks-library.h"
#include "app/ks-session-service.h"

G_BEGIN_DECLS

/* options given: model, gate, memory and policy are those, whatever the settings say; a target that
 * is too small is an error ("model-error").  NULL = as ks_library_new. */
KsLibrary *ks_library_new_full (KsSettings *settings, const char *dir,
                                const KsEngineOptions *options);
/* The sessions themselves, for commands that wait. (transfer none) */
KsSessionService *ks_library_get_service (KsLibrary *self);

/* How its answers are asked for from now on, in front of settings and session; NULL ends that. */
void ks_chat_set_answer_options (KsChat *self, const KsAnswerOptions *options);
/* NULL when the model has read nothing of it; another one after reading again. (transfer none) */
KsConversation *ks_chat_get_conversation (KsChat *self);
/* Why the last answer is FAILED, with its code; NULL when it is not. */
const GError *ks_chat_get_failure (KsChat *self);

G_END_DECLS
