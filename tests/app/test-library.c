/* test-library.c - the application without a window: the list of sessions, search, export and
 * import, attachments, another model. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/app/library-fixture.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

/* --- helpers --- */

static void
result_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  *(GAsyncResult **)user_data = g_object_ref (result);
}

static guint
get_n_shown (LibraryFixture *f)
{
  return g_list_model_get_n_items (ks_library_get_sessions (f->library));
}

static KsSession *
get_shown (LibraryFixture *f, guint i)
{
  g_autoptr (KsSession) session = g_list_model_get_item (ks_library_get_sessions (f->library), i);

  return session; /* the list keeps it */
}

static KsPendingAttachment *
get_pending (KsChat *chat, guint i)
{
  g_autoptr (KsPendingAttachment) pending =
      g_list_model_get_item (ks_chat_get_attachments (chat), i);

  return pending;
}

static KsPendingAttachment *
attach_path (KsChat *chat, const char *path)
{
  g_autoptr (GFile) file = g_file_new_for_path (path);
  KsPendingAttachment *pending;

  ks_chat_attach_file (chat, file);
  pending = get_pending (chat, g_list_model_get_n_items (ks_chat_get_attachments (chat)) - 1);
  WAIT_UNTIL (ks_pending_attachment_get_state (pending) != KS_PENDING_LOADING);
  return pending;
}

static guint
count_blobs (LibraryFixture *f)
{
  g_autofree char *folder = g_build_filename (f->dir, "blobs", NULL);
  g_autoptr (GDir) dir = g_dir_open (folder, 0, NULL);
  guint n = 0;

  g_assert_nonnull (dir);
  while (g_dir_read_name (dir) != NULL)
    n++;
  return n;
}

/* --- the list --- */

/* Thousands of sessions come in steps, newest first, each once; the first ones are there at once.
 */
static void
test_list (LibraryFixture *f, gconstpointer data)
{
  const guint n = 640;
  g_autoptr (KsStore) store = NULL;
  g_autoptr (GHashTable) seen = g_hash_table_new (NULL, NULL);

  fixture_close (f);
  store = fixture_open_store (f);
  for (guint i = 0; i < n; i++) {
    g_autofree char *title = g_strdup_printf ("session %u", i);
    g_autoptr (KsSession) session = ks_store_add_session (store, title, NULL, NULL);

    g_assert_nonnull (session);
  }
  g_clear_object (&store);
  fixture_open (f);
  g_assert_cmpuint (get_n_shown (f), ==, 0);
  WAIT_UNTIL (ks_library_is_opened (f->library));
  g_assert_cmpuint (get_n_shown (f), ==, 30);
  g_assert_cmpstr (ks_session_get_title (get_shown (f, 0)), ==, "session 639");
  /* While the rest is on its way the list changes at its top. */
  ks_library_delete (f->library, get_shown (f, 5));
  WAIT_UNTIL (get_n_shown (f) == n - 1);
  for (guint i = 0; i < n - 1; i++)
    g_assert_true (g_hash_table_add (seen, get_shown (f, i)));
  g_assert_cmpstr (ks_session_get_title (get_shown (f, n - 2)), ==, "session 0");
}

/* A search shows the hits as the objects that are known already; the end of it shows all again. */
static void
test_search (LibraryFixture *f, gconstpointer data)
{
  KsChat *one = fixture_open_chat (f, NULL, 2), *two = fixture_open_chat (f, NULL, 2);

  g_free (fixture_ask (one, "the yellow submarine"));
  g_free (fixture_ask (two, "a green car"));
  WAIT_UNTIL (get_n_shown (f) == 2);
  ks_library_search (f->library, "gre");
  ks_library_search (f->library, "submarine");
  WAIT_UNTIL (get_n_shown (f) == 1);
  g_assert_true (get_shown (f, 0) == ks_chat_get_session (one));
  g_assert_nonnull (ks_session_get_snippet (get_shown (f, 0)));
  ks_library_search (f->library, NULL);
  g_assert_cmpuint (get_n_shown (f), ==, 2);
  g_assert_null (ks_session_get_snippet (get_shown (f, 0)));
  g_assert_true (get_shown (f, 0) == ks_chat_get_session (two));
  g_free (fixture_ask (one, "again"));
  g_assert_true (get_shown (f, 0) == ks_chat_get_session (one));
  fixture_let_go (f, one);
  fixture_let_go (f, two);
}

