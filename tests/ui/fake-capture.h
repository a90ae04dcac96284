/* fake-capture.h - screen and camera of app/ks-capture.h, played by the test.
 * Takes the place of app's own when it is linked first. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-capture.h"

G_BEGIN_DECLS

void fake_capture_set (KsCapture *self, KsCaptureSource source, gboolean is_there);
/* What was asked for and not answered yet; KS_N_CAPTURE = nothing. */
KsCaptureSource fake_capture_get_asked (KsCapture *self);
/* Answers: one of them, or an error. */
void fake_capture_answer (KsCapture *self, GFile *file, KsPixels *pixels, const GError *error);

G_END_DECLS
