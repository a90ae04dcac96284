/* test-library-memory.c - which model and how much memory a session's answers get: its own, or the
 * program's. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/app/library-fixture.h"

#include <string.h>

static void
append_notice_cb (GString *notices, const char *text)
{
  g_string_append (notices, text);
}

/* A session with a target of its own has it while it is answered; the next one has everybody's. */
static void
test_own_target (LibraryFixture *f, gconstpointer data)
{
  g_autoptr (KsSessionSettings) settings = NULL;
  g_autoptr (KsMemoryView) view = NULL, other_view = NULL;
  g_autofree char *saved = NULL, *model = NULL;
  guint64 target_bytes, min_bytes, max_bytes;
  KsChat *chat, *other;

  fixture_close (f);
  model = g_build_filename (g_getenv ("KS_TEST_CASES"), "llama", "model.gguf", NULL);
  ks_settings_set_model (f->settings, model);
  f->library = ks_library_new (f->settings, f->dir);
  WAIT_UNTIL (ks_library_get_model_state (f->library) == KS_MODEL_READY);
  target_bytes = ks_library_get_target_bytes (f->library);
  ks_library_get_target_range (f->library, &min_bytes, &max_bytes);
  g_assert_cmpuint (min_bytes, <, target_bytes);
  g_assert_cmpuint (target_bytes, <=, max_bytes);
  chat = fixture_open_chat (f, NULL, 4);
  other = fixture_open_chat (f, NULL, 4);
  settings = ks_session_settings_copy (ks_chat_get_settings (chat));
  settings->budget_bytes = (gint64)((min_bytes + target_bytes) / 2);
  ks_chat_set_settings (chat, settings);
  g_free (fixture_ask (chat, "one"));
  view = ks_chat_dup_memory (chat);
  g_assert_cmpuint (view->target_bytes, ==, (guint64)settings->budget_bytes);
  g_free (fixture_ask (other, "one"));
  other_view = ks_chat_dup_memory (other);
  g_assert_cmpuint (other_view->target_bytes, ==, target_bytes);
  g_assert_cmpuint (other_view->kv_budget_bytes, >, view->kv_budget_bytes);
  saved = ks_settings_dup_budget (f->settings);
  g_assert_cmpstr (saved, ==, NULL);
  ks_library_set_target_bytes (f->library, target_bytes - 65536);
  fixture_let_go (f, chat);
  fixture_let_go (f, other);
  fixture_close (f);
  saved = ks_settings_dup_budget (f->settings);
  g_assert_cmpuint (g_ascii_strtoull (saved, NULL, 10), ==, target_bytes - 65536);
}

/* A session's own budget for keys and values holds for its answers, also when it is set in the
 * middle of the session, and ends with it. */
static void
test_own_kv_budget (LibraryFixture *f, gconstpointer data)
{
  const gint64 kv_bytes = 512 * 1024;
  g_autofree char *model =
      g_build_filename (g_getenv ("KS_TEST_CASES"), "llama", "model.gguf", NULL);
  g_autoptr (KsSessionSettings) settings = NULL;
  KsChat *chat, *other;

  fixture_close (f);
  ks_settings_set_model (f->settings, model);
  f->library = ks_library_new (f->settings, f->dir);
  WAIT_UNTIL (ks_library_get_model_state (f->library) == KS_MODEL_READY);
  chat = fixture_open_chat (f, NULL, 4);
  other = fixture_open_chat (f, NULL, 4);
  g_free (fixture_ask (chat, "one"));
  {
    g_autoptr (KsMemoryView) view = ks_chat_dup_memory (chat);

    g_assert_cmpuint (view->kv_budget_bytes, >, (guint64)kv_bytes);
  }
  settings = ks_session_settings_copy (ks_chat_get_settings (chat));
  settings->kv_budget_bytes = kv_bytes;
  ks_chat_set_settings (chat, settings);
  for (guint i = 0; i < 3; i++) {
    g_autoptr (KsMemoryView) view = NULL, other_view = NULL;

    g_free (fixture_ask (chat, "two"));
    view = ks_chat_dup_memory (chat);
    g_assert_cmpuint (view->kv_budget_bytes, <=, (guint64)kv_bytes);
    g_assert_cmpuint (view->kv_budget_bytes, >, (guint64)kv_bytes / 2);
    if (i == 0)
      continue; /* two answers in one conversation; then the other one's in between */
    g_free (fixture_ask (other, "one"));
    other_view = ks_chat_dup_memory (other);
    g_assert_cmpuint (other_view->kv_budget_bytes, >, (guint64)kv_bytes);
  }
  settings->kv_budget_bytes = -1;
  ks_chat_set_settings (chat, settings);
  g_free (fixture_ask (chat, "three"));
  {
    g_autoptr (KsMemoryView) view = ks_chat_dup_memory (chat);

    g_assert_cmpuint (view->kv_budget_bytes, >, (guint64)kv_bytes);
  }
  fixture_let_go (f, chat);
  fixture_let_go (f, other);
}