/* A new title is kept; what was deleted comes back where it was, until the program ends. */
static void
test_change (LibraryFixture *f, gconstpointer data)
{
  KsChat *one = fixture_open_chat (f, NULL, 2), *two = fixture_open_chat (f, NULL, 2);
  KsChat *same;
  KsSession *first;

  g_free (fixture_ask (one, "one"));
  g_free (fixture_ask (two, "two"));
  first = ks_chat_get_session (one);
  same = ks_library_open_chat (f->library, first);
  g_assert_true (same == one);
  g_object_unref (same);
  ks_library_rename (f->library, first, "  another title ");
  g_assert_cmpstr (ks_session_get_title (first), ==, "another title");
  ks_library_delete (f->library, first);
  g_assert_cmpuint (get_n_shown (f), ==, 1);
  g_assert_false (ks_chat_send (one, "lost", NULL));
  ks_library_restore (f->library, first);
  g_assert_null (ks_chat_get_read_only_reason (one));
  g_assert_cmpuint (get_n_shown (f), ==, 2);
  g_assert_true (get_shown (f, 1) == first);
  ks_library_delete (f->library, ks_chat_get_session (two));
  fixture_let_go (f, one);
  fixture_let_go (f, two);
  fixture_reopen (f);
  WAIT_UNTIL (ks_library_is_opened (f->library));
  g_assert_cmpuint (get_n_shown (f), ==, 1);
  g_assert_cmpstr (ks_session_get_title (get_shown (f, 0)), ==, "another title");
}

/* A bundle goes out to the very file that was chosen and comes back as a new session; then
 * everything is deleted. */
static void
test_bundle (LibraryFixture *f, gconstpointer data)
{
  KsChat *chat = fixture_open_chat (f, NULL, 4);
  g_autofree char *answer = fixture_ask (chat, "keep this"), *back = NULL;
  g_autofree char *path = g_build_filename (f->dir, "out.json", NULL), *name = NULL;
  g_autoptr (GFile) file = g_file_new_for_path (path);
  g_autoptr (GAsyncResult) result = NULL;
  g_autoptr (KsSession) imported = NULL;
  g_autoptr (GError) error = NULL;

  g_assert_true (g_file_set_contents (path, "old", -1, NULL));
  name = ks_library_make_export_name (ks_chat_get_session (chat), KS_EXPORT_AS_JSON);
  g_assert_cmpstr (name, ==, "keep this.json");
  ks_library_export_async (f->library, ks_chat_get_session (chat), KS_EXPORT_AS_JSON, file, NULL,
                           result_cb, &result);
  WAIT_UNTIL (result != NULL);
  g_assert_true (ks_library_export_finish (f->library, result, &error));
  g_assert_no_error (error);
  g_clear_object (&result);
  ks_library_import_async (f->library, file, NULL, result_cb, &result);
  WAIT_UNTIL (result != NULL);
  imported = ks_library_import_finish (f->library, result, &error);
  g_assert_no_error (error);
  g_assert_true (imported != ks_chat_get_session (chat));
  g_assert_cmpuint (get_n_shown (f), ==, 2);
  fixture_let_go (f, chat);
  chat = fixture_open_chat (f, imported, 4);
  back = fixture_dup_text (chat, 1);
  g_assert_cmpstr (back, ==, answer);
  g_clear_object (&result);
  ks_library_delete_all_async (f->library, result_cb, &result);
  WAIT_UNTIL (result != NULL);
  g_assert_true (ks_library_delete_all_finish (f->library, result, &error));
  g_assert_cmpuint (get_n_shown (f), ==, 0);
  g_assert_nonnull (ks_chat_get_read_only_reason (chat));
  fixture_let_go (f, chat);
}

/* --- attachments --- */

/* A document is read by the worker, counted and stored: the session goes on when the file is gone.
 */
