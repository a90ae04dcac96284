/* ks-error-kind.c - see ks-error-kind.h: one table over all domains. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-error-kind.h"

#include "app/ks-error.h"
#include "media/ks-media.h"
#include "storage/ks-storage-error.h"

#include <gio/gio.h>

typedef struct {
  int code;
  KsErrorKind kind;
} KindOfCode;

static const KindOfCode storage_kinds[] = {
    {KS_STORAGE_ERROR_NEWER, KS_ERROR_KIND_STORE_NEWER},
    {KS_STORAGE_ERROR_DAMAGED, KS_ERROR_KIND_STORE_DAMAGED},
    {KS_STORAGE_ERROR_READ_ONLY, KS_ERROR_KIND_READ_ONLY},
    {KS_STORAGE_ERROR_FULL, KS_ERROR_KIND_DISK_FULL},
    {KS_STORAGE_ERROR_LOCKED, KS_ERROR_KIND_LOCKED},
    {KS_STORAGE_ERROR_NOT_FOUND, KS_ERROR_KIND_NOT_STORED},
    {KS_STORAGE_ERROR_FORMAT, KS_ERROR_KIND_BUNDLE_FORMAT},
    {KS_STORAGE_ERROR_TOO_LARGE, KS_ERROR_KIND_TOO_LARGE},
};

static const KindOfCode media_kinds[] = {
    {KS_MEDIA_ERROR_FAILED, KS_ERROR_KIND_FILE_UNREADABLE},
    {KS_MEDIA_ERROR_UNKNOWN_TYPE, KS_ERROR_KIND_FILE_TYPE},
    {KS_MEDIA_ERROR_DAMAGED, KS_ERROR_KIND_FILE_DAMAGED},
    {KS_MEDIA_ERROR_PASSWORD, KS_ERROR_KIND_FILE_PASSWORD},
    {KS_MEDIA_ERROR_WRONG_PASSWORD, KS_ERROR_KIND_FILE_WRONG_PASSWORD},
    {KS_MEDIA_ERROR_TOO_LARGE, KS_ERROR_KIND_TOO_LARGE},
    {KS_MEDIA_ERROR_EMPTY, KS_ERROR_KIND_FILE_EMPTY},
    {KS_MEDIA_ERROR_WORKER, KS_ERROR_KIND_DECODER},
    {KS_MEDIA_ERROR_CANCELLED, KS_ERROR_KIND_CANCELLED},
};

static const KindOfCode engine_kinds[] = {
    {KS_ERR_NOMEM, KS_ERROR_KIND_NO_MEMORY},
    {KS_ERR_BUDGET, KS_ERROR_KIND_BUDGET},
    {KS_ERR_FORMAT, KS_ERROR_KIND_MODEL_DAMAGED},
    {KS_ERR_UNSUPPORTED, KS_ERROR_KIND_MODEL_UNSUPPORTED},
    {KS_ERR_IO, KS_ERROR_KIND_MODEL_UNREADABLE},
    {KS_ERR_CANCELLED, KS_ERROR_KIND_CANCELLED},
    {KS_ERR_LOST, KS_ERROR_KIND_DEVICE_LOST},
};

static const KindOfCode app_kinds[] = {
    {KS_APP_ERROR_NOT_TEXT, KS_ERROR_KIND_FILE_TYPE},
    {KS_APP_ERROR_TOO_LARGE, KS_ERROR_KIND_TOO_LARGE},
    {KS_APP_ERROR_NO_MODEL, KS_ERROR_KIND_NO_MODEL},
};

static const KindOfCode io_kinds[] = {
    {G_IO_ERROR_CANCELLED, KS_ERROR_KIND_CANCELLED},
    {G_IO_ERROR_NOT_FOUND, KS_ERROR_KIND_FILE_MISSING},
    {G_IO_ERROR_NO_SPACE, KS_ERROR_KIND_DISK_FULL},
    {G_IO_ERROR_PERMISSION_DENIED, KS_ERROR_KIND_FILE_FORBIDDEN},
    {G_IO_ERROR_READ_ONLY, KS_ERROR_KIND_READ_ONLY},
};

static const KindOfCode file_kinds[] = {
    {G_FILE_ERROR_NOENT, KS_ERROR_KIND_FILE_MISSING},
    {G_FILE_ERROR_NOSPC, KS_ERROR_KIND_DISK_FULL},
    {G_FILE_ERROR_ACCES, KS_ERROR_KIND_FILE_FORBIDDEN},
    {G_FILE_ERROR_PERM, KS_ERROR_KIND_FILE_FORBIDDEN},
    {G_FILE_ERROR_ROFS, KS_ERROR_KIND_READ_ONLY},
};

static KsErrorKind
find_kind (const KindOfCode *kinds, gsize n, int code)
{
  for (gsize i = 0; i < n; i++)
    if (kinds[i].code == code)
      return kinds[i].kind;
  return KS_ERROR_KIND_OTHER;
}

KsErrorKind
ks_error_get_kind (const GError *error)
{
  if (error == NULL)
    return KS_ERROR_KIND_OTHER;
  if (error->domain == KS_STORAGE_ERROR)
    return find_kind (storage_kinds, G_N_ELEMENTS (storage_kinds), error->code);
  if (error->domain == KS_MEDIA_ERROR)
    return find_kind (media_kinds, G_N_ELEMENTS (media_kinds), error->code);
  if (error->domain == KS_ENGINE_ERROR)
    return find_kind (engine_kinds, G_N_ELEMENTS (engine_kinds), error->code);
  if (error->domain == KS_APP_ERROR)
    return find_kind (app_kinds, G_N_ELEMENTS (app_kinds), error->code);
  if (error->domain == G_IO_ERROR)
    return find_kind (io_kinds, G_N_ELEMENTS (io_kinds), error->code);
  if (error->domain == G_FILE_ERROR)
    return find_kind (file_kinds, G_N_ELEMENTS (file_kinds), error->code);
  return KS_ERROR_KIND_OTHER;
}
