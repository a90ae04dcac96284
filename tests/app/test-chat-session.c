/* test-chat-session.c - one session as the window uses it: stored before it is answered, read again
 * when it is reopened, stopped, continued, branched. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/app/library-fixture.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>

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
  g_assert_cmpuint (f->n_failed, ==, 0);
  fixture_let_go (f, chat);
}

/* A long question's title is cut between words, one without blanks anywhere; both stay short. */
static void
test_title (LibraryFixture *f, gconstpointer data)
{
  g_autofree char *words = g_strnfill (200, 'w'), *question = NULL;
  KsChat *chat = fixture_open_chat (f, NULL, 1);
  const char *title;

  question = g_strdup_printf ("what is the reason that all of the twelve windows were %s", words);
  g_free (fixture_ask (chat, question));
  title = ks_session_get_title (ks_chat_get_session (chat));
  g_assert_cmpstr (title, ==, "what is the reason that all of the twelve windows were…");
  fixture_let_go (f, chat);
  chat = fixture_open_chat (f, NULL, 1);
  g_free (fixture_ask (chat, words));
  title = ks_session_get_title (ks_chat_get_session (chat));
  g_assert_cmpint (g_utf8_strlen (title, -1), ==, 60);
  fixture_let_go (f, chat);
}

/* What cannot be sent is refused with a reason, and nothing is stored. */
static void
test_refuse (LibraryFixture *f, gconstpointer data)
{
  KsChat *chat = fixture_open_chat (f, NULL, 40);
  const char *reason = NULL;

  g_assert_false (ks_chat_send (chat, " \n ", &reason));
  g_assert_nonnull (reason);
  g_assert_null (ks_chat_get_session (chat));
  g_assert_false (ks_chat_regenerate (chat));
  g_assert_false (ks_chat_continue (chat));
  fixture_send (chat, "one");
  g_assert_false (ks_chat_send (chat, "two", &reason));
  g_assert_nonnull (strstr (reason, "stop it first"));
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  g_assert_cmpuint (g_list_model_get_n_items (ks_chat_get_messages (chat)), ==, 2);
  fixture_let_go (f, chat);
}

/* Reopened after the program ended, a session goes on with the same words as one that was never
 * closed, and what it has in memory is counted under its turns. */
static void
test_reopen (LibraryFixture *f, gconstpointer data)
{
  KsChat *chat = fixture_open_chat (f, NULL, 12);
  g_autofree char *first = fixture_ask (chat, "one"), *second = fixture_ask (chat, "two");
  g_autofree char *again = NULL;
  g_autoptr (KsSession) session = NULL;
  g_autoptr (KsMemoryView) before = ks_chat_dup_memory (chat), after = NULL;
  g_autoptr (KsMessage) old = NULL, new = NULL;

  g_assert_cmpuint (before->n_turn, ==, 2);
  fixture_let_go (f, chat);
  chat = fixture_open_chat (f, NULL, 12);
  g_free (fixture_ask (chat, "one"));
  fixture_let_go (f, chat);
  fixture_reopen (f);
  session = fixture_get_first_session (f);
  chat = fixture_open_chat (f, session, 12);
  g_assert_cmpuint (g_list_model_get_n_items (ks_chat_get_messages (chat)), ==, 2);
  g_assert_null (ks_chat_dup_memory (chat));
  old = fixture_get_message (chat, 0);
  g_assert_cmpint (ks_chat_get_turn (chat, old), ==, -1);
  again = fixture_ask (chat, "two");
  g_assert_cmpstr (again, ==, second);
  new = fixture_get_message (chat, 2);
  g_assert_cmpint (ks_chat_get_turn (chat, old), ==, 0);
  g_assert_cmpint (ks_chat_get_turn (chat, new), ==, 1);
  after = ks_chat_dup_memory (chat);
  g_assert_cmpuint (after->n_turn, ==, 2);
  g_assert_cmpuint (after->turn_tokens[1], ==, before->turn_tokens[1]);
  /* The tiny model's words are not always cut into tokens again as it made them. */
  g_assert_cmpuint (after->turn_tokens[0], <=, before->turn_tokens[0]);
  g_assert_cmpuint (after->turn_tokens[0], >, before->turn_tokens[0] - 12);
  fixture_let_go (f, chat);
}

