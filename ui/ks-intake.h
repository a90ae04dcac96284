/* ks-intake.h - what a clipboard or a drag brings to a message: files first, then a picture, then
 * text.
 * Files and pictures become attachments of the chat; bytes of other programs go to the decoder
 * as they are, no picture is decoded here that can be had encoded.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-chat.h"

#include <gtk/gtk.h>

G_BEGIN_DECLS

/* Text that is longer than this becomes an attachment: a text view would stand still over it. */
#define KS_INTAKE_MAX_TEXT_BYTES 20000

typedef enum {
  KS_INTAKE_NOTHING,
  KS_INTAKE_FILES,
  KS_INTAKE_ENCODED, /* a picture in a format that the decoder reads */
  KS_INTAKE_TEXTURE, /* a picture that only the toolkit can read */
  KS_INTAKE_TEXT
} KsIntakeKind;

/* A sentence for the user: what could not be taken and what to do. */
typedef void (*KsIntakeNotice) (GObject *object, KsChat *chat, const char *notice);

KsIntakeKind ks_intake_choose (GdkContentFormats *formats);
/* Attaches what the clipboard holds, as FILES, ENCODED or TEXTURE; func is called later when
 * something could not be taken, unless object is gone by then. */
void ks_intake_paste (GdkClipboard *clipboard, KsIntakeKind kind, KsChat *chat, KsIntakeNotice func,
                      GObject *object);
/* Of GFile. Only what lies on this machine is attached. */
void ks_intake_take_files (GSList *files, KsChat *chat, KsIntakeNotice func, GObject *object);
/* Encodes it on another thread, then attaches it; name: what it is called, NULL = a pasted picture,
 * with a number where there is one of that name. */
void ks_intake_take_texture (GdkTexture *texture, const char *name, KsChat *chat,
                             KsIntakeNotice func, GObject *object);
void ks_intake_take_text (const char *text, gsize n_text, KsChat *chat);
/* Whether the text is the address of something on the network and nothing else. */
gboolean ks_intake_is_address (const char *text);

G_END_DECLS
