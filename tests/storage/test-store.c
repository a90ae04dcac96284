/* test-store.c - what is stored comes back after closing: sessions, settings, messages, branches,
 * attachments; deletion can be undone until the purge, which counts blobs. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "storage/ks-database.h"
#include "tests/storage/storage-fixture.h"

#include <utime.h>

static void
reopen (Fixture *f)
{
  g_clear_object (&f->store);
  f->store = open_store (f->dir);
}

static void
test_session_round_trip (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsSessionSettings) settings = ks_session_settings_new ();
  g_autoptr (KsSessionSettings) back = NULL;
  g_autoptr (KsSession) session = NULL, again = NULL;
  struct stat st;

  settings->model = g_strdup ("smollm2");
  settings->system_prompt = g_strdup ("Antworte auf Deutsch; 간단히.");
  settings->budget_bytes = G_GINT64_CONSTANT (9) << 40;
  settings->temperature = 0.1 + 0.2;
  settings->seed = G_MAXINT64;
  settings->top_k = 0;
  session = ks_store_add_session (f->store, "Ein Name", settings, &error);
  g_assert_no_error (error);
  reopen (f);
  again = ks_store_get_session (f->store, ks_session_get_id (session), &error);
  g_assert_no_error (error);
  g_assert_cmpstr (ks_session_get_title (again), ==, "Ein Name");
  g_assert_cmpint (ks_session_get_created_us (again), ==, ks_session_get_created_us (session));
  back = ks_store_get_settings (f->store, ks_session_get_id (session), &error);
  g_assert_no_error (error);
  g_assert_cmpstr (back->model, ==, "smollm2");
  g_assert_cmpstr (back->system_prompt, ==, settings->system_prompt);
  g_assert_null (back->policy);
  g_assert_cmpint (back->budget_bytes, ==, settings->budget_bytes);
  g_assert_cmpint (back->kv_budget_bytes, ==, -1);
  g_assert_true (back->temperature == settings->temperature);
  g_assert_true (back->top_p == -1);
  g_assert_cmpint (back->seed, ==, G_MAXINT64);
  g_assert_cmpint (back->top_k, ==, 0);
  g_assert_cmpint (back->max_tokens, ==, -1);
  g_assert_cmpint (g_stat (f->path, &st), ==, 0);
  g_assert_cmpuint (st.st_mode & 0777, ==, 0600);
}

static void
test_session_list (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  gint64 a = add_session (f->store, "Alpha"), b = add_session (f->store, "Beta one");
  gint64 c = add_session (f->store, "Beta two");
  g_autoptr (GPtrArray) all = NULL, page = NULL;
  g_autoptr (KsSession) found = NULL;

  add_message (f->store, a, 0, KS_MESSAGE_USER, "newest now");
  all = ks_store_list_sessions (f->store, 0, 0, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (all->len, ==, 3);
  g_assert_cmpint (ks_session_get_id (g_ptr_array_index (all, 0)), ==, a);
  g_assert_cmpuint (ks_session_get_n_messages (g_ptr_array_index (all, 0)), ==, 1);
  page = ks_store_list_sessions (f->store, 1, 1, &error);
  g_assert_cmpuint (page->len, ==, 1);
  g_assert_cmpint (ks_session_get_id (g_ptr_array_index (page, 0)), ==, c);
  g_assert_true (ks_store_rename_session (f->store, b, "Gamma % _", &error));
  found = ks_store_find_session (f->store, "beta", &error);
  g_assert_no_error (error);
  g_assert_cmpint (ks_session_get_id (found), ==, c);
  g_clear_object (&found);
  g_assert_null (ks_store_find_session (f->store, "%", &error));
  g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_NOT_FOUND);
  g_clear_error (&error);
  add_session (f->store, "Beta three");
  g_assert_null (ks_store_find_session (f->store, "Beta", &error));
  g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_FAILED);
  g_clear_error (&error);
  g_assert_false (ks_store_rename_session (f->store, 999, "x", &error));
  g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_NOT_FOUND);
}

static void
test_messages (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  gint64 session = add_session (f->store, "s");
  gint64 question = add_message (f->store, session, 0, KS_MESSAGE_USER, "Frage\xff?");
  g_autoptr (KsMessage) answer = ks_store_add_message (
      f->store, session, question, KS_MESSAGE_ASSISTANT, KS_MESSAGE_STREAMING, "", NULL, &error);
  g_autoptr (GPtrArray) messages = NULL;
  KsMessage *last;

  g_assert_no_error (error);
  g_assert_true (ks_store_update_message (f->store, ks_message_get_id (answer), "Ant",
                                          KS_MESSAGE_STREAMING, 1, NULL, &error));
  g_assert_true (ks_store_update_message (f->store, ks_message_get_id (answer), "Antwort",
                                          KS_MESSAGE_FAILED, 3, "out of memory", &error));
  g_assert_no_error (error);
  reopen (f);
  messages = list_messages (f->store, session);
  g_assert_cmpuint (messages->len, ==, 2);
  g_assert_true (g_utf8_validate (ks_message_get_text (g_ptr_array_index (messages, 0)), -1, NULL));
  last = g_ptr_array_index (messages, 1);
  g_assert_cmpstr (ks_message_get_text (last), ==, "Antwort");
  g_assert_cmpstr (ks_message_get_error (last), ==, "out of memory");
  g_assert_cmpint (ks_message_get_state (last), ==, KS_MESSAGE_FAILED);
  g_assert_cmpuint (ks_message_get_n_tokens (last), ==, 3);
  g_assert_cmpint (ks_message_get_parent_id (last), ==, question);
  g_assert_null (ks_store_add_message (f->store, session, 999, KS_MESSAGE_USER, KS_MESSAGE_COMPLETE,
                                       "x", NULL, &error));
  g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_NOT_FOUND);
  assert_sound (f->store);
}

/* Without a living holder of the session's lock, an answer found streaming was interrupted. */
static void
test_interrupted (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  gint64 session = add_session (f->store, "s");
  g_autoptr (KsMessage) answer =
      ks_store_add_message (f->store, session, 0, KS_MESSAGE_ASSISTANT, KS_MESSAGE_STREAMING,
                            "half an answ", NULL, &error);
  g_autoptr (GPtrArray) messages = NULL;

  reopen (f);
  messages = list_messages (f->store, session);
  g_assert_cmpint (ks_message_get_state (g_ptr_array_index (messages, 0)), ==,
                   KS_MESSAGE_INTERRUPTED);
  g_assert_cmpstr (ks_message_get_text (g_ptr_array_index (messages, 0)), ==, "half an answ");
}

