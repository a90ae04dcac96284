/* ks-folder-scan.h - the files of a folder that may be attached, with a verdict on each.
 * Names decide nothing here but what is hidden; what a file holds is seen when it is read.  Links
 * are not followed, so that a folder cannot lead elsewhere.  Threads: any; blocks on the disk. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

typedef struct {
  char *path;
  char *name;         /* below the folder, for display: "letters/may.odt" */
  char *refused;      /* why it is not taken, a sentence; NULL = to be read */
  gboolean is_beyond; /* refused because max_files came before it */
} KsFolderFile;

void ks_folder_file_free (KsFolderFile *file); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsFolderFile, ks_folder_file_free)

/* Files of the folder and the folders in it, in the order of a file manager (numbers by value, a
 * folder's own files before those below), of KsFolderFile.  At most max_files are to be read, the
 * rest is refused.  Errors: the folder cannot be read (G_FILE_ERROR, G_IO_ERROR_CANCELLED), or
 * holds no file at all.  (transfer full) */
GPtrArray *ks_folder_scan (const char *path, guint max_files, GCancellable *cancellable,
                           GError **error);

G_END_DECLS
