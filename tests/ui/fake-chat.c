/* fake-chat.c - see fake-chat.h.
 * Over 700 lines because three objects of app/ share their private fields here. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/ui/fake-chat.h"

#include "app/ks-error.h"

struct _KsPendingAttachment {
  GObject parent_instance;
  char *name, *error, *warning;
  KsPendingState state;
  KsAttachmentKind kind;
  double progress;
  guint n_token, n_page, n_picture, n_trained;
  gboolean has_sound, can_shrink;
  KsPixels *thumbnail;
  KsAttachment *attachment;
};

struct _KsChat {
  GObject parent_instance;
  KsChatState state;
  char *read_only, *refusal;
  GListStore *messages, *attachments;
  GString *log;
  GBytes *bytes;
  KsPictureTrace *trace;
  KsMemoryView *memory;
};

struct _KsLibrary {
  GObject parent_instance;
  KsSettings *settings;
  KsModelState model_state;
  char *model_error;
  gboolean sees;
  guint n_kept;
  guint n_render, page, side;
  char *password;
  GTask *task;
};

G_DEFINE_FINAL_TYPE (KsPendingAttachment, ks_pending_attachment, G_TYPE_OBJECT)
G_DEFINE_FINAL_TYPE (KsChat, ks_chat, G_TYPE_OBJECT)
G_DEFINE_FINAL_TYPE (KsLibrary, ks_library, G_TYPE_OBJECT)

/* The widgets only listen to the properties; they read through the functions. */
static void
get_property (GObject *object, guint id, GValue *value, GParamSpec *pspec)
{
  G_OBJECT_WARN_INVALID_PROPERTY_ID (object, id, pspec);
}

static void
install (GObjectClass *klass, const char *const *names)
{
  klass->get_property = get_property;
  for (guint i = 0; names[i] != NULL; i++)
    g_object_class_install_property (klass, i + 1,
                                     g_param_spec_int (names[i], NULL, NULL, 0, G_MAXINT, 0,
                                                       G_PARAM_READABLE | G_PARAM_STATIC_STRINGS));
}

/* --- pending attachment --- */

static void
ks_pending_attachment_finalize (GObject *object)
{
  KsPendingAttachment *self = KS_PENDING_ATTACHMENT (object);

  g_free (self->name);
  g_free (self->error);
  g_free (self->warning);
  g_clear_pointer (&self->thumbnail, ks_pixels_unref);
  g_clear_object (&self->attachment);
  G_OBJECT_CLASS (ks_pending_attachment_parent_class)->finalize (object);
}

static void
ks_pending_attachment_class_init (KsPendingAttachmentClass *klass)
{
  static const char *const names[] = {"name",    "state",      "progress", "n-tokens",
                                      "error",   "warning",    "kind",     "n-pages",
                                      "reading", "n-pictures", "seen",     NULL};

  install (G_OBJECT_CLASS (klass), names);
  G_OBJECT_CLASS (klass)->finalize = ks_pending_attachment_finalize;
}

static void
ks_pending_attachment_init (KsPendingAttachment *self)
{
  self->progress = -1;
}

const char *
ks_pending_attachment_get_name (KsPendingAttachment *self)
{
  return self->name;
}

KsPendingState
ks_pending_attachment_get_state (KsPendingAttachment *self)
{
  return self->state;
}

KsAttachmentKind
ks_pending_attachment_get_kind (KsPendingAttachment *self)
{
  return self->kind;
}

double
ks_pending_attachment_get_progress (KsPendingAttachment *self)
{
  return self->progress;
}

guint
ks_pending_attachment_get_n_tokens (KsPendingAttachment *self)
{
  return self->n_token;
}

guint
ks_pending_attachment_get_n_pages (KsPendingAttachment *self)
{
  return self->n_page;
}

const char *
ks_pending_attachment_get_error (KsPendingAttachment *self)
{
  return self->error;
}

const char *
ks_pending_attachment_get_warning (KsPendingAttachment *self)
{
  return self->warning;
}

KsPixels *
ks_pending_attachment_get_thumbnail (KsPendingAttachment *self)
{
  return self->thumbnail;
}

KsAttachment *
ks_pending_attachment_get_attachment (KsPendingAttachment *self)
{
  return self->state == KS_PENDING_READY ? self->attachment : NULL;
}

