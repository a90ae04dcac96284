/* test-session-service.c - one writer thread: order, results on the caller's context, nothing
 * queued is lost, and a store that cannot be written or opened says so and stays as it is. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-session-service.h"

#include "storage/ks-database.h"
#include "tests/storage/storage-fixture.h"

typedef struct {
  char *dir, *path;
  KsSessionService *service;
} Setup;

static void
set_up (Setup *s, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  s->dir = g_dir_make_tmp ("ks-service-XXXXXX", &error);
  g_assert_no_error (error);
  s->path = g_build_filename (s->dir, "sessions.db", NULL);
  s->service = ks_session_service_new (s->dir);
}

static void
tear_down (Setup *s, gconstpointer data)
{
  g_clear_object (&s->service);
  remove_tree (s->dir);
  g_free (s->path);
  g_free (s->dir);
}

static void
open_service (Setup *s)
{
  g_autoptr (GError) error = NULL;

  g_assert_true (ks_session_service_open (s->service, &error));
  g_assert_no_error (error);
}

/* What the request functions and callbacks of a test see. */
typedef struct {
  GString *ran;  /* one letter a request, in the order of running */
  GString *told; /* one letter a result, in the order of telling */
  GThread *thread;
  guint n_freed;
  GMutex gate; /* requests wait for it */
  GError *error;
} Log;

typedef struct {
  Log *log;
  char letter;
} Entry;

static void
log_init (Log *log)
{
  *log = (Log){.ran = g_string_new (NULL), .told = g_string_new (NULL)};
  g_mutex_init (&log->gate);
}

static void
log_clear (Log *log)
{
  g_string_free (log->ran, TRUE);
  g_string_free (log->told, TRUE);
  g_clear_error (&log->error);
  g_mutex_clear (&log->gate);
}

static Entry *
entry_new (Log *log, char letter)
{
  Entry *entry = g_new (Entry, 1);

  *entry = (Entry){log, letter};
  return entry;
}

static gpointer
write_letter (KsStore *store, gpointer data, GError **error)
{
  Entry *entry = data;
  char title[] = {entry->letter, '\0'};
  KsSession *session;

  g_mutex_lock (&entry->log->gate);
  g_string_append_c (entry->log->ran, entry->letter);
  entry->log->thread = g_thread_self ();
  g_mutex_unlock (&entry->log->gate);
  session = ks_store_add_session (store, title, NULL, error);
  return session;
}

static void
entry_free (gpointer data)
{
  Entry *entry = data;

  g_atomic_int_inc ((gint *)&entry->log->n_freed);
  g_free (entry);
}

static void
told_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  Log *log = user_data;
  g_autoptr (GError) error = NULL;
  g_autoptr (KsSession) session = ks_session_service_call_finish (
      source != NULL ? KS_SESSION_SERVICE (source) : NULL, result, &error);

  g_string_append_c (log->told, session != NULL ? ks_session_get_title (session)[0] : '-');
  if (error != NULL && log->error == NULL)
    log->error = g_steal_pointer (&error);
}

static void
call (Setup *s, Log *log, char letter, GCancellable *cancellable)
{
  ks_session_service_call_async (s->service, write_letter, entry_new (log, letter), entry_free,
                                 g_object_unref, cancellable, told_cb, log);
}

static void
wait_for (Log *log, guint n_told)
{
  while (log->told->len < n_told)
    g_main_context_iteration (NULL, TRUE);
}

/* Requests run one after the other on one thread that is not this one, and their results come in
 * the same order, none of them before the main context runs. */