static void
stop_at_text_cb (KsMessage *message, GParamSpec *pspec, gpointer user_data)
{
  ks_chat_stop (user_data);
}

static void
watch_answer_cb (GListModel *list, guint position, guint removed, guint added, gpointer user_data)
{
  for (guint i = position; i < position + added; i++) {
    g_autoptr (KsMessage) message = g_list_model_get_item (list, i);

    if (ks_message_get_role (message) == KS_MESSAGE_ASSISTANT)
      g_signal_connect_object (message, "notify::text", G_CALLBACK (stop_at_text_cb), user_data, 0);
  }
}

/* Asks and stops as soon as the first words are shown. */
static void
ask_and_stop (KsChat *chat, const char *text)
{
  GListModel *list = ks_chat_get_messages (chat);
  gulong handler = g_signal_connect (list, "items-changed", G_CALLBACK (watch_answer_cb), chat);
  g_autoptr (KsMessage) answer = NULL;

  fixture_send (chat, text);
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  g_signal_handler_disconnect (list, handler);
  answer = fixture_get_message (chat, -1);
  g_signal_handlers_disconnect_by_data (answer, chat);
}

/* A stopped answer keeps its text; continued, it becomes what it would have been without the stop;
 * it goes on as well when the model had to read it again. */
static void
test_stop (LibraryFixture *f, gconstpointer data)
{
  KsChat *whole_chat = fixture_open_chat (f, NULL, 2000), *chat = fixture_open_chat (f, NULL, 2000);
  g_autofree char *whole = NULL, *part = NULL, *longer = NULL, *end = NULL;
  g_autoptr (KsSession) session = NULL;

  ask_and_stop (chat, "tell me more");
  g_assert_cmpint (fixture_get_state (chat, -1), ==, KS_MESSAGE_STOPPED);
  part = fixture_dup_text (chat, -1);
  g_assert_cmpuint (strlen (part), >, 0);
  g_assert_cmpuint (f->n_answered, ==, 1);
  fixture_set_max_tokens (chat, 20);
  g_assert_true (ks_chat_continue (chat));
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  g_assert_cmpint (fixture_get_state (chat, -1), ==, KS_MESSAGE_LIMIT);
  longer = fixture_dup_text (chat, -1);
  g_assert_true (g_str_has_prefix (longer, part));
  g_assert_cmpuint (strlen (longer), >, strlen (part));
  session = g_object_ref (ks_chat_get_session (chat));
  g_assert_cmpuint (g_list_model_get_n_items (ks_chat_get_messages (chat)), ==, 2);
  {
    g_autoptr (KsMessage) answer = fixture_get_message (chat, -1);

    fixture_set_max_tokens (whole_chat, (int)ks_message_get_n_tokens (answer) + 20);
  }
  fixture_let_go (f, chat);
  whole = fixture_ask (whole_chat, "tell me more");
  g_assert_true (g_str_has_prefix (whole, longer));
  /* The other chat took the engine: this one is read again from its text. */
  chat = fixture_open_chat (f, session, 20);
  g_assert_true (ks_chat_continue (chat));
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  end = fixture_dup_text (chat, -1);
  g_assert_true (g_str_has_prefix (end, longer));
  g_assert_cmpuint (strlen (end), >, strlen (longer));
  fixture_let_go (f, chat);
  fixture_let_go (f, whole_chat);
}

static void
stop_at_reading_cb (KsChat *chat, GParamSpec *pspec, gpointer user_data)
{
  if (ks_chat_get_state (chat) == KS_CHAT_READING && ks_chat_get_n_done (chat) > 0)
    ks_chat_stop (chat);
}

/* Stopped while its message is read, an answer is empty and STOPPED; to continue it reads the
 * message and answers; to write something else leaves it out of what the model knows. */
