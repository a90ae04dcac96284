/* test-pins.c - what a user keeps in memory: turns and pictures that no eviction takes, inside the
 * budget, also while they are read and answered; stored with the session, refused when too much. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-conversation.h"
#include "app/ks-error-kind.h"
#include "app/ks-error.h"
#include "tests/app/library-fixture.h"

#include <string.h>

/* --- a live conversation --- */

typedef struct {
  KsEngine *engine;
  KsConversation *conversation;
  KsAnswerOptions *options;
} Live;

static void
set_up (Live *f, gconstpointer data)
{
  const char *cases = g_getenv ("KS_TEST_CASES");
  g_autoptr (KsEngineOptions) options = ks_engine_options_new ();
  g_autoptr (KsEngineJob) load = NULL;
  g_autoptr (GError) error = NULL;

  options->model_path = g_build_filename (cases, "llama", "model.gguf", NULL);
  options->gate_path = g_build_filename (cases, "dbtrimkv", "gate_tied.safetensors", NULL);
  options->budget.entries = 128;
  options->n_thread = 1;
  options->chunk = 32;
  f->engine = ks_engine_new ();
  load = ks_engine_load (f->engine, options);
  (void)ks_engine_job_wait (load, &error);
  g_assert_no_error (error);
  f->conversation = ks_conversation_new (f->engine);
  f->options = ks_answer_options_new ();
  f->options->sampler.temperature = 0;
  f->options->max_tokens = 4;
}

static void
tear_down (Live *f, gconstpointer data)
{
  g_object_unref (f->conversation);
  g_object_unref (f->engine);
  ks_answer_options_free (f->options);
}

static void
finish (KsEngineJob *take_job)
{
  g_autoptr (KsEngineJob) job = take_job;
  g_autoptr (GError) error = NULL;

  (void)ks_engine_job_wait (job, &error);
  g_assert_no_error (error);
}

static void
ask (Live *f, const char *text)
{
  finish (ks_conversation_ask (f->conversation, text, f->options));
}

/* A message that evicts most of what stands before it. */
static void
ask_long (Live *f)
{
  g_autofree char *text = g_strnfill (400, 'a');

  ask (f, text);
}

static gboolean
pin (Live *f, guint turn, gboolean pinned)
{
  gboolean is_whole = FALSE;

  finish (ks_conversation_pin (f->conversation, turn, NULL, pinned, &is_whole));
  return is_whole;
}

/* Share of a turn's entries that are there; what is kept never exceeds the budget. */
static double
get_share (Live *f, guint turn)
{
  g_autoptr (KsMemoryStats) stats = ks_conversation_dup_stats (f->conversation);
  guint64 n_stream = (guint64)stats->kv.n_layer * stats->kv.n_kv_head;

  g_assert_cmpuint (stats->kv.kv_used_bytes, <=, stats->kv.kv_budget_bytes);
  g_assert_cmpuint (turn, <, stats->kv.n_turn);
  return (double)stats->kv.by_turn[turn] / (double)(stats->kv.turn_tokens[turn] * n_stream);
}

static gboolean
is_shown (Live *f, guint turn)
{
  g_autoptr (KsMemoryStats) stats = ks_conversation_dup_stats (f->conversation);
  g_autoptr (KsMemoryView) view = ks_memory_stats_make_view (stats, 0);

  if (view->pinned_turns[turn])
    g_assert_cmpuint (view->n_pinned, >=, view->by_turn[turn]);
  else if (view->n_turn == 1)
    g_assert_cmpuint (view->n_pinned, ==, 0);
  return view->pinned_turns[turn];
}

/* A pinned turn stays whole inside the budget while all around it goes; let go, it fades. */
static void
test_turn (Live *f, gconstpointer data)
{
  ask (f, "seven");
  g_assert_true (pin (f, 0, TRUE));
  g_assert_true (is_shown (f, 0));
  ask_long (f);
  ask_long (f);
  g_assert_cmpfloat (get_share (f, 0), ==, 1.0);
  g_assert_cmpfloat (get_share (f, 1), <, 0.5);
  pin (f, 0, FALSE);
  g_assert_false (is_shown (f, 0));
  ask_long (f);
  g_assert_cmpfloat (get_share (f, 0), <, 1.0);
}

