/* ks-store.h - sessions, turns, messages and attachments in SQLite; every query of the program.
 * The calls block and belong to ONE thread (app's writer thread runs them; see
 * app/ks-session-service.h); objects they return may be passed to the main thread. WAL, foreign
 * keys, busy_timeout 5 s, user_version migrations in one transaction after a backup copy. Source:
 * docs/formats/schema.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "storage/ks-blob-store.h"
#include "storage/ks-embed-store.h"
#include "storage/ks-message.h"
#include "storage/ks-session.h"
#include "storage/ks-snapshot-store.h"

G_BEGIN_DECLS

#define KS_TYPE_STORE (ks_store_get_type ())
G_DECLARE_FINAL_TYPE (KsStore, ks_store, KS, STORE, GObject)

/* Opens or makes dir/sessions.db and dir/blobs (dir/embeddings and dir/snapshots when they
 * are needed).  Messages left
 * STREAMING become INTERRUPTED unless a living process holds their session's lock: lock before an
 * answer starts.  Errors: NEWER, DAMAGED, READ_ONLY (with flag read_only: opened so instead), FULL,
 * NOT_FOUND (read_only alone).
 */
KsStore *ks_store_open (const char *dir, gboolean read_only, GError **error);
KsBlobStore *ks_store_get_blobs (KsStore *self);
/* dir/embeddings: goes with the blobs it was made from. */
KsEmbedStore *ks_store_get_embeds (KsStore *self);
/* dir/snapshots: goes with the sessions. */
KsSnapshotStore *ks_store_get_snapshots (KsStore *self);
/* PRAGMA integrity_check; FALSE with the first finding. */
gboolean ks_store_check (KsStore *self, GError **error);

/* Sessions, newest first; (transfer full) of KsSession.  limit 0 = all. */
GPtrArray *ks_store_list_sessions (KsStore *self, guint offset, guint limit, GError **error);
KsSession *ks_store_add_session (KsStore *self, const char *title,
                                 const KsSessionSettings *settings, GError **error);
KsSession *ks_store_get_session (KsStore *self, gint64 id, GError **error);
/* By id, title or the beginning of one title, for the command line.  Errors: NOT_FOUND, FAILED when
 * several begin so. */
KsSession *ks_store_find_session (KsStore *self, const char *text, GError **error);
gboolean ks_store_rename_session (KsStore *self, gint64 id, const char *title, GError **error);
/* Marks as deleted (undo restores); ks_store_purge removes what is marked, with blobs nobody uses
 * and those that a crash left (call it at start, too).  Errors of delete: LOCKED. */
gboolean ks_store_delete_session (KsStore *self, gint64 id, GError **error);
gboolean ks_store_restore_session (KsStore *self, gint64 id, GError **error);
gboolean ks_store_purge (KsStore *self, GError **error);
/* The same for what was marked so long ago that nobody can want it back, as another program might
 * what it has just marked; and for what this store marked. */
gboolean ks_store_purge_old (KsStore *self, gint64 least_age_us, GError **error);
gboolean ks_store_purge_own (KsStore *self, GError **error);
/* Removes a blob that no attachment refers to; one that is in use stays. */
gboolean ks_store_remove_unused_blob (KsStore *self, const char *hash, GError **error);
/* Everything: database, WAL, backups, blobs, embeddings, snapshots.  Errors: LOCKED while another
 * process answers. */
gboolean ks_store_delete_all (KsStore *self, GError **error);
KsSessionSettings *ks_store_get_settings (KsStore *self, gint64 session, GError **error);
gboolean ks_store_set_settings (KsStore *self, gint64 session, const KsSessionSettings *settings,
                                GError **error);

/* The active path, oldest first; (transfer full) of KsMessage. */
GPtrArray *ks_store_list_messages (KsStore *self, gint64 session, GError **error);
/* Those of all branches by id, parents before children; branches are not numbered. */
GPtrArray *ks_store_list_all_messages (KsStore *self, gint64 session, GError **error);
/* Appends below parent (0 = start) and makes the new message the active leaf; committed on return.
 * attachments (of KsAttachment, NULL = none) must have their blobs.  Errors: NOT_FOUND. */
KsMessage *ks_store_add_message (KsStore *self, gint64 session, gint64 parent, KsMessageRole role,
                                 KsMessageState state, const char *text, GPtrArray *attachments,
                                 GError **error);
/* Text and state of a message as they are now: every 2 s while it streams, and at its end. */
gboolean ks_store_update_message (KsStore *self, gint64 message, const char *text,
                                  KsMessageState state, guint n_tokens, const char *problem,
                                  GError **error);
/* Makes the branch through the message's sibling number i (from 0) active, down to where that
 * branch was left. */
gboolean ks_store_select_branch (KsStore *self, gint64 message, guint sibling, GError **error);
/* What a user asked to keep in the model's memory: the turn that a message begins (hash NULL), or
 * its attached files with that content.  Errors: NOT_FOUND. */
gboolean ks_store_set_pinned (KsStore *self, gint64 message, const char *hash, gboolean pinned,
                              GError **error);

/* Full text over titles and messages (trigram; LIKE for one- and two-character words), titles
 * first, then best first; KsSession with snippet.  Each word of the query has to occur, "two words"
 * in quotes count as one.  An answer is found when it has ended. */
GPtrArray *ks_store_search (KsStore *self, const char *query, guint limit, GError **error);

/* Answer lock of a session: a row with pid and start time of this process; stale ones are taken
 * over. FALSE with LOCKED when another living process has it. */
gboolean ks_store_lock_session (KsStore *self, gint64 session, GError **error);
/* FALSE with LOCKED when another living process answers; takes nothing. */
gboolean ks_store_check_lock (KsStore *self, gint64 session, GError **error);
void ks_store_unlock_session (KsStore *self, gint64 session);
/* Messages that processes which are gone left STREAMING become INTERRUPTED, and their locks go;
 * opening does the same. */
gboolean ks_store_recover (KsStore *self, GError **error);

G_END_DECLS