guint
ks_pending_attachment_get_n_visual (KsPendingAttachment *self)
{
  return self->n_picture > 0 ? self->n_token : 0;
}

guint
ks_pending_attachment_get_n_trained (KsPendingAttachment *self, gboolean *out_can_shrink)
{
  *out_can_shrink = self->can_shrink;
  return self->n_trained;
}

guint
ks_pending_attachment_get_n_pictures (KsPendingAttachment *self)
{
  return self->n_picture;
}

gboolean
ks_pending_attachment_is_seen (KsPendingAttachment *self)
{
  return self->n_picture > 0;
}

gboolean
ks_pending_attachment_has_sound (KsPendingAttachment *self)
{
  return self->has_sound;
}

KsReading *
ks_pending_attachment_dup_reading (KsPendingAttachment *self)
{
  return ks_reading_parse (self->attachment != NULL ? ks_attachment_get_reading (self->attachment)
                                                    : NULL);
}

static KsPixels *
pixels_new (guint width, guint height)
{
  gsize n_byte = (gsize)4 * width * height;
  g_autofree guint8 *data = g_malloc (n_byte);
  g_autoptr (GBytes) bytes = NULL;

  for (gsize i = 0; i < n_byte; i++)
    data[i] = i % 4 == 3 ? 255 : i % 4 == 0 ? 40 : 160;
  bytes = g_bytes_new (data, n_byte);
  return ks_pixels_new (width, height, bytes);
}

void
fake_pending_set_state (KsPendingAttachment *self, KsPendingState state, const char *error)
{
  self->state = state;
  g_free (self->error);
  self->error = g_strdup (error);
  g_object_notify (G_OBJECT (self), "error");
  g_object_notify (G_OBJECT (self), "state");
}

void
fake_pending_set_progress (KsPendingAttachment *self, double progress)
{
  self->progress = progress;
  g_object_notify (G_OBJECT (self), "progress");
}

void
fake_pending_set_facts (KsPendingAttachment *self, KsAttachmentKind kind, guint n_page,
                        guint n_token, const char *warning)
{
  self->kind = kind;
  self->n_page = n_page;
  self->n_token = n_token;
  g_free (self->warning);
  self->warning = g_strdup (warning);
  g_clear_object (&self->attachment);
  self->attachment = ks_attachment_new (kind, self->name, "00", 1, NULL, n_page, 64, 48);
  if (kind == KS_ATTACHMENT_IMAGE && self->thumbnail == NULL)
    self->thumbnail = pixels_new (64, 48);
  g_object_notify (G_OBJECT (self), "kind");
  g_object_notify (G_OBJECT (self), "n-pages");
  g_object_notify (G_OBJECT (self), "n-tokens");
  g_object_notify (G_OBJECT (self), "warning");
}

void
fake_pending_set_reading (KsPendingAttachment *self, const char *words)
{
  KsAttachment *other = ks_attachment_copy_with (self->attachment, words, NULL, 0);

  g_object_unref (self->attachment);
  self->attachment = other;
}

void
fake_pending_set_n_pictures (KsPendingAttachment *self, guint n_picture)
{
  self->n_picture = n_picture;
  g_object_notify (G_OBJECT (self), "n-pictures");
}

void
fake_pending_set_has_sound (KsPendingAttachment *self, gboolean has_sound)
{
  self->has_sound = has_sound;
}

void
fake_pending_set_large (KsPendingAttachment *self, guint n_trained, gboolean can_shrink)
{
  self->n_trained = n_trained;
  self->can_shrink = can_shrink;
  g_object_notify (G_OBJECT (self), "n-pictures");
}

/* --- chat --- */

static void
ks_chat_finalize (GObject *object)
{
  KsChat *self = KS_CHAT (object);

  g_free (self->read_only);
  g_free (self->refusal);
  g_object_unref (self->messages);
  g_object_unref (self->attachments);
  g_string_free (self->log, TRUE);
  g_clear_pointer (&self->bytes, g_bytes_unref);
  ks_picture_trace_free (self->trace);
  ks_memory_view_free (self->memory);
  G_OBJECT_CLASS (ks_chat_parent_class)->finalize (object);
}