/* What was let go already is told. */
static void
test_late (Live *f, gconstpointer data)
{
  ask (f, "seven");
  ask_long (f);
  g_assert_cmpfloat (get_share (f, 0), <, 1.0);
  g_assert_false (pin (f, 0, TRUE));
  g_assert_true (is_shown (f, 0));
}

/* Longer than memory: refused with a sentence that tells what to do, and nothing is pinned. */
static void
test_too_much (Live *f, gconstpointer data)
{
  g_autoptr (KsEngineJob) job = NULL;
  g_autoptr (GError) error = NULL;

  ask_long (f);
  job = ks_conversation_pin (f->conversation, 0, NULL, TRUE, NULL);
  g_assert_false (ks_engine_job_wait (job, &error));
  g_assert_error (error, KS_ENGINE_ERROR, KS_ERR_BUDGET);
  g_assert_nonnull (strstr (error->message, "unpin something or raise the target"));
  g_assert_false (is_shown (f, 0));
  ask (f, "and on");
  g_assert_cmpfloat (get_share (f, 0), <, 1.0);
}

static KsTurnText *
turn_new (const char *text, const char *answer, gboolean pinned)
{
  KsTurnText *turn = ks_turn_text_new (text, answer, FALSE);

  turn->pinned = pinned;
  return turn;
}

/* A turn that is pinned from its beginning loses nothing while it is answered. */
static void
test_answer (Live *f, gconstpointer data)
{
  ask_long (f);
  f->options->max_tokens = 70;
  finish (ks_conversation_ask_turn (f->conversation, turn_new ("count", "", TRUE), f->options));
  g_assert_cmpuint (ks_conversation_get_answer (f->conversation).n_answer, >, 40);
  g_assert_cmpfloat (get_share (f, 1), ==, 1.0);
  f->options->max_tokens = 4;
  ask_long (f);
  g_assert_cmpfloat (get_share (f, 1), ==, 1.0);
}

static void
notice_cb (KsEngineJob *job, const char *text, gpointer user_data)
{
  g_string_append_printf (user_data, "%s\n", text);
}

/* Read again, pins hold from the first token on; one that does not fit is told and not shown. */
static void
test_restore (Live *f, gconstpointer data)
{
  g_autofree char *text = g_strnfill (400, 'a');
  g_autoptr (GString) notices = g_string_new (NULL);
  GPtrArray *turns = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_turn_text_free);
  g_autoptr (KsEngineJob) job = NULL;
  g_autoptr (GError) error = NULL;

  g_ptr_array_add (turns, turn_new ("seven", "It is kept.", TRUE));
  g_ptr_array_add (turns, turn_new (text, "So be it.", TRUE));
  g_ptr_array_add (turns, turn_new (text, "So be it.", FALSE));
  job = ks_conversation_restore (f->conversation, turns);
  g_signal_connect (job, "notice", G_CALLBACK (notice_cb), notices);
  (void)ks_engine_job_wait (job, &error);
  g_assert_no_error (error);
  g_assert_nonnull (strstr (notices->str, "fits the memory target"));
  g_assert_cmpfloat (get_share (f, 0), ==, 1.0);
  g_assert_true (is_shown (f, 0));
  g_assert_false (is_shown (f, 1));
  ask_long (f);
  g_assert_cmpfloat (get_share (f, 0), ==, 1.0);
}

/* --- a picture --- */

static void
set_up_seeing (Live *f, gconstpointer data)
{
  const char *cases = g_getenv ("KS_TEST_CASES");
  g_autoptr (KsEngineOptions) options = ks_engine_options_new ();
  g_autoptr (KsEngineJob) load = NULL;
  g_autoptr (GError) error = NULL;

  options->model_path = g_build_filename (cases, "idefics3", "model.gguf", NULL);
  options->mmproj_path = g_build_filename (cases, "idefics3", "mmproj.gguf", NULL);
  options->mmproj_hash = g_strnfill (64, 'a');
  options->budget.entries = 160;
  options->n_thread = 1;
  options->chunk = 32;
  f->engine = ks_engine_new ();
  load = ks_engine_load (f->engine, options);
  (void)ks_engine_job_wait (load, &error);
  g_assert_no_error (error);
  f->conversation = ks_conversation_new (f->engine);
  f->options = ks_answer_options_new ();
  f->options->sampler.temperature = 0;
  f->options->max_tokens = 4;
}

