/* ks-chat-stream.c - an answer on its way to the eye and to the disk: pieces are shown some times a
 * second, stored every 2 s while they stream, and once more at the end.  What cannot be stored goes
 * on in memory and is tried again.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-chat-internal.h"

#define SHOW_EVERY_MS 50    /* 20 times a second is as fast as anybody reads */
#define STORE_EVERY_MS 2000 /* what a crash may cost */

/* --- to the eye --- */

void
ks_chat_show_piece (KsChat *self)
{
  g_clear_handle_id (&self->piece_source, g_source_remove);
  if (self->piece->len == 0)
    return;
  ks_message_append_text (self->run.answer, self->piece->str);
  g_string_truncate (self->piece, 0);
}

static gboolean
show_piece_cb (gpointer user_data)
{
  KsChat *self = user_data;

  self->piece_source = 0;
  ks_chat_show_piece (self);
  return G_SOURCE_REMOVE;
}

void
ks_chat_add_piece (KsChat *self, const char *text)
{
  g_string_append (self->piece, text);
  if (self->piece_source == 0)
    self->piece_source = g_timeout_add (SHOW_EVERY_MS, show_piece_cb, self);
}

/* --- to the disk, while it streams --- */

static KsUpdateRequest *
new_update (KsChat *self, KsMessageState state)
{
  KsUpdateRequest *request = g_new0 (KsUpdateRequest, 1);

  request->session = ks_session_get_id (self->session);
  request->message = ks_message_get_id (self->run.answer);
  request->text = g_strdup (ks_message_get_text (self->run.answer));
  request->state = state;
  request->n_tokens = ks_message_get_n_tokens (self->run.answer);
  return request;
}

static void
stored_piece_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (KsChat) self = user_data;
  g_autoptr (GError) error = NULL;

  self->store_busy = FALSE;
  (void)ks_session_service_call_finish (self->library->service, result, &error);
  if (error != NULL && !self->store_failed && ks_chat_has_run (self)) {
    g_autofree char *text =
        g_strdup_printf ("The answer cannot be stored: %s  It goes on here, and "
                         "storing is tried again.",
                         error->message);

    ks_chat_emit_notice (self, text);
  }
  self->store_failed = error != NULL;
  ks_library_end_write (self->library);
}

static gboolean
store_piece_cb (gpointer user_data)
{
  KsChat *self = user_data;

  if (self->store_busy)
    return G_SOURCE_CONTINUE;
  ks_chat_show_piece (self);
  ks_message_set_n_tokens (self->run.answer, ks_chat_count_answer (self));
  self->store_busy = TRUE;
  ks_library_begin_write (self->library);
  ks_session_service_call_async (self->library->service, ks_chat_store_update,
                                 new_update (self, KS_MESSAGE_STREAMING), ks_update_request_free,
                                 NULL, NULL, stored_piece_cb, g_object_ref (self));
  return G_SOURCE_CONTINUE;
}

void
ks_chat_start_storing (KsChat *self)
{
  if (self->store_source == 0)
    self->store_source = g_timeout_add (STORE_EVERY_MS, store_piece_cb, self);
}

/* --- to the disk, at the end --- */

/* The last words of an answer until they are stored. */
typedef struct {
  KsChat *chat;
  KsUpdateRequest *request; /* kept for another try */
  guint source;             /* timer of that */
  gboolean is_last_try;     /* begun when the program was ending already */
} LastWords;

static void store_last_words (LastWords *words);

static KsUpdateRequest *
copy_update (const KsUpdateRequest *request)
{
  KsUpdateRequest *copy = g_memdup2 (request, sizeof *request);

  copy->text = g_strdup (request->text);
  copy->problem = g_strdup (request->problem);
  copy->user_text = g_strdup (request->user_text);
  return copy;
}

static void
free_last_words (LastWords *words)
{
  ks_update_request_free (words->request);
  g_object_unref (words->chat);
  g_free (words);
}

static gboolean
store_again_cb (gpointer user_data)
{
  LastWords *words = user_data;

  words->source = 0;
  /* Another answer has the lock now: its end gives it back. */
  if (ks_chat_has_run (words->chat))
    words->request->unlock = FALSE;
  words->chat->unsaved = g_list_remove (words->chat->unsaved, words);
  store_last_words (words);
  return G_SOURCE_REMOVE;
}

static void
try_again_later (LastWords *words, const GError *error)
{
  KsChat *self = words->chat;

  if (!self->store_failed) {
    g_autofree char *text =
        g_strdup_printf ("The answer cannot be stored: %s  Storing is tried again until the "
                         "program ends.",
                         error->message);

    ks_chat_emit_notice (self, text);
  }
  self->store_failed = TRUE;
  self->unsaved = g_list_append (self->unsaved, words);
  words->source = g_timeout_add (STORE_EVERY_MS, store_again_cb, words);
}

static void
stored_last_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  LastWords *words = user_data;
  g_autoptr (KsLibrary) library = g_object_ref (words->chat->library);
  g_autoptr (GError) error = NULL;

  (void)ks_session_service_call_finish (library->service, result, &error);
  if (error != NULL && library->closing && !words->is_last_try) {
    store_last_words (words); /* what failed then may work now */
  } else if (error != NULL && !library->closing) {
    try_again_later (words, error);
  } else {
    if (error != NULL) {
      library->n_lost++;
      ks_library_notice (library, error->message);
    }
    words->chat->store_failed = FALSE;
    free_last_words (words);
  }
  ks_library_end_write (library);
}

static void
store_last_words (LastWords *words)
{
  KsLibrary *library = words->chat->library;

  words->is_last_try = library->closing;
  ks_library_begin_write (library);
  ks_session_service_call_async (library->service, ks_chat_store_update,
                                 copy_update (words->request), ks_update_request_free, NULL, NULL,
                                 stored_last_cb, words);
}

void
ks_chat_store_unsaved (KsChat *self)
{
  while (self->unsaved != NULL) {
    LastWords *words = self->unsaved->data;

    g_clear_handle_id (&words->source, g_source_remove);
    (void)store_again_cb (words);
  }
}

void
ks_chat_store_end (KsChat *self, KsMessageState state, const char *problem)
{
  LastWords *words = g_new0 (LastWords, 1);
  KsUpdateRequest *request = new_update (self, state);

  request->problem = g_strdup (problem);
  request->unlock = TRUE;
  if (self->run.user != NULL && self->run.n_prompt > 0) {
    request->user = ks_message_get_id (self->run.user);
    request->user_text = g_strdup (ks_message_get_text (self->run.user));
    request->n_user_tokens = self->run.n_prompt;
  }
  words->chat = g_object_ref (self);
  words->request = request;
  store_last_words (words);
}
