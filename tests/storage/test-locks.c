/* test-locks.c - one process answers in a session; locks of the dead are taken over. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-database.h"
#include "tests/storage/storage-fixture.h"

/* Starts a process that locks the session and streams into it until it is killed. */
static pid_t
start_holder (const char *dir, gint64 session)
{
  int ready[2];
  char byte = 0;
  pid_t pid;

  g_assert_cmpint (pipe (ready), ==, 0);
  pid = fork ();
  g_assert_cmpint (pid, >=, 0);
  if (pid == 0) {
    KsStore *store = open_store (dir);

    g_assert_true (ks_store_lock_session (store, session, NULL));
    g_assert_nonnull (ks_store_add_message (store, session, 0, KS_MESSAGE_ASSISTANT,
                                            KS_MESSAGE_STREAMING, "being written", NULL, NULL));
    g_assert_cmpint (write (ready[1], "r", 1), ==, 1);
    for (;;)
      pause ();
  }
  close (ready[1]);
  g_assert_cmpint (read (ready[0], &byte, 1), ==, 1);
  close (ready[0]);
  return pid;
}

static KsMessageState
get_state (KsStore *store, gint64 session)
{
  g_autoptr (GPtrArray) messages = list_messages (store, session);

  return ks_message_get_state (g_ptr_array_index (messages, messages->len - 1));
}

static void
test_other_process (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  gint64 s = add_session (f->store, "s"), other = add_session (f->store, "other");
  pid_t pid;

  g_clear_object (&f->store); /* no connection crosses a fork */
  pid = start_holder (f->dir, s);
  f->store = open_store (f->dir);
  g_assert_false (ks_store_lock_session (f->store, s, &error));
  g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_LOCKED);
  g_clear_error (&error);
  g_assert_false (ks_store_delete_session (f->store, s, &error));
  g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_LOCKED);
  g_clear_error (&error);
  g_assert_false (ks_store_delete_all (f->store, &error));
  g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_LOCKED);
  g_clear_error (&error);
  /* Reading and other sessions go on; the answer of the living is left alone. */
  g_assert_cmpint (get_state (f->store, s), ==, KS_MESSAGE_STREAMING);
  g_assert_true (ks_store_lock_session (f->store, other, &error));
  g_assert_no_error (error);
  g_assert_cmpint (kill (pid, SIGKILL), ==, 0);
  g_assert_cmpint (waitpid (pid, NULL, 0), ==, pid);
  g_assert_true (ks_store_lock_session (f->store, s, &error));
  g_assert_no_error (error);
  ks_store_unlock_session (f->store, s);
  g_clear_object (&f->store);
  f->store = open_store (f->dir);
  g_assert_cmpint (get_state (f->store, s), ==, KS_MESSAGE_INTERRUPTED);
}

/* Alive, but not the process that locked: another start time, or another boot. */
static void
test_reused_pid (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsDatabase) database = ks_database_open (f->path, FALSE, &error);
  gint64 s = add_session (f->store, "s"), t = add_session (f->store, "t");
  g_autofree char *boot = NULL;

  g_assert_no_error (error);
  g_assert_true (g_file_get_contents ("/proc/sys/kernel/random/boot_id", &boot, NULL, NULL));
  g_strstrip (boot);
  g_assert_true (ks_database_run (database, &error,
                                  "INSERT INTO session_lock VALUES (?1, ?2, 12, ?3)", "iis", s,
                                  (gint64)getppid (), boot));
  g_assert_true (ks_database_run (database, &error,
                                  "INSERT INTO session_lock VALUES (?1, ?2, 12, 'yesterday')", "ii",
                                  t, (gint64)getppid ()));
  g_assert_true (ks_store_lock_session (f->store, s, &error));
  g_assert_true (ks_store_lock_session (f->store, t, &error));
  g_assert_no_error (error);
}

/* Locks end with the store; the same process may lock twice. */
static void
test_own (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  gint64 s = add_session (f->store, "s");

  g_assert_true (ks_store_lock_session (f->store, s, &error));
  g_assert_true (ks_store_lock_session (f->store, s, &error));
  g_clear_object (&f->store);
  {
    g_autoptr (KsDatabase) database = ks_database_open (f->path, TRUE, &error);

    g_assert_no_error (error);
    g_assert_cmpint (ks_database_get_int (database, -1, "SELECT count (*) FROM session_lock", ""),
                     ==, 0);
  }
  f->store = open_store (f->dir);
  g_assert_false (ks_store_lock_session (f->store, 999, &error));
  g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_NOT_FOUND);
}

static gpointer
hold_writing (gpointer data)
{
  KsDatabase *database = data;

  g_usleep (G_USEC_PER_SEC);
  return GINT_TO_POINTER (ks_database_end (database, TRUE, NULL));
}

/* Another program that writes for a moment makes ours wait, not fail. */
static void
test_busy (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsDatabase) database = ks_database_open (f->path, FALSE, &error);
  g_autoptr (KsSession) session = NULL;
  gint64 began = g_get_monotonic_time ();
  GThread *thread;

  g_assert_no_error (error);
  g_assert_true (ks_database_begin (database, &error));
  thread = g_thread_new ("other", hold_writing, database);
  session = ks_store_add_session (f->store, "waited", NULL, &error);
  g_assert_no_error (error);
  g_assert_nonnull (session);
  g_assert_cmpint (g_get_monotonic_time () - began, >=, G_USEC_PER_SEC * 9 / 10);
  g_assert_nonnull (g_thread_join (thread));
}

#define ADD(name, func) g_test_add (name, Fixture, NULL, fixture_set_up, func, fixture_tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("/locks/other-process", test_other_process);
  ADD ("/locks/reused-pid", test_reused_pid);
  ADD ("/locks/own", test_own);
  ADD ("/locks/busy", test_busy);
  return g_test_run ();
}
