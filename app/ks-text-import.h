/* ks-text-import.h - bytes of a text file in any encoding to UTF-8.
 * Byte order marks decide first, then valid UTF-8, then the shape of UTF-16 and UTF-32 without a
 * mark, then uchardet's guess.  What holds no text is refused with a sentence. Not here: PDF and
 * other documents.  Threads: any. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include <glib.h>

G_BEGIN_DECLS

#define KS_TEXT_IMPORT_MAX_BYTES (64u * 1024u * 1024u)

/* A new NUL-terminated UTF-8 string without a byte order mark, line ends as \n; *out_n gets its
 * length and *out_encoding (both may be NULL; free with g_free) the name of the encoding found.
 * name is used in sentences.  Errors: KS_APP_ERROR_NOT_TEXT, KS_APP_ERROR_TOO_LARGE. */
char *ks_text_import_bytes (const char *name, const void *data, gsize n_bytes, gsize *out_n,
                            char **out_encoding, GError **error);
/* The same from a file; anything but a regular file is refused.  Errors as above and G_FILE_ERROR.
 */
char *ks_text_import_file (const char *path, gsize *out_n, char **out_encoding, GError **error);

G_END_DECLS
