/* ks-chat-attach.c - pending attachments of a chat: added, loaded by ks-attach-job, counted in
 * tokens, taken by the next message.  One that failed or was removed leaves no blob behind, unless
 * something else has the same bytes.
 * Threads: main. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-chat-internal.h"

#include "app/ks-attach-job.h"
#include "app/ks-error.h"
#include "app/ks-folder-scan.h"
#include "app/ks-notices.h"
#include "app/ks-pending-attachment-internal.h"
#include "app/ks-picture-loader.h"
#include "media/ks-media.h"

#define MAX_ATTACHMENTS 64u

static KsPendingAttachment *
peek_pending (KsChat *self, guint i)
{
  g_autoptr (KsPendingAttachment) pending =
      g_list_model_get_item (G_LIST_MODEL (self->attachments), i);

  return pending; /* the list keeps it */
}

static guint
get_n_pending (KsChat *self)
{
  return g_list_model_get_n_items (G_LIST_MODEL (self->attachments));
}

/* --- blobs that nothing needs --- */

static gpointer
remove_blob (KsStore *store, gpointer hash, GError **error)
{
  return GINT_TO_POINTER (ks_store_remove_unused_blob (store, hash, error));
}

static gboolean
is_pending_anywhere (KsLibrary *library, const char *hash)
{
  GHashTableIter iter;
  gpointer chat;

  g_hash_table_iter_init (&iter, library->chats);
  while (g_hash_table_iter_next (&iter, &chat, NULL))
    for (guint i = 0; i < get_n_pending (chat); i++) {
      KsPendingAttachment *pending = peek_pending (chat, i);
      KsAttachment *attachment = ks_pending_attachment_get_attachment (pending);

      if (g_strcmp0 (ks_pending_attachment_get_hash (pending), hash) == 0 ||
          (attachment != NULL && g_strcmp0 (ks_attachment_get_text_hash (attachment), hash) == 0))
        return TRUE;
    }
  return FALSE;
}

static void
drop_blob (KsChat *self, const char *hash)
{
  if (hash == NULL || self->library->closing || is_pending_anywhere (self->library, hash))
    return;
  /* Nobody waits for it; should it fail, the next start sweeps. */
  ks_session_service_call_async (self->library->service, remove_blob, g_strdup (hash), g_free, NULL,
                                 NULL, NULL, NULL);
}

/* --- tokens --- */

static void
counted_cb (guint n_tokens, gpointer user)
{
  ks_pending_attachment_set_n_tokens (user, n_tokens);
}

/* Tokens of one of its pictures: pages and pictures of a document are taken to be shaped like the
 * first one, or square. */
static guint
count_visual (KsChat *self, KsPendingAttachment *pending, char **out_problem)
{
  KsAttachment *attachment = ks_pending_attachment_get_attachment (pending);
  KsAttachmentKind kind = ks_attachment_get_kind (attachment);
  KsPixels *first = ks_pending_attachment_get_thumbnail (pending);
  guint width, height;

  if (kind == KS_ATTACHMENT_IMAGE || kind == KS_ATTACHMENT_VIDEO) {
    width = ks_attachment_get_width_px (attachment);
    height = ks_attachment_get_height_px (attachment);
    ks_eyes_fit_size (&width, &height,
                      kind == KS_ATTACHMENT_VIDEO ? KS_PICTURE_FRAME_SIDE_PX
                                                  : KS_PICTURE_MAX_SIDE_PX);
  } else {
    width = first != NULL ? ks_pixels_get_width (first) : 1;
    height = first != NULL ? ks_pixels_get_height (first) : 1;
    width *= KS_PICTURE_PAGE_SIDE_PX;
    height *= KS_PICTURE_PAGE_SIDE_PX;
    ks_eyes_fit_size (&width, &height, KS_PICTURE_PAGE_SIDE_PX);
  }
  return ks_eyes_count_tokens (&self->library->eyes, width, height, out_problem);
}

