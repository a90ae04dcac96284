/* ks-store-locks.c - answer locks: a row with pid, start time and boot of the process that answers.
 * A lock is alive while a process with that pid and that start time runs; everything else is stale
 * and taken over.  The start time tells a reused pid from the owner, the boot id yesterday's. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-store-internal.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Field 22 of /proc/PID/stat, in ticks since the boot; 0 when it cannot be told. */
static gint64
get_start_time (gint64 pid)
{
  g_autofree char *path = g_strdup_printf ("/proc/%" G_GINT64_FORMAT "/stat", pid);
  g_autofree char *text = NULL;
  g_auto (GStrv) fields = NULL;
  const char *rest;

  if (!g_file_get_contents (path, &text, NULL, NULL))
    return 0;
  /* The name in parentheses may hold anything; field 3 follows the last one. */
  rest = strrchr (text, ')');
  if (rest == NULL)
    return 0;
  fields = g_strsplit (rest + 1, " ", 0);
  if (g_strv_length (fields) < 21 || strcmp (fields[1], "Z") == 0)
    return 0;
  return g_ascii_strtoll (fields[20], NULL, 10);
}

static char *
dup_boot_id (void)
{
  char *text = NULL;

  if (!g_file_get_contents ("/proc/sys/kernel/random/boot_id", &text, NULL, NULL))
    return g_strdup ("");
  return g_strstrip (text);
}

static gboolean
is_alive (gint64 pid, gint64 started, const char *boot)
{
  g_autofree char *now = dup_boot_id ();

  if (pid <= 0 || strcmp (now, boot) != 0)
    return FALSE;
  if (kill ((pid_t)pid, 0) != 0 && errno == ESRCH)
    return FALSE;
  return get_start_time (pid) == started;
}

static gboolean
is_mine (gint64 pid, gint64 started)
{
  return pid == getpid () && started == get_start_time (getpid ());
}

gboolean
ks_store_is_locked_elsewhere (KsStore *self, gint64 session, gint64 *out_pid)
{
  g_autoptr (KsStatement) statement =
      ks_database_query (self->database, NULL,
                         "SELECT pid, started, boot FROM session_lock"
                         " WHERE ?1 = 0 OR session = ?1",
                         "i", session);

  while (statement != NULL && ks_statement_step (statement, NULL)) {
    gint64 pid = ks_statement_get_int (statement, 0);
    gint64 started = ks_statement_get_int (statement, 1);
    g_autofree char *boot = ks_statement_dup_text (statement, 2);

    if (is_mine (pid, started) || !is_alive (pid, started, boot))
      continue;
    if (out_pid != NULL)
      *out_pid = pid;
    return TRUE;
  }
  return FALSE;
}

gboolean
ks_store_check_lock (KsStore *self, gint64 session, GError **error)
{
  gint64 other = 0;

  g_return_val_if_fail (KS_IS_STORE (self), FALSE);
  if (!ks_store_is_locked_elsewhere (self, session, &other))
    return TRUE;
  g_set_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_LOCKED,
               "Another Keepsake (process %" G_GINT64_FORMAT
               ") is answering in this session: it can be read here, and written when that one "
               "has ended.",
               other);
  return FALSE;
}

static gboolean
write_lock (KsStore *self, gint64 session, GError **error)
{
  g_autofree char *boot = dup_boot_id ();
  gint64 pid = getpid (), started = get_start_time (pid);

  if (ks_database_get_int (self->database, 0, "SELECT 1 FROM session WHERE id = ?1", "i",
                           session) == 0) {
    g_set_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_NOT_FOUND,
                 "There is no session %" G_GINT64_FORMAT ".", session);
    return FALSE;
  }
  if (!ks_store_check_lock (self, session, error))
    return FALSE;
  return ks_database_run (self->database, error,
                          "INSERT OR REPLACE INTO session_lock (session, pid, started, boot)"
                          " VALUES (?1, ?2, ?3, ?4)",
                          "iiis", session, pid, started, boot);
}

gboolean
ks_store_lock_session (KsStore *self, gint64 session, GError **error)
{
  gboolean done;

  g_return_val_if_fail (KS_IS_STORE (self), FALSE);
  if (!ks_database_begin (self->database, error))
    return FALSE;
  done = write_lock (self, session, error);
  if (!ks_database_end (self->database, done, error))
    return FALSE;
  g_hash_table_add (self->locks, g_memdup2 (&session, sizeof session));
  return TRUE;
}

void
ks_store_unlock_session (KsStore *self, gint64 session)
{
  g_return_if_fail (KS_IS_STORE (self));
  if (!g_hash_table_remove (self->locks, &session))
    return;
  /* Should this fail, the lock is stale as soon as this process has ended. */
  (void)ks_database_run (self->database, NULL,
                         "DELETE FROM session_lock WHERE session = ?1 AND pid = ?2", "ii", session,
                         (gint64)getpid ());
}

static gboolean
recover_locked (KsStore *self, GArray *sessions, GError **error)
{
  for (guint i = 0; i < sessions->len; i++) {
    gint64 session = g_array_index (sessions, gint64, i);

    if (ks_database_get_int (self->database, 0,
                             "SELECT count (*) FROM session_lock"
                             " WHERE session = ?1 AND pid = ?2 AND started = ?3",
                             "iii", session, (gint64)getpid (), get_start_time (getpid ())) > 0 ||
        ks_store_is_locked_elsewhere (self, session, NULL))
      continue;
    if (!ks_database_run (self->database, error,
                          "UPDATE message SET state = ?2 WHERE session = ?1 AND state = 1", "ii",
                          session, (gint64)KS_MESSAGE_INTERRUPTED) ||
        !ks_database_run (self->database, error, "DELETE FROM session_lock WHERE session = ?1", "i",
                          session))
      return FALSE;
  }
  return TRUE;
}

gboolean
ks_store_recover (KsStore *self, GError **error)
{
  g_autoptr (GArray) sessions = g_array_new (FALSE, FALSE, sizeof (gint64));
  g_autoptr (KsStatement) statement = NULL;
  g_autoptr (GError) local = NULL;

  statement = ks_database_query (self->database, error,
                                 "SELECT session FROM message WHERE state = 1"
                                 " UNION SELECT session FROM session_lock",
                                 "");
  if (statement == NULL)
    return FALSE;
  while (ks_statement_step (statement, &local)) {
    gint64 session = ks_statement_get_int (statement, 0);

    g_array_append_val (sessions, session);
  }
  g_clear_pointer (&statement, ks_statement_done);
  if (local != NULL) {
    g_propagate_error (error, g_steal_pointer (&local));
    return FALSE;
  }
  if (sessions->len == 0)
    return TRUE;
  if (!ks_database_begin (self->database, error))
    return FALSE;
  return ks_database_end (self->database, recover_locked (self, sessions, error), error);
}