static void
test_stop_reading (LibraryFixture *f, gconstpointer data)
{
  KsChat *chat = fixture_open_chat (f, NULL, 12), *other = fixture_open_chat (f, NULL, 12);
  g_autofree char *text = g_strnfill (1200, 'a'), *clean = NULL, *empty = NULL, *after = NULL;
  g_autofree char *continued = NULL, *straight = NULL;
  g_autoptr (KsMessage) lost = NULL;
  gulong handler;

  clean = fixture_ask (other, "one");
  g_free (fixture_ask (chat, "one"));
  handler = g_signal_connect (chat, "notify::n-done", G_CALLBACK (stop_at_reading_cb), NULL);
  fixture_send (chat, text);
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  g_signal_handler_disconnect (chat, handler);
  empty = fixture_dup_text (chat, -1);
  g_assert_cmpstr (empty, ==, "");
  g_assert_cmpint (fixture_get_state (chat, -1), ==, KS_MESSAGE_STOPPED);
  g_assert_nonnull (strstr (f->notices->str, "does not know it"));
  lost = fixture_get_message (chat, -2);
  g_assert_cmpint (ks_chat_get_turn (chat, lost), ==, -1);
  g_assert_true (ks_chat_continue (chat));
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  continued = fixture_dup_text (chat, -1);
  g_assert_cmpint (ks_chat_get_turn (chat, lost), ==, 1);
  straight = fixture_ask (other, text);
  g_assert_cmpstr (continued, ==, straight);
  fixture_let_go (f, chat);
  fixture_let_go (f, other);
}

/* A message that was stopped unread is left out when the talk goes on, which is told once. */
static void
test_leave_out (LibraryFixture *f, gconstpointer data)
{
  KsChat *chat = fixture_open_chat (f, NULL, 12), *other = fixture_open_chat (f, NULL, 12);
  g_autofree char *text = g_strnfill (1200, 'a'), *want = NULL, *got = NULL;
  const char *told;
  gulong handler;

  g_free (fixture_ask (other, "one"));
  want = fixture_ask (other, "two");
  g_free (fixture_ask (chat, "one"));
  handler = g_signal_connect (chat, "notify::n-done", G_CALLBACK (stop_at_reading_cb), NULL);
  fixture_send (chat, text);
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  g_signal_handler_disconnect (chat, handler);
  got = fixture_ask (chat, "two");
  g_assert_cmpstr (got, ==, want);
  told = strstr (f->notices->str, "Question 2 was stopped before it was read and stays out");
  g_assert_nonnull (told);
  g_free (fixture_ask (chat, "three"));
  g_assert_null (strstr (told + 1, "Question"));
  fixture_let_go (f, chat);
  fixture_let_go (f, other);
}

/* Another answer stands beside the first as a branch; both are kept, each is found again. */
static void
test_regenerate (LibraryFixture *f, gconstpointer data)
{
  KsChat *chat = fixture_open_chat (f, NULL, 12);
  g_autofree char *first = NULL, *second = NULL, *third = NULL, *shown = NULL;
  g_autoptr (KsMessage) question = NULL, answer = NULL;

  fixture_set_temperature (chat, 3.0);
  g_free (fixture_ask (chat, "zero"));
  first = fixture_ask (chat, "one");
  question = fixture_get_message (chat, 2);
  g_assert_true (ks_chat_regenerate (chat));
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  second = fixture_dup_text (chat, -1);
  g_assert_cmpstr (second, !=, first);
  g_assert_cmpuint (g_list_model_get_n_items (ks_chat_get_messages (chat)), ==, 4);
  answer = fixture_get_message (chat, -1);
  g_assert_cmpuint (ks_message_get_n_siblings (answer), ==, 2);
  g_assert_cmpuint (ks_message_get_sibling (answer), ==, 1);
  third = fixture_ask (chat, "three");
  g_assert_true (ks_chat_select_branch (chat, answer, 0));
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  g_assert_cmpuint (g_list_model_get_n_items (ks_chat_get_messages (chat)), ==, 4);
  shown = fixture_dup_text (chat, -1);
  g_assert_cmpstr (shown, ==, first);
  {
    g_autoptr (KsMessage) same = fixture_get_message (chat, 2), other = NULL;

    g_assert_true (same == question);
    other = fixture_get_message (chat, -1);
    g_assert_cmpuint (ks_message_get_n_siblings (other), ==, 2);
    g_assert_true (ks_chat_select_branch (chat, other, 1));
  }
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  /* Down to where that branch was left. */
  g_assert_cmpuint (g_list_model_get_n_items (ks_chat_get_messages (chat)), ==, 6);
  g_free (g_steal_pointer (&shown));
  shown = fixture_dup_text (chat, -1);
  g_assert_cmpstr (shown, ==, third);
  fixture_let_go (f, chat);
}

