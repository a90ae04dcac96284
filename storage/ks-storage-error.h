/* ks-storage-error.h - error domain of storage/.  Messages are technical English sentences. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define KS_STORAGE_ERROR (ks_storage_error_quark ())
GQuark ks_storage_error_quark (void);

typedef enum {
  KS_STORAGE_ERROR_FAILED,
  KS_STORAGE_ERROR_NEWER,     /* written by a newer program: untouched */
  KS_STORAGE_ERROR_DAMAGED,   /* truncated or no database: untouched */
  KS_STORAGE_ERROR_READ_ONLY, /* file, folder or file system cannot be written */
  KS_STORAGE_ERROR_FULL,      /* no space left; nothing was lost */
  KS_STORAGE_ERROR_LOCKED, /* another process answers in this session, or keeps the database busy */
  KS_STORAGE_ERROR_NOT_FOUND,
  KS_STORAGE_ERROR_FORMAT,   /* an import file that is not ours or is damaged */
  KS_STORAGE_ERROR_TOO_LARGE /* over a quota or an import limit */
} KsStorageError;

KsStorageError ks_storage_error_from_errno (int number);
/* Sets error to "what path: reason." */
void ks_storage_error_set_errno (GError **error, int number, const char *what, const char *path);

G_END_DECLS