static void
count_tokens (KsChat *self, KsPendingAttachment *pending)
{
  GBytes *message = ks_pending_attachment_get_message (pending);

  if (message == NULL || self->library->model_state != KS_MODEL_READY || self->library->closing)
    return;
  /* The pending attachment cancels it when it goes. */
  ks_pending_attachment_set_count (
      pending, ks_token_count_start (self->library->engine, message, counted_cb, pending));
}

static void
take_description (KsChat *self, KsPendingAttachment *pending, GBytes *message, guint n_pictures)
{
  guint n_each = n_pictures > 0 ? count_visual (self, pending, NULL) : 0;
  KsEyesCost cost = ks_eyes_weigh (&self->library->eyes, n_pictures, n_each);

  ks_pending_attachment_set_message (pending, message);
  ks_pending_attachment_set_pictures (pending, n_pictures, &cost);
  count_tokens (self, pending);
}

/* --- what it adds to a message, once more --- */

typedef struct {
  KsChat *chat;
  KsPendingAttachment *pending;
  KsAttachment *attachment;
  KsBlobStore *blobs;
  KsEyes eyes;
  guint n_pictures; /* out */
} Describe;

static void
free_describe (gpointer data)
{
  Describe *describe = data;

  g_object_unref (describe->chat);
  g_object_unref (describe->pending);
  g_object_unref (describe->attachment);
  g_clear_object (&describe->blobs);
  g_free (describe);
}

static void
run_describe (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  Describe *describe = data;
  GBytes *message = ks_turn_source_describe (describe->attachment, describe->blobs, &describe->eyes,
                                             &describe->n_pictures);

  g_task_return_pointer (task, message, (GDestroyNotify)g_bytes_unref);
}

static void
described_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  Describe *describe = user_data;
  KsChat *self = describe->chat;
  g_autoptr (GBytes) message = g_task_propagate_pointer (G_TASK (result), NULL);

  ks_library_end_write (self->library);
  if (message != NULL && g_list_store_find (self->attachments, describe->pending, NULL) &&
      ks_pending_attachment_get_attachment (describe->pending) == describe->attachment)
    take_description (self, describe->pending, message, describe->n_pictures);
  free_describe (describe);
}

static void
describe_again (KsChat *self, KsPendingAttachment *pending)
{
  KsAttachment *attachment = ks_pending_attachment_get_attachment (pending);
  g_autoptr (GTask) task = NULL;
  Describe *describe;

  if (attachment == NULL || self->library->closing)
    return;
  describe = g_new0 (Describe, 1);
  describe->chat = g_object_ref (self);
  describe->pending = g_object_ref (pending);
  describe->attachment = g_object_ref (attachment);
  describe->blobs = ks_session_service_ref_blobs (self->library->service);
  describe->eyes = self->library->eyes;
  ks_library_begin_write (self->library);
  task = g_task_new (NULL, NULL, described_cb, describe);
  g_task_set_task_data (task, describe, NULL);
  g_task_run_in_thread (task, run_describe);
}

void
ks_chat_count_attachments (KsChat *self)
{
  for (guint i = 0; i < get_n_pending (self); i++) {
    KsAttachment *attachment = ks_pending_attachment_get_attachment (peek_pending (self, i));

    describe_again (self, peek_pending (self, i));
    if (attachment != NULL && ks_attachment_get_kind (attachment) == KS_ATTACHMENT_IMAGE)
      ks_chat_tell_blind (self);
  }
}

/* --- loading --- */

typedef struct {
  KsChat *chat;
  KsPendingAttachment *pending;
  KsAttachJob *job; /* until it starts */
} Load;

static void
progress_cb (double progress, gpointer user)
{
  Load *load = user;

  if (ks_pending_attachment_get_state (load->pending) == KS_PENDING_LOADING)
    ks_pending_attachment_set_progress (load->pending, progress);
}

