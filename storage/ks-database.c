/* ks-database.c - see ks-database.h.  Until ks_database_trust() the connection neither folds a WAL
 * into the file nor changes its mode, so that a file which turns out to be newer or damaged stays
 * as it was, to the byte. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-database.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUSY_TIMEOUT_MS 5000
#define MIN_DATABASE_BYTES 512 /* the smallest page */

struct KsDatabase {
  sqlite3 *handle;
  char *path;
  gboolean read_only;
  guint depth;
  GHashTable *statements; /* address of the literal -> KsStatement */
};

struct KsStatement {
  KsDatabase *database;
  sqlite3_stmt *handle;
  gboolean is_running, is_cached;
};

static void
free_statement (gpointer data)
{
  KsStatement *statement = data;

  sqlite3_finalize (statement->handle);
  g_free (statement);
}

/* The reason behind an I/O error: the connection's own errno may be that of a later call, so the
 * file and its log are asked for theirs. */
static KsStorageError
code_of_io (KsDatabase *self)
{
  int numbers[] = {sqlite3_system_errno (self->handle), 0, 0};
  sqlite3_file *log = NULL;

  (void)sqlite3_file_control (self->handle, "main", SQLITE_FCNTL_LAST_ERRNO, &numbers[1]);
  (void)sqlite3_file_control (self->handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
  if (log != NULL && log->pMethods != NULL)
    (void)log->pMethods->xFileControl (log, SQLITE_FCNTL_LAST_ERRNO, &numbers[2]);
  for (guint i = 0; i < G_N_ELEMENTS (numbers); i++) {
    KsStorageError code = ks_storage_error_from_errno (numbers[i]);

    if (code == KS_STORAGE_ERROR_FULL || code == KS_STORAGE_ERROR_READ_ONLY)
      return code;
  }
  return KS_STORAGE_ERROR_FAILED;
}

static KsStorageError
code_of (KsDatabase *self, int rc)
{
  switch (rc & 0xff) {
  case SQLITE_FULL:
    return KS_STORAGE_ERROR_FULL;
  case SQLITE_READONLY:
  case SQLITE_PERM:
    return KS_STORAGE_ERROR_READ_ONLY;
  case SQLITE_CORRUPT:
  case SQLITE_NOTADB:
    return KS_STORAGE_ERROR_DAMAGED;
  case SQLITE_BUSY:
  case SQLITE_LOCKED:
    return KS_STORAGE_ERROR_LOCKED;
  case SQLITE_TOOBIG:
    return KS_STORAGE_ERROR_TOO_LARGE;
  case SQLITE_CANTOPEN:
  case SQLITE_IOERR:
    return self->handle != NULL ? code_of_io (self) : KS_STORAGE_ERROR_FAILED;
  default:
    return KS_STORAGE_ERROR_FAILED;
  }
}

void
ks_database_set_error (KsDatabase *self, int rc, GError **error)
{
  g_autofree char *name = g_filename_display_name (self->path);
  const char *reason = self->handle != NULL ? sqlite3_errmsg (self->handle) : sqlite3_errstr (rc);
  KsStorageError code = code_of (self, rc);

  switch (code) {
  case KS_STORAGE_ERROR_FULL:
    g_set_error (error, KS_STORAGE_ERROR, code,
                 "There is no space left for %s: free some, then try again; what was stored is "
                 "unharmed.",
                 name);
    break;
  case KS_STORAGE_ERROR_READ_ONLY:
    g_set_error (error, KS_STORAGE_ERROR, code,
                 "%s cannot be written: change the permissions of the file and its folder, or the "
                 "drive is read-only.",
                 name);
    break;
  case KS_STORAGE_ERROR_DAMAGED:
    g_set_error (error, KS_STORAGE_ERROR, code,
                 "%s is damaged or no database (%s); it was left as it is: put a backup in its "
                 "place, or move it away to start anew.",
                 name, reason);
    break;
  case KS_STORAGE_ERROR_LOCKED:
    g_set_error (error, KS_STORAGE_ERROR, code,
                 "Another program keeps %s busy: close it, then try again.", name);
    break;
  default:
    g_set_error (error, KS_STORAGE_ERROR, code, "%s: %s.", name, reason);
  }
}

/* SQLite would make the file readable for everyone; WAL and shared memory take over its mode. */
static gboolean
make_file (const char *path, GError **error)
{
  int fd = g_open (path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);

  if (fd >= 0)
    return g_close (fd, error);
  ks_storage_error_set_errno (error, errno, "Cannot write", path);
  return FALSE;
}

/* SQLite would take a single byte for an empty file. */
static gboolean
is_stump (const char *path)
{
  struct stat st;

  return stat (path, &st) == 0 && st.st_size > 0 && st.st_size < MIN_DATABASE_BYTES;
}

/* On media where not even the shared memory of a WAL can be made, the file is read as it lies. */
static int
open_immutable (KsDatabase *self)
{
  g_autofree char *absolute = g_canonicalize_filename (self->path, NULL);
  g_autofree char *escaped = g_uri_escape_string (absolute, "/", FALSE);
  g_autofree char *uri = g_strdup_printf ("file:%s?immutable=1", escaped);

  sqlite3_close (self->handle);
  self->handle = NULL;
  return sqlite3_open_v2 (uri, &self->handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, NULL);
}

static int
read_first_page (KsDatabase *self)
{
  sqlite3_busy_timeout (self->handle, BUSY_TIMEOUT_MS);
  sqlite3_db_config (self->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
  sqlite3_db_config (self->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  sqlite3_extended_result_codes (self->handle, 1);
  return sqlite3_exec (self->handle, "SELECT count (*) FROM sqlite_schema", NULL, NULL, NULL);
}

static int
open_handle (KsDatabase *self)
{
  int flags = self->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  int rc = sqlite3_open_v2 (self->path, &self->handle, flags, NULL);

  if (rc == SQLITE_OK)
    rc = read_first_page (self);
  if (self->read_only && ((rc & 0xff) == SQLITE_CANTOPEN || (rc & 0xff) == SQLITE_READONLY)) {
    rc = open_immutable (self);
    if (rc == SQLITE_OK)
      rc = read_first_page (self);
  }
  return rc;
}

KsDatabase *
ks_database_open (const char *path, gboolean read_only, GError **error)
{
  g_autoptr (KsDatabase) self = g_new0 (KsDatabase, 1);
  int rc;

  g_return_val_if_fail (path != NULL, NULL);
  self->path = g_strdup (path);
  self->read_only = read_only;
  self->statements = g_hash_table_new_full (NULL, NULL, NULL, free_statement);
  if (read_only && !g_file_test (path, G_FILE_TEST_EXISTS)) {
    ks_storage_error_set_errno (error, ENOENT, "Cannot read", path);
    return NULL;
  }
  if (!read_only && !make_file (path, error))
    return NULL;
  rc = is_stump (path) ? SQLITE_NOTADB : open_handle (self);
  if (rc != SQLITE_OK) {
    ks_database_set_error (self, rc, error);
    return NULL;
  }
  if (!read_only && sqlite3_db_readonly (self->handle, "main") == 1) {
    ks_database_set_error (self, SQLITE_READONLY, error);
    return NULL;
  }
  if (!ks_database_exec (self, "PRAGMA foreign_keys = ON", error) ||
      !ks_database_exec (self, "PRAGMA synchronous = FULL", error) ||
      !ks_database_exec (self, "PRAGMA secure_delete = ON", error))
    return NULL;
  return g_steal_pointer (&self);
}

void
ks_database_close (KsDatabase *self)
{
  if (self == NULL)
    return;
  g_hash_table_unref (self->statements);
  sqlite3_close (self->handle);
  g_free (self->path);
  g_free (self);
}

gboolean
ks_database_is_read_only (KsDatabase *self)
{
  return self->read_only;
}

const char *
ks_database_get_path (KsDatabase *self)
{
  return self->path;
}

void
ks_database_trust (KsDatabase *self)
{
  sqlite3_db_config (self->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
}

gboolean
ks_database_exec (KsDatabase *self, const char *sql, GError **error)
{
  int rc = sqlite3_exec (self->handle, sql, NULL, NULL, NULL);

  if (rc != SQLITE_OK)
    ks_database_set_error (self, rc, error);
  return rc == SQLITE_OK;
}

gboolean
ks_database_begin (KsDatabase *self, GError **error)
{
  /* Immediate: a transaction that reads first could not be upgraded while another one writes. */
  if (self->depth == 0 && !ks_database_exec (self, "BEGIN IMMEDIATE", error))
    return FALSE;
  self->depth++;
  return TRUE;
}

gboolean
ks_database_begin_read (KsDatabase *self, GError **error)
{
  if (self->depth == 0 && !ks_database_exec (self, "BEGIN", error))
    return FALSE;
  self->depth++;
  return TRUE;
}

gboolean
ks_database_commit (KsDatabase *self, GError **error)
{
  g_return_val_if_fail (self->depth > 0, FALSE);
  if (--self->depth > 0 || ks_database_exec (self, "COMMIT", error))
    return TRUE;
  sqlite3_exec (self->handle, "ROLLBACK", NULL, NULL, NULL);
  return FALSE;
}

void
ks_database_rollback (KsDatabase *self)
{
  g_return_if_fail (self->depth > 0);
  /* Some errors roll back by themselves; then this one fails, and that is fine. */
  if (--self->depth == 0)
    sqlite3_exec (self->handle, "ROLLBACK", NULL, NULL, NULL);
}

gboolean
ks_database_end (KsDatabase *self, gboolean ok, GError **error)
{
  if (ok)
    return ks_database_commit (self, error);
  ks_database_rollback (self);
  return FALSE;
}

static KsStatement *
take_statement (KsDatabase *self, const char *sql, GError **error)
{
  KsStatement *statement = g_hash_table_lookup (self->statements, sql);
  sqlite3_stmt *handle = NULL;
  gboolean is_new = statement == NULL;
  int rc;

  if (!is_new && !statement->is_running) {
    statement->is_running = TRUE;
    return statement;
  }
  rc = sqlite3_prepare_v3 (self->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &handle, NULL);
  if (rc != SQLITE_OK) {
    ks_database_set_error (self, rc, error);
    return NULL;
  }
  statement = g_new0 (KsStatement, 1);
  *statement = (KsStatement){self, handle, TRUE, is_new};
  if (is_new)
    g_hash_table_insert (self->statements, (gpointer)sql, statement);
  return statement;
}

void
ks_statement_done (KsStatement *statement)
{
  if (statement == NULL)
    return;
  if (!statement->is_cached) {
    free_statement (statement);
    return;
  }
  sqlite3_reset (statement->handle);
  sqlite3_clear_bindings (statement->handle);
  statement->is_running = FALSE;
}

static int
bind_text (sqlite3_stmt *handle, int i, const char *text)
{
  char *repaired;

  if (text == NULL)
    return sqlite3_bind_null (handle, i);
  if (g_utf8_validate (text, -1, NULL))
    return sqlite3_bind_text64 (handle, i, text, strlen (text), SQLITE_TRANSIENT, SQLITE_UTF8);
  repaired = g_utf8_make_valid (text, -1);
  return sqlite3_bind_text64 (handle, i, repaired, strlen (repaired), g_free, SQLITE_UTF8);
}

static int
bind_all (sqlite3_stmt *handle, const char *types, va_list args)
{
  int rc = SQLITE_OK;

  for (int i = 1; types[i - 1] != '\0' && rc == SQLITE_OK; i++) {
    gint64 number = 0;
    double real = 0;

    switch (types[i - 1]) {
    case 'i':
      rc = sqlite3_bind_int64 (handle, i, va_arg (args, gint64));
      break;
    case 'I':
      number = va_arg (args, gint64);
      rc = number == -1 ? sqlite3_bind_null (handle, i) : sqlite3_bind_int64 (handle, i, number);
      break;
    case 'd':
    case 'D':
      real = va_arg (args, double);
      rc = real < 0 && types[i - 1] == 'D' ? sqlite3_bind_null (handle, i)
                                           : sqlite3_bind_double (handle, i, real);
      break;
    case 's':
      rc = bind_text (handle, i, va_arg (args, const char *));
      break;
    default:
      g_return_val_if_reached (SQLITE_MISUSE);
    }
  }
  return rc;
}

static KsStatement *
query_valist (KsDatabase *self, GError **error, const char *sql, const char *types, va_list args)
{
  g_autoptr (KsStatement) statement = take_statement (self, sql, error);
  int rc;

  if (statement == NULL)
    return NULL;
  rc = bind_all (statement->handle, types, args);
  if (rc == SQLITE_OK)
    return g_steal_pointer (&statement);
  ks_database_set_error (self, rc, error);
  return NULL;
}

KsStatement *
ks_database_query (KsDatabase *self, GError **error, const char *sql, const char *types, ...)
{
  KsStatement *statement;
  va_list args;

  va_start (args, types);
  statement = query_valist (self, error, sql, types, args);
  va_end (args);
  return statement;
}

gboolean
ks_statement_step (KsStatement *statement, GError **error)
{
  int rc = sqlite3_step (statement->handle);

  if (rc != SQLITE_ROW && rc != SQLITE_DONE)
    ks_database_set_error (statement->database, rc, error);
  return rc == SQLITE_ROW;
}

gint64
ks_statement_get_int (KsStatement *statement, int column)
{
  return sqlite3_column_int64 (statement->handle, column);
}

gint64
ks_statement_get_option (KsStatement *statement, int column)
{
  return sqlite3_column_type (statement->handle, column) == SQLITE_NULL
             ? -1
             : sqlite3_column_int64 (statement->handle, column);
}

double
ks_statement_get_option_double (KsStatement *statement, int column)
{
  return sqlite3_column_type (statement->handle, column) == SQLITE_NULL
             ? -1
             : sqlite3_column_double (statement->handle, column);
}

char *
ks_statement_dup_text (KsStatement *statement, int column)
{
  const char *text = (const char *)sqlite3_column_text (statement->handle, column);

  return text == NULL ? NULL : g_utf8_make_valid (text, -1);
}

gboolean
ks_database_run (KsDatabase *self, GError **error, const char *sql, const char *types, ...)
{
  g_autoptr (KsStatement) statement = NULL;
  GError *local = NULL;
  va_list args;

  va_start (args, types);
  statement = query_valist (self, error, sql, types, args);
  va_end (args);
  if (statement == NULL)
    return FALSE;
  ks_statement_step (statement, &local);
  if (local == NULL)
    return TRUE;
  g_propagate_error (error, local);
  return FALSE;
}

gint64
ks_database_get_int (KsDatabase *self, gint64 fallback, const char *sql, const char *types, ...)
{
  g_autoptr (KsStatement) statement = NULL;
  va_list args;

  va_start (args, types);
  statement = query_valist (self, NULL, sql, types, args);
  va_end (args);
  if (statement == NULL || !ks_statement_step (statement, NULL))
    return fallback;
  return ks_statement_get_int (statement, 0);
}

gint64
ks_database_get_last_id (KsDatabase *self)
{
  return sqlite3_last_insert_rowid (self->handle);
}

int
ks_database_get_n_changes (KsDatabase *self)
{
  return sqlite3_changes (self->handle);
}
