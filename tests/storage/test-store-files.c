/* test-store-files.c - a database that is newer, older, truncated, foreign, read-only or on a full
 * disk gets a clear error, and its bytes stay as they were. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-migrations.h"
#include "storage/ks-schema.h"
#include "tests/storage/storage-fixture.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

static void
fill (Fixture *f)
{
  gint64 s = add_session (f->store, "kept");

  for (guint i = 0; i < 20; i++)
    add_message (f->store, s, 0, KS_MESSAGE_USER, "a sentence that fills the pages of the file");
  g_clear_object (&f->store);
}

static void
assert_refused (Fixture *f, KsStorageError code)
{
  g_autoptr (GBytes) before = read_bytes (f->path), after = NULL;

  for (guint read_only = 0; read_only < 2; read_only++) {
    g_autoptr (GError) error = NULL;

    g_assert_null (ks_store_open (f->dir, (gboolean)read_only, &error));
    g_assert_error (error, KS_STORAGE_ERROR, (int)code);
  }
  after = read_bytes (f->path);
  g_assert_true (g_bytes_equal (before, after));
}

static void
edit (Fixture *f, const char *sql)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsDatabase) database = ks_database_open (f->path, FALSE, &error);

  g_assert_no_error (error);
  ks_database_trust (database);
  g_assert_true (ks_database_exec (database, sql, &error));
  g_assert_no_error (error);
}

static void
test_newer (Fixture *f, gconstpointer data)
{
  fill (f);
  edit (f, "PRAGMA user_version = 99");
  assert_refused (f, KS_STORAGE_ERROR_NEWER);
  edit (f, "PRAGMA user_version = 3");
  f->store = open_store (f->dir);
  assert_sound (f->store);
}

/* The newer program has crashed: its log must neither be folded in nor thrown away. */
static void
test_newer_log (Fixture *f, gconstpointer data)
{
  g_autofree char *wal = g_strconcat (f->path, "-wal", NULL);
  g_autoptr (GBytes) before = NULL, after = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (KsDatabase) database = NULL;

  fill (f);
  database = ks_database_open (f->path, FALSE, &error); /* not trusted: leaves its log behind */
  g_assert_true (ks_database_exec (database, "PRAGMA user_version = 99", &error));
  g_clear_pointer (&database, ks_database_close);
  before = read_bytes (wal);
  g_assert_cmpuint (g_bytes_get_size (before), >, 0);
  assert_refused (f, KS_STORAGE_ERROR_NEWER);
  after = read_bytes (wal);
  g_assert_true (g_bytes_equal (before, after));
}

static void
test_truncated (Fixture *f, gconstpointer data)
{
  g_autoptr (GBytes) whole = NULL;
  gsize sizes[] = {1, 15, 50, 99, 100, 600, 4096, 8192, 0, 0};

  fill (f);
  whole = read_bytes (f->path);
  sizes[8] = g_bytes_get_size (whole) / 2;
  sizes[9] = g_bytes_get_size (whole) - 4096;
  for (guint i = 0; i < G_N_ELEMENTS (sizes); i++) {
    g_test_message ("cut to %" G_GSIZE_FORMAT " bytes", sizes[i]);
    g_assert_true (
        g_file_set_contents (f->path, g_bytes_get_data (whole, NULL), (gssize)sizes[i], NULL));
    assert_refused (f, KS_STORAGE_ERROR_DAMAGED);
  }
}

static void
test_foreign (Fixture *f, gconstpointer data)
{
  g_clear_object (&f->store);
  g_assert_true (g_file_set_contents (f->path,
                                      "This is a letter, not a database, and longer than "
                                      "the magic of one.",
                                      -1, NULL));
  assert_refused (f, KS_STORAGE_ERROR_DAMAGED);
  g_assert_cmpint (g_unlink (f->path), ==, 0);
  edit (f, "CREATE TABLE theirs (a)");
  assert_refused (f, KS_STORAGE_ERROR_DAMAGED);
  /* Damage inside, which only the check finds. */
  g_assert_cmpint (g_unlink (f->path), ==, 0);
  f->store = open_store (f->dir);
  add_message (f->store, add_session (f->store, "s"), 0, KS_MESSAGE_USER, "text");
  g_clear_object (&f->store);
  edit (f, "UPDATE session SET leaf = 77");
  f->store = open_store (f->dir);
  g_assert_false (ks_store_check (f->store, NULL));
}

