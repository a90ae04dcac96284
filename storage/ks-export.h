/* ks-export.h - a session as Markdown, JSON bundle or self-contained HTML; the bundle back.
 * Files get safe unique names inside the chosen folder and never overwrite.  The JSON bundle holds
 * everything, media as base64, and imports losslessly; the others hold the active path.  HTML: no
 * script, CSP meta, pictures as data URLs. Threads: those of KsStore.  Source:
 * docs/formats/bundle.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "storage/ks-store.h"

G_BEGIN_DECLS

typedef enum { KS_EXPORT_MARKDOWN, KS_EXPORT_JSON, KS_EXPORT_HTML } KsExportFormat;

/* "md", "json", "html"; FALSE when unknown. */
gboolean ks_export_parse_format (const char *name, KsExportFormat *out);
/* A file name (no folder) made of a title: no separators, control characters, reserved names,
 * leading dots; at most 120 bytes, never empty. (transfer full) */
char *ks_export_make_name (const char *title, KsExportFormat format);
/* The content. (transfer full) */
GBytes *ks_export_session (KsStore *store, gint64 session, KsExportFormat format, GError **error);
/* Writes it into folder under a free name; (transfer full) the path. */
char *ks_export_session_to_folder (KsStore *store, gint64 session, KsExportFormat format,
                                   const char *folder, GError **error);
/* To exactly this path; an existing file is refused. */
gboolean ks_export_session_to_file (KsStore *store, gint64 session, KsExportFormat format,
                                    const char *path, GError **error);

/* A new session from a JSON bundle; KS_STORAGE_ERROR_FORMAT or TOO_LARGE leave the store untouched.
 */
KsSession *ks_import_bundle (KsStore *store, GBytes *bundle, GError **error);
/* The same from a regular file, whose size is looked at before it is read. */
KsSession *ks_import_file (KsStore *store, const char *path, GError **error);

G_END_DECLS