/* A session's own model answers in it, the program's in the others; one that is not there any more
 * is replaced, with a sentence. */
static void
test_own_model (LibraryFixture *f, gconstpointer data)
{
  const char *cases = g_getenv ("KS_TEST_CASES");
  g_autofree char *model = g_build_filename (cases, "llama", "model.gguf", NULL);
  g_autofree char *own = g_build_filename (cases, "qwen2", "model.gguf", NULL), *saved = NULL;
  g_autoptr (KsSessionSettings) settings = NULL;
  g_autoptr (KsMemoryView) view = NULL, own_view = NULL, back = NULL;
  KsChat *chat, *other;

  fixture_close (f);
  ks_settings_set_model (f->settings, model);
  f->library = ks_library_new (f->settings, f->dir);
  chat = fixture_open_chat (f, NULL, 4);
  other = fixture_open_chat (f, NULL, 4);
  g_free (fixture_ask (other, "one"));
  view = ks_chat_dup_memory (other);
  settings = ks_session_settings_copy (ks_chat_get_settings (chat));
  settings->model = g_strdup (own);
  ks_chat_set_settings (chat, settings);
  g_free (fixture_ask (chat, "one"));
  own_view = ks_chat_dup_memory (chat);
  g_assert_cmpuint (own_view->weight_bytes, !=, view->weight_bytes);
  g_free (fixture_ask (other, "two"));
  back = ks_chat_dup_memory (other);
  g_assert_cmpuint (back->weight_bytes, ==, view->weight_bytes);
  saved = ks_settings_dup_model (f->settings);
  g_assert_cmpstr (saved, ==, model);
  g_free (settings->model);
  settings->model = g_strdup ("/nowhere/model.gguf");
  ks_chat_set_settings (chat, settings);
  g_assert_null (strstr (f->notices->str, "not on this computer"));
  g_signal_connect_swapped (f->library, "notice", G_CALLBACK (append_notice_cb), f->notices);
  g_free (fixture_ask (chat, "two"));
  g_assert_cmpint (fixture_get_state (chat, -1), ==, KS_MESSAGE_LIMIT);
  g_assert_nonnull (strstr (f->notices->str, "/nowhere/model.gguf is not on this computer"));
  fixture_let_go (f, chat);
  fixture_let_go (f, other);
}

static guint64
get_copy_bytes (LibraryFixture *f)
{
  g_autoptr (KsMemoryView) view = ks_library_dup_memory (f->library);

  return view->copy_bytes;
}

/* The copy of the weights is there while the target has room for it: the smallest target drops it,
 * in the middle of an answer or without any conversation, and the next conversation under a larger
 * one has it again. */
