/* test-conversation.c - a live conversation on a tiny model: streaming, continuing, cancelling, a
 * budget that moves in the middle of an answer. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-conversation.h"
#include "app/ks-error.h"

#include <string.h>

typedef struct {
  KsEngine *engine;
  KsConversation *conversation;
  KsAnswerOptions *options;
  GString *text;
} Fixture;

static void
text_cb (KsEngineJob *job, const char *text, gpointer user_data)
{
  g_assert_true (g_utf8_validate (text, -1, NULL));
  g_string_append (user_data, text);
}

static void
set_up (Fixture *f, gconstpointer data)
{
  g_autoptr (KsEngineOptions) options = ks_engine_options_new ();
  g_autoptr (KsEngineJob) load = NULL;
  g_autoptr (GError) error = NULL;

  options->model_path = g_build_filename (g_getenv ("KS_TEST_CASES"), "llama", "model.gguf", NULL);
  options->gate_path =
      g_build_filename (g_getenv ("KS_TEST_CASES"), "dbtrimkv", "gate_tied.safetensors", NULL);
  options->budget.kv_bytes = 1u << 20;
  options->n_thread = 1;
  options->chunk = 32;
  f->engine = ks_engine_new ();
  load = ks_engine_load (f->engine, options);
  g_assert_true (ks_engine_job_wait (load, &error));
  g_assert_no_error (error);
  f->conversation = ks_conversation_new (f->engine);
  f->options = ks_answer_options_new ();
  f->options->sampler.temperature = 0;
  f->text = g_string_new (NULL);
}

static void
tear_down (Fixture *f, gconstpointer data)
{
  g_object_unref (f->conversation);
  g_object_unref (f->engine);
  ks_answer_options_free (f->options);
  g_string_free (f->text, TRUE);
}

/* (transfer full) The answer's text. */
static char *
finish (Fixture *f, KsEngineJob *take_job, int want_code)
{
  g_autoptr (KsEngineJob) job = take_job;
  g_autoptr (GError) error = NULL;

  g_string_truncate (f->text, 0);
  g_signal_connect (job, "text", G_CALLBACK (text_cb), f->text);
  if (ks_engine_job_wait (job, &error))
    g_assert_cmpint (want_code, ==, KS_OK);
  else
    g_assert_error (error, KS_ENGINE_ERROR, want_code);
  return g_strdup (f->text->str);
}

/* Two pieces joined by 'continue' are the same text as the answer in one piece. */
static void
test_continue (Fixture *f, gconstpointer data)
{
  g_autoptr (KsConversation) other = ks_conversation_new (f->engine);
  g_autofree char *whole = NULL, *first = NULL, *second = NULL, *joined = NULL;

  f->options->may_continue = TRUE;
  f->options->max_tokens = 24;
  whole = finish (f, ks_conversation_ask (other, "tell me", f->options), KS_OK);
  g_assert_cmpint (ks_conversation_get_answer (other).end, ==, KS_ANSWER_LIMIT);
  f->options->max_tokens = 12;
  first = finish (f, ks_conversation_ask (f->conversation, "tell me", f->options), KS_OK);
  second = finish (f, ks_conversation_continue (f->conversation, f->options), KS_OK);
  joined = g_strconcat (first, second, NULL);
  g_assert_cmpuint (strlen (second), >, 0);
  g_assert_cmpstr (joined, ==, whole);
}

/* Nothing was cut: there is nothing to go on with. */
static void
test_continue_nothing (Fixture *f, gconstpointer data)
{
  g_autoptr (KsEngineJob) job = ks_conversation_continue (f->conversation, f->options);
  g_autoptr (GError) error = NULL;

  g_assert_false (ks_engine_job_wait (job, &error));
  g_assert_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED);
}

/* A message that is refused unread changes nothing: an answer that had ended by itself is not
 * resumed behind it. */
