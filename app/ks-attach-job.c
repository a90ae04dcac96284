/* ks-attach-job.c - see ks-attach-job.h. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "app/ks-attach-job.h"

#include "app/ks-document-parts.h"
#include "app/ks-error.h"
#include "app/ks-ocr-layer.h"
#include "app/ks-turn-source.h"
#include "media/ks-media.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <string.h>

#define THUMBNAIL_PX 256

/* What the decoder tells, on its way to main: the newest value wins. */
typedef struct {
  gatomicrefcount n_ref;
  GMutex lock;
  guint n_done, n_total;
  gboolean posted;
  KsAttachProgress func; /* NULL when nobody looks any more; main */
  gpointer user;
} Relay;

typedef struct {
  KsAttachJob *job;
  Relay *relay;
} Work;

void
ks_attach_job_free (KsAttachJob *job)
{
  if (job == NULL)
    return;
  g_free (job->name);
  g_free (job->path);
  g_free (job->hash);
  g_free (job->password);
  g_free (job->warning);
  g_clear_pointer (&job->bytes, g_bytes_unref);
  g_clear_pointer (&job->message, g_bytes_unref);
  g_clear_pointer (&job->thumbnail, ks_pixels_unref);
  g_clear_pointer (&job->frames, g_ptr_array_unref);
  ks_reading_free (job->reading);
  g_clear_object (&job->blobs);
  g_clear_object (&job->attachment);
  g_free (job);
}

static void
relay_unref (Relay *relay)
{
  if (!g_atomic_ref_count_dec (&relay->n_ref))
    return;
  g_mutex_clear (&relay->lock);
  g_free (relay);
}

static gboolean
tell_cb (gpointer data)
{
  Relay *relay = data;
  double progress;

  g_mutex_lock (&relay->lock);
  progress = relay->n_total > 0 ? (double)relay->n_done / relay->n_total : -1;
  relay->posted = FALSE;
  g_mutex_unlock (&relay->lock);
  if (relay->func != NULL)
    relay->func (MIN (progress, 1.0), relay->user);
  return G_SOURCE_REMOVE;
}

/* On the thread that works. */
static void
progress_cb (guint n_done, guint n_total, gpointer user)
{
  Relay *relay = user;
  gboolean post;

  g_mutex_lock (&relay->lock);
  relay->n_done = n_done;
  relay->n_total = n_total;
  post = !relay->posted;
  relay->posted = TRUE;
  g_mutex_unlock (&relay->lock);
  if (!post)
    return;
  g_atomic_ref_count_inc (&relay->n_ref);
  g_idle_add_full (G_PRIORITY_DEFAULT_IDLE, tell_cb, relay, (GDestroyNotify)relay_unref);
}

static gboolean
check_source (KsAttachJob *job, GError **error)
{
  guint64 n_bytes = job->bytes != NULL ? g_bytes_get_size (job->bytes) : 0;
  GStatBuf st;

  if (job->path != NULL) {
    if (g_stat (job->path, &st) != 0) {
      g_set_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_FAILED, "%s cannot be opened: %s",
                   job->name, g_strerror (errno));
      return FALSE;
    }
    if (S_ISDIR (st.st_mode)) {
      g_set_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_UNKNOWN_TYPE,
                   "%s is a folder: attach the files in it", job->name);
      return FALSE;
    }
    n_bytes = (guint64)st.st_size;
  }
  if (n_bytes <= KS_ATTACH_MAX_BYTES)
    return TRUE;
  g_set_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_TOO_LARGE,
               "%s is larger than 1 GiB: attach a part of it", job->name);
  return FALSE;
}

static gboolean
store_source (KsAttachJob *job, GCancellable *cancellable, GError **error)
{
  if (job->hash != NULL)
    return TRUE;
  if (job->blobs == NULL) {
    g_set_error_literal (error, KS_STORAGE_ERROR, KS_STORAGE_ERROR_FAILED,
                         "Files cannot be attached because sessions cannot be stored.");
    return FALSE;
  }
  if (!check_source (job, error))
    return FALSE;
  if (job->path != NULL) {
    job->hash = ks_blob_store_add_file (job->blobs, job->path, cancellable, &job->n_bytes, error);
  } else {
    job->n_bytes = g_bytes_get_size (job->bytes);
    job->hash = ks_blob_store_add (job->blobs, job->bytes, error);
  }
  return job->hash != NULL;
}

static KsAttachmentKind
get_kind (KsMediaKind kind)
{
  switch (kind) {
  case KS_MEDIA_PDF:
    return KS_ATTACHMENT_PDF;
  case KS_MEDIA_IMAGE:
    return KS_ATTACHMENT_IMAGE;
  case KS_MEDIA_VIDEO:
    return KS_ATTACHMENT_VIDEO;
  case KS_MEDIA_DOCUMENT:
    return KS_ATTACHMENT_DOCUMENT;
  default:
    return KS_ATTACHMENT_TEXT;
  }
}

