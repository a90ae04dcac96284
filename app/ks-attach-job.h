/* ks-attach-job.h - a user's file into the blob store and through the decoder, on a task's thread.
 * The bytes are copied first and the copy is decoded: what is stored is what was read, whatever
 * happens to the file meanwhile.
 * Threads: main, except the work itself. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "app/ks-eyes.h"
#include "app/ks-reading.h"
#include "media/ks-pixels.h"
#include "storage/ks-attachment.h"
#include "storage/ks-blob-store.h"

G_BEGIN_DECLS

/* Larger files are refused before they are copied. */
#define KS_ATTACH_MAX_BYTES ((guint64)1 << 30)

typedef struct {
  /* in */
  char *name, *path; /* path, or */
  GBytes *bytes;     /* bytes, or */
  char *hash;        /* a blob from an earlier try; set in any case once the bytes are stored */
  char *password;
  KsBlobStore *blobs;
  KsEyes eyes;              /* of the model that is to read it */
  KsMediaSampling sampling; /* of a video, where reading says nothing */
  gboolean has_page_mode;   /* for all pages of a document, else each on its own */
  KsPageMode page_mode;
  KsReading *reading; /* how it is to be read, as far as that was chosen; or NULL */
  /* out */
  KsAttachment *attachment;
  KsPixels *thumbnail;
  GPtrArray *frames; /* of KsMediaFrame: a video's, small; or NULL */
  gboolean has_sound;
  gboolean hides_pictures; /* pages go as text although they could go with their pictures */
  char *warning;
  GBytes *message;  /* the text it adds to a message, for counting tokens */
  guint n_pictures; /* that the model sees of it */
  guint64 n_bytes;
} KsAttachJob;

void ks_attach_job_free (KsAttachJob *job);

/* progress: on main, 0 to 1, not more often than it is looked at. */
typedef void (*KsAttachProgress) (double progress, gpointer user);
/* callback gets the task back, also for failures: job stays readable until it returns. */
void ks_attach_job_run_async (KsAttachJob *take_job, KsAttachProgress progress,
                              GCancellable *cancellable, GAsyncReadyCallback callback,
                              gpointer user);
gboolean ks_attach_job_run_finish (GAsyncResult *result, KsAttachJob **out_job, GError **error);

G_END_DECLS