static void
test_continue_refused (Fixture *f, gconstpointer data)
{
  g_autofree char *document = g_strnfill (200000, 'a');
  g_autoptr (KsEngineJob) policy = NULL, again = NULL;
  g_autoptr (GError) error = NULL;
  char *stops[] = {NULL, NULL};
  g_autofree char *text = NULL;

  f->options->max_tokens = 8;
  text = finish (f, ks_conversation_ask (f->conversation, "one", f->options), KS_OK);
  stops[0] = g_utf8_substring (text, 0, 1);
  f->options->stops = g_strdupv (stops);
  g_free (stops[0]);
  g_free (finish (f, ks_conversation_ask (f->conversation, "one", f->options), KS_OK));
  f->options->max_tokens = 4;
  policy = ks_conversation_set_policy (f->conversation, KS_POLICY_FULL);
  g_assert_true (ks_engine_job_wait (policy, &error));
  ks_conversation_add_document (f->conversation, "long.txt", document);
  g_free (finish (f, ks_conversation_ask (f->conversation, "?", f->options), KS_ERR_BUDGET));
  again = ks_conversation_continue (f->conversation, f->options);
  g_assert_false (ks_engine_job_wait (again, &error));
  g_assert_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED);
}

static gboolean
nul_job (KsEngine *engine, KsEngineJob *job, gpointer data, GError **error)
{
  ks_engine_job_emit_text (job, "a", 1);
  ks_engine_job_emit_text (job, "\0", 1);
  ks_engine_job_emit_text (job, "b\0c", 3);
  return TRUE;
}

/* A NUL byte that a model writes neither hides the text behind it nor arrives as an empty piece. */
static void
test_nul (Fixture *f, gconstpointer data)
{
  KsEngineJob *job = ks_engine_job_new (nul_job, NULL, NULL);
  g_autofree char *text = NULL;

  ks_engine_push (f->engine, job);
  text = finish (f, job, KS_OK);
  g_assert_cmpstr (text, ==,
                   "a\xEF\xBF\xBD"
                   "b\xEF\xBF\xBD"
                   "c");
}

static void
cancel_cb (KsEngineJob *job, guint n_done, guint n_total, gpointer user_data)
{
  ks_engine_job_cancel (job);
}

/* A message whose reading is cancelled leaves no trace: the next answer is as if it had not been.
 */
static void
test_cancel (Fixture *f, gconstpointer data)
{
  g_autoptr (KsConversation) other = ks_conversation_new (f->engine);
  g_autofree char *document = g_strnfill (20000, 'a');
  g_autofree char *clean = NULL, *after = NULL, *nothing = NULL;
  g_autoptr (KsMemoryStats) clean_stats = NULL, after_stats = NULL;
  KsEngineJob *job;

  f->options->max_tokens = 8;
  g_free (finish (f, ks_conversation_ask (other, "one", f->options), KS_OK));
  clean = finish (f, ks_conversation_ask (other, "two", f->options), KS_OK);
  g_free (finish (f, ks_conversation_ask (f->conversation, "one", f->options), KS_OK));
  ks_conversation_add_document (f->conversation, "long.txt", document);
  job = ks_conversation_ask (f->conversation, "what?", f->options);
  g_signal_connect (job, "progress", G_CALLBACK (cancel_cb), NULL);
  nothing = finish (f, job, KS_ERR_CANCELLED);
  g_assert_cmpstr (nothing, ==, "");
  after = finish (f, ks_conversation_ask (f->conversation, "two", f->options), KS_OK);
  /* Read again as one run of tokens, the same context up to rounding: same length, same beginning.
   */
  g_assert_cmpuint (strlen (after), >, 0);
  g_assert_cmpstr (after, ==, clean);
  /* And it is counted under the turns that it belongs to. */
  clean_stats = ks_conversation_dup_stats (other);
  after_stats = ks_conversation_dup_stats (f->conversation);
  g_assert_cmpuint (after_stats->kv.n_turn, ==, 2);
  for (guint i = 0; i < 2; i++)
    g_assert_cmpuint (after_stats->kv.turn_tokens[i], ==, clean_stats->kv.turn_tokens[i]);
}

static GPtrArray *
make_turns (const char *last_answer, gboolean unfinished)
{
  GPtrArray *turns = g_ptr_array_new_with_free_func ((GDestroyNotify)ks_turn_text_free);

  g_ptr_array_add (turns, ks_turn_text_new ("one", "first", FALSE));
  g_ptr_array_add (turns, ks_turn_text_new ("two", last_answer, unfinished));
  return turns;
}