static void
ks_chat_class_init (KsChatClass *klass)
{
  static const char *const names[] = {"state",   "n-done",           "n-total",
                                      "session", "read-only-reason", NULL};

  install (G_OBJECT_CLASS (klass), names);
  G_OBJECT_CLASS (klass)->finalize = ks_chat_finalize;
  g_signal_new ("notice", KS_TYPE_CHAT, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1,
                G_TYPE_STRING);
  g_signal_new ("failed", KS_TYPE_CHAT, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1,
                G_TYPE_ERROR);
  g_signal_new ("answered", KS_TYPE_CHAT, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 1,
                KS_TYPE_MESSAGE);
}

static void
ks_chat_init (KsChat *self)
{
  self->messages = g_list_store_new (KS_TYPE_MESSAGE);
  self->attachments = g_list_store_new (KS_TYPE_PENDING_ATTACHMENT);
  self->log = g_string_new (NULL);
}

KsChatState
ks_chat_get_state (KsChat *self)
{
  return self->state;
}

gboolean
ks_chat_is_busy (KsChat *self)
{
  return self->state != KS_CHAT_IDLE;
}

const char *
ks_chat_get_read_only_reason (KsChat *self)
{
  return self->read_only;
}

GListModel *
ks_chat_get_messages (KsChat *self)
{
  return G_LIST_MODEL (self->messages);
}

GListModel *
ks_chat_get_attachments (KsChat *self)
{
  return G_LIST_MODEL (self->attachments);
}

KsMemoryView *
ks_chat_dup_memory (KsChat *self)
{
  return self->memory == NULL ? NULL : ks_memory_view_copy (self->memory);
}

void
fake_chat_take_memory (KsChat *self, KsMemoryView *take_memory)
{
  ks_memory_view_free (self->memory);
  self->memory = take_memory;
}

int
ks_chat_get_turn (KsChat *self, KsMessage *message)
{
  guint at = 0; /* each message is a turn */
  return g_list_store_find (self->messages, message, &at) ? (int)at : -1;
}

void
ks_chat_trace_picture_async (KsChat *self, guint turn, guint number, GCancellable *cancellable,
                             GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = g_task_new (self, cancellable, callback, user_data);

  g_string_append_printf (self->log, "trace %u %u\n", turn, number);
  if (self->trace == NULL)
    g_task_return_new_error (task, KS_APP_ERROR, KS_APP_ERROR_FAILED, "It was let go.");
  else
    g_task_return_pointer (task, ks_picture_trace_copy (self->trace),
                           (GDestroyNotify)ks_picture_trace_free);
}

KsPictureTrace *
ks_chat_trace_picture_finish (KsChat *self, GAsyncResult *result, GError **error)
{
  return g_task_propagate_pointer (G_TASK (result), error);
}

void
ks_chat_pin_async (KsChat *self, KsMessage *message, const char *hash, gboolean pinned,
                   GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = g_task_new (self, NULL, callback, user_data);

  g_string_append_printf (self->log, "%s %" G_GINT64_FORMAT " %s\n", pinned ? "pin" : "unpin",
                          ks_message_get_id (message), hash != NULL ? hash : "-");
  ks_message_set_pinned (message, hash, pinned);
  g_task_return_boolean (task, TRUE);
}

gboolean
ks_chat_pin_finish (KsChat *self, GAsyncResult *result, gboolean *out_is_whole, GError **error)
{
  return g_task_propagate_boolean (G_TASK (result), error);
}

void
fake_chat_take_trace (KsChat *self, KsPictureTrace *take_trace)
{
  ks_picture_trace_free (self->trace);
  self->trace = take_trace;
}

void
fake_chat_store_file (KsChat *self, KsAttachment *attachment)
{
  g_autoptr (KsMessage) message = ks_message_new (1, 0, KS_MESSAGE_USER, "Look", 0);

  ks_message_add_attachment (message, attachment);
  g_list_store_append (self->messages, message);
}

KsPendingAttachment *
fake_chat_add (KsChat *self, const char *name, KsPendingState state)
{
  g_autoptr (KsPendingAttachment) attachment = g_object_new (KS_TYPE_PENDING_ATTACHMENT, NULL);

  attachment->name = g_strdup (name);
  attachment->state = state;
  g_list_store_append (self->attachments, attachment);
  return attachment; /* the list holds it */
}