/* q1 - a1 - q2 - a2
 *    \ b1 - q3        a branch is found again where it was left, also over two levels */
static void
test_branches (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  gint64 s = add_session (f->store, "s");
  gint64 q1 = add_message (f->store, s, 0, KS_MESSAGE_USER, "q1");
  gint64 a1 = add_message (f->store, s, q1, KS_MESSAGE_ASSISTANT, "a1");
  gint64 q2 = add_message (f->store, s, a1, KS_MESSAGE_USER, "q2");
  gint64 a2 = add_message (f->store, s, q2, KS_MESSAGE_ASSISTANT, "a2"), b1, c2;
  g_autoptr (GPtrArray) messages = NULL;

  assert_path (f->store, s, "q1 a1 q2 a2");
  b1 = add_message (f->store, s, q1, KS_MESSAGE_ASSISTANT, "b1");
  add_message (f->store, s, b1, KS_MESSAGE_USER, "q3");
  assert_path (f->store, s, "q1 b1 q3");
  messages = list_messages (f->store, s);
  g_assert_cmpuint (ks_message_get_sibling (g_ptr_array_index (messages, 1)), ==, 1);
  g_assert_cmpuint (ks_message_get_n_siblings (g_ptr_array_index (messages, 1)), ==, 2);
  g_assert_cmpuint (ks_message_get_n_siblings (g_ptr_array_index (messages, 0)), ==, 1);
  g_assert_true (ks_store_select_branch (f->store, b1, 0, &error));
  assert_path (f->store, s, "q1 a1 q2 a2");
  c2 = add_message (f->store, s, q2, KS_MESSAGE_ASSISTANT, "c2");
  assert_path (f->store, s, "q1 a1 q2 c2");
  g_assert_true (ks_store_select_branch (f->store, c2, 0, &error));
  assert_path (f->store, s, "q1 a1 q2 a2");
  g_assert_true (ks_store_select_branch (f->store, a1, 1, &error));
  assert_path (f->store, s, "q1 b1 q3");
  g_assert_true (ks_store_select_branch (f->store, a1, 0, &error));
  reopen (f);
  assert_path (f->store, s, "q1 a1 q2 a2");
  g_assert_false (ks_store_select_branch (f->store, a2, 2, &error));
  g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_NOT_FOUND);
  assert_path (f->store, s, "q1 a1 q2 a2");
  /* Another beginning is a branch as well. */
  add_message (f->store, s, 0, KS_MESSAGE_USER, "q1b");
  assert_path (f->store, s, "q1b");
  g_assert_true (ks_store_select_branch (f->store, q1, 0, NULL));
  assert_path (f->store, s, "q1 a1 q2 a2");
  assert_sound (f->store);
}

