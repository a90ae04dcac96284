/* ks-capture-buttons.h - takes a picture of the screen or with the camera and attaches it; a button
 * is there only where its source is.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-capture.h"
#include "ui/ks-intake.h"

#include <adwaita.h>

G_BEGIN_DECLS

#define KS_TYPE_CAPTURE_BUTTONS (ks_capture_buttons_get_type ())
G_DECLARE_FINAL_TYPE (KsCaptureButtons, ks_capture_buttons, KS, CAPTURE_BUTTONS, AdwBin)

/* Hidden until it has a capture with a source. */
void ks_capture_buttons_set_capture (KsCaptureButtons *self, KsCapture *capture);
/* chat: where pictures go, NULL = nowhere; func: told why one could not be taken, unless object is
 * gone by then.  A picture that is being taken goes to the chat that asked for it. */
void ks_capture_buttons_set_chat (KsCaptureButtons *self, KsChat *chat, KsIntakeNotice func,
                                  GObject *object);

G_END_DECLS
