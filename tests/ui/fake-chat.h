/* fake-chat.h - the application behind the window, played by the test: KsChat, KsPendingAttachment
 * and KsLibrary of app/ with their states set by hand and their calls written down.
 * Takes the place of app/'s own when it is linked first. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-library.h"

G_BEGIN_DECLS

KsLibrary *fake_library_new (void);
void fake_library_set_model (KsLibrary *self, KsModelState state, const char *error, gboolean sees);
/* Tokens that memory keeps. */
void fake_library_set_n_kept (KsLibrary *self, guint n_kept);

/* What ks_library_render_async was asked last, and its answer by hand. */
guint fake_library_get_n_render (KsLibrary *self);
guint fake_library_get_page (KsLibrary *self);
guint fake_library_get_side (KsLibrary *self);
const char *fake_library_get_password (KsLibrary *self);
gboolean fake_library_is_render_cancelled (KsLibrary *self);
void fake_library_answer (KsLibrary *self, guint width, guint height);
/* Ends a picture that nobody waits for any more. */
void fake_library_give_up (KsLibrary *self);
void fake_library_answer_error (KsLibrary *self, const GError *error);

KsChat *fake_chat_new (void);
void fake_chat_set_state (KsChat *self, KsChatState state);
void fake_chat_set_read_only (KsChat *self, const char *reason);
/* The next sends are refused with that reason; NULL = taken. */
void fake_chat_refuse (KsChat *self, const char *reason);
/* As the chat does when a message is stored, and when a request came to nothing. */
void fake_chat_store (KsChat *self, const char *text);
/* A message with that file. */
void fake_chat_store_file (KsChat *self, KsAttachment *attachment);
/* What is kept of every picture; NULL = nothing is known. */
void fake_chat_take_trace (KsChat *self, KsPictureTrace *take_trace);
/* Numbers of the memory; NULL = the model has read nothing.  Each message is a turn. */
void fake_chat_take_memory (KsChat *self, KsMemoryView *take_memory);
void fake_chat_fail (KsChat *self, const char *text);
KsPendingAttachment *fake_chat_add (KsChat *self, const char *name, KsPendingState state);

/* What was called: "send TEXT", "stop", "file PATH", "bytes NAME N", "unlock NAME PASSWORD",
 * "reading NAME WORDS", "remove NAME", "trace TURN NUMBER", "pin MESSAGE HASH", "unpin MESSAGE
 * HASH" ("-": its turn), a line each. */
const char *fake_chat_get_log (KsChat *self);
void fake_chat_clear_log (KsChat *self);
/* The bytes that were attached last. */
GBytes *fake_chat_get_bytes (KsChat *self);

void fake_pending_set_state (KsPendingAttachment *self, KsPendingState state, const char *error);
/* That the model sees of it. */
void fake_pending_set_n_pictures (KsPendingAttachment *self, guint n_picture);
/* How it is read (KsReading's words); after its facts. */
void fake_pending_set_reading (KsPendingAttachment *self, const char *words);
/* Shown with the next of its facts. */
void fake_pending_set_has_sound (KsPendingAttachment *self, gboolean has_sound);
/* That these are many tokens for a model that was trained for n_trained; 0 = they are not. */
void fake_pending_set_large (KsPendingAttachment *self, guint n_trained, gboolean can_shrink);
void fake_pending_set_progress (KsPendingAttachment *self, double progress);
void fake_pending_set_facts (KsPendingAttachment *self, KsAttachmentKind kind, guint n_page,
                             guint n_token, const char *warning);

G_END_DECLS
