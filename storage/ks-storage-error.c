/* ks-storage-error.c - the domain's quark and the conversion of errno. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-storage-error.h"

#include <errno.h>

G_DEFINE_QUARK (ks_storage_error_quark, ks_storage_error)

KsStorageError
ks_storage_error_from_errno (int number)
{
  switch (number) {
  case ENOSPC:
  case EDQUOT:
  case EFBIG:
    return KS_STORAGE_ERROR_FULL;
  case EROFS:
  case EACCES:
  case EPERM:
    return KS_STORAGE_ERROR_READ_ONLY;
  case ENOENT:
  case ENOTDIR:
    return KS_STORAGE_ERROR_NOT_FOUND;
  default:
    return KS_STORAGE_ERROR_FAILED;
  }
}

void
ks_storage_error_set_errno (GError **error, int number, const char *what, const char *path)
{
  g_autofree char *name = g_filename_display_name (path);

  g_set_error (error, KS_STORAGE_ERROR, ks_storage_error_from_errno (number), "%s %s: %s.", what,
               name, g_strerror (number));
}