/* Another wording is a branch whose answer is the one a fresh talk would give: the model knows
 * nothing of what came after the branching point. */
static void
test_edit (LibraryFixture *f, gconstpointer data)
{
  KsChat *chat = fixture_open_chat (f, NULL, 12), *other = fixture_open_chat (f, NULL, 12);
  g_autofree char *want = NULL, *got = NULL;
  g_autoptr (KsMessage) question = NULL, edited = NULL;

  g_free (fixture_ask (other, "one"));
  want = fixture_ask (other, "something else");
  g_free (fixture_ask (chat, "one"));
  g_free (fixture_ask (chat, "two"));
  g_free (fixture_ask (chat, "three"));
  question = fixture_get_message (chat, 2);
  g_assert_true (ks_chat_edit (chat, question, "something else"));
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  g_assert_cmpuint (g_list_model_get_n_items (ks_chat_get_messages (chat)), ==, 4);
  got = fixture_dup_text (chat, -1);
  g_assert_cmpstr (got, ==, want);
  edited = fixture_get_message (chat, 2);
  g_assert_cmpuint (ks_message_get_n_siblings (edited), ==, 2);
  /* The first message of all can be worded anew, too. */
  {
    g_autoptr (KsMessage) start = fixture_get_message (chat, 0);

    g_assert_true (ks_chat_edit (chat, start, "another start"));
  }
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  g_assert_cmpuint (g_list_model_get_n_items (ks_chat_get_messages (chat)), ==, 2);
  fixture_let_go (f, chat);
  fixture_let_go (f, other);
}

typedef struct {
  LibraryFixture *f;
  KsChat *chat;
  guint64 want_bytes;
  gboolean moved;
} Slider;

static void
move_slider_cb (KsMessage *message, GParamSpec *pspec, gpointer user_data)
{
  Slider *slider = user_data;

  if (slider->moved)
    return;
  slider->moved = TRUE;
  /* Many values as a hand makes them; the last one counts. */
  for (guint i = 0; i < 200; i++)
    ks_library_set_target_bytes (slider->f->library, slider->want_bytes + 200 - i);
  ks_library_set_target_bytes (slider->f->library, slider->want_bytes);
}

static void
slide_cb (GListModel *list, guint position, guint removed, guint added, gpointer user_data)
{
  for (guint i = position; i < position + added; i++) {
    g_autoptr (KsMessage) message = g_list_model_get_item (list, i);

    if (ks_message_get_role (message) == KS_MESSAGE_ASSISTANT)
      g_signal_connect (message, "notify::text", G_CALLBACK (move_slider_cb), user_data);
  }
}

/* The target moves in the middle of an answer and is in force before its end; nonsense becomes the
 * smallest that works; a new conversation starts under it. */