static void
test_copy (LibraryFixture *f, gconstpointer data)
{
  g_autofree char *model =
      g_build_filename (g_getenv ("KS_TEST_CASES"), "llama-quant", "llama-q8_0.gguf", NULL);
  guint64 min_bytes, max_bytes, copy_bytes;
  KsChat *chat, *other;

  fixture_close (f);
  ks_settings_set_model (f->settings, model);
  f->library = ks_library_new (f->settings, f->dir);
  WAIT_UNTIL (ks_library_get_model_state (f->library) == KS_MODEL_READY);
  ks_library_get_target_range (f->library, &min_bytes, &max_bytes);
  copy_bytes = get_copy_bytes (f);
  g_assert_cmpuint (copy_bytes, >, 0);
  chat = fixture_open_chat (f, NULL, 48);
  other = fixture_open_chat (f, NULL, 4);
  fixture_send (chat, "one");
  WAIT_UNTIL (ks_chat_get_state (chat) == KS_CHAT_ANSWERING ||
              ks_chat_get_state (chat) == KS_CHAT_IDLE);
  g_assert_cmpuint (get_copy_bytes (f), ==, copy_bytes);
  ks_library_set_target_bytes (f->library, min_bytes);
  WAIT_UNTIL (get_copy_bytes (f) == 0);
  WAIT_UNTIL (ks_chat_get_state (chat) == KS_CHAT_IDLE);
  g_assert_cmpint (fixture_get_state (chat, -1), ==, KS_MESSAGE_LIMIT);
  ks_library_set_target_bytes (f->library, max_bytes);
  g_free (fixture_ask (other, "two"));
  g_assert_cmpuint (get_copy_bytes (f), ==, copy_bytes);
  fixture_let_go (f, chat);
  fixture_let_go (f, other);
}

/* The default model's first target: 1,024 tokens in every stream, and a sensible range about it. */
static void
test_default_target (LibraryFixture *f, gconstpointer data)
{
  g_autoptr (KsMemoryView) view = NULL;
  guint64 target_bytes, min_bytes, max_bytes;
  double n_per_stream;

  if (g_getenv ("KS_MODEL") == NULL) {
    g_test_skip ("KS_MODEL is not set");
    return;
  }
  fixture_close (f);
  ks_settings_set_model (f->settings, g_getenv ("KS_MODEL"));
  f->library = ks_library_new (f->settings, f->dir);
  WAIT_UNTIL (ks_library_get_model_state (f->library) == KS_MODEL_READY);
  g_assert_cmpstr (ks_library_get_model_name (f->library), ==, "SmolLM2 135M Instruct");
  target_bytes = ks_library_get_target_bytes (f->library);
  ks_library_get_target_range (f->library, &min_bytes, &max_bytes);
  view = ks_library_dup_memory (f->library);
  n_per_stream = (double)view->n_keep / (view->n_layer * view->n_kv_head);
  g_assert_cmpfloat (n_per_stream, >=, 1024);
  g_assert_cmpfloat (n_per_stream, <, 1100);
  g_assert_cmpuint (view->copy_bytes, >, 64u << 20);
  g_assert_cmpuint (view->weight_bytes + view->copy_bytes + view->scratch_bytes +
                        view->kv_budget_bytes,
                    <=, target_bytes);
  g_assert_cmpuint (min_bytes, <, target_bytes);
  g_assert_cmpuint (max_bytes, >, target_bytes);
  g_assert_cmpuint (view->program_bytes, >, 0);
}

/* The smallest target is one number: before anything was read, with a conversation under way, and
 * after each change; and it can be set. */
