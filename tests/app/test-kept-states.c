/* test-kept-states.c - going back in a conversation without reading it again: regenerate, edit,
 * another session in between, a new start of the program; what is damaged, deleted or of another
 * text is read, and the answers are the same either way. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-snapshot-cache.h"
#include "tests/app/library-fixture.h"
#include "tests/remove-tree.h"

#include <glib/gstdio.h>
#include <string.h>

/* Tokens of earlier turns that were read again. */
static void
total_cb (KsChat *chat, GParamSpec *pspec, gpointer user_data)
{
  if (ks_chat_get_state (chat) == KS_CHAT_REREADING)
    *(guint *)user_data += ks_chat_get_n_total (chat);
}

static KsChat *
open_chat (LibraryFixture *f, KsSession *session, int max_tokens, guint *n_reread)
{
  KsChat *chat = fixture_open_chat (f, session, max_tokens);

  g_signal_connect (chat, "notify::n-total", G_CALLBACK (total_cb), n_reread);
  return chat;
}

static void
let_go (LibraryFixture *f, KsChat *chat, guint *n_reread)
{
  g_signal_handlers_disconnect_by_data (chat, n_reread);
  fixture_let_go (f, chat);
}

static void
set_draws (KsChat *chat)
{
  g_autoptr (KsSessionSettings) settings = ks_session_settings_copy (ks_chat_get_settings (chat));

  settings->temperature = 1.5;
  settings->top_k = 0;
  settings->seed = 11;
  ks_chat_set_settings (chat, settings);
}

static char *
go_on (KsChat *chat)
{
  g_assert_true (ks_chat_continue (chat));
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  return fixture_dup_text (chat, -1);
}

/* Names in the folder of states. (transfer full) */
static GPtrArray *
list_files (LibraryFixture *f)
{
  g_autofree char *path = g_build_filename (f->dir, "snapshots", NULL);
  g_autoptr (GDir) dir = g_dir_open (path, 0, NULL);
  GPtrArray *files = g_ptr_array_new_with_free_func (g_free);
  const char *name;

  while (dir != NULL && (name = g_dir_read_name (dir)) != NULL)
    g_ptr_array_add (files, g_build_filename (path, name, NULL));
  return files;
}

/* Another answer to a short or a long message reads nothing again; greedy, it is the same one. */
static void
test_regenerate (LibraryFixture *f, gconstpointer data)
{
  g_autofree char *text = g_strnfill (900, 'a');
  const char *const questions[] = {"two", text};

  for (guint i = 0; i < G_N_ELEMENTS (questions); i++) {
    guint n_reread = 0;
    KsChat *chat = open_chat (f, NULL, 12, &n_reread);
    g_autofree char *first = NULL, *again = NULL, *next = NULL, *other_next = NULL;

    g_free (fixture_ask (chat, "one"));
    first = fixture_ask (chat, questions[i]);
    g_assert_true (ks_chat_regenerate (chat));
    WAIT_UNTIL (!ks_chat_is_busy (chat));
    again = fixture_dup_text (chat, -1);
    g_assert_cmpstr (again, ==, first);
    next = fixture_ask (chat, "three");
    g_assert_true (ks_chat_regenerate (chat));
    WAIT_UNTIL (!ks_chat_is_busy (chat));
    other_next = fixture_dup_text (chat, -1);
    g_assert_cmpstr (other_next, ==, next);
    g_assert_cmpuint (n_reread, ==, 0);
    let_go (f, chat, &n_reread);
  }
}

/* The answer to an edited message is the one that the same words get in a session of their own, and
 * what stands before is not read again; so with the branch that was left. */
