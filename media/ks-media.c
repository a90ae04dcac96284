/* ks-media.c - see ks-media.h.
 * The file is opened here, as what the user may open, and handed over; its bytes are read in the
 * worker only. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-media.h"

#include "media/ks-memfd.h"
#include "media/ks-worker.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

G_DEFINE_QUARK (ks - media - error - quark, ks_media_error)

static const KsMediaOptions no_options;

void
ks_media_result_free (KsMediaResult *result)
{
  if (result == NULL)
    return;
  g_free (result->text);
  g_free (result->encoding);
  g_free (result->warning);
  ks_pixels_unref (result->pixels);
  g_free (result);
}

void
ks_media_frame_free (KsMediaFrame *frame)
{
  if (frame == NULL)
    return;
  ks_pixels_unref (frame->pixels);
  g_free (frame);
}

static void
add_warning (GString *all, const char *sentence)
{
  if (all->len > 0)
    g_string_append (all, "; ");
  g_string_append (all, sentence);
}

/* (transfer full) NULL when there is nothing to warn of. */
static char *
format_warnings (guint32 warnings, const char *lost)
{
  GString *all = g_string_new (NULL);

  if (warnings & KS_WIRE_WARN_ENDS_EARLY)
    add_warning (all, "the picture ends early");
  if (warnings & KS_WIRE_WARN_ANIMATED)
    add_warning (all, "only the first picture of the animation is shown");
  if (warnings & KS_WIRE_WARN_SEVERAL)
    add_warning (all, "only the first picture of the file is shown");
  if (warnings & KS_WIRE_WARN_OVER_WHITE)
    add_warning (all, "its see-through parts are shown over white");
  if (warnings & KS_WIRE_WARN_REPLACED)
    add_warning (all, "some bytes are no characters and were replaced");
  if (warnings & KS_WIRE_WARN_TEXT_CUT)
    add_warning (all, "the text was cut: it is longer than 64 MiB");
  if (warnings & KS_WIRE_WARN_PAGES)
    add_warning (all, "some pages are damaged and could not be read");
  if (warnings & KS_WIRE_WARN_VIDEO_CUT)
    add_warning (all, "the video ends early");
  if (warnings & KS_WIRE_WARN_FEWER)
    add_warning (all, "there are more frames to take than the limit allows: fewer are taken");
  if (warnings & KS_WIRE_WARN_PARTS)
    add_warning (all, "some parts of the document are damaged and could not be read");
  if (lost != NULL)
    add_warning (all, "the first page cannot be shown");
  return g_string_free (all, all->len == 0);
}

static KsMediaKind
get_text_kind (KsWireWhat what)
{
  if (what == KS_WIRE_DOCUMENT)
    return KS_MEDIA_DOCUMENT;
  return what == KS_WIRE_PDF ? KS_MEDIA_PDF : KS_MEDIA_TEXT;
}

/* Takes over what the worker gave. */
static KsMediaResult *
make_result (KsWorkerResult *got)
{
  KsMediaResult *result = g_new0 (KsMediaResult, 1);
  const KsWireAnswer *text = &got->answer_text, *pixels = &got->answer_pixels,
                     *video = &got->answer_video;
  guint32 warnings = (got->has_text ? text->warnings : 0) |
                     (got->has_pixels ? pixels->warnings : 0) |
                     (got->has_video ? video->warnings : 0);

  result->warning = format_warnings (warnings, got->lost);
  result->pixels = g_steal_pointer (&got->pixels);
  if (got->has_text) {
    result->kind = get_text_kind (text->what);
    result->text = g_steal_pointer (&got->text);
    result->n_text = (gsize)text->n_bytes;
    result->n_pages = text->n_pages;
    result->n_pages_without_text = text->n_pages_without_text;
    result->has_mixed_pages = (text->warnings & KS_WIRE_WARN_MIXED) != 0;
    result->n_pictures = text->n_pictures;
    if (text->what == KS_WIRE_TEXT)
      result->encoding = g_strdup (text->encoding);
  } else if (got->has_video) {
    result->kind = KS_MEDIA_VIDEO;
    result->width_px = video->full_width_px;
    result->height_px = video->full_height_px;
    result->duration_us = video->duration_us;
    result->n_frames = video->n_frames;
    result->has_sound = video->has_sound;
  } else {
    result->kind = KS_MEDIA_IMAGE;
    result->width_px = pixels->full_width_px;
    result->height_px = pixels->full_height_px;
  }
  ks_worker_result_clear (got);
  return result;
}

/* -1 with error set; anything but a regular file is refused, without waiting for a pipe. */
static int
open_file (const char *path, const char *name, const KsMediaOptions *options, GError **error)
{
  int fd = open (path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat st;

  if (fd < 0 || fstat (fd, &st) != 0) {
    int code = errno;

    if (fd >= 0)
      close (fd);
    /* A name was given where the path means nothing to the user. */
    g_set_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_FAILED, "cannot read %s: %s",
                 options->name != NULL ? name : path, g_strerror (code));
    return -1;
  }
  if (!S_ISREG (st.st_mode)) {
    close (fd);
    g_set_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_UNKNOWN_TYPE,
                 "%s is not a file: attach a text file, a document, a picture or a video", name);
    return -1;
  }
  return fd;
}

