/* ks-library.c - see ks-library.h.  The object, its properties and its end; the parts are in
 * ks-library-sessions.c, ks-library-model.c, ks-library-target.c and ks-library-media.c. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-chat-internal.h"

G_DEFINE_FINAL_TYPE (KsLibrary, ks_library, G_TYPE_OBJECT)

enum {
  PROP_0,
  PROP_STORAGE_ERROR,
  PROP_N_SESSIONS,
  PROP_OPENED,
  PROP_MODEL_STATE,
  PROP_MODEL_NAME,
  PROP_MODEL_ERROR,
  PROP_TARGET_BYTES,
  N_PROPS
};
static GParamSpec *properties[N_PROPS];

enum { SIGNAL_NOTICE, N_SIGNALS };
static guint signals[N_SIGNALS];

static void
ks_library_get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  KsLibrary *self = KS_LIBRARY (object);

  switch (id) {
  case PROP_STORAGE_ERROR:
    g_value_set_string (value, ks_library_get_storage_error (self));
    break;
  case PROP_N_SESSIONS:
    g_value_set_uint (value, g_list_model_get_n_items (G_LIST_MODEL (self->all)));
    break;
  case PROP_OPENED:
    g_value_set_boolean (value, self->opened);
    break;
  case PROP_MODEL_STATE:
    g_value_set_int (value, (int)self->model_state);
    break;
  case PROP_MODEL_NAME:
    g_value_set_string (value, self->model_name);
    break;
  case PROP_MODEL_ERROR:
    g_value_set_string (value, ks_library_get_model_error (self));
    break;
  case PROP_TARGET_BYTES:
    g_value_set_uint64 (value, self->target_bytes);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
  }
}

static void
ks_library_dispose (GObject *object)
{
  KsLibrary *self = KS_LIBRARY (object);

  ks_library_clear_sessions (self);
  ks_library_clear_target (self);
  ks_library_clear_media (self);
  g_clear_handle_id (&self->load_source, g_source_remove);
  if (self->load_cancellable != NULL)
    g_cancellable_cancel (self->load_cancellable);
  g_clear_object (&self->load_cancellable);
  if (self->load_job != NULL)
    ks_engine_job_cancel (self->load_job);
  g_clear_object (&self->load_job);
  g_clear_object (&self->engine);
  g_clear_object (&self->service);
  g_clear_object (&self->settings);
  G_OBJECT_CLASS (ks_library_parent_class)->dispose (object);
}

static void
ks_library_finalize (GObject *object)
{
  KsLibrary *self = KS_LIBRARY (object);

  g_queue_free_full (self->waiting, g_object_unref);
  g_clear_object (&self->all);
  g_clear_object (&self->shown);
  g_hash_table_unref (self->known);
  g_hash_table_unref (self->chats);
  ks_engine_options_free (self->options);
  ks_memory_view_free (self->idle_view);
  g_clear_error (&self->model_failure);
  g_free (self->models_dir);
  g_clear_error (&self->storage_failure);
  g_free (self->model_name);
  g_free (self->model_path);
  g_free (self->model_wanted);
  g_free (self->default_model);
  G_OBJECT_CLASS (ks_library_parent_class)->finalize (object);
}

static void
ks_library_class_init (KsLibraryClass *klass)
{
  GObjectClass *object_class = G_OBJECT_CLASS (klass);
  const GParamFlags read = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS;

  object_class->get_property = ks_library_get_property;
  object_class->dispose = ks_library_dispose;
  object_class->finalize = ks_library_finalize;
  properties[PROP_STORAGE_ERROR] = g_param_spec_string ("storage-error", NULL, NULL, NULL, read);
  properties[PROP_N_SESSIONS] = g_param_spec_uint ("n-sessions", NULL, NULL, 0, G_MAXUINT, 0, read);
  properties[PROP_OPENED] = g_param_spec_boolean ("opened", NULL, NULL, FALSE, read);
  properties[PROP_MODEL_STATE] =
      g_param_spec_int ("model-state", NULL, NULL, 0, KS_MODEL_FAILED, 0, read);
  properties[PROP_MODEL_NAME] = g_param_spec_string ("model-name", NULL, NULL, NULL, read);
  properties[PROP_MODEL_ERROR] = g_param_spec_string ("model-error", NULL, NULL, NULL, read);
  properties[PROP_TARGET_BYTES] =
      g_param_spec_uint64 ("target-bytes", NULL, NULL, 0, G_MAXUINT64, 0, read);
  g_object_class_install_properties (object_class, N_PROPS, properties);
  signals[SIGNAL_NOTICE] = g_signal_new ("notice", G_TYPE_FROM_CLASS (klass), G_SIGNAL_RUN_LAST, 0,
                                         NULL, NULL, NULL, G_TYPE_NONE, 1, G_TYPE_STRING);
}

static void
ks_library_init (KsLibrary *self)
{
  self->all = g_list_store_new (KS_TYPE_SESSION);
  self->shown = g_list_store_new (KS_TYPE_SESSION);
  self->known = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, g_object_unref);
  self->chats = g_hash_table_new (NULL, NULL);
  self->waiting = g_queue_new ();
}

KsLibrary *
ks_library_new_full (KsSettings *settings, const char *dir, const KsEngineOptions *options)
{
  KsLibrary *self;

  g_return_val_if_fail (KS_IS_SETTINGS (settings), NULL);
  self = g_object_new (KS_TYPE_LIBRARY, NULL);
  self->settings = g_object_ref (settings);
  self->options = options != NULL ? ks_engine_options_copy (options) : NULL;
  self->service = ks_session_service_new (dir);
  self->engine = ks_engine_new_in_background ();
  ks_library_init_media (self);
  ks_library_open_sessions (self);
  ks_library_start_model (self);
  return self;
}

KsLibrary *
ks_library_new (KsSettings *settings, const char *dir)
{
  return ks_library_new_full (settings, dir, NULL);
}

KsSettings *
ks_library_get_settings (KsLibrary *self)
{
  g_return_val_if_fail (KS_IS_LIBRARY (self), NULL);
  return self->settings;
}

const char *
ks_library_get_data_dir (KsLibrary *self)
{
  g_return_val_if_fail (KS_IS_LIBRARY (self), NULL);
  return ks_session_service_get_dir (self->service);
}

void
ks_library_notice (KsLibrary *self, const char *text)
{
  g_signal_emit (self, signals[SIGNAL_NOTICE], 0, text);
}

void
ks_library_notify (KsLibrary *self, const char *property)
{
  g_object_notify (G_OBJECT (self), property);
}

void
ks_library_begin_write (KsLibrary *self)
{
  self->n_write++;
}

void
ks_library_end_write (KsLibrary *self)
{
  g_return_if_fail (self->n_write > 0);
  self->n_write--;
  ks_library_check_closed (self);
}

/* --- the end --- */