static gboolean
fits_message (KsChat *self, KsPendingAttachment *added)
{
  gsize n_bytes = 0;

  for (guint i = 0; i < get_n_pending (self); i++) {
    GBytes *message = ks_pending_attachment_get_message (peek_pending (self, i));

    if (message != NULL && peek_pending (self, i) != added)
      n_bytes += g_bytes_get_size (message);
  }
  return n_bytes + g_bytes_get_size (ks_pending_attachment_get_message (added)) <=
         KS_MEDIA_MAX_TEXT_BYTES;
}

void
ks_chat_tell_blind (KsChat *self)
{
  /* Until a model is there, nobody knows: the attachments are counted again when it is. */
  if (self->told_blind || self->library->model_state != KS_MODEL_READY ||
      ks_library_can_see (self->library))
    return;
  self->told_blind = TRUE;
  ks_chat_emit_notice (self, KS_NOTICE_BLIND);
}

static void
take_frames (KsPendingAttachment *pending, KsAttachJob *job)
{
  gboolean is_video = ks_attachment_get_kind (job->attachment) == KS_ATTACHMENT_VIDEO;

  ks_pending_attachment_clear_frames (pending, is_video, job->has_sound);
  for (guint i = 0; job->frames != NULL && i < job->frames->len; i++) {
    const KsMediaFrame *frame = g_ptr_array_index (job->frames, i);

    ks_pending_attachment_add_frame (pending, frame->pixels, frame->time_us);
  }
}

static void
take_result (KsChat *self, KsPendingAttachment *pending, KsAttachJob *job)
{
  g_autofree char *problem = NULL;

  ks_pending_attachment_set_message (pending, job->message);
  if (!fits_message (self, pending)) {
    ks_pending_attachment_set_state (pending, KS_PENDING_FAILED,
                                     "The attachments hold more than 64 MiB of text together: send "
                                     "them in several messages.");
    return;
  }
  take_frames (pending, job);
  ks_pending_attachment_set_hides_pictures (pending, job->hides_pictures);
  ks_pending_attachment_take_result (pending, g_object_ref (job->attachment),
                                     g_steal_pointer (&job->thumbnail), job->warning);
  if (ks_attachment_get_kind (job->attachment) == KS_ATTACHMENT_IMAGE)
    ks_chat_tell_blind (self);
  if (job->n_pictures > 0 && count_visual (self, pending, &problem) == 0 && problem != NULL)
    ks_pending_attachment_set_state (pending, KS_PENDING_FAILED, problem);
  else if (job->eyes.sees == self->library->eyes.sees)
    take_description (self, pending, job->message, job->n_pictures);
  else
    describe_again (self, pending); /* another model came meanwhile */
}

static void
take_failure (KsChat *self, KsPendingAttachment *pending, const GError *error)
{
  gboolean was_wrong = FALSE;

  if (ks_error_is_password (error, &was_wrong)) {
    ks_pending_attachment_set_state (pending, KS_PENDING_PASSWORD,
                                     was_wrong ? error->message : NULL);
    return;
  }
  ks_pending_attachment_set_state (pending, KS_PENDING_FAILED, error->message);
}

static void
loaded_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autofree Load *load = user_data;
  g_autoptr (KsChat) self = load->chat;
  g_autoptr (KsPendingAttachment) pending = load->pending;
  g_autoptr (GError) error = NULL;
  KsAttachJob *job = NULL;
  gboolean done = ks_attach_job_run_finish (result, &job, &error);

  ks_library_end_write (self->library);
  if (!g_list_store_find (self->attachments, pending, NULL)) {
    drop_blob (self, job->hash); /* removed meanwhile */
    return;
  }
  ks_pending_attachment_set_hash (pending, job->hash);
  if (done)
    take_result (self, pending, job);
  else
    take_failure (self, pending, error);
  if (ks_pending_attachment_get_state (pending) == KS_PENDING_FAILED) {
    ks_pending_attachment_set_hash (pending, NULL);
    drop_blob (self, job->hash);
  }
}