static char *
make_warning (const KsAttachJob *job, const KsMediaResult *result)
{
  gboolean looks = job->eyes.sees && !(job->has_page_mode && job->page_mode == KS_PAGE_TEXT);

  if (result->kind != KS_MEDIA_PDF || result->n_pages_without_text == 0)
    return g_strdup (result->warning);
  return g_strdup_printf (
      "%u of %u pages hold no text (scanned, perhaps): %s%s%s", result->n_pages_without_text,
      result->n_pages, looks ? "they are looked at as pictures" : "they cannot be read",
      result->warning != NULL ? "; " : "", result->warning != NULL ? result->warning : "");
}

/* Of a video, so that what will be sent can be looked at; without them it is only a name. */
static void
load_frames (KsAttachJob *job, const KsMediaOptions *options, const char *path,
             GCancellable *cancellable)
{
  KsMediaSampling sampling =
      job->reading != NULL && job->reading->has_frames ? job->reading->sampling : job->sampling;
  KsReading *reading = ks_reading_parse (NULL);

  job->frames = ks_media_load_frames (path, &sampling, options, NULL, cancellable, NULL);
  reading->sampling = ks_sampling_clamp (&sampling);
  reading->has_frames = job->frames != NULL;
  reading->n_frames = job->frames != NULL ? job->frames->len : 0;
  ks_reading_free (job->reading);
  job->reading = reading;
}

/* Pages that hold no text go as pictures to a model that sees, with their words if those are
 * wanted.  A picture of an encrypted page could not be made again later. */
static void
choose_pages (KsReading *reading, const KsAttachJob *job, const KsMediaResult *result)
{
  if (result->text == NULL || job->password != NULL || reading->pages != NULL)
    return;
  if (job->has_page_mode) {
    ks_document_set_pages (reading, result->n_pages, job->page_mode);
    return;
  }
  if (!ks_document_choose_pages (reading, result->text) || !reading->ocr)
    return;
  for (guint i = 0; i < reading->pages->len; i++)
    if (ks_reading_get_page (reading, i) == KS_PAGE_PICTURE)
      ks_reading_set_page (reading, reading->pages->len, i, KS_PAGE_BOTH);
}

/* As it was asked for, completed by what the file is. (transfer full) */
static KsReading *
choose_reading (const KsAttachJob *job, const KsMediaResult *result)
{
  KsReading *reading =
      job->reading != NULL ? ks_reading_copy (job->reading) : ks_reading_parse (NULL);

  if (result->kind == KS_MEDIA_PDF)
    choose_pages (reading, job, result);
  if (result->kind == KS_MEDIA_DOCUMENT && job->has_page_mode && job->page_mode == KS_PAGE_TEXT)
    reading->no_pictures = TRUE;
  if (result->kind == KS_MEDIA_TEXT || result->kind == KS_MEDIA_VIDEO)
    reading->ocr = FALSE;
  return reading;
}

static char *
join_warnings (char *take_one, const char *other)
{
  g_autofree char *one = take_one;

  return one != NULL ? g_strdup_printf ("%s; %s", one, other) : g_strdup (other);
}

/* The text that belongs to it: its own, or with what OCR finds.  Without OCR it is attached all the
 * same. (transfer full) NULL = none */
static char *
make_text (KsAttachJob *job, const KsMediaResult *result, const char *path, KsReading *reading,
           const KsMediaOptions *options, GCancellable *cancellable)
{
  KsOcrLayerJob layer = {.path = path, .media = *options};
  g_autoptr (GError) error = NULL;
  char *text = NULL;
  guint n = 0;

  if (reading->ocr)
    text = ks_ocr_layer_make (&layer, result, &n, cancellable, &error);
  reading->ocr = text != NULL && n > 0;
  if (error != NULL)
    job->warning = join_warnings (job->warning, error->message);
  else if (text != NULL && n == 0)
    job->warning = join_warnings (job->warning, "no text was recognised in its pictures");
  if (reading->ocr)
    return text;
  g_free (text);
  return g_strdup (result->text);
}

/* A picture that cannot be shown would cost the answer: then the document goes as its text.  The
 * first one is its thumbnail. */
