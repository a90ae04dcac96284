/* ks-media.h - what a user's file holds: text by page, pictures, pages as pictures, frames of
 * videos. Files are opened here, read only in the decoder worker (a process without rights:
 * seccomp, Landlock, rlimits): request over a socketpair, the file as an open descriptor, results
 * in sealed memfds. This library and everything above it link no decoder. Threads: the calls block
 * and may run on any thread, each with a worker of its own. Source: docs/formats/worker.md. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "media/ks-pixels.h"
#include "media/ks-sampling.h"

#include <gio/gio.h>

G_BEGIN_DECLS

#define KS_MEDIA_ERROR (ks_media_error_quark ())
GQuark ks_media_error_quark (void);

typedef enum {
  KS_MEDIA_ERROR_FAILED,       /* the file cannot be opened or read */
  KS_MEDIA_ERROR_UNKNOWN_TYPE, /* none of the known kinds, by content */
  KS_MEDIA_ERROR_DAMAGED,
  KS_MEDIA_ERROR_PASSWORD, /* encrypted: ask and try again with one */
  KS_MEDIA_ERROR_WRONG_PASSWORD,
  KS_MEDIA_ERROR_TOO_LARGE, /* pixels, pages, bytes, memory or time over the limit; the text names
                               it */
  KS_MEDIA_ERROR_EMPTY,     /* no pages, or no bytes */
  KS_MEDIA_ERROR_WORKER,    /* the worker ended or could not be confined */
  KS_MEDIA_ERROR_CANCELLED
} KsMediaError;

/* Longest text that is handed out, in bytes of UTF-8. */
#define KS_MEDIA_MAX_TEXT_BYTES (64u * 1024u * 1024u)

typedef enum {
  KS_MEDIA_TEXT,
  KS_MEDIA_PDF,
  KS_MEDIA_IMAGE,
  KS_MEDIA_VIDEO,
  KS_MEDIA_DOCUMENT /* text with pictures in it: DOCX, PPTX, ODT, ODP, EPUB, HTML */
} KsMediaKind;

typedef struct {
  KsMediaKind kind;
  guint n_pages;             /* PDF */
  guint width_px, height_px; /* image, video: the right way up and before scaling */
  gint64 duration_us;        /* video; 0 = not known */
  guint n_frames;            /* video: all of them, taken or not */
  gboolean has_sound;        /* video; sound is never handed out */
  guint n_pictures;          /* document: that can be shown, see ks_media_render_page */
  char *text; /* valid UTF-8 without NUL, lines end in \n; PDF: pages joined, each after a line
                 "[page N]"; document: a line "[picture N]" or "[picture N: what it shows]" where a
                 picture stands, the same number for the same picture; no other line begins like
                 that; NULL for images and videos */
  gsize n_text;
  char *encoding;             /* text files: the encoding that was found */
  guint n_pages_without_text; /* PDF */
  gboolean has_mixed_pages;   /* PDF: a page holds text and a picture that is more than a mark (long
                                 documents are looked through for a second only) */
  KsPixels *pixels;           /* image: at most max_side_px a side; PDF: the first page, or NULL;
                                 video: the first frame, NULL from ks_media_load_frames() */
  char *warning;              /* "the picture ends early"; NULL = none */
} KsMediaResult;

void ks_media_result_free (KsMediaResult *result); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsMediaResult, ks_media_result_free)

/* Called on the thread that waits: pages (of a video: parts) done of all, 0 of 0 while nothing is
 * known; the same numbers again while the worker works silently, several times a second. */
typedef void (*KsMediaProgress) (guint n_done, guint n_total, gpointer user);

typedef struct {
  const char *name;     /* for sentences; NULL = the file's own name */
  const char *password; /* PDF; NULL = none */
  guint max_side_px;    /* pictures are scaled down to this; 0 = 2048 */
  KsMediaProgress progress;
  gpointer user;
  guint64 *out_peak_bytes; /* largest resident memory of the worker, also when it failed (at least
                              what this process had when it started it); NULL = not wanted */
} KsMediaOptions;

/* Type by content; anything but a regular file is refused.  options may be NULL. (transfer full) */
KsMediaResult *ks_media_load (const char *path, const KsMediaOptions *options,
                              GCancellable *cancellable, GError **error);
/* The same for bytes that are no file (a pasted picture, standard input): sent as a sealed memfd.
 */
KsMediaResult *ks_media_load_bytes (GBytes *bytes, const KsMediaOptions *options,
                                    GCancellable *cancellable, GError **error);
/* One page (from 0) of a PDF as a picture, or one picture (number - 1) of a document, at most
 * options->max_side_px a side. (transfer full) */
KsPixels *ks_media_render_page (const char *path, guint page, const KsMediaOptions *options,
                                GCancellable *cancellable, GError **error);

/* One of several pictures of a file. */
typedef struct {
  KsPixels *pixels;
  guint index;    /* from 0 */
  gint64 time_us; /* video: when it is shown, from the video's start; else 0 */
} KsMediaFrame;

void ks_media_frame_free (KsMediaFrame *frame); /* NULL is allowed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC (KsMediaFrame, ks_media_frame_free)

/* Frames of a video as sampling wishes (ks-sampling.h), the right way up, at most
 * options->max_side_px a side, with their real times, ascending: an array of KsMediaFrame with at
 * least one.  Fewer than asked come when the video has no more.  Numbers out of range are put into
 * it. *out_facts (NULL = not wanted) gets the rest, with warnings.  All frames together may take
 * 1 GiB (TOO_LARGE).  A file with sound only is UNKNOWN_TYPE.  (transfer full) */
GPtrArray *ks_media_load_frames (const char *path, const KsMediaSampling *sampling,
                                 const KsMediaOptions *options, KsMediaResult **out_facts,
                                 GCancellable *cancellable, GError **error);

G_END_DECLS
