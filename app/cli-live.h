/* cli-live.h - attachments of a conversation that is not stored: what a session does through its
 * blobs is done here on the user's own files.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/cli-answer.h"

G_BEGIN_DECLS

/* A file for the next message: text, document, or for a model with eyes a picture or a video. */
gboolean cli_live_attach (CliTalk *talk, const char *path, GError **error);
/* The same for a picture or a video alone. */
gboolean cli_live_look (CliTalk *talk, const char *path, GError **error);

G_END_DECLS