#define STEP_1 "CREATE TABLE a (b); INSERT INTO a VALUES ('old')"

/* An older file is copied first; a step that fails leaves it as it was. */
static void
test_older (Fixture *f, gconstpointer data)
{
  const char *const good[] = {STEP_1, "ALTER TABLE a ADD COLUMN c; UPDATE a SET c = 'new'"};
  const char *const bad[] = {STEP_1, "UPDATE a SET b = 'lost'; CREATE TABLE a (b)"};
  g_autofree char *path = g_build_filename (f->dir, "older.db", NULL);
  g_autofree char *backup = ks_migrations_make_backup_path (path, 1);
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) before = NULL, after = NULL;
  KsDatabase *database = ks_database_open (path, FALSE, &error);
  struct stat st;

  g_assert_true (ks_migrations_run_steps (database, good, 1, &error));
  g_assert_no_error (error);
  ks_database_close (database);
  before = read_bytes (path);
  g_assert_false (g_file_test (backup, G_FILE_TEST_EXISTS));

  database = ks_database_open (path, FALSE, &error);
  g_assert_false (ks_migrations_run_steps (database, bad, 2, &error));
  g_assert_nonnull (error);
  g_clear_error (&error);
  ks_database_close (database);
  after = read_bytes (path);
  g_assert_true (g_bytes_equal (before, after));

  database = ks_database_open (path, TRUE, &error);
  g_assert_false (ks_migrations_run_steps (database, good, 2, &error));
  g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_READ_ONLY);
  g_clear_error (&error);
  ks_database_close (database);

  database = ks_database_open (path, FALSE, &error);
  g_assert_true (ks_migrations_run_steps (database, good, 2, &error));
  g_assert_no_error (error);
  g_assert_cmpint (ks_database_get_int (database, 0, "SELECT count (*) FROM a WHERE c = 'new'", ""),
                   ==, 1);
  ks_database_close (database);
  g_assert_cmpint (g_stat (backup, &st), ==, 0);
  g_assert_cmpuint (st.st_mode & 0777, ==, 0600);
  database = ks_database_open (backup, TRUE, &error);
  g_assert_cmpint (ks_database_get_int (database, 0, "PRAGMA user_version", ""), ==, 1);
  g_assert_cmpint (ks_database_get_int (database, 0, "SELECT count (*) FROM a WHERE b = 'old'", ""),
                   ==, 1);
  ks_database_close (database);
}

/* What is pinned is found again, turn and file apart, and let go again. */
static void
assert_pins (KsStore *store, gint64 session, gint64 message, const char *hash)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) before = list_messages (store, session), after = NULL, last = NULL;

  g_assert_false (ks_message_is_pinned (g_ptr_array_index (before, 0), NULL));
  g_assert_false (ks_message_is_pinned (g_ptr_array_index (before, 0), hash));
  g_assert_true (ks_store_set_pinned (store, message, hash, TRUE, &error));
  g_assert_no_error (error);
  after = list_messages (store, session);
  g_assert_false (ks_message_is_pinned (g_ptr_array_index (after, 0), NULL));
  g_assert_true (ks_message_is_pinned (g_ptr_array_index (after, 0), hash));
  g_assert_true (ks_store_set_pinned (store, message, NULL, TRUE, &error));
  g_assert_true (ks_store_set_pinned (store, message, hash, FALSE, &error));
  g_assert_no_error (error);
  last = list_messages (store, session);
  g_assert_true (ks_message_is_pinned (g_ptr_array_index (last, 0), NULL));
  g_assert_false (ks_message_is_pinned (g_ptr_array_index (last, 0), hash));
  g_assert_false (ks_store_set_pinned (store, message, "none", TRUE, &error));
  g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_NOT_FOUND);
}

