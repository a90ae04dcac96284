/* ks-database.h - one SQLite connection: opening, cached statements, transactions, errors.
 * Opening never writes to a file that is newer, damaged or foreign.  WAL, foreign keys,
 * busy_timeout 5 s, synchronous FULL.  Folder-private except for tests.
 * Threads: one at a time. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "storage/ks-storage-error.h"

#include <glib.h>
#include <sqlite3.h>

G_BEGIN_DECLS

typedef struct KsDatabase KsDatabase;

/* Opens path; without read_only it is made (0600) when missing, and the caller migrates it. */
KsDatabase *ks_database_open (const char *path, gboolean read_only, GError **error);
void ks_database_close (KsDatabase *self); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsDatabase, ks_database_close)
gboolean ks_database_is_read_only (KsDatabase *self);
const char *ks_database_get_path (KsDatabase *self);

/* Runs SQL without results. */
gboolean ks_database_exec (KsDatabase *self, const char *sql, GError **error);
/* From now on closing may fold the WAL into the file: the file was found to be ours. */
void ks_database_trust (KsDatabase *self);
/* Sets error from an SQLite result code. */
void ks_database_set_error (KsDatabase *self, int rc, GError **error);

/* Transactions may be nested: the outermost commits, any failure rolls all back. */
gboolean ks_database_begin (KsDatabase *self, GError **error);
/* Only for reading several things as they are at one moment. */
gboolean ks_database_begin_read (KsDatabase *self, GError **error);
gboolean ks_database_commit (KsDatabase *self, GError **error);
void ks_database_rollback (KsDatabase *self);
/* commit when ok, else rollback; the result. */
gboolean ks_database_end (KsDatabase *self, gboolean ok, GError **error);

/* A running statement; sql must be a string literal (its address is the key of the cache).
 * types: one letter an argument, i gint64, s const char * (NULL allowed; repaired UTF-8), d double,
 * I gint64 with -1 stored as NULL, D double with a negative one stored as NULL. */
typedef struct KsStatement KsStatement;
KsStatement *ks_database_query (KsDatabase *self, GError **error, const char *sql,
                                const char *types, ...);
void ks_statement_done (KsStatement *statement); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsStatement, ks_statement_done)
/* TRUE with a row; FALSE at the end, or with error set. */
gboolean ks_statement_step (KsStatement *statement, GError **error);
gint64 ks_statement_get_int (KsStatement *statement, int column);
/* -1 for NULL. */
gint64 ks_statement_get_option (KsStatement *statement, int column);
double ks_statement_get_option_double (KsStatement *statement, int column);
/* Valid UTF-8 or NULL. (transfer full) */
char *ks_statement_dup_text (KsStatement *statement, int column);

/* A statement without results. */
gboolean ks_database_run (KsDatabase *self, GError **error, const char *sql, const char *types,
                          ...);
/* The first column of the first row; fallback when there is none or on error. */
gint64 ks_database_get_int (KsDatabase *self, gint64 fallback, const char *sql, const char *types,
                            ...);
gint64 ks_database_get_last_id (KsDatabase *self);
int ks_database_get_n_changes (KsDatabase *self);

G_END_DECLS