static void
test_edit (LibraryFixture *f, gconstpointer data)
{
  guint n_reread = 0, n_other = 0;
  KsChat *chat = open_chat (f, NULL, 12, &n_reread), *other = open_chat (f, NULL, 12, &n_other);
  g_autofree char *want = NULL, *got = NULL, *old = NULL, *back = NULL;
  g_autoptr (KsMessage) question = NULL, edited = NULL;

  g_free (fixture_ask (other, "zero"));
  want = fixture_ask (other, "another question");
  g_free (fixture_ask (chat, "zero"));
  g_free (fixture_ask (chat, "one"));
  old = fixture_ask (chat, "and then");
  question = fixture_get_message (chat, 2);
  g_assert_true (ks_chat_edit (chat, question, "another question"));
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  got = fixture_dup_text (chat, -1);
  g_assert_cmpstr (got, ==, want);
  edited = fixture_get_message (chat, 2);
  g_assert_true (ks_chat_select_branch (chat, edited, 0));
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  g_assert_true (ks_chat_regenerate (chat));
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  back = fixture_dup_text (chat, -1);
  g_assert_cmpstr (back, ==, old);
  g_assert_cmpuint (n_reread, ==, 0);
  let_go (f, chat, &n_reread);
  let_go (f, other, &n_other);
}

/* Two sessions in turn: each goes on at once where it was. */
static void
test_switch (LibraryFixture *f, gconstpointer data)
{
  guint n_a = 0, n_b = 0, n_c = 0;
  KsChat *a = open_chat (f, NULL, 12, &n_a), *b = open_chat (f, NULL, 12, &n_b);
  KsChat *c = open_chat (f, NULL, 12, &n_c);
  g_autofree char *want = NULL, *got = NULL;

  g_free (fixture_ask (c, "one"));
  g_free (fixture_ask (c, "two"));
  want = fixture_ask (c, "three");
  g_free (fixture_ask (a, "one"));
  g_free (fixture_ask (b, "something else"));
  g_free (fixture_ask (a, "two"));
  g_free (fixture_ask (b, "and more"));
  got = fixture_ask (a, "three");
  g_assert_cmpstr (got, ==, want);
  g_assert_cmpuint (n_a + n_b + n_c, ==, 0);
  let_go (f, a, &n_a);
  let_go (f, b, &n_b);
  let_go (f, c, &n_c);
}

/* Without room for states everything is read again, with the same answers. */
static void
test_none_kept (LibraryFixture *f, gconstpointer data)
{
  GSettings *gsettings = ks_settings_get_gsettings (f->settings);
  guint n_reread = 0;
  g_autofree char *first = NULL, *again = NULL;
  KsChat *chat;

  g_settings_set_uint (gsettings, "snapshot-memory", 0);
  fixture_reopen (f);
  chat = open_chat (f, NULL, 12, &n_reread);
  g_free (fixture_ask (chat, "one"));
  first = fixture_ask (chat, "two");
  g_assert_true (ks_chat_regenerate (chat));
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  again = fixture_dup_text (chat, -1);
  g_assert_cmpstr (again, ==, first);
  g_assert_cmpuint (n_reread, >, 0);
  let_go (f, chat, &n_reread);
  fixture_close (f);
  g_assert_cmpuint (list_files (f)->len, ==, 0);
  g_settings_reset (gsettings, "snapshot-memory");
}

/* An answer drawn at random that met its limit goes on after a new start of the program with the
 * same draws, as if nothing had been. */
