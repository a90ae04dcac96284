/* ks-chat-pin.c - what a user wants to keep of a session: the model's memory is asked first, then
 * it is stored.  A turn that the model has not read is stored at once, and pinned when it is read.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-chat-internal.h"

#include "app/ks-error.h"

typedef struct {
  KsMessage *message;
  gint64 id;
  char *hash;
  gboolean pinned, is_whole;
  int turn; /* -1 = the model has not read it */
} Pin;

static void
free_pin (gpointer data)
{
  Pin *pin = data;

  g_clear_object (&pin->message);
  g_free (pin->hash);
  g_free (pin);
}

/* What was in force from the turn's first token on: what was let go before is not. */
static void
book (KsChat *self, const Pin *pin, guint before)
{
  KsTurnIds *ids;

  if (pin->turn < 0 || (guint)pin->turn >= self->read->len)
    return;
  ids = &g_array_index (self->read, KsTurnIds, pin->turn);
  if (ids->user == pin->id && ids->pins == before && (pin->is_whole || !pin->pinned))
    ids->pins = ks_turn_source_hash_pins (pin->message);
}

static void
stored_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (GTask) task = user_data;
  KsChat *self = g_task_get_source_object (task);
  Pin *pin = g_task_get_task_data (task);
  GError *error = NULL;
  guint before = ks_turn_source_hash_pins (pin->message);

  (void)ks_session_service_call_finish (self->library->service, result, &error);
  ks_library_end_write (self->library);
  if (error != NULL) {
    /* As it was: the next message reads the session anew where memory and store differ. */
    g_array_set_size (self->read, 0);
    self->in_step = FALSE;
    g_task_return_error (task, error);
    return;
  }
  ks_message_set_pinned (pin->message, pin->hash, pin->pinned);
  book (self, pin, before);
  g_task_return_boolean (task, TRUE);
}

/* What the writer thread needs. */
static Pin *
copy_pin (const Pin *pin)
{
  Pin *copy = g_new0 (Pin, 1);

  copy->id = pin->id;
  copy->hash = g_strdup (pin->hash);
  copy->pinned = pin->pinned;
  return copy;
}

static gpointer
store_pin (KsStore *store, gpointer data, GError **error)
{
  const Pin *pin = data;

  return GINT_TO_POINTER (ks_store_set_pinned (store, pin->id, pin->hash, pin->pinned, error));
}

static void
store (KsChat *self, GTask *take_task)
{
  Pin *pin = g_task_get_task_data (take_task);

  ks_library_begin_write (self->library);
  ks_session_service_call_async (self->library->service, store_pin, copy_pin (pin), free_pin, NULL,
                                 NULL, stored_cb, take_task);
}

static void
pinned_cb (KsEngineJob *job, gpointer user_data)
{
  g_autoptr (GTask) task = user_data;
  KsChat *self = g_task_get_source_object (task);
  const GError *error = ks_engine_job_get_error (job);

  if (error != NULL)
    g_task_return_error (task, g_error_copy (error));
  else
    store (self, g_steal_pointer (&task));
}

static const char *
check_pin (KsChat *self)
{
  if (self->library->closing)
    return "The program is ending.";
  if (self->read_only_reason != NULL)
    return self->read_only_reason;
  if (self->state != KS_CHAT_IDLE)
    return "An answer is being written: stop it first.";
  return NULL;
}

void
ks_chat_pin_async (KsChat *self, KsMessage *message, const char *hash, gboolean pinned,
                   GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = g_task_new (self, NULL, callback, user_data);
  g_autoptr (KsEngineJob) job = NULL;
  const char *reason;
  Pin *pin;

  g_return_if_fail (KS_IS_CHAT (self) && KS_IS_MESSAGE (message));
  reason = check_pin (self);
  if (reason != NULL) {
    g_task_return_new_error (task, KS_APP_ERROR, KS_APP_ERROR_FAILED, "%s", reason);
    return;
  }
  pin = g_new0 (Pin, 1);
  pin->message = g_object_ref (message);
  pin->id = ks_message_get_id (message);
  pin->hash = g_strdup (hash);
  pin->pinned = pinned;
  pin->is_whole = TRUE;
  pin->turn = self->in_step ? ks_chat_get_turn (self, message) : -1;
  g_task_set_task_data (task, pin, free_pin);
  if (pin->turn < 0) {
    store (self, g_steal_pointer (&task));
    return;
  }
  job = ks_conversation_pin (self->conversation, (guint)pin->turn, hash, pinned, &pin->is_whole);
  g_signal_connect (job, "finished", G_CALLBACK (pinned_cb), g_steal_pointer (&task));
}

gboolean
ks_chat_pin_finish (KsChat *self, GAsyncResult *result, gboolean *out_is_whole, GError **error)
{
  const Pin *pin;

  g_return_val_if_fail (g_task_is_valid (result, self), FALSE);
  pin = g_task_get_task_data (G_TASK (result));
  if (!g_task_propagate_boolean (G_TASK (result), error))
    return FALSE;
  if (out_is_whole != NULL)
    *out_is_whole = pin->is_whole || !pin->pinned;
  return TRUE;
}
