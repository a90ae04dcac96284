/* ks-error-kind.h - what a failure means to a user, whichever part it came from: the window chooses
 * its sentence by this and needs to know no error domain.
 * Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

typedef enum {
  KS_ERROR_KIND_OTHER, /* the error's own text is all there is */
  KS_ERROR_KIND_CANCELLED,
  /* stored sessions */
  KS_ERROR_KIND_LOCKED,
  KS_ERROR_KIND_DISK_FULL,
  KS_ERROR_KIND_READ_ONLY,
  KS_ERROR_KIND_STORE_DAMAGED,
  KS_ERROR_KIND_STORE_NEWER,
  KS_ERROR_KIND_NOT_STORED,
  KS_ERROR_KIND_BUNDLE_FORMAT,
  /* files of the user */
  KS_ERROR_KIND_TOO_LARGE, /* a file, a bundle or a message */
  KS_ERROR_KIND_FILE_DAMAGED,
  KS_ERROR_KIND_FILE_PASSWORD,
  KS_ERROR_KIND_FILE_WRONG_PASSWORD,
  KS_ERROR_KIND_FILE_EMPTY,
  KS_ERROR_KIND_FILE_TYPE,
  KS_ERROR_KIND_FILE_MISSING,
  KS_ERROR_KIND_FILE_FORBIDDEN,
  KS_ERROR_KIND_FILE_UNREADABLE,
  KS_ERROR_KIND_DECODER,
  /* the model */
  KS_ERROR_KIND_NO_MODEL,
  KS_ERROR_KIND_BUDGET,
  KS_ERROR_KIND_NO_MEMORY,
  KS_ERROR_KIND_MODEL_DAMAGED,
  KS_ERROR_KIND_MODEL_UNSUPPORTED,
  KS_ERROR_KIND_MODEL_UNREADABLE,
  KS_ERROR_KIND_DEVICE_LOST
} KsErrorKind;

#define KS_N_ERROR_KIND (KS_ERROR_KIND_DEVICE_LOST + 1)

/* error NULL = OTHER. */
KsErrorKind ks_error_get_kind (const GError *error);

G_END_DECLS
