/* ks-error.h - the GError domain of the engine and the conversion of its status codes.
 * The only place where an engine status becomes a GError.  Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "engine/status.h"

#include <glib.h>

G_BEGIN_DECLS

/* Codes are the values of ks_status (never KS_OK). */
#define KS_ENGINE_ERROR (ks_engine_error_quark ())
GQuark ks_engine_error_quark (void);

/* Application errors that no engine call gave. */
#define KS_APP_ERROR (ks_app_error_quark ())
GQuark ks_app_error_quark (void);

typedef enum {
  KS_APP_ERROR_FAILED,
  KS_APP_ERROR_NOT_TEXT,  /* a file that holds no text */
  KS_APP_ERROR_TOO_LARGE, /* over a size cap */
  KS_APP_ERROR_NO_MODEL,  /* no model file was found */
  KS_APP_ERROR_USAGE      /* options that contradict each other or do not parse */
} KsAppError;

/* Sets error from a failed status; err may be NULL or empty, then the code's name is the text.
 * Returns TRUE for KS_OK (error untouched), else FALSE. */
gboolean ks_error_check (ks_status status, const ks_error *err, GError **error);

/* True when error says that someone asked to stop. */
gboolean ks_error_is_cancelled (const GError *error);

/* True when a file cannot be opened without its password; *out_was_wrong (may be NULL): one was
 * given, and it is not the right one. */
gboolean ks_error_is_password (const GError *error, gboolean *out_was_wrong);

G_END_DECLS
