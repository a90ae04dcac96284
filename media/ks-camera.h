/* ks-camera.h - cameras of this machine, and one picture from one.
 * The system's list says which there are; none is opened for that, so no light goes on.  The
 * picture is taken and decoded in the worker: a camera may be hostile hardware.  Threads: the calls
 * block (a picture takes a second or two) and may run on any thread. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "media/ks-media.h"

G_BEGIN_DECLS

typedef struct {
  char *path; /* "/dev/video0" */
  char *name; /* as its maker calls it, valid UTF-8 */
} KsCamera;

void ks_camera_free (KsCamera *camera); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsCamera, ks_camera_free)

/* Cameras that this user may open, by number: an array of KsCamera, empty where there are none.
 * system and devices: NULL = "/sys/class/video4linux" and "/dev".  (transfer full) */
GPtrArray *ks_camera_list (const char *system, const char *devices);
/* One picture, at most options->max_side_px a side.  options->name: NULL = the last part of path.
 * FAILED when there is no camera or it gives no picture within ten seconds.  (transfer full) */
KsPixels *ks_camera_capture (const char *path, const KsMediaOptions *options,
                             GCancellable *cancellable, GError **error);

G_END_DECLS
