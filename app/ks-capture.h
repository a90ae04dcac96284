/* ks-capture.h - pictures that are taken now: of the screen (the desktop's portal asks the user)
 * and by a camera (the decoder worker reads it). Threads: main; what takes time runs elsewhere. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "media/ks-pixels.h"

#include <gio/gio.h>

G_BEGIN_DECLS

typedef enum { KS_CAPTURE_SCREEN, KS_CAPTURE_CAMERA, KS_N_CAPTURE } KsCaptureSource;

#define KS_TYPE_CAPTURE (ks_capture_get_type ())
G_DECLARE_FINAL_TYPE (KsCapture, ks_capture, KS, CAPTURE, GObject)

/* Looks for sources at once, without waiting; "changed" when one is found. */
KsCapture *ks_capture_new (void);
gboolean ks_capture_has (KsCapture *self, KsCaptureSource source);
/* One picture at a time.  G_IO_ERROR_CANCELLED: the user gave up, or cancellable did. */
void ks_capture_take_async (KsCapture *self, KsCaptureSource source, GCancellable *cancellable,
                            GAsyncReadyCallback callback, gpointer user_data);
/* A file that was written (screen) or pixels (camera): the other one stays NULL. */
gboolean ks_capture_take_finish (KsCapture *self, GAsyncResult *result, GFile **out_file,
                                 KsPixels **out_pixels, GError **error);

G_END_DECLS