static void
test_attachments (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *hash = add_blob (f->store, "picture", 7);
  g_autofree char *text_hash = add_blob (f->store, "text", 4);
  g_autofree char *blob = ks_blob_store_get_path (ks_store_get_blobs (f->store), hash);
  gint64 s = add_session (f->store, "s");
  g_autoptr (GPtrArray) messages = NULL, unknown = NULL;
  g_autoptr (KsAttachment) back = NULL;
  GListModel *model;
  struct stat st;

  add_with_blob (f->store, s, "../photo.png", hash, text_hash, 7);
  messages = list_messages (f->store, s);
  model = ks_message_get_attachments (g_ptr_array_index (messages, 0));
  g_assert_cmpuint (g_list_model_get_n_items (model), ==, 1);
  back = g_list_model_get_item (model, 0);
  g_assert_cmpstr (ks_attachment_get_name (back), ==, "../photo.png");
  g_assert_cmpstr (ks_attachment_get_hash (back), ==, hash);
  g_assert_cmpstr (ks_attachment_get_text_hash (back), ==, text_hash);
  g_assert_cmpuint (ks_attachment_get_n_bytes (back), ==, 7);
  g_assert_cmpuint (ks_attachment_get_width_px (back), ==, 3);
  g_assert_cmpint (g_stat (blob, &st), ==, 0);
  g_assert_cmpuint (st.st_mode & 0777, ==, 0600);
  unknown = g_ptr_array_new_with_free_func (g_object_unref);
  g_ptr_array_add (unknown, ks_attachment_new (
                                KS_ATTACHMENT_TEXT, "gone",
                                "0123456789012345678901234567890123456789012345678901234567890123",
                                1, NULL, 0, 0, 0));
  g_assert_null (ks_store_add_message (f->store, s, 0, KS_MESSAGE_USER, KS_MESSAGE_COMPLETE, "x",
                                       unknown, &error));
  g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_NOT_FOUND);
  g_clear_error (&error);
  g_assert_true (g_file_set_contents (blob, "pictuRe", 7, NULL));
  g_assert_null (ks_blob_store_get (ks_store_get_blobs (f->store), hash, &error));
  g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_DAMAGED);
  g_free (add_blob (f->store, "picture", 7)); /* repairs it */
  g_clear_error (&error);
  g_bytes_unref (ks_blob_store_get (ks_store_get_blobs (f->store), hash, &error));
  g_assert_no_error (error);
  g_assert_null (ks_blob_store_get_path (ks_store_get_blobs (f->store), "../sessions.db"));
}

/* A blob lives as long as one message refers to it; undo brings everything back. */
static void
test_delete (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *shared = add_blob (f->store, "shared", 6), *own = add_blob (f->store, "own", 3);
  gint64 a = add_session (f->store, "a"), b = add_session (f->store, "b");
  KsBlobStore *blobs = ks_store_get_blobs (f->store);
  g_autoptr (GPtrArray) left = NULL;

  add_with_blob (f->store, a, "s", shared, own, 6);
  add_with_blob (f->store, b, "s", shared, NULL, 6);
  g_assert_true (ks_store_delete_session (f->store, a, &error));
  g_assert_null (ks_store_get_session (f->store, a, NULL));
  g_assert_null (ks_store_list_messages (f->store, a, NULL));
  g_assert_true (ks_store_restore_session (f->store, a, &error));
  assert_path (f->store, a, "see");
  g_assert_true (ks_store_delete_session (f->store, a, &error));
  g_assert_true (ks_store_purge (f->store, &error));
  g_assert_no_error (error);
  g_assert_false (ks_blob_store_has (blobs, own));
  g_assert_true (ks_blob_store_has (blobs, shared));
  g_assert_false (ks_store_restore_session (f->store, a, &error));
  g_assert_error (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_NOT_FOUND);
  g_clear_error (&error);
  left = ks_store_list_sessions (f->store, 0, 0, &error);
  g_assert_cmpuint (left->len, ==, 1);
  g_assert_true (ks_store_delete_session (f->store, b, &error));
  g_assert_true (ks_store_purge (f->store, &error));
  g_assert_cmpuint (count_files (f->dir, "blobs"), ==, 0);
  assert_sound (f->store);
}