/* A pinned picture stays whole, its turn's text does not have to. */
static void
test_picture (Live *f, gconstpointer data)
{
  g_autofree char *path =
      g_build_filename (g_getenv ("KS_TEST_CASES"), "idefics3", "img0.png", NULL);
  g_autofree char *hash = NULL, *text = g_strnfill (900, 'a');
  g_autoptr (GError) error = NULL;
  g_autoptr (KsMemoryStats) stats = NULL;
  g_autoptr (KsMemoryView) view = NULL;
  KsPicture *picture = ks_picture_new_from_file (path, NULL, &error);

  g_assert_no_error (error);
  hash = g_strdup (picture->hash);
  ks_conversation_add_picture (f->conversation, picture);
  ask (f, "what is it");
  finish (ks_conversation_pin (f->conversation, 0, hash, TRUE, NULL));
  ask (f, text);
  ask (f, text);
  stats = ks_conversation_dup_stats (f->conversation);
  view = ks_memory_stats_make_view (stats, 0);
  g_assert_cmpuint (view->n_evicted, >, 0);
  g_assert_cmpuint (view->n_picture, ==, 1);
  g_assert_true (view->pictures[0].pinned);
  g_assert_false (view->pinned_turns[0]);
  g_assert_cmpfloat (ks_memory_view_get_picture_share (view, 0), ==, 1.0);
  g_assert_cmpfloat (ks_memory_view_get_turn_share (view, 0), <, 1.0);
  g_assert_cmpuint (view->n_pinned, ==, view->pictures[0].n_entries);
}

/* --- a stored session --- */

typedef struct {
  gboolean done, ok, is_whole;
  GError *error;
} Pinned;

static void
pinned_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  Pinned *pinned = user_data;

  pinned->ok = ks_chat_pin_finish (KS_CHAT (source), result, &pinned->is_whole, &pinned->error);
  pinned->done = TRUE;
}

static Pinned
pin_message (KsChat *chat, int i, gboolean wanted)
{
  g_autoptr (KsMessage) message = fixture_get_message (chat, i);
  Pinned pinned = {.is_whole = TRUE};

  ks_chat_pin_async (chat, message, NULL, wanted, pinned_cb, &pinned);
  WAIT_UNTIL (pinned.done);
  g_assert_true (ks_message_is_pinned (message, NULL) == (pinned.ok && wanted));
  return pinned;
}

static void
total_cb (KsChat *chat, GParamSpec *pspec, gpointer user_data)
{
  if (ks_chat_get_state (chat) == KS_CHAT_REREADING)
    *(guint *)user_data += ks_chat_get_n_total (chat);
}

static KsChat *
open_chat (LibraryFixture *f, KsSession *session, guint *n_reread)
{
  KsChat *chat = fixture_open_chat (f, session, 8);

  g_signal_connect (chat, "notify::n-total", G_CALLBACK (total_cb), n_reread);
  return chat;
}

static void
let_go (LibraryFixture *f, KsChat *chat, guint *n_reread)
{
  g_signal_handlers_disconnect_by_data (chat, n_reread);
  fixture_let_go (f, chat);
}

/* A pin is found again with its session, is in force there, and costs no reading. */
static void
test_stored (LibraryFixture *f, gconstpointer data)
{
  guint n_reread = 0;
  KsChat *chat = open_chat (f, NULL, &n_reread);
  g_autoptr (KsSession) session = NULL;
  g_autoptr (KsMessage) first = NULL, second = NULL;
  g_autoptr (KsMemoryView) view = NULL;

  g_free (fixture_ask (chat, "one"));
  g_assert_true (pin_message (chat, 0, TRUE).ok);
  g_free (fixture_ask (chat, "two"));
  let_go (f, chat, &n_reread);
  fixture_reopen (f);
  session = fixture_get_first_session (f);
  chat = open_chat (f, session, &n_reread);
  first = fixture_get_message (chat, 0);
  second = fixture_get_message (chat, 2);
  g_assert_true (ks_message_is_pinned (first, NULL));
  g_assert_false (ks_message_is_pinned (second, NULL));
  g_free (fixture_ask (chat, "three"));
  view = ks_chat_dup_memory (chat);
  g_assert_true (view->pinned_turns[0]);
  g_assert_false (view->pinned_turns[1]);
  g_assert_cmpuint (n_reread, ==, 0);
  let_go (f, chat, &n_reread);
}