static gpointer
do_nothing (KsStore *store, gpointer data, GError **error)
{
  return GINT_TO_POINTER (TRUE);
}

/* What is stored is stored, what computed has ended. */
static void
end_close (KsLibrary *self)
{
  g_autoptr (GTask) task = g_steal_pointer (&self->close_task);

  if (task != NULL)
    g_task_return_boolean (task, TRUE);
}

static void
engine_idle_cb (KsEngineJob *job, gpointer user_data)
{
  KsLibrary *self = user_data;

  /* The queue is empty: this only waits for the thread to see that. */
  g_clear_object (&self->load_job);
  g_clear_object (&self->engine);
  end_close (self);
}

static void
store_idle_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (KsLibrary) self = user_data;
  g_autoptr (KsEngineJob) job = NULL;

  (void)ks_session_service_call_finish (self->service, result, NULL);
  job = ks_engine_flush (self->engine);
  g_signal_connect_object (job, "finished", G_CALLBACK (engine_idle_cb), self, 0);
}

void
ks_library_check_closed (KsLibrary *self)
{
  if (!self->closing || self->close_task == NULL || self->active != NULL || self->n_write > 0 ||
      !g_queue_is_empty (self->waiting) || self->load_job != NULL ||
      self->load_cancellable != NULL || self->target_job != NULL || self->store_idle)
    return;
  self->store_idle = TRUE;
  if (self->live != NULL)
    ks_chat_drop_conversation (self->live);
  g_clear_object (&self->live);
  ks_session_service_call_async (self->service, do_nothing, NULL, NULL, NULL, NULL, store_idle_cb,
                                 g_object_ref (self));
}

void
ks_library_close_async (KsLibrary *self, GAsyncReadyCallback callback, gpointer user_data)
{
  GHashTableIter iter;
  g_autoptr (GPtrArray) waiting = NULL;
  gpointer chat;

  g_return_if_fail (KS_IS_LIBRARY (self) && !self->closing);
  self->closing = TRUE;
  self->close_task = g_task_new (self, NULL, callback, user_data);
  ks_library_clear_sessions (self);
  ks_library_stop_model (self);
  ks_library_clear_target (self);
  /* Each one leaves the queue when it is stopped. */
  waiting = g_ptr_array_new_with_free_func (g_object_unref);
  for (GList *link = self->waiting->head; link != NULL; link = link->next)
    g_ptr_array_add (waiting, g_object_ref (link->data));
  for (guint i = 0; i < waiting->len; i++)
    ks_chat_stop (g_ptr_array_index (waiting, i));
  if (self->active != NULL)
    ks_chat_stop (self->active);
  g_hash_table_iter_init (&iter, self->chats);
  while (g_hash_table_iter_next (&iter, &chat, NULL)) {
    ks_chat_cancel_attachments (chat);
    ks_chat_store_unsaved (chat);
  }
  ks_library_check_closed (self);
}

gboolean
ks_library_close_finish (KsLibrary *self, GAsyncResult *result)
{
  g_return_val_if_fail (g_task_is_valid (result, self), FALSE);
  (void)g_task_propagate_boolean (G_TASK (result), NULL);
  return self->n_lost == 0;
}
