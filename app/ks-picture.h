/* ks-picture.h - one picture on its way to the eyes of a model: where its pixels come from, and
 * where it stands in its message.  A still picture, a page, or one frame or pair of frames of a
 * video.
 * Reference counted; not changed once a message holds it.  Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "media/ks-sampling.h"

#include <gio/gio.h>

G_BEGIN_DECLS

typedef enum {
  KS_PICTURE_FILE, /* the whole file */
  KS_PICTURE_PAGE, /* page index of a PDF */
  KS_PICTURE_PART, /* picture index of a document */
  KS_PICTURE_FRAME /* frames number index .. of a video, as sampling takes them */
} KsPictureSource;

typedef struct {
  gatomicrefcount n_ref;
  KsPictureSource source;
  char *hash;     /* SHA-256 of the file's content in hex */
  char *path;     /* the file: a blob, or the user's own when nothing is stored */
  char *name;     /* for sentences */
  char *password; /* of a document; NULL = none */
  guint index;
  guint n_frame;            /* FRAME: 1, or 2 for a model that takes pairs */
  guint n_own_frame;        /* FRAME: the same, but 1 for a last one that is its own second */
  KsMediaSampling sampling; /* FRAME */
  guint video;     /* FRAME: from 1, the same for all of one video in the message; else 0 */
  gsize at;        /* byte of the message before which it stands */
  gboolean pinned; /* is to stay in memory when it has been read */
} KsPicture;

/* At the message's first byte. */
KsPicture *ks_picture_new (KsPictureSource source, const char *hash, const char *path,
                           const char *name);
/* The user's own file as it is now, whole; reads it for its hash. */
KsPicture *ks_picture_new_from_file (const char *path, GCancellable *cancellable, GError **error);
KsPicture *ks_picture_ref (KsPicture *picture);
void ks_picture_unref (KsPicture *picture);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsPicture, ks_picture_unref)
/* Which part of the file it is and how that is decoded: the same words for the same pixels.
 * (transfer full) */
char *ks_picture_make_part (const KsPicture *picture);

G_END_DECLS