void
ks_chat_attach_file (KsChat *self, GFile *file)
{
  g_autofree char *name = g_file_get_basename (file);

  g_string_append_printf (self->log, "file %s\n", g_file_peek_path (file));
  fake_chat_add (self, name, KS_PENDING_LOADING);
}

void
ks_chat_attach_bytes (KsChat *self, const char *name, GBytes *bytes)
{
  g_string_append_printf (self->log, "bytes %s %zu\n", name, g_bytes_get_size (bytes));
  g_clear_pointer (&self->bytes, g_bytes_unref);
  self->bytes = g_bytes_ref (bytes);
  fake_chat_add (self, name, KS_PENDING_LOADING);
}

void
ks_chat_unlock_attachment (KsChat *self, KsPendingAttachment *attachment, const char *password)
{
  g_string_append_printf (self->log, "unlock %s %s\n", attachment->name, password);
}

void
ks_chat_set_reading (KsChat *self, KsPendingAttachment *attachment, const KsReading *reading)
{
  g_autofree char *words = ks_reading_format (reading);
  g_autoptr (KsAttachment) before = g_steal_pointer (&attachment->attachment);

  g_string_append_printf (self->log, "reading %s %s\n", attachment->name,
                          words != NULL ? words : "-");
  attachment->attachment = ks_attachment_copy_with (
      before, words, ks_attachment_get_text_hash (before), ks_attachment_get_duration_us (before));
  g_object_notify (G_OBJECT (attachment), "reading");
}

void
ks_chat_remove_attachment (KsChat *self, KsPendingAttachment *attachment)
{
  guint position = 0;

  g_string_append_printf (self->log, "remove %s\n", attachment->name);
  g_assert_true (g_list_store_find (self->attachments, attachment, &position));
  g_list_store_remove (self->attachments, position);
}

gboolean
ks_chat_send (KsChat *self, const char *text, const char **out_reason)
{
  if (self->refusal != NULL) {
    *out_reason = self->refusal;
    return FALSE;
  }
  g_string_append_printf (self->log, "send %s\n", text);
  g_list_store_remove_all (self->attachments);
  fake_chat_set_state (self, KS_CHAT_READING);
  return TRUE;
}

void
ks_chat_stop (KsChat *self)
{
  g_string_append (self->log, "stop\n");
  fake_chat_set_state (self, KS_CHAT_STOPPING);
}

KsChat *
fake_chat_new (void)
{
  return g_object_new (KS_TYPE_CHAT, NULL);
}

void
fake_chat_set_state (KsChat *self, KsChatState state)
{
  self->state = state;
  g_object_notify (G_OBJECT (self), "state");
}

void
fake_chat_set_read_only (KsChat *self, const char *reason)
{
  g_free (self->read_only);
  self->read_only = g_strdup (reason);
  g_object_notify (G_OBJECT (self), "read-only-reason");
}

void
fake_chat_refuse (KsChat *self, const char *reason)
{
  g_free (self->refusal);
  self->refusal = g_strdup (reason);
}

void
fake_chat_store (KsChat *self, const char *text)
{
  g_autoptr (KsMessage) message = ks_message_new (1, 0, KS_MESSAGE_USER, text, 0);

  g_list_store_append (self->messages, message);
}

void
fake_chat_fail (KsChat *self, const char *text)
{
  g_autoptr (GError) error = g_error_new_literal (G_IO_ERROR, G_IO_ERROR_NO_SPACE, text);

  self->state = KS_CHAT_IDLE;
  g_signal_emit_by_name (self, "failed", error);
  g_object_notify (G_OBJECT (self), "state");
}

const char *
fake_chat_get_log (KsChat *self)
{
  return self->log->str;
}

void
fake_chat_clear_log (KsChat *self)
{
  g_string_truncate (self->log, 0);
}

GBytes *
fake_chat_get_bytes (KsChat *self)
{
  return self->bytes;
}

/* --- library --- */

static void
ks_library_finalize (GObject *object)
{
  KsLibrary *self = KS_LIBRARY (object);

  g_assert_null (self->task); /* every picture was answered */
  g_object_unref (self->settings);
  g_free (self->model_error);
  g_free (self->password);
  G_OBJECT_CLASS (ks_library_parent_class)->finalize (object);
}

static void
ks_library_class_init (KsLibraryClass *klass)
{
  static const char *const names[] = {"model-state", "target-bytes", NULL};

  install (G_OBJECT_CLASS (klass), names);
  G_OBJECT_CLASS (klass)->finalize = ks_library_finalize;
}