static void
test_target (LibraryFixture *f, gconstpointer data)
{
  KsChat *chat = fixture_open_chat (f, NULL, 400);
  g_autofree char *text = g_strnfill (1500, 'b');
  g_autoptr (KsMemoryView) before = NULL, after = NULL, next = NULL;
  Slider slider = {.f = f, .chat = chat};
  guint64 min_bytes, max_bytes;

  WAIT_UNTIL (ks_library_get_model_state (f->library) == KS_MODEL_READY);
  ks_library_get_target_range (f->library, &min_bytes, &max_bytes);
  g_assert_cmpuint (min_bytes, >, 0);
  g_assert_cmpuint (max_bytes, >, min_bytes);
  before = ks_library_dup_memory (f->library);
  g_assert_cmpuint (before->kv_budget_bytes, >, 3u << 20);
  slider.want_bytes = ks_library_get_target_bytes (f->library) - (3u << 20);
  g_signal_connect (ks_chat_get_messages (chat), "items-changed", G_CALLBACK (slide_cb), &slider);
  fixture_send (chat, text);
  WAIT_UNTIL (slider.moved);
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  after = ks_chat_dup_memory (chat);
  g_assert_cmpuint (after->target_bytes, ==, slider.want_bytes);
  g_assert_cmpuint (ks_memory_view_get_used_bytes (after), <=, slider.want_bytes);
  g_assert_cmpuint (after->kv_budget_bytes, <, 2u << 20);
  g_assert_cmpuint (after->n_evicted, >, 0);
  g_assert_cmpfloat (ks_memory_view_get_kept_share (after), <, 1.0);
  ks_library_set_target_bytes (f->library, 1);
  fixture_let_go (f, chat);
  chat = fixture_open_chat (f, NULL, 8);
  g_free (fixture_ask (chat, "short"));
  next = ks_chat_dup_memory (chat);
  ks_library_get_target_range (f->library, &min_bytes, &max_bytes);
  g_assert_cmpuint (next->target_bytes, >=, min_bytes);
  g_assert_cmpuint (next->target_bytes, <, slider.want_bytes);
  g_assert_cmpuint (next->kv_budget_bytes, <, after->kv_budget_bytes);
  fixture_let_go (f, chat);
}

/* While one chat answers another one waits; the first is read again when it goes on. */
static void
test_two_chats (LibraryFixture *f, gconstpointer data)
{
  KsChat *one = fixture_open_chat (f, NULL, 60), *two = fixture_open_chat (f, NULL, 12);
  g_autofree char *first = NULL, *second = NULL;
  g_autoptr (KsSession) top = NULL;

  fixture_send (one, "one");
  fixture_send (two, "two");
  WAIT_UNTIL (ks_chat_get_state (one) == KS_CHAT_ANSWERING);
  g_assert_cmpint (ks_chat_get_state (two), ==, KS_CHAT_WAITING);
  WAIT_UNTIL (!ks_chat_is_busy (one));
  WAIT_UNTIL (!ks_chat_is_busy (two));
  second = fixture_dup_text (two, -1);
  g_assert_cmpuint (strlen (second), >, 0);
  g_assert_null (ks_chat_dup_memory (one));
  top = fixture_get_first_session (f);
  g_assert_true (top == ks_chat_get_session (two));
  first = fixture_ask (one, "again");
  g_assert_null (ks_chat_dup_memory (two));
  g_assert_nonnull (first);
  /* One that waits can be stopped without waiting. */
  fixture_set_max_tokens (one, 100000);
  fixture_send (one, "long");
  fixture_send (two, "never");
  WAIT_UNTIL (ks_chat_get_state (one) == KS_CHAT_ANSWERING);
  ks_chat_stop (two);
  WAIT_UNTIL (!ks_chat_is_busy (two));
  g_assert_cmpint (ks_chat_get_state (one), ==, KS_CHAT_ANSWERING);
  g_assert_cmpint (fixture_get_state (two, -1), ==, KS_MESSAGE_STOPPED);
  ks_chat_stop (one);
  WAIT_UNTIL (!ks_chat_is_busy (one));
  fixture_let_go (f, one);
  fixture_let_go (f, two);
}