static void
test_attach (LibraryFixture *f, gconstpointer data)
{
  KsChat *chat = fixture_open_chat (f, NULL, 4);
  g_autofree char *path = g_build_filename (f->dir, "notes.txt", NULL), *gone = NULL;
  g_autoptr (KsSession) session = NULL;
  g_autoptr (KsMessage) message = NULL;
  g_autoptr (KsAttachment) attachment = NULL;
  KsPendingAttachment *pending;
  const char *reason = NULL;
  guint n_tokens;

  g_assert_true (g_file_set_contents (path, "The key is under the third stone.\r\n", -1, NULL));
  pending = attach_path (chat, path);
  g_assert_cmpstr (ks_pending_attachment_get_error (pending), ==, NULL);
  g_assert_cmpint (ks_pending_attachment_get_state (pending), ==, KS_PENDING_READY);
  g_assert_cmpstr (ks_pending_attachment_get_name (pending), ==, "notes.txt");
  WAIT_UNTIL (ks_pending_attachment_get_n_tokens (pending) > 0);
  n_tokens = ks_pending_attachment_get_n_tokens (pending);
  g_assert_cmpuint (n_tokens, >, 8);
  /* One that fails says why; it is no message, and one goes without it. */
  gone = g_build_filename (f->dir, "gone.txt", NULL);
  pending = attach_path (chat, gone);
  g_assert_cmpint (ks_pending_attachment_get_state (pending), ==, KS_PENDING_FAILED);
  g_assert_nonnull (strstr (ks_pending_attachment_get_error (pending), "cannot be opened"));
  g_unlink (path);
  g_free (fixture_ask (chat, ""));
  g_assert_cmpuint (g_list_model_get_n_items (ks_chat_get_attachments (chat)), ==, 0);
  g_assert_cmpstr (ks_session_get_title (ks_chat_get_session (chat)), ==, "notes.txt");
  message = fixture_get_message (chat, 0);
  g_assert_cmpuint (ks_message_get_n_tokens (message), >=, n_tokens);
  g_clear_object (&message);
  fixture_let_go (f, chat);
  fixture_reopen (f);
  session = fixture_get_first_session (f);
  chat = fixture_open_chat (f, session, 4);
  message = fixture_get_message (chat, 0);
  attachment = g_list_model_get_item (ks_message_get_attachments (message), 0);
  g_assert_cmpuint (g_list_model_get_n_items (ks_message_get_attachments (message)), ==, 1);
  g_assert_cmpstr (ks_attachment_get_name (attachment), ==, "notes.txt");
  g_assert_cmpuint (ks_attachment_get_n_bytes (attachment), ==, 35);
  /* Nothing but a refused file is nothing to send; with words they go alone. */
  pending = attach_path (chat, gone);
  g_assert_false (ks_chat_send (chat, " ", &reason));
  g_assert_nonnull (strstr (reason, "nothing to send"));
  g_assert_true (get_pending (chat, 0) == pending);
  g_free (fixture_ask (chat, "again?"));
  g_assert_cmpuint (g_list_model_get_n_items (ks_chat_get_attachments (chat)), ==, 0);
  g_assert_cmpint (fixture_get_state (chat, -1), ==, KS_MESSAGE_LIMIT);
  {
    g_autoptr (KsMemoryView) view = ks_chat_dup_memory (chat);

    g_assert_cmpuint (view->turn_tokens[0], >=, n_tokens);
  }
  fixture_let_go (f, chat);
}

/* A file that cannot be read leaves nothing behind; neither does one that was taken back. */
static void
test_attach_nothing (LibraryFixture *f, gconstpointer data)
{
  KsChat *chat = fixture_open_chat (f, NULL, 4);
  g_autofree char *path = g_build_filename (f->dir, "broken.pdf", NULL);
  g_autofree char *good = g_build_filename (f->dir, "good.txt", NULL);
  g_autoptr (GFile) remote = g_file_new_for_uri ("sftp://example.invalid/x.txt");
  KsPendingAttachment *pending;

  g_assert_true (g_file_set_contents (path, "%PDF-1.4\nnothing that is one\n", -1, NULL));
  g_assert_true (g_file_set_contents (good, "text", -1, NULL));
  pending = attach_path (chat, path);
  g_assert_cmpint (ks_pending_attachment_get_state (pending), ==, KS_PENDING_FAILED);
  g_assert_nonnull (ks_pending_attachment_get_error (pending));
  WAIT_UNTIL (count_blobs (f) == 0);
  pending = attach_path (chat, good);
  g_assert_cmpint (ks_pending_attachment_get_state (pending), ==, KS_PENDING_READY);
  g_assert_cmpuint (count_blobs (f), >, 0);
  ks_chat_remove_attachment (chat, pending);
  WAIT_UNTIL (count_blobs (f) == 0);
  ks_chat_attach_file (chat, remote);
  pending = get_pending (chat, 1);
  g_assert_cmpint (ks_pending_attachment_get_state (pending), ==, KS_PENDING_FAILED);
  for (guint i = 0; i < 100; i++) {
    g_autoptr (GBytes) bytes = g_bytes_new_static ("same", 4);

    ks_chat_attach_bytes (chat, "pasted.txt", bytes);
  }
  /* 64 may be attached; one more says so, the rest is left out. */
  g_assert_cmpuint (g_list_model_get_n_items (ks_chat_get_attachments (chat)), ==, 65);
  g_assert_cmpint (ks_pending_attachment_get_state (get_pending (chat, 64)), ==, KS_PENDING_FAILED);
  fixture_let_go (f, chat);
}