/* A file of the first schema opens with every attachment it had, and takes the new kinds and pins.
 */
static void
test_first_schema (Fixture *f, gconstpointer data)
{
  const char *const first[] = {ks_schema_001};
  g_autofree char *dir = g_build_filename (f->dir, "first", NULL);
  g_autofree char *path = g_build_filename (dir, "sessions.db", NULL);
  g_autofree char *hash = g_strnfill (64, 'a'), *sql = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (KsStore) store = NULL;
  g_autoptr (GPtrArray) messages = NULL;
  g_autoptr (KsAttachment) old = NULL;
  KsDatabase *database;

  g_assert_cmpint (g_mkdir (dir, 0700), ==, 0);
  database = ks_database_open (path, FALSE, &error);
  g_assert_true (ks_migrations_run_steps (database, first, 1, &error));
  sql = g_strdup_printf (
      "INSERT INTO session (id, title, created_us, updated_us, leaf, n_messages)"
      " VALUES (7, 's', 1, 1, 9, 1);"
      "INSERT INTO message (id, session, role, state, text, created_us)"
      " VALUES (9, 7, 1, 0, 'see', 1);"
      "INSERT INTO attachment (message, kind, name, hash, n_bytes, width_px, height_px)"
      " VALUES (9, 2, 'cat.png', '%s', 5, 3, 2)",
      hash);
  g_assert_true (ks_database_exec (database, sql, &error));
  g_assert_no_error (error);
  ks_database_close (database);
  store = open_store (dir);
  assert_sound (store);
  messages = list_messages (store, 7);
  old = g_list_model_get_item (ks_message_get_attachments (g_ptr_array_index (messages, 0)), 0);
  g_assert_cmpint (ks_attachment_get_kind (old), ==, KS_ATTACHMENT_IMAGE);
  g_assert_cmpstr (ks_attachment_get_name (old), ==, "cat.png");
  g_assert_cmpuint (ks_attachment_get_height_px (old), ==, 2);
  g_assert_null (ks_attachment_get_reading (old));
  assert_pins (store, 7, 9, hash);
}

static void
read_only_child (gpointer data)
{
  Fixture *f = data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) sessions = NULL;

  /* Permissions do not bind root. */
  if (geteuid () == 0)
    g_assert_true (setgid (65534) == 0 && setuid (65534) == 0);
  g_assert_null (ks_store_open (f->dir, FALSE, &error));
  g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_READ_ONLY);
  g_clear_error (&error);
  f->store = ks_store_open (f->dir, TRUE, &error);
  g_assert_no_error (error);
  sessions = ks_store_list_sessions (f->store, 0, 0, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (sessions->len, ==, 1);
  assert_sound (f->store);
  g_assert_null (ks_store_add_session (f->store, "x", NULL, &error));
  g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_READ_ONLY);
  g_clear_object (&f->store);
}

static void
test_read_only (Fixture *f, gconstpointer data)
{
  g_autoptr (GBytes) before = NULL, after = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree char *nowhere = g_build_filename (f->dir, "nowhere", NULL);

  fill (f);
  before = read_bytes (f->path);
  g_assert_cmpint (g_chmod (f->path, 0444), ==, 0);
  g_assert_cmpint (g_chmod (f->dir, 0555), ==, 0);
  run_in_child (read_only_child, f);
  g_assert_cmpint (g_chmod (f->dir, 0755), ==, 0);
  after = read_bytes (f->path);
  g_assert_true (g_bytes_equal (before, after));
  g_assert_null (ks_store_open (nowhere, TRUE, &error));
  g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_NOT_FOUND);
}

