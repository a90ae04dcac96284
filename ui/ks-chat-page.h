/* ks-chat-page.h - one chat: what is the matter with it (banners), its messages or an invitation to
 * begin, how far reading has come, and the composer.
 * Keeps a draft for each chat that was shown.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-library.h"

#include <adwaita.h>

G_BEGIN_DECLS

#define KS_TYPE_CHAT_PAGE (ks_chat_page_get_type ())
G_DECLARE_FINAL_TYPE (KsChatPage, ks_chat_page, KS, CHAT_PAGE, GtkWidget)

GtkWidget *ks_chat_page_new (KsLibrary *library);
/* NULL: nothing is open. What was typed stays with the chat that was shown. */
void ks_chat_page_set_chat (KsChatPage *self, KsChat *chat);
KsChat *ks_chat_page_get_chat (KsChatPage *self);
/* Whether the chat has nothing in it yet: no message, no attachment, nothing typed. */
gboolean ks_chat_page_is_untouched (KsChatPage *self);
/* Whether the chat holds something that is not stored: it has to be kept. */
gboolean ks_chat_page_has_draft (KsChat *chat);
void ks_chat_page_focus (KsChatPage *self); /* the composer */
void ks_chat_page_attach (KsChatPage *self);
void ks_chat_page_attach_folders (KsChatPage *self);
void ks_chat_page_add_toast (KsChatPage *self, AdwToast *toast); /* (transfer full) */

G_END_DECLS