/* An encrypted PDF waits for its password, says when one is wrong, and is stored with its text: the
 * password is needed once. */
static void
test_unlock (LibraryFixture *f, gconstpointer data)
{
  g_autofree char *folder = g_build_filename (f->dir, "files", NULL), *path = NULL;
  const char *const argv[] = {g_getenv ("KS_PYTHON"), g_getenv ("KS_MAKE_HOSTILE"), folder,
                              "encrypted", NULL};
  KsChat *chat = fixture_open_chat (f, NULL, 4);
  KsPendingAttachment *pending;
  const char *reason = NULL;
  int status = -1;

  g_assert_cmpint (g_mkdir (folder, 0700), ==, 0);
  g_assert_true (g_spawn_sync (NULL, (char **)argv, NULL, G_SPAWN_DEFAULT, NULL, NULL, NULL, NULL,
                               &status, NULL));
  g_assert_cmpint (status, ==, 0);
  path = g_build_filename (folder, "locked-aes256.pdf", NULL);
  pending = attach_path (chat, path);
  g_assert_cmpint (ks_pending_attachment_get_state (pending), ==, KS_PENDING_PASSWORD);
  g_assert_cmpstr (ks_pending_attachment_get_error (pending), ==, NULL);
  g_assert_false (ks_chat_send (chat, "what is secret?", &reason));
  g_assert_nonnull (strstr (reason, "password"));
  ks_chat_unlock_attachment (chat, pending, "wrong");
  WAIT_UNTIL (ks_pending_attachment_get_state (pending) != KS_PENDING_LOADING);
  g_assert_cmpint (ks_pending_attachment_get_state (pending), ==, KS_PENDING_PASSWORD);
  g_assert_nonnull (ks_pending_attachment_get_error (pending));
  ks_chat_unlock_attachment (chat, pending, "open sesame");
  WAIT_UNTIL (ks_pending_attachment_get_state (pending) != KS_PENDING_LOADING);
  g_assert_cmpstr (ks_pending_attachment_get_error (pending), ==, NULL);
  g_assert_cmpint (ks_pending_attachment_get_state (pending), ==, KS_PENDING_READY);
  g_assert_cmpuint (ks_pending_attachment_get_n_pages (pending), ==, 1);
  WAIT_UNTIL (ks_pending_attachment_get_n_tokens (pending) > 0);
  g_free (fixture_ask (chat, "what is secret?"));
  {
    g_autoptr (KsMessage) message = fixture_get_message (chat, 0);
    g_autoptr (KsAttachment) attachment =
        g_list_model_get_item (ks_message_get_attachments (message), 0);
    g_autofree char *text_path =
        g_build_filename (f->dir, "blobs", ks_attachment_get_text_hash (attachment), NULL);
    g_autofree char *text = NULL;

    g_assert_true (g_file_get_contents (text_path, &text, NULL, NULL));
    g_assert_nonnull (strstr (text, "Secret words"));
  }
  fixture_let_go (f, chat);
}

#define TINY_PNG                                                                                   \
  "iVBORw0KGgoAAAANSUhEUgAAAAIAAAABCAIAAAB7QOjdAAAAD0lEQVR4nGP4z8DA8J8BAAf/"                       \
  "Af8Bf4mnAAAAAElFTkSuQmCC"

static GBytes *
make_png (void)
{
  gsize n = 0;
  guchar *raw = g_base64_decode (TINY_PNG, &n);

  return g_bytes_new_take (raw, n);
}

static gboolean
spin_cb (gpointer data)
{
  return G_SOURCE_CONTINUE;
}

/* As the window opens it: the model is loaded when nothing else is to do. */
static void
open_with_model (LibraryFixture *f, const char *model)
{
  g_autofree char *path = g_build_filename (g_getenv ("KS_TEST_CASES"), model, "model.gguf", NULL);

  fixture_close (f);
  g_string_truncate (f->notices, 0);
  ks_settings_set_model (f->settings, path);
  f->library = ks_library_new (f->settings, f->dir);
}

