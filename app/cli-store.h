/* cli-store.h - the stored sessions for the commands of the terminal: opening, finding, describing.
 * Threads: main, except what runs on the store. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/cli-common.h"
#include "app/ks-session-service.h"

G_BEGIN_DECLS

/* FALSE with error set on failure.  May print. */
typedef gboolean (*CliStoreFunc) (KsStore *store, gpointer data, GError **error);

/* Opens the user's sessions and runs func on the writer thread while this one waits; the exit code,
 * with what went wrong printed.  writes: a store that can only be read is refused. */
int cli_run_on_store (gboolean writes, CliStoreFunc func, gpointer data);

/* {"id", "title", "created", "updated", "messages"}, with "snippet" for a hit. */
cJSON *cli_make_session_json (KsSession *session);
/* Printable, of n_chars at most; "(no title)" for nothing. (transfer full) */
char *cli_dup_title (KsSession *session, guint n_chars);
/* "2026-11-30 14:05", local time. (transfer full) */
char *cli_format_time (gint64 time_us);
/* "2026-11-30T13:05:07.123456Z". (transfer full) */
char *cli_format_time_iso (gint64 time_us);
/* "4 messages". (transfer full) */
char *cli_format_n (guint64 n, const char *one, const char *many);

G_END_DECLS