static void
check_pictures (KsAttachJob *job, const KsMediaResult *result, const char *path, KsReading *reading,
                GCancellable *cancellable)
{
  KsMediaOptions options = {.name = job->name, .max_side_px = THUMBNAIL_PX};
  g_autofree char *lost = NULL;
  guint n_lost = 0;

  for (guint i = 0; i < result->n_pictures && !g_cancellable_is_cancelled (cancellable); i++) {
    KsPixels *pixels = ks_media_render_page (path, i, &options, cancellable, NULL);

    n_lost += pixels == NULL;
    if (job->thumbnail == NULL)
      job->thumbnail = pixels;
    else
      g_clear_pointer (&pixels, ks_pixels_unref);
  }
  if (n_lost == 0)
    return;
  reading->no_pictures = TRUE;
  lost = g_strdup_printf ("%u of %u pictures cannot be shown: it is read without pictures", n_lost,
                          result->n_pictures);
  job->warning = join_warnings (job->warning, lost);
}

/* The attachment, with its text in a blob. */
static gboolean
make_attachment (KsAttachJob *job, const KsMediaResult *result, const char *path,
                 const KsMediaOptions *options, GCancellable *cancellable, GError **error)
{
  g_autoptr (KsReading) reading = choose_reading (job, result);
  g_autofree char *text = make_text (job, result, path, reading, options, cancellable);
  g_autofree char *words = NULL, *text_hash = NULL;
  g_autoptr (KsAttachment) plain = NULL;

  if (result->kind == KS_MEDIA_DOCUMENT && job->eyes.sees)
    check_pictures (job, result, path, reading, cancellable);
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  if (text != NULL) {
    g_autoptr (GBytes) bytes = g_bytes_new (text, strlen (text));

    text_hash = ks_blob_store_add (job->blobs, bytes, error);
    if (text_hash == NULL)
      return FALSE;
  }
  plain = ks_attachment_new (get_kind (result->kind), job->name, job->hash, job->n_bytes, text_hash,
                             result->n_pages, result->width_px, result->height_px);
  words = ks_reading_format (reading);
  job->attachment = ks_attachment_copy_with (plain, words, text_hash, result->duration_us);
  return TRUE;
}

static gboolean
decode (Work *work, GCancellable *cancellable, GError **error)
{
  KsAttachJob *job = work->job;
  KsMediaOptions options = {.name = job->name,
                            .password = job->password,
                            .max_side_px = THUMBNAIL_PX,
                            .progress = progress_cb,
                            .user = work->relay};
  g_autofree char *path = ks_blob_store_get_path (job->blobs, job->hash);
  g_autoptr (KsMediaResult) result = ks_media_load (path, &options, cancellable, error);

  if (result == NULL)
    return FALSE;
  job->warning = make_warning (job, result);
  if (result->kind == KS_MEDIA_PDF && job->password != NULL && job->has_page_mode &&
      job->page_mode != KS_PAGE_TEXT)
    job->warning = join_warnings (job->warning, "its pages are read as text, because a picture of "
                                                "an encrypted page cannot be made again later");
  job->hides_pictures =
      result->has_mixed_pages && job->eyes.sees && job->password == NULL && !job->has_page_mode;
  job->thumbnail = g_steal_pointer (&result->pixels);
  job->has_sound = result->kind == KS_MEDIA_VIDEO && result->has_sound;
  if (result->kind == KS_MEDIA_VIDEO)
    load_frames (job, &options, path, cancellable);
  if (!make_attachment (job, result, path, &options, cancellable, error))
    return FALSE;
  job->message =
      ks_turn_source_describe (job->attachment, job->blobs, &job->eyes, &job->n_pictures);
  return TRUE;
}

static void
run (GTask *task, gpointer source, gpointer data, GCancellable *cancellable)
{
  Work *work = data;
  GError *error = NULL;

  if (store_source (work->job, cancellable, &error) && decode (work, cancellable, &error))
    g_task_return_boolean (task, TRUE);
  else
    g_task_return_error (task, error);
}

static void
free_work (gpointer data)
{
  Work *work = data;

  ks_attach_job_free (work->job);
  relay_unref (work->relay);
  g_free (work);
}

void
ks_attach_job_run_async (KsAttachJob *take_job, KsAttachProgress progress,
                         GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user)
{
  /* Without a source object: a task's thread may drop the last reference to its task, and objects
   * of the main thread must not end there. */
  g_autoptr (GTask) task = g_task_new (NULL, cancellable, callback, user);
  Work *work = g_new0 (Work, 1);

  work->job = take_job;
  work->relay = g_new0 (Relay, 1);
  g_atomic_ref_count_init (&work->relay->n_ref);
  g_mutex_init (&work->relay->lock);
  work->relay->func = progress;
  work->relay->user = user;
  g_task_set_task_data (task, work, free_work);
  /* The job is handed back in any case. */
  g_task_set_check_cancellable (task, FALSE);
  g_task_run_in_thread (task, run);
}

gboolean
ks_attach_job_run_finish (GAsyncResult *result, KsAttachJob **out_job, GError **error)
{
  Work *work = g_task_get_task_data (G_TASK (result));

  work->relay->func = NULL;
  *out_job = work->job;
  return g_task_propagate_boolean (G_TASK (result), error);
}