/* take_job: what is asked for; the rest comes from options. */
static gboolean
run_job (KsWorkerJob take_job, const KsMediaOptions *options, GCancellable *cancellable,
         KsWorkerResult *out, GError **error)
{
  KsWorkerJob job = take_job;

  job.max_side_px = options->max_side_px;
  job.password = options->password;
  job.progress = options->progress;
  job.user = options->user;
  job.out_peak_bytes = options->out_peak_bytes;
  if (options->password != NULL && strlen (options->password) > KS_WIRE_MAX_PASSWORD) {
    g_set_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_WRONG_PASSWORD,
                 "this is not the password of %s: it is longer than %u bytes", job.name,
                 KS_WIRE_MAX_PASSWORD);
    return FALSE;
  }
  return ks_worker_run (&job, cancellable, out, error);
}

/* The last part of path as valid UTF-8, or what options say. (transfer full) */
static char *
dup_name (const char *path, const KsMediaOptions *options)
{
  if (options->name != NULL)
    return g_utf8_make_valid (options->name, -1);
  return path != NULL ? g_filename_display_basename (path) : g_strdup ("the attachment");
}

/* What fd holds; closes it. */
static KsMediaResult *
load_fd (int fd, const char *name, const KsMediaOptions *options, GCancellable *cancellable,
         GError **error)
{
  KsWorkerResult got;
  KsWorkerJob job = {.name = name, .fd = fd, .operation = KS_WIRE_LOAD};
  gboolean ok = run_job (job, options, cancellable, &got, error);

  close (fd);
  return ok ? make_result (&got) : NULL;
}

KsMediaResult *
ks_media_load (const char *path, const KsMediaOptions *options, GCancellable *cancellable,
               GError **error)
{
  const KsMediaOptions *used = options != NULL ? options : &no_options;
  g_autofree char *name = NULL;
  int fd;

  g_return_val_if_fail (path != NULL, NULL);
  name = dup_name (path, used);
  fd = open_file (path, name, used, error);
  if (fd < 0)
    return NULL;
  return load_fd (fd, name, used, cancellable, error);
}

KsMediaResult *
ks_media_load_bytes (GBytes *bytes, const KsMediaOptions *options, GCancellable *cancellable,
                     GError **error)
{
  const KsMediaOptions *used = options != NULL ? options : &no_options;
  g_autofree char *name = NULL;
  int fd;

  g_return_val_if_fail (bytes != NULL, NULL);
  fd = ks_memfd_new (&bytes, 1);
  if (fd < 0) {
    g_set_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_FAILED,
                 "the attachment does not fit into memory: %s", g_strerror (errno));
    return NULL;
  }
  name = dup_name (NULL, used);
  return load_fd (fd, name, used, cancellable, error);
}

/* A picture of a document as it lies in it: a file like any other, for a worker of its own. */
static KsPixels *
load_part (GBytes *part, const char *name, const KsMediaOptions *options, GCancellable *cancellable,
           GError **error)
{
  g_autofree char *sentence_name = g_strdup_printf ("a picture in %s", name);
  KsMediaOptions inner = {.name = sentence_name, .max_side_px = options->max_side_px};
  g_autoptr (KsMediaResult) result = ks_media_load_bytes (part, &inner, cancellable, error);

  if (result == NULL)
    return NULL;
  if (result->kind == KS_MEDIA_IMAGE)
    return g_steal_pointer (&result->pixels);
  g_set_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_UNKNOWN_TYPE, "%s is none that can be shown",
               sentence_name);
  return NULL;
}

KsPixels *
ks_media_render_page (const char *path, guint page, const KsMediaOptions *options,
                      GCancellable *cancellable, GError **error)
{
  const KsMediaOptions *used = options != NULL ? options : &no_options;
  g_autofree char *name = NULL;
  KsPixels *pixels = NULL;
  KsWorkerJob job = {.operation = KS_WIRE_RENDER, .page = page};
  KsWorkerResult got;

  g_return_val_if_fail (path != NULL, NULL);
  job.name = name = dup_name (path, used);
  if (page >= KS_WIRE_MAX_PAGES) {
    g_set_error (error, KS_MEDIA_ERROR, KS_MEDIA_ERROR_FAILED, "%s has no page %u", name, page);
    return NULL;
  }
  job.fd = open_file (path, name, used, error);
  if (job.fd < 0)
    return NULL;
  if (run_job (job, used, cancellable, &got, error)) {
    pixels = got.part != NULL ? load_part (got.part, name, used, cancellable, error)
                              : g_steal_pointer (&got.pixels);
    ks_worker_result_clear (&got);
  }
  close (job.fd);
  return pixels;
}

GPtrArray *
ks_media_load_frames (const char *path, const KsMediaSampling *sampling,
                      const KsMediaOptions *options, KsMediaResult **out_facts,
                      GCancellable *cancellable, GError **error)
{
  const KsMediaOptions *used = options != NULL ? options : &no_options;
  KsWorkerJob job = {.operation = KS_WIRE_FRAMES};
  g_autofree char *name = NULL;
  GPtrArray *frames = NULL;
  KsWorkerResult got;

  g_return_val_if_fail (path != NULL && sampling != NULL, NULL);
  g_return_val_if_fail (
      sampling->mode >= KS_MEDIA_SAMPLE_COUNT && sampling->mode <= KS_MEDIA_SAMPLE_SCENES, NULL);
  job.name = name = dup_name (path, used);
  job.sampling = ks_sampling_clamp (sampling);
  job.fd = open_file (path, name, used, error);
  if (job.fd < 0)
    return NULL;
  if (run_job (job, used, cancellable, &got, error)) {
    frames = g_steal_pointer (&got.frames);
    if (out_facts != NULL)
      *out_facts = make_result (&got);
    else
      ks_worker_result_clear (&got);
  }
  close (job.fd);
  return frames;
}
