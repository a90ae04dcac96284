/* test-snapshot-store.c - kept states of sessions: under a quota, found by session and key, gone
 * with their session and with everything. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/storage/storage-fixture.h"

#define KEY_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define KEY_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define KEY_C "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

static gboolean
put (KsSnapshotStore *store, gint64 session, const char *key, gsize n)
{
  g_autofree char *body = g_strnfill (n, 'x');
  g_autoptr (GError) error = NULL;
  gboolean kept = ks_snapshot_store_put (store, session, key, body, n, &error);

  g_assert_no_error (error);
  return kept;
}

/* What was put comes back under its own session and key only; nobody else may read the file. */
static void
test_round_trip (Fixture *f, gconstpointer data)
{
  KsSnapshotStore *store = ks_store_get_snapshots (f->store);
  g_autofree char *path = g_build_filename (f->dir, "snapshots", "00000000000000ff-" KEY_A, NULL);
  char bytes[8] = "";
  struct stat st;
  int fd;

  ks_snapshot_store_set_quota (store, 1000);
  g_assert_true (put (store, 255, KEY_A, 5));
  fd = ks_snapshot_store_open (store, 255, KEY_A);
  g_assert_cmpint (fd, >=, 0);
  g_assert_cmpint (read (fd, bytes, sizeof bytes), ==, 5);
  g_assert_cmpstr (bytes, ==, "xxxxx");
  g_close (fd, NULL);
  g_assert_cmpint (ks_snapshot_store_open (store, 254, KEY_A), ==, -1);
  g_assert_cmpint (ks_snapshot_store_open (store, 255, KEY_B), ==, -1);
  g_assert_false (ks_snapshot_store_has (store, 255, "../escape"));
  g_assert_cmpint (g_stat (path, &st), ==, 0);
  g_assert_cmpuint (st.st_mode & 0777, ==, 0600);
  ks_snapshot_store_drop (store, 255, KEY_A);
  g_assert_false (ks_snapshot_store_has (store, 255, KEY_A));
}

/* Over the quota the one that was used longest ago goes. */
static void
test_quota (Fixture *f, gconstpointer data)
{
  KsSnapshotStore *store = ks_store_get_snapshots (f->store);
  int fd;

  ks_snapshot_store_set_quota (store, 250);
  g_assert_true (put (store, 1, KEY_A, 100));
  g_usleep (20000);
  g_assert_true (put (store, 1, KEY_B, 100));
  g_usleep (20000);
  fd = ks_snapshot_store_open (store, 1, KEY_A); /* now the newest */
  g_close (fd, NULL);
  g_usleep (20000);
  g_assert_true (put (store, 2, KEY_C, 100));
  g_assert_true (ks_snapshot_store_has (store, 1, KEY_A));
  g_assert_false (ks_snapshot_store_has (store, 1, KEY_B));
  g_assert_cmpuint (ks_snapshot_store_get_bytes (store), ==, 200);
  ks_snapshot_store_set_quota (store, 0);
  g_assert_false (put (store, 1, KEY_A, 1));
}

/* What a deleted session has left goes with the purge, what belongs to none at a sweep. */
static void
test_goes_with_session (Fixture *f, gconstpointer data)
{
  KsSnapshotStore *store = ks_store_get_snapshots (f->store);
  gint64 session = add_session (f->store, "s"), other = add_session (f->store, "t");
  g_autoptr (GError) error = NULL;

  ks_snapshot_store_set_quota (store, 1000);
  g_assert_true (put (store, session, KEY_A, 10));
  g_assert_true (put (store, session, KEY_B, 10));
  g_assert_true (put (store, other, KEY_A, 10));
  g_assert_true (put (store, 4711, KEY_A, 10)); /* of no session: a crash left it */
  g_assert_true (ks_store_delete_session (f->store, session, &error));
  g_assert_true (ks_snapshot_store_has (store, session, KEY_A)); /* undo is possible */
  g_assert_true (ks_store_purge (f->store, &error));
  g_assert_false (ks_snapshot_store_has (store, session, KEY_A));
  g_assert_false (ks_snapshot_store_has (store, session, KEY_B));
  g_assert_false (ks_snapshot_store_has (store, 4711, KEY_A));
  g_assert_true (ks_snapshot_store_has (store, other, KEY_A));
  g_assert_true (ks_store_delete_all (f->store, &error));
  g_assert_cmpuint (ks_snapshot_store_get_bytes (store), ==, 0);
  g_assert_no_error (error);
}

#define ADD(name, func) g_test_add (name, Fixture, NULL, fixture_set_up, func, fixture_tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("/snapshot-store/round-trip", test_round_trip);
  ADD ("/snapshot-store/quota", test_quota);
  ADD ("/snapshot-store/goes-with-session", test_goes_with_session);
  return g_test_run ();
}
