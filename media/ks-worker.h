/* ks-worker.h - starts a decoder worker for one request, limits it, and checks what it answers.
 * Every call has a process of its own; when it returns the process has ended and was waited for,
 * and no descriptor of it is left.  The worker counts as hostile: packets, seals, sizes and text
 * are checked before anything is used.  Source: docs/adr/0011-decoder-worker.md.  Threads: blocks,
 * any.
 */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "media/ks-media.h"
#include "media/ks-worker-wire.h"

G_BEGIN_DECLS

typedef struct {
  guint64 memory_bytes; /* address space of the worker */
  guint cpu_s;          /* its processor time */
  guint stall_ms;       /* longest silence */
  guint total_ms;       /* longest life */
} KsWorkerLimits;

/* What ks_media_* use. */
extern const KsWorkerLimits ks_worker_default_limits;

typedef struct {
  const char *name; /* for sentences */
  int fd;           /* the file, read only; borrowed */
  KsWireOperation operation;
  guint page;                   /* RENDER */
  KsMediaSampling sampling;     /* FRAMES, clamped */
  guint max_side_px;            /* 0 = 2048 */
  const char *password;         /* NULL = none */
  const KsWorkerLimits *limits; /* NULL = ks_worker_default_limits */
  KsMediaProgress progress;     /* NULL = none */
  gpointer user;
  guint64 *out_peak_bytes; /* as in KsMediaOptions; NULL = not wanted */
} KsWorkerJob;

/* The answers; each part was checked.  has_text: text is UTF-8 without NUL, answer_text.n_bytes
 * long. has_pixels: pixels fits answer_pixels.  Operations with many pictures put them into frames
 * instead (KsMediaFrame), in ascending order of index and time. */
typedef struct {
  gboolean has_text, has_pixels, has_video;
  KsWireAnswer answer_text, answer_pixels, answer_video;
  char *text;
  KsPixels *pixels;
  GPtrArray *frames; /* NULL = none came */
  GBytes *part;      /* bytes of a document's picture, not looked at yet; NULL = none came */
  char *lost;        /* why the picture beside a text did not come, else NULL */
} KsWorkerResult;

void ks_worker_result_clear (KsWorkerResult *result);
/* Runs one request.  FALSE: error is a KS_MEDIA_ERROR and *out is empty. */
gboolean ks_worker_run (const KsWorkerJob *job, GCancellable *cancellable, KsWorkerResult *out,
                        GError **error);
/* The program that is started: $KS_MEDIA_WORKER, the one of the build folder for a program that
 * runs from there, else the installed one. (transfer full) */
char *ks_worker_dup_program (void);
/* The sentence for a fault that the worker named. */
void ks_worker_set_fault (GError **error, const KsWireAnswer *answer, const KsWorkerJob *job);

G_END_DECLS
