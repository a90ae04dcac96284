/* ks-screenshot.h - a picture of the screen by way of the desktop's portal.
 * The desktop asks the user what may be seen and writes a file; nothing is taken here.  Where no
 * portal answers there is no screenshot, and the button for it is hidden.
 * Threads: the thread-default main context of the caller. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* Is there a portal for this?  bus: NULL = the session's.  The answer comes within three seconds;
 * FALSE is no error. */
void ks_screenshot_check_async (GDBusConnection *bus, GCancellable *cancellable,
                                GAsyncReadyCallback callback, gpointer user);
gboolean ks_screenshot_check_finish (GAsyncResult *result);

/* Lets the user take one.  parent_window: the portal's name for our window ("x11:1f",
 * "wayland:..."),
 * "" = none.  finish: path of the file that the desktop wrote; it belongs to the user.  Errors are
 * KS_MEDIA_ERROR: CANCELLED when the user or the caller changed their mind, else FAILED.
 * (transfer full) */
void ks_screenshot_take_async (GDBusConnection *bus, const char *parent_window,
                               GCancellable *cancellable, GAsyncReadyCallback callback,
                               gpointer user);
char *ks_screenshot_take_finish (GAsyncResult *result, GError **error);

G_END_DECLS