/* Whether a picture is seen is told when the model is there, not before: a model with eyes is never
 * called blind, a blind one is once, whether the picture still waits or was sent meanwhile. */
static void
test_picture_early (LibraryFixture *f, gconstpointer data)
{
  static const struct {
    const char *model;
    gboolean sends, sees;
  } cases[] = {{"idefics3", FALSE, TRUE}, {"llama", FALSE, FALSE}, {"llama", TRUE, FALSE}};

  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GBytes) png = make_png ();
    guint spin = g_idle_add_full (G_PRIORITY_DEFAULT, spin_cb, NULL, NULL);
    const char *notice;
    KsChat *chat;

    open_with_model (f, cases[i].model);
    chat = fixture_open_chat (f, NULL, 4);
    ks_chat_attach_bytes (chat, "photo.png", png);
    WAIT_UNTIL (ks_pending_attachment_get_state (get_pending (chat, 0)) == KS_PENDING_READY);
    if (cases[i].sends)
      fixture_send (chat, "what is it?");
    g_assert_cmpint (ks_library_get_model_state (f->library), ==, KS_MODEL_LOADING);
    g_assert_null (strstr (f->notices->str, "cannot see"));
    g_source_remove (spin);
    WAIT_UNTIL (ks_library_get_model_state (f->library) == KS_MODEL_READY &&
                !ks_chat_is_busy (chat));
    g_assert_true (ks_library_can_see (f->library) == cases[i].sees);
    if (cases[i].sees)
      WAIT_UNTIL (ks_pending_attachment_is_seen (get_pending (chat, 0)));
    notice = strstr (f->notices->str, "cannot see");
    g_assert_true ((notice == NULL) == cases[i].sees);
    g_assert_true (notice == NULL || strstr (notice + 1, "cannot see") == NULL);
    fixture_let_go (f, chat);
  }
  ks_settings_set_model (f->settings, NULL);
}

