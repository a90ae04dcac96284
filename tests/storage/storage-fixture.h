/* storage-fixture.h - a store in a folder of its own, and helpers that assert. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "storage/ks-store.h"
#include "tests/remove-tree.h"

#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
  char *dir, *path; /* of the store, of its database */
  KsStore *store;
} Fixture;

static inline KsStore *
open_store (const char *dir)
{
  g_autoptr (GError) error = NULL;
  KsStore *store = ks_store_open (dir, FALSE, &error);

  g_assert_no_error (error);
  g_assert_nonnull (store);
  return store;
}

static inline void
fixture_set_up (Fixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  f->dir = g_dir_make_tmp ("ks-storage-XXXXXX", &error);
  g_assert_no_error (error);
  f->path = g_build_filename (f->dir, "sessions.db", NULL);
  f->store = open_store (f->dir);
}

static inline void
fixture_tear_down (Fixture *f, gconstpointer data)
{
  g_clear_object (&f->store);
  remove_tree (f->dir);
  g_free (f->path);
  g_free (f->dir);
}

static inline gint64
add_session (KsStore *store, const char *title)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsSession) session = ks_store_add_session (store, title, NULL, &error);

  g_assert_no_error (error);
  return ks_session_get_id (session);
}

static inline gint64
add_message (KsStore *store, gint64 session, gint64 parent, KsMessageRole role, const char *text)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (KsMessage) message =
      ks_store_add_message (store, session, parent, role, KS_MESSAGE_COMPLETE, text, NULL, &error);

  g_assert_no_error (error);
  return ks_message_get_id (message);
}

static inline char *
add_blob (KsStore *store, const char *data, gsize n)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = g_bytes_new (data, n);
  char *hash = ks_blob_store_add (ks_store_get_blobs (store), bytes, &error);

  g_assert_no_error (error);
  return hash;
}

/* A user's message with one attachment. */
static inline gint64
add_with_blob (KsStore *store, gint64 session, const char *name, const char *hash,
               const char *text_hash, guint64 n_bytes)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) attachments = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (KsMessage) message = NULL;

  g_ptr_array_add (attachments, ks_attachment_new (KS_ATTACHMENT_IMAGE, name, hash, n_bytes,
                                                   text_hash, 0, 3, 2));
  message = ks_store_add_message (store, session, 0, KS_MESSAGE_USER, KS_MESSAGE_COMPLETE, "see",
                                  attachments, &error);
  g_assert_no_error (error);
  return ks_message_get_id (message);
}

static inline GPtrArray *
list_messages (KsStore *store, gint64 session)
{
  g_autoptr (GError) error = NULL;
  GPtrArray *messages = ks_store_list_messages (store, session, &error);

  g_assert_no_error (error);
  return messages;
}

/* Texts of the active path, joined. */
static inline char *
path_text (KsStore *store, gint64 session)
{
  g_autoptr (GPtrArray) messages = list_messages (store, session);
  GString *text = g_string_new (NULL);

  for (guint i = 0; i < messages->len; i++)
    g_string_append_printf (text, "%s%s", i > 0 ? " " : "",
                            ks_message_get_text (g_ptr_array_index (messages, i)));
  return g_string_free (text, FALSE);
}

static inline void
assert_path (KsStore *store, gint64 session, const char *expected)
{
  g_autofree char *text = path_text (store, session);

  g_assert_cmpstr (text, ==, expected);
}

static inline void
assert_sound (KsStore *store)
{
  g_autoptr (GError) error = NULL;
  gboolean sound = ks_store_check (store, &error);

  g_assert_no_error (error);
  g_assert_true (sound);
}

static inline guint
count_files (const char *dir, const char *folder)
{
  g_autofree char *path = g_build_filename (dir, folder, NULL);
  g_autoptr (GDir) d = g_dir_open (path, 0, NULL);
  guint n = 0;

  while (d != NULL && g_dir_read_name (d) != NULL)
    n++;
  return n;
}

static inline GBytes *
read_bytes (const char *path)
{
  g_autoptr (GError) error = NULL;
  char *data = NULL;
  gsize n;

  g_file_get_contents (path, &data, &n, &error);
  g_assert_no_error (error);
  return g_bytes_new_take (data, n);
}

/* Runs func in a child, which may change its rights and limits; its assertions count. */
static inline void
run_in_child (void (*func) (gpointer), gpointer data)
{
  pid_t pid = fork ();
  int status = 0;

  g_assert_cmpint (pid, >=, 0);
  if (pid == 0) {
    func (data);
    _exit (0);
  }
  g_assert_cmpint (waitpid (pid, &status, 0), ==, pid);
  g_assert_true (WIFEXITED (status));
  g_assert_cmpint (WEXITSTATUS (status), ==, 0);
}