static void
test_one_minimum (LibraryFixture *f, gconstpointer data)
{
  g_autofree char *model =
      g_build_filename (g_getenv ("KS_TEST_CASES"), "llama", "model.gguf", NULL);
  guint64 min_bytes, now_bytes, max_bytes, target_bytes;
  KsChat *chat;

  fixture_close (f);
  ks_settings_set_model (f->settings, model);
  f->library = ks_library_new (f->settings, f->dir);
  WAIT_UNTIL (ks_library_get_model_state (f->library) == KS_MODEL_READY);
  ks_library_get_target_range (f->library, &min_bytes, &max_bytes);
  target_bytes = ks_library_get_target_bytes (f->library);
  chat = fixture_open_chat (f, NULL, 4);
  for (guint i = 0; i < 4; i++) {
    const guint64 targets[] = {target_bytes, target_bytes - 65536, min_bytes, max_bytes};

    ks_library_set_target_bytes (f->library, targets[i]);
    g_free (fixture_ask (chat, "one"));
    g_assert_cmpuint (ks_library_get_target_bytes (f->library), ==, targets[i]);
    ks_library_get_target_range (f->library, &now_bytes, &max_bytes);
    g_assert_cmpuint (now_bytes, ==, min_bytes);
  }
  fixture_let_go (f, chat);
}

static void
rereading_cb (KsChat *chat, GParamSpec *pspec, guint *n)
{
  if (ks_chat_get_state (chat) == KS_CHAT_REREADING)
    (*n)++;
}

/* Keeping everything begins at once where nothing was let go, without reading again; a message
 * beyond the room is refused then, and nothing was let go; it is stored with the session. */
static void
test_keep_everything (LibraryFixture *f, gconstpointer data)
{
  KsChat *chat = fixture_open_chat (f, NULL, 2);
  g_autoptr (KsSessionSettings) settings = ks_session_settings_copy (ks_chat_get_settings (chat));
  g_autoptr (KsSession) session = NULL;
  g_autofree char *a_long_one = g_strnfill (40000, 'a');
  gboolean can_change = FALSE;
  guint n_rereading = 0;

  for (gsize i = 4; i < 40000; i += 5)
    a_long_one[i] = ' ';
  g_signal_connect (chat, "notify::state", G_CALLBACK (rereading_cb), &n_rereading);
  settings->kv_budget_bytes = 512 * 1024;
  ks_chat_set_settings (chat, settings);
  g_free (fixture_ask (chat, "one"));
  g_assert_false (ks_chat_keeps_everything (chat, &can_change));
  g_assert_true (can_change);
  n_rereading = 0; /* the first message begins a conversation */
  ks_chat_set_keep_everything (chat, TRUE);
  g_assert_true (ks_chat_keeps_everything (chat, NULL));
  g_free (fixture_ask (chat, "two"));
  g_assert_cmpuint (n_rereading, ==, 0);
  fixture_send (chat, a_long_one);
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  g_assert_cmpint (fixture_get_state (chat, -1), ==, KS_MESSAGE_FAILED);
  {
    g_autoptr (KsMemoryView) view = ks_chat_dup_memory (chat);

    g_assert_cmpuint (view->n_evicted, ==, 0);
  }
  session = g_object_ref (ks_chat_get_session (chat));
  fixture_let_go (f, chat);
  chat = ks_library_open_chat (f->library, session); /* the fixture's has settings of its own */
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  g_assert_true (ks_chat_keeps_everything (chat, NULL));
  ks_chat_set_keep_everything (chat, FALSE);
  g_assert_null (ks_chat_get_settings (chat)->policy);
  g_object_unref (chat);
}

int
main (int argc, char **argv)
{
  g_test_init (&argc, &argv, NULL);
#define ADD(name, func)                                                                            \
  g_test_add ("/library-memory/" name, LibraryFixture, NULL, fixture_set_up, func,                 \
              fixture_tear_down)
  ADD ("own-target", test_own_target);
  ADD ("own-kv-budget", test_own_kv_budget);
  ADD ("own-model", test_own_model);
  ADD ("keep-everything", test_keep_everything);
  ADD ("copy", test_copy);
  ADD ("default-target", test_default_target);
  ADD ("one-minimum", test_one_minimum);
  return g_test_run ();
}