/* Adds messages until the disk is full; each one that was acknowledged is there. */
static void
fill_disk (KsStore *store, gint64 s)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = g_strnfill (20000, 'x');
  g_autoptr (GPtrArray) messages = NULL;
  gint64 parent = 0;
  guint n = 0;

  while (error == NULL && n < 1000) {
    g_autoptr (KsMessage) message = ks_store_add_message (store, s, parent, KS_MESSAGE_USER,
                                                          KS_MESSAGE_COMPLETE, text, NULL, &error);

    if (message != NULL) {
      parent = ks_message_get_id (message);
      n++;
    }
  }
  g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_FULL);
  g_assert_cmpuint (n, >, 0);
  messages = list_messages (store, s);
  g_assert_cmpuint (messages->len, ==, n);
  assert_sound (store);
}

static void
limit_child (gpointer data)
{
  Fixture *f = data;
  struct rlimit limit = {600000, 600000};
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) big = g_bytes_new_take (g_malloc0 (700000), 700000);

  signal (SIGXFSZ, SIG_IGN);
  g_assert_cmpint (setrlimit (RLIMIT_FSIZE, &limit), ==, 0);
  f->store = open_store (f->dir);
  fill_disk (f->store, add_session (f->store, "s"));
  g_assert_null (ks_blob_store_add (ks_store_get_blobs (f->store), big, &error));
  g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_FULL);
  g_assert_cmpuint (count_files (f->dir, "blobs"), ==, 0);
  g_clear_object (&f->store);
}

static void
test_size_limit (Fixture *f, gconstpointer data)
{
  fill (f);
  run_in_child (limit_child, f);
  f->store = open_store (f->dir);
  assert_sound (f->store);
  add_session (f->store, "again");
}

static void
full_disk_child (gpointer data)
{
  Fixture *f = data;
  g_autofree char *filler = g_build_filename (f->dir, "filler", NULL);
  g_autofree char *zeros = g_malloc0 (700000);
  g_autoptr (GError) error = NULL;
  gint64 s;

  /* A namespace of its own: the mount ends with this process. */
  if (unshare (CLONE_NEWNS) != 0 || mount (NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
      mount ("none", f->dir, "tmpfs", 0, "size=716800") != 0)
    _exit (77);
  g_assert_true (
      g_file_set_contents_full (filler, zeros, 700000, G_FILE_SET_CONTENTS_NONE, 0600, NULL));
  g_assert_null (ks_store_open (f->dir, FALSE, &error));
  g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_FULL);
  g_assert_cmpint (g_unlink (filler), ==, 0);
  f->store = open_store (f->dir);
  s = add_session (f->store, "s");
  fill_disk (f->store, s);
  g_assert_cmpint (mount ("none", f->dir, "tmpfs", MS_REMOUNT, "size=4m"), ==, 0);
  add_message (f->store, s, 0, KS_MESSAGE_USER, "room again");
  g_clear_object (&f->store);
  f->store = open_store (f->dir);
  assert_path (f->store, s, "room again");
  g_clear_object (&f->store);
}

static void
test_full_disk (Fixture *f, gconstpointer data)
{
  pid_t pid;
  int status = 0;

  g_clear_object (&f->store);
  pid = fork ();
  if (pid == 0) {
    full_disk_child (f);
    _exit (0);
  }
  g_assert_cmpint (waitpid (pid, &status, 0), ==, pid);
  g_assert_true (WIFEXITED (status));
  if (WEXITSTATUS (status) == 77)
    g_test_skip ("no right to mount a small disk; /files/size-limit shows the same by a limit");
  else
    g_assert_cmpint (WEXITSTATUS (status), ==, 0);
}

#define ADD(name, func) g_test_add (name, Fixture, NULL, fixture_set_up, func, fixture_tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("/files/newer", test_newer);
  ADD ("/files/newer-log", test_newer_log);
  ADD ("/files/truncated", test_truncated);
  ADD ("/files/foreign", test_foreign);
  ADD ("/files/older", test_older);
  ADD ("/files/first-schema", test_first_schema);
  ADD ("/files/read-only", test_read_only);
  ADD ("/files/size-limit", test_size_limit);
  ADD ("/files/full-disk", test_full_disk);
  return g_test_run ();
}