static void
ks_library_init (KsLibrary *self)
{
  self->model_state = KS_MODEL_READY;
  self->settings = ks_settings_new (NULL);
}

KsModelState
ks_library_get_model_state (KsLibrary *self)
{
  return self->model_state;
}

const char *
ks_library_get_model_error (KsLibrary *self)
{
  return self->model_error;
}

gboolean
ks_library_can_see (KsLibrary *self)
{
  return self->sees;
}

KsMemoryView *
ks_library_dup_memory (KsLibrary *self)
{
  KsMemoryView view = {.n_layer = 2, .n_kv_head = 3, .n_keep = (guint64)6 * self->n_kept};

  return self->n_kept == 0 ? NULL : ks_memory_view_copy (&view);
}

static void
end_render (KsLibrary *self, KsPixels *pixels, const GError *error)
{
  g_autoptr (GTask) task = g_steal_pointer (&self->task);

  if (error != NULL)
    g_task_return_error (task, g_error_copy (error));
  else if (pixels == NULL)
    g_task_return_new_error (task, G_IO_ERROR, G_IO_ERROR_CANCELLED, "given up");
  else
    g_task_return_pointer (task, pixels, (GDestroyNotify)ks_pixels_unref);
}

void
ks_library_render_async (KsLibrary *self, KsAttachment *attachment, guint page, guint max_side_px,
                         const char *password, GCancellable *cancellable,
                         GAsyncReadyCallback callback, gpointer user_data)
{
  if (self->task != NULL) { /* the worker goes on with the newest only when the last is given up */
    g_assert_true (g_cancellable_is_cancelled (g_task_get_cancellable (self->task)));
    end_render (self, NULL, NULL);
  }
  self->n_render++;
  self->page = page;
  self->side = max_side_px;
  g_free (self->password);
  self->password = g_strdup (password);
  self->task = g_task_new (self, cancellable, callback, user_data);
}

KsPixels *
ks_library_render_finish (KsLibrary *self, GAsyncResult *result, GError **error)
{
  return g_task_propagate_pointer (G_TASK (result), error);
}

void
ks_library_read_text_async (KsLibrary *self, KsAttachment *attachment, GCancellable *cancellable,
                            GAsyncReadyCallback callback, gpointer user_data)
{
  g_autoptr (GTask) task = g_task_new (self, cancellable, callback, user_data);

  g_task_return_pointer (task, g_strdup ("Words of a text."), g_free);
}

char *
ks_library_read_text_finish (KsLibrary *self, GAsyncResult *result, GError **error)
{
  return g_task_propagate_pointer (G_TASK (result), error);
}

KsSettings *
ks_library_get_settings (KsLibrary *self)
{
  return self->settings;
}

KsLibrary *
fake_library_new (void)
{
  return g_object_new (KS_TYPE_LIBRARY, NULL);
}

void
fake_library_set_model (KsLibrary *self, KsModelState state, const char *error, gboolean sees)
{
  self->model_state = state;
  self->sees = sees;
  g_free (self->model_error);
  self->model_error = g_strdup (error);
  g_object_notify (G_OBJECT (self), "model-state");
}

void
fake_library_set_n_kept (KsLibrary *self, guint n_kept)
{
  self->n_kept = n_kept;
  g_object_notify (G_OBJECT (self), "target-bytes");
}

void
fake_library_give_up (KsLibrary *self)
{
  if (self->task != NULL)
    end_render (self, NULL, NULL);
}

guint
fake_library_get_n_render (KsLibrary *self)
{
  return self->n_render;
}

guint
fake_library_get_page (KsLibrary *self)
{
  return self->page;
}

guint
fake_library_get_side (KsLibrary *self)
{
  return self->side;
}

const char *
fake_library_get_password (KsLibrary *self)
{
  return self->password;
}

gboolean
fake_library_is_render_cancelled (KsLibrary *self)
{
  return self->task != NULL && g_cancellable_is_cancelled (g_task_get_cancellable (self->task));
}

void
fake_library_answer (KsLibrary *self, guint width, guint height)
{
  end_render (self, pixels_new (width, height), NULL);
}

void
fake_library_answer_error (KsLibrary *self, const GError *error)
{
  end_render (self, NULL, error);
}