static void
test_restart (LibraryFixture *f, gconstpointer data)
{
  guint n_whole = 0, n_reread = 0;
  KsChat *whole_chat = open_chat (f, NULL, 30, &n_whole),
         *chat = open_chat (f, NULL, 13, &n_reread);
  g_autofree char *whole = NULL, *part = NULL, *joined = NULL;
  g_autoptr (KsSession) session = NULL;
  g_autoptr (GPtrArray) files = NULL;

  set_draws (whole_chat);
  g_free (fixture_ask (whole_chat, "first"));
  whole = fixture_ask (whole_chat, "tell me");
  set_draws (chat);
  fixture_set_max_tokens (chat, 30);
  g_free (fixture_ask (chat, "first"));
  fixture_set_max_tokens (chat, 13);
  part = fixture_ask (chat, "tell me");
  g_assert_true (g_str_has_prefix (whole, part));
  let_go (f, chat, &n_reread);
  let_go (f, whole_chat, &n_whole);
  fixture_reopen (f);
  files = list_files (f);
  g_assert_cmpuint (files->len, ==, 2); /* one of each session */
  session = fixture_get_first_session (f);
  chat = open_chat (f, session, 17, &n_reread);
  set_draws (chat);
  fixture_set_max_tokens (chat, 17);
  joined = go_on (chat);
  g_assert_cmpuint (n_reread, ==, 0);
  if (!g_str_equal (part, whole)) /* not ended before its limit */
    g_assert_cmpstr (joined, ==, whole);
  let_go (f, chat, &n_reread);
}

/* A file that was damaged is removed and the session read again, with the same answer. */
static void
test_damaged (LibraryFixture *f, gconstpointer data)
{
  guint n_reread = 0, n_want = 0;
  KsChat *chat = open_chat (f, NULL, 12, &n_reread), *other = open_chat (f, NULL, 12, &n_want);
  g_autofree char *want = NULL, *got = NULL, *bytes = NULL;
  g_autoptr (KsSession) session = NULL;
  g_autoptr (GError) error = NULL;
  gsize n = 0;

  g_free (fixture_ask (other, "one"));
  want = fixture_ask (other, "two");
  g_free (fixture_ask (chat, "one"));
  let_go (f, chat, &n_reread);
  let_go (f, other, &n_want);
  fixture_close (f);
  {
    g_autoptr (GPtrArray) files = list_files (f);

    g_assert_cmpuint (files->len, ==, 2);
    for (guint i = 0; i < files->len; i++) {
      const char *path = g_ptr_array_index (files, i);

      g_assert_true (g_file_get_contents (path, &bytes, &n, &error));
      bytes[n / 2] ^= 1;
      g_assert_true (g_file_set_contents (path, bytes, (gssize)n, &error));
      g_clear_pointer (&bytes, g_free);
    }
  }
  fixture_open (f);
  session = fixture_get_first_session (f);
  chat = open_chat (f, session, 12, &n_reread);
  got = fixture_ask (chat, "two");
  g_assert_cmpstr (got, ==, want);
  g_assert_cmpuint (n_reread, >, 0);
  let_go (f, chat, &n_reread);
  g_assert_no_error (error);
}

/* A session of one turn with a text file. (transfer full) its content's hash */
static char *
store_text (LibraryFixture *f, const char *text)
{
  g_autoptr (KsStore) store = fixture_open_store (f);
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = g_bytes_new (text, strlen (text));
  g_autoptr (KsSession) session = ks_store_add_session (store, "text", NULL, &error);
  g_autoptr (GPtrArray) attachments = g_ptr_array_new_with_free_func (g_object_unref);
  g_autoptr (KsMessage) user = NULL, answer = NULL;
  char *hash = ks_blob_store_add (ks_store_get_blobs (store), bytes, &error);

  g_assert_no_error (error);
  g_ptr_array_add (attachments, ks_attachment_new (KS_ATTACHMENT_TEXT, "note.txt", hash,
                                                   strlen (text), hash, 0, 0, 0));
  user = ks_store_add_message (store, ks_session_get_id (session), 0, KS_MESSAGE_USER,
                               KS_MESSAGE_COMPLETE, "see", attachments, &error);
  g_assert_no_error (error);
  answer = ks_store_add_message (store, ks_session_get_id (session), ks_message_get_id (user),
                                 KS_MESSAGE_ASSISTANT, KS_MESSAGE_COMPLETE, "seen", NULL, &error);
  g_assert_no_error (error);
  return hash;
}