static void
test_order (Setup *s, gconstpointer data)
{
  Log log;

  log_init (&log);
  open_service (s);
  for (char c = 'a'; c <= 'z'; c++)
    call (s, &log, c, NULL);
  {
    g_autoptr (GError) error = NULL;
    g_autoptr (KsSession) last = NULL;
    Entry entry = {&log, '!'};

    last = ks_session_service_call (s->service, write_letter, &entry, &error);
    g_assert_no_error (error);
    g_assert_cmpstr (ks_session_get_title (last), ==, "!");
  }
  g_assert_cmpstr (log.ran->str, ==, "abcdefghijklmnopqrstuvwxyz!");
  g_assert_cmpuint (log.told->len, ==, 0);
  wait_for (&log, 26);
  g_assert_cmpstr (log.told->str, ==, "abcdefghijklmnopqrstuvwxyz");
  g_assert_true (log.thread != g_thread_self ());
  g_assert_cmpuint (log.n_freed, ==, 26);
  log_clear (&log);
}

static gpointer
ask_elsewhere (gpointer data)
{
  Setup *s = data;
  g_autoptr (GMainContext) context = g_main_context_new ();
  Log log;

  log_init (&log);
  g_main_context_push_thread_default (context);
  call (s, &log, 'x', NULL);
  while (log.told->len == 0)
    g_main_context_iteration (context, TRUE);
  g_main_context_pop_thread_default (context);
  g_assert_cmpstr (log.told->str, ==, "x");
  log_clear (&log);
  return NULL;
}

/* A caller with a main context of its own is answered there: nobody runs the default one here. */
static void
test_context (Setup *s, gconstpointer data)
{
  open_service (s);
  g_thread_join (g_thread_new ("caller", ask_elsewhere, s));
}

/* Cancelled before it begins: it never runs, its data is freed, the result says so.  Cancelled
 * after it ran: it is written, and the result says that instead. */
static void
test_cancel (Setup *s, gconstpointer data)
{
  g_autoptr (GCancellable) early = g_cancellable_new (), late = g_cancellable_new ();
  Log log;

  log_init (&log);
  open_service (s);
  g_mutex_lock (&log.gate); /* the first request holds the thread */
  call (s, &log, 'a', late);
  call (s, &log, 'b', early);
  call (s, &log, 'c', NULL);
  g_cancellable_cancel (early);
  g_mutex_unlock (&log.gate);
  {
    g_autoptr (GError) error = NULL;
    g_autoptr (KsSession) last = NULL;
    Entry entry = {&log, '!'};

    last = ks_session_service_call (s->service, write_letter, &entry, &error);
    g_assert_no_error (error);
  }
  g_cancellable_cancel (late);
  wait_for (&log, 3);
  g_assert_cmpstr (log.ran->str, ==, "ac!");
  g_assert_cmpstr (log.told->str, ==, "a-c");
  g_assert_error (log.error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
  g_assert_cmpuint (log.n_freed, ==, 3);
  log_clear (&log);
}

/* The last unref comes back when everything queued is on the disk; results are told later, with
 * nobody to hold the service any more. */
static void
test_last_unref (Setup *s, gconstpointer data)
{
  g_autoptr (KsStore) store = NULL;
  g_autoptr (GPtrArray) sessions = NULL;
  g_autoptr (GError) error = NULL;
  Log log;

  log_init (&log);
  open_service (s);
  g_mutex_lock (&log.gate);
  for (char c = 'a'; c <= 'j'; c++)
    call (s, &log, c, NULL);
  g_mutex_unlock (&log.gate);
  g_assert_finalize_object (g_steal_pointer (&s->service));
  g_assert_cmpstr (log.ran->str, ==, "abcdefghij");
  store = open_store (s->dir);
  sessions = ks_store_list_sessions (store, 0, 0, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (sessions->len, ==, 10);
  wait_for (&log, 10);
  g_assert_cmpstr (log.told->str, ==, "abcdefghij");
  log_clear (&log);
}

/* Before it was opened, and after opening failed, requests get the reason; opening tries again. */
static void
test_not_open (Setup *s, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  Log log;
  Entry entry;

  log_init (&log);
  entry = (Entry){&log, 'a'};
  g_assert_null (ks_session_service_ref_blobs (s->service));
  g_assert_null (ks_session_service_call (s->service, write_letter, &entry, &error));
  g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_FAILED);
  g_clear_error (&error);
  g_assert_cmpint (g_mkdir (s->path, 0700), ==, 0); /* a folder where the database belongs */
  g_assert_false (ks_session_service_open (s->service, &error));
  g_assert_nonnull (error);
  {
    g_autoptr (GError) later = NULL;

    g_assert_null (ks_session_service_call (s->service, write_letter, &entry, &later));
    g_assert_error (later, error->domain, error->code);
    g_assert_cmpstr (later->message, ==, error->message);
  }
  g_assert_cmpint (g_rmdir (s->path), ==, 0);
  open_service (s);
  g_assert_null (ks_session_service_get_read_only_reason (s->service));
  {
    g_autoptr (GError) none = NULL;
    g_autoptr (KsBlobStore) blobs = ks_session_service_ref_blobs (s->service);
    g_autoptr (KsSession) session =
        ks_session_service_call (s->service, write_letter, &entry, &none);

    g_assert_no_error (none);
    g_assert_nonnull (session);
    g_assert_nonnull (blobs);
  }
  g_assert_cmpstr (log.ran->str, ==, "a");
  log_clear (&log);
}

static gpointer
count_sessions (KsStore *store, gpointer data, GError **error)
{
  g_autoptr (GPtrArray) sessions = ks_store_list_sessions (store, 0, 0, error);

  return sessions != NULL ? GUINT_TO_POINTER (sessions->len) : NULL;
}

static void
read_only_child (gpointer data)
{
  Setup *s = data;
  g_autoptr (GError) error = NULL;
  Log log;
  Entry entry;

  log_init (&log);
  entry = (Entry){&log, 'b'};
  if (geteuid () == 0) /* permissions do not bind root */
    g_assert_true (setgid (65534) == 0 && setuid (65534) == 0);
  s->service = ks_session_service_new (s->dir);
  open_service (s);
  g_assert_nonnull (strstr (ks_session_service_get_read_only_reason (s->service), s->dir));
  g_assert_cmpuint (
      GPOINTER_TO_UINT (ks_session_service_call (s->service, count_sessions, NULL, &error)), ==, 1);
  g_assert_no_error (error);
  g_assert_null (ks_session_service_call (s->service, write_letter, &entry, &error));
  g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_READ_ONLY);
  g_clear_object (&s->service);
  log_clear (&log);
}

