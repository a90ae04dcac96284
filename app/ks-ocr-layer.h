/* ks-ocr-layer.h - text that was recognised in pictures and scanned pages, as a layer in the text
 * of an attachment: behind the marker of its page or picture, under a line that says where it comes
 * from and how sure it is.
 * What is recognised may be wrong; it is as untrusted as any text of a file.  Threads: any; blocks,
 * a page takes seconds. */
/* SPDX-License-Identifier: GPL-3.0-or-later */
#pragma once

#include "media/ks-media.h"

G_BEGIN_DECLS

typedef struct {
  const char *path;      /* the file, or its blob */
  const char *languages; /* Tesseract's names, NULL = those of the environment */
  KsMediaOptions media;  /* name, password, progress (pages or pictures done of all) */
} KsOcrLayerJob;

/* The text of what was read (result, of the same file) with the layer: of a picture the layer
 * alone, of a PDF for its pages without text, of a document for its pictures.  *out_n (may be NULL)
 * counts the pages or pictures in which text was found; 0 gives the text as it was, "" for a
 * picture.  A page that cannot be drawn is left out.  Errors: no language data, cancelled.
 * (transfer full) */
char *ks_ocr_layer_make (const KsOcrLayerJob *job, const KsMediaResult *result, guint *out_n,
                         GCancellable *cancellable, GError **error);

G_END_DECLS
