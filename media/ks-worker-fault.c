/* ks-worker-fault.c - sentences for the faults that a worker names (ks-worker.h).
 * The worker sends numbers only; what a user reads is written here. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "media/ks-worker.h"

#define MAX_MEGAPIXELS 100

static const char *
name_kind (guint32 what)
{
  switch (what) {
  case KS_WIRE_PDF:
    return "PDF";
  case KS_WIRE_IMAGE:
    return "picture";
  case KS_WIRE_TEXT:
  case KS_WIRE_SCAN:
    return "text";
  case KS_WIRE_VIDEO:
    return "video";
  case KS_WIRE_DOCUMENT:
    return "document";
  default:
    return "file";
  }
}

static const char *
name_step (guint32 step)
{
  switch (step) {
  case KS_WIRE_STEP_LIMITS:
    return "its limits";
  case KS_WIRE_STEP_PRIVILEGES:
    return "its privileges";
  case KS_WIRE_STEP_LANDLOCK:
    return "Landlock";
  default:
    return "seccomp";
  }
}

static char *
format_size_fault (const KsWireAnswer *answer, const char *name)
{
  switch (answer->fault) {
  case KS_WIRE_FAULT_PIXELS:
    return g_strdup_printf (
        "%s has %u x %u pixels, over the limit of %u million: scale it down and "
        "attach it again",
        name, answer->a, answer->b, MAX_MEGAPIXELS);
  case KS_WIRE_FAULT_LONG_TEXT:
    return g_strdup_printf ("%s is larger than %u MiB: split it and attach the parts you need",
                            name, KS_MEDIA_MAX_TEXT_BYTES >> 20);
  case KS_WIRE_FAULT_PAGES:
    return g_strdup_printf ("%s has %u pages, over the limit of %u: split it and attach the parts "
                            "you need",
                            name, answer->a, KS_WIRE_MAX_PAGES);
  default:
    return NULL;
  }
}

static char *
format_variant_fault (const KsWireAnswer *answer, const char *name)
{
  if (answer->a == KS_WIRE_VARIANT_JPEG_12)
    return g_strdup_printf (
        "%s is a JPEG of 12 bits a colour, which cannot be read: save it with 8 bits, or as PNG",
        name);
  return g_strdup_printf ("%s is a picture in a form that cannot be read: save it as PNG or JPEG",
                          name);
}

static char *
format_video_fault (const KsWireAnswer *answer, const char *name)
{
  switch (answer->fault) {
  case KS_WIRE_FAULT_NO_VIDEO:
    if (answer->a == KS_WIRE_VIDEO)
      return g_strdup_printf ("%s holds no pictures, only sound or subtitles, which cannot be "
                              "heard or read yet: attach a video or a text",
                              name);
    return g_strdup_printf ("%s is not a video", name);
  case KS_WIRE_FAULT_NO_INDEX:
    return g_strdup_printf ("%s is a video whose recording was never finished: its index is "
                            "missing, so no frame can be found; repair or record it again",
                            name);
  case KS_WIRE_FAULT_CODEC:
    return g_strdup_printf ("%s is a video in a coding that cannot be read: save it as H.264 in "
                            "MP4, or as WebM",
                            name);
  case KS_WIRE_FAULT_FRAMES:
    return g_strdup_printf ("the frames of %s need more than the limit of %u MiB: take fewer or "
                            "smaller ones",
                            name, (guint)(KS_WIRE_MAX_TOTAL_BYTES >> 20));
  case KS_WIRE_FAULT_CAMERA:
    return g_strdup_printf ("%s gives no picture: %s: close other programs that use it and try "
                            "again",
                            name, g_strerror ((int)(answer->a & 0xfff)));
  default:
    return NULL;
  }
}

static char *
format_document_fault (const KsWireAnswer *answer, const char *name)
{
  switch (answer->fault) {
  case KS_WIRE_FAULT_UNPACKED:
    return g_strdup_printf (
        "%s unpacks to more than the limit of %u MiB: save a smaller part of it "
        "and attach that",
        name, answer->a);
  case KS_WIRE_FAULT_NO_PICTURE:
    return g_strdup_printf ("%s has no picture %u: it holds %u", name, answer->a + 1, answer->b);
  case KS_WIRE_FAULT_OLD_OFFICE:
    return g_strdup_printf (
        "%s is an Office file in its old form, or protected by a password: save "
        "it as DOCX, PPTX, ODT or PDF without one",
        name);
  case KS_WIRE_FAULT_LANGUAGE:
    return g_strdup_printf ("text in %s cannot be recognised: the language data of Tesseract are "
                            "missing; install the package tesseract-ocr-eng, or that of your "
                            "language",
                            name);
  default:
    return format_video_fault (answer, name);
  }
}

static char *
format_fault (const KsWireAnswer *answer, const KsWorkerJob *job)
{
  const char *name = job->name;

  switch (answer->fault) {
  case KS_WIRE_FAULT_READ:
    return g_strdup_printf ("cannot read %s: %s", name, g_strerror ((int)(answer->a & 0xfff)));
  case KS_WIRE_FAULT_UNKNOWN:
    return g_strdup_printf ("%s is not a text file, a document, a picture or a video that can be "
                            "read: attach plain text, Markdown, source code, CSV, PDF, DOCX, ODT, "
                            "EPUB, HTML, PPTX, PNG, JPEG, WebP or MP4",
                            name);
  case KS_WIRE_FAULT_ENCODING:
    return g_strdup_printf ("%s holds text in an encoding that cannot be read: save it as UTF-8",
                            name);
  case KS_WIRE_FAULT_DAMAGED:
    return g_strdup_printf ("%s is damaged and cannot be read as %s: get or save it again", name,
                            name_kind (answer->a));
  case KS_WIRE_FAULT_PASSWORD:
    return g_strdup_printf ("%s is encrypted: enter its password", name);
  case KS_WIRE_FAULT_WRONG:
    return g_strdup_printf ("this is not the password of %s: enter another one", name);
  case KS_WIRE_FAULT_CIPHER:
    return g_strdup_printf ("%s is encrypted in a way that cannot be read: save it without a "
                            "password",
                            name);
  case KS_WIRE_FAULT_MEMORY:
    return g_strdup_printf (
        "%s needs more than the limit of %" G_GUINT64_FORMAT
        " MiB of memory: attach a smaller part of it",
        name, (job->limits != NULL ? job->limits : &ks_worker_default_limits)->memory_bytes >> 20);
  case KS_WIRE_FAULT_EMPTY:
    return answer->a == KS_WIRE_PDF ? g_strdup_printf ("%s has no pages: attach another file", name)
                                    : g_strdup_printf ("%s is empty: attach another file", name);
  case KS_WIRE_FAULT_NO_PAGE:
    return g_strdup_printf ("%s has no page %u: its last page is %u", name, answer->a + 1,
                            answer->b);
  case KS_WIRE_FAULT_NO_PAGES:
    return g_strdup_printf ("%s has no pages to show", name);
  case KS_WIRE_FAULT_VARIANT:
    return format_variant_fault (answer, name);
  case KS_WIRE_FAULT_CONFINED:
    return g_strdup_printf ("%s was not opened: the decoder could not give up its rights (%s: %s)",
                            name, name_step (answer->a), g_strerror ((int)(answer->b & 0xfff)));
  case KS_WIRE_FAULT_DECODER:
    return g_strdup_printf ("the decoder for a %s is missing: install Keepsake again",
                            name_kind (answer->a));
  case KS_WIRE_FAULT_PIXELS:
  case KS_WIRE_FAULT_LONG_TEXT:
  case KS_WIRE_FAULT_PAGES:
    return format_size_fault (answer, name);
  default:
    return format_document_fault (answer, name);
  }
}

static KsMediaError
get_code (KsWireFault fault)
{
  switch (fault) {
  case KS_WIRE_FAULT_UNKNOWN:
  case KS_WIRE_FAULT_ENCODING:
  case KS_WIRE_FAULT_NO_PAGES:
  case KS_WIRE_FAULT_VARIANT:
  case KS_WIRE_FAULT_NO_VIDEO:
  case KS_WIRE_FAULT_CODEC:
  case KS_WIRE_FAULT_OLD_OFFICE:
    return KS_MEDIA_ERROR_UNKNOWN_TYPE;
  case KS_WIRE_FAULT_NO_INDEX:
  case KS_WIRE_FAULT_DAMAGED:
  case KS_WIRE_FAULT_CIPHER:
    return KS_MEDIA_ERROR_DAMAGED;
  case KS_WIRE_FAULT_PASSWORD:
    return KS_MEDIA_ERROR_PASSWORD;
  case KS_WIRE_FAULT_WRONG:
    return KS_MEDIA_ERROR_WRONG_PASSWORD;
  case KS_WIRE_FAULT_PIXELS:
  case KS_WIRE_FAULT_LONG_TEXT:
  case KS_WIRE_FAULT_PAGES:
  case KS_WIRE_FAULT_MEMORY:
  case KS_WIRE_FAULT_FRAMES:
  case KS_WIRE_FAULT_UNPACKED:
    return KS_MEDIA_ERROR_TOO_LARGE;
  case KS_WIRE_FAULT_EMPTY:
    return KS_MEDIA_ERROR_EMPTY;
  case KS_WIRE_FAULT_CONFINED:
  case KS_WIRE_FAULT_DECODER:
  case KS_WIRE_FAULT_LANGUAGE:
    return KS_MEDIA_ERROR_WORKER;
  case KS_WIRE_FAULT_READ:
  case KS_WIRE_FAULT_NO_PAGE:
  case KS_WIRE_FAULT_CAMERA:
  case KS_WIRE_FAULT_NO_PICTURE:
    break;
  }
  return KS_MEDIA_ERROR_FAILED;
}

void
ks_worker_set_fault (GError **error, const KsWireAnswer *answer, const KsWorkerJob *job)
{
  g_autofree char *text = format_fault (answer, job);

  g_set_error_literal (error, KS_MEDIA_ERROR, (int)get_code (answer->fault),
                       text != NULL ? text : "the file cannot be read");
}