/* Opens the first session and asks; tokens that were read again before that. */
static guint
ask_first (LibraryFixture *f, const char *question)
{
  guint n_reread = 0;
  g_autoptr (KsSession) session = NULL;
  KsChat *chat;

  session = fixture_get_first_session (f);
  chat = open_chat (f, session, 4, &n_reread);
  g_free (fixture_ask (chat, question));
  let_go (f, chat, &n_reread);
  return n_reread;
}

/* A state of a text that is gone does not stand in for it: the session is read again without the
 * text, and that is said each time; the state of that reading in turn is not taken for the text
 * once it is there again. */
static void
test_lost_text (LibraryFixture *f, gconstpointer data)
{
  const char *const text = "The key lies under the mat, beside the door of the shed.";
  g_autofree char *hash = NULL, *path = NULL;
  g_autoptr (GError) error = NULL;

  fixture_close (f);
  hash = store_text (f, text);
  path = g_build_filename (f->dir, "blobs", hash, NULL);
  fixture_open (f);
  g_assert_cmpuint (ask_first (f, "one"), >, 0);
  fixture_reopen (f);
  g_assert_cmpuint (ask_first (f, "two"), ==, 0);
  g_assert_null (strstr (f->notices->str, "note.txt"));
  fixture_close (f);
  g_assert_cmpint (g_remove (path), ==, 0);
  fixture_open (f);
  g_assert_cmpuint (ask_first (f, "three"), >, 0);
  g_assert_nonnull (strstr (f->notices->str, "note.txt"));
  g_string_truncate (f->notices, 0);
  fixture_reopen (f);
  g_assert_cmpuint (ask_first (f, "four"), ==, 0);
  g_assert_nonnull (strstr (f->notices->str, "note.txt"));
  fixture_close (f);
  g_assert_true (g_file_set_contents (path, text, -1, &error));
  g_assert_no_error (error);
  fixture_open (f);
  g_assert_cmpuint (ask_first (f, "five"), >, 0);
}

/* States of a session that is deleted do not come to the disk, and those there go. */
static void
test_deleted (LibraryFixture *f, gconstpointer data)
{
  guint n_reread = 0;
  KsChat *chat = open_chat (f, NULL, 12, &n_reread);
  g_autoptr (KsSession) session = NULL;
  g_autoptr (GPtrArray) files = NULL;

  g_free (fixture_ask (chat, "one"));
  let_go (f, chat, &n_reread);
  fixture_reopen (f);
  session = fixture_get_first_session (f);
  chat = open_chat (f, session, 12, &n_reread);
  g_free (fixture_ask (chat, "two"));
  let_go (f, chat, &n_reread);
  ks_library_delete (f->library, session);
  fixture_close (f);
  files = list_files (f);
  g_assert_cmpuint (files->len, ==, 0);
}

/* --- the cache alone --- */

typedef struct {
  KsEngineSetup *setup;
  ks_timeline *tl;
  KsSnapshotStore *store;
  char *dir;
} Cache;

static void
cache_set_up (Cache *c, gconstpointer data)
{
  static const ks_token ids[] = {5, 6, 7, 8, 9};
  g_autoptr (KsEngineOptions) options = ks_engine_options_new ();
  g_autoptr (GError) error = NULL;

  options->model_path = g_build_filename (g_getenv ("KS_TEST_CASES"), "llama", "model.gguf", NULL);
  options->budget.kv_bytes = 1u << 20;
  options->n_thread = 1;
  c->setup = ks_engine_setup_new (options, &error);
  g_assert_no_error (error);
  c->tl = ks_engine_setup_new_timeline (c->setup, &error);
  g_assert_no_error (error);
  g_assert_cmpint (ks_timeline_eval (c->tl, ids, 5, NULL, NULL), ==, KS_OK);
  c->dir = g_dir_make_tmp ("ks-kept-XXXXXX", &error);
  g_assert_no_error (error);
  c->store = ks_snapshot_store_new (c->dir);
  ks_snapshot_store_set_quota (c->store, 1u << 30);
}