/* Turns that are read again are the context of what is asked next, each under its own number; an
 * unfinished answer goes on, a finished one does not. */
static void
test_restore (Fixture *f, gconstpointer data)
{
  g_autoptr (KsConversation) other = ks_conversation_new (f->engine);
  g_autofree char *here = NULL, *there = NULL, *more = NULL;
  g_autoptr (KsMemoryStats) stats = NULL;
  g_autoptr (KsEngineJob) job = NULL;
  g_autoptr (GError) error = NULL;

  f->options->max_tokens = 8;
  g_free (finish (f, ks_conversation_restore (other, make_turns ("second", FALSE)), KS_OK));
  stats = ks_conversation_dup_stats (other);
  g_assert_cmpuint (stats->kv.n_turn, ==, 2);
  g_assert_cmpuint (stats->kv.turn_tokens[0], >, 3);
  g_assert_cmpuint (stats->kv.turn_tokens[0] + stats->kv.turn_tokens[1], ==, stats->kv.seen);
  job = ks_conversation_continue (other, f->options);
  g_assert_false (ks_engine_job_wait (job, &error));
  g_assert_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED);
  /* Whatever was there before is gone. */
  g_free (finish (f, ks_conversation_ask (f->conversation, "something", f->options), KS_OK));
  g_free (
      finish (f, ks_conversation_restore (f->conversation, make_turns ("second", TRUE)), KS_OK));
  more = finish (f, ks_conversation_continue (f->conversation, f->options), KS_OK);
  g_assert_cmpuint (strlen (more), >, 0);
  g_free (
      finish (f, ks_conversation_restore (f->conversation, make_turns ("second", FALSE)), KS_OK));
  there = finish (f, ks_conversation_ask (other, "three", f->options), KS_OK);
  here = finish (f, ks_conversation_ask (f->conversation, "three", f->options), KS_OK);
  g_assert_cmpstr (here, ==, there);
}

/* Reading again that was cancelled leaves nothing behind. */
static void
test_restore_cancelled (Fixture *f, gconstpointer data)
{
  g_autoptr (KsConversation) other = ks_conversation_new (f->engine);
  g_autofree char *document = g_strnfill (20000, 'a'), *here = NULL, *there = NULL;
  g_autoptr (KsMemoryStats) stats = NULL;
  GPtrArray *turns = make_turns ("second", FALSE);
  KsEngineJob *job;

  f->options->max_tokens = 8;
  g_ptr_array_add (turns, ks_turn_text_new (document, "third", FALSE));
  job = ks_conversation_restore (f->conversation, turns);
  g_signal_connect (job, "progress", G_CALLBACK (cancel_cb), NULL);
  g_free (finish (f, job, KS_ERR_CANCELLED));
  stats = ks_conversation_dup_stats (f->conversation);
  g_assert_cmpuint (stats->kv.seen, ==, 0);
  here = finish (f, ks_conversation_ask (f->conversation, "one", f->options), KS_OK);
  there = finish (f, ks_conversation_ask (other, "one", f->options), KS_OK);
  g_assert_cmpstr (here, ==, there);
}

/* A target that is too small becomes the smallest that works, and that is told. */
static void
test_target_too_small (Fixture *f, gconstpointer data)
{
  g_autoptr (KsEngineJob) job = NULL;
  g_autoptr (KsMemoryStats) stats = NULL;
  g_autoptr (GError) error = NULL;

  f->options->max_tokens = 4;
  g_free (finish (f, ks_conversation_ask (f->conversation, "one", f->options), KS_OK));
  job = ks_conversation_set_target (f->conversation, 1);
  g_assert_true (ks_engine_job_wait (job, &error));
  g_assert_no_error (error);
  stats = ks_conversation_dup_stats (f->conversation);
  g_assert_cmpuint (stats->kv.kv_budget_bytes, <, 512u << 10);
  g_assert_cmpuint (stats->least_bytes, >=,
                    stats->kv.weight_bytes + stats->kv.gate_bytes + stats->kv.kv_budget_bytes);
  g_free (finish (f, ks_conversation_ask (f->conversation, "two", f->options), KS_OK));
}

