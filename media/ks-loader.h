/* ks-loader.h - what the decoders inside the worker process look like, and how they answer.
 * Only for the worker: the program never includes this.  A decoder lives in a module of its own
 * (keepsake-*.so beside the worker), so that a text file is read without 90 libraries.
 * Threads: the worker has one; a decoder's library may start more, behind the filter only. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "media/ks-worker-wire.h"

G_BEGIN_DECLS

typedef struct {
  int fd;          /* the user's file, read only */
  guint64 n_bytes; /* its size when it came; it may change at any moment */
  KsWireWhat what; /* by its first bytes */
  const KsWireRequest *request;
  gpointer *state; /* prepare() may leave something for run() here */
} KsLoaderJob;

typedef struct {
  /* Before the filter: loads what a library would open lazily, and adds the folders that stay
   * readable to paths (char *, owned by it).  Must not touch job->fd, unless it is a camera. */
  void (*prepare) (const KsLoaderJob *job, GPtrArray *paths);
  /* Behind the filter: reads the file and answers. */
  void (*run) (const KsLoaderJob *job);
  gboolean may_thread; /* a library of it cannot do without; other decoders have one thread */
} KsLoader;

/* Symbol of a module: const KsLoader KS_LOADER_SYMBOL. */
#define KS_LOADER_SYMBOL ks_loader
extern const KsLoader ks_text_loader;

/* Ends the process without running anything that a decoder may have left for the exit
 * (worker-main.c). */
G_NORETURN void ks_worker_end (int code);

/* --- answers (ks-worker-answer.c); each ends the process when the program is gone --- */
void ks_answer_progress (guint n_done, guint n_total);
G_NORETURN void ks_answer_fault (KsWireFault fault, guint32 a, guint32 b);
/* facts: what, warnings, n_bytes and what belongs to that kind of text. */
void ks_answer_text (const KsWireAnswer *facts, const char *text);
/* A picture of a document as it lies in it. */
void ks_answer_part (GBytes *bytes);
/* What a video is: warnings, full sizes, duration_us, n_frames, has_sound; its frames follow. */
void ks_answer_video (const KsWireAnswer *facts);
/* pixels: 4 * width_px * height_px bytes. */
void ks_answer_pixels (const KsWireAnswer *sizes, const guint8 *pixels);
G_NORETURN void ks_answer_done (void);

/* The whole file in memory (g_free); ends with a fault when it cannot be read.  A file that gets
 * shorter meanwhile gives what was there. */
guint8 *ks_loader_read (const KsLoaderJob *job, guint64 max_bytes, KsWireFault too_large,
                        gsize *out_n);
/* The line that begins at `begin` in text gets a blank in front when it looks like one of ours, by
 * which the program finds pages and pictures: "[page 1]", "[picture 1]". */
void ks_loader_guard_line (GString *text, gsize begin);
/* Text in any encoding to UTF-8 with plain line ends (ks-text-loader.c, whose prepare must have
 * run); named: the encoding that the text itself names, NULL = none.  Ends with a fault when it is
 * no text.  Adds to *warnings. */
char *ks_text_loader_decode (const guint8 *data, gsize n, const char *named, gsize *out_n,
                             guint32 *warnings);

G_END_DECLS