/* The store is open, or will not be. */
static void
run_load (Load *load)
{
  KsAttachJob *job = g_steal_pointer (&load->job);

  job->blobs = ks_session_service_ref_blobs (load->chat->library->service);
  ks_attach_job_run_async (
      job, progress_cb, ks_pending_attachment_renew_cancellable (load->pending), loaded_cb, load);
}

/* A call whose only use is that it comes back when the store was opened. */
static gpointer
do_nothing (KsStore *store, gpointer data, GError **error)
{
  return GINT_TO_POINTER (TRUE);
}

static void
store_opened_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  Load *load = user_data;

  (void)ks_session_service_call_finish (load->chat->library->service, result, NULL);
  run_load (load);
}

static gboolean
wants_ocr (KsChat *self)
{
  return (self->library->options != NULL && self->library->options->ocr) ||
         ks_settings_get_recognise_text (self->library->settings);
}

static void
start_load (KsChat *self, KsPendingAttachment *pending, KsAttachJob *take_job)
{
  Load *load = g_new0 (Load, 1);
  const KsEngineOptions *options = self->library->options;
  g_autoptr (KsBlobStore) blobs = ks_session_service_ref_blobs (self->library->service);

  load->chat = g_object_ref (self);
  load->pending = g_object_ref (pending);
  load->job = take_job;
  take_job->name = g_strdup (ks_pending_attachment_get_name (pending));
  take_job->eyes = self->library->eyes;
  if (take_job->reading == NULL && wants_ocr (self))
    take_job->reading = ks_reading_parse ("ocr");
  take_job->sampling =
      (KsMediaSampling){.mode = KS_MEDIA_SAMPLE_COUNT,
                        .n_frames = ks_settings_get_video_frames (self->library->settings)};
  if (options != NULL && options->sampling.mode != 0)
    take_job->sampling = options->sampling;
  take_job->has_page_mode = options != NULL && options->has_page_mode;
  take_job->page_mode = take_job->has_page_mode ? (KsPageMode)options->page_mode : KS_PAGE_TEXT;
  ks_pending_attachment_set_progress (pending, -1);
  ks_pending_attachment_set_state (pending, KS_PENDING_LOADING, NULL);
  ks_library_begin_write (self->library);
  if (blobs != NULL)
    run_load (load);
  else
    ks_session_service_call_async (self->library->service, do_nothing, NULL, NULL, NULL, NULL,
                                   store_opened_cb, load);
}

/* --- what the window asks --- */

/* FALSE: it was added as one that failed, or not at all. */
static gboolean
add_pending (KsChat *self, KsPendingAttachment *pending)
{
  guint n = get_n_pending (self);

  if (n > MAX_ATTACHMENTS || self->library->closing)
    return FALSE; /* one too many says it for all */
  g_list_store_append (self->attachments, pending);
  if (n < MAX_ATTACHMENTS && self->read_only_reason == NULL)
    return TRUE;
  ks_pending_attachment_set_state (pending, KS_PENDING_FAILED,
                                   self->read_only_reason != NULL
                                       ? self->read_only_reason
                                       : "A message takes at most 64 attachments: the rest was "
                                         "left out.");
  return FALSE;
}

static void
attach_path (KsChat *self, KsPendingAttachment *pending, const char *path)
{
  KsAttachJob *job = g_new0 (KsAttachJob, 1);

  job->path = g_strdup (path);
  start_load (self, pending, job);
}

/* --- folders --- */

static void
scan_folder (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  GError *error = NULL;
  GPtrArray *files = ks_folder_scan (data, MAX_ATTACHMENTS, cancellable, &error);

  if (files != NULL)
    g_task_return_pointer (task, files, (GDestroyNotify)g_ptr_array_unref);
  else
    g_task_return_error (task, error);
}