/* What a crash left between writing a blob and its row goes, but not before an hour. */
static void
test_sweep (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *fresh = add_blob (f->store, "fresh", 5), *old = add_blob (f->store, "old", 3);
  g_autofree char *used = add_blob (f->store, "used", 4);
  KsBlobStore *blobs = ks_store_get_blobs (f->store);
  g_autofree char *old_path = ks_blob_store_get_path (blobs, old);
  g_autofree char *used_path = ks_blob_store_get_path (blobs, used);
  struct utimbuf past = {1000, 1000};

  add_with_blob (f->store, add_session (f->store, "s"), "n", used, NULL, 4);
  g_assert_cmpint (utime (old_path, &past), ==, 0);
  g_assert_cmpint (utime (used_path, &past), ==, 0);
  g_assert_true (ks_store_purge (f->store, &error));
  g_assert_true (ks_blob_store_has (blobs, fresh));
  g_assert_true (ks_blob_store_has (blobs, used));
  g_assert_false (ks_blob_store_has (blobs, old));
}

/* Rows written at once: as many messages one by one would each wait for the disk. */
static void
add_chain (Fixture *f, gint64 session, gint64 n)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsDatabase) database = ks_database_open (f->path, FALSE, &error);

  g_assert_no_error (error);
  g_assert_true (ks_database_run (
      database, &error,
      "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)"
      "INSERT INTO message (id, session, parent, role, state, text, created_us)"
      " SELECT i, ?1, nullif (i - 1, 0), 1, 0, 'Geheimnis', i FROM n",
      "ii", session, n));
  g_assert_true (ks_database_run (database, &error,
                                  "UPDATE session SET leaf = ?2, n_messages = ?2 WHERE id = ?1",
                                  "ii", session, n));
  g_assert_no_error (error);
}

/* Longer than SQLite's triggers may nest; secrets leave the file and its log. */
static void
test_long_chain (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  gint64 s = add_session (f->store, "long");
  g_autoptr (GBytes) log = NULL, content = NULL;
  g_autoptr (GPtrArray) messages = NULL;
  g_autofree char *wal = g_strconcat (f->path, "-wal", NULL);

  add_chain (f, s, 3000);
  messages = list_messages (f->store, s);
  g_assert_cmpuint (messages->len, ==, 3000);
  assert_sound (f->store);
  add_message (f->store, s, 3000, KS_MESSAGE_USER, "the end");
  g_assert_true (ks_store_delete_session (f->store, s, &error));
  g_assert_true (ks_store_purge (f->store, &error));
  g_assert_no_error (error);
  log = read_bytes (wal);
  g_assert_cmpuint (g_bytes_get_size (log), ==, 0);
  content = read_bytes (f->path);
  g_assert_null (
      memmem (g_bytes_get_data (content, NULL), g_bytes_get_size (content), "Geheimnis", 9));
  assert_sound (f->store);
}

static void
assert_mode (const char *path, guint mode)
{
  struct stat st;

  g_assert_cmpint (g_stat (path, &st), ==, 0);
  g_assert_cmpuint (st.st_mode & 0777, ==, mode);
}

/* Only the user may look: folders 0700, files 0600, the log as well, whatever the umask is. */
static void
test_modes (Fixture *f, gconstpointer data)
{
  g_autofree char *dir = g_build_filename (f->dir, "user", "keepsake", NULL);
  g_autofree char *path = g_build_filename (dir, "sessions.db", NULL);
  g_autofree char *wal = g_strconcat (path, "-wal", NULL);
  g_autofree char *blobs = g_build_filename (dir, "blobs", NULL), *hash = NULL, *blob = NULL;
  mode_t mask = umask (0);
  g_autoptr (KsStore) store = open_store (dir);

  hash = add_blob (store, "bytes", 5);
  add_session (store, "s");
  umask (mask);
  blob = g_build_filename (blobs, hash, NULL);
  assert_mode (dir, 0700);
  assert_mode (blobs, 0700);
  assert_mode (path, 0600);
  assert_mode (wal, 0600);
  assert_mode (blob, 0600);
}

