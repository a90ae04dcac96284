/* ks-composer.h - where the next message is written: text, attachments, Send and Stop.
 * Sends and stops by itself.  What was typed stays until it is stored as a message; when sending
 * fails before that, the text comes back.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-capture.h"
#include "app/ks-library.h"

#include <adwaita.h>

G_BEGIN_DECLS

#define KS_TYPE_COMPOSER (ks_composer_get_type ())
G_DECLARE_FINAL_TYPE (KsComposer, ks_composer, KS, COMPOSER, AdwBin)

KsComposer *ks_composer_new (void);
/* For what the model can do and whether there is one; NULL is allowed. */
void ks_composer_set_library (KsComposer *self, KsLibrary *library);
/* Screen and camera that pictures can be taken of; NULL: none, their buttons are not there. */
void ks_composer_set_capture (KsComposer *self, KsCapture *capture);
/* NULL: nothing can be written.  The text stays: the caller keeps a draft for each chat. */
void ks_composer_set_chat (KsComposer *self, KsChat *chat);
char *ks_composer_get_text (KsComposer *self); /* (transfer full) */
void ks_composer_set_text (KsComposer *self, const char *text);
void ks_composer_focus (KsComposer *self);
/* As the buttons do it; when it cannot be sent, the reason is shown. */
void ks_composer_send (KsComposer *self);
void ks_composer_choose_files (KsComposer *self);
void ks_composer_choose_folders (KsComposer *self);
/* Files, pictures and text can be dropped anywhere on the page; where that is a GtkOverlay, a drop
 * area is shown over it meanwhile. */
void ks_composer_add_drop_target (KsComposer *self, GtkWidget *page);

G_END_DECLS