/* Each file becomes an attachment of its own: read, or with the sentence why it is not. */
static void
scanned_cb (GObject *source, GAsyncResult *result, gpointer user_data)
{
  g_autoptr (KsChat) self = user_data;
  g_autoptr (GError) error = NULL;
  g_autoptr (GPtrArray) files = g_task_propagate_pointer (G_TASK (result), &error);

  ks_library_end_write (self->library);
  if (error != NULL)
    ks_chat_emit_notice (self, error->message);
  for (guint i = 0; files != NULL && i < files->len; i++) {
    const KsFolderFile *file = g_ptr_array_index (files, i);
    g_autoptr (KsPendingAttachment) pending = ks_pending_attachment_new (file->name);

    if (!add_pending (self, pending))
      continue;
    if (file->refused != NULL)
      ks_pending_attachment_set_state (pending, KS_PENDING_FAILED, file->refused);
    else
      attach_path (self, pending, file->path);
  }
}

static void
attach_folder (KsChat *self, const char *path)
{
  g_autoptr (GTask) task = NULL;

  if (self->library->closing)
    return;
  ks_library_begin_write (self->library);
  task = g_task_new (NULL, NULL, scanned_cb, g_object_ref (self));
  g_task_set_task_data (task, g_strdup (path), g_free);
  g_task_run_in_thread (task, scan_folder);
}

void
ks_chat_attach_file (KsChat *self, GFile *file)
{
  g_autoptr (KsPendingAttachment) pending = NULL;
  g_autofree char *path = NULL, *base = NULL, *name = NULL;

  g_return_if_fail (KS_IS_CHAT (self) && G_IS_FILE (file));
  path = g_file_get_path (file);
  if (path != NULL && g_file_test (path, G_FILE_TEST_IS_DIR)) {
    attach_folder (self, path);
    return;
  }
  base = g_file_get_basename (file);
  name = g_filename_display_name (base != NULL ? base : "file");
  pending = ks_pending_attachment_new (name);
  if (!add_pending (self, pending))
    return;
  if (path == NULL || !g_file_is_native (file)) {
    ks_pending_attachment_set_state (pending, KS_PENDING_FAILED,
                                     "Only files on this computer can be attached: copy it here "
                                     "first.");
    return;
  }
  attach_path (self, pending, path);
}

void
ks_chat_attach_bytes (KsChat *self, const char *name, GBytes *bytes)
{
  g_autoptr (KsPendingAttachment) pending = NULL;
  KsAttachJob *job;

  g_return_if_fail (KS_IS_CHAT (self) && name != NULL && bytes != NULL);
  pending = ks_pending_attachment_new (name);
  if (!add_pending (self, pending))
    return;
  job = g_new0 (KsAttachJob, 1);
  job->bytes = g_bytes_ref (bytes);
  start_load (self, pending, job);
}

void
ks_chat_unlock_attachment (KsChat *self, KsPendingAttachment *attachment, const char *password)
{
  KsAttachJob *job;

  g_return_if_fail (KS_IS_CHAT (self) && KS_IS_PENDING_ATTACHMENT (attachment) && password != NULL);
  if (ks_pending_attachment_get_state (attachment) != KS_PENDING_PASSWORD ||
      !g_list_store_find (self->attachments, attachment, NULL) || self->library->closing)
    return;
  job = g_new0 (KsAttachJob, 1);
  job->hash = g_strdup (ks_pending_attachment_get_hash (attachment));
  job->password = g_strdup (password);
  start_load (self, attachment, job);
}

static gboolean
has_other_frames (const KsReading *a, const KsReading *b)
{
  return a->sampling.mode != b->sampling.mode || a->sampling.n_frames != b->sampling.n_frames ||
         a->sampling.interval_us != b->sampling.interval_us ||
         a->sampling.cut_permille != b->sampling.cut_permille;
}