/* A picture is stored and shown; that the model cannot see it is said once, and to the model. */
static void
test_picture (LibraryFixture *f, gconstpointer data)
{
  KsChat *chat = fixture_open_chat (f, NULL, 4);
  g_autoptr (GBytes) bytes = make_png ();
  g_autoptr (KsMessage) message = NULL;
  g_autoptr (KsAttachment) attachment = NULL;
  g_autoptr (GAsyncResult) result = NULL, again = NULL;
  g_autoptr (KsPixels) pixels = NULL, cached = NULL;
  g_autoptr (GError) error = NULL;
  const char *notice;

  WAIT_UNTIL (ks_library_get_model_state (f->library) == KS_MODEL_READY);
  for (guint i = 0; i < 2; i++) {
    ks_chat_attach_bytes (chat, "photo.png", bytes);
    WAIT_UNTIL (ks_pending_attachment_get_state (get_pending (chat, i)) != KS_PENDING_LOADING);
    g_assert_cmpstr (ks_pending_attachment_get_error (get_pending (chat, i)), ==, NULL);
  }
  g_assert_cmpint (ks_pending_attachment_get_kind (get_pending (chat, 0)), ==, KS_ATTACHMENT_IMAGE);
  g_assert_nonnull (ks_pending_attachment_get_thumbnail (get_pending (chat, 0)));
  notice = strstr (f->notices->str, "cannot see");
  g_assert_nonnull (notice);
  g_assert_null (strstr (notice + 1, "cannot see"));
  g_free (fixture_ask (chat, "what is it?"));
  message = fixture_get_message (chat, 0);
  g_assert_cmpuint (ks_message_get_n_tokens (message), >, 30);
  attachment = g_list_model_get_item (ks_message_get_attachments (message), 0);
  g_assert_cmpuint (ks_attachment_get_width_px (attachment), ==, 2);
  ks_library_render_async (f->library, attachment, 0, 128, NULL, NULL, result_cb, &result);
  WAIT_UNTIL (result != NULL);
  pixels = ks_library_render_finish (f->library, result, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (ks_pixels_get_width (pixels), ==, 2);
  ks_library_render_async (f->library, attachment, 0, 128, NULL, NULL, result_cb, &again);
  WAIT_UNTIL (again != NULL);
  cached = ks_library_render_finish (f->library, again, &error);
  g_assert_true (cached == pixels);
  /* When everything is deleted it is not shown from memory either. */
  g_clear_object (&result);
  ks_library_delete_all_async (f->library, result_cb, &result);
  WAIT_UNTIL (result != NULL);
  g_assert_true (ks_library_delete_all_finish (f->library, result, &error));
  g_assert_no_error (error);
  g_clear_object (&result);
  ks_library_render_async (f->library, attachment, 0, 128, NULL, NULL, result_cb, &result);
  WAIT_UNTIL (result != NULL);
  g_assert_null (ks_library_render_finish (f->library, result, &error));
  g_assert_nonnull (error);
  fixture_let_go (f, chat);
}

/* --- the model --- */

/* Another model takes over: the chat is read again by it.  One that cannot be loaded says so, and
 * messages are refused with that sentence. */
static void
test_swap (LibraryFixture *f, gconstpointer data)
{
  KsChat *chat = fixture_open_chat (f, NULL, 100000);
  g_autofree char *other =
      g_build_filename (g_getenv ("KS_TEST_CASES"), "qwen2", "model.gguf", NULL);
  g_autofree char *damaged = g_build_filename (f->dir, "damaged.gguf", NULL);
  g_autofree char *text = NULL;
  const char *reason = NULL;

  fixture_send (chat, "one");
  WAIT_UNTIL ((g_free (text), text = NULL, ks_chat_get_session (chat)) != NULL &&
              (text = fixture_dup_text (chat, 1), strlen (text) > 0));
  ks_library_load_model (f->library, other);
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  g_assert_cmpint (fixture_get_state (chat, 1), ==, KS_MESSAGE_STOPPED);
  g_assert_cmpint (ks_library_get_model_state (f->library), ==, KS_MODEL_LOADING);
  fixture_set_max_tokens (chat, 4);
  g_free (fixture_ask (chat, "two"));
  g_assert_cmpint (fixture_get_state (chat, 3), ==, KS_MESSAGE_LIMIT);
  g_assert_cmpint (ks_library_get_model_state (f->library), ==, KS_MODEL_READY);
  {
    g_autoptr (KsMemoryView) view = ks_chat_dup_memory (chat);
    g_autofree char *saved = ks_settings_dup_model (f->settings);

    g_assert_cmpuint (view->n_turn, ==, 2);
    g_assert_cmpstr (saved, ==, other);
  }
  g_assert_true (g_file_set_contents (damaged, "GGUFnothing", -1, NULL));
  ks_library_load_model (f->library, damaged);
  WAIT_UNTIL (ks_library_get_model_state (f->library) == KS_MODEL_FAILED);
  g_assert_nonnull (strstr (ks_library_get_model_error (f->library), "not loaded any more"));
  g_assert_null (ks_library_dup_memory (f->library));
  g_assert_false (ks_chat_send (chat, "three", &reason));
  g_assert_cmpstr (reason, ==, ks_library_get_model_error (f->library));
  ks_library_load_model (f->library, other);
  g_free (fixture_ask (chat, "three"));
  g_assert_cmpuint (g_list_model_get_n_items (ks_chat_get_messages (chat)), ==, 6);
  fixture_let_go (f, chat);
}

/* A message that was sent while the model is being loaded waits for it; when none comes it fails
 * and stays for another try. */
static void
test_early (LibraryFixture *f, gconstpointer data)
{
  KsChat *chat;

  fixture_close (f);
  f->model_path = "/nowhere/model.gguf";
  fixture_open (f);
  chat = fixture_open_chat (f, NULL, 4);
  if (ks_chat_send (chat, "early", NULL)) {
    WAIT_UNTIL (!ks_chat_is_busy (chat));
    g_assert_cmpint (fixture_get_state (chat, 1), ==, KS_MESSAGE_FAILED);
  }
  WAIT_UNTIL (ks_library_get_model_state (f->library) == KS_MODEL_FAILED);
  g_assert_nonnull (strstr (ks_library_get_model_error (f->library), "/nowhere/model.gguf"));
  fixture_let_go (f, chat);
  fixture_close (f);
  f->model_path = NULL;
  fixture_open (f);
  chat = fixture_open_chat (f, NULL, 4);
  g_assert_cmpint (ks_library_get_model_state (f->library), ==, KS_MODEL_LOADING);
  g_free (fixture_ask (chat, "early"));
  g_assert_cmpint (fixture_get_state (chat, 1), ==, KS_MESSAGE_LIMIT);
  fixture_let_go (f, chat);
}

/* Closing while everything begins is clean. */
static void
test_close_early (LibraryFixture *f, gconstpointer data)
{
  for (guint i = 0; i < 5; i++) {
    fixture_close (f);
    fixture_open (f);
    for (guint n = 0; n < i; n++)
      fixture_iterate ();
  }
}

/* --- a store that cannot be written --- */

static void
read_only_child (void)
{
  LibraryFixture f = {.dir = g_strdup (g_getenv ("KS_TEST_STORE"))};
  g_autoptr (KsSession) session = NULL;
  const char *reason = NULL;
  KsChat *chat;

  /* Permissions do not bind root. */
  if (geteuid () == 0)
    g_assert_true (setgid (65534) == 0 && setuid (65534) == 0);
  f.settings = ks_settings_new (NULL);
  f.notices = g_string_new (NULL);
  f.model_path = "/nowhere/model.gguf";
  fixture_open (&f);
  session = fixture_get_first_session (&f);
  g_assert_nonnull (ks_library_get_storage_error (f.library));
  chat = ks_library_open_chat (f.library, session);
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  g_assert_cmpuint (g_list_model_get_n_items (ks_chat_get_messages (chat)), ==, 2);
  g_assert_false (ks_chat_send (chat, "more", &reason));
  g_assert_cmpstr (reason, ==, ks_library_get_storage_error (f.library));
  g_assert_cmpstr (ks_chat_get_read_only_reason (chat), ==, reason);
  g_object_unref (chat);
  g_clear_object (&session);
  fixture_close (&f);
  g_object_unref (f.settings);
  g_string_free (f.notices, TRUE);
  g_free (f.dir);
}

/* Sessions that cannot be written can be read; sending gives the reason. */
static void
test_read_only (LibraryFixture *f, gconstpointer data)
{
  g_autofree char *database = g_build_filename (f->dir, "sessions.db", NULL);
  KsChat *chat = fixture_open_chat (f, NULL, 4);

  g_free (fixture_ask (chat, "one"));
  fixture_let_go (f, chat);
  fixture_close (f);
  g_setenv ("KS_TEST_STORE", f->dir, TRUE);
  g_assert_cmpint (g_chmod (database, 0444), ==, 0);
  g_assert_cmpint (g_chmod (f->dir, 0555), ==, 0);
  g_test_trap_subprocess ("/library/subprocess/read-only", 0, G_TEST_SUBPROCESS_INHERIT_STDERR);
  g_assert_cmpint (g_chmod (f->dir, 0700), ==, 0);
  g_test_trap_assert_passed ();
}

/* A folder that is no folder: everything can be looked at, nothing crashes, and the reason shows.
 */
static void
test_no_store (LibraryFixture *f, gconstpointer data)
{
  g_autofree char *good = f->dir, *file = g_build_filename (f->dir, "file", NULL);
  const char *reason = NULL;
  KsChat *chat;

  fixture_close (f);
  g_assert_true (g_file_set_contents (file, "x", 1, NULL));
  f->dir = file;
  fixture_open (f);
  f->dir = g_steal_pointer (&good);
  WAIT_UNTIL (ks_library_is_opened (f->library));
  g_assert_nonnull (ks_library_get_storage_error (f->library));
  chat = ks_library_open_chat (f->library, NULL);
  g_assert_false (ks_chat_send (chat, "one", &reason));
  g_assert_cmpstr (reason, ==, ks_library_get_storage_error (f->library));
  g_object_unref (chat);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name, func)                                                                            \
  g_test_add ("/library/" name, LibraryFixture, NULL, fixture_set_up, func, fixture_tear_down)
  ADD ("list", test_list);
  ADD ("search", test_search);
  ADD ("change", test_change);
  ADD ("bundle", test_bundle);
  ADD ("attach", test_attach);
  ADD ("attach-nothing", test_attach_nothing);
  ADD ("unlock", test_unlock);
  ADD ("picture", test_picture);
  ADD ("picture-early", test_picture_early);
  ADD ("swap", test_swap);
  ADD ("early", test_early);
  ADD ("close-early", test_close_early);
  ADD ("read-only", test_read_only);
  ADD ("no-store", test_no_store);
  g_test_add_func ("/library/subprocess/read-only", read_only_child);
  return g_test_run ();
}
