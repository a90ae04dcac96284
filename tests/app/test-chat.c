/* test-chat.c - one session as the window uses it: stored before it is answered, read again when it
 * is reopened, stopped, continued, branched. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "library-fixture.h"

#include <string.h>

/* A question is stored with its answer, under a title of its first words. */
static void
test_send (LibraryFixture *f, gconstpointer data)
{
  KsChat *chat = fixture_open_chat (f, NULL, 12);
  g_autofree char *answer = fixture_ask (chat, "tell me  a\nstory");
  KsSession *session = ks_chat_get_session (chat);
  g_autoptr (KsMessage) user = fixture_get_message (chat, 0);
  g_autoptr (KsMessage) reply = fixture_get_message (chat, 1);
  g_autoptr (KsSession) first = NULL;

  g_assert_cmpuint (strlen (answer), >, 0);
  g_assert_cmpint (ks_message_get_role (user), ==, KS_MESSAGE_USER);
  g_assert_cmpstr (ks_message_get_text (user), ==, "tell me  a\nstory");
  g_assert_cmpint (ks_message_get_state (reply), ==, KS_MESSAGE_LIMIT);
  g_assert_cmpuint (ks_message_get_n_tokens (reply), ==, 12);
  g_assert_cmpuint (ks_message_get_n_tokens (user), >, 3);
  g_assert_cmpstr (ks_session_get_title (session), ==, "tell me a story");
  first = fixture_get_first_session (f);
  g_assert_true (first == session);
  g_assert_cmpuint (f->n_answered, ==, 1);
  fixture_let_go (f, chat);
}

/* Reopened after the program ended, a session goes on with the same words as one that was never
 * closed. */
static void
test_reopen (LibraryFixture *f, gconstpointer data)
{
  KsChat *chat = fixture_open_chat (f, NULL, 12);
  g_autofree char *first = fixture_ask (chat, "one"), *second = fixture_ask (chat, "two"),
                  *again = NULL;
  g_autoptr (KsSession) session = NULL;

  fixture_let_go (f, chat);
  chat = fixture_open_chat (f, NULL, 12);
  g_free (fixture_ask (chat, "one"));
  fixture_let_go (f, chat);
  fixture_close (f);
  fixture_open (f);
  session = fixture_get_first_session (f);
  chat = fixture_open_chat (f, session, 12);
  g_assert_cmpuint (g_list_model_get_n_items (ks_chat_get_messages (chat)), ==, 2);
  again = fixture_ask (chat, "two");
  g_assert_cmpstr (again, ==, second);
  fixture_let_go (f, chat);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name, func)                                                                            \
  g_test_add ("/chat/" name, LibraryFixture, NULL, fixture_set_up, func, fixture_tear_down)
  ADD ("send", test_send);
  ADD ("reopen", test_reopen);
  return g_test_run ();
}
