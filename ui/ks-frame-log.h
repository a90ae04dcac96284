/* ks-frame-log.h - times of a window's frames for measuring, only where KEEPSAKE_FRAME_LOG names a
 * file.  Times are microseconds of CLOCK_MONOTONIC.  Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gtk/gtk.h>

G_BEGIN_DECLS

/* Writes "first-frame TIME" when the first frame was painted; then keeps the frame clock running
 * and remembers "frame TIME INTERVAL PAINT" of every frame, written when the window goes. */
void ks_frame_log_start (GtkWindow *window);

G_END_DECLS
