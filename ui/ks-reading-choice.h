/* ks-reading-choice.h - how one pending attachment goes to the model, as the user may change it:
 * pages of a PDF as text or picture, the pictures of a document, text recognised in a picture.
 * What is chosen is told to the chat at once.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-library.h"

#include <adwaita.h>

G_BEGIN_DECLS

#define KS_TYPE_READING_CHOICE (ks_reading_choice_get_type ())
G_DECLARE_FINAL_TYPE (KsReadingChoice, ks_reading_choice, KS, READING_CHOICE, AdwBin)

/* Whether there is anything to choose for it here (a video has ks-video-dialog.h). */
gboolean ks_reading_choice_has_any (KsPendingAttachment *attachment);
GtkWidget *ks_reading_choice_new (KsChat *chat, KsLibrary *library,
                                  KsPendingAttachment *attachment);

G_END_DECLS