typedef struct {
  Fixture *f;
  KsEngineJob *job;
} Shrink;

static void
shrink_cb (KsEngineJob *job, const char *text, gpointer user_data)
{
  Shrink *shrink = user_data;
  ks_budget_request request = {.kv_bytes = 512u << 10};

  if (shrink->job == NULL)
    shrink->job = ks_conversation_set_budget (shrink->f->conversation, &request);
}

/* The budget moves while the answer runs, and holds from then on. */
static void
test_budget (Fixture *f, gconstpointer data)
{
  Shrink shrink = {.f = f};
  g_autoptr (KsMemoryStats) after = NULL;
  g_autoptr (GError) error = NULL;
  g_autofree char *document = g_strnfill (3000, 'b');
  KsEngineJob *job;

  f->options->max_tokens = 40;
  ks_conversation_add_document (f->conversation, "b.txt", document);
  job = ks_conversation_ask (f->conversation, "what?", f->options);
  g_signal_connect (job, "text", G_CALLBACK (shrink_cb), &shrink);
  g_free (finish (f, job, KS_OK));
  g_assert_nonnull (shrink.job);
  g_assert_true (ks_engine_job_wait (shrink.job, &error));
  g_assert_no_error (error);
  g_object_unref (shrink.job);
  after = ks_conversation_dup_stats (f->conversation);
  g_assert_cmpuint (after->kv.kv_budget_bytes, <=, 512u << 10);
  g_assert_cmpuint (after->kv.kv_used_bytes, <=, after->kv.kv_budget_bytes);
  g_assert_cmpuint (after->kv.n_evicted, >, 0);
  g_assert_cmpuint (after->kv.seen, >, 1000);
  g_assert_cmpuint (after->kv.by_turn[0], ==, after->kv.n_entries);
}

/* A target below the smallest that works is refused with a sentence, and nothing changes. */
static void
test_budget_too_small (Fixture *f, gconstpointer data)
{
  ks_budget_request request = {.kv_bytes = 1000};
  g_autoptr (KsEngineJob) job = NULL;
  g_autoptr (GError) error = NULL;
  g_autoptr (KsMemoryStats) stats = NULL;

  f->options->max_tokens = 4;
  g_free (finish (f, ks_conversation_ask (f->conversation, "one", f->options), KS_OK));
  job = ks_conversation_set_budget (f->conversation, &request);
  g_assert_false (ks_engine_job_wait (job, &error));
  g_assert_error (error, KS_ENGINE_ERROR, KS_ERR_BUDGET);
  stats = ks_conversation_dup_stats (f->conversation);
  g_assert_cmpuint (stats->kv.kv_budget_bytes, >, 900u << 10);
}

/* A model is not replaced under an open conversation. */
static void
test_load_in_use (Fixture *f, gconstpointer data)
{
  g_autoptr (KsEngineOptions) options = ks_engine_options_new ();
  g_autoptr (KsEngineJob) job = NULL;
  g_autoptr (GError) error = NULL;

  f->options->max_tokens = 2;
  g_free (finish (f, ks_conversation_ask (f->conversation, "one", f->options), KS_OK));
  options->model_path = g_build_filename (g_getenv ("KS_TEST_CASES"), "qwen2", "model.gguf", NULL);
  job = ks_engine_load (f->engine, options);
  g_assert_false (ks_engine_job_wait (job, &error));
  g_assert_error (error, KS_APP_ERROR, KS_APP_ERROR_FAILED);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name, func) g_test_add ("/conversation/" name, Fixture, NULL, set_up, func, tear_down)
  ADD ("continue", test_continue);
  ADD ("continue-nothing", test_continue_nothing);
  ADD ("continue-refused", test_continue_refused);
  ADD ("nul", test_nul);
  ADD ("cancel", test_cancel);
  ADD ("restore", test_restore);
  ADD ("restore-cancelled", test_restore_cancelled);
  ADD ("target-too-small", test_target_too_small);
  ADD ("budget", test_budget);
  ADD ("budget-too-small", test_budget_too_small);
  ADD ("load-in-use", test_load_in_use);
  return g_test_run ();
}
