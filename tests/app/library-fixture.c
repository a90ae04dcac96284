/* library-fixture.c - see library-fixture.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/app/library-fixture.h"

#include "tests/remove-tree.h"

#include <glib/gstdio.h>

static gboolean
tick_cb (gpointer data)
{
  return G_SOURCE_REMOVE;
}

void
fixture_iterate (void)
{
  guint source = g_timeout_add (20, tick_cb, NULL);
  GSource *tick = g_main_context_find_source_by_id (NULL, source);

  g_source_ref (tick);
  g_main_context_iteration (NULL, TRUE);
  g_source_destroy (tick);
  g_source_unref (tick);
}

static void
notice_cb (GObject *object, const char *text, gpointer user_data)
{
  LibraryFixture *f = user_data;

  g_string_append_printf (f->notices, "%s\n", text);
}

static void
answered_cb (KsChat *chat, KsMessage *message, gpointer user_data)
{
  ((LibraryFixture *)user_data)->n_answered++;
}

static void
failed_cb (KsChat *chat, GError *error, gpointer user_data)
{
  LibraryFixture *f = user_data;

  f->n_failed++;
  g_free (f->failure);
  f->failure = g_strdup (error->message);
}

static KsEngineOptions *
make_options (LibraryFixture *f)
{
  KsEngineOptions *options = ks_engine_options_new ();

  if (f->model_path != NULL) {
    options->model_path = g_strdup (f->model_path);
    /* In fast mode what is read again may differ in the last bits of a code, and with it a word. */
    options->mode = KS_COMPUTE_EXACT;
    options->budget.kv_bytes = 64u << 20;
    return options;
  }
  options->model_path = g_build_filename (g_getenv ("KS_TEST_CASES"), "llama", "model.gguf", NULL);
  options->gate_path =
      g_build_filename (g_getenv ("KS_TEST_CASES"), "dbtrimkv", "gate_tied.safetensors", NULL);
  options->budget.kv_bytes = 4u << 20;
  options->n_thread = 1;
  options->chunk = 32;
  return options;
}

void
fixture_open (LibraryFixture *f)
{
  g_autoptr (KsEngineOptions) options = make_options (f);

  f->library = ks_library_new_full (f->settings, f->dir, options);
  g_signal_connect (f->library, "notice", G_CALLBACK (notice_cb), f);
}

static void
closed_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  (void)ks_library_close_finish (KS_LIBRARY (source), result);
  *(gboolean *)user_data = TRUE;
}

void
fixture_begin_close (LibraryFixture *f)
{
  f->closed = FALSE;
  ks_library_close_async (f->library, closed_cb, &f->closed);
}

void
fixture_end_close (LibraryFixture *f)
{
  WAIT_UNTIL (f->closed);
  g_assert_finalize_object (f->library);
  f->library = NULL;
}

void
fixture_close (LibraryFixture *f)
{
  fixture_begin_close (f);
  fixture_end_close (f);
}

void
fixture_set_up (LibraryFixture *f, gconstpointer data)
{
  g_autoptr (GError) error = NULL;

  f->dir = g_dir_make_tmp ("ks-library-XXXXXX", &error);
  g_assert_no_error (error);
  f->settings = ks_settings_new (NULL);
  f->notices = g_string_new (NULL);
  fixture_open (f);
}

void
fixture_tear_down (LibraryFixture *f, gconstpointer data)
{
  if (f->library != NULL)
    fixture_close (f);
  g_object_unref (f->settings);
  g_string_free (f->notices, TRUE);
  g_free (f->failure);
  remove_tree (f->dir);
  g_free (f->dir);
}

KsChat *
fixture_open_chat (LibraryFixture *f, KsSession *session, int max_tokens)
{
  KsChat *chat = ks_library_open_chat (f->library, session);
  g_autoptr (KsSessionSettings) settings = ks_session_settings_new ();

  g_signal_connect (chat, "notice", G_CALLBACK (notice_cb), f);
  g_signal_connect (chat, "answered", G_CALLBACK (answered_cb), f);
  g_signal_connect (chat, "failed", G_CALLBACK (failed_cb), f);
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  settings->temperature = 0;
  settings->max_tokens = max_tokens;
  ks_chat_set_settings (chat, settings);
  return chat;
}

void
fixture_set_max_tokens (KsChat *chat, int max_tokens)
{
  g_autoptr (KsSessionSettings) settings = ks_session_settings_copy (ks_chat_get_settings (chat));

  settings->max_tokens = max_tokens;
  ks_chat_set_settings (chat, settings);
}

void
fixture_set_temperature (KsChat *chat, double temperature)
{
  g_autoptr (KsSessionSettings) settings = ks_session_settings_copy (ks_chat_get_settings (chat));

  settings->temperature = temperature;
  ks_chat_set_settings (chat, settings);
}

void
fixture_set_system (KsChat *chat, const char *text)
{
  g_autoptr (KsSessionSettings) settings = ks_session_settings_copy (ks_chat_get_settings (chat));

  g_free (settings->system_prompt);
  settings->system_prompt = g_strdup (text);
  ks_chat_set_settings (chat, settings);
}

void
fixture_let_go (LibraryFixture *f, KsChat *chat)
{
  g_signal_handlers_disconnect_by_data (chat, f);
  g_object_unref (chat);
}

void
fixture_send (KsChat *chat, const char *text)
{
  const char *reason = NULL;
  gboolean sent = ks_chat_send (chat, text, &reason);

  g_assert_cmpstr (reason, ==, NULL);
  g_assert_true (sent);
}

KsMessage *
fixture_get_message (KsChat *chat, int i)
{
  GListModel *list = ks_chat_get_messages (chat);
  int n = (int)g_list_model_get_n_items (list);

  return g_list_model_get_item (list, (guint)(i < 0 ? n + i : i));
}

char *
fixture_dup_text (KsChat *chat, int i)
{
  g_autoptr (KsMessage) message = fixture_get_message (chat, i);

  return g_strdup (ks_message_get_text (message));
}

KsMessageState
fixture_get_state (KsChat *chat, int i)
{
  g_autoptr (KsMessage) message = fixture_get_message (chat, i);

  return ks_message_get_state (message);
}

char *
fixture_ask (KsChat *chat, const char *text)
{
  fixture_send (chat, text);
  WAIT_UNTIL (!ks_chat_is_busy (chat));
  return fixture_dup_text (chat, -1);
}

KsStore *
fixture_open_store (LibraryFixture *f)
{
  g_autoptr (GError) error = NULL;
  KsStore *store = ks_store_open (f->dir, FALSE, &error);

  g_assert_no_error (error);
  return store;
}

void
fixture_reopen (LibraryFixture *f)
{
  fixture_close (f);
  fixture_open (f);
}

KsSession *
fixture_get_first_session (LibraryFixture *f)
{
  GListModel *sessions = ks_library_get_sessions (f->library);

  WAIT_UNTIL (ks_library_is_opened (f->library));
  return g_list_model_get_item (sessions, 0);
}