/* Closed in the middle of an answer, the program has stored what was shown. */
static void
test_close (LibraryFixture *f, gconstpointer data)
{
  KsChat *chat = fixture_open_chat (f, NULL, 100000);
  g_autoptr (KsStore) store = NULL;
  g_autoptr (GPtrArray) messages = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree char *text = NULL, *early = NULL;
  gint64 id;

  fixture_send (chat, "go on for ever");
  WAIT_UNTIL (ks_chat_get_state (chat) == KS_CHAT_ANSWERING);
  WAIT_UNTIL ((g_free (early), early = fixture_dup_text (chat, -1), strlen (early) > 20));
  id = ks_session_get_id (ks_chat_get_session (chat));
  fixture_begin_close (f);
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  text = fixture_dup_text (chat, -1);
  fixture_let_go (f, chat);
  fixture_end_close (f);
  store = fixture_open_store (f);
  messages = ks_store_list_messages (store, id, &error);
  g_assert_no_error (error);
  g_assert_cmpuint (messages->len, ==, 2);
  g_assert_cmpint (ks_message_get_state (g_ptr_array_index (messages, 1)), ==, KS_MESSAGE_STOPPED);
  g_assert_cmpstr (ks_message_get_text (g_ptr_array_index (messages, 1)), ==, text);
  g_assert_cmpuint (ks_message_get_n_tokens (g_ptr_array_index (messages, 1)), >, 0);
  g_assert_cmpuint (ks_message_get_n_tokens (g_ptr_array_index (messages, 0)), >, 0);
}

/* A disk that is full in the middle of an answer: it goes on in memory, the user is told, and it is
 * stored as soon as there is room. */
static void
test_disk_full (LibraryFixture *f, gconstpointer data)
{
  KsChat *chat = fixture_open_chat (f, NULL, 1000000);
  struct rlimit old, none = {1, 1};
  g_autoptr (KsStore) store = NULL;
  g_autoptr (GPtrArray) messages = NULL;
  g_autofree char *text = NULL;
  gint64 id;

  fixture_send (chat, "go on");
  WAIT_UNTIL (ks_chat_get_state (chat) == KS_CHAT_ANSWERING);
  id = ks_session_get_id (ks_chat_get_session (chat));
  signal (SIGXFSZ, SIG_IGN);
  g_assert_cmpint (getrlimit (RLIMIT_FSIZE, &old), ==, 0);
  none.rlim_max = old.rlim_max;
  g_assert_cmpint (setrlimit (RLIMIT_FSIZE, &none), ==, 0);
  WAIT_UNTIL (strstr (f->notices->str, "cannot be stored") != NULL);
  g_assert_cmpint (ks_chat_get_state (chat), ==, KS_CHAT_ANSWERING);
  ks_chat_stop (chat);
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  text = fixture_dup_text (chat, 1);
  g_assert_cmpuint (strlen (text), >, 0);
  g_assert_cmpint (setrlimit (RLIMIT_FSIZE, &old), ==, 0);
  fixture_let_go (f, chat);
  fixture_close (f);
  store = fixture_open_store (f);
  messages = ks_store_list_messages (store, id, NULL);
  g_assert_cmpuint (messages->len, ==, 2);
  g_assert_cmpint (ks_message_get_state (g_ptr_array_index (messages, 1)), ==, KS_MESSAGE_STOPPED);
  g_assert_cmpstr (ks_message_get_text (g_ptr_array_index (messages, 1)), ==, text);
}

/* A system text stands in front of everything: another one makes the model read again. */
static void
test_system (LibraryFixture *f, gconstpointer data)
{
  KsChat *chat = fixture_open_chat (f, NULL, 12), *other = fixture_open_chat (f, NULL, 12);
  g_autofree char *want = NULL, *got = NULL;

  fixture_set_system (other, "Be brief.");
  g_free (fixture_ask (other, "one"));
  g_free (fixture_ask (chat, "one"));
  {
    g_autoptr (KsMemoryView) with = NULL, without = ks_chat_dup_memory (chat);

    g_free (fixture_ask (other, "two"));
    with = ks_chat_dup_memory (other);
    g_assert_cmpuint (with->turn_tokens[0], >, without->turn_tokens[0]);
    fixture_set_system (chat, "Be brief.");
    g_free (fixture_ask (chat, "two"));
    g_clear_pointer (&without, ks_memory_view_free);
    without = ks_chat_dup_memory (chat);
    /* Its answer to "one" was another one, its question and instruction are the same. */
    g_assert_cmpuint (without->turn_tokens[0], >=, with->turn_tokens[0] - 12);
  }
  fixture_let_go (f, chat);
  fixture_let_go (f, other);
}