static void
cache_tear_down (Cache *c, gconstpointer data)
{
  ks_timeline_free (c->tl);
  ks_engine_setup_free (c->setup);
  g_object_unref (c->store);
  remove_tree (c->dir);
  g_free (c->dir);
}

static KsTurnHash
hash_of (guint8 value)
{
  KsTurnHash hash;

  memset (hash.bytes, value, sizeof hash.bytes);
  return hash;
}

static gboolean
add (KsSnapshotCache *cache, Cache *c, gint64 session, guint8 content, gboolean is_scarce)
{
  const ks_snapshot_params params = {.notes = "n", .n_notes = 1};
  KsTurnHash hash = hash_of (content);
  g_autoptr (GError) error = NULL;
  gboolean kept = ks_snapshot_cache_add (cache, session, &hash, c->tl, &params, is_scarce, &error);

  g_assert_no_error (error);
  return kept;
}

static gboolean
find (KsSnapshotCache *cache, gint64 session, guint8 content)
{
  KsTurnHash hash = hash_of (content);
  ks_snapshot snap = {0};

  if (!ks_snapshot_cache_find (cache, session, &hash, &snap))
    return FALSE;
  g_assert_cmpuint (snap.seen, ==, 5);
  return TRUE;
}

/* The limit holds; what falls out is found on the disk; without a disk it is gone.  Flushing writes
 * the newest of each session. */
static void
test_limit (Cache *c, gconstpointer data)
{
  const ks_snapshot_params params = {.notes = "n", .n_notes = 1};
  guint64 one = ks_snapshot_count_bytes (c->tl, &params);
  KsTurnHash weights = hash_of (9);
  KsSnapshotCache *cache = ks_snapshot_cache_new (c->store, &weights, 2 * one + one / 2);
  KsSnapshotCache *alone = ks_snapshot_cache_new (NULL, &weights, one);
  KsSnapshotCounts counts;

  for (guint8 i = 1; i <= 3; i++)
    g_assert_true (add (cache, c, i == 3 ? 2 : 1, i, FALSE));
  counts = ks_snapshot_cache_get_counts (cache);
  g_assert_cmpuint (counts.n_entry, ==, 2);
  g_assert_cmpuint (counts.memory_bytes, ==, 2 * one);
  g_assert_cmpuint (counts.n_spilled, ==, 1);
  g_assert_true (find (cache, 1, 1)); /* from the disk; 2 goes there */
  g_assert_true (find (cache, 1, 2));
  g_assert_false (find (cache, 1, 7));
  g_assert_true (find (cache, 2, 3));
  ks_snapshot_cache_flush (cache);
  g_assert_cmpuint (ks_snapshot_store_get_bytes (c->store), ==, 3 * one);
  g_assert_true (add (alone, c, 1, 1, FALSE));
  g_assert_true (add (alone, c, 1, 2, FALSE));
  g_assert_false (find (alone, 1, 1));
  g_assert_true (find (alone, 1, 2));
  ks_snapshot_cache_free (cache);
  ks_snapshot_cache_free (alone);
}

/* Short of memory, only the newest stays there; other weights never match. */
static void
test_scarce (Cache *c, gconstpointer data)
{
  KsTurnHash weights = hash_of (9), other = hash_of (8);
  KsSnapshotCache *cache = ks_snapshot_cache_new (c->store, &weights, 1u << 30);
  KsSnapshotCache *changed = ks_snapshot_cache_new (c->store, &other, 1u << 30);

  for (guint8 i = 1; i <= 4; i++)
    g_assert_true (add (cache, c, 1, i, i == 4));
  g_assert_cmpuint (ks_snapshot_cache_get_counts (cache).n_entry, ==, 1);
  g_assert_cmpuint (ks_snapshot_cache_get_counts (cache).n_spilled, ==, 3);
  g_assert_false (find (changed, 1, 1));
  g_assert_false (find (cache, 1, 1)); /* it was of no use to those weights: removed */
  g_assert_true (find (cache, 1, 2));
  ks_snapshot_cache_set_gone (cache, 1, TRUE);
  g_assert_cmpuint (ks_snapshot_cache_get_counts (cache).n_entry, ==, 0);
  g_assert_false (add (cache, c, 1, 5, FALSE));
  ks_snapshot_cache_set_gone (cache, 1, FALSE);
  g_assert_true (add (cache, c, 1, 5, FALSE));
  ks_snapshot_cache_free (cache);
  ks_snapshot_cache_free (changed);
}