/* A folder that cannot be written is read, with a sentence that names the place. */
static void
test_read_only (Setup *s, gconstpointer data)
{
  g_autoptr (GBytes) before = NULL, after = NULL;
  KsStore *store;

  g_clear_object (&s->service);
  store = open_store (s->dir);
  add_session (store, "a");
  g_object_unref (store);
  before = read_bytes (s->path);
  g_assert_cmpint (g_chmod (s->path, 0444), ==, 0);
  g_assert_cmpint (g_chmod (s->dir, 0555), ==, 0);
  run_in_child (read_only_child, s);
  g_assert_cmpint (g_chmod (s->dir, 0755), ==, 0);
  after = read_bytes (s->path);
  g_assert_true (g_bytes_equal (before, after));
}

/* A newer program's database is not opened, and its bytes stay. */
static void
test_newer (Setup *s, gconstpointer data)
{
  g_autoptr (GBytes) before = NULL, after = NULL;
  g_autoptr (GError) error = NULL;
  KsDatabase *database;

  g_object_unref (open_store (s->dir));
  database = ks_database_open (s->path, FALSE, &error);
  g_assert_no_error (error);
  ks_database_trust (database);
  g_assert_true (ks_database_exec (database, "PRAGMA user_version = 99", &error));
  ks_database_close (database);
  before = read_bytes (s->path);
  g_assert_false (ks_session_service_open (s->service, &error));
  g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_NEWER);
  g_assert_nonnull (strstr (error->message, "newer"));
  g_clear_object (&s->service);
  after = read_bytes (s->path);
  g_assert_true (g_bytes_equal (before, after));
}

static gpointer
restore_session (KsStore *store, gpointer data, GError **error)
{
  return GINT_TO_POINTER (ks_store_restore_session (store, *(gint64 *)data, error));
}