void
ks_chat_set_reading (KsChat *self, KsPendingAttachment *pending, const KsReading *reading)
{
  g_autoptr (KsReading) before = NULL;
  g_autofree char *words = NULL;
  KsAttachment *attachment;

  g_return_if_fail (KS_IS_CHAT (self) && KS_IS_PENDING_ATTACHMENT (pending) && reading != NULL);
  attachment = ks_pending_attachment_get_attachment (pending);
  if (attachment == NULL || !g_list_store_find (self->attachments, pending, NULL) ||
      self->library->closing)
    return;
  before = ks_pending_attachment_dup_reading (pending);
  if (before->ocr != reading->ocr || (ks_attachment_get_kind (attachment) == KS_ATTACHMENT_VIDEO &&
                                      reading->has_frames && has_other_frames (before, reading))) {
    KsAttachJob *job = g_new0 (KsAttachJob, 1);

    job->hash = g_strdup (ks_pending_attachment_get_hash (pending));
    job->n_bytes = ks_attachment_get_n_bytes (attachment);
    job->reading = ks_reading_copy (reading);
    start_load (self, pending, job);
    return;
  }
  words = ks_reading_format (reading);
  ks_pending_attachment_set_attachment (
      pending, ks_attachment_copy_with (attachment, words, ks_attachment_get_text_hash (attachment),
                                        ks_attachment_get_duration_us (attachment)));
  describe_again (self, pending);
}

void
ks_chat_remove_attachment (KsChat *self, KsPendingAttachment *attachment)
{
  g_autoptr (KsPendingAttachment) pending = NULL;
  guint position;

  g_return_if_fail (KS_IS_CHAT (self) && KS_IS_PENDING_ATTACHMENT (attachment));
  if (!g_list_store_find (self->attachments, attachment, &position))
    return;
  pending = g_object_ref (attachment);
  ks_pending_attachment_cancel (pending);
  ks_pending_attachment_set_count (pending, NULL);
  g_list_store_remove (self->attachments, position);
  drop_blob (self, ks_pending_attachment_get_hash (pending));
  if (ks_pending_attachment_get_attachment (pending) != NULL)
    drop_blob (self, ks_attachment_get_text_hash (ks_pending_attachment_get_attachment (pending)));
}

/* --- what the chat asks --- */

GPtrArray *
ks_chat_take_attachments (KsChat *self)
{
  GPtrArray *taken;

  if (get_n_pending (self) == 0)
    return NULL;
  taken = g_ptr_array_new_with_free_func (g_object_unref);
  for (guint i = 0; i < get_n_pending (self); i++)
    g_ptr_array_add (taken, g_list_model_get_item (G_LIST_MODEL (self->attachments), i));
  g_list_store_remove_all (self->attachments);
  return taken;
}

void
ks_chat_give_back_attachments (KsChat *self, GPtrArray *taken)
{
  if (taken != NULL)
    g_list_store_splice (self->attachments, 0, 0, taken->pdata, taken->len);
}

const char *
ks_chat_check_attachments (KsChat *self)
{
  for (guint i = 0; i < get_n_pending (self); i++)
    switch (ks_pending_attachment_get_state (peek_pending (self, i))) {
    case KS_PENDING_LOADING:
      return "An attachment is still being read: wait for it, or remove it.";
    case KS_PENDING_PASSWORD:
      return "An attachment needs its password: enter it, or remove the attachment.";
    default:
      break;
    }
  return NULL;
}

gboolean
ks_chat_has_ready_attachment (KsChat *self)
{
  gboolean found = FALSE;

  for (guint i = 0; i < get_n_pending (self) && !found; i++)
    found = ks_pending_attachment_get_state (peek_pending (self, i)) == KS_PENDING_READY;
  return found;
}

void
ks_chat_cancel_attachments (KsChat *self)
{
  for (guint i = 0; i < get_n_pending (self); i++) {
    ks_pending_attachment_cancel (peek_pending (self, i));
    ks_pending_attachment_set_count (peek_pending (self, i), NULL);
  }
}