/* The default model in exact mode, whose words are cut into tokens as it made them: an answer that
 * was stopped, closed and read again goes on word by word as if nothing had happened, and so does
 * the next one. */
static void
test_model (LibraryFixture *f, gconstpointer data)
{
  g_autofree char *whole = NULL, *second = NULL, *continued = NULL, *again = NULL;
  g_autoptr (KsSession) session = NULL;
  KsChat *chat;
  guint n_stopped;

  if (g_getenv ("KS_MODEL") == NULL) {
    g_test_skip ("KS_MODEL is not set");
    return;
  }
  fixture_close (f);
  f->model_path = g_getenv ("KS_MODEL");
  fixture_open (f);
  chat = fixture_open_chat (f, NULL, 40);
  whole = fixture_ask (chat, "What is the capital of France, and what is it known for?");
  second = fixture_ask (chat, "And of Italy?");
  fixture_let_go (f, chat);
  chat = fixture_open_chat (f, NULL, 40);
  ask_and_stop (chat, "What is the capital of France, and what is it known for?");
  session = g_object_ref (ks_chat_get_session (chat));
  {
    g_autoptr (KsMessage) answer = fixture_get_message (chat, -1);

    n_stopped = ks_message_get_n_tokens (answer);
  }
  g_assert_cmpuint (n_stopped, >, 0);
  g_assert_cmpuint (n_stopped, <, 40);
  fixture_let_go (f, chat);
  g_clear_object (&session);
  fixture_reopen (f);
  session = fixture_get_first_session (f);
  chat = fixture_open_chat (f, session, 40 - (int)n_stopped);
  g_assert_true (ks_chat_continue (chat));
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  continued = fixture_dup_text (chat, -1);
  g_assert_cmpstr (continued, ==, whole);
  fixture_set_max_tokens (chat, 40);
  again = fixture_ask (chat, "And of Italy?");
  g_assert_cmpstr (again, ==, second);
  fixture_let_go (f, chat);
}

/* No states are kept: whatever is gone back to is read again. */
static void
set_up_reading (LibraryFixture *f, gconstpointer data)
{
  fixture_set_up (f, data);
  g_settings_set_uint (ks_settings_get_gsettings (f->settings), "snapshot-memory", 0);
  fixture_reopen (f);
}

static void
tear_down_reading (LibraryFixture *f, gconstpointer data)
{
  g_settings_reset (ks_settings_get_gsettings (f->settings), "snapshot-memory");
  fixture_tear_down (f, data);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name, func)                                                                            \
  g_test_add ("/chat/" name, LibraryFixture, NULL, fixture_set_up, func, fixture_tear_down)
  ADD ("send", test_send);
  ADD ("title", test_title);
  ADD ("refuse", test_refuse);
  ADD ("reopen", test_reopen);
  ADD ("stop", test_stop);
  ADD ("stop-reading", test_stop_reading);
  ADD ("leave-out", test_leave_out);
  ADD ("regenerate", test_regenerate);
  ADD ("edit", test_edit);
  ADD ("target", test_target);
  ADD ("two-chats", test_two_chats);
  ADD ("close", test_close);
  ADD ("disk-full", test_disk_full);
  ADD ("system", test_system);
  ADD ("model", test_model);
#define ADD_READING(name, func)                                                                    \
  g_test_add ("/chat/reading/" name, LibraryFixture, NULL, set_up_reading, func, tear_down_reading)
  ADD_READING ("stop", test_stop);
  ADD_READING ("stop-reading", test_stop_reading);
  ADD_READING ("leave-out", test_leave_out);
  ADD_READING ("regenerate", test_regenerate);
  ADD_READING ("edit", test_edit);
  ADD_READING ("two-chats", test_two_chats);
  return g_test_run ();
}