/* Another wording of a pinned question is pinned as well, from its first token on. */
static void
test_edited (LibraryFixture *f, gconstpointer data)
{
  guint n_reread = 0;
  KsChat *chat = open_chat (f, NULL, &n_reread);
  g_autoptr (KsSession) session = NULL;
  g_autoptr (KsMessage) first = NULL, edited = NULL, stored = NULL;
  g_autoptr (KsMemoryView) view = NULL;

  g_free (fixture_ask (chat, "one"));
  g_assert_true (pin_message (chat, 0, TRUE).ok);
  first = fixture_get_message (chat, 0);
  g_assert_true (ks_chat_edit (chat, first, "another one"));
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  edited = fixture_get_message (chat, 0);
  g_assert_true (edited != first && ks_message_is_pinned (edited, NULL));
  view = ks_chat_dup_memory (chat);
  g_assert_true (view->pinned_turns[0]);
  let_go (f, chat, &n_reread);
  fixture_reopen (f);
  session = fixture_get_first_session (f);
  chat = open_chat (f, session, &n_reread);
  stored = fixture_get_message (chat, 0);
  g_assert_true (ks_message_is_pinned (stored, NULL));
  let_go (f, chat, &n_reread);
}

/* What was let go before it was pinned comes back with the next message. */
static void
test_comes_back (LibraryFixture *f, gconstpointer data)
{
  g_autofree char *text = g_strnfill (1500, 'b');
  guint n_reread = 0;
  KsChat *chat = open_chat (f, NULL, &n_reread);
  g_autoptr (KsMemoryView) before = NULL, after = NULL;
  Pinned pinned;

  WAIT_UNTIL (ks_library_get_model_state (f->library) == KS_MODEL_READY);
  ks_library_set_target_bytes (f->library, ks_library_get_target_bytes (f->library) - (3u << 20));
  g_free (fixture_ask (chat, "one"));
  g_free (fixture_ask (chat, text));
  before = ks_chat_dup_memory (chat);
  g_assert_cmpfloat (ks_memory_view_get_turn_share (before, 0), <, 1.0);
  pinned = pin_message (chat, 0, TRUE);
  g_assert_true (pinned.ok);
  g_assert_false (pinned.is_whole);
  g_assert_cmpuint (n_reread, ==, 0);
  g_free (fixture_ask (chat, "three"));
  g_assert_cmpuint (n_reread, >, 0);
  after = ks_chat_dup_memory (chat);
  g_assert_cmpfloat (ks_memory_view_get_turn_share (after, 0), ==, 1.0);
  let_go (f, chat, &n_reread);
}

/* More than memory holds is refused, and not stored either. */
static void
test_refused (LibraryFixture *f, gconstpointer data)
{
  g_autofree char *text = g_strnfill (1500, 'b');
  guint n_reread = 0;
  KsChat *chat = open_chat (f, NULL, &n_reread);
  g_autoptr (KsSession) session = NULL;
  g_autoptr (KsMessage) first = NULL;
  Pinned pinned;

  WAIT_UNTIL (ks_library_get_model_state (f->library) == KS_MODEL_READY);
  ks_library_set_target_bytes (f->library, 1);
  g_free (fixture_ask (chat, text));
  pinned = pin_message (chat, 0, TRUE);
  g_assert_false (pinned.ok);
  g_assert_cmpint (ks_error_get_kind (pinned.error), ==, KS_ERROR_KIND_BUDGET);
  g_clear_error (&pinned.error);
  let_go (f, chat, &n_reread);
  fixture_reopen (f);
  session = fixture_get_first_session (f);
  chat = open_chat (f, session, &n_reread);
  first = fixture_get_message (chat, 0);
  g_assert_false (ks_message_is_pinned (first, NULL));
  let_go (f, chat, &n_reread);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name, func) g_test_add ("/pins/" name, Live, NULL, set_up, func, tear_down)
  ADD ("turn", test_turn);
  ADD ("late", test_late);
  ADD ("too-much", test_too_much);
  ADD ("answer", test_answer);
  ADD ("restore", test_restore);
  g_test_add ("/pins/picture", Live, NULL, set_up_seeing, test_picture, tear_down);
#define ADD_STORED(name, func)                                                                     \
  g_test_add ("/pins/session/" name, LibraryFixture, NULL, fixture_set_up, func, fixture_tear_down)
  ADD_STORED ("stored", test_stored);
  ADD_STORED ("edited", test_edited);
  ADD_STORED ("comes-back", test_comes_back);
  ADD_STORED ("refused", test_refused);
  return g_test_run ();
}