static void
test_delete_all (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *hash = add_blob (f->store, "bytes", 5);
  g_autofree char *backup = g_strconcat (f->path, ".v0.bak", NULL);
  g_autofree char *wal = g_strconcat (f->path, "-wal", NULL);
  g_autoptr (GPtrArray) left = NULL;
  g_autoptr (GBytes) content = NULL, log = NULL;

  add_with_blob (f->store, add_session (f->store, "Geheimnis"), "n", hash, NULL, 5);
  log = read_bytes (wal);
  g_assert_nonnull (memmem (g_bytes_get_data (log, NULL), g_bytes_get_size (log), "Geheimnis", 9));
  g_clear_pointer (&log, g_bytes_unref);
  g_assert_true (g_file_set_contents (backup, "old", 3, NULL));
  g_assert_true (ks_store_delete_all (f->store, &error));
  g_assert_no_error (error);
  g_assert_cmpuint (count_files (f->dir, "blobs"), ==, 0);
  g_assert_false (g_file_test (backup, G_FILE_TEST_EXISTS));
  left = ks_store_list_sessions (f->store, 0, 0, &error);
  g_assert_cmpuint (left->len, ==, 0);
  log = read_bytes (wal);
  g_assert_cmpuint (g_bytes_get_size (log), ==, 0);
  content = read_bytes (f->path);
  g_assert_null (
      memmem (g_bytes_get_data (content, NULL), g_bytes_get_size (content), "Geheimnis", 9));
  g_assert_null (
      memmem (g_bytes_get_data (content, NULL), g_bytes_get_size (content), "eheimni", 7));
  add_session (f->store, "again");
  assert_sound (f->store);
}

static void
count_cb (GObject *object, GParamSpec *pspec, gpointer n)
{
  (*(guint *)n)++;
}

/* A video and how it is read come back as they were stored. */
static void
test_reading (Fixture *f, gconstpointer data)
{
  g_autofree char *hash = add_blob (f->store, "film", 4);
  g_autoptr (GPtrArray) attachments = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (KsAttachment) plain =
      ks_attachment_new (KS_ATTACHMENT_VIDEO, "a.mp4", hash, 4, NULL, 0, 64, 48);
  g_autoptr (KsMessage) message = NULL;
  g_autoptr (KsAttachment) read = NULL;
  g_autoptr (GPtrArray) messages = NULL;
  g_autoptr (GError) error = NULL;
  gint64 session = add_session (f->store, "s");

  g_ptr_array_add (attachments, ks_attachment_copy_with (plain, "frames=count:8", NULL, 2500000));
  message = ks_store_add_message (f->store, session, 0, KS_MESSAGE_USER, KS_MESSAGE_COMPLETE, "see",
                                  attachments, &error);
  g_assert_no_error (error);
  messages = list_messages (f->store, session);
  read = g_list_model_get_item (ks_message_get_attachments (g_ptr_array_index (messages, 0)), 0);
  g_assert_cmpint (ks_attachment_get_kind (read), ==, KS_ATTACHMENT_VIDEO);
  g_assert_cmpstr (ks_attachment_get_reading (read), ==, "frames=count:8");
  g_assert_cmpint (ks_attachment_get_duration_us (read), ==, 2500000);
  g_assert_cmpuint (ks_attachment_get_width_px (read), ==, 64);
}

/* While an answer streams, each piece is one notification of one property. */
static void
test_values (void)
{
  g_autoptr (KsMessage) message = ks_message_new (1, 0, KS_MESSAGE_ASSISTANT, "a", 5);
  guint n = 0;

  g_signal_connect (message, "notify::text", G_CALLBACK (count_cb), &n);
  ks_message_append_text (message, "b");
  ks_message_append_text (message, "");
  ks_message_set_text (message, "ab");
  g_assert_cmpuint (n, ==, 1);
  g_assert_cmpstr (ks_message_get_text (message), ==, "ab");
}

#define ADD(name, func) g_test_add (name, Fixture, NULL, fixture_set_up, func, fixture_tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("/store/session-round-trip", test_session_round_trip);
  ADD ("/store/session-list", test_session_list);
  ADD ("/store/messages", test_messages);
  ADD ("/store/interrupted", test_interrupted);
  ADD ("/store/branches", test_branches);
  ADD ("/store/attachments", test_attachments);
  ADD ("/store/reading", test_reading);
  ADD ("/store/delete", test_delete);
  ADD ("/store/sweep", test_sweep);
  ADD ("/store/long-chain", test_long_chain);
  ADD ("/store/modes", test_modes);
  ADD ("/store/delete-all", test_delete_all);
  g_test_add_func ("/store/values", test_values);
  return g_test_run ();
}
