/* test-embed-store.c - what was made of pictures: kept under a quota, found again, gone with its
 * blob. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/storage/storage-fixture.h"

#define KEY_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define KEY_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define KEY_C "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

static gboolean
put (KsEmbedStore *store, const char *hash, const char *key, const char *head, gsize n_body)
{
  g_autofree char *body = g_strnfill (n_body, 'x');
  struct iovec parts[] = {{(void *)head, strlen (head)}, {body, n_body}};
  g_autoptr (GError) error = NULL;
  gboolean kept = ks_embed_store_put (store, hash, key, parts, 2, &error);

  g_assert_no_error (error);
  return kept;
}

/* (transfer full) NULL when it is not there. */
static char *
get (KsEmbedStore *store, const char *hash, const char *key)
{
  char bytes[256] = "";
  int fd = ks_embed_store_open (store, hash, key);
  ssize_t n;

  if (fd < 0)
    return NULL;
  n = read (fd, bytes, sizeof bytes - 1);
  g_close (fd, NULL);
  g_assert_cmpint (n, >=, 0);
  return g_strdup (bytes);
}

static void
assert_has (KsEmbedStore *store, const char *hash, const char *key, gboolean has)
{
  g_autofree char *bytes = get (store, hash, key);

  g_assert_cmpint (bytes != NULL, ==, has);
}

/* The parts come back as one, and only under their own name; nobody else may read the file. */
static void
test_round_trip (Fixture *f, gconstpointer data)
{
  KsEmbedStore *store = ks_store_get_embeds (f->store);
  g_autofree char *path = g_build_filename (f->dir, "embeddings", KEY_A "-" KEY_B, NULL);
  g_autofree char *bytes = NULL;
  struct stat st;

  ks_embed_store_set_quota (store, 1000);
  g_assert_true (put (store, KEY_A, KEY_B, "head", 3));
  bytes = get (store, KEY_A, KEY_B);
  g_assert_cmpstr (bytes, ==, "headxxx");
  assert_has (store, KEY_B, KEY_A, FALSE);
  assert_has (store, "../escape", KEY_A, FALSE);
  g_assert_cmpint (g_stat (path, &st), ==, 0);
  g_assert_cmpuint (st.st_mode & 0777, ==, 0600);
  ks_embed_store_drop (store, KEY_A, KEY_B);
  assert_has (store, KEY_A, KEY_B, FALSE);
}

/* Over the quota the one that was used longest ago goes; what alone is too large is not kept. */
static void
test_quota (Fixture *f, gconstpointer data)
{
  KsEmbedStore *store = ks_store_get_embeds (f->store);

  ks_embed_store_set_quota (store, 250);
  g_assert_true (put (store, KEY_A, KEY_A, "", 100));
  g_usleep (20000);
  g_assert_true (put (store, KEY_A, KEY_B, "", 100));
  g_usleep (20000);
  assert_has (store, KEY_A, KEY_A, TRUE); /* now the newest */
  g_usleep (20000);
  g_assert_true (put (store, KEY_A, KEY_C, "", 100));
  assert_has (store, KEY_A, KEY_B, FALSE);
  assert_has (store, KEY_A, KEY_A, TRUE);
  assert_has (store, KEY_A, KEY_C, TRUE);
  g_assert_cmpuint (ks_embed_store_get_bytes (store), ==, 200);
  g_assert_false (put (store, KEY_B, KEY_A, "", 251));
  ks_embed_store_set_quota (store, 0);
  g_assert_false (put (store, KEY_B, KEY_A, "", 1));
  g_assert_cmpuint (ks_embed_store_get_bytes (store), ==, 0);
}

/* What was made of a picture goes when the picture is deleted. */
static void
test_goes_with_blob (Fixture *f, gconstpointer data)
{
  KsEmbedStore *store = ks_store_get_embeds (f->store);
  gint64 session = add_session (f->store, "s");
  g_autofree char *hash = add_blob (f->store, "cat", 3), *other = add_blob (f->store, "dog", 3);
  g_autoptr (GError) error = NULL;

  ks_embed_store_set_quota (store, 1000);
  add_with_blob (f->store, session, "cat.png", hash, NULL, 3);
  add_with_blob (f->store, add_session (f->store, "t"), "dog.png", other, NULL, 3);
  put (store, hash, KEY_A, "", 10);
  put (store, hash, KEY_B, "", 10);
  put (store, other, KEY_A, "", 10);
  put (store, KEY_C, KEY_A, "", 10); /* of no blob: a crash left it */
  g_assert_true (ks_store_delete_session (f->store, session, &error));
  assert_has (store, hash, KEY_A, TRUE); /* undo is possible */
  g_assert_true (ks_store_purge (f->store, &error));
  assert_has (store, hash, KEY_A, FALSE);
  assert_has (store, hash, KEY_B, FALSE);
  assert_has (store, KEY_C, KEY_A, FALSE);
  assert_has (store, other, KEY_A, TRUE);
  g_assert_true (ks_store_delete_all (f->store, &error));
  assert_has (store, other, KEY_A, FALSE);
  g_assert_no_error (error);
}

#define ADD(name, func) g_test_add (name, Fixture, NULL, fixture_set_up, func, fixture_tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("/embed-store/round-trip", test_round_trip);
  ADD ("/embed-store/quota", test_quota);
  ADD ("/embed-store/goes-with-blob", test_goes_with_blob);
  return g_test_run ();
}