/* Any word, picture, system text or policy that differs makes another link; equal ones the same. */
static void
test_chain (void)
{
  KsTurnHash weights, other_weights, begin[4], ask[4], again, answer;
  ks_evict_params evict = ks_evict_default_params (KS_POLICY_DBTRIMKV);
  g_autoptr (KsTurnText) turn = ks_turn_text_new ("ab", NULL, FALSE);
  g_autoptr (KsTurnText) split = ks_turn_text_new ("a", NULL, FALSE);
  g_autoptr (KsTurnText) seen = ks_turn_text_new ("ab", NULL, FALSE);
  g_autofree char *text = NULL;

  ks_turn_hash_weights ("m", NULL, NULL, &weights);
  ks_turn_hash_weights ("m", "", NULL, &other_weights);
  g_assert_false (ks_turn_hash_equal (&weights, &other_weights));
  ks_turn_hash_begin (&weights, NULL, "chatml", &evict, &begin[0]);
  ks_turn_hash_begin (&weights, "", "chatml", &evict, &begin[1]);
  ks_turn_hash_begin (&other_weights, NULL, "chatml", &evict, &begin[2]);
  evict.lookahead = 4;
  ks_turn_hash_begin (&weights, NULL, "chatml", &evict, &begin[3]);
  for (guint i = 1; i < 4; i++)
    g_assert_false (ks_turn_hash_equal (&begin[0], &begin[i]));
  g_ptr_array_add (seen->pictures, ks_picture_new (KS_PICTURE_FILE, "h", "p", "n"));
  ks_turn_hash_ask (&begin[0], turn, &ask[0]);
  ks_turn_hash_ask (&begin[0], split, &ask[1]);
  ks_turn_hash_ask (&begin[0], seen, &ask[2]);
  ks_turn_hash_ask (&begin[1], turn, &ask[3]);
  for (guint i = 1; i < 4; i++)
    g_assert_false (ks_turn_hash_equal (&ask[0], &ask[i]));
  ks_turn_hash_ask (&begin[0], turn, &again);
  g_assert_true (ks_turn_hash_equal (&ask[0], &again));
  ks_turn_hash_answer (&ask[1], "b", &answer);
  g_assert_false (ks_turn_hash_equal (&answer, &ask[0]));
  text = ks_turn_hash_format (&answer);
  g_assert_cmpuint (strlen (text), ==, 64);
}

#define ADD(name, func)                                                                            \
  g_test_add (name, LibraryFixture, NULL, fixture_set_up, func, fixture_tear_down)
#define ADD_CACHE(name, func) g_test_add (name, Cache, NULL, cache_set_up, func, cache_tear_down)

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
  ADD ("/kept-states/regenerate", test_regenerate);
  ADD ("/kept-states/edit", test_edit);
  ADD ("/kept-states/switch", test_switch);
  ADD ("/kept-states/none-kept", test_none_kept);
  ADD ("/kept-states/restart", test_restart);
  ADD ("/kept-states/damaged", test_damaged);
  ADD ("/kept-states/lost-text", test_lost_text);
  ADD ("/kept-states/deleted", test_deleted);
  ADD_CACHE ("/kept-states/limit", test_limit);
  ADD_CACHE ("/kept-states/scarce", test_scarce);
  g_test_add_func ("/kept-states/chain", test_chain);
  return g_test_run ();
}