static gpointer
delete_session (KsStore *store, gpointer data, GError **error)
{
  return GINT_TO_POINTER (ks_store_delete_session (store, *(gint64 *)data, error));
}

static gint64
count_rows (Setup *s)
{
  g_autoptr (KsDatabase) database = ks_database_open (s->path, TRUE, NULL);

  return database != NULL ? ks_database_get_int (database, -1, "SELECT count (*) FROM session", "")
                          : -1;
}

/* A deletion may be taken back until the service ends; then the row is gone.  What another program
 * has marked meanwhile stays: it may want it back. */
static void
test_purge_own (Setup *s, gconstpointer data)
{
  KsStore *store = open_store (s->dir);
  gint64 mine = add_session (store, "mine"), kept = add_session (store, "kept");
  gint64 other = add_session (store, "other's");
  g_autoptr (GError) error = NULL;

  g_assert_true (ks_store_delete_session (store, other, NULL));
  open_service (s);
  g_assert_nonnull (ks_session_service_call (s->service, delete_session, &mine, &error));
  g_assert_nonnull (ks_session_service_call (s->service, delete_session, &kept, &error));
  g_assert_nonnull (ks_session_service_call (s->service, restore_session, &kept, &error));
  g_assert_no_error (error);
  g_assert_cmpint (count_rows (s), ==, 3);
  g_clear_object (&s->service);
  g_assert_cmpint (count_rows (s), ==, 2);
  g_assert_true (ks_store_restore_session (store, other, &error));
  g_assert_no_error (error);
  g_object_unref (store);
}

/* What a run that was killed had deleted is purged by itself once nothing else is asked. */
static void
test_purge (Setup *s, gconstpointer data)
{
  KsStore *store = open_store (s->dir);
  gint64 id = add_session (store, "gone");
  gboolean gone = FALSE;
  KsDatabase *database;

  g_assert_true (ks_store_delete_session (store, id, NULL));
  g_object_unref (store);
  database = ks_database_open (s->path, FALSE, NULL);
  ks_database_trust (database);
  g_assert_true (ks_database_exec (database, "UPDATE session SET deleted_us = 1", NULL));
  ks_database_close (database);
  open_service (s);
  while (!gone) { /* the test's time limit ends it */
    gone = count_rows (s) == 0;
    if (!gone)
      g_usleep (20000);
  }
  {
    g_autoptr (GError) error = NULL;

    g_assert_null (ks_session_service_call (s->service, restore_session, &id, &error));
    g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_NOT_FOUND);
  }
}

static void
opened_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (GError) error = NULL;
  gboolean *opened = user_data;

  *opened = ks_session_service_open_finish (KS_SESSION_SERVICE (source), result, &error);
  g_assert_no_error (error);
}

/* What is queued behind the opening is done by the opened store. */
static void
test_open_async (Setup *s, gconstpointer data)
{
  gboolean opened = FALSE;
  Log log;

  log_init (&log);
  ks_session_service_open_async (s->service, NULL, opened_cb, &opened);
  call (s, &log, 'a', NULL);
  wait_for (&log, 1);
  g_assert_true (opened);
  g_assert_cmpstr (log.told->str, ==, "a");
  g_assert_cmpstr (ks_session_service_get_dir (s->service), ==, s->dir);
  log_clear (&log);
}

#define ADD(name, func) g_test_add (name, Setup, NULL, set_up, func, tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("/session-service/order", test_order);
  ADD ("/session-service/context", test_context);
  ADD ("/session-service/cancel", test_cancel);
  ADD ("/session-service/last-unref", test_last_unref);
  ADD ("/session-service/not-open", test_not_open);
  ADD ("/session-service/read-only", test_read_only);
  ADD ("/session-service/newer", test_newer);
  ADD ("/session-service/purge-own", test_purge_own);
  ADD ("/session-service/purge", test_purge);
  ADD ("/session-service/open-async", test_open_async);
  return g_test_run ();
}
