/* cli-session.h - a stored session in the terminal: the part of a CliTalk that --session asks for.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/cli-answer.h"

G_BEGIN_DECLS

/* Finds the session that options name ("new": one that is made with its first message), adds its
 * own choices to options, and loads the model.  NULL with *out_exit: the error is printed. */
CliSession *cli_session_new (CliTalk *talk, CliOptions *options, gboolean greedy, int *out_exit);
/* Stops what runs and waits until all of it is stored. */
void cli_session_free (CliSession *self);
KsConversation *cli_session_get_conversation (CliSession *self);

gboolean cli_session_ask (CliSession *self, const char *text, GError **error);
gboolean cli_session_continue (CliSession *self, GError **error);
gboolean cli_session_regenerate (CliSession *self, GError **error);
void cli_session_stop (CliSession *self);
gboolean cli_session_can_see (CliSession *self); /* the model has eyes */
gboolean cli_session_attach (CliSession *self, const char *path, GError **error);

/* Turns count from 0; name NULL = all of the turn. */
gboolean cli_session_pin (CliSession *self, guint turn, const char *name, gboolean pinned,
                          GError **error);

/* "session": {"id", "title", ...} and "message", the answer's number. */
void cli_session_add_json (CliSession *self, cJSON *json);
gboolean cli_session_rename (CliSession *self, const char *title, GError **error);
/* path NULL: a free name in the current folder; prints where it went. */
gboolean cli_session_export (CliSession *self, const char *format, const char *path,
                             GError **error);

G_END_DECLS
