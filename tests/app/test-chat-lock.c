/* test-chat-lock.c - a session that another program answers: shown while it is written, closed to
 * messages, and open again when that program has ended, well or by force. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/app/library-fixture.h"

#include <stdio.h>
#include <string.h>

/* The other program: locks the session, begins an answer, and does what it is told by lines. */
static void
answering_child (void)
{
  g_autoptr (KsStore) store = ks_store_open (g_getenv ("KS_TEST_STORE"), FALSE, NULL);
  gint64 session = g_ascii_strtoll (g_getenv ("KS_TEST_SESSION"), NULL, 10);
  g_autoptr (GPtrArray) path = ks_store_list_messages (store, session, NULL);
  KsMessage *last = g_ptr_array_index (path, path->len - 1);
  g_autoptr (KsMessage) answer = NULL;
  char line[64];
  gint64 id;

  while (!ks_store_lock_session (store, session, NULL)) /* the end of the first answer is stored */
    g_usleep (20000);
  answer = ks_store_add_message (store, session, ks_message_get_id (last), KS_MESSAGE_ASSISTANT,
                                 KS_MESSAGE_STREAMING, "begun", NULL, NULL);
  g_assert_nonnull (answer);
  id = ks_message_get_id (answer);
  g_printerr ("locked\n");
  while (fgets (line, sizeof line, stdin) != NULL) {
    gboolean ends = g_str_has_prefix (line, "end");

    g_assert_true (ks_store_update_message (store, id, g_strchomp (line),
                                            ends ? KS_MESSAGE_COMPLETE : KS_MESSAGE_STREAMING, 2,
                                            NULL, NULL));
    if (ends)
      break;
  }
  ks_store_unlock_session (store, session);
}

/* Returns when it holds the lock. */
static GSubprocess *
start_other (LibraryFixture *f, KsSession *session)
{
  g_autoptr (GSubprocessLauncher) launcher =
      g_subprocess_launcher_new (G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE |
                                 G_SUBPROCESS_FLAGS_STDOUT_SILENCE);
  g_autofree char *id = g_strdup_printf ("%" G_GINT64_FORMAT, ks_session_get_id (session));
  g_autoptr (GDataInputStream) errors = NULL;
  g_autofree char *line = NULL;
  GSubprocess *other;

  g_subprocess_launcher_setenv (launcher, "KS_TEST_STORE", f->dir, TRUE);
  g_subprocess_launcher_setenv (launcher, "KS_TEST_SESSION", id, TRUE);
  other = g_subprocess_launcher_spawn (launcher, NULL, "/proc/self/exe", "--GTestSubprocess", "-p",
                                       "/chat-lock/subprocess/answering", NULL);
  g_assert_nonnull (other);
  errors = g_data_input_stream_new (g_subprocess_get_stderr_pipe (other));
  line = g_data_input_stream_read_line (errors, NULL, NULL, NULL);
  g_assert_cmpstr (line, ==, "locked");
  return other;
}

static void
tell (GSubprocess *other, const char *line)
{
  g_assert_true (g_output_stream_write_all (g_subprocess_get_stdin_pipe (other), line,
                                            strlen (line), NULL, NULL, NULL));
}

static gboolean
shows (KsChat *chat, const char *text)
{
  g_autofree char *shown = fixture_dup_text (chat, -1);

  return strcmp (shown, text) == 0;
}

/* A stored session, and the other program that answers in it. */
static GSubprocess *
begin (LibraryFixture *f, KsChat **out_chat)
{
  KsChat *chat = fixture_open_chat (f, NULL, 4);
  g_autoptr (KsSession) session = NULL;
  GSubprocess *other;
  const char *reason = NULL;

  g_free (fixture_ask (chat, "one"));
  session = g_object_ref (ks_chat_get_session (chat));
  fixture_let_go (f, chat);
  other = start_other (f, session);
  chat = fixture_open_chat (f, session, 4);
  g_assert_nonnull (ks_chat_get_read_only_reason (chat));
  g_assert_nonnull (strstr (ks_chat_get_read_only_reason (chat), "Another Keepsake"));
  g_assert_cmpuint (g_list_model_get_n_items (ks_chat_get_messages (chat)), ==, 3);
  g_assert_true (shows (chat, "begun"));
  g_assert_cmpint (fixture_get_state (chat, -1), ==, KS_MESSAGE_STREAMING);
  g_assert_false (ks_chat_send (chat, "two", &reason));
  g_assert_cmpstr (reason, ==, ks_chat_get_read_only_reason (chat));
  g_assert_false (ks_chat_regenerate (chat));
  g_assert_false (ks_chat_continue (chat));
  *out_chat = chat;
  return other;
}

/* What the other program writes is shown; when it has ended the session can be written again. */
static void
test_watch (LibraryFixture *f, gconstpointer data)
{
  KsChat *chat = NULL;
  g_autoptr (GSubprocess) other = begin (f, &chat);

  tell (other, "begun and more\n");
  WAIT_UNTIL (shows (chat, "begun and more"));
  g_assert_cmpint (fixture_get_state (chat, -1), ==, KS_MESSAGE_STREAMING);
  g_assert_nonnull (ks_chat_get_read_only_reason (chat));
  tell (other, "end of it\n");
  WAIT_UNTIL (ks_chat_get_read_only_reason (chat) == NULL);
  g_assert_true (shows (chat, "end of it"));
  g_assert_cmpint (fixture_get_state (chat, -1), ==, KS_MESSAGE_COMPLETE);
  g_assert_true (g_subprocess_wait_check (other, NULL, NULL));
  fixture_set_max_tokens (chat, 4);
  g_free (fixture_ask (chat, "two"));
  g_assert_cmpuint (g_list_model_get_n_items (ks_chat_get_messages (chat)), ==, 5);
  fixture_let_go (f, chat);
}

/* Killed, the other program leaves an answer that was interrupted: it is shown as that, and can be
 * continued here. */
static void
test_killed (LibraryFixture *f, gconstpointer data)
{
  KsChat *chat = NULL;
  g_autoptr (GSubprocess) other = begin (f, &chat);

  g_subprocess_force_exit (other);
  g_assert_true (g_subprocess_wait (other, NULL, NULL));
  WAIT_UNTIL (ks_chat_get_read_only_reason (chat) == NULL);
  g_assert_true (shows (chat, "begun"));
  g_assert_cmpint (fixture_get_state (chat, -1), ==, KS_MESSAGE_INTERRUPTED);
  fixture_set_max_tokens (chat, 4);
  g_assert_true (ks_chat_continue (chat));
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  g_assert_cmpint (fixture_get_state (chat, -1), ==, KS_MESSAGE_LIMIT);
  fixture_let_go (f, chat);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name, func)                                                                            \
  g_test_add ("/chat-lock/" name, LibraryFixture, NULL, fixture_set_up, func, fixture_tear_down)
  ADD ("watch", test_watch);
  ADD ("killed", test_killed);
  g_test_add_func ("/chat-lock/subprocess/answering", answering_child);
  return g_test_run ();
}
