/* cli-media.h - users' files as text for the commands, read in the decoder worker.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/cli-common.h"
#include "media/ks-media.h"

G_BEGIN_DECLS

/* Text of a user's file or bytes as UTF-8; name is for sentences.  An empty file is an empty text,
 * a picture is an error. (transfer full) */
char *cli_load_text (const char *path, gsize *out_n, GError **error);
char *cli_load_text_bytes (const char *name, const void *data, gsize n, GError **error);
/* Says that a file is a picture or a video where text is wanted. */
void cli_set_not_text (GError **error, const char *name, const KsMediaResult *result);
/* Any file, with progress and Ctrl-C: some documents take time.  *password (may be NULL) is tried
 * on an encrypted one; what is then typed on the terminal takes its place. */
KsMediaResult *cli_load_document (const char *path, char **password, GError **error);

/* Asks on the terminal without showing what is typed; was_wrong: what was tried before did not open
 * the file.  NULL where there is no terminal or the user gives up; *out_asked becomes TRUE when the
 * question was shown. (transfer full) */
char *cli_ask_password (const char *name, gboolean was_wrong, gboolean *out_asked);
/* After a question that got no answer: the question said what was wrong. */
void cli_set_closed (GError **error, const char *name);

G_END_DECLS
